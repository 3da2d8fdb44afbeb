//! The registry of another machine (`KIWI_REGISTRY_URL`), with the same API as our own.
//!
//! The operator configured its URL, so it may be on a local network. Nothing that it sends is
//! trusted: hashes, format and signature are checked as for any stranger.

use super::registry::{PublishedItem, RegistryPackage, not_in_registry};
use super::{FoundItem, FoundItems, ItemFault, ItemQuery, ItemResult};
use crate::Kiwi;
use kenning_core::{Code, Error, Result};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request, Response};
use kenning_items::ItemType;
use kenning_text::percent;
use serde_json::{Map, Value};
use std::cell::OnceCell;

/// The path of the registry on our own servers.
const SUFFIX: &str = "/registry";
/// The version of its API, which people often copy with the URL.
const API: &str = "/v1";

/// Another registry.
pub(super) struct Remote {
    base: String,
    /// The URL at which it answered.
    found: OnceCell<String>,
    token: Option<String>,
    egress: Egress,
}

impl Kiwi {
    /// The registry that the operator configured instead of our own.
    pub(super) fn remote_registry(&self) -> Result<Option<Remote>> {
        let Some(base) = &self.items.options.registry else {
            return Ok(None);
        };
        let base = base.trim().trim_end_matches('/');
        let base = base.strip_suffix(API).unwrap_or(base);
        let base = base.trim_end_matches('/').to_owned();
        let policy = Policy {
            grants: vec![Grant::parse(&base)?],
            limits: Limits {
                body_bytes_max: 64 * 1024 * 1024,
                redirects_max: 0,
                ..Limits::default()
            },
            ..Policy::default()
        };
        Ok(Some(Remote {
            base,
            found: OnceCell::new(),
            token: (self.kernel.environment())("KIWI_REGISTRY_TOKEN").filter(|it| !it.is_empty()),
            egress: Egress::new(policy),
        }))
    }
}

impl Remote {
    /// Sends a request, to the URL as given and otherwise below it: people give the server's URL as
    /// well as the registry's.
    fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> ItemResult<Value> {
        let bases = [self.base.clone(), format!("{}{SUFFIX}", self.base)];
        let bases = match self.base.ends_with(SUFFIX) {
            true => &bases[..1],
            false => &bases[..],
        };
        let mut first = None;
        for base in bases {
            let answer = self.send(method, &format!("{base}/v1/{path}"), body)?;
            if (200..300).contains(&answer.status) {
                if let Ok(value) = serde_json::from_slice(&answer.body) {
                    // A second call to the same registry gets the same URL.
                    let _ = self.found.set(base.clone());
                    return Ok(value);
                }
            } else if !matches!(answer.status, 404 | 405) {
                return Err(fault_of(&answer));
            }
            first.get_or_insert(answer);
        }
        match first {
            Some(answer) if !(200..300).contains(&answer.status) => Err(fault_of(&answer)),
            _ => Err(
                Error::unavailable("the response of the registry is not JSON")
                    .hint("check that KIWI_REGISTRY_URL is the URL of a registry, for example `https://HOST/registry`")
                    .into(),
            ),
        }
    }

    fn send(&self, method: Method, url: &str, body: Option<&Value>) -> Result<Response> {
        let mut headers = vec![("Accept".to_owned(), "application/json".to_owned())];
        if let Some(token) = &self.token {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        if body.is_some() {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        let answer = self.egress.fetch(Request {
            method,
            url: url.to_owned(),
            headers,
            body: body
                .map(|it| it.to_string().into_bytes())
                .unwrap_or_default(),
            ..Request::default()
        });
        answer.map_err(|error| {
            Error::unavailable("the registry that KIWI_REGISTRY_URL names does not answer")
                .hint("check that it runs, or unset KIWI_REGISTRY_URL to use your own")
                .because(error)
        })
    }

    pub(super) fn push(&self, pushed: &RegistryPackage) -> ItemResult<PublishedItem> {
        let done = self.ask(Method::Post, "push", Some(&pushed.to_json()))?;
        let text = |name: &str| {
            done.get(name)
                .and_then(Value::as_str)
                .map(ToOwned::to_owned)
        };
        let (kind, id, version) = (pushed.item_type, &pushed.id, &pushed.version);
        let base = self.found.get().unwrap_or(&self.base);
        Ok(PublishedItem {
            id: id.clone(),
            version: version.clone(),
            registry: base.clone(),
            url: format!("{base}/v1/pull/{kind}/{id}?version={version}"),
            sha256: text("integrity").unwrap_or_default(),
        })
    }

    pub(super) fn pull(
        &self,
        item_type: ItemType,
        id: &str,
        version: Option<&str>,
    ) -> ItemResult<RegistryPackage> {
        let query = version
            .map(|it| format!("?version={}", percent::encoded(it, "")))
            .unwrap_or_default();
        let path = format!("pull/{item_type}/{}{query}", percent::encoded(id, ""));
        let sent = self
            .ask(Method::Get, &path, None)
            .map_err(|fault| match fault.error.code {
                Code::NotFound => not_in_registry(item_type, id),
                _ => fault,
            })?;
        let pulled = RegistryPackage::of_json(&sent)?;
        if pulled.item_type != item_type || pulled.id != id {
            return Err(Error::new(
                Code::Conflict,
                "the registry sent another item than requested",
            )
            .hint("ask its operator")
            .into());
        }
        Ok(pulled)
    }

    pub(super) fn delete(&self, item_type: ItemType, id: &str) -> ItemResult<Vec<String>> {
        let path = format!("items/{item_type}/{}", percent::encoded(id, ""));
        let done = self.ask(Method::Delete, &path, None)?;
        let deleted = done.get("deleted").and_then(Value::as_array);
        let names = deleted.into_iter().flatten().filter_map(Value::as_str);
        Ok(names.map(ToOwned::to_owned).collect())
    }

    pub(super) fn search(&self, query: &ItemQuery) -> ItemResult<FoundItems> {
        let kind = query
            .item_type
            .map(|it| format!("&item_type={it}"))
            .unwrap_or_default();
        let path = format!(
            "search?query={}&limit={}{kind}",
            percent::encoded(&query.text, ""),
            query.limit
        );
        let sent = self.ask(Method::Get, &path, None)?;
        let rows = sent.get("results").and_then(Value::as_array);
        let items: Vec<FoundItem> = rows.into_iter().flatten().filter_map(found).collect();
        let total = sent.get("total").and_then(Value::as_u64);
        let total = total
            .and_then(|it| usize::try_from(it).ok())
            .unwrap_or(items.len());
        let has_more = total > items.len();
        Ok(FoundItems {
            items,
            total,
            has_more,
        })
    }
}

fn found(row: &Value) -> Option<FoundItem> {
    let text = |name: &str| {
        Some(
            row.get(name)?
                .as_str()?
                .chars()
                .take(2_000)
                .collect::<String>(),
        )
    };
    Some(FoundItem {
        id: text("id")?,
        item_type: text("item_type")?,
        name: text("name").unwrap_or_default(),
        category: text("category").unwrap_or_default(),
        description: text("description").unwrap_or_default(),
        quality: row.get("quality_score").and_then(Value::as_f64),
        source: "registry",
        version: text("version"),
        path: None,
        relevance: row.get("relevance").and_then(Value::as_f64).unwrap_or(0.0),
        success_rate: row.get("success_rate").and_then(Value::as_f64),
        parameters: row.get("parameters").filter(|it| it.is_object()).cloned(),
        updated_ms: row.get("updated_ms").and_then(Value::as_u64).unwrap_or(0),
    })
}

/// The registry's own error.
fn fault_of(answer: &Response) -> Box<ItemFault> {
    let body: Map<String, Value> = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let nested = |name: &str| body.get("error")?.get(name)?.as_str();
    let message = text("error").or_else(|| nested("message"));
    let message = message.map_or_else(|| format!("status {}", answer.status), ToOwned::to_owned);
    let code = match answer.status {
        401 | 403 => Code::Denied,
        404 => Code::NotFound,
        409 => Code::Conflict,
        400 | 422 => Code::InvalidInput,
        413 => Code::TooLarge,
        _ => Code::Unavailable,
    };
    let mut error = Error::new(code, format!("the registry says: {message}"));
    let hint = text("hint").or_else(|| nested("hint"));
    if let Some(hint) = hint {
        error = error.hint(hint.to_owned());
    } else if code == Code::Denied {
        error = error.hint("set KIWI_REGISTRY_TOKEN to a token of that registry");
    }
    ItemFault::with(error, Value::Null)
}
