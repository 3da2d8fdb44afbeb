//! What a document's path says about it: its id, and its title and kind when the text names none.

use crate::DocType;
use kenning_text::script::is_combining_mark;
use std::collections::{HashMap, HashSet};
use unicode_normalization::UnicodeNormalization;

/// The id of a document at a path in its docs root: `Guides/First Steps.md` is `guides/first-steps`.
///
/// Everything but letters and digits becomes `-`, and folders stay folders. Letters of every script
/// are letters.
#[must_use]
pub fn slug(path_in_docs: &str) -> String {
    let path = path_in_docs.replace('\\', "/");
    let stem = match path.rsplit_once('.') {
        Some((stem, it)) if it.eq_ignore_ascii_case("md") => stem,
        _ => &path,
    };
    let mut out = String::with_capacity(stem.len());
    for it in stem.nfc().flat_map(char::to_lowercase) {
        let is_kept = it == '/' || it.is_alphanumeric() || is_combining_mark(it);
        if is_kept {
            out.push(it);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    if out.is_empty() {
        out.push('-');
    }
    out
}

/// The name of a file without its folder and `.md`.
#[must_use]
pub fn stem_of_path(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, it)) if it.eq_ignore_ascii_case("md") => stem,
        _ => name,
    }
}

/// The title of a file whose text has none: `first_steps.md` is `First Steps`.
#[must_use]
pub fn title_of_path(path: &str) -> String {
    let stem = stem_of_path(path);
    let words = stem.split(|c: char| c.is_whitespace() || c == '-' || c == '_');
    let words: Vec<String> = words
        .filter(|it| !it.is_empty())
        .map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(char::to_uppercase);
            first.into_iter().flatten().chain(letters).collect()
        })
        .collect();
    if words.is_empty() {
        return stem.to_owned();
    }
    words.join(" ")
}

/// File names that many folders have: they say which role a file has, not what it is about.
const GENERIC: [&str; 22] = [
    "readme",
    "index",
    "_index",
    "home",
    "overview",
    "introduction",
    "intro",
    "changelog",
    "changes",
    "history",
    "contributing",
    "contributors",
    "authors",
    "license",
    "copying",
    "notice",
    "security",
    "support",
    "code_of_conduct",
    "todo",
    "about",
    "main",
];

/// Whether a file, with its extension or without, has one of the generic names.
#[must_use]
pub fn is_generic(path: &str) -> bool {
    let name = path.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let stem = crate::target::without_extension(name).to_lowercase();
    // `README.de.md` and `README_zh-CN.md` are generic too.
    let first = stem.split(['.', '-']).next().unwrap_or_default();
    let is_translated = stem.starts_with("readme_") && stem.len() <= "readme_xx-xxxx".len();
    let word = stem.replace('-', "_");
    GENERIC.contains(&&*word) || (first == "readme") || is_translated
}

/// The kind of a document whose text names none, by the first of these words in its path.
#[must_use]
pub fn type_of_path(path_in_docs: &str) -> DocType {
    const WORDS: [(&str, DocType); 13] = [
        ("concept", DocType::Concept),
        ("component", DocType::Technical),
        ("technical", DocType::Technical),
        ("feature", DocType::Feature),
        ("primitive", DocType::Primitive),
        ("integration", DocType::Primitive),
        ("service", DocType::Service),
        ("api", DocType::Service),
        ("guide", DocType::Guide),
        ("tutorial", DocType::Guide),
        ("standard", DocType::Standard),
        ("reference", DocType::Technical),
        ("", DocType::Concept),
    ];
    let path = path_in_docs.to_lowercase();
    let mut words = WORDS.iter();
    let found = words.find(|(word, _)| path.contains(word));
    found.map_or(DocType::Concept, |it| it.1)
}

/// A unique id for each path: of several with the same slug the first keeps it, and the others get
/// `-2`, `-3` and so on, avoiding the slugs of others.
pub fn unique_ids<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let slugs: Vec<String> = paths.map(slug).collect();
    let mut taken: HashSet<String> = slugs.iter().cloned().collect();
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut out = Vec::with_capacity(slugs.len());
    for slug in &slugs {
        let number = numbers.entry(slug).or_insert(0);
        *number += 1;
        if *number == 1 {
            out.push(slug.clone());
            continue;
        }
        let mut id = format!("{slug}-{number}");
        while !taken.insert(id.clone()) {
            *number += 1;
            id = format!("{slug}-{number}");
        }
        out.push(id);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_an_id() {
        for (path, id) in [
            ("orphan_note.md", "orphan-note"),
            ("concepts/Auth Flow.md", "concepts/auth-flow"),
            ("a\\b.md", "a/b"),
            ("A--b__c  d.MD", "a-b-c-d"),
            ("(draft).md", "-draft-"),
            ("a.b.md", "a-b"),
            ("a.mdx", "a-mdx"),
            ("a", "a"),
            (".md", "-"),
            ("Größe/日本 語.md", "größe/日本-語"),
            ("E\u{301}te\u{301}.md", "été"),
            ("नमस्ते.md", "नमस्ते"),
        ] {
            assert_eq!(slug(path), id, "{path}");
        }
    }

    #[test]
    fn a_path_is_a_title() {
        for (path, title) in [
            ("docs/first_steps.md", "First Steps"),
            ("api-v2.md", "Api V2"),
            ("README.md", "README"),
            ("élan-vital.md", "Élan Vital"),
            ("日本.md", "日本"),
            ("a/---.md", "---"),
            ("", ""),
        ] {
            assert_eq!(title_of_path(path), title, "{path}");
        }
    }

    #[test]
    fn a_path_is_a_kind() {
        for (path, kind) in [
            ("Concepts/api.md", DocType::Concept),
            ("components/button.md", DocType::Technical),
            ("technical/x.md", DocType::Technical),
            ("features/guide.md", DocType::Feature),
            ("primitives/x.md", DocType::Primitive),
            ("integrations/x.md", DocType::Primitive),
            ("services/x.md", DocType::Service),
            ("API/x.md", DocType::Service),
            ("guides/x.md", DocType::Guide),
            ("tutorials/x.md", DocType::Guide),
            ("standards/x.md", DocType::Standard),
            ("reference/x.md", DocType::Technical),
            ("x.md", DocType::Concept),
            ("", DocType::Concept),
        ] {
            assert_eq!(type_of_path(path), kind, "{path}");
        }
    }

    #[test]
    fn ids_differ_whatever_the_paths() {
        let paths = ["a b.md", "a-b-2.md", "a-b.md", "a_b.md", "c.md"];
        let ids = unique_ids(paths.into_iter());
        assert_eq!(ids, ["a-b", "a-b-2", "a-b-3", "a-b-4", "c"]);
        let same = vec!["x.md"; 3_000];
        let ids: HashSet<String> = unique_ids(same.into_iter()).into_iter().collect();
        assert_eq!(ids.len(), 3_000);
    }
}
