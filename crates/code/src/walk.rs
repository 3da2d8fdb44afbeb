//! Reading a text into facts: one walk over the tree of its grammar.
//!
//! A walk keeps its own stack, so that no depth of a text can exhaust the thread's. Each language says what
//! its nodes mean ([`Reader::enter`]); what is the same everywhere is done by [`Walk`].

use crate::facts::{Binding, Call, Expr, Facts, Import, Param, Symbol, SymbolKind, Type, Use};
use kenning_grammars::tree_sitter::{Node, Tree};
use std::collections::HashSet;

/// Expressions and types are read so deep; what is deeper is not known.
pub(crate) const EXPR_DEPTH_MAX: usize = 24;
/// Nodes deeper than this are not visited.
const TREE_DEPTH_MAX: usize = 4_000;
/// So many facts of one kind are kept of a file: the largest that is read has no more if a person wrote it.
const FACTS_MAX: usize = 20_000;
/// So many symbols of a file are kept.
const SYMBOLS_MAX: usize = 5_000;
/// The longest name that is kept.
const NAME_CHARS_MAX: usize = 200;
/// The longest signature …
const SIGNATURE_CHARS_MAX: usize = 400;
/// … and the longest text about a symbol.
const DOC_CHARS_MAX: usize = 2_000;

/// What becomes of a node's children.
pub(crate) enum Enter {
    /// They are visited in the same scope.
    Descend,
    /// They are not visited.
    Skip,
    /// They stand in this symbol.
    Scope(u32),
    /// They are visited in the same scope; names that get a value there hold up to the end of this node.
    Block,
}

/// What the nodes of a language mean.
pub(crate) trait Reader {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter;
}

/// A walk over one text.
pub(crate) struct Walk<'a> {
    pub(crate) source: &'a str,
    pub(crate) facts: Facts,
    scopes: Vec<(u32, usize)>,
    /// The last lines of the blocks that the walk stands in.
    blocks: Vec<(u32, usize)>,
    /// The last lines of the statement, and of the block, that the next names get their values in.
    pub(crate) statement: Option<(u32, u32)>,
    /// Names that the functions around have given values to.
    bound: HashSet<(Option<u32>, String)>,
}

/// What a new symbol is made of.
pub(crate) struct New<'t> {
    pub(crate) kind: SymbolKind,
    pub(crate) name: String,
    /// The node of the name, whose line is the symbol's.
    pub(crate) at: Node<'t>,
    /// The whole declaration.
    pub(crate) whole: Node<'t>,
    /// Where the head ends: its body.
    pub(crate) body: Option<Node<'t>>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Self {
            source,
            facts: Facts::default(),
            scopes: Vec::new(),
            blocks: Vec::new(),
            statement: None,
            bound: HashSet::new(),
        }
    }

    /// Visits every node; gives whether all could be.
    pub(crate) fn run(&mut self, tree: &Tree, reader: &mut dyn Reader) -> bool {
        let mut cursor = tree.walk();
        let mut depth = 0;
        let mut is_whole = true;
        loop {
            let node = cursor.node();
            let enter = match depth < TREE_DEPTH_MAX {
                true if node.is_named() => reader.enter(self, node),
                true => Enter::Descend,
                false => {
                    is_whole = false;
                    Enter::Skip
                }
            };
            let is_down = match enter {
                Enter::Skip => false,
                Enter::Descend => cursor.goto_first_child(),
                Enter::Scope(symbol) => {
                    let is_down = cursor.goto_first_child();
                    if is_down {
                        self.scopes.push((symbol, depth));
                    }
                    is_down
                }
                Enter::Block => {
                    let is_down = cursor.goto_first_child();
                    if is_down {
                        self.blocks.push((line_end(node), depth));
                    }
                    is_down
                }
            };
            if is_down {
                depth += 1;
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return is_whole;
                }
                depth -= 1;
                if self.scopes.last().is_some_and(|it| it.1 == depth) {
                    self.scopes.pop();
                }
                if self.blocks.last().is_some_and(|it| it.1 == depth) {
                    self.blocks.pop();
                }
            }
        }
    }

    /// The text of a node.
    pub(crate) fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// The text of a field of a node.
    pub(crate) fn field(&self, node: Node<'_>, name: &str) -> Option<&'a str> {
        node.child_by_field_name(name).map(|it| self.text(it))
    }

    /// A name as it is kept: without control characters, not too long.
    pub(crate) fn name(&self, node: Node<'_>) -> String {
        name_of(self.text(node))
    }

    /// The innermost symbol that the walk stands in.
    pub(crate) fn scope(&self) -> Option<u32> {
        self.scopes.last().map(|it| it.0)
    }

    pub(crate) fn symbol(&self, n: u32) -> Option<&Symbol> {
        self.facts.symbols.get(n as usize)
    }

    pub(crate) fn symbol_mut(&mut self, n: u32) -> Option<&mut Symbol> {
        self.facts.symbols.get_mut(n as usize)
    }

    /// The innermost symbol of the scope that `is_meant` admits.
    pub(crate) fn enclosing(&self, is_meant: impl Fn(&Symbol) -> bool) -> Option<u32> {
        let mut scopes = self.scopes.iter().rev().map(|it| it.0);
        scopes.find(|it| self.symbol(*it).is_some_and(&is_meant))
    }

    /// The innermost function of the scope.
    pub(crate) fn function(&self) -> Option<u32> {
        self.enclosing(|it| it.kind.is_function())
    }

    /// The innermost type of the scope, if no function is nearer.
    pub(crate) fn direct_type(&self) -> Option<u32> {
        self.scope()
            .filter(|it| self.symbol(*it).is_some_and(|it| it.kind.is_type()))
    }

    /// Adds a symbol to the scope. A name that is empty, or too many symbols, add none.
    pub(crate) fn add(&mut self, new: New<'_>) -> Option<u32> {
        if new.name.is_empty() {
            return None;
        }
        if self.facts.symbols.len() >= SYMBOLS_MAX {
            self.facts.gap = Some(format!("only the first {SYMBOLS_MAX} symbols are read"));
            return None;
        }
        let n = u32::try_from(self.facts.symbols.len()).ok()?;
        let parent = self.scope();
        self.facts.symbols.push(Symbol {
            signature: self.signature(new.whole, new.body),
            name: new.name,
            kind: new.kind,
            parent,
            owner: None,
            line: line(new.at),
            line_end: u32::try_from(new.whole.end_position().row + 1).unwrap_or(u32::MAX),
            params: Vec::new(),
            returns: None,
            bases: Vec::new(),
            generics: Vec::new(),
            doc: String::new(),
            visibility: crate::facts::Visibility::Public,
            is_test: false,
            is_static: false,
            is_property: false,
        });
        Some(n)
    }

    fn signature(&self, whole: Node<'_>, body: Option<Node<'_>>) -> String {
        let end = body.map_or(whole.end_byte(), |it| it.start_byte());
        let text = self.source.get(whole.start_byte()..end).unwrap_or_default();
        let mut out = String::new();
        for word in text.split_whitespace() {
            if out.len() > SIGNATURE_CHARS_MAX {
                break;
            }
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
        }
        let out: String = out
            .chars()
            .filter(|it| !it.is_control())
            .take(SIGNATURE_CHARS_MAX)
            .collect();
        out.trim_end_matches(['{', ':', '=', ' ', ';', ','])
            .to_owned()
    }

    pub(crate) fn call(&mut self, node: Node<'_>, callee: Expr, n_args: Option<u32>) {
        self.call_at(line(node), callee, n_args);
    }

    pub(crate) fn call_at(&mut self, line: u32, callee: Expr, n_args: Option<u32>) {
        if callee == Expr::Unknown || self.facts.calls.len() >= FACTS_MAX {
            return;
        }
        let scope = self.scope();
        self.facts.calls.push(Call {
            scope,
            line,
            callee,
            n_args,
            is_access: false,
            is_value: false,
        });
    }

    /// A name or a path that is passed on: if it is a function, whoever gets it may call it.
    pub(crate) fn value(&mut self, node: Node<'_>, value: Expr) {
        if self.facts.calls.len() >= FACTS_MAX {
            return;
        }
        if let Expr::Name(name) = &value {
            let is_param = |it: u32| {
                let symbol = self.facts.symbols.get(it as usize);
                symbol.is_some_and(|it| it.params.iter().any(|it| it.name == *name))
            };
            let mut scopes = self.scopes.iter().map(|it| it.0);
            if scopes.any(|it| is_param(it) || self.bound.contains(&(Some(it), name.clone()))) {
                return;
            }
        }
        let scope = self.scope();
        self.facts.calls.push(Call {
            scope,
            line: line(node),
            callee: value,
            n_args: None,
            is_access: false,
            is_value: true,
        });
    }

    /// Names in a list of arguments that may be functions.
    pub(crate) fn values(&mut self, list: Option<Node<'_>>, kinds: &[&str]) {
        for child in list.map(named).unwrap_or_default() {
            if kinds.contains(&child.kind()) {
                self.value(child, Expr::Name(self.name(child)));
            }
        }
    }

    /// A member that is read or set.
    pub(crate) fn access(&mut self, node: Node<'_>, member: Expr, is_set: bool) {
        if !matches!(member, Expr::Member(..)) || self.facts.calls.len() >= FACTS_MAX {
            return;
        }
        let scope = self.scope();
        self.facts.calls.push(Call {
            scope,
            line: line(node),
            callee: member,
            n_args: Some(u32::from(is_set)),
            is_access: true,
            is_value: false,
        });
    }

    pub(crate) fn import(&mut self, node: Node<'_>, module: &str, name: Option<&str>, alias: &str) {
        self.import_as(node, module, name, alias, false);
    }

    pub(crate) fn import_as(
        &mut self,
        node: Node<'_>,
        module: &str,
        name: Option<&str>,
        alias: &str,
        is_exported: bool,
    ) {
        if self.facts.imports.len() >= FACTS_MAX {
            return;
        }
        let scope = self.scope();
        self.facts.imports.push(Import {
            module: name_of(module),
            name: name.map(name_of),
            alias: name_of(alias),
            line: line(node),
            scope,
            is_exported,
        });
    }

    /// A name that got a type or a value in this scope.
    pub(crate) fn bind(&mut self, at: Node<'_>, name: &str, ty: Option<Type>, value: Option<Expr>) {
        let scope = self.scope();
        self.bind_in(scope, false, at, name, ty, value);
    }

    /// Names that get a value in a statement hold after it, up to the end of its block.
    pub(crate) fn in_statement(&mut self, node: Node<'_>, bind: impl FnOnce(&mut Self)) {
        let block = self.blocks.last().map_or(u32::MAX, |it| it.0);
        self.statement = Some((line_end(node), block));
        bind(self);
        self.statement = None;
    }

    /// A name that a function has from its first line on.
    pub(crate) fn bind_first(
        &mut self,
        of: u32,
        line: u32,
        name: String,
        ty: Option<Type>,
        value: Option<Expr>,
    ) {
        self.facts.bindings.push(Binding {
            name,
            scope: Some(of),
            is_field: false,
            line,
            line_end: line,
            holds_until: u32::MAX,
            ty,
            value,
        });
    }

    /// A field of a type.
    pub(crate) fn bind_field(
        &mut self,
        of: u32,
        at: Node<'_>,
        name: &str,
        ty: Option<Type>,
        value: Option<Expr>,
    ) {
        self.bind_in(Some(of), true, at, name, ty, value);
    }

    fn bind_in(
        &mut self,
        scope: Option<u32>,
        is_field: bool,
        at: Node<'_>,
        name: &str,
        ty: Option<Type>,
        value: Option<Expr>,
    ) {
        let name = name_of(name);
        if name.is_empty() || self.facts.bindings.len() >= FACTS_MAX {
            return;
        }
        let block = self.blocks.last().map_or(u32::MAX, |it| it.0);
        let (line_end, holds_until) = self.statement.unwrap_or((line(at), block));
        if !is_field {
            self.bound.insert((scope, name.clone()));
        }
        self.facts.bindings.push(Binding {
            name,
            scope,
            is_field,
            line: line(at),
            line_end,
            holds_until,
            ty,
            value,
        });
    }

    /// A type or a constant that is named.
    pub(crate) fn uses(&mut self, node: Node<'_>, name: &str) {
        if name.is_empty() || self.facts.uses.len() >= FACTS_MAX {
            return;
        }
        let scope = self.scope();
        self.facts.uses.push(Use {
            scope,
            line: line(node),
            name: name_of(name),
        });
    }

    /// The comments that stand directly before a node, without their signs.
    pub(crate) fn comments_before(&self, node: Node<'_>, is_doc: impl Fn(&str) -> bool) -> String {
        let mut parts: Vec<&str> = Vec::new();
        let mut at = node;
        while let Some(before) = at.prev_sibling() {
            let kind = before.kind();
            if kind.contains("comment") {
                let gap = at
                    .start_position()
                    .row
                    .saturating_sub(before.end_position().row);
                let text = self.text(before);
                if gap > 1 || !is_doc(text) {
                    break;
                }
                parts.push(text);
            } else if !matches!(kind, "attribute_item" | "decorator" | "attribute_list") {
                break;
            }
            at = before;
        }
        parts.reverse();
        doc_of(&parts.join("\n"))
    }
}

/// The line of a node, from 1.
pub(crate) fn line(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row + 1).unwrap_or(u32::MAX)
}

/// The last line of a node, from 1.
pub(crate) fn line_end(node: Node<'_>) -> u32 {
    u32::try_from(node.end_position().row + 1).unwrap_or(u32::MAX)
}

pub(crate) fn name_of(text: &str) -> String {
    if text.len() <= NAME_CHARS_MAX && !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let kept = text.chars().filter(|it| !it.is_control());
    kept.take(NAME_CHARS_MAX).collect()
}

/// A comment without its signs.
pub(crate) fn doc_of(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        for sign in ["///", "//!", "//", "/**", "/*", "#", "--", "*/"] {
            if let Some(rest) = line.strip_prefix(sign) {
                line = rest.trim_start_matches('/').trim_start();
                break;
            }
        }
        let line = line.strip_suffix("*/").unwrap_or(line);
        let line = line.strip_prefix("* ").unwrap_or(line);
        let line = if line == "*" { "" } else { line.trim_end() };
        if !(out.is_empty() && line.is_empty()) {
            out.push_str(line);
            out.push('\n');
        }
        if out.len() > DOC_CHARS_MAX {
            break;
        }
    }
    let kept = out.trim_end().chars();
    kept.filter(|it| !it.is_control() || *it == '\n')
        .take(DOC_CHARS_MAX)
        .collect()
}

/// The named children of a node.
pub(crate) fn named<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

/// The children of a node that have this field.
pub(crate) fn with_field<'t>(node: Node<'t>, field: &str) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children_by_field_name(field, &mut cursor).collect()
}

/// The first named child of one of these kinds.
pub(crate) fn child_of_kind<'t>(node: Node<'t>, kinds: &[&str]) -> Option<Node<'t>> {
    named(node)
        .into_iter()
        .find(|it| kinds.contains(&it.kind()))
}

/// How many arguments stand in a list; none if one of them stands for several.
pub(crate) fn n_args(list: Option<Node<'_>>) -> Option<u32> {
    let list = list?;
    let mut n = 0;
    for child in named(list) {
        match child.kind() {
            "comment" | "line_comment" | "block_comment" => {}
            "spread_element" | "list_splat" | "dictionary_splat" | "variadic_argument"
            | "splat_argument" | "spread_expression" | "keyword_argument" => return None,
            _ => n += 1,
        }
    }
    Some(n)
}

/// A parameter without a type.
pub(crate) fn param(name: &str, ty: Option<Type>, is_optional: bool) -> Param {
    Param {
        name: name_of(name),
        ty,
        is_optional,
    }
}

/// What a function returns, where no type is written: bound to the name `return`.
pub(crate) fn bind_returns(
    walk: &mut Walk<'_>,
    body: Node<'_>,
    n: u32,
    is_function: impl Fn(&str) -> bool,
    expr: impl Fn(&Walk<'_>, Node<'_>) -> Expr,
) {
    const NODES_MAX: usize = 2_000;
    const RETURNS_MAX: usize = 8;
    let mut rest = vec![body];
    let (mut n_nodes, mut n_returns) = (0, 0);
    while let Some(node) = rest.pop() {
        n_nodes += 1;
        if n_nodes > NODES_MAX || n_returns >= RETURNS_MAX {
            return;
        }
        if node.kind() == "return_statement" {
            if let Some(value) = node.named_child(0) {
                n_returns += 1;
                let value = expr(walk, value);
                walk.bind_first(n, line(node), "return".to_owned(), None, Some(value));
            }
        } else if !is_function(node.kind()) || node == body {
            let kind = node.kind();
            // Statements hold statements; an expression holds no `return` of this function.
            if kind.contains("statement")
                || kind.contains("block")
                || kind.contains("clause")
                || kind.contains("body")
                || kind.contains("case")
                || kind.contains("switch")
            {
                let mut children = named(node);
                children.reverse();
                rest.append(&mut children);
            }
        }
    }
}
