//! Two JSON values, compared value by value.

use serde_json::Value;

/// Where two values differ, and how.
#[derive(Debug)]
pub(super) struct Found {
    /// `results[0].similarity`; empty is the whole.
    pub(super) path: String,
    /// What was recorded; nothing where only our answer has it.
    pub(super) recorded: Option<Value>,
    /// What is answered; nothing where only the recording has it.
    pub(super) answered: Option<Value>,
}

/// Values that are made by chance: equal if they have the same form.
const BY_CHANCE: [&str; 4] = ["receipt_rid", "head_sha", "last_commit_sha", "commit_sha"];

/// Everything in which an answer differs from the recorded one, moments of time and ids made by chance left
/// out.
pub(super) fn differences(recorded: &Value, answered: &Value) -> Vec<Found> {
    let mut found = Vec::new();
    compare("", recorded, answered, &mut found);
    found
}

fn compare(path: &str, recorded: &Value, answered: &Value, found: &mut Vec<Found>) {
    let add = |found: &mut Vec<Found>, path: String, a: Option<&Value>, b: Option<&Value>| {
        found.push(Found {
            path,
            recorded: a.cloned(),
            answered: b.cloned(),
        });
    };
    match (recorded, answered) {
        (Value::Object(a), Value::Object(b)) => {
            let under = |name: &str| {
                if path.is_empty() {
                    name.to_owned()
                } else {
                    format!("{path}.{name}")
                }
            };
            for (name, value) in a {
                match b.get(name) {
                    Some(other) => compare(&under(name), value, other, found),
                    None => add(found, under(name), Some(value), None),
                }
            }
            for (name, value) in b.iter().filter(|it| !a.contains_key(it.0)) {
                add(found, under(name), None, Some(value));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for n in 0..a.len().max(b.len()) {
                let under = format!("{path}[{n}]");
                match (a.get(n), b.get(n)) {
                    (Some(a), Some(b)) => compare(&under, a, b, found),
                    (a, b) => add(found, under, a, b),
                }
            }
        }
        (a, b) if is_same(path, a, b) => (),
        (a, b) => add(found, path.to_owned(), Some(a), Some(b)),
    }
}

fn is_same(path: &str, a: &Value, b: &Value) -> bool {
    if let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) {
        return (a - b).abs() < 1e-9;
    }
    let (Some(left), Some(right)) = (a.as_str(), b.as_str()) else {
        return a == b;
    };
    let name = path.rsplit('.').next().unwrap_or(path);
    let is_chance = BY_CHANCE.contains(&name) && form(left) == form(right);
    left == right || is_chance || (is_moment(left) && is_moment(right))
}

/// A text with every hexadecimal digit made one.
fn form(text: &str) -> String {
    let masked = text
        .chars()
        .map(|it| if it.is_ascii_hexdigit() { '#' } else { it });
    masked.collect()
}

/// `2026-11-15T02:29:43.370787`, with a zone or without.
fn is_moment(text: &str) -> bool {
    let shape = "####-##-##T##:##:##";
    let digits = |it: &str| -> String {
        let digits = it
            .chars()
            .map(|it| if it.is_ascii_digit() { '#' } else { it });
        digits.collect()
    };
    text.get(..shape.len()).map(digits).as_deref() == Some(shape)
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |it: &Option<Value>| match it {
            None => "nothing".to_owned(),
            Some(it) => it.to_string().chars().take(300).collect(),
        };
        let (answered, recorded) = (show(&self.answered), show(&self.recorded));
        write!(f, "`{}` is {answered}, not {recorded}", self.path)
    }
}

/// The value at a path such as `results[0].aliases`.
pub(super) fn value_at<'a>(whole: &'a Value, path: &str) -> Option<&'a Value> {
    whole.pointer(&pointer(path))
}

/// Puts the list at a path into the order of these fields; without any, of the whole text.
pub(super) fn sort_at(whole: &mut Value, path: &str, fields: &[&str]) {
    let Some(Value::Array(list)) = whole.pointer_mut(&pointer(path)) else {
        return;
    };
    list.sort_by_key(|it| {
        let fields: Vec<String> = fields.iter().map(|field| it[*field].to_string()).collect();
        (fields, it.to_string())
    });
}

/// Takes those out of the list at a path whose field is this text; whether there were any.
pub(super) fn leave_out(whole: &mut Value, path: &str, field: &str, text: &str) -> bool {
    let Some(Value::Array(list)) = whole.pointer_mut(&pointer(path)) else {
        return false;
    };
    let before = list.len();
    list.retain(|it| it[field] != text);
    list.len() < before
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace(['.', '['], "/").replace(']', ""))
}
