//! The error type of all crates, and the table of error codes.

use std::fmt;

/// What kind of failure it is, by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The caller can repair the input.
    InvalidInput,
    /// No such thing.
    NotFound,
    /// It changed in the meantime, or exists already.
    Conflict,
    /// Not permitted, or outside the allowed directories and hosts.
    Denied,
    /// No credential, or a bad one.
    Unauthenticated,
    /// A limit was reached.
    Limited,
    /// The input is over a size limit.
    TooLarge,
    /// The deadline passed.
    Timeout,
    /// Disk full, store locked, peer gone.
    Unavailable,
    /// Stored data failed its check.
    Corrupt,
    /// A bug.
    Internal,
}

/// How a code appears to an MCP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpForm {
    /// A tool result with `isError`, so that the model can read and repair it.
    IsError,
    /// A JSON-RPC error with this number.
    JsonRpc(i32),
    /// Only the HTTP status: the message never reaches the protocol.
    HttpStatus,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct CodeRow {
    /// The code.
    pub code: Code,
    /// Its name on the wire and the name of its page in `docs/errors/`.
    pub name: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// HTTP status.
    pub http: u16,
    /// Form over MCP.
    pub mcp: McpForm,
    /// Exit code of the command line.
    pub exit: u8,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

/// Every code, in the order of the manual.
pub const CODES: &[CodeRow] = &[
    row(
        Code::InvalidInput,
        "invalid_input",
        "the caller can repair it",
        422,
        McpForm::IsError,
        2,
        false,
    ),
    row(
        Code::NotFound,
        "not_found",
        "no such thing",
        404,
        McpForm::IsError,
        3,
        false,
    ),
    row(
        Code::Conflict,
        "conflict",
        "it changed in the meantime, or exists already",
        409,
        McpForm::IsError,
        4,
        true,
    ),
    row(
        Code::Denied,
        "denied",
        "not permitted, or outside the allowed directories and hosts",
        403,
        McpForm::IsError,
        5,
        false,
    ),
    row(
        Code::Unauthenticated,
        "unauthenticated",
        "no or bad credential",
        401,
        McpForm::HttpStatus,
        5,
        false,
    ),
    row(
        Code::Limited,
        "limited",
        "a limit was reached",
        429,
        McpForm::IsError,
        6,
        true,
    ),
    row(
        Code::TooLarge,
        "too_large",
        "input over a size limit",
        413,
        McpForm::IsError,
        2,
        false,
    ),
    row(
        Code::Timeout,
        "timeout",
        "the deadline passed",
        504,
        McpForm::IsError,
        7,
        true,
    ),
    row(
        Code::Unavailable,
        "unavailable",
        "disk full, store locked, peer gone",
        503,
        McpForm::IsError,
        8,
        true,
    ),
    row(
        Code::Corrupt,
        "corrupt",
        "stored data failed its check",
        500,
        McpForm::IsError,
        9,
        false,
    ),
    row(
        Code::Internal,
        "internal",
        "an internal error",
        500,
        McpForm::JsonRpc(-32603),
        70,
        false,
    ),
];

const fn row(
    code: Code,
    name: &'static str,
    meaning: &'static str,
    http: u16,
    mcp: McpForm,
    exit: u8,
    retryable: bool,
) -> CodeRow {
    CodeRow {
        code,
        name,
        meaning,
        http,
        mcp,
        exit,
        retryable,
    }
}

impl Code {
    /// The row of this code.
    pub const fn row(self) -> &'static CodeRow {
        // The table is in the order of the enum; a test checks that.
        &CODES[self as usize]
    }

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        self.row().name
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error type of all crates.
///
/// `message` is lower case, has no final period and holds the offending value in backticks. It never
/// holds absolute paths, SQL, secrets or another tenant's data.
#[derive(Debug)]
pub struct Error {
    /// What kind of failure.
    pub code: Code,
    /// What happened, for a person.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether something that is required was not given: some contracts tell that from what is given and wrong.
    pub is_missing: bool,
    /// The cause, for the log only.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $code:ident),* $(,)?) => {
        $($(#[$doc])*
        pub fn $name(message: impl Into<String>) -> Self {
            Self::new(Code::$code, message)
        })*
    };
}

/// The longest message, and the longest hint, in characters.
///
/// Both may repeat the caller's input, which can be megabytes long; callers and logs get only the
/// beginning of it.
pub const MESSAGE_CHARS_MAX: usize = 4_000;

fn truncate(mut text: String) -> String {
    // A text has at most as many characters as bytes.
    if text.len() <= MESSAGE_CHARS_MAX {
        return text;
    }
    let n_chars = text.chars().count();
    if n_chars > MESSAGE_CHARS_MAX {
        let n_kept = MESSAGE_CHARS_MAX - 100;
        let end = text
            .char_indices()
            .nth(n_kept)
            .map_or(text.len(), |it| it.0);
        text.truncate(end);
        text += &format!(" … and {} more characters", n_chars - n_kept);
    }
    text
}

impl Error {
    /// An error of any code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: truncate(message.into()),
            hint: None,
            is_missing: false,
            source: None,
        }
    }

    /// The caller did not give something that is required.
    pub fn missing(message: impl Into<String>) -> Self {
        Self {
            is_missing: true,
            ..Self::invalid(message)
        }
    }

    constructors! {
        /// The caller can repair it.
        invalid => InvalidInput,
        /// It changed in the meantime, or exists already.
        conflict => Conflict,
        /// Not permitted, or outside the allowed directories and hosts.
        denied => Denied,
        /// No credential, or a bad one.
        unauthenticated => Unauthenticated,
        /// A limit was reached.
        limited => Limited,
        /// Over a size limit.
        too_large => TooLarge,
        /// The deadline passed.
        timeout => Timeout,
        /// Disk full, store locked, peer gone.
        unavailable => Unavailable,
        /// Stored data failed its check.
        corrupt => Corrupt,
        /// A bug.
        internal => Internal,
    }

    /// ``no belief `b7` ``
    pub fn not_found(what: &str, name: impl fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("no {what} `{name}`"))
    }

    /// Adds the remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(truncate(hint.into()));
        self
    }

    /// Adds the cause. It is logged, never shown.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.code.row().retryable
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source
            .as_deref()
            .map(|it| it as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_finds_its_own_row() {
        for row in CODES {
            assert_eq!(row.code.row().name, row.name);
        }
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test reads the manual's own pages"
    )]
    fn every_code_has_a_page_in_the_manual() {
        let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
        for row in CODES {
            let page = std::fs::read_to_string(format!("{pages}/{}.md", row.name));
            let page = page.unwrap_or_else(|_| panic!("docs/errors/{}.md is missing", row.name));
            assert!(
                page.starts_with(&format!("# `{}`", row.name)),
                "{}: wrong heading",
                row.name
            );
            assert!(
                page.contains(&format!("| HTTP status | {} |", row.http)),
                "{}: HTTP",
                row.name
            );
            assert!(
                page.contains(&format!("| exit code | {} |", row.exit)),
                "{}: exit",
                row.name
            );
        }
    }

    #[test]
    fn a_message_repeats_no_more_than_a_reader_can_use() {
        let fits = "é".repeat(MESSAGE_CHARS_MAX);
        assert_eq!(Error::invalid(fits.clone()).message, fits);
        let error = Error::invalid("é".repeat(MESSAGE_CHARS_MAX + 1)).hint("x".repeat(1_000_000));
        assert!(error.message.ends_with("é … and 101 more characters"));
        let hint = error.hint.unwrap();
        assert!(
            hint.ends_with("x … and 996100 more characters"),
            "{}",
            hint.len()
        );
        assert!(hint.chars().count() <= MESSAGE_CHARS_MAX);
    }
}
