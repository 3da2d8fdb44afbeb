//! Names that patterns bind.

use super::values::{expr, ty};
use crate::facts::{Expr, Type};
use crate::walk::{EXPR_DEPTH_MAX, Walk, line, line_end, named};
use kenning_grammars::tree_sitter::Node;

pub(super) fn bind_pattern(walk: &mut Walk<'_>, node: Node<'_>) {
    let ty = node
        .child_by_field_name("type")
        .and_then(|it| ty(walk, it, 0));
    let value = node
        .child_by_field_name("value")
        .map(|it| expr(walk, it, 0));
    if let Some(pattern) = node.child_by_field_name("pattern") {
        walk.in_statement(node, |walk| pattern_binds(walk, pattern, ty, value, 0));
    }
}

pub(super) fn pattern_binds(
    walk: &mut Walk<'_>,
    pattern: Node<'_>,
    ty: Option<Type>,
    value: Option<Expr>,
    depth: usize,
) {
    if depth > EXPR_DEPTH_MAX {
        return;
    }
    match pattern.kind() {
        "identifier" => {
            let name = walk.text(pattern);
            if !name.starts_with(char::is_uppercase) {
                walk.bind(pattern, name, ty, value);
            }
        }
        "mut_pattern" | "ref_pattern" | "reference_pattern" | "captured_pattern" => {
            for child in named(pattern) {
                pattern_binds(walk, child, ty.clone(), value.clone(), depth + 1);
            }
        }
        "tuple_pattern" => {
            for (n, child) in named(pattern).into_iter().enumerate() {
                let place = u32::try_from(n).unwrap_or(u32::MAX);
                let value = value.clone().map(|it| Expr::Pick(Box::new(it), place));
                let ty = ty.as_ref().and_then(|it| it.args.get(n).cloned());
                pattern_binds(walk, child, ty, value, depth + 1);
            }
        }
        "tuple_struct_pattern" => {
            let name = walk.field(pattern, "type").unwrap_or_default();
            let is_wrapper = matches!(name, "Some" | "Ok");
            for child in named(pattern).into_iter().skip(1) {
                let value = value.clone().filter(|_| is_wrapper);
                let value = value.map(|it| Expr::Element(Box::new(it)));
                pattern_binds(walk, child, None, value.or(Some(Expr::Unknown)), depth + 1);
            }
        }
        "struct_pattern" => {
            let of = pattern
                .child_by_field_name("type")
                .and_then(|it| self::ty(walk, it, 0));
            for field in named(pattern) {
                if field.kind() != "field_pattern" {
                    continue;
                }
                let name = field.child_by_field_name("name");
                let Some(name) = name else { continue };
                let member = of
                    .clone()
                    .map(|it| Expr::Member(Box::new(Expr::Typed(it)), walk.text(name).to_owned()));
                match field.child_by_field_name("pattern") {
                    Some(inner) => pattern_binds(walk, inner, None, member, depth + 1),
                    None => walk.bind(name, walk.text(name), None, member),
                }
            }
        }
        "or_pattern" => {
            for child in named(pattern) {
                pattern_binds(walk, child, ty.clone(), value.clone(), depth + 1);
            }
        }
        _ => {}
    }
}

/// Parameters of a closure; the first of one that a method is given is an element of what it is called on.
pub(super) fn closure(walk: &mut Walk<'_>, node: Node<'_>) {
    let receiver = node
        .parent()
        .filter(|it| it.kind() == "arguments")
        .and_then(|it| it.parent())
        .and_then(|it| it.child_by_field_name("function"))
        .filter(|it| it.kind() == "field_expression")
        .and_then(|it| it.child_by_field_name("value"))
        .map(|it| Expr::Element(Box::new(expr(walk, it, 0))));
    let list = node.child_by_field_name("parameters");
    let list = list.map(named).unwrap_or_default();
    let is_one = list.len() == 1;
    walk.statement = Some((line(node), line_end(node)));
    for child in list {
        let value = receiver.clone().filter(|_| is_one).or(Some(Expr::Unknown));
        match child.kind() {
            "parameter" => {
                let ty = child
                    .child_by_field_name("type")
                    .and_then(|it| ty(walk, it, 0));
                if let Some(pattern) = child.child_by_field_name("pattern") {
                    pattern_binds(walk, pattern, ty, value, 0);
                }
            }
            _ => pattern_binds(walk, child, None, value, 0),
        }
    }
    walk.statement = None;
}
