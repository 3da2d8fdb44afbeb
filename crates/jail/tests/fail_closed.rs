//! A jail of which a part is missing runs nothing.
//!
//! A part is taken away by a filter on one thread of the test, which all processes that the thread
//! starts inherit: for them the kernel does not have the call, or does not allow it.

mod common;

use common::{as_ordinary_user, launcher, shell};
use kenning_core::{Code, Error};
use kenning_jail::{Outcome, check, run, spawn};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use std::sync::Arc;

/// What comes of `work` where the kernel answers a call with an error.
fn without<T: Send>(call: i64, errno: i32, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let filter = SeccompFilter::new(
                [(call, Vec::new())].into(),
                SeccompAction::Allow,
                SeccompAction::Errno(errno.unsigned_abs()),
                TargetArch::try_from(std::env::consts::ARCH).unwrap(),
            );
            let filter = BpfProgram::try_from(filter.unwrap()).unwrap();
            seccompiler::apply_filter(&filter).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

/// Whether the program ran is seen by a file that it makes.
fn refusal(call: i64, errno: i32) -> Error {
    let scratch = tempfile::tempdir().unwrap();
    let mut spec = shell("echo ran > ran");
    spec.cwd = scratch.path().into();
    spec.scratch = Some(scratch.path().into());
    let ran: Result<Outcome, Error> =
        without(call, errno, || run(&launcher(), &spec, &Arc::default()));
    let error = ran.expect_err("it ran without a part of the jail");
    assert!(!scratch.path().join("ran").exists(), "it ran: {error}");
    error
}

#[test]
fn the_same_program_runs_where_nothing_is_missing() {
    let scratch = tempfile::tempdir().unwrap();
    let mut spec = shell("echo ran > ran");
    spec.cwd = scratch.path().into();
    spec.scratch = Some(scratch.path().into());
    without(libc::SYS_reboot, libc::ENOSYS, || {
        run(&launcher(), &spec, &Arc::default())
    })
    .unwrap();
    assert!(scratch.path().join("ran").exists());
    assert!(check().unwrap().landlock_abi >= 3);
}

#[test]
fn without_landlock_nothing_runs_and_the_reason_is_said() {
    for errno in [libc::ENOSYS, libc::EOPNOTSUPP] {
        let call = libc::SYS_landlock_create_ruleset;
        let error = refusal(call, errno);
        assert_eq!(error.code, Code::Denied, "{error}");
        assert!(error.message.contains("Landlock"), "{error}");
        assert!(
            error.hint.as_ref().unwrap().contains("Linux 6.2"),
            "{error}"
        );
        let checked = without(call, errno, check).unwrap_err();
        assert_eq!(checked.message, error.message);
        let spawned = without(call, errno, || spawn(&launcher(), &shell(":")));
        assert_eq!(spawned.unwrap_err().message, error.message);
    }
}

#[test]
fn without_any_other_part_nothing_runs() {
    let root = rustix::process::geteuid().is_root();
    let of_root = [
        libc::SYS_setgroups,
        libc::SYS_setresgid,
        libc::SYS_setresuid,
    ];
    let of_all = [
        libc::SYS_landlock_add_rule,
        libc::SYS_landlock_restrict_self,
        libc::SYS_seccomp,
        libc::SYS_capset,
        libc::SYS_setsid,
        libc::SYS_prlimit64,
        libc::SYS_prctl,
    ];
    let calls = of_root.iter().filter(|_| root).chain(&of_all);
    for &call in calls {
        let error = refusal(call, libc::EPERM);
        let known = [Code::Denied, Code::Unavailable].contains(&error.code);
        assert!(known && error.hint.is_some(), "call {call}: {error:?}");
    }
}

#[test]
fn nothing_runs_without_a_part_for_an_ordinary_user_either() {
    for test in [
        "without_landlock_nothing_runs_and_the_reason_is_said",
        "without_any_other_part_nothing_runs",
    ] {
        as_ordinary_user(65_531, test);
    }
}
