//! The content of a document as a Markdown parser sees it.
//!
//! One walk over the parser's events finds headings, links and prose. Code, math, comments and other
//! HTML are events of their own, so nothing in them is taken for a link or a tag. Between two `%%` stands
//! a comment, too, of one line or of many.

use crate::context::{self, Lines};
use crate::target;
use crate::{Link, Relation};
use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};
use std::borrow::Cow;
use std::ops::Range;

/// Links that are kept of one text.
pub(crate) const LINKS_MAX: usize = 10_000;
/// Images in links in images: deeper ones are not looked at, because each would hold the text of all
/// that are inside it.
const NESTED_MAX: usize = 8;
const TEXT_CHARS_MAX: usize = 300;
/// How far into a line a quotation or a list may begin. For every line the parser walks through all
/// that are open, so that without a bound a text could take the square of its length.
const MARKERS_BYTES_MAX: usize = 200;

/// What was found. Ranges and lines are of the text that was walked.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) heading: Option<String>,
    pub(crate) headings: Vec<String>,
    pub(crate) links: Vec<Link>,
    pub(crate) has_more_links: bool,
    /// Runs of text outside code, math, HTML and links, each with the block around it.
    pub(crate) prose: Vec<(Range<usize>, Range<usize>)>,
    /// What a reader reads, without links to documents: they name what they lead to.
    pub(crate) readable: Readable,
}

/// Text that a reader reads, in one line.
#[derive(Default)]
pub(crate) struct Readable {
    pub(crate) text: String,
    /// Where in the source the last of it ended.
    end: usize,
}

impl Readable {
    /// Adds text that stands at `range` of the source. What is not joined to what came before by spaces
    /// or marks of emphasis is parted from it by a bar.
    fn push(&mut self, source: &str, text: &str, range: &Range<usize>) {
        let gap = source.get(self.end..range.start).unwrap_or("|");
        let is_joint = |it: char| it.is_whitespace() || matches!(it, '*' | '_' | '~' | '>' | '\\');
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

/// Walks through `text[start..]`.
pub(crate) fn walk(text: &str, start: usize) -> Body {
    let content = &text[start..];
    let tame = tamed(content);
    let options = Options::ENABLE_WIKILINKS
        | Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_MATH;
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
        run: None,
        body: Body::default(),
    };
    walk.body.readable.end = start;
    for (event, range) in Parser::new_ext(&tame, options).into_offset_iter() {
        walk.step(event, range.start + start..range.end + start);
    }
    walk.end_run();
    walk.body
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
    /// Links and images around it, `None` for those that lead to no document.
    links: Vec<Option<OpenLink>>,
    heading: Option<(HeadingLevel, String)>,
    is_code: bool,
    is_comment: bool,
    /// The HTML element around it whose content is code.
    html: Option<&'static str>,
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
            Event::InlineHtml(it) => self.inline_html(&it),
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
                self.blocks.push(range);
            }
            Tag::CodeBlock(_) => self.is_code = true,
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
                self.blocks.pop();
                self.end_heading();
            }
            TagEnd::Paragraph
            | TagEnd::Item
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition => {
                self.blocks.pop();
            }
            TagEnd::CodeBlock => self.is_code = false,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn open_link(&mut self, kind: LinkType, raw: &str, range: Range<usize>, is_image: bool) {
        let is_wiki = matches!(kind, LinkType::WikiLink { .. });
        let is_hidden = self.is_comment || self.html.is_some() || self.links.len() >= NESTED_MAX;
        let found = match kind {
            _ if is_hidden => None,
            LinkType::Autolink | LinkType::Email => None,
            LinkType::WikiLink { .. } => target::of_wikilink(raw, is_image),
            _ => target::of_markdown(raw, is_image),
        };
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

    fn end_link(&mut self) {
        let Some(Some(link)) = self.links.pop() else {
            return;
        };
        if self.body.links.len() >= LINKS_MAX {
            self.body.has_more_links = true;
            return;
        }
        let block = self.blocks.last().unwrap_or(&self.whole);
        self.body.links.push(Link {
            target: link.target.path,
            fragment: link.target.fragment,
            text: words(&link.text, TEXT_CHARS_MAX),
            relation: link.relation,
            is_wiki: link.is_wiki,
            context: context::around(self.text, block, &link.range),
            line: self.lines.at(link.range.start),
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
        // What is spelled otherwise in the source is an escape or an entity.
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
            // One that never ends is no comment but two signs.
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
        let is_link = !self.links.is_empty();
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

    /// Adds to the text of whatever is open.
    fn say(&mut self, text: &str) {
        if self.is_code || self.is_comment {
            return;
        }
        for link in self.links.iter_mut().flatten() {
            // A character has at most four bytes.
            if link.text.len() < TEXT_CHARS_MAX * 4 {
                link.text.push_str(text);
            }
        }
        if let Some((_, heading)) = &mut self.heading {
            heading.push_str(text);
        }
    }

    fn inline_html(&mut self, tag: &str) {
        const CODE: [&str; 5] = ["code", "pre", "kbd", "script", "style"];
        let name = tag.trim_start_matches(['<', '/']);
        let length = name.find(|it: char| !it.is_ascii_alphanumeric());
        let name = &name[..length.unwrap_or(name.len())];
        if tag.starts_with("</") {
            if self.html.is_some_and(|it| it.eq_ignore_ascii_case(name)) {
                self.html = None;
            }
        } else if self.html.is_none() && !tag.ends_with("/>") {
            self.html = CODE.into_iter().find(|it| it.eq_ignore_ascii_case(name));
        }
    }
}

/// The words of a text, in one line.
pub(crate) fn words(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= chars_max {
        return line;
    }
    line.chars().take(chars_max).collect()
}
