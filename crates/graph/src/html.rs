//! Links in HTML: `<a href="page.md">`.
//!
//! Only tags, quoted values and comments are parsed, which is enough to find anchors. Code, scripts
//! and comments contain no links.

use std::ops::Range;

/// Elements whose content is shown as it is, or not at all.
pub(crate) const VERBATIM: [&str; 5] = ["code", "pre", "kbd", "script", "style"];

/// A link, and where it stands in the HTML.
#[derive(Debug, PartialEq)]
pub(crate) struct Anchor {
    pub(crate) href: String,
    pub(crate) text: String,
    pub(crate) range: Range<usize>,
}

/// A tag as it stands: `<a href="x">` or `</a>`.
struct Tag<'a> {
    name: &'a str,
    is_end: bool,
    source: &'a str,
    range: Range<usize>,
}

/// Every anchor in a piece of HTML. One that is not closed ends where the next begins, or with the
/// piece.
pub(crate) fn anchors(html: &str) -> Vec<Anchor> {
    let mut out = Vec::new();
    let mut open: Option<(Anchor, usize)> = None;
    let mut verbatim: Option<&'static str> = None;
    let close = |open: &mut Option<(Anchor, usize)>, end: usize, out: &mut Vec<Anchor>| {
        if let Some((mut anchor, content)) = open.take() {
            anchor.text = without_tags(&html[content..end]);
            anchor.range.end = end;
            out.push(anchor);
        }
    };
    let mut at = 0;
    while let Some(tag) = next_tag(html, at) {
        at = tag.range.end;
        if let Some(name) = verbatim {
            if tag.is_end && tag.name.eq_ignore_ascii_case(name) {
                verbatim = None;
            }
            continue;
        }
        if tag.name.eq_ignore_ascii_case("a") {
            close(&mut open, tag.range.start, &mut out);
            if !tag.is_end
                && let Some(href) = href(tag.source)
            {
                let anchor = Anchor {
                    href,
                    text: String::new(),
                    range: tag.range.clone(),
                };
                open = Some((anchor, tag.range.end));
            }
        } else if !tag.is_end && !tag.source.ends_with("/>") && open.is_none() {
            verbatim = VERBATIM
                .into_iter()
                .find(|it| it.eq_ignore_ascii_case(tag.name));
        }
    }
    close(&mut open, html.len(), &mut out);
    out
}

/// The next tag from a byte on; comments are passed over.
fn next_tag(html: &str, from: usize) -> Option<Tag<'_>> {
    let mut at = from;
    loop {
        let start = at + html.get(at..)?.find('<')?;
        let rest = &html[start..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            at = start + 4 + comment.find("-->")? + 3;
            continue;
        }
        let is_end = rest.starts_with("</");
        let named = &rest[if is_end { 2 } else { 1 }..];
        let length = named.find(|it: char| !it.is_ascii_alphanumeric());
        let name = &named[..length.unwrap_or(named.len())];
        if name.is_empty() {
            at = start + 1;
            continue;
        }
        let end = start + tag_length(rest)?;
        return Some(Tag {
            name,
            is_end,
            source: &html[start..end],
            range: start..end,
        });
    }
}

/// How long the tag is that a text begins with; `>` in quotes does not end it.
fn tag_length(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, it) in text.bytes().enumerate() {
        match (quote, it) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(it),
            (Some(open), _) if open == it => quote = None,
            _ => {}
        }
    }
    None
}

/// The `href` of a tag.
pub(crate) fn href(tag: &str) -> Option<String> {
    let mut rest = tag.trim_start_matches(['<', '/']);
    rest = rest.trim_start_matches(|it: char| it.is_ascii_alphanumeric());
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | '>' | '/'))?;
        let (name, after) = rest.split_at(length);
        let after = after.trim_start();
        let Some(value) = after.strip_prefix('=') else {
            if name.is_empty() {
                return None;
            }
            rest = after;
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.chars().next()? {
            quote @ ('"' | '\'') => value[1..].split_once(quote)?,
            _ => value.split_at(value.find(|c: char| c.is_whitespace() || c == '>')?),
        };
        if name.eq_ignore_ascii_case("href") {
            return Some(decoded(value));
        }
        rest = after;
    }
}

fn decoded(value: &str) -> String {
    const ENTITIES: [(&str, &str); 5] = [
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    let mut out = value.to_owned();
    for (entity, letter) in ENTITIES.into_iter().filter(|_| value.contains('&')) {
        out = out.replace(entity, letter);
    }
    out
}

fn without_tags(html: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while let Some(tag) = next_tag(html, at) {
        out.push_str(&html[at..tag.range.start]);
        at = tag.range.end;
    }
    out.push_str(&html[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expected: &[(&str, &str)]) {
        let found = anchors(html);
        let found: Vec<(&str, &str)> = found.iter().map(|it| (&*it.href, it.text.trim())).collect();
        assert_eq!(found, expected, "{html}");
    }

    #[test]
    fn anchors_are_found_however_they_are_written() {
        check("<a href=\"a.md\">A</a>", &[("a.md", "A")]);
        check("<A class='x>y' HREF = 'b.md' >B</A>", &[("b.md", "B")]);
        check("<a href=c.md>C</a>", &[("c.md", "C")]);
        check("<a href=d.md", &[]);
        check("<a disabled href=\"e.md\"/>E", &[("e.md", "E")]);
        check(
            "<p><a href=\"f.md\"><b>F</b> f</a> <a href='g.md'>G",
            &[("f.md", "F f"), ("g.md", "G")],
        );
        check("<a href=\"x.md?a=1&amp;b\">x</a>", &[("x.md?a=1&b", "x")]);
        check("<a name=\"here\"></a> <abbr href=\"x.md\">x</abbr>", &[]);
        check(
            "<!-- <a href=\"x.md\">x</a> --><a href=y.md>",
            &[("y.md", "")],
        );
        check("<code><a href=\"x.md\">x</a></code>", &[]);
        check("<a =x.md> <a =", &[]);
        check(
            "<a \u{e9}=\"\u{e9}\" href=\"\u{e9}.md\">\u{e9}</a>",
            &[("é.md", "é")],
        );
        check("a < b <a", &[]);
    }
}
