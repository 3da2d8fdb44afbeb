//! Go.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{
    EXPR_DEPTH_MAX, Enter, New, Reader, Walk, child_of_kind, line, n_args, named, param, with_field,
};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct Go;

impl Reader for Go {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "package_clause" => {
                let name = node.named_child(0).map(|it| walk.name(it));
                walk.facts.package = name.unwrap_or_default();
                Enter::Skip
            }
            "import_spec" => {
                let path = walk.field(node, "path").unwrap_or_default();
                let path = path.trim_matches(['"', '`']);
                let last = path.rsplit('/').next().unwrap_or_default();
                match walk.field(node, "name") {
                    Some(".") => walk.import(node, path, Some("*"), ""),
                    Some("_") => walk.import(node, path, None, ""),
                    Some(alias) => walk.import(node, path, None, alias),
                    None => walk.import(node, path, None, last),
                }
                Enter::Skip
            }
            "function_declaration" | "method_declaration" => function(walk, node),
            "method_elem" => function(walk, node),
            "type_spec" | "type_alias" => type_spec(walk, node),
            "const_spec" | "var_spec" => variables(walk, node),
            "field_declaration" => {
                field(walk, node);
                Enter::Descend
            }
            "type_elem" => {
                if let (Some(of), Some(base)) = (walk.direct_type(), node.named_child(0))
                    && let Some(base) = ty(walk, base, 0)
                    && let Some(symbol) = walk.symbol_mut(of)
                {
                    symbol.bases.push((Inherits::Extends, base));
                }
                Enter::Descend
            }
            "short_var_declaration" | "assignment_statement" => {
                assign(walk, node);
                Enter::Descend
            }
            "range_clause" => {
                let value = node
                    .child_by_field_name("right")
                    .map(|it| expr(walk, it, 0));
                let names = node
                    .child_by_field_name("left")
                    .map(named)
                    .unwrap_or_default();
                for (n, name) in names.into_iter().enumerate() {
                    let value = value.clone().filter(|_| n == 1);
                    let value = value.map(|it| Expr::Element(Box::new(it)));
                    if name.kind() == "identifier" {
                        walk.bind(name, walk.text(name), None, value.or(Some(Expr::Unknown)));
                    }
                }
                Enter::Descend
            }
            "type_switch_statement" => {
                let alias = node.child_by_field_name("alias");
                if let Some(name) = alias.and_then(|it| it.named_child(0)) {
                    walk.bind(name, walk.text(name), None, Some(Expr::Unknown));
                }
                Enter::Descend
            }
            "type_case" => {
                // In a case of one type the name is of that type.
                let alias = node
                    .parent()
                    .and_then(|it| it.child_by_field_name("alias"))
                    .and_then(|it| it.named_child(0));
                let types = with_field(node, "type");
                if let (Some(alias), [only]) = (alias, types.as_slice()) {
                    let ty = ty(walk, *only, 0);
                    let name = walk.text(alias);
                    walk.bind(*only, name, ty, None);
                }
                Enter::Descend
            }
            "func_literal" => {
                for it in params(walk, node.child_by_field_name("parameters")) {
                    walk.bind(node, &it.name, it.ty, Some(Expr::Unknown));
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
            "type_identifier" | "qualified_type" => {
                let name = walk.text(node).to_owned();
                walk.uses(node, &name);
                Enter::Skip
            }
            _ => Enter::Descend,
        }
    }
}

fn visibility(name: &str) -> Visibility {
    match name.starts_with(char::is_uppercase) {
        true => Visibility::Public,
        false => Visibility::Internal,
    }
}

fn doc(walk: &Walk<'_>, node: Node<'_>) -> String {
    let outer = node.parent().filter(|it| {
        matches!(
            it.kind(),
            "type_declaration" | "const_declaration" | "var_declaration"
        ) && it.named_child_count() == 1
    });
    walk.comments_before(outer.unwrap_or(node), |_| true)
}

fn function(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let receiver = params(walk, node.child_by_field_name("receiver")).pop();
    let is_method = receiver.is_some() || node.kind() == "method_elem";
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
    let params = params(walk, node.child_by_field_name("parameters"));
    let returns = results(walk, node.child_by_field_name("result"));
    let generics = generics(walk, node);
    let doc = doc(walk, node);
    let text = walk.text(name);
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    let takes_test = params.iter().any(|it| {
        it.ty
            .as_ref()
            .is_some_and(|it| matches!(it.name.as_str(), "testing.T" | "testing.B" | "testing.F"))
    });
    let is_marked = ["Test", "Benchmark", "Fuzz"]
        .iter()
        .any(|it| text.starts_with(it));
    if let Some(it) = &receiver {
        walk.bind_first(n, line(node), it.name.clone(), it.ty.clone(), None);
    }
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.is_test = is_marked && takes_test;
        symbol.params = params;
        symbol.returns = returns;
        symbol.generics = generics;
        symbol.owner = receiver.and_then(|it| it.ty).map(|it| Type::plain(it.name));
        symbol.doc = doc;
        symbol.visibility = visibility(text);
    }
    Enter::Scope(n)
}

fn generics(walk: &Walk<'_>, node: Node<'_>) -> Vec<Param> {
    let list = node
        .child_by_field_name("type_parameters")
        .map(named)
        .unwrap_or_default();
    let mut all = Vec::new();
    for child in list {
        let bound = child.child_by_field_name("type");
        let bound = bound
            .and_then(|it| it.named_child(0))
            .and_then(|it| ty(walk, it, 0));
        for name in with_field(child, "name") {
            all.push(param(walk.text(name), bound.clone(), false));
        }
    }
    all
}

fn params(walk: &Walk<'_>, list: Option<Node<'_>>) -> Vec<Param> {
    let mut all = Vec::new();
    for child in list.map(named).unwrap_or_default() {
        let is_variadic = child.kind() == "variadic_parameter_declaration";
        let mut found = child
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, 0));
        if is_variadic {
            found = Some(Type {
                name: "[]".to_owned(),
                args: found.into_iter().collect(),
            });
        }
        let names = with_field(child, "name");
        if names.is_empty() {
            all.push(param("", found, is_variadic));
            continue;
        }
        for name in names {
            all.push(param(walk.text(name), found.clone(), is_variadic));
        }
    }
    all
}

fn results(walk: &Walk<'_>, result: Option<Node<'_>>) -> Option<Type> {
    let result = result?;
    if result.kind() != "parameter_list" {
        return ty(walk, result, 0);
    }
    let all = params(walk, Some(result));
    let args: Vec<Type> = all
        .into_iter()
        .map(|it| it.ty.unwrap_or_default())
        .collect();
    match args.len() {
        1 => args.into_iter().next(),
        _ => Some(Type {
            name: "()".to_owned(),
            args,
        }),
    }
}

fn type_spec(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let (Some(name), Some(of)) = (
        node.child_by_field_name("name"),
        node.child_by_field_name("type"),
    ) else {
        return Enter::Descend;
    };
    let kind = match of.kind() {
        "struct_type" => SymbolKind::Struct,
        "interface_type" => SymbolKind::Interface,
        _ => SymbolKind::TypeAlias,
    };
    let new = New {
        kind,
        name: walk.name(name),
        at: name,
        whole: node,
        body: (kind != SymbolKind::TypeAlias).then_some(of),
    };
    let target = ty(walk, of, 0).filter(|_| kind == SymbolKind::TypeAlias);
    let (doc, generics) = (doc(walk, node), generics(walk, node));
    let text = walk.text(name);
    // A type of its own has methods of its own.
    let is_alias = node.kind() == "type_alias";
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        if !is_alias && kind == SymbolKind::TypeAlias {
            symbol.kind = SymbolKind::Class;
        }
        symbol.returns = target;
        symbol.doc = doc;
        symbol.generics = generics;
        symbol.visibility = visibility(text);
    }
    Enter::Scope(n)
}

fn field(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(of) = walk.direct_type() else {
        return;
    };
    let found = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let names = with_field(node, "name");
    if names.is_empty() {
        // Embedded: its members are this type's too.
        if let Some(found) = found {
            let last = found.name.rsplit('.').next().unwrap_or_default().to_owned();
            if let Some(symbol) = walk.symbol_mut(of) {
                symbol.bases.push((Inherits::Extends, found.clone()));
            }
            walk.bind_field(of, node, &last, Some(found), None);
        }
        return;
    }
    for name in names {
        walk.bind_field(of, name, walk.text(name), found.clone(), None);
    }
}

fn variables(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let found = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let names = with_field(node, "name");
    let values = node
        .child_by_field_name("value")
        .map(named)
        .unwrap_or_default();
    let doc = doc(walk, node);
    for (n, name) in names.iter().copied().enumerate() {
        let value = value_at(walk, &values, names.len(), n);
        walk.bind(name, walk.text(name), found.clone(), value);
        let text = walk.text(name);
        if walk.scope().is_some() || text == "_" {
            continue;
        }
        let new = New {
            kind: SymbolKind::Constant,
            name: walk.name(name),
            at: name,
            whole: node,
            body: values
                .first()
                .copied()
                .filter(|it| it.byte_range().len() > 80),
        };
        if let Some(n) = walk.add(new)
            && let Some(symbol) = walk.symbol_mut(n)
        {
            symbol.returns = found.clone();
            symbol.doc = doc.clone();
            symbol.visibility = visibility(text);
        }
    }
    Enter::Descend
}

fn value_at(walk: &Walk<'_>, values: &[Node<'_>], n_names: usize, n: usize) -> Option<Expr> {
    match values {
        [only] if n_names > 1 => {
            let place = u32::try_from(n).unwrap_or(u32::MAX);
            let value = expr(walk, *only, 0);
            Some(match only.kind() {
                // `v, ok := m[k]`, `v, ok := x.(T)`
                "index_expression" | "type_assertion_expression" | "unary_expression" => match n {
                    0 => value,
                    _ => Expr::Unknown,
                },
                _ => Expr::Pick(Box::new(value), place),
            })
        }
        _ => values.get(n).map(|it| expr(walk, *it, 0)),
    }
}

fn assign(walk: &mut Walk<'_>, node: Node<'_>) {
    let names = node
        .child_by_field_name("left")
        .map(named)
        .unwrap_or_default();
    let values = node
        .child_by_field_name("right")
        .map(named)
        .unwrap_or_default();
    let is_new = node.kind() == "short_var_declaration";
    for (n, name) in names.iter().copied().enumerate() {
        let text = walk.text(name);
        if name.kind() != "identifier" || text == "_" {
            continue;
        }
        // A variable keeps the type that it was declared with.
        let scope = walk.scope();
        let mut bound = walk.facts.bindings.iter();
        let is_known = bound.any(|it| it.scope == scope && it.name == text && it.ty.is_some());
        if is_new || !is_known {
            let value = value_at(walk, &values, names.len(), n);
            walk.bind(name, text, None, value);
        }
    }
}

fn ty(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Option<Type> {
    if depth > EXPR_DEPTH_MAX {
        return None;
    }
    let inner = |field: &str| {
        let child = node.child_by_field_name(field);
        child.and_then(|it| ty(walk, it, depth + 1))
    };
    let holds = |name: &str, inner: Option<Type>| {
        Some(Type {
            name: name.to_owned(),
            args: inner.into_iter().collect(),
        })
    };
    match node.kind() {
        "type_identifier" | "qualified_type" | "identifier" | "selector_expression" => {
            Some(Type::plain(walk.text(node)))
        }
        "pointer_type" | "parenthesized_type" => {
            node.named_child(0).and_then(|it| ty(walk, it, depth + 1))
        }
        "slice_type" | "array_type" | "implicit_length_array_type" => holds("[]", inner("element")),
        "map_type" => holds("map", inner("value")),
        "channel_type" => holds("chan", inner("value")),
        "generic_type" => {
            let mut found = inner("type")?;
            let args = node
                .child_by_field_name("type_arguments")
                .map(named)
                .unwrap_or_default();
            found.args = args
                .into_iter()
                .filter_map(|it| {
                    ty(
                        walk,
                        it.named_child(0)
                            .filter(|_| it.kind() == "type_elem")
                            .unwrap_or(it),
                        depth + 1,
                    )
                })
                .collect();
            Some(found)
        }
        "function_type" => {
            let returns = results(walk, node.child_by_field_name("result"));
            Some(Type {
                name: "=>".to_owned(),
                args: vec![returns.unwrap_or_default()],
            })
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
    let written = |field: &str| {
        let child = node.child_by_field_name(field);
        child.and_then(|it| ty(walk, it, depth + 1))
    };
    match node.kind() {
        "identifier" => Expr::Name(walk.text(node).to_owned()),
        "selector_expression" => {
            let name = walk.field(node, "field").unwrap_or_default();
            Expr::Member(Box::new(inner("operand")), name.to_owned())
        }
        "call_expression" => {
            let function = node.child_by_field_name("function");
            if function.is_some_and(|it| matches!(walk.text(it), "new" | "make")) {
                let list = node.child_by_field_name("arguments");
                let made = list
                    .and_then(|it| it.named_child(0))
                    .and_then(|it| ty(walk, it, depth + 1));
                return made.map_or(Expr::Unknown, Expr::Typed);
            }
            if function.is_some_and(|it| walk.text(it) == "append") {
                let list = node.child_by_field_name("arguments");
                let first = list.and_then(|it| it.named_child(0));
                return first.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1));
            }
            Expr::Call(Box::new(inner("function")))
        }
        "composite_literal" => written("type").map_or(Expr::Unknown, Expr::Typed),
        "unary_expression" => inner("operand"),
        "parenthesized_expression" => {
            let child = node.named_child(0);
            child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
        }
        "index_expression" => Expr::Element(Box::new(inner("operand"))),
        "slice_expression" => inner("operand"),
        "type_assertion_expression" | "type_conversion_expression" => {
            written("type").map_or(Expr::Unknown, Expr::Typed)
        }
        "func_literal" => Expr::Lambda(
            results(walk, node.child_by_field_name("result")).map(|it| Box::new(Expr::Typed(it))),
        ),
        "type_instantiation_expression" => {
            child_of_kind(node, &["identifier", "selector_expression"])
                .map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
        }
        "interpreted_string_literal" | "raw_string_literal" => Expr::Literal("string".to_owned()),
        "int_literal" | "float_literal" => Expr::Literal("number".to_owned()),
        _ => Expr::Unknown,
    }
}
