//! Functions and methods.

use super::heads::{DEFAULT, doc, generics, has_word, is_default, is_exported, visibility};
use super::patterns::params;
use super::values::{expr, ty};
use crate::facts::{Expr, SymbolKind, Visibility};
use crate::walk::{Enter, New, Walk, bind_returns, child_of_kind, named};
use kenning_grammars::tree_sitter::Node;

pub(super) fn function(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    at: Node<'_>,
    name: String,
    kind: SymbolKind,
    whole: Node<'_>,
) -> Enter {
    let body = node.child_by_field_name("body");
    let new = New {
        kind,
        name,
        at,
        whole,
        body,
    };
    let returns = node
        .child_by_field_name("return_type")
        .and_then(|it| ty(walk, it, 0));
    let generics = generics(walk, node);
    let doc = doc(walk, whole);
    let visibility = match kind {
        SymbolKind::Method => visibility(walk, whole),
        _ if is_exported(whole) => Visibility::Public,
        _ => Visibility::Internal,
    };
    if is_default(walk, whole) {
        let (name, exported) = (new.name.clone(), true);
        walk.import_as(whole, "", Some(&name), DEFAULT, exported);
    }
    let has_type = returns.is_some();
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    let (params, bound) = params(walk, node);
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.params = params;
        symbol.returns = returns;
        symbol.generics = generics;
        symbol.doc = doc;
        symbol.visibility = visibility;
    }
    for (name, ty, value) in bound {
        walk.bind_first(n, crate::walk::line(node), name, ty, value);
    }
    if let Some(body) = body.filter(|_| !has_type) {
        match body.kind() {
            "statement_block" => {
                let is_function = |it: &str| {
                    it.contains("function") || it == "class_body" || it == "method_definition"
                };
                bind_returns(walk, body, n, is_function, |walk, it| expr(walk, it, 0));
            }
            _ => {
                let value = expr(walk, body, 0);
                let at = crate::walk::line(body);
                walk.bind_first(n, at, "return".to_owned(), None, Some(value));
            }
        }
    }
    Enter::Scope(n)
}

/// Whether a declaration without a body is followed by the function itself, or by another form of it that is.
pub(super) fn is_overload(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let name = walk.field(node, "name");
    if !node.kind().ends_with("signature") {
        return false;
    }
    let outer = node.parent().filter(|it| it.kind() == "export_statement");
    let mut at = outer.unwrap_or(node);
    while let Some(next) = at.next_named_sibling() {
        at = next;
        if matches!(next.kind(), "comment" | "decorator") {
            continue;
        }
        let inner = next.child_by_field_name("declaration").unwrap_or(next);
        if walk.field(inner, "name") != name {
            return false;
        }
        if inner.child_by_field_name("body").is_some() {
            return true;
        }
    }
    false
}

pub(super) fn method(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    if is_overload(walk, node) {
        return Enter::Skip;
    }
    let text = walk.name(name);
    let text = text.trim_matches(['"', '\'', '#', '[', ']']).to_owned();
    let is_member = walk
        .scope()
        .and_then(|it| walk.symbol(it))
        .is_some_and(|it| it.kind.is_type() || it.kind == SymbolKind::Constant);
    if !is_member {
        // Of an object that has no name.
        return Enter::Descend;
    }
    let is_static = has_word(walk, node, "static");
    let is_property = has_word(walk, node, "get");
    let entered = function(walk, node, name, text, SymbolKind::Method, node);
    if let Enter::Scope(n) = entered {
        if let Some(symbol) = walk.symbol_mut(n) {
            symbol.is_static = is_static;
            symbol.is_property = is_property;
        }
        if walk.field(node, "name") == Some("constructor") {
            constructor_fields(walk, node);
        }
    }
    entered
}

/// `constructor(private store: Store)` declares a field.
pub(super) fn constructor_fields(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(class) = walk.direct_type() else {
        return;
    };
    let list = node
        .child_by_field_name("parameters")
        .map(named)
        .unwrap_or_default();
    for child in list {
        let has_modifier = child_of_kind(child, &["accessibility_modifier"]).is_some()
            || has_word(walk, child, "readonly");
        if let Some(pattern) = child
            .child_by_field_name("pattern")
            .filter(|_| has_modifier)
        {
            let ty = child
                .child_by_field_name("type")
                .and_then(|it| ty(walk, it, 0));
            walk.bind_field(class, pattern, walk.text(pattern), ty, None);
        }
    }
}

/// The names of a function without one: they hold in the function around it.
pub(super) fn unnamed(walk: &mut Walk<'_>, node: Node<'_>) {
    let parent = node.parent();
    let receiver = parent
        .filter(|it| it.kind() == "arguments")
        .and_then(|it| it.parent())
        .and_then(|it| it.child_by_field_name("function"))
        .filter(|it| it.kind() == "member_expression");
    let property = receiver
        .and_then(|it| walk.field(it, "property"))
        .unwrap_or_default();
    let is_each = matches!(
        property,
        "map"
            | "forEach"
            | "filter"
            | "find"
            | "some"
            | "every"
            | "flatMap"
            | "findIndex"
            | "then"
            | "sort"
    );
    let element = receiver
        .filter(|_| is_each)
        .and_then(|it| it.child_by_field_name("object"))
        .map(|it| expr(walk, it, 0))
        .map(|it| match property {
            "then" => Expr::Await(Box::new(it)),
            _ => Expr::Element(Box::new(it)),
        });
    let (params, bound) = params(walk, node);
    for (n, it) in params.into_iter().enumerate() {
        let is_element = n == 0 || property == "sort";
        let value = element.clone().filter(|_| is_element && it.ty.is_none());
        walk.bind(node, &it.name, it.ty, value.or(Some(Expr::Unknown)));
    }
    for (name, ty, value) in bound {
        walk.bind(node, &name, ty, value);
    }
}
