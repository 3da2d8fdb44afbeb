//! The fixtures of the official conformance suite.
//!
//! The suite calls tools, reads resources and gets prompts by names of its own, and looks at what
//! comes back. They are here, off unless the toolset `conformance` is named, so that the suite meets
//! the same server that everybody else meets. They touch neither the engine nor the board.

mod ask;
mod prompts;
mod resources;
mod tools;
mod work;

use rmcp::ErrorData;
use rmcp::model::ServerCapabilities;
use rmcp::service::SubscriptionContext;
use serde_json::json;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};
use tokio::sync::broadcast;

#[expect(deprecated, reason = "clients of the first era set the log level")]
use rmcp::model::LoggingLevel;

const METHODS: &[&str] = &[
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
];
const METHODS_LEGACY: &[&str] = &[
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];
const METHODS_MODERN: &[&str] = &["subscriptions/listen"];

/// A picture of one red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// A list that is said to have changed.
#[derive(Clone, Copy, Debug)]
enum Change {
    Tools,
    Prompts,
}

/// What the fixtures remember.
pub(crate) struct Fixtures {
    #[expect(deprecated, reason = "clients of the first era set the log level")]
    level: Mutex<LoggingLevel>,
    changes: broadcast::Sender<Change>,
    /// Keyed at random, so that nobody outside can seal a state.
    seal: RandomState,
    n_waiting: AtomicUsize,
}

impl Default for Fixtures {
    fn default() -> Self {
        Self {
            #[expect(deprecated, reason = "clients of the first era set the log level")]
            level: Mutex::new(LoggingLevel::Debug),
            changes: broadcast::Sender::new(16),
            seal: RandomState::new(),
            n_waiting: AtomicUsize::new(0),
        }
    }
}

impl Fixtures {
    pub(crate) fn capabilities() -> ServerCapabilities {
        let declared = json!({
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "subscribe": true },
            "completions": {},
            "logging": {},
        });
        serde_json::from_value(declared).unwrap_or_default()
    }

    /// Whether a method beyond the tools exists, given the era.
    pub(crate) fn answers(method: &str, modern: bool) -> bool {
        let era = if modern {
            METHODS_MODERN
        } else {
            METHODS_LEGACY
        };
        METHODS.contains(&method) || era.contains(&method)
    }

    #[expect(deprecated, reason = "clients of the first era set the log level")]
    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    #[expect(deprecated, reason = "clients of the first era set the log level")]
    fn level(&self) -> LoggingLevel {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a subscriber of changes until it leaves.
    pub(crate) async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = context.cancelled() => return Ok(()),
            };
            let sent = match change {
                Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            };
            // Not every subscriber wants every change.
            if let Err(error) = sent {
                tracing::debug!(%error, "a change was not announced");
            }
        }
    }

    fn announce(&self, change: Change) {
        // Nobody may be listening.
        let n_listeners = self.changes.send(change).unwrap_or_default();
        tracing::debug!(n_listeners, "a change was announced");
    }

    /// Gives a state to the client that it can return but not alter.
    fn seal(&self, state: &str) -> String {
        format!("{state}.{:016x}", self.seal.hash_one(state))
    }

    /// A state that came back, if it is one of ours.
    fn open<'a>(&self, sealed: &'a str) -> Result<&'a str, ErrorData> {
        sealed
            .rsplit_once('.')
            .map(|(state, _)| state)
            .filter(|state| self.seal(state) == sealed)
            .ok_or_else(|| ErrorData::invalid_params("Invalid params: bad requestState", None))
    }
}
