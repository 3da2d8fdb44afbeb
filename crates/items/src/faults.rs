//! Collects everything that is wrong with an item, so that it can be repaired in one go.

use kenning_core::Error;
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which field, for example `version` or `inputs.url.type`.
    pub field: String,
    /// What is wrong with it, with the value in backticks.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// The faults found; never empty in an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// One fault alone.
    pub fn one(
        field: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let mut faults = Self::default();
        faults.add(field, message, remedy);
        faults
    }

    /// Adds a fault.
    pub fn add(
        &mut self,
        field: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.0.push(Fault {
            field: field.into(),
            message: message.into(),
            remedy: remedy.into(),
        });
    }

    /// `value` if there are no faults.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }

    /// One line each.
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(Fault::to_string).collect()
    }

    /// One error with all messages, and all remedies as its hint.
    pub fn into_error(self, what: impl fmt::Display) -> Error {
        let mut remedies: Vec<&str> = self.0.iter().map(|it| it.remedy.as_str()).collect();
        remedies.dedup();
        let hint = remedies.join("; ");
        Error::invalid(format!("{what} is not valid: {}", self.lines().join("; "))).hint(hint)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("; "))
    }
}

impl std::error::Error for Faults {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_every_field_and_every_remedy() {
        let mut faults = Faults::one("name", "`X` is not snake case", "call it `x`");
        faults.add("version", "`1` is no version", "use `1.0.0`");
        let error = faults.into_error("directive `X`");
        assert_eq!(
            error.message,
            "directive `X` is not valid: name: `X` is not snake case; version: `1` is no version"
        );
        assert_eq!(error.hint.as_deref(), Some("call it `x`; use `1.0.0`"));
        assert_eq!(Faults::default().or(3), Ok(3));
    }
}
