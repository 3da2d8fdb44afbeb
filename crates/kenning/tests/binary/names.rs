//! One program under three names.

use crate::Place;
use std::os::unix::fs::symlink;
use std::process::Command;

#[test]
fn the_program_answers_by_the_name_it_was_called_by() {
    let place = Place::new();
    let beside = place.0.path().join("bin");
    std::fs::create_dir(&beside).unwrap();
    for (name, launcher) in [
        ("omi", env!("CARGO_BIN_EXE_omi")),
        ("kami", env!("CARGO_BIN_EXE_kami")),
    ] {
        let usage = format!("Usage: {name} [OPTIONS] <COMMAND>");
        // As a package installs it, and as cargo does.
        let link = beside.join(name);
        symlink(env!("CARGO_BIN_EXE_kenning"), &link).unwrap();
        for program in [link.to_str().unwrap(), launcher] {
            let output = Command::new(program).arg("--help").output().unwrap();
            assert!(output.status.success(), "{program}");
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.contains(&usage), "{program}: {text}");
        }
        // Without the program that it is a part of, it says so.
        let alone = beside.join(format!("{name}-alone"));
        std::fs::copy(launcher, &alone).unwrap();
        let output = Command::new(&alone).env("PATH", &beside).output().unwrap();
        assert_eq!(output.status.code(), Some(127));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            text.contains(&format!("{name}: cannot start `kenning`")),
            "{text}"
        );
    }
}
