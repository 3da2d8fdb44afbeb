//! Output for people and programs.

use crate::terminal;
use kenning_core::Error;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether only data and errors are shown.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on only data and errors are shown.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Writes data to standard output. A closed reader is not an error: it has what it wanted. Control
/// characters are removed even behind a pipe, because a terminal may follow.
pub(crate) fn print(text: &str) {
    write(&inert(text));
}

/// Writes a text byte for byte.
pub(crate) fn print_raw(text: &str) {
    write(text);
}

fn write(text: &str) {
    let mut out = io::stdout().lock();
    // A closed pipe is how `head` says that it has enough.
    drop(
        out.write_all(text.as_bytes())
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush()),
    );
}

/// Marks around a highlighted part. They cannot occur in stored text: [`brightened`] removes them.
const BRIGHT: char = '\u{f8f0}';
const DULL: char = '\u{f8f1}';

/// The text with every word that begins like one of these marked, to be shown by [`print_bright`].
/// Unchanged if there is no terminal.
pub(crate) fn brightened(text: &str, words: &[String]) -> String {
    if io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()) {
        marked(text, words)
    } else {
        text.to_owned()
    }
}

/// Whether this is a mark of [`brightened`], which has no width.
pub(crate) fn is_mark(c: char) -> bool {
    [BRIGHT, DULL].contains(&c)
}

fn marked(text: &str, words: &[String]) -> String {
    let text: String = text.chars().filter(|&c| !is_mark(c)).collect();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_alphanumeric())
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let lower = word.to_lowercase();
        if !word.is_empty() && words.iter().any(|it| is_form_of(&lower, it)) {
            out.push(BRIGHT);
            out.push_str(word);
            out.push(DULL);
        } else {
            out.push_str(word);
        }
        let next = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    out
}

/// Whether two words differ only in their endings: `deploy`, `deploys` and `deployed`.
fn is_form_of(one: &str, other: &str) -> bool {
    let shared = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    let shared = shared.count();
    let (one, other) = (one.chars().count(), other.chars().count());
    one == other && shared == one || (shared >= 4 && one.max(other) - shared <= 3)
}

/// The words of a query that are worth highlighting.
pub(crate) fn words_of(query: &str) -> Vec<String> {
    const SMALL: [&str; 30] = [
        "the", "a", "an", "and", "or", "of", "to", "in", "on", "at", "is", "are", "was", "were",
        "do", "does", "did", "how", "what", "when", "where", "who", "why", "which", "for", "with",
        "we", "i", "it", "by",
    ];
    let words = query.split(|c: char| !c.is_alphanumeric());
    let words = words.map(str::to_lowercase).filter(|it| !it.is_empty());
    words.filter(|it| !SMALL.contains(&it.as_str())).collect()
}

/// As [`print`], with marked parts highlighted.
pub(crate) fn print_bright(text: &str) {
    if !io::stdout().is_terminal() {
        return print(text);
    }
    let text = inert(text)
        .replace(BRIGHT, "\u{1b}[1m")
        .replace(DULL, "\u{1b}[0m");
    write(&text);
}

/// Writes JSON to standard output.
pub(crate) fn print_json(value: &Value) {
    print(&format!("{value:#}"));
}

/// Tells people, among the data, what was done; not shown with `--json` or `--quiet`.
pub(crate) fn chat(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        print(text);
    }
}

/// Writes a message that is not data.
pub(crate) fn say(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        complain(text);
    }
}

/// Writes a remark of a tool or the engine.
pub(crate) fn remark(text: &str) {
    say(&terminal::words(text));
}

/// Writes an error, even with `--quiet`.
pub(crate) fn complain(text: &str) {
    // If standard error is closed there is nobody to tell.
    drop(writeln!(io::stderr(), "{}", inert(text)));
}

/// Shows an error and returns its exit code.
pub fn print_error(error: &Error, as_json: bool) -> u8 {
    let row = error.code.row();
    let message = terminal::words(&error.message);
    let hint = error.hint.as_deref().map(terminal::words);
    if as_json {
        complain(
            &json!({ "error": {
                "code": row.name, "message": message, "hint": hint, "retryable": row.retryable,
            }})
            .to_string(),
        );
    } else {
        complain(&format!("error: {message}"));
        if let Some(hint) = hint {
            complain(&format!("\nhint: {hint}"));
        }
    }
    row.exit
}

/// Shows clap's own message: help and version are data, the rest is an error.
pub(crate) fn print_usage(usage: &clap::Error, typed: &[OsString]) -> u8 {
    // It repeats what was typed.
    let text = inert(&without_environment(&usage.render().to_string(), typed));
    // As above: a closed pipe is not an error.
    drop(match usage.use_stderr() {
        true => io::stderr().write_all(text.as_bytes()),
        false => io::stdout().write_all(text.as_bytes()),
    });
    if usage.use_stderr() {
        kenning_core::Code::InvalidInput.row().exit
    } else {
        0
    }
}

/// clap treats values from the environment as typed, and shows them as if they were required.
fn without_environment(text: &str, typed: &[OsString]) -> String {
    const OF_ENVIRONMENT: [(&str, &str); 8] = [
        ("--data", "DIR"),
        ("--database", "URL"),
        ("--database-ca", "FILE"),
        ("--vault", "DIR"),
        ("--omi-path", "DIR"),
        ("--project", "DIR"),
        ("--space", "NAME"),
        ("--toolsets", "NAMES"),
    ];
    let is_typed = |flag: &str| {
        let same = |it: &OsString| it.to_string_lossy().split('=').next() == Some(flag);
        typed.iter().any(same)
    };
    let mut lines: Vec<String> = text.split('\n').map(ToOwned::to_owned).collect();
    for line in lines.iter_mut().filter(|it| it.contains("Usage:")) {
        for (flag, value) in OF_ENVIRONMENT.iter().filter(|it| !is_typed(it.0)) {
            *line = line.replace(&format!(" {flag} <{value}>"), "");
        }
    }
    lines.join("\n")
}

/// Removes control characters from stored text: they could move the cursor or retitle the terminal,
/// and invisible direction marks could make a line read as another.
fn inert(text: &str) -> String {
    let harmful = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(u32::from(c), 0x202a..=0x202e | 0x2066..=0x2069 | 0xe0000..=0xe007f)
    };
    let mut rest = text.chars().peekable();
    let mut shown = String::with_capacity(text.len());
    while let Some(c) = rest.next() {
        // A carriage return before a line feed is harmless.
        let ends_line = c == '\r' && rest.peek() == Some(&'\n');
        shown.push(match harmful(c) && !ends_line {
            true => '\u{fffd}',
            false => c,
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_were_asked_for_are_marked_in_any_form() {
        let words = words_of("When do we deploy to the harbor?");
        assert_eq!(words, ["deploy", "harbor"]);
        let shown = marked("Deploys, to harbors; the har\u{f8f0}bor.", &words);
        let shown = shown.replace(BRIGHT, "<").replace(DULL, ">");
        assert_eq!(shown, "<Deploys>, to <harbors>; the <harbor>.");
        assert!(!is_form_of("cat", "car") && !is_form_of("cache", "cactus"));
        // Marks survive this filter, and nothing else does.
        assert_eq!(inert("\u{f8f0}\u{1b}[2J"), "\u{f8f0}\u{fffd}[2J");
    }

    #[test]
    fn a_usage_line_needs_nothing_that_the_environment_says() {
        let usage = "error: no\n\nUsage: kenning omi store --data <DIR> --space <NAME> <CONTENT>\n";
        let typed = ["kenning", "--space=x", "omi", "store"].map(OsString::from);
        let shown = without_environment(usage, &typed);
        assert_eq!(
            shown,
            "error: no\n\nUsage: kenning omi store --space <NAME> <CONTENT>\n"
        );
    }

    #[test]
    fn stored_text_cannot_command_a_terminal() {
        let text = "a\u{1b}[2Jb\u{202e}c\rd\ne\tf\u{9b}31m";
        assert_eq!(
            inert(text),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\ne\tf\u{fffd}31m"
        );
        assert_eq!(inert("a\r\nb\r\r\n"), "a\r\nb\u{fffd}\r\n");
    }
}
