//! Checksums beside the files of the context.
//!
//! NOW.md and MEMORY.md have one each, the daily logs share a list. They depend on the files alone,
//! so any process can finish an interrupted write. Whoever changes them holds the lock of the
//! directory.

use super::Place;
use kenning_core::{Code, Error, Result};
use kenning_kernel::FileNode;
use kenning_kernel::roots;
use kenning_memory::{daily, now};
use kenning_text::hex;
use kenning_vault::Dir;

/// A file that people curate. The program never writes it; it only checks it.
pub const MEMORY: &str = "MEMORY.md";

/// The checksum of NOW.md.
const NOW_SUM: &str = ".now.hash";

/// The checksum of MEMORY.md.
const MEMORY_SUM: &str = ".memory.hash";

/// The checksums of the daily logs, a line each: digest, two spaces, name.
pub(crate) const DAILY_SUMS: &str = ".daily.hash";

/// When NOW.md was last written.
const HEARTBEAT: &str = "heartbeat-state.json";

/// More lines than a lifetime has days.
const SUMS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Records the checksum of a file.
pub(crate) fn record(dir: &Dir, file: &FileNode, content: &str) -> Result<()> {
    if file.source != roots::OMI.name {
        return Ok(());
    }
    let sum = hex::sha256(content.as_bytes());
    let (place, name) = Place::split(&file.name);
    match name {
        now::FILE => {
            let timestamp = now::parse(content).timestamp;
            // A file that somebody else wrote may have no timestamp.
            if !timestamp.is_empty() {
                write_changed(dir, &place.name(HEARTBEAT), &now::heartbeat(&timestamp))?;
            }
            write_changed(dir, &place.name(NOW_SUM), &sum)
        }
        MEMORY => write_changed(dir, &place.name(MEMORY_SUM), &sum),
        log if is_log(log) => record_log(dir, &place, log, &sum),
        _ => Ok(()),
    }
}

fn is_log(name: &str) -> bool {
    let inner = name.strip_prefix(daily::FOLDER);
    let inner = inner.and_then(|it| it.strip_prefix('/'));
    inner.is_some_and(|it| daily::day_of(it).is_some())
}

/// Changes one line; all others stay, damaged ones too, so that they are still reported.
fn record_log(dir: &Dir, place: &Place, name: &str, sum: &str) -> Result<()> {
    let list = place.name(DAILY_SUMS);
    let before = read(dir, &list)?.unwrap_or_default();
    let ending = format!("  {name}");
    let own = format!("{sum}{ending}");
    let mut lines: Vec<&str> = before.lines().filter(|it| !it.ends_with(&ending)).collect();
    lines.push(&own);
    lines.sort_by_key(|line| line.rsplit("  ").next());
    write_changed(dir, &list, &format!("{}\n", lines.join("\n")))
}

/// Records that NOW.md or MEMORY.md does not exist.
pub(crate) fn forget(dir: &Dir, file: &FileNode) -> Result<()> {
    let (place, name) = Place::split(&file.name);
    match name {
        now::FILE => remove(dir, &place.name(NOW_SUM)),
        MEMORY => remove(dir, &place.name(MEMORY_SUM)),
        _ => Ok(()),
    }
}

/// Removes the checksums of all daily logs of a place.
pub(crate) fn forget_logs(dir: &Dir, place: &Place) -> Result<()> {
    remove(dir, &place.name(DAILY_SUMS))
}

fn remove(dir: &Dir, name: &str) -> Result<()> {
    match dir.remove(name) {
        Err(error) if error.code != Code::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The recorded checksum of NOW.md or MEMORY.md of a place.
pub(crate) fn of(dir: &Dir, place: &Place, name: &str) -> Result<Option<String>> {
    let file = if name == now::FILE {
        NOW_SUM
    } else {
        MEMORY_SUM
    };
    Ok(read(dir, &place.name(file))?.map(|it| it.trim().to_owned()))
}

/// The recorded checksums of the daily logs, and faults of the list itself.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Name in its place and digest.
    pub(crate) logs: Vec<(String, String)>,
    /// One sentence each.
    pub(crate) faults: Vec<String>,
}

/// Reads the list of the daily logs of a place.
pub(crate) fn of_logs(dir: &Dir, place: &Place) -> Result<Sums> {
    let mut sums = Sums::default();
    for (at, line) in read(dir, &place.name(DAILY_SUMS))?
        .unwrap_or_default()
        .lines()
        .enumerate()
    {
        match line.split_once("  ") {
            Some((sum, name)) if is_log(name) && !sums.logs.iter().any(|it| it.0 == name) => {
                sums.logs.push((name.to_owned(), sum.to_owned()));
            }
            _ => sums.faults.push(format!(
                "`{DAILY_SUMS}`: line {} is not the checksum of a daily log",
                at + 1
            )),
        }
    }
    Ok(sums)
}

/// A checksum file that is not text matches nothing.
fn read(dir: &Dir, name: &str) -> Result<Option<String>> {
    match dir.read(name, SUMS_BYTES_MAX) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => {
            Err(Error::new(error.code, format!("`{name}` cannot be read")).because(error))
        }
    }
}

/// A write waits for the disk, so an unchanged file is left alone.
fn write_changed(dir: &Dir, name: &str, content: &str) -> Result<()> {
    if read(dir, name)?.as_deref() == Some(content) {
        return Ok(());
    }
    dir.write(name, content.as_bytes())
}
