//! Shell scripts.

use crate::facts::{Expr, SymbolKind};
use crate::walk::{Enter, New, Reader, Walk, named};
use kenning_grammars::tree_sitter::Node;

pub(crate) struct Bash;

impl Reader for Bash {
    fn enter(&mut self, walk: &mut Walk<'_>, node: Node<'_>) -> Enter {
        match node.kind() {
            "function_definition" => {
                let Some(name) = node.child_by_field_name("name") else {
                    return Enter::Descend;
                };
                let text = walk.name(name);
                let doc = walk.comments_before(node, |it| !it.starts_with("#!"));
                let is_test = text.starts_with("test_");
                let new = New {
                    kind: SymbolKind::Function,
                    name: text,
                    at: name,
                    whole: node,
                    body: node.child_by_field_name("body"),
                };
                let Some(n) = walk.add(new) else {
                    return Enter::Descend;
                };
                if let Some(symbol) = walk.symbol_mut(n) {
                    symbol.doc = doc;
                    symbol.is_test = is_test;
                }
                Enter::Scope(n)
            }
            "command" => {
                let name = walk.field(node, "name").unwrap_or_default();
                if matches!(name, "source" | ".") {
                    let path = named(node).into_iter().nth(1).map(|it| walk.text(it));
                    let path = path.unwrap_or_default().trim_matches(['"', '\'']);
                    // `$(dirname "$0")/lib.sh` is a file beside this one.
                    let path = match path.rfind(['}', ')', '"']) {
                        Some(at) => path[at + 1..].trim_start_matches('/'),
                        None => path,
                    };
                    if !path.is_empty() && !path.contains('$') {
                        walk.import(node, path, Some("*"), "");
                    }
                } else if name
                    .chars()
                    .all(|it| it.is_alphanumeric() || matches!(it, '_' | '-' | ':'))
                {
                    walk.call(node, Expr::Name(name.to_owned()), None);
                }
                Enter::Descend
            }
            "variable_assignment" => {
                let name = node
                    .child_by_field_name("name")
                    .filter(|it| it.kind() == "variable_name");
                let is_top = node
                    .parent()
                    .is_some_and(|it| it.kind() == "program" || it.kind() == "declaration_command")
                    && walk.scope().is_none();
                if let Some(name) = name.filter(|_| is_top) {
                    let text = walk.name(name);
                    let is_known = walk.facts.symbols.iter().any(|it| it.name == text);
                    if !is_known {
                        walk.add(New {
                            kind: SymbolKind::Constant,
                            name: text,
                            at: name,
                            whole: node,
                            body: node
                                .child_by_field_name("value")
                                .filter(|it| it.byte_range().len() > 80),
                        });
                    }
                }
                Enter::Descend
            }
            _ => Enter::Descend,
        }
    }
}
