//! `POST /github/repos`: which repositories are scanned. No tool of the contract; the HTTP API and the
//! command line have it.

use super::far;
use super::refusal::Refusal;
use kenning_core::{Error, Result as Done};
use kenning_engine::{Caller, Engine, NewRepository};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A repository to be.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Request {
    /// `https://…`, or the path of one in a configured directory.
    pub repo_url: String,
    /// `owner/name`; else taken from the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_name: Option<String>,
    /// Else `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

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
    let done = engine.register_repository(
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

/// Registers a repository where KOI calls are answered: here, or at the server that the operator named.
pub fn register(engine: &Engine, caller: &Caller, request: Request) -> Done<Value> {
    engine.may_write(caller)?;
    if let Some(server) = engine.far_server()? {
        return far::register_repository(&server, &request);
    }
    let done = answer(engine, caller, request)?;
    serde_json::to_value(done)
        .map_err(|cause| Error::internal("an answer is not JSON").because(cause))
}
