//! SQL: tables, views and types are classes; functions, procedures, triggers and indexes are functions.

use crate::facts::{Expr, Param, SymbolKind, Type};
use crate::walk::{Enter, New, Reader, Walk, child_of_kind, named, param};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct Sql;

impl Reader for Sql {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "create_table" | "create_view" | "create_materialized_view" | "create_type" => {
                created(walk, node, SymbolKind::Class)
            }
            "create_function" | "create_procedure" | "create_trigger" => {
                created(walk, node, SymbolKind::Function)
            }
            "create_index" => {
                let name = node
                    .child_by_field_name("column")
                    .or_else(|| child_of_kind(node, &["identifier"]));
                if let Some(name) = name {
                    walk.add(New {
                        kind: SymbolKind::Function,
                        name: plain(walk.text(name)),
                        at: name,
                        whole: node,
                        body: None,
                    });
                }
                Enter::Descend
            }
            "create_schema" => {
                if let Some(name) = child_of_kind(node, &["identifier"]) {
                    walk.add(New {
                        kind: SymbolKind::Module,
                        name: plain(walk.text(name)),
                        at: name,
                        whole: node,
                        body: None,
                    });
                }
                Enter::Descend
            }
            "column_definition" => {
                let (of, name) = (walk.direct_type(), node.child_by_field_name("name"));
                if let (Some(of), Some(name)) = (of, name) {
                    let ty = walk.field(node, "type").map(Type::plain);
                    walk.bind_field(of, name, &plain(walk.text(name)), ty, None);
                }
                Enter::Descend
            }
            "invocation" => {
                if let Some(name) = child_of_kind(node, &["object_reference"]) {
                    let callee = Expr::Name(plain(walk.text(name)));
                    walk.call(name, callee, None);
                }
                Enter::Descend
            }
            "object_reference" => {
                let name = plain(walk.text(node));
                walk.uses(node, &name);
                Enter::Skip
            }
            _ => Enter::Descend,
        }
    }
}

/// The last part of a name, without its quotes.
fn plain(text: &str) -> String {
    let last = text.rsplit('.').next().unwrap_or_default();
    crate::walk::name_of(last.trim_matches(['"', '`', '[', ']']))
}

fn created(walk: &mut Walk<'_>, node: Node<'_>, kind: SymbolKind) -> Enter {
    let name = child_of_kind(node, &["object_reference", "identifier"]);
    let Some(name) = name else {
        return Enter::Descend;
    };
    let doc = walk.comments_before(node.parent().unwrap_or(node), |_| true);
    let new = New {
        kind,
        name: plain(walk.text(name)),
        at: name,
        whole: node,
        body: child_of_kind(
            node,
            &["column_definitions", "create_query", "function_body"],
        ),
    };
    let (params, returns) = (params(walk, node), returned(walk, node));
    let Some(n) = walk.add(new) else {
        return Enter::Descend;
    };
    if let Some(symbol) = walk.symbol_mut(n) {
        symbol.doc = doc;
        symbol.params = params;
        symbol.returns = returns;
    }
    Enter::Scope(n)
}

/// What a function takes: `name type`.
fn params(walk: &Walk<'_>, node: Node<'_>) -> Vec<Param> {
    let list = child_of_kind(node, &["function_arguments"]);
    let all = list.map(named).unwrap_or_default().into_iter();
    all.filter_map(|it| {
        let name = child_of_kind(it, &["identifier"])?;
        let after = it.child_by_field_name("custom_type");
        let ty = after.or_else(|| name.next_named_sibling());
        let ty = ty.map(|it| Type::plain(walk.text(it)));
        let is_optional = child_of_kind(it, &["keyword_default"]).is_some();
        Some(param(&plain(walk.text(name)), ty, is_optional))
    })
    .collect()
}

/// What a function gives: what stands after `RETURNS`.
fn returned(walk: &Walk<'_>, node: Node<'_>) -> Option<Type> {
    let word = child_of_kind(node, &["keyword_returns"])?;
    let ty = word.next_named_sibling()?;
    Some(Type::plain(walk.text(ty)))
}
