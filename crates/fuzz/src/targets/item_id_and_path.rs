//! Names of items, and where their files lie.

use super::{ensure, owned, pieces, text};
use crate::{Subject, Target};
use kenning_items::grants::Glob;
use kenning_items::{Category, ItemId, ItemType, Place};
use kenning_vault::Name;

pub(super) const TARGET: Target = Target {
    name: "item_id_and_path",
    about: "what is a name of an item stays beneath its folder, and reads back",
    words: WORDS,
    seeds: || {
        owned(&[
            "tools/x/y.py",
            "a_b-c.1",
            "deep/er/SKILL.md",
            "k/tool.yaml",
            "docs/**/*.md",
            "a.b/c.md",
        ])
    },
    generate: |source| {
        pieces(
            source,
            WORDS,
            &[("a/", ""), ("../", ""), ("*/", ""), ("**/", "")],
        )
        .into_bytes()
    },
    open: || Box::new(Names),
    pass_cases: 3_000,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "/",
    "..",
    ".",
    "-",
    "_",
    "a",
    "B",
    "0",
    ".md",
    ".py",
    ".sh",
    ".js",
    ".yaml",
    ".yml",
    "SKILL.md",
    "tool.yaml",
    "manifest.yaml",
    "*",
    "**",
    "?",
    "[a-z]",
    "{a,b}",
    "\\",
    ":",
    "~",
    "CON",
    "%2e",
    "\u{ff0e}",
    "\u{2024}",
    "\u{e9}",
    "e\u{301}",
    "$HOME",
    "//",
    "./",
    "\0",
];

struct Names;

fn stays(what: &str, path: &str) -> Result<(), String> {
    let name = Name::parse(path)
        .map_err(|it| format!("{what}: `{path}` is refused by the vault: {it}"))?;
    ensure!(
        name.as_str() == path,
        "{what}: `{path}` is `{}` in plain words",
        name.as_str()
    );
    Ok(())
}

impl Subject for Names {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let text = text(input);
        if let Ok(id) = text.parse::<ItemId>() {
            ensure!(!id.as_str().contains('/'), "id: `{id}` is more than a part");
            stays("id", id.as_str())?;
        }
        if let Ok(category) = text.parse::<Category>()
            && !category.is_root()
        {
            stays("category", category.as_str())?;
            stays("category", &category.join("x.md"))?;
        }
        for item_type in ItemType::ALL {
            if let Some(place) = Place::of(item_type, &text) {
                let path = place.path();
                stays("path", &path)?;
                ensure!(
                    Place::of(item_type, &path).as_ref() == Some(&place),
                    "`{path}` reads back otherwise"
                );
            }
        }
        let (one, other) = text.split_once('\n').unwrap_or((&text, &text));
        if let (Ok(one), Ok(other)) = (Glob::parse(one), Glob::parse(other)) {
            ensure!(one.covers(&one), "a pattern does not cover itself");
            if one.covers(&other) && other.is_path() {
                ensure!(
                    one.overlaps(&other),
                    "a pattern covers what it does not touch"
                );
            }
            ensure!(
                one.overlaps(&other) == other.overlaps(&one),
                "one touches the other, but not back"
            );
        }
        Ok(())
    }
}
