//! Titles of documents.

use unicode_normalization::UnicodeNormalization;

/// A title, an alias or a path in small letters and one form of each character, with `-`, `_` and space alike.
#[must_use]
pub fn title(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    if name.is_ascii() {
        name.chars()
            .for_each(|it| push(&mut out, it.to_ascii_lowercase()));
    } else {
        // Capital letters first, because some small ones share one: `ß` and `ss`, `ς` and `σ`.
        let capital = name.nfkc().flat_map(char::to_uppercase);
        let small = capital.flat_map(char::to_lowercase);
        small.nfkc().for_each(|it| push(&mut out, it));
    }
    while out.ends_with(' ') {
        out.pop();
    }
    out
}

fn push(out: &mut String, it: char) {
    let is_gap = it == '-' || it == '_' || it.is_whitespace();
    if !is_gap {
        // No space stands beside a boundary of folders.
        if it == '/' && out.ends_with(' ') {
            out.pop();
        }
        out.push(it);
    } else if !out.is_empty() && !out.ends_with([' ', '/']) {
        out.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_spell_differently_are_one() {
        for (a, b) in [
            ("First_Steps", "first steps"),
            ("first--steps ", " First-Steps"),
            ("Größe", "GRÖSSE"),
            ("E\u{301}te\u{301}", "été"),
            ("ＡＰＩ", "api"),
            ("Οδός", "οδόσ"),
            ("a / b", "a/b"),
            ("ﬁle", "file"),
            ("日本", "日本"),
        ] {
            assert_eq!(title(a), title(b), "{a} {b}");
        }
        assert_ne!(title("a"), title("á"));
        assert_eq!(title("--"), "");
    }
}
