//! Skills of other people: signed in place, exported whole, and valid for their own format.

use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A folder of skills as repositories have them: scripts, references, assets, licenses.
fn put_skills(root: &Path) -> usize {
    let mut n_files = 0;
    let mut put = |path: &str, bytes: &[u8]| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        n_files += 1;
    };
    for n in 0..18 {
        let name = format!("skill-{n}");
        let more = match n % 3 {
            0 => "license: Complete terms in LICENSE.txt\n",
            1 => "allowed-tools: Bash(git:*) Read Write\ncompatibility: Needs git\n",
            _ => "metadata:\n  author: somebody\n  version: \"1.0\"\n",
        };
        let ending = if n == 4 { "\r\n" } else { "\n" };
        let text = format!(
            "---\nname: {name}\ndescription: \"Does {n}: use it when {n} is asked for\"\n{more}---\n\n# Skill {n}\n\nRun `scripts/run.py` and read [the reference](references/REFERENCE.md).\n\n---\n\nA rule, not frontmatter.\n"
        );
        put(
            &format!("{name}/SKILL.md"),
            text.replace('\n', ending).as_bytes(),
        );
        put(
            &format!("{name}/scripts/run.py"),
            b"#!/usr/bin/env python3\nprint('x')\n",
        );
        put(
            &format!("{name}/scripts/deep/er/helper.sh"),
            b"#!/bin/sh\necho\n",
        );
        put(
            &format!("{name}/references/REFERENCE.md"),
            b"# Reference\n\n- no newline at the end",
        );
        put(
            &format!("{name}/assets/logo.png"),
            b"\x89PNG\r\n\x1a\n\xff\0\xfe",
        );
        put(&format!("{name}/LICENSE.txt"), b"Do what you like.\r\n");
    }
    let script = root.join("skill-0/scripts/run.py");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    n_files
}

fn files_under(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy();
                found.insert(name.into_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn sign_all(fixture: &Fixture, item_type: &str) -> Value {
    let reply = fixture.call(
        "execute",
        json!({ "item_type": item_type, "action": "sign", "item_id": "*", "parameters": { "confirm": true } }),
    );
    assert!(!reply.is_error(), "{}", reply.text);
    reply.to_json()
}

#[test]
fn a_repository_of_skills_is_exported_whole_and_byte_for_byte() {
    let fixture = Fixture::without_vault(Selection::default());
    let skills = fixture.project().join(".ai/directives");
    let n_files = put_skills(&skills);
    let before = files_under(&skills);
    assert_eq!(before.len(), n_files);
    assert_eq!(
        sign_all(&fixture, "directive")["summary"],
        "18 signed, 0 failed, 0 signed before"
    );
    let to = fixture.project().join("out");
    let engine = fixture.board.engine();
    let done = engine
        .kiwi()
        .export_skills(&fixture.owner(), &to, false)
        .unwrap();
    assert_eq!((done.names.len(), done.n_files), (18, n_files));
    assert_eq!((done.left_out, done.faults), (Vec::new(), Vec::new()));
    let after = files_under(&to);
    for (name, bytes) in &before {
        assert_eq!(after.get(name), Some(bytes), "{name}");
    }
    assert_eq!(after.len(), before.len());
    let mode = |name: &str| fs::metadata(to.join(name)).unwrap().permissions().mode() & 0o111;
    assert_ne!(
        mode("skill-0/scripts/run.py"),
        0,
        "a script can still be run"
    );
    assert_eq!(mode("skill-1/scripts/run.py"), 0);
    // Again is the same; what says something else is not overwritten unless that is asked for.
    engine
        .kiwi()
        .export_skills(&fixture.owner(), &to, false)
        .unwrap();
    fs::write(to.join("skill-3/LICENSE.txt"), "mine").unwrap();
    let error = engine
        .kiwi()
        .export_skills(&fixture.owner(), &to, false)
        .unwrap_err();
    assert!(error.message.contains("skill-3/LICENSE.txt"), "{error}");
    engine
        .kiwi()
        .export_skills(&fixture.owner(), &to, true)
        .unwrap();
    assert_eq!(files_under(&to), after);
}

#[test]
fn a_signed_skill_is_still_a_skill_for_every_other_program() {
    let fixture = Fixture::without_vault(Selection::default());
    let skills = fixture.project().join(".ai/directives");
    put_skills(&skills);
    sign_all(&fixture, "directive");
    for n in 0..18 {
        let text = fs::read_to_string(skills.join(format!("skill-{n}/SKILL.md"))).unwrap();
        assert!(text.starts_with("---"), "{text}");
        assert!(text.contains("kenning:signed:"), "{text}");
        // The way in which the format's own reader splits a file.
        let parts: Vec<&str> = text.splitn(3, "---").collect();
        assert!(parts[1].contains(&format!("name: skill-{n}")));
        assert!(
            !parts[1].contains("kenning"),
            "the frontmatter is as it was"
        );
    }
    let run = fixture.call(
        "execute",
        json!({ "item_type": "directive", "action": "run", "item_id": "skill-1" }),
    );
    assert!(!run.is_error(), "{}", run.text);
    // Every file of the folder is signed.
    fs::write(skills.join("skill-1/scripts/run.py"), "import os\n").unwrap();
    let run = fixture.call(
        "execute",
        json!({ "item_type": "directive", "action": "run", "item_id": "skill-1" }),
    );
    assert_eq!(run.to_json()["status"], "modified", "{}", run.text);
}

#[test]
fn names_that_no_program_accepts_are_mended_and_what_is_left_out_is_said() {
    let fixture = Fixture::without_vault(Selection::default());
    let put = |path: &str, text: &str| {
        let path = fixture.project().join(".ai/directives").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(
        "template/SKILL.md",
        "---\nname: template-skill\ndescription: A template\n---\n\nText.\n",
    );
    put(
        "My_Notes/SKILL.md",
        "---\nname: My Notes\ndescription: Notes\n---\n\nText.\n",
    );
    put(
        "extra/SKILL.md",
        "---\nname: extra\ndescription: Has a field\nversion: 1.0\n---\n\nText.\n",
    );
    put(
        "auth/oauth_setup.md",
        "---\nname: oauth_setup\nversion: 1.0.0\ncategory: auth\ndescription: Sets up\ninputs:\n  - name: who\n---\n\n# Setup\n",
    );
    sign_all(&fixture, "directive");
    put(
        "unsigned/SKILL.md",
        "---\nname: unsigned\ndescription: x\n---\n\nText.\n",
    );
    let to = fixture.project().join("out");
    let done = fixture.board.engine();
    let done = done
        .kiwi()
        .export_skills(&fixture.owner(), &to, false)
        .unwrap();
    assert_eq!(
        done.names,
        ["extra", "my-notes", "oauth-setup", "template-skill"]
    );
    assert_eq!(done.left_out.len(), 1);
    assert_eq!(done.left_out[0].0, "unsigned");
    assert!(done.left_out[0].1.contains("no signature"));
    assert_eq!(done.faults.len(), 1, "{:?}", done.faults);
    assert!(done.faults[0].1.contains("`version`"));
    let text = |name: &str| fs::read_to_string(to.join(name).join("SKILL.md")).unwrap();
    assert_eq!(
        text("my-notes"),
        "---\nname: my-notes\ndescription: Notes\n---\n\nText.\n"
    );
    assert!(text("oauth-setup").contains("- `who` (string)"));
}
