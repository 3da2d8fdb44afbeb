//! `monitor_url`

use super::Refusal;
use super::api::{self, Api, Nothing, Place, Route, Verb};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::koi::{MonitorAdded, MonitorStatus, MonitoredPage};
use kenning_engine::{Caller, Engine, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tool.
pub struct MonitorUrl;

/// Manage web source monitoring for periodic change detection.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// 'add', 'remove', or 'status' (default: status)
    #[serde(default)]
    #[schemars(extend("default" = "status"))]
    pub action: Option<String>,
    /// URL to add/remove
    #[serde(default)]
    pub url: Option<String>,
    /// Title for the source (used when adding)
    #[serde(default)]
    pub title: Option<String>,
}

/// What to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Look at a page from now on
    Add,
    /// No longer
    Remove,
    /// Say which pages are looked at
    #[default]
    Status,
}

impl Action {
    fn parse(text: &str) -> Result<Self> {
        match text.trim() {
            "add" => Ok(Self::Add),
            "remove" => Ok(Self::Remove),
            "" | "status" => Ok(Self::Status),
            other => Err(Error::invalid(format!("`action`: `{other}` is unknown"))
                .hint("use `add`, `remove` or `status`")),
        }
    }
}

/// What may be asked over HTTP.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// What to do
    #[serde(default)]
    pub action: Option<Action>,
    /// Of which page; the routes that take it need it
    #[schemars(required)]
    pub url: Option<String>,
    /// What it is called
    #[serde(default)]
    #[schemars(with = "String")]
    pub title: Option<String>,
}

impl TryFrom<Input> for Request {
    type Error = Error;

    fn try_from(input: Input) -> Result<Self> {
        let action = input
            .action
            .as_deref()
            .map_or(Ok(Action::Status), Action::parse)?;
        Ok(Self {
            action: Some(action),
            url: input.url,
            title: input.title,
        })
    }
}

/// Monitor action result or current status.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    /// What is monitored
    Status {
        /// Whether pages are monitored at all
        enabled: bool,
        /// Whether this process looks at them
        running: bool,
        /// How many there are
        monitored_urls: usize,
        /// How often each is looked at
        scan_interval_seconds: u64,
        /// When some were last looked at
        last_scan: Option<String>,
        /// How often
        scan_count: u64,
        /// Which
        sources: Vec<Source>,
    },
    /// It is switched off
    Off {
        /// Always false
        enabled: bool,
        /// Why
        message: &'static str,
    },
    /// What became of a page
    Done {
        /// `added`, `already_monitoring`, `upgraded_to_monitoring`, `removed`, `not_found`
        status: &'static str,
        /// Its number
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// How many words it has
        #[serde(skip_serializing_if = "Option::is_none")]
        words: Option<usize>,
    },
}

/// A page that is monitored.
#[derive(Serialize, JsonSchema)]
pub struct Source {
    url: String,
    title: String,
    last_checked: Option<String>,
    content_hash: String,
    next_check: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<MonitoredPage> for Source {
    fn from(it: MonitoredPage) -> Self {
        Self {
            url: it.url,
            title: it.title,
            last_checked: it.last_checked,
            content_hash: it.content_hash,
            next_check: it.next_check,
            error: it.fault,
        }
    }
}

impl From<MonitorStatus> for Output {
    fn from(status: MonitorStatus) -> Self {
        match status {
            MonitorStatus::Off(message) => Self::Off {
                enabled: false,
                message,
            },
            MonitorStatus::On {
                running,
                scan_interval_seconds,
                last_scan,
                scan_count,
                sources,
            } => Self::Status {
                enabled: true,
                running,
                monitored_urls: sources.len(),
                scan_interval_seconds,
                last_scan,
                scan_count,
                sources: sources.into_iter().map(Source::from).collect(),
            },
        }
    }
}

impl From<MonitorAdded> for Output {
    fn from(added: MonitorAdded) -> Self {
        let (status, id, words) = match added {
            MonitorAdded::Added { id, words } => ("added", id, Some(words)),
            MonitorAdded::Already { id } => ("already_monitoring", id, None),
            MonitorAdded::Upgraded { id } => ("upgraded_to_monitoring", id, None),
        };
        Self::Done {
            status,
            id: Some(id),
            words,
        }
    }
}

/// Does it, or says how things are.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let action = request.action.unwrap_or_default();
    if action == Action::Status {
        return Ok(engine.koi().monitor_status(caller)?.into());
    }
    let url = request.url.filter(|it| !it.trim().is_empty());
    let Some(url) = url else {
        let error = Error::invalid("`url` is missing").hint("say which page to add or remove");
        return Err(error.into());
    };
    if action == Action::Add {
        let title = request.title.unwrap_or_default();
        return Ok(engine.koi().monitor_page(caller, &url, &title)?.into());
    }
    let status = match engine.koi().forget_monitored(caller, &url)? {
        true => "removed",
        false => "not_found",
    };
    Ok(Output::Done {
        status,
        id: None,
        words: None,
    })
}

/// What a look at all monitored pages came to.
#[derive(Serialize)]
pub struct Scanned {
    status: &'static str,
    checked: usize,
    changed: Vec<String>,
    failed: Vec<Failed>,
}

#[derive(Serialize)]
struct Failed {
    url: String,
    error: String,
}

/// Looks at every monitored page now.
pub fn scan(engine: &Engine, caller: &Caller, _: Nothing) -> Result<Scanned, Refusal> {
    let scanned = engine.koi().scan_monitored(caller)?;
    let failed = scanned.failed.into_iter();
    Ok(Scanned {
        status: "completed",
        checked: scanned.checked,
        changed: scanned.changed,
        failed: failed.map(|(url, error)| Failed { url, error }).collect(),
    })
}

impl Tool for MonitorUrl {
    const NAME: &'static str = "monitor_url";
    const TITLE: &'static str = "Monitor a web page";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Fetch;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A page that nobody monitors",
            input: r#"{"action": "remove", "url": "https://example.com/herring"}"#,
            output: r#""status": "not_found""#,
        },
        Example {
            title: "Which page is not said",
            input: r#"{"action": "add"}"#,
            output: "`url` is missing",
        },
    ];
    type Input = Input;
    type Output = Output;
    const SCOPES: &'static [Scope] = &[Scope::Read, Scope::Write, Scope::Fetch];
    const API: Option<Api<Input>> = Some(Api {
        routes: &[
            Route {
                verb: Verb::Get,
                path: "/web/monitor/status",
                summary: "Which pages are monitored",
                tool: Self::NAME,
                fixed: &[("action", "status")],
                place: Place::Nowhere,
                schema: api::fields::<Request>,
                answer: |engine, caller, request| api::via(engine, caller, request, answer),
            },
            Route {
                verb: Verb::Post,
                path: "/web/monitor/add",
                summary: "Monitors a page",
                tool: Self::NAME,
                fixed: &[("action", "add")],
                place: Place::Body,
                schema: api::fields::<Request>,
                answer: |engine, caller, request| api::via(engine, caller, request, answer),
            },
            Route {
                verb: Verb::Post,
                path: "/web/monitor/remove",
                summary: "Monitors a page no longer",
                tool: Self::NAME,
                fixed: &[("action", "remove")],
                place: Place::Body,
                schema: api::fields::<Request>,
                answer: |engine, caller, request| api::via(engine, caller, request, answer),
            },
            Route {
                verb: Verb::Post,
                path: "/web/monitor/scan",
                summary: "Looks at every monitored page now",
                tool: Self::NAME,
                fixed: &[("action", "add")],
                place: Place::Nowhere,
                schema: api::fields::<Nothing>,
                answer: |engine, caller, request| api::via(engine, caller, request, scan),
            },
        ],
        request: |input| api::written(&Request::try_from(input)?),
        complete: api::as_it_is,
    });

    /// Only adding fetches a page.
    fn scope(arguments: &Value) -> Scope {
        match arguments
            .get("action")
            .and_then(Value::as_str)
            .map(str::trim)
        {
            Some("add") => Scope::Fetch,
            None | Some("" | "status") => Scope::Read,
            Some(_) => Scope::Write,
        }
    }

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        Ok(answer(ctx.engine, ctx.caller, input.try_into()?)?)
    }
}
