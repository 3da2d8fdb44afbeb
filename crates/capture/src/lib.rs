//! What is worth remembering of a session, from its transcript alone.
//!
//! A transcript is text that strangers wrote: a person, a model, and whatever programs printed. [`read`] makes a
//! [`Session`] of it, in which marked private parts are gone and secrets are replaced ([`secrets`]), and [`extract`]
//! finds in it what was said in so many words and what happened. No model is asked, nothing is opened, and there is
//! no clock: equal transcripts give equal candidates.
//!
//! Reading order: `session`, then one of `forms`, then `statements`, `trouble` and `summary`.

mod candidate;
mod extract;
mod forms;
pub mod imports;
mod secret_words;
pub mod secrets;
mod sentences;
mod session;
mod statements;
mod summary;
mod trouble;

pub use candidate::{Candidate, CandidateKind};
pub use extract::{CANDIDATES_MAX, extract};
pub use forms::{TRANSCRIPT_BYTES_MAX, read};
pub use session::{Call, Session, Speaker, Turn, clean};

/// A text without the parts that its author marked as private; `None` if it has none. A part that does not end goes on
/// to the end.
pub fn without_private(text: &str) -> Option<String> {
    secrets::without_private(text)
}
