//! One page that stands alone: data, script and style are in it, and it loads nothing.
//!
//! What documents say is data in a block that no browser runs, and the script puts it on the page as text.
//! The page's policy names its own script and style by their hashes, so nothing else runs there.

use super::{Picture, json};

/// The page, with a place for its title and one for its data.
const PAGE: &str = include_str!("../../assets/graph.html");

/// A page on which the picture can be looked at, searched and moved.
#[must_use]
pub fn html(picture: &Picture, title: &str) -> String {
    let (head, rest) = PAGE.split_once("{{title}}").unwrap_or((PAGE, ""));
    let (body, tail) = rest.split_once("{{data}}").unwrap_or((rest, ""));
    let title: String = title.chars().map(visible).collect();
    let title = title
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    // In a text of JSON, and `<` stands nowhere else, the escape means the same.
    let data = json(picture).to_string().replace('<', "\\u003c");
    [head, &title, body, &data, tail].concat()
}

fn visible(it: char) -> char {
    if it.is_control() { ' ' } else { it }
}
