//! What the target of a link means: a document, a place in it, or nothing in the graph.

use kenning_text::line::one_line;
use kenning_text::percent::{self, Stray};
use std::borrow::Cow;

/// Longer than any file name; such a target is ignored.
const BYTES_MAX: usize = 1_024;

/// Extensions of Markdown files.
pub(crate) const MARKDOWN: [&str; 3] = ["md", "markdown", "mdx"];

/// Files that a page can show or offer but that are not documents. In a wikilink only these are
/// distinguished from names such as `Node.js`.
const ATTACHMENTS: &[&str] = &[
    "aac", "apng", "avi", "avif", "base", "bmp", "canvas", "csv", "doc", "docx", "epub", "flac",
    "gif", "gz", "heic", "ico", "jpeg", "jpg", "json", "m4a", "mkv", "mov", "mp3", "mp4", "odt",
    "ogg", "ogv", "opus", "pdf", "png", "ppt", "pptx", "svg", "tar", "tif", "tiff", "toml", "tsv",
    "txt", "wav", "webm", "webp", "xls", "xlsx", "xml", "yaml", "yml", "zip",
];

/// Schemes that are written without two slashes.
const BARE_SCHEMES: &[&str] = &[
    "mailto",
    "tel",
    "data",
    "javascript",
    "obsidian",
    "urn",
    "sms",
    "about",
];

/// A document by name or path, and a place in it.
#[derive(Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) path: String,
    pub(crate) fragment: Option<String>,
    /// Whether it looks like the name of a document. `config.v1` may be one, `lib.rs` probably not.
    pub(crate) is_page: bool,
}

/// The target of `[[raw]]` or `![[raw]]`.
pub(crate) fn of_wikilink(raw: &str, is_embed: bool) -> Option<Target> {
    // In a table the bar before the alias is escaped.
    let raw = raw.trim().trim_end_matches('\\');
    if raw.len() > BYTES_MAX || is_address(raw) {
        return None;
    }
    let (path, fragment) = match raw.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment)),
        None => match block_start(raw) {
            Some(at) => (&raw[..at], Some(&raw[at..])),
            None => (raw, None),
        },
    };
    let path = if path.contains("%20") {
        decoded(path)
    } else {
        Cow::Borrowed(path)
    };
    let counts = match extension(&path) {
        None => true,
        Some(it) if is_one_of(it, &MARKDOWN) => true,
        Some(it) => !is_embed && !is_one_of(it, ATTACHMENTS),
    };
    if !counts {
        return None;
    }
    target(&path, fragment.map(Cow::Borrowed), true)
}

/// The target of `[text](raw)` or `![text](raw)`.
pub(crate) fn of_markdown(raw: &str, is_image: bool) -> Option<Target> {
    let raw = raw.trim();
    if raw.len() > BYTES_MAX || raw.starts_with("//") || scheme(raw).is_some() {
        return None;
    }
    let (path, fragment) = raw
        .split_once('#')
        .map_or((raw, None), |(path, fragment)| (path, Some(fragment)));
    let path = path.split('?').next().unwrap_or_default();
    let path = decoded(path);
    let ending = extension(&path);
    let is_markdown = ending.is_some_and(|it| is_one_of(it, &MARKDOWN));
    if is_image && ending.is_none() {
        return None;
    }
    let is_page = is_markdown || ending.is_none();
    target(&path, fragment.map(decoded), is_page)
}

/// The anchor that a link within its own page names: `#here`. Wikilinks are not percent-decoded.
pub(crate) fn within(raw: &str, is_wiki: bool) -> Option<String> {
    let place = raw.trim().strip_prefix('#')?;
    if place.len() > BYTES_MAX {
        return None;
    }
    let place = match is_wiki {
        true => Cow::Borrowed(place),
        false => decoded(place),
    };
    let place = place.trim();
    (!place.is_empty()).then(|| place.to_owned())
}

/// Whether the parentheses after `[[text]]` hold a destination and not a remark: it has a folder, an
/// extension, an anchor or a scheme.
pub(crate) fn is_destination(raw: &str) -> bool {
    raw.contains('/') || raw.starts_with('#') || scheme(raw).is_some() || extension(raw).is_some()
}

/// Whether a path has the extension of a Markdown file.
pub(crate) fn is_markdown(path: &str) -> bool {
    extension(path).is_some_and(|it| is_one_of(it, &MARKDOWN))
}

/// Whether a name in the frontmatter is written as a path from the file.
pub(crate) fn is_path(name: &str) -> bool {
    name.starts_with("./") || name.starts_with("../") || name.starts_with('/') || is_markdown(name)
}

/// Without the extension of a Markdown file.
pub(crate) fn without_extension(path: &str) -> &str {
    match path.rsplit_once('.') {
        Some((stem, it)) if is_one_of(it, &MARKDOWN) => stem,
        _ => path,
    }
}

fn target(path: &str, fragment: Option<Cow<'_, str>>, is_page: bool) -> Option<Target> {
    let path = one_line(path);
    if path.is_empty() {
        return None;
    }
    let fragment = fragment.map(|it| it.trim().to_owned());
    Some(Target {
        path,
        fragment: fragment.filter(|it| !it.is_empty()),
        is_page,
    })
}

/// Where the `^` of `page^block` stands.
fn block_start(raw: &str) -> Option<usize> {
    let (_, block) = raw.rsplit_once('^')?;
    let is_id = !block.is_empty() && block.chars().all(|c| c.is_alphanumeric() || c == '-');
    is_id.then(|| raw.len() - block.len() - 1)
}

/// Whether a wikilink is a URL: `Note: a title` is not.
fn is_address(raw: &str) -> bool {
    raw.starts_with("//")
        || scheme(raw).is_some_and(|scheme| {
            raw[scheme.len() + 1..].starts_with("//") || is_one_of(scheme, BARE_SCHEMES)
        })
}

fn scheme(raw: &str) -> Option<&str> {
    let (scheme, _) = raw.split_once(':')?;
    let is_scheme = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then_some(scheme)
}

/// The extension of a file name. `release-1.2` and `Mr. Smith` have none.
fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    let is_extension = !stem.is_empty()
        && (1..=10).contains(&extension.len())
        && extension.chars().all(|it| it.is_ascii_alphanumeric())
        && extension.chars().any(|it| it.is_ascii_alphabetic());
    is_extension.then_some(extension)
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|it| it.eq_ignore_ascii_case(word))
}

/// Percent-decoded, unless the result is not valid text.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    percent::decoded(text, Stray::Keep).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case<'a> = (&'a str, Option<(&'a str, Option<&'a str>)>);

    fn check(of: impl Fn(&str) -> Option<Target>, cases: &[Case<'_>]) {
        for (raw, expected) in cases {
            let found = of(raw);
            let found = found.as_ref().map(|it| (&*it.path, it.fragment.as_deref()));
            assert_eq!(found, *expected, "{raw:?}");
        }
    }

    #[test]
    fn a_wikilink_names_a_page_and_a_place_in_it() {
        check(
            |it| of_wikilink(it, false),
            &[
                ("page", Some(("page", None))),
                (" page ", Some(("page", None))),
                ("page#A heading", Some(("page", Some("A heading")))),
                ("page#^block", Some(("page", Some("^block")))),
                ("page^block-1", Some(("page", Some("^block-1")))),
                ("page#", Some(("page", None))),
                ("a#b#c", Some(("a", Some("b#c")))),
                ("2^ 3", Some(("2^ 3", None))),
                ("folder/page.md", Some(("folder/page.md", None))),
                ("page\\", Some(("page", None))),
                ("a\nb", Some(("a b", None))),
                ("a%20b", Some(("a b", None))),
                ("100%25", Some(("100%25", None))),
                ("Node.js", Some(("Node.js", None))),
                ("release-1.2", Some(("release-1.2", None))),
                ("Note: a title", Some(("Note: a title", None))),
                ("日本#語", Some(("日本", Some("語")))),
                ("#heading", None),
                ("^block", None),
                ("", None),
                (" ", None),
                ("picture.PNG", None),
                ("board.canvas", None),
                ("https://example.org/a", None),
                ("mailto:a@example.org", None),
                ("obsidian:open", None),
                ("//host/a", None),
                (&"x".repeat(2_000), None),
            ],
        );
    }

    #[test]
    fn a_link_within_its_page_names_a_place() {
        for (raw, is_wiki, expected) in [
            ("#here", false, Some("here")),
            ("#%C3%BCber-uns", false, Some("über-uns")),
            ("#A heading", true, Some("A heading")),
            ("#100%25", true, Some("100%25")),
            ("#", false, None),
            ("a.md#here", false, None),
            ("", false, None),
        ] {
            assert_eq!(within(raw, is_wiki).as_deref(), expected, "{raw}");
        }
    }

    #[test]
    fn an_embed_is_of_a_page() {
        check(
            |it| of_wikilink(it, true),
            &[
                ("note", Some(("note", None))),
                ("note.md#h", Some(("note.md", Some("h")))),
                ("code.rs", None),
                ("picture.png", None),
            ],
        );
    }

    #[test]
    fn a_markdown_link_names_a_file_or_a_folder() {
        check(
            |it| of_markdown(it, false),
            &[
                ("a.md", Some(("a.md", None))),
                ("../a.MD#b", Some(("../a.MD", Some("b")))),
                ("a%20b.md#c%20d", Some(("a b.md", Some("c d")))),
                ("a.markdown", Some(("a.markdown", None))),
                ("a.mdx", Some(("a.mdx", None))),
                ("a", Some(("a", None))),
                ("a/", Some(("a/", None))),
                ("/docs/a.md?raw=1#b", Some(("/docs/a.md", Some("b")))),
                ("%E6%97%A5.md", Some(("日.md", None))),
                ("%FF.md", Some(("%FF.md", None))),
                ("50%.md", Some(("50%.md", None))),
                ("release-1.2", Some(("release-1.2", None))),
                (".", Some((".", None))),
                ("..", Some(("..", None))),
                ("#here", None),
                ("", None),
                ("http://example.org/a.md", None),
                ("HTTPS://example.org", None),
                ("ftp://example.org/a.md", None),
                ("mailto:a@example.org", None),
                ("data:text/plain,a.md", None),
                ("obsidian://open?vault=a", None),
                ("C:/a.md", None),
                ("//host/a.md", None),
            ],
        );
        check(
            |it| of_markdown(it, true),
            &[
                ("a.md", Some(("a.md", None))),
                ("a", None),
                ("a.png", Some(("a.png", None))),
            ],
        );
        for (raw, is_page) in [
            ("a.md", true),
            ("a", true),
            ("release-1.2", true),
            ("config.v1", false),
            ("a.png", false),
            ("src/lib.rs#L3", false),
        ] {
            assert_eq!(of_markdown(raw, false).unwrap().is_page, is_page, "{raw}");
        }
    }
}
