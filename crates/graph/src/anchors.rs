//! The places in a page that a link can lead to.

use std::collections::BTreeSet;

/// At most this many are kept of one page.
const ANCHORS_MAX: usize = 2_000;
const ID_BYTES_MAX: usize = 200;

/// The names by which links reach places of a page: its headings, and elements with an id. Each is
/// spelled as [`anchor_key`] spells it.
pub(crate) fn anchors(text: &str, headings: &[String]) -> Vec<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    found.extend(headings.iter().map(|it| anchor_key(it)));
    for (before, end) in [
        ("id=\"", '"'),
        ("id='", '\''),
        ("name=\"", '"'),
        ("name='", '\''),
        ("{#", '}'),
    ] {
        for (at, _) in text.match_indices(before) {
            let rest = &text[at + before.len()..];
            let id = rest.split(end).next().unwrap_or_default();
            if id.len() <= ID_BYTES_MAX {
                found.insert(anchor_key(id));
            }
        }
    }
    found.remove("");
    found.into_iter().take(ANCHORS_MAX).collect()
}

/// A heading or a fragment in the form in which both are compared: programs derive ids from headings
/// in different ways, which agree in letters and digits.
#[must_use]
pub fn anchor_key(text: &str) -> String {
    let letters = text.chars().filter(|it| it.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Whether the fragment of a link matches one of a page's anchors. Blocks, lines and text fragments
/// are not checked.
#[must_use]
pub fn leads_to_anchor(fragment: &str, anchors: &[String]) -> bool {
    let last = fragment.rsplit('#').next().unwrap_or(fragment).trim();
    let is_line = last
        .strip_prefix(['L', 'l'])
        .is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()));
    if last.starts_with('^') || last.contains(":~:") || is_line || anchors.len() >= ANCHORS_MAX {
        return true;
    }
    let key = anchor_key(last);
    // The second heading with the same name has a number at its end.
    let without_number = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let has = |key: &str| anchors.iter().any(|it| it == key);
    key.is_empty() || key == "top" || has(&key) || has(without_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_leads_to_headings_and_ids_however_they_are_spelled() {
        let headings = ["Key rotation & you", "Über uns", "Usage"].map(ToOwned::to_owned);
        let text = "<a id=\"here\"></a> <a name='There'> {#custom-id}";
        let all = anchors(text, &headings);
        for fragment in [
            "key-rotation--you",
            "Key rotation & you",
            "über-uns",
            "usage-1",
            "Guide#Usage",
            "here",
            "there",
            "custom-id",
            "^block",
            "L10-L20",
            ":~:text=x",
            "top",
        ] {
            assert!(leads_to_anchor(fragment, &all), "{fragment}");
        }
        for fragment in ["nope", "key", "usage-more"] {
            assert!(!leads_to_anchor(fragment, &all), "{fragment}");
        }
    }
}
