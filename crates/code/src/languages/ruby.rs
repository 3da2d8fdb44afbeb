//! Ruby.

use crate::facts::{Expr, Inherits, Param, SymbolKind, Type, Visibility};
use crate::walk::{
    EXPR_DEPTH_MAX, Enter, New, Reader, Walk, child_of_kind, n_args, name_of, named, param,
};
use kenning_grammars::tree_sitter::Node;
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct Ruby {
    /// What `private` and the like say of the methods that follow, by the class that they stand in.
    visibility: HashMap<u32, Visibility>,
}

impl Reader for Ruby {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "class" if node.child_by_field_name("name").is_some() => {
                declared(walk, node, SymbolKind::Class)
            }
            "module" if node.child_by_field_name("name").is_some() => {
                declared(walk, node, SymbolKind::Class)
            }
            "method" | "singleton_method" => {
                let stated = stated_before(walk, node);
                let of_class = walk.direct_type().and_then(|it| self.visibility.get(&it));
                let visibility = match node.kind() {
                    // A bare word does not concern methods of the class itself.
                    "singleton_method" => stated,
                    _ => stated.or(of_class.copied()),
                };
                method(walk, node, visibility.unwrap_or_default())
            }
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
                if !restrict(walk, node) {
                    call(walk, node);
                }
                test(walk, node).map_or(Enter::Descend, Enter::Scope)
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
                let in_body = node.parent().filter(|it| it.kind() == "body_statement");
                let in_class = in_body.and_then(|it| it.parent());
                let in_class = in_class.is_some_and(|it| matches!(it.kind(), "class" | "module"));
                if let (true, Some(stated), Some(class)) =
                    (in_class, stated(walk.text(node)), walk.direct_type())
                {
                    self.visibility.insert(class, stated);
                } else if is_value {
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
        // The comment of the first method stands before the body.
        body: child_of_kind(node, &["comment", "body_statement"]),
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

/// What a word says of methods.
fn stated(word: &str) -> Option<Visibility> {
    match word {
        "public" => Some(Visibility::Public),
        "protected" => Some(Visibility::Internal),
        "private" | "private_class_method" => Some(Visibility::Private),
        _ => None,
    }
}

/// What is said of a method where it is defined: `private def name`.
fn stated_before(walk: &Walk<'_>, node: Node<'_>) -> Option<Visibility> {
    let list = node.parent().filter(|it| it.kind() == "argument_list")?;
    let call = list.parent().filter(|it| it.kind() == "call")?;
    stated(walk.field(call, "method")?)
}

/// Says it of methods that were defined before: `private :name`. Whether the call does that.
fn restrict(walk: &mut Walk<'_>, node: Node<'_>) -> bool {
    let Some(visibility) = walk.field(node, "method").and_then(stated) else {
        return false;
    };
    let (Some(class), None) = (walk.direct_type(), node.child_by_field_name("receiver")) else {
        return false;
    };
    let list = node.child_by_field_name("arguments");
    let names = list.map(named).unwrap_or_default().into_iter();
    let names: Vec<&str> = names
        .filter(|it| matches!(it.kind(), "simple_symbol" | "string"))
        .map(|it| walk.text(it).trim_matches([':', '"', '\'']))
        .collect();
    for symbol in &mut walk.facts.symbols {
        if symbol.parent == Some(class) && names.contains(&symbol.name.as_str()) {
            symbol.visibility = visibility;
        }
    }
    true
}

/// The symbol of a test of RSpec, if the call is one: `it "adds" do … end`. Its name is what is called and the
/// title, so that no call can mean it.
fn test(walk: &mut Walk<'_>, node: Node<'_>) -> Option<u32> {
    let called = walk.field(node, "method")?;
    let is_test = matches!(called, "it" | "specify" | "scenario" | "example");
    if !is_test || node.child_by_field_name("receiver").is_some() {
        return None;
    }
    let block = node.child_by_field_name("block")?;
    let title = node.child_by_field_name("arguments")?.named_child(0)?;
    if title.kind() != "string" {
        return None;
    }
    let title = walk.text(title).trim_matches(['"', '\'']);
    let new = New {
        kind: SymbolKind::Function,
        name: name_of(&format!("{called} {title}")),
        at: node,
        whole: node,
        body: Some(block),
    };
    let n = walk.add(new)?;
    let symbol = walk.symbol_mut(n)?;
    symbol.is_test = true;
    symbol.visibility = Visibility::Private;
    Some(n)
}

fn method(walk: &mut Walk<'_>, node: Node<'_>, visibility: Visibility) -> Enter {
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
    let first_of = node.parent().filter(|_| node.prev_sibling().is_none());
    let doc = match first_of.filter(|it| it.kind() == "body_statement") {
        Some(body) => walk.comments_before(body, |_| true),
        None => walk.comments_before(node, |_| true),
    };
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
        symbol.visibility = visibility;
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
