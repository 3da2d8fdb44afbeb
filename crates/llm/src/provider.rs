//! A model behind an address.

use crate::budget::tokens_of_question;
use crate::{Answer, Api, Model, Question, Settings, Usage, tokens_of, wire};
use kenning_core::{Code, Error, Result};
use kenning_egress::{Egress, Grant, Method, Policy, Request, Response};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// No answer is longer, however it is written.
const ANSWER_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Of the format, as documented.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Waits between two requests.
pub type Sleep = dyn Fn(Duration) + Send + Sync;

/// A model behind an address.
pub struct Provider {
    settings: Settings,
    url: String,
    grant: Grant,
    policy: Policy,
    sleep: Arc<Sleep>,
}

impl Provider {
    /// A provider whose address is granted in addition to `policy`. Sends no request yet.
    ///
    /// # Errors
    /// Invalid input if the address is none.
    pub fn new(settings: Settings, policy: Policy) -> Result<Self> {
        let url = settings.api.url(&settings.base_url);
        let grant = Grant::parse(settings.base_url.trim_end_matches('/'))?;
        Ok(Self {
            url,
            grant,
            policy,
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

    /// What was configured.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn is_openai(&self) -> bool {
        self.url.starts_with("https://api.openai.com/")
    }

    fn headers(&self) -> Vec<(String, String)> {
        let mut headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json".to_owned()),
        ];
        if self.settings.api == Api::Anthropic {
            let version = ANTHROPIC_VERSION.to_owned();
            headers.push(("anthropic-version".to_owned(), version));
        }
        if let Some(key) = &self.settings.key {
            headers.push(match self.settings.api {
                Api::Anthropic => ("x-api-key".to_owned(), key.bare()),
                Api::OpenAi | Api::Ollama => ("Authorization".to_owned(), key.bearer()),
            });
        }
        headers
    }

    /// Sends a request once.
    fn ask_once(&self, question: &Question<'_>, timeout: Duration) -> Result<Answer, Failure> {
        let Settings { api, model, .. } = &self.settings;
        let mut policy = self.policy.clone();
        policy.grants = vec![self.grant.clone()];
        policy.limits.total_timeout = timeout;
        policy.limits.connect_timeout = policy.limits.connect_timeout.min(timeout);
        policy.limits.redirects_max = 0;
        policy.limits.body_bytes_max = ANSWER_BYTES_MAX;
        let body = wire::request(*api, model, self.is_openai(), question);
        let request = Request {
            method: Method::Post,
            url: self.url.clone(),
            headers: self.headers(),
            body: body.to_string().into_bytes(),
            ..Request::default()
        };
        let response = Egress::new(policy).fetch(request);
        let response = response.map_err(|error| self.lost(error, timeout))?;
        if response.status != 200 {
            return Err(self.refused(&response));
        }
        let mut answer = wire::read_answer(*api, &response.body).map_err(|why| Failure {
            error: self.nonsense(why),
            // What came does not depend on the moment.
            repeatable: false,
            asked_wait: None,
        })?;
        if answer.usage == Usage::default() {
            let calls = answer.calls.iter().map(|it| it.arguments.to_string());
            answer.usage = Usage {
                input: tokens_of_question(question),
                output: tokens_of(&answer.text) + calls.map(|it| tokens_of(&it)).sum::<u64>(),
                is_estimated: true,
            };
        }
        Ok(answer)
    }

    /// No answer, or none that ended.
    fn lost(&self, error: Error, timeout: Duration) -> Failure {
        let (who, repeatable) = (self.describe(), error.code == Code::Unavailable);
        let error = match error.code {
            Code::Timeout => Error::timeout(format!(
                "{who} did not answer within {} s",
                timeout.as_secs_f64().ceil()
            ))
            .hint("set KENNING_MODEL_TIMEOUT to more seconds, or name a faster model"),
            Code::TooLarge => Error::unavailable(format!(
                "{who} was cut off: its answer is longer than {ANSWER_BYTES_MAX} bytes"
            )),
            Code::Unavailable => Error::unavailable(format!("{who} does not answer"))
                .hint(error.message.clone())
                .because(error),
            _ => error,
        };
        Failure {
            error,
            repeatable,
            asked_wait: None,
        }
    }

    fn nonsense(&self, why: &str) -> Error {
        let who = self.describe();
        Error::unavailable(format!("{who} gave an unusable answer: {why}"))
            .hint("check that KENNING_MODEL_PROVIDER is what listens at KENNING_MODEL_ENDPOINT")
    }

    fn describe(&self) -> String {
        let Settings { api, model, .. } = &self.settings;
        format!("the model `{model}` of `{}`", api.name())
    }

    fn refused(&self, response: &Response) -> Failure {
        let (who, status) = (self.describe(), response.status);
        let repeatable = matches!(status, 408 | 429 | 500..);
        let asked_wait = response.asked_wait();
        let said = match status {
            // Messages about keys often show part of the key.
            401 | 403 => None,
            _ => wire::read_refusal(&response.body),
        };
        let said = said.map(|it| match &self.settings.key {
            Some(key) => key.redact(&it),
            None => it,
        });
        let said = said.map_or_else(String::new, |it| format!(": {it}"));
        let error = match status {
            _ if repeatable => {
                Error::unavailable(format!("{who} answers with status {status}{said}"))
            }
            401 | 403 => {
                let why = match &self.settings.key {
                    Some(_) => "refuses the API key",
                    None => "asks for an API key",
                };
                Error::denied(format!("{who} {why} ({status})")).hint("set KENNING_MODEL_KEY")
            }
            404 => Error::not_found("language model", &self.settings.model)
                .hint("check KENNING_MODEL_NAME and KENNING_MODEL_ENDPOINT"),
            _ => Error::invalid(format!("{who} answers with status {status}{said}")).hint(
                "check KENNING_MODEL_PROVIDER, KENNING_MODEL_ENDPOINT and KENNING_MODEL_NAME",
            ),
        };
        Failure {
            error,
            repeatable,
            asked_wait,
        }
    }
}

impl Model for Provider {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn ask(&self, question: &Question<'_>) -> Result<Answer> {
        let mut number = 0;
        loop {
            let left = question.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::timeout("no time is left to ask the model"));
            }
            let timeout = left.min(self.settings.timeout);
            let failure = match self.ask_once(question, timeout) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let wait = failure
                .repeatable
                .then(|| self.settings.patience.wait(number, failure.asked_wait))
                .flatten();
            let left = question.deadline.saturating_duration_since(Instant::now());
            let Some(wait) = wait.filter(|it| *it < left) else {
                return Err(failure.error);
            };
            (self.sleep)(wait);
            number += 1;
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("model", &self.settings.model)
            .finish_non_exhaustive()
    }
}

/// A request that brought no answer.
struct Failure {
    error: Error,
    repeatable: bool,
    asked_wait: Option<Duration>,
}
