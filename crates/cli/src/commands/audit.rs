//! `kenning audit`

use crate::{Host, Settings, output, owner, progress};
use clap::ArgMatches;
use kenning_core::{Code, Did, Error, Result};
use serde_json::json;
use std::path::Path;

pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    match matches.subcommand() {
        Some(("verify", matches)) => verify(host, settings, matches),
        Some(("checkpoint", _)) => {
            output::print_json(&host.open(settings)?.checkpoint(&owner(settings))?);
            Ok(0)
        }
        Some(("prove", matches)) => prove(host, settings, matches),
        Some(("authors", matches)) => authors(host, settings, matches),
        Some(("reset-clock", _)) => {
            host.open(settings)?.reset_clock(&owner(settings))?;
            let space = &settings.space;
            output::say(&format!(
                "the log of the space {space} goes on at this machine's time"
            ));
            Ok(0)
        }
        Some(("export", matches)) => export(host, settings, matches),
        _ => Ok(2),
    }
}

/// A checkpoint in a file has no more bytes.
const CHECKPOINT_BYTES_MAX: u64 = 64 * 1024;

fn kept_checkpoint(matches: &ArgMatches) -> Result<Option<String>> {
    let Some(file) = matches.get_one::<String>("since") else {
        return Ok(None);
    };
    let (dir, name) = kenning_vault::split(Path::new(file))?;
    let bytes = dir.read(&name, CHECKPOINT_BYTES_MAX)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn named_authors(matches: &ArgMatches) -> Result<Vec<Did>> {
    let named = matches.get_many::<String>("author").into_iter().flatten();
    named
        .map(|it| {
            let did = it.parse::<Did>();
            did.map_err(|what| Error::invalid(format!("`--author`: {what}")))
        })
        .collect()
}

fn verify(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let since = kept_checkpoint(matches)?;
    let named = named_authors(matches)?;
    let engine = host.open(settings)?;
    let spaces = if matches.get_flag("all-spaces") {
        engine.log().store().spaces()?
    } else {
        vec![settings.space.clone()]
    };
    let mut clean = true;
    for space in spaces {
        let bar = progress::bar("events verified");
        let report = engine.verify_with(&space, &named, since.as_deref(), &|done| {
            bar.set_position(done);
        })?;
        bar.finish_and_clear();
        clean &= report.is_clean();
        let roots = report.roots.as_ref();
        if settings.json {
            let authors: Vec<_> = report
                .authors
                .iter()
                .map(|it| {
                    json!({
                        "did": it.did, "events": it.n_events, "trusted": it.is_trusted,
                        "revokedAt": it.revoked_at,
                    })
                })
                .collect();
            output::print_json(&json!({
                "space": space.as_str(), "clean": report.is_clean(), "events": report.n_events,
                "nodes": report.n_nodes, "history": report.n_history, "edges": report.n_edges,
                "checkpoints": report.n_checkpoints, "passages": report.n_passages,
                "names": report.n_names, "vectors": report.n_vectors,
                "signedRows": report.n_pairs, "unsigned": report.n_unsigned,
                "erased": report.n_erased,
                "origin": report.origin.as_ref().map(|it| it.to_json()),
                "authors": authors,
                "notices": report.notices,
                "eventRoot": roots.map(|it| it.event_root.to_string()),
                "stateRoot": roots.map(|it| it.state_root.to_string()),
                "faults": report.faults, "moreFaults": report.n_more_faults,
            }));
            continue;
        }
        output::print(&format!(
            "space {space}: {} events, {} nodes, {} earlier revisions, {} edges, {} checkpoints",
            report.n_events, report.n_nodes, report.n_history, report.n_edges, report.n_checkpoints
        ));
        if let Some(roots) = roots {
            let (events, state) = (roots.event_root, roots.state_root);
            output::print(&format!("event root {events}\nstate root {state}"));
        }
        if let Some(origin) = &report.origin {
            output::print(&format!("log {}", origin.log));
        }
        for author in &report.authors {
            let how = match (author.revoked_at, author.is_trusted) {
                (Some(at), _) => format!("revoked by event {at}"),
                (None, true) => "trusted".to_owned(),
                (None, false) => "not confirmed".to_owned(),
            };
            let (did, n) = (&author.did, author.n_events);
            output::print(&format!("author {did}: {n} events, {how}"));
        }
        if report.n_unsigned > 0 {
            output::print(&format!(
                "{} rows are older than the signatures on such rows; `kenning reindex` writes them anew",
                report.n_unsigned
            ));
        }
        if report.n_erased > 0 {
            output::print(&format!(
                "the data of {} events was erased",
                report.n_erased
            ));
        }
        for notice in &report.notices {
            output::print(&format!("notice: {notice}"));
        }
        if report.is_clean() {
            output::print("clean: every hash, signature and row is as the events say");
        }
        for fault in &report.faults {
            output::print(&format!("fault: {fault}"));
        }
        if report.n_more_faults > 0 {
            output::print(&format!("and {} more faults", report.n_more_faults));
        }
    }
    Ok(if clean { 0 } else { Code::Corrupt.row().exit })
}

fn authors(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let caller = owner(settings);
    let did = |matches: &ArgMatches| {
        matches
            .get_one::<String>("did")
            .cloned()
            .unwrap_or_default()
    };
    let (done, changed) = match matches.subcommand() {
        Some(("add", matches)) => {
            let did = did(matches);
            let spaces = engine.add_author(&caller, &did)?;
            (format!("{did} may sign"), spaces)
        }
        Some(("revoke", matches)) => {
            let did = did(matches);
            let spaces = engine.revoke_author(&caller, &did)?;
            (format!("{did} may sign no further events"), spaces)
        }
        Some(("rotate", _)) => {
            let new = engine.rotate_key(&caller)?;
            if settings.json {
                output::print_json(&json!({ "author": new.as_str() }));
            } else {
                output::print(new.as_str());
                output::say(
                    "this is the new key of this node; restart what else runs with the old one",
                );
            }
            return Ok(0);
        }
        _ => {
            let authors = engine.authors(&caller)?;
            for it in &authors {
                let (space, did) = (it.space.as_str(), &it.did);
                if settings.json {
                    output::print_json(&json!({
                        "space": space, "did": did, "revoked": it.is_revoked, "own": it.is_own,
                    }));
                    continue;
                }
                let own = if it.is_own { ", this node" } else { "" };
                let how = if it.is_revoked { "revoked" } else { "may sign" };
                output::print(&format!("{space}\t{did}\t{how}{own}"));
            }
            return Ok(0);
        }
    };
    let spaces: Vec<&str> = changed.iter().map(|it| it.as_str()).collect();
    if settings.json {
        output::print_json(&json!({ "spaces": spaces }));
    } else {
        output::say(&format!("{done} in the spaces {}", spaces.join(", ")));
    }
    Ok(0)
}

fn prove(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let caller = owner(settings);
    let proof = match (
        matches.get_one::<String>("event"),
        matches.get_one::<u64>("since"),
    ) {
        (Some(event), _) => engine.prove_inclusion(&caller, event)?,
        (None, Some(&since)) => engine.prove_consistency(&caller, since)?,
        (None, None) => {
            return Err(Error::invalid("nothing to prove")
                .hint("`--event SEQ` or `--event ID`, or `--since SIZE`"));
        }
    };
    output::print_json(&proof.to_json());
    Ok(0)
}

fn export(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let mut seq = matches.get_one::<u64>("after").copied().unwrap_or(0);
    loop {
        let events = engine.events_after(&owner(settings), seq, 1_000)?;
        let Some(last) = events.last() else {
            return Ok(0);
        };
        seq = last.seq;
        let lines: Vec<String> = events.iter().map(|event| event.json.to_string()).collect();
        output::print(&lines.join("\n"));
    }
}
