//! Unix sockets beneath a directory, for processes of one user.

use crate::dir::Dir;
use crate::name::{Name, shown};
use crate::{fault, temp};
use kenning_core::{Error, Result};
use rustix::fs::{AtFlags, FileType};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

/// The kernel's limit for the path of a socket.
const PATH_BYTES_MAX: usize = 107;

impl Dir {
    /// Listens under a name in this directory. Make the directory with [`Dir::private_subdir`], so that
    /// nobody else can connect. The name stays when the listener goes: see [`Dir::remove_socket`].
    pub fn listen(&self, name: &str) -> Result<UnixListener> {
        let path = self.socket_path(name)?;
        UnixListener::bind(path).map_err(|cause| fault::of("socket", name, cause))
    }

    /// Connects to the listener of this name in this directory. The error is `unavailable` if there is
    /// none.
    pub fn connect(&self, name: &str) -> Result<UnixStream> {
        let path = self.socket_path(name)?;
        UnixStream::connect(path).map_err(|cause| match cause.kind() {
            io::ErrorKind::ConnectionRefused => {
                Error::unavailable(format!("no process listens on `{}`", shown(name)))
            }
            _ => fault::of("socket", name, cause),
        })
    }

    /// Removes the name of a socket, whether somebody listens or not.
    pub fn remove_socket(&self, name: &str) -> Result<()> {
        let plain = Name::parse_file(name)?;
        let found = temp::stat(self.root(), plain.as_str());
        match found.map_err(|cause| fault::of("socket", name, cause))? {
            Some((FileType::Socket, _)) => {}
            Some(_) => return Err(fault::wrong_kind(name, "socket")),
            None => return Err(Error::not_found("socket", shown(name))),
        }
        rustix::fs::unlinkat(self.root(), plain.as_str(), AtFlags::empty())
            .map_err(|cause| fault::of("socket", name, cause))
    }

    /// Sockets are opened by path, and the path must be short. If this directory's path is too long, the
    /// `/proc` path of its handle is used.
    fn socket_path(&self, name: &str) -> Result<PathBuf> {
        let plain = Name::parse_file(name)?;
        let path = self.path().join(plain.as_path());
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(path);
        }
        let handle = PathBuf::from(format!("/proc/self/fd/{}", self.root().as_raw_fd()));
        Ok(handle.join(plain.as_path()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::Code;
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn who_listens_is_found_by_name_however_long_the_path_is() {
        let home = tempfile::tempdir().unwrap();
        for path in ["short".to_owned(), "long/".repeat(40)] {
            let dir = Dir::create(&home.path().join(path)).unwrap();
            let dir = dir.private_subdir("sockets").unwrap();
            let mode = std::fs::metadata(dir.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
            let listener = dir.listen("a.sock").unwrap();
            let mut caller = dir.connect("a.sock").unwrap();
            caller.write_all(b"hello").unwrap();
            drop(caller);
            let mut heard = String::new();
            listener
                .accept()
                .unwrap()
                .0
                .read_to_string(&mut heard)
                .unwrap();
            assert_eq!(heard, "hello");
            drop(listener);
            assert_eq!(dir.connect("a.sock").unwrap_err().code, Code::Unavailable);
            dir.remove_socket("a.sock").unwrap();
            assert_eq!(dir.connect("a.sock").unwrap_err().code, Code::NotFound);
            assert_eq!(dir.listen("../a.sock").unwrap_err().code, Code::Denied);
        }
    }
}
