//! A page's tree: what html5ever builds, in one list of nodes.
//!
//! Nodes are numbers, so a tree of any depth is dropped without recursion. Reading stops where a page
//! is deeper or larger than any that people write: there the standard's algorithm takes quadratic
//! time.

use html5ever::interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, LocalName, Namespace, ParseOpts, QualName, parse_document};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};

const DEPTH_MAX: u32 = 400;
const NODES_MAX: usize = 400_000;
/// Bytes that are read between two checks of the limits.
const STEP_BYTES: usize = 1024;
/// Real pages are not deeper; what is deeper is not read.
pub(super) const WALK_DEPTH_MAX: u32 = 1_000;

pub(super) type Id = usize;

#[derive(Debug)]
enum Data {
    Document,
    Element {
        name: QualName,
        attributes: Vec<Attribute>,
    },
    Text(String),
    /// Comments, processing instructions and the content of templates.
    Silent,
}

#[derive(Debug)]
struct Node {
    parent: Option<Id>,
    children: Vec<Id>,
    depth: u32,
    data: Data,
}

/// A page's tree. The document is node 0.
#[derive(Debug)]
pub(super) struct Dom {
    nodes: Vec<Node>,
}

impl Dom {
    /// Parses a text; true if its end was not read.
    pub(super) fn parse(html: &str) -> (Self, bool) {
        let options = ParseOpts {
            tree_builder: TreeBuilderOpts {
                // So that the content of `noscript` is parsed as elements.
                scripting_enabled: false,
                ..TreeBuilderOpts::default()
            },
            ..ParseOpts::default()
        };
        let mut parser = parse_document(Sink::new(), options);
        let mut rest = html;
        while !rest.is_empty() && !parser.tokenizer.sink.sink.is_full() {
            let (step, after) = rest.split_at(rest.ceil_char_boundary(STEP_BYTES));
            parser.process(StrTendril::from_slice(step));
            rest = after;
        }
        (parser.finish(), !rest.is_empty())
    }

    pub(super) fn children(&self, id: Id) -> &[Id] {
        self.nodes.get(id).map_or(&[], |it| it.children.as_slice())
    }

    /// The name of an element; empty for other nodes.
    pub(super) fn name(&self, id: Id) -> &str {
        match self.nodes.get(id).map(|it| &it.data) {
            Some(Data::Element { name, .. }) => &name.local,
            Some(Data::Document | Data::Text(_) | Data::Silent) | None => "",
        }
    }

    pub(super) fn text(&self, id: Id) -> Option<&str> {
        match self.nodes.get(id).map(|it| &it.data) {
            Some(Data::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn attribute(&self, id: Id, wanted: &str) -> Option<&str> {
        match self.nodes.get(id).map(|it| &it.data) {
            Some(Data::Element { attributes, .. }) => {
                let found = attributes.iter().find(|it| &*it.name.local == wanted);
                found.map(|it| &*it.value)
            }
            _ => None,
        }
    }

    /// All nodes below one, in the order of the page, except those below nodes that are skipped.
    pub(super) fn below(&self, id: Id, is_skipped: impl Fn(Id) -> bool) -> Vec<Id> {
        let mut out = Vec::new();
        let mut open: Vec<Id> = self.children(id).iter().rev().copied().collect();
        while let Some(it) = open.pop() {
            if is_skipped(it) {
                continue;
            }
            out.push(it);
            open.extend(self.children(it).iter().rev());
        }
        out
    }

    /// The first element that a condition holds of.
    pub(super) fn first(&self, holds: impl Fn(Id) -> bool) -> Option<Id> {
        self.below(0, |_| false).into_iter().find(|it| holds(*it))
    }
}

/// What html5ever builds the tree in.
struct Sink {
    nodes: RefCell<Vec<Node>>,
    is_full: Cell<bool>,
}

/// A name that is not borrowed from the tree.
#[derive(Debug)]
struct Name(QualName);

impl ElemName for Name {
    fn ns(&self) -> &Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &LocalName {
        &self.0.local
    }
}

impl Sink {
    fn new() -> Self {
        let it = Self {
            nodes: RefCell::default(),
            is_full: Cell::new(false),
        };
        it.create(Data::Document);
        it
    }

    fn is_full(&self) -> bool {
        self.is_full.get()
    }

    fn create(&self, data: Data) -> Id {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(Node {
            parent: None,
            children: Vec::new(),
            depth: 0,
            data,
        });
        if nodes.len() > NODES_MAX {
            self.is_full.set(true);
        }
        nodes.len() - 1
    }

    fn parent(&self, id: Id) -> Option<Id> {
        self.nodes.borrow()[id].parent
    }

    /// Puts a node into a list of children. Texts that touch become one.
    fn insert(&self, parent: Id, at: usize, child: NodeOrText<Id>) {
        let child = match child {
            NodeOrText::AppendNode(child) => {
                self.detach(child);
                child
            }
            NodeOrText::AppendText(text) => {
                let mut nodes = self.nodes.borrow_mut();
                let before = at.checked_sub(1).map(|it| nodes[parent].children[it]);
                if let Some(Data::Text(old)) = before.map(|it| &mut nodes[it].data) {
                    old.push_str(&text);
                    return;
                }
                drop(nodes);
                self.create(Data::Text(text.to_string()))
            }
        };
        let mut nodes = self.nodes.borrow_mut();
        let depth = nodes[parent].depth + 1;
        nodes[child].parent = Some(parent);
        nodes[child].depth = depth;
        let children = &mut nodes[parent].children;
        let at = at.min(children.len());
        children.insert(at, child);
        if depth > DEPTH_MAX {
            self.is_full.set(true);
        }
    }

    fn detach(&self, id: Id) {
        let mut nodes = self.nodes.borrow_mut();
        let Some(parent) = nodes[id].parent.take() else {
            return;
        };
        // What moves was mostly put there last.
        let children = &mut nodes[parent].children;
        if let Some(at) = children.iter().rposition(|it| *it == id) {
            children.remove(at);
        }
    }
}

impl TreeSink for Sink {
    type Handle = Id;
    type Output = Dom;
    type ElemName<'a> = Name;

    fn finish(self) -> Dom {
        Dom {
            nodes: self.nodes.into_inner(),
        }
    }

    fn parse_error(&self, _msg: Cow<'static, str>) {}

    fn get_document(&self) -> Id {
        0
    }

    fn elem_name<'a>(&'a self, target: &'a Id) -> Name {
        match &self.nodes.borrow()[*target].data {
            Data::Element { name, .. } => Name(name.clone()),
            Data::Document | Data::Text(_) | Data::Silent => Name(QualName::new(
                None,
                Namespace::default(),
                LocalName::default(),
            )),
        }
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> Id {
        self.create(Data::Element { name, attributes })
    }

    fn create_comment(&self, _text: StrTendril) -> Id {
        self.create(Data::Silent)
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> Id {
        self.create(Data::Silent)
    }

    fn append(&self, parent: &Id, child: NodeOrText<Id>) {
        let n_children = self.nodes.borrow()[*parent].children.len();
        self.insert(*parent, n_children, child);
    }

    fn append_based_on_parent_node(&self, element: &Id, prev: &Id, child: NodeOrText<Id>) {
        if self.parent(*element).is_some() {
            self.append_before_sibling(element, child);
        } else {
            self.append(prev, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// A template's content is not part of the page: its node has no parent.
    fn get_template_contents(&self, _target: &Id) -> Id {
        self.create(Data::Silent)
    }

    fn same_node(&self, x: &Id, y: &Id) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Id, child: NodeOrText<Id>) {
        if let NodeOrText::AppendNode(child) = &child {
            self.detach(*child);
        }
        let Some(parent) = self.parent(*sibling) else {
            return;
        };
        let at = {
            let nodes = self.nodes.borrow();
            nodes[parent].children.iter().rposition(|it| it == sibling)
        };
        self.insert(parent, at.unwrap_or(0), child);
    }

    fn add_attrs_if_missing(&self, target: &Id, attrs: Vec<Attribute>) {
        if let Data::Element { attributes, .. } = &mut self.nodes.borrow_mut()[*target].data {
            for attr in attrs {
                if !attributes.iter().any(|it| it.name == attr.name) {
                    attributes.push(attr);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Id) {
        self.detach(*target);
    }

    fn reparent_children(&self, node: &Id, new_parent: &Id) {
        let children = std::mem::take(&mut self.nodes.borrow_mut()[*node].children);
        for child in children {
            self.nodes.borrow_mut()[child].parent = None;
            self.append(new_parent, NodeOrText::AppendNode(child));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(html: &str) -> String {
        let (dom, _) = Dom::parse(html);
        let below = dom.below(0, |_| false);
        let texts = below.iter().filter_map(|&it| match dom.text(it) {
            Some(text) => Some(text.to_owned()),
            None => Some(dom.name(it).to_owned()).filter(|it| !it.is_empty()),
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn broken_pages_become_the_trees_that_browsers_make() {
        for (html, expected) in [
            ("<p>a<p>b", "html head body p a p b"),
            ("<b>a<p>b</b>c", "html head body b a p b b c"),
            ("<table>x<tr><td>y", "html head body x table tbody tr td y"),
            ("a<!-- c -->b", "html head body a b"),
            ("<template><p>x</template>y", "html head template body y"),
            ("", "html head body"),
        ] {
            assert_eq!(names(html), expected, "{html}");
        }
    }

    #[test]
    fn a_page_beyond_all_measure_ends_early() {
        for html in [
            "<div>".repeat(200_000),
            "<b>".repeat(200_000),
            format!(
                "<p>{}</p>{}",
                "<font size=1>".repeat(5_000),
                "<p>x</p>".repeat(50_000)
            ),
            "<a><div></a>".repeat(50_000),
        ] {
            let (dom, is_truncated) = Dom::parse(&html);
            assert!(is_truncated, "{}", &html[..20]);
            assert!(dom.nodes.len() < 2 * NODES_MAX);
        }
        for html in ["<p>plain and long</p>", "<table><b>", "</p><br></b>"] {
            let (_, is_truncated) = Dom::parse(&html.repeat(50_000));
            assert!(!is_truncated, "{html}");
        }
    }
}
