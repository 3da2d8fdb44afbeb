//! The language model that the operator named, if any.

use crate::Kernel;
use kenning_core::Result;
use kenning_egress::Policy;
use kenning_llm::{Budget, Given, Model, Provider, Settings};
use std::sync::Arc;
use std::time::Instant;

/// A language model, and what one run may use of it.
#[derive(Clone)]
pub struct LanguageModel {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Tokens of one run.
    pub tokens_max: u64,
}

impl LanguageModel {
    /// What one run may use, until then.
    pub fn budget(&self, deadline: Instant) -> Budget {
        Budget::new(self.tokens_max, deadline)
    }
}

impl Kernel {
    /// The language model of the environment, else that of `config.yaml`; `None` if there is none.
    ///
    /// # Errors
    /// Invalid input when a setting cannot be read.
    pub fn language_model(&self) -> Result<Option<LanguageModel>> {
        let mut given = Given::of(self.environment());
        // A mistake in the file is nobody's concern while the environment names the model.
        if !given.is_some() {
            let file = self.memory_config()?.model.clone();
            let lookup = self.environment();
            let read = |it: Option<kenning_memory::config::Text>| match it {
                Some(text) if file.provider.is_some() => text.expand(lookup).map(Some),
                _ => Ok(None),
            };
            given = given.or(Given {
                endpoint: read(file.endpoint)?,
                name: read(file.name)?,
                key: read(file.api_key)?,
                provider: file.provider.clone(),
                timeout_s: Some(file.timeout_seconds.to_string()),
                tokens_max: Some(file.tokens_max.to_string()),
                retries: None,
            });
        }
        let Some(settings) = Settings::read(given)? else {
            return Ok(None);
        };
        let tokens_max = settings.tokens_max;
        let model = Arc::new(Provider::new(settings, Policy::default())?);
        Ok(Some(LanguageModel { model, tokens_max }))
    }
}
