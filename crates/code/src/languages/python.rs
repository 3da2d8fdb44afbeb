//! Python.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{
    EXPR_DEPTH_MAX, Enter, New, Reader, Walk, bind_returns, child_of_kind, doc_of, n_args, named,
    param, with_field,
};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct Python;

impl Reader for Python {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "function_definition" => function(walk, node),
            "class_definition" => class(walk, node),
            "decorator" => {
                if let Some(value) = node.named_child(0) {
                    let callee = match value.kind() {
                        // What it gives is called with the function, which nobody can tell.
                        "call" => Expr::Unknown,
                        _ => expr(walk, value, 0),
                    };
                    walk.call(node, callee, Some(1));
                }
                Enter::Descend
            }
            "import_statement" => {
                for child in with_field(node, "name") {
                    let (module, alias) = aliased(walk, child);
                    match alias {
                        Some(alias) => walk.import(node, module, None, alias),
                        // `import a.b` brings `a`; `a.b` is found by its parts.
                        None => walk.import(node, module, None, module),
                    }
                }
                Enter::Skip
            }
            "import_from_statement" => {
                let module = walk.field(node, "module_name").unwrap_or_default();
                let module = module.replace(char::is_whitespace, "");
                if child_of_kind(node, &["wildcard_import"]).is_some() {
                    walk.import_as(node, &module, Some("*"), "", true);
                }
                for child in with_field(node, "name") {
                    let (name, alias) = aliased(walk, child);
                    walk.import_as(node, &module, Some(name), alias.unwrap_or(name), true);
                }
                Enter::Skip
            }
            "call" => {
                if let Some(function) = node.child_by_field_name("function") {
                    let callee = expr(walk, function, 0);
                    let list = node.child_by_field_name("arguments");
                    walk.call(last_name(function), callee, n_args(list));
                    walk.values(list, &["identifier"]);
                    for child in list.map(named).unwrap_or_default() {
                        if child.kind() == "keyword_argument"
                            && let Some(value) = child.child_by_field_name("value")
                            && value.kind() == "identifier"
                        {
                            walk.value(value, Expr::Name(walk.name(value)));
                        }
                    }
                }
                Enter::Descend
            }
            "assignment" => {
                let ty = node
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                let value = node
                    .child_by_field_name("right")
                    .map(|it| expr(walk, it, 0));
                if let Some(left) = node.child_by_field_name("left") {
                    assign(walk, left, ty, value, 0);
                }
                Enter::Descend
            }
            "named_expression" => {
                let value = node
                    .child_by_field_name("value")
                    .map(|it| expr(walk, it, 0));
                if let Some(name) = node.child_by_field_name("name") {
                    assign(walk, name, None, value, 0);
                }
                Enter::Descend
            }
            "for_statement" | "for_in_clause" => {
                let value = node
                    .child_by_field_name("right")
                    .map(|it| expr(walk, it, 0));
                if let Some(left) = node.child_by_field_name("left") {
                    let value = value.map(|it| Expr::Element(Box::new(it)));
                    assign(walk, left, None, value, 0);
                }
                Enter::Descend
            }
            "as_pattern" => {
                let value = node.named_child(0).map(|it| match it.kind() {
                    "identifier" | "attribute"
                        if node.parent().is_some_and(|it| it.kind() == "except_clause") =>
                    {
                        Expr::New(type_of_name(walk, it))
                    }
                    _ => expr(walk, it, 0),
                });
                let alias = node.child_by_field_name("alias");
                let alias = alias.map(|it| it.named_child(0).unwrap_or(it));
                if let Some(alias) = alias {
                    let name = walk.text(alias);
                    walk.bind(alias, name, None, value);
                }
                Enter::Descend
            }
            "lambda" => {
                for child in node
                    .child_by_field_name("parameters")
                    .map(named)
                    .unwrap_or_default()
                {
                    let name = child.child_by_field_name("name").unwrap_or(child);
                    walk.bind(name, walk.text(name), None, Some(Expr::Unknown));
                }
                Enter::Descend
            }
            "attribute" => {
                let parent = node.parent();
                let is_field =
                    |name: &str| parent.and_then(|it| it.child_by_field_name(name)) == Some(node);
                let is_called =
                    parent.is_some_and(|it| it.kind() == "call") && is_field("function");
                if !is_called {
                    let is_set = parent.is_some_and(|it| it.kind().ends_with("assignment"))
                        && is_field("left");
                    let member = expr(walk, node, 0);
                    walk.access(node, member, is_set);
                }
                Enter::Descend
            }
            "global_statement" | "nonlocal_statement" => Enter::Skip,
            "type" => {
                type_uses(walk, node);
                Enter::Skip
            }
            "identifier" => {
                let text = walk.text(node);
                let is_constant =
                    |it: char| it.is_ascii_uppercase() || it == '_' || it.is_ascii_digit();
                if text.len() > 1 && text.chars().all(is_constant) && !text.starts_with('_') {
                    walk.uses(node, text);
                }
                Enter::Skip
            }
            _ => Enter::Descend,
        }
    }
}

fn aliased<'a>(walk: &Walk<'a>, node: Node<'_>) -> (&'a str, Option<&'a str>) {
    match node.kind() {
        "aliased_import" => (
            walk.field(node, "name").unwrap_or_default(),
            walk.field(node, "alias"),
        ),
        _ => (walk.text(node), None),
    }
}

fn last_name(function: Node<'_>) -> Node<'_> {
    function
        .child_by_field_name("attribute")
        .unwrap_or(function)
}

fn visibility(name: &str) -> Visibility {
    match name {
        it if it.starts_with("__") && it.ends_with("__") => Visibility::Public,
        it if it.starts_with("__") => Visibility::Private,
        it if it.starts_with('_') => Visibility::Internal,
        _ => Visibility::Public,
    }
}

fn docstring(walk: &Walk<'_>, body: Option<Node<'_>>) -> String {
    let first = body.and_then(|it| it.named_child(0));
    let string = match first {
        Some(it) if it.kind() == "expression_statement" => it.named_child(0),
        other => other,
    };
    let Some(string) = string.filter(|it| it.kind() == "string") else {
        return String::new();
    };
    let content = child_of_kind(string, &["string_content"]);
    doc_of(content.map(|it| walk.text(it)).unwrap_or_default())
}

fn decorators<'a>(walk: &Walk<'a>, node: Node<'_>) -> Vec<&'a str> {
    let parent = node
        .parent()
        .filter(|it| it.kind() == "decorated_definition");
    let all = parent.map(named).unwrap_or_default().into_iter();
    let all = all.filter(|it| it.kind() == "decorator");
    all.map(|it| walk.text(it).trim_start_matches('@').trim())
        .collect()
}

fn function(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let class = walk.direct_type();
    let body = node.child_by_field_name("body");
    let new = New {
        kind: match class {
            Some(_) => SymbolKind::Method,
            None => SymbolKind::Function,
        },
        name: walk.name(name),
        at: name,
        whole: node,
        body,
    };
    let decorators = decorators(walk, node);
    let returns = node
        .child_by_field_name("return_type")
        .and_then(|it| ty(walk, it, 0));
    let doc = docstring(walk, body);
    let mut params = params(walk, node);
    let text = walk.text(name);
    let in_test_class = class.and_then(|it| walk.symbol(it)).is_some_and(|it| {
        it.name.starts_with("Test") || it.bases.iter().any(|it| it.1.name.ends_with("TestCase"))
    });
    let at_top = class.is_none() && walk.function().is_none();
    let is_static = decorators.contains(&"staticmethod");
    let is_class_method = decorators.contains(&"classmethod");
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    // The first parameter of a method is its object, or its class.
    if class.is_some() && !is_static && !params.is_empty() {
        let this = params.remove(0);
        let is_class = is_class_method || text == "__new__" || text == "__init_subclass__";
        let value = match is_class {
            true => Expr::Name("__class__".to_owned()),
            false => Expr::This,
        };
        walk.bind_first(n, crate::walk::line(name), this.name, None, Some(value));
    }
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.params = params;
        symbol.returns = returns;
        symbol.doc = doc;
        symbol.visibility = visibility(text);
        symbol.is_test = text.starts_with("test") && (in_test_class || at_top);
        symbol.is_static = is_static || is_class_method;
        symbol.is_property = decorators.iter().any(|it| {
            matches!(
                *it,
                "property" | "cached_property" | "functools.cached_property"
            )
        });
    }
    // What it returns, where no type is written.
    if let Some(body) = body {
        let is_function =
            |it: &str| matches!(it, "function_definition" | "class_definition" | "lambda");
        bind_returns(walk, body, n, is_function, |walk, it| expr(walk, it, 0));
    }
    Enter::Scope(n)
}

fn params(walk: &Walk<'_>, node: Node<'_>) -> Vec<Param> {
    let mut all = Vec::new();
    let list = node
        .child_by_field_name("parameters")
        .map(named)
        .unwrap_or_default();
    for child in list {
        let ty = child
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, 0));
        match child.kind() {
            "identifier" => all.push(param(walk.text(child), None, false)),
            "typed_parameter" => {
                let name = child.named_child(0);
                let is_optional = name.is_some_and(|it| it.kind().contains("splat"));
                let name = name.map(|it| walk.text(it)).unwrap_or_default();
                all.push(param(
                    name.trim_start_matches('*'),
                    ty.filter(|_| !is_optional),
                    is_optional,
                ));
            }
            "default_parameter" | "typed_default_parameter" => {
                let name = walk.field(child, "name").unwrap_or_default();
                all.push(param(name, ty, true));
            }
            "list_splat_pattern" | "dictionary_splat_pattern" => {
                all.push(param(walk.text(child).trim_start_matches('*'), None, true));
            }
            _ => {}
        }
    }
    all
}

fn class(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let body = node.child_by_field_name("body");
    let new = New {
        kind: SymbolKind::Class,
        name: walk.name(name),
        at: name,
        whole: node,
        body,
    };
    let mut bases = Vec::new();
    let list = node
        .child_by_field_name("superclasses")
        .map(named)
        .unwrap_or_default();
    for child in list {
        if matches!(child.kind(), "identifier" | "attribute" | "subscript") {
            bases.extend(ty(walk, child, 0).map(|it| (Inherits::Extends, it)));
        }
    }
    let doc = docstring(walk, body);
    let text = walk.text(name);
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        if bases
            .iter()
            .any(|it| matches!(it.1.name.as_str(), "Protocol" | "typing.Protocol"))
        {
            symbol.kind = SymbolKind::Interface;
        }
        if bases.iter().any(|it| {
            matches!(
                it.1.name.as_str(),
                "Enum" | "IntEnum" | "StrEnum" | "enum.Enum"
            )
        }) {
            symbol.kind = SymbolKind::Enum;
        }
        symbol.bases = bases;
        symbol.doc = doc;
        symbol.visibility = visibility(text);
    }
    Enter::Scope(n)
}

fn assign(
    walk: &mut Walk<'_>,
    left: Node<'_>,
    ty: Option<Type>,
    value: Option<Expr>,
    depth: usize,
) {
    if depth > EXPR_DEPTH_MAX {
        return;
    }
    match left.kind() {
        "identifier" => {
            let name = walk.text(left);
            match walk.direct_type() {
                Some(class) => walk.bind_field(class, left, name, ty, value),
                None => {
                    if walk.scope().is_none() {
                        constant(walk, left, name, ty.clone());
                    }
                    walk.bind(left, name, ty, value);
                }
            }
        }
        "attribute" => {
            // `self.x = …` in a method.
            let object = walk.field(left, "object").unwrap_or_default();
            let attribute = walk.field(left, "attribute").unwrap_or_default();
            let function = walk.function();
            let is_self = function.is_some_and(|n| {
                let mut bound = walk.facts.bindings.iter();
                bound.any(|it| {
                    it.scope == Some(n) && it.name == object && it.value == Some(Expr::This)
                })
            });
            let class = walk.enclosing(|it| it.kind.is_type());
            if let Some(class) = class.filter(|_| is_self) {
                // A parameter of the method tells its own type.
                walk.bind_field(class, left, attribute, ty.clone(), scoped(function, value));
            }
        }
        "pattern_list" | "tuple_pattern" | "list_pattern" => {
            for (n, child) in named(left).into_iter().enumerate() {
                let place = u32::try_from(n).unwrap_or(u32::MAX);
                let value = value.clone().map(|it| Expr::Pick(Box::new(it), place));
                assign(walk, child, None, value, depth + 1);
            }
        }
        _ => {}
    }
}

/// The value of a field, which is known in the method that sets it: names are resolved there.
fn scoped(function: Option<u32>, value: Option<Expr>) -> Option<Expr> {
    let value = value?;
    Some(match function {
        Some(n) => Expr::In(n, Box::new(value)),
        None => value,
    })
}

fn constant(walk: &mut Walk<'_>, at: Node<'_>, name: &str, ty: Option<Type>) {
    let is_known = walk
        .facts
        .symbols
        .iter()
        .any(|it| it.parent.is_none() && it.name == name);
    let is_dunder = name.starts_with("__");
    let statement = at.parent().filter(|it| it.kind() == "assignment");
    let Some(statement) = statement.filter(|_| !is_known && !is_dunder) else {
        return;
    };
    let new = New {
        kind: SymbolKind::Constant,
        name: name.to_owned(),
        at,
        whole: statement,
        body: statement
            .child_by_field_name("right")
            .filter(|it| it.byte_range().len() > 80),
    };
    if let Some(n) = walk.add(new)
        && let Some(symbol) = walk.symbol_mut(n)
    {
        symbol.returns = ty;
        symbol.visibility = visibility(name);
    }
}

fn type_of_name(walk: &Walk<'_>, node: Node<'_>) -> Type {
    Type::plain(walk.text(node).replace(char::is_whitespace, ""))
}

fn type_uses(walk: &mut Walk<'_>, node: Node<'_>) {
    let mut rest = vec![node];
    while let Some(node) = rest.pop() {
        match node.kind() {
            "identifier" | "attribute" => {
                let name = walk.text(node).to_owned();
                walk.uses(node, &name);
            }
            _ => rest.extend(named(node)),
        }
    }
}

fn ty(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Option<Type> {
    if depth > EXPR_DEPTH_MAX {
        return None;
    }
    match node.kind() {
        "type" => node.named_child(0).and_then(|it| ty(walk, it, depth + 1)),
        "identifier" | "attribute" | "member_type" => Some(type_of_name(walk, node)),
        "string" => {
            let content = child_of_kind(node, &["string_content"])?;
            let text = walk.text(content);
            let name = text.split('[').next().unwrap_or_default().trim();
            Some(Type::plain(name)).filter(|it| !it.name.contains(' '))
        }
        "generic_type" | "subscript" => {
            let mut all = named(node).into_iter();
            let name = type_of_name(walk, all.next()?);
            let mut args = Vec::new();
            for child in all {
                match child.kind() {
                    "type_parameter" => {
                        args.extend(
                            named(child)
                                .into_iter()
                                .filter_map(|it| ty(walk, it, depth + 1)),
                        );
                    }
                    _ => args.extend(ty(walk, child, depth + 1)),
                }
            }
            let last = name.name.rsplit('.').next().unwrap_or_default();
            match last {
                "Optional" | "Annotated" | "Final" | "ClassVar" | "Required" | "NotRequired" => {
                    args.into_iter().next()
                }
                "Union" => Some(union(args)),
                "Type" | "type" => Some(Type {
                    name: "type".to_owned(),
                    args,
                }),
                _ => Some(Type { args, ..name }),
            }
        }
        "binary_operator" | "union_type" => {
            let all = named(node).into_iter();
            Some(union(
                all.filter_map(|it| ty(walk, it, depth + 1)).collect(),
            ))
        }
        _ => None,
    }
}

/// One of several types; what is only `None` beside one is that one.
fn union(args: Vec<Type>) -> Type {
    let mut args: Vec<Type> = args.into_iter().filter(|it| it.name != "None").collect();
    match args.len() {
        1 => args.remove(0),
        _ => Type {
            name: "|".to_owned(),
            args,
        },
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
        "identifier" => Expr::Name(walk.text(node).to_owned()),
        "attribute" => {
            let name = walk.field(node, "attribute").unwrap_or_default();
            Expr::Member(Box::new(inner("object")), name.to_owned())
        }
        "call" => {
            let function = node.child_by_field_name("function");
            if function.is_some_and(|it| walk.text(it) == "super") {
                return Expr::Super;
            }
            Expr::Call(Box::new(inner("function")))
        }
        "subscript" => Expr::Element(Box::new(inner("value"))),
        "await" => Expr::Await(Box::new(first())),
        "parenthesized_expression" => first(),
        "conditional_expression" | "boolean_operator" => {
            let all = named(node);
            let mut values = [all.first(), all.last()]
                .into_iter()
                .flatten()
                .map(|it| expr(walk, *it, depth + 1));
            values
                .find(|it| !matches!(it, Expr::Unknown | Expr::Literal(_)))
                .unwrap_or(Expr::Unknown)
        }
        "lambda" => Expr::Lambda(Some(Box::new(inner("body")))),
        "string" | "concatenated_string" => Expr::Literal("str".to_owned()),
        "list" | "list_comprehension" => Expr::Literal("list".to_owned()),
        "dictionary" | "dictionary_comprehension" => Expr::Literal("dict".to_owned()),
        "set" | "set_comprehension" => Expr::Literal("set".to_owned()),
        "integer" => Expr::Literal("int".to_owned()),
        "float" => Expr::Literal("float".to_owned()),
        "tuple" => Expr::Literal("tuple".to_owned()),
        "none" => Expr::Literal("None".to_owned()),
        "true" | "false" => Expr::Literal("bool".to_owned()),
        _ => Expr::Unknown,
    }
}
