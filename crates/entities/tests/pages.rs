//! Saved pages of many kinds, and what must and must not be read from them.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests fail and tell as tests do"
)]

use kenning_entities::page::{Page, read};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

const EXPECTED: &str = include_str!("../../../testing/pages/expected.json");

macro_rules! pages {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../testing/pages/", $name, ".html")))),*]
    };
}

const PAGES: &[(&str, &str)] = pages![
    "blog",
    "broken",
    "cjk",
    "code",
    "docs",
    "docs-by-hand",
    "docs-docbook-sgml",
    "docs-docbook-xml",
    "docs-gtk-doc",
    "docs-mdbook",
    "docs-mdbook-playground",
    "docs-node",
    "docs-rustdoc",
    "docs-table-layout",
    "docs-texinfo",
    "forum",
    "list",
    "news",
    "rtl",
    "script",
    "table",
];

/// Pages on which the flat summary has words that readers are spared: navigation that only its role marks,
/// buttons, and readings of characters.
const SUMMARY_SAYS_MORE: &[&str] = &["cjk", "docs", "docs-rustdoc"];

fn expected() -> Map<String, Value> {
    serde_json::from_str(EXPECTED).unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    let values = value.as_array().unwrap();
    values.iter().map(|it| it.as_str().unwrap()).collect()
}

/// What a page says of itself, without what it does not say.
fn metadata(page: &Page) -> Value {
    let it = &page.metadata;
    let all = json!({
        "title": it.title, "description": it.description, "author": it.author, "published": it.published,
        "canonical": it.canonical, "language": it.language, "image": it.image, "site_name": it.site_name,
        "keywords": it.keywords,
    });
    let said = all.as_object().unwrap().clone().into_iter();
    let said =
        said.filter(|(_, it)| !it.is_null() && it.as_array().is_none_or(|it| !it.is_empty()));
    Value::Object(said.collect())
}

#[test]
fn readers_get_what_a_page_is_about_and_nothing_around_it() {
    let expected = expected();
    assert!(PAGES.len() >= 21 && PAGES.len() == expected.len());
    for (name, html) in PAGES {
        assert!(html.len() < 60_000, "{name}");
        let page = read(html);
        for text in texts(&expected[*name]["has"]) {
            assert!(
                page.text.contains(text),
                "{name} has {text:?}:\n{}",
                page.text
            );
        }
        for text in texts(&expected[*name]["lacks"]) {
            assert!(
                !page.text.contains(text),
                "{name} lacks {text:?}:\n{}",
                page.text
            );
        }
        assert!(!page.is_truncated);
        assert!(
            page.text.starts_with('#') || page.text.contains("\n# "),
            "{name}: {}",
            page.text
        );
    }
}

#[test]
fn a_page_says_who_wrote_it_when_and_where() {
    let expected = expected();
    for (name, html) in PAGES {
        assert_eq!(metadata(&read(html)), expected[*name]["metadata"], "{name}");
    }
}

#[test]
fn readers_miss_no_word_of_the_summary() {
    for (name, html) in PAGES {
        let page = read(html);
        let words = |text: &str| -> HashSet<String> {
            let words = text.split(|it: char| !it.is_alphanumeric());
            words
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let (title, lines) = page.summary.split_once("\n\n").unwrap();
        assert!(title.starts_with("# "), "{name}");
        let read = words(&page.text);
        let missed: Vec<String> = words(lines)
            .into_iter()
            .filter(|it| !read.contains(it))
            .collect();
        let says_more = SUMMARY_SAYS_MORE.contains(name);
        assert_eq!(!missed.is_empty(), says_more, "{name}: {missed:?}");
    }
}

#[test]
fn readers_get_what_the_summary_loses() {
    let of = |wanted: &str| read(PAGES.iter().find(|it| it.0 == wanted).unwrap().1);
    for (name, lost) in [
        ("table", "2.6 m at 04:10"),
        ("code", "return count;"),
        ("forum", "Use galvanized steel"),
        ("broken", "Walt Ostrander"),
        ("news", "By Marisol Okafor"),
    ] {
        let page = of(name);
        assert!(page.text.contains(lost), "{name}");
        assert!(!page.summary.contains(lost), "{name}");
    }
}

#[test]
fn no_text_is_too_strange_to_be_read() {
    for html in [
        "",
        " ",
        "plain text",
        "\0",
        "<",
        "<!",
        "<![CDATA[x]]>",
        "&#0;&#x110000;",
        "<p",
        "</html><p>x",
    ] {
        let page = read(html);
        assert!(!page.is_truncated, "{html:?}");
    }
    assert_eq!(read("plain text").text, "plain text");
    assert_eq!(
        read("<nav>only navigation here</nav>").text,
        "only navigation here"
    );
    let deep = format!("{}deep{}", "<div>".repeat(300), "</div>".repeat(300));
    assert_eq!(read(&deep).text, "deep");
}
