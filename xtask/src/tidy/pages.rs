//! Pages for people: every one can be reached, every link leads somewhere, every error has its page.

use super::Faults;
use crate::repository::Tree;
use std::collections::BTreeSet;

/// Where readers begin.
const ENTRANCES: &[&str] = &["README.md", "docs/README.md"];

pub(super) fn check(tree: &Tree) -> Faults {
    let mut faults = links_resolve(tree);
    faults.extend(pages_are_reachable(tree));
    faults.extend(errors_have_pages(tree));
    faults
}

fn links_resolve(tree: &Tree) -> Faults {
    let mut faults = Faults::new();
    for (page, text) in tree.ending(".md") {
        for link in links(text) {
            let found = resolve(page, &link).is_some_and(|target| {
                let folder = format!("{target}/");
                target.is_empty()
                    || tree.has(&target)
                    || tree.0.keys().any(|name| name.starts_with(&folder))
            });
            if !found {
                faults.push(format!("{page}: the link `{link}` leads nowhere"));
            }
        }
    }
    faults
}

fn pages_are_reachable(tree: &Tree) -> Faults {
    if !tree.has(ENTRANCES[0]) {
        return Faults::new();
    }
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<String> = ENTRANCES.iter().map(ToString::to_string).collect();
    while let Some(page) = open.pop() {
        let Some(text) = tree.0.get(&page) else {
            continue;
        };
        if seen.insert(page.clone()) && page.ends_with(".md") {
            open.extend(links(text).iter().filter_map(|it| resolve(&page, it)));
        }
    }
    let pages = tree.ending(".md").map(|(name, _)| name);
    pages
        .filter(|name| name.starts_with("docs/") && !seen.contains(*name))
        .map(|name| {
            format!("{name}: no page leads here: link it from README.md or a page of docs/")
        })
        .collect()
}

fn errors_have_pages(tree: &Tree) -> Faults {
    let names = kenning_core::CODES.iter().map(|row| row.name);
    names
        .map(|name| format!("docs/errors/{name}.md"))
        .filter(|page| !tree.has(page))
        .map(|page| format!("{page} is missing: every error code has its page"))
        .collect()
}

/// The relative targets of a page's links, without what follows `#`.
fn links(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        // Every second piece between backticks is code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for piece in prose.split("](").skip(1) {
            let target = piece.split([')', ' ']).next().unwrap_or_default();
            let target = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !target.is_empty() && !elsewhere {
                out.push(target.trim_matches(['<', '>']).to_owned());
            }
        }
    }
    out
}

/// The name of what a page's link leads to; `None` when it leads out of the repository.
fn resolve(page: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    if link.starts_with('/') {
        parts.clear();
    }
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_refused() {
        let tree = Tree::of(&[
            (
                "docs/a.md",
                "[b](b.md) [c](../c.md#x) [d](https://x.example/) [e](#here)",
            ),
            (
                "docs/b.md",
                "`[x](no.md)`\n```\n[x](no.md)\n```\n[up](..) [out](../../x.md)",
            ),
        ]);
        let faults = links_resolve(&tree);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("../c.md"), "{faults:?}");
        assert!(faults[1].contains("../../x.md"), "{faults:?}");
    }

    #[test]
    fn a_page_that_no_page_leads_to_is_refused() {
        let files = [
            ("README.md", "[docs](docs/a.md)"),
            ("docs/a.md", "[b](./sub/b.md)"),
            ("docs/sub/b.md", ""),
            ("docs/lost.md", "[a](a.md)"),
        ];
        let faults = pages_are_reachable(&Tree::of(&files));
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("docs/lost.md"), "{faults:?}");
        assert!(pages_are_reachable(&Tree::of(&files[1..])).is_empty());
    }

    #[test]
    fn an_error_without_a_page_is_refused() {
        let all: Vec<String> = kenning_core::CODES
            .iter()
            .map(|row| format!("docs/errors/{}.md", row.name))
            .collect();
        let files: Vec<(&str, &str)> = all.iter().map(|name| (name.as_str(), "")).collect();
        assert!(errors_have_pages(&Tree::of(&files)).is_empty());
        assert_eq!(errors_have_pages(&Tree::of(&files[1..])).len(), 1);
    }
}
