//! What expressions and types are.

use crate::facts::{Expr, Type};
use crate::walk::{EXPR_DEPTH_MAX, Walk, child_of_kind, named};
use kenning_grammars::tree_sitter::Node;

pub(super) fn last_name(function: Node<'_>) -> Node<'_> {
    function.child_by_field_name("property").unwrap_or(function)
}

pub(super) fn ty(walk: &Walk<'_>, node: Node<'_>, depth: usize) -> Option<Type> {
    if depth > EXPR_DEPTH_MAX {
        return None;
    }
    let only = || node.named_child(0).and_then(|it| ty(walk, it, depth + 1));
    match node.kind() {
        "type_annotation"
        | "parenthesized_type"
        | "readonly_type"
        | "type_predicate_annotation"
        | "asserts_annotation" => only(),
        "type_identifier"
        | "nested_type_identifier"
        | "predefined_type"
        | "identifier"
        | "this_type" => Some(Type::plain(walk.text(node))),
        "member_expression" => Some(Type::plain(
            walk.text(node).replace(char::is_whitespace, ""),
        )),
        "generic_type" => {
            let name = walk.field(node, "name")?;
            let args = child_of_kind(node, &["type_arguments"])
                .map(named)
                .unwrap_or_default();
            let args: Vec<Type> = args
                .into_iter()
                .map(|it| ty(walk, it, depth + 1).unwrap_or_default())
                .collect();
            match name {
                "Readonly" | "Partial" | "Required" | "NonNullable" | "Awaited" => {
                    args.into_iter().next()
                }
                _ => Some(Type {
                    name: name.to_owned(),
                    args,
                }),
            }
        }
        "array_type" => Some(Type {
            name: "Array".to_owned(),
            args: only().into_iter().collect(),
        }),
        "tuple_type" => Some(Type {
            name: "()".to_owned(),
            args: named(node)
                .into_iter()
                .map(|it| ty(walk, it, depth + 1).unwrap_or_default())
                .collect(),
        }),
        "union_type" | "intersection_type" => {
            let mut parts = Vec::new();
            flat_union(walk, node, &mut parts, depth);
            parts.retain(|it| !matches!(it.name.as_str(), "null" | "undefined"));
            match parts.len() {
                0 => None,
                1 => parts.pop(),
                _ => Some(Type {
                    name: "|".to_owned(),
                    args: parts,
                }),
            }
        }
        "literal_type" => {
            let text = walk.text(node);
            matches!(text, "null" | "undefined").then(|| Type::plain(text))
        }
        "function_type" => {
            let returns = node.child_by_field_name("return_type");
            let returns = returns.and_then(|it| ty(walk, it, depth + 1));
            Some(Type {
                name: "=>".to_owned(),
                args: vec![returns.unwrap_or_default()],
            })
        }
        "type_query" => {
            let name = node.named_child(0).map(|it| walk.text(it))?;
            Some(Type {
                name: "typeof".to_owned(),
                args: vec![Type::plain(name)],
            })
        }
        _ => None,
    }
}

pub(super) fn flat_union(walk: &Walk<'_>, node: Node<'_>, parts: &mut Vec<Type>, depth: usize) {
    if depth > EXPR_DEPTH_MAX {
        return;
    }
    for child in named(node) {
        match child.kind() {
            "union_type" | "intersection_type" => flat_union(walk, child, parts, depth + 1),
            _ => parts.extend(ty(walk, child, depth + 1)),
        }
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
    let first = || {
        let child = node.named_child(0);
        child.map_or(Expr::Unknown, |it| expr(walk, it, depth + 1))
    };
    match node.kind() {
        "identifier" | "shorthand_property_identifier" => Expr::Name(walk.text(node).to_owned()),
        "this" => Expr::This,
        "super" => Expr::Super,
        "member_expression" | "nested_identifier" => {
            let name = walk.field(node, "property").unwrap_or_default();
            let name = name.trim_start_matches('#');
            Expr::Member(Box::new(inner("object")), name.to_owned())
        }
        "call_expression" => Expr::Call(Box::new(inner("function"))),
        "new_expression" => {
            let made = node.child_by_field_name("constructor");
            let args = child_of_kind(node, &["type_arguments"])
                .map(named)
                .unwrap_or_default();
            let args = args
                .into_iter()
                .filter_map(|it| ty(walk, it, depth + 1))
                .collect();
            made.map_or(Expr::Unknown, |it| {
                Expr::New(Type {
                    name: walk.text(it).to_owned(),
                    args,
                })
            })
        }
        "await_expression" => Expr::Await(Box::new(first())),
        "subscript_expression" => Expr::Element(Box::new(inner("object"))),
        "parenthesized_expression" | "non_null_expression" => first(),
        "as_expression" | "satisfies_expression" => {
            let written = named(node).into_iter().nth(1);
            let written = written.and_then(|it| ty(walk, it, depth + 1));
            written
                .filter(|it| it.name != "const")
                .map_or_else(first, Expr::Typed)
        }
        "ternary_expression" => match inner("consequence") {
            Expr::Unknown | Expr::Literal(_) => inner("alternative"),
            found => found,
        },
        "binary_expression" if matches!(walk.field(node, "operator"), Some("||" | "??")) => {
            match inner("left") {
                Expr::Unknown | Expr::Literal(_) => inner("right"),
                found => found,
            }
        }
        "assignment_expression" => inner("right"),
        "arrow_function" | "function_expression" => {
            let body = node.child_by_field_name("body");
            let body = body.filter(|it| it.kind() != "statement_block");
            Expr::Lambda(body.map(|it| Box::new(expr(walk, it, depth + 1))))
        }
        "string" | "template_string" => Expr::Literal("string".to_owned()),
        "number" => Expr::Literal("number".to_owned()),
        "true" | "false" => Expr::Literal("boolean".to_owned()),
        "array" => Expr::Literal("Array".to_owned()),
        "regex" => Expr::Literal("RegExp".to_owned()),
        "null" | "undefined" => Expr::Literal("null".to_owned()),
        _ => Expr::Unknown,
    }
}
