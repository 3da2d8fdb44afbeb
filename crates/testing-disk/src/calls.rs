//! Decodes system calls: which file, and what is done to it.

use crate::kernel::{Asked, memory};
use std::path::{Path, PathBuf};

/// The calls that wait for an answer.
pub(crate) const NUMBERS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
];

/// A path is no longer than this.
const PATH_MAX: usize = 4_096;

/// What a call does, with absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read(PathBuf),
    Write {
        path: PathBuf,
        offset: u64,
        bytes: Vec<u8>,
    },
    Resize {
        path: PathBuf,
        length: u64,
    },
    Sync(PathBuf),
    /// Opens a file that may have to be made.
    Open {
        path: PathBuf,
        creates: bool,
        truncates: bool,
    },
    MakeDir(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    Said(Vec<u8>),
}

/// What is looked at.
pub(crate) struct Watched<'a> {
    /// Files beneath this.
    pub(crate) root: &'a Path,
    /// The program's standard output.
    pub(crate) output: Option<&'a Path>,
}

/// What a call does; `None` if it does not concern a watched file, or can no longer be decoded.
pub(crate) fn understand(asked: &Asked, watched: &Watched<'_>) -> Option<Call> {
    let thread = asked.thread;
    let [a, b, c, d, ..] = asked.args;
    let here = libc::AT_FDCWD as u64;
    let file = |fd: u64| path_of(thread, fd).filter(|it| it.starts_with(watched.root));
    let is_output =
        |fd: u64| watched.output.is_some() && link_of(thread, fd).as_deref() == watched.output;
    let name = |dir: u64, at: u64| named(thread, dir, at);
    match asked.number {
        libc::SYS_read | libc::SYS_pread64 => file(a).map(Call::Read),
        libc::SYS_write if is_output(a) => memory(thread, b, c as usize).ok().map(Call::Said),
        libc::SYS_write => write(
            thread,
            a,
            file(a)?,
            memory(thread, b, c as usize).ok()?,
            None,
        ),
        libc::SYS_pwrite64 => write(
            thread,
            a,
            file(a)?,
            memory(thread, b, c as usize).ok()?,
            Some(d),
        ),
        libc::SYS_writev if is_output(a) => gather(thread, b, c).map(Call::Said),
        libc::SYS_writev => write(thread, a, file(a)?, gather(thread, b, c)?, None),
        libc::SYS_pwritev => write(thread, a, file(a)?, gather(thread, b, c)?, Some(d)),
        libc::SYS_ftruncate => Some(Call::Resize {
            path: file(a)?,
            length: b,
        }),
        // Only growing is known here: a mode is for holes.
        libc::SYS_fallocate if b == 0 => {
            let path = file(a)?;
            let now = std::fs::metadata(&path).ok()?.len();
            let length = now.max(c + d);
            Some(Call::Resize { path, length })
        }
        libc::SYS_fsync | libc::SYS_fdatasync => file(a).map(Call::Sync),
        libc::SYS_openat => open(name(a, b)?, c),
        libc::SYS_openat2 => {
            let flags = memory(thread, c, 8).ok()?;
            open(name(a, b)?, u64::from_ne_bytes(flags.try_into().ok()?))
        }
        libc::SYS_mkdirat => name(a, b).map(Call::MakeDir),
        libc::SYS_unlinkat => name(a, b).map(Call::Remove),
        libc::SYS_linkat => Some(Call::Link(name(a, b)?, name(c, d)?)),
        libc::SYS_renameat | libc::SYS_renameat2 => {
            let (from, to) = (name(a, b)?, name(c, d)?);
            let keeps = asked.number == libc::SYS_renameat2
                && asked.args[4] & u64::from(libc::RENAME_NOREPLACE) != 0;
            if keeps && to.exists() {
                return None;
            }
            Some(Call::Rename(from, to))
        }
        number => old_forms(number, &name, here, [a, b]),
    }
}

/// Calls that only some processors still have.
#[cfg(target_arch = "x86_64")]
fn old_forms(
    number: i64,
    name: &dyn Fn(u64, u64) -> Option<PathBuf>,
    here: u64,
    [a, b]: [u64; 2],
) -> Option<Call> {
    match number {
        libc::SYS_open => open(name(here, a)?, b),
        libc::SYS_creat => open(name(here, a)?, (libc::O_CREAT | libc::O_TRUNC) as u64),
        libc::SYS_mkdir => name(here, a).map(Call::MakeDir),
        libc::SYS_rmdir | libc::SYS_unlink => name(here, a).map(Call::Remove),
        libc::SYS_link => Some(Call::Link(name(here, a)?, name(here, b)?)),
        libc::SYS_rename => Some(Call::Rename(name(here, a)?, name(here, b)?)),
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn old_forms(_: i64, _: &dyn Fn(u64, u64) -> Option<PathBuf>, _: u64, _: [u64; 2]) -> Option<Call> {
    None
}

fn open(path: PathBuf, flags: u64) -> Option<Call> {
    let has = |flag: libc::c_int| flags & flag as u64 == flag as u64;
    // A file without a name is gone with its process.
    if has(libc::O_TMPFILE) {
        return None;
    }
    let (creates, truncates) = (has(libc::O_CREAT), has(libc::O_TRUNC));
    (creates || truncates).then_some(Call::Open {
        path,
        creates,
        truncates,
    })
}

fn write(thread: u32, fd: u64, path: PathBuf, bytes: Vec<u8>, offset: Option<u64>) -> Option<Call> {
    let offset = match offset {
        Some(offset) => offset,
        None => position(thread, fd, &path)?,
    };
    Some(Call::Write {
        path,
        offset,
        bytes,
    })
}

/// Where the next write of a descriptor goes.
fn position(thread: u32, fd: u64, path: &Path) -> Option<u64> {
    let about = std::fs::read_to_string(format!("/proc/{thread}/fdinfo/{fd}")).ok()?;
    let field = |name: &str| {
        let line = about.lines().find_map(|it| it.strip_prefix(name))?;
        Some(line.trim().to_owned())
    };
    let flags = i32::from_str_radix(&field("flags:")?, 8).ok()?;
    if flags & libc::O_APPEND != 0 {
        return Some(std::fs::metadata(path).ok()?.len());
    }
    field("pos:")?.parse().ok()
}

/// The parts of a scattered write, joined.
fn gather(thread: u32, at: u64, n: u64) -> Option<Vec<u8>> {
    let heads = memory(thread, at, n as usize * 16).ok()?;
    let mut out = Vec::new();
    for head in heads.chunks_exact(16) {
        let word = |bytes: &[u8]| Some(u64::from_ne_bytes(bytes.try_into().ok()?));
        let (base, length) = (word(&head[..8])?, word(&head[8..])?);
        out.extend(memory(thread, base, length as usize).ok()?);
    }
    Some(out)
}

/// The file of a descriptor; none if it has no name, or has lost it.
fn path_of(thread: u32, fd: u64) -> Option<PathBuf> {
    let path = link_of(thread, fd)?;
    let text = path.to_str()?;
    (text.starts_with('/') && !text.ends_with(" (deleted)")).then_some(path)
}

/// What a descriptor is, as the kernel calls it.
fn link_of(thread: u32, fd: u64) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{thread}/fd/{}", fd as u32)).ok()
}

/// The path that a name in a directory stands for. The last part is not followed.
fn named(thread: u32, dir: u64, at: u64) -> Option<PathBuf> {
    let name = PathBuf::from(text(thread, at)?);
    let path = if name.is_absolute() {
        name
    } else if dir as i32 == libc::AT_FDCWD {
        std::fs::read_link(format!("/proc/{thread}/cwd"))
            .ok()?
            .join(name)
    } else {
        path_of(thread, dir)?.join(name)
    };
    let last = path.file_name()?;
    Some(std::fs::canonicalize(path.parent()?).ok()?.join(last))
}

/// A text that ends with a zero byte. It is read by pages: the next one may not be there.
fn text(thread: u32, at: u64) -> Option<String> {
    let mut out = Vec::new();
    while out.len() < PATH_MAX {
        let from = at + out.len() as u64;
        let length = 256 - (from % 256) as usize;
        let part = memory(thread, from, length).ok()?;
        if part.is_empty() {
            return None;
        }
        match part.iter().position(|it| *it == 0) {
            Some(end) => {
                out.extend(&part[..end]);
                return String::from_utf8(out).ok();
            }
            None => out.extend(part),
        }
    }
    None
}
