//! A change as a unified diff. Nothing is written.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines around a change that are shown.
const CONTEXT: usize = 3;

/// What becomes of single lines, by their numbers from 1: any number of lines each.
pub(crate) type Edits = BTreeMap<usize, Vec<String>>;

/// The diff of a file.
pub(crate) fn diff(path: &str, text: &str, edits: &Edits) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let changed: Vec<usize> = edits
        .iter()
        .filter(|(line, new)| {
            let old = line.checked_sub(1).and_then(|it| lines.get(it));
            old.is_some_and(|old| new.as_slice() != [(*old).to_owned()])
        })
        .map(|it| *it.0)
        .collect();
    if changed.is_empty() {
        return String::new();
    }
    let mut out = format!("--- a/{path}\n+++ b/{path}\n");
    let mut shift: isize = 0;
    for hunk in changed.chunk_by(|a, b| b - a <= 2 * CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let from = first.saturating_sub(CONTEXT).max(1);
        let to = (last + CONTEXT).min(lines.len());
        let mut body = String::new();
        let (n_old, mut n_new) = (to + 1 - from, 0);
        for number in from..=to {
            let old = lines.get(number - 1).copied().unwrap_or_default();
            match edits.get(&number).filter(|_| hunk.contains(&number)) {
                None => {
                    let _ = writeln!(body, " {old}");
                    n_new += 1;
                }
                Some(new) => {
                    // A line that stays among new ones is shown as what it is.
                    let stays = new.iter().position(|it| it == old);
                    if stays.is_none() {
                        let _ = writeln!(body, "-{old}");
                    }
                    for (n, it) in new.iter().enumerate() {
                        let sign = if stays == Some(n) { ' ' } else { '+' };
                        let _ = writeln!(body, "{sign}{it}");
                    }
                    n_new += new.len();
                }
            }
        }
        let begins = from.checked_add_signed(shift).unwrap_or(from);
        let _ = write!(out, "@@ -{from},{n_old} +{begins},{n_new} @@\n{body}");
        shift += isize::try_from(n_new).unwrap_or(0) - isize::try_from(n_old).unwrap_or(0);
    }
    out
}

/// A line with a whole word replaced wherever it stands; `None` if it does not.
pub(crate) fn replace_word(line: &str, word: &str, new: &str) -> Option<String> {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    let (mut out, mut rest, mut is_found) = (String::new(), line, false);
    while let Some(at) = rest.find(word) {
        let before = rest[..at]
            .chars()
            .next_back()
            .or_else(|| out.chars().next_back());
        let after = rest[at + word.len()..].chars().next();
        let is_whole = !before.is_some_and(is_part) && !after.is_some_and(is_part);
        out.push_str(&rest[..at]);
        out.push_str(if is_whole { new } else { word });
        is_found |= is_whole;
        rest = &rest[at + word.len()..];
    }
    out.push_str(rest);
    is_found.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_what_becomes_of_lines() {
        let text = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let edits = Edits::from([
            (2, vec!["B".to_owned()]),
            (11, vec!["new".to_owned(), "k".to_owned()]),
        ]);
        let expected = "--- a/x\n+++ b/x\n@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n\
                        @@ -8,5 +8,6 @@\n h\n i\n j\n+new\n k\n l\n";
        assert_eq!(diff("x", text, &edits), expected);
        assert_eq!(
            diff(
                "x",
                text,
                &Edits::from([(2, vec!["b".to_owned()]), (99, Vec::new())])
            ),
            ""
        );
    }

    #[test]
    fn only_whole_words_are_replaced() {
        let found = replace_word("load(load_all, x.load, reload)", "load", "read");
        assert_eq!(found.as_deref(), Some("read(load_all, x.read, reload)"));
        assert_eq!(replace_word("loader", "load", "read"), None);
        assert_eq!(replace_word("aa", "a", "b"), None);
    }
}
