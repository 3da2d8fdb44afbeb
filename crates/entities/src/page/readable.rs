//! A page for readers: its content, block by block.

use super::dom::{Dom, Id, WALK_DEPTH_MAX};
use super::hidden::Hidden;
use kenning_text::line::one_line;

/// Never content.
const SILENT: &[&str] = &[
    "script", "style", "template", "svg", "iframe", "object", "canvas", "button", "select",
    "input", "textarea", "head", "rt", "rp", "dialog",
];
/// Around the content, unless the page has nothing else.
const AROUND: &[&str] = &["nav", "footer", "aside", "header", "noscript"];
const AROUND_ROLES: &[&str] = &[
    "navigation",
    "banner",
    "contentinfo",
    "complementary",
    "search",
    "menu",
];
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "hr",
    "html",
    "legend",
    "main",
    "menu",
    "nav",
    "noscript",
    "ol",
    "p",
    "section",
    "summary",
    "table",
    "tbody",
    "tfoot",
    "thead",
    "ul",
    "option",
    "optgroup",
];
/// A container with less than one of this many words of the page is not its content.
const SHARE_MIN: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Heading(usize),
    Paragraph,
    /// How deep.
    Item(usize),
    Row,
    Code,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    text: String,
}

pub(super) fn of(dom: &Dom, hidden: &Hidden, title: Option<&str>) -> String {
    let blocks = best(dom, hidden);
    let mut out = String::new();
    let says_title = blocks.iter().any(|it| matches!(it.kind, Kind::Heading(1)));
    if let Some(title) = title.filter(|_| !says_title) {
        out.push_str(&format!("# {title}"));
    }
    let mut last = None;
    for block in &blocks {
        if !out.is_empty() {
            let are_close = matches!(
                (last, block.kind),
                (Some(Kind::Item(_)), Kind::Item(_)) | (Some(Kind::Row), Kind::Row)
            );
            out.push_str(if are_close { "\n" } else { "\n\n" });
        }
        out.push_str(&block.rendered());
        last = Some(block.kind);
    }
    out
}

/// The container that the page marks as its content, if it is a good part of the page; otherwise the
/// page without navigation and the like; otherwise all of it.
fn best(dom: &Dom, hidden: &Hidden) -> Vec<Block> {
    let page = Reader::new(dom, hidden, true).read(0);
    if page.is_empty() {
        return Reader::new(dom, hidden, false).read(0);
    }
    let Some(container) = container(dom, hidden) else {
        return page;
    };
    let inside = Reader::new(dom, hidden, true).read(container);
    if n_letters(&inside) * SHARE_MIN < n_letters(&page) {
        return page;
    }
    inside
}

fn n_letters(blocks: &[Block]) -> usize {
    blocks.iter().map(|it| it.text.len()).sum()
}

/// The one element that is marked as the page's content. If there are several articles, there is
/// none.
fn container(dom: &Dom, hidden: &Hidden) -> Option<Id> {
    let all = dom.below(0, |element| {
        SILENT.contains(&dom.name(element)) || hidden.has(element)
    });
    let is_main =
        |id: &&Id| dom.name(**id) == "main" || dom.attribute(**id, "role") == Some("main");
    if let Some(main) = all.iter().find(is_main) {
        return Some(*main);
    }
    let mut articles = all.iter().filter(|it| dom.name(**it) == "article");
    match (articles.next(), articles.next()) {
        (Some(one), None) => Some(*one),
        _ => None,
    }
}

impl Block {
    fn rendered(&self) -> String {
        match self.kind {
            Kind::Heading(level) => format!("{} {}", "#".repeat(level), self.text),
            Kind::Paragraph | Kind::Row => self.text.clone(),
            Kind::Item(depth) => {
                let indent = "  ".repeat(depth.saturating_sub(1));
                let text = self.text.replace('\n', &format!("\n{indent}  "));
                format!("{indent}- {text}")
            }
            Kind::Code => format!("```\n{}\n```", self.text),
        }
    }
}

struct Reader<'a> {
    dom: &'a Dom,
    hidden: &'a Hidden,
    leaves_out_around: bool,
    blocks: Vec<Block>,
    /// What was read since the last block.
    line: String,
    list_depth: usize,
    /// The depth of the item whose text has not begun.
    item: Option<usize>,
}

impl<'a> Reader<'a> {
    fn new(dom: &'a Dom, hidden: &'a Hidden, leaves_out_around: bool) -> Self {
        Self {
            dom,
            hidden,
            leaves_out_around,
            blocks: Vec::new(),
            line: String::new(),
            list_depth: 0,
            item: None,
        }
    }

    fn read(mut self, top: Id) -> Vec<Block> {
        self.children(top, 0);
        self.end(Kind::Paragraph);
        self.blocks
    }

    fn children(&mut self, id: Id, depth: u32) {
        for &child in self.dom.children(id) {
            self.node(child, depth + 1);
        }
    }

    fn node(&mut self, id: Id, depth: u32) {
        if let Some(text) = self.dom.text(id) {
            push_text(&mut self.line, text);
            return;
        }
        let name = self.dom.name(id);
        if depth > WALK_DEPTH_MAX || self.is_left_out(id, name) {
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end(Kind::Paragraph);
                let level = name[1..].parse().unwrap_or(1);
                self.children(id, depth);
                self.end(Kind::Heading(level));
            }
            "li" => self.item(id, depth),
            "ul" | "ol" | "menu" => {
                self.end(Kind::Paragraph);
                self.list_depth += 1;
                self.children(id, depth);
                self.end(Kind::Paragraph);
                self.list_depth -= 1;
            }
            "pre" | "listing" | "xmp" => self.code(id),
            "tr" => self.row(id, depth),
            "br" => self.line.push('\n'),
            _ if BLOCKS.contains(&name) => {
                self.end(Kind::Paragraph);
                self.children(id, depth);
                self.end(Kind::Paragraph);
            }
            _ => self.children(id, depth),
        }
    }

    fn is_left_out(&self, id: Id, name: &str) -> bool {
        let role = self.dom.attribute(id, "role").unwrap_or_default();
        let is_around = AROUND.contains(&name) || AROUND_ROLES.contains(&role);
        SILENT.contains(&name)
            || name == "a" && self.is_anchor_mark(id)
            || self.hidden.has(id)
            || is_around && self.leaves_out_around && !self.has_heading(id)
    }

    /// Whether this is a sign that links to its own place.
    fn is_anchor_mark(&self, id: Id) -> bool {
        let [child] = self.dom.children(id) else {
            return false;
        };
        let text = self.dom.text(*child).map(str::trim);
        text.is_some_and(|it| matches!(it, "#" | "¶" | "§"))
    }

    /// A header may hold the headline.
    fn has_heading(&self, id: Id) -> bool {
        let is_headline = |it: &Id| self.dom.name(*it) == "h1";
        self.dom.name(id) == "header" && self.dom.below(id, |_| false).iter().any(is_headline)
    }

    fn item(&mut self, id: Id, depth: u32) {
        self.end(Kind::Paragraph);
        let outer = self.item.replace(self.list_depth.max(1));
        self.children(id, depth);
        self.end(Kind::Paragraph);
        self.item = outer;
    }

    /// Space in code means something.
    fn code(&mut self, id: Id) {
        self.end(Kind::Paragraph);
        let mut code = String::new();
        let is_silent =
            |element| SILENT.contains(&self.dom.name(element)) || self.hidden.has(element);
        for it in self.dom.below(id, is_silent) {
            match self.dom.text(it) {
                Some(text) => code.push_str(text),
                None if self.dom.name(it) == "br" => code.push('\n'),
                None => {}
            }
        }
        let text = code.trim_matches('\n').trim_end();
        if !text.trim().is_empty() {
            self.blocks.push(Block {
                kind: Kind::Code,
                text: text.to_owned(),
            });
        }
    }

    /// A row of one cell, or of cells that hold tables and headings, is only there for the layout.
    fn row(&mut self, id: Id, depth: u32) {
        self.end(Kind::Paragraph);
        let is_cell = |id: &Id| matches!(self.dom.name(*id), "td" | "th") && !self.hidden.has(*id);
        let cells: Vec<Id> = self
            .dom
            .children(id)
            .iter()
            .copied()
            .filter(is_cell)
            .collect();
        if cells.len() < 2 || cells.iter().any(|it| self.has_blocks(*it)) {
            for cell in cells {
                self.children(cell, depth + 1);
                self.end(Kind::Paragraph);
            }
            return;
        }
        let mut texts = Vec::new();
        for cell in cells {
            self.children(cell, depth + 1);
            texts.push(one_line(&std::mem::take(&mut self.line)));
        }
        if texts.iter().any(|it| !it.is_empty()) {
            self.blocks.push(Block {
                kind: Kind::Row,
                text: texts.join(" | "),
            });
        }
    }

    fn has_blocks(&self, id: Id) -> bool {
        let names = [
            "table", "pre", "ul", "ol", "dl", "p", "div", "h1", "h2", "h3", "h4", "h5", "h6",
            "section",
        ];
        let below = self.dom.below(id, |_| false);
        below.iter().any(|it| names.contains(&self.dom.name(*it)))
    }

    /// Ends a block with what was read since the last.
    fn end(&mut self, kind: Kind) {
        let lines: Vec<String> = self.line.split('\n').map(one_line).collect();
        self.line.clear();
        let lines: Vec<&str> = lines
            .iter()
            .map(String::as_str)
            .filter(|it| !it.is_empty())
            .collect();
        if lines.is_empty() {
            return;
        }
        let (kind, text) = match (kind, self.item.take()) {
            (Kind::Heading(_), _) => (kind, lines.join(" ")),
            (_, Some(depth)) => (Kind::Item(depth), lines.join("\n")),
            (_, None) => (kind, lines.join("\n")),
        };
        self.blocks.push(Block { kind, text });
    }
}

fn push_text(line: &mut String, text: &str) {
    line.extend(text.chars().map(|c| if c == '\n' { ' ' } else { c }));
}
