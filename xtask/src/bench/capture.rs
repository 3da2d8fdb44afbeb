//! What capture keeps of judged transcripts, and of planted secrets: `testing/capture/README.md` says how it is judged.

use crate::options::Options;
use crate::repository::root;
use anyhow::{Context, Result, ensure};
use kenning_capture::{Candidate, CandidateKind, extract, read};
use serde_json::{Value, json};
use std::path::Path;

/// A memory that is longer matches nothing.
const CHARS_MAX: usize = 700;

/// So many characters of a secret in a row are the secret.
const PART_CHARS: usize = 12;

const PRECISION_MIN: f64 = 0.7;
const RECALL_MIN: f64 = 0.6;

/// What was found in one transcript, or in all.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    captured: usize,
    expected: usize,
    pairs: usize,
}

impl Score {
    fn precision(self) -> f64 {
        share(self.pairs, self.captured)
    }

    fn recall(self) -> f64 {
        share(self.pairs, self.expected)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share of few")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 1.0;
    }
    part as f64 / whole as f64
}

/// What became of the planted secrets.
#[derive(Clone, Copy, Debug, Default)]
struct Secrets {
    planted: usize,
    kept: usize,
    /// Texts that were kept without their secret.
    redacted: usize,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let shows = options.words.len() > 1;
    let score = judge(&root().join("testing/capture/transcripts"), shows)?;
    println!(
        "transcripts: captured {}, expected {}, pairs {}",
        score.captured, score.expected, score.pairs
    );
    println!(
        "precision {:.3} (at least {PRECISION_MIN}), recall {:.3} (at least {RECALL_MIN}), model tokens 0",
        score.precision(),
        score.recall()
    );
    let secrets = plant(&root().join("testing/capture/secrets.jsonl"), shows)?;
    println!(
        "secrets: kept {} of {}, texts kept without their secret {}",
        secrets.kept, secrets.planted, secrets.redacted
    );
    ensure!(
        score.precision() >= PRECISION_MIN && score.recall() >= RECALL_MIN && secrets.kept == 0,
        "capture does not reach its bars"
    );
    Ok(())
}

/// All transcripts of a folder together.
fn judge(folder: &Path, shows: bool) -> Result<Score> {
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".expected.json") {
            names.push(name);
        }
    }
    names.sort();
    let mut all = Score::default();
    for name in names {
        let text = std::fs::read_to_string(folder.join(&name))?;
        let stem = name.rsplit_once('.').map_or(name.as_str(), |it| it.0);
        let expected = std::fs::read_to_string(folder.join(format!("{stem}.expected.json")))?;
        let expected: Vec<Value> = serde_json::from_str(&expected).context(name.clone())?;
        let captured = extract(&read(&text));
        let pairs = pairs(&captured, &expected);
        if shows {
            println!("{name}");
            for (n, candidate) in captured.iter().enumerate() {
                let mark = if pairs.iter().any(|it| it.0 == n) {
                    "+"
                } else {
                    "-"
                };
                println!("  {mark} {}: {}", candidate.kind.as_str(), candidate.text);
            }
            for (n, memory) in expected.iter().enumerate() {
                if !pairs.iter().any(|it| it.1 == n) {
                    println!("  missing: {}", memory["what"]);
                }
            }
        }
        all.captured += captured.len();
        all.expected += expected.len();
        all.pairs += pairs.len();
    }
    Ok(all)
}

fn matches(candidate: &Candidate, memory: &Value) -> bool {
    let kind = match candidate.kind {
        CandidateKind::Summary => "summary",
        CandidateKind::Files => "files",
        _ => "statement",
    };
    let text = candidate.text.to_lowercase();
    let phrases = memory["has"].as_array().into_iter().flatten();
    let mut phrases = phrases.filter_map(Value::as_str);
    memory["kind"] == kind
        && text.chars().count() <= CHARS_MAX
        && phrases.all(|it| text.contains(&it.to_lowercase()))
}

/// The largest number of pairs in which each counts once, by augmenting paths.
fn pairs(captured: &[Candidate], expected: &[Value]) -> Vec<(usize, usize)> {
    fn place(
        of: usize,
        can: &[Vec<usize>],
        seen: &mut [bool],
        taken: &mut [Option<usize>],
    ) -> bool {
        for &memory in &can[of] {
            if std::mem::replace(&mut seen[memory], true) {
                continue;
            }
            if taken[memory].is_none_or(|other| place(other, can, seen, taken)) {
                taken[memory] = Some(of);
                return true;
            }
        }
        false
    }
    let can = captured.iter().map(|candidate| {
        let all = expected.iter().enumerate();
        let own = all.filter(|it| matches(candidate, it.1));
        own.map(|it| it.0).collect()
    });
    let can: Vec<Vec<usize>> = can.collect();
    let mut taken = vec![None; expected.len()];
    for candidate in 0..captured.len() {
        place(
            candidate,
            &can,
            &mut vec![false; expected.len()],
            &mut taken,
        );
    }
    let pairs = taken.iter().enumerate();
    pairs
        .filter_map(|(memory, of)| Some(((*of)?, memory)))
        .collect()
}

/// Each secret in a session of its own.
fn plant(file: &Path, shows: bool) -> Result<Secrets> {
    let mut found = Secrets::default();
    for line in std::fs::read_to_string(file)?.lines() {
        let case: Value = serde_json::from_str(line)?;
        let pieces = case["secret"].as_array().into_iter().flatten();
        let secret: String = pieces.filter_map(Value::as_str).collect();
        let text = case["text"]
            .as_str()
            .unwrap_or_default()
            .replace("{}", &secret);
        let captured = extract(&read(&session_with(
            case["place"].as_str().unwrap_or_default(),
            &text,
        )));
        let is_kept = |it: &Candidate| has_part(&it.text, &secret);
        let is_redacted = |it: &Candidate| it.text.contains(kenning_capture::secrets::MARK);
        found.planted += 1;
        found.kept += usize::from(captured.iter().any(is_kept));
        found.redacted += usize::from(captured.iter().any(is_redacted));
        if shows && captured.iter().any(is_kept) {
            println!("kept {} in {}: {:?}", case["form"], case["place"], captured);
        }
    }
    Ok(found)
}

fn has_part(text: &str, secret: &str) -> bool {
    let chars: Vec<char> = secret.chars().collect();
    if chars.len() <= PART_CHARS {
        return text.contains(secret);
    }
    let mut parts = chars
        .windows(PART_CHARS)
        .map(|it| it.iter().collect::<String>());
    parts.any(|part| text.contains(&part))
}

/// A session in Claude Code's form that has a text at a place.
fn session_with(place: &str, text: &str) -> String {
    let said = |role: &str, content: Value| json!({ "type": role, "sessionId": "s", "cwd": "/w", "message": { "role": role, "content": content } });
    let call = |id: &str, command: &str| {
        let input = json!({ "command": command });
        said(
            "assistant",
            json!([{ "type": "tool_use", "id": id, "name": "Bash", "input": input }]),
        )
    };
    let result = |id: &str, output: &str, is_error: bool| {
        said(
            "user",
            json!([{ "type": "tool_result", "tool_use_id": id, "content": output, "is_error": is_error }]),
        )
    };
    let first = said(
        "user",
        json!("please make the nightly synchronization job of the billing service work again"),
    );
    let rest = match place {
        "command" => vec![
            call("1", text),
            result("1", "error: connection refused", true),
            call("2", text),
            result("2", "done", false),
        ],
        "output" => vec![
            call("1", "./nightly.sh run"),
            result("1", text, true),
            call("2", "./nightly.sh run"),
            result("2", "done", false),
        ],
        "assistant" => vec![
            call("1", "./nightly.sh run"),
            result("1", "error: 401", true),
            said(
                "assistant",
                json!([{ "type": "text", "text": format!("The job failed because it was set up wrong. {text}") }]),
            ),
        ],
        _ => vec![said("user", json!(text))],
    };
    let lines = std::iter::once(first).chain(rest);
    lines.map(|it| format!("{it}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_reaches_its_bars_and_keeps_no_secret() {
        let root = root();
        let score = judge(&root.join("testing/capture/transcripts"), false).unwrap();
        assert!(score.precision() >= PRECISION_MIN, "{score:?}");
        assert!(score.recall() >= RECALL_MIN, "{score:?}");
        let secrets = plant(&root.join("testing/capture/secrets.jsonl"), false).unwrap();
        assert_eq!((secrets.planted, secrets.kept), (200, 0));
        // The texts are kept, so it is the secret that is missing and not everything.
        assert!(secrets.redacted >= 100, "{secrets:?}");
    }
}
