//! Sync: the graph follows files, and peers get and give what is new.

use super::{LOOK_EVERY_MS, Next, Work, count, documents, unknown};
use kenning_core::{Error, Result};
use kenning_kernel::Scope;
use kenning_kg::Generate;
use kenning_runs::{Ending, Outcome, Run, StepDone, StepOutcome};
use serde_json::{Value, json};

/// Folders that one run may watch.
pub(super) const PATHS_MAX: usize = 20;

/// The folder that is meant if none is named.
const DEFAULT_PATH: &str = "docs";

/// The folders of a run, as they were given.
pub(super) fn watched_by(run: &Run) -> Vec<String> {
    let given = run.input.get("options").and_then(|it| it.get("watchPaths"));
    let given = given.and_then(Value::as_array);
    let texts = given.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

pub(super) fn step(work: &Work<'_>) -> Result<Next> {
    let watched = watched_by(work.run);
    let paths = match (watched.is_empty(), work.text("docPath")) {
        (false, _) => watched.clone(),
        (true, Some(path)) => vec![path.to_owned()],
        (true, None) => vec![DEFAULT_PATH.to_owned()],
    };
    match work.run.current_step.as_str() {
        "check-paths" => {
            let project = work.kernel.project().open(&work.caller.principal.space)?;
            for path in &paths {
                let plain = documents::plain(path);
                if !plain.is_empty() {
                    project.subdir(plain).map_err(|error| {
                        let said = format!("`{path}` cannot be watched: {}", error.message);
                        Error::new(error.code, said).hint("name folders of the project")
                    })?;
                }
            }
            let keep = json!({ "paths": paths });
            Ok(StepDone::of("check-paths", "generate", keep).into())
        }
        "generate" => {
            let (told, _) = generate(work, &paths)?;
            let mut done = StepDone::of("generate", "sync-peers", work.run.state.clone());
            done.metadata = json!({ "paths": paths, "result": told });
            done.artifacts = told.into_iter().map(Value::from).collect();
            Ok(done.into())
        }
        "sync-peers" => sync_peers(work, !watched.is_empty()),
        "watching" => {
            let (told, n_changes) = generate(work, &paths)?;
            let due_ms = work.now_ms() + LOOK_EVERY_MS;
            if n_changes == 0 {
                return Ok(Next::Wait(due_ms));
            }
            let mut done = StepDone::of("generate", "watching", work.run.state.clone());
            done.metadata = json!({ "result": told });
            done.due_ms = due_ms;
            Ok(done.into())
        }
        "report" => Ok(Next::End(Ending {
            summary: {
                let made = work.run.artifacts.iter().filter_map(Value::as_str);
                made.collect::<Vec<_>>().join("\n")
            },
            ..Ending::of(Outcome::Completed)
        })),
        _ => Err(unknown(work)),
    }
}

/// Brings the graph up to date; says what changed, and how much.
fn generate(work: &Work<'_>, paths: &[String]) -> Result<(Vec<String>, usize)> {
    let (mut told, mut n_changes) = (Vec::new(), 0);
    for path in paths {
        let plain = documents::plain(path);
        let what = Generate {
            docs_path: if plain.is_empty() { "." } else { plain }.to_owned(),
            incremental: true,
            ..Generate::default()
        };
        let done = work.kg.generate_graph(work.caller, &what)?;
        n_changes += done.nodes_added + done.nodes_updated + done.nodes_removed;
        told.push(format!(
            "{path}: {} added, {} updated, {} removed, {}",
            done.nodes_added,
            done.nodes_updated,
            done.nodes_removed,
            count(done.errors.len(), "error", "errors"),
        ));
    }
    Ok((told, n_changes))
}

/// Exchanges with every peer that can be called. One that does not answer fails its step and not the run.
fn sync_peers(work: &Work<'_>, watches: bool) -> Result<Next> {
    let next = if watches { "watching" } else { "report" };
    let mut done = StepDone::of("sync-peers", next, work.run.state.clone());
    let may = work.caller.principal.scopes.contains(&Scope::Admin);
    let peers = match may {
        true => work.kernel.peers(work.caller)?,
        false => Vec::new(),
    };
    let peers: Vec<_> = peers
        .into_iter()
        .filter(|it| !it.endpoint.is_empty() && it.cut_off.is_none())
        .collect();
    if peers.is_empty() {
        done.metadata = json!({ "peers": 0, "may": may });
        return Ok(done.into());
    }
    let mut told = Vec::new();
    for peer in &peers {
        work.caller.check()?;
        told.push(match work.kernel.sync_peer(work.caller, &peer.id) {
            Ok(_) => format!("{}: exchanged", peer.id),
            Err(error) => {
                done.outcome = StepOutcome::Failure;
                format!("{}: {error}", peer.id)
            }
        });
    }
    done.metadata = json!({ "peers": told });
    done.artifacts = told.into_iter().map(Value::from).collect();
    Ok(done.into())
}
