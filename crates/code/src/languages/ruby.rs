//! Ruby.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type};
use crate::walk::{EXPR_DEPTH_MAX, Enter, New, Reader, Walk, n_args, named, param};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct Ruby;

impl Reader for Ruby {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "class" if node.child_by_field_name("name").is_some() => {
                declared(walk, node, SymbolKind::Class)
            }
            "module" if node.child_by_field_name("name").is_some() => {
                declared(walk, node, SymbolKind::Class)
            }
            "method" | "singleton_method" => method(walk, node),
            "assignment" => {
                let value = node
                    .child_by_field_name("right")
                    .map(|it| expr(walk, it, 0));
                if let Some(left) = node.child_by_field_name("left") {
                    match left.kind() {
                        "identifier" => walk.bind(left, walk.text(left), None, value),
                        "instance_variable" | "class_variable" => {
                            let function = walk.function();
                            let value = match function {
                                Some(n) => value.map(|it| Expr::In(n, Box::new(it))),
                                None => value,
                            };
                            if let Some(class) = walk.enclosing(|it| it.kind.is_type()) {
                                walk.bind_field(class, left, walk.text(left), None, value);
                            }
                        }
                        "constant" => {
                            walk.add(New {
                                kind: SymbolKind::Constant,
                                name: walk.name(left),
                                at: left,
                                whole: node,
                                body: node.child_by_field_name("right"),
                            });
                        }
                        _ => {}
                    }
                }
                Enter::Descend
            }
            "call" => {
                call(walk, node);
                Enter::Descend
            }
            "super" => {
                let name = walk
                    .function()
                    .and_then(|it| walk.symbol(it))
                    .map(|it| it.name.clone());
                if let Some(name) = name {
                    walk.call(node, Expr::Member(Box::new(Expr::Super), name), None);
                }
                Enter::Descend
            }
            "identifier" => {
                // A method without arguments is called by its bare name; so is a variable read.
                let is_value = node.parent().is_some_and(|it| {
                    matches!(
                        it.kind(),
                        "body_statement"
                            | "then"
                            | "else"
                            | "argument_list"
                            | "binary"
                            | "program"
                            | "if"
                            | "unless"
                            | "return"
                            | "interpolation"
                            | "block_body"
                    )
                });
                if is_value {
                    walk.call(node, Expr::Name(walk.text(node).to_owned()), Some(0));
                }
                Enter::Skip
            }
            _ => Enter::Descend,
        }
    }
}

fn constant_path(text: &str) -> String {
    let parts: Vec<&str> = text.split("::").filter(|it| !it.is_empty()).collect();
    parts.join(".")
}

fn declared(walk: &mut Walk<'_>, node: Node<'_>, kind: SymbolKind) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let base = node
        .child_by_field_name("superclass")
        .and_then(|it| it.named_child(0))
        .map(|it| Type::plain(constant_path(walk.text(it))));
    let doc = walk.comments_before(node, |_| true);
    let text = constant_path(walk.text(name));
    let new = New {
        kind,
        name: text.rsplit('.').next().unwrap_or_default().to_owned(),
        at: name,
        whole: node,
        body: node.child_by_field_name("body"),
    };
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.bases = base.map(|it| (Inherits::Extends, it)).into_iter().collect();
        symbol.doc = doc;
    }
    Enter::Scope(n)
}

fn method(walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
    let Some(name) = node.child_by_field_name("name") else {
        return Enter::Descend;
    };
    let is_member = walk.enclosing(|it| it.kind.is_type()).is_some();
    let mut params: Vec<Param> = Vec::new();
    let list = node
        .child_by_field_name("parameters")
        .map(named)
        .unwrap_or_default();
    for child in list {
        let text = walk
            .field(child, "name")
            .unwrap_or_else(|| walk.text(child));
        let is_optional = child.kind() != "identifier";
        params.push(param(
            text.trim_start_matches(['*', '&']),
            None,
            is_optional,
        ));
    }
    let doc = walk.comments_before(node, |_| true);
    let text = walk.text(name);
    let new = New {
        kind: if is_member {
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
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.params = params;
        symbol.doc = doc;
        symbol.is_static = node.kind() == "singleton_method";
        symbol.is_test = is_member && text.starts_with("test_");
    }
    Enter::Scope(n)
}

fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let method = walk.field(node, "method").unwrap_or_default();
    let receiver = node.child_by_field_name("receiver");
    let list = node.child_by_field_name("arguments");
    if receiver.is_none() {
        let first = list.and_then(|it| it.named_child(0));
        match (method, first) {
            ("require" | "require_relative", Some(path)) => {
                let path = walk.text(path).trim_matches(['"', '\'']).to_owned();
                walk.import(node, &path, Some("*"), "");
                return;
            }
            ("include" | "extend" | "prepend", Some(_)) => {
                let class = walk.direct_type();
                for base in list.map(named).unwrap_or_default() {
                    let base = Type::plain(constant_path(walk.text(base)));
                    if let Some(symbol) = class.and_then(|it| walk.symbol_mut(it)) {
                        symbol.bases.push((Inherits::Extends, base));
                    }
                }
                return;
            }
            _ => {}
        }
    }
    let callee = callee(walk, node, 0);
    let at = node.child_by_field_name("method").unwrap_or(node);
    walk.call(at, callee, n_args(list).or(Some(0)));
}

fn callee(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Expr {
    let method = walk.field(node, "method").unwrap_or_default().to_owned();
    match node.child_by_field_name("receiver") {
        // `Type.new` makes a value of the type.
        Some(receiver)
            if method == "new" && matches!(receiver.kind(), "constant" | "scope_resolution") =>
        {
            Expr::New(Type::plain(constant_path(walk.text(receiver))))
        }
        Some(receiver) => Expr::Member(Box::new(expr(walk, receiver, depth + 1)), method),
        None => Expr::Name(method),
    }
}

fn expr(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Expr {
    if depth > EXPR_DEPTH_MAX {
        return Expr::Unknown;
    }
    match node.kind() {
        "identifier" | "constant" => Expr::Name(walk.text(node).to_owned()),
        "scope_resolution" => {
            let path = constant_path(walk.text(node));
            let mut parts = path.split('.');
            let first = Expr::Name(parts.next().unwrap_or_default().to_owned());
            parts.fold(first, |all, part| {
                Expr::Member(Box::new(all), part.to_owned())
            })
        }
        "self" => Expr::This,
        "instance_variable" | "class_variable" => {
            Expr::Member(Box::new(Expr::This), walk.text(node).to_owned())
        }
        "call" => match callee(walk, node, depth) {
            Expr::New(ty) => Expr::New(ty),
            of => Expr::Call(Box::new(of)),
        },
        "parenthesized_statements" => {
            let child = node.named_child(0);
            child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
        }
        "string" => Expr::Literal("String".to_owned()),
        "array" => Expr::Literal("Array".to_owned()),
        "hash" => Expr::Literal("Hash".to_owned()),
        "integer" => Expr::Literal("Integer".to_owned()),
        _ => Expr::Unknown,
    }
}
