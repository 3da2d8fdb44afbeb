//! Which passages of an index a filter admits.

use super::{Filter, Gate, Index, NO_MEMORY, bits, facet_bit, memory_of};
use kenning_core::Kind;

/// A filter in the numbers of one index.
pub(crate) struct Admission<'a> {
    index: &'a Index,
    filter: &'a Filter,
    bits: u64,
    /// Properties beyond the bits.
    further: Vec<u32>,
    /// Properties of which one is enough, if any were asked for.
    any: Option<(u64, Vec<u32>)>,
    /// Facets of the projects whose memories may be found, if they were named.
    memories_of: Option<(u64, Vec<u32>)>,
    /// A property that nobody has admits nobody, and so do kinds of which there is nothing.
    impossible: bool,
}

impl Admission<'_> {
    /// Whether nothing can be admitted.
    pub(super) fn is_impossible(&self) -> bool {
        self.impossible
    }

    fn is_named(&self, at: usize) -> bool {
        let node = self.index.entries[at].node;
        self.filter
            .nodes
            .as_ref()
            .is_none_or(|it| it.contains(&node))
    }

    /// Whether a passage was there at the moment that is asked for.
    pub(crate) fn holds(&self, at: usize) -> bool {
        let gate = &self.index.gates[at];
        gate.alive
            && match self.filter.as_of_ms {
                None => gate.ended_ms == u64::MAX,
                Some(moment) => gate.created_ms <= moment && moment < gate.ended_ms,
            }
    }

    /// Every passage that is admitted.
    pub(crate) fn admitted(&self) -> Vec<u32> {
        if self.impossible {
            return Vec::new();
        }
        let all = 0..u32::try_from(self.index.entries.len()).unwrap_or(u32::MAX);
        let mut admitted = Vec::with_capacity(all.len());
        if self.is_by_gates() {
            // What nearly every query asks for takes a few comparisons of each gate.
            let kinds = self.filter.kinds.iter().map(|it| 1_u32 << *it as u32);
            let kinds = kinds.reduce(|all, it| all | it).unwrap_or(u32::MAX);
            let (any, needs_any) = self.any.as_ref().map_or((0, false), |it| (it.0, true));
            let of = self.memories_of.as_ref().map_or(u64::MAX, |it| it.0);
            let needs_of = self.memories_of.is_some();
            let admits = |gate: &Gate| {
                gate.alive
                    & (gate.ended_ms == u64::MAX)
                    & (gate.facets & self.bits == self.bits)
                    & (!needs_any | (gate.facets & any != 0))
                    & (!needs_of | (gate.facets & of != 0))
                    & (kinds >> gate.kind as u32 & 1 == 1)
            };
            let each = all.zip(&self.index.gates);
            admitted.extend(each.filter(|it| admits(it.1)).map(|it| it.0));
        } else {
            admitted.extend(all.filter(|&at| self.admits(at as usize)));
        }
        admitted
    }

    /// Whether gates alone decide what is admitted, at this moment.
    fn is_by_gates(&self) -> bool {
        let has_only_bits = |any: &(u64, Vec<u32>)| any.1.is_empty();
        self.filter.as_of_ms.is_none()
            && self.filter.nodes.is_none()
            && self.further.is_empty()
            && self.any.as_ref().is_none_or(has_only_bits)
            && self.memories_of.as_ref().is_none_or(has_only_bits)
    }

    pub(crate) fn admits(&self, at: usize) -> bool {
        let gate = &self.index.gates[at];
        self.holds(at)
            && gate.facets & self.bits == self.bits
            && (self.filter.kinds.is_empty() || self.filter.kinds.contains(&gate.kind))
            && !self.impossible
            && self.is_named(at)
            && self
                .further
                .iter()
                .all(|it| self.index.entries[at].facets.contains(it))
            && self.has_one_of(at, self.any.as_ref())
            && self.has_one_of(at, self.memories_of.as_ref())
    }

    /// Whether a passage has at least one of some properties, if they were asked for.
    fn has_one_of(&self, at: usize, wanted: Option<&(u64, Vec<u32>)>) -> bool {
        wanted.is_none_or(|(bits, further)| {
            self.index.gates[at].facets & bits != 0
                || further
                    .iter()
                    .any(|it| self.index.entries[at].facets.contains(it))
        })
    }
}

impl Index {
    pub(crate) fn admission<'a>(&'a self, filter: &'a Filter) -> Admission<'a> {
        let wanted = filter.facets.iter().map(|it| self.facets.get(it).copied());
        let facets: Vec<u32> = wanted.flatten().collect();
        let is_there = |kind: &Kind| self.kinds.get(kind).is_some_and(|n| *n > 0);
        let impossible = facets.len() < filter.facets.len()
            || !filter.kinds.is_empty() && !filter.kinds.iter().any(is_there);
        let one_of = |facets: &[String]| {
            let known = facets.iter().filter_map(|it| self.facets.get(it));
            let known: Vec<u32> = known.copied().collect();
            (bits(&known), beyond_bits(&known))
        };
        let any = (!filter.any_facet.is_empty()).then(|| one_of(&filter.any_facet));
        let memories_of = (!filter.memories_of.is_empty()).then(|| {
            let own = filter.memories_of.iter().map(|it| memory_of(it));
            let own: Vec<String> = own.chain([NO_MEMORY.to_owned()]).collect();
            one_of(&own)
        });
        Admission {
            bits: bits(&facets),
            further: beyond_bits(&facets),
            any,
            memories_of,
            index: self,
            filter,
            impossible,
        }
    }
}

/// Those that no bit stands for.
fn beyond_bits(facets: &[u32]) -> Vec<u32> {
    let beyond = facets.iter().copied();
    beyond.filter(|&it| facet_bit(it).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::{Hash, Hlc, NodeId, SeededRandom};
    use kenning_store::Node;
    use serde_json::json;
    use std::collections::HashSet;

    fn id_of(n: u16) -> NodeId {
        let mut id = [0; 16];
        id[..2].copy_from_slice(&n.to_be_bytes());
        NodeId(id)
    }

    /// Nodes of many kinds with more properties than there are bits, some removed, some superseded.
    fn mixed() -> Index {
        let random = SeededRandom::new(4);
        let below = |n: u64| usize::try_from(random.below(n)).unwrap_or(0);
        let mut index = Index::new();
        for n in 0..400 {
            let tags: Vec<String> = (0..below(4)).map(|_| format!("t{}", below(90))).collect();
            let source = ["vault", "web"][below(2)];
            let mut props = json!({ "tags": tags, "source": source });
            if below(5) == 0 {
                props["superseded_at_ms"] = 5.into();
            }
            let node = Node {
                id: id_of(n),
                kind: Kind::ALL[below(Kind::ALL.len() as u64)],
                project: ["", "p"][below(2)].to_owned(),
                key: n.to_string(),
                title: String::new(),
                body: String::new(),
                props: props.as_object().cloned().unwrap_or_default(),
                created: Hlc::from_ms(1 + u64::from(n % 9)),
                updated: Hlc::default(),
                hash: Hash::default(),
                rev: 1,
            };
            index.put(&node, &crate::passages("", &format!("text {n}")));
            if below(9) == 0 {
                index.remove(node.id);
            }
        }
        index
    }

    #[test]
    fn all_that_are_admitted_are_those_that_are_admitted_one_by_one() {
        let index = mixed();
        let tag = |n: usize| format!("tag=t{n}");
        let (rare, common) = (vec![tag(80), tag(81), tag(82)], vec![tag(0), tag(1)]);
        let named: HashSet<NodeId> = (0..400).step_by(7).map(id_of).collect();
        let (mut n_by_gates, mut n_admitted) = (0, 0);
        for kinds in [
            vec![],
            vec![Kind::Entity],
            vec![Kind::Document, Kind::Memory],
        ] {
            for facets in [vec![], vec!["source=web".to_owned()], vec![tag(80)]] {
                for any_facet in [
                    vec![],
                    rare.clone(),
                    common.clone(),
                    vec!["tag=none".to_owned()],
                ] {
                    for as_of_ms in [None, Some(3)] {
                        for (nodes, memories_of) in [
                            (None, vec![]),
                            (Some(named.clone()), vec![]),
                            (None, vec!["p".to_owned()]),
                            (None, vec!["p".to_owned(), String::new()]),
                            (None, vec!["nowhere".to_owned()]),
                        ] {
                            let filter = Filter {
                                memories_of,
                                kinds: kinds.clone(),
                                facets: facets.clone(),
                                any_facet: any_facet.clone(),
                                as_of_ms,
                                nodes,
                            };
                            let admission = index.admission(&filter);
                            let all = 0..index.entries.len();
                            let each: Vec<usize> = all.filter(|at| admission.admits(*at)).collect();
                            let found = admission.admitted().into_iter();
                            let found: Vec<usize> = found.map(|at| at as usize).collect();
                            assert_eq!(found, each, "{filter:?}");
                            n_by_gates += usize::from(admission.is_by_gates());
                            n_admitted += each.len();
                        }
                    }
                }
            }
        }
        let of_none = Filter {
            memories_of: vec![String::new()],
            ..Filter::default()
        };
        let kinds_of = |filter: &Filter| {
            let found = index.admission(filter).admitted().into_iter();
            let kinds = found.map(|at| index.gates[at as usize].kind);
            let (memories, others): (Vec<Kind>, Vec<Kind>) =
                kinds.partition(|it| *it == Kind::Memory);
            (memories.len(), others.len())
        };
        let (all, some) = (kinds_of(&Filter::default()), kinds_of(&of_none));
        assert!(0 < some.0 && some.0 < all.0, "{some:?} {all:?}");
        assert_eq!(some.1, all.1, "only memories are concerned");
        assert!(
            n_by_gates > 10 && n_admitted > 500,
            "{n_by_gates} {n_admitted}"
        );
    }
}
