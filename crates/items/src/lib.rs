//! Parses and checks Kiwi's items: directives, tools and knowledge entries.
//!
//! Text and bytes go in, values come out: no files, no store, no clock, no network. The engine finds
//! the files and carries out requests; whether an item is well formed, whether its signature holds,
//! what runs it and what it may access is decided here and can be tested here.
//!
//! Reading order: [`kind`] for the basic types, then [`directive`], [`tool`] and [`knowledge`] for
//! the contents of files, [`mark`] for signatures, [`chain`] for how a tool is run and [`grants`] for
//! what it may access.
//!
//! The one invariant: nothing in an item is evaluated. A Python file is read as text, a schema with
//! an unknown keyword is refused, and any changed byte of a signed item is detected.

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
