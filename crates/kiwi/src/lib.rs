//! Directives, tools and knowledge: files of a project or of the user that are also nodes.
//!
//! People edit the files; nodes follow ([`index`]) so that search finds them. Only signed items are
//! run or published: a file that was changed since is refused ([`sign`]). The registry is part of the
//! store ([`registry`]).
//!
//! Reading order: `item_dirs` (where items are kept), `package` (one item with all its files),
//! `index`, `sign`, `write` (a write that is also files), `run` (directives and knowledge),
//! `tool_run` (tools).

mod builtin_items;
mod catalogue;
mod find;
mod found;
mod index;
mod item_dirs;
mod load;
mod package;
mod person;
mod policy;
mod registry;
mod remote;
mod run;
mod runs;
mod sign;
mod sign_many;
mod skills;
mod titles;
mod tool_run;
mod trust;
mod write;

pub use catalogue::Catalogue;
pub use found::{FoundItem, FoundItems, ItemQuery, ItemSort, ItemSource};
pub use index::{merged, passages_of};
pub use kenning_items::{ItemType, Scope as ItemScope};
pub use load::{LoadFrom, LoadItem, LoadedItem};
pub use registry::{PublishedItem, RegistryPackage, RegistryVersion};
pub use run::{DirectiveRun, DirectiveStep, KnowledgeRun};
pub use runs::{GRANTS, GRANTS_MAX};
pub use sign::{NewItem, SignAs, SignItem, SignedItem};
pub use sign_many::{SignCandidate, SignState};
pub use skills::{ExportedSkills, Skill};
pub use titles::AskedWords;
pub use tool_run::{ToolItemRun, VENV_DAYS_MAX, VENVS_MAX};
pub use write::{DeletedItem, LinkedItem};

use index::KnownDirs;
use kenning_core::{Code, Error};
use kenning_kami::Kami;
use kenning_kernel::Kernel;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// Where items are and how they are kept.
#[derive(Clone, Debug, Default)]
pub struct ItemOptions {
    /// The user's own directory (`USER_SPACE`, by default `~/.ai`).
    pub user: Option<PathBuf>,
    /// The user's own knowledge (by default `~/.knowledge-kiwi`).
    pub user_knowledge: Option<PathBuf>,
    /// Directories beneath which callers may name a project.
    pub allow_roots: Vec<PathBuf>,
    /// The URL of another registry than our own (`KIWI_REGISTRY_URL`).
    pub registry: Option<String>,
    /// The binary that starts jailed programs; by default the running one.
    pub launcher: Option<PathBuf>,
}

/// Keeps, signs and runs items.
pub struct Kiwi {
    kernel: Arc<Kernel>,
    kami: Arc<Kami>,
    items: Items,
}

impl Kiwi {
    /// Uses a kernel, and `kami` to run components.
    pub fn new(kernel: Arc<Kernel>, kami: Arc<Kami>, options: ItemOptions) -> Self {
        Self {
            kernel,
            kami,
            items: Items::new(options),
        }
    }

    /// The user's own directory, if there is one.
    pub fn user_dir(&self) -> Option<PathBuf> {
        self.items.options.user.clone()
    }
}

/// What is kept between calls; all of it is also on disk or in the store.
struct Items {
    options: ItemOptions,
    known: KnownDirs,
}

impl Items {
    fn new(options: ItemOptions) -> Self {
        Self {
            options,
            known: KnownDirs::default(),
        }
    }
}

/// Which item a caller means.
#[derive(Clone, Debug)]
pub struct ItemTarget {
    /// Its type.
    pub item_type: ItemType,
    /// Its id.
    pub id: String,
    /// The project, if not the server's own.
    pub project_path: Option<String>,
    /// Whether nothing is to be changed.
    pub dry_run: bool,
}

/// Why an action on an item failed, with the further fields that the contract defines.
#[derive(Debug)]
pub struct ItemFault {
    /// The error.
    pub error: Error,
    /// Further fields of the response.
    pub details: Map<String, Value>,
}

/// The result of an action on an item.
pub type ItemResult<T> = Result<T, Box<ItemFault>>;

impl ItemFault {
    /// A fault with these further fields, which must be an object.
    pub(crate) fn with(error: Error, details: Value) -> Box<Self> {
        let details = match details {
            Value::Object(details) => details,
            _ => Map::new(),
        };
        Box::new(Self { error, details })
    }
}

impl From<Error> for Box<ItemFault> {
    fn from(error: Error) -> Self {
        ItemFault::with(error, Value::Null)
    }
}

/// There is no such item in any directory.
pub(crate) fn not_found(item_type: ItemType, id: &str) -> Box<ItemFault> {
    let what = match item_type {
        ItemType::Directive => "Directive",
        ItemType::Tool => "Tool",
        ItemType::Knowledge => "Knowledge entry",
    };
    let suggestion = "Use load() to download from registry first";
    ItemFault::with(
        Error::new(Code::NotFound, format!("{what} '{id}' not found locally")).hint(suggestion),
        serde_json::json!({ "suggestion": suggestion }),
    )
}
