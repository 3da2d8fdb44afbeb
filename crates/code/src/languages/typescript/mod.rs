//! TypeScript and JavaScript, with JSX.

mod functions;
mod heads;
mod imports;
mod patterns;
mod tests;
mod values;

use self::functions::{function, is_overload, method, unnamed};
use self::heads::{DEFAULT, doc, generics, is_default, is_exported, is_function_value, unwrapped};
use self::imports::{imports, required, required_names};
use self::patterns::binds;
use self::tests::test;
use self::values::{expr, last_name, ty};
use crate::facts::{Expr, Inherits, SymbolKind, Type, Visibility};
use crate::walk::{Enter, New, Reader, Walk, n_args, named};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct TypeScript;

impl Reader for TypeScript {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "function_declaration" | "generator_function_declaration" | "function_signature" => {
                let name = node.child_by_field_name("name");
                let Some(name) = name else {
                    return Enter::Descend;
                };
                if is_overload(walk, node) {
                    return Enter::Skip;
                }
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
                test(walk, node).map_or(Enter::Descend, Enter::Scope)
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
    let list = node.child_by_field_name("arguments");
    let args = n_args(list);
    walk.values(list, &["identifier"]);
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
