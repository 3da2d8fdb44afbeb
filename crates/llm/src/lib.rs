//! Language models that the operator named.
//!
//! [`Model`] is the one trait that everything in the program asks by: a question with its turns and tools,
//! and an answer with what it cost. [`Provider`] is a model behind an address: OpenAI's format and whatever
//! imitates it, Anthropic's, and Ollama's. [`Settings`] are what the operator configured. [`Budget`] counts
//! the tokens and the time of a run of several questions.
//!
//! What a model answers is a stranger's text: it is bounded, and nothing in it is obeyed here. Questions go to
//! the address that the operator named and nowhere else.

#![deny(missing_docs)]

mod budget;
mod provider;
mod settings;
mod wire;

pub use budget::Budget;
pub use provider::{Provider, Sleep};
pub use settings::{Api, Given, Settings};
pub use wire::{read_answer, read_refusal};

use kenning_core::Result;
use serde_json::Value;
use std::time::Instant;

/// What is said, in turns.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// By whoever asks.
    User(String),
    /// By the model: a text, and the tools that it asks for.
    Model(String, Vec<ToolCall>),
    /// What a tool answered.
    Tool {
        /// Which call this is the answer to.
        id: String,
        /// The tool.
        name: String,
        /// Its answer.
        answer: String,
    },
}

/// A tool that the model may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Value,
}

/// A tool that the model asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// To tell its answer from others.
    pub id: String,
    /// The name, whether there is such a tool or not.
    pub name: String,
    /// An object; whatever else the model wrote is an empty one.
    pub arguments: Value,
}

/// A question.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// What the model is told about its task.
    pub system: &'a str,
    /// What was said so far, the last turn not the model's.
    pub turns: &'a [Turn],
    /// What it may ask for.
    pub tools: &'a [ToolSpec],
    /// Whether the answer is to be one JSON object.
    pub json: bool,
    /// How long the answer may be.
    pub answer_tokens_max: u64,
    /// Until when.
    pub deadline: Instant,
}

/// What a question cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the question.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Whether the server did not say so and they follow from the lengths of the texts.
    pub is_estimated: bool,
}

impl Usage {
    /// Both together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.is_estimated |= other.is_estimated;
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What the model wrote.
    pub text: String,
    /// The tools that it asks for.
    pub calls: Vec<ToolCall>,
    /// What it cost.
    pub usage: Usage,
}

impl Answer {
    /// The JSON object in the text, also where it stands in a block of code.
    pub fn json(&self) -> Option<Value> {
        object_in(&self.text)
    }
}

/// A language model.
pub trait Model: Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;

    /// Asks it, and again where that may help.
    ///
    /// # Errors
    /// Unavailable if it does not answer, timeout if it does not in time, and those of its settings.
    fn ask(&self, question: &Question<'_>) -> Result<Answer>;
}

/// The JSON object in a text.
pub fn object_in(text: &str) -> Option<Value> {
    let start = text.find('{')?;
    let end = text.rfind('}')?;
    let value: Value = serde_json::from_str(text.get(start..=end)?).ok()?;
    value.is_object().then_some(value)
}

/// About how many tokens a text has: four bytes each, as is usual for English.
pub fn tokens_of(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_in_a_block_of_code() {
        assert!(object_in("```json\n{\"a\": 1}\n```").is_some());
        for text in ["[]", "", "no", "}{", "{\"a\": "] {
            assert!(object_in(text).is_none(), "{text}");
        }
    }

    #[test]
    fn an_object_that_is_nested_too_deep_is_no_answer() {
        let deep = "{\"a\":".repeat(200_000) + &"}".repeat(200_000);
        assert!(object_in(&deep).is_none());
    }
}
