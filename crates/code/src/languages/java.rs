//! Java.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{
    EXPR_DEPTH_MAX, Enter, New, Reader, Walk, child_of_kind, n_args, named, param, with_field,
};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct Java;

impl Reader for Java {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "package_declaration" => {
                let name = child_of_kind(node, &["scoped_identifier", "identifier"]);
                walk.facts.package = name.map(|it| walk.name(it)).unwrap_or_default();
                Enter::Skip
            }
            "import_declaration" => {
                let path = child_of_kind(node, &["scoped_identifier", "identifier"]);
                let path = path.map(|it| walk.text(it)).unwrap_or_default();
                if child_of_kind(node, &["asterisk"]).is_some() {
                    walk.import(node, path, Some("*"), "");
                } else {
                    let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
                    walk.import(node, module, Some(name), name);
                }
                Enter::Skip
            }
            "class_declaration" | "annotation_type_declaration" => {
                declared(walk, node, SymbolKind::Class)
            }
            "record_declaration" => declared(walk, node, SymbolKind::Struct),
            "interface_declaration" => declared(walk, node, SymbolKind::Interface),
            "enum_declaration" => declared(walk, node, SymbolKind::Enum),
            "method_declaration"
            | "constructor_declaration"
            | "compact_constructor_declaration" => method(walk, node),
            "field_declaration" | "constant_declaration" => {
                let ty = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                let modifiers = child_of_kind(node, &["modifiers"]).map(|it| walk.text(it));
                let is_constant = node.kind() == "constant_declaration"
                    || modifiers.is_some_and(|it| it.contains("static") && it.contains("final"));
                for variable in with_field(node, "declarator") {
                    let name = variable.child_by_field_name("name");
                    let (Some(class), Some(name)) = (walk.direct_type(), name) else {
                        continue;
                    };
                    let value = variable
                        .child_by_field_name("value")
                        .map(|it| expr(walk, it, 0));
                    walk.bind_field(class, name, walk.text(name), ty.clone(), value);
                    if is_constant {
                        let new = New {
                            kind: SymbolKind::Constant,
                            name: walk.name(name),
                            at: name,
                            whole: node,
                            body: variable
                                .child_by_field_name("value")
                                .filter(|it| it.byte_range().len() > 80),
                        };
                        let (doc, visibility) = (doc(walk, node), visibility(walk, node));
                        if let Some(n) = walk.add(new)
                            && let Some(symbol) = walk.symbol_mut(n)
                        {
                            symbol.returns = ty.clone();
                            symbol.doc = doc;
                            symbol.visibility = visibility;
                            symbol.is_static = true;
                        }
                    }
                }
                Enter::Descend
            }
            "enum_constant" => {
                let (class, name) = (walk.direct_type(), node.child_by_field_name("name"));
                if let (Some(class), Some(name)) = (class, name) {
                    let of = walk.symbol(class).map(|it| Type::plain(it.name.clone()));
                    walk.bind_field(class, name, walk.text(name), of, None);
                }
                Enter::Descend
            }
            "local_variable_declaration" => {
                let declared = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                let declared = declared.filter(|it| it.name != "var");
                for variable in with_field(node, "declarator") {
                    let value = variable
                        .child_by_field_name("value")
                        .map(|it| expr(walk, it, 0));
                    if let Some(name) = variable.child_by_field_name("name") {
                        walk.bind(name, walk.text(name), declared.clone(), value);
                    }
                }
                Enter::Descend
            }
            "enhanced_for_statement" | "resource" | "catch_formal_parameter" => {
                let declared = node
                    .child_by_field_name("type")
                    .or_else(|| {
                        child_of_kind(node, &["catch_type"]).and_then(|it| it.named_child(0))
                    })
                    .and_then(|it| ty(walk, it, 0));
                let value = node
                    .child_by_field_name("value")
                    .map(|it| expr(walk, it, 0));
                let value = match node.kind() {
                    "enhanced_for_statement" => value.map(|it| Expr::Element(Box::new(it))),
                    _ => value,
                };
                if let Some(name) = node.child_by_field_name("name") {
                    walk.bind(
                        name,
                        walk.text(name),
                        declared.filter(|it| it.name != "var"),
                        value,
                    );
                }
                Enter::Descend
            }
            "instanceof_expression" => {
                let declared = node
                    .child_by_field_name("right")
                    .and_then(|it| ty(walk, it, 0));
                if let Some(name) = node.child_by_field_name("name") {
                    walk.bind(name, walk.text(name), declared, None);
                }
                Enter::Descend
            }
            "lambda_expression" => {
                let list = node.child_by_field_name("parameters");
                if let Some(list) = list {
                    if list.kind() == "identifier" {
                        walk.bind(list, walk.text(list), None, lambda_value(walk, node));
                    }
                    for child in named(list) {
                        let declared = child
                            .child_by_field_name("type")
                            .and_then(|it| ty(walk, it, 0));
                        let name = child.child_by_field_name("name").unwrap_or(child);
                        walk.bind(name, walk.text(name), declared, Some(Expr::Unknown));
                    }
                }
                Enter::Descend
            }
            "method_invocation" => {
                let callee = expr_of_call(walk, node, 0);
                let args = n_args(node.child_by_field_name("arguments"));
                let at = node.child_by_field_name("name").unwrap_or(node);
                walk.call(at, callee, args);
                Enter::Descend
            }
            "object_creation_expression" => {
                let made = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                let args = n_args(node.child_by_field_name("arguments"));
                if let Some(made) = made {
                    walk.call(node, Expr::New(made), args);
                }
                Enter::Descend
            }
            "explicit_constructor_invocation" => {
                let of = match walk.field(node, "constructor") {
                    Some("this") => Expr::This,
                    _ => Expr::Super,
                };
                let args = n_args(node.child_by_field_name("arguments"));
                walk.call(node, Expr::Call(Box::new(of)), args);
                Enter::Descend
            }
            "method_reference" => {
                let mut parts = named(node).into_iter();
                let (of, name) = (parts.next(), parts.last());
                if let (Some(of), Some(name)) = (of, name) {
                    let of = expr(walk, of, 0);
                    let name = walk.text(name).to_owned();
                    walk.value(node, Expr::Member(Box::new(of), name));
                }
                Enter::Descend
            }
            "type_identifier" | "scoped_type_identifier" => {
                let name = walk.text(node).to_owned();
                walk.uses(node, &name);
                Enter::Skip
            }
            _ => Enter::Descend,
        }
    }
}

/// `xs.forEach(x -> …)`: an element of what the method is called on.
fn lambda_value(walk: &Walk<'_>, node: Node<'_>) -> Option<Expr> {
    let call = node
        .parent()
        .filter(|it| it.kind() == "argument_list")
        .and_then(|it| it.parent())
        .filter(|it| it.kind() == "method_invocation");
    let object = call.and_then(|it| it.child_by_field_name("object"));
    let value = object.map(|it| Expr::Element(Box::new(expr(walk, it, 0))));
    value.or(Some(Expr::Unknown))
}

fn doc(walk: &Walk<'_>, node: Node<'_>) -> String {
    walk.comments_before(node, |it| it.starts_with("/**"))
}

fn visibility(walk: &Walk<'_>, node: Node<'_>) -> Visibility {
    let modifiers = child_of_kind(node, &["modifiers"]).map(|it| walk.text(it));
    let modifiers = modifiers.unwrap_or_default();
    let has = |word: &str| modifiers.split_whitespace().any(|it| it == word);
    match () {
        () if has("public") => Visibility::Public,
        () if has("private") => Visibility::Private,
        () => Visibility::Internal,
    }
}

fn declared(walk: &mut Walk<'_>, node: Node<'_>, kind: SymbolKind) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let mut bases = Vec::new();
    if let Some(base) = node
        .child_by_field_name("superclass")
        .and_then(|it| it.named_child(0))
    {
        bases.extend(ty(walk, base, 0).map(|it| (Inherits::Extends, it)));
    }
    let lists = [
        (node.child_by_field_name("interfaces"), Inherits::Implements),
        (
            child_of_kind(node, &["extends_interfaces"]),
            Inherits::Extends,
        ),
    ];
    for (list, how) in lists {
        let list = list.and_then(|it| child_of_kind(it, &["type_list"]));
        for base in list.map(named).unwrap_or_default() {
            bases.extend(ty(walk, base, 0).map(|it| (how, it)));
        }
    }
    let (doc, visibility, generics) = (
        doc(walk, node),
        visibility(walk, node),
        generics(walk, node),
    );
    let fields = params(walk, node);
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
        symbol.visibility = visibility;
        symbol.generics = generics;
        symbol.is_static = true;
    }
    for field in fields {
        walk.bind_field(n, name, &field.name, field.ty, None);
    }
    Enter::Scope(n)
}

fn generics(walk: &Walk<'_>, node: Node<'_>) -> Vec<Param> {
    let list = node
        .child_by_field_name("type_parameters")
        .or_else(|| child_of_kind(node, &["type_parameters"]));
    let read = |it: Node<'_>| {
        let name = child_of_kind(it, &["type_identifier", "identifier"])?;
        let bound = child_of_kind(it, &["type_bound"]).and_then(|it| it.named_child(0));
        Some(param(
            walk.text(name),
            bound.and_then(|it| ty(walk, it, 0)),
            false,
        ))
    };
    list.map(named)
        .unwrap_or_default()
        .into_iter()
        .filter_map(read)
        .collect()
}

fn params(walk: &Walk<'_>, node: Node<'_>) -> Vec<Param> {
    let mut all = Vec::new();
    for child in node
        .child_by_field_name("parameters")
        .map(named)
        .unwrap_or_default()
    {
        match child.kind() {
            "formal_parameter" => {
                let ty = child
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                all.push(param(
                    walk.field(child, "name").unwrap_or_default(),
                    ty,
                    false,
                ));
            }
            "spread_parameter" => {
                let found = named(child).into_iter().find_map(|it| ty(walk, it, 0));
                let name = child_of_kind(child, &["variable_declarator"]);
                let name = name.map(|it| walk.text(it)).unwrap_or_default();
                let ty = Type {
                    name: "[]".to_owned(),
                    args: found.into_iter().collect(),
                };
                all.push(param(name, Some(ty), true));
            }
            _ => {}
        }
    }
    all
}

fn method(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let is_constructor = node.kind() != "method_declaration";
    let new = New {
        kind: SymbolKind::Method,
        name: match is_constructor {
            true => "<init>".to_owned(),
            false => walk.name(name),
        },
        at: name,
        whole: node,
        body: node.child_by_field_name("body"),
    };
    let params = params(walk, node);
    let returns = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let modifiers = child_of_kind(node, &["modifiers"]);
    let is_static =
        modifiers.is_some_and(|it| walk.text(it).split_whitespace().any(|it| it == "static"));
    let is_marked = |it: &Node<'_>| {
        let name = walk.field(*it, "name").unwrap_or_default();
        matches!(
            name,
            "Test" | "ParameterizedTest" | "RepeatedTest" | "TestFactory" | "org.junit.Test"
        )
    };
    let is_test = modifiers
        .map(named)
        .unwrap_or_default()
        .iter()
        .any(is_marked);
    let (doc, visibility, generics) = (
        doc(walk, node),
        visibility(walk, node),
        generics(walk, node),
    );
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.params = params;
        symbol.returns = returns;
        symbol.doc = doc;
        symbol.visibility = visibility;
        symbol.generics = generics;
        symbol.is_static = is_static;
        symbol.is_test = is_test;
    }
    Enter::Scope(n)
}

fn ty(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Option<Type> {
    if depth > EXPR_DEPTH_MAX {
        return None;
    }
    match node.kind() {
        "type_identifier"
        | "scoped_type_identifier"
        | "integral_type"
        | "floating_point_type"
        | "boolean_type"
        | "void_type"
        | "identifier"
        | "scoped_identifier" => Some(Type::plain(walk.text(node))),
        "generic_type" => {
            let mut found = node.named_child(0).and_then(|it| ty(walk, it, depth + 1))?;
            let args = child_of_kind(node, &["type_arguments"])
                .map(named)
                .unwrap_or_default();
            found.args = args
                .into_iter()
                .map(|it| ty(walk, it, depth + 1).unwrap_or_default())
                .collect();
            Some(found)
        }
        "array_type" => Some(Type {
            name: "[]".to_owned(),
            args: node
                .child_by_field_name("element")
                .and_then(|it| ty(walk, it, depth + 1))
                .into_iter()
                .collect(),
        }),
        "wildcard" => named(node)
            .into_iter()
            .find_map(|it| ty(walk, it, depth + 1)),
        "annotated_type" => named(node)
            .into_iter()
            .last()
            .and_then(|it| ty(walk, it, depth + 1)),
        _ => None,
    }
}

fn expr_of_call(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Expr {
    let name = walk.field(node, "name").unwrap_or_default().to_owned();
    match node.child_by_field_name("object") {
        Some(object) => Expr::Member(Box::new(expr(walk, object, depth + 1)), name),
        None => Expr::Name(name),
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
    match node.kind() {
        "identifier" | "type_identifier" | "scoped_type_identifier" => {
            let mut parts = walk.text(node).split('.');
            let first = Expr::Name(parts.next().unwrap_or_default().to_owned());
            parts.fold(first, |all, part| {
                Expr::Member(Box::new(all), part.to_owned())
            })
        }
        "this" => Expr::This,
        "super" => Expr::Super,
        "field_access" => {
            let name = walk.field(node, "field").unwrap_or_default();
            match name {
                "this" => Expr::This,
                _ => Expr::Member(Box::new(inner("object")), name.to_owned()),
            }
        }
        "method_invocation" => Expr::Call(Box::new(expr_of_call(walk, node, depth))),
        "object_creation_expression" => node
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, depth + 1))
            .map_or(Expr::Unknown, Expr::New),
        "cast_expression" => node
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, depth + 1))
            .map_or(Expr::Unknown, Expr::Typed),
        "array_access" => Expr::Element(Box::new(inner("array"))),
        "parenthesized_expression" => {
            let child = node.named_child(0);
            child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
        }
        "assignment_expression" => inner("right"),
        "ternary_expression" => match inner("consequence") {
            Expr::Unknown | Expr::Literal(_) => inner("alternative"),
            found => found,
        },
        "string_literal" => Expr::Literal("String".to_owned()),
        "class_literal" => Expr::Literal("Class".to_owned()),
        "decimal_integer_literal" | "decimal_floating_point_literal" => {
            Expr::Literal("number".to_owned())
        }
        _ => Expr::Unknown,
    }
}
