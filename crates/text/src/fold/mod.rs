//! Texts without what people spell differently.
//!
//! There are three ways, because three things are compared:
//!
//! - [`name`]: names of people and organizations. Accents and marks between words go, legal symbols go, `&` is
//!   `and`; what makes another name stays.
//! - [`title`]: titles of documents. Accents stay, since `a` and `á` are two documents.
//! - [`word`]: single words of a text that is searched or embedded. Nothing but letters and marks comes in.

mod name;
mod title;
mod word;

pub use name::{name, name_in_two_letters, spellings};
pub use title::title;
pub use word::{Marks, word, word_into};
