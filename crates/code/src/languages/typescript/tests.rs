//! Tests that are calls: `it("adds", () => …)`.

use super::heads::is_function_value;
use crate::facts::{SymbolKind, Visibility};
use crate::walk::{New, Walk, name_of, named};
use kenning_grammars::tree_sitter::Node;

/// The symbol of a test, if the call is one. Its name is what is called and the title, so that no call can mean it.
/// `describe` only groups tests: what it holds is read as if it stood outside.
pub(super) fn test(walk: &mut Walk<'_>, node: Node<'_>) -> Option<u32> {
    let function = node.child_by_field_name("function")?;
    // `it.only` and `test.skip` are tests too.
    let called = match function.kind() {
        "member_expression" => function.child_by_field_name("object")?,
        _ => function,
    };
    let called = Some(walk.text(called)).filter(|it| matches!(*it, "it" | "test" | "specify"))?;
    let arguments = named(node.child_by_field_name("arguments")?);
    let title = arguments.first()?;
    if !matches!(title.kind(), "string" | "template_string") {
        return None;
    }
    let body = arguments
        .iter()
        .skip(1)
        .copied()
        .find(|it| is_function_value(it.kind()))?;
    let title = walk.text(*title).trim_matches(['"', '\'', '`']);
    let new = New {
        kind: SymbolKind::Function,
        name: name_of(&format!("{called} {title}")),
        at: node,
        whole: node,
        body: Some(body),
    };
    let n = walk.add(new)?;
    let symbol = walk.symbol_mut(n)?;
    symbol.is_test = true;
    symbol.visibility = Visibility::Private;
    Some(n)
}
