//! The kernel's side: a filter that asks, and the answers.

#![allow(
    unsafe_code,
    reason = "the notification of system calls has no safe form; each use says why it holds"
)]

use crate::calls::NUMBERS;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

/// `_IOWR('!', 0, struct seccomp_notif)` and `_IOWR('!', 1, struct seccomp_notif_resp)`.
const RECEIVE: libc::Ioctl = 0xc050_2100_u32 as libc::Ioctl;
const SEND: libc::Ioctl = 0xc018_2101_u32 as libc::Ioctl;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`
const CONTINUE: u32 = 1;

/// A call that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    id: u64,
    /// The thread that makes it.
    pub(crate) thread: u32,
    pub(crate) number: i64,
    pub(crate) args: [u64; 6],
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The kernel does it.
    Go,
    /// It is not done, and claims to have been.
    Pretend,
    /// It is not done and fails with this number.
    Fail(i32),
}

#[repr(C)]
#[derive(Default)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    arch: u32,
    instruction: u64,
    args: [u64; 6],
}

#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// The end on which the kernel asks.
pub(crate) struct Listener(OwnedFd);

/// Starts a program whose watched calls wait for answers. What it starts itself is watched too.
pub(crate) fn start(command: &mut Command) -> io::Result<(Child, Listener)> {
    let filter = filter();
    let (here, there) = std::os::unix::net::UnixStream::pair()?;
    let socket = there.as_raw_fd();
    // SAFETY: between fork and exec only system calls are made, on memory that was made before.
    unsafe {
        command.pre_exec(move || hand_over(&filter, socket));
    }
    let child = command.spawn()?;
    drop(there);
    let listener = receive_fd(here.as_raw_fd())?;
    Ok((child, Listener(listener)))
}

/// `ASK` for each watched number, `ALLOW` for all others.
fn filter() -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    // The number is the first word of what the filter looks at.
    let mut out = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for number in NUMBERS {
        out.push(libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: *number as u32,
        });
        out.push(statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_USER_NOTIF,
        ));
    }
    out.push(statement(
        libc::BPF_RET | libc::BPF_K,
        libc::SECCOMP_RET_ALLOW,
    ));
    out
}

/// In the child: sets the filter and gives the listening end to the parent.
fn hand_over(filter: &[libc::sock_filter], socket: RawFd) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: plain system calls; `program` and what it points to live until they return.
    let listener = unsafe {
        // Without the parent nothing would answer it, so it ends with the parent.
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    send_fd(socket, listener as RawFd)?;
    // SAFETY: the descriptor was made above and nobody else knows it.
    unsafe { libc::close(listener as RawFd) };
    Ok(())
}

/// Room for one descriptor beside a message, aligned as its head must be.
#[repr(C, align(8))]
struct Beside([u8; 64]);

fn send_fd(socket: RawFd, fd: RawFd) -> io::Result<()> {
    let (mut byte, mut beside) = ([0_u8], Beside([0; 64]));
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: all pointers lead to locals that live until `sendmsg` returns; the room is larger than
    // `CMSG_SPACE` of one descriptor, so the head and its data lie in it.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut beside).cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(head).cast::<RawFd>().write_unaligned(fd);
        libc::sendmsg(socket, &raw const message, 0)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn receive_fd(socket: RawFd) -> io::Result<OwnedFd> {
    let (mut byte, mut beside) = ([0_u8], Beside([0; 64]));
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: as in `send_fd`; a head is looked at only if the kernel wrote one.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut beside).cast();
        message.msg_controllen = size_of::<Beside>() as _;
        if libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        if head.is_null() || (*head).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::Error::other("the program handed nothing over"));
        }
        let fd = libc::CMSG_DATA(head).cast::<RawFd>().read_unaligned();
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

impl Listener {
    /// The next call; none when every watched thread has ended.
    pub(crate) fn next(&self) -> io::Result<Option<Asked>> {
        loop {
            let mut poll = libc::pollfd {
                fd: self.0.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one entry, which lives until the call returns.
            let n = unsafe { libc::poll(&raw mut poll, 1, -1) };
            if n < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            if poll.revents & libc::POLLIN == 0 {
                return Ok(None);
            }
            let mut asked = Notification::default();
            // SAFETY: the structure is the kernel's own and lives until the call returns.
            let got = unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE, &raw mut asked) };
            if got == 0 {
                return Ok(Some(Asked {
                    id: asked.id,
                    thread: asked.pid,
                    number: i64::from(asked.number),
                    args: asked.args,
                }));
            }
            let error = io::Error::last_os_error();
            // The caller was killed in the meantime.
            if !matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) {
                return Err(error);
            }
        }
    }

    /// Answers a call. A caller that was killed while waiting needs no answer.
    pub(crate) fn answer(&self, asked: &Asked, answer: Answer) -> io::Result<()> {
        let response = Response {
            id: asked.id,
            value: 0,
            error: match answer {
                Answer::Fail(errno) => -errno,
                _ => 0,
            },
            flags: if answer == Answer::Go { CONTINUE } else { 0 },
        };
        // SAFETY: the structure is the kernel's own and lives until the call returns.
        let sent = unsafe { libc::ioctl(self.0.as_raw_fd(), SEND, &raw const response) };
        if sent == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ENOENT) {
            return Ok(());
        }
        Err(error)
    }
}

/// Reads this many bytes of a thread's memory.
pub(crate) fn memory(thread: u32, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![0_u8; length];
    if length == 0 {
        return Ok(out);
    }
    let here = libc::iovec {
        iov_base: out.as_mut_ptr().cast(),
        iov_len: length,
    };
    let there = libc::iovec {
        iov_base: at as *mut libc::c_void,
        iov_len: length,
    };
    // SAFETY: the kernel writes at most `length` bytes to `out`; the other address is checked by it.
    let n = unsafe {
        libc::process_vm_readv(
            thread as libc::pid_t,
            &raw const here,
            1,
            &raw const there,
            1,
            0,
        )
    };
    if n < 0 {
        return Err(io::Error::last_os_error());
    }
    out.truncate(n as usize);
    Ok(out)
}
