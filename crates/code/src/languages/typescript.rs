//! TypeScript and JavaScript, with JSX.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{
    EXPR_DEPTH_MAX, Enter, New, Reader, Walk, bind_returns, child_of_kind, n_args, named, param,
};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct TypeScript;

/// What is exported without a name.
const DEFAULT: &str = "default";

impl Reader for TypeScript {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "function_declaration" | "generator_function_declaration" | "function_signature" => {
                let name = node.child_by_field_name("name");
                let Some(name) = name else {
                    return Enter::Descend;
                };
                let text = walk.name(name);
                function(walk, node, name, text, SymbolKind::Function, node)
            }
            "method_definition" | "method_signature" | "abstract_method_signature" => {
                method(walk, node)
            }
            "class_declaration"
            | "abstract_class_declaration"
            | "interface_declaration"
            | "enum_declaration" => declared(walk, node, None),
            "class" => declared(walk, node, None),
            "type_alias_declaration" => alias(walk, node),
            "internal_module" | "module" => namespace(walk, node),
            "variable_declarator" => variable(walk, node),
            "public_field_definition" | "property_signature" => field(walk, node),
            "pair" => pair(walk, node),
            "assignment_expression" => assignment(walk, node),
            "import_statement" => {
                imports(walk, node);
                Enter::Skip
            }
            "export_statement" => exports(walk, node),
            "call_expression" => {
                call(walk, node);
                Enter::Descend
            }
            "new_expression" => {
                if let Some(made) = node.child_by_field_name("constructor") {
                    let args = n_args(node.child_by_field_name("arguments")).or(Some(0));
                    let ty = Type::plain(walk.text(made));
                    if matches!(made.kind(), "identifier" | "member_expression") {
                        walk.call(last_name(made), Expr::New(ty), args);
                    }
                }
                Enter::Descend
            }
            "jsx_opening_element" | "jsx_self_closing_element" => {
                if let Some(name) = node.child_by_field_name("name") {
                    let text = walk.text(name);
                    if text.starts_with(char::is_uppercase) {
                        let callee = expr(walk, name, 0);
                        walk.call(name, callee, None);
                    }
                }
                Enter::Descend
            }
            "arrow_function" | "function_expression" | "generator_function" => {
                unnamed(walk, node);
                Enter::Descend
            }
            "for_in_statement" => {
                let value = node
                    .child_by_field_name("right")
                    .map(|it| expr(walk, it, 0));
                let is_of = walk.field(node, "operator") == Some("of");
                if let Some(left) = node.child_by_field_name("left") {
                    let value = value
                        .filter(|_| is_of)
                        .map(|it| Expr::Element(Box::new(it)));
                    binds(walk, left, None, value, 0);
                }
                Enter::Descend
            }
            "type_identifier" | "nested_type_identifier" => {
                let name = walk.text(node).to_owned();
                walk.uses(node, &name);
                Enter::Skip
            }
            "identifier" => {
                let text = walk.text(node);
                let is_constant =
                    |it: char| it.is_ascii_uppercase() || it == '_' || it.is_ascii_digit();
                if text.len() > 1 && text.chars().all(is_constant) {
                    walk.uses(node, text);
                }
                Enter::Skip
            }
            _ => Enter::Descend,
        }
    }
}

fn last_name(function: Node<'_>) -> Node<'_> {
    function.child_by_field_name("property").unwrap_or(function)
}

fn doc(walk: &Walk<'_>, node: Node<'_>) -> String {
    let outer = node.parent().filter(|it| {
        matches!(
            it.kind(),
            "export_statement"
                | "lexical_declaration"
                | "variable_declaration"
                | "ambient_declaration"
        )
    });
    let outer = outer.map(|it| {
        it.parent()
            .filter(|up| up.kind() == "export_statement")
            .unwrap_or(it)
    });
    walk.comments_before(outer.unwrap_or(node), |it| {
        it.starts_with("/**") || it.starts_with("//")
    })
}

/// Whether a declaration is exported, directly or with the statement around it.
fn is_exported(node: Node<'_>) -> bool {
    let mut at = node.parent();
    for _ in 0..2 {
        match at {
            Some(it) if it.kind() == "export_statement" => return true,
            Some(it) if it.kind().ends_with("declaration") => at = it.parent(),
            _ => return false,
        }
    }
    at.is_some_and(|it| it.kind() == "export_statement")
}

fn is_default(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let parent = node.parent().filter(|it| it.kind() == "export_statement");
    parent.is_some_and(|it| {
        walk.text(it)
            .trim_start_matches("export")
            .trim_start()
            .starts_with(DEFAULT)
    })
}

fn visibility(walk: &Walk<'_>, node: Node<'_>) -> Visibility {
    match child_of_kind(node, &["accessibility_modifier"]).map(|it| walk.text(it)) {
        Some("private") => Visibility::Private,
        Some("protected") => Visibility::Internal,
        _ => Visibility::Public,
    }
}

fn has_word(walk: &Walk<'_>, node: Node<'_>, word: &str) -> bool {
    let mut cursor = node.walk();
    let mut children = node.children(&mut cursor);
    children.any(|it| !it.is_named() && walk.text(it) == word)
}

fn function(
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
        walk.facts.bindings.push(crate::facts::Binding {
            name,
            scope: Some(n),
            is_field: false,
            line: crate::walk::line(node),
            ty,
            value,
        });
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
                walk.facts.bindings.push(crate::facts::Binding {
                    name: "return".to_owned(),
                    scope: Some(n),
                    is_field: false,
                    line: crate::walk::line(body),
                    ty: None,
                    value: Some(value),
                });
            }
        }
    }
    Enter::Scope(n)
}

type Bound = (String, Option<Type>, Option<Expr>);

/// Parameters, and the names that patterns among them bind.
fn params(walk: &Walk<'_>, node: Node<'_>) -> (Vec<Param>, Vec<Bound>) {
    let (mut all, mut bound) = (Vec::new(), Vec::new());
    if let Some(only) = node.child_by_field_name("parameter") {
        all.push(param(walk.text(only), None, false));
    }
    let list = node
        .child_by_field_name("parameters")
        .map(named)
        .unwrap_or_default();
    for child in list {
        let pattern = child.child_by_field_name("pattern").unwrap_or(child);
        let ty = child
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, 0));
        let is_optional = child.kind() == "optional_parameter"
            || child.child_by_field_name("value").is_some()
            || pattern.kind() == "rest_pattern";
        match pattern.kind() {
            "this" | "comment" => {}
            "object_pattern" | "array_pattern" => {
                all.push(param("", ty.clone(), is_optional));
                let value = ty.map(Expr::Typed);
                pattern_names(walk, pattern, value, &mut bound, 0);
            }
            _ => {
                let name = walk.text(pattern).trim_start_matches('.');
                all.push(param(name, ty, is_optional));
            }
        }
    }
    (all, bound)
}

fn pattern_names(
    walk: &Walk<'_>,
    pattern: Node<'_>,
    value: Option<Expr>,
    bound: &mut Vec<Bound>,
    depth: usize,
) {
    if depth > EXPR_DEPTH_MAX {
        return;
    }
    match pattern.kind() {
        "identifier" | "shorthand_property_identifier_pattern" => {
            bound.push((walk.name(pattern), None, value.or(Some(Expr::Unknown))));
        }
        "object_pattern" => {
            let member = |name: &str| {
                let of = value.clone()?;
                Some(Expr::Member(Box::new(of), name.to_owned()))
            };
            for child in named(pattern) {
                match child.kind() {
                    "shorthand_property_identifier_pattern" => {
                        let value = member(walk.text(child));
                        pattern_names(walk, child, value, bound, depth + 1);
                    }
                    "pair_pattern" => {
                        let key = walk.field(child, "key").unwrap_or_default();
                        if let Some(inner) = child.child_by_field_name("value") {
                            pattern_names(walk, inner, member(key), bound, depth + 1);
                        }
                    }
                    "object_assignment_pattern" => {
                        if let Some(left) = child.child_by_field_name("left") {
                            let value = member(walk.text(left));
                            pattern_names(walk, left, value, bound, depth + 1);
                        }
                    }
                    _ => {}
                }
            }
        }
        "array_pattern" => {
            for (n, child) in named(pattern).into_iter().enumerate() {
                let place = u32::try_from(n).unwrap_or(u32::MAX);
                let value = value.clone().map(|it| Expr::Pick(Box::new(it), place));
                pattern_names(walk, child, value, bound, depth + 1);
            }
        }
        "assignment_pattern" => {
            if let Some(left) = pattern.child_by_field_name("left") {
                pattern_names(walk, left, value, bound, depth + 1);
            }
        }
        "rest_pattern" => {
            if let Some(inner) = pattern.named_child(0) {
                pattern_names(walk, inner, None, bound, depth + 1);
            }
        }
        _ => {}
    }
}

fn binds(
    walk: &mut Walk<'_>,
    pattern: Node<'_>,
    ty: Option<Type>,
    value: Option<Expr>,
    depth: usize,
) {
    if pattern.kind() == "identifier" {
        walk.bind(pattern, walk.text(pattern), ty, value);
        return;
    }
    let value = value.or(ty.map(Expr::Typed));
    let mut bound = Vec::new();
    pattern_names(walk, pattern, value, &mut bound, depth);
    for (name, ty, value) in bound {
        walk.bind(pattern, &name, ty, value);
    }
}

fn generics(walk: &Walk<'_>, node: Node<'_>) -> Vec<Param> {
    let list = node
        .child_by_field_name("type_parameters")
        .map(named)
        .unwrap_or_default();
    let read = |it: Node<'_>| {
        let name = walk.field(it, "name")?;
        let bound = it
            .child_by_field_name("constraint")
            .and_then(|it| ty(walk, it, 0));
        Some(param(name, bound, false))
    };
    list.into_iter().filter_map(read).collect()
}

fn method(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
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
fn constructor_fields(walk: &mut Walk<'_>, node: Node<'_>) {
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

fn declared(walk: &mut Walk<'_>, node: Node<'_>, named_by: Option<Node<'_>>) -> Enter {
    let name = named_by.or_else(|| node.child_by_field_name("name"));
    let (at, text) = match name {
        Some(name) => (name, walk.name(name)),
        None if is_default(walk, node) => (node, DEFAULT.to_owned()),
        None => return Enter::Descend,
    };
    let kind = match node.kind() {
        "interface_declaration" => SymbolKind::Interface,
        "enum_declaration" => SymbolKind::Enum,
        _ => SymbolKind::Class,
    };
    let mut bases = Vec::new();
    for child in named(node) {
        match child.kind() {
            "class_heritage" => {
                for clause in named(child) {
                    let how = match clause.kind() {
                        "implements_clause" => Inherits::Implements,
                        _ => Inherits::Extends,
                    };
                    match clause.kind() {
                        "extends_clause" => {
                            let value = clause.child_by_field_name("value");
                            bases.extend(value.map(|it| (how, Type::plain(walk.text(it)))));
                        }
                        "implements_clause" => {
                            let all = named(clause).into_iter();
                            bases.extend(all.filter_map(|it| ty(walk, it, 0)).map(|it| (how, it)));
                        }
                        _ => bases.push((how, Type::plain(walk.text(clause)))),
                    }
                }
            }
            "extends_type_clause" => {
                let all = named(child).into_iter();
                bases.extend(
                    all.filter_map(|it| ty(walk, it, 0))
                        .map(|it| (Inherits::Extends, it)),
                );
            }
            _ => {}
        }
    }
    let doc = doc(walk, node);
    let visibility = match is_exported(node) {
        true => Visibility::Public,
        false => Visibility::Internal,
    };
    let generics = generics(walk, node);
    if is_default(walk, node) {
        walk.import_as(node, "", Some(&text), DEFAULT, true);
    }
    let new = New {
        kind,
        name: text,
        at,
        whole: node,
        body: node.child_by_field_name("body"),
    };
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.bases = bases;
        symbol.doc = doc;
        symbol.visibility = visibility;
        symbol.generics = generics;
    }
    Enter::Scope(n)
}

fn alias(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let value = node.child_by_field_name("value");
    let target = value.and_then(|it| ty(walk, it, 0));
    let is_object = value.is_some_and(|it| it.kind() == "object_type");
    let (doc, generics) = (doc(walk, node), generics(walk, node));
    let new = New {
        kind: if is_object {
            SymbolKind::Interface
        } else {
            SymbolKind::TypeAlias
        },
        name: walk.name(name),
        at: name,
        whole: node,
        body: value,
    };
    let visibility = match is_exported(node) {
        true => Visibility::Public,
        false => Visibility::Internal,
    };
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.returns = target.filter(|_| !is_object);
        symbol.doc = doc;
        symbol.generics = generics;
        symbol.visibility = visibility;
    }
    Enter::Scope(n)
}

fn namespace(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let text = walk.name(name);
    let new = New {
        kind: SymbolKind::Module,
        name: text.trim_matches(['"', '\'']).to_owned(),
        at: name,
        whole: node,
        body: node.child_by_field_name("body"),
    };
    walk.add(new).map_or(Enter::Descend, Enter::Scope)
}

fn is_function_value(kind: &str) -> bool {
    matches!(
        kind,
        "arrow_function" | "function_expression" | "generator_function" | "function"
    )
}

/// What a value is when it is only wrapped: `memo(() => …)`, `(…)`, `… as T`.
fn unwrapped<'t>(value: Node<'t>) -> Node<'t> {
    match value.kind() {
        "parenthesized_expression" | "as_expression" | "satisfies_expression" => {
            value.named_child(0).unwrap_or(value)
        }
        _ => value,
    }
}

fn variable(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let declared_type = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let value = node.child_by_field_name("value").map(unwrapped);
    if let Some(module) = value.and_then(|it| required(walk, it)) {
        required_names(walk, node, name, &module);
        return Enter::Descend;
    }
    if name.kind() != "identifier" {
        let value = value.map(|it| expr(walk, it, 0));
        binds(walk, name, declared_type, value, 0);
        return Enter::Descend;
    }
    let text = walk.name(name);
    if let Some(value) = value {
        if is_function_value(value.kind()) {
            return function(walk, value, name, text, SymbolKind::Function, node);
        }
        if value.kind() == "class" {
            return declared(walk, value, Some(name));
        }
    }
    let is_top = walk.function().is_none();
    let made = value.map(|it| expr(walk, it, 0));
    walk.bind(name, &text, declared_type.clone(), made);
    let is_object = value.is_some_and(|it| it.kind() == "object");
    if !is_top && !is_object {
        return Enter::Descend;
    }
    if !is_top && !value.is_some_and(has_functions) {
        return Enter::Descend;
    }
    let new = New {
        kind: SymbolKind::Constant,
        name: text,
        at: name,
        whole: node,
        body: value.filter(|it| it.byte_range().len() > 80),
    };
    let doc = doc(walk, node);
    let visibility = match is_exported(node) {
        true => Visibility::Public,
        false => Visibility::Internal,
    };
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.returns = declared_type;
        symbol.doc = doc;
        symbol.visibility = visibility;
    }
    match is_object {
        true => Enter::Scope(n),
        false => Enter::Descend,
    }
}

fn has_functions(object: Node<'_>) -> bool {
    let is_function = |it: &Node<'_>| {
        let value = it.child_by_field_name("value");
        it.kind() == "method_definition" || value.is_some_and(|it| is_function_value(it.kind()))
    };
    named(object).iter().any(is_function)
}

/// The module of `require("…")`.
fn required(walk: &Walk<'_>, value: Node<'_>) -> Option<String> {
    if value.kind() != "call_expression" || walk.field(value, "function") != Some("require") {
        return None;
    }
    let list = value.child_by_field_name("arguments")?;
    let only = list.named_child(0).filter(|it| it.kind() == "string")?;
    Some(walk.text(only).trim_matches(['"', '\'', '`']).to_owned())
}

fn required_names(walk: &mut Walk<'_>, node: Node<'_>, pattern: Node<'_>, module: &str) {
    if pattern.kind() == "identifier" {
        walk.import(node, module, None, walk.text(pattern));
        return;
    }
    for child in named(pattern) {
        match child.kind() {
            "shorthand_property_identifier_pattern" => {
                let name = walk.text(child);
                walk.import(node, module, Some(name), name);
            }
            "pair_pattern" => {
                let name = walk.field(child, "key").unwrap_or_default();
                let alias = walk.field(child, "value").unwrap_or_default();
                walk.import(node, module, Some(name), alias);
            }
            _ => {}
        }
    }
}

fn field(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let (Some(name), Some(class)) = (node.child_by_field_name("name"), walk.direct_type()) else {
        return Enter::Descend;
    };
    let text = walk.name(name).trim_matches(['"', '\'', '#']).to_owned();
    let value = node.child_by_field_name("value").map(unwrapped);
    if let Some(value) = value.filter(|it| is_function_value(it.kind())) {
        return function(walk, value, name, text, SymbolKind::Method, node);
    }
    let declared_type = node.child_by_field_name("type");
    let kind = declared_type
        .and_then(|it| it.named_child(0))
        .map(|it| it.kind());
    if kind == Some("function_type") {
        // A member that is called like a method.
        let entered = function(walk, node, name, text, SymbolKind::Method, node);
        let returns = declared_type
            .and_then(|it| it.named_child(0))
            .and_then(|it| it.child_by_field_name("return_type"))
            .and_then(|it| ty(walk, it, 0));
        if let Enter::Scope(n) = entered
            && let Some(symbol) = walk.symbol_mut(n)
        {
            symbol.returns = returns;
        }
        return entered;
    }
    let ty = declared_type.and_then(|it| ty(walk, it, 0));
    let value = value.map(|it| expr(walk, it, 0));
    walk.bind_field(class, name, &text, ty, value);
    Enter::Descend
}

/// A function in an object that has a name.
fn pair(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let of = walk.scope().filter(|it| {
        walk.symbol(*it)
            .is_some_and(|it| it.kind == SymbolKind::Constant)
    });
    let is_direct = node.parent().and_then(|it| it.parent()).is_some_and(|it| {
        matches!(
            it.kind(),
            "variable_declarator"
                | "as_expression"
                | "satisfies_expression"
                | "assignment_expression"
        )
    });
    let key = node.child_by_field_name("key");
    let value = node.child_by_field_name("value").map(unwrapped);
    let (Some(of), Some(key), Some(value), true) = (of, key, value, is_direct) else {
        return Enter::Descend;
    };
    let text = walk.name(key).trim_matches(['"', '\'']).to_owned();
    if is_function_value(value.kind()) {
        return function(walk, value, key, text, SymbolKind::Method, node);
    }
    let value = expr(walk, value, 0);
    walk.bind_field(of, key, &text, None, Some(value));
    Enter::Descend
}

/// `exports.f = …`, `module.exports = …`, `T.prototype.f = …`, `this.f = …`
fn assignment(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let left = node.child_by_field_name("left");
    let right = node.child_by_field_name("right").map(unwrapped);
    let (Some(left), Some(right)) = (left, right) else {
        return Enter::Descend;
    };
    let target = walk.text(left);
    let is_function = is_function_value(right.kind());
    if left.kind() == "identifier" {
        let value = expr(walk, right, 0);
        walk.bind(left, target, None, Some(value));
        return Enter::Descend;
    }
    if left.kind() != "member_expression" {
        return Enter::Descend;
    }
    let (object, property) = (
        walk.field(left, "object").unwrap_or_default(),
        walk.field(left, "property").unwrap_or_default(),
    );
    let at = left.child_by_field_name("property").unwrap_or(left);
    match object {
        "module" if property == "exports" => {
            match right.kind() {
                "identifier" => walk.import_as(node, "", Some(walk.text(right)), DEFAULT, true),
                "object" => {
                    for child in named(right) {
                        if child.kind() == "shorthand_property_identifier" {
                            let name = walk.text(child);
                            walk.import_as(child, "", Some(name), name, true);
                        } else if child.kind() == "pair" {
                            let value = child.child_by_field_name("value");
                            let value = value.filter(|it| it.kind() == "identifier");
                            let key = walk.field(child, "key").unwrap_or_default();
                            if let Some(value) = value {
                                walk.import_as(child, "", Some(walk.text(value)), key, true);
                            }
                        }
                    }
                }
                _ => {}
            }
            Enter::Descend
        }
        "exports" | "module.exports" if is_function => function(
            walk,
            right,
            at,
            property.to_owned(),
            SymbolKind::Function,
            node,
        ),
        "exports" | "module.exports" if right.kind() == "identifier" => {
            walk.import_as(node, "", Some(walk.text(right)), property, true);
            Enter::Descend
        }
        "this" => {
            let class = walk.enclosing(|it| it.kind.is_type());
            if let Some(class) = class {
                let value = Expr::In(walk.function().unwrap_or(0), Box::new(expr(walk, right, 0)));
                walk.bind_field(class, at, property, None, Some(value));
            }
            Enter::Descend
        }
        _ if is_function => {
            let owner = object.strip_suffix(".prototype").unwrap_or(object);
            let is_name = owner
                .chars()
                .all(|it| it.is_alphanumeric() || it == '_' || it == '$');
            if !is_name {
                return Enter::Descend;
            }
            let entered = function(
                walk,
                right,
                at,
                property.to_owned(),
                SymbolKind::Method,
                node,
            );
            if let Enter::Scope(n) = entered
                && let Some(symbol) = walk.symbol_mut(n)
            {
                symbol.owner = Some(Type::plain(owner));
            }
            entered
        }
        _ => Enter::Descend,
    }
}

fn imports(walk: &mut Walk<'_>, node: Node<'_>) {
    let module = walk.field(node, "source").unwrap_or_default();
    let module = module.trim_matches(['"', '\'']).to_owned();
    let Some(clause) = child_of_kind(node, &["import_clause"]) else {
        if !module.is_empty() {
            walk.import(node, &module, None, "");
        }
        return;
    };
    for child in named(clause) {
        match child.kind() {
            "identifier" => walk.import(node, &module, Some(DEFAULT), walk.text(child)),
            "namespace_import" => {
                if let Some(name) = child.named_child(0) {
                    walk.import(node, &module, None, walk.text(name));
                }
            }
            "named_imports" => {
                for specifier in named(child) {
                    let name = walk.field(specifier, "name").unwrap_or_default();
                    let alias = walk.field(specifier, "alias").unwrap_or(name);
                    walk.import(node, &module, Some(name), alias);
                }
            }
            _ => {}
        }
    }
}

fn exports(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let source = walk.field(node, "source").unwrap_or_default();
    let source = source.trim_matches(['"', '\'']).to_owned();
    let mut is_list = false;
    for child in named(node) {
        match child.kind() {
            "export_clause" => {
                is_list = true;
                for specifier in named(child) {
                    let name = walk.field(specifier, "name").unwrap_or_default();
                    let alias = walk.field(specifier, "alias").unwrap_or(name);
                    walk.import_as(node, &source, Some(name), alias, true);
                }
            }
            "namespace_export" => {
                is_list = true;
                let name = child
                    .named_child(0)
                    .map(|it| walk.text(it))
                    .unwrap_or_default();
                walk.import_as(node, &source, None, name, true);
            }
            _ => {}
        }
    }
    if !is_list && !source.is_empty() {
        walk.import_as(node, &source, Some("*"), "", true);
    }
    let value = node.child_by_field_name("value").map(unwrapped);
    match value {
        Some(value) if value.kind() == "identifier" => {
            walk.import_as(node, "", Some(walk.text(value)), DEFAULT, true);
        }
        Some(value) if is_function_value(value.kind()) => {
            walk.import_as(node, "", Some(DEFAULT), DEFAULT, true);
            return function(
                walk,
                value,
                value,
                DEFAULT.to_owned(),
                SymbolKind::Function,
                node,
            );
        }
        Some(value) if value.kind() == "call_expression" => {
            // `export default wrap(Component)`
            let list = value.child_by_field_name("arguments");
            let first = list.and_then(|it| it.named_child(0));
            if let Some(first) = first.filter(|it| it.kind() == "identifier") {
                walk.import_as(node, "", Some(walk.text(first)), DEFAULT, true);
            }
        }
        _ => {}
    }
    Enter::Descend
}

fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(function) = node.child_by_field_name("function") else {
        return;
    };
    let args = n_args(node.child_by_field_name("arguments"));
    match function.kind() {
        "import" => {
            let list = node.child_by_field_name("arguments");
            let only = list
                .and_then(|it| it.named_child(0))
                .filter(|it| it.kind() == "string");
            if let Some(only) = only {
                let module = walk.text(only).trim_matches(['"', '\'']).to_owned();
                walk.import(node, &module, None, "");
            }
        }
        "super" => walk.call(function, Expr::Call(Box::new(Expr::Super)), args),
        _ => {
            let callee = expr(walk, function, 0);
            walk.call(last_name(function), callee, args);
        }
    }
}

/// The names of a function without one: they hold in the function around it.
fn unnamed(walk: &mut Walk<'_>, node: Node<'_>) {
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

fn ty(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Option<Type> {
    if depth > EXPR_DEPTH_MAX {
        return None;
    }
    let only = || node.named_child(0).and_then(|it| ty(walk, it, depth + 1));
    match node.kind() {
        "type_annotation"
        | "parenthesized_type"
        | "readonly_type"
        | "type_predicate_annotation"
        | "asserts_annotation" => only(),
        "type_identifier"
        | "nested_type_identifier"
        | "predefined_type"
        | "identifier"
        | "this_type" => Some(Type::plain(walk.text(node))),
        "member_expression" => Some(Type::plain(
            walk.text(node).replace(char::is_whitespace, ""),
        )),
        "generic_type" => {
            let name = walk.field(node, "name")?;
            let args = child_of_kind(node, &["type_arguments"])
                .map(named)
                .unwrap_or_default();
            let args: Vec<Type> = args
                .into_iter()
                .map(|it| ty(walk, it, depth + 1).unwrap_or_default())
                .collect();
            match name {
                "Readonly" | "Partial" | "Required" | "NonNullable" | "Awaited" => {
                    args.into_iter().next()
                }
                _ => Some(Type {
                    name: name.to_owned(),
                    args,
                }),
            }
        }
        "array_type" => Some(Type {
            name: "Array".to_owned(),
            args: only().into_iter().collect(),
        }),
        "tuple_type" => Some(Type {
            name: "()".to_owned(),
            args: named(node)
                .into_iter()
                .map(|it| ty(walk, it, depth + 1).unwrap_or_default())
                .collect(),
        }),
        "union_type" | "intersection_type" => {
            let mut parts = Vec::new();
            flat_union(walk, node, &mut parts, depth);
            parts.retain(|it| !matches!(it.name.as_str(), "null" | "undefined"));
            match parts.len() {
                0 => None,
                1 => parts.pop(),
                _ => Some(Type {
                    name: "|".to_owned(),
                    args: parts,
                }),
            }
        }
        "literal_type" => {
            let text = walk.text(node);
            matches!(text, "null" | "undefined").then(|| Type::plain(text))
        }
        "function_type" => {
            let returns = node.child_by_field_name("return_type");
            let returns = returns.and_then(|it| ty(walk, it, depth + 1));
            Some(Type {
                name: "=>".to_owned(),
                args: vec![returns.unwrap_or_default()],
            })
        }
        "type_query" => {
            let name = node.named_child(0).map(|it| walk.text(it))?;
            Some(Type {
                name: "typeof".to_owned(),
                args: vec![Type::plain(name)],
            })
        }
        _ => None,
    }
}

fn flat_union(walk: &Walk<'_>, node: Node<'_>, parts: &mut Vec<Type>, depth: usize) {
    if depth > EXPR_DEPTH_MAX {
        return;
    }
    for child in named(node) {
        match child.kind() {
            "union_type" | "intersection_type" => flat_union(walk, child, parts, depth + 1),
            _ => parts.extend(ty(walk, child, depth + 1)),
        }
    }
}

fn expr(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Expr {
    if depth > EXPR_DEPTH_MAX {
        return Expr::Unknown;
    }
    let inner = |field: &str| {
        let child = node.child_by_field_name(field);
        child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
    };
    let first = || {
        let child = node.named_child(0);
        child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
    };
    match node.kind() {
        "identifier" | "shorthand_property_identifier" => Expr::Name(walk.text(node).to_owned()),
        "this" => Expr::This,
        "super" => Expr::Super,
        "member_expression" | "nested_identifier" => {
            let name = walk.field(node, "property").unwrap_or_default();
            let name = name.trim_start_matches('#');
            Expr::Member(Box::new(inner("object")), name.to_owned())
        }
        "call_expression" => Expr::Call(Box::new(inner("function"))),
        "new_expression" => {
            let made = node.child_by_field_name("constructor");
            let args = child_of_kind(node, &["type_arguments"])
                .map(named)
                .unwrap_or_default();
            let args = args
                .into_iter()
                .filter_map(|it| ty(walk, it, depth + 1))
                .collect();
            made.map_or(Expr::Unknown, |it| {
                Expr::New(Type {
                    name: walk.text(it).to_owned(),
                    args,
                })
            })
        }
        "await_expression" => Expr::Await(Box::new(first())),
        "subscript_expression" => Expr::Element(Box::new(inner("object"))),
        "parenthesized_expression" | "non_null_expression" => first(),
        "as_expression" | "satisfies_expression" => {
            let written = named(node).into_iter().nth(1);
            let written = written.and_then(|it| ty(walk, it, depth + 1));
            written
                .filter(|it| it.name != "const")
                .map_or_else(first, Expr::Typed)
        }
        "ternary_expression" => match inner("consequence") {
            Expr::Unknown | Expr::Literal(_) => inner("alternative"),
            found => found,
        },
        "binary_expression" if matches!(walk.field(node, "operator"), Some("||" | "??")) => {
            match inner("left") {
                Expr::Unknown | Expr::Literal(_) => inner("right"),
                found => found,
            }
        }
        "assignment_expression" => inner("right"),
        "arrow_function" | "function_expression" => {
            let body = node.child_by_field_name("body");
            let body = body.filter(|it| it.kind() != "statement_block");
            Expr::Lambda(body.map(|it| Box::new(expr(walk, it, depth + 1))))
        }
        "string" | "template_string" => Expr::Literal("string".to_owned()),
        "number" => Expr::Literal("number".to_owned()),
        "true" | "false" => Expr::Literal("boolean".to_owned()),
        "array" => Expr::Literal("Array".to_owned()),
        "regex" => Expr::Literal("RegExp".to_owned()),
        "null" | "undefined" => Expr::Literal("null".to_owned()),
        _ => Expr::Unknown,
    }
}
