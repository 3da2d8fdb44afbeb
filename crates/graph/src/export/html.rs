//! One self-contained page: data, script and style are in it, and it loads nothing.
//!
//! The content of documents is data in a block that no browser runs, and the script shows it as text.
//! The page's content security policy names its own script and style by their hashes, so nothing else
//! runs there.

use super::{Picture, json};

/// The page, with placeholders for its title and its data.
const PAGE: &str = include_str!("../../assets/graph.html");

/// An interactive page that shows the graph.
#[must_use]
pub fn html(picture: &Picture, title: &str) -> String {
    let (head, rest) = PAGE.split_once("{{title}}").unwrap_or((PAGE, ""));
    let (body, tail) = rest.split_once("{{data}}").unwrap_or((rest, ""));
    let title: String = title.chars().map(visible).collect();
    let title = title
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    // In a JSON string, the only place where `<` occurs, the escape means the same.
    let data = json(picture).to_string().replace('<', "\\u003c");
    [head, &title, body, &data, tail].concat()
}

fn visible(it: char) -> char {
    if it.is_control() { ' ' } else { it }
}
