//! Which passages belong together in time.
//!
//! A thread is a session's memories, a conversation, or the passages of one text, in the order in which
//! they were stored. What stands before and after a passage in its thread says what it is about.

use super::{Entry, Index};
use kenning_store::Node;
use serde_json::Value;
use std::collections::HashMap;

/// Of a passage whose node names no thread.
pub(crate) const NO_THREAD: u32 = u32::MAX;

/// Properties of a node that name its thread, the first one that is there.
const THREAD_PROPERTIES: [&str; 2] = ["session_id", "thread_id"];

/// The threads that nodes name, with their passages.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    by_name: HashMap<Box<str>, u32>,
    /// The living passages of each thread, in order.
    members: Vec<Vec<u32>>,
}

impl Threads {
    /// The number of the thread that a node names, a new one if it must be.
    pub(crate) fn number_of(&mut self, node: &Node) -> u32 {
        let named = |name: &&str| node.props.get(*name).and_then(Value::as_str);
        let Some(name) = THREAD_PROPERTIES.iter().find_map(named) else {
            return NO_THREAD;
        };
        // Two projects may use the same name for a session.
        let name = format!("{}\0{}\0{name}", node.kind, node.project);
        let next = u32::try_from(self.members.len()).unwrap_or(NO_THREAD);
        let number = *self.by_name.entry(name.into()).or_insert(next);
        if number == next {
            self.members.push(Vec::new());
        }
        number
    }

    /// Puts a passage where it belongs in its thread. It must be among the entries already.
    pub(crate) fn insert(&mut self, entries: &[Entry], at: u32) {
        let thread = entries[at as usize].thread;
        if let Some(members) = self.members.get_mut(thread as usize) {
            let place = place_of(members, entries, at);
            members.insert(place, at);
        }
    }

    pub(crate) fn remove(&mut self, entries: &[Entry], at: u32) {
        let thread = entries[at as usize].thread;
        if let Some(members) = self.members.get_mut(thread as usize) {
            let place = place_of(members, entries, at);
            if members.get(place) == Some(&at) {
                members.remove(place);
            }
        }
    }

    /// One more, without a name for now.
    pub(crate) fn add(&mut self) {
        self.members.push(Vec::new());
    }

    /// Gives threads their names.
    pub(crate) fn rename(&mut self, by_name: HashMap<Box<str>, u32>) {
        self.by_name = by_name;
    }

    /// Names and numbers only.
    pub(crate) fn into_names(self) -> HashMap<Box<str>, u32> {
        self.by_name
    }

    /// The names of all threads, in the order of their numbers.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<(u32, &str)> = self
            .by_name
            .iter()
            .map(|thread| (*thread.1, &**thread.0))
            .collect();
        names.sort_unstable();
        names.into_iter().map(|it| it.1).collect()
    }

    /// From such names, with nothing in them.
    pub(crate) fn from_names(names: Vec<String>) -> Self {
        Self {
            members: vec![Vec::new(); names.len()],
            by_name: names.into_iter().map(Into::into).zip(0..).collect(),
        }
    }
}

/// Where a passage stands in its thread, or would.
fn place_of(members: &[u32], entries: &[Entry], at: u32) -> usize {
    let order = |at: u32| {
        let entry = &entries[at as usize];
        (entry.created, entry.node, entry.n)
    };
    members.partition_point(|&member| order(member) < order(at))
}

impl Index {
    /// The passages within `reach` of one in its thread, with how far before (negative) or after it they
    /// stand. `holds` says which count at all.
    pub(crate) fn same_thread(
        &self,
        at: u32,
        reach: usize,
        holds: impl Fn(u32) -> bool,
    ) -> Vec<(u32, i32)> {
        let entry = &self.entries[at as usize];
        let members = match self.threads.members.get(entry.thread as usize) {
            Some(members) => members.as_slice(),
            None => self.passages_of(entry.node),
        };
        if members.len() < 2 {
            return Vec::new();
        }
        let place = place_of(members, &self.entries, at);
        let mut out = Vec::with_capacity(2 * reach);
        let after = members.get(place + 1..).unwrap_or_default().iter();
        let before = members[..place.min(members.len())].iter().rev();
        let mut take = |side: &mut dyn Iterator<Item = &u32>, step: i32| {
            let counted = side.copied().filter(|&member| holds(member)).take(reach);
            let distances = (1..).map(|n: i32| n * step);
            out.extend(counted.zip(distances));
        };
        take(&mut { before }, -1);
        take(&mut { after }, 1);
        out
    }
}
