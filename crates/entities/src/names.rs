//! Keys of names: for comparing, for URIs and for sounds.
//!
//! [`normalized`] and [`alias_key`] are exactly those of the KOI servers, bugs included, because URIs
//! are made from them and peers hold the same URIs. To compare names as people mean them, use
//! [`kenning_text::fold::name`].

use kenning_text::hex;
use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

pub use kenning_text::sound::phonetic_key;

/// At most this many characters of a slug in a URI.
const SLUG_CHARS_MAX: usize = 50;

/// A name in composed Unicode form (NFC), as it is typed: file systems and some clients decompose
/// letters with accents.
#[must_use]
pub fn composed(name: &str) -> Cow<'_, str> {
    if is_nfc_quick(name.chars()) == IsNormalized::Yes {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(name.nfc().collect())
    }
}

/// A name in decomposed Unicode form (NFD), as some file systems keep names.
#[must_use]
pub fn decomposed(name: &str) -> String {
    name.nfd().collect()
}

/// The key of an entity's name: lower case, with `-`, `_` and space alike, without a leading `@`.
///
/// Three spaces become two: the original does this, and its URIs depend on it.
#[must_use]
pub fn normalized(name: &str) -> String {
    let name = composed(name).to_lowercase();
    let name = name.trim().replace(['_', '-'], " ").replace("  ", " ");
    name.trim_start_matches('@').to_owned()
}

/// The key of another name of an entity, which may be written as a link: `[[People/Ann|A]]` is `ann`.
#[must_use]
pub fn alias_key(alias: &str) -> String {
    let alias = alias.trim();
    let link = alias
        .strip_prefix("[[")
        .and_then(|it| it.strip_suffix("]]"));
    let target = link.map_or(alias, |link| link.split('|').next().unwrap_or(link));
    let name = target.rsplit('/').next().unwrap_or(target);
    composed(name).to_lowercase().trim().to_owned()
}

/// A name as it appears in a URI.
#[must_use]
pub fn slug(name: &str) -> String {
    let slug = normalized(name).replace(' ', "-").replace('\'', "");
    slug.chars().take(SLUG_CHARS_MAX).collect()
}

/// The URI of an entity. A missing type is the empty string.
#[must_use]
pub fn entity_uri(name: &str, kind: &str) -> String {
    let hash = sha256(&format!("{kind}:{}", normalized(name)), 12);
    let (kind, slug) = (kind.to_lowercase(), slug(name));
    format!("orn:personal-koi.entity:{kind}-{slug}-{hash}")
}

/// The RID of an entity in the KOI network.
#[must_use]
pub fn network_rid(uri: &str, name: &str, kind: &str) -> String {
    let (kind, slug, hash) = (kind.to_lowercase(), slug(name), sha256(uri, 16));
    format!("orn:koi-net.{kind}:{slug}+{hash}")
}

/// The RID of a web page.
#[must_use]
pub fn page_rid(url: &str) -> String {
    let place = authority(url).replace(['.', ':'], "_");
    format!("orn:web.page:{place}/{}", sha256(url, 16))
}

/// Host and port of a URL, as they stand in it.
#[must_use]
pub fn authority(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |it| it.1);
    after.split(['/', '?', '#']).next().unwrap_or(after)
}

/// The RID of a file in a repository.
#[must_use]
pub fn file_rid(repository: &str, path: &str) -> String {
    format!("github:{repository}:{path}")
}

/// The RID of a passage of a document.
#[must_use]
pub fn chunk_rid(document: &str, index: usize) -> String {
    format!("{document}#chunk{index}")
}

/// The RID of the passage of a function, class, module or interface.
#[must_use]
pub fn code_chunk_rid(document: &str, name: &str) -> String {
    format!("{document}#entity:{name}")
}

/// The path of the note that a document's RID names: without the prefix of its kind and without
/// `.md`.
#[must_use]
pub fn vault_path(document: &str) -> &str {
    let prefixes = ["orn:obsidian.entity:Notes/", "vault:notes/", "vault:"];
    let bare = prefixes.iter().find_map(|it| document.strip_prefix(it));
    let bare = bare.unwrap_or(document);
    bare.strip_suffix(".md").unwrap_or(bare)
}

/// The day with which a document's file name begins: `YYYY-MM-DD`.
#[must_use]
pub fn document_date(document: &str) -> Option<&str> {
    let path = vault_path(document);
    let day = path.rsplit('/').next()?.get(..10)?;
    let fits = |(at, it): (usize, u8)| match at {
        4 | 7 => it == b'-',
        _ => it.is_ascii_digit(),
    };
    day.bytes().enumerate().all(fits).then_some(day)
}

/// The first digits of a hash.
fn sha256(text: &str, n_digits: usize) -> String {
    let mut digits = hex::sha256(text.as_bytes());
    digits.truncate(n_digits);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_vector_is_as_the_notes_say() {
        assert_eq!(chunk_rid("github:a/b:c.md", 3), "github:a/b:c.md#chunk3");
        let file = file_rid("a/b", "c.py");
        assert_eq!(
            code_chunk_rid(&file, "helper"),
            "github:a/b:c.py#entity:helper"
        );
        let uri = entity_uri("Salish Sea", "Bioregion");
        let rid = network_rid(&uri, "Salish Sea", "Bioregion");
        assert!(
            rid.starts_with("orn:koi-net.bioregion:salish-sea+"),
            "{rid}"
        );
        assert_eq!(rid.rsplit('+').next().unwrap().len(), 16);
    }

    #[test]
    fn a_letter_and_its_accent_are_one_whether_written_as_one_or_as_two() {
        let (one, two) = ("Zo\u{eb} Fl\u{fc}gge", "Zoe\u{308} Flu\u{308}gge");
        assert_eq!(normalized(one), normalized(two));
        assert_eq!(alias_key(one), alias_key(two));
        assert_eq!(entity_uri(one, "Person"), entity_uri(two, "Person"));
        assert!(matches!(composed(one), Cow::Borrowed(_)));
    }

    #[test]
    fn a_document_says_which_note_and_which_day_it_is() {
        for (document, path, date) in [
            (
                "vault:Meetings/2026-01-05 Sync.md",
                "Meetings/2026-01-05 Sync",
                Some("2026-01-05"),
            ),
            (
                "orn:obsidian.entity:Notes/People/Bill.md",
                "People/Bill",
                None,
            ),
            ("vault:notes/x.md", "x", None),
            ("web:orn:web.page:a/b", "web:orn:web.page:a/b", None),
            ("vault:日本日本日本日本日本", "日本日本日本日本日本", None),
        ] {
            assert_eq!(vault_path(document), path);
            assert_eq!(document_date(document), date, "{document}");
        }
    }
}
