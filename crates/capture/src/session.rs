//! A session as far as it matters here: who said what, and which tools were called with which result.

use crate::secrets;
use kenning_text::line::dotted;

/// The most characters that are kept of one text. What a person writes by hand is shorter.
const TEXT_CHARS_MAX: usize = 16_000;

/// The most characters that are kept of a tool's result: errors are at its beginning or its end.
const RESULT_CHARS_MAX: usize = 4_000;

/// The most turns of a session. Of longer ones the beginning and the end are kept.
pub(crate) const TURNS_MAX: usize = 4_000;

/// A session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The client's name for it.
    pub id: Option<String>,
    /// The directory that it worked in.
    pub cwd: Option<String>,
    /// In order.
    pub turns: Vec<Turn>,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The client, which summarized what was said before.
    Summary,
}

/// One step of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something was said.
    Said {
        /// By whom.
        by: Speaker,
        /// Without private parts and secrets.
        text: String,
        /// When, as the client wrote it.
        at: Option<String>,
    },
    /// A tool was called.
    Called(Call),
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The command line, if it ran one.
    pub command: Option<String>,
    /// The files that it wrote.
    pub files: Vec<String>,
    /// What came back.
    pub result: String,
    /// Whether it failed; `None` while there is no result.
    pub failed: Option<bool>,
    /// When, as the client wrote it.
    pub at: Option<String>,
}

/// A text as it may be kept: without private parts, without what a client put between, without secrets, and bounded.
pub fn clean(text: &str) -> String {
    let text = secrets::without_private(text).unwrap_or_else(|| text.to_owned());
    // Cut before secrets are looked for, so that a long text costs no more than a short one; a secret that is cut in
    // half is dropped with the cut.
    let text = bounded(&text, TEXT_CHARS_MAX);
    secrets::redacted(&text)
}

impl Session {
    /// Adds what a client says was said last, unless the transcript has it already.
    pub fn add(&mut self, by: Speaker, text: &str) {
        let new = clean(text);
        let is_there = self
            .turns
            .iter()
            .rev()
            .take(20)
            .any(|turn| matches!(turn, Turn::Said { text, .. } if *text == new.trim()));
        if !is_there {
            self.say(by, text, None);
        }
    }

    pub(crate) fn say(&mut self, by: Speaker, text: &str, at: Option<&str>) {
        let text = clean(text);
        if !text.trim().is_empty() {
            self.turns.push(Turn::Said {
                by,
                text: text.trim().to_owned(),
                at: at.map(ToOwned::to_owned),
            });
        }
    }

    pub(crate) fn call(&mut self, command: Option<&str>, files: Vec<String>, at: Option<&str>) {
        self.turns.push(Turn::Called(Call {
            command: command.map(|it| clean(it).trim().to_owned()),
            files: files.iter().map(|it| secrets::redacted(it)).collect(),
            at: at.map(ToOwned::to_owned),
            ..Call::default()
        }));
    }

    /// The result of the call at this place.
    pub(crate) fn result(&mut self, at: usize, text: &str, failed: bool) {
        if let Some(Turn::Called(call)) = self.turns.get_mut(at) {
            let text = secrets::without_private(text).unwrap_or_else(|| text.to_owned());
            call.result = secrets::redacted(&both_ends(&text, RESULT_CHARS_MAX));
            call.failed = Some(failed);
        }
    }

    /// Keeps the beginning and the end of a session that is too long.
    pub(crate) fn shorten(&mut self) {
        if self.turns.len() > TURNS_MAX {
            let end = self.turns.len() - TURNS_MAX / 2;
            self.turns.drain(TURNS_MAX / 2..end);
        }
    }
}

/// The beginning of a text, without the word that the cut goes through.
fn bounded(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => {
            let part = &text[..end];
            let whole = part.rfind(char::is_whitespace).unwrap_or(0);
            part[..whole].to_owned()
        }
    }
}

/// The beginning and the end of a text.
fn both_ends(text: &str, chars_max: usize) -> String {
    let n = text.chars().count();
    if n <= chars_max {
        return text.to_owned();
    }
    let start = bounded(text, chars_max / 2);
    let skip = text.char_indices().nth(n - chars_max / 2);
    let end = skip.map_or("", |it| &text[it.0..]);
    // The first word of the end may be half of a secret.
    let end = end.split_once(char::is_whitespace).map_or("", |it| it.1);
    format!("{start}\n{end}")
}

/// A text in one line, cut at so many characters.
pub(crate) fn short(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    dotted(&line, chars_max)
}
