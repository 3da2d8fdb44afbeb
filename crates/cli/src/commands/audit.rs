//! `kenning audit`

use super::audit_proofs as proofs;
use crate::{Host, Settings, output, owner, progress};
use clap::ArgMatches;
use kenning_core::{Code, Did, Error, Result, Space};
use kenning_engine::{Engine, KeptCheckpoints};
use serde_json::json;
use std::path::Path;

pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    match matches.subcommand() {
        Some(("verify", matches)) => verify(host, settings, matches),
        Some(("checkpoint", matches)) => checkpoint(host, settings, matches),
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
        Some(("stats", _)) => proofs::stats(host, settings),
        Some(("cosign", matches)) => proofs::cosign(host, settings, matches),
        Some(("verify-file", matches)) => proofs::verify_file(settings, matches),
        Some(("verify-proof", matches)) => proofs::verify_proof(settings, matches),
        _ => Ok(2),
    }
}

/// The most bytes of a file of checkpoints.
const CHECKPOINTS_BYTES_MAX: u64 = 16 * 1024 * 1024;

fn checkpoint(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    if matches.get_flag("note") {
        engine.checkpoint(&owner(settings))?;
        let note = engine.checkpoint_note(&owner(settings), None)?;
        output::print_raw(note.to_signed_text().trim_end());
        return Ok(0);
    }
    if !matches.get_flag("all-spaces") {
        output::print_json(&engine.checkpoint(&owner(settings))?);
        return Ok(0);
    }
    for signed in engine.checkpoint_all(&owner(settings))? {
        output::print(&signed.to_string());
    }
    Ok(0)
}

fn kept_checkpoints(settings: &Settings, matches: &ArgMatches) -> Result<Option<KeptCheckpoints>> {
    let Some(file) = matches.get_one::<String>("since") else {
        return Ok(None);
    };
    let (dir, name) = kenning_vault::split(Path::new(file))?;
    let bytes = dir.read(&name, CHECKPOINTS_BYTES_MAX)?;
    let kept = KeptCheckpoints::parse(&String::from_utf8_lossy(&bytes), &settings.space)?;
    let is_of = |space: &Space| kept.spaces().any(|it| it == space);
    if !matches.get_flag("all-spaces") && !is_of(&settings.space) {
        let spaces: Vec<&str> = kept.spaces().map(Space::as_str).collect();
        return Err(Error::invalid(format!(
            "`{file}` has no checkpoint of the space `{}`: it has those of {}",
            settings.space,
            spaces.join(", ")
        ))
        .hint("name the space with `--space`, or verify `--all-spaces`"));
    }
    Ok(Some(kept))
}

fn named_authors(matches: &ArgMatches) -> Result<Vec<Did>> {
    let named = matches.get_many::<String>("author").into_iter().flatten();
    named
        .map(|it| {
            let did = it.parse::<Did>();
            let did = did.map_err(|what| Error::invalid(format!("`--author`: {what}")))?;
            Ok(did.as_signed())
        })
        .collect()
}

fn verify(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let since = kept_checkpoints(settings, matches)?;
    let named = named_authors(matches)?;
    let engine = host.open(settings)?;
    let mut spaces = vec![settings.space.clone()];
    if matches.get_flag("all-spaces") {
        spaces = engine.spaces()?;
        // A space that existed when its checkpoint was signed and does not now was removed.
        let kept = since.iter().flat_map(|it| it.spaces()).cloned();
        spaces.extend(kept);
        spaces.sort_unstable();
        spaces.dedup();
    }
    let mut clean = verify_schema(&engine, settings)?;
    for space in spaces {
        let bar = progress::bar("events verified");
        let mut report = engine.verify_with(&space, &named, since.as_ref(), &|done| {
            bar.set_position(done);
        })?;
        bar.finish_and_clear();
        if since
            .as_ref()
            .is_some_and(|it| it.spaces().all(|it| *it != space))
        {
            report.notices.push(
                "there is no checkpoint of this space in the file: nothing is known of a rollback of it"
                    .to_owned(),
            );
        }
        clean &= report.is_clean();
        for author in &mut report.authors {
            if let Ok(did) = author.did.parse() {
                author.did = engine.show_did(&did)?.to_string();
            }
        }
        let roots = report.roots.as_ref();
        if settings.json {
            let authors: Vec<_> = report
                .authors
                .iter()
                .map(|author| {
                    json!({
                        "did": author.did, "events": author.n_events, "trusted": author.is_trusted,
                        "revokedAt": author.revoked_at,
                    })
                })
                .collect();
            output::print_json(&json!({
                "space": space.as_str(), "clean": report.is_clean(), "events": report.n_events,
                "nodes": report.n_nodes, "history": report.n_history, "edges": report.n_edges,
                "checkpoints": report.n_checkpoints, "passages": report.n_passages,
                "names": report.n_names, "vectors": report.n_vectors,
                "signedRows": report.n_pairs, "unsigned": report.n_unsigned,
                "unchecked": report.n_unchecked,
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
            say_clean(report.n_events, report.n_unchecked);
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

/// Says what was compared, and what was not.
fn say_clean(n_events: u64, n_unchecked: u64) {
    if n_events == 0 {
        output::print(
            "empty: there are no events to verify. A store that was emptied looks the same; a checkpoint \
             that was kept elsewhere tells the difference (`--since`)",
        );
    } else {
        output::print(
            "clean: every event, checkpoint, node, revision, edge, passage, name and vector, and every row \
             about tokens, trusted keys, the registry, grants and compiled tools is as the signed events say",
        );
    }
    if n_unchecked > 0 {
        output::print(&format!(
            "not checked: {n_unchecked} rows of caches, cursors and work in progress, which no event signs"
        ));
    }
}

/// Checks that the database contains our tables and nothing else.
fn verify_schema(engine: &Engine, settings: &Settings) -> Result<bool> {
    let faults = engine.schema_faults()?;
    if settings.json && !faults.is_empty() {
        output::print_json(&json!({ "schema": { "clean": false, "faults": faults } }));
    } else {
        for fault in &faults {
            output::print(&format!("schema: fault: {fault}"));
        }
    }
    Ok(faults.is_empty())
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
            let new = engine.show_did(&new)?;
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
                        "space": space, "did": did, "maySign": it.may_sign,
                        "revoked": it.is_revoked, "confirmed": it.is_confirmed, "own": it.is_own,
                        "events": it.n_events,
                    }));
                    continue;
                }
                let own = if it.is_own { ", this node" } else { "" };
                let how = match (it.is_revoked, it.may_sign, it.is_confirmed) {
                    (true, _, _) => "revoked",
                    (false, true, true) => "may sign",
                    (false, true, false) => "may sign, not confirmed",
                    (false, false, true) => "signed events of an older version",
                    (false, false, false) => "may not sign",
                };
                let n_events = it.n_events;
                output::print(&format!("{space}\t{did}\t{how}{own}\t{n_events} events"));
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
    if let Some(event) = matches.get_one::<String>("of") {
        output::print_json(&engine.prove_event(&caller, event)?);
        return Ok(0);
    }
    let proof = match (
        matches.get_one::<String>("event"),
        matches.get_one::<u64>("since"),
    ) {
        (Some(event), _) => engine.prove_inclusion(&caller, event)?,
        (None, Some(&since)) => engine.prove_consistency(&caller, since)?,
        (None, None) => {
            return Err(Error::invalid("nothing to prove")
                .hint("name an event by its place or its id, or `--since SIZE`"));
        }
    };
    output::print_json(&proof.to_json());
    Ok(0)
}

fn export(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let caller = owner(settings);
    let seal = match matches.get_flag("checkpoint") {
        true => Some(engine.export_seal(&caller)?),
        false => None,
    };
    let end = seal.as_ref().map_or(u64::MAX, |it| it.0);
    let mut seq = matches.get_one::<u64>("after").copied().unwrap_or(0);
    while seq < end {
        let limit = usize::try_from(end - seq).unwrap_or(usize::MAX).min(1_000);
        let events = engine.events_after(&caller, seq, limit)?;
        let Some(last) = events.last() else { break };
        seq = last.seq;
        let lines: Vec<String> = events.iter().map(|event| event.json.to_string()).collect();
        output::print(&lines.join("\n"));
    }
    if let Some((_, seal)) = seal {
        output::print(&seal.to_string());
    }
    Ok(0)
}
