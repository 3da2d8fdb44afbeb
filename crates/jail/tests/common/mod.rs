//! Programs in the jail, as tests want them.

#![allow(dead_code, reason = "each test binary uses a part")]

use kenning_jail::{Launcher, Spec};

pub(crate) fn launcher() -> Launcher {
    Launcher {
        program: env!("CARGO_BIN_EXE_jail-launcher").into(),
    }
}

pub(crate) fn shell(script: &str) -> Spec {
    program("/bin/sh", &["-c", script])
}

pub(crate) fn python(script: &str) -> Spec {
    program("/usr/bin/python3", &["-I", "-S", "-c", script])
}

pub(crate) fn program(path: &str, args: &[&str]) -> Spec {
    let mut spec = Spec::new(path);
    spec.args = args.iter().map(Into::into).collect();
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    spec.allow_system();
    spec
}
