//! Maps errors of the kernel to ours.

use std::io;

use kenning_core::{Code, Error};
use rustix::io::Errno;

use crate::name::shown;
use crate::temp::Unconfirmed;

/// An error about a name. `what` is what was expected: a file or a directory.
pub(crate) fn of(what: &str, name: &str, cause: impl Into<io::Error>) -> Error {
    let cause = cause.into();
    let name = shown(name);
    if cause.get_ref().is_some_and(|it| it.is::<Unconfirmed>()) {
        return Error::unavailable(format!(
            "`{name}` was changed, but the disk did not confirm that the change is stored"
        ))
        .hint("check the disk, then do it again")
        .because(cause);
    }
    let error = match code(&cause) {
        Code::NotFound => Error::not_found(what, name),
        Code::Denied if is_escape(&cause) => escape(&name),
        Code::Denied => Error::denied(format!("no permission for `{name}`")),
        Code::Unavailable => {
            Error::unavailable(format!("`{name}` cannot be reached: {}", why(&cause)))
                .hint("free some space or repair the disk, then try again")
        }
        code => Error::new(
            code,
            format!("`{name}` is not a {what} that can be used: {}", why(&cause)),
        ),
    };
    error.because(cause)
}

/// Whether a change was made, and only the disk did not confirm it: it is there now, and may be gone
/// after a power failure.
pub fn is_unconfirmed(error: &Error) -> bool {
    let cause = error.source.as_ref();
    let cause = cause.and_then(|it| it.downcast_ref::<io::Error>());
    let inner = cause.and_then(io::Error::get_ref);
    inner.is_some_and(|it| it.is::<Unconfirmed>())
}

/// The name, or a link on its way, leads outside.
pub(crate) fn escape(name: &str) -> Error {
    Error::denied(format!("`{}` leads outside", shown(name)))
        .hint("links must be relative and stay inside the directory")
}

/// Something else than expected has this name.
pub(crate) fn wrong_kind(name: &str, what: &str) -> Error {
    Error::invalid(format!("`{}` is not a {what}", shown(name)))
}

/// The code for an error of the kernel.
pub(crate) fn code(cause: &io::Error) -> Code {
    let Some(errno) = Errno::from_io_error(cause) else {
        // cap-std reports a path that leads outside without an errno.
        return match cause.kind() {
            io::ErrorKind::PermissionDenied => Code::Denied,
            io::ErrorKind::NotFound => Code::NotFound,
            io::ErrorKind::InvalidInput => Code::InvalidInput,
            _ => Code::Unavailable,
        };
    };
    match errno {
        Errno::NOENT => Code::NotFound,
        Errno::ACCESS | Errno::PERM => Code::Denied,
        // A raw one is about a rename across file systems: cap-std has already translated those about links.
        Errno::XDEV => Code::InvalidInput,
        Errno::LOOP
        | Errno::NOTDIR
        | Errno::ISDIR
        | Errno::NXIO
        | Errno::NODEV
        | Errno::NAMETOOLONG
        | Errno::INVAL
        | Errno::ILSEQ => Code::InvalidInput,
        Errno::EXIST | Errno::NOTEMPTY => Code::Conflict,
        Errno::FBIG => Code::TooLarge,
        // Full, broken, read-only, busy, out of handles: none is the caller's fault.
        _ => Code::Unavailable,
    }
}

fn is_escape(cause: &io::Error) -> bool {
    cause.raw_os_error().is_none()
}

/// The reason in plain words. The library's own text would do, but it ends in a number.
fn why(cause: &io::Error) -> &'static str {
    match Errno::from_io_error(cause) {
        Some(Errno::NOSPC | Errno::DQUOT) => "the disk is full",
        Some(Errno::ROFS) => "the disk is read-only",
        Some(Errno::IO) => "the disk failed",
        Some(Errno::MFILE | Errno::NFILE) => "too many files are open",
        Some(Errno::BUSY | Errno::TXTBSY | Errno::AGAIN) => "it is in use",
        Some(Errno::LOOP) => "its symbolic links form a loop",
        Some(Errno::NOTDIR) => "a part of it is not a directory",
        Some(Errno::ISDIR) => "it is a directory",
        Some(Errno::NXIO | Errno::NODEV) => "it is a device or a socket",
        Some(Errno::NAMETOOLONG) => "it is too long",
        Some(Errno::XDEV) => "it is on another file system",
        Some(Errno::EXIST) => "it exists",
        Some(Errno::NOTEMPTY) => "it is not empty",
        Some(Errno::FBIG) => "it would be too large",
        _ => "the system refused it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_of_the_kernel_has_its_code() {
        for (errno, code) in [
            (Errno::NOENT, Code::NotFound),
            (Errno::ACCESS, Code::Denied),
            (Errno::NOSPC, Code::Unavailable),
            (Errno::IO, Code::Unavailable),
            (Errno::ROFS, Code::Unavailable),
            (Errno::NOTDIR, Code::InvalidInput),
            (Errno::LOOP, Code::InvalidInput),
            (Errno::NOTEMPTY, Code::Conflict),
        ] {
            let error = of("file", "a/b.md", errno);
            assert_eq!(error.code, code, "{errno:?}");
            assert!(error.message.contains("`a/b.md`"), "{}", error.message);
            assert!(!error.message.ends_with('.'), "{}", error.message);
        }
    }
}
