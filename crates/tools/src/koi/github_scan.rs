//! `github_scan`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use super::moments::zoned as moment;
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::koi::{RepositoryStatus, RepositoryView, ScanResult};
use kenning_engine::{Caller, Engine, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tool.
pub struct GithubScan;

/// Trigger a GitHub repository scan or check sensor status.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// 'scan' or 'status' (default: status)
    #[serde(default)]
    #[schemars(extend("default" = "status"))]
    pub action: Option<String>,
    /// Specific repo to scan (e.g., 'DarrenZal/Octo')
    #[serde(default)]
    pub repo_name: Option<String>,
}

/// What the HTTP API is asked: `GET /github/status` and `POST /github/scan`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// `scan` or `status`.
    #[serde(default)]
    pub action: Option<String>,
    /// Only this one.
    #[serde(default)]
    pub repo_name: Option<String>,
}

impl TryFrom<Input> for Request {
    type Error = Error;

    fn try_from(input: Input) -> Result<Self> {
        let action = input.action.as_deref().map_or(STATUS, str::trim);
        let action = match action {
            "" | STATUS => STATUS,
            SCAN => SCAN,
            other => return Err(unknown_action(other)),
        };
        Ok(Self {
            action: Some(action.to_owned()),
            repo_name: input.repo_name,
        })
    }
}

const STATUS: &str = "status";
const SCAN: &str = "scan";

fn unknown_action(action: &str) -> Error {
    let action: String = action.chars().take(40).collect();
    Error::invalid(format!("`action`: `{action}` is unknown")).hint("use `scan` or `status`")
}

/// Scan progress or sensor status.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    /// How all repositories stand.
    Status(Status),
    /// What became of a scan.
    Scan(Scan),
}

/// How all repositories stand.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Status {
    /// Whether the server scans by itself, or a scan goes on
    running: bool,
    scan_interval_seconds: u64,
    last_scan: Option<String>,
    total_scans: u64,
    active_repos: usize,
    total_files: u64,
    total_code_entities: u64,
    total_documents: u64,
    total_chunks: u64,
    total_embeddings: u64,
    repos: Vec<Repository>,
    /// That `repo_name` is not registered
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Repository {
    repo_name: String,
    /// The branch that is read
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    last_scan_at: Option<String>,
    last_commit_sha: Option<String>,
    file_count: u64,
    code_entity_count: u64,
    /// `active`, `scanning`, or `error`: then the next scan tries again
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

/// What became of a scan.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Scan {
    /// `completed`, `running`, `failed` or `no_repos`
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Of a scan that goes on: all repositories together
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Vec<Row>>,
}

#[derive(Clone, Serialize, JsonSchema)]
#[schemars(inline)]
struct Progress {
    phase: String,
    files_done: u64,
    files_total: Option<u64>,
}

impl From<kenning_engine::koi::ScanProgress> for Progress {
    fn from(it: kenning_engine::koi::ScanProgress) -> Self {
        Self {
            phase: it.phase,
            files_done: it.files_done,
            files_total: it.files_total,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Row {
    Done {
        repo: String,
        head_sha: String,
        files_processed: u64,
        total_files: u64,
        code_entities: u64,
        code_edges: u64,
        /// Files that were not read, or only as texts
        #[serde(skip_serializing_if = "is_zero")]
        files_skipped: u64,
        /// The first of them
        #[serde(skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<SkippedFile>,
    },
    Failed {
        repo: String,
        error: String,
    },
    Running {
        repo: String,
        progress: Progress,
    },
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct SkippedFile {
    path: String,
    reason: String,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Answers a call, whoever makes it.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let name = request.repo_name.as_deref().map(str::trim);
    let name = name.filter(|it| !it.is_empty());
    match request.action.as_deref().map(str::trim) {
        None | Some("" | STATUS) => {
            let message = missing(engine, caller, name)?;
            let status = engine.koi().repository_status(caller)?;
            Ok(Output::Status(shown(status, name, message)))
        }
        Some(SCAN) => {
            let mut results = engine.koi().scan_repositories(caller, name)?;
            if results.is_empty() {
                let message = missing(engine, caller, name)?;
                let Some((name, message)) = name.zip(message) else {
                    return Ok(Output::Scan(none_scanned(None)));
                };
                // One that the operator's policy admits is registered by scanning it.
                match engine.koi().register_admitted(caller, name) {
                    Ok(registered) => {
                        let name = Some(registered.repo_name.as_str());
                        results = engine.koi().scan_repositories(caller, name)?;
                    }
                    Err(error) => {
                        let message = refused(message, &error);
                        return Ok(Output::Scan(none_scanned(Some(message))));
                    }
                }
            }
            Ok(Output::Scan(scanned(results)))
        }
        Some(other) => Err(unknown_action(other).into()),
    }
}

/// A message if no repository has this name, with those that exist.
pub(super) fn missing(
    engine: &Engine,
    caller: &Caller,
    name: Option<&str>,
) -> Result<Option<String>> {
    let Some(name) = name else {
        return Ok(None);
    };
    let all = engine.koi().repository_names(caller)?;
    if all.iter().any(|it| it.eq_ignore_ascii_case(name)) {
        return Ok(None);
    }
    let known = match all.is_empty() {
        true => "none is registered".to_owned(),
        false => format!("registered are: {}", all.join(", ")),
    };
    let name: String = name.chars().take(200).collect();
    Ok(Some(format!(
        "No repository `{name}` is registered ({known}). Register it with `kenning koi add_repo` or POST /github/repos."
    )))
}

/// That nothing is registered under a name, and why it could not be.
fn refused(message: String, error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!(
            "{message} It was not registered: {} ({hint}).",
            error.message
        ),
        None => format!("{message} It was not registered: {}.", error.message),
    }
}

fn shown(status: RepositoryStatus, name: Option<&str>, message: Option<String>) -> Status {
    let all = status.repositories;
    Status {
        running: status.is_running,
        scan_interval_seconds: status.interval.as_secs(),
        last_scan: status.last_scan_ms.map(moment),
        total_scans: status.n_scans,
        active_repos: all.len(),
        total_files: all.iter().map(|it| it.n_files).sum(),
        total_code_entities: all.iter().map(|it| it.n_symbols).sum(),
        total_documents: status.n_documents,
        total_chunks: status.n_passages,
        total_embeddings: status.n_embedded,
        repos: all
            .into_iter()
            .filter(|it| name.is_none_or(|name| it.name.eq_ignore_ascii_case(name)))
            .map(Repository::from)
            .collect(),
        message,
    }
}

impl From<RepositoryView> for Repository {
    fn from(it: RepositoryView) -> Self {
        let status = match (&it.progress, &it.error) {
            (Some(_), _) => "scanning",
            (None, Some(_)) => "error",
            (None, None) => "active",
        };
        Self {
            repo_name: it.name,
            branch: it.branch,
            last_scan_at: it.scanned_ms.map(moment),
            last_commit_sha: it.commit,
            file_count: it.n_files,
            code_entity_count: it.n_symbols,
            status,
            error: it.error,
            progress: it.progress.map(Progress::from),
        }
    }
}

/// `message` says which one was asked for.
fn none_scanned(message: Option<String>) -> Scan {
    Scan {
        status: "no_repos",
        message: message.or_else(|| Some("No active repos found".to_owned())),
        progress: None,
        results: None,
    }
}

fn scanned(results: Vec<ScanResult>) -> Scan {
    let mut progress: Option<Progress> = None;
    let mut is_failed = false;
    let mut rows = Vec::new();
    for result in results {
        rows.push(match result {
            ScanResult::Done(it) => Row::Done {
                repo: it.repo,
                head_sha: it.head_sha,
                files_processed: it.files_processed,
                total_files: it.total_files,
                code_entities: it.n_symbols,
                code_edges: it.n_edges,
                files_skipped: it.n_skipped,
                skipped: it
                    .skipped
                    .into_iter()
                    .map(|it| SkippedFile {
                        path: it.path,
                        reason: it.reason,
                    })
                    .collect(),
            },
            ScanResult::Failed { repo, error } => {
                is_failed = true;
                Row::Failed { repo, error }
            }
            ScanResult::Running { repo, progress: it } => {
                let it = Progress::from(it);
                progress = Some(match progress {
                    None => it.clone(),
                    Some(so_far) => Progress {
                        phase: so_far.phase,
                        files_done: so_far.files_done + it.files_done,
                        files_total: so_far.files_total.zip(it.files_total).map(|(a, b)| a + b),
                    },
                });
                Row::Running { repo, progress: it }
            }
        });
    }
    let status = match (&progress, is_failed) {
        (Some(_), _) => "running",
        (None, true) => "failed",
        (None, false) => "completed",
    };
    let message = progress
        .as_ref()
        .map(|_| "The scan goes on in the background: ask again with action `status`, or `scan` to wait for it.".to_owned());
    Scan {
        status,
        message,
        progress,
        results: Some(rows),
    }
}

impl Tool for GithubScan {
    const NAME: &'static str = "github_scan";
    const TITLE: &'static str = "Scan repositories";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Write { idempotent: true };
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "How the repositories stand",
            input: r#"{}"#,
            output: r#""active_repos": 0"#,
        },
        Example {
            title: "A scan where none is registered",
            input: r#"{"action": "scan"}"#,
            output: r#""status": "no_repos""#,
        },
    ];
    type Input = Input;
    type Output = Output;
    const SCOPES: &'static [Scope] = &[Scope::Read, Scope::Write];
    const API: Option<Api<Input>> = Some(Api {
        routes: &[
            Route {
                verb: Verb::Post,
                path: "/github/scan",
                summary: "Scans repositories",
                tool: Self::NAME,
                fixed: &[("action", SCAN)],
                place: Place::Query,
                schema: api::fields::<Request>,
                answer: |engine, caller, request| api::via(engine, caller, request, answer),
            },
            Route {
                verb: Verb::Get,
                path: "/github/status",
                summary: "How repositories stand",
                tool: Self::NAME,
                fixed: &[("action", STATUS)],
                place: Place::Query,
                schema: api::fields::<Request>,
                answer: |engine, caller, request| api::via(engine, caller, request, answer),
            },
        ],
        request: |input| api::written(&Request::try_from(input)?),
        complete: api::as_it_is,
    });

    /// Asking for the status changes nothing.
    fn scope(arguments: &Value) -> Scope {
        match arguments
            .get("action")
            .and_then(Value::as_str)
            .map(str::trim)
        {
            None | Some("" | "status") => Scope::Read,
            Some(_) => Scope::Write,
        }
    }

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        Ok(answer(ctx.engine, ctx.caller, input.try_into()?)?)
    }
}
