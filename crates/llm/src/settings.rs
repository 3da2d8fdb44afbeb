//! What the operator configured.

use kenning_core::{Error, Result};
use kenning_egress::{Key, Patience};
use std::time::Duration;

/// The format of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's `/chat/completions`, which many servers imitate.
    OpenAi,
    /// Anthropic's `/v1/messages`.
    Anthropic,
    /// Ollama's own `/api/chat`.
    Ollama,
}

impl Api {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Ollama];

    /// The name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }

    /// The address if none is set.
    pub fn default_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Ollama => "http://localhost:11434",
        }
    }

    /// Where questions are sent, of an address with or without the last part of its path.
    pub(crate) fn url(self, base: &str) -> String {
        let base = base.trim_end_matches('/');
        let path = match self {
            Self::OpenAi => "/chat/completions",
            Self::Anthropic if base.ends_with("/v1") => "/messages",
            Self::Anthropic => "/v1/messages",
            Self::Ollama => "/api/chat",
        };
        match base.ends_with(path) {
            true => base.to_owned(),
            false => format!("{base}{path}"),
        }
    }
}

/// What is written in the environment or in `config.yaml`, as texts.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The name of an [`Api`].
    pub provider: Option<String>,
    /// The address.
    pub endpoint: Option<String>,
    /// The name of the model.
    pub name: Option<String>,
    /// The key.
    pub key: Option<String>,
    /// Seconds that one answer may take.
    pub timeout_s: Option<String>,
    /// Tokens that one run may use.
    pub tokens_max: Option<String>,
    /// How often a question is asked again that got no answer.
    pub retries: Option<String>,
}

/// The variables of the environment, in the order of [`Given`].
const VARIABLES: [&str; 7] = [
    "KENNING_MODEL_PROVIDER",
    "KENNING_MODEL_ENDPOINT",
    "KENNING_MODEL_NAME",
    "KENNING_MODEL_KEY",
    "KENNING_MODEL_TIMEOUT",
    "KENNING_MODEL_TOKENS",
    "KENNING_MODEL_RETRIES",
];

/// The contract's own way to name a model: a key of Gemini, which has OpenAI's format there.
const GEMINI_KEY: &str = "GEMINI_API_KEY";
/// It counts only if the operator asks for it: the key may be meant for another program.
const GEMINI_ASKED: &str = "LLM_ENRICHMENT_ENABLED";
const GEMINI_URL: &str = "https://generativelanguage.googleapis.com/v1beta/openai";
const GEMINI_MODEL: &str = "gemini-2.5-flash";

impl Given {
    /// What the environment says.
    pub fn of(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str| {
            let text = lookup(name).map(|it| it.trim().to_owned());
            text.filter(|it| !it.is_empty())
        };
        let [
            provider,
            endpoint,
            name,
            key,
            timeout_s,
            tokens_max,
            retries,
        ] = VARIABLES.map(text);
        let mut given = Self {
            provider,
            endpoint,
            name,
            key,
            timeout_s,
            tokens_max,
            retries,
        };
        let is_asked = text(GEMINI_ASKED).is_some_and(|it| {
            ["true", "1", "yes", "on"].contains(&it.to_ascii_lowercase().as_str())
        });
        if given.provider.is_none()
            && given.endpoint.is_none()
            && is_asked
            && let Some(key) = text(GEMINI_KEY)
        {
            given.provider = Some(Api::OpenAi.name().to_owned());
            given.endpoint = Some(GEMINI_URL.to_owned());
            given.name = given.name.or_else(|| Some(GEMINI_MODEL.to_owned()));
            given.key = given.key.or(Some(key));
        }
        given
    }

    /// Whether a model is named at all.
    pub fn is_some(&self) -> bool {
        self.provider.is_some() || self.endpoint.is_some()
    }

    /// This, and `other` where this says nothing. Who names a provider or an address names all that belongs
    /// to it: a key never goes to another server than the one it is written with.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let is_ours = self.is_some();
        let keep = |own: Option<String>, others: Option<String>| match is_ours {
            true => own,
            false => own.or(others),
        };
        Self {
            provider: keep(self.provider, other.provider),
            endpoint: keep(self.endpoint, other.endpoint),
            name: keep(self.name, other.name),
            key: keep(self.key, other.key),
            timeout_s: self.timeout_s.or(other.timeout_s),
            tokens_max: self.tokens_max.or(other.tokens_max),
            retries: self.retries.or(other.retries),
        }
    }
}

/// A model as it was configured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The format.
    pub api: Api,
    /// With or without the last part of its path.
    pub base_url: String,
    /// What the server calls the model.
    pub model: String,
    /// Sent in the header of the format.
    pub key: Option<Key>,
    /// For one answer, from the call to the last byte.
    pub timeout: Duration,
    /// Tokens of one run, questions and answers together.
    pub tokens_max: u64,
    /// When a question is asked again.
    pub patience: Patience,
}

const TIMEOUT_DEFAULT_S: u64 = 120;
const TOKENS_DEFAULT: u64 = 60_000;

impl Settings {
    /// A model with the defaults of everything else.
    pub fn new(api: Api, base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            api,
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            timeout: Duration::from_secs(TIMEOUT_DEFAULT_S),
            tokens_max: TOKENS_DEFAULT,
            patience: Patience::default(),
        }
    }

    /// Reads what is written. `None` if no model is named.
    ///
    /// # Errors
    /// Invalid input, with the name of the variable.
    pub fn read(given: Given) -> Result<Option<Self>> {
        let [
            provider_name,
            _,
            name_name,
            _,
            timeout_name,
            tokens_name,
            retries_name,
        ] = VARIABLES;
        if !given.is_some() {
            return Ok(None);
        }
        let api = match given.provider.as_deref() {
            None => Api::OpenAi,
            Some(said) => {
                let found = Api::ALL.into_iter().find(|it| it.name() == said);
                found.ok_or_else(|| {
                    let names = Api::ALL.map(Api::name).join(", ");
                    Error::invalid(format!("{provider_name}: `{said}` is not a provider"))
                        .hint(format!("one of {names}"))
                })?
            }
        };
        let model = given.name.ok_or_else(|| {
            Error::invalid(format!(
                "a language model is configured and {name_name} is not"
            ))
            .hint(format!("set {name_name} to the name of a model there"))
        })?;
        let number = |name: &str, said: Option<String>, default: u64| match said {
            None => Ok(default),
            Some(said) => said
                .parse::<u64>()
                .ok()
                .filter(|it| *it > 0)
                .ok_or_else(|| {
                    Error::invalid(format!("{name}: `{said}` is not a number above 0"))
                        .hint(format!("write for example {name}={default}"))
                }),
        };
        let timeout = number(timeout_name, given.timeout_s, TIMEOUT_DEFAULT_S)?;
        let mut patience = Patience::default();
        if let Some(said) = given.retries {
            patience.retries = said.parse().map_err(|_| {
                Error::invalid(format!("{retries_name}: `{said}` is not a number")).hint(format!(
                    "write for example {retries_name}={}",
                    patience.retries
                ))
            })?;
        }
        let base_url = given.endpoint;
        Ok(Some(Self {
            key: given.key.map(Key::new).transpose()?,
            timeout: Duration::from_secs(timeout.min(3_600)),
            tokens_max: number(tokens_name, given.tokens_max, TOKENS_DEFAULT)?,
            patience,
            ..Self::new(
                api,
                base_url.unwrap_or_else(|| api.default_url().to_owned()),
                model,
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Option<Settings>> {
        let found = |name: &str| {
            let pair = pairs.iter().find(|it| it.0 == name);
            pair.map(|it| it.1.to_owned())
        };
        Settings::read(Given::of(&found))
    }

    #[test]
    fn nothing_said_is_no_model() {
        assert!(read(&[]).unwrap().is_none());
        assert!(
            read(&[("KENNING_MODEL_NAME", "m"), ("KENNING_MODEL_KEY", "k")])
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_setting_that_cannot_be_read_says_which() {
        let endpoint = ("KENNING_MODEL_ENDPOINT", "http://127.0.0.1:1");
        let name = ("KENNING_MODEL_NAME", "m");
        for (pairs, said) in [
            (vec![endpoint], "KENNING_MODEL_NAME"),
            (
                vec![name, ("KENNING_MODEL_PROVIDER", "x")],
                "KENNING_MODEL_PROVIDER",
            ),
            (
                vec![endpoint, name, ("KENNING_MODEL_TOKENS", "many")],
                "KENNING_MODEL_TOKENS",
            ),
            (
                vec![endpoint, name, ("KENNING_MODEL_TIMEOUT", "0")],
                "KENNING_MODEL_TIMEOUT",
            ),
        ] {
            let error = read(&pairs).unwrap_err();
            assert!(error.message.contains(said), "{error}");
        }
    }

    #[test]
    fn a_key_of_the_contract_is_used_only_where_the_operator_asks_for_it() {
        let key = ("GEMINI_API_KEY", "k");
        assert!(read(&[key]).unwrap().is_none());
        assert!(
            read(&[key, ("LLM_ENRICHMENT_ENABLED", "false")])
                .unwrap()
                .is_none()
        );
        let it = read(&[key, ("LLM_ENRICHMENT_ENABLED", "true")])
            .unwrap()
            .unwrap();
        assert_eq!(
            (it.base_url.as_str(), it.model.as_str()),
            (GEMINI_URL, GEMINI_MODEL)
        );
        assert!(it.key.is_some());
    }

    #[test]
    fn a_key_goes_to_no_other_server_than_the_one_it_is_written_with() {
        let ours = Given {
            endpoint: Some("http://a".to_owned()),
            ..Given::default()
        };
        let others = Given {
            endpoint: Some("http://b".to_owned()),
            key: Some("secret".to_owned()),
            tokens_max: Some("5".to_owned()),
            ..Given::default()
        };
        let both = ours.or(others);
        assert_eq!(both.endpoint.as_deref(), Some("http://a"));
        assert_eq!((both.key, both.tokens_max.as_deref()), (None, Some("5")));
    }

    #[test]
    fn a_model_is_asked_where_its_format_says() {
        for (api, base, expected) in [
            (Api::OpenAi, "http://h/v1", "http://h/v1/chat/completions"),
            (Api::OpenAi, "http://h/v1/", "http://h/v1/chat/completions"),
            (
                Api::OpenAi,
                "http://h/v1/chat/completions",
                "http://h/v1/chat/completions",
            ),
            (Api::Anthropic, "http://h", "http://h/v1/messages"),
            (Api::Anthropic, "http://h/v1", "http://h/v1/messages"),
            (
                Api::Anthropic,
                "http://h/v1/messages",
                "http://h/v1/messages",
            ),
            (Api::Ollama, "http://h", "http://h/api/chat"),
        ] {
            assert_eq!(api.url(base), expected);
        }
    }
}
