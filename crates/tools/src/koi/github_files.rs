//! `GET /github/files`: the files of repositories that are documents. No tool of the contract; the HTTP API
//! has it.

use super::Refusal;
use super::api::{self, Place, Route, Verb};
use super::limit::bounded;
use super::moments::zoned as moment;
use crate::Tool;
use kenning_engine::koi::RepositoryFile;
use kenning_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Unless the caller says otherwise.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 10_000;

/// Which files.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Request {
    /// Only of this repository.
    #[serde(default)]
    pub repo_name: Option<String>,
    /// At most so many.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub limit: Option<i64>,
}

/// The files of repositories.
pub const FILES: Route = Route {
    verb: Verb::Get,
    path: "/github/files",
    summary: "The files of repositories",
    tool: super::GithubScan::NAME,
    fixed: &[("action", "status")],
    place: Place::Query,
    schema: api::fields::<Request>,
    answer: |engine, caller, request| api::via(engine, caller, request, answer),
};

/// The files, in the order of their paths.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    files: Vec<File>,
    count: usize,
    total: u64,
    /// That `repo_name` is not registered
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct File {
    rid: String,
    repo_name: Value,
    file_path: Value,
    file_type: Value,
    content_hash: Value,
    line_count: Value,
    byte_size: Value,
    last_commit_sha: Value,
    last_author: Value,
    code_entity_count: u64,
    scanned_at: String,
}

/// The file type in the original's terms: the language, if its name differs from the extension.
fn language(extension: Value) -> Value {
    match extension.as_str() {
        Some("py") => "python".into(),
        Some("ts" | "tsx") => "typescript".into(),
        Some("js" | "jsx") => "javascript".into(),
        _ => extension,
    }
}

impl From<RepositoryFile> for File {
    fn from(it: RepositoryFile) -> Self {
        let prop = |name: &str| it.props.get(name).cloned().unwrap_or_default();
        Self {
            repo_name: prop("repo"),
            file_path: prop("path"),
            file_type: language(prop("file_type")),
            content_hash: prop("content_hash"),
            line_count: prop("line_count"),
            byte_size: prop("byte_size"),
            last_commit_sha: prop("commit_sha"),
            last_author: prop("author"),
            code_entity_count: prop("code_entity_count").as_u64().unwrap_or(0),
            scanned_at: moment(it.updated_ms),
            rid: it.rid,
        }
    }
}

/// The files of all repositories, or of one.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let name = request.repo_name.as_deref().map(str::trim);
    let name = name.filter(|it| !it.is_empty());
    let limit = bounded(request.limit, LIMIT_DEFAULT, LIMIT_MAX);
    let (files, total) = engine.koi().repository_files(caller, name, limit)?;
    let files: Vec<File> = files.into_iter().map(File::from).collect();
    Ok(Output {
        count: files.len(),
        files,
        total,
        message: super::github_scan::missing(engine, caller, name)?,
    })
}
