//! The tokens and the time of a run of several questions.

use crate::{Answer, Model, Question, Turn, Usage, tokens_of};
use kenning_core::{Code, Error, Result};
use std::time::Instant;

/// An answer shorter than this says nothing, so no question is asked for it.
const ANSWER_TOKENS_MIN: u64 = 64;

/// What a run may use, and what it has used.
#[derive(Clone, Debug)]
pub struct Budget {
    tokens_max: u64,
    used: Usage,
    deadline: Instant,
}

impl Budget {
    /// So many tokens, until then.
    pub fn new(tokens_max: u64, deadline: Instant) -> Self {
        Self {
            tokens_max,
            used: Usage::default(),
            deadline,
        }
    }

    /// What was used.
    pub fn used(&self) -> Usage {
        self.used
    }

    /// Tokens that are left.
    pub fn tokens_left(&self) -> u64 {
        self.tokens_max.saturating_sub(self.used.total())
    }

    /// Whether another question can be asked.
    pub fn is_spent(&self) -> bool {
        self.tokens_left() < ANSWER_TOKENS_MIN || Instant::now() >= self.deadline
    }

    /// Asks a question, if what is left suffices for it. The answer is as long as the budget allows.
    ///
    /// # Errors
    /// Limited if it does not suffice, timeout after the deadline, and those of the model.
    pub fn ask(&mut self, model: &dyn Model, mut question: Question<'_>) -> Result<Answer> {
        let input = tokens_of_question(&question);
        let left = self.tokens_left();
        if input.saturating_add(ANSWER_TOKENS_MIN) > left {
            let (used, max) = (self.used.total(), self.tokens_max);
            return Err(Error::new(
                Code::Limited,
                format!("{used} of {max} tokens are used, and the next question has about {input}"),
            )
            .hint("set KENNING_MODEL_TOKENS to a higher number, or ask for less"));
        }
        question.answer_tokens_max = question.answer_tokens_max.min(left - input);
        question.deadline = question.deadline.min(self.deadline);
        let asked = model.ask(&question);
        match &asked {
            Ok(answer) => self.used.add(answer.usage),
            // The question was read, and how much was answered nobody says.
            Err(error) if error.code == Code::Timeout => {
                self.used.add(Usage {
                    input,
                    output: 0,
                    is_estimated: true,
                });
            }
            Err(_) => {}
        }
        asked
    }
}

/// About how many tokens a question has.
pub(crate) fn tokens_of_question(question: &Question<'_>) -> u64 {
    let turns = question.turns.iter().map(|it| match it {
        Turn::User(text) => tokens_of(text),
        Turn::Model(text, calls) => {
            let calls = calls.iter();
            tokens_of(text)
                + calls
                    .map(|it| tokens_of(&it.arguments.to_string()))
                    .sum::<u64>()
        }
        Turn::Tool { answer, .. } => tokens_of(answer),
    });
    let tools = question.tools.iter().map(|it| {
        tokens_of(&it.name) + tokens_of(&it.description) + tokens_of(&it.schema.to_string())
    });
    tokens_of(question.system) + turns.sum::<u64>() + tools.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    struct Costly(AtomicU64);

    impl Model for Costly {
        fn name(&self) -> &str {
            "costly"
        }

        fn ask(&self, question: &Question<'_>) -> Result<Answer> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let usage = Usage {
                input: 10,
                output: question.answer_tokens_max.min(400),
                is_estimated: false,
            };
            Ok(Answer {
                usage,
                ..Answer::default()
            })
        }
    }

    #[test]
    fn a_run_never_asks_for_more_than_is_left() {
        let model = Costly(AtomicU64::new(0));
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut budget = Budget::new(1_000, deadline);
        let turns = [Turn::User("word ".repeat(8))];
        let question = Question {
            system: "",
            turns: &turns,
            tools: &[],
            json: false,
            answer_tokens_max: 10_000,
            deadline,
        };
        while budget.ask(&model, question.clone()).is_ok() {}
        assert_eq!(model.0.load(Ordering::Relaxed), 3);
        assert!(budget.used().total() <= 1_000, "{:?}", budget.used());
    }
}
