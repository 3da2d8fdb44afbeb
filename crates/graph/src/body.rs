//! The content of a document as a Markdown parser sees it.
//!
//! One walk over the parser's events finds headings, links and prose. Code, math, comments and other
//! HTML are events of their own, so that nothing in them is taken for a link or a tag; only anchors
//! are. A comment may also stand between two `%%`, on one line or on several.
//!
//! The parser takes `[[2]](page.md)` for a wikilink followed by a remark. Where every other reader of
//! Markdown sees a link, it is one here too.

use crate::context::{self, Lines};
use crate::{Link, Relation};
use crate::{html, target};
use kenning_text::line::{beginning, one_line};
use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// At most this many links are kept of one text.
pub(crate) const LINKS_MAX: usize = 10_000;
/// Images in links in images: deeper ones are ignored, because each would hold the text of all that
/// are inside it.
const NESTED_MAX: usize = 8;
const TEXT_CHARS_MAX: usize = 300;
/// How far into a line a quotation or a list may begin. For every line the parser walks through all
/// open ones, so that without a bound a text could take quadratic time.
const MARKERS_BYTES_MAX: usize = 200;
/// At most this many bytes of a link that begins with `[[` are looked at.
const BRACKETS_BYTES_MAX: usize = 2_048;

/// What was found. Ranges and lines are relative to the text that was walked.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) heading: Option<String>,
    pub(crate) headings: Vec<String>,
    pub(crate) links: Vec<Link>,
    /// Links whose targets do not look like documents but may be.
    pub(crate) others: Vec<Link>,
    /// Where the links and the others stand, in the same order.
    pub(crate) link_places: Vec<Range<usize>>,
    pub(crate) other_places: Vec<Range<usize>>,
    /// Links to places in the text itself; their targets are empty.
    pub(crate) within: Vec<Link>,
    pub(crate) has_more_links: bool,
    /// Runs of text outside code, math, HTML and links, each with the block around it.
    pub(crate) prose: Vec<(Range<usize>, Range<usize>)>,
    /// The readable text, without links to documents: their text is the name of another document.
    pub(crate) readable: Readable,
}

/// Readable text, in one line.
#[derive(Default)]
pub(crate) struct Readable {
    pub(crate) text: String,
    /// Where in the source the last of it ended.
    end: usize,
}

impl Readable {
    /// Adds the text at `range` of the source. A bar separates it from the text before, unless only
    /// spaces or emphasis are between them.
    fn push(&mut self, source: &str, text: &str, range: &Range<usize>) {
        let gap = source.get(self.end..range.start).unwrap_or("|");
        let is_joint = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '~' | '>' | '\\');
        if !gap.chars().all(is_joint) || gap.matches('\n').count() > 1 {
            self.text.push_str(" | ");
        } else if gap.contains(char::is_whitespace) {
            self.text.push(' ');
        }
        self.text.push_str(text);
        self.end = range.end;
    }
}

/// What begins and ends a comment.
const COMMENT: &str = "%%";

/// How texts are read.
fn options() -> Options {
    Options::ENABLE_WIKILINKS
        | Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_MATH
}

/// Where labels of links lead in `text[start..]`, and where that is said.
pub(crate) fn definitions(text: &str, start: usize) -> Vec<(String, Range<usize>)> {
    let tame = tamed(&text[start..]);
    let parser = Parser::new_ext(&tame, options());
    let all = parser.reference_definitions().iter();
    all.map(|(_, it)| {
        let span = it.span.start + start..it.span.end + start;
        (it.dest.to_string(), span)
    })
    .collect()
}

/// The headings of `text[start..]`: their levels, their texts, and where they stand.
pub(crate) fn headings(text: &str, start: usize) -> Vec<(u8, String, Range<usize>)> {
    let tame = tamed(&text[start..]);
    let mut found = Vec::new();
    let mut open: Option<(u8, String, Range<usize>)> = None;
    for (event, range) in Parser::new_ext(&tame, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let place = range.start + start..range.end + start;
                open = Some((level as u8, String::new(), place));
            }
            Event::Text(it) | Event::Code(it) => {
                if let Some((_, said, _)) = &mut open {
                    said.push_str(&it);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                found.extend(
                    open.take()
                        .map(|(level, said, place)| (level, words(&said, usize::MAX), place)),
                );
            }
            _ => {}
        }
    }
    found
}

/// Walks through `text[start..]`.
pub(crate) fn walk(text: &str, start: usize) -> Body {
    let content = &text[start..];
    let tame = tamed(content);
    let options = options();
    let mut walk = Walk {
        text,
        lines: Lines::of(text),
        whole: start..text.len(),
        blocks: Vec::new(),
        links: Vec::new(),
        heading: None,
        is_code: false,
        is_comment: false,
        html: None,
        anchor: None,
        definitions: HashMap::new(),
        run: None,
        body: Body::default(),
    };
    walk.body.readable.end = start;
    let parser = Parser::new_ext(&tame, options);
    if content.contains("[[") {
        let all = parser.reference_definitions().iter();
        walk.definitions = all
            .map(|(label, it)| (label_key(label), it.dest.to_string()))
            .collect();
    }
    for (event, range) in parser.into_offset_iter() {
        walk.step(event, range.start + start..range.end + start);
    }
    walk.end_anchor();
    walk.end_run();
    walk.body
}

/// Labels are compared without case and with spaces folded.
fn label_key(label: &str) -> String {
    words(label, usize::MAX).to_lowercase()
}

/// The same text, of the same length, without the markers that nest too deeply.
fn tamed(content: &str) -> Cow<'_, str> {
    let mut excess = Vec::new();
    let mut line_start = 0;
    for line in content.split_inclusive('\n') {
        if line.len() > MARKERS_BYTES_MAX {
            excess.extend(excess_marker(line.as_bytes()).map(|it| line_start + it));
        }
        line_start += line.len();
    }
    let mut rest = content;
    let mut out = String::new();
    let mut taken = 0;
    for at in excess {
        // Every marker is ASCII, and a letter in its place begins a paragraph.
        out.push_str(&rest[..at - taken]);
        out.push('x');
        rest = &rest[at - taken + 1..];
        taken = at + 1;
    }
    if taken == 0 {
        return Cow::Borrowed(content);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The first marker of a quotation, list or footnote that begins too far into its line.
fn excess_marker(line: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &line[at..];
        let ends_marker =
            |it: usize| matches!(rest.get(it), None | Some(b' ' | b'\t' | b'\n' | b'\r'));
        let length = match rest.first()? {
            b' ' | b'\t' => {
                at += 1;
                continue;
            }
            b'>' => 1,
            b'-' | b'+' | b'*' if ends_marker(1) => 1,
            b'0'..=b'9' => {
                let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
                let is_marker =
                    matches!(rest.get(digits), Some(b'.' | b')')) && ends_marker(digits + 1);
                if !is_marker {
                    return None;
                }
                digits + 1
            }
            b'[' if rest.get(1) == Some(&b'^') => {
                let end = rest.iter().position(|it| *it == b']')?;
                if rest.get(end + 1) != Some(&b':') {
                    return None;
                }
                end + 2
            }
            _ => return None,
        };
        if at > MARKERS_BYTES_MAX {
            return Some(at);
        }
        at += length;
    }
}

struct OpenLink {
    target: target::Target,
    relation: Relation,
    is_wiki: bool,
    text: String,
    range: Range<usize>,
}

struct Walk<'t> {
    text: &'t str,
    lines: Lines,
    whole: Range<usize>,
    /// Paragraphs, items, rows and headings around the current event.
    blocks: Vec<Range<usize>>,
    /// Links and images around it; `None` for those that do not lead to a document.
    links: Vec<Option<OpenLink>>,
    heading: Option<(HeadingLevel, String)>,
    is_code: bool,
    is_comment: bool,
    /// The HTML element around it whose content is code.
    html: Option<&'static str>,
    /// The anchor in HTML around it.
    anchor: Option<OpenLink>,
    /// Where labels of links lead.
    definitions: HashMap<String, String>,
    run: Option<Range<usize>>,
    body: Body,
}

impl Walk<'_> {
    fn step(&mut self, event: Event<'_>, range: Range<usize>) {
        if !matches!(event, Event::Text(_)) {
            self.end_run();
        }
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::Text(it) => self.prose(&it, range),
            Event::Code(it) | Event::InlineMath(it) | Event::DisplayMath(it) => self.say(&it),
            Event::SoftBreak | Event::HardBreak => self.say(" "),
            Event::InlineHtml(it) => self.inline_html(&it, range),
            Event::Html(_)
            | Event::FootnoteReference(_)
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.heading = Some((level, String::new()));
                self.blocks.push(range);
            }
            Tag::Paragraph
            | Tag::Item
            | Tag::TableHead
            | Tag::TableRow
            | Tag::FootnoteDefinition(_) => {
                // An HTML element that was left open ends with its block.
                self.html = None;
                self.end_anchor();
                self.blocks.push(range);
            }
            Tag::CodeBlock(_) => self.is_code = true,
            Tag::HtmlBlock => self.html_block(&range),
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => self.open_link(link_type, &dest_url, range, false),
            Tag::Image {
                link_type,
                dest_url,
                ..
            } => self.open_link(link_type, &dest_url, range, true),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.end_anchor();
                self.blocks.pop();
                self.end_heading();
            }
            TagEnd::Paragraph
            | TagEnd::Item
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition => {
                self.end_anchor();
                self.blocks.pop();
            }
            TagEnd::CodeBlock => self.is_code = false,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn open_link(&mut self, kind: LinkType, raw: &str, range: Range<usize>, is_image: bool) {
        let mut is_wiki = matches!(kind, LinkType::WikiLink { .. });
        let is_hidden = self.is_comment || self.html.is_some() || self.links.len() >= NESTED_MAX;
        let found = match kind {
            _ if is_hidden => None,
            LinkType::Autolink | LinkType::Email => None,
            LinkType::WikiLink { .. } => match self.behind_brackets(&range) {
                Some(raw) => {
                    is_wiki = false;
                    target::of_markdown(&raw, is_image)
                }
                None => target::of_wikilink(raw, is_image),
            },
            _ => target::of_markdown(raw, is_image),
        };
        if found.is_none() && !is_hidden && !is_image {
            self.keep_within(raw, is_wiki, &range);
        }
        self.links.push(found.map(|target| OpenLink {
            target,
            relation: if is_image {
                Relation::EMBED
            } else {
                Relation::LINK
            },
            is_wiki,
            text: String::new(),
            range,
        }));
    }

    /// Where `[[text]](destination)`, `[[text]][label]` and `[[label]]` lead, if `range` is such a link.
    fn behind_brackets(&self, range: &Range<usize>) -> Option<String> {
        let definition = |label: &str| self.definitions.get(&label_key(label)).cloned();
        let rest = self.text.get(range.end..)?;
        if let Some(after) = rest.strip_prefix('[')
            && let Some((label, _)) = after.split_once(']')
            && let Some(found) = definition(label)
        {
            return Some(found);
        }
        if rest.starts_with('(') {
            let end = self
                .text
                .floor_char_boundary(range.end + BRACKETS_BYTES_MAX);
            let source = self.text[range.start..end].trim_start_matches('!');
            let mut events = Parser::new_ext(source, Options::empty()).into_offset_iter();
            let first = events.nth(1);
            if let Some((
                Event::Start(Tag::Link {
                    link_type: LinkType::Inline,
                    dest_url,
                    ..
                }),
                place,
            )) = first
                && place.start == 0
                && target::is_destination(&dest_url)
            {
                return Some(dest_url.into_string());
            }
        }
        let inner = self.text.get(range.clone())?.trim_start_matches('!');
        definition(inner.strip_prefix("[[")?.strip_suffix("]]")?)
    }

    fn end_link(&mut self) {
        if let Some(Some(link)) = self.links.pop() {
            self.keep(link);
        }
    }

    fn end_anchor(&mut self) {
        if let Some(link) = self.anchor.take() {
            self.keep(link);
        }
    }

    fn keep(&mut self, link: OpenLink) {
        let (list, places) = if link.target.is_page {
            (&mut self.body.links, &mut self.body.link_places)
        } else {
            (&mut self.body.others, &mut self.body.other_places)
        };
        if list.len() >= LINKS_MAX {
            self.body.has_more_links |= link.target.is_page;
            return;
        }
        places.push(link.range.clone());
        let block = self.blocks.last().unwrap_or(&self.whole);
        list.push(Link {
            target: link.target.path,
            fragment: link.target.fragment,
            text: words(&link.text, TEXT_CHARS_MAX),
            relation: link.relation,
            is_wiki: link.is_wiki,
            context: context::around(self.text, block, &link.range),
            line: self.lines.at(link.range.start),
        });
    }

    /// Keeps a link that leads to a place of this same text.
    fn keep_within(&mut self, raw: &str, is_wiki: bool, range: &Range<usize>) {
        let Some(place) = target::within(raw, is_wiki) else {
            return;
        };
        if self.body.within.len() >= LINKS_MAX {
            return;
        }
        let source = self.text.get(range.clone()).unwrap_or_default();
        let shown = source.trim_start_matches('[').split(']').next();
        let shown = shown.unwrap_or_default();
        let shown = shown.split_once('|').map_or(shown, |it| it.1);
        self.body.within.push(Link {
            target: String::new(),
            fragment: Some(place),
            text: words(shown, TEXT_CHARS_MAX),
            relation: Relation::LINK,
            is_wiki,
            context: String::new(),
            line: self.lines.at(range.start),
        });
    }

    fn end_heading(&mut self) {
        let Some((level, text)) = self.heading.take() else {
            return;
        };
        let text = words(&text, usize::MAX);
        if text.is_empty() {
            return;
        }
        if level == HeadingLevel::H1 && self.body.heading.is_none() {
            self.body.heading = Some(text.clone());
        }
        self.body.headings.push(text);
    }

    fn prose(&mut self, text: &str, range: Range<usize>) {
        // Text that differs from the source is an escape or an entity.
        let is_verbatim = self.text.get(range.clone()) == Some(text);
        if self.is_code || !is_verbatim || !text.contains(COMMENT) {
            if !self.is_comment {
                self.prose_outside_comments(text, range, is_verbatim);
            }
            return;
        }
        let mut start = range.start;
        for (n, piece) in text.split(COMMENT).enumerate() {
            let end = start + piece.len();
            let is_open = self.is_comment;
            // A `%%` that is never closed does not begin a comment.
            self.is_comment =
                n > 0 && !is_open && self.text[start..].contains(COMMENT) || n == 0 && is_open;
            let is_sign = n > 0 && !is_open && !self.is_comment;
            if self.is_comment {
                self.end_run();
            } else {
                let shown = if is_sign {
                    start - COMMENT.len()
                } else {
                    start
                }..end;
                let text = self.text;
                if !shown.is_empty() {
                    self.prose_outside_comments(&text[shown.clone()], shown, true);
                }
            }
            start = end + COMMENT.len();
        }
    }

    fn prose_outside_comments(&mut self, text: &str, range: Range<usize>, is_verbatim: bool) {
        self.say(text);
        let is_link = !self.links.is_empty() || self.anchor.is_some();
        let leads_to_document = self.links.iter().any(Option::is_some);
        if !self.is_code && self.html.is_none() && !leads_to_document {
            self.body.readable.push(self.text, text, &range);
        }
        if self.is_code || is_link || self.html.is_some() || !is_verbatim {
            self.end_run();
            return;
        }
        match &mut self.run {
            Some(run) if run.end == range.start => run.end = range.end,
            _ => {
                self.end_run();
                self.run = Some(range);
            }
        }
    }

    fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            let block = self.blocks.last().unwrap_or(&self.whole);
            self.body.prose.push((run, block.clone()));
        }
    }

    /// Adds text to whatever is open.
    fn say(&mut self, text: &str) {
        if self.is_code || self.is_comment {
            return;
        }
        for link in self.links.iter_mut().flatten().chain(&mut self.anchor) {
            // A character has at most four bytes.
            if link.text.len() < TEXT_CHARS_MAX * 4 {
                link.text.push_str(text);
            }
        }
        if let Some((_, heading)) = &mut self.heading {
            heading.push_str(text);
        }
    }

    fn inline_html(&mut self, tag: &str, range: Range<usize>) {
        let name = tag.trim_start_matches(['<', '/']);
        let length = name.find(|it: char| !it.is_ascii_alphanumeric());
        let name = &name[..length.unwrap_or(name.len())];
        let is_end = tag.starts_with("</");
        if name.eq_ignore_ascii_case("a") && self.html.is_none() && !self.is_comment {
            self.end_anchor();
            if !is_end {
                let href = html::href(tag).unwrap_or_default();
                self.keep_within(&href, false, &range);
                self.anchor = anchor(&href, String::new(), range);
            }
        } else if is_end {
            if self.html.is_some_and(|it| it.eq_ignore_ascii_case(name)) {
                self.html = None;
            }
        } else if self.html.is_none() && !tag.ends_with("/>") {
            let mut all = html::VERBATIM.into_iter();
            self.html = all.find(|it| it.eq_ignore_ascii_case(name));
        }
    }

    fn html_block(&mut self, range: &Range<usize>) {
        self.end_anchor();
        for it in html::anchors(&self.text[range.clone()]) {
            let place = range.start + it.range.start..range.start + it.range.end;
            self.keep_within(&it.href, false, &place);
            if let Some(link) = anchor(&it.href, it.text, place) {
                self.keep(link);
            }
        }
    }
}

/// An anchor in HTML, if it leads to a file.
fn anchor(href: &str, text: String, range: Range<usize>) -> Option<OpenLink> {
    Some(OpenLink {
        target: target::of_markdown(href, false)?,
        relation: Relation::LINK,
        is_wiki: false,
        text,
        range,
    })
}

/// The words of a text, in one line.
pub(crate) fn words(text: &str, chars_max: usize) -> String {
    beginning(&one_line(text), chars_max).to_owned()
}
