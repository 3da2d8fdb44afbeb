//! Names that parameters and patterns bind.

use super::values::ty;
use crate::facts::{Expr, Param, Type};
use crate::walk::{EXPR_DEPTH_MAX, Walk, named, param};
use kenning_grammars::tree_sitter::Node;

pub(super) type Bound = (String, Option<Type>, Option<Expr>);

/// Parameters, and the names that patterns among them bind.
pub(super) fn params(walk: &Walk<'_>, node: Node<'_>) -> (Vec<Param>, Vec<Bound>) {
    let (mut all, mut bound) = (Vec::new(), Vec::new());
    if let Some(only) = node.child_by_field_name("parameter") {
        all.push(param(walk.text(only), None, false));
    }
    let list = node
        .child_by_field_name("parameters")
        .map(named)
        .unwrap_or_default();
    for child in list {
        let pattern = child.child_by_field_name("pattern").unwrap_or(child);
        let ty = child
            .child_by_field_name("type")
            .and_then(|it| ty(walk, it, 0));
        let is_optional = child.kind() == "optional_parameter"
            || child.child_by_field_name("value").is_some()
            || pattern.kind() == "rest_pattern";
        match pattern.kind() {
            "this" | "comment" => {}
            "object_pattern" | "array_pattern" => {
                all.push(param("", ty.clone(), is_optional));
                let value = ty.map(Expr::Typed);
                pattern_names(walk, pattern, value, &mut bound, 0);
            }
            _ => {
                let name = walk.text(pattern).trim_start_matches('.');
                all.push(param(name, ty, is_optional));
            }
        }
    }
    (all, bound)
}

pub(super) fn pattern_names(
    walk: &Walk<'_>,
    pattern: Node<'_>,
    value: Option<Expr>,
    bound: &mut Vec<Bound>,
    depth: usize,
) {
    if depth > EXPR_DEPTH_MAX {
        return;
    }
    match pattern.kind() {
        "identifier" | "shorthand_property_identifier_pattern" => {
            bound.push((walk.name(pattern), None, value.or(Some(Expr::Unknown))));
        }
        "object_pattern" => {
            let member = |name: &str| {
                let of = value.clone()?;
                Some(Expr::Member(Box::new(of), name.to_owned()))
            };
            for child in named(pattern) {
                match child.kind() {
                    "shorthand_property_identifier_pattern" => {
                        let value = member(walk.text(child));
                        pattern_names(walk, child, value, bound, depth + 1);
                    }
                    "pair_pattern" => {
                        let key = walk.field(child, "key").unwrap_or_default();
                        if let Some(inner) = child.child_by_field_name("value") {
                            pattern_names(walk, inner, member(key), bound, depth + 1);
                        }
                    }
                    "object_assignment_pattern" => {
                        if let Some(left) = child.child_by_field_name("left") {
                            let value = member(walk.text(left));
                            pattern_names(walk, left, value, bound, depth + 1);
                        }
                    }
                    _ => {}
                }
            }
        }
        "array_pattern" => {
            for (n, child) in named(pattern).into_iter().enumerate() {
                let place = u32::try_from(n).unwrap_or(u32::MAX);
                let value = value.clone().map(|it| Expr::Pick(Box::new(it), place));
                pattern_names(walk, child, value, bound, depth + 1);
            }
        }
        "assignment_pattern" => {
            if let Some(left) = pattern.child_by_field_name("left") {
                pattern_names(walk, left, value, bound, depth + 1);
            }
        }
        "rest_pattern" => {
            if let Some(inner) = pattern.named_child(0) {
                pattern_names(walk, inner, None, bound, depth + 1);
            }
        }
        _ => {}
    }
}

pub(super) fn binds(
    walk: &mut Walk<'_>,
    pattern: Node<'_>,
    ty: Option<Type>,
    value: Option<Expr>,
    depth: usize,
) {
    if pattern.kind() == "identifier" {
        walk.bind(pattern, walk.text(pattern), ty, value);
        return;
    }
    let value = value.or(ty.map(Expr::Typed));
    let mut bound = Vec::new();
    pattern_names(walk, pattern, value, &mut bound, depth);
    for (name, ty, value) in bound {
        walk.bind(pattern, &name, ty, value);
    }
}
