//! `docs/reference/errors.md`, from the table of codes.

use super::markdown::{cell, notice};
use kenning_core::{CODES, McpForm};

pub(super) fn page() -> String {
    let mut text = notice("`CODES` of crates/core/src/error.rs");
    text += "# Errors\n\n\
             Every failure has one of these codes, over MCP, HTTP and the command line alike.\n\
             Each code has a page that says what it means and what to do.\n\n\
             | code | meaning | HTTP | MCP | exit code | call again |\n\
             |---|---|---|---|---|---|\n";
    for row in CODES {
        let mcp = match row.mcp {
            McpForm::IsError => "`isError`".to_owned(),
            McpForm::JsonRpc(number) => format!("error {number}"),
            McpForm::HttpStatus => "HTTP status only".to_owned(),
        };
        let again = if row.retryable { "may help" } else { "no" };
        text += &format!(
            "| [`{0}`](../errors/{0}.md) | {1} | {2} | {mcp} | {3} | {again} |\n",
            row.name,
            cell(row.meaning),
            row.http,
            row.exit,
        );
    }
    text
}
