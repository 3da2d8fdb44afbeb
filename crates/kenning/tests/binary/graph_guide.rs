//! `docs/guides/graph.md`: every command of it, in a copy of the example.

use crate::Place;
use std::path::Path;

const GUIDE: &str = include_str!("../../../../docs/guides/graph.md");

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn every_command_of_the_graph_guide_works() {
    let place = Place::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graph");
    let project = place.vault().parent().unwrap().join("example");
    copy(&example, &project);
    let blocks = GUIDE
        .split("```sh\n")
        .skip(1)
        .map(|it| it.split("```").next().unwrap());
    let lines = blocks
        .flat_map(str::lines)
        .filter(|it| it.starts_with("kenning "));
    let mut n = 0;
    for line in lines {
        let words = words(line);
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let mut command = place.command(&words);
        let output = command.current_dir(&project).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
        n += 1;
    }
    assert!(n >= 15, "{n} commands");
    for file in ["graph.html", "graph.graphml"] {
        assert!(
            project.join(file).metadata().unwrap().len() > 1_000,
            "{file}"
        );
    }
}

/// The words of a line as a shell has them: quotes are all that the guide uses.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}
