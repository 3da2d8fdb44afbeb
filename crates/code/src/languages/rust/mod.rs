//! Rust.

mod patterns;
mod values;

use self::patterns::{bind_pattern, closure, pattern_binds};
use self::values::{dotted, expr, path_text, tokens_call, ty};
use crate::facts::{Expr, Impl, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{
    EXPR_DEPTH_MAX, Enter, New, Reader, Walk, child_of_kind, line, line_end, n_args, named, param,
};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct Rust;

impl Reader for Rust {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "function_item" | "function_signature_item" => function(walk, node),
            "struct_item" | "union_item" => declared(walk, node, SymbolKind::Struct),
            "enum_item" => declared(walk, node, SymbolKind::Enum),
            "trait_item" => declared(walk, node, SymbolKind::Trait),
            "type_item" | "associated_type" => alias(walk, node),
            "const_item" | "static_item" => constant(walk, node),
            "macro_definition" => declared(walk, node, SymbolKind::Macro),
            "mod_item" => module(walk, node),
            "impl_item" => implementation(walk, node),
            "use_declaration" => {
                let is_exported = child_of_kind(node, &["visibility_modifier"]).is_some();
                if let Some(argument) = node.child_by_field_name("argument") {
                    uses(walk, argument, "", is_exported, 0);
                }
                Enter::Skip
            }
            "field_declaration" => {
                let of = walk.direct_type();
                if let (Some(of), Some(name)) = (of, node.child_by_field_name("name")) {
                    let ty = node
                        .child_by_field_name("type")
                        .and_then(|it| ty(walk, it, 0));
                    walk.bind_field(of, node, walk.text(name), ty, None);
                }
                Enter::Descend
            }
            "let_declaration" | "let_condition" => {
                bind_pattern(walk, node);
                Enter::Descend
            }
            "block" | "match_arm" | "if_expression" | "while_expression" => Enter::Block,
            "for_expression" => {
                let value = node
                    .child_by_field_name("value")
                    .map(|it| expr(walk, it, 0));
                if let Some(pattern) = node.child_by_field_name("pattern") {
                    let value = value.map(|it| Expr::Element(Box::new(it)));
                    walk.statement = Some((line_end(pattern), line_end(node)));
                    pattern_binds(walk, pattern, None, value, 0);
                    walk.statement = None;
                }
                Enter::Descend
            }
            "match_expression" => {
                let value = node
                    .child_by_field_name("value")
                    .map(|it| expr(walk, it, 0));
                let arms = node
                    .child_by_field_name("body")
                    .map(named)
                    .unwrap_or_default();
                for arm in arms {
                    if let Some(pattern) = arm.child_by_field_name("pattern")
                        && let Some(pattern) = pattern.named_child(0)
                    {
                        walk.statement = Some((line(pattern), line_end(arm)));
                        pattern_binds(walk, pattern, None, value.clone(), 0);
                        walk.statement = None;
                    }
                }
                Enter::Descend
            }
            "closure_expression" => {
                closure(walk, node);
                Enter::Descend
            }
            "call_expression" => {
                if let Some(function) = node.child_by_field_name("function") {
                    let callee = expr(walk, function, 0);
                    let list = node.child_by_field_name("arguments");
                    walk.call(at_name(function), callee, n_args(list));
                    walk.values(list, &["identifier"]);
                }
                Enter::Descend
            }
            "array_expression" => {
                walk.values(Some(node), &["identifier"]);
                Enter::Descend
            }
            "field_initializer" => {
                let value = node.child_by_field_name("value");
                if let Some(value) = value.filter(|it| it.kind() == "identifier") {
                    walk.value(value, Expr::Name(walk.name(value)));
                }
                Enter::Descend
            }
            "macro_invocation" => {
                if let Some(name) = node.child_by_field_name("macro") {
                    let path = path_text(walk.text(name));
                    walk.call(name, Expr::Name(format!("{path}!")), None);
                }
                if let Some(tokens) = child_of_kind(node, &["token_tree"]) {
                    tokens_call(walk, tokens, 0);
                }
                Enter::Skip
            }
            "type_identifier" | "scoped_type_identifier" => {
                let name = path_text(walk.text(node));
                walk.uses(node, &name);
                Enter::Skip
            }
            "identifier" | "scoped_identifier" => {
                let name = path_text(walk.text(node));
                let last = name.rsplit('.').next().unwrap_or_default();
                if last.len() > 1
                    && last
                        .chars()
                        .all(|it| it.is_ascii_uppercase() || it == '_' || it.is_ascii_digit())
                {
                    walk.uses(node, &name);
                } else if node.kind() == "scoped_identifier"
                    && last.starts_with(|it: char| it.is_ascii_lowercase() || it == '_')
                    && !is_called(node)
                {
                    walk.value(node, dotted(&name));
                }
                Enter::Skip
            }
            _ => Enter::Descend,
        }
    }
}

/// Whether a path is what a call calls.
fn is_called(path: Node<'_>) -> bool {
    let Some(parent) = path.parent() else {
        return false;
    };
    let function = match parent.kind() {
        "generic_function" => parent.parent().filter(|it| it.kind() == "call_expression"),
        "call_expression" => Some(parent),
        _ => None,
    };
    let function = function.and_then(|it| it.child_by_field_name("function"));
    function.is_some_and(|it| it == path || it == parent)
}

fn at_name(function: Node<'_>) -> Node<'_> {
    function.child_by_field_name("field").unwrap_or(function)
}

fn visibility(walk: &Walk<'_>, node: Node<'_>) -> Visibility {
    match child_of_kind(node, &["visibility_modifier"]).map(|it| walk.text(it)) {
        Some("pub") => Visibility::Public,
        Some(_) => Visibility::Internal,
        None => Visibility::Private,
    }
}

fn doc(walk: &Walk<'_>, node: Node<'_>) -> String {
    walk.comments_before(node, |it| it.starts_with("///") || it.starts_with("/**"))
}

fn is_test(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let mut at = node;
    while let Some(before) = at.prev_named_sibling() {
        match before.kind() {
            "attribute_item" => {
                let text = walk
                    .text(before)
                    .trim_start_matches("#[")
                    .trim_end_matches(']');
                let path = text.split('(').next().unwrap_or_default().trim();
                let last = path.rsplit("::").next().unwrap_or_default();
                if matches!(last, "test" | "rstest" | "test_case" | "quickcheck") {
                    return true;
                }
            }
            "line_comment" | "block_comment" => {}
            _ => return false,
        }
        at = before;
    }
    false
}

/// The `impl` or the trait that a function stands in directly.
fn holder<'t>(node: Node<'t>) -> Option<Node<'t>> {
    let list = node.parent().filter(|it| it.kind() == "declaration_list")?;
    list.parent()
}

fn function(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let holder = holder(node);
    let of_impl = holder.filter(|it| it.kind() == "impl_item");
    let of_trait = holder.filter(|it| it.kind() == "trait_item");
    let owner = of_impl
        .and_then(|it| it.child_by_field_name("type"))
        .and_then(|it| ty(walk, it, 0));
    let is_method = owner.is_some() || of_trait.is_some();
    let new = New {
        kind: if is_method {
            SymbolKind::Method
        } else {
            SymbolKind::Function
        },
        name: walk.name(name),
        at: name,
        whole: node,
        body: node.child_by_field_name("body"),
    };
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    let mut params = Vec::new();
    let mut has_self = false;
    let list = node.child_by_field_name("parameters");
    for child in list.map(named).unwrap_or_default() {
        match child.kind() {
            "self_parameter" => has_self = true,
            "parameter" => {
                let ty = child
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                let name = child.child_by_field_name("pattern");
                let name = name.map(|it| walk.text(it)).unwrap_or_default();
                let name = name.trim_start_matches("mut ").trim();
                if name == "self" {
                    has_self = true;
                } else {
                    params.push(param(name, ty, false));
                }
            }
            _ => {}
        }
    }
    let returns = node
        .child_by_field_name("return_type")
        .and_then(|it| ty(walk, it, 0));
    let mut generics = generics(walk, node);
    if let Some(of_impl) = of_impl {
        generics.extend(self::generics(walk, of_impl));
    }
    let doc = doc(walk, node);
    let is_trait_impl = of_impl.is_some_and(|it| it.child_by_field_name("trait").is_some());
    let visibility = match of_trait.is_some() || is_trait_impl {
        true => Visibility::Public,
        false => visibility(walk, node),
    };
    let is_test = is_test(walk, node);
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.params = params;
        symbol.returns = returns;
        symbol.generics = generics;
        symbol.owner = owner;
        symbol.doc = doc;
        symbol.visibility = visibility;
        symbol.is_test = is_test;
        symbol.is_static = is_method && !has_self;
    }
    Enter::Scope(n)
}

fn generics(walk: &Walk<'_>, node: Node<'_>) -> Vec<Param> {
    let mut all = Vec::new();
    let list = node.child_by_field_name("type_parameters");
    for child in list.map(named).unwrap_or_default() {
        let name = child
            .child_by_field_name("name")
            .or_else(|| child.named_child(0));
        let Some(name) = name else { continue };
        let bound = child
            .child_by_field_name("bounds")
            .and_then(|it| first_bound(walk, it));
        all.push(param(walk.text(name), bound, false));
    }
    if let Some(clause) = child_of_kind(node, &["where_clause"]) {
        for predicate in named(clause) {
            let left = predicate.child_by_field_name("left");
            let bound = predicate
                .child_by_field_name("bounds")
                .and_then(|it| first_bound(walk, it));
            if let (Some(left), Some(bound)) = (left, bound) {
                all.retain(|it| it.ty.is_some() || it.name != walk.text(left));
                all.push(param(walk.text(left), Some(bound), false));
            }
        }
    }
    all
}

fn first_bound(walk: &Walk<'_>, bounds: Node<'_>) -> Option<Type> {
    let usual = [
        "Send", "Sync", "Clone", "Copy", "Sized", "Debug", "Default", "Into", "AsRef",
    ];
    let all = named(bounds).into_iter().filter_map(|it| ty(walk, it, 0));
    let mut all = all.filter(|it| !usual.contains(&it.name.as_str()));
    all.next()
}

fn declared(walk: &mut Walk<'_>, node: Node<'_>, kind: SymbolKind) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let new = New {
        kind,
        name: walk.name(name),
        at: name,
        whole: node,
        body: node.child_by_field_name("body"),
    };
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    let mut bases = Vec::new();
    if let Some(bounds) = node.child_by_field_name("bounds") {
        for bound in named(bounds) {
            bases.extend(ty(walk, bound, 0).map(|it| (Inherits::Extends, it)));
        }
    }
    let (doc, visibility, generics) = (
        doc(walk, node),
        visibility(walk, node),
        generics(walk, node),
    );
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.bases = bases;
        symbol.doc = doc;
        symbol.visibility = visibility;
        symbol.generics = generics;
    }
    if let Some(fields) = node.child_by_field_name("body")
        && fields.kind() == "ordered_field_declaration_list"
    {
        let types = named(fields)
            .into_iter()
            .filter(|it| !it.kind().ends_with("modifier") && it.kind() != "attribute_item");
        for (place, field) in types.enumerate() {
            let ty = ty(walk, field, 0);
            walk.bind_field(n, field, &place.to_string(), ty, None);
        }
    }
    match kind {
        SymbolKind::Macro => Enter::Skip,
        _ => Enter::Scope(n),
    }
}

fn alias(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let of_impl = holder(node).is_some_and(|it| it.kind() == "impl_item");
    let Some(name) = node.child_by_field_name("name").filter(|_| !of_impl) else {
        return Enter::Descend;
    };
    let new = New {
        kind: SymbolKind::TypeAlias,
        name: walk.name(name),
        at: name,
        whole: node,
        body: None,
    };
    let target = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let (doc, visibility) = (doc(walk, node), visibility(walk, node));
    let generics = generics(walk, node);
    if let Some(n) = walk.add(new)
        && let Some(symbol) = walk.symbol_mut(n)
    {
        symbol.returns = target;
        symbol.generics = generics;
        symbol.doc = doc;
        symbol.visibility = visibility;
    }
    Enter::Descend
}

fn constant(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let owner = holder(node)
        .filter(|it| it.kind() == "impl_item")
        .and_then(|it| it.child_by_field_name("type"))
        .and_then(|it| ty(walk, it, 0));
    let new = New {
        kind: SymbolKind::Constant,
        name: walk.name(name),
        at: name,
        whole: node,
        body: node.child_by_field_name("value"),
    };
    let returns = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let (doc, visibility) = (doc(walk, node), visibility(walk, node));
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.returns = returns;
        symbol.owner = owner;
        symbol.doc = doc;
        symbol.visibility = visibility;
    }
    Enter::Scope(n)
}

fn module(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let Some(body) = node.child_by_field_name("body") else {
        // The module is another file.
        let exported = child_of_kind(node, &["visibility_modifier"]).is_some();
        let text = walk.text(name);
        walk.import_as(node, &format!("self.{text}"), None, text, exported);
        return Enter::Skip;
    };
    let new = New {
        kind: SymbolKind::Module,
        name: walk.name(name),
        at: name,
        whole: node,
        body: Some(body),
    };
    let (doc, visibility) = (doc(walk, node), visibility(walk, node));
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.doc = doc;
        symbol.visibility = visibility;
    }
    Enter::Scope(n)
}

fn implementation(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let of = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let base = node
        .child_by_field_name("trait")
        .and_then(|it| ty(walk, it, 0));
    if let (Some(of), Some(base)) = (of, base) {
        let scope = walk.scope();
        walk.facts.impls.push(Impl {
            ty: of,
            base,
            scope,
            line: line(node),
        });
    }
    Enter::Descend
}

/// The names that a `use` brings.
fn uses(walk: &mut Walk<'_>, node: Node<'_>, prefix: &str, is_exported: bool, depth: usize) {
    if depth > EXPR_DEPTH_MAX {
        return;
    }
    let joined = |more: &str| match prefix.is_empty() {
        true => path_text(more),
        false => format!("{prefix}.{}", path_text(more)),
    };
    let brings = |walk: &mut Walk<'_>, path: String, alias: &str| {
        let (module, name) = match path.rsplit_once('.') {
            Some((module, "self")) => (module.to_owned(), None),
            Some((module, name)) => (module.to_owned(), Some(name.to_owned())),
            None => (path.clone(), None),
        };
        let last = path
            .trim_end_matches(".self")
            .rsplit('.')
            .next()
            .unwrap_or_default();
        let alias = if alias.is_empty() { last } else { alias };
        walk.import_as(node, &module, name.as_deref(), alias, is_exported);
    };
    match node.kind() {
        "use_list" => {
            for child in named(node) {
                uses(walk, child, prefix, is_exported, depth + 1);
            }
        }
        "scoped_use_list" => {
            let path = node.child_by_field_name("path").map(|it| walk.text(it));
            let prefix = path.map_or_else(|| prefix.to_owned(), joined);
            if let Some(list) = node.child_by_field_name("list") {
                uses(walk, list, &prefix, is_exported, depth + 1);
            }
        }
        "use_as_clause" => {
            let path = node
                .child_by_field_name("path")
                .map(|it| joined(walk.text(it)));
            let alias = walk.field(node, "alias").unwrap_or_default();
            brings(walk, path.unwrap_or_default(), alias);
        }
        "use_wildcard" => {
            let path = node.named_child(0).map(|it| joined(walk.text(it)));
            let path = path.unwrap_or_else(|| prefix.to_owned());
            walk.import_as(node, &path, Some("*"), "", is_exported);
        }
        _ => {
            let path = joined(walk.text(node));
            brings(walk, path, "");
        }
    }
}
