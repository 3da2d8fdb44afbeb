//! `kenning doctor`
//!
//! Errors refer to it, so it reports something even if nothing can be opened, and it creates nothing.

use crate::{Host, Settings, StoreLook, output, owner};
use kenning_core::{Code, Error, Result};
use kenning_engine::Doctor;
use kenning_vault::Dir;
use serde_json::{Map, Value, json};

pub(crate) fn run(host: &dyn Host, settings: &Settings) -> Result<u8> {
    let StoreLook {
        exists,
        seen,
        faults,
    } = host.look_at_store(settings);
    let mut found = Doctor::default();
    let mut note = |name: &str, value: String| found.seen.push((name.to_owned(), value));
    note("version", env!("CARGO_PKG_VERSION").to_owned());
    note("data", settings.data.display().to_string());
    let mut exit = Code::Corrupt.row().exit;
    if exists {
        let looked = host.open(settings).and_then(|engine| {
            let mut opened = engine.doctor()?;
            // A fault for which `omi audit` exits with 9 is reported here too.
            for fault in engine.omi().context_faults(&owner(settings))? {
                opened
                    .faults
                    .push(format!("omi: {fault} (`omi audit` says more)"));
            }
            Ok(opened)
        });
        match looked {
            Ok(opened) => {
                found.seen.extend(seen);
                found.seen.extend(opened.seen);
                found
                    .seen
                    .push(("requests".to_owned(), bounds_of_requests()));
                found.faults.extend(opened.faults);
                found.warnings.extend(opened.warnings);
            }
            Err(error) => {
                exit = error.code.row().exit;
                found.seen.extend(seen);
                found.faults.extend(faults);
                add_cause(&mut found, settings, &error);
            }
        }
    } else {
        note("store", "none yet; the first write makes it".to_owned());
        look_at_vault(&mut found, settings);
    }
    show(settings, &found);
    Ok(if found.faults.is_empty() { 0 } else { exit })
}

/// What a server holds of its callers at once.
fn bounds_of_requests() -> String {
    use kenning_tools::slots::{self, bodies};
    const MIB: usize = 1024 * 1024;
    format!(
        "a server runs at most {} calls at once and {} of one caller, lets {} of one caller wait, and holds {} MiB of \
         bodies, {} MiB of one caller; `/metrics` shows how many there are",
        slots::CALLS_MAX,
        slots::CALLS_OF_ONE_MAX,
        slots::WAITING_OF_ONE_MAX,
        bodies::BODIES_BYTES_MAX / MIB,
        bodies::BODIES_OF_ONE_BYTES_MAX / MIB,
    )
}

/// Why the store cannot be opened, and what to do about it.
fn add_cause(found: &mut Doctor, settings: &Settings, error: &Error) {
    let mut causes = vec![error.to_string()];
    let mut cause = std::error::Error::source(error);
    while let Some(it) = cause {
        causes.push(it.to_string());
        cause = it.source();
    }
    causes.dedup();
    found.faults.push(format!("store: {}", causes.join(": ")));
    if error.code == Code::Corrupt && settings.database.is_none() {
        found.seen.push((
            "to go on".to_owned(),
            format!(
                "move the files `kenning.db*` out of {}, then `kenning restore FILE` with what \
                 `kenning backup` wrote",
                settings.data.display()
            ),
        ));
    }
}

fn look_at_vault(found: &mut Doctor, settings: &Settings) {
    let Some(vault) = &settings.vault else { return };
    match Dir::open(vault) {
        Ok(_) => found
            .seen
            .push(("vault".to_owned(), vault.display().to_string())),
        Err(error) => found.faults.push(format!("vault: {error}")),
    }
}

fn show(settings: &Settings, found: &Doctor) {
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
        return;
    }
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
