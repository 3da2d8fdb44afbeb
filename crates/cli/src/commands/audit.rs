//! `kenning audit`

use crate::{Host, Settings, output, owner, progress};
use clap::ArgMatches;
use kenning_core::{Code, Error, Result};
use serde_json::json;

pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    match matches.subcommand() {
        Some(("verify", matches)) => verify(host, settings, matches.get_flag("all-spaces")),
        Some(("checkpoint", _)) => {
            output::print_json(&host.open(settings)?.checkpoint(&owner(settings))?);
            Ok(0)
        }
        Some(("prove", matches)) => prove(host, settings, matches),
        Some(("export", matches)) => export(host, settings, matches),
        _ => Ok(2),
    }
}

fn verify(host: &dyn Host, settings: &Settings, all_spaces: bool) -> Result<u8> {
    let engine = host.open(settings)?;
    let spaces = if all_spaces {
        engine.log().store().spaces()?
    } else {
        vec![settings.space.clone()]
    };
    let mut clean = true;
    for space in spaces {
        let bar = progress::bar("events verified");
        let report = engine.verify(&space, &|done| bar.set_position(done))?;
        bar.finish_and_clear();
        clean &= report.is_clean();
        let roots = report.roots.as_ref();
        if settings.json {
            output::print_json(&json!({
                "space": space.as_str(), "clean": report.is_clean(), "events": report.n_events,
                "nodes": report.n_nodes, "history": report.n_history, "edges": report.n_edges,
                "checkpoints": report.n_checkpoints,
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
