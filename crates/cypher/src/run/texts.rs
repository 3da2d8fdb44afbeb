//! Tests of texts: their parts, and patterns.

use super::Row;
use crate::ast::TextTest;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::X;
use crate::value::Value;
use memchr::memmem::Finder;
use std::sync::Arc;

/// How large a compiled regular expression may be.
const REGEX_BYTES_MAX: usize = 1 << 20;

impl Context<'_> {
    #[inline(never)]
    pub(super) fn text_test(
        &self,
        test: TextTest,
        left: &X,
        right: &X,
        row: &mut Row,
    ) -> Result<Value> {
        let left = self.eval(left, row)?;
        let right = self.eval(right, row)?;
        self.test_text(test, &left, &right)
    }

    pub(super) fn test_text(&self, test: TextTest, left: &Value, right: &Value) -> Result<Value> {
        // What is no text has no parts: the test is not known.
        let (Value::Str(left), Value::Str(right)) = (left, right) else {
            return Ok(Value::Null);
        };
        self.steps(left.len() as u64 >> 8)?;
        Ok(Value::Bool(match test {
            TextTest::StartsWith => left.starts_with(&**right),
            TextTest::EndsWith => left.ends_with(&**right),
            TextTest::Contains => self.contains(left, right),
            TextTest::Matches => return self.matches(left, right),
        }))
    }

    /// The same text is often looked for in many others: from the second on, what is prepared for it is kept.
    fn contains(&self, text: &str, part: &Arc<str>) -> bool {
        let mut last = self.finder.borrow_mut();
        match &mut *last {
            Some((known, finder)) if Arc::ptr_eq(known, part) => {
                let finder =
                    finder.get_or_insert_with(|| Finder::new(part.as_bytes()).into_owned());
                finder.find(text.as_bytes()).is_some()
            }
            other => {
                *other = Some((Arc::clone(part), None));
                text.contains(&**part)
            }
        }
    }

    fn matches(&self, text: &str, pattern: &Arc<str>) -> Result<Value> {
        let mut last = self.regex.borrow_mut();
        let same = last.as_ref().is_some_and(|it| it.0 == *pattern);
        if !same {
            let built = regex::RegexBuilder::new(&format!("^(?:{pattern})$"))
                .size_limit(REGEX_BYTES_MAX)
                .build();
            let built = built.map_err(|error| {
                let message = format!("`{pattern}` is not a regular expression: {error}");
                Error::argument(message)
            })?;
            *last = Some((Arc::clone(pattern), built));
        }
        Ok(Value::Bool(
            last.as_ref().is_some_and(|it| it.1.is_match(text)),
        ))
    }
}
