//! Which messages of a stdio client reach rmcp, before and after the handshake.
//!
//! rmcp ends when its first message is a notification or an answer, and it loses an answer when two
//! requests in flight share an id. This filter prevents both: messages that
//! come too early are refused or dropped, and an id in use is refused.

use crate::message::{Message, Refusal};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, GetMeta, JsonRpcMessage,
    ProtocolVersion, RequestId,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The key of the version in a request without handshake.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Filters messages, so that rmcp gets them in an order it can handle.
pub(crate) struct Admission {
    open: bool,
    pending: Arc<Pending>,
}

impl Admission {
    pub(crate) fn new(pending: Arc<Pending>) -> Self {
        Self {
            open: false,
            pending,
        }
    }

    /// The message if it may pass, `None` if it is to be dropped, or the refusal to send.
    pub(crate) fn admit(
        &mut self,
        message: Message,
    ) -> Result<Option<ClientJsonRpcMessage>, Refusal> {
        match message {
            Message::Noise => Ok(None),
            Message::OneWay(_) if !self.open => Ok(None),
            Message::OneWay(message) => {
                self.forget_cancelled(&message);
                Ok(Some(*message))
            }
            Message::Request(id, message) => {
                if let JsonRpcMessage::Request(it) = &*message {
                    self.admit_request(&id, &it.request)?;
                }
                Ok(Some(*message))
            }
        }
    }

    fn admit_request(&mut self, id: &RequestId, request: &ClientRequest) -> Result<(), Refusal> {
        let opens = match request {
            ClientRequest::InitializeRequest(_) if self.open => {
                return Err(Refusal::invalid(
                    Some(id.clone()),
                    "Invalid Request: already initialized",
                ));
            }
            ClientRequest::InitializeRequest(_) => true,
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
            ClientRequest::CustomRequest(it) if !self.open && it.method == "initialize" => {
                return Err(Refusal::new(
                    Some(id.clone()),
                    ErrorCode::INVALID_PARAMS,
                    "Invalid params: initialize",
                ));
            }
            _ => {
                let meta = request.get_meta();
                if !self.open && !meta.contains_key(VERSION_KEY) {
                    return Err(Refusal::invalid(
                        Some(id.clone()),
                        "Invalid Request: server not initialized",
                    ));
                }
                // rmcp begins to serve at the first complete request; it answers
                // the others and goes on waiting.
                meta.missing_required_keys(&ProtocolVersion::V_2026_07_28)
                    .is_empty()
                    && meta
                        .protocol_version()
                        .is_some_and(|it| ProtocolVersion::KNOWN_VERSIONS.contains(&it))
            }
        };
        let listens = matches!(request, ClientRequest::SubscriptionsListenRequest(_));
        if !self.pending.insert(id, listens) {
            return Err(Refusal::invalid(
                Some(id.clone()),
                "Invalid Request: `id` is in use",
            ));
        }
        self.open |= opens;
        Ok(())
    }

    /// A cancelled request gets no answer, so nothing else would free its id.
    fn forget_cancelled(&self, message: &ClientJsonRpcMessage) {
        if let JsonRpcMessage::Notification(it) = message
            && let ClientNotification::CancelledNotification(it) = &it.notification
            && let Some(id) = &it.params.request_id
        {
            self.pending.remove(id);
        }
    }
}

/// The requests that have no answer yet.
#[derive(Default)]
pub(crate) struct Pending {
    ids: Mutex<HashMap<RequestId, bool>>,
    changed: Notify,
}

impl Pending {
    fn insert(&self, id: &RequestId, listens: bool) -> bool {
        let mut ids = self.lock();
        if ids.contains_key(id) {
            return false;
        }
        ids.insert(id.clone(), listens);
        true
    }

    pub(crate) fn remove(&self, id: &RequestId) {
        self.lock().remove(id);
        self.changed.notify_waiters();
    }

    /// Waits until fewer than `n` requests have no answer.
    pub(crate) async fn fewer_than(&self, n: usize) {
        self.wait(|ids| ids.len() < n).await;
    }

    /// Waits until every request has its answer. Subscriptions have none by nature.
    pub(crate) async fn none(&self) {
        self.wait(|ids| ids.values().all(|listens| *listens)).await;
    }

    async fn wait(&self, good: impl Fn(&HashMap<RequestId, bool>) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that a change in between is not missed.
            changed.as_mut().enable();
            if good(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, bool>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
