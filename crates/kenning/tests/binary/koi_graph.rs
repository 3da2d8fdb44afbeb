//! The graph of entities through the real binary: on the command line, killed while it is written, and
//! followed by two processes beside somebody who edits the notes.

use crate::{Client, Place};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Enough that an import takes a while.
const PEOPLE: usize = 600;

fn export(path: &Path, n_people: usize) {
    let name = |n: usize| format!("Person Number {n}");
    let entities: Vec<Value> = (0..n_people)
        .map(|n| json!({ "uri": format!("orn:test:{n}"), "name": name(n), "type": "Person" }))
        .collect();
    let relationships: Vec<Value> = (0..n_people)
        .map(|n| {
            let other = (n * 7 + 1) % n_people;
            json!({ "subject_uri": format!("orn:test:{n}"), "predicate": "knows", "object_uri": format!("orn:test:{other}") })
        })
        .collect();
    let all = json!({ "entities": entities, "relationships": relationships });
    fs::write(path, all.to_string()).unwrap();
}

fn told(place: &Place, arguments: &[&str]) -> Value {
    let mut words = vec!["--json", "koi"];
    words.extend(arguments);
    serde_json::from_str(&place.good(&words)).unwrap()
}

/// Every entity and what it is related to, without times.
fn picture(place: &Place) -> (Value, Value) {
    (
        told(place, &["entities", "--limit", "100000"]),
        told(place, &["stats"]),
    )
}

#[test]
fn koi_an_import_that_is_killed_is_there_wholly_or_not_at_all() {
    let place = Place::new();
    let sizes = [PEOPLE, PEOPLE / 2];
    let files = sizes.map(|n| place.0.path().join(format!("{n}.json")));
    files.iter().zip(sizes).for_each(|(it, n)| export(it, n));
    let files = files.each_ref().map(|it| it.to_str().unwrap());
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..16_usize {
        let mut child = place
            .command(&["koi", "import", files[round % 2]])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(5 + 25 * round as u64));
        drop(child.kill());
        drop(child.wait());
        // One import or the other, or none yet: never some of each.
        let stats = told(&place, &["stats"]);
        let n = stats["total_entities"].as_u64().unwrap();
        let n = usize::try_from(n).unwrap();
        assert!(n == 0 || sizes.contains(&n), "round {round}: {stats}");
        let n_listed = told(&place, &["entities", "--limit", "100000"])["count"].clone();
        assert_eq!(n_listed, n, "round {round}");
        seen.insert(n);
    }
    assert!(seen.len() > 1, "{seen:?}: no kill came in time");
    let shown = files[0];
    told(&place, &["import", shown]);
    let verified = place.good(&["audit", "verify"]);
    assert!(verified.contains("clean"), "{verified}");
    let other = Place::new();
    told(&other, &["import", shown]);
    assert_eq!(picture(&place).1, picture(&other).1);
}

#[test]
fn koi_two_processes_and_somebody_who_edits_end_in_the_same_graph() {
    let place = Place::new();
    let people = place.vault().join("People");
    fs::create_dir_all(&people).unwrap();
    let ask = |client: &mut Client, label: &str| {
        client.call("resolve_entity", &json!({ "label": label }));
    };
    let mut clients = [Client::start(&place, &[]), Client::start(&place, &[])];
    for n in 0..60 {
        let path = people.join(format!("P{}.md", n % 20));
        if n % 7 == 3 {
            drop(fs::remove_file(&path));
        } else {
            let note = format!(
                "---\naliases: [n{n}]\nknows: [P{}, P{}]\n---\n[[P{}]]\n",
                (n + 1) % 20,
                (n * 3) % 20,
                (n + 5) % 20
            );
            // As editors do: another file under the name.
            let beside = people.join(format!("P{}.tmp", n % 20));
            fs::write(&beside, note).unwrap();
            fs::rename(&beside, &path).unwrap();
        }
        ask(&mut clients[n % 2], &format!("n{n}"));
        if n % 5 == 0 {
            let arguments = json!({ "path": format!("People/W{n}.md"), "content": format!("---\nknows: P{}\n---\n", n % 20) });
            clients[(n + 1) % 2].call("vault_write_note", &arguments);
        }
    }
    for client in &mut clients {
        ask(client, "P1");
    }
    for client in clients {
        assert_eq!(client.finish(), 0);
    }
    let verified = place.good(&["audit", "verify"]);
    assert!(verified.contains("clean"), "{verified}");
    let seen = |place: &Place| {
        let (entities, stats) = picture(place);
        let rows = entities["entities"].as_array().unwrap().iter();
        let mut rows: Vec<String> = rows.map(ToString::to_string).collect();
        rows.sort();
        (rows, stats)
    };
    let followed = seen(&place);
    assert!(followed.0.len() > 20, "{followed:?}");
    // A new store on the same files has seen none of this.
    let other = Place::new();
    fs::remove_dir(other.vault()).unwrap();
    fs::rename(place.vault(), other.vault()).unwrap();
    assert_eq!(seen(&other), followed);
}

#[test]
fn a_query_that_names_code_reads_the_project_first_and_another_does_not() {
    for (arguments, reads) in [
        (&["query", "MATCH (f:Function) RETURN f.name"][..], true),
        (
            &[
                "call",
                "code_query",
                "--json",
                r#"{"cypher": "MATCH (f:Function) RETURN f.name"}"#,
            ][..],
            true,
        ),
        (&["query", "MATCH (d:Document) RETURN count(d)"][..], false),
    ] {
        let place = Place::new();
        let project = place.0.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("a.py"), "def one():\n    pass\n").unwrap();
        for git in [
            &["init", "--quiet"][..],
            &["add", "--all"][..],
            &[
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@example.com",
                "commit",
                "--quiet",
                "--message",
                "x",
            ][..],
        ] {
            let done = std::process::Command::new("git")
                .args(git)
                .current_dir(&project)
                .status();
            assert!(done.unwrap().success());
        }
        let mut command = place.command(arguments);
        let output = command.env("KENNING_PROJECT", &project).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        assert!(output.status.success(), "{arguments:?}: {err}");
        assert_eq!(out.contains("one"), reads, "{arguments:?}: {out}");
        assert_eq!(
            err.contains("reading this project's last commit"),
            reads,
            "{arguments:?}: {err}"
        );
    }
}
