//! The requests and responses of each provider, as documented.
//!
//! Requests hold the documented fields and no other, because some servers refuse the rest. Of the
//! answers only what is needed is read: servers add fields as they grow.

use super::Kind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a text is to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Passage,
    Query,
}

#[derive(Serialize)]
struct OllamaRequest<'a> {
    model: &'a str,
    input: &'a [Cow<'a, str>],
    truncate: bool,
}

#[derive(Serialize)]
struct OpenAiRequest<'a> {
    model: &'a str,
    input: &'a [Cow<'a, str>],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncate: Option<&'static str>,
}

/// The body of a request.
pub(super) fn request(
    kind: Kind,
    model: &str,
    input: &[Cow<'_, str>],
    role: Option<Role>,
) -> serde_json::Result<Vec<u8>> {
    match kind {
        Kind::Ollama => serde_json::to_vec(&OllamaRequest {
            model,
            input,
            truncate: true,
        }),
        Kind::OpenAi | Kind::Nim => serde_json::to_vec(&OpenAiRequest {
            model,
            input,
            encoding_format: "float",
            input_type: role.map(|role| match role {
                Role::Passage => "passage",
                Role::Query => "query",
            }),
            truncate: (kind == Kind::Nim).then_some("END"),
        }),
    }
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    index: usize,
    embedding: Vec<f32>,
}

/// The vectors in the order of the texts, or what is wrong with the answer.
pub(super) fn answer(kind: Kind, body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
    match kind {
        Kind::Ollama => {
            let answer: OllamaAnswer = read(body)?;
            expect_count(answer.embeddings.len(), count)?;
            Ok(answer.embeddings)
        }
        Kind::OpenAi | Kind::Nim => {
            let mut data = read::<OpenAiAnswer>(body)?.data;
            expect_count(data.len(), count)?;
            data.sort_by_key(|it| it.index);
            if data.iter().enumerate().any(|(idx, it)| it.index != idx) {
                return Err(format!(
                    "the indices are not 0 to {}",
                    count.saturating_sub(1)
                ));
            }
            Ok(data.into_iter().map(|it| it.embedding).collect())
        }
    }
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    // The parser's message may quote the text that was sent, so only the position is reported.
    serde_json::from_slice(body).map_err(|err| match err.classify() {
        serde_json::error::Category::Eof => "the JSON is incomplete".to_owned(),
        _ => format!(
            "line {} column {} does not have the documented format",
            err.line(),
            err.column()
        ),
    })
}

fn expect_count(found: usize, expected: usize) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{found} vectors for {expected} texts"))
}

/// The server's reason for a refusal, as one short line.
///
/// Only the documented places are read. Others may repeat what was sent.
pub(super) fn refusal(body: &[u8]) -> Option<String> {
    const CHARS_MAX: usize = 160;
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let places = ["/error/message", "/error", "/message", "/detail"];
    let said = places.iter().find_map(|it| body.pointer(it)?.as_str())?;
    let harmless = |c: char| if c.is_control() || c == '`' { ' ' } else { c };
    let line: String = said.chars().map(harmless).take(CHARS_MAX).collect();
    Some(line.trim().to_owned()).filter(|it| !it.is_empty())
}
