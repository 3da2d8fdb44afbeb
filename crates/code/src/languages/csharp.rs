//! C#.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{EXPR_DEPTH_MAX, Enter, New, Reader, Walk, child_of_kind, n_args, named, param};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct CSharp;

impl Reader for CSharp {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "namespace_declaration" | "file_scoped_namespace_declaration" => {
                // The namespace of a file is that of most of it: the last that it names.
                walk.facts.package = walk.field(node, "name").unwrap_or_default().to_owned();
                Enter::Descend
            }
            "using_directive" => {
                let path = named(node).into_iter().last().map(|it| walk.text(it));
                let path = path.unwrap_or_default();
                match walk.field(node, "name") {
                    Some(alias) => {
                        let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
                        walk.import(node, module, Some(name), alias);
                    }
                    None => walk.import(node, path, Some("*"), ""),
                }
                Enter::Skip
            }
            "class_declaration" => declared(walk, node, SymbolKind::Class),
            "record_declaration" | "struct_declaration" => declared(walk, node, SymbolKind::Struct),
            "interface_declaration" => declared(walk, node, SymbolKind::Interface),
            "enum_declaration" => declared(walk, node, SymbolKind::Enum),
            "method_declaration" | "constructor_declaration" | "local_function_statement" => {
                method(walk, node)
            }
            "property_declaration" => {
                let (class, name) = (walk.direct_type(), node.child_by_field_name("name"));
                let ty = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                if let (Some(class), Some(name)) = (class, name) {
                    walk.bind_field(class, name, walk.text(name), ty, None);
                }
                Enter::Descend
            }
            "variable_declaration" => {
                let declared = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                let declared = declared.filter(|it| it.name != "var");
                let is_field = node
                    .parent()
                    .is_some_and(|it| it.kind() == "field_declaration");
                for variable in named(node)
                    .into_iter()
                    .filter(|it| it.kind() == "variable_declarator")
                {
                    let Some(name) = variable.child_by_field_name("name") else {
                        continue;
                    };
                    let value = named(variable)
                        .into_iter()
                        .nth(1)
                        .map(|it| expr(walk, it, 0));
                    match walk.direct_type().filter(|_| is_field) {
                        Some(class) => {
                            walk.bind_field(class, name, walk.text(name), declared.clone(), value);
                        }
                        None => walk.bind(name, walk.text(name), declared.clone(), value),
                    }
                }
                Enter::Descend
            }
            "foreach_statement" => {
                let declared = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                let value = node
                    .child_by_field_name("right")
                    .map(|it| expr(walk, it, 0));
                if let Some(name) = node.child_by_field_name("left") {
                    let value = value.map(|it| Expr::Element(Box::new(it)));
                    walk.bind(
                        name,
                        walk.text(name),
                        declared.filter(|it| it.name != "var"),
                        value,
                    );
                }
                Enter::Descend
            }
            "declaration_pattern" => {
                let declared = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                if let Some(name) = node.child_by_field_name("name") {
                    walk.bind(name, walk.text(name), declared, None);
                }
                Enter::Descend
            }
            "invocation_expression" => {
                if let Some(function) = node.child_by_field_name("function") {
                    let callee = expr(walk, function, 0);
                    let args = n_args(node.child_by_field_name("arguments"));
                    let at = function.child_by_field_name("name").unwrap_or(function);
                    walk.call(at, callee, args);
                }
                Enter::Descend
            }
            "object_creation_expression" => {
                let made = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                if let Some(made) = made {
                    let args = n_args(node.child_by_field_name("arguments"));
                    walk.call(node, Expr::New(made), args);
                }
                Enter::Descend
            }
            _ => Enter::Descend,
        }
    }
}

fn doc(walk: &Walk<'_>, node: Node<'_>) -> String {
    let text = walk.comments_before(node, |it| it.starts_with("///"));
    let without = text.replace("<summary>", "").replace("</summary>", "");
    without.trim().to_owned()
}

fn modifiers<'a>(walk: &Walk<'a>, node: Node<'_>) -> Vec<&'a str> {
    let all = named(node).into_iter().filter(|it| it.kind() == "modifier");
    all.map(|it| walk.text(it)).collect()
}

fn visibility(modifiers: &[&str]) -> Visibility {
    match () {
        () if modifiers.contains(&"public") => Visibility::Public,
        () if modifiers.contains(&"internal") || modifiers.contains(&"protected") => {
            Visibility::Internal
        }
        () => Visibility::Private,
    }
}

fn declared(walk: &mut Walk<'_>, node: Node<'_>, kind: SymbolKind) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let mut bases = Vec::new();
    if let Some(list) = child_of_kind(node, &["base_list"]) {
        for base in named(list) {
            let found = ty(walk, base, 0);
            // An interface begins with I and another capital, by the custom of the language.
            let is_interface = found.as_ref().is_some_and(|it| {
                let mut signs = it.name.rsplit('.').next().unwrap_or_default().chars();
                signs.next() == Some('I') && signs.next().is_some_and(char::is_uppercase)
            });
            let how = match is_interface && kind != SymbolKind::Interface {
                true => Inherits::Implements,
                false => Inherits::Extends,
            };
            bases.extend(found.map(|it| (how, it)));
        }
    }
    let (doc, modifiers) = (doc(walk, node), modifiers(walk, node));
    let fields = params(walk, child_of_kind(node, &["parameter_list"]));
    let new = New {
        kind,
        name: walk.name(name),
        at: name,
        whole: node,
        body: node.child_by_field_name("body"),
    };
    let is_nested = walk.direct_type().is_some();
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    // A type that stands in no other is its assembly's unless more is said.
    let is_stated = ["public", "internal", "protected", "private", "file"];
    let is_stated = modifiers.iter().any(|it| is_stated.contains(it));
    let visibility = match is_nested || is_stated {
        true => visibility(&modifiers),
        false => Visibility::Internal,
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.bases = bases;
        symbol.doc = doc;
        symbol.visibility = visibility;
    }
    for field in fields {
        walk.bind_field(n, name, &field.name, field.ty, None);
    }
    Enter::Scope(n)
}

fn params(walk: &Walk<'_>, list: Option<Node<'_>>) -> Vec<Param> {
    let mut all = Vec::new();
    for child in list.map(named).unwrap_or_default() {
        if child.kind() == "parameter" {
            let ty = child
                .child_by_field_name("type")
                .and_then(|it| ty(walk, it, 0));
            let text = walk.text(child);
            let is_optional = text.contains('=') || text.starts_with("params ");
            all.push(param(
                walk.field(child, "name").unwrap_or_default(),
                ty,
                is_optional,
            ));
        }
    }
    all
}

fn method(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let is_local = node.kind() == "local_function_statement";
    let new = New {
        kind: if is_local {
            SymbolKind::Function
        } else {
            SymbolKind::Method
        },
        name: match node.kind() {
            "constructor_declaration" => "<init>".to_owned(),
            _ => walk.name(name),
        },
        at: name,
        whole: node,
        body: node.child_by_field_name("body"),
    };
    let params = params(walk, node.child_by_field_name("parameters"));
    let returns = node
        .child_by_field_name("returns")
        .or_else(|| node.child_by_field_name("type"))
        .and_then(|it| ty(walk, it, 0));
    let attributes: String = named(node)
        .into_iter()
        .filter(|it| it.kind() == "attribute_list")
        .map(|it| walk.text(it))
        .collect();
    let is_test = ["[Fact", "[Theory", "[Test", "[TestMethod"]
        .iter()
        .any(|it| attributes.contains(it));
    let (doc, modifiers) = (doc(walk, node), modifiers(walk, node));
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.params = params;
        symbol.returns = returns;
        symbol.doc = doc;
        symbol.is_static = modifiers.contains(&"static");
        symbol.is_test = is_test;
        symbol.visibility = visibility(&modifiers);
    }
    Enter::Scope(n)
}

fn ty(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Option<Type> {
    if depth > EXPR_DEPTH_MAX {
        return None;
    }
    match node.kind() {
        "identifier" | "qualified_name" | "predefined_type" | "implicit_type" => {
            let text = walk.text(node);
            Some(Type::plain(text.split('<').next().unwrap_or_default()))
        }
        "generic_name" => {
            let mut all = named(node).into_iter();
            let name = walk.text(all.next()?).to_owned();
            let args = all.next().map(named).unwrap_or_default();
            let args = args
                .into_iter()
                .map(|it| ty(walk, it, depth + 1).unwrap_or_default())
                .collect();
            Some(Type { name, args })
        }
        "nullable_type" | "array_type" => {
            let inner = node
                .child_by_field_name("type")
                .and_then(|it| ty(walk, it, depth + 1));
            match node.kind() {
                "array_type" => Some(Type {
                    name: "[]".to_owned(),
                    args: inner.into_iter().collect(),
                }),
                _ => inner,
            }
        }
        "primary_constructor_base_type" => {
            node.named_child(0).and_then(|it| ty(walk, it, depth + 1))
        }
        _ => None,
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
    let plain = |text: &str| text.split('<').next().unwrap_or_default().to_owned();
    match node.kind() {
        "identifier" | "generic_name" => Expr::Name(plain(walk.text(node))),
        "this" | "this_expression" => Expr::This,
        "base" | "base_expression" => Expr::Super,
        "member_access_expression" => {
            let name = plain(walk.field(node, "name").unwrap_or_default());
            Expr::Member(Box::new(inner("expression")), name)
        }
        "conditional_access_expression" => {
            let binding = child_of_kind(node, &["member_binding_expression"]);
            let name = binding
                .and_then(|it| walk.field(it, "name"))
                .unwrap_or_default();
            Expr::Member(Box::new(inner("condition")), plain(name))
        }
        "invocation_expression" => Expr::Call(Box::new(inner("function"))),
        "object_creation_expression" => node
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, depth + 1))
            .map_or(Expr::Unknown, Expr::New),
        "cast_expression" => node
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, depth + 1))
            .map_or(Expr::Unknown, Expr::Typed),
        "await_expression" | "parenthesized_expression" => {
            let child = node.named_child(0);
            let value = child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1));
            match node.kind() {
                "await_expression" => Expr::Await(Box::new(value)),
                _ => value,
            }
        }
        "element_access_expression" => Expr::Element(Box::new(inner("expression"))),
        "string_literal" | "interpolated_string_expression" => Expr::Literal("string".to_owned()),
        _ => Expr::Unknown,
    }
}
