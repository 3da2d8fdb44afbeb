//! Beliefs: memories whose confidence follows the evidence.

use super::opinion;
use super::pending::refuse_foundational;
use super::store::put_props;
use super::{Memory, find_any, memory, memory_id, no_memory};
use crate::{Omi, Recall, Recalled};
use kenning_audit::{EdgeDraft, Tx};
use kenning_core::{Error, NodeId, Result, Unit};
use kenning_kernel::paging::Page;
use kenning_kernel::search::policy;
use kenning_kernel::{Caller, Scope};
use kenning_memory::belief;
use kenning_memory::types::{Confidence, MemoryType, relation};
use kenning_store::{Edge, EdgeFilter, Node, ReadTx, When};
use serde_json::{Map, Value, json};

/// The confidence of a belief that was stored without one.
const CONFIDENCE_DEFAULT: f64 = 0.5;

/// Evidence for or against a belief.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceUpdate {
    /// The belief.
    pub belief: String,
    /// The evidence: a memory, or any other node.
    pub evidence: String,
    /// Whether it supports the belief.
    pub supports: bool,
    /// How strongly, from 0 to 1.
    pub strength: Unit,
}

/// The effect of the evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeliefUpdate {
    /// The confidence before.
    pub old_confidence: f64,
    /// The confidence after.
    pub new_confidence: f64,
    /// Whether the same evidence was counted before, so that nothing changed.
    pub is_known: bool,
}

/// One piece of a belief's evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Its id.
    pub id: String,
    /// Whether it supports the belief.
    pub supports: bool,
    /// How strongly.
    pub strength: f64,
    /// When it was given, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Memories of one call that the model compares with another.
const ASKED_MAX: usize = 20;

/// What contradicts a memory, and who said so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contradictions {
    /// Each pair.
    pub found: Vec<Contradiction>,
    /// The model that was asked beside the rules.
    pub model: Option<String>,
    /// Why none was heard, if one is configured.
    pub remark: Option<String>,
}

/// Two memories that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The one.
    pub one: String,
    /// The other.
    pub other: String,
    /// The pattern that showed it.
    pub pattern: String,
}

impl Omi {
    /// Moves a belief's confidence toward 1 or 0, and keeps the evidence.
    pub fn update_belief(&self, caller: &Caller, update: EvidenceUpdate) -> Result<BeliefUpdate> {
        caller.principal.require(Scope::Write)?;
        let needs_second_key = self.kernel.memory_config()?.needs_second_key;
        let projects = self.kernel.projects_seen_by(caller)?;
        self.kernel.log().write(&caller.principal.space, move |tx| {
            if needs_second_key {
                refuse_foundational(&**tx, &projects, &update.belief)?;
            }
            apply(tx, &projects, &update)
        })
    }

    /// The evidence of a belief, oldest first.
    pub fn evidence_chain(&self, caller: &Caller, belief: &str) -> Result<Vec<Evidence>> {
        caller.principal.require(Scope::Read)?;
        let projects = self.kernel.projects_seen_by(caller)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let node = the_belief(tx, &projects, belief)?;
            let mut chain = Vec::new();
            for edge in evidence_edges(tx, node.id)? {
                let name = tx
                    .node(edge.dst, When::Now)?
                    .map_or_else(|| edge.dst.to_string(), |it| memory_id(&it));
                chain.extend(
                    brought(&edge)
                        .into_iter()
                        .map(|(at_ms, strength)| Evidence {
                            id: name.clone(),
                            supports: edge.rel == relation::SUPPORTS,
                            strength,
                            at_ms,
                        }),
                );
            }
            chain.sort_by_key(|it| it.at_ms);
            Ok(chain)
        })
    }

    /// The beliefs that answer a query, confident ones first. The recall is recorded as an event.
    pub fn recall_beliefs(
        &self,
        caller: &Caller,
        query: &str,
        min_relevance: f64,
        min_confidence: f64,
        page: Page,
    ) -> Result<Recalled> {
        page.check_ranked()?;
        let mut recall = Recall {
            query: query.to_owned(),
            limit: page.limit.saturating_mul(4).max(50),
            min_relevance,
            memory_type: Some(MemoryType::Belief),
            ..Recall::default()
        };
        let mut all = Vec::new();
        let mut question = None;
        // Later results are weighed separately, so that later pages do not change earlier ones.
        let (remark, index_state) = loop {
            let found = self.look_up_asked(caller, &recall, &mut question)?;
            let mut part = found.memories;
            recall.skip += part.len();
            part.retain(|it| confidence_of(it.memory.confidence) >= min_confidence);
            for it in &mut part {
                let confidence = Confidence::try_from(confidence_of(it.memory.confidence))?;
                it.final_score = belief::weighted(it.relevance, confidence);
            }
            part.sort_by(|a, b| b.final_score.total_cmp(&a.final_score));
            all.extend(part);
            if !found.has_more || all.len() >= page.with_one_more() {
                break (found.remark, found.index_state);
            }
        };
        let (memories, has_more) = page.of(all);
        self.note_recall(caller, &recall, &memories);
        Ok(Recalled {
            memories,
            has_more,
            remark,
            index_state,
        })
    }

    /// Whether two memories contradict each other, by their words or by shared evidence. A
    /// contradiction is recorded as an event.
    pub fn check_contradiction(
        &self,
        caller: &Caller,
        one: &str,
        other: &str,
    ) -> Result<Contradictions> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let projects = self.kernel.projects_seen_by(caller)?;
        let (one, other, pattern, texts) = self.kernel.log().read(space, |tx| {
            let (a, b) = (
                memory(tx, &projects, "memory_id_1", one)?,
                memory(tx, &projects, "memory_id_2", other)?,
            );
            let pattern = belief::contradiction(&a.body, &b.body);
            Ok((memory_id(&a), memory_id(&b), pattern, (a.body, b.body)))
        })?;
        let by_rules = match pattern {
            Some(pattern) => Some(Contradiction {
                one: one.clone(),
                other: other.clone(),
                pattern,
            }),
            None => {
                let mut divided = self.divided_beliefs(caller)?.into_iter();
                divided.find(|it| {
                    [&it.one, &it.other]
                        .iter()
                        .all(|it| [&one, &other].contains(it))
                })
            }
        };
        let mut checked = Contradictions {
            found: by_rules.into_iter().collect(),
            ..Contradictions::default()
        };
        if checked.found.is_empty() {
            let others = [(other, texts.1)];
            self.ask_about(caller, (&one, &texts.0), &others, &mut checked)?;
        }
        self.note_contradictions(caller, &checked.found);
        Ok(checked)
    }

    /// Records the contradictions found, in the background.
    fn note_contradictions(&self, caller: &Caller, found: &[Contradiction]) {
        if found.is_empty() {
            return;
        }
        let found = found.to_vec();
        self.kernel
            .later()
            .write(&caller.principal.space, move |tx| {
                for it in &found {
                    let data = json!({
                        "memory_id_1": it.one, "memory_id_2": it.other,
                        "contradiction_pattern": it.pattern,
                    });
                    tx.record("ContradictionDetectedEvent", data)?;
                }
                Ok(())
            });
    }

    /// All contradictions: memories that contradict this one by their words, and beliefs that
    /// disagree about one piece of evidence. Each is recorded as an event.
    pub fn contradictions(&self, caller: &Caller, of: &str) -> Result<Contradictions> {
        caller.principal.require(Scope::Read)?;
        let projects = self.kernel.projects_seen_by(caller)?;
        let content = self.kernel.log().read(&caller.principal.space, |tx| {
            Ok(memory(tx, &projects, "memory_id", of)?.body)
        })?;
        let recall = Recall {
            query: content.chars().take(2_000).collect(),
            limit: 100,
            min_relevance: policy::CANDIDATES.relevance_min,
            daily_logs: false,
            ..Recall::default()
        };
        let near = self.look_up(caller, &recall)?.memories;
        let near = near.into_iter().map(|hit| (hit.memory, hit.relevance));
        let mut checked = Contradictions::default();
        // The model reads only what is about the same.
        let mut open: Vec<(String, String)> = Vec::new();
        for (it, relevance) in near.filter(|it| it.0.id != of) {
            match belief::contradiction(&content, &it.content) {
                Some(pattern) => checked.found.push(Contradiction {
                    one: of.to_owned(),
                    other: it.id,
                    pattern,
                }),
                None if relevance >= policy::TEXTS.relevance_min && open.len() < ASKED_MAX => {
                    open.push((it.id, it.content));
                }
                None => {}
            }
        }
        checked.found.extend(
            self.divided_beliefs(caller)?
                .into_iter()
                .filter(|pair| pair.one == of || pair.other == of),
        );
        self.ask_about(caller, (of, &content), &open, &mut checked)?;
        self.note_contradictions(caller, &checked.found);
        Ok(checked)
    }

    /// Asks the language model, if there is one, which of the others contradict a memory. A model that does not
    /// answer costs a remark.
    fn ask_about(
        &self,
        caller: &Caller,
        (of, content): (&str, &str),
        others: &[(String, String)],
        checked: &mut Contradictions,
    ) -> Result<()> {
        let Some(model) = self.kernel.language_model()? else {
            return Ok(());
        };
        if others.is_empty() {
            return Ok(());
        }
        let answer = opinion::ask(
            self.kernel.log().random(),
            &model,
            content,
            others,
            caller.deadline,
        );
        match answer {
            Ok(found) => {
                checked.model = Some(model.model.name().to_owned());
                for (n, why) in found {
                    let Some((other, _)) = others.get(n) else {
                        continue;
                    };
                    let known = |it: &Contradiction| it.one == *other || it.other == *other;
                    if !checked.found.iter().any(known) {
                        checked.found.push(Contradiction {
                            one: of.to_owned(),
                            other: other.clone(),
                            pattern: why,
                        });
                    }
                }
            }
            Err(error) => {
                checked.remark = Some(format!("no model was heard, only rules: {}", error.message));
            }
        }
        Ok(())
    }

    /// Beliefs that share a piece of evidence which supports one and contradicts the other.
    pub fn divided_beliefs(&self, caller: &Caller) -> Result<Vec<Contradiction>> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let mut chain = Vec::new();
            for rel in [relation::SUPPORTS, relation::CONTRADICTS] {
                let filter = EdgeFilter {
                    rel: Some(rel.to_owned()),
                    ..EdgeFilter::default()
                };
                for edge in tx.edges(&filter, When::Now, usize::MAX)? {
                    chain.push(belief::Evidence {
                        belief: edge.src,
                        evidence: edge.dst,
                        supports: rel == relation::SUPPORTS,
                    });
                }
            }
            let name = |id: NodeId| -> Result<String> {
                Ok(tx
                    .node(id, When::Now)?
                    .map_or_else(|| id.to_string(), |it| memory_id(&it)))
            };
            belief::divided(&chain)
                .into_iter()
                .map(|it| {
                    let evidence = name(it.evidence)?;
                    Ok(Contradiction {
                        one: name(it.supported)?,
                        other: name(it.contradicted)?,
                        pattern: format!("`{evidence}` supports one and contradicts the other"),
                    })
                })
                .collect()
        })
    }

    /// A memory by its id.
    pub fn memory(&self, caller: &Caller, id: &str) -> Result<Memory> {
        caller.principal.require(Scope::Read)?;
        let projects = self.kernel.projects_seen_by(caller)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            Ok(Memory::of(&memory(tx, &projects, "memory_id", id)?))
        })
    }
}

fn confidence_of(confidence: Option<f64>) -> f64 {
    confidence.unwrap_or(CONFIDENCE_DEFAULT)
}

fn the_belief(tx: &dyn ReadTx, projects: &[String], id: &str) -> Result<Node> {
    let node = memory(tx, projects, "belief_id", id)?;
    let kind = Memory::of(&node).memory_type;
    if kind != MemoryType::Belief {
        return Err(Error::invalid(format!(
            "`belief_id`: `{id}` is a memory of type {kind}, not a belief"
        ))
        .hint("store it with `memory_type` \"belief\""));
    }
    Ok(node)
}

fn apply(tx: &mut Tx<'_>, projects: &[String], update: &EvidenceUpdate) -> Result<BeliefUpdate> {
    let belief = the_belief(&**tx, projects, &update.belief)?;
    if let Some(by) = belief.props.get("superseded_by").and_then(Value::as_str) {
        return Err(Error::conflict(format!(
            "`belief_id`: `{}` was superseded by `{by}`",
            update.belief
        ))
        .hint("give the evidence for that one"));
    }
    let evidence = find_any(&**tx, projects, &update.evidence)?.ok_or_else(|| {
        no_memory("evidence_memory_id", &update.evidence)
            .hint("evidence is a memory, or a note, item or page by its id or path")
    })?;
    if evidence.id == belief.id {
        return Err(Error::invalid(format!(
            "`evidence_memory_id`: `{}` is the belief itself",
            update.evidence
        ))
        .hint("store what was observed as a memory of its own"));
    }
    let old = Confidence::try_from(confidence_of(
        belief.props.get("confidence").and_then(Value::as_f64),
    ))?;
    // The same call again adds nothing; another strength is another judgement.
    let known = evidence_edge(&**tx, belief.id, evidence.id, update.supports)?;
    let known = known.map(|it| brought(&it)).unwrap_or_default();
    let is_same = |it: &(u64, f64)| (it.1 - update.strength.get()).abs() < f64::EPSILON;
    if known.iter().any(is_same) {
        return Ok(BeliefUpdate {
            old_confidence: old.get(),
            new_confidence: old.get(),
            is_known: true,
        });
    }
    let new = belief::ema(old, update.supports, update.strength);
    put_evidence(tx, belief.id, evidence.id, update)?;
    let mut props = belief.props.clone();
    props.insert("confidence".to_owned(), new.get().into());
    put_props(tx, belief, props)?;
    tx.record("BeliefUpdatedEvent", json!({
        "belief_id": update.belief, "old_confidence": old.get(), "new_confidence": new.get(),
        "evidence_id": update.evidence, "supports": update.supports, "strength": update.strength.get(),
    }))?;
    Ok(BeliefUpdate {
        old_confidence: old.get(),
        new_confidence: new.get(),
        is_known: false,
    })
}

/// The edge of a piece of evidence, for or against a belief.
fn evidence_edge(
    tx: &dyn ReadTx,
    belief: NodeId,
    evidence: NodeId,
    supports: bool,
) -> Result<Option<Edge>> {
    let filter = EdgeFilter {
        src: Some(belief),
        rel: Some(relation_of(supports).to_owned()),
        dst: Some(evidence),
    };
    Ok(tx.edges(&filter, When::Now, 1)?.pop())
}

const fn relation_of(supports: bool) -> &'static str {
    if supports {
        relation::SUPPORTS
    } else {
        relation::CONTRADICTS
    }
}

/// The same evidence may be given again with another strength: the edge keeps each time.
fn put_evidence(
    tx: &mut Tx<'_>,
    belief: NodeId,
    evidence: NodeId,
    update: &EvidenceUpdate,
) -> Result<()> {
    let rel = relation_of(update.supports);
    let known = evidence_edge(&**tx, belief, evidence, update.supports)?;
    let mut times = known.map(|it| brought(&it)).unwrap_or_default();
    times.push((tx.now().ms(), update.strength.get()));
    let times: Vec<Value> = times
        .into_iter()
        .map(|(at, strength)| json!([at, strength]))
        .collect();
    let mut props = Map::new();
    props.insert("brought".to_owned(), times.into());
    tx.put_edge(EdgeDraft {
        src: belief,
        rel: rel.to_owned(),
        dst: evidence,
        weight: update.strength.get(),
        props,
    })?;
    Ok(())
}

/// When and how strongly a piece of evidence was given.
fn brought(edge: &Edge) -> Vec<(u64, f64)> {
    let times = edge.props.get("brought").and_then(Value::as_array);
    let times: Vec<(u64, f64)> = times
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair[0].as_u64()?, pair[1].as_f64()?)))
        .collect();
    if times.is_empty() {
        vec![(edge.from.ms(), edge.weight)]
    } else {
        times
    }
}

fn evidence_edges(tx: &dyn ReadTx, belief: NodeId) -> Result<Vec<Edge>> {
    let filter = EdgeFilter {
        src: Some(belief),
        ..EdgeFilter::default()
    };
    let mut edges = tx.edges(&filter, When::Now, usize::MAX)?;
    edges.retain(|edge| edge.rel == relation::SUPPORTS || edge.rel == relation::CONTRADICTS);
    Ok(edges)
}
