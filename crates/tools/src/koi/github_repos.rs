//! `POST /github/repos` and `POST /github/repos/remove`: which repositories are scanned. No tools of the
//! contract; the HTTP API and the command line have them.

use super::Refusal;
use super::api::{self, Place, Route, Verb};
use crate::Tool;
use crate::koi_api::far;
use kenning_core::{Error, Result as Done};
use kenning_engine::koi::NewRepository;
use kenning_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A repository to be.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// `https://…`, or the path of one in a configured directory.
    #[schemars(length(min = 1))]
    pub repo_url: String,
    /// `owner/name`; else taken from the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_name: Option<String>,
    /// Else the repository's default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub branch: Option<String>,
}

/// Registers a repository.
pub const REGISTER: Route = Route {
    verb: Verb::Post,
    path: "/github/repos",
    summary: "Registers a repository",
    tool: super::GithubScan::NAME,
    fixed: &[("action", "scan")],
    place: Place::Body,
    schema: api::fields::<Request>,
    answer: |engine, caller, request| api::via(engine, caller, request, answer),
};

/// Unregisters one.
pub const UNREGISTER: Route = Route {
    path: "/github/repos/remove",
    summary: "Unregisters a repository, with its documents or without",
    schema: api::fields::<Removal>,
    answer: |engine, caller, request| api::via(engine, caller, request, remove),
    ..REGISTER
};

/// What became of it.
#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// `added`, `already_registered` or `updated`
    status: &'static str,
    repo_id: u64,
    repo_name: String,
}

/// Registers a repository.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let done = engine.koi().register_repository(
        caller,
        &NewRepository {
            repo_url: request.repo_url,
            repo_name: request.repo_name,
            branch: request.branch,
        },
    )?;
    Ok(Output {
        status: done.status,
        repo_id: done.repo_id,
        repo_name: done.repo_name,
    })
}

/// Registers a repository where KOI calls are answered: here, or at the server that the operator
/// configured.
pub fn register(engine: &Engine, caller: &Caller, request: Request) -> Done<Value> {
    engine.may_write(caller)?;
    if let Some(server) = engine.koi().far_server(&caller.principal.space)? {
        return far::send(&server, "add_repo", &REGISTER, api::written(&request)?);
    }
    let done = answer(engine, caller, request)?;
    serde_json::to_value(done)
        .map_err(|cause| Error::internal("an answer is not JSON").because(cause))
}

/// A repository that is to be scanned no longer.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Removal {
    /// Its name, as `github_scan` shows it.
    #[schemars(length(min = 1))]
    pub repo_name: String,
    /// Whether the documents that its scans brought stay.
    #[serde(default)]
    pub keep_documents: bool,
}

/// What became of it.
#[derive(Serialize, JsonSchema)]
pub struct Removed {
    /// Always `removed`
    status: &'static str,
    /// None if only documents of it were left
    repo_id: Option<u64>,
    repo_name: String,
    documents_removed: u64,
    documents_kept: u64,
}

/// Unregisters a repository.
pub fn remove(engine: &Engine, caller: &Caller, request: Removal) -> Result<Removed, Refusal> {
    let done =
        engine
            .koi()
            .forget_repository(caller, &request.repo_name, request.keep_documents)?;
    Ok(Removed {
        status: "removed",
        repo_id: done.repo_id,
        repo_name: done.repo_name,
        documents_removed: done.n_removed,
        documents_kept: done.n_kept,
    })
}

/// Unregisters a repository where KOI calls are answered: here, or at the server that the operator
/// configured.
pub fn unregister(engine: &Engine, caller: &Caller, request: Removal) -> Done<Value> {
    engine.may_write(caller)?;
    if let Some(server) = engine.koi().far_server(&caller.principal.space)? {
        return far::send(&server, "remove_repo", &UNREGISTER, api::written(&request)?);
    }
    let done = remove(engine, caller, request)?;
    serde_json::to_value(done)
        .map_err(|cause| Error::internal("an answer is not JSON").because(cause))
}
