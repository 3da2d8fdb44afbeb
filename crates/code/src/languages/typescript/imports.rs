//! What a file imports.

use super::heads::DEFAULT;
use crate::walk::{Walk, child_of_kind, named};
use kenning_grammars::tree_sitter::Node;

/// The module of `require("…")`.
pub(super) fn required(walk: &Walk<'_>, value: Node<'_>) -> Option<String> {
    if value.kind() != "call_expression" || walk.field(value, "function") != Some("require") {
        return None;
    }
    let list = value.child_by_field_name("arguments")?;
    let only = list.named_child(0).filter(|it| it.kind() == "string")?;
    Some(walk.text(only).trim_matches(['"', '\'', '`']).to_owned())
}

pub(super) fn required_names(walk: &mut Walk<'_>, node: Node<'_>, pattern: Node<'_>, module: &str) {
    if pattern.kind() == "identifier" {
        walk.import(node, module, None, walk.text(pattern));
        return;
    }
    for child in named(pattern) {
        match child.kind() {
            "shorthand_property_identifier_pattern" => {
                let name = walk.text(child);
                walk.import(node, module, Some(name), name);
            }
            "pair_pattern" => {
                let name = walk.field(child, "key").unwrap_or_default();
                let alias = walk.field(child, "value").unwrap_or_default();
                walk.import(node, module, Some(name), alias);
            }
            _ => {}
        }
    }
}

pub(super) fn imports(walk: &mut Walk<'_>, node: Node<'_>) {
    let module = walk.field(node, "source").unwrap_or_default();
    let module = module.trim_matches(['"', '\'']).to_owned();
    let Some(clause) = child_of_kind(node, &["import_clause"]) else {
        if !module.is_empty() {
            walk.import(node, &module, None, "");
        }
        return;
    };
    for child in named(clause) {
        match child.kind() {
            "identifier" => walk.import(node, &module, Some(DEFAULT), walk.text(child)),
            "namespace_import" => {
                if let Some(name) = child.named_child(0) {
                    walk.import(node, &module, None, walk.text(name));
                }
            }
            "named_imports" => {
                for specifier in named(child) {
                    let name = walk.field(specifier, "name").unwrap_or_default();
                    let alias = walk.field(specifier, "alias").unwrap_or(name);
                    walk.import(node, &module, Some(name), alias);
                }
            }
            _ => {}
        }
    }
}
