//! Pages of the web: looked at, understood, taken into the graph, and watched.
//!
//! `address` judges what somebody wrote and `visit` fetches it, both through the gate of `egress`; `crate::inert`
//! takes out of a page what could act on whoever shows it. `pages` is what the store keeps of a page from its
//! first preview on, so that nothing is fetched twice. `preview` shows it, `process` says what it states (by a
//! `model`, if the operator named one, else by rules), `ingest` makes it part of the graph with its `notes`,
//! and `monitor` looks at it again and again, by the clock of `schedule`.
//!
//! Whatever a page says is data. It is kept with its address, and nothing in it is run or obeyed.

mod address;
mod ingest;
mod matching;
mod model;
mod monitor;
mod notes;
mod pages;
mod pdf;
mod preview;
mod process;
mod restate;
mod schedule;
mod settings;
mod visit;

pub use ingest::{IngestRequest, IngestedPage, Ingestion, WebEntity, WebRelation};
pub use matching::MatchedEntity;
pub use monitor::{MonitorAdded, MonitorStatus, MonitoredPage, ScannedPages};
pub use notes::note_of_entity;
pub use pages::{PageEvaluation, PageMetadata};
pub use preview::{EvaluatedPage, PagePreview, PageSafety, PreviewRequest, Previewed};
pub use process::{ExtractedEntity, ExtractedRelation, ProcessRequest, ProcessedPage};
pub use schedule::{PageWatch, WatchPace};

pub use pages::{PREVIEW_DAYS_MAX, PREVIEWS_MAX, n_previewed};

use crate::Koi;
use kenning_core::{Code, Error};
use kenning_egress::{Connect, Egress, Policy, Resolve};
use matching::Matcher;
use settings::WebSettings;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, OnceLock};

/// How pages are reached. The operator's settings are in the environment.
#[derive(Clone, Default)]
pub struct WebOptions {
    /// Looks up names, if not as the system does.
    pub resolver: Option<Arc<dyn Resolve>>,
    /// Opens lines, if not as the system does.
    pub connector: Option<Arc<dyn Connect>>,
}

impl std::fmt::Debug for WebOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebOptions").finish_non_exhaustive()
    }
}

impl WebOptions {
    fn policy(&self) -> Policy {
        let mut policy = Policy::default();
        if let Some(resolver) = &self.resolver {
            policy.resolver = Arc::clone(resolver);
        }
        if let Some(connector) = &self.connector {
            policy.connector = Arc::clone(connector);
        }
        policy
    }
}

/// What the engine keeps of the web between calls: nothing that cannot be made again.
pub(crate) struct Web {
    options: WebOptions,
    settings: OnceLock<WebSettings>,
    egress: OnceLock<Egress>,
    /// The names to look for in pages, as the graph was when they were read.
    matcher: Mutex<Option<Arc<Matcher>>>,
    /// How many threads of this process look at monitored pages.
    n_watching: AtomicUsize,
}

impl Web {
    pub(crate) fn new(options: WebOptions) -> Self {
        Self {
            options,
            settings: OnceLock::new(),
            egress: OnceLock::new(),
            matcher: Mutex::default(),
            n_watching: AtomicUsize::new(0),
        }
    }
}

impl Koi {
    /// What the operator says of the web. A setting that cannot be read is an error of every call.
    pub(crate) fn web_settings(&self) -> Result<&WebSettings, Error> {
        if let Some(settings) = self.web.settings.get() {
            return Ok(settings);
        }
        let read = WebSettings::of(self.kernel.environment())?;
        Ok(self.web.settings.get_or_init(|| read))
    }

    /// What the operator set up for the web.
    ///
    /// # Errors
    /// Invalid input when a setting cannot be read.
    pub fn web_abilities(&self) -> Result<WebAbilities, Error> {
        let settings = self.web_settings()?;
        Ok(WebAbilities {
            is_monitoring: settings.is_monitoring,
            has_model: settings.is_enriching && self.kernel.language_model()?.is_some(),
        })
    }
}

/// What the operator set up for the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebAbilities {
    /// Whether pages are monitored.
    pub is_monitoring: bool,
    /// Whether a model says what pages state.
    pub has_model: bool,
}

/// Why a page was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebFaultKind {
    /// The address is not one that is fetched.
    Refused,
    /// It gave no page.
    NotFetched,
    /// Too many in an hour.
    Limited,
    /// It was never previewed.
    NotFound,
    /// Its state does not allow this.
    NotReady,
    /// The operator switched this off.
    Off,
    /// The model gave no answer that could be used.
    Model,
    /// Anything else, as its code says.
    Other,
}

/// Why a page was refused, with the error.
#[derive(Debug)]
pub struct WebFault {
    /// The kind.
    pub kind: WebFaultKind,
    /// What is wrong.
    pub error: Error,
}

/// What comes of a page.
pub type WebResult<T> = Result<T, Box<WebFault>>;

impl WebFault {
    fn new(kind: WebFaultKind, error: Error) -> Box<Self> {
        Box::new(Self { kind, error })
    }

    fn refused(message: impl Into<String>) -> Box<Self> {
        Self::new(WebFaultKind::Refused, Error::denied(message))
    }

    fn not_found(message: &str) -> Box<Self> {
        let error = Error::new(Code::NotFound, message).hint("call `preview_url` with it first");
        Self::new(WebFaultKind::NotFound, error)
    }

    fn off(message: &str, hint: &str) -> Box<Self> {
        Self::new(WebFaultKind::Off, Error::unavailable(message).hint(hint))
    }

    fn hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.error = self.error.hint(hint);
        self
    }
}

impl From<Error> for Box<WebFault> {
    fn from(error: Error) -> Self {
        WebFault::new(WebFaultKind::Other, error)
    }
}

impl From<Box<WebFault>> for Error {
    fn from(fault: Box<WebFault>) -> Self {
        fault.error
    }
}
