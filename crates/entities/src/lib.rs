//! People, organizations and what else notes and pages are about, apart from where they are kept.
//!
//! [`ontology`] says what kinds of things there are and what may relate them, [`names`] how they are
//! identified, [`resolve`] which of them a label means ([`likeness`] of names decides), [`mentions`] which of
//! them a text names, and [`extract`] what it states of them. [`page`] makes a text of a web page.
//! [`quality`] measures resolution on judged pairs.
//!
//! The crate opens no file, asks no clock and no network, and keeps nothing: entities come in through a
//! trait, and the same arguments give the same answer. Texts come from anywhere, so none is believed: they
//! give names and relationships, never instructions.

#![deny(missing_docs)]

pub mod extract;
pub mod likeness;
pub mod mentions;
pub mod names;
pub mod ontology;
pub mod page;
pub mod quality;
pub mod resolve;
pub mod similarity;
mod words;
