//! An item on disk: all its files, their contents, and their signature.

use super::item_dirs::ItemDir;
use kenning_core::{Code, Error, Result};
use kenning_items::directive::{self, Directive};
use kenning_items::knowledge::{self, Knowledge};
use kenning_items::mark::{self, Compared, Line, MarkFault, MarkFaultKind, Style, Subject};
use kenning_items::tool::{self, Tool};
use kenning_items::{Category, Faults, ItemId, ItemType, Layout, Place, Scope};
use std::path::PathBuf;

/// The largest file of an item.
pub(crate) const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The most bytes of all files of an item together.
pub(crate) const ITEM_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The most files of one item.
pub(crate) const FILES_MAX: usize = 256;
/// The deepest directory of one item.
const DEPTH_MAX: usize = 8;

/// Folders that running a tool creates beside it. They are not part of it.
const BYPRODUCTS: [&str; 2] = ["__pycache__", "node_modules"];

/// A file of an item: its path within the item, and its bytes.
pub(crate) type ItemFile = (String, Vec<u8>);

/// An item with all its files.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) item_type: ItemType,
    pub(crate) scope: Scope,
    pub(crate) place: Place,
    /// A single file has its name; the files of a directory have their paths below it.
    pub(crate) files: Vec<ItemFile>,
}

/// The parsed content of an item.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Directive(Box<Directive>),
    Tool(Box<Tool>),
    Knowledge(Box<Knowledge>),
}

impl Item {
    pub(crate) fn version(&self) -> &str {
        match self {
            Self::Directive(it) => &it.version,
            Self::Tool(it) => &it.version,
            Self::Knowledge(it) => &it.version,
        }
    }

    /// The name for people.
    pub(crate) fn title(&self) -> &str {
        match self {
            Self::Directive(it) => heading(&it.content).unwrap_or(&it.name),
            Self::Tool(it) => &it.id,
            Self::Knowledge(it) => &it.title,
        }
    }

    pub(crate) fn description(&self) -> &str {
        match self {
            Self::Directive(it) => &it.description,
            Self::Tool(it) => &it.description,
            Self::Knowledge(_) => "",
        }
    }

    /// The category that it declares, otherwise the folders above it.
    pub(crate) fn category(&self) -> &str {
        match self {
            Self::Directive(it) => &it.category,
            Self::Tool(it) => &it.category,
            Self::Knowledge(it) => &it.category,
        }
    }

    pub(crate) fn tags(&self) -> &[String] {
        match self {
            Self::Knowledge(it) => &it.tags,
            Self::Directive(_) | Self::Tool(_) => &[],
        }
    }
}

/// The first heading of the highest level in a Markdown text.
fn heading(text: &str) -> Option<&str> {
    let mut lines = text.lines();
    let line = lines.find_map(|it| it.strip_prefix("# "))?;
    Some(line.trim()).filter(|it| !it.is_empty())
}

impl Package {
    /// Reads the item at this place.
    pub(crate) fn read(item_dir: &ItemDir, place: &Place) -> Result<Self> {
        let files = match &place.layout {
            Layout::File(_) => {
                let path = place.path();
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                vec![(name, item_dir.dir.read(&path, FILE_BYTES_MAX)?)]
            }
            Layout::Directory(_) => {
                let folder = place.category.join(place.id.as_str());
                let dir = item_dir.dir.subdir(&folder)?;
                let mut files = Vec::new();
                collect(&dir, "", 0, &mut files)?;
                files
            }
        };
        Ok(Self {
            item_type: item_dir.item_type,
            scope: item_dir.scope,
            place: place.clone(),
            files,
        })
    }

    pub(crate) fn id(&self) -> &ItemId {
        &self.place.id
    }

    pub(crate) fn category(&self) -> &Category {
        &self.place.category
    }

    /// The name of the file that describes the item and has its signature line.
    pub(crate) fn main_name(&self) -> String {
        match &self.place.layout {
            Layout::File(extension) => format!("{}.{extension}", self.place.id),
            Layout::Directory(name) => name.clone(),
        }
    }

    /// The file that describes the item and has its signature line.
    pub(crate) fn main_text(&self) -> Result<&str> {
        let name = self.main_name();
        let bytes = self.file(&name).ok_or_else(|| {
            Error::corrupt(format!(
                "the {} `{}` has no `{name}`",
                self.item_type,
                self.id()
            ))
        })?;
        std::str::from_utf8(bytes).map_err(|cause| {
            Error::invalid(format!("`{name}` of `{}` is not UTF-8 text", self.id()))
                .hint("write it as UTF-8")
                .because(cause)
        })
    }

    pub(crate) fn file(&self, name: &str) -> Option<&[u8]> {
        let found = self.files.iter().find(|it| it.0 == name);
        found.map(|it| it.1.as_slice())
    }

    /// Its content, or everything that is wrong with it.
    pub(crate) fn item(&self) -> std::result::Result<Item, Faults> {
        let text = self
            .main_text()
            .map_err(|error| Faults::one("file", error.message, error.hint.unwrap_or_default()))?;
        Ok(match self.item_type {
            ItemType::Directive => Item::Directive(Box::new(directive::read(text, &self.place)?)),
            ItemType::Tool => Item::Tool(Box::new(tool::read(text, &self.place)?)),
            ItemType::Knowledge => Item::Knowledge(Box::new(knowledge::read(text, &self.place)?)),
        })
    }

    /// As [`Package::item`], with faults as an error.
    pub(crate) fn valid_item(&self) -> Result<Item> {
        let named = || format!("the {} `{}`", self.item_type, self.id());
        self.item().map_err(|it| it.into_error(named()))
    }

    /// What a signature of this item covers.
    pub(crate) fn subject(&self, version: &str) -> Subject {
        let files = self
            .files
            .iter()
            .map(|file| (file.0.as_str(), file.1.as_slice()));
        Subject::of_directory(
            self.item_type,
            self.place.id.clone(),
            version,
            self.scope,
            self.place.category.clone(),
            &self.main_name(),
            files,
        )
    }

    fn style(&self) -> Option<Style> {
        Style::of(self.item_type, &self.main_name())
    }

    /// The signature line.
    pub(crate) fn line(&self) -> Option<Line> {
        mark::read(self.main_text().ok()?, self.style()?)
    }

    /// Puts a signature line into its file.
    pub(crate) fn embed(&mut self, mark: &mark::Mark) -> Result<()> {
        let (name, style) = (self.main_name(), self.style());
        let style = style.ok_or_else(|| {
            Error::invalid(format!("`{name}` cannot hold a signature"))
                .hint("put a `manifest.yaml` beside it and sign the directory")
        })?;
        let text = mark::embed(self.main_text()?, style, mark);
        if let Some(file) = self.files.iter_mut().find(|it| it.0 == name) {
            file.1 = text.into_bytes();
        }
        Ok(())
    }

    /// Checks its signature, if there is one.
    pub(crate) fn check_signature(&self, item: &Item) -> SignatureCheck {
        let version = item.version();
        match self.line() {
            Some(Line::Broken(why)) => SignatureCheck::Broken(why),
            Some(Line::Signed(mark)) => match mark::verify(&self.subject(version), &mark) {
                Ok(()) => SignatureCheck::Signed(mark),
                Err(fault) => SignatureCheck::Changed(fault),
            },
            // Early knowledge entries have no line: the hash of the original is in their frontmatter.
            Some(Line::Validated(_)) | None => match self.compared(item) {
                None => SignatureCheck::None,
                Some(it) if it.holds() => SignatureCheck::Validated,
                Some(it) => SignatureCheck::Changed(MarkFault {
                    kind: MarkFaultKind::Changed,
                    stored: it.stored,
                    computed: it.computed,
                }),
            },
        }
    }

    /// The hash of the original, if there is one, compared with the item.
    fn compared(&self, item: &Item) -> Option<Compared> {
        match item {
            Item::Directive(it) => it.validated.clone(),
            Item::Tool(it) => it.compared(&self.subject(&it.version).files),
            Item::Knowledge(it) => it.compared(),
        }
    }

    /// How large all its files are together.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.files.iter().map(|it| it.1.len() as u64).sum()
    }

    /// Its path in its directory.
    pub(crate) fn root(&self) -> String {
        match &self.place.layout {
            Layout::File(_) => self.place.path(),
            Layout::Directory(_) => self.place.category.join(self.place.id.as_str()),
        }
    }

    pub(crate) fn path_on(&self, item_dir: &ItemDir) -> PathBuf {
        item_dir.dir.path().join(self.root())
    }

    /// Its files by their paths in the directory.
    pub(crate) fn names_in_dir(&self) -> impl Iterator<Item = (String, &[u8])> {
        let prefix = match &self.place.layout {
            Layout::File(_) => self.place.category.as_str().to_owned(),
            Layout::Directory(_) => self.root(),
        };
        self.files.iter().map(move |(name, bytes)| {
            let name = if prefix.is_empty() {
                name.clone()
            } else {
                format!("{prefix}/{name}")
            };
            (name, bytes.as_slice())
        })
    }
}

/// The result of checking an item's signature, before its signer is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SignatureCheck {
    /// It has none.
    None,
    /// The line is malformed.
    Broken(&'static str),
    /// It has the hash of the original, which anybody can compute, and is unchanged.
    Validated,
    /// The item was changed after it was signed or validated.
    Changed(MarkFault),
    /// The signature is valid.
    Signed(mark::Mark),
}

fn collect(
    dir: &kenning_vault::Dir,
    folder: &str,
    depth: usize,
    files: &mut Vec<ItemFile>,
) -> Result<()> {
    let too_large = |what: String| {
        Error::new(Code::TooLarge, format!("an item {what}"))
            .hint("keep data out of the item's directory")
    };
    if depth > DEPTH_MAX {
        return Err(too_large(format!("has folders more than {DEPTH_MAX} deep")));
    }
    for entry in dir.list(folder)? {
        // Hidden files belong to editors, and byproducts of running are not part of the item.
        if entry.name.starts_with('.') || BYPRODUCTS.contains(&entry.name.as_str()) {
            continue;
        }
        let path = if folder.is_empty() {
            entry.name.clone()
        } else {
            format!("{folder}/{}", entry.name)
        };
        if entry.is_dir {
            collect(dir, &path, depth + 1, files)?;
        } else if entry.is_file {
            let bytes = dir.read(&path, FILE_BYTES_MAX)?;
            files.push((path, bytes));
        }
        if files.len() > FILES_MAX {
            return Err(too_large(format!("has more than {FILES_MAX} files")));
        }
        let total: u64 = files.iter().map(|it| it.1.len() as u64).sum();
        if total > ITEM_BYTES_MAX {
            return Err(too_large(format!("has more than {ITEM_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}
