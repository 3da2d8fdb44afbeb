//! Every recorded request of the original KOI server, in order, against the real binary.

mod compare;

use crate::{Place, Server};
use compare::differences;
use serde_json::Value;

const GOLDEN: &str = include_str!("../../../../../testing/vectors/koi-golden.jsonl");

#[test]
fn recorded_requests_are_answered_as_recorded_where_no_difference_is_meant() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    for (n, line) in GOLDEN.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
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
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| answer.into());
        if line["status"] != status {
            println!(
                "{} {} status {} -> {status} {answer}",
                n + 1,
                text("path"),
                line["status"]
            );
            continue;
        }
        for it in differences(&line["response"], &answer) {
            let show = |it: &Option<Value>| {
                it.as_ref().map_or("-".into(), |it| {
                    it.to_string().chars().take(200).collect::<String>()
                })
            };
            println!(
                "{} {} {}: {} -> {}",
                n + 1,
                text("path"),
                it.path,
                show(&it.recorded),
                show(&it.answered)
            );
        }
    }
}
