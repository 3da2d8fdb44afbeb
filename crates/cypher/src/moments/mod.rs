//! Points in time and durations as values: made of maps, texts and each other, their parts, and what lies
//! between them. The types themselves are in [`crate::temporal`].

mod access;
mod arithmetic;
mod between;
mod build;

pub(crate) use access::component;
pub(crate) use arithmetic::add;
pub(crate) use between::{Unit, between};
pub(crate) use build::{
    Kind, duration_from_map, duration_from_text, from_map, from_text, select, truncate,
};
