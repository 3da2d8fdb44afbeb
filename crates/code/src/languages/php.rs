//! PHP.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{EXPR_DEPTH_MAX, Enter, New, Reader, Walk, child_of_kind, n_args, named, param};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct Php;

impl Reader for Php {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "namespace_definition" => {
                let name = walk.field(node, "name").unwrap_or_default();
                walk.facts.package = dotted(name);
                Enter::Descend
            }
            "namespace_use_declaration" => {
                let outer = child_of_kind(node, &["namespace_name"]).map(|it| walk.text(it));
                let mut clauses = named(node);
                clauses.extend(
                    node.child_by_field_name("body")
                        .map(named)
                        .unwrap_or_default(),
                );
                for clause in clauses
                    .into_iter()
                    .filter(|it| it.kind() == "namespace_use_clause")
                {
                    let Some(path) = clause.named_child(0) else {
                        continue;
                    };
                    let path = match outer {
                        Some(outer) => format!("{outer}\\{}", walk.text(path)),
                        None => walk.text(path).to_owned(),
                    };
                    let path = dotted(&path);
                    let (module, name) = path.rsplit_once('.').unwrap_or(("", &path));
                    let alias = walk.field(clause, "alias").unwrap_or(name);
                    walk.import(node, module, Some(name), alias);
                }
                Enter::Skip
            }
            "class_declaration" => declared(walk, node, SymbolKind::Class),
            "interface_declaration" => declared(walk, node, SymbolKind::Interface),
            "trait_declaration" => declared(walk, node, SymbolKind::Trait),
            "enum_declaration" => declared(walk, node, SymbolKind::Enum),
            "use_declaration" => {
                // Traits that a class uses.
                let class = walk.direct_type();
                for name in named(node)
                    .into_iter()
                    .filter(|it| it.kind().ends_with("name"))
                {
                    let base = Type::plain(dotted(walk.text(name)));
                    if let Some(symbol) = class.and_then(|it| walk.symbol_mut(it)) {
                        symbol.bases.push((Inherits::Extends, base));
                    }
                }
                Enter::Skip
            }
            "method_declaration" => function(walk, node, SymbolKind::Method),
            "function_definition" => function(walk, node, SymbolKind::Function),
            "property_declaration" => {
                let found = node.child_by_field_name("type").and_then(|it| ty(walk, it));
                for element in named(node)
                    .into_iter()
                    .filter(|it| it.kind() == "property_element")
                {
                    let name = walk.field(element, "name").unwrap_or_default();
                    if let Some(class) = walk.direct_type() {
                        walk.bind_field(
                            class,
                            element,
                            name.trim_start_matches('$'),
                            found.clone(),
                            None,
                        );
                    }
                }
                Enter::Descend
            }
            "const_declaration" => {
                for element in named(node)
                    .into_iter()
                    .filter(|it| it.kind() == "const_element")
                {
                    if let Some(name) = element.named_child(0) {
                        walk.add(New {
                            kind: SymbolKind::Constant,
                            name: walk.name(name),
                            at: name,
                            whole: node,
                            body: None,
                        });
                    }
                }
                Enter::Descend
            }
            "assignment_expression" => {
                let value = node
                    .child_by_field_name("right")
                    .map(|it| expr(walk, it, 0));
                if let Some(left) = node.child_by_field_name("left") {
                    match left.kind() {
                        "variable_name" => {
                            let name = walk.text(left).trim_start_matches('$').to_owned();
                            walk.bind(left, &name, None, value);
                        }
                        "member_access_expression"
                            if walk.field(left, "object") == Some("$this") =>
                        {
                            let name = walk.field(left, "name").unwrap_or_default().to_owned();
                            let class = walk.enclosing(|it| it.kind.is_type());
                            let function = walk.function();
                            if let (Some(class), Some(function)) = (class, function) {
                                let value = value.map(|it| Expr::In(function, Box::new(it)));
                                walk.bind_field(class, left, &name, None, value);
                            }
                        }
                        _ => {}
                    }
                }
                Enter::Descend
            }
            "function_call_expression" => {
                if let Some(function) = node.child_by_field_name("function") {
                    let callee = expr(walk, function, 0);
                    walk.call(
                        function,
                        callee,
                        n_args(node.child_by_field_name("arguments")),
                    );
                }
                Enter::Descend
            }
            "member_call_expression"
            | "nullsafe_member_call_expression"
            | "scoped_call_expression" => {
                let callee = method_callee(walk, node, 0);
                let at = node.child_by_field_name("name").unwrap_or(node);
                walk.call(at, callee, n_args(node.child_by_field_name("arguments")));
                Enter::Descend
            }
            "object_creation_expression" => {
                let made = child_of_kind(node, &["name", "qualified_name"]);
                if let Some(made) = made {
                    let name = dotted(walk.text(made));
                    let args = n_args(child_of_kind(node, &["arguments"])).or(Some(0));
                    walk.call(node, Expr::New(Type::plain(name)), args);
                }
                Enter::Descend
            }
            _ => Enter::Descend,
        }
    }
}

/// `A\B\C` is `A.B.C`.
fn dotted(text: &str) -> String {
    text.trim_start_matches('\\').replace('\\', ".")
}

fn doc(walk: &Walk<'_>, node: Node<'_>) -> String {
    walk.comments_before(node, |it| it.starts_with("/**") || it.starts_with("//"))
}

fn visibility(walk: &Walk<'_>, node: Node<'_>) -> Visibility {
    match child_of_kind(node, &["visibility_modifier"]).map(|it| walk.text(it)) {
        Some("private") => Visibility::Private,
        Some("protected") => Visibility::Internal,
        _ => Visibility::Public,
    }
}

fn declared(walk: &mut Walk<'_>, node: Node<'_>, kind: SymbolKind) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let mut bases = Vec::new();
    for (clause, how) in [
        ("base_clause", Inherits::Extends),
        ("class_interface_clause", Inherits::Implements),
    ] {
        let clause = child_of_kind(node, &[clause]);
        for base in clause.map(named).unwrap_or_default() {
            bases.push((how, Type::plain(dotted(walk.text(base)))));
        }
    }
    let doc = doc(walk, node);
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
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.bases = bases;
        symbol.doc = doc;
    }
    Enter::Scope(n)
}

fn function(walk: &mut Walk<'_>, node: Node<'_>, kind: SymbolKind) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let mut params: Vec<Param> = Vec::new();
    let class = walk.direct_type();
    let mut promoted = Vec::new();
    let list = node
        .child_by_field_name("parameters")
        .map(named)
        .unwrap_or_default();
    for child in list {
        let found = child
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it));
        let text = walk
            .field(child, "name")
            .unwrap_or_default()
            .trim_start_matches('$');
        let is_optional = child.child_by_field_name("default_value").is_some()
            || child.kind() == "variadic_parameter";
        if child.kind() == "property_promotion_parameter" {
            promoted.push((child, text.to_owned(), found.clone()));
        }
        params.push(param(text, found, is_optional));
    }
    if let Some(class) = class {
        for (at, name, found) in promoted {
            walk.bind_field(class, at, &name, found, None);
        }
    }
    let returns = node
        .child_by_field_name("return_type")
        .and_then(|it| ty(walk, it));
    let (doc, visibility) = (doc(walk, node), visibility(walk, node));
    let is_static = child_of_kind(node, &["static_modifier"]).is_some();
    let text = walk.text(name);
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
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.is_test =
            kind == SymbolKind::Method && (text.starts_with("test") || doc.contains("@test"));
        symbol.params = params;
        symbol.returns = returns;
        symbol.doc = doc;
        symbol.visibility = visibility;
        symbol.is_static = is_static;
    }
    Enter::Scope(n)
}

fn ty(walk: &Walk<'_>, node: Node<'_>) -> Option<Type> {
    let text = walk.text(node).trim_start_matches('?');
    let parts: Vec<Type> = text
        .split(['|', '&'])
        .map(|it| dotted(it.trim()))
        .filter(|it| !it.is_empty() && it != "null")
        .map(Type::plain)
        .collect();
    match parts.len() {
        0 => None,
        1 => parts.into_iter().next(),
        _ => Some(Type {
            name: "|".to_owned(),
            args: parts,
        }),
    }
}

fn method_callee(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Expr {
    let of = node
        .child_by_field_name("object")
        .or_else(|| node.child_by_field_name("scope"));
    let of = of.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1));
    let name = node
        .child_by_field_name("name")
        .filter(|it| it.kind() == "name");
    match name {
        Some(name) => Expr::Member(Box::new(of), walk.text(name).to_owned()),
        None => Expr::Unknown,
    }
}

fn expr(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Expr {
    if depth > EXPR_DEPTH_MAX {
        return Expr::Unknown;
    }
    match node.kind() {
        "variable_name" => match walk.text(node) {
            "$this" => Expr::This,
            text => Expr::Name(text.trim_start_matches('$').to_owned()),
        },
        "name" | "qualified_name" | "relative_scope" => {
            let text = dotted(walk.text(node));
            let mut parts = text.split('.');
            let first = Expr::Name(parts.next().unwrap_or_default().to_owned());
            parts.fold(first, |all, part| {
                Expr::Member(Box::new(all), part.to_owned())
            })
        }
        "member_access_expression" | "nullsafe_member_access_expression" => {
            let of = node.child_by_field_name("object");
            let of = of.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1));
            let name = walk.field(node, "name").unwrap_or_default();
            Expr::Member(Box::new(of), name.to_owned())
        }
        "scoped_property_access_expression" => {
            let of = node.child_by_field_name("scope");
            let of = of.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1));
            let name = walk.field(node, "name").unwrap_or_default();
            Expr::Member(Box::new(of), name.trim_start_matches('$').to_owned())
        }
        "member_call_expression" | "nullsafe_member_call_expression" | "scoped_call_expression" => {
            Expr::Call(Box::new(method_callee(walk, node, depth)))
        }
        "function_call_expression" => {
            let of = node.child_by_field_name("function");
            Expr::Call(Box::new(
                of.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1)),
            ))
        }
        "object_creation_expression" => {
            let made = child_of_kind(node, &["name", "qualified_name"]);
            made.map_or(Expr::Unknown, |it| {
                Expr::New(Type::plain(dotted(walk.text(it))))
            })
        }
        "parenthesized_expression" => {
            let child = node.named_child(0);
            child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
        }
        "string" | "encapsed_string" => Expr::Literal("string".to_owned()),
        _ => Expr::Unknown,
    }
}
