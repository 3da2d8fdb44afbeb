//! Plain text: a line that begins with the name of a speaker and a colon begins what that one says.

use crate::{Session, Speaker};

const USERS: [&str; 5] = ["user", "human", "you", "me", "nutzer"];
const ASSISTANTS: [&str; 7] = [
    "assistant",
    "claude",
    "codex",
    "gemini",
    "ai",
    "model",
    "agent",
];

/// A text without speakers is said by the user.
pub(super) fn read(text: &str) -> Session {
    let mut session = Session::default();
    let (mut by, mut said) = (Speaker::User, String::new());
    for line in text.lines() {
        if let Some((next, rest)) = speaker(line) {
            session.say(by, &said, None);
            (by, said) = (next, rest.to_owned());
        } else {
            said.push('\n');
            said.push_str(line);
        }
    }
    session.say(by, &said, None);
    session
}

/// `User: …`, `**Assistant:** …`, `## Human: …`
fn speaker(line: &str) -> Option<(Speaker, &str)> {
    let bare = line.trim_start_matches(['#', '*', '>', ' ', '[']);
    let (name, rest) = bare.split_once(':')?;
    let name = name.trim_end_matches(['*', ']', ' ']).to_lowercase();
    let rest = rest.trim_start_matches(['*', ' ']);
    if USERS.contains(&name.as_str()) {
        return Some((Speaker::User, rest));
    }
    ASSISTANTS
        .contains(&name.as_str())
        .then_some((Speaker::Assistant, rest))
}
