//! Every recorded request of the original KOI server, in order, against the real binary.
//!
//! An answer has the recorded status and the recorded values, but for what `differences` lists; what it lists
//! and does not happen is a fault too. The manual's page of differences is made from that list:
//! `KENNING_UPDATE=1` writes it anew.

mod code;
mod compare;
mod differences;
mod surroundings;

use crate::{Place, Server};
use compare::{Found, differences, leave_out, sort_at, value_at};
use differences::{Instead, Row};
use serde_json::Value;
use std::collections::BTreeSet;
use surroundings::Surroundings;

const GOLDEN: &str = include_str!("../../../../../testing/vectors/koi-golden.jsonl");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat/koi.md");

#[test]
fn recorded_requests_are_answered_as_recorded_where_no_difference_is_meant() {
    let place = Place::new();
    let around = Surroundings::new(place.0.path());
    place.good(&[
        "federation",
        "init",
        "--name",
        "octo-test",
        "--base-url",
        "http://127.0.0.1:18360",
        "--provides",
        "Practice,Pattern,CaseStudy,Bioregion",
    ]);
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    around.prepare(&mut command);
    let server = Server::of(command);
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for (n, line) in GOLDEN.lines().enumerate().map(|(n, line)| (n + 1, line)) {
        let line: Value = serde_json::from_str(&around.adapted(line)).unwrap();
        let (status, answer) = ask(&server, &line);
        let mut found = judge(n, &line, status, &answer, &mut seen);
        if code::AGTYPE.contains(&n) {
            let mut asked = line.clone();
            asked["body"]["format"] = "agtype".into();
            let (_, answer) = ask(&server, &asked);
            found.extend(code::agtype_faults(n, &line["response"], &answer));
        }
        for fault in found {
            let request = format!("{} {} {}", line["method"], line["path"], line["body"]);
            faults.push(format!("line {n}: {request}: {fault}"));
        }
    }
    for (place, row) in all_rows().enumerate() {
        for line in row.lines.iter().filter(|it| !seen.contains(&(place, **it))) {
            faults.push(format!(
                "line {line}: `{}` is no difference any more (note {})",
                row.path, row.note
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn ask(server: &Server, line: &Value) -> (u16, Value) {
    let text = |name: &str| line[name].as_str().unwrap();
    let body = match &line["body"] {
        Value::Null if text("name") == "resolve badjson" => "{bad".to_owned(),
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let (status, answer) = match text("method") {
        "GET" => server.get(text("path"), ""),
        _ => server.post(text("path"), "", &body),
    };
    let answer = serde_json::from_str(&answer).unwrap_or_else(|_| answer.into());
    (status, answer)
}

/// What is wrong with an answer. Notes which rows of the table were of use.
fn judge(
    n: usize,
    line: &Value,
    status: u16,
    answer: &Value,
    seen: &mut BTreeSet<(usize, usize)>,
) -> Vec<String> {
    let rows = || all_rows().enumerate().filter(|it| it.1.lines.contains(&n));
    if line["status"] != status {
        let meant = rows().find(|it| it.1.path == "status");
        let Some((place, row)) = meant else {
            return vec![format!("status {status}, not {}: {answer}", line["status"])];
        };
        seen.insert((place, n));
        return match row.instead {
            Instead::Status(code, holds) if code == status && holds(answer) => Vec::new(),
            _ => vec![format!("status {status} is not what is meant: {answer}")],
        };
    }
    let (mut theirs, mut ours) = (line["response"].clone(), answer.clone());
    for (place, row) in rows() {
        if let Instead::Reordered(fields) = row.instead {
            let (before, after) = (value_at(&theirs, row.path), value_at(&ours, row.path));
            if before != after {
                seen.insert((place, n));
            }
            sort_at(&mut theirs, row.path, fields);
            sort_at(&mut ours, row.path, fields);
        }
    }
    for (place, row) in rows() {
        if let Instead::Without(field, text) = row.instead
            && leave_out(&mut theirs, row.path, field, text)
        {
            seen.insert((place, n));
        }
    }
    let mut faults = Vec::new();
    for found in differences(&theirs, &ours) {
        let meant = rows().find(|it| {
            !matches!(it.1.instead, Instead::Reordered(_) | Instead::Without(..))
                && covers(it.1, &found.path)
        });
        match meant {
            Some((place, row)) if holds(row, &found, &theirs, &ours) => {
                seen.insert((place, n));
            }
            _ => faults.push(found.to_string()),
        }
    }
    faults
}

/// Every difference that is meant.
fn all_rows() -> impl Iterator<Item = &'static Row> {
    differences::ROWS.iter().chain(code::ROWS)
}

/// Whether a row speaks of this place. What ends in `*` speaks of everything beneath.
fn covers(row: &Row, path: &str) -> bool {
    let any: String = {
        let mut any = String::new();
        let mut in_brackets = false;
        for letter in path.chars() {
            match letter {
                '[' => {
                    in_brackets = true;
                    any.push_str("[*");
                }
                ']' => {
                    in_brackets = false;
                    any.push(']');
                }
                _ if in_brackets => (),
                _ => any.push(letter),
            }
        }
        any
    };
    row.path.split('|').any(|it| match it.strip_suffix('*') {
        Some(above) => path.starts_with(above),
        None => it == path || it == any,
    })
}

fn holds(row: &Row, found: &Found, theirs: &Value, ours: &Value) -> bool {
    match &row.instead {
        Instead::Absent => found.answered.is_none(),
        Instead::Is(expected) => {
            let expected: Value = serde_json::from_str(expected).unwrap();
            found.answered == Some(expected)
        }
        Instead::Between(least, most) => {
            let number = found.answered.as_ref().and_then(Value::as_f64);
            number.is_some_and(|it| (*least..=*most).contains(&it))
        }
        Instead::Holds(check) => check(theirs, ours),
        Instead::Reordered(_) | Instead::Without(..) | Instead::Status(..) => false,
    }
}

/// Lines as people write them: `1, 5-7`.
fn shown(lines: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &line in lines {
        match parts.last_mut() {
            Some(last) if last.1 + 1 == line => last.1 = line,
            _ => parts.push((line, line)),
        }
    }
    let one = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn page() -> String {
    let mut page = "# KOI: differences from the original server\n\n\
        Made from the table of the test that plays the recorded requests of the original\n\
        (`testing/vectors/koi-golden.jsonl`) against this program; see `crates/kenning/tests/binary/koi_golden`.\n\
        Everything else is answered with the same status and the same values.\n\n\
        | lines | in the answer | the original | here |\n|---|---|---|---|\n"
        .to_owned();
    for row in all_rows() {
        let path = row.path.split('|').map(|it| format!("`{it}`"));
        let path = path.collect::<Vec<_>>().join(", ");
        let (lines, theirs, ours) = (shown(row.lines), row.theirs, row.ours);
        page += &format!("| {lines} | {path} | {theirs} | {ours} |\n");
    }
    page
}

#[test]
fn the_page_of_differences_is_that_of_the_table() {
    let page = page();
    if std::env::var_os("KENNING_UPDATE").is_some() {
        std::fs::create_dir_all(std::path::Path::new(PAGE).parent().unwrap()).unwrap();
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(written, page, "run this test with KENNING_UPDATE=1");
}
