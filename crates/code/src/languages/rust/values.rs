//! What expressions and types are.

use crate::facts::{Expr, Type};
use crate::walk::{EXPR_DEPTH_MAX, Walk, named};
use kenning_grammars::tree_sitter::Node;

/// A path as it is kept: `a::b` is `a.b`, without type arguments.
pub(super) fn path_text(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_u32;
    for sign in text.chars() {
        match sign {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            it if depth > 0 || it.is_whitespace() => {}
            it => out.push(it),
        }
    }
    let parts: Vec<&str> = out.split("::").filter(|it| !it.is_empty()).collect();
    parts.join(".")
}

pub(super) fn ty(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Option<Type> {
    if depth > EXPR_DEPTH_MAX {
        return None;
    }
    let inner = |field: &str| {
        let child = node.child_by_field_name(field);
        child.and_then(|it| ty(walk, it, depth + 1))
    };
    match node.kind() {
        "type_identifier"
        | "scoped_type_identifier"
        | "identifier"
        | "scoped_identifier"
        | "primitive_type" => Some(Type::plain(path_text(walk.text(node)))),
        "generic_type" | "generic_type_with_turbofish" => {
            let mut found = inner("type")?;
            let args = node.child_by_field_name("type_arguments").map(named);
            let args = args.unwrap_or_default().into_iter();
            found.args = args.filter_map(|it| ty(walk, it, depth + 1)).collect();
            Some(found)
        }
        "reference_type" | "pointer_type" => inner("type"),
        // `impl Iterator<Item = T>` holds values of `T`.
        "type_binding" if matches!(walk.field(node, "name"), Some("Item" | "Output")) => {
            inner("type")
        }
        "dynamic_type" | "abstract_type" => inner("trait"),
        "bounded_type" | "higher_ranked_trait_bound" => {
            let mut all = named(node).into_iter();
            all.find_map(|it| ty(walk, it, depth + 1))
        }
        "array_type" | "slice_type" => Some(Type {
            name: "[]".to_owned(),
            args: inner("element").into_iter().collect(),
        }),
        "tuple_type" => {
            let all = named(node).into_iter();
            let args = all.map(|it| ty(walk, it, depth + 1).unwrap_or_default());
            Some(Type {
                name: "()".to_owned(),
                args: args.collect(),
            })
        }
        _ => None,
    }
}

pub(super) fn expr(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Expr {
    if depth > EXPR_DEPTH_MAX {
        return Expr::Unknown;
    }
    let inner = |field: &str| {
        let child = node.child_by_field_name(field);
        child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
    };
    match node.kind() {
        "self" => Expr::This,
        "identifier" => Expr::Name(walk.name(node)),
        "scoped_identifier" => dotted(&path_text(walk.text(node))),
        "field_expression" => {
            let field = walk.field(node, "field").unwrap_or_default();
            Expr::Member(Box::new(inner("value")), field.to_owned())
        }
        "generic_function" => inner("function"),
        "call_expression" => Expr::Call(Box::new(inner("function"))),
        "try_expression" => {
            let value = node.named_child(0).map(|it| expr(walk, it, depth + 1));
            Expr::Element(Box::new(value.unwrap_or(Expr::Unknown)))
        }
        "await_expression" => {
            let value = node.named_child(0).map(|it| expr(walk, it, depth + 1));
            Expr::Await(Box::new(value.unwrap_or(Expr::Unknown)))
        }
        "index_expression" => {
            let value = node.named_child(0).map(|it| expr(walk, it, depth + 1));
            Expr::Element(Box::new(value.unwrap_or(Expr::Unknown)))
        }
        "reference_expression" => inner("value"),
        "parenthesized_expression" | "unary_expression" => {
            let value = node.named_child(0).map(|it| expr(walk, it, depth + 1));
            value.unwrap_or(Expr::Unknown)
        }
        "struct_expression" => node
            .child_by_field_name("name")
            .and_then(|it| ty(walk, it, depth + 1))
            .map_or(Expr::Unknown, Expr::New),
        "type_cast_expression" => node
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, depth + 1))
            .map_or(Expr::Unknown, Expr::Typed),
        "string_literal" | "raw_string_literal" => Expr::Literal("str".to_owned()),
        "integer_literal" | "float_literal" | "boolean_literal" | "char_literal" => {
            Expr::Literal("number".to_owned())
        }
        _ => Expr::Unknown,
    }
}

/// A path as an expression.
pub(super) fn dotted(path: &str) -> Expr {
    let mut parts = path.split('.');
    let first = parts.next().unwrap_or_default();
    let first = Expr::Path(first.to_owned());
    parts.fold(first, |all, part| {
        Expr::Member(Box::new(all), part.to_owned())
    })
}

/// Calls in what a macro is given, which no grammar reads: a path before a bracket.
pub(super) fn tokens_call(walk: &mut Walk<'_>, tree: Node<'_>, depth: usize) {
    if depth > EXPR_DEPTH_MAX {
        return;
    }
    let mut chain: Option<Expr> = None;
    // Whether the next name goes on with the chain.
    let mut is_joined = false;
    let mut cursor = tree.walk();
    let children: Vec<Node<'_>> = tree.children(&mut cursor).collect();
    let mut after_name = false;
    for child in children {
        let text = walk.text(child);
        match child.kind() {
            "identifier" | "type_identifier" | "primitive_type" | "self" | "crate" | "super" => {
                chain = Some(match (chain.take(), is_joined) {
                    (Some(before), true) => Expr::Member(Box::new(before), text.to_owned()),
                    (None, true) => Expr::Member(Box::new(Expr::Unknown), text.to_owned()),
                    (_, false) if text == "self" => Expr::This,
                    (_, false) => Expr::Name(text.to_owned()),
                });
                is_joined = false;
                after_name = true;
            }
            "::" | "." => {
                if text == "::"
                    && let Some(Expr::Name(name)) = chain
                {
                    chain = Some(Expr::Path(name));
                }
                is_joined = true;
                after_name = false;
            }
            "token_tree" => {
                if let Some(callee) = chain.take().filter(|_| after_name && text.starts_with('(')) {
                    walk.call(child, callee.clone(), None);
                    chain = Some(Expr::Call(Box::new(callee)));
                }
                tokens_call(walk, child, depth + 1);
                is_joined = false;
                after_name = false;
            }
            "?" => chain = chain.map(|it| Expr::Element(Box::new(it))),
            _ => {
                chain = None;
                is_joined = false;
                after_name = false;
            }
        }
    }
}
