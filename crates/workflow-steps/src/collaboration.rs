//! Collaboration: a document and its neighbors, until the document is ready to be worked from.

use super::{INACTIVITY_MS, LOOK_EVERY_MS, Next, Work, documents, unknown};
use kenning_core::{Error, Hash, Result};
use kenning_kg::DocumentContent;
use kenning_runs::{Ending, Outcome, StepDone};
use kenning_workflow::gaps;
use kenning_workflow::{Limits, builtin, find_plan, readiness};
use serde_json::{Value, json};

/// Neighbors that are watched.
const NEIGHBORS_MAX: usize = 50;

/// Actions that this program does by itself; the others are for whoever writes the document.
const OWN_ACTIONS: [&str; 3] = ["analyze-spec", "create-task", "start-development"];

pub(super) fn step(work: &Work<'_>) -> Result<Next> {
    let path = work.text("docPath").unwrap_or_default();
    match work.run.current_step.as_str() {
        "initialize" => {
            documents::follow_files(work, path)?;
            let content = document(work, path)?;
            let near = neighbors(&content);
            let mut done = StepDone::of("initialize", "agent-coordination", json!({}));
            done.metadata = json!({ "document": content.document.path, "neighbors": near });
            Ok(done.into())
        }
        "agent-coordination" => {
            let content = document(work, path)?;
            let who = documents::collaborators(work, &content)?;
            let since = work.now_ms().saturating_sub(INACTIVITY_MS);
            let active: Vec<&str> = who
                .iter()
                .filter(|it| it.1 >= since)
                .map(|it| it.0.as_str())
                .collect();
            let keep = work.kept_with("activeCollaborators", json!(active));
            let mut done = StepDone::of("agent-coordination", "executing-plan", keep);
            let known: Vec<Value> = who
                .iter()
                .map(|it| json!({ "who": it.0, "lastAt": kenning_kernel::timestamp(it.1) }))
                .collect();
            done.metadata = json!({ "collaborators": known });
            Ok(done.into())
        }
        "executing-plan" => evaluate(work, &document(work, path)?),
        "watching" => watch(work, path),
        "ready" => Ok(Next::End(Ending {
            summary: summary(work, "The document is ready to be worked from."),
            quality: work.kept("score").as_f64(),
            ..Ending::of(Outcome::Completed)
        })),
        _ => Err(unknown(work)),
    }
}

fn document(work: &Work<'_>, path: &str) -> Result<DocumentContent> {
    let all = documents::beneath(work, path)?;
    let [(id, _)] = all.as_slice() else {
        return Err(Error::invalid(format!(
            "`input.docPath`: `{path}` is a folder, and a collaboration is about one document"
        )));
    };
    work.kg.document(work.caller, Some(id), None)
}

fn neighbors(content: &DocumentContent) -> Vec<String> {
    let links = content.document.links.as_ref();
    let (to, from) = links.map_or((&[][..], &[][..]), |it| (&it.0[..], &it.1[..]));
    let to = to.iter().filter(|it| it.broken.is_none());
    let all = to
        .map(|it| &it.target)
        .chain(from.iter().map(|it| &it.source));
    let mut all: Vec<String> = all.cloned().collect();
    all.sort();
    all.dedup();
    all.truncate(NEIGHBORS_MAX);
    all
}

/// What the document and its neighbors say, as one value: another one means that somebody wrote.
fn fingerprint(work: &Work<'_>, content: &DocumentContent) -> String {
    let mut text = content.document.content.clone().unwrap_or_default();
    text += &Value::Object(content.frontmatter.clone()).to_string();
    for id in neighbors(content) {
        if let Ok(near) = work.kg.document(work.caller, Some(&id), None) {
            let said = near.document.content.unwrap_or_default();
            text += &format!("\n{id} {}", Hash::of(said.as_bytes()));
        }
    }
    Hash::of(text.as_bytes()).to_string()
}

/// Weighs the document. If it is ready, what this program can do of the plan is done.
fn evaluate(work: &Work<'_>, content: &DocumentContent) -> Result<Next> {
    let n_active = work
        .kept("activeCollaborators")
        .as_array()
        .map_or(0, Vec::len);
    let facts = documents::facts(work, content, n_active);
    let found = readiness(&facts, work.threshold());
    let (goals, actions) = (builtin::goals(), builtin::actions());
    let wants = goals.iter().find(|it| it.name == "start-development");
    let plan = wants
        .and_then(|it| find_plan(&facts, &it.wants, &actions, Limits::default()).ok())
        .map(|plan| plan.actions)
        .unwrap_or_default();
    let plan: Vec<&str> = plan
        .iter()
        .filter_map(|&at| Some(actions.get(at)?.name.as_str()))
        .collect();
    let mut keep = work.kept_with("score", found.score.into());
    keep["missing"] = json!(found.missing);
    keep["plan"] = json!(plan);
    keep["fingerprint"] = fingerprint(work, content).into();
    keep["changedAt"] = work.now_ms().into();
    let next = if found.is_ready { "ready" } else { "watching" };
    let mut done = StepDone::of("executing-plan", next, keep);
    done.state = documents::facts_json(&facts);
    done.metadata = json!({
        "readiness": found.score, "ready": found.is_ready, "missing": found.missing, "plan": plan,
    });
    if found.is_ready {
        let auto = work.given("autoStart") == Some(&Value::Bool(true));
        let own = plan.iter().filter(|it| auto && OWN_ACTIONS.contains(*it));
        let own: Vec<&str> = own.copied().collect();
        let left = plan.iter().filter(|it| !own.contains(it));
        done.artifacts = own.iter().map(|it| Value::from(*it)).collect();
        done.artifacts
            .extend(left.map(|it| Value::from(format!("next: {it}"))));
        if own.contains(&"create-task") {
            let document = &content.document;
            let data = json!({
                "workflowId": work.run.id, "document": document.path, "title": document.title,
                "readiness": found.score, "started": own.contains(&"start-development"),
            });
            done.events.push(("TaskSpecGenerated".to_owned(), data));
        }
    } else {
        done.due_ms = work.now_ms() + LOOK_EVERY_MS;
        let seen = documents::look(content);
        let (_, gaps) = gaps::together(std::slice::from_ref(&seen));
        let told: Vec<Value> = gaps.iter().map(|it| it.message.as_str().into()).collect();
        if !told.is_empty() {
            done.events.push(super::gap_event(work.run, &told));
        }
        if let Value::Object(kept) = &mut done.keep {
            kept.insert("gaps".to_owned(), told.into());
        }
    }
    Ok(done.into())
}

/// Waits for somebody to write; after a while without anybody the run ends.
fn watch(work: &Work<'_>, path: &str) -> Result<Next> {
    documents::follow_files(work, path)?;
    let content = document(work, path)?;
    let now = fingerprint(work, &content);
    if work.kept("fingerprint").as_str() != Some(&now) {
        let mut done = StepDone::of(
            "change-detected",
            "agent-coordination",
            work.run.state.clone(),
        );
        done.metadata = json!({ "document": content.document.path });
        return Ok(done.into());
    }
    let changed_ms = work.kept("changedAt").as_u64().unwrap_or_default();
    if work.now_ms() < changed_ms + INACTIVITY_MS {
        return Ok(Next::Wait(work.now_ms() + LOOK_EVERY_MS));
    }
    let gaps = work.kept("gaps").as_array().cloned().unwrap_or_default();
    Ok(Next::End(Ending {
        summary: summary(work, "Nobody worked on the document, and it is not ready."),
        quality: work.kept("score").as_f64(),
        artifacts: gaps,
        ..Ending::of(Outcome::Timeout)
    }))
}

fn summary(work: &Work<'_>, first: &str) -> String {
    let score = work.kept("score").as_f64().unwrap_or_default();
    let missing = work.kept("missing").as_array().cloned().unwrap_or_default();
    let missing: Vec<&str> = missing.iter().filter_map(Value::as_str).collect();
    match missing.is_empty() {
        true => format!("{first} Its readiness is {score:.2}."),
        false => format!(
            "{first} Its readiness is {score:.2}; it lacks: {}.",
            missing.join(", ")
        ),
    }
}
