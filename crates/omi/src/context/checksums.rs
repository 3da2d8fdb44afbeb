//! Checksums beside the files of the context.
//!
//! NOW.md and MEMORY.md have one each, the daily logs share a list. They follow from the files alone,
//! so a write that was interrupted can be finished by anybody. Whoever changes them holds the lock of
//! the directory.

use kenning_core::{Code, Error, Result};
use kenning_kernel::FileNode;
use kenning_kernel::roots;
use kenning_memory::{daily, now};
use kenning_text::hex;
use kenning_vault::Dir;

/// The curated file. Nobody here writes it; it is only watched.
pub const MEMORY: &str = "MEMORY.md";

/// The checksum of NOW.md.
const NOW_SUM: &str = ".now.hash";

/// The checksum of MEMORY.md.
const MEMORY_SUM: &str = ".memory.hash";

/// The checksums of the daily logs, a line each: digest, two spaces, name.
pub(crate) const DAILY_SUMS: &str = ".daily.hash";

/// When NOW.md was last written.
const HEARTBEAT: &str = "heartbeat-state.json";

/// More lines than anybody lives days.
const SUMS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Records what a file has become.
pub(crate) fn record(dir: &Dir, file: &FileNode, content: &str) -> Result<()> {
    if file.source != roots::OMI.name {
        return Ok(());
    }
    let sum = hex::sha256(content.as_bytes());
    match file.name.as_str() {
        now::FILE => {
            let timestamp = now::parse(content).timestamp;
            // A file that somebody else wrote may not say when.
            if !timestamp.is_empty() {
                write_changed(dir, HEARTBEAT, &now::heartbeat(&timestamp))?;
            }
            write_changed(dir, NOW_SUM, &sum)
        }
        MEMORY => write_changed(dir, MEMORY_SUM, &sum),
        name if is_log(name) => record_log(dir, name, &sum),
        _ => Ok(()),
    }
}

fn is_log(name: &str) -> bool {
    let inner = name.strip_prefix(daily::FOLDER);
    let inner = inner.and_then(|it| it.strip_prefix('/'));
    inner.is_some_and(|it| daily::day_of(it).is_some())
}

/// Changes one line; every other stays as it is, a damaged one too, so that it is still noticed.
fn record_log(dir: &Dir, name: &str, sum: &str) -> Result<()> {
    let before = read(dir, DAILY_SUMS)?.unwrap_or_default();
    let ending = format!("  {name}");
    let own = format!("{sum}{ending}");
    let mut lines: Vec<&str> = before.lines().filter(|it| !it.ends_with(&ending)).collect();
    lines.push(&own);
    lines.sort_by_key(|line| line.rsplit("  ").next());
    write_changed(dir, DAILY_SUMS, &format!("{}\n", lines.join("\n")))
}

/// Records that NOW.md or MEMORY.md is not there.
pub(crate) fn forget(dir: &Dir, file: &FileNode) -> Result<()> {
    match file.name.as_str() {
        now::FILE => remove(dir, NOW_SUM),
        MEMORY => remove(dir, MEMORY_SUM),
        _ => Ok(()),
    }
}

/// Records nothing of any daily log.
pub(crate) fn forget_logs(dir: &Dir) -> Result<()> {
    remove(dir, DAILY_SUMS)
}

fn remove(dir: &Dir, name: &str) -> Result<()> {
    match dir.remove(name) {
        Err(error) if error.code != Code::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What is recorded of NOW.md or MEMORY.md.
pub(crate) fn of(dir: &Dir, name: &str) -> Result<Option<String>> {
    let file = if name == now::FILE {
        NOW_SUM
    } else {
        MEMORY_SUM
    };
    Ok(read(dir, file)?.map(|it| it.trim().to_owned()))
}

/// What is recorded of the daily logs, with what is wrong with the list itself.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Name and digest.
    pub(crate) logs: Vec<(String, String)>,
    /// One sentence each.
    pub(crate) faults: Vec<String>,
}

/// Reads the list of the daily logs.
pub(crate) fn of_logs(dir: &Dir) -> Result<Sums> {
    let mut sums = Sums::default();
    for (at, line) in read(dir, DAILY_SUMS)?
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

/// A checksum file that is not even text matches nothing.
fn read(dir: &Dir, name: &str) -> Result<Option<String>> {
    match dir.read(name, SUMS_BYTES_MAX) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => {
            Err(Error::new(error.code, format!("`{name}` cannot be read")).because(error))
        }
    }
}

/// A write waits for the disk, so what is there already is left.
fn write_changed(dir: &Dir, name: &str, content: &str) -> Result<()> {
    if read(dir, name)?.as_deref() == Some(content) {
        return Ok(());
    }
    dir.write(name, content.as_bytes())
}
