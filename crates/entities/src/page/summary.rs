//! A page in lines, by the rules of the KOI servers.
//!
//! Of the first `main`, `article` or element whose class has `content`, else of the whole page: each
//! outermost block of more than five characters is a line, then each item of a list that is in none of them
//! and has more than ten. Navigation and the like are left out, and so is what no browser shows.

use super::dom::{Dom, Id};
use super::hidden::Hidden;
use kenning_text::line::one_line;
use std::collections::HashSet;

const DROPPED: &[&str] = &["script", "style", "nav", "footer", "aside", "header"];
const BLOCKS: &[&str] = &[
    "h1", "h2", "h3", "h4", "h5", "h6", "p", "div", "article", "section",
];
/// No space is added around these elements.
const INLINE: &[&str] = &[
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "mark", "q", "ruby", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt",
    "u", "var", "wbr",
];
const BLOCK_CHARS_MIN: usize = 6;
const ITEM_CHARS_MIN: usize = 11;

pub(super) fn of(dom: &Dom, hidden: &Hidden, title: Option<&str>) -> String {
    let top = container(dom);
    let is_dropped =
        |id: Id| DROPPED.contains(&dom.name(id)) || dom.name(id) == "head" || hidden.has(id);
    let mut lines: Vec<String> = Vec::new();
    let mut said: HashSet<String> = HashSet::new();
    let mut inside: HashSet<Id> = HashSet::new();
    for (kind, mark, n_min) in [
        (BLOCKS, "", BLOCK_CHARS_MIN),
        (&["li"][..], "- ", ITEM_CHARS_MIN),
    ] {
        for id in dom.below(top, is_dropped) {
            if inside.contains(&id) {
                inside.extend(dom.children(id));
                continue;
            }
            if !kind.contains(&dom.name(id)) {
                continue;
            }
            let text = flat(dom, id, |it| hidden.has(it));
            if text.chars().count() < n_min {
                continue;
            }
            inside.extend(dom.children(id));
            if said.insert(text.clone()) {
                lines.push(format!("{mark}{text}"));
            }
        }
    }
    let text = lines.join("\n");
    match title {
        Some(title) => format!("# {title}\n\n{text}"),
        None => text,
    }
}

fn container(dom: &Dom) -> Id {
    let of_name = |name: &str| dom.first(|it| dom.name(it) == name);
    let has_class = |it: Id| {
        let class = dom.attribute(it, "class").unwrap_or_default();
        class.to_lowercase().contains("content")
    };
    of_name("main")
        .or_else(|| of_name("article"))
        .or_else(|| dom.first(has_class))
        .unwrap_or(0)
}

/// All text below a node in one line. A block separates words on both of its sides.
pub(super) fn flat(dom: &Dom, id: Id, is_hidden: impl Fn(Id) -> bool) -> String {
    let mut out = String::new();
    let mut open: Vec<Option<Id>> = dom.children(id).iter().rev().copied().map(Some).collect();
    while let Some(it) = open.pop() {
        let Some(it) = it else {
            out.push(' ');
            continue;
        };
        if let Some(text) = dom.text(it) {
            out.push_str(text);
        } else if !DROPPED.contains(&dom.name(it)) && !is_hidden(it) {
            if !INLINE.contains(&dom.name(it)) {
                out.push(' ');
                open.push(None);
            }
            open.extend(dom.children(it).iter().rev().copied().map(Some));
        }
    }
    one_line(&out)
}
