//! References of all files as edges.

use super::super::record::{self, Repository};
use super::rows::{self, EdgeRow, FileRow, LinkRow, Shared};
use kenning_audit::{Draft, EdgeDraft, Log, Tx};
use kenning_code::Facts;
use kenning_code::resolve::{Link, Place, Project, Source, Surface, Sym, dependents};
use kenning_core::{Hash, Kind, NodeId, Result, Space};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

/// So many edges are written together …
const BATCH_EDGES: usize = 3_000;
/// … of so many files at most.
const BATCH_FILES: usize = 60;

/// Facts of so many bytes are resolved together, which is about 700,000 lines; in memory they are many times
/// as long. The files of a larger repository that come last have symbols and no references.
const FACTS_BYTES_MAX: usize = 24 << 20;

/// What linking did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Linked {
    /// Symbols of the repository.
    pub(in super::super) n_symbols: u64,
    /// Edges between them.
    pub(in super::super) n_edges: u64,
    /// Files whose references were resolved.
    pub(in super::super) n_resolved: u64,
    /// Edges of those.
    pub(in super::super) n_resolved_edges: u64,
    /// Files whose references are left out, because the repository has too many.
    pub(in super::super) n_left: u64,
}

type Id = [u8; 16];

/// An edge to be.
#[derive(Clone)]
struct Wanted {
    src: End,
    rel: &'static str,
    dst: End,
    confidence: f64,
    props: Map<String, Value>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Node(Id),
    External(String),
    Folder(String),
}

/// Everything that is known of a repository's code.
struct Known {
    files: BTreeMap<String, FileRow>,
    links: BTreeMap<String, LinkRow>,
    sources: Vec<Source>,
    /// What files said that changed since they were linked.
    before: Vec<(String, Facts)>,
    /// Files beyond [`FACTS_BYTES_MAX`].
    n_left: u64,
}

/// Resolves the references of all files that changed, and of those that depend on them. `held` is called in
/// every transaction: it fails when another process has taken over.
pub(in super::super) fn link<H>(
    log: &Log,
    space: &Space,
    repository: &Repository,
    commit: &str,
    held: impl Fn() -> H,
    mut say: impl FnMut(u64, u64) -> Result<()>,
) -> Result<Linked>
where
    H: Fn(&mut Tx<'_>) -> Result<Repository> + Send + 'static,
{
    let known = log.read(space, |tx| read(tx, repository))?;
    let places = due(&known);
    let gone: Vec<String> = known
        .links
        .keys()
        .filter(|it| !known.files.contains_key(*it))
        .cloned()
        .collect();
    let mut linked = Linked {
        n_symbols: known.files.values().map(|it| it.symbols.len() as u64).sum(),
        n_edges: 0,
        n_resolved: places.len() as u64,
        n_resolved_edges: 0,
        n_left: known.n_left,
    };
    let total = places.len() as u64;
    let mut resolved: HashSet<&str> = HashSet::new();
    let mut has_ended = !gone.is_empty();
    if !places.is_empty() {
        let project = Project::new(&known.sources);
        let mut batch: Vec<(String, LinkRow, Vec<Wanted>)> = Vec::new();
        let mut n_batch = 0;
        for (n, f) in places.iter().enumerate() {
            let source = &known.sources[*f];
            let Some(row) = known.files.get(&source.path) else {
                continue;
            };
            let f = u32::try_from(*f).unwrap_or(u32::MAX);
            let wanted = wanted(&known, &project, f, row);
            linked.n_resolved_edges += wanted.len() as u64;
            n_batch += wanted.len();
            resolved.insert(&source.path);
            let old = known.links.get(&source.path);
            let old = LinkRow {
                format: record::FORMAT,
                facts: row.facts.clone(),
                edges: old.map(|it| it.edges.clone()).unwrap_or_default(),
            };
            batch.push((source.path.clone(), old, wanted));
            let is_last = n + 1 == places.len();
            if is_last || n_batch >= BATCH_EDGES || batch.len() >= BATCH_FILES {
                say(n as u64, total)?;
                let (batch, held) = (std::mem::take(&mut batch), held());
                n_batch = 0;
                let commit = commit.to_owned();
                has_ended |= log.write(space, move |tx| {
                    let mut repository = held(tx)?;
                    let edges = batch.iter().map(|it| it.2.len() as u64);
                    repository.pending.n_edges += edges.sum::<u64>();
                    repository.put(tx)?;
                    write(tx, &repository, &commit, batch)
                })?;
            }
        }
    }
    let rest = known
        .links
        .iter()
        .filter(|it| !resolved.contains(it.0.as_str()));
    let rest = rest.filter(|it| known.files.contains_key(it.0));
    linked.n_edges = linked.n_resolved_edges;
    linked.n_edges += rest.map(|it| it.1.edges.len() as u64).sum::<u64>();
    if has_ended || !known.before.is_empty() {
        let held = held();
        let now: HashSet<&String> = known.files.values().map(|it| &it.facts).collect();
        let old = known.links.values().map(|it| &it.facts);
        let unused: HashSet<String> = old.filter(|it| !now.contains(it)).cloned().collect();
        log.write(space, move |tx| {
            let repository = held(tx)?;
            sweep(tx, &repository, &gone, &unused)
        })?;
    }
    Ok(linked)
}

fn read(tx: &dyn kenning_store::ReadTx, repository: &Repository) -> Result<Known> {
    let files: BTreeMap<String, FileRow> = rows::all(tx, &rows::files(repository))?;
    let links: BTreeMap<String, LinkRow> = rows::all(tx, &rows::links(repository))?;
    let is_linked = |path: &String, row: &FileRow| {
        let link = links.get(path);
        link.is_some_and(|it| it.facts == row.facts && it.format == record::FORMAT)
    };
    let is_done = files.iter().all(|it| is_linked(it.0, it.1)) && links.len() == files.len();
    let mut known = Known {
        sources: Vec::new(),
        before: Vec::new(),
        n_left: 0,
        files,
        links,
    };
    if is_done {
        return Ok(known);
    }
    let mut bytes = 0;
    for (path, row) in &known.files {
        let mut facts = Facts::default();
        if bytes <= FACTS_BYTES_MAX
            && let Some((found, n)) = rows::facts(tx, &row.facts)?
        {
            bytes += n;
            facts = found;
        }
        known.n_left += u64::from(bytes > FACTS_BYTES_MAX);
        known.sources.push(Source {
            path: path.clone(),
            facts,
        });
    }
    for (path, link) in &known.links {
        let now = known.files.get(path).map(|it| &it.facts);
        if now != Some(&link.facts) {
            let facts = rows::facts(tx, &link.facts)?.unwrap_or_default().0;
            known.before.push((path.clone(), facts));
        }
    }
    Ok(known)
}

/// Which files must be linked, by their places.
fn due(known: &Known) -> Vec<usize> {
    let mut changed: Vec<usize> = Vec::new();
    for (n, source) in known.sources.iter().enumerate() {
        let (row, link) = (known.files.get(&source.path), known.links.get(&source.path));
        let is_linked = row
            .zip(link)
            .is_some_and(|(row, link)| row.facts == link.facts && link.format == record::FORMAT);
        if !is_linked {
            changed.push(n);
        }
    }
    // When most of it is new, nothing is saved by asking.
    if changed.len() * 2 > known.sources.len() {
        return (0..known.sources.len()).collect();
    }
    let current: Vec<Surface<'_>> = known
        .sources
        .iter()
        .map(|it| Surface::of(&it.path, &it.facts))
        .collect();
    let before: HashMap<&str, Surface<'_>> = known
        .before
        .iter()
        .map(|(path, facts)| (path.as_str(), Surface::of(path, facts)))
        .collect();
    let mut pairs: Vec<(Option<&Surface<'_>>, Option<&Surface<'_>>)> = Vec::new();
    for n in &changed {
        let path = known.sources[*n].path.as_str();
        pairs.push((before.get(path), current.get(*n)));
    }
    for (path, surface) in &before {
        if !known.files.contains_key(*path) {
            pairs.push((Some(surface), None));
        }
    }
    let mut all: Vec<usize> = dependents(&current, &pairs);
    all.extend(changed);
    all.sort_unstable();
    all.dedup();
    all
}

/// The weight of an edge, and its properties.
type Properties = (f64, Map<String, Value>);

/// The edges that a file says.
fn wanted(known: &Known, project: &Project<'_>, f: u32, row: &FileRow) -> Vec<Wanted> {
    let source = &known.sources[f as usize];
    let mut all: BTreeMap<(End, &'static str, End), Properties> = BTreeMap::new();
    let mut plain = |src: End, rel: &'static str, dst: End| {
        all.insert((src, rel, dst), (1.0, Map::new()));
    };
    let document = End::Node(row.document);
    if source.facts.language.is_some() {
        let folder = source.path.rsplit_once('/').map_or("", |it| it.0);
        plain(
            document.clone(),
            "BELONGS_TO",
            End::Folder(folder.to_owned()),
        );
    }
    for (symbol, id) in source.facts.symbols.iter().zip(&row.symbols) {
        plain(document.clone(), "CONTAINS", End::Node(*id));
        let parent = symbol.parent.and_then(|it| row.symbols.get(it as usize));
        if let Some(parent) = parent {
            plain(End::Node(*parent), "CONTAINS", End::Node(*id));
        }
    }
    for id in &row.imports {
        plain(document.clone(), "CONTAINS", End::Node(*id));
    }
    for link in project.links(f) {
        let ends = (end(known, &link.from), end(known, &link.to));
        if let (Some(src), Some(dst)) = ends {
            let props = props(&link);
            let key = (src, link.relation.as_str(), dst);
            all.insert(key, (f64::from(link.confidence), props));
        }
    }
    // A method that stands outside of its type belongs to it all the same.
    for (n, symbol) in (0..).zip(&source.facts.symbols) {
        if symbol.owner.is_none() {
            continue;
        }
        let of = project
            .owner(Sym { file: f, n })
            .and_then(|it| node(known, it));
        if let (Some(of), Some(id)) = (of, row.symbols.get(n as usize)) {
            let key = (End::Node(of), "CONTAINS", End::Node(*id));
            all.insert(key, (1.0, Map::new()));
        }
    }
    let wanted = |((src, rel, dst), (confidence, props))| Wanted {
        src,
        rel,
        dst,
        confidence,
        props,
    };
    all.into_iter().map(wanted).collect()
}

fn props(link: &Link) -> Map<String, Value> {
    let confidence = (f64::from(link.confidence) * 1_000.0).round() / 1_000.0;
    let Value::Object(props) = json!({
        "confidence": confidence,
        "origin": link.origin.as_str(),
        "line_number": link.lines.first(),
        "lines": link.lines,
    }) else {
        return Map::new();
    };
    props
}

fn node(known: &Known, sym: Sym) -> Option<Id> {
    let source = known.sources.get(sym.file as usize)?;
    let row = known.files.get(&source.path)?;
    row.symbols.get(sym.n as usize).copied()
}

fn end(known: &Known, place: &Place) -> Option<End> {
    Some(match place {
        Place::Symbol(sym) => End::Node(node(known, *sym)?),
        Place::File(f) => {
            let source = known.sources.get(*f as usize)?;
            End::Node(known.files.get(&source.path)?.document)
        }
        Place::Folder(path) => End::Folder(path.clone()),
        Place::External(name) => End::External(name.clone()),
    })
}

/// Writes the edges of some files, as one event. Says whether an edge ended.
fn write(
    tx: &mut Tx<'_>,
    repository: &Repository,
    commit: &str,
    batch: Vec<(String, LinkRow, Vec<Wanted>)>,
) -> Result<bool> {
    let mut nodes = Nodes {
        repository,
        known: HashMap::new(),
    };
    let (mut n_put, mut n_ended) = (0_u64, 0_u64);
    let n_files = batch.len();
    for (path, old, wanted) in batch {
        let mut before: BTreeMap<(Id, String, Id), u64> = old
            .edges
            .into_iter()
            .map(|it| ((it.src, it.rel, it.dst), it.digest))
            .collect();
        let mut row = LinkRow {
            format: old.format,
            facts: old.facts,
            edges: Vec::with_capacity(wanted.len()),
        };
        for it in wanted {
            let (src, dst) = (nodes.id(tx, it.src)?, nodes.id(tx, it.dst)?);
            let digest = digest(it.confidence, &it.props);
            if before.remove(&(src, it.rel.to_owned(), dst)) != Some(digest) {
                n_put += 1;
                tx.put_edge(EdgeDraft {
                    src: NodeId(src),
                    rel: it.rel.to_owned(),
                    dst: NodeId(dst),
                    weight: it.confidence,
                    props: it.props,
                })?;
            }
            row.edges.push(EdgeRow {
                src,
                rel: it.rel.to_owned(),
                dst,
                digest,
            });
        }
        for (src, rel, dst) in before.into_keys() {
            n_ended += 1;
            tx.end_edge(NodeId(src), &rel, NodeId(dst))?;
        }
        rows::set(tx, &rows::links(repository), &path, &row)?;
    }
    if n_put + n_ended > 0 {
        let data = json!({
            "repo": repository.name, "commit": commit, "files": n_files, "put": n_put,
            "ended": n_ended,
        });
        tx.record("CodeLinked", data)?;
    }
    Ok(n_ended > 0)
}

fn digest(confidence: f64, props: &Map<String, Value>) -> u64 {
    let text = format!("{confidence} {}", Value::Object(props.clone()));
    let hash = Hash::of(text.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.0[..8]);
    u64::from_be_bytes(first)
}

/// Nodes that several files share, made when the first refers to them.
struct Nodes<'a> {
    repository: &'a Repository,
    /// By whether it is outside, and its name.
    known: HashMap<(bool, String), Id>,
}

impl Nodes<'_> {
    fn id(&mut self, tx: &mut Tx<'_>, end: End) -> Result<Id> {
        let (shared, name) = match end {
            End::Node(id) => return Ok(id),
            End::External(name) => (Shared::External, name),
            End::Folder(path) => (Shared::Folder, path),
        };
        let key = (shared == Shared::External, name.clone());
        if let Some(id) = self.known.get(&key) {
            return Ok(*id);
        }
        let bucket = shared.bucket(self.repository);
        let id = match rows::get::<Id>(&**tx, &bucket, &name)? {
            Some(id) => id,
            None => {
                let node = tx.put_node(self.draft(shared, &name))?;
                rows::set(tx, &bucket, &name, &node.id.0)?;
                node.id.0
            }
        };
        self.known.insert(key, id);
        Ok(id)
    }

    fn draft(&self, shared: Shared, name: &str) -> Draft {
        let rid = self.repository.rid("");
        let (label, key, short) = match shared {
            Shared::External => {
                let short = name.rsplit(['.', '/']).next().unwrap_or(name);
                ("External", format!("{rid}#external {name}"), short)
            }
            Shared::Folder => {
                let short = name.rsplit('/').next().filter(|it| !it.is_empty());
                let short = short.unwrap_or(&self.repository.name);
                ("Module", format!("{rid}#folder {name}"), short)
            }
        };
        let mut props = Map::new();
        for (key, value) in [
            ("source", "github"),
            ("label", label),
            ("name", short),
            ("repo", &self.repository.name),
        ] {
            props.insert(key.to_owned(), value.into());
        }
        props.insert("entity_type".to_owned(), label.to_lowercase().into());
        match shared {
            Shared::External => props.insert("qualified_name".to_owned(), name.into()),
            Shared::Folder => {
                props.insert("module_name".to_owned(), short.into());
                props.insert("module_path".to_owned(), name.into())
            }
        };
        Draft {
            kind: Kind::Symbol,
            project: String::new(),
            key,
            title: match shared {
                Shared::External => name.to_owned(),
                Shared::Folder => short.to_owned(),
            },
            body: String::new(),
            props,
        }
    }
}

/// Removes what nothing refers to any more.
fn sweep(
    tx: &mut Tx<'_>,
    repository: &Repository,
    gone: &[String],
    unused: &HashSet<String>,
) -> Result<()> {
    for path in gone {
        rows::unset(tx, &rows::links(repository), path)?;
    }
    let links: BTreeMap<String, LinkRow> = rows::all(&**tx, &rows::links(repository))?;
    let edges = links.values().flat_map(|it| &it.edges);
    let used: HashSet<Id> = edges.map(|it| it.dst).collect();
    let mut n_removed = 0_u64;
    for shared in [Shared::External, Shared::Folder] {
        let bucket = shared.bucket(repository);
        for (name, id) in rows::all::<Id>(&**tx, &bucket)? {
            if !used.contains(&id) {
                rows::remove_node(tx, id)?;
                rows::unset(tx, &bucket, &name)?;
                n_removed += 1;
            }
        }
    }
    rows::sweep_facts(tx, unused)?;
    if n_removed > 0 {
        let data = json!({ "repo": repository.name, "removed": n_removed });
        tx.record("CodeSwept", data)?;
    }
    Ok(())
}
