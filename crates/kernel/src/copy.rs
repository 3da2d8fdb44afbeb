//! Backup and restore: everything, to the byte.
//!
//! A backup is text: a first line that names it, then one row a line, then a last line with the
//! number of rows and the hash of all bytes before it. The node's secret key is not in it: whoever
//! restores goes on under a new identity, and the old events stay valid.
//!
//! Every line is read back as it is written, and the roots are computed again from the rows: the last
//! line, without which it is no backup, is written only if a restore could read all of it.

use super::lines::{LineFault, read_line};
use super::transfer::{Transferred, write_failed};
use crate::{Caller, Kernel, Scope};
use kenning_audit::archive::{self, Check, Checked, Loaded};
use kenning_core::{Error, Result, Space};
use kenning_store::parse_json;
use serde_json::{Value, json};
use std::io::{BufRead, Write};

impl Kernel {
    /// Writes a consistent copy of every space. Whether somebody may is asked by whoever calls this. The space
    /// `first` comes first, and `begun` is called as soon as no later write to it can be in the copy.
    pub fn dump(
        &self,
        caller: &Caller,
        first: &Space,
        begun: impl FnOnce(),
        out: &mut dyn Write,
    ) -> Result<Transferred> {
        let mut out = Hashing {
            out,
            hasher: blake3::Hasher::new(),
        };
        out.line(&json!({ "format": FORMAT, "version": VERSION }))?;
        let mut done = Transferred::default();
        let mut begun = Some(begun);
        let mut spaces = self.log.store().spaces()?;
        spaces.sort_by_key(|it| it != first);
        for space in spaces {
            out.line(&json!({ "space": space.as_str() }))?;
            let mut check = Check::new(Checked::Rows);
            self.log.read_long(&space, |tx| {
                if let Some(begun) = begun.take() {
                    // A snapshot is of the moment of its first read.
                    tx.head()?;
                    begun();
                }
                archive::dump(tx, &mut |row| {
                    done.rows += 1;
                    done.nodes += u64::from(row["table"] == "nodes");
                    done.edges += u64::from(row["table"] == "edges");
                    if done.rows.is_multiple_of(1_000) {
                        caller.check()?;
                        caller.progress(done.rows as f64, None, "rows written");
                    }
                    check.row(&out.line(&row)?)
                })
            })?;
            check
                .finish()
                .map_err(|error| damaged_store(&space, error))?;
        }
        let hash = out.hasher.finalize().to_hex().to_string();
        out.line(&json!({ "rows": done.rows, "hash": hash }))?;
        out.out.flush().map_err(write_failed)?;
        Ok(done)
    }

    /// Puts a backup into an empty store and verifies the whole.
    ///
    /// A token may have been revoked since the backup was made, which the backup cannot know: so its tokens are
    /// revoked here unless `keep_tokens` says that they are good.
    pub fn restore(
        &self,
        caller: &Caller,
        keep_tokens: bool,
        verify: impl Fn(&Space) -> Result<kenning_audit::Report>,
        open: impl Fn() -> Result<Box<dyn BufRead + Send>>,
    ) -> Result<Restored> {
        caller.principal.require(Scope::Admin)?;
        // Twice through: nothing is written before the whole file is known to be whole.
        let spaces = check_backup(open()?, Checked::Rows)?;
        self.refuse_occupied_spaces(&spaces)?;
        let mut restored = Restored {
            spaces,
            ..Restored::default()
        };
        let mut loaded = Vec::new();
        let mut load_all = || {
            for space in &restored.spaces {
                let rows = rows_of(open()?, space.clone());
                loaded.push(archive::load(self.log.store(), space, rows)?);
                let report = verify(space)?;
                if let Some(fault) = report.faults.first() {
                    return Err(Error::corrupt(format!("space {space}: {fault}"))
                        .hint("the backup was made from a damaged store"));
                }
            }
            match keep_tokens {
                true => Ok(0),
                false => self.revoke_restored_tokens(caller),
            }
        };
        let done = load_all();
        match done {
            Ok(n) => restored.tokens_revoked = n,
            Err(error) => return Err(self.take_back(loaded, error)),
        }
        restored.rows = loaded.iter().map(|it| it.rows).sum();
        Ok(restored)
    }

    /// Removes the spaces that a restore loaded before it failed, so that it can be tried again.
    fn take_back(&self, loaded: Vec<Loaded>, error: Error) -> Error {
        let removed = loaded
            .into_iter()
            .try_for_each(|it| archive::unload(self.log.store(), it));
        match removed {
            Ok(()) => error,
            Err(kept) => Error::new(
                error.code,
                format!(
                    "{}, and what was restored until then is still there: {kept}",
                    error.message
                ),
            )
            .hint("restore into an empty store")
            .because(error),
        }
    }

    /// Nothing is written into any space before all of them are known to be empty.
    pub(super) fn refuse_occupied_spaces(&self, spaces: &[Space]) -> Result<()> {
        for space in spaces {
            if self.log.roots(space)?.seq > 0 {
                return Err(Error::conflict(format!("the space `{space}` is not empty"))
                    .hint("restore into a new data directory: `--data DIR`"));
            }
        }
        Ok(())
    }
}

pub(super) const FORMAT: &str = "kenning-backup";

pub(super) const VERSION: u64 = 1;

/// The longest line of a backup, which has bytes of any kind as two digits each.
pub(super) const BACKUP_LINE_BYTES_MAX: u64 = 512 << 20;

/// What a restore brought back.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// Rows of every space.
    pub rows: u64,
    /// The spaces.
    pub spaces: Vec<Space>,
    /// Tokens that were in it and are not valid here.
    pub tokens_revoked: u64,
}

/// Hashes what it passes on.
pub(super) struct Hashing<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) hasher: blake3::Hasher,
}

impl Hashing<'_> {
    /// Writes a line; gives what a restore would read.
    pub(super) fn line(&mut self, value: &Value) -> Result<Value> {
        let line = format!("{value}\n");
        self.hasher.update(line.as_bytes());
        self.out.write_all(line.as_bytes()).map_err(write_failed)?;
        parse_json(&line).map_err(|cause| {
            Error::corrupt("a row cannot be read back from a backup").because(cause)
        })
    }
}

/// Reads a backup that was just written, to its last row, as a restore would.
pub fn read_back(input: impl BufRead) -> Result<()> {
    check_backup(input, Checked::Rows).map(drop)
}

/// The same of a backup.
pub(super) fn read_backup_line(
    input: &mut impl BufRead,
    line: &mut String,
    n: u64,
) -> Result<usize> {
    read_line(input, line, BACKUP_LINE_BYTES_MAX).map_err(|fault| match fault {
        LineFault::TooLong => not_a_backup(&format!(
            "line {n} has more than {BACKUP_LINE_BYTES_MAX} bytes"
        )),
        LineFault::Unreadable(cause) => {
            not_a_backup(&format!("line {n} cannot be read")).because(cause)
        }
    })
}

pub(super) fn not_a_backup(what: &str) -> Error {
    Error::corrupt(format!("this is not a whole backup: {what}"))
}

pub(super) fn damaged_store(space: &Space, error: Error) -> Error {
    Error::corrupt(format!("space {space}: {}", error.message))
        .hint("the store is damaged: `kenning audit verify` says where; restore an older backup")
        .because(error)
}

/// Reads the whole file once: its count, its hash, every row of it, and the roots of each space. Gives
/// the spaces in it.
pub fn check_backup(mut input: impl BufRead, checked: Checked) -> Result<Vec<Space>> {
    let mut hasher = blake3::Hasher::new();
    let mut spaces: Vec<Space> = Vec::new();
    let mut check: Option<Check> = None;
    let finish = |check: Option<Check>| match check.map(Check::finish) {
        Some(Err(error)) => Err(not_a_backup(&error.message).because(error)),
        _ => Ok(()),
    };
    let (mut rows, mut n, mut whole) = (0u64, 0u64, false);
    let mut line = String::new();
    loop {
        if read_backup_line(&mut input, &mut line, n + 1)? == 0 {
            break;
        }
        n += 1;
        if whole {
            return Err(not_a_backup("there is something after its end"));
        }
        let value = parse_json(&line)
            .map_err(|cause| not_a_backup(&format!("line {n} is not JSON")).because(cause))?;
        if n == 1 {
            if value["format"] != FORMAT || value["version"] != VERSION {
                return Err(not_a_backup("its first line does not say so"));
            }
        } else if let Some(space) = value.get("space").and_then(Value::as_str) {
            finish(check.replace(Check::new(checked)))?;
            spaces.push(space.parse().map_err(|it: String| not_a_backup(&it))?);
        } else if value.get("table").is_some() {
            let Some(check) = &mut check else {
                return Err(not_a_backup(&format!("line {n} belongs to no space")));
            };
            check.row(&value).map_err(|error| {
                not_a_backup(&format!("line {n}: {}", error.message)).because(error)
            })?;
            rows += 1;
        } else {
            finish(check.take())?;
            let hash = hasher.finalize().to_hex().to_string();
            if value["hash"] != hash.as_str() || value["rows"] != rows {
                return Err(not_a_backup("its hash does not match"));
            }
            whole = true;
        }
        hasher.update(line.as_bytes());
    }
    if !whole {
        return Err(not_a_backup("its end is missing"));
    }
    Ok(spaces)
}

/// The rows of one space.
pub(super) fn rows_of(
    mut input: Box<dyn BufRead + Send>,
    space: Space,
) -> impl Iterator<Item = Result<Value>> + Send + 'static {
    let (mut here, mut n, mut line) = (false, 0, String::new());
    let mut next = move || -> Result<Option<Value>> {
        n += 1;
        if read_backup_line(&mut input, &mut line, n)? == 0 {
            return Ok(None);
        }
        let value = parse_json(&line);
        value
            .map(Some)
            .map_err(|cause| not_a_backup(&format!("line {n} is not JSON")).because(cause))
    };
    std::iter::from_fn(move || {
        loop {
            let value = match next().transpose()? {
                Ok(value) => value,
                Err(error) => return Some(Err(error)),
            };
            if let Some(name) = value.get("space").and_then(Value::as_str) {
                here = name == space.as_str();
            } else if here && value.get("table").is_some() {
                return Some(Ok(value));
            }
        }
    })
}
