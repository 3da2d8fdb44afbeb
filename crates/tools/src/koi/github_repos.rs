//! `POST /github/repos`: which repositories are scanned. No tool of the contract; the HTTP API and the
//! command line have it.

use super::refusal::Refusal;
use kenning_engine::{Caller, Engine, NewRepository};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A repository to be.
#[derive(Clone, Debug, Deserialize)]
pub struct Request {
    /// `https://…`, or the path of one in a configured directory.
    pub repo_url: String,
    /// `owner/name`; else taken from the address.
    #[serde(default)]
    pub repo_name: Option<String>,
    /// Else `main`.
    #[serde(default)]
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
