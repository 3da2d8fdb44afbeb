//! Long calls as tasks: a workflow that goes on after its call.
//!
//! The task is the run itself. It is in the store, so any server answers for it, also after a restart, and what is
//! cancelled is stopped wherever it is done.

use crate::call;
use kenning_core::{Code, Error};
use kenning_engine::runs::{Family, Outcome, Run, Status};
use kenning_engine::{Caller, Principal, timestamp};
use kenning_tools::Board;
use rmcp::model::{
    CallToolResponse, CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, Task,
    TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
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
        (Some(id), Some(at), Some("running")) => {
            let task = Task::new(id, TaskStatus::Working, at, at).with_poll_interval_ms(POLL_MS);
            CallToolResponse::Task(CreateTaskResult::new(task))
        }
        _ => CallToolResponse::Complete(result),
    }
}

/// How a task is, with its result if it has ended.
pub(crate) async fn get(
    board: &Board,
    principal: Principal,
    id: String,
) -> Result<GetTaskResult, ErrorData> {
    let slots = board.slots();
    let board = board.clone();
    let work = move |caller: &Caller| {
        let runs = board.engine().runs();
        let run = runs.expect_run(caller, Family::Workflow, &id)?;
        let reply = run
            .ended_ms
            .map(|_| kenning_tools::workflow_reply(run.clone()));
        Ok((run, reply))
    };
    let found = call::run_blocking(slots, Caller::new(principal), work).await;
    let (run, reply) = found.and_then(|it| it).map_err(refusal)?;
    let payload = match (reply, run.outcome) {
        (_, Some(Outcome::Cancelled)) => TaskPayload::Cancelled,
        (Some(reply), _) => {
            let result = serde_json::to_value(call::answer(reply)?);
            match result {
                Ok(Value::Object(result)) => TaskPayload::Completed { result },
                _ => TaskPayload::Working,
            }
        }
        (None, _) => TaskPayload::Working,
    };
    Ok(GetTaskResult::new(DetailedTask::new(shown(&run), payload)))
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
