//! What Kiwi's items say: directives, tools and knowledge entries.
//!
//! Text and bytes go in, values come out: no files, no store, no clock, no network. The engine finds
//! the files and does what is asked; whether an item is well formed, whether it is what was signed,
//! what runs it and what it may touch is decided here and can be tested here.
//!
//! Reading order: [`kind`] for the words, then [`directive`], [`tool`] and [`knowledge`] for what
//! files say, [`mark`] for who vouches for them, [`chain`] for how a tool comes to run and [`grants`]
//! for what it may touch.
//!
//! The one invariant: nothing that an item says is evaluated. A Python file is read as text, a schema
//! with an unknown word is refused, and a byte changed anywhere in a signed item is noticed.

#![deny(missing_docs)]

pub mod arguments;
pub mod builtin;
pub mod chain;
mod declared;
pub mod directive;
mod faults;
pub mod grants;
pub mod kind;
pub mod knowledge;
pub mod link;
pub mod lockfile;
pub mod mark;
pub mod schema;
pub mod skill;
pub mod tool;
pub mod version;
mod yaml;

pub(crate) use declared::{agreed_category, declared_category};
pub use directive::Directive;
pub use faults::{Fault, Faults};
pub use kind::{Category, ItemId, ItemType, Layout, Place, Scope};
pub use knowledge::Knowledge;
pub use tool::Tool;
