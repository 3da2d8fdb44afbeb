//! What stands around a declaration.

use super::values::ty;
use crate::facts::{Param, Visibility};
use crate::walk::{Walk, child_of_kind, named, param};
use kenning_grammars::tree_sitter::Node;

/// What is exported without a name.
pub(super) const DEFAULT: &str = "default";

pub(super) fn doc(walk: &Walk<'_>, node: Node<'_>) -> String {
    let outer = node.parent().filter(|it| {
        matches!(
            it.kind(),
            "export_statement"
                | "lexical_declaration"
                | "variable_declaration"
                | "ambient_declaration"
        )
    });
    let outer = outer.map(|it| {
        it.parent()
            .filter(|up| up.kind() == "export_statement")
            .unwrap_or(it)
    });
    walk.comments_before(outer.unwrap_or(node), |it| {
        it.starts_with("/**") || it.starts_with("//")
    })
}

/// Whether a declaration is exported, directly or with the statement around it.
pub(super) fn is_exported(node: Node<'_>) -> bool {
    let mut at = node.parent();
    for _ in 0..2 {
        match at {
            Some(it) if it.kind() == "export_statement" => return true,
            Some(it) if it.kind().ends_with("declaration") => at = it.parent(),
            _ => return false,
        }
    }
    at.is_some_and(|it| it.kind() == "export_statement")
}

pub(super) fn is_default(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let parent = node.parent().filter(|it| it.kind() == "export_statement");
    parent.is_some_and(|it| {
        walk.text(it)
            .trim_start_matches("export")
            .trim_start()
            .starts_with(DEFAULT)
    })
}

pub(super) fn visibility(walk: &Walk<'_>, node: Node<'_>) -> Visibility {
    match child_of_kind(node, &["accessibility_modifier"]).map(|it| walk.text(it)) {
        Some("private") => Visibility::Private,
        Some("protected") => Visibility::Internal,
        _ => Visibility::Public,
    }
}

pub(super) fn has_word(walk: &Walk<'_>, node: Node<'_>, word: &str) -> bool {
    let mut cursor = node.walk();
    let mut children = node.children(&mut cursor);
    children.any(|it| !it.is_named() && walk.text(it) == word)
}

pub(super) fn generics(walk: &Walk<'_>, node: Node<'_>) -> Vec<Param> {
    let list = node
        .child_by_field_name("type_parameters")
        .map(named)
        .unwrap_or_default();
    let read = |it: Node<'_>| {
        let name = walk.field(it, "name")?;
        let bound = it
            .child_by_field_name("constraint")
            .and_then(|it| ty(walk, it, 0));
        Some(param(name, bound, false))
    };
    list.into_iter().filter_map(read).collect()
}

pub(super) fn is_function_value(kind: &str) -> bool {
    matches!(
        kind,
        "arrow_function" | "function_expression" | "generator_function" | "function"
    )
}

/// What a value is when it is only wrapped: `memo(() => …)`, `(…)`, `… as T`.
pub(super) fn unwrapped<'t>(value: Node<'t>) -> Node<'t> {
    match value.kind() {
        "parenthesized_expression" | "as_expression" | "satisfies_expression" => {
            value.named_child(0).unwrap_or(value)
        }
        _ => value,
    }
}
