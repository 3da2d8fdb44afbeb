//! Measures the disk usage of a run.
//!
//! The kernel bounds the size of one file and nothing else, and a quota needs rights that we do not
//! have. So the supervisor adds up what lies in the directories that the program may write to, and what
//! it holds open without a name. What was there before the program started does not count.

#![expect(
    clippy::disallowed_methods,
    reason = "directories that the caller granted, and names beneath `/proc`"
)]

use crate::wire::Order;
use crate::{Exit, tree};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Above this many entries a directory is not walked: the free space of its file system is watched.
const WALKED_MAX: u64 = 200_000;
/// The pause after a measurement is this many times longer than the measurement.
const PAUSE_FACTOR: u32 = 5;
/// When less than this is left of a file system, or half of what was left at the start, whichever is
/// less, the program is ended.
const RESERVE_BYTES: u64 = 256 << 20;

/// What lies in a directory, or in several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    bytes: u64,
    entries: u64,
    /// Directories that could not be read.
    hidden: u64,
}

struct Root {
    path: PathBuf,
    before: Amount,
    free_before: Option<u64>,
}

/// Watches what a run writes.
pub(crate) struct Disk {
    roots: Vec<Root>,
    bytes_max: u64,
    files_max: u64,
    next: Instant,
}

impl Disk {
    /// Measures what exists before the program starts.
    pub(crate) fn new(order: &Order) -> Self {
        let named = order.write.iter().chain(&order.scratch);
        let roots = outermost(named).into_iter().map(|path| {
            let mut before = Amount::default();
            measure(&path, WALKED_MAX, &mut before, &mut HashSet::new());
            Root {
                free_before: free(&path),
                before,
                path,
            }
        });
        Self {
            roots: roots.collect(),
            bytes_max: order.limits.disk_bytes,
            files_max: order.limits.files,
            next: Instant::now(),
        }
    }

    /// Why the run must end, if a measurement is due and finds a reason.
    pub(crate) fn look_if_due(&mut self) -> Option<Exit> {
        let begun = Instant::now();
        if begun < self.next {
            return None;
        }
        let found = self.look();
        self.next = Instant::now() + begun.elapsed() * PAUSE_FACTOR;
        found
    }

    /// Why the run must end, if there is a reason.
    pub(crate) fn look(&self) -> Option<Exit> {
        let (mut bytes, mut entries, mut is_hidden) = (0_u64, 0_u64, false);
        let mut seen = HashSet::new();
        for root in &self.roots {
            let free_now = free(&root.path);
            if let (Some(before), Some(now)) = (root.free_before, free_now) {
                if now < RESERVE_BYTES.min(before / 2) {
                    return Some(Exit::TooMuchDisk);
                }
                if root.before.entries > WALKED_MAX {
                    bytes = bytes.saturating_add(before.saturating_sub(now));
                    continue;
                }
            }
            let mut now = Amount::default();
            let most = root.before.entries.saturating_add(self.files_max);
            measure(&root.path, most, &mut now, &mut seen);
            bytes = bytes.saturating_add(now.bytes.saturating_sub(root.before.bytes));
            entries += now.entries.saturating_sub(root.before.entries);
            is_hidden |= now.hidden > root.before.hidden;
        }
        if !self.roots.is_empty() {
            bytes = bytes.saturating_add(nameless(&mut seen));
        }
        if entries > self.files_max {
            return Some(Exit::TooManyFiles);
        }
        // Unreadable directories count as too much, or they would be a way around the limit.
        (bytes > self.bytes_max || is_hidden).then_some(Exit::TooMuchDisk)
    }
}

/// Paths without those that lie beneath others.
fn outermost<'a>(named: impl Iterator<Item = &'a OsString>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = named.map(PathBuf::from).collect();
    all.sort();
    all.dedup_by(|later, earlier| later.starts_with(earlier));
    all
}

/// Adds what lies beneath a path, and stops when there are more entries than `most`. Links are not
/// followed; a file with several names counts once.
fn measure(path: &Path, most: u64, amount: &mut Amount, seen: &mut HashSet<(u64, u64)>) {
    let Ok(about) = fs::symlink_metadata(path) else {
        return;
    };
    if !about.is_dir() {
        return add(&about, amount, seen);
    }
    let mut unseen = vec![path.to_owned()];
    while let Some(directory) = unseen.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            // Removed in the meantime, so it takes no space.
            Err(it) if it.kind() == std::io::ErrorKind::NotFound => continue,
            // Unreadable, or nested more deeply than a path can be long.
            Err(_) => {
                amount.hidden += 1;
                continue;
            }
        };
        for entry in entries.flatten() {
            let Ok(about) = entry.metadata() else {
                continue;
            };
            add(&about, amount, seen);
            if amount.entries > most {
                return;
            }
            if about.is_dir() {
                unseen.push(entry.path());
            }
        }
    }
}

fn add(about: &Metadata, amount: &mut Amount, seen: &mut HashSet<(u64, u64)>) {
    amount.entries += 1;
    if about.is_dir() || about.nlink() < 2 || seen.insert((about.dev(), about.ino())) {
        amount.bytes += about.blocks() * 512;
    }
}

/// Bytes of files that have no name any more, but are open or mapped by a process of the run.
fn nameless(seen: &mut HashSet<(u64, u64)>) -> u64 {
    let mut bytes = 0;
    let mut inodes = HashSet::new();
    let all = tree::beneath(std::process::id());
    for pid in &all {
        // Threads may have their own descriptors.
        for task in tree::numbers(&format!("/proc/{pid}/task")) {
            let descriptors = format!("/proc/{pid}/task/{task}/fd");
            for fd in tree::numbers(&descriptors) {
                let Ok(about) = fs::metadata(format!("{descriptors}/{fd}")) else {
                    continue;
                };
                if about.is_file() && about.nlink() == 0 && seen.insert((about.dev(), about.ino()))
                {
                    inodes.insert(about.ino());
                    bytes += about.blocks() * 512;
                }
            }
        }
    }
    for pid in &all {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        for (inode, length) in maps.lines().filter_map(nameless_mapping) {
            if inodes.insert(inode) {
                bytes += length;
            }
        }
    }
    bytes
}

/// The inode and the length of a shared mapping of a file without a name.
fn nameless_mapping(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_shared = fields.next()?.ends_with('s');
    let inode = fields.nth(2)?.parse().ok()?;
    let path = fields.next()?;
    // Memory of several processes looks like a file; it counts as memory.
    if !is_shared || !line.ends_with(" (deleted)") || path == "/dev/zero" {
        return None;
    }
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((inode, number(end)?.saturating_sub(number(start)?)))
}

/// What ordinary users may still write on the file system of a path.
fn free(path: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(path).ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_counts_once_and_links_lead_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path();
        fs::write(path.join("a"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(path.join("a"), path.join("b")).unwrap();
        fs::create_dir(path.join("c")).unwrap();
        std::os::unix::fs::symlink("/usr", path.join("c/link")).unwrap();
        let mut amount = Amount::default();
        measure(path, 100, &mut amount, &mut HashSet::new());
        assert_eq!((amount.entries, amount.hidden), (4, 0));
        assert!((1 << 20..2 << 20).contains(&amount.bytes), "{amount:?}");
    }

    #[test]
    fn what_lies_beneath_another_is_not_counted_twice() {
        let named = ["/a/b", "/a", "/ab", "/a/c/d"].map(OsString::from);
        let kept = outermost(named.iter());
        assert_eq!(kept, [PathBuf::from("/a"), PathBuf::from("/ab")]);
    }

    #[test]
    fn a_mapping_counts_if_it_is_shared_and_its_file_has_no_name() {
        for (line, found) in [
            (
                "7f00-7f10 rw-s 00000000 08:01 42 /tmp/x (deleted)",
                Some((42, 16)),
            ),
            ("7f00-7f10 rw-p 00000000 08:01 42 /tmp/x (deleted)", None),
            ("7f00-7f10 rw-s 00000000 08:01 42 /tmp/x", None),
            ("7f00-7f10 rw-s 00000000 00:01 42 /dev/zero (deleted)", None),
            ("7f00-7f10 rw-p 00000000 00:00 0 ", None),
            ("", None),
        ] {
            assert_eq!(nameless_mapping(line), found, "{line}");
        }
    }
}
