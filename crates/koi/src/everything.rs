//! One search over everything that a space holds: memories, notes, documents, entities, items, code and pages.

use crate::Koi;
use crate::entities::with_most_words;
use kenning_core::{Error, Kind, NodeId, Result, Space};
use kenning_kernel::paging::{Page, ranked_until};
use kenning_kernel::roots::VAULT;
use kenning_kernel::search::{UNRANKED, Wanted, policy};
use kenning_kernel::{Caller, Scope};
use kenning_search::{Filter, Hit};
use kenning_store::{Node, ReadTx, When};
use kenning_text::line::{dotted, one_line};
use serde_json::Value;
use std::cell::RefCell;

/// So much of the passage that was found is shown.
const SNIPPET_CHARS: usize = 240;

/// What can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Findable {
    /// A memory or a belief.
    Memory,
    /// A note of the vault.
    Note,
    /// A document of the project or of a repository, a mail, a daily log.
    Document,
    /// A person, an organization, a concept.
    Entity,
    /// A directive, a tool or a knowledge item.
    Item,
    /// A function, a class, a module.
    Code,
    /// A page of the web.
    Page,
}

impl Findable {
    /// Everything, in the order of the manual.
    pub const ALL: [Self; 7] = [
        Self::Memory,
        Self::Note,
        Self::Document,
        Self::Entity,
        Self::Item,
        Self::Code,
        Self::Page,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Note => "note",
            Self::Document => "document",
            Self::Entity => "entity",
            Self::Item => "item",
            Self::Code => "code",
            Self::Page => "page",
        }
    }

    /// What a node is; `None` if it is nothing that a person asks for.
    fn of(node: &Node) -> Option<Self> {
        Some(match node.kind {
            Kind::Memory => Self::Memory,
            Kind::Document if source_of(node) == Some(VAULT.name) => Self::Note,
            Kind::Document => Self::Document,
            Kind::Entity => Self::Entity,
            Kind::Item => Self::Item,
            Kind::Symbol => Self::Code,
            Kind::Page => Self::Page,
            Kind::Workflow | Kind::Agent | Kind::Trajectory | Kind::Tool | Kind::Vector => {
                return None;
            }
        })
    }

    const fn kind(self) -> Kind {
        match self {
            Self::Memory => Kind::Memory,
            Self::Note | Self::Document => Kind::Document,
            Self::Entity => Kind::Entity,
            Self::Item => Kind::Item,
            Self::Code => Kind::Symbol,
            Self::Page => Kind::Page,
        }
    }
}

/// What to find.
#[derive(Clone, Debug, Default)]
pub struct FindQuery {
    /// In any words.
    pub text: String,
    /// Only these; empty for everything.
    pub kinds: Vec<Findable>,
    /// Only what has all of these tags.
    pub tags: Vec<String>,
    /// Only what is not older than this, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Only what is not newer than this.
    pub until_ms: Option<u64>,
    /// Which part of the answers.
    pub page: Page,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundThing {
    /// What it is.
    pub kind: Findable,
    /// Its name among its kind: the id of a memory, the path of a note, the URI of an entity.
    pub id: String,
    /// For people.
    pub title: String,
    /// Where it is from, or of which type it is: `project`, `github`, `email`, `directive`.
    pub source: Option<String>,
    /// When it was stored or last changed, in milliseconds since 1970.
    pub at_ms: u64,
    /// The passage that answers, on one line.
    pub snippet: String,
    /// How well it answers, from 0 to 1.
    pub relevance: f64,
}

/// What was found, and whether there is more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundThings {
    /// The best first, newer among near-equals.
    pub things: Vec<FoundThing>,
    /// Whether there are more.
    pub has_more: bool,
    /// Why the built-in table answers in place of the model, if it does.
    pub remark: Option<String>,
}

impl Koi {
    /// Everything that answers a question, the best first.
    ///
    /// # Errors
    /// An empty query, a missing permission, and those of the store.
    pub fn find_everything(&self, caller: &Caller, query: &FindQuery) -> Result<FoundThings> {
        caller.principal.require(Scope::Read)?;
        if query.text.trim().is_empty() {
            return Err(Error::invalid("`query` is empty").hint("say in a few words what to find"));
        }
        if let (Some(since), Some(until)) = (query.since_ms, query.until_ms)
            && since > until
        {
            return Err(Error::invalid("`since` is later than `until`").hint("swap them"));
        }
        query.page.check_ranked()?;
        self.follow_entities(caller)?;
        self.follow_mail(caller);
        let filters = self.filters_of_everything(caller, query)?;
        let space = &caller.principal.space;
        let question = self.kernel.question(&query.text);
        let now_ms = self.kernel.log().clock().now_ms();
        let (things, has_more) = self.kernel.log().read(space, |tx| {
            let fault = RefCell::new(None);
            let admits = |id: NodeId| match self.is_asked_for(space, tx, query, id) {
                Ok(is_asked_for) => is_asked_for,
                Err(error) => {
                    fault.borrow_mut().get_or_insert(error);
                    false
                }
            };
            let best_of = |limit: usize| -> Result<Vec<Hit>> {
                let wanted = Wanted {
                    admits: Some(&admits),
                    ..Wanted::new(&policy::EVERYTHING, &filters, limit, now_ms)
                };
                let found = self
                    .kernel
                    .search(space, tx, &question, |search| search.find(&wanted))??;
                Ok(found.hits)
            };
            let hits = ranked_until(query.page, |it| it.node, best_of)?;
            if let Some(error) = fault.take() {
                return Err(error);
            }
            let (hits, has_more) = query.page.of_ranked(hits);
            let mut things = Vec::new();
            for hit in hits {
                if let Some(node) = tx.node(hit.node, When::Now)?
                    && let Some(kind) = Findable::of(&node)
                {
                    let at_ms = self.changed_ms(space, tx, &node)?;
                    things.push(thing(tx, kind, &node, &hit, at_ms, &query.text)?);
                }
            }
            Ok((things, has_more))
        })?;
        Ok(FoundThings {
            things,
            has_more,
            remark: question.remark().map(ToOwned::to_owned),
        })
    }

    /// Items by the rules of items, everything else at once: of this project or of none.
    fn filters_of_everything(&self, caller: &Caller, query: &FindQuery) -> Result<Vec<Filter>> {
        let is_asked = |it: &Findable| query.kinds.is_empty() || query.kinds.contains(it);
        let tags = query
            .tags
            .iter()
            .map(|it| it.trim().trim_start_matches('#'));
        let tags: Vec<String> = tags.map(|it| format!("tag={it}")).collect();
        let mut filters = Vec::new();
        if is_asked(&Findable::Item) {
            let items = self.kiwi.filters_of_items(caller)?.into_iter();
            filters.extend(items.map(|mut it| {
                it.facets.extend(tags.clone());
                it
            }));
        }
        let others = Findable::ALL.into_iter();
        let others = others.filter(|it| *it != Findable::Item && is_asked(it));
        let mut kinds: Vec<Kind> = others.map(Findable::kind).collect();
        kinds.dedup();
        if !kinds.is_empty() {
            let project = self.kernel.project().place();
            let project = project.map(|it| it.to_string_lossy().into_owned());
            // Documents are of a directory, memories of a project that may have several.
            let memories_of = self.kernel.projects_seen_by(caller)?;
            let own = project.iter().chain(&memories_of);
            let own = own.map(|it| format!("project={it}"));
            filters.push(Filter {
                kinds,
                facets: tags,
                any_facet: own.collect(),
                memories_of,
                ..Filter::default()
            });
        }
        Ok(filters)
    }

    /// What an index cannot tell: a note from another document, and when something was changed.
    fn is_asked_for(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        query: &FindQuery,
        id: NodeId,
    ) -> Result<bool> {
        let is_dated = query.since_ms.is_some() || query.until_ms.is_some();
        let splits = |it: &Findable| matches!(it, Findable::Note | Findable::Document);
        let n_split = query.kinds.iter().filter(|it| splits(it)).count();
        if !is_dated && n_split != 1 {
            return Ok(true);
        }
        let Some(node) = tx.node(id, When::Now)? else {
            return Ok(false);
        };
        let is_of_kind = Findable::of(&node)
            .is_some_and(|it| query.kinds.is_empty() || query.kinds.contains(&it));
        if !is_of_kind || !is_dated {
            return Ok(is_of_kind);
        }
        let at_ms = self.changed_ms(space, tx, &node)?;
        Ok(query.since_ms.is_none_or(|it| at_ms >= it)
            && query.until_ms.is_none_or(|it| at_ms <= it))
    }

    /// When a memory was stored, a note's file written, anything else changed.
    fn changed_ms(&self, space: &Space, tx: &dyn ReadTx, node: &Node) -> Result<u64> {
        if node.kind == Kind::Memory {
            return Ok(node.created_ms());
        }
        if Findable::of(node) == Some(Findable::Note) {
            let notes = self.kg.vault_library(space, tx)?;
            let modified_ms = notes.by_node(node.id).map_or(0, |it| it.card.modified_ms());
            if modified_ms > 0 {
                return Ok(modified_ms);
            }
        }
        Ok(node.updated.ms())
    }
}

fn source_of(node: &Node) -> Option<&str> {
    node.props.get("source").and_then(Value::as_str)
}

fn thing(
    tx: &dyn ReadTx,
    kind: Findable,
    node: &Node,
    hit: &Hit,
    at_ms: u64,
    query: &str,
) -> Result<FoundThing> {
    let text = |name: &str| {
        let value = node.props.get(name).and_then(Value::as_str);
        value.map(ToOwned::to_owned)
    };
    let passages = tx.passages(node.id)?;
    let passage = match hit.n {
        UNRANKED => with_most_words(passages, query),
        n => passages.into_iter().find(|it| it.n == n),
    };
    let whole = passage.as_ref().map_or(node.body.as_str(), |it| &it.text);
    let snippet = dotted(&one_line(whole), SNIPPET_CHARS);
    let (id, source) = match kind {
        Findable::Memory => (kenning_kernel::memory_id(node), text("memory_type")),
        Findable::Note => (text("path").unwrap_or_else(|| node.key.clone()), None),
        Findable::Item => (text("id").unwrap_or_else(|| node.key.clone()), text("type")),
        Findable::Entity => (node.key.clone(), text("type")),
        Findable::Document | Findable::Code => (node.key.clone(), text("source")),
        Findable::Page => (text("url").unwrap_or_else(|| node.key.clone()), None),
    };
    let title = match node.title.trim() {
        // A memory has no title: its beginning stands for it.
        "" => dotted(&one_line(&node.body), 80),
        title => one_line(title),
    };
    Ok(FoundThing {
        kind,
        id,
        title,
        source,
        at_ms,
        snippet,
        relevance: hit.relevance,
    })
}
