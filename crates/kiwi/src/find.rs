//! Finding items by the one search.

use super::found::{FoundItem, FoundItems, ItemQuery, ItemSort, ItemSource};
use super::index::{LOCAL, PARAMETERS, REGISTRY, USER, bucket_of_id};
use super::runs::RUNS;
use super::titles::AskedWords;
use crate::Kiwi;
use kenning_core::{Did, Error, Kind, NodeId, Result};
use kenning_items::{ItemId, ItemType};
use kenning_kernel::paging::ranked_until;
use kenning_kernel::search::{Question, Wanted, policy};
use kenning_kernel::{Caller, Scope};
use kenning_search::{Filter, Hit};
use kenning_store::{Node, ReadTx, When};
use kenning_text::frontmatter::{self, Head};
use kenning_text::line::{dotted, one_line};
use serde_json::Value;
use std::collections::HashSet;

/// So much of a text is shown where nothing describes it.
const DESCRIPTION_CHARS: usize = 200;

/// So many are looked at where they are sorted by something else than relevance.
const SORTED_MAX: usize = 1_000;
/// So many are asked of another registry at most.
const REMOTE_MAX: usize = 100;

/// Points for being what the contract says it must be.
const VALID_POINTS: f64 = 60.0;
/// For being what somebody signed who is trusted.
const SIGNED_POINTS: f64 = 25.0;
/// For runs of a tool that all went well.
const RUN_POINTS: f64 = 15.0;

impl Kiwi {
    /// The items that answer a query, best first; one whose id is the query comes before all.
    pub fn search_items(&self, caller: &Caller, query: &ItemQuery) -> Result<FoundItems> {
        let mut found = self.search_items_until(caller, query)?;
        (found.items, found.has_more) = query.page().of_ranked(found.items);
        Ok(found)
    }

    /// The same for a call that has made the question of the query's text already.
    pub fn search_items_asked(
        &self,
        caller: &Caller,
        query: &ItemQuery,
        question: &Question,
    ) -> Result<FoundItems> {
        let mut found = self.search_from_start(caller, query, Some(question))?;
        (found.items, found.has_more) = query.page().of_ranked(found.items);
        Ok(found)
    }

    /// The same from the best one on, those that the page leaves out included, and one more than it holds.
    pub fn search_items_until(&self, caller: &Caller, query: &ItemQuery) -> Result<FoundItems> {
        self.search_from_start(caller, query, None)
    }

    fn search_from_start(
        &self,
        caller: &Caller,
        query: &ItemQuery,
        question: Option<&Question>,
    ) -> Result<FoundItems> {
        caller.principal.require(Scope::Read)?;
        if query.text.trim().is_empty() {
            return Err(Error::invalid("`query` is empty").hint("say in a few words what to find"));
        }
        let page = query.page();
        page.check_ranked()?;
        let project = self.item_project(caller, query.project_path.as_deref())?;
        if let ItemSource::Registry | ItemSource::All = query.source
            && let Some(remote) = self.remote_registry()?
        {
            return self.search_with(caller, query, question, &remote);
        }
        if query.source.is_local() {
            let types = match query.item_type {
                Some(item_type) => vec![item_type],
                None => ItemType::ALL.to_vec(),
            };
            for item_type in types {
                for item_dir in self.item_dirs(caller, item_type, project.as_ref())? {
                    self.index_dir(caller, &item_dir)?;
                }
            }
        }
        let project = project.map(|it| it.name).unwrap_or_default();
        let filters = filters(query, &project, self.kernel.projects_seen_by(caller)?);
        let space = &caller.principal.space;
        let made;
        let question = match question {
            Some(question) => question,
            None => {
                made = self.kernel.question(&query.text);
                &made
            }
        };
        let now_ms = self.kernel.log().clock().now_ms();
        let words = AskedWords::of(&query.text);
        self.kernel.log().read(space, |tx| {
            let weigh = |hit: &Hit| -> Result<f64> {
                let Some(node) = tx.node(hit.node, When::Now)? else {
                    return Ok(hit.relevance);
                };
                let id = node.props.get("id").and_then(Value::as_str);
                let called = format!("{} {}", node.title, id.unwrap_or_default());
                Ok(words.weigh(&called, hit.relevance))
            };
            let ranked = self.kernel.search(space, tx, question, |search| {
                let mut least = f64::INFINITY;
                let next_best_of = |limit: usize| {
                    let found = search.find(&Wanted {
                        weigh: Some(&weigh),
                        ..Wanted::new(&policy::ITEMS, &filters, limit, now_ms)
                    })?;
                    let hits = found.hits.iter().map(|hit| (hit.node, hit.relevance));
                    // What is found later answers no better than what was found before.
                    let found: Vec<(NodeId, f64)> =
                        hits.map(|(node, it)| (node, it.min(least))).collect();
                    least = found.iter().map(|it| it.1).fold(least, f64::min);
                    Ok(found)
                };
                ranked_until(page, |it| it.0, next_best_of)
            })??;
            let exact = exact(tx, query, &project)?;
            let found = exact.iter().map(|it| (*it, 1.0));
            let others = ranked.into_iter().filter(|it| !exact.contains(&it.0));
            let all: Vec<(NodeId, f64)> = found.chain(others).collect();
            let trusted = self.trusted_signers(tx)?;
            let mut items = Vec::new();
            // In another order the last may be the first.
            let looked_at = match query.sort {
                ItemSort::Relevance => page.with_one_more(),
                _ => query.limit.max(SORTED_MAX),
            };
            for (node, relevance) in all.iter().take(looked_at) {
                if let Some(node) = tx.node(*node, When::Now)? {
                    items.push(shown(tx, &trusted, &node, *relevance)?);
                }
            }
            if query.sort != ItemSort::Relevance {
                items.sort_by(|a, b| a.order(b, query.sort));
            }
            Ok(FoundItems {
                has_more: all.len() >= page.with_one_more(),
                items,
                total: all.len(),
            })
        })
    }

    /// Which local items a caller may find, in the server's own project.
    pub fn filters_of_items(&self, caller: &Caller) -> Result<Vec<Filter>> {
        let project = self.item_project(caller, None)?;
        for item_type in ItemType::ALL {
            for item_dir in self.item_dirs(caller, item_type, project.as_ref())? {
                self.index_dir(caller, &item_dir)?;
            }
        }
        let project = project.map(|it| it.name).unwrap_or_default();
        let of_items = filters(&ItemQuery::default(), &project, Vec::new()).into_iter();
        Ok(of_items.filter(|it| it.kinds == [Kind::Item]).collect())
    }

    /// What is here, and what another registry has.
    fn search_with(
        &self,
        caller: &Caller,
        query: &ItemQuery,
        question: Option<&Question>,
        remote: &super::remote::Remote,
    ) -> Result<FoundItems> {
        // A registry lists so many at most, and does not go on.
        let page = query.page();
        let from_start = ItemQuery {
            limit: page.with_one_more().min(REMOTE_MAX),
            ..query.clone()
        };
        let mut found = remote.search(&from_start).map_err(|it| it.error)?;
        if query.source == ItemSource::All {
            let local = ItemQuery {
                source: ItemSource::Local,
                ..query.clone()
            };
            let local = self.search_from_start(caller, &local, question)?;
            found.total += local.total;
            found.items.extend(local.items);
        }
        found.items.sort_by(|a, b| a.order(b, query.sort));
        Ok(found)
    }
}

/// What is told of a node that was found.
fn shown(
    tx: &dyn ReadTx,
    trusted: &HashSet<Did>,
    node: &Node,
    relevance: f64,
) -> Result<FoundItem> {
    let text = |name: &str| node.props.get(name).and_then(Value::as_str);
    let owned = |name: &str| text(name).map(ToOwned::to_owned);
    let described = owned("description").filter(|it| !it.is_empty());
    let description = described.unwrap_or_else(|| beginning(&node.body));
    let (item_type, id) = match node.kind {
        Kind::Item => (
            owned("type").unwrap_or_default(),
            owned("id").unwrap_or_default(),
        ),
        Kind::Tool => ("tool".to_owned(), node.key.clone()),
        Kind::Memory => ("memory".to_owned(), kenning_kernel::memory_id(node)),
        other => (other.as_str().to_owned(), node.key.clone()),
    };
    let success_rate = match (node.kind, item_type.as_str()) {
        (Kind::Item, "tool") => success_rate(tx, &id)?,
        _ => None,
    };
    let quality = match node.kind {
        Kind::Item => quality(trusted, node, success_rate),
        _ => None,
    };
    Ok(FoundItem {
        id,
        item_type,
        name: node.title.clone(),
        category: owned("category").unwrap_or_default(),
        description,
        quality,
        source: if text("source") == Some(REGISTRY) {
            "registry"
        } else {
            "local"
        },
        version: owned("version"),
        path: owned("path").filter(|_| node.kind == Kind::Item),
        relevance,
        success_rate,
        parameters: node.props.get(PARAMETERS).cloned(),
        updated_ms: node.updated.ms(),
    })
}

/// The share of a tool's runs that went well. Texts that are merely read have none.
fn success_rate(tx: &dyn ReadTx, id: &str) -> Result<Option<f64>> {
    let runs = RUNS.get_readable(tx, &format!("tool/{id}"))?;
    let runs = runs.unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let rate = (runs.n > 0).then(|| runs.n_successes as f64 / runs.n as f64);
    Ok(rate)
}

/// What stands behind an item: that it is valid, that somebody trusted signed it, that its runs
/// went well. An item that was never run is not blamed for it, and reading a text is no run.
fn quality(trusted: &HashSet<Did>, node: &Node, success_rate: Option<f64>) -> Option<f64> {
    let text = |name: &str| node.props.get(name).and_then(Value::as_str);
    let signer = match text("state") {
        None | Some("invalid" | "changed") => return None,
        Some(_) => text("signer").and_then(|it| it.parse::<Did>().ok()),
    };
    let mut points = VALID_POINTS;
    let mut of = VALID_POINTS + SIGNED_POINTS;
    if let Some(signer) = signer
        && trusted.contains(&signer)
    {
        points += SIGNED_POINTS;
    }
    if let Some(rate) = success_rate {
        points += RUN_POINTS * rate;
        of += RUN_POINTS;
    }
    Some((1_000.0 * points / of).round() / 10.0)
}

/// Which passages may be found; what one of them admits is found.
fn filters(query: &ItemQuery, project: &str, memories_of: Vec<String>) -> Vec<Filter> {
    let here = || {
        let own = (!project.is_empty()).then(|| format!("project={project}"));
        own.into_iter()
            .chain([format!("namespace={USER}")])
            .collect()
    };
    let items = |source: &str, any_facet: Vec<String>| {
        let of_type = query.item_type.map(|it| format!("type={}", it.word()));
        Filter {
            kinds: vec![Kind::Item],
            facets: of_type
                .into_iter()
                .chain([format!("source={source}")])
                .collect(),
            any_facet,
            ..Filter::default()
        }
    };
    let mut filters = Vec::new();
    if query.source.is_local() {
        filters.push(items(LOCAL, here()));
        // An installed WASM tool is a tool too.
        let others = match query.item_type {
            Some(ItemType::Tool) => vec![Kind::Tool],
            Some(_) => Vec::new(),
            None => Kind::ALL
                .into_iter()
                .filter(|it| !matches!(it, Kind::Item | Kind::Vector))
                .filter(|it| *it != Kind::Entity || !query.without_entities)
                .collect(),
        };
        if !others.is_empty() {
            // Of this project or of none: another project's documents are not this one's.
            let own = memories_of.iter().filter(|it| !it.is_empty());
            let own = own.map(|it| format!("project={it}"));
            let here = [format!("project={project}"), "project=".to_owned()];
            filters.push(Filter {
                kinds: others,
                any_facet: here.into_iter().chain(own).collect(),
                memories_of,
                ..Filter::default()
            });
        }
    }
    if query.source != ItemSource::Local {
        filters.push(items(REGISTRY, Vec::new()));
    }
    filters
}

/// Items whose id is what was asked for.
fn exact(tx: &dyn ReadTx, query: &ItemQuery, project: &str) -> Result<Vec<NodeId>> {
    let id = query.text.trim();
    let mut found = Vec::new();
    if id.parse::<ItemId>().is_err() {
        return Ok(found);
    }
    for node in bucket_of_id(id).keys(tx)? {
        let Some(node) = node
            .parse()
            .ok()
            .and_then(|it| tx.node(it, When::Now).transpose())
        else {
            continue;
        };
        let node = node?;
        let text = |name: &str| node.props.get(name).and_then(Value::as_str);
        let is_type = query
            .item_type
            .is_none_or(|it| text("type") == Some(it.word()));
        let is_here = match text("source") {
            Some(REGISTRY) => query.source != ItemSource::Local,
            _ => query.source.is_local() && (node.project.is_empty() || node.project == project),
        };
        if node.kind == Kind::Item && text("id") == Some(id) && is_type && is_here {
            found.push(node.id);
        }
    }
    Ok(found)
}

/// How a text begins after its frontmatter, on one line.
fn beginning(text: &str) -> String {
    let body = frontmatter::yaml(text, Head::AfterEmptyLines).map_or(text, |it| it.1);
    dotted(&one_line(body), DESCRIPTION_CHARS)
}
