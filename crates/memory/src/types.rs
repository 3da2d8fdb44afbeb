//! The contract's types: kinds of memories, confidence, and relations between memories.

use kenning_core::{Error, Result, Unit};
use std::fmt;
use std::str::FromStr;

/// What a memory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryType {
    /// Something that is true.
    Fact,
    /// Something that happened. The default.
    #[default]
    Experience,
    /// Something believed, with a confidence.
    Belief,
    /// Something that was decided.
    Decision,
}

impl MemoryType {
    /// Every type, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Fact, Self::Experience, Self::Belief, Self::Decision];

    /// The name in the store and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Experience => "experience",
            Self::Belief => "belief",
            Self::Decision => "decision",
        }
    }
}

impl FromStr for MemoryType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|it| it.as_str() == text);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            // The contract's own words, capital letter included: callers match them.
            Error::invalid(format!(
                "Invalid memory_type: {text}. Must be one of: {names}"
            ))
        })
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How sure a belief is: 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(Unit);

impl Confidence {
    /// The number.
    pub fn get(self) -> f64 {
        self.0.get()
    }

    /// As a bounded number.
    pub fn unit(self) -> Unit {
        self.0
    }
}

impl Default for Confidence {
    /// Neutral: the default of a belief.
    fn default() -> Self {
        Self(Unit::try_from(0.5).unwrap_or_else(|_| unreachable!("0.5 lies between 0 and 1")))
    }
}

impl From<Unit> for Confidence {
    fn from(value: Unit) -> Self {
        Self(value)
    }
}

impl TryFrom<f64> for Confidence {
    type Error = Error;

    fn try_from(value: f64) -> Result<Self> {
        Unit::try_from(value).map(Self).map_err(|_| {
            Error::invalid("confidence must be between 0.0 and 1.0")
                .hint(format!("`confidence` was `{value}`"))
        })
    }
}

/// How two memories relate.
pub mod relation {
    /// A belief to the evidence for it.
    pub const SUPPORTS: &str = "SUPPORTS";
    /// A belief to the evidence against it.
    pub const CONTRADICTS: &str = "CONTRADICTS";
    /// From a new memory to those given with it.
    pub const RELATED_TO: &str = "RELATED_TO";
    /// From a memory to the one that it replaces.
    pub const SUPERSEDES: &str = "SUPERSEDES";
    /// Two similar memories. Found by the program, so it counts in no rule about edges.
    pub const SIMILAR: &str = "similar";

    /// The weight of `related_to`.
    pub const RELATED_WEIGHT: f64 = 0.5;

    /// Whether edges of this relation count for orphans, centrality and sudden cores.
    pub fn counts(relation: &str) -> bool {
        relation != SIMILAR
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::Code;

    #[test]
    fn every_type_reads_back_its_name() {
        for kind in MemoryType::ALL {
            assert_eq!(kind.to_string().parse::<MemoryType>().unwrap(), kind);
        }
        assert_eq!(MemoryType::default(), MemoryType::Experience);
    }

    #[test]
    fn another_type_is_refused_in_the_words_of_the_contract() {
        for text in ["opinion", "", "Fact", " fact"] {
            let error = text.parse::<MemoryType>().unwrap_err();
            assert_eq!(error.code, Code::InvalidInput);
            assert_eq!(
                error.message,
                format!(
                    "Invalid memory_type: {text}. Must be one of: fact, experience, belief, decision"
                )
            );
        }
    }

    #[test]
    fn a_confidence_is_between_nothing_and_everything() {
        for value in [0.0, 0.5, 1.0] {
            assert_eq!(Confidence::try_from(value).unwrap().get(), value);
        }
        for value in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
            let error = Confidence::try_from(value).unwrap_err();
            assert_eq!(error.message, "confidence must be between 0.0 and 1.0");
        }
        assert_eq!(Confidence::default().get(), 0.5);
    }

    #[test]
    fn what_the_machine_found_counts_in_no_rule() {
        assert!(!relation::counts(relation::SIMILAR));
        assert!(relation::counts(relation::RELATED_TO));
    }
}
