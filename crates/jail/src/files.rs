//! Limits files, ports and signals with Landlock.
//!
//! All access rights that the kernel knows are handled, so that whatever no rule allows is refused. A
//! kernel with less than version 3 (truncation) is not supported.

use crate::spec::shown;
use crate::wire::Order;
use crate::{Net, Strength};
use kenning_core::{Error, Result};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort,
    PathBeneath, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

/// Newest first.
const VERSIONS: &[ABI] = &[
    ABI::V9,
    ABI::V8,
    ABI::V7,
    ABI::V6,
    ABI::V5,
    ABI::V4,
    ABI::V3,
];

/// Harmless devices that every program may open, and whether for writing.
const DEVICES: &[(&str, bool)] = &[
    ("/dev/null", true),
    ("/dev/zero", true),
    ("/dev/random", false),
    ("/dev/urandom", false),
];

/// The newest version to use, for tests of older kernels.
static NEWEST: AtomicI32 = AtomicI32::new(i32::MAX);

/// Behaves from now on as if the kernel offered no newer version.
pub(crate) fn pretend(newest: i32) {
    NEWEST.store(newest, Ordering::Relaxed);
}

/// The newest version that this kernel offers in full.
pub(crate) fn offered() -> Result<ABI> {
    let newest = NEWEST.load(Ordering::Relaxed);
    let mut known = VERSIONS.iter().copied().filter(|abi| *abi as i32 <= newest);
    let offered = known.find(|&abi| everything(abi).is_ok());
    offered.ok_or_else(|| {
        Error::denied("this kernel does not confine programs: Landlock 3 or newer is missing").hint(
            "use Linux 6.2 or newer with `landlock` among the security modules, or a WASM tool",
        )
    })
}

pub(crate) fn strength() -> Result<Strength> {
    let abi = offered()?;
    Ok(Strength {
        landlock_abi: abi as i32,
        tcp_ports: abi >= ABI::V4,
        signals: abi >= ABI::V6,
        own_user: rustix::process::geteuid().is_root(),
    })
}

/// A ruleset that handles all access rights and allows nothing.
fn everything(abi: ABI) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    ruleset.create()
}

/// Confines the signals of this process and of all that it starts. Returns whether the kernel can.
pub(crate) fn keep_signals_inside() -> Result<bool> {
    if offered()? < ABI::V6 {
        return Ok(false);
    }
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .map_err(incomplete)?;
    enforce(ruleset)?;
    Ok(true)
}

/// The rules of an order. The paths are opened here, so this comes before privileges are dropped.
pub(crate) fn rules(order: &Order) -> Result<RulesetCreated> {
    let abi = offered()?;
    let mut ruleset = everything(abi).map_err(incomplete)?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let grants = [
        ("read", &order.read, read),
        ("exec", &order.exec, read | AccessFs::Execute),
        ("write", &order.write, changes(abi)),
    ];
    for (field, paths, rights) in grants {
        for path in paths {
            ruleset = allow(ruleset, field, open_granted(field, path, order)?, rights)?;
        }
    }
    if let Some(scratch) = &order.scratch {
        let fd = open_granted("scratch", scratch, order)?;
        ruleset = allow(ruleset, "scratch", fd, changes(abi))?;
    }
    for (device, writable) in DEVICES {
        let rights = if *writable {
            read | AccessFs::WriteFile
        } else {
            read
        };
        let fd = open_granted("device", OsStr::new(device), order)?;
        ruleset = allow(ruleset, "device", fd, rights)?;
    }
    match &order.net {
        Net::None => Ok(ruleset),
        Net::Tcp(_) if abi < ABI::V4 => Err(Error::denied(
            "this kernel cannot hold a program to the TCP ports that it was granted",
        )
        .hint("use Linux 6.7 or newer, or run the program without a network")),
        Net::Tcp(ports) => {
            for port in ports {
                ruleset = ruleset
                    .add_rule(NetPort::new(*port, AccessNet::ConnectTcp))
                    .map_err(incomplete)?;
            }
            Ok(ruleset)
        }
    }
}

/// Enforces the rules; this cannot be undone.
pub(crate) fn enforce(ruleset: RulesetCreated) -> Result<()> {
    let status = ruleset.restrict_self().map_err(incomplete)?;
    if status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs {
        return Ok(());
    }
    Err(Error::denied("the kernel enforced only a part of the jail")
        .hint("run programs on Linux 6.2 or newer"))
}

/// Reading and every change, but no execution, no device and no socket.
fn changes(abi: ABI) -> BitFlags<AccessFs> {
    let known = AccessFs::from_all(abi);
    let without = AccessFs::Execute
        | AccessFs::MakeChar
        | AccessFs::MakeBlock
        | AccessFs::MakeSock
        | AccessFs::IoctlDev;
    let since_v5 = AccessFs::from_all(ABI::V5);
    known & since_v5 & !without
}

/// Opens a granted path. Where other users may write, no link on the way is followed.
fn open_granted(field: &str, path: &OsStr, order: &Order) -> Result<OwnedFd> {
    let path = Path::new(path);
    let without = order.without_links.as_ref();
    let resolve = match without.is_some_and(|it| path.starts_with(it)) {
        true => ResolveFlags::NO_SYMLINKS,
        false => ResolveFlags::empty(),
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve).map_err(|error| {
        if error == rustix::io::Errno::LOOP {
            return Error::denied(format!("`{field}`: `{}` is a symbolic link", shown(path)))
                .hint("give the path that the link points to");
        }
        Error::not_found(&format!("file or directory for `{field}`"), shown(path))
            .hint("grant paths that exist")
    })
}

fn allow(
    ruleset: RulesetCreated,
    field: &str,
    fd: OwnedFd,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated> {
    let about = rustix::fs::fstat(&fd)
        .map_err(|it| Error::internal(format!("`{field}`: fstat")).because(it))?;
    let is_dir = rustix::fs::FileType::from_raw_mode(about.st_mode).is_dir();
    // The kernel refuses rights over entries for what has none.
    let rights = if is_dir {
        rights
    } else {
        rights & (AccessFs::from_file(ABI::V5) & !BitFlags::from(AccessFs::IoctlDev))
    };
    let rule = PathBeneath::new(fd, rights);
    ruleset.add_rule(rule).map_err(incomplete)
}

fn incomplete(error: RulesetError) -> Error {
    Error::denied("the kernel refused the jail's file access rules")
        .hint("run programs on Linux 6.2 or newer, or use a WASM tool")
        .because(error)
}
