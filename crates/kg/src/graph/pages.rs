//! One document, written or removed: its node, its card and its event.

use super::cards::{self, Card, VAULT_CARDS};
use super::library::{NODE_CREATED, NODE_DELETED, NODE_UPDATED};
use super::survey::{self, Read};
use super::{links, note};
use kenning_audit::{Passages, Tx};
use kenning_core::{Code, Hash, NodeId, Result, Space};
use kenning_kernel::journal::{self, INTENTS, Intent, Journal};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A document, ready to be written.
pub(super) struct Page {
    pub(super) path: String,
    pub(super) card: Card,
    pub(super) frontmatter: Map<String, Value>,
    pub(super) text: String,
    pub(super) passages: Passages,
    /// The node of a file that was renamed.
    pub(super) moved: Option<(NodeId, String)>,
    /// What the file held when the run began, as far as was known.
    pub(super) known: Option<Hash>,
}

/// Files that are new under a name and gone under another, with the same content: by the new name,
/// the node and the old name.
pub(super) fn renames(
    reads: &[Read<'_>],
    removed: &[(String, &Card)],
) -> HashMap<String, (NodeId, String)> {
    let mut gone: BTreeMap<(bool, [u8; 32]), BTreeSet<&str>> = BTreeMap::new();
    let nodes: HashMap<&str, NodeId> = removed
        .iter()
        .map(|(path, card)| (path.as_str(), card.node))
        .collect();
    for (path, card) in removed {
        gone.entry((card.is_of_vault(), card.content.0))
            .or_default()
            .insert(path);
    }
    let mut found = HashMap::new();
    for read in reads.iter().filter(|it| it.task.before.is_none()) {
        let key = (read.task.tree.is_vault, read.card.content.0);
        let Some(candidates) = gone.get_mut(&key) else {
            continue;
        };
        // Of several files with one content, the one that kept its own name moved.
        let last = |path: &str| path.rsplit(['/', ':']).next().map(ToOwned::to_owned);
        let name = last(&read.task.path);
        let from = candidates
            .iter()
            .find(|it| last(it) == name)
            .or_else(|| candidates.first())
            .copied();
        if let Some(from) = from {
            candidates.remove(from);
            found.insert(read.task.path.clone(), (nodes[from], from.to_owned()));
        }
    }
    found
}

/// Cuts a text into words. `None` if the file is no longer what was read.
pub(super) fn page(read: Read<'_>, moved: Option<(NodeId, String)>, now_ms: u64) -> Option<Page> {
    let Read {
        task,
        mut card,
        frontmatter,
        text,
    } = read;
    let text = match text {
        Some(text) => text,
        None => {
            let again = survey::read(task).ok()?;
            if Hash::of(again.bytes()) != card.content {
                return None;
            }
            again.into_string()
        }
    };
    card.put_stamp(task.stamp, now_ms);
    let passages = note::passages_of_card(&card, &text).into();
    Some(Page {
        path: task.path.clone(),
        card,
        frontmatter,
        text,
        passages,
        moved,
        known: task.before.map(|it| it.content),
    })
}

pub(super) enum Change {
    New,
    Changed,
    Same,
}

pub(super) struct Written {
    pub(super) path: String,
    pub(super) card: Card,
    pub(super) change: Change,
    pub(super) moved_from: Option<String>,
}

/// Whether a note was written since the run began: then what the run read of it, which has the hash `read`,
/// is not the newest. What somebody else made of a file ends a write that was to come to it.
pub(super) fn is_written_meanwhile(
    tx: &mut Tx<'_>,
    (journal, space): (&Journal, &Space),
    path: &str,
    known: Option<Hash>,
    read: Option<Hash>,
) -> Result<bool> {
    if !path.starts_with("vault:") {
        return Ok(false);
    }
    let intent = INTENTS.get_readable(&**tx, path)?;
    let change = intent.as_ref().and_then(Intent::only);
    if let (Some(intent), Some(change)) = (&intent, change)
        && change.is_ahead_of(read)
        && !journal.is_done(space, path, intent)
    {
        return Ok(true);
    }
    // A card of another version is none: its file is read again.
    let card = VAULT_CARDS.get_readable(&**tx, path)?;
    if card.map(|it| it.content) != known {
        return Ok(true);
    }
    if change.is_some_and(|it| it.after != read) {
        journal::give_up(tx, path)?;
    }
    Ok(false)
}

/// None if the page is not the newest.
pub(super) fn write_page(
    tx: &mut Tx<'_>,
    journal: (&Journal, &Space),
    project: &str,
    page: Page,
) -> Result<Option<Written>> {
    let Page {
        path,
        mut card,
        frontmatter,
        text,
        passages,
        moved,
        known,
    } = page;
    if is_written_meanwhile(tx, journal, &path, known, Some(card.content))? {
        return Ok(None);
    }
    let bucket = cards::bucket_of(&path, project);
    let draft = note::draft(&card, frontmatter, &path, project, text);
    let node = match &moved {
        Some((id, _)) => tx.move_node(*id, draft)?,
        None => tx.put_node(draft)?,
    };
    card.node = node.id;
    tx.put_hashed_passages(node.id, &passages)?;
    if let Some((_, from)) = &moved {
        bucket.unset(tx, from)?;
        links::bucket_of(&path, project).unset(tx, from)?;
    }
    bucket.set(tx, &path, &card)?;
    let change = match (node.updated == tx.now(), node.rev) {
        (false, _) => Change::Same,
        (true, 1) => Change::New,
        (true, _) => Change::Changed,
    };
    if !matches!(change, Change::Same) {
        let kind = if matches!(change, Change::New) {
            NODE_CREATED
        } else {
            NODE_UPDATED
        };
        let mut data = event_data(project, &path, node.id);
        data.insert("nodeType".to_owned(), card.doc_type.as_str().into());
        if let Some((_, from)) = &moved {
            // Whoever follows the log must forget the old name.
            data.insert("renamedFrom".to_owned(), from.as_str().into());
        }
        tx.record(kind, Value::Object(data))?;
    }
    Ok(Some(Written {
        path,
        card,
        change,
        moved_from: moved.map(|it| it.1),
    }))
}

/// What the events of documents say.
pub(super) fn event_data(project: &str, path: &str, node: NodeId) -> Map<String, Value> {
    let project = if path.starts_with("vault:") {
        ""
    } else {
        project
    };
    let mut data = Map::new();
    data.insert("nodeId".to_owned(), node.to_string().into());
    data.insert("path".to_owned(), path.into());
    data.insert("project".to_owned(), project.into());
    data
}

pub(super) fn remove_document(
    tx: &mut Tx<'_>,
    project: &str,
    path: &str,
    node: NodeId,
) -> Result<()> {
    cards::bucket_of(path, project).unset(tx, path)?;
    links::bucket_of(path, project).unset(tx, path)?;
    match tx.remove_node(node) {
        Ok(()) => {}
        // Somebody removed it before us; its card is what was left.
        Err(error) if error.code == Code::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    tx.record(NODE_DELETED, Value::Object(event_data(project, path, node)))
        .map(drop)
}
