//! Links in the frontmatter: `related: [auth, ./b.md]`, `parent: "[[Home]]"`, `author: "[[Ada]]"`.

use crate::body;
use crate::context::CONTEXT_CHARS_MAX;
use crate::frontmatter::Frontmatter;
use crate::target;
use crate::{Link, Relation};
use serde_json::Value;

/// Links that are kept of one frontmatter.
const LINKS_MAX: usize = 1_000;

/// Keys whose values are names even without brackets.
const NAMES: [&str; 5] = ["related", "parent", "up", "see_also", "depends_on"];
/// Of those, the keys with a single value: a comma is part of the name.
const ONE_NAME: [&str; 2] = ["parent", "up"];
/// Keys whose values are about this document and never name another.
const OWN: [&str; 7] = ["title", "tags", "tag", "aliases", "alias", "type", "status"];

/// The links of every field, in order.
pub(crate) fn links(text: &str, frontmatter: &Frontmatter) -> Vec<Link> {
    let mut out = Vec::new();
    for (key, value) in &frontmatter.fields {
        let word = key.trim().to_lowercase().replace([' ', '-'], "_");
        if OWN.contains(&&*word) {
            continue;
        }
        let field = Field { key, word: &word };
        let entries = entries(value);
        let found: Vec<Link> = entries.iter().flat_map(|it| field.links(it)).collect();
        if found.is_empty() {
            continue;
        }
        let mut lines = FieldLines::of(text, frontmatter, key);
        for mut link in found {
            if out.len() >= LINKS_MAX {
                return out;
            }
            (link.line, link.context) = lines.find(&link.target);
            out.push(link);
        }
    }
    out
}

enum Entry {
    /// `[[a]]` without quotes, which YAML reads as a list in a list.
    Wikilink(String),
    Text(String),
}

fn entries(value: &Value) -> Vec<Entry> {
    let entry = |it: &Value| match it {
        Value::String(it) => Some(Entry::Text(it.clone())),
        _ => unquoted(it).map(Entry::Wikilink),
    };
    match value {
        Value::Array(items) => unquoted(value).map_or_else(
            || items.iter().filter_map(entry).collect(),
            |it| vec![Entry::Wikilink(it)],
        ),
        _ => entry(value).into_iter().collect(),
    }
}

fn unquoted(value: &Value) -> Option<String> {
    let [Value::Array(inner)] = value.as_array()?.as_slice() else {
        return None;
    };
    let words: Option<Vec<&str>> = inner.iter().map(Value::as_str).collect();
    words.filter(|it| !it.is_empty()).map(|it| it.join(", "))
}

struct Field<'a> {
    key: &'a str,
    /// The key in small letters with underscores.
    word: &'a str,
}

impl Field<'_> {
    fn links(&self, entry: &Entry) -> Vec<Link> {
        let text = match entry {
            Entry::Wikilink(it) => {
                let (name, alias) = it.split_once('|').unwrap_or((it, it));
                return self.link(name, alias, true).into_iter().collect();
            }
            Entry::Text(it) => it.trim(),
        };
        let takes_names = NAMES.contains(&self.word);
        let takes_paths = takes_names || self.word == "links";
        let mut links = body::walk(text, 0).links;
        links.retain(|it| it.is_wiki || takes_paths);
        for link in &mut links {
            link.relation = Relation::of_key(self.key);
        }
        if !links.is_empty() || !takes_names || text.contains("](") {
            return links;
        }
        if ONE_NAME.contains(&self.word) {
            return self.name(text).into_iter().collect();
        }
        text.split(',').filter_map(|it| self.name(it)).collect()
    }

    fn name(&self, name: &str) -> Option<Link> {
        let name = name.trim();
        self.link(name, name, !target::is_path(name))
    }

    fn link(&self, raw: &str, text: &str, is_wiki: bool) -> Option<Link> {
        let found = if is_wiki {
            target::of_wikilink(raw, false)
        } else {
            target::of_markdown(raw, false).filter(|it| it.is_page)
        }?;
        Some(Link {
            target: found.path,
            fragment: found.fragment,
            text: text.trim().to_owned(),
            relation: Relation::of_key(self.key),
            is_wiki,
            context: String::new(),
            line: 1,
        })
    }
}

/// Finds the line of a field on which a target is. Targets come in the order of the lines, so each
/// line is read once.
struct FieldLines<'a> {
    /// The lines of the block from the current one on, with their numbers.
    rest: Vec<(u32, &'a str)>,
    /// The line where the last target was found, at first that of the key.
    found: (u32, &'a str),
    /// What of the current line may hold a target.
    tail: &'a str,
}

impl<'a> FieldLines<'a> {
    fn of(text: &'a str, frontmatter: &Frontmatter, key: &str) -> Self {
        let block = &text[frontmatter.block.clone()];
        // The block begins in the second line.
        let lines = (2u32..).zip(block.lines());
        let mut lines = lines.skip_while(|(_, line)| value_after(line, key).is_none());
        let found = lines.next().unwrap_or((1, ""));
        let is_of_field = |it: &(u32, &str)| {
            it.1.starts_with(|c: char| c.is_whitespace() || c == '-' || c == ']') || it.1.is_empty()
        };
        let mut rest: Vec<_> = lines.take_while(is_of_field).collect();
        rest.reverse();
        Self {
            rest,
            found,
            tail: value_after(found.1, key).unwrap_or_default(),
        }
    }

    fn find(&mut self, target: &str) -> (u32, String) {
        let mut at = self.found;
        let mut tail = self.tail;
        let mut n_taken = self.rest.len();
        loop {
            if tail.contains(target) {
                self.found = at;
                self.tail = tail;
                self.rest.truncate(n_taken);
                break;
            }
            let Some(next) = n_taken.checked_sub(1) else {
                break;
            };
            n_taken = next;
            at = self.rest[next];
            tail = at.1;
        }
        (self.found.0, body::words(self.found.1, CONTEXT_CHARS_MAX))
    }
}

/// What follows `key:` in a line that begins so.
fn value_after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let line = line.trim_start_matches(['"', '\'']);
    let rest = line.strip_prefix(key);
    let rest = rest.map(|it| it.trim_start_matches(['"', '\'']).trim_start());
    rest?.strip_prefix([':', '='])
}
