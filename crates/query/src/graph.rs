//! A space as a graph in memory.
//!
//! Nodes and relationships have small numbers, which are never used again: a graph that is mostly gaps is
//! made anew. Long texts stay in their rows.

mod lookup;

use crate::by_value::ByValue;
use crate::column::Lazy;
use crate::label_sets::LabelSets;
use crate::names::Names;
use crate::rows::{self, Property};
use kenning_core::NodeId;
use kenning_cypher::{Direction, Rel, RelId, Token, Value};
use kenning_store::{Edge, Node};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

/// Relationships of this type follow from a name alone: a pattern means them only where it names the type.
const GUESSED: &str = "MAY_CALL";

/// The label of tags, which are nodes here and properties in the store.
const TAG: &str = "Tag";

/// The relationship from a node to one of its tags.
const HAS_TAG: &str = "HAS_TAG";

/// The label of events, which are in the log and not in the graph unless a query names it.
pub(crate) const EVENT: &str = "Event";

/// The relationship from an event to a node that it changed or connected.
const CHANGED: &str = "CHANGED";

/// A graph with fewer gaps than this is not made anew.
const GAPS_MIN: usize = 10_000;

/// A space as a graph.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) labels: Names,
    pub(crate) types: Names,
    pub(crate) keys: Names,
    nodes: Vec<NodeEntry>,
    label_sets: LabelSets,
    slots: HashMap<NodeId, u32>,
    tags: HashMap<Arc<str>, u32>,
    /// By label, in order. A node that lost the label may still be listed.
    by_label: Vec<Vec<u32>>,
    n_by_label: Vec<u64>,
    n_nodes: u64,
    rels: Vec<RelEntry>,
    rel_slots: HashMap<(u32, u32, u32), u32>,
    n_by_type: Vec<u64>,
    n_rels: u64,
    /// Ends of edges that are no nodes (now): if one becomes a node, its edges are read again.
    missing: HashSet<NodeId>,
    /// By key: made when a query first asks for a property by its value.
    by_value: RwLock<HashMap<u32, Arc<ByValue>>>,
    texts: HashSet<Arc<str>>,
    /// By key.
    columns: Vec<Lazy>,
}

impl Clone for Graph {
    fn clone(&self) -> Self {
        let by_value = self.by_value.read().unwrap_or_else(PoisonError::into_inner);
        Self {
            labels: self.labels.clone(),
            types: self.types.clone(),
            keys: self.keys.clone(),
            nodes: self.nodes.clone(),
            label_sets: self.label_sets.clone(),
            slots: self.slots.clone(),
            tags: self.tags.clone(),
            by_label: self.by_label.clone(),
            n_by_label: self.n_by_label.clone(),
            n_nodes: self.n_nodes,
            rels: self.rels.clone(),
            rel_slots: self.rel_slots.clone(),
            n_by_type: self.n_by_type.clone(),
            n_rels: self.n_rels,
            missing: self.missing.clone(),
            by_value: RwLock::new(by_value.clone()),
            texts: self.texts.clone(),
            columns: self.columns.clone(),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct NodeEntry {
    /// None for a tag or an event.
    id: Option<NodeId>,
    properties: Box<[(u32, Property)]>,
    outgoing: Vec<Neighbor>,
    incoming: Vec<Neighbor>,
}

#[derive(Clone, Copy, Debug)]
struct Neighbor {
    node: u32,
    rel: u32,
    kind: Token,
}

#[derive(Clone, Debug)]
struct RelEntry {
    start: u32,
    end: u32,
    /// As the store has it.
    relation: Arc<str>,
    properties: Arc<[(u32, Property)]>,
}

impl Graph {
    /// Puts a node, in place of what it was. Its relationships stay.
    pub(crate) fn put_node(&mut self, node: &Node) {
        let slot = match self.slots.get(&node.id) {
            Some(slot) => *slot,
            None => self.add_entry(Some(node.id)),
        };
        self.forget_content(slot);
        let labels = rows::labels(node);
        let labels: Box<[Token]> = labels
            .iter()
            .map(|it| Token(self.labels.token(it)))
            .collect();
        let properties = self.intern(rows::properties(node));
        self.set_content(slot, labels, properties.into_boxed_slice());
        self.missing.remove(&node.id);
        let tags: Vec<u32> = rows::tags(node)
            .into_iter()
            .map(|it| self.tag(it))
            .collect();
        let kind = Token(self.types.token(HAS_TAG));
        let (kept, gone): (Vec<Neighbor>, Vec<Neighbor>) = self
            .entry(slot)
            .map_or(&[][..], |it| &it.outgoing)
            .iter()
            .filter(|it| it.kind == kind && self.is_tag(it.node))
            .partition(|it| tags.contains(&it.node));
        for neighbor in gone {
            self.remove_rel(slot, kind, neighbor.node);
        }
        for tag in tags {
            if !kept.iter().any(|it| it.node == tag) {
                self.add_rel(slot, kind, tag, Arc::from(HAS_TAG), Arc::from([]));
            }
        }
    }

    /// Adds an event of the log, with relationships to the nodes that it changed.
    pub(crate) fn add_event(&mut self, properties: Vec<(String, Property)>, changed: &[u32]) {
        let slot = self.add_entry(None);
        let label = Token(self.labels.token(EVENT));
        let properties = self.intern(properties).into_boxed_slice();
        self.set_content(slot, Box::new([label]), properties);
        let kind = Token(self.types.token(CHANGED));
        for node in changed {
            self.add_rel(slot, kind, *node, Arc::from(CHANGED), Arc::from([]));
        }
    }

    /// Removes a node with its relationships.
    pub(crate) fn remove_node(&mut self, id: NodeId) {
        let Some(slot) = self.slots.remove(&id) else {
            return;
        };
        let entry = self.entry(slot);
        let outgoing = entry.map_or_else(Vec::new, |it| it.outgoing.clone());
        let incoming = entry.map_or_else(Vec::new, |it| it.incoming.clone());
        for it in outgoing {
            self.remove_rel(slot, it.kind, it.node);
        }
        for it in incoming {
            self.remove_rel(it.node, it.kind, slot);
        }
        self.forget_content(slot);
        self.missing.insert(id);
    }

    /// Puts an edge, in place of what it was. One whose end is no node is left out until it is.
    pub(crate) fn put_edge(&mut self, edge: &Edge) {
        let ends = (self.slots.get(&edge.src), self.slots.get(&edge.dst));
        let (Some(start), Some(end)) = (ends.0.copied(), ends.1.copied()) else {
            let ends = [edge.src, edge.dst].into_iter();
            let missing = ends.filter(|it| !self.slots.contains_key(it));
            self.missing.extend(missing);
            return;
        };
        let kind = Token(self.types.token(&rows::rel_type(&edge.rel)));
        self.remove_rel(start, kind, end);
        let mut properties: Vec<(String, Property)> = edge
            .props
            .iter()
            .filter_map(|(name, it)| Some((name.clone(), rows::property(it)?)))
            .collect();
        let mut add = |name: &str, value: Property| {
            if !properties.iter().any(|it| it.0 == name) {
                properties.push((name.to_owned(), value));
            }
        };
        add("weight", Property::Here(Value::Float(edge.weight)));
        add("since", Property::Moment(edge.from.ms()));
        let properties = self.intern(properties);
        let relation = self.text(&edge.rel);
        self.add_rel(start, kind, end, relation, properties.into());
    }

    /// Ends an edge.
    pub(crate) fn end_edge(&mut self, src: NodeId, relation: &str, dst: NodeId) {
        let kind = self.types.find(&rows::rel_type(relation));
        let ends = (self.slots.get(&src), self.slots.get(&dst));
        if let (Some(kind), (Some(start), Some(end))) = (kind, ends) {
            self.remove_rel(*start, Token(kind), *end);
        }
    }

    /// Whether edges were left out because this was no node.
    pub(crate) fn is_missing(&self, id: NodeId) -> bool {
        self.missing.contains(&id)
    }

    /// Whether more was removed than is there.
    pub(crate) fn is_mostly_gaps(&self) -> bool {
        let n_nodes = usize::try_from(self.n_nodes).unwrap_or(usize::MAX);
        let n_rels = usize::try_from(self.n_rels).unwrap_or(usize::MAX);
        self.nodes.len().saturating_sub(n_nodes) > n_nodes.max(GAPS_MIN)
            || self.rels.len().saturating_sub(n_rels) > n_rels.max(GAPS_MIN)
    }

    fn add_entry(&mut self, id: Option<NodeId>) -> u32 {
        let slot = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(NodeEntry {
            id,
            ..NodeEntry::default()
        });
        self.label_sets.add();
        if let Some(id) = id {
            self.slots.insert(id, slot);
        }
        slot
    }

    fn entry(&self, slot: u32) -> Option<&NodeEntry> {
        self.nodes.get(slot as usize)
    }

    fn there(&self, slot: u32) -> Option<&NodeEntry> {
        self.entry(slot).filter(|_| self.label_sets.is_there(slot))
    }

    fn is_tag(&self, slot: u32) -> bool {
        self.entry(slot).is_some_and(|it| it.id.is_none())
    }

    fn tag(&mut self, name: &str) -> u32 {
        if let Some(slot) = self.tags.get(name) {
            return *slot;
        }
        let slot = self.add_entry(None);
        let name = self.text(name);
        self.tags.insert(Arc::clone(&name), slot);
        let key = self.keys.token("name");
        let label = Token(self.labels.token(TAG));
        let name = Property::Here(Value::Str(name));
        self.set_content(slot, Box::new([label]), Box::new([(key, name)]));
        slot
    }

    /// Texts that occur again, such as paths and languages, are kept once.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = Arc::from(text);
        self.texts.insert(Arc::clone(&text));
        text
    }

    fn intern(&mut self, properties: Vec<(String, Property)>) -> Vec<(u32, Property)> {
        let mut found = Vec::with_capacity(properties.len());
        for (name, property) in properties {
            let property = match property {
                // Ids and keys occur once: remembering them would only cost.
                Property::Here(Value::Str(text)) if name != "id" && name != "key" => {
                    Property::Here(Value::Str(self.text(&text)))
                }
                other => other,
            };
            found.push((self.keys.token(&name), property));
        }
        self.columns
            .resize_with(self.keys.all().len(), Lazy::default);
        found.sort_by_key(|it| it.0);
        found
    }

    fn set_content(&mut self, slot: u32, labels: Box<[Token]>, properties: Box<[(u32, Property)]>) {
        for label in &labels {
            let at = label.0 as usize;
            if self.by_label.len() <= at {
                self.by_label.resize_with(at + 1, Vec::new);
                self.n_by_label.resize(at + 1, 0);
            }
            if let (Some(list), Some(n)) = (self.by_label.get_mut(at), self.n_by_label.get_mut(at))
            {
                *n += 1;
                if let Err(place) = list.binary_search(&slot) {
                    list.insert(place, slot);
                }
            }
        }
        let by_value = self.by_value.get_mut();
        for (key, index) in by_value.unwrap_or_else(PoisonError::into_inner) {
            if let Some((_, property)) = properties.iter().find(|it| it.0 == *key) {
                Arc::make_mut(index).add(slot, property);
            }
        }
        self.update_columns(slot, &properties);
        self.n_nodes += u64::from(!self.label_sets.is_there(slot));
        self.label_sets.set(slot, labels);
        if let Some(entry) = self.nodes.get_mut(slot as usize) {
            entry.properties = properties;
        }
    }

    fn update_columns(&mut self, slot: u32, properties: &[(u32, Property)]) {
        for (lazy, key) in self.columns.iter_mut().zip(0_u32..) {
            let Some(column) = lazy.column.get_mut() else {
                continue;
            };
            if column.is_mostly_gaps() {
                *lazy = Lazy::default();
                continue;
            }
            let property = properties.iter().find(|it| it.0 == key);
            Arc::make_mut(column).set(slot, property.map(|it| &it.1));
        }
    }

    fn forget_content(&mut self, slot: u32) {
        if !self.label_sets.is_there(slot) {
            return;
        }
        let Some(entry) = self.nodes.get_mut(slot as usize) else {
            return;
        };
        self.n_nodes = self.n_nodes.saturating_sub(1);
        let labels: Vec<Token> = self.label_sets.of(slot).to_vec();
        self.label_sets.clear(slot);
        let properties = std::mem::take(&mut entry.properties);
        self.update_columns(slot, &[]);
        for label in labels {
            if let Some(n) = self.n_by_label.get_mut(label.0 as usize) {
                *n = n.saturating_sub(1);
            }
        }
        let by_value = self.by_value.get_mut();
        for (key, index) in by_value.unwrap_or_else(PoisonError::into_inner) {
            if let Some((_, property)) = properties.iter().find(|it| it.0 == *key) {
                Arc::make_mut(index).remove(slot, property);
            }
        }
    }

    fn add_rel(
        &mut self,
        start: u32,
        kind: Token,
        end: u32,
        relation: Arc<str>,
        properties: Arc<[(u32, Property)]>,
    ) {
        let rel = u32::try_from(self.rels.len()).unwrap_or(u32::MAX);
        self.rels.push(RelEntry {
            start,
            end,
            relation,
            properties,
        });
        self.rel_slots.insert((start, kind.0, end), rel);
        let at = kind.0 as usize;
        if self.n_by_type.len() <= at {
            self.n_by_type.resize(at + 1, 0);
        }
        if let Some(n) = self.n_by_type.get_mut(at) {
            *n += 1;
        }
        self.n_rels += 1;
        if let Some(entry) = self.nodes.get_mut(start as usize) {
            let node = end;
            entry.outgoing.push(Neighbor { node, rel, kind });
        }
        if let Some(entry) = self.nodes.get_mut(end as usize) {
            let node = start;
            entry.incoming.push(Neighbor { node, rel, kind });
        }
    }

    fn remove_rel(&mut self, start: u32, kind: Token, end: u32) {
        let Some(rel) = self.rel_slots.remove(&(start, kind.0, end)) else {
            return;
        };
        self.n_rels = self.n_rels.saturating_sub(1);
        if let Some(n) = self.n_by_type.get_mut(kind.0 as usize) {
            *n = n.saturating_sub(1);
        }
        if let Some(entry) = self.nodes.get_mut(start as usize) {
            entry.outgoing.retain(|it| it.rel != rel);
        }
        if let Some(entry) = self.nodes.get_mut(end as usize) {
            entry.incoming.retain(|it| it.rel != rel);
            // A tag is there as long as something has it.
            if entry.id.is_none() && entry.incoming.is_empty() {
                self.remove_tag(end);
            }
        }
    }

    fn remove_tag(&mut self, slot: u32) {
        self.forget_content(slot);
        self.tags.retain(|_, it| *it != slot);
    }
}

/// What queries ask.
impl Graph {
    pub(crate) fn n_nodes(&self, label: Option<Token>) -> u64 {
        label.map_or(self.n_nodes, |it| {
            self.n_by_label.get(it.0 as usize).copied().unwrap_or(0)
        })
    }

    pub(crate) fn n_rels(&self, kind: Option<Token>) -> u64 {
        let of = |it: Token| self.n_by_type.get(it.0 as usize).copied().unwrap_or(0);
        match kind {
            Some(kind) => of(kind),
            None => self.n_rels - self.guesses().map_or(0, of),
        }
    }

    /// The type of relationships that are only guessed.
    fn guesses(&self) -> Option<Token> {
        self.types.find(GUESSED).map(Token)
    }

    /// Whether relationships of a type are meant. Those that are guessed are only where their type is named.
    fn is_asked(&self, kinds: &[Token]) -> impl Fn(Token) -> bool {
        let guesses = self.guesses().filter(|_| kinds.is_empty());
        move |kind| match kinds.is_empty() {
            true => guesses != Some(kind),
            false => kinds.contains(&kind),
        }
    }

    /// Up to `n_max` nodes, in order.
    pub(crate) fn nodes_after(
        &self,
        label: Option<Token>,
        after: Option<u32>,
        n_max: usize,
        take: impl FnMut(u32),
    ) {
        let first = after.map_or(0, |it| it as usize + 1);
        match label {
            None => {
                let last = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
                let slots = u32::try_from(first).unwrap_or(u32::MAX)..last;
                let there = slots.filter(|it| self.label_sets.is_there(*it));
                there.take(n_max).for_each(take);
            }
            Some(label) => {
                let list = self.by_label.get(label.0 as usize);
                let list = list.map_or(&[][..], Vec::as_slice);
                let from = list.partition_point(|it| (*it as usize) < first);
                let slots = list.iter().skip(from).copied();
                let having = slots.filter(|it| self.has_label(*it, label));
                having.take(n_max).for_each(take);
            }
        }
    }

    pub(crate) fn has_node(&self, slot: u32) -> bool {
        self.label_sets.is_there(slot)
    }

    pub(crate) fn labels_of(&self, slot: u32) -> &[Token] {
        self.label_sets.of(slot)
    }

    pub(crate) fn has_label(&self, slot: u32, label: Token) -> bool {
        self.labels_of(slot).contains(&label)
    }

    /// The node in the store, unless it is a tag.
    pub(crate) fn id_of(&self, slot: u32) -> Option<NodeId> {
        self.entry(slot).and_then(|it| it.id)
    }

    pub(crate) fn slot_of(&self, id: NodeId) -> Option<u32> {
        self.slots.get(&id).copied()
    }

    pub(crate) fn properties_of(&self, slot: u32) -> &[(u32, Property)] {
        self.there(slot).map_or(&[], |it| &it.properties)
    }

    pub(crate) fn properties_of_rel(&self, rel: RelId) -> &[(u32, Property)] {
        self.rel(rel).map_or(&[], |it| &it.properties)
    }

    fn rel(&self, rel: RelId) -> Option<&RelEntry> {
        self.rels.get(usize::try_from(rel.0).ok()?)
    }

    /// The ends of a relationship, and its relation as the store has it.
    pub(crate) fn row_of_rel(&self, rel: RelId) -> Option<(NodeId, &str, NodeId)> {
        let rel = self.rel(rel)?;
        let ends = (self.id_of(rel.start)?, self.id_of(rel.end)?);
        Some((ends.0, &rel.relation, ends.1))
    }

    pub(crate) fn rels_of(
        &self,
        slot: u32,
        direction: Direction,
        kinds: &[Token],
        into: &mut Vec<Rel>,
    ) {
        // What is not there has no relationships.
        let Some(entry) = self.entry(slot) else {
            return;
        };
        let is_asked = self.is_asked(kinds);
        let is_asked = |it: &&Neighbor| is_asked(it.kind);
        let rel = |start: u32, end: u32, it: &Neighbor| Rel {
            id: RelId(u64::from(it.rel)),
            start: kenning_cypher::NodeId(u64::from(start)),
            end: kenning_cypher::NodeId(u64::from(end)),
            kind: it.kind,
        };
        if direction != Direction::In {
            let outgoing = entry.outgoing.iter().filter(is_asked);
            into.extend(outgoing.map(|it| rel(slot, it.node, it)));
        }
        if direction != Direction::Out {
            let incoming = entry.incoming.iter().filter(is_asked);
            let once = incoming.filter(|it| direction == Direction::In || it.node != slot);
            into.extend(once.map(|it| rel(it.node, slot, it)));
        }
    }

    pub(crate) fn degree(&self, slot: u32, direction: Direction, kinds: &[Token]) -> u64 {
        let Some(entry) = self.entry(slot) else {
            return 0;
        };
        let is_all = kinds.is_empty() && self.guesses().is_none();
        let is_asked = self.is_asked(kinds);
        let is_asked = |it: &&Neighbor| is_asked(it.kind);
        let count = |of: &[Neighbor]| match is_all {
            true => of.len(),
            false => of.iter().filter(is_asked).count(),
        };
        let n = match direction {
            Direction::Out => count(&entry.outgoing),
            Direction::In => count(&entry.incoming),
            Direction::Both => {
                let incoming = entry.incoming.iter().filter(is_asked);
                count(&entry.outgoing) + incoming.filter(|it| it.node != slot).count()
            }
        };
        n as u64
    }
}
