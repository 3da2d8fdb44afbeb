//! The user that the program runs as.
//!
//! Root is bound by neither modes nor the number of processes, so if this process is root, the
//! program gets a separate user: one for the run, or the permanent one of a number. An ordinary user
//! stays the same: then `RLIMIT_NPROC` is the limit plus the processes that the user has now, and the
//! supervisor counts as well.

use kenning_core::{Error, Result};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{Gid, Uid};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Above all ids that systems assign; as many as there are process ids, so that two running supervisors
/// never choose the same.
const WIDE: Range<u32> = 200_000..200_000 + (1 << 22);
/// For containers that map few users: the range that systemd uses for dynamic users.
const NARROW: Range<u32> = 61_184..63_352;

/// Users that stay the same from run to run: as many again, so that they are never those of a moment.
const WIDE_LASTING: Range<u32> = WIDE.end..WIDE.end + (1 << 22);
const NARROW_LASTING: Range<u32> = 63_352..65_520;

/// The user of this number, who may be running other programs at the moment.
pub(crate) fn lasting(number: u32) -> Result<u32> {
    let map = own_map();
    let mut ranges = [WIDE_LASTING, NARROW_LASTING].into_iter();
    let range = ranges.find(|it| maps(&map, it)).ok_or_else(no_user)?;
    Ok(range.start + number % (range.end - range.start))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the kernel's own table of users, under its own name"
)]
fn own_map() -> String {
    std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default()
}

fn no_user() -> Error {
    Error::denied("no unprivileged user is available to run the program")
        .hint("run Kenning as an ordinary user, or map 65,536 users into the container")
}

/// A user that no other run uses at the moment.
pub(crate) fn choose() -> Result<u32> {
    let map = own_map();
    let own = std::process::id();
    if maps(&map, &WIDE) {
        return Ok(WIDE.start + own % (WIDE.end - WIDE.start));
    }
    if !maps(&map, &NARROW) {
        return Err(no_user());
    }
    let length = NARROW.end - NARROW.start;
    let mut candidates = (0..length).map(|it| NARROW.start + (own + it) % length);
    let free = candidates.find(|it| crate::tree::tasks_of(*it) == 0);
    free.ok_or_else(|| Error::unavailable("too many programs run at once"))
}

/// Whether a user namespace's map has all of a range.
fn maps(map: &str, range: &Range<u32>) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(inside)), Some(Ok(_)), Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        inside <= u64::from(range.start) && inside + count >= u64::from(range.end)
    })
}

/// Gives a directory that the caller made to the program's user.
pub(crate) fn give(scratch: &OsStr, user: u32) -> Result<()> {
    let refused = |error: rustix::io::Errno| {
        let name = crate::spec::shown(Path::new(scratch));
        Error::invalid(format!(
            "`scratch` or `made`: `{name}` cannot be given to the program"
        ))
        .hint("make a new directory for each run")
        .because(error)
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(scratch, flags, Mode::empty()).map_err(refused)?;
    let about = rustix::fs::fstat(&fd).map_err(refused)?;
    if about.st_uid != 0 {
        return Err(refused(rustix::io::Errno::PERM));
    }
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    rustix::fs::fchown(&fd, Some(uid), Some(gid)).map_err(refused)
}

/// Gives the pipes that are the program's standard streams to its user, or `/dev/stderr` could not be
/// opened: a pipe has an owner, and no other user can open it.
pub(crate) fn give_pipe(fd: BorrowedFd<'_>, user: u32) -> Result<()> {
    let given = rustix::fs::fstat(fd).and_then(|about| {
        // Anything else, such as `/dev/null`, keeps its owner.
        if !FileType::from_raw_mode(about.st_mode).is_fifo() {
            return Ok(());
        }
        rustix::fs::fchown(fd, Some(Uid::from_raw(user)), Some(Gid::from_raw(user)))
    });
    given.map_err(|it| Error::unavailable("the program could not be given its streams").because(it))
}

/// Switches to the chosen user, if any, and drops every capability.
pub(crate) fn become_user(user: Option<u32>) -> Result<()> {
    let refused = |error: rustix::io::Errno| {
        Error::denied("the process could not drop its privileges")
            .hint("run Kenning as an ordinary user")
            .because(error)
    };
    if let Some(user) = user {
        let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
        rustix::thread::set_thread_groups(&[]).map_err(refused)?;
        rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(refused)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(refused)?;
    }
    rustix::thread::clear_ambient_capability_set().map_err(refused)?;
    let none = rustix::thread::CapabilitySet::empty();
    let sets = rustix::thread::CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    rustix::thread::set_capabilities(None, sets).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_must_have_the_whole_range() {
        let whole = "         0          0 4294967295\n";
        let container = "0 100000 65536\n";
        let rootless = "0 1000 1\n1 100000 65536\n";
        for (map, wide, narrow) in [
            (whole, true, true),
            (container, false, true),
            (rootless, false, true),
            ("0 1000 1\n", false, false),
            ("", false, false),
            ("200000 0 100\n", false, false),
        ] {
            assert_eq!(
                (maps(map, &WIDE), maps(map, &NARROW)),
                (wide, narrow),
                "{map}"
            );
        }
    }
}
