//! The messages between host, supervisor and confined process.
//!
//! Each pair has a socket, which is the started process's standard input: the environment and the
//! arguments of a process can be read by others, and an inherited descriptor with a number of its own
//! cannot be had without unsafe code. The program's own standard input travels with the first message.

use crate::{Exit, Limits, Net, Spec, Usage};
use kenning_core::{CODES, Code, Error, Result};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The arguments that make a process the supervisor …
pub(crate) const SUPERVISE: [&str; 2] = ["__jail", "supervise"];
/// … and those that make it the confined process.
pub(crate) const CONFINE: [&str; 2] = ["__jail", "confine"];

/// A specification on its way. Paths are plain bytes here, because not all of them are UTF-8.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: Vec<(String, String)>,
    pub cwd: OsString,
    pub read: Vec<OsString>,
    pub write: Vec<OsString>,
    pub exec: Vec<OsString>,
    pub scratch: Option<OsString>,
    pub without_links: Option<OsString>,
    pub made: Vec<OsString>,
    pub user_number: Option<u32>,
    pub net: Net,
    pub limits: Limits,
    /// The user that the program becomes: chosen by the supervisor, if it is root.
    pub user: Option<u32>,
    /// What `RLIMIT_NPROC` is to be: found by the supervisor.
    pub tasks_of_user: u64,
}

/// What comes back.
#[derive(Serialize, Deserialize)]
pub(crate) enum Report {
    /// From the confined process: the jail is complete, `exec` is next.
    Confined,
    /// Nothing ran.
    Refused(Refusal),
    /// It ran, and no process of it is left.
    Ended { exit: Exit, usage: Usage },
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Refusal {
    code: String,
    message: String,
    hint: Option<String>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self {
            code: error.code.name().to_owned(),
            message: error.message,
            hint: error.hint,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let row = CODES.iter().find(|row| row.name == refusal.code);
        let mut error = Error::new(row.map_or(Code::Internal, |it| it.code), refusal.message);
        error.hint = refusal.hint;
        error
    }
}

impl From<&Spec> for Order {
    fn from(spec: &Spec) -> Self {
        let plain = |paths: &[PathBuf]| paths.iter().map(OsString::from).collect();
        Self {
            program: (&spec.program).into(),
            args: spec.args.clone(),
            env: spec.env.clone(),
            cwd: (&spec.cwd).into(),
            read: plain(&spec.read),
            write: plain(&spec.write),
            exec: plain(&spec.exec),
            scratch: spec.scratch.as_ref().map(OsString::from),
            without_links: spec.without_links.as_ref().map(OsString::from),
            made: plain(&spec.made),
            user_number: spec.user_number,
            net: spec.net.clone(),
            limits: spec.limits.clone(),
            user: None,
            tasks_of_user: spec.limits.processes,
        }
    }
}

/// The socket to whoever started this process.
pub(crate) fn upward() -> Result<UnixStream> {
    let fd = io::stdin().as_fd().try_clone_to_owned().map_err(broken)?;
    Ok(UnixStream::from(fd))
}

/// Sends an order together with what will be the program's standard input.
pub(crate) fn send_order(
    socket: &mut UnixStream,
    order: &Order,
    stdin: BorrowedFd<'_>,
) -> Result<()> {
    let body = serde_json::to_vec(order).map_err(|it| broken(it.into()))?;
    let length = u32::try_from(body.len()).map_err(|_| {
        Error::too_large("`args` and `env` are larger than any program can be given")
    })?;
    let fds = [stdin];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let head = length.to_le_bytes();
    let sent = rustix::net::sendmsg(
        &socket,
        &[IoSlice::new(&head)],
        &mut control,
        SendFlags::NOSIGNAL,
    );
    let sent = sent.map_err(|it| broken(it.into()))?;
    let rest = head.get(sent..).unwrap_or_default();
    socket.write_all(rest).map_err(broken)?;
    socket.write_all(&body).map_err(broken)
}

/// Receives what [`send_order`] sent.
pub(crate) fn receive_order(socket: &mut UnixStream) -> Result<(Order, OwnedFd)> {
    let mut head = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        &*socket,
        &mut [IoSliceMut::new(&mut head)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    );
    let received = received.map_err(|it| broken(it.into()))?.bytes;
    let mut stdin = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            stdin = fds.last().or(stdin);
        }
    }
    let rest = head.get_mut(received..).unwrap_or_default();
    socket.read_exact(rest).map_err(broken)?;
    let order = read_body(socket, head)?;
    let stdin = stdin
        .ok_or_else(|| Error::internal("the request to the jail came without standard input"))?;
    Ok((order, stdin))
}

pub(crate) fn send_report(socket: &mut UnixStream, report: &Report) -> Result<()> {
    let body = serde_json::to_vec(report).map_err(|it| broken(it.into()))?;
    let length = u32::try_from(body.len()).map_err(|it| broken(io::Error::other(it)))?;
    socket.write_all(&length.to_le_bytes()).map_err(broken)?;
    socket.write_all(&body).map_err(broken)
}

/// The next report, or `None` if the other side has ended.
pub(crate) fn receive_report(socket: &mut UnixStream) -> Result<Option<Report>> {
    let mut head = [0; 4];
    match socket.read_exact(&mut head) {
        Ok(()) => read_body(socket, head).map(Some),
        Err(it) if it.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(it) if it.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        Err(it) => Err(broken(it)),
    }
}

fn read_body<T: DeserializeOwned>(socket: &mut UnixStream, head: [u8; 4]) -> Result<T> {
    let mut body = Vec::new();
    let length = u64::from(u32::from_le_bytes(head));
    let mut limited = socket.take(length);
    limited.read_to_end(&mut body).map_err(broken)?;
    serde_json::from_slice(&body).map_err(|it| broken(it.into()))
}

fn broken(error: io::Error) -> Error {
    Error::internal("the connection between the jail's processes broke").because(error)
}
