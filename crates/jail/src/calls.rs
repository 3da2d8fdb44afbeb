//! Limits system calls with seccomp.
//!
//! Landlock does not cover most system calls, so those that reach beyond the program's own processes are
//! refused here, with `EPERM`, which programs can handle. This is a deny list; calls that are newer than
//! the list fail with `ENOSYS`, and so do calls of another architecture, so that it cannot be bypassed.

use crate::Net;
use kenning_core::{Error, Result};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What the filter depends on.
pub(crate) struct Situation<'a> {
    pub net: &'a Net,
    /// The program runs as its own user, so everything of that user belongs to it.
    pub own_user: bool,
    /// The kernel confines signals to the jail.
    pub signals_inside: bool,
    /// The process id, which the program will keep.
    pub pid: u32,
}

/// The first number that this list does not know: all later calls do not exist for a program. On
/// x86-64 this takes the x32 calls away too, whose numbers are above 2^30.
const UNKNOWN: u32 = 467;

/// Refused always: other processes' insides, namespaces and mounts, keys, kernel extensions, the
/// machine's clock, name, power and memory, handles that lead around paths, and queues that outlive
/// their processes.
#[rustfmt::skip]
const NEVER: &[i64] = &[
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_kcmp,
    libc::SYS_pidfd_getfd, libc::SYS_process_madvise, PROCESS_MRELEASE,
    libc::SYS_unshare, libc::SYS_setns, libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root,
    libc::SYS_chroot, libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick,
    libc::SYS_move_mount, libc::SYS_open_tree, libc::SYS_mount_setattr, STATMOUNT, LISTMOUNT,
    libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl,
    libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd,
    libc::SYS_fanotify_init, libc::SYS_fanotify_mark, libc::SYS_inotify_add_watch,
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module,
    libc::SYS_kexec_load, libc::SYS_reboot, libc::SYS_swapon, libc::SYS_swapoff,
    libc::SYS_acct, libc::SYS_quotactl, QUOTACTL_FD, libc::SYS_syslog, libc::SYS_vhangup,
    libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_clock_adjtime, libc::SYS_adjtimex,
    libc::SYS_sethostname, libc::SYS_setdomainname, libc::SYS_personality,
    libc::SYS_name_to_handle_at, libc::SYS_open_by_handle_at,
    libc::SYS_lookup_dcookie, libc::SYS_nfsservctl,
    libc::SYS_migrate_pages, libc::SYS_move_pages, libc::SYS_mbind, libc::SYS_set_mempolicy,
    SET_MEMPOLICY_HOME_NODE, LSM_SET_SELF_ATTR,
    // Memory outside all limits, and a way to execute files without a granted path.
    libc::SYS_memfd_create, MEMFD_SECRET, libc::SYS_execveat,
    libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmctl, libc::SYS_shmdt,
    libc::SYS_semget, libc::SYS_semop, libc::SYS_semctl, libc::SYS_semtimedop,
    libc::SYS_msgget, libc::SYS_msgsnd, libc::SYS_msgrcv, libc::SYS_msgctl,
    libc::SYS_mq_open, libc::SYS_mq_unlink, libc::SYS_mq_notify,
    libc::SYS_mq_timedsend, libc::SYS_mq_timedreceive, libc::SYS_mq_getsetattr,
    // A program may connect but not listen.
    libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4,
];

#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const NEVER_HERE: &[i64] = &[
    libc::SYS_kexec_file_load, CREATE_MODULE, GET_KERNEL_SYMS,
    QUERY_MODULE, libc::SYS_uselib, libc::SYS_ustat, libc::SYS_sysfs, libc::SYS__sysctl,
    libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[i64] = &[KEXEC_FILE_LOAD];

/// Refused to a program that shares its user with others: Landlock does not cover modes, owners,
/// times and attributes, so these calls would reach every file of that user.
#[rustfmt::skip]
const NEVER_AS_SHARED_USER: &[i64] = &[
    libc::SYS_fchmod, libc::SYS_fchmodat, FCHMODAT2, libc::SYS_fchown, libc::SYS_fchownat,
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, SETXATTRAT,
    libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr, REMOVEXATTRAT,
];
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const NEVER_AS_SHARED_USER_HERE: &[i64] = &[
    libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown,
    libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_AS_SHARED_USER_HERE: &[i64] = &[];

#[cfg(target_arch = "x86_64")]
const CREATE_MODULE: i64 = 174;
#[cfg(target_arch = "x86_64")]
const GET_KERNEL_SYMS: i64 = 177;
#[cfg(target_arch = "x86_64")]
const QUERY_MODULE: i64 = 178;
#[cfg(not(target_arch = "x86_64"))]
const KEXEC_FILE_LOAD: i64 = 294;
// From here on all architectures have the same numbers; not all have a name in `libc`.
const QUOTACTL_FD: i64 = 443;
const MEMFD_SECRET: i64 = 447;
const PROCESS_MRELEASE: i64 = 448;
const SET_MEMPOLICY_HOME_NODE: i64 = 450;
const FCHMODAT2: i64 = 452;
const STATMOUNT: i64 = 457;
const LISTMOUNT: i64 = 458;
const LSM_SET_SELF_ATTR: i64 = 460;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;

/// Flags of `clone` that make namespaces.
const NAMESPACES: &[u64] = &[
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
];

/// Requests of `ioctl` that inject input into a terminal or take control of one: `TIOCSTI`, `TIOCLINUX`,
/// `TIOCSCTTY`.
const TERMINAL_REQUESTS: &[u64] = &[0x5412, 0x541c, 0x540e];

/// Requests of `ioctl` that change a file that may only be open for reading: `FS_IOC_SETFLAGS` of 64 and
/// of 32 bits, `FS_IOC_FSSETXATTR`, `FS_IOC_SETVERSION`, `FS_IOC_ENABLE_VERITY`.
const FLAG_REQUESTS: &[u64] = &[
    0x4008_6602,
    0x4004_6602,
    0x401c_5820,
    0x4008_7602,
    0x4080_6685,
];

/// Requests that set the receiver of a descriptor's signals: `FIOSETOWN`, `SIOCSPGRP`.
const OWNER_REQUESTS: &[u64] = &[0x8901, 0x8902];

/// `F_SETOWN_EX` of `fcntl`.
const SET_OWNER_EXTENDED: u64 = 15;

/// Installs the filter. It cannot be removed.
pub(crate) fn forbid(situation: &Situation<'_>) -> Result<()> {
    // Its flags are in memory, which a filter cannot read; programs fall back to `clone`.
    let nonexistent = Rules::from([(libc::SYS_clone3, Vec::new())]);
    let nonexistent = compile(nonexistent, libc::ENOSYS)?;
    let refused = compile(refused_calls(situation)?, libc::EPERM)?;
    for program in [refuse_newer_calls(), nonexistent, refused] {
        seccompiler::apply_filter(&program).map_err(incomplete)?;
    }
    Ok(())
}

fn refused_calls(situation: &Situation<'_>) -> Result<Rules> {
    let mut rules = Rules::new();
    for &call in NEVER.iter().chain(NEVER_HERE) {
        rules.insert(call, Vec::new());
    }
    for &flag in NAMESPACES {
        add(&mut rules, libc::SYS_clone, &[(0, MaskedEq(flag), flag)])?;
    }
    for &request in TERMINAL_REQUESTS {
        add(&mut rules, libc::SYS_ioctl, &[(1, Eq, request)])?;
    }
    sockets(&mut rules, situation.net)?;
    if !situation.own_user {
        refuse_for_shared_user(&mut rules)?;
        if !situation.signals_inside {
            no_signals(&mut rules, situation.pid)?;
        }
    }
    Ok(rules)
}

/// Pairs of connected sockets are harmless, and event loops need them. But a pair of datagram sockets
/// could be redirected to another address.
fn sockets(rules: &mut Rules, net: &Net) -> Result<()> {
    let kinds_but = |kept: &'static [u64]| (0..16_u64).filter(move |it| !kept.contains(it));
    const KIND: SeccompCmpOp = MaskedEq(0xf);
    let (unix, v4, v6) = (
        libc::AF_UNIX as u64,
        libc::AF_INET as u64,
        libc::AF_INET6 as u64,
    );
    add(rules, libc::SYS_socketpair, &[(0, Ne, unix)])?;
    for kind in kinds_but(&[libc::SOCK_STREAM as u64, libc::SOCK_SEQPACKET as u64]) {
        add(rules, libc::SYS_socketpair, &[(1, KIND, kind)])?;
    }
    if *net == Net::None {
        rules.insert(libc::SYS_socket, Vec::new());
        return Ok(());
    }
    add(rules, libc::SYS_socket, &[(0, Ne, v4), (0, Ne, v6)])?;
    for kind in kinds_but(&[libc::SOCK_STREAM as u64]) {
        add(rules, libc::SYS_socket, &[(1, KIND, kind)])?;
    }
    // Other stream protocols, Multipath TCP among them, do not pass Landlock's check of the port.
    let tcp = libc::IPPROTO_TCP as u64;
    add(rules, libc::SYS_socket, &[(2, Ne, 0), (2, Ne, tcp)])?;
    // Data in the first packet connects without the call that Landlock checks.
    let fast_open = libc::MSG_FASTOPEN as u64;
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        add(rules, call, &[(flags, MaskedEq(fast_open), fast_open)])?;
    }
    Ok(())
}

/// What would reach the other files and processes of a user.
fn refuse_for_shared_user(rules: &mut Rules) -> Result<()> {
    for &call in NEVER_AS_SHARED_USER.iter().chain(NEVER_AS_SHARED_USER_HERE) {
        rules.insert(call, Vec::new());
    }
    // Without a path it sets the times of an open file, which `touch` does.
    add_wide(rules, libc::SYS_utimensat, (1, Ne, 0))?;
    for &request in FLAG_REQUESTS {
        add(rules, libc::SYS_ioctl, &[(1, Eq, request)])?;
    }
    // Only for the process itself (0).
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ] {
        add(rules, call, &[(0, Ne, 0)])?;
    }
    for (call, own) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        add(rules, call, &[(0, Ne, own)])?;
        add(rules, call, &[(1, Ne, 0)])?;
    }
    Ok(())
}

/// If the kernel does not confine signals and the user is shared, a process may signal only itself.
fn no_signals(rules: &mut Rules, pid: u32) -> Result<()> {
    for call in [
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_pidfd_send_signal,
    ] {
        rules.insert(call, Vec::new());
    }
    add(rules, libc::SYS_tgkill, &[(0, Ne, u64::from(pid))])?;
    for owner in [libc::F_SETOWN as u64, SET_OWNER_EXTENDED] {
        add(rules, libc::SYS_fcntl, &[(1, Eq, owner)])?;
    }
    for &request in OWNER_REQUESTS {
        add(rules, libc::SYS_ioctl, &[(1, Eq, request)])?;
    }
    Ok(())
}

/// One more case in which a call is refused: all of these hold for its arguments.
fn add(rules: &mut Rules, call: i64, all: &[(u8, SeccompCmpOp, u64)]) -> Result<()> {
    let conditions = all.iter().map(|(argument, op, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, op.clone(), *value)
    });
    let conditions: Result<Vec<_>, _> = conditions.collect();
    push(rules, call, conditions)
}

/// The same for an address in memory, which has 64 bits.
fn add_wide(rules: &mut Rules, call: i64, one: (u8, SeccompCmpOp, u64)) -> Result<()> {
    let condition = SeccompCondition::new(one.0, SeccompCmpArgLen::Qword, one.1, one.2);
    push(rules, call, condition.map(|it| vec![it]))
}

fn push(
    rules: &mut Rules,
    call: i64,
    conditions: Result<Vec<SeccompCondition>, seccompiler::BackendError>,
) -> Result<()> {
    let rule = conditions.and_then(SeccompRule::new);
    let rule = rule.map_err(|it| incomplete(it.into()))?;
    rules.entry(call).or_default().push(rule);
    Ok(())
}

fn compile(rules: Rules, errno: i32) -> Result<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|it| incomplete(it.into()))?;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        arch,
    );
    filter
        .and_then(BpfProgram::try_from)
        .map_err(|it| incomplete(it.into()))
}

/// `if number >= UNKNOWN { ENOSYS } else { allow }`
fn refuse_newer_calls() -> BpfProgram {
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        instruction(0x20, 0, 0, 0),
        instruction(0x35, 0, 1, UNKNOWN),
        instruction(0x06, 0, 0, 0x0005_0000 | libc::ENOSYS.unsigned_abs()),
        instruction(0x06, 0, 0, 0x7fff_0000),
    ]
}

fn incomplete(error: seccompiler::Error) -> Error {
    Error::denied("the kernel refused the jail's system call filter")
        .hint("run programs on a kernel with seccomp filters, or use a WASM tool")
        .because(error)
}
