//! The section `model`: the language model.

use super::{Reader, Text};

/// A language model. Without a provider there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageModel {
    /// `openai`, `anthropic` or `ollama`.
    pub provider: Option<String>,
    /// The URL of the service, if not the provider's own.
    pub endpoint: Option<Text>,
    /// Which model.
    pub name: Option<Text>,
    /// The key for it.
    pub api_key: Option<Text>,
    /// How long one answer may take.
    pub timeout_seconds: u64,
    /// How many tokens one run may use.
    pub tokens_max: u64,
}

impl Reader<'_> {
    pub(super) fn model(&self) -> LanguageModel {
        let provider = self.value("model.provider");
        let provider = provider.as_str().filter(|it| *it != "none");
        LanguageModel {
            provider: provider.map(ToOwned::to_owned),
            endpoint: self.text("model.endpoint"),
            name: self.text("model.name"),
            api_key: self.text("model.api_key"),
            timeout_seconds: self.count("model.timeout_seconds"),
            tokens_max: self.count("model.tokens_max"),
        }
    }
}
