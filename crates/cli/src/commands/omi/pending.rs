//! `omi pending`

use super::Omi;
use crate::output;
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::omi::PendingWrite;
use kenning_engine::{parse_public_key, timestamp};

fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

pub(super) fn list(omi: &Omi<'_>) -> Result<u8> {
    for write in omi.engine.omi().pending_writes(&omi.caller)? {
        if omi.settings.json {
            output::print_json(&write.to_json());
            continue;
        }
        let (id, at) = (&write.id, timestamp(write.at_ms));
        let first = write.memories.first().map_or("", |it| it.content.as_str());
        let first: String = first.chars().take(60).collect();
        output::print(&format!("{id}\t{at}\t{}\t{first}", write.proposed_by));
    }
    Ok(0)
}

fn find(omi: &Omi<'_>, id: &str) -> Result<PendingWrite> {
    let all = omi.engine.omi().pending_writes(&omi.caller)?;
    all.into_iter()
        .find(|it| it.id == id)
        .ok_or_else(|| Error::not_found("pending write", id).hint("`omi pending list` shows all"))
}

pub(super) fn show(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let write = find(omi, text(matches, "id"))?;
    if omi.settings.json {
        output::print_json(&write.to_json());
        return Ok(0);
    }
    for memory in &write.memories {
        output::print(&memory.content);
    }
    output::say(&format!(
        "proposed by {} at {}; the second key signs this text:",
        write.proposed_by,
        timestamp(write.at_ms)
    ));
    output::print_raw(write.text_to_sign.trim_end());
    Ok(0)
}

pub(super) fn confirm(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let id = text(matches, "id");
    let wing = omi.engine.omi();
    let stored = match matches.get_one::<String>("agent") {
        Some(agent) => wing.confirm_write_as(&omi.caller, id, agent)?,
        None => {
            let signature = text(matches, "signature");
            let bytes = kenning_text::hex::decode(signature).ok_or_else(|| {
                Error::invalid(format!("`--signature`: `{signature}` is not hexadecimal"))
                    .hint("128 hexadecimal digits")
            })?;
            let key = parse_public_key(text(matches, "key"))?;
            wing.confirm_write(&omi.caller, id, &key, &bytes)?
        }
    };
    for it in stored {
        output::chat("✓ Memory stored");
        output::print(&it.id);
    }
    Ok(0)
}

pub(super) fn reject(omi: &Omi<'_>, matches: &ArgMatches) -> Result<u8> {
    let id = text(matches, "id");
    omi.engine.omi().reject_write(&omi.caller, id)?;
    output::say(&format!("rejected `{id}`"));
    Ok(0)
}
