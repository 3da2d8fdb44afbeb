//! What names mean: facts of all files in, links between their symbols out.
//!
//! [`Project::new`] makes an index of all files; [`Project::links`] says what one file refers to. A name is
//! looked up in its scope, then in what its file imports, then in its package; a member is looked up in the
//! type of what it is a member of, where that type is written or follows from a value. What cannot be told
//! gives no link: never the first of that name.
//!
//! How to read: `index` is what is kept of all files, `modules` and `packages` find files by what imports say,
//! `names` looks up names, `values` evaluates expressions to what they are, `members` finds members of those,
//! and `links` and `calls` put it together. `surface` tells what depends on what.

mod calls;
mod externals;
mod file;
mod index;
mod links;
mod members;
mod modules;
mod names;
mod packages;
mod surface;
mod types;
mod values;

pub use file::Source;
pub use index::Project;
pub use links::{Link, Origin, Place, Relation};
pub use surface::{Surface, dependents};

/// A symbol of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sym {
    /// The place of its file in the project.
    pub file: u32,
    /// Its place in the file.
    pub n: u32,
}
