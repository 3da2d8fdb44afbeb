//! The project that a client says it works in.

use axum::http::HeaderMap;
use kenning_core::{Error, Result};
use kenning_engine::Project;

/// The header with which a client names its project: the address of its remote, or an absolute path. A server does
/// not know where its clients work, so without the header they see what is global.
const PROJECT_HEADER: &str = "kenning-project";

pub(crate) fn named_project(headers: &HeaderMap) -> Result<Option<Project>> {
    let Some(value) = headers.get(PROJECT_HEADER) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(None);
    }
    Project::named(text).map(Some).ok_or_else(|| {
        let shown: String = text.chars().take(80).collect();
        Error::invalid(format!("`Kenning-Project`: `{shown}` is not a project")).hint(
            "send the address of the repository's remote, for example https://github.com/acme/shop, or an absolute path",
        )
    })
}
