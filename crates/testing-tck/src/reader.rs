//! Reads the signs and words of a text, for values and for patterns.

/// The part of a text that is not read yet.
pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Passes over spaces and comments.
    pub(crate) fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with("//") {
                return;
            }
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.rest = self.rest.get(end..).unwrap_or_default();
        }
    }

    /// Reads a sign; false if something else comes next.
    pub(crate) fn eat(&mut self, sign: &str) -> bool {
        self.skip();
        let after = self.rest.strip_prefix(sign);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// Reads a sign that must come next.
    pub(crate) fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.eat(sign) {
            return Ok(());
        }
        Err(format!("expected `{sign}` at `{}`", self.rest))
    }

    /// Reads letters, digits, `_` and these further characters, or anything between backticks.
    pub(crate) fn word(&mut self, further: &str) -> String {
        if self.eat("`") {
            let end = self.rest.find('`').unwrap_or(self.rest.len());
            let word = self.rest.get(..end).unwrap_or_default().to_owned();
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            return word;
        }
        let is_end = |c: char| !(c.is_alphanumeric() || c == '_' || further.contains(c));
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let word = self.rest.get(..end).unwrap_or_default().to_owned();
        self.rest = self.rest.get(end..).unwrap_or_default();
        word
    }
}
