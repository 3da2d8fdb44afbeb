//! Long calls as tasks: a workflow that goes on after its call.
//!
//! The task is the run itself. It is in the store, so any server answers for it, also after a restart, and what is
//! cancelled is stopped wherever it is done. A run that is suspended asks the client how to go on, and `tasks/update`
//! brings the answer. A task is that of the token which started it: any other one is told that there is none, although
//! both may list the workflows of their space.
//!
//! Changes are not announced: `notifications/tasks` belongs on the stream of `subscriptions/listen`, whose filter in
//! rmcp 3.8 has no place for tasks, and which refuses to send it. Clients poll, as the extension lets them.

use crate::call;
use kenning_core::{Code, Error};
use kenning_engine::runs::{Family, Outcome, Run, Status};
use kenning_engine::{Caller, Principal, timestamp};
use kenning_tools::{Board, Reply};
use rmcp::model::{
    CallToolResponse, CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, InputRequests,
    InputResponses, JsonObject, Task, TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The tool whose calls may become tasks.
pub(crate) const TOOL: &str = "kg_workflow_start";

/// The methods.
pub(crate) const METHODS: &[&str] = &["tasks/get", "tasks/update", "tasks/cancel"];

/// What is done within this time is answered at once, not as a task: a second, and what a call keeps for its answer.
const AT_ONCE: Duration = Duration::from_secs(6);

/// How often a client may ask.
const POLL_MS: u64 = 1_000;

/// Whether a call may become a task: the client has said that it knows them.
pub(crate) fn may_become(name: &str, context: &RequestContext<RoleServer>) -> bool {
    let client = context.client_capabilities();
    name == TOOL && client.is_some_and(|it| it.supports_tasks())
}

/// Whether the client can ask its user something.
pub(crate) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let client = context.client_capabilities();
    client.is_some_and(|it| it.elicitation.is_some())
}

/// The same caller, who does not wait for long work.
pub(crate) fn impatient(caller: &Caller) -> Caller {
    let mut caller = caller.clone();
    caller.deadline = caller.deadline.min(Instant::now() + AT_ONCE);
    caller
}

/// The answer to a call: a task, if its workflow goes on.
pub(crate) fn answer(result: CallToolResult) -> CallToolResponse {
    let data = result.structured_content.as_ref().map(|it| &it["data"]);
    let text = |name: &str| data.and_then(|it| it[name].as_str());
    match (text("workflowId"), text("startedAt"), text("status")) {
        (Some(id), Some(at), Some("running" | "suspended")) => {
            let task = Task::new(id, TaskStatus::Working, at, at).with_poll_interval_ms(POLL_MS);
            CallToolResponse::Task(CreateTaskResult::new(task))
        }
        _ => CallToolResponse::Complete(result),
    }
}

/// The answer to a call whose run goes on.
pub(crate) fn created(run: &Run) -> CallToolResponse {
    CallToolResponse::Task(CreateTaskResult::new(shown(run)))
}

/// How a task is, with its result if it has ended: `reply` makes it of the run. A client that `can_ask` its user is
/// shown what a suspended one waits for.
pub(crate) async fn get(
    board: &Board,
    principal: Principal,
    id: String,
    can_ask: bool,
    reply: impl FnOnce(Run) -> Reply + Send + 'static,
) -> Result<GetTaskResult, ErrorData> {
    let slots = board.slots();
    let board = board.clone();
    let work = move |caller: &Caller| {
        let runs = board.engine().runs();
        let run = runs.expect_own_run(caller, Family::Workflow, &id)?;
        let reply = run.ended_ms.map(|_| reply(run.clone()));
        Ok((run, reply))
    };
    let found = call::run_blocking(slots, Caller::new(principal), work).await;
    let (run, reply) = found.and_then(|it| it).map_err(refusal)?;
    let payload = match (reply, run.outcome) {
        (_, Some(Outcome::Cancelled)) => TaskPayload::Cancelled,
        (Some(reply), _) => match call::answer(reply) {
            Ok(result) => TaskPayload::Completed {
                result: members(serde_json::to_value(result))?,
            },
            // The call itself would have been answered by this error.
            Err(error) => TaskPayload::Failed {
                error: members(serde_json::to_value(error))?,
            },
        },
        (None, _) if run.status == Status::Suspended && can_ask => TaskPayload::InputRequired {
            input_requests: questions(&run)?,
        },
        (None, _) => TaskPayload::Working,
    };
    Ok(GetTaskResult::new(DetailedTask::new(shown(&run), payload)))
}

fn members(value: serde_json::Result<Value>) -> Result<JsonObject, ErrorData> {
    match value {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err(ErrorData::internal_error("a task has no result", None)),
    }
}

/// What a suspended run waits for, as forms for the user.
fn questions(run: &Run) -> Result<InputRequests, ErrorData> {
    let asked = run.open_questions().into_iter().map(|(key, question)| {
        let params = json!({ "message": question.text, "requestedSchema": question.form });
        (
            key,
            json!({ "method": "elicitation/create", "params": params }),
        )
    });
    serde_json::from_value(asked.collect())
        .map_err(|error| ErrorData::internal_error(format!("a question: {error}"), None))
}

/// Brings answers to what a task asked; whatever it did not ask changes nothing.
pub(crate) async fn update(
    board: &Board,
    principal: Principal,
    id: String,
    answers: InputResponses,
) -> Result<(), ErrorData> {
    let slots = board.slots();
    let board = board.clone();
    let work = move |caller: &Caller| {
        let runs = board.engine().runs();
        runs.expect_own_run(caller, Family::Workflow, &id)?;
        runs.answer(caller, Family::Workflow, &id, answers)
            .map(drop)
    };
    let done = call::run_blocking(slots, Caller::new(principal), work).await;
    done.and_then(|it| it).map_err(refusal)
}

/// Stops the workflow of a task. One that has ended stays as it is.
pub(crate) async fn cancel(
    board: &Board,
    principal: Principal,
    id: String,
) -> Result<(), ErrorData> {
    let slots = board.slots();
    let board = board.clone();
    let work = move |caller: &Caller| {
        let runs = board.engine().runs();
        runs.expect_own_run(caller, Family::Workflow, &id)?;
        match runs.stop(caller, Family::Workflow, &id) {
            Err(error) if error.code == Code::Conflict => Ok(()),
            other => other.map(drop),
        }
    };
    let done = call::run_blocking(slots, Caller::new(principal), work).await;
    done.and_then(|it| it).map_err(refusal)
}

fn refusal(error: Error) -> ErrorData {
    match error.code {
        Code::Internal => {
            let shown = kenning_tools::hide_internal(&error, "a task");
            ErrorData::internal_error(shown.message, None)
        }
        _ => ErrorData::invalid_params(error.to_string(), None),
    }
}

fn shown(run: &Run) -> Task {
    let mut task = Task::new(
        &run.id,
        TaskStatus::Working,
        timestamp(run.started_ms),
        timestamp(run.last_ms),
    )
    .with_poll_interval_ms(POLL_MS);
    task.status_message = match (run.status, &run.error) {
        (Status::Running, _) => Some(format!(
            "{} steps done, now {}",
            run.n_steps, run.current_step
        )),
        (_, Some(error)) => Some(error.clone()),
        _ => None,
    };
    task
}
