//! What programs of this system need to start at all.

use crate::{Net, Spec};
use std::path::PathBuf;

/// Paths that belong to the system and hold no user's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemPaths {
    /// To read only: the loader's cache, certificates, time zone, names of locales.
    pub read: Vec<PathBuf>,
    /// To read and execute: programs and libraries.
    pub exec: Vec<PathBuf>,
}

const EXEC: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/run/current-system/sw",
];

const READ: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/pki/tls",
    "/etc/pki/ca-trust",
    "/etc/ssl",
    "/etc/timezone",
];

/// For resolving names, needed only with a network.
const READ_FOR_NETWORK: &[&str] = &[
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
];

/// Those of the system's directories that exist here. `/etc/passwd`, `/proc`, `/sys`, `/tmp` and homes
/// are not among them; `/dev/null`, `zero`, `random` and `urandom` every program has anyway.
pub fn system_paths(net: &Net) -> SystemPaths {
    let networked: &[&str] = match net {
        Net::None => &[],
        Net::Tcp(_) => READ_FOR_NETWORK,
    };
    SystemPaths {
        read: existing(READ.iter().chain(networked)),
        exec: existing(EXEC.iter()),
    }
}

fn existing<'a>(paths: impl Iterator<Item = &'a &'a str>) -> Vec<PathBuf> {
    paths.map(PathBuf::from).filter(|it| it.exists()).collect()
}

impl Spec {
    /// Adds what programs of this system need to start: see [`system_paths`].
    pub fn allow_system(&mut self) {
        let system = system_paths(&self.net);
        self.read.extend(system.read);
        self.exec.extend(system.exec);
    }
}
