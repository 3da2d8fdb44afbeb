//! A text as verbatim slices.

use crate::tokens;
use kenning_store::Passage;

/// About how long a passage is: a paragraph or two.
pub const PASSAGE_BYTES: usize = 1_500;

/// Cuts a text at paragraph ends, else at line ends, else at spaces, else where it must. The slices
/// joined are the text.
pub fn passages(title: &str, body: &str) -> Vec<Passage> {
    let title_tokens = tokens(title).join(" ");
    let mut out = Vec::new();
    let mut start = 0;
    // A text without a body is still found by its title.
    while start < body.len() || out.is_empty() {
        let end = cut(body, start);
        let text = &body[start..end];
        out.push(Passage {
            n: u32::try_from(out.len()).unwrap_or(u32::MAX),
            text: text.to_owned(),
            start: start as u64,
            tokens: tokens(text).join(" "),
            title_tokens: title_tokens.clone(),
        });
        if end == body.len() {
            break;
        }
        start = end;
    }
    out
}

fn cut(body: &str, start: usize) -> usize {
    if body.len() - start <= PASSAGE_BYTES {
        return body.len();
    }
    let hard = body.ceil_char_boundary(start + PASSAGE_BYTES);
    let window = &body[start..hard];
    // Not in the first half: a short passage followed by a long one helps nobody.
    let late = |at: Option<usize>, len: usize| {
        at.map(|at| at + len).filter(|&end| end > PASSAGE_BYTES / 2)
    };
    late(window.rfind("\n\n"), 2)
        .or_else(|| late(window.rfind('\n'), 1))
        .or_else(|| late(window.rfind(' '), 1))
        .map_or(hard, |end| start + end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_text_is_found_by_its_title() {
        let all = passages("Falcon", "");
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].title_tokens, "falcon");
    }

    #[test]
    fn paragraphs_stay_whole() {
        let paragraph = "word ".repeat(150);
        let all = passages("", &format!("{paragraph}\n\n{paragraph}\n\n{paragraph}"));
        assert!(all.iter().rev().skip(1).all(|it| it.text.ends_with("\n\n")));
    }

    proptest! {
        #[test]
        fn the_slices_joined_are_the_text(body in "[a-zé会 \\n]{0,9000}") {
            let all = passages("t", &body);
            let joined: String = all.iter().map(|it| it.text.as_str()).collect();
            prop_assert_eq!(&joined, &body);
            for passage in &all {
                let start = usize::try_from(passage.start).unwrap();
                prop_assert!(body[start..].starts_with(&passage.text));
                prop_assert!(passage.text.len() < PASSAGE_BYTES + 4);
            }
        }
    }
}
