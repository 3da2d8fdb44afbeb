//! YAML, bounded: more than anybody writes by hand is refused before a parser's worst case becomes
//! somebody's weapon.

use serde_json::Value;

/// What a text may have.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes.
    pub bytes_max: usize,
    /// Levels of lists and maps.
    pub depth_max: usize,
    /// Values, those that aliases repeat included.
    pub nodes_max: usize,
    /// Aliases (`*name`).
    pub aliases_max: usize,
}

impl Limits {
    /// Of a block of fields that a person writes.
    pub const FIELDS: Self = Self {
        bytes_max: 64 * 1024,
        depth_max: 32,
        nodes_max: 20_000,
        aliases_max: 200,
    };
}

/// Why a text is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It has so many bytes, which are too many.
    TooLarge(usize),
    /// It is not YAML, or has too much of something.
    Syntax {
        /// Where, from 1; 0 if that is not known.
        line: usize,
        /// Where in the line, from 1; 0 if that is not known.
        column: usize,
        /// What the parser says, in one line. It may hold what stands in the text.
        message: String,
    },
}

/// The value of a text, null if there is none.
///
/// Only `true` and `false` are booleans; what JSON has no number for (`.nan`, `.inf`) is a text; no key may
/// stand twice.
///
/// # Errors
/// When it is too large or malformed.
pub fn read(text: &str, limits: &Limits) -> Result<Value, Error> {
    if text.len() > limits.bytes_max {
        return Err(Error::TooLarge(text.len()));
    }
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
        budget: serde_saphyr::budget! {
            max_depth: limits.depth_max,
            flow_nesting_limit: limits.depth_max,
            max_nodes: limits.nodes_max,
            max_aliases: limits.aliases_max,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: limits.nodes_max,
        },
    };
    serde_saphyr::from_str_with_options::<Option<Value>>(text, options)
        .map(Option::unwrap_or_default)
        .map_err(|error| {
            let number = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
            let place = error.location();
            let message = error.to_string();
            Error::Syntax {
                line: place.map_or(0, |it| number(it.line())),
                column: place.map_or(0, |it| number(it.column())),
                message: message.lines().next().unwrap_or_default().to_owned(),
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_what_json_has_and_texts() {
        for (text, expected) in [
            ("", json!(null)),
            ("# a comment", json!(null)),
            ("a: [1, 2.5, null]", json!({"a": [1, 2.5, null]})),
            (
                "yes: yes\nno: false\nday: 2024-01-02\nn: .nan",
                json!({"yes": "yes", "no": false, "day": "2024-01-02", "n": ".nan"}),
            ),
            ("a: &x [1]\nb: *x", json!({"a": [1], "b": [1]})),
        ] {
            assert_eq!(read(text, &Limits::FIELDS), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_malformed_text_says_where() {
        let Err(Error::Syntax { line, column, .. }) = read("a: 1\na: 2", &Limits::FIELDS) else {
            panic!("two of one key");
        };
        assert_eq!((line, column), (2, 1));
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let limits = Limits {
            bytes_max: 10_000,
            depth_max: 10,
            nodes_max: 100,
            aliases_max: 5,
        };
        let mut laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        laughs += "b: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c]\n";
        for bad in [
            format!("a: {}", "[".repeat(5_000)),
            format!("a: {}{}", "[".repeat(11), "]".repeat(11)),
            format!("[{}]", "1,".repeat(200)),
            laughs,
            format!("a: &a 1\nb: [{}]", "*a,".repeat(9)),
        ] {
            let found = read(&bad, &limits);
            assert!(matches!(found, Err(Error::Syntax { .. })), "{bad:.40}");
        }
        let long = format!("a: {}", "x".repeat(10_000));
        assert_eq!(read(&long, &limits), Err(Error::TooLarge(10_003)));
    }
}
