//! What a scan changes: which files are read, moved and removed, and the documents they become.

use super::Skipped;
use super::code::{self, Prepared};
use super::git::Git;
use super::record::{Known, Repository};
use super::scan::{LOOK_WALL, NOT_TEXT, bounds};
use super::select::{self, Blob};
use kenning_audit::{Draft, Passages, Tx};
use kenning_code::Facts;
use kenning_core::{Error, Kind, NodeId, Result};
use kenning_search::passages;
use kenning_store::When;
use kenning_text::hex;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// … and so much of them: what is made of a text can be a hundred times as long.
const BATCH_BYTES: u64 = 3 << 20;

/// So many files are written together, at most …
pub(super) const BATCH_FILES: usize = 200;

/// The commit whose files are read.
pub(super) struct Commit {
    pub(super) sha: String,
    pub(super) author: String,
    /// The branch that it is the last one of.
    pub(super) branch: Option<String>,
}

/// What a file becomes.
pub(super) struct Reading {
    pub(super) blob: Blob,
    /// `None` if it is not text.
    pub(super) text: Option<String>,
    pub(super) passages: Passages,
    /// Its symbols, if it is read for them.
    pub(super) code: Option<Prepared>,
    /// The document of the renamed file.
    pub(super) from: Option<(String, NodeId)>,
}

/// How the tree differs from what is known.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) put: Vec<(Blob, Option<(String, NodeId)>)>,
    pub(super) removed: Vec<String>,
    /// Files of the tree that are documents, or would be if they were text.
    pub(super) n_files: u64,
    /// Files that are not read, or only as texts: the first of them, and how many.
    pub(super) skipped: Vec<Skipped>,
    pub(super) n_skipped: u64,
}

impl Plan {
    pub(super) fn skip(&mut self, path: String, reason: &str) {
        self.n_skipped += 1;
        if self.skipped.len() < SKIPPED_SHOWN_MAX {
            let reason = reason.to_owned();
            self.skipped.push(Skipped { path, reason });
        }
    }
}

/// So many files that were not read are named.
const SKIPPED_SHOWN_MAX: usize = 20;

/// What is new, other or gone. A content that went from one name to another is the same document.
pub(super) fn plan(wanted: Vec<Blob>, mut known: BTreeMap<String, Known>) -> Plan {
    let mut plan = Plan {
        n_files: wanted.len() as u64,
        ..Plan::default()
    };
    let mut differing = Vec::new();
    for blob in wanted {
        match known.remove(&blob.path) {
            Some(it) if it.object == blob.object => {
                if it.document.is_none() {
                    plan.skip(blob.path, NOT_TEXT);
                }
            }
            Some(_) => differing.push((blob, false)),
            None => differing.push((blob, true)),
        }
    }
    // What is left of the known ones is gone, or has another name.
    let mut gone: HashMap<&str, Vec<(&String, NodeId)>> = HashMap::new();
    for (path, it) in known.iter().rev() {
        if let Some((node, _)) = it.document {
            gone.entry(&it.object).or_default().push((path, node));
        }
    }
    let mut moved = Vec::new();
    for (blob, is_new) in differing {
        let from = is_new
            .then(|| gone.get_mut(blob.object.as_str())?.pop())
            .flatten()
            .map(|(path, node)| (path.clone(), node));
        moved.extend(from.iter().map(|it| it.0.clone()));
        plan.put.push((blob, from));
    }
    for path in moved {
        known.remove(&path);
    }
    plan.removed = known.into_keys().collect();
    plan
}

pub(super) fn batches<T>(all: Vec<(Blob, T)>) -> impl Iterator<Item = Vec<(Blob, T)>> {
    let mut rest = all.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some((blob, _)) = rest.peek() {
            bytes += blob.size_bytes;
            if batch.len() == BATCH_FILES || (bytes > BATCH_BYTES && !batch.is_empty()) {
                break;
            }
            batch.extend(rest.next());
        }
        (!batch.is_empty()).then_some(batch)
    })
}

/// The contents of a batch, out of the objects and not out of files.
pub(super) fn read(
    git: &Git<'_>,
    repository: &Repository,
    batch: Vec<(Blob, Option<(String, NodeId)>)>,
    mut known: HashMap<String, Facts>,
) -> Result<Vec<Reading>> {
    let mut wanted = String::new();
    for (blob, _) in &batch {
        wanted.push_str(&blob.object);
        wanted.push('\n');
    }
    let most = batch.iter().map(|it| it.0.size_bytes + 200).sum();
    let printed = git.ask(
        &["cat-file", "--batch"],
        wanted.into_bytes(),
        bounds(LOOK_WALL, most),
    )?;
    let contents = select::contents(&printed);
    if contents.len() != batch.len() || contents.iter().any(Option::is_none) {
        return Err(
            Error::unavailable("`git cat-file` lacks objects of the commit")
                .hint("scan again; if that does not help, look at the repository with `git fsck`"),
        );
    }
    let texts: Vec<_> = batch
        .into_iter()
        .zip(contents)
        .map(|((blob, from), content)| {
            let facts = known.remove(&blob.path);
            (blob, from, content.and_then(select::text), facts)
        })
        .collect();
    Ok(on_two_threads(texts, |(blob, from, text, facts)| {
        let cut = text.as_deref().map(|it| passages(&blob.path, it).into());
        let code = text.as_deref();
        let code =
            code.and_then(|it| code::prepare(repository, &blob.path, &blob.object, it, facts));
        Reading {
            passages: cut.unwrap_or_default(),
            code,
            text,
            blob,
            from,
        }
    }))
}

/// Every second one on another thread: cutting and parsing is all that a scan waits for.
fn on_two_threads<T: Send, U: Send>(all: Vec<T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    let (mut even, mut odd) = (Vec::new(), Vec::new());
    for (n, it) in all.into_iter().enumerate() {
        if n % 2 == 0 {
            even.push(it);
        } else {
            odd.push(it);
        }
    }
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| odd.into_iter().map(&work).collect::<Vec<U>>());
        let even: Vec<U> = even.into_iter().map(&work).collect();
        (even, odd.join())
    });
    let odd = match odd {
        Ok(odd) => odd,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let mut odd = odd.into_iter();
    let mut joined = Vec::new();
    for it in even {
        joined.push(it);
        joined.extend(odd.next());
    }
    joined
}

/// Makes a file's document what the file is.
pub(super) fn put(
    tx: &mut Tx<'_>,
    repository: &Repository,
    commit: &Commit,
    reading: Reading,
) -> Result<()> {
    let Reading {
        blob,
        text,
        from,
        code,
        passages: cut,
    } = reading;
    let from_path = from.as_ref().map(|it| it.0.clone());
    let bucket = repository.files();
    let key = repository.rid(&blob.path);
    let before = tx.node_by_key("", Kind::Document, &key, When::Now)?;
    let Some(text) = text else {
        if let Some(before) = before {
            code::remove(tx, repository, &blob.path)?;
            tx.remove_node(before.id)?;
            record_event(
                tx,
                "DocumentRemoved",
                repository,
                &commit.sha,
                &blob.path,
                json!({}),
            )?;
        }
        let known = Known {
            object: blob.object,
            document: None,
        };
        return bucket.set(tx, &blob.path, &known);
    };
    let content_hash = hex::sha256(text.as_bytes())[..32].to_owned();
    let mut props = Map::new();
    for (name, value) in [
        ("source", Value::from("github")),
        ("repo", repository.name.as_str().into()),
        ("path", blob.path.as_str().into()),
        ("commit_sha", commit.sha.as_str().into()),
        ("author", commit.author.as_str().into()),
        ("content_hash", content_hash.as_str().into()),
        ("file_type", blob.file_type.as_str().into()),
        ("line_count", text.lines().count().into()),
        ("byte_size", text.len().into()),
    ] {
        props.insert(name.to_owned(), value);
    }
    for (name, value) in [
        ("label", Value::from("File")),
        ("name", name_of(&blob.path).into()),
        ("file_path", blob.path.as_str().into()),
    ] {
        props.insert(name.to_owned(), value);
    }
    if let Some(language) = code.as_ref().and_then(|it| it.language) {
        props.insert("language".to_owned(), language.as_str().into());
    }
    if let Some(gap) = code.as_ref().and_then(|it| it.gap.as_deref()) {
        props.insert("gap".to_owned(), gap.into());
    }
    let n_symbols = code.as_ref().map_or(0, Prepared::n_symbols);
    if n_symbols > 0 {
        props.insert("code_entity_count".to_owned(), n_symbols.into());
    }
    let draft = Draft {
        kind: Kind::Document,
        project: String::new(),
        key,
        title: blob.path.clone(),
        body: text,
        props,
    };
    let mut kind = match &before {
        Some(_) => "DocumentChanged",
        None => "DocumentAdded",
    };
    let mut details = json!({ "content": content_hash });
    let moved = match from {
        Some((path, node)) if before.is_none() && tx.node(node, When::Now)?.is_some() => {
            bucket.unset(tx, &path)?;
            kind = "DocumentMoved";
            details["from"] = repository.rid(&path).into();
            Some(node)
        }
        Some((path, _)) => {
            remove(tx, repository, &commit.sha, &path)?;
            None
        }
        None => None,
    };
    let node = match moved {
        Some(node) => tx.move_node(node, draft)?,
        None => tx.put_node(draft)?,
    };
    tx.put_hashed_passages(node.id, &cut)?;
    code::put(
        tx,
        repository,
        &blob.path,
        node.id,
        code,
        from_path.as_deref(),
    )?;
    if n_symbols > 0 {
        details["symbols"] = n_symbols.into();
    }
    let known = Known {
        object: blob.object,
        document: Some((node.id, cut.len() as u64)),
    };
    bucket.set(tx, &blob.path, &known)?;
    details["nodeId"] = node.id.to_string().into();
    record_event(tx, kind, repository, &commit.sha, &blob.path, details)
}

/// Forgets a file that is no longer in the repository.
pub(super) fn remove(
    tx: &mut Tx<'_>,
    repository: &Repository,
    commit: &str,
    path: &str,
) -> Result<()> {
    repository.files().unset(tx, path)?;
    let key = repository.rid(path);
    code::remove(tx, repository, path)?;
    let Some(node) = tx.node_by_key("", Kind::Document, &key, When::Now)? else {
        return Ok(());
    };
    tx.remove_node(node.id)?;
    let details = json!({ "nodeId": node.id.to_string() });
    record_event(tx, "DocumentRemoved", repository, commit, path, details)
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |it| it.1)
}

pub(super) fn record_event(
    tx: &mut Tx<'_>,
    kind: &str,
    repository: &Repository,
    commit: &str,
    path: &str,
    details: Value,
) -> Result<()> {
    let mut data = json!({
        "rid": repository.rid(path), "source": "github", "repo": repository.name, "path": path,
        "commit": commit,
    });
    if let (Some(data), Value::Object(details)) = (data.as_object_mut(), details) {
        data.extend(details);
    }
    tx.record(kind, data).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(path: &str, object: &str) -> Blob {
        Blob {
            path: path.to_owned(),
            object: object.to_owned(),
            size_bytes: 1 << 20,
            file_type: "md".to_owned(),
        }
    }

    fn known(rows: &[(&str, &str, u8)]) -> BTreeMap<String, Known> {
        let row = |&(path, object, n): &(&str, &str, u8)| {
            let known = Known {
                object: object.to_owned(),
                document: (n > 0).then_some((NodeId([n; 16]), 1)),
            };
            (path.to_owned(), known)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn a_plan_reads_what_differs_moves_what_was_renamed_and_removes_what_is_gone() {
        let wanted = vec![
            blob("same.md", "1"),
            blob("changed.md", "2b"),
            blob("new.md", "3"),
            blob("renamed.md", "4"),
            blob("copy.md", "4"),
        ];
        let known = known(&[
            ("same.md", "1", 1),
            ("changed.md", "2a", 2),
            ("old.md", "4", 4),
            ("gone.md", "5", 5),
            ("binary.md", "6", 0),
        ]);
        let plan = plan(wanted, known);
        let put: Vec<(&str, Option<&str>)> = plan
            .put
            .iter()
            .map(|(blob, from)| (blob.path.as_str(), from.as_ref().map(|it| it.0.as_str())))
            .collect();
        let expected = [
            ("changed.md", None),
            ("new.md", None),
            ("renamed.md", Some("old.md")),
            ("copy.md", None),
        ];
        assert_eq!(put, expected);
        assert_eq!(plan.removed, ["binary.md", "gone.md"]);
        assert_eq!(plan.n_files, 5);
    }

    #[test]
    fn batches_are_bounded_by_files_and_by_bytes_and_lose_nothing() {
        let all: Vec<(Blob, ())> = (0..7).map(|n| (blob(&n.to_string(), "x"), ())).collect();
        let sizes: Vec<usize> = batches(all).map(|it| it.len()).collect();
        assert_eq!(sizes, [3, 3, 1], "1 MiB each, 3 MiB together");
        let mut small: Vec<(Blob, ())> = Vec::new();
        for n in 0..450 {
            let blob = Blob {
                size_bytes: 1,
                ..blob(&n.to_string(), "x")
            };
            small.push((blob, ()));
        }
        let sizes: Vec<usize> = batches(small).map(|it| it.len()).collect();
        assert_eq!(sizes, [200, 200, 50]);
    }
}
