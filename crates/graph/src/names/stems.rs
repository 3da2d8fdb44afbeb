//! Which links a name can affect.
//!
//! Every key by which a link is looked up ends in the last part of its target or of a path that it
//! may mean, and every key of a document ends in the last part of one of its names. So a document
//! that gains or loses a name changes the meaning of a link only if the two share such a part. Parts
//! are kept as hashes: a collision costs a lookup and nothing else.

use super::{Named, Origin, joined, names_of, places};
use crate::Link;
use crate::target::without_extension;
use kenning_text::fold;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The last parts of every key by which a link is looked up.
#[must_use]
pub fn stems_of_link(from: &Origin<'_>, link: &Link) -> Vec<u64> {
    let target = link.target.replace('\\', "/");
    let own = [Some(target.clone()), joined("", &target)];
    let paths = places(from, link.is_wiki, &target);
    let mut stems: Vec<u64> = own
        .into_iter()
        .chain(paths)
        .flatten()
        .map(|it| stem(&it))
        .collect();
    stems.sort_unstable();
    stems.dedup();
    stems
}

/// The last parts of every key of a document.
#[must_use]
pub fn stems_of_names(named: &Named<'_>) -> Vec<u64> {
    let whole = named.path;
    let folder = whole.rsplit_once('/').map_or("", |it| it.0);
    let names = names_of(named).into_iter().map(|it| it.0);
    let mut stems: Vec<u64> = names
        .chain([whole.to_owned(), folder.to_owned()])
        .map(|it| stem(&it))
        .collect();
    stems.sort_unstable();
    stems.dedup();
    stems
}

fn stem(path: &str) -> u64 {
    let folded = fold::title(without_extension(path.trim_matches('/')).trim_matches('/'));
    let last = folded.rsplit('/').next().unwrap_or(&folded);
    let mut hasher = DefaultHasher::new();
    last.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::{Files, Meaning, Names};
    use super::*;
    use crate::kinds::Relation;

    const PATHS: [&str; 9] = [
        "a.md",
        "A b.md",
        "x/a.md",
        "x/index.md",
        "x/y/README.md",
        "x/y/a-b.md",
        "index.md",
        "x.y.md",
        "z/Über.md",
    ];
    const TARGETS: [&str; 18] = [
        "a",
        "a.md",
        "A_B",
        "x/a",
        "../a",
        "./a.md",
        "/x/a",
        "x",
        "x/",
        "y",
        ".",
        "..",
        "/",
        "x.y",
        "über",
        "x/y/a b",
        "Alias/one",
        "One",
    ];

    fn named(path: &'static str, aliases: &'static [String]) -> Named<'static> {
        Named {
            id: path,
            path,
            docs_path: path,
            title: "One",
            heading: None,
            aliases,
        }
    }

    fn meanings(names: &Names, from: &Origin<'_>) -> Vec<Meaning> {
        let links = TARGETS
            .iter()
            .flat_map(|it| [link(it, true), link(it, false)]);
        let meant = links.map(|it| names.resolve(from, &it, &Files::new()));
        meant.collect()
    }

    fn link(target: &str, is_wiki: bool) -> Link {
        Link {
            target: target.to_owned(),
            fragment: None,
            text: String::new(),
            relation: Relation::LINK,
            is_wiki,
            context: String::new(),
            line: 1,
        }
    }

    /// Every document is removed once: each link that changes its meaning shares a part with it, and
    /// inserting it again restores the state before.
    #[test]
    fn only_a_link_that_shares_a_part_with_a_name_can_mean_another_document() {
        static ALIASES: [String; 0] = [];
        let mut n_changed = 0;
        for is_note in [true, false] {
            for origin in ["a.md", "x/y/a-b.md", "z/q.md"] {
                let from = Origin {
                    path: origin,
                    docs_root: "",
                    is_note,
                };
                for (gone, path) in (0_u32..).zip(PATHS) {
                    let mut names = Names::new();
                    for (n, each) in (0..).zip(PATHS) {
                        names.insert(n, &named(each, &ALIASES));
                    }
                    let before = meanings(&names, &from);
                    let own = named(path, &ALIASES);
                    names.remove(gone, &own);
                    let after = meanings(&names, &from);
                    let stems = stems_of_names(&own);
                    let links = TARGETS
                        .iter()
                        .flat_map(|it| [link(it, true), link(it, false)]);
                    for ((link, before), after) in links.zip(&before).zip(&after) {
                        let shares = stems_of_link(&from, &link)
                            .iter()
                            .any(|it| stems.contains(it));
                        assert!(
                            before == after || shares,
                            "{} from {origin} without {}: {before:?} {after:?}",
                            link.target,
                            own.path
                        );
                        n_changed += usize::from(before != after);
                    }
                    names.insert(gone, &own);
                    assert_eq!(meanings(&names, &from), before, "{}", own.path);
                }
            }
        }
        assert!(n_changed > 50, "{n_changed}");
    }
}
