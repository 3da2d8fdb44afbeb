//! Safe file access beneath an open directory.
//!
//! This is the only crate that opens paths from outside (a caller, a tool, a configuration). A [`Dir`] is an open directory, not a
//! path: every name is resolved by the kernel beneath that handle (`openat2` with `RESOLVE_BENEATH`
//! where there is one, cap-std's step by step walk elsewhere), so that no link, no `..` and no
//! directory swapped in the middle of a call can lead outside. Strings are never compared with the
//! name of the root.
//!
//! It does not know what the files mean: notes, keys and databases are all bytes here.
//!
//! The one invariant: nothing outside the directory is read or changed, whatever the name is and
//! whatever else happens in the directory at that moment. Two things are the operator's own doing and
//! are followed: a file system mounted beneath the root, and a second hard link to a file outside.
//! (A write replaces a name, so even then the other hard link keeps its old content.)
//!
//! Read [`Name`] for the rules of names, then [`Dir`] for the operations.

#![deny(missing_docs)]
#![expect(
    clippy::disallowed_methods,
    reason = "this is the crate that the other crates are sent to"
)]

mod dir;
mod fault;
mod fresh;
mod ignored;
mod lock;
mod name;
mod operator;
mod plain;
mod socket;
mod staged;
mod temp;
mod unfinished;
mod usage;
mod walk;
mod watch;

pub use dir::{Dir, Entry};
pub use fault::is_unconfirmed;
pub use fresh::Fresh;
pub use lock::Lock;
pub use name::Name;
pub use operator::{resolved, split};
pub use plain::{Kind, Plain};
pub use staged::Staged;
pub use unfinished::Unfinished;
pub use walk::{Found, Listed, Stamp, Walked};
pub use watch::{Change, Watch};
