//! Items as nodes: what changed on disk is read when somebody looks, and the one search finds it.
//!
//! Only stamps are compared; a file whose stamp is as it was is not opened. While a tree is watched
//! and nothing happened in it, not even the stamps are.

use super::item_dirs::ItemDir;
use super::package::{Item, Package, SignatureCheck};
use crate::Kiwi;
use kenning_audit::foreign::Merged;
use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Code, Hash, Kind, NodeId, Result, Space};
use kenning_items::mark::{self, Style};
use kenning_items::{ItemType, Layout, Place, Scope};
use kenning_kernel::follow::{Follow, ancestors};
use kenning_kernel::{Bucket, Caller, Mark, RowCodec};
use kenning_search::passages;
use kenning_store::{Node, Passage, ReadTx, When};
use kenning_vault::{Found, Stamp};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What local items say that they are from.
pub(super) const LOCAL: &str = "kiwi";
/// What the registry's say.
pub(super) const REGISTRY: &str = "registry";
/// The namespace of what is the user's and no project's.
pub(super) const USER: &str = "kiwi-user";

/// What nodes say of items, as a number: where it is another, every file is read again.
const FORM: &str = "form 2\n";
/// What a tool wants to be told, as a JSON Schema.
pub(super) const PARAMETERS: &str = "parameters";
/// A larger schema is not shown among search results.
const PARAMETERS_BYTES_MAX: usize = 8 * 1024;
/// Items that are written in one transaction.
const BATCH: usize = 200;
/// So much of a tool's source is searched.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// What was in an item directory when it was last looked at.
#[derive(Default)]
pub(super) struct Known {
    rows: Option<HashMap<String, Row>>,
    follow: Follow,
}

/// The item directories that this process has looked at.
pub(super) type KnownDirs = Mutex<HashMap<PathBuf, Arc<Mutex<Known>>>>;

/// An item as it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    stamp: Hash,
    node: NodeId,
}

impl RowCodec for Row {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(format!("{} {}", self.stamp, self.node).into_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (stamp, node) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
        Some(Self {
            stamp: Hash::from_hex(stamp)?,
            node: node.parse().ok()?,
        })
    }
}

impl Kiwi {
    /// Brings the nodes of an item directory up to date with its files.
    pub(super) fn index_dir(&self, caller: &Caller, item_dir: &ItemDir) -> Result<()> {
        if self.kernel.is_read_only() {
            return Ok(());
        }
        let known = {
            let item_dirs = self.items.known.lock();
            let mut item_dirs = item_dirs.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(item_dirs.entry(item_dir.dir.path().to_owned()).or_default())
        };
        // What a panic left half known is found out anew.
        let mut known = known.lock().unwrap_or_else(|broken| {
            let mut half = broken.into_inner();
            *half = Known::default();
            known.clear_poison();
            half
        });
        if !known.follow.is_stale(&item_dir.dir) {
            return Ok(());
        }
        let indexed = self.bring_up_to_date(caller, item_dir, &mut known);
        if indexed.is_err() {
            known.follow.touch();
        }
        indexed
    }

    /// The next look at this item directory is a real one: what this process writes need not wait for the
    /// kernel to tell.
    pub(super) fn forget_dir(&self, item_dir: &ItemDir) {
        let item_dirs = self.items.known.lock();
        let item_dirs = item_dirs.unwrap_or_else(PoisonError::into_inner);
        let known = item_dirs.get(item_dir.dir.path()).map(Arc::clone);
        drop(item_dirs);
        let Some(known) = known else { return };
        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.follow.touch();
    }

    /// What this process knows of an item directory is not to be believed any more.
    pub(super) fn forget_known(&self, item_dir: &Path) {
        let item_dirs = self.items.known.lock();
        let mut item_dirs = item_dirs.unwrap_or_else(PoisonError::into_inner);
        item_dirs.remove(item_dir);
    }

    fn bring_up_to_date(
        &self,
        caller: &Caller,
        item_dir: &ItemDir,
        known: &mut Known,
    ) -> Result<()> {
        let (space, bucket) = (&caller.principal.space, bucket_of(item_dir.dir.path()));
        if known.rows.is_none() {
            let rows = self
                .kernel
                .log()
                .read(space, |tx| bucket.list_readable(tx))?;
            known.rows = Some(rows.into_iter().collect());
        }
        let found = items_on(item_dir)?;
        let roots = found.keys().map(String::as_str);
        known.follow.note_folders(&item_dir.dir, roots);
        let rows = known.rows.get_or_insert_default();
        let gone: Vec<(String, Row)> = rows
            .iter()
            .filter(|it| !found.contains_key(it.0))
            .map(|(root, row)| (root.clone(), *row))
            .collect();
        for batch in gone.chunks(BATCH) {
            caller.check()?;
            let (batch_owned, bucket) = (batch.to_vec(), bucket.clone());
            self.kernel.log().write(space, move |tx| {
                batch_owned
                    .iter()
                    .try_for_each(|(root, row)| forget(tx, &bucket, root, row.node))
            })?;
            batch.iter().for_each(|(root, _)| {
                rows.remove(root);
            });
        }
        let changed: Vec<(String, Place, Hash)> = found
            .into_iter()
            .filter(|(root, it)| rows.get(root).is_none_or(|row| row.stamp != it.1))
            .map(|(root, (place, stamp))| (root, place, stamp))
            .collect();
        for batch in changed.chunks(BATCH) {
            caller.check()?;
            let pages: Vec<(String, Hash, Page)> = batch
                .iter()
                .filter_map(|(root, place, stamp)| {
                    // It was removed since, or cannot be read: the next look tells.
                    let package = Package::read(item_dir, place).ok()?;
                    Some((root.clone(), *stamp, Page::of(item_dir, &package)))
                })
                .collect();
            rows.extend(self.write_pages(space, &bucket, pages)?);
        }
        Ok(())
    }

    fn write_pages(
        &self,
        space: &Space,
        bucket: &Bucket<Row>,
        pages: Vec<(String, Hash, Page)>,
    ) -> Result<Vec<(String, Row)>> {
        let bucket = bucket.clone();
        self.kernel.log().write(space, move |tx| {
            let write = |(root, stamp, page): (String, Hash, Page)| {
                let node = page.write(tx)?;
                let row = Row { stamp, node };
                bucket.set(tx, &root, &row)?;
                Ok((root, row))
            };
            pages.into_iter().map(write).collect()
        })
    }
}

/// An item as a node.
pub(super) struct Page {
    pub(super) draft: Draft,
    passages: Passages,
}

impl Page {
    /// What is known of a local item.
    pub(super) fn of(item_dir: &ItemDir, package: &Package) -> Self {
        let mut draft = draft_of(package);
        let path = package.path_on(item_dir).to_string_lossy().into_owned();
        draft.project.clone_from(&item_dir.project);
        draft.key.clone_from(&path);
        draft.props.insert("path".to_owned(), path.into());
        draft.props.insert("source".to_owned(), LOCAL.into());
        if item_dir.scope == Scope::User {
            draft.props.insert("namespace".to_owned(), USER.into());
        }
        Self::found_by(draft)
    }

    /// With the passages that it is found by.
    pub(super) fn found_by(draft: Draft) -> Self {
        let title = searched_title(&draft.title, &draft.props);
        let passages = passages(&title, &draft.body).into();
        Self { draft, passages }
    }

    /// Writes it, and its event if anything is new about it.
    pub(super) fn write(self, tx: &mut Tx<'_>) -> Result<NodeId> {
        let node = tx.put_node(self.draft)?;
        if node.updated != tx.now() {
            return Ok(node.id);
        }
        tx.put_hashed_passages(node.id, &self.passages)?;
        by_id(&node).set(tx, &node.id.to_string(), &Mark)?;
        let kind = if node.rev == 1 {
            "ItemAdded"
        } else {
            "ItemChanged"
        };
        let mut data = json!({ "nodeId": node.id.to_string() });
        for name in ["type", "id", "version", "path", "source"] {
            data[name] = node.props.get(name).cloned().unwrap_or_default();
        }
        tx.record(kind, data)?;
        Ok(node.id)
    }
}

/// What an item's node says, wherever the item is.
pub(super) fn draft_of(package: &Package) -> Draft {
    let item = package.item();
    let mut props = Map::new();
    let mut put = |name: &str, value: Value| props.insert(name.to_owned(), value);
    put("type", package.item_type.word().into());
    put("id", package.id().as_str().into());
    put("scope", package.scope.word().into());
    let title = match &item {
        Ok(item) => {
            put("category", item.category().into());
            put("version", item.version().into());
            put("description", item.description().into());
            if !item.tags().is_empty() {
                put("tags", item.tags().into());
            }
            if let Item::Knowledge(it) = item {
                put("entry_type", it.entry_type.as_str().into());
            }
            if let Item::Tool(it) = item {
                let schema = it.input_schema();
                if schema.to_string().len() <= PARAMETERS_BYTES_MAX {
                    put(PARAMETERS, schema);
                }
            }
            let (state, signer) = match package.check_signature(item) {
                SignatureCheck::Signed(mark) => ("signed", Some(mark.signer.to_string())),
                SignatureCheck::Validated => ("validated", None),
                SignatureCheck::Changed(_) | SignatureCheck::Broken(_) => ("changed", None),
                SignatureCheck::None => ("unsigned", None),
            };
            put("state", state.into());
            if let Some(signer) = signer {
                put("signer", signer.into());
            }
            item.title().to_owned()
        }
        Err(faults) => {
            put("category", package.category().as_str().into());
            put("state", "invalid".into());
            put("faults", faults.lines().into());
            package.id().as_str().to_owned()
        }
    };
    let style = Style::of(package.item_type, &package.main_name());
    let text = package.main_text().unwrap_or_default();
    let mut body = style.map_or_else(|| text.to_owned(), |style| mark::strip(text, style));
    if package.item_type == ItemType::Tool {
        let end = (0..=body.len().min(BODY_BYTES_MAX)).rev();
        let end = end.into_iter().find(|it| body.is_char_boundary(*it));
        body.truncate(end.unwrap_or(0));
    }
    Draft {
        kind: Kind::Item,
        project: String::new(),
        key: String::new(),
        title,
        body,
        props,
    }
}

/// Keeps items that came from a peer findable by their ids.
pub fn merged(tx: &mut Tx<'_>, merged: &Merged) -> Result<()> {
    for id in &merged.nodes {
        match tx.node(*id, When::Now)? {
            Some(node) if node.kind == Kind::Item => {
                by_id(&node).set(tx, &id.to_string(), &Mark)?;
            }
            Some(_) => {}
            None => {
                let last = tx.history(*id)?.into_iter().map(|it| it.0);
                let last = last.max_by_key(|it| it.updated);
                if let Some(node) = last.filter(|it| it.kind == Kind::Item) {
                    by_id(&node).unset(tx, &id.to_string())?;
                }
            }
        }
    }
    Ok(())
}

/// The passages of an item's node, when they are made again.
pub fn passages_of(node: &Node) -> Vec<Passage> {
    passages(&searched_title(&node.title, &node.props), &node.body)
}

/// Everything by which an item is found besides its text.
fn searched_title(title: &str, props: &Map<String, Value>) -> String {
    let text = |name: &str| props.get(name).and_then(Value::as_str);
    let tags = props.get("tags").and_then(Value::as_array);
    let tags = tags.into_iter().flatten().filter_map(Value::as_str);
    let id = text("id").filter(|it| *it != title);
    let words = [Some(title), id, text("description"), text("category")];
    let words: Vec<&str> = words.into_iter().flatten().chain(tags).collect();
    words.join(" ")
}

/// Every item in an item directory by its root, with what tells whether any of its files was touched.
fn items_on(item_dir: &ItemDir) -> Result<BTreeMap<String, (Place, Hash)>> {
    let walked = item_dir
        .dir
        .walk("", &["__pycache__", "node_modules"], &|_| true)?;
    let mut directories: BTreeMap<String, Place> = BTreeMap::new();
    for file in &walked.files {
        let place = Place::of(item_dir.item_type, &file.name);
        if let Some(
            place @ Place {
                layout: Layout::Directory(_),
                ..
            },
        ) = place
        {
            let root = place.category.join(place.id.as_str());
            // Of two manifests the first decides.
            directories.entry(root).or_insert(place);
        }
    }
    let mut stamps: BTreeMap<String, (Place, Vec<u8>)> = BTreeMap::new();
    for file in &walked.files {
        let above =
            ancestors(&file.name).find_map(|ancestor| Some((ancestor, directories.get(ancestor)?)));
        let (root, place) = match above {
            Some((root, place)) => (root.to_owned(), place.clone()),
            None => match Place::of(item_dir.item_type, &file.name) {
                Some(place) => (file.name.clone(), place),
                None => continue,
            },
        };
        let fresh = || (place, FORM.as_bytes().to_vec());
        let (_, bytes) = stamps.entry(root).or_insert_with(fresh);
        add_stamp(bytes, file);
    }
    let hashed = stamps
        .into_iter()
        .map(|(root, (place, bytes))| (root, (place, Hash::of(&bytes))));
    Ok(hashed.collect())
}

fn add_stamp(bytes: &mut Vec<u8>, file: &Found) {
    let Stamp {
        size_bytes,
        modified_ns,
        changed_ns,
        inode,
    } = file.stamp;
    let line = format!(
        "{}\0{size_bytes}\0{modified_ns}\0{changed_ns}\0{inode}\n",
        file.name
    );
    bytes.extend_from_slice(line.as_bytes());
}

/// What was last seen in an item directory, by where each item lies in it.
pub(super) fn bucket_of(item_dir: &Path) -> Bucket<Row> {
    let path = item_dir.to_string_lossy();
    Bucket::named(format!("items/stamps/{}", Hash::of(path.as_bytes())))
}

fn forget(tx: &mut Tx<'_>, bucket: &Bucket<Row>, root: &str, node: NodeId) -> Result<()> {
    bucket.unset(tx, root)?;
    remove(tx, node)
}

/// Takes a node away, unless somebody has done it already.
pub(super) fn remove(tx: &mut Tx<'_>, node: NodeId) -> Result<()> {
    let Some(before) = tx.node(node, When::Now)? else {
        return Ok(());
    };
    match tx.remove_node(node) {
        Ok(()) => {}
        Err(error) if error.code == Code::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    by_id(&before).unset(tx, &node.to_string())?;
    let mut data = json!({ "nodeId": node.to_string() });
    for name in ["type", "id", "version", "path", "source"] {
        data[name] = before.props.get(name).cloned().unwrap_or_default();
    }
    tx.record("ItemRemoved", data).map(drop)
}

/// The bucket of the nodes whose id is that of this item.
fn by_id(node: &Node) -> Bucket<Mark> {
    let id = node.props.get("id").and_then(Value::as_str);
    bucket_of_id(id.unwrap_or_default())
}

/// The bucket of the nodes with this id, whatever their type and wherever they are.
pub(super) fn bucket_of_id(id: &str) -> Bucket<Mark> {
    Bucket::named(format!("items/ids/{id}"))
}

/// The node of a local item, if it was indexed.
pub(super) fn node_of(
    tx: &dyn ReadTx,
    item_dir: &ItemDir,
    package: &Package,
) -> Result<Option<Node>> {
    let path = package.path_on(item_dir).to_string_lossy().into_owned();
    tx.node_by_key(&item_dir.project, Kind::Item, &path, When::Now)
}

impl Kiwi {
    /// Where the items of an item directory lie.
    pub(super) fn places(&self, item_dir: &ItemDir) -> Result<Vec<Place>> {
        Ok(items_on(item_dir)?.into_values().map(|it| it.0).collect())
    }

    /// The first item of this id, in the order in which item directories are searched.
    pub(super) fn locate(
        &self,
        item_dirs: &[ItemDir],
        id: &str,
    ) -> Result<Option<(ItemDir, Package)>> {
        for item_dir in item_dirs {
            let place = items_on(item_dir)?
                .into_values()
                .map(|it| it.0)
                .find(|it| it.id.as_str() == id);
            if let Some(place) = place {
                return Ok(Some((item_dir.clone(), Package::read(item_dir, &place)?)));
            }
        }
        Ok(None)
    }
}
