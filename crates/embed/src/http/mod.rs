//! Vectors from a server: Ollama, NVIDIA NIM, and any server with OpenAI's format.
//!
//! A [`Provider`] is configured by the operator, so its address is granted in `egress`, loopback
//! included, and no redirect is followed: texts go where the operator said and nowhere else. Batches
//! are retried with growing waits when the server is busy or unreachable; a query is sent once, because
//! the caller waits for it and full-text search can answer instead.
//!
//! An error with a retryable code is temporary. Any other means that the configuration is wrong.

mod wire;

pub use kenning_egress::{Key, Patience};

use crate::{Embedder, Model, vector};
use kenning_core::{Code, Error, Result};
use kenning_egress::{Egress, Grant, Method, Policy, Request, Response};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use wire::Role;

/// The format of requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ollama's own `/api/embed`.
    Ollama,
    /// OpenAI's `/embeddings`, which many servers imitate.
    OpenAi,
    /// The same on NVIDIA NIM, with the fields of its retriever models.
    Nim,
}

impl Kind {
    /// The name in the configuration and in model ids.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::OpenAi => "openai",
            Self::Nim => "nim",
        }
    }

    /// The default address.
    pub fn default_url(self) -> &'static str {
        match self {
            Self::Ollama => "http://localhost:11434",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Nim => "https://integrate.api.nvidia.com/v1",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Ollama => "/api/embed",
            Self::OpenAi | Self::Nim => "/embeddings",
        }
    }
}

/// What the operator configured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The format of requests and responses.
    pub kind: Kind,
    /// Up to what the provider's documentation calls the path: with `/v1`, without `/embeddings`.
    pub base_url: String,
    /// What the provider calls the model.
    pub model: String,
    /// How many numbers a vector of this model has.
    pub dimensions: usize,
    /// Sent as a bearer token.
    pub key: Option<Key>,
    /// Whether the model is told which texts are queries (`input_type`). NIM only.
    pub names_roles: bool,
    /// What the model wants before a passage, such as nomic's `search_document: `.
    pub passage_prefix: String,
    /// What it wants before a query.
    pub query_prefix: String,
    /// Texts in one request.
    pub batch_texts_max: usize,
    /// Bytes of text in one request. A single longer text is a request of its own.
    pub batch_bytes_max: usize,
    /// For one request of passages, from the call to the last byte.
    pub timeout: Duration,
    /// For a query.
    pub query_timeout: Duration,
    /// When a request of passages is repeated.
    pub patience: Patience,
}

impl Settings {
    /// A model at the provider's default address.
    pub fn new(kind: Kind, model: impl Into<String>, dimensions: usize) -> Self {
        let model = model.into();
        Self {
            kind,
            base_url: kind.default_url().to_owned(),
            // NVIDIA's own retrievers require the role. Others on NIM, such as `baai/bge-m3`, see
            // both alike, and some refuse the field.
            names_roles: kind == Kind::Nim && model.starts_with("nvidia/"),
            model,
            dimensions,
            key: None,
            passage_prefix: String::new(),
            query_prefix: String::new(),
            batch_texts_max: 32,
            batch_bytes_max: 128 * 1024,
            timeout: Duration::from_secs(60),
            query_timeout: Duration::from_secs(10),
            patience: Patience::default(),
        }
    }
}

/// Waits between two requests.
pub type Sleep = dyn Fn(Duration) + Send + Sync;

/// A model behind an address.
pub struct Provider {
    settings: Settings,
    model: Model,
    url: String,
    for_passages: Egress,
    for_queries: Egress,
    sleep: Arc<Sleep>,
}

impl Provider {
    /// A provider whose address is granted in addition to `policy`. Sends no request yet.
    pub fn new(settings: Settings, policy: &Policy) -> Result<Self> {
        require(&settings)?;
        let base = settings.base_url.trim_end_matches('/');
        let grant = Grant::parse(base)?;
        let client = |timeout: Duration, n_texts: usize| {
            let mut policy = policy.clone();
            policy.grants.push(grant.clone());
            policy.limits.total_timeout = timeout;
            policy.limits.connect_timeout = policy.limits.connect_timeout.min(timeout);
            policy.limits.redirects_max = 0;
            policy.limits.body_bytes_max = answer_bytes_max(n_texts, settings.dimensions);
            Egress::new(policy)
        };
        let kind = settings.kind;
        Ok(Self {
            url: format!("{base}{}", kind.path()),
            model: Model {
                id: model_id(&settings),
                dimensions: settings.dimensions,
            },
            for_passages: client(settings.timeout, settings.batch_texts_max),
            for_queries: client(settings.query_timeout, 1),
            sleep: Arc::new(|time| kenning_core::idle::waiting(|| std::thread::sleep(time))),
            settings,
        })
    }

    /// The same, waiting by `sleep`.
    #[must_use]
    pub fn sleeping_by(mut self, sleep: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.sleep = Arc::new(sleep);
        self
    }

    /// Sends a request, and retries it as configured.
    fn ask_patiently(&self, texts: &[Cow<'_, str>]) -> Result<Vec<Vec<f32>>> {
        let patience = &self.settings.patience;
        let mut number = 0;
        loop {
            let failure = match self.ask(&self.for_passages, texts, Role::Passage) {
                Ok(vectors) => return Ok(vectors),
                Err(failure) => failure,
            };
            let wait = failure
                .repeatable
                .then(|| patience.wait(number, failure.asked_wait));
            let Some(wait) = wait.flatten() else {
                return Err(failure.error);
            };
            (self.sleep)(wait);
            number += 1;
        }
    }

    /// Sends a request once.
    fn ask(
        &self,
        client: &Egress,
        texts: &[Cow<'_, str>],
        role: Role,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let Settings { kind, model, .. } = &self.settings;
        let role = self.settings.names_roles.then_some(role);
        let body = wire::request(*kind, model, texts, role);
        let body = body.map_err(|err| Failure::last(Error::internal("no request").because(err)))?;
        let mut headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json".to_owned()),
        ];
        if let Some(key) = &self.settings.key {
            headers.push(("Authorization".to_owned(), key.bearer()));
        }
        let request = Request {
            method: Method::Post,
            url: self.url.clone(),
            headers,
            body,
            ..Request::default()
        };
        let response = client.fetch(request).map_err(Failure::of_connection)?;
        if response.status != 200 {
            return Err(self.refused(&response));
        }
        let vectors = wire::answer(*kind, &response.body, texts.len());
        let vectors = vectors.map_err(|why| Failure::last(self.nonsense(&why)))?;
        let vectors = vectors.into_iter().map(|it| self.check_vector(it));
        vectors.collect::<Result<_>>().map_err(Failure::last)
    }

    fn check_vector(&self, vector: Vec<f32>) -> Result<Vec<f32>> {
        let (found, expected) = (vector.len(), self.model.dimensions);
        if found != expected {
            let name = &self.settings.model;
            let why =
                format!("`embedding.dimensions` is {expected}, but `{name}` answers with {found}");
            return Err(Error::invalid(why).hint(format!(
                "set `embedding.dimensions` to {found}, or name another model"
            )));
        }
        vector::unit(vector).ok_or_else(|| self.nonsense("a number is not finite"))
    }

    /// The error for an unusable answer. The same request may succeed later.
    fn nonsense(&self, why: &str) -> Error {
        let who = self.describe();
        Error::unavailable(format!("{who} gave an unusable answer: {why}"))
            .hint("check that `embedding.provider` is what listens at `embedding.base_url`")
    }

    /// The model and the server for messages, without the path, which may hold a token.
    fn describe(&self) -> String {
        let Settings { kind, model, .. } = &self.settings;
        format!("the model `{model}` of `{}`", kind.name())
    }

    fn refused(&self, response: &Response) -> Failure {
        let (who, status) = (self.describe(), response.status);
        let repeatable = matches!(status, 408 | 429 | 500..);
        let asked_wait = response.asked_wait();
        let said = match status {
            // Messages about keys often show part of the key.
            401 | 403 => String::new(),
            _ => self.reason(&response.body),
        };
        let error = match status {
            _ if repeatable => {
                let error = Error::unavailable(format!("{who} answered {status}{said}"));
                match asked_wait {
                    Some(wait) => error.hint(format!("it asks to wait {} s", wait.as_secs())),
                    None => error,
                }
            }
            401 | 403 => {
                let why = match &self.settings.key {
                    Some(_) => "refuses the API key",
                    None => "asks for an API key",
                };
                Error::denied(format!("{who} {why} ({status})"))
                    .hint("set `embedding.api_key`, for example to `${NIM_API_KEY}`")
            }
            404 => Error::not_found("embedding model", &self.settings.model).hint(
                match self.settings.kind {
                    Kind::Ollama => format!("run `ollama pull {}`", self.settings.model),
                    _ => "check `embedding.model` and `embedding.base_url`".to_owned(),
                },
            ),
            _ => Error::invalid(format!("{who} answered {status}{said}"))
                .hint("check the `embedding` part of the configuration"),
        };
        Failure {
            error,
            repeatable,
            asked_wait,
        }
    }

    fn reason(&self, body: &[u8]) -> String {
        let said = wire::refusal(body).map(|text| match &self.settings.key {
            Some(key) => key.redact(&text),
            None => text,
        });
        said.map_or_else(String::new, |it| format!(": {it}"))
    }
}

impl Embedder for Provider {
    fn model(&self) -> &Model {
        &self.model
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = vec![vec![0.0; self.model.dimensions]; texts.len()];
        // Providers refuse a whole batch for one empty text.
        let spoken: Vec<usize> = (0..texts.len())
            .filter(|&it| says_something(texts[it]))
            .collect();
        let mut rest = &spoken[..];
        while !rest.is_empty() {
            let prefix = &self.settings.passage_prefix;
            let length = |&it: &usize| prefix.len() + texts[it].len();
            let (batch, later) = rest.split_at(self.settings.batch(rest.iter().map(length)));
            let input = batch.iter().map(|&it| add_prefix(prefix, texts[it]));
            let found = self.ask_patiently(&input.collect::<Vec<_>>())?;
            for (&idx, vector) in batch.iter().zip(found) {
                vectors[idx] = vector;
            }
            rest = later;
        }
        Ok(vectors)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        if !says_something(text) {
            return Ok(vec![0.0; self.model.dimensions]);
        }
        let text = add_prefix(&self.settings.query_prefix, text);
        let only = self.ask(&self.for_queries, &[text], Role::Query);
        let only = only.map_err(|it| it.error)?.pop();
        only.ok_or_else(|| self.nonsense("no vector"))
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// How many of the texts with these lengths go into the next request: at least one.
    fn batch(&self, lengths: impl Iterator<Item = usize>) -> usize {
        let mut bytes = 0;
        let fits = lengths.take(self.batch_texts_max).take_while(|length| {
            bytes += length;
            bytes <= self.batch_bytes_max
        });
        fits.count().max(1)
    }
}

/// A request that brought no vectors.
struct Failure {
    error: Error,
    repeatable: bool,
    asked_wait: Option<Duration>,
}

impl Failure {
    /// Asking again would not help.
    fn last(error: Error) -> Self {
        Self {
            error,
            repeatable: false,
            asked_wait: None,
        }
    }

    /// The connection failed. After a timeout there is no retry: the server is likely still working on the
    /// first request.
    fn of_connection(error: Error) -> Self {
        Self {
            repeatable: error.code == Code::Unavailable,
            error,
            asked_wait: None,
        }
    }
}

/// Only the prefix of passages is part of it: that of queries changes nothing that is stored.
fn model_id(settings: &Settings) -> String {
    let (kind, dimensions) = (settings.kind.name(), settings.dimensions);
    let id = format!("{kind}:{}:{dimensions}", settings.model);
    match settings.passage_prefix.trim() {
        "" => id,
        prefix => format!("{id}:{prefix}"),
    }
}

fn add_prefix<'a>(prefix: &str, text: &'a str) -> Cow<'a, str> {
    match prefix {
        "" => Cow::Borrowed(text),
        _ => Cow::Owned(format!("{prefix}{text}")),
    }
}

fn says_something(text: &str) -> bool {
    text.chars().any(|it| !it.is_whitespace())
}

/// No number is longer than this many bytes in JSON, with its comma and a blank.
const NUMBER_BYTES_MAX: usize = 32;

fn answer_bytes_max(n_texts: usize, dimensions: usize) -> u64 {
    const AROUND_BYTES: usize = 1024 * 1024;
    let numbers = n_texts.saturating_mul(dimensions);
    let bytes = numbers.saturating_mul(NUMBER_BYTES_MAX);
    bytes.saturating_add(AROUND_BYTES) as u64
}

fn require(settings: &Settings) -> Result<()> {
    let wrong = |field: &str, why: &str| {
        Err(Error::invalid(format!("`embedding.{field}` {why}"))
            .hint("correct it in the configuration"))
    };
    if settings.model.trim().is_empty() {
        return wrong("model", "is empty");
    }
    // `egress` accepts a bare host too, but that leaves open whether the connection is encrypted.
    if !settings.base_url.contains("://") {
        let example = settings.kind.default_url();
        return wrong(
            "base_url",
            &format!("is not a web address such as `{example}`"),
        );
    }
    if settings.dimensions == 0 {
        return wrong("dimensions", "is 0");
    }
    if settings.batch_texts_max == 0 {
        return wrong("batch_size", "is 0");
    }
    if settings.names_roles && settings.kind != Kind::Nim {
        return wrong("input_type", "is supported by `nim` only");
    }
    Ok(())
}
