//! One tool call, from the protocol to the board and back.
//!
//! The board blocks, so the work runs on a thread that may wait. Another task forwards progress and
//! cancels the work when the client does. The work is always awaited: a slot is free again only when
//! its work has really stopped.

use kenning_core::{Error, McpForm};
use kenning_engine::{Caller, Principal, Waited};
use kenning_tools::Reply;
use kenning_tools::slots::{self, Load, Slot, Slots};
use rmcp::model::{CallToolResult, ContentBlock, ProgressNotificationParam, ProgressToken};
use rmcp::{ErrorData, Peer, RoleServer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How many steps of progress may wait for a slow client. More are dropped: only the newest matters.
const PROGRESS_WAITING_MAX: usize = 64;

/// Progress of a call: steps done, total, and a message.
pub(crate) type Step = (f64, Option<f64>, String);

/// The caller, and how to send it progress.
pub(crate) struct Request {
    pub(crate) principal: Principal,
    pub(crate) waited: Waited,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) cancelled: CancellationToken,
    pub(crate) progress: Option<(ProgressToken, Peer<RoleServer>)>,
}

/// Runs the work and forwards its progress. `None` when there is no such tool.
pub(crate) async fn run(
    slots: &Arc<Slots>,
    load: Load,
    request: Request,
    refuse: impl FnOnce(Error) -> Reply,
    work: impl FnOnce(&Caller) -> Option<Reply> + Send + 'static,
) -> Result<Option<CallToolResult>, ErrorData> {
    let Request {
        principal,
        waited,
        session,
        cancelled,
        progress,
    } = request;
    let (steps, waiting) = mpsc::channel(PROGRESS_WAITING_MAX);
    let mut caller = Caller::new(principal).after(waited);
    caller.session = session;
    if progress.is_some() {
        caller.progress = Some(Arc::new(move |done, total, word: &str| {
            // A full queue means that the client is slower than the work. It will get a later step.
            if steps.try_send((done, total, word.to_owned())).is_err() {
                tracing::trace!("a step of progress was dropped");
            }
        }));
    }
    let before = Instant::now();
    let slot = tokio::select! {
        slot = slot(slots, load, &caller.principal) => match slot {
            Ok(slot) => slot,
            Err(error) => return answer(refuse(error)).map(Some),
        },
        () = cancelled.cancelled() => {
            return Err(ErrorData::internal_error("the call was cancelled", None));
        }
    };
    caller.waited.0 += before.elapsed();
    let flag = caller.cancelled.clone();
    let mut task = tokio::task::spawn_blocking(move || {
        slot.run(|| {
            let reply = work(&caller);
            drop(caller);
            reply
        })
    });
    let done = CancellationToken::new();
    let work = async {
        let outcome = tokio::select! {
            outcome = &mut task => outcome,
            () = cancelled.cancelled() => {
                flag.store(true, Ordering::Relaxed);
                task.await
            }
        };
        done.cancel();
        outcome
    };
    let (outcome, ()) = tokio::join!(work, announce(progress, waiting, &done));
    match outcome {
        Ok(None) => Ok(None),
        Ok(Some(reply)) => answer(reply).map(Some),
        Err(cause) => {
            let error = Error::internal("a tool panicked").because(cause);
            let shown = kenning_tools::hide_internal(&error, "a call over MCP");
            Err(ErrorData::internal_error(shown.message, None))
        }
    }
}

/// Waits for a slot.
async fn slot(slots: &Arc<Slots>, load: Load, who: &Principal) -> Result<Slot, Error> {
    let (tell, told) = oneshot::channel();
    let admitted = move |slot| {
        // If the caller has left, the slot is dropped and goes to the next.
        drop(tell.send(slot));
    };
    slots.enter(who, load, Box::new(admitted))?;
    told.await.map_err(|_| slots::sent_away())
}

/// Runs work other than a tool call on a blocking thread, in one of the caller's slots.
pub(crate) async fn run_blocking<T: Send + 'static>(
    slots: &Arc<Slots>,
    caller: Caller,
    work: impl FnOnce(&Caller) -> T + Send + 'static,
) -> Result<T, Error> {
    let slot = slot(slots, Load::Works, &caller.principal).await?;
    let done = tokio::task::spawn_blocking(move || slot.run(|| work(&caller)));
    done.await
        .map_err(|cause| Error::internal("a call").because(cause))
}

/// A reply as a result, or as a JSON-RPC error where the table of codes says so.
pub(crate) fn answer(reply: Reply) -> Result<CallToolResult, ErrorData> {
    if let Some(error) = &reply.error
        && let McpForm::JsonRpc(code) = error.code.row().mcp
    {
        // The board has put the details into the log, under the number in the message.
        return Err(ErrorData::new(
            rmcp::model::ErrorCode(code),
            error.message.clone(),
            None,
        ));
    }
    let structured = reply.structured().cloned();
    let texts = std::iter::once(reply.text).chain(reply.remarks);
    let content = texts.map(ContentBlock::text).collect();
    let mut result = match reply.error {
        Some(_) => CallToolResult::error(content),
        None => CallToolResult::success(content),
    };
    if !result.is_error.unwrap_or(false) {
        // The contract: present only on error.
        result.is_error = None;
    }
    result.structured_content = structured;
    Ok(result)
}

/// Sends progress to the client until the work is done, in the order in which it was made, and all
/// of it before the answer.
async fn announce(
    progress: Option<(ProgressToken, Peer<RoleServer>)>,
    mut waiting: mpsc::Receiver<Step>,
    done: &CancellationToken,
) {
    let Some((token, peer)) = progress else {
        return;
    };
    loop {
        let step = tokio::select! {
            biased;
            step = waiting.recv() => step,
            () = done.cancelled() => waiting.try_recv().ok(),
        };
        let Some((done, total, word)) = step else {
            return;
        };
        let mut param = ProgressNotificationParam::new(token.clone(), done);
        param.total = total;
        param.message = (!word.is_empty()).then_some(word);
        // The client has left; its call is cancelled elsewhere.
        if let Err(error) = peer.notify_progress(param).await {
            tracing::debug!(%error, "progress was not sent");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::Space;
    use kenning_tools::slots::{CALLS_OF_ONE_MAX, WAITING_OF_ONE_MAX};
    use std::time::Duration;

    fn request() -> Request {
        Request {
            session: None,
            principal: Principal::owner(Space::default()),
            waited: Waited::default(),
            cancelled: CancellationToken::new(),
            progress: None,
        }
    }

    fn reply(error: Option<Error>) -> Option<Reply> {
        Some(Reply {
            text: "text".to_owned(),
            value: Some(serde_json::json!({ "a": 1 })),
            error,
            ..Reply::default()
        })
    }

    fn refuse(error: Error) -> Reply {
        Reply {
            text: error.to_string(),
            error: Some(error),
            ..Reply::default()
        }
    }

    fn slots() -> Arc<Slots> {
        Arc::default()
    }

    #[tokio::test]
    async fn a_reply_keeps_its_text_its_structure_and_its_failure() {
        let good = run(&slots(), Load::Works, request(), refuse, |_| reply(None))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(good.is_error, None);
        assert_eq!(good.structured_content, Some(serde_json::json!({ "a": 1 })));
        let bad = run(&slots(), Load::Works, request(), refuse, |_| {
            reply(Some(Error::invalid("no")))
        })
        .await;
        assert_eq!(bad.unwrap().unwrap().is_error, Some(true));
        let none = run(&slots(), Load::Works, request(), refuse, |_| None)
            .await
            .unwrap();
        assert!(none.is_none());
    }

    #[tokio::test]
    async fn our_own_fault_is_a_protocol_error_with_an_id() {
        let error = run(&slots(), Load::Works, request(), refuse, |_| {
            reply(Some(Error::internal("internal error 5f")))
        })
        .await
        .unwrap_err();
        assert_eq!(error.code.0, -32603);
        assert_eq!(error.message, "internal error 5f");
    }

    #[tokio::test]
    async fn a_panic_is_caught_and_frees_its_slot() {
        let slots = slots();
        for _ in 0..3 {
            let error = run(&slots, Load::Works, request(), refuse, |_| {
                panic!("on purpose")
            })
            .await
            .unwrap_err();
            assert_eq!(error.code.0, -32603);
            assert!(error.message.starts_with("internal error "), "{error}");
        }
        assert_eq!(slots.n_running(), 0);
    }

    #[tokio::test]
    async fn a_caller_whose_line_is_full_is_told_at_once() {
        let slots = slots();
        let who = request().principal;
        for _ in 0..CALLS_OF_ONE_MAX + WAITING_OF_ONE_MAX {
            let kept = Box::new(|slot: Slot| std::mem::forget(slot));
            slots.enter(&who, Load::Waits, kept).unwrap();
        }
        let full = run(&slots, Load::Works, request(), refuse, |_| reply(None)).await;
        let full = full.unwrap().unwrap();
        assert_eq!(full.is_error, Some(true));
        let said = serde_json::to_value(&full.content).unwrap().to_string();
        assert!(
            said.contains(&format!("{WAITING_OF_ONE_MAX} wait")),
            "{said}"
        );
    }

    #[tokio::test]
    async fn a_cancelled_call_hears_of_it() {
        let request = request();
        let cancelled = request.cancelled.clone();
        let slots = slots();
        let call = run(&slots, Load::Works, request, refuse, |caller| {
            loop {
                if let Err(error) = caller.check() {
                    return reply(Some(error));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let stop = async { cancelled.cancel() };
        let (result, ()) = tokio::join!(call, stop);
        assert_eq!(result.unwrap().unwrap().is_error, Some(true));
        assert_eq!(slots.n_running(), 0);
    }
}
