//! `kenning audit stats|cosign|verify-file|verify-proof`

use crate::{Host, Settings, output, owner};
use clap::ArgMatches;
use kenning_core::{Code, Did, Error, Result};
use kenning_engine::{CheckpointView, check_export, check_proof, parse_public_key, timestamp};
use serde_json::json;
use std::io::BufReader;
use std::path::Path;

/// A proof has no more bytes.
const PROOF_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(super) fn stats(host: &dyn Host, settings: &Settings) -> Result<u8> {
    let stats = host.open(settings)?.log_stats(&owner(settings))?;
    if settings.json {
        output::print_json(&stats.to_json());
        return Ok(0);
    }
    let (events, checkpoints) = (stats.n_events, stats.n_checkpoints);
    output::print(&format!("{events} events, {checkpoints} checkpoints"));
    output::print(&format!(
        "{} events since the newest checkpoint",
        stats.n_since_checkpoint
    ));
    if let Some(it) = &stats.last_checkpoint {
        let (height, at) = (it.height, timestamp(it.hlc.ms()));
        output::print(&format!("checkpoint {height} was signed at {at}"));
    }
    if let Some(it) = stats.last_verified {
        let (events, at) = (it.n_events, timestamp(it.at_ms));
        let how = if it.is_clean { "clean" } else { "with faults" };
        output::print(&format!("verified at {at}: {events} events, {how}"));
    }
    output::print(&format!(
        "{} authors, {} revoked",
        stats.n_authors, stats.n_revoked
    ));
    for (kind, n) in &stats.kinds {
        output::print(&format!("{n}\t{kind}"));
    }
    Ok(0)
}

pub(super) fn cosign(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let caller = owner(settings);
    let height = matches.get_one::<u64>("height").copied();
    let signed = match matches.get_one::<String>("line") {
        Some(line) => {
            let key = matches.get_one::<String>("key").map_or("", String::as_str);
            engine.add_cosignature(&caller, height, line, &parse_public_key(key)?)?
        }
        None => {
            let name = matches
                .get_one::<String>("agent")
                .map_or("", String::as_str);
            engine.cosign_as_agent(&caller, height, name)?
        }
    };
    print_validators(settings, &signed);
    Ok(0)
}

fn print_validators(settings: &Settings, signed: &CheckpointView) {
    let validators = signed.validators.iter();
    if settings.json {
        let validators: Vec<_> = validators
            .map(|it| json!({ "did": it.did, "name": it.name, "signedAt": it.at_s }))
            .collect();
        let (height, size) = (signed.row.height, signed.row.seq);
        output::print_json(&json!({ "height": height, "size": size, "validators": validators }));
        return;
    }
    let (height, size) = (signed.row.height, signed.row.seq);
    output::print(&format!(
        "checkpoint {height} of {size} events is signed by"
    ));
    for it in validators {
        let name = it.name.as_deref().unwrap_or("its author");
        output::print(&format!("{}\t{name}", it.did));
    }
}

fn keys(matches: &ArgMatches) -> Result<Vec<Did>> {
    let keys = matches.get_many::<String>("key").into_iter().flatten();
    keys.map(|it| parse_public_key(it)).collect()
}

fn file(matches: &ArgMatches) -> &str {
    matches.get_one::<String>("file").map_or("", String::as_str)
}

pub(super) fn verify_file(settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let keys = keys(matches)?;
    let (dir, name) = kenning_vault::split(Path::new(file(matches)))?;
    let open = || {
        let file = dir.open_read(&name)?;
        Ok(Box::new(BufReader::with_capacity(1 << 20, file)) as _)
    };
    let checked = check_export(&open, &keys)?;
    let report = &checked.report;
    let (events, covered) = (report.n_events, checked.covered);
    let is_sealed = report.is_clean() && checked.n_checkpoints > 0;
    if settings.json {
        output::print_json(&json!({
            "clean": report.is_clean(), "events": events, "checkpoints": checked.n_checkpoints,
            "covered": covered, "origin": report.origin.as_ref().map(|it| it.to_json()),
            "eventRoot": report.roots.as_ref().map(|it| it.event_root.to_string()),
            "stateRoot": report.roots.as_ref().map(|it| it.state_root.to_string()),
            "faults": report.faults, "moreFaults": report.n_more_faults,
        }));
    } else {
        for fault in &report.faults {
            output::print(&format!("fault: {fault}"));
        }
        if report.n_more_faults > 0 {
            output::print(&format!("and {} more faults", report.n_more_faults));
        }
        if is_sealed {
            output::print(&format!(
                "clean: {events} events are as their authors signed them; a signed checkpoint covers {covered}"
            ));
        } else if report.is_clean() {
            output::print(&format!(
                "clean: {events} events are as their authors signed them; no checkpoint is in the file, so \
                 events may be missing at its end"
            ));
        }
    }
    Ok(if report.is_clean() {
        0
    } else {
        Code::Corrupt.row().exit
    })
}

pub(super) fn verify_proof(settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let keys = keys(matches)?;
    let (dir, name) = kenning_vault::split(Path::new(file(matches)))?;
    let bytes = dir.read(&name, PROOF_BYTES_MAX)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::invalid(format!("`{}` is not UTF-8", file(matches))))?;
    let mut held = Err(Error::invalid("no key was given"));
    for key in &keys {
        held = check_proof(&text, key);
        if held.is_ok() {
            break;
        }
    }
    let (seq, kind, size) = held?;
    if settings.json {
        output::print_json(&json!({ "holds": true, "event": seq, "kind": kind, "treeSize": size }));
    } else {
        output::print(&format!(
            "holds: event {seq} ({kind}) is in the log of {size} events that the checkpoint is of"
        ));
    }
    Ok(0)
}
