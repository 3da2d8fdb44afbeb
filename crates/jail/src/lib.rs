//! Runs an untrusted program in a jail, or not at all.
//!
//! A [`Spec`] says everything that the program may have: its arguments and environment, the paths it
//! may read, write and execute, the TCP ports it may connect to, and how much of the machine it may
//! take. [`run`] runs it to its end; [`spawn`] starts one that is talked to for longer. The kernel refuses
//! everything that is not in the specification.
//!
//! Three processes take part, because there is no safe way to run code between `fork` and `exec`. The
//! host starts its own binary again as the **supervisor** (`supervise`), which owns the whole tree of
//! processes and ends it. The supervisor starts the binary once more; that process drops its
//! privileges (`confine`) and becomes the program. So every binary that runs programs calls
//! [`enter_if_asked`] as the first line of `main`, while there is still one thread.
//!
//! The one invariant: a program runs fully confined or not at all. If the kernel or the privileges of
//! this process do not allow a part of the jail, the answer is `denied` and says which.
//!
//! It does not know what the program is for, and makes and removes no files: directories are the
//! caller's, chosen through `vault`.

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod host;
mod outcome;
mod spec;
#[cfg(target_os = "linux")]
mod supervise;
mod system;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod user;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Peer, check, enter_if_asked, run, spawn};
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use host::enter_if_asked_with;
#[cfg(target_os = "linux")]
pub use host::{Peer, check, enter_if_asked, run, spawn};
pub use outcome::{Exit, Outcome, Strength, Usage};
pub use spec::{Launcher, Limits, Net, Spec};
pub use system::{SystemPaths, system_paths};
