//! The rules for names.
//!
//! The rules keep names plain and errors helpful. They do not keep a name inside the directory:
//! the kernel does.

use kenning_core::{Error, Result};

/// The longest name of one file or directory, as on every common file system.
const COMPONENT_BYTES_MAX: usize = 255;
/// The longest whole name.
const NAME_BYTES_MAX: usize = 4096;
/// The deepest name.
const DEPTH_MAX: usize = 64;
/// How much of an offending name a message repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// The end of a file that is still being written. Such files are never listed and cannot be named.
pub(crate) const TEMP_SUFFIX: &str = ".kenning-tmp";

/// A relative name that obeys the rules, in its plain form: `./a//x/../b.md` is `a/b.md`.
///
/// `..` is taken back by the text, as in a Markdown link, so that one file has one plain name; a name
/// that would leave the directory is denied. Everything else is literal: `~` is a directory called
/// `~`, `%2e%2e` is a directory called `%2e%2e`, Unicode is used as given without any normal form, and
/// `CON` or a trailing dot or space mean nothing special.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    plain: String,
    /// The text ended like `a/` or `a/.`, which only a directory can be called.
    must_be_dir: bool,
}

impl Name {
    /// Checks a name and brings it into its plain form.
    pub fn parse(text: &str) -> Result<Self> {
        check_text(text)?;
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        return Err(Error::denied(format!("`{}` leads outside", shown(text)))
                            .hint(RELATIVE));
                    }
                }
                _ => {
                    check_part(text, part)?;
                    parts.push(part);
                    if parts.len() > DEPTH_MAX {
                        return Err(Error::invalid(format!(
                            "`{}` is nested too deeply",
                            shown(text)
                        ))
                        .hint(format!("at most {DEPTH_MAX} levels")));
                    }
                }
            }
        }
        let plain = parts.join("/");
        // `./C:` would be a file whose plain name is refused.
        if has_drive_letter(&plain) {
            let why = format!("`{}` begins with a drive letter", shown(text));
            return Err(Error::invalid(why).hint(RELATIVE));
        }
        let last = text.rsplit('/').next().unwrap_or_default();
        Ok(Self {
            plain,
            must_be_dir: matches!(last, "" | "." | ".."),
        })
    }

    /// The plain form. The root itself is empty.
    pub fn as_str(&self) -> &str {
        &self.plain
    }

    /// The last part: what the file is called in its directory.
    pub fn last(&self) -> &str {
        self.plain.rsplit('/').next().unwrap_or_default()
    }

    /// A name of something beneath the root, not of the root itself.
    pub(crate) fn parse_beneath(text: &str) -> Result<Self> {
        let name = Self::parse(text)?;
        if name.plain.is_empty() {
            return Err(Error::invalid(format!(
                "`{}` is the directory itself",
                shown(text)
            )));
        }
        Ok(name)
    }

    /// A name that can be a file's.
    pub(crate) fn parse_file(text: &str) -> Result<Self> {
        let name = Self::parse_beneath(text)?;
        if name.must_be_dir {
            return Err(
                Error::invalid(format!("`{}` cannot be the name of a file", shown(text)))
                    .hint("leave out the `/` or `.` at the end"),
            );
        }
        Ok(name)
    }

    pub(crate) fn must_be_dir(&self) -> bool {
        self.must_be_dir
    }

    /// The path for the kernel.
    pub(crate) fn as_path(&self) -> &std::path::Path {
        std::path::Path::new(if self.plain.is_empty() {
            "."
        } else {
            &self.plain
        })
    }

    /// Whether a name found in a directory obeys the rules.
    pub(crate) fn is_valid_entry(found: &str) -> bool {
        check_text(found).is_ok() && check_part(found, found).is_ok()
    }
}

const RELATIVE: &str = "names are relative to the directory, such as `notes/today.md`";

fn check_text(text: &str) -> Result<()> {
    let fault = if text.is_empty() {
        return Err(Error::invalid("the name is empty").hint(RELATIVE));
    } else if text.len() > NAME_BYTES_MAX {
        "is too long"
    } else if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        "contains a control character"
    } else if text.starts_with('/') {
        "is absolute"
    } else if text.contains('\\') {
        // On Linux this would be a legal file name, but the caller meant a path of another system.
        "contains a backslash"
    } else if has_drive_letter(text) {
        "begins with a drive letter"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("`{}` {fault}", shown(text))).hint(RELATIVE))
}

fn check_part(text: &str, part: &str) -> Result<()> {
    if part.len() > COMPONENT_BYTES_MAX {
        return Err(Error::invalid(format!("`{}` is too long", shown(text)))
            .hint(format!("at most {COMPONENT_BYTES_MAX} bytes a level")));
    }
    if is_temp(part) {
        return Err(
            Error::invalid(format!("`{}` is a reserved name", shown(text))).hint(format!(
                "dot files in `{TEMP_SUFFIX}` are unfinished writes"
            )),
        );
    }
    Ok(())
}

fn has_drive_letter(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|it| it.is_ascii_alphabetic()) && bytes.next() == Some(b':')
}

/// Whether a file is one of ours that is still being written, or was when the power went.
pub(crate) fn is_temp(part: &str) -> bool {
    part.starts_with('.') && part.ends_with(TEMP_SUFFIX)
}

/// A name as a message shows it: one line, not endless.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == SHOWN_CHARS_MAX {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::Code;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, Code>) {
        let got = Name::parse(text);
        let got = got.as_ref().map(Name::as_str).map_err(|error| error.code);
        assert_eq!(got, expected, "{text:?}");
    }

    #[test]
    fn a_plain_name_is_itself_and_dots_inside_are_taken_back() {
        check("a/b.md", Ok("a/b.md"));
        check("./a/b.md", Ok("a/b.md"));
        check("a//b.md", Ok("a/b.md"));
        check("a/../b.md", Ok("b.md"));
        check("a/b/../../c", Ok("c"));
        check("a/..", Ok(""));
        check(".", Ok(""));
    }

    #[test]
    fn a_plain_name_can_be_said() {
        for text in ["./C:", "a/../C:x", "././d:/e"] {
            check(text, Err(Code::InvalidInput));
        }
        check("./a/C:", Ok("a/C:"));
    }

    #[test]
    fn a_name_that_leaves_is_denied() {
        for text in ["..", "../x", "a/../../x", "./..", "a/b/../../../x"] {
            check(text, Err(Code::Denied));
        }
    }

    #[test]
    fn what_only_looks_like_a_path_elsewhere_is_literal() {
        for text in [
            "~/x",
            "~root/x",
            "%2e%2e/x",
            "%252e%252e/x",
            "．．/x",
            "...",
            "....//x",
            "a. ",
            "CON",
            "note.md:stream",
            "-rf",
            "$HOME/x",
            "..a",
            "a..",
        ] {
            check(text, Ok(&text.replace("//", "/")));
        }
    }

    #[test]
    fn what_cannot_be_a_name_is_invalid() {
        for text in [
            "",
            "/",
            "/etc/passwd",
            "//x",
            "a\0b",
            "a\nb",
            "a\x7f",
            "a\\b",
            "..\\x",
            "C:\\x",
            "c:x",
            "C:/x",
            "\\\\server\\share",
            ".0123.kenning-tmp",
            "a/.x.kenning-tmp",
        ] {
            check(text, Err(Code::InvalidInput));
        }
    }

    #[test]
    fn the_limits_are_exact() {
        let part = "x".repeat(COMPONENT_BYTES_MAX);
        check(&part, Ok(&part));
        check(&format!("{part}x"), Err(Code::InvalidInput));
        let deep = vec!["d"; DEPTH_MAX].join("/");
        check(&deep, Ok(&deep));
        check(&format!("{deep}/d"), Err(Code::InvalidInput));
        let long = "a/../".repeat(1000);
        check(long.get(..NAME_BYTES_MAX).unwrap(), Ok("a"));
        check(
            long.get(..=NAME_BYTES_MAX).unwrap(),
            Err(Code::InvalidInput),
        );
    }

    #[test]
    fn only_a_directory_ends_in_a_slash() {
        for text in ["a/", "a/.", "a/b/..", "a//"] {
            let error = Name::parse_file(text).unwrap_err();
            assert_eq!(error.code, Code::InvalidInput, "{text}");
            assert!(Name::parse_beneath(text).is_ok(), "{text}");
        }
        for text in [".", "a/..", "./"] {
            let error = Name::parse_beneath(text).unwrap_err();
            assert_eq!(error.code, Code::InvalidInput, "{text}");
        }
    }

    #[test]
    fn a_message_shows_one_short_line() {
        let error = Name::parse(&format!("a\nb{}", "x".repeat(5000))).unwrap_err();
        assert!(error.message.len() < 120, "{}", error.message);
        assert!(!error.message.contains('\n'));
        let error = Name::parse("a\0b").unwrap_err();
        assert_eq!(error.message, "`a\\u{0}b` contains a control character");
    }
}
