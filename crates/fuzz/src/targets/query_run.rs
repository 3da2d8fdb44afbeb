//! Cypher whose answer is known: a second, small reading of the language computes it as well.
//!
//! The bytes of an input are choices, and the choices make an expression; so every input is a query
//! that is well formed, and a mutated input is another query.

use super::ensure;
use crate::{Source, Subject, Target};
use kenning_engine::Caller;
use kenning_testing::Fixture;
use kenning_tools::koi::code_query::{Request, answer};
use serde_json::{Value, json};

pub(super) const TARGET: Target = Target {
    name: "query_run",
    about: "what needs no graph is computed as a second implementation computes it",
    words: &[],
    seeds: || (0..8).map(|it| Source::new(it).bytes(64)).collect(),
    generate: |source| {
        let n = 8 + source.below(200);
        source.bytes(n)
    },
    open: || {
        let fixture = Fixture::without_vault(kenning_tools::Selection::default());
        let caller = fixture.owner();
        Box::new(Queries { fixture, caller })
    },
    pass_cases: 2_500,
    fresh_every: 1_000_000,
    contains_panics: false,
};

/// How deep an expression is: what is deeper is a matter of limits.
const DEPTH_MAX: usize = 5;

/// An expression in words, and its value. The value is `None` where the query must be refused.
struct Made {
    words: String,
    value: Option<Value>,
}

fn made(words: String, value: Option<Value>) -> Made {
    Made { words, value }
}

/// Choices, one byte each; at the end all are the first.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % n
    }

    fn whole(&mut self, depth: usize) -> Made {
        const LITERALS: &[i64] = &[0, 1, 2, 3, 7, 10, 4_611_686_018_427_387_903];
        let kind = if depth == 0 {
            self.below(3)
        } else {
            self.below(12)
        };
        match kind {
            0 | 1 => {
                let it = LITERALS[self.below(LITERALS.len())];
                made(it.to_string(), Some(json!(it)))
            }
            2 => made("null".to_owned(), Some(Value::Null)),
            3 => {
                let list = self.list(depth - 1);
                let value = list.value.map(|it| it.as_array().map(Vec::len).into());
                made(format!("size({})", list.words), value)
            }
            4 => {
                let (list, at) = (self.list(depth - 1), self.below(4));
                let value = list.value.map(|it| it.get(at).cloned().unwrap_or_default());
                made(format!("({})[{at}]", list.words), value)
            }
            5 => {
                let (a, b) = (self.whole(depth - 1), self.whole(depth - 1));
                let value = a.value.zip(b.value);
                let value = value.map(|(a, b)| if a.is_null() { b } else { a });
                made(format!("coalesce({}, {})", a.words, b.words), value)
            }
            6 => self.choice(depth, Self::whole),
            7 => {
                let text = self.text(depth - 1);
                let value = text
                    .value
                    .map(|text| text.as_str().map(|it| it.chars().count()).into());
                made(format!("size({})", text.words), value)
            }
            _ => {
                let operator = ["+", "-", "*", "/", "%"][self.below(5)];
                let (a, b) = (self.whole(depth - 1), self.whole(depth - 1));
                let value = a.value.zip(b.value);
                let value = value.and_then(|(a, b)| match (a.as_i64(), b.as_i64()) {
                    (Some(a), Some(b)) => computed(operator, a, b).map(Value::from),
                    _ => Some(Value::Null),
                });
                made(format!("({} {operator} {})", a.words, b.words), value)
            }
        }
    }

    fn text(&mut self, depth: usize) -> Made {
        const LITERALS: &[(&str, &str)] = &[
            ("''", ""),
            ("'a'", "a"),
            ("\"b\"", "b"),
            ("'ab'", "ab"),
            ("'it\\'s'", "it's"),
            ("'\u{e9}\u{1f600}'", "\u{e9}\u{1f600}"),
        ];
        let kind = if depth == 0 {
            self.below(3)
        } else {
            self.below(6)
        };
        match kind {
            0 | 1 => {
                let (words, value) = LITERALS[self.below(LITERALS.len())];
                made(words.to_owned(), Some(json!(value)))
            }
            2 => made("null".to_owned(), Some(Value::Null)),
            3 => self.choice(depth, Self::text),
            _ => {
                let (a, b) = (self.text(depth - 1), self.text(depth - 1));
                let value = a.value.zip(b.value);
                let value = value.map(|(a, b)| match (a.as_str(), b.as_str()) {
                    (Some(a), Some(b)) => json!(format!("{a}{b}")),
                    _ => Value::Null,
                });
                made(format!("({} + {})", a.words, b.words), value)
            }
        }
    }

    /// `CASE`, which looks only at the branch that it takes.
    fn choice(&mut self, depth: usize, branch: fn(&mut Self, usize) -> Made) -> Made {
        let condition = self.truth(depth - 1);
        let (then, otherwise) = (branch(self, depth - 1), branch(self, depth - 1));
        let words = format!(
            "CASE WHEN {} THEN {} ELSE {} END",
            condition.words, then.words, otherwise.words
        );
        let value = condition.value.and_then(|condition| {
            if condition == Value::Bool(true) {
                then.value
            } else {
                otherwise.value
            }
        });
        made(words, value)
    }

    fn list(&mut self, depth: usize) -> Made {
        if depth > 0 && self.below(4) == 0 {
            let (a, b) = (self.list(depth - 1), self.list(depth - 1));
            let both = |(a, b): (Value, Value)| match (a, b) {
                (Value::Array(mut a), Value::Array(b)) => {
                    a.extend(b);
                    Value::Array(a)
                }
                _ => Value::Null,
            };
            return made(
                format!("({} + {})", a.words, b.words),
                a.value.zip(b.value).map(both),
            );
        }
        let items: Vec<Made> = (0..self.below(4))
            .map(|_| self.whole(depth.saturating_sub(1)))
            .collect();
        let words: Vec<&str> = items.iter().map(|it| it.words.as_str()).collect();
        let words = format!("[{}]", words.join(", "));
        let values: Option<Vec<Value>> = items.iter().map(|it| it.value.clone()).collect();
        made(words, values.map(Value::from))
    }

    fn truth(&mut self, depth: usize) -> Made {
        let kind = if depth == 0 {
            self.below(3)
        } else {
            self.below(10)
        };
        match kind {
            0 => made("true".to_owned(), Some(json!(true))),
            1 => made("false".to_owned(), Some(json!(false))),
            2 => made("null".to_owned(), Some(Value::Null)),
            3 => {
                let it = self.truth(depth - 1);
                let value = it.value.map(|it| it.as_bool().map(|it| !it).into());
                made(format!("(NOT {})", it.words), value)
            }
            4 => {
                let it = self.whole(depth - 1);
                let value = it.value.map(|it| it.is_null().into());
                made(format!("({} IS NULL)", it.words), value)
            }
            5 => {
                let (it, list) = (self.whole(depth - 1), self.list(depth - 1));
                let value = it.value.zip(list.value).map(|(it, list)| among(&it, &list));
                made(format!("({} IN {})", it.words, list.words), value)
            }
            6 | 7 => {
                let operator = ["AND", "OR", "XOR"][self.below(3)];
                let (a, b) = (self.truth(depth - 1), self.truth(depth - 1));
                let value = a.value.zip(b.value);
                let value = value.map(|(a, b)| joined(operator, a.as_bool(), b.as_bool()).into());
                made(format!("({} {operator} {})", a.words, b.words), value)
            }
            _ => {
                let operator = ["=", "<>", "<", "<=", ">", ">="][self.below(6)];
                let of = if self.below(3) == 0 {
                    Self::text
                } else {
                    Self::whole
                };
                let (a, b) = (of(self, depth - 1), of(self, depth - 1));
                let value = a.value.zip(b.value);
                let value = value.map(|(a, b)| compared(operator, &a, &b).into());
                made(format!("({} {operator} {})", a.words, b.words), value)
            }
        }
    }
}

/// Whole numbers; nothing where the answer is too large or there is none.
fn computed(operator: &str, a: i64, b: i64) -> Option<i64> {
    let wide = match operator {
        "+" => i128::from(a) + i128::from(b),
        "-" => i128::from(a) - i128::from(b),
        "*" => i128::from(a) * i128::from(b),
        "/" if b != 0 => i128::from(a) / i128::from(b),
        "%" if b != 0 => i128::from(a) % i128::from(b),
        _ => return None,
    };
    i64::try_from(wide).ok()
}

/// By the tables of three values.
fn joined(operator: &str, a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (operator, a, b) {
        ("AND", Some(false), _) | ("AND", _, Some(false)) => Some(false),
        ("OR", Some(true), _) | ("OR", _, Some(true)) => Some(true),
        (_, None, _) | (_, _, None) => None,
        ("AND", Some(a), Some(b)) => Some(a & b),
        ("OR", Some(a), Some(b)) => Some(a | b),
        (_, Some(a), Some(b)) => Some(a ^ b),
    }
}

fn compared(operator: &str, a: &Value, b: &Value) -> Option<bool> {
    let order = match (a, b) {
        (Value::String(a), Value::String(b)) => a.chars().cmp(b.chars()),
        _ => a.as_i64()?.cmp(&b.as_i64()?),
    };
    Some(match operator {
        "=" => order.is_eq(),
        "<>" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })
}

fn among(it: &Value, list: &Value) -> Value {
    let Some(list) = list.as_array() else {
        return Value::Null;
    };
    let is_unsure = list.iter().any(Value::is_null);
    match it {
        // Among nothing is nobody, known or not.
        Value::Null if list.is_empty() => false.into(),
        Value::Null => Value::Null,
        it if list.contains(it) => true.into(),
        _ if is_unsure => Value::Null,
        _ => false.into(),
    }
}

struct Queries {
    fixture: Fixture,
    caller: Caller,
}

impl Queries {
    fn answer(&self, cypher: &str) -> Option<Value> {
        let request = Request {
            cypher: Some(cypher.to_owned()),
            ..Default::default()
        };
        let output = answer(self.fixture.board.engine(), &self.caller, request);
        output.ok().and_then(|it| serde_json::to_value(it).ok())
    }
}

impl Subject for Queries {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let mut choices = Choices(input.iter());
        let kind = choices.below(6);
        let made = match kind {
            0 => choices.text(DEPTH_MAX),
            1 => choices.list(DEPTH_MAX),
            2 | 3 => choices.truth(DEPTH_MAX),
            _ => choices.whole(DEPTH_MAX),
        };
        let words = &made.words;
        let query = format!("RETURN {words} AS it");
        let found = self.answer(&query).map(|it| it["results"][0]["it"].clone());
        ensure!(
            found == made.value,
            "another answer: {query} gives {found:?} and not {:?}",
            made.value
        );
        // The same list, a row at a time.
        if let (1, Some(Value::Array(items))) = (kind, &made.value) {
            let known: Vec<i64> = items.iter().filter_map(Value::as_i64).collect();
            let query = format!(
                "UNWIND {words} AS x RETURN count(*) AS rows, count(x) AS known, collect(x) AS all, max(x) AS most"
            );
            let found = self.answer(&query).map(|it| it["results"][0].clone());
            let expected = json!({ "rows": items.len(), "known": known.len(), "all": known,
                "most": known.iter().max() });
            ensure!(
                found.as_ref() == Some(&expected),
                "another answer: {query} gives {found:?} and not {expected}"
            );
        }
        Ok(())
    }
}
