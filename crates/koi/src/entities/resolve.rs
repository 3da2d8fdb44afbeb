//! Which entity a label means, by what is in the store.

use super::identity::is_vetoed;
use super::index::{ALIAS, EXACT, RID, SOUND, lines};
use super::spelling::SIMILARITY_MIN;
use super::{DESCRIBES, MENTIONS, VAULT, aliases, kind};
use crate::Koi;
use kenning_core::{Code, Error, Kind, NodeId, Result, Space};
use kenning_entities::names::{composed, decomposed};
use kenning_entities::resolve::{
    Candidates, Companion, Context, Entity, Query, Resolution, resolve,
};
use kenning_kernel::search::Question;
use kenning_kernel::{Caller, Kernel, Scope, Text};
use kenning_search::Filter;
use kenning_store::{EdgeFilter, Node, ReadTx, When};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// So many names are asked for their meaning.
const MEANINGS: usize = 5;
/// A label that means something less surely means nothing known.
const CONFIDENCE_MIN: f64 = 0.5;
/// So many documents that mention somebody, and so many mentions in each, are looked at.
const COMPANY_DOCUMENTS: usize = 500;

impl Koi {
    /// Which entities a label may mean, the surest first; what it would become if it means none. Nothing is
    /// stored.
    pub fn resolve_entity(
        &self,
        caller: &Caller,
        label: &str,
        type_hint: Option<&str>,
        context: Context,
    ) -> Result<Resolution> {
        caller.principal.require(Scope::Read)?;
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        let query = Query {
            label,
            kind: type_hint,
            context,
            limit: 0,
        };
        self.read_naming(space, |tx, meanings| {
            self.resolve_label(space, tx, meanings, &query)
        })
    }

    /// The same, and what somebody should know who named a type and found nothing of it: that there is no
    /// such type, and who is called so and has another one.
    pub fn resolve_entity_with_doubts(
        &self,
        caller: &Caller,
        label: &str,
        type_hint: Option<&str>,
        context: Context,
    ) -> Result<(Resolution, Vec<String>)> {
        caller.principal.require(Scope::Read)?;
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        let query = Query {
            label,
            kind: type_hint,
            context,
            limit: 0,
        };
        let hint = type_hint.map(str::trim).filter(|it| !it.is_empty());
        self.read_naming(space, |tx, meanings| {
            let found = self.resolve_label(space, tx, meanings, &query)?;
            let doubts = match hint {
                Some(hint) if found.is_new() => {
                    self.doubts_of_type(space, tx, meanings, label, hint)?
                }
                _ => Vec::new(),
            };
            Ok((found, doubts))
        })
    }

    fn resolve_label(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        meanings: &Meanings,
        query: &Query<'_>,
    ) -> Result<Resolution> {
        let Some(node) = by_note(tx, query.label.trim())? else {
            return self.resolve_in(space, tx, meanings, query);
        };
        let named = Query {
            label: &node.title,
            kind: Some(kind(&node)),
            ..query.clone()
        };
        let mut found = self.resolve_in(space, tx, meanings, &named)?;
        for it in &mut found.candidates {
            it.merged_with = Some(query.label.to_owned());
        }
        Ok(found)
    }

    fn doubts_of_type(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        meanings: &Meanings,
        label: &str,
        hint: &str,
    ) -> Result<Vec<String>> {
        let ontology = self.ontology(space, tx)?;
        let mut doubts = Vec::new();
        if ontology.kind(hint).is_none() {
            let hint: String = hint.chars().take(60).collect();
            let known: Vec<&str> = ontology.kinds().iter().map(|it| it.key.as_str()).collect();
            let known = known.join(", ");
            doubts.push(format!(
                "`type_hint`: `{hint}` is none of the types: {known}"
            ));
        }
        let query = Query {
            label,
            ..Query::default()
        };
        let found = self.resolve_in(space, tx, meanings, &query)?;
        let others = found.candidates.iter().filter(|it| it.is_sure()).take(3);
        doubts.extend(others.map(|it| {
            let (name, kind, uri) = (&it.entity.name, &it.entity.kind, &it.entity.uri);
            format!("`{name}` is known as {kind}: {uri}")
        }));
        Ok(doubts)
    }

    /// Runs `work` on a snapshot of a space. If a name needs a model, the model is asked after the transaction
    /// has ended, and `work` runs again.
    pub(crate) fn read_naming<T>(
        &self,
        space: &Space,
        work: impl Fn(&dyn ReadTx, &Meanings) -> Result<T>,
    ) -> Result<T> {
        let meanings = Meanings::default();
        loop {
            let done = self.kernel.log().read(space, |tx| work(tx, &meanings));
            if !meanings.ask(&self.kernel) {
                return done;
            }
        }
    }

    pub(super) fn resolve_in(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        meanings: &Meanings,
        query: &Query<'_>,
    ) -> Result<Resolution> {
        let ontology = self.ontology(space, tx)?;
        let known = Stored {
            engine: self,
            space,
            tx,
            meanings,
        };
        resolve(&ontology, &known, query)
    }

    /// The node that a URI, a federated name or any other name means; `None` for a URI that is not known.
    pub(super) fn entity_in(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        meanings: &Meanings,
        name: &str,
    ) -> Result<Option<Node>> {
        let name = name.trim();
        if let Some(node) = by_uri(tx, name)? {
            return Ok(Some(node));
        }
        if name.starts_with("orn:") {
            return Ok(None);
        }
        if let Some(node) = by_note(tx, name)? {
            return Ok(Some(node));
        }
        let query = Query {
            label: name,
            ..Query::default()
        };
        let resolution = self.resolve_in(space, tx, meanings, &query)?;
        let message = format!("Could not resolve \"{name}\" to a known entity");
        let unresolved = Error::new(Code::NotFound, message);
        let surely = |it: &&kenning_entities::resolve::Candidate| it.confidence >= CONFIDENCE_MIN;
        match resolution.chosen().filter(surely) {
            Some(it) => by_uri(tx, &it.entity.uri),
            None if resolution.candidates.is_empty() => {
                let search = || "`koi_search` finds entities by any words".to_owned();
                Err(unresolved.hint(self.vault_fault(space).unwrap_or_else(search)))
            }
            None => {
                let named = |it: &kenning_entities::resolve::Candidate| {
                    format!(
                        "{} ({}) `{}`",
                        it.entity.name, it.entity.kind, it.entity.uri
                    )
                };
                let all: Vec<String> = resolution.candidates.iter().map(named).collect();
                Err(unresolved.hint(format!("name one by its URI: {}", all.join(", "))))
            }
        }
    }
}

/// The entity of a URI, of one that was merged into it, or of the name that it has among federated nodes.
pub(super) fn by_uri(tx: &dyn ReadTx, uri: &str) -> Result<Option<Node>> {
    if let Some(node) = tx.node_by_key("", Kind::Entity, uri, When::Now)? {
        return Ok(Some(node));
    }
    let Some(Text(uri)) = RID.get_readable(tx, uri)? else {
        return Ok(None);
    };
    tx.node_by_key("", Kind::Entity, &uri, When::Now)
}

/// The entity that a note is about, by the note's path or a link to it: `[[People/Ann|A]]`.
pub(super) fn by_note(tx: &dyn ReadTx, name: &str) -> Result<Option<Node>> {
    let link = name.strip_prefix("[[").and_then(|it| it.strip_suffix("]]"));
    let path = match link {
        Some(link) => link.split(['|', '#']).next().unwrap_or(link).trim(),
        None if name.ends_with(".md") => name,
        None => return Ok(None),
    };
    let path = path.strip_suffix(".md").unwrap_or(path);
    let mut note = None;
    // A file system may keep accents apart from their letters, or may not.
    for path in [path, &composed(path), &decomposed(path)] {
        if note.is_none() {
            let key = format!("{VAULT}:{path}.md");
            note = tx.node_by_key("", Kind::Document, &key, When::Now)?;
        }
    }
    let Some(note) = note else {
        return Ok(None);
    };
    let about = EdgeFilter {
        src: Some(note.id),
        rel: Some(DESCRIBES.to_owned()),
        ..EdgeFilter::default()
    };
    match tx.edges(&about, When::Now, 1)?.first() {
        Some(edge) => tx.node(edge.dst, When::Now),
        None => Ok(None),
    }
}

/// What the model that was chosen makes of names. A name turns out to need it inside of a transaction, and a
/// model may be far away: so it is asked between two transactions.
#[derive(Default)]
pub(crate) struct Meanings {
    known: RefCell<HashMap<String, Question>>,
    wanted: RefCell<BTreeSet<String>>,
}

impl Meanings {
    /// What a name means, if a model was asked and has answered. One that was not asked yet is asked before
    /// the transaction is begun again.
    fn of(&self, kernel: &Kernel, name: &str) -> Option<Question> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.vector().is_some().then(|| known.clone());
        }
        if kernel.chosen_model().is_some() {
            self.wanted.borrow_mut().insert(name.to_owned());
        }
        None
    }

    /// Asks about the names that were wanted; whether there were any.
    fn ask(&self, kernel: &Kernel) -> bool {
        let wanted = self.wanted.take();
        let has_any = !wanted.is_empty();
        for name in wanted {
            let question = kernel.question(&name);
            self.known.borrow_mut().insert(name, question);
        }
        has_any
    }
}

/// Entities as resolution needs them, from one snapshot of the store.
struct Stored<'a> {
    engine: &'a Koi,
    space: &'a Space,
    tx: &'a dyn ReadTx,
    meanings: &'a Meanings,
}

impl Stored<'_> {
    fn listed(&self, bucket: &'static str, key: &str) -> Result<Vec<Entity>> {
        let uris = lines(bucket).get_readable(self.tx, key)?;
        let mut found = Vec::new();
        for uri in uris.unwrap_or_default().0.lines() {
            let node = self.tx.node_by_key("", Kind::Entity, uri, When::Now)?;
            found.extend(node.as_ref().map(entity));
        }
        Ok(found)
    }

    fn node(&self, id: NodeId) -> Result<Option<Node>> {
        let node = self.tx.node(id, When::Now)?;
        Ok(node.filter(|it| it.kind == Kind::Entity))
    }

    fn edges(&self, filter: &EdgeFilter) -> Result<Vec<kenning_store::Edge>> {
        self.tx.edges(filter, When::Now, COMPANY_DOCUMENTS)
    }

    /// Those who have exactly one of these names.
    fn ids(&self, names: &[String]) -> Result<BTreeSet<NodeId>> {
        let mut ids = BTreeSet::new();
        for name in names {
            let mut found = self.exact(&kenning_entities::names::normalized(name))?;
            if found.is_empty() {
                found = self.alias(&kenning_entities::names::alias_key(name))?;
            }
            for it in found {
                let node = self.tx.node_by_key("", Kind::Entity, &it.uri, When::Now)?;
                ids.extend(node.map(|it| it.id));
            }
        }
        Ok(ids)
    }

    /// Everybody whom somebody is related to.
    fn related(&self, id: NodeId) -> Result<BTreeSet<NodeId>> {
        let from = EdgeFilter {
            src: Some(id),
            ..EdgeFilter::default()
        };
        let into = EdgeFilter {
            dst: Some(id),
            ..EdgeFilter::default()
        };
        let is_said = |it: &kenning_store::Edge| it.props.contains_key("predicate");
        let from = self
            .edges(&from)?
            .into_iter()
            .filter(is_said)
            .map(|it| it.dst);
        let into = self
            .edges(&into)?
            .into_iter()
            .filter(is_said)
            .map(|it| it.src);
        Ok(from.chain(into).collect())
    }
}

fn entity(node: &Node) -> Entity {
    Entity {
        uri: node.key.clone(),
        name: node.title.clone(),
        kind: kind(node).to_owned(),
        aliases: aliases(node).map(ToOwned::to_owned).collect(),
    }
}

impl Candidates for Stored<'_> {
    fn exact(&self, key: &str) -> Result<Vec<Entity>> {
        self.listed(EXACT, key)
    }

    fn alias(&self, key: &str) -> Result<Vec<Entity>> {
        self.listed(ALIAS, key)
    }

    fn similar(&self, name: &str, limit: usize) -> Result<Vec<Entity>> {
        let later = self.engine.kernel.later();
        let spellings = &self.engine.entities.spellings;
        let alike = spellings.find(later, self.space, self.tx, name, limit)?;
        let mut found = Vec::new();
        for (node, similarity) in alike {
            if similarity >= SIMILARITY_MIN {
                found.extend(self.node(node)?.as_ref().map(entity));
            }
        }
        Ok(found)
    }

    fn phonetic(&self, key: &str) -> Result<Vec<Entity>> {
        self.listed(SOUND, key)
    }

    /// Only a model that somebody chose tells meanings well enough to take one name for another.
    fn semantic(&self, name: &str) -> Result<Vec<(Entity, f64)>> {
        let kernel = &self.engine.kernel;
        let Some(question) = self.meanings.of(kernel, name) else {
            return Ok(Vec::new());
        };
        let filter = Filter {
            kinds: vec![Kind::Entity],
            ..Filter::default()
        };
        let near = kernel.search(self.space, self.tx, &question, |search| {
            search.nearest_by_model(&filter, MEANINGS)
        })?;
        let mut found = Vec::new();
        for (node, cosine) in near {
            let node = self.node(node)?;
            found.extend(node.as_ref().map(|it| (entity(it), cosine)));
        }
        Ok(found)
    }

    fn is_vetoed(&self, key: &str, uri: &str) -> Result<bool> {
        is_vetoed(self.tx, key, uri)
    }

    fn in_company(&self, context: &Context) -> Result<Vec<Companion>> {
        let people = self.ids(&context.people)?;
        let project = self.ids(context.project.as_slice())?;
        let organizations = self.ids(&context.organizations)?;
        let mut documents: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
        for &person in &people {
            let into = EdgeFilter {
                rel: Some(MENTIONS.to_owned()),
                dst: Some(person),
                ..EdgeFilter::default()
            };
            for edge in self.edges(&into)? {
                let from = EdgeFilter {
                    src: Some(edge.src),
                    rel: Some(MENTIONS.to_owned()),
                    ..EdgeFilter::default()
                };
                for other in self.edges(&from)? {
                    documents.entry(other.dst).or_default().insert(edge.src);
                }
            }
            for other in self.related(person)? {
                documents.entry(other).or_default();
            }
        }
        documents.retain(|it, _| !people.contains(it));
        let mut found = Vec::new();
        for (id, documents) in documents {
            let Some(node) = self.node(id)? else { continue };
            let related = self.related(id)?;
            found.push(Companion {
                entity: entity(&node),
                n_documents: u32::try_from(documents.len()).unwrap_or(u32::MAX),
                is_of_project: !related.is_disjoint(&project),
                is_of_organization: !related.is_disjoint(&organizations),
                is_near: !related.is_disjoint(&people),
                has_relations: !related.is_empty(),
            });
        }
        Ok(found)
    }
}
