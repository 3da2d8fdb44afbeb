//! The page of `config.yaml`.

use super::markdown::{cell, notice};
use kenning_memory::config::KEYS;
use std::fmt::Write;

/// `docs/reference/config.md`
pub(super) fn page() -> String {
    let mut out = notice("crates/memory/src/config/keys.rs");
    out += "# `config.yaml`\n\n\
        It lies in the directory that `OMI_BASE_PATH` names, and is optional.\n\
        A key that is not listed here, and a value that could have no effect, are refused.\n\
        In a text `${NAME}` stands for an environment variable, which is needed only where the text is.\n\n\
        | key | value | default | what it does |\n|---|---|---|---|\n";
    for key in KEYS {
        let default = match key.default {
            "" => String::new(),
            text => format!("`{text}`"),
        };
        let secret = if key.secret { " (never shown)" } else { "" };
        let value = format!("{}{secret}", key.form.expected());
        // Writing to a text cannot fail.
        let _ = writeln!(
            out,
            "| `{}` | {} | {default} | {} |",
            key.name,
            cell(&value),
            cell(key.doc)
        );
    }
    out
}
