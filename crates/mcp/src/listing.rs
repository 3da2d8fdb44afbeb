//! Lists the tools in pages.

use kenning_engine::kami::ToolFunction;
use kenning_tools::{AnyTool, Effect, listed_description, listed_schema};
use rmcp::ErrorData;
use rmcp::model::{JsonObject, ListToolsResult, PaginatedRequestParams, Tool, ToolAnnotations};
use serde_json::Value;
use std::sync::Arc;

/// How many tools a page holds.
pub(crate) const PAGE_SIZE: usize = 100;

/// A tool as an MCP description. In the default set the entries are as short as they can be, and the form of the
/// answers is left out: a client that wants it names a toolset.
pub(crate) fn tool(tool: &dyn AnyTool, is_default_set: bool) -> Tool {
    let hints = tool.effect().annotations();
    let annotations = ToolAnnotations::with_title(tool.title())
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let schema = object(listed_schema(tool, is_default_set));
    let listed = Tool::new(
        tool.name(),
        listed_description(tool, is_default_set),
        schema,
    )
    .with_title(tool.title())
    .with_annotations(annotations);
    match tool.output_schema().filter(|_| !is_default_set) {
        Some(schema) => listed.with_raw_output_schema(Arc::new(object(schema))),
        None => listed,
    }
}

/// An installed tool as an MCP description. Its effects are unknown, so the hints assume the worst.
pub(crate) fn installed(tool: ToolFunction) -> Tool {
    let hints = Effect::Run.annotations();
    let annotations = ToolAnnotations::with_title(tool.title.clone())
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    Tool::new(tool.name, tool.description, object(tool.input_schema))
        .with_title(tool.title)
        .with_annotations(annotations)
}

/// One page. The cursor is the name of the last tool shown, so that a tool added meanwhile moves no
/// page; clients must not look into it.
pub(crate) fn page(
    tools: &[Tool],
    request: Option<PaginatedRequestParams>,
    page_size: usize,
) -> Result<ListToolsResult, ErrorData> {
    let start = match request.and_then(|it| it.cursor) {
        None => 0,
        Some(cursor) => {
            let position = tools.iter().position(|tool| tool.name == cursor);
            1 + position
                .ok_or_else(|| ErrorData::invalid_params("Invalid params: bad cursor", None))?
        }
    };
    let rest = tools.get(start..).unwrap_or_default();
    let shown = &rest[..rest.len().min(page_size)];
    let mut result = ListToolsResult::with_all_items(shown.to_vec());
    if shown.len() < rest.len() {
        result.next_cursor = shown.last().map(|tool| tool.name.to_string());
    }
    Ok(result)
}

pub(crate) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(n: usize) -> Vec<Tool> {
        (0..n)
            .map(|it| Tool::new(format!("tool_{it}"), "", JsonObject::new()))
            .collect()
    }

    fn names(n: usize, page_size: usize) -> Vec<usize> {
        let tools = tools(n);
        let mut cursor = None;
        let mut sizes = Vec::new();
        loop {
            let request = PaginatedRequestParams::default().with_cursor(cursor);
            let page = page(&tools, Some(request), page_size).unwrap();
            sizes.push(page.tools.len());
            cursor = page.next_cursor;
            if cursor.is_none() {
                return sizes;
            }
        }
    }

    #[test]
    fn pages_hold_every_tool_once() {
        assert_eq!(names(0, 2), [0]);
        assert_eq!(names(2, 2), [2]);
        assert_eq!(names(5, 2), [2, 2, 1]);
    }

    #[test]
    fn a_cursor_that_was_never_given_is_refused() {
        let request = PaginatedRequestParams::default().with_cursor(Some("x".into()));
        let error = page(&tools(3), Some(request), 2).unwrap_err();
        assert_eq!(error.code.0, -32602);
    }
}
