//! What the three vault tools share: the contract's error texts.

use kenning_core::{Code, Error};
use kenning_text::line::dotted;

/// `File not found: …`, `Path traversal rejected: …`; any other invalid name is reported for `field`.
pub(super) fn in_contract_words(error: Error, absent: &str, field: &str, path: &str) -> Error {
    let leads_elsewhere = path.starts_with(['/', '\\']) || path.get(1..3) == Some(":\\");
    let (code, text) = match error.code {
        Code::NotFound => (Code::NotFound, absent),
        // Not every refusal is about the path: a permission may be missing, or the vault.
        Code::Denied if error.message.ends_with("leads outside") => {
            (Code::Denied, "Path traversal rejected")
        }
        Code::InvalidInput if leads_elsewhere => (Code::Denied, "Path traversal rejected"),
        Code::InvalidInput => {
            let message = format!("`{field}`: {}", error.message);
            return Error { message, ..error };
        }
        _ => return error,
    };
    let hint = error.hint.clone();
    let mut error = Error::new(code, format!("{text}: {}", one_line(path))).because(error);
    error.hint = hint;
    error
}

/// What cannot be read in a note's frontmatter, as a remark beside the reply.
pub(super) fn frontmatter_fault(path: &str, text: &str) -> Option<String> {
    kenning_engine::koi::frontmatter_fault(&one_line(path), text)
}

/// A path in a message: one line, not too long.
fn one_line(path: &str) -> String {
    let plain = |c: char| if c.is_control() { '?' } else { c };
    dotted(path, 200).chars().map(plain).collect()
}
