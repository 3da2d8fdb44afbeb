//! Basic types of items: item type, id, category and scope.
//!
//! Ids and categories become parts of file names, so they are checked here once: an [`ItemId`] or a
//! [`Category`] can be joined to a directory without another check.

use kenning_core::{Error, Result};
use kenning_text::line::dotted;
use std::fmt;
use std::str::FromStr;

/// The longest id, in bytes: with an extension it still is a file name everywhere.
pub const ID_BYTES_MAX: usize = 128;
/// The longest category path, in bytes.
pub const CATEGORY_BYTES_MAX: usize = 256;
/// The deepest category path.
pub const CATEGORY_DEPTH_MAX: usize = 8;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemType {
    /// Steps that an agent follows.
    Directive,
    /// Something that runs.
    Tool,
    /// Something to know.
    Knowledge,
}

impl ItemType {
    /// Every type, in the order of the contract.
    pub const ALL: [Self; 3] = [Self::Directive, Self::Tool, Self::Knowledge];

    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Directive => "directive",
            Self::Tool => "tool",
            Self::Knowledge => "knowledge",
        }
    }

    /// The folder under `.ai` that holds items of this type.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Directive => "directives",
            Self::Tool => "tools",
            Self::Knowledge => "knowledge",
        }
    }
}

impl FromStr for ItemType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|it| it.word() == text)
            .ok_or_else(|| {
                Error::invalid(format!("item_type: `{text}` is not a type of item"))
                    .hint("use `directive`, `tool` or `knowledge`")
            })
    }
}

impl fmt::Display for ItemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Where an item is kept: in a project, or in the user's own directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `.ai` of a project.
    Project,
    /// `.ai` of the user.
    User,
}

impl Scope {
    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

impl FromStr for Scope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "project" => Ok(Self::Project),
            "user" => Ok(Self::User),
            _ => Err(
                Error::invalid(format!("location: `{text}` is not a place for items"))
                    .hint("use `project` or `user`"),
            ),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The id of an item: one safe part of a file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(String);

impl ItemId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ItemId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match part_fault(text, ID_BYTES_MAX) {
            None => Ok(Self(text.to_owned())),
            Some(why) => Err(Error::invalid(format!("item_id: `{}` {why}", shown(text)))
                .hint("use letters, digits, `_`, `-` and `.`, beginning with a letter or digit")),
        }
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The category of an item: the folders between its type's folder and itself. May be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Category(String);

impl Category {
    /// The empty category.
    pub fn root() -> Self {
        Self::default()
    }

    /// The parts joined by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is empty.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the category that a file declares agrees with its path. A file outside any category
    /// may declare any.
    pub fn agrees_with(&self, declared: &str) -> bool {
        self.is_root() || declared.trim_matches('/') == self.0
    }

    /// `name` in this category, as a relative path.
    pub fn join(&self, name: &str) -> String {
        if self.is_root() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.0)
        }
    }
}

impl FromStr for Category {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |why: &str| {
            Error::invalid(format!("category: `{}` {why}", shown(text)))
                .hint("use folder names joined by `/`, for example `email/infrastructure`")
        };
        let trimmed = text.trim_end_matches('/');
        if trimmed.is_empty() && text.is_empty() {
            return Ok(Self::root());
        }
        if trimmed.len() > CATEGORY_BYTES_MAX {
            return Err(invalid("is too long"));
        }
        if trimmed.split('/').count() > CATEGORY_DEPTH_MAX {
            return Err(invalid("is too deep"));
        }
        for part in trimmed.split('/') {
            if let Some(why) = part_fault(part, ID_BYTES_MAX) {
                return Err(invalid(why));
            }
        }
        Ok(Self(trimmed.to_owned()))
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The item that a path belongs to, and its layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The id: the stem of the file or the name of the directory.
    pub id: ItemId,
    /// The folders above it.
    pub category: Category,
    /// Its layout on disk.
    pub layout: Layout,
}

/// The layout of an item on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One file with this extension.
    File(String),
    /// A directory, described by the file of this name.
    Directory(String),
}

/// Files that make the directory around them a tool; the first one found counts.
pub const MANIFESTS: [&str; 2] = ["manifest.yaml", "tool.yaml"];
/// The file that makes the directory around it a directive.
pub const SKILL: &str = "SKILL.md";
/// Extensions of tools that are one file.
pub const TOOL_EXTENSIONS: [&str; 5] = ["py", "sh", "js", "yaml", "yml"];

impl Place {
    /// The item that a file describes, by its path under the folder of its type.
    ///
    /// `None` for a file that describes none: it has another extension, or a part that is not a valid
    /// id.
    pub fn of(item_type: ItemType, path: &str) -> Option<Self> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let describes_folder = match item_type {
            ItemType::Directive => name == SKILL,
            ItemType::Tool => MANIFESTS.contains(&name),
            ItemType::Knowledge => false,
        };
        if describes_folder {
            let (category, id) = folders.rsplit_once('/').unwrap_or(("", folders));
            return Self::checked(category, id, Layout::Directory(name.to_owned()));
        }
        let (stem, extension) = name.rsplit_once('.')?;
        let fits = match item_type {
            ItemType::Directive | ItemType::Knowledge => extension == "md",
            ItemType::Tool => TOOL_EXTENSIONS.contains(&extension),
        };
        if !fits {
            return None;
        }
        Self::checked(folders, stem, Layout::File(extension.to_owned()))
    }

    fn checked(category: &str, id: &str, layout: Layout) -> Option<Self> {
        Some(Self {
            id: id.parse().ok()?,
            category: category.parse().ok()?,
            layout,
        })
    }

    /// The path of the describing file under the folder of its type.
    pub fn path(&self) -> String {
        match &self.layout {
            Layout::File(extension) => self.category.join(&format!("{}.{extension}", self.id)),
            Layout::Directory(name) => self.category.join(&format!("{}/{name}", self.id)),
        }
    }
}

/// Why a text cannot be part of a file name.
fn part_fault(text: &str, bytes_max: usize) -> Option<&'static str> {
    if text.is_empty() {
        return Some("is empty");
    }
    if text.len() > bytes_max {
        return Some("is too long");
    }
    if text.starts_with(['-', '.']) {
        return Some("begins with `-` or `.`");
    }
    if text.contains("..") {
        return Some("contains `..`");
    }
    if text.ends_with('.') {
        return Some("ends with `.`");
    }
    let good = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!text.chars().all(good)).then_some("contains a character that no name may have")
}

/// A text for use in a message: short, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    dotted(text, 60).chars().map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_safe_part_of_a_file_name() {
        for good in ["oauth_setup", "001-email-deliverability", "a", "v1.2", "é"] {
            assert_eq!(good.parse::<ItemId>().unwrap().as_str(), good);
        }
        let long = "x".repeat(ID_BYTES_MAX + 1);
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "-rf",
            ".hidden",
            "a..b",
            "a\0",
            "a\nb",
            "a b",
            "a:b",
            "a.",
            "~",
            "a*",
            "\u{202e}a",
            "$x",
            &long,
        ] {
            assert!(bad.parse::<ItemId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_category_is_a_path_of_safe_parts() {
        for (text, kept) in [
            ("", ""),
            ("email", "email"),
            ("a/b", "a/b"),
            ("a/b/", "a/b"),
        ] {
            assert_eq!(text.parse::<Category>().unwrap().as_str(), kept);
        }
        let deep = ["a"; CATEGORY_DEPTH_MAX + 1].join("/");
        for bad in [
            "/", "/a", "a//b", "../a", "a/..", "a/./b", "a\\b", "a/-b", &deep,
        ] {
            assert!(bad.parse::<Category>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_place_and_its_path_are_the_same_thing() {
        use ItemType::{Directive, Knowledge, Tool};
        for (item_type, path, id, category) in [
            (Directive, "auth/oauth_setup.md", "oauth_setup", "auth"),
            (Directive, "a/review/SKILL.md", "review", "a"),
            (Directive, "review/SKILL.md", "review", ""),
            (
                Tool,
                "scraping/my_tool/manifest.yaml",
                "my_tool",
                "scraping",
            ),
            (Tool, "a/b/old/tool.yaml", "old", "a/b"),
            (Tool, "a/echo.py", "echo", "a"),
            (Tool, "echo.sh", "echo", ""),
            (Knowledge, "email/001-email.md", "001-email", "email"),
        ] {
            let place = Place::of(item_type, path).unwrap();
            assert_eq!(place.id.as_str(), id, "{path}");
            assert_eq!(place.category.as_str(), category, "{path}");
            assert_eq!(place.path(), path);
        }
        for (item_type, path) in [
            (Directive, "a.txt"),
            (Directive, "../a.md"),
            (Directive, "SKILL.md"),
            (Tool, "manifest.yaml"),
            (Tool, "a/x.rb"),
            (Tool, "a/../x.py"),
            (Knowledge, ".hidden/a.md"),
            (Knowledge, "a"),
        ] {
            assert_eq!(Place::of(item_type, path), None, "{path}");
        }
    }

    #[test]
    fn words_read_back_and_others_are_told_which_there_are() {
        for it in ItemType::ALL {
            assert_eq!(it.word().parse::<ItemType>().unwrap(), it);
        }
        let error = "skill".parse::<ItemType>().unwrap_err();
        assert!(error.message.contains("`skill`"));
        assert!(error.hint.unwrap().contains("`knowledge`"));
        assert!("registry".parse::<Scope>().is_err());
    }
}
