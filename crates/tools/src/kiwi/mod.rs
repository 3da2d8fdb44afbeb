//! Kiwi: directives, tools and knowledge items, and through them every other tool.

mod execute;
mod help;
mod load;
mod search;
mod words;

pub use execute::Execute;
pub use help::{API_VERSION, Help, TOPICS, Topic};
pub use load::Load;
pub use search::Search;
