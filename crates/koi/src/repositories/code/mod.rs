//! The code of a repository as a graph: its symbols are nodes, and what they refer to are edges.
//!
//! `rows` is what is kept of each file, `nodes` makes a file's symbols nodes in the transaction of its
//! document, and `linking` resolves references afterwards, over all files, and writes the edges. Both follow
//! from rows alone, so a scan that was killed is completed by the next. `asking` answers people.
//!
//! Edges of a file are resolved again when the file changed, or when a name that it mentions means something
//! else now (`kenning_code::resolve::dependents`).

mod asking;
mod linking;
mod nodes;
mod rows;

pub use asking::{CodeLink, CodeQuestion, CodeSymbol};
pub(super) use linking::{Linked, link};
pub(super) use nodes::{Prepared, known_facts, prepare, put, remove};
pub(super) use rows::forget;
