//! Kotlin.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{EXPR_DEPTH_MAX, Enter, New, Reader, Walk, child_of_kind, named, param};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct Kotlin;

const TYPES: &[&str] = &[
    "user_type",
    "nullable_type",
    "function_type",
    "parenthesized_type",
];

impl Reader for Kotlin {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "package_header" => {
                let name = node.named_child(0).map(|it| walk.name(it));
                walk.facts.package = name.unwrap_or_default();
                Enter::Skip
            }
            "import" => {
                let mut parts = named(node).into_iter();
                let Some(path) = parts.next().map(|it| walk.text(it)) else {
                    return Enter::Skip;
                };
                if walk.text(node).trim_end().ends_with(".*") {
                    walk.import(node, path, Some("*"), "");
                } else {
                    let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
                    let alias = parts.next().map(|it| walk.text(it)).unwrap_or(name);
                    walk.import(node, module, Some(name), alias);
                }
                Enter::Skip
            }
            "class_declaration" => {
                let text = walk.text(node);
                let head = text.split(['{', '(']).next().unwrap_or_default();
                let has = |word: &str| head.split_whitespace().any(|it| it == word);
                declared(
                    walk,
                    node,
                    match () {
                        () if has("interface") => SymbolKind::Interface,
                        () if has("enum") => SymbolKind::Enum,
                        () => SymbolKind::Class,
                    },
                )
            }
            "object_declaration" => declared(walk, node, SymbolKind::Class),
            "companion_object" => Enter::Descend,
            "function_declaration" => function(walk, node),
            "secondary_constructor" => constructor(walk, node),
            "property_declaration" => property(walk, node),
            "call_expression" => {
                if let Some(function) = node.named_child(0) {
                    let callee = expr(walk, function, 0);
                    let list = child_of_kind(node, &["value_arguments"]);
                    let has_block = child_of_kind(node, &["annotated_lambda"]).is_some();
                    let n = list.map_or(0, |it| it.named_child_count()) + usize::from(has_block);
                    walk.call(function, callee, u32::try_from(n).ok());
                }
                Enter::Descend
            }
            "user_type" => {
                let name = type_name(walk, node);
                walk.uses(node, &name);
                Enter::Descend
            }
            _ => Enter::Descend,
        }
    }
}

fn doc(walk: &Walk<'_>, node: Node<'_>) -> String {
    walk.comments_before(node, |it| it.starts_with("/**"))
}

fn modifiers<'a>(walk: &Walk<'a>, node: Node<'_>) -> &'a str {
    child_of_kind(node, &["modifiers"])
        .map(|it| walk.text(it))
        .unwrap_or_default()
}

fn visibility(modifiers: &str) -> Visibility {
    let has = |word: &str| modifiers.split_whitespace().any(|it| it == word);
    match () {
        () if has("private") => Visibility::Private,
        () if has("internal") || has("protected") => Visibility::Internal,
        () => Visibility::Public,
    }
}

fn declared(walk: &mut Walk<'_>, node: Node<'_>, kind: SymbolKind) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let mut bases = Vec::new();
    if let Some(list) = child_of_kind(node, &["delegation_specifiers"]) {
        for specifier in named(list) {
            let Some(inner) = specifier.named_child(0) else {
                continue;
            };
            // A class is constructed, an interface is only named.
            let (how, inner) = match inner.kind() {
                "constructor_invocation" => {
                    (Inherits::Extends, inner.named_child(0).unwrap_or(inner))
                }
                _ => (Inherits::Implements, inner),
            };
            bases.extend(ty(walk, inner, 0).map(|it| (how, it)));
        }
    }
    let (doc, modifiers) = (doc(walk, node), modifiers(walk, node));
    let list = child_of_kind(node, &["primary_constructor"]);
    let list = list.and_then(|it| child_of_kind(it, &["class_parameters"]));
    let fields = params(walk, list);
    let new = New {
        kind,
        name: walk.name(name),
        at: name,
        whole: node,
        body: child_of_kind(node, &["class_body", "enum_class_body"]),
    };
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.bases = bases;
        symbol.doc = doc;
        symbol.visibility = visibility(modifiers);
    }
    for field in fields {
        walk.bind_field(n, name, &field.name, field.ty, None);
    }
    Enter::Scope(n)
}

fn params(walk: &Walk<'_>, list: Option<Node<'_>>) -> Vec<Param> {
    let mut all: Vec<Param> = Vec::new();
    for child in list.map(named).unwrap_or_default() {
        match child.kind() {
            "parameter" | "class_parameter" => {
                let name = child_of_kind(child, &["identifier", "simple_identifier"]);
                let name = name.map(|it| walk.text(it)).unwrap_or_default();
                let found = child_of_kind(child, TYPES).and_then(|it| ty(walk, it, 0));
                all.push(param(name, found, walk.text(child).contains('=')));
            }
            // The value that a parameter has when none is given.
            _ => {
                if let Some(last) = all.last_mut() {
                    last.is_optional = true;
                }
            }
        }
    }
    all
}

fn function(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    // `fun Type.name()` extends a type.
    let receiver = named(node)
        .into_iter()
        .take_while(|it| it.start_byte() < name.start_byte())
        .find(|it| TYPES.contains(&it.kind()))
        .and_then(|it| ty(walk, it, 0));
    let is_member = walk.direct_type().is_some() || receiver.is_some();
    let new = New {
        kind: if is_member {
            SymbolKind::Method
        } else {
            SymbolKind::Function
        },
        name: walk.name(name),
        at: name,
        whole: node,
        body: child_of_kind(node, &["function_body"]),
    };
    let params = params(walk, child_of_kind(node, &["function_value_parameters"]));
    let returns = named(node)
        .into_iter()
        .skip_while(|it| it.kind() != "function_value_parameters")
        .find(|it| TYPES.contains(&it.kind()))
        .and_then(|it| ty(walk, it, 0));
    let (doc, modifiers) = (doc(walk, node), modifiers(walk, node));
    let is_test = modifiers
        .split_whitespace()
        .any(|it| matches!(it, "@Test" | "@ParameterizedTest"));
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.owner = receiver;
        symbol.params = params;
        symbol.returns = returns;
        symbol.doc = doc;
        symbol.is_test = is_test;
        symbol.visibility = visibility(modifiers);
    }
    Enter::Scope(n)
}

fn constructor(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let new = New {
        kind: SymbolKind::Method,
        name: "<init>".to_owned(),
        at: node,
        whole: node,
        body: child_of_kind(node, &["block"]),
    };
    let params = params(walk, child_of_kind(node, &["function_value_parameters"]));
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.params = params;
    }
    Enter::Scope(n)
}

fn property(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(variable) = child_of_kind(node, &["variable_declaration"]) else {
        return Enter::Descend;
    };
    let Some(name) = child_of_kind(variable, &["identifier", "simple_identifier"]) else {
        return Enter::Descend;
    };
    let found = child_of_kind(variable, TYPES).and_then(|it| ty(walk, it, 0));
    let value = named(node)
        .into_iter()
        .find(|it| it.kind().ends_with("expression") || it.kind().ends_with("literal"));
    let value = value.map(|it| expr(walk, it, 0));
    if let Some(class) = walk.direct_type() {
        walk.bind_field(class, name, walk.text(name), found, value);
        return Enter::Descend;
    }
    walk.bind(name, walk.text(name), found.clone(), value);
    if walk.scope().is_none() {
        let new = New {
            kind: SymbolKind::Constant,
            name: walk.name(name),
            at: name,
            whole: node,
            body: None,
        };
        if let Some(n) = walk.add(new)
            && let Some(symbol) = walk.symbol_mut(n)
        {
            symbol.returns = found;
        }
    }
    Enter::Descend
}

fn type_name(walk: &Walk<'_>, node: Node<'_>) -> String {
    let text = walk.text(node);
    let text = text.split('<').next().unwrap_or_default();
    text.trim_end_matches('?').replace(char::is_whitespace, "")
}

fn ty(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Option<Type> {
    if depth > EXPR_DEPTH_MAX {
        return None;
    }
    match node.kind() {
        "user_type" => {
            let args = child_of_kind(node, &["type_arguments"])
                .map(named)
                .unwrap_or_default();
            let args = args.into_iter().map(|it| {
                let inner = it.named_child(0).filter(|_| it.kind() == "type_projection");
                ty(walk, inner.unwrap_or(it), depth + 1).unwrap_or_default()
            });
            Some(Type {
                name: type_name(walk, node),
                args: args.collect(),
            })
        }
        "nullable_type" | "parenthesized_type" => {
            child_of_kind(node, TYPES).and_then(|it| ty(walk, it, depth + 1))
        }
        _ => None,
    }
}

fn expr(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Expr {
    if depth > EXPR_DEPTH_MAX {
        return Expr::Unknown;
    }
    match node.kind() {
        "identifier" | "simple_identifier" => Expr::Name(walk.text(node).to_owned()),
        "this_expression" => Expr::This,
        "super_expression" => Expr::Super,
        "navigation_expression" => {
            let all = named(node);
            let of = all
                .first()
                .map_or(Expr::Unknown, |it| expr(walk, *it, depth + 1));
            let name = all.last().map(|it| walk.text(*it)).unwrap_or_default();
            Expr::Member(Box::new(of), name.trim_start_matches(['.', '?']).to_owned())
        }
        "call_expression" => {
            let of = node.named_child(0);
            Expr::Call(Box::new(
                of.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1)),
            ))
        }
        "parenthesized_expression" => {
            let child = node.named_child(0);
            child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
        }
        "as_expression" => {
            let written = child_of_kind(node, TYPES).and_then(|it| ty(walk, it, depth + 1));
            written.map_or(Expr::Unknown, Expr::Typed)
        }
        "string_literal" => Expr::Literal("String".to_owned()),
        "number_literal" | "integer_literal" => Expr::Literal("Int".to_owned()),
        _ => Expr::Unknown,
    }
}
