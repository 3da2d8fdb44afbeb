//! C and C++.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{
    EXPR_DEPTH_MAX, Enter, New, Reader, Walk, child_of_kind, n_args, named, param, with_field,
};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct CFamily;

impl Reader for CFamily {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "preproc_include" => {
                let path = walk.field(node, "path").unwrap_or_default();
                let path = path.trim_matches(['"', '<', '>']);
                walk.import(node, path, Some("*"), "");
                Enter::Skip
            }
            "preproc_def" | "preproc_function_def" => {
                let Some(name) = node.child_by_field_name("name") else {
                    return Enter::Skip;
                };
                walk.add(New {
                    kind: match node.kind() {
                        "preproc_def" => SymbolKind::Constant,
                        _ => SymbolKind::Macro,
                    },
                    name: walk.name(name),
                    at: name,
                    whole: node,
                    body: node.child_by_field_name("value"),
                });
                Enter::Skip
            }
            "namespace_definition" => {
                let Some(name) = node.child_by_field_name("name") else {
                    return Enter::Descend;
                };
                let new = New {
                    kind: SymbolKind::Module,
                    name: walk.name(name),
                    at: name,
                    whole: node,
                    body: node.child_by_field_name("body"),
                };
                walk.add(new).map_or(Enter::Descend, Enter::Scope)
            }
            "class_specifier" => declared(walk, node, SymbolKind::Class),
            "struct_specifier" | "union_specifier" => declared(walk, node, SymbolKind::Struct),
            "enum_specifier" => declared(walk, node, SymbolKind::Enum),
            "type_definition" | "alias_declaration" => {
                let name = node
                    .child_by_field_name("declarator")
                    .or_else(|| node.child_by_field_name("name"));
                let target = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                if let Some(name) = name.filter(|it| it.kind() == "type_identifier") {
                    let is_same = target.as_ref().is_some_and(|it| it.name == walk.text(name));
                    let new = New {
                        kind: SymbolKind::TypeAlias,
                        name: walk.name(name),
                        at: name,
                        whole: node,
                        body: None,
                    };
                    if !is_same
                        && let Some(n) = walk.add(new)
                        && let Some(symbol) = walk.symbol_mut(n)
                    {
                        symbol.returns = target;
                    }
                }
                Enter::Descend
            }
            "function_definition" => function(walk, node),
            "field_declaration" => field(walk, node),
            "declaration" => declaration(walk, node),
            "parameter_declaration" => Enter::Descend,
            "for_range_loop" => {
                let found = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                let value = node
                    .child_by_field_name("right")
                    .map(|it| expr(walk, it, 0));
                let name = node
                    .child_by_field_name("declarator")
                    .and_then(declared_name);
                if let Some(name) = name {
                    let value = value.map(|it| Expr::Element(Box::new(it)));
                    walk.bind(
                        name,
                        walk.text(name),
                        found.filter(|it| it.name != "auto"),
                        value,
                    );
                }
                Enter::Descend
            }
            "call_expression" => {
                if let Some(function) = node.child_by_field_name("function") {
                    let callee = expr(walk, function, 0);
                    let list = node.child_by_field_name("arguments");
                    let at = function.child_by_field_name("field").unwrap_or(function);
                    walk.call(at, callee, n_args(list));
                    walk.values(list, &["identifier"]);
                }
                Enter::Descend
            }
            "new_expression" => {
                let made = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                if let Some(made) = made {
                    let args = n_args(node.child_by_field_name("arguments"));
                    walk.call(node, Expr::New(made), args);
                }
                Enter::Descend
            }
            "type_identifier" => {
                let name = walk.text(node).to_owned();
                walk.uses(node, &name);
                Enter::Skip
            }
            _ => Enter::Descend,
        }
    }
}

fn doc(walk: &Walk<'_>, node: Node<'_>) -> String {
    let outer = node
        .parent()
        .filter(|it| it.kind() == "template_declaration");
    walk.comments_before(outer.unwrap_or(node), |_| true)
}

/// The name in a declarator, whatever stands around it.
fn declared_name(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node;
    for _ in 0..EXPR_DEPTH_MAX {
        match at.kind() {
            "identifier"
            | "field_identifier"
            | "qualified_identifier"
            | "destructor_name"
            | "operator_name"
            | "type_identifier" => return Some(at),
            _ => {
                at = at
                    .child_by_field_name("declarator")
                    .or_else(|| at.named_child(0))?;
            }
        }
    }
    None
}

/// The part of a declarator that has the parameters.
fn function_declarator(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node.child_by_field_name("declarator")?;
    for _ in 0..EXPR_DEPTH_MAX {
        if at.kind() == "function_declarator" {
            return Some(at);
        }
        at = at
            .child_by_field_name("declarator")
            .or_else(|| at.named_child(0))?;
    }
    None
}

fn declared(walk: &mut Walk<'_>, node: Node<'_>, kind: SymbolKind) -> Enter {
    let body = node.child_by_field_name("body");
    let name = node.child_by_field_name("name");
    // Without a body it is only named.
    let Some(body) = body else {
        return Enter::Descend;
    };
    // `typedef struct { … } name;`
    let alias = node
        .parent()
        .filter(|it| it.kind() == "type_definition")
        .and_then(|it| it.child_by_field_name("declarator"));
    let Some(name) = name.or(alias) else {
        return Enter::Descend;
    };
    let mut bases = Vec::new();
    if let Some(clause) = child_of_kind(node, &["base_class_clause"]) {
        for base in named(clause) {
            bases.extend(ty(walk, base, 0).map(|it| (Inherits::Extends, it)));
        }
    }
    let doc = doc(walk, node);
    let new = New {
        kind,
        name: walk.name(name),
        at: name,
        whole: node,
        body: Some(body),
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

fn params(walk: &Walk<'_>, declarator: Node<'_>) -> Vec<Param> {
    let list = declarator
        .child_by_field_name("parameters")
        .map(named)
        .unwrap_or_default();
    let mut all = Vec::new();
    for child in list {
        match child.kind() {
            "parameter_declaration" | "optional_parameter_declaration" => {
                let found = child
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                let name = child
                    .child_by_field_name("declarator")
                    .and_then(declared_name);
                let name = name.map(|it| walk.text(it)).unwrap_or_default();
                let is_void = name.is_empty() && found.as_ref().is_some_and(|it| it.name == "void");
                if !is_void {
                    all.push(param(name, found, child.kind().starts_with("optional")));
                }
            }
            "variadic_parameter" | "variadic_parameter_declaration" => {
                all.push(param("...", None, true));
            }
            _ => {}
        }
    }
    all
}

fn function(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(declarator) = function_declarator(node) else {
        return Enter::Descend;
    };
    let name = declarator
        .child_by_field_name("declarator")
        .and_then(declared_name);
    let Some(name) = name else {
        return Enter::Descend;
    };
    let body = node.child_by_field_name("body");
    add_function(walk, node, declarator, name, body)
}

fn add_function(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    declarator: Node<'_>,
    name: Node<'_>,
    body: Option<Node<'_>>,
) -> Enter {
    let whole_name = walk.text(name).replace("::", ".");
    let (owner, short) = match whole_name.rsplit_once('.') {
        Some((owner, short)) => (Some(Type::plain(owner)), short.to_owned()),
        None => (None, whole_name),
    };
    let is_member = owner.is_some() || walk.direct_type().is_some();
    let class = walk
        .direct_type()
        .and_then(|it| walk.symbol(it))
        .map(|it| it.name.clone());
    let last = owner
        .as_ref()
        .map(|it| it.name.rsplit('.').next().unwrap_or_default().to_owned());
    let is_constructor = class.or(last).is_some_and(|it| it == short);
    let mut params = params(walk, declarator);
    let is_test = matches!(short.as_str(), "TEST" | "TEST_F" | "TEST_CASE" | "TEST_P");
    // A test is a macro that is given its names.
    let titles = params.iter().filter(|_| is_test);
    let titles: Vec<&str> = titles
        .filter_map(|it| Some(it.ty.as_ref()?.name.as_str()))
        .collect();
    let title = titles.join(".");
    if !title.is_empty() {
        params.clear();
    }
    let new = New {
        kind: if is_member {
            SymbolKind::Method
        } else {
            SymbolKind::Function
        },
        name: if is_constructor {
            "<init>".to_owned()
        } else if title.is_empty() {
            crate::walk::name_of(&short)
        } else {
            crate::walk::name_of(&title)
        },
        at: name,
        whole: node,
        body,
    };
    let returns = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let doc = doc(walk, node);
    let text = walk.text(node);
    let is_static = text.starts_with("static ");
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.owner = owner;
        symbol.params = params;
        symbol.returns = returns;
        symbol.doc = doc;
        symbol.is_test = is_test;
        symbol.is_static = is_static && is_member;
        symbol.visibility = match is_static && !is_member {
            true => Visibility::Private,
            false => Visibility::Public,
        };
    }
    Enter::Scope(n)
}

fn field(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    if let Some(declarator) = function_declarator(node) {
        let name = declarator
            .child_by_field_name("declarator")
            .and_then(declared_name);
        if let Some(name) = name {
            return add_function(walk, node, declarator, name, None);
        }
    }
    let found = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    if let Some(class) = walk.direct_type() {
        for declarator in with_field(node, "declarator") {
            if let Some(name) = declared_name(declarator) {
                walk.bind_field(class, name, walk.text(name), found.clone(), None);
            }
        }
    }
    Enter::Descend
}

fn declaration(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let found = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let found = found.filter(|it| it.name != "auto");
    let is_top = walk.function().is_none();
    for declarator in with_field(node, "declarator") {
        let Some(name) = declared_name(declarator) else {
            continue;
        };
        let has_params = function_declarator(node).is_some();
        if has_params && is_top {
            // A prototype: declared here, defined elsewhere.
            if let Some(declarator) = function_declarator(node) {
                return add_function(walk, node, declarator, name, None);
            }
        }
        let value = declarator
            .child_by_field_name("value")
            .map(|it| match it.kind() {
                // `T name(…)` makes a value of the type.
                "argument_list" | "initializer_list" => Expr::Unknown,
                _ => expr(walk, it, 0),
            });
        walk.bind(name, walk.text(name), found.clone(), value);
        if is_top && declarator.kind() == "init_declarator" {
            let new = New {
                kind: SymbolKind::Constant,
                name: walk.name(name),
                at: name,
                whole: node,
                body: declarator.child_by_field_name("value"),
            };
            if let Some(n) = walk.add(new)
                && let Some(symbol) = walk.symbol_mut(n)
            {
                symbol.returns = found.clone();
            }
        }
    }
    Enter::Descend
}

fn ty(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Option<Type> {
    if depth > EXPR_DEPTH_MAX {
        return None;
    }
    match node.kind() {
        "type_identifier" | "primitive_type" | "sized_type_specifier" | "identifier" => {
            Some(Type::plain(walk.text(node)))
        }
        "auto" | "placeholder_type_specifier" => Some(Type::plain("auto")),
        "struct_specifier" | "class_specifier" | "enum_specifier" | "union_specifier" => {
            let name = node.child_by_field_name("name")?;
            Some(Type::plain(walk.text(name)))
        }
        "qualified_identifier" => {
            let mut name = walk.text(node);
            let args = match name.find('<') {
                Some(at) => {
                    name = &name[..at];
                    let inner = node.child_by_field_name("name")?;
                    ty(walk, inner, depth + 1)
                        .map(|it| it.args)
                        .unwrap_or_default()
                }
                None => Vec::new(),
            };
            Some(Type {
                name: name.replace("::", "."),
                args,
            })
        }
        "template_type" => {
            let name = walk.field(node, "name")?;
            let args = node
                .child_by_field_name("arguments")
                .map(named)
                .unwrap_or_default();
            let args = args
                .into_iter()
                .filter_map(|it| ty(walk, it, depth + 1))
                .collect();
            Some(Type {
                name: name.to_owned(),
                args,
            })
        }
        "type_descriptor" => {
            let inner = node.child_by_field_name("type")?;
            ty(walk, inner, depth + 1)
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
    match node.kind() {
        "identifier" => Expr::Name(walk.text(node).to_owned()),
        "this" => Expr::This,
        "qualified_identifier" => {
            let text = walk.text(node);
            let text = text
                .split('<')
                .next()
                .unwrap_or_default()
                .replace("::", ".");
            let mut parts = text.split('.').filter(|it| !it.is_empty());
            let first = Expr::Name(parts.next().unwrap_or_default().to_owned());
            parts.fold(first, |all, part| {
                Expr::Member(Box::new(all), part.to_owned())
            })
        }
        "template_function" => inner("name"),
        "field_expression" => {
            let name = walk.field(node, "field").unwrap_or_default();
            let name = name.split('<').next().unwrap_or_default();
            Expr::Member(Box::new(inner("argument")), name.to_owned())
        }
        "call_expression" => Expr::Call(Box::new(inner("function"))),
        "new_expression" => node
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, depth + 1))
            .map_or(Expr::Unknown, Expr::New),
        "cast_expression" => node
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, depth + 1))
            .map_or(Expr::Unknown, Expr::Typed),
        "pointer_expression" | "subscript_expression" => match node.kind() {
            "subscript_expression" => Expr::Element(Box::new(inner("argument"))),
            _ => inner("argument"),
        },
        "parenthesized_expression" => {
            let child = node.named_child(0);
            child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
        }
        "string_literal" | "char_literal" => Expr::Literal("char".to_owned()),
        "number_literal" => Expr::Literal("number".to_owned()),
        _ => Expr::Unknown,
    }
}
