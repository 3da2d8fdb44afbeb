//! `kenning doctor`

use crate::{Host, Settings, output};
use kenning_core::{Code, Result};
use serde_json::{Map, Value, json};

pub(crate) fn run(host: &dyn Host, settings: &Settings) -> Result<u8> {
    let engine = host.open(settings)?;
    let mut found = engine.doctor()?;
    found.seen.insert(
        0,
        ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    );
    found
        .seen
        .insert(1, ("data".to_owned(), settings.data.display().to_string()));
    if settings.json {
        let seen: Map<String, Value> = found
            .seen
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        output::print_json(&json!({
            "ok": found.faults.is_empty(), "seen": seen, "faults": found.faults,
            "warnings": found.warnings,
        }));
    } else {
        let seen = found
            .seen
            .iter()
            .map(|(name, value)| format!("{name:<16} {value}"));
        output::print(&seen.collect::<Vec<_>>().join("\n"));
        for fault in &found.faults {
            output::print(&format!("fault: {fault}"));
        }
        for warning in &found.warnings {
            output::print(&format!("warning: {warning}"));
        }
        if found.faults.is_empty() && found.warnings.is_empty() {
            output::print("all is well");
        }
    }
    Ok(if found.faults.is_empty() {
        0
    } else {
        Code::Corrupt.row().exit
    })
}
