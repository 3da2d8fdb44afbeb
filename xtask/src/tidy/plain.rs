//! Comments and names that a reader would have to decode.
//!
//! A comment of one word says nothing that the name beside it does not; a function whose name asks (`is_…`) changes
//! nothing.

use super::Faults;
use crate::repository::Tree;

/// Functions that ask and remember what they saw.
const MAY_REMEMBER: &[(&str, &str)] = &[
    // Keeps the ids of the last events, to compare the next time.
    ("crates/audit/src/continuity.rs", "is_continued"),
    // Reads from the connection what has arrived.
    ("crates/egress/src/http.rs", "is_open"),
    // Keeps when it last looked.
    ("crates/kernel/src/follow.rs", "is_stale"),
];

pub(super) fn check(tree: &Tree) -> Faults {
    let mut faults = Faults::new();
    for (name, text) in tree.ending(".rs") {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|it| lines.get(it));
            let alone = [before, lines.get(at + 1)];
            let is_alone = alone
                .iter()
                .all(|it| it.and_then(|it| comment(it)).is_none());
            if let Some(word) = comment(line).filter(|it| is_alone && is_one_word(it)) {
                faults.push(format!(
                    "{name}:{}: the comment `{word}` says nothing: write a sentence, or leave it out",
                    at + 1
                ));
            }
            if let Some(function) = asking_and_changing(line)
                && !MAY_REMEMBER.contains(&(name, function))
            {
                faults.push(format!(
                    "{name}:{}: `{function}` takes `&mut self`: a name that begins with `is_` asks, so \
                     call it what it does",
                    at + 1
                ));
            }
        }
    }
    faults
}

/// The text of a line that is nothing but a comment, the head of a file aside.
fn comment(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?;
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    (!rest.starts_with('!')).then(|| rest.trim())
}

/// A sentence of one word. What has no period is a label that a schema shows.
fn is_one_word(text: &str) -> bool {
    let word = text.strip_suffix('.').unwrap_or_default();
    !word.is_empty() && word.chars().all(char::is_alphanumeric)
}

/// The name of a function that asks and may change what it is asked of.
fn asking_and_changing(line: &str) -> Option<&str> {
    let (head, _) = line.split_once("(&mut self")?;
    let name = head.rsplit(' ').next()?;
    (name.starts_with("is_") && head.contains("fn ")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> usize {
        check(&Tree::of(&[("crates/x/src/a.rs", text)])).len()
    }

    #[test]
    fn a_comment_of_one_word_is_refused() {
        assert_eq!(faults("struct A {\n    /// How.\n    how: u8,\n}\n"), 1);
        assert_eq!(faults("// Numbers.\nlet a = 1;\n"), 1);
        assert_eq!(faults("/// How it is done.\nfn f() {}\n"), 0);
        assert_eq!(faults("/// How it is\n/// done.\nfn f() {}\n"), 0);
        assert_eq!(faults("//! Ruby.\n"), 0);
        assert_eq!(faults("/// Tags\ntags: Vec<String>,\n"), 0);
        assert_eq!(faults("let url = \"//x.\";\n"), 0);
    }

    #[test]
    fn a_name_that_asks_changes_nothing() {
        assert_eq!(
            faults(concat!("    pub fn is_of(&mut", " self, it: u8) {\n")),
            1
        );
        assert_eq!(faults("    fn is_of(&self, it: u8) -> bool {\n"), 0);
        assert_eq!(faults("    fn set_of(&mut self, it: u8) {\n"), 0);
        let (name, function) = MAY_REMEMBER[0];
        let text = format!("fn {function}(&mut self) -> bool {{\n");
        assert!(check(&Tree::of(&[(name, &text)])).is_empty());
    }
}
