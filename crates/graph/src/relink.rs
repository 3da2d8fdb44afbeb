//! Rewrites the links of one text, and nothing else in it: so that a note can be renamed and moved.

use crate::link::Link;
use crate::target;
use crate::{body, fields, frontmatter};
use std::collections::BTreeMap;
use std::ops::Range;

/// How a link is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `[[target#place|text]]`
    Wiki,
    /// `[text](target#place)`, `[text][label]`, `<a href="target">`
    Markdown,
    /// A name in a field: `related: target`
    Bare,
}

/// A text whose links lead elsewhere: `decide` is asked for each link, in no particular order, and says what its
/// target becomes, or nothing where it stays.
///
/// # Errors
/// The first link that cannot be rewritten, because of how it is written.
pub fn relink(
    text: &str,
    decide: &mut dyn FnMut(&Link) -> Option<String>,
) -> Result<String, Box<Link>> {
    let head = frontmatter::read(text);
    let found = body::walk(text, head.body_start);
    let mut edits: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    let mut put = |(place, new): (Range<usize>, String)| {
        edits.insert(place.start, (place.end, new));
    };
    let links = found.links.iter().zip(&found.link_places);
    let others = found.others.iter().zip(&found.other_places);
    for (link, place) in links.chain(others) {
        let Some(new) = decide(link) else { continue };
        let form = if link.is_wiki {
            Form::Wiki
        } else {
            Form::Markdown
        };
        let edit = rewritten(text, place, form, link, &new)
            .or_else(|| by_definition(text, head.body_start, link, &new));
        put(edit.ok_or_else(|| Box::new(link.clone()))?);
    }
    let mut taken = Vec::new();
    for link in fields::links(text, &head) {
        let Some(new) = decide(&link) else { continue };
        let edit = in_fields(text, &head.block, &link, &new, &mut taken);
        put(edit.ok_or_else(|| Box::new(link.clone()))?);
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, (end, new)) in edits {
        if start < at {
            continue;
        }
        out.push_str(&text[at..start]);
        out.push_str(&new);
        at = end;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

/// The edit of a link that stands at a place, if its target is found there.
fn rewritten(
    text: &str,
    place: &Range<usize>,
    form: Form,
    link: &Link,
    new: &str,
) -> Option<(Range<usize>, String)> {
    let source = text.get(place.clone())?;
    match form {
        Form::Wiki => {
            let start = source.find("[[")? + 2;
            let inner = &source[start..];
            let inner = &inner[..inner.find("]]")?];
            let raw = inner.split('|').next()?;
            let path = path_of_wiki(raw);
            let is_it = target::of_wikilink(raw, source.starts_with('!'))?.path == link.target;
            let at = place.start + start + (path.as_ptr() as usize - inner.as_ptr() as usize);
            is_it.then(|| (at..at + path.len(), new.to_owned()))
        }
        Form::Markdown => {
            let at = |range: Range<usize>| place.start + range.start..place.start + range.end;
            let ends = source.rmatch_indices("](").map(|it| it.0 + 2);
            let quoted = source.match_indices("href=").map(|it| it.0 + 5);
            for start in ends.chain(quoted) {
                if let Some((range, new)) = destination(source, start, link, new) {
                    return Some((at(range), new));
                }
            }
            None
        }
        Form::Bare => {
            let is_it = source.trim() == link.target;
            is_it.then(|| (place.clone(), new.to_owned()))
        }
    }
}

/// The part of a wikilink that names the page, without the spaces around it.
fn path_of_wiki(raw: &str) -> &str {
    let raw = raw.trim().trim_end_matches('\\');
    let raw = match raw.split_once('#') {
        Some((path, _)) => path,
        None => match raw.rsplit_once('^') {
            Some((path, block))
                if !block.is_empty()
                    && block.chars().all(|it| it.is_alphanumeric() || it == '-') =>
            {
                path
            }
            _ => raw,
        },
    };
    raw.trim()
}

/// The path of the destination that begins near `start`, if it is the link's, and what it becomes.
fn destination(
    source: &str,
    start: usize,
    link: &Link,
    new: &str,
) -> Option<(Range<usize>, String)> {
    let rest = source.get(start..)?;
    let start = start + rest.len() - rest.trim_start().len();
    let rest = source.get(start..)?;
    let (open, close): (usize, &[char]) = match rest.chars().next()? {
        '<' => (1, &['>']),
        '"' => (1, &['"']),
        '\'' => (1, &['\'']),
        _ => (0, &[' ', '\t', '\n', '\r']),
    };
    let inner = rest.get(open..)?;
    let end = match open {
        0 => bare_end(inner, close),
        _ => inner.find(close)?,
    };
    let raw = inner.get(..end)?;
    if target::of_markdown(raw, false)?.path != link.target {
        return None;
    }
    let path = raw.split(['#', '?']).next()?;
    let new = match rest.starts_with('<') {
        true => new.to_owned(),
        false => encoded(new),
    };
    let at = start + open;
    Some((at..at + path.len(), new))
}

/// Where a destination without brackets ends: at a space, or at the parenthesis that closes the link.
fn bare_end(text: &str, spaces: &[char]) -> usize {
    let mut depth = 0_usize;
    for (at, it) in text.char_indices() {
        match it {
            '(' => depth += 1,
            ')' if depth == 0 => return at,
            ')' => depth -= 1,
            it if spaces.contains(&it) => return at,
            _ => {}
        }
    }
    text.len()
}

/// A path as a destination without brackets can hold it.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for it in path.chars() {
        match it {
            ' ' | '%' | '(' | ')' | '<' | '>' | '#' | '?' | '"' | '\'' | '\\' | '^' | '`' | '|' => {
                out.push_str(&format!("%{:02X}", it as u32));
            }
            it => out.push(it),
        }
    }
    out
}

/// The edit of the line that says where the label of a link leads: `[label]: target`.
fn by_definition(
    text: &str,
    start: usize,
    link: &Link,
    new: &str,
) -> Option<(Range<usize>, String)> {
    let all = body::definitions(text, start).into_iter();
    let mut own =
        all.filter(|it| target::of_markdown(&it.0, false).is_some_and(|it| it.path == link.target));
    let (_, span) = own.next()?;
    let source = text.get(span.clone())?;
    let colon = source.find("]:")? + 2;
    let (range, new) = destination(source, colon, link, new)?;
    Some((span.start + range.start..span.start + range.end, new))
}

/// The edit of a link in the fields before a text. `taken` are places that were edited for others.
fn in_fields(
    text: &str,
    block: &Range<usize>,
    link: &Link,
    new: &str,
    taken: &mut Vec<usize>,
) -> Option<(Range<usize>, String)> {
    let inside = text.get(block.clone())?;
    let mut places: Vec<(Range<usize>, Form)> = Vec::new();
    if link.is_wiki {
        let open = inside.match_indices("[[");
        places.extend(open.map(|(at, _)| (block.start + at..block.end, Form::Wiki)));
    }
    // A bare name, or a path: the whole entry of a list, or the whole value.
    let is_edge = |it: Option<char>| it.is_none_or(|it| ",:-[]\"' \t\n\r#".contains(it));
    for (at, _) in inside.match_indices(&link.target) {
        let end = at + link.target.len();
        let (before, after) = (&inside[..at], &inside[end..]);
        if is_edge(before.chars().next_back()) && is_edge(after.chars().next()) {
            places.push((block.start + at..block.start + end, Form::Bare));
        }
    }
    // On the line that the link was read from, else on a later one of the same field.
    let line = |place: &Range<usize>| line_of(text, place.start);
    let on_line = places.iter().filter(|it| line(&it.0) == link.line);
    let later = places.iter().filter(|it| line(&it.0) > link.line);
    for (place, form) in on_line.chain(later) {
        if let Some((range, new)) = rewritten(text, place, *form, link, new)
            && !taken.contains(&range.start)
        {
            taken.push(range.start);
            return Some((range, new));
        }
    }
    None
}

/// The number of the line, from 1, that a place is on.
fn line_of(text: &str, at: usize) -> u32 {
    let n = text.as_bytes()[..at].iter().filter(|it| **it == b'\n');
    u32::try_from(n.count() + 1).unwrap_or(u32::MAX)
}

/// The path of a file as a link in another file names it: `../b/c.md`.
#[must_use]
pub fn relative_path(from: &str, to: &str) -> String {
    let folders = |path: &'_ str| -> Vec<String> {
        let folder = path.rsplit_once('/').map_or("", |it| it.0);
        let parts = folder.split('/').filter(|it| !it.is_empty());
        parts.map(ToOwned::to_owned).collect()
    };
    let (from, there) = (folders(from), folders(to));
    let n_same = from
        .iter()
        .zip(&there)
        .take_while(|it| it.0 == it.1)
        .count();
    let up = std::iter::repeat_n("..", from.len() - n_same);
    let down = there[n_same..].iter().map(String::as_str);
    let name = to.rsplit('/').next().unwrap_or(to);
    let parts: Vec<&str> = up.chain(down).chain([name]).collect();
    parts.join("/")
}

/// The path from the root that a path in a file means, or nothing if it leads above the root.
#[must_use]
pub fn root_path(from: &str, path: &str) -> Option<String> {
    let base = match path.starts_with('/') {
        true => "",
        false => from.rsplit_once('/').map_or("", |it| it.0),
    };
    let mut out: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                out.pop()?;
            }
            it => out.push(it),
        }
    }
    Some(out.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_link_is_rewritten_and_nothing_else() {
        let text = "---\nup: \"[[Old]]\"\nrelated: Old, Other\nsee_also:\n  - Old\n---\n\
            [[Old]] [[Old|shown]] ![[Old#Place]] [[Old^b1]] `[[Old]]`\n\
            [x](Old.md) [y](<Old.md> \"t\") [z](Old.md#h) ![[Old.png]] [r][one]\n\
            | [[Old\\|cell]] |\n|---|\n\n<a href=\"Old.md\">h</a>\n\n[one]: Old.md\n\n```\n[[Old]]\n```\n";
        let new = relink(text, &mut |link| match link.target.as_str() {
            "Old" => Some("New One".to_owned()),
            "Old.md" => Some("New One.md".to_owned()),
            _ => None,
        });
        let expected = "---\nup: \"[[New One]]\"\nrelated: New One, Other\nsee_also:\n  - New One\n---\n\
            [[New One]] [[New One|shown]] ![[New One#Place]] [[New One^b1]] `[[Old]]`\n\
            [x](New%20One.md) [y](<New One.md> \"t\") [z](New%20One.md#h) ![[Old.png]] [r][one]\n\
            | [[New One\\|cell]] |\n|---|\n\n<a href=\"New%20One.md\">h</a>\n\n[one]: New%20One.md\n\n```\n[[Old]]\n```\n";
        assert_eq!(new.unwrap(), expected);
        assert_eq!(relink(text, &mut |_| None).unwrap(), text);
        let text = "---\nrelated: Old\nup: \"[[Old]]\"\nby: Older\n---\n";
        let new = relink(text, &mut |link| {
            (link.target == "Old").then(|| "N".to_owned())
        });
        let expected = "---\nrelated: N\nup: \"[[N]]\"\nby: Older\n---\n";
        assert_eq!(new.unwrap(), expected);
    }

    #[test]
    fn paths_lead_from_one_file_to_another() {
        for (from, to, expected) in [
            ("a.md", "b.md", "b.md"),
            ("x/a.md", "b.md", "../b.md"),
            ("a.md", "x/b.md", "x/b.md"),
            ("x/y/a.md", "x/z/b.md", "../z/b.md"),
        ] {
            assert_eq!(relative_path(from, to), expected);
            assert_eq!(root_path(from, expected).as_deref(), Some(to));
        }
        assert_eq!(root_path("a.md", "../b.md"), None);
        assert_eq!(root_path("x/a.md", "/b.md").as_deref(), Some("b.md"));
    }
}
