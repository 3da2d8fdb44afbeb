//! Where a text stops being JSON, in the words of Python, which clients of the original know.
//!
//! Our own reader has refused the text already; this only finds the place and the words.

/// The place, in characters, and what is wrong there; `None` when Python would see no fault.
pub(super) fn fault(text: &str) -> Option<(usize, &'static str)> {
    let text: Vec<char> = text.chars().collect();
    let mut reader = Reader { text: &text, at: 0 };
    reader.space();
    if let Err(fault) = reader.value() {
        return Some(fault);
    }
    reader.space();
    (reader.at < text.len()).then_some((reader.at, "Extra data"))
}

/// How deep a text may be before it is left to others to say so.
const DEPTH_MAX: usize = 900;

type Fault = (usize, &'static str);

struct Reader<'a> {
    text: &'a [char],
    at: usize,
}

/// What stands open around the place that is read.
enum Open {
    List,
    Fields,
}

impl Reader<'_> {
    fn next(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.next(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    /// Reads a value with everything in it. What is open is kept in a list of its own, because a text may be
    /// deeper than a stack.
    fn value(&mut self) -> Result<(), Fault> {
        let mut open = Vec::new();
        loop {
            // A value begins here.
            match self.next() {
                Some('{') => {
                    self.at += 1;
                    self.space();
                    if self.next() == Some('}') {
                        self.at += 1;
                    } else {
                        self.name()?;
                        open.push(Open::Fields);
                        continue;
                    }
                }
                Some('[') => {
                    self.at += 1;
                    self.space();
                    if self.next() == Some(']') {
                        self.at += 1;
                    } else {
                        open.push(Open::List);
                        continue;
                    }
                }
                _ => self.plain()?,
            }
            if open.len() > DEPTH_MAX {
                return Ok(());
            }
            // A value has ended: what is around it goes on or ends.
            loop {
                let Some(around) = open.last() else {
                    return Ok(());
                };
                self.space();
                let (end, before_end) = match around {
                    Open::List => (']', "Illegal trailing comma before end of array"),
                    Open::Fields => ('}', "Illegal trailing comma before end of object"),
                };
                if self.next() == Some(end) {
                    self.at += 1;
                    open.pop();
                    continue;
                }
                let comma = self.at;
                if self.next() != Some(',') {
                    return Err((self.at, "Expecting ',' delimiter"));
                }
                self.at += 1;
                self.space();
                if self.next() == Some(end) {
                    return Err((comma, before_end));
                }
                if matches!(around, Open::Fields) {
                    self.name()?;
                }
                break;
            }
        }
    }

    /// The name of a field, and the colon.
    fn name(&mut self) -> Result<(), Fault> {
        if self.next() != Some('"') {
            return Err((self.at, "Expecting property name enclosed in double quotes"));
        }
        self.string()?;
        self.space();
        if self.next() != Some(':') {
            return Err((self.at, "Expecting ':' delimiter"));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn plain(&mut self) -> Result<(), Fault> {
        if self.next() == Some('"') {
            return self.string();
        }
        for word in ["null", "true", "false", "NaN", "Infinity", "-Infinity"] {
            let end = self.at + word.len();
            let found = self.text.get(self.at..end);
            if found.is_some_and(|it| it.iter().copied().eq(word.chars())) {
                self.at = end;
                return Ok(());
            }
        }
        self.number()
    }

    /// As much of a number as there is: what follows is somebody else's fault.
    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        if self.next() == Some('-') {
            self.at += 1;
        }
        let digits = |reader: &mut Self| {
            let first = reader.at;
            while reader.next().is_some_and(|it| it.is_ascii_digit()) {
                reader.at += 1;
            }
            reader.at > first
        };
        if self.next() == Some('0') {
            self.at += 1;
        } else if !digits(self) {
            self.at = start;
            return Err((start, "Expecting value"));
        }
        let whole = self.at;
        if self.next() == Some('.') {
            self.at += 1;
            if !digits(self) {
                self.at = whole;
                return Ok(());
            }
        }
        let before = self.at;
        if matches!(self.next(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.next(), Some('+' | '-')) {
                self.at += 1;
            }
            if !digits(self) {
                self.at = before;
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.next() {
                None => return Err((start, "Unterminated string starting at")),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\\') => self.escape(start)?,
                Some(control) if control < ' ' => {
                    return Err((self.at, "Invalid control character at"));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self, start: usize) -> Result<(), Fault> {
        let backslash = self.at;
        self.at += 1;
        match self.next() {
            None => Err((start, "Unterminated string starting at")),
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                self.at += 1;
                Ok(())
            }
            Some('u') => {
                let digits = self.text.get(self.at + 1..self.at + 5);
                if !digits.is_some_and(|it| it.iter().all(char::is_ascii_hexdigit)) {
                    return Err((self.at, "Invalid \\uXXXX escape"));
                }
                self.at += 5;
                Ok(())
            }
            Some(_) => Err((backslash, "Invalid \\escape")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `json.loads` of Python 3.13 says.
    #[test]
    fn faults_are_found_where_python_finds_them() {
        for (text, expected) in [
            (
                "{",
                (1, "Expecting property name enclosed in double quotes"),
            ),
            (
                "{bad",
                (1, "Expecting property name enclosed in double quotes"),
            ),
            (
                "{'a': 1}",
                (1, "Expecting property name enclosed in double quotes"),
            ),
            ("{\"a\" 1}", (5, "Expecting ':' delimiter")),
            ("{\"a\": }", (6, "Expecting value")),
            ("{\"a\": 1 \"b\"}", (8, "Expecting ',' delimiter")),
            (
                "{\"a\": 1,}",
                (7, "Illegal trailing comma before end of object"),
            ),
            ("[1,]", (2, "Illegal trailing comma before end of array")),
            ("[1", (2, "Expecting ',' delimiter")),
            ("[", (1, "Expecting value")),
            ("{\"a\": \"b", (6, "Unterminated string starting at")),
            ("{\"a\": \"b\n\"}", (8, "Invalid control character at")),
            ("\"\\x\"", (1, "Invalid \\escape")),
            ("\"\\u12\"", (2, "Invalid \\uXXXX escape")),
            ("{} {}", (3, "Extra data")),
            ("nope", (0, "Expecting value")),
            ("01", (1, "Extra data")),
            ("1.", (1, "Extra data")),
            ("-", (0, "Expecting value")),
            ("é", (0, "Expecting value")),
            ("[\"é\", ?]", (6, "Expecting value")),
            ("  ", (2, "Expecting value")),
        ] {
            assert_eq!(fault(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_python_reads_has_no_fault() {
        for text in [
            "{}",
            " [1, -0.5e+3, true, null, NaN, -Infinity] ",
            "{\"a\": {\"b\": [[], {}]}, \"c\": \"\\u00e9\\n\"}",
        ] {
            assert_eq!(fault(text), None, "{text}");
        }
        assert_eq!(
            fault(&"[".repeat(100_000)),
            Some((100_000, "Expecting value"))
        );
    }
}
