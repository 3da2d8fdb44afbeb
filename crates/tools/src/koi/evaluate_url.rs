//! What somebody thinks of a previewed page. No tool of the contract does this, but its HTTP API does.

use super::Refusal;
use kenning_engine::{Caller, Engine, PageEvaluation};
use serde::{Deserialize, Serialize};

/// What may be asked over HTTP.
#[derive(Debug, Default, Deserialize)]
pub struct Request {
    /// Which page
    pub url: String,
    /// How relevant it is, from 0 to 1
    #[serde(default)]
    pub relevance_score: Option<f64>,
    /// Why
    #[serde(default)]
    pub relevance_reasoning: Option<String>,
    /// What it is about
    #[serde(default)]
    pub bioregional_tags: Option<Vec<String>>,
    /// `ingest`, or `reject`
    #[serde(default)]
    pub decision: Option<String>,
}

/// What may be done with the page now.
#[derive(Debug, Serialize)]
pub struct Output {
    url: String,
    status: &'static str,
    relevance_score: Option<f64>,
    relevance_reasoning: Option<String>,
    bioregional_tags: Vec<String>,
}

/// Keeps it.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let decision = request.decision.as_deref().unwrap_or_default();
    let evaluation = PageEvaluation {
        url: request.url,
        is_rejected: matches!(decision, "reject" | "rejected"),
        relevance_score: request.relevance_score,
        relevance_reasoning: request.relevance_reasoning,
        tags: request.bioregional_tags.unwrap_or_default(),
    };
    let status = engine.evaluate_page(caller, &evaluation)?;
    Ok(Output {
        url: evaluation.url,
        status,
        relevance_score: evaluation.relevance_score,
        relevance_reasoning: evaluation.relevance_reasoning,
        bioregional_tags: evaluation.tags,
    })
}
