//! Validating and signing items.

use super::index::Page;
use super::item_dirs::ItemDir;
use super::package::{Item, ItemFile, Package};
use super::trust::seconds;
use super::write::Writing;
use super::{ItemFault, ItemResult, ItemTarget, not_found};
use crate::Kiwi;
use kenning_core::{Error, Result};
use kenning_items::mark::{self};
use kenning_items::{Category, ItemId, ItemType, Layout, Place, Scope as ItemScope};
use kenning_kernel::{Caller, Scope};
use serde_json::{Value, json};

/// The name of the action: all of them validate and sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignAs {
    /// Any item.
    Sign,
    /// An item that is not signed yet.
    Create,
    /// An item that was signed before.
    Update,
}

/// The text of an item to write.
#[derive(Clone, Debug)]
pub struct NewItem {
    /// The whole file; missing frontmatter of a knowledge entry is made from the other fields.
    pub content: String,
    /// The extension of a tool that is one file.
    pub extension: Option<String>,
    /// Title, entry type and tags of a knowledge entry without frontmatter.
    pub fields: serde_json::Map<String, Value>,
}

/// What to sign.
#[derive(Clone, Debug)]
pub struct SignItem {
    /// The item.
    pub target: ItemTarget,
    /// The name of the action.
    pub sign_as: SignAs,
    /// Where it is kept; by default where it is found first.
    pub location: Option<ItemScope>,
    /// Its new category; by default its current one.
    pub category: Option<String>,
    /// The text, if it is to be written first.
    pub content: Option<NewItem>,
}

/// The result of signing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedItem {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its category.
    pub category: String,
    /// Where it is kept.
    pub location: ItemScope,
    /// The path of its file or directory.
    pub path: String,
    /// The SHA-256 of what was signed.
    pub hash: String,
    /// When it was signed.
    pub at: String,
    /// The signer; none if it was only written and a person has to sign it.
    pub signer: Option<String>,
    /// How to sign it, if it was not signed.
    pub next: Option<String>,
    /// Warnings for whoever signed it.
    pub warnings: Vec<String>,
    /// Its category before, if it was moved.
    pub moved_from: Option<String>,
}

impl Kiwi {
    /// Validates an item and signs it with this node's key.
    pub fn sign_item(&self, caller: &Caller, what: &SignItem) -> ItemResult<SignedItem> {
        caller.principal.require(Scope::Write)?;
        let SignItem { target, .. } = what;
        let id: ItemId = target.id.parse()?;
        if target.item_type == ItemType::Tool {
            self.refuse_taken_name(caller, id.as_str())?;
        }
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let category: Option<Category> = what.category.as_deref().map(str::parse).transpose()?;
        let mut item_dirs = self.item_dirs(caller, target.item_type, project.as_ref())?;
        if let Some(location) = what.location {
            item_dirs.retain(|it| it.scope == location);
        }
        self.finish_item_writes_of(&caller.principal.space, id.as_str())?;
        let found = self.locate(&item_dirs, id.as_str())?;
        let (item_dir, before, mut package) = match (found, &what.content) {
            (Some((item_dir, package)), None) => (item_dir, Some(package.clone()), package),
            (Some((item_dir, package)), Some(content)) => {
                if what.sign_as == SignAs::Create {
                    return Err(already_there(&package, &item_dir));
                }
                let mut next = package.clone();
                replace_text(&mut next, content)?;
                (item_dir, Some(package), next)
            }
            (None, Some(content)) if what.sign_as == SignAs::Create => {
                let own = project.is_some();
                let fallback = if own {
                    ItemScope::Project
                } else {
                    ItemScope::User
                };
                let scope = what.location.unwrap_or(fallback);
                let item_dir = match target.dry_run {
                    true => {
                        self.item_dir_if_made(caller, target.item_type, scope, project.as_ref())?
                    }
                    false => {
                        self.item_dir_for(caller, target.item_type, scope, project.as_ref())?
                    }
                };
                let category = category.clone().unwrap_or_default();
                let package = new_package(target.item_type, scope, id.clone(), category, content)?;
                (item_dir, None, package)
            }
            (None, _) => return Err(not_found(target.item_type, id.as_str())),
        };
        self.require_order(what, before.as_ref(), &item_dir)?;
        // An agent may write a file; only a person may approve its use.
        let is_signing = self.may_sign(caller)?;
        if what.content.is_none() && !target.dry_run {
            self.require_may_sign(caller, target.item_type, id.as_str(), item_dir.scope)?;
        }
        let from = package.place.category.clone();
        if let Some(category) = category.filter(|it| *it != from) {
            restate_category(&mut package, &from, &category);
            package.place.category = category;
            if item_dir.dir.exists(&package.root())? {
                return Err(already_there(&package, &item_dir));
            }
        }
        let item = package
            .item()
            .map_err(|faults| invalid(&package, &item_dir, &faults))?;
        let warnings = match &item {
            Item::Tool(_) => self.check_sources(&package, &item_dir)?,
            Item::Directive(_) | Item::Knowledge(_) => Vec::new(),
        };
        let mark = match is_signing {
            true => Some(self.sign_package(&mut package, item.version())?),
            false => None,
        };
        let unsigned = || package.subject(item.version()).sha256();
        let next = match is_signing {
            true => None,
            false => {
                let (kind, scope) = (target.item_type, item_dir.scope);
                Some(self.how_to_sign(caller, kind, id.as_str(), scope)?)
            }
        };
        let signed = SignedItem {
            id: id.as_str().to_owned(),
            version: item.version().to_owned(),
            category: item.category().to_owned(),
            location: item_dir.scope,
            path: package.path_on(&item_dir).to_string_lossy().into_owned(),
            hash: mark.as_ref().map_or_else(unsigned, |it| it.sha256.clone()),
            at: match &mark {
                Some(mark) => mark.at.clone(),
                None => seconds(self.kernel.log().clock().now_ms()),
            },
            signer: mark.map(|it| it.signer.to_string()),
            next,
            warnings,
            moved_from: (from != package.place.category).then(|| from.as_str().to_owned()),
        };
        if target.dry_run {
            return Ok(signed);
        }
        let event = json!({
            "type": package.item_type.word(), "id": signed.id, "version": signed.version,
            "path": signed.path, "sha256": signed.hash, "signer": signed.signer,
        });
        self.write_item(
            caller,
            &item_dir,
            Writing {
                before: before.as_ref(),
                after: Some((&package, Page::of(&item_dir, &package))),
                event: (
                    if is_signing {
                        "ItemSigned"
                    } else {
                        "ItemWritten"
                    },
                    event,
                ),
            },
        )?;
        if package.item_type == ItemType::Tool {
            self.forget_lockfile(&package, &signed.version, project.as_ref())?;
        }
        Ok(signed)
    }

    /// `create` is for items that were not signed, `update` for those that were.
    fn require_order(
        &self,
        what: &SignItem,
        before: Option<&Package>,
        item_dir: &ItemDir,
    ) -> ItemResult<()> {
        let is_signed =
            before.is_some_and(|it| !matches!(it.line(), None | Some(mark::Line::Validated(_))));
        let wrong = match (what.sign_as, before) {
            (SignAs::Create, Some(_)) if is_signed => ("is already validated", "update"),
            (SignAs::Update, Some(_)) if !is_signed && what.content.is_none() => {
                ("is not validated", "create")
            }
            _ => return Ok(()),
        };
        let id = &what.target.id;
        let path = before.map(|it| it.path_on(item_dir).to_string_lossy().into_owned());
        Err(ItemFault::with(
            Error::conflict(format!("{} '{id}' {}", what.target.item_type, wrong.0))
                .hint(format!("use action `{}`", wrong.1)),
            json!({ "path": path, "suggestion": format!("Use action '{}'", wrong.1) }),
        ))
    }

    /// A tool of the server takes precedence over an item with its name, so such an item could never
    /// run.
    fn refuse_taken_name(&self, caller: &Caller, id: &str) -> Result<()> {
        if kenning_items::chain::builtin::ids().any(|it| it == id) {
            return Err(Error::conflict(format!(
                "`{id}` is the name of a built-in runtime or primitive"
            ))
            .hint("give the item another id"));
        }
        if self.kami.tool_name(caller, id)?.is_some() {
            return Err(Error::conflict(format!(
                "an installed WASM tool is called `{id}` already"
            ))
            .hint("give the item another id"));
        }
        Ok(())
    }
}

fn invalid(
    package: &Package,
    item_dir: &ItemDir,
    faults: &kenning_items::Faults,
) -> Box<ItemFault> {
    let named = format!("the {} `{}`", package.item_type, package.id());
    let error = faults.clone().into_error(named);
    ItemFault::with(
        error,
        json!({
            "validation_issues": faults.lines(),
            "path": package.path_on(item_dir).to_string_lossy(),
        }),
    )
}

fn already_there(package: &Package, item_dir: &ItemDir) -> Box<ItemFault> {
    ItemFault::with(
        Error::conflict(format!(
            "{} '{}' already exists",
            package.item_type,
            package.id()
        ))
        .hint("use action `update`"),
        json!({
            "path": package.path_on(item_dir).to_string_lossy(),
            "suggestion": "Use action 'update'",
        }),
    )
}

/// A moved item gets the new category wherever it declares the old one.
fn restate_category(package: &mut Package, old: &Category, new: &Category) {
    let name = package.main_name();
    let Some(file) = package.files.iter_mut().find(|it| it.0 == name) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(&file.1) else {
        return;
    };
    let said = |line: &str| {
        let bare = line.trim().trim_start_matches(['#', '/']).trim_start();
        let words = ["category:", "__category__ =", "__category__=", "<category>"];
        let is_said = words.iter().any(|it| bare.starts_with(it));
        is_said && line.contains(old.as_str())
    };
    let mut is_done = old.is_root();
    let lines = text.split_inclusive('\n').map(|line| {
        if is_done || !said(line) {
            return line.to_owned();
        }
        is_done = true;
        line.replacen(old.as_str(), new.as_str(), 1)
    });
    let text: String = lines.collect();
    file.1 = text.into_bytes();
}

fn replace_text(package: &mut Package, content: &NewItem) -> Result<()> {
    let name = package.main_name();
    let text = whole_text(package.item_type, package.id(), package.category(), content)?;
    match package.files.iter_mut().find(|it| it.0 == name) {
        Some(file) => file.1 = text.into_bytes(),
        None => package.files.push((name, text.into_bytes())),
    }
    Ok(())
}

fn new_package(
    item_type: ItemType,
    scope: ItemScope,
    id: ItemId,
    category: Category,
    content: &NewItem,
) -> Result<Package> {
    let extension = match item_type {
        ItemType::Directive | ItemType::Knowledge => "md".to_owned(),
        ItemType::Tool => content
            .extension
            .clone()
            .unwrap_or_else(|| guess(&content.content)),
    };
    if item_type == ItemType::Tool
        && !kenning_items::kind::TOOL_EXTENSIONS.contains(&extension.as_str())
    {
        return Err(Error::invalid(format!(
            "`extension`: `{extension}` is not an extension of tools"
        ))
        .hint(format!(
            "use one of {}",
            kenning_items::kind::TOOL_EXTENSIONS.join(", ")
        )));
    }
    let text = whole_text(item_type, &id, &category, content)?;
    let file: ItemFile = (format!("{id}.{extension}"), text.into_bytes());
    Ok(Package {
        item_type,
        scope,
        place: Place {
            id,
            category,
            layout: Layout::File(extension),
        },
        files: vec![file],
    })
}

/// Guesses the language of a tool's source from its first line.
fn guess(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let extension = match first {
        it if it.starts_with("#!") && it.contains("python") => "py",
        it if it.starts_with("#!") && it.contains("node") => "js",
        it if it.starts_with("#!") => "sh",
        it if it.starts_with("tool_id:") => "yaml",
        _ => "py",
    };
    extension.to_owned()
}

/// Adds frontmatter to a knowledge entry that has none.
fn whole_text(
    item_type: ItemType,
    id: &ItemId,
    category: &Category,
    content: &NewItem,
) -> Result<String> {
    let text = &content.content;
    let has_head = text.trim_start_matches('\u{feff}').starts_with("---");
    if item_type != ItemType::Knowledge || has_head || text.starts_with("<!--") {
        return Ok(text.clone());
    }
    let mut head = format!("---\nzettel_id: {}\n", json!(id.as_str()));
    let text_of = |name: &str| content.fields.get(name).and_then(Value::as_str);
    for name in ["title", "entry_type"] {
        let value = text_of(name).ok_or_else(|| {
            Error::missing(format!("`{name}` is missing"))
                .hint("give it beside `content`, or begin the content with frontmatter")
        })?;
        head += &format!("{name}: {}\n", json!(value));
    }
    if !category.is_root() {
        head += &format!("category: {}\n", json!(category.as_str()));
    }
    if let Some(version) = text_of("version") {
        head += &format!("version: {}\n", json!(version));
    }
    if let Some(tags) = content.fields.get("tags") {
        head += &format!("tags: {tags}\n");
    }
    Ok(format!("{head}---\n\n{text}"))
}
