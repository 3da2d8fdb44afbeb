//! Whether a new name means a known entity: in the same statement, by context, or by similarity.

use super::index::{EXACT, lines};
use super::resolve::by_uri;
use super::said::MergeProposal;
use super::settle::{COMPANY_KINDS, COMPANY_MAX, Meant, PROPOSED_MAX, Reading, Settling};
use kenning_core::Result;
use kenning_entities::likeness::{Because, likeness};
use kenning_entities::names::normalized;
use kenning_entities::resolve::Candidate;
use kenning_store::{EdgeFilter, When};

impl Settling<'_> {
    /// A new entity of this statement whose name is only spelled differently.
    pub(super) fn same_in_statement(&self, reading: &Reading) -> Option<Meant> {
        let kind = self.ontology.kind(&reading.kind)?;
        let is_same = |it: &&Meant| {
            it.kind == reading.kind
                && may_be_alike(&it.name, &reading.name)
                && likeness(kind, &it.name, &reading.name).is_some_and(|it| it.because.is_writing())
        };
        self.fresh.iter().find(is_same).cloned()
    }

    /// The one known entity that a nickname, or a name without the middle name, means, if the
    /// statement also mentions its context and does not name it by its own name.
    pub(super) fn likely<'r>(&self, reading: &'r Reading) -> Result<Option<&'r Candidate>> {
        let [only] = reading.resolution.candidates.as_slice() else {
            return Ok(None);
        };
        let is_of_that_sort = matches!(only.because, Because::ShortForm | Because::MissingName);
        let mut names = std::iter::once(&only.entity.name).chain(&only.entity.aliases);
        if !is_of_that_sort || names.any(|it| self.names.contains(&normalized(it))) {
            return Ok(None);
        }
        let is_near = self.is_in_company(&only.entity.uri, reading)?;
        Ok(is_near.then_some(only))
    }

    /// Whether an entity related to this one is in the statement, or related to the name in it.
    pub(super) fn is_in_company(&self, uri: &str, reading: &Reading) -> Result<bool> {
        let mut around = self.known.clone();
        for it in &self.said.relations {
            let key = normalized(&reading.name);
            let other = match (
                normalized(&it.subject) == key,
                normalized(&it.object) == key,
            ) {
                (true, false) => &it.object,
                (false, true) => &it.subject,
                _ => continue,
            };
            around.extend(self.resolve_name(other)?.map(|it| it.0));
        }
        let Some(node) = by_uri(self.tx, uri)? else {
            return Ok(false);
        };
        let ends = [
            EdgeFilter {
                src: Some(node.id),
                ..EdgeFilter::default()
            },
            EdgeFilter {
                dst: Some(node.id),
                ..EdgeFilter::default()
            },
        ];
        for filter in ends {
            for edge in self.tx.edges(&filter, When::Now, COMPANY_MAX)? {
                if !edge.props.contains_key("predicate") {
                    continue;
                }
                let other = if edge.src == node.id {
                    edge.dst
                } else {
                    edge.src
                };
                let Some(other) = self.tx.node(other, When::Now)? else {
                    continue;
                };
                if COMPANY_KINDS.contains(&super::kind(&other)) && around.contains(&other.key) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Proposes to merge a new entity into those that may be the same.
    pub(super) fn propose(&mut self, reading: &Reading, new: &Meant) {
        let mut all = Vec::new();
        let mut add = |name: &str, uri: &str, kind: &str, confidence: f64, because: Because| {
            if uri != new.uri && kind == new.kind {
                all.push(MergeProposal {
                    from_name: new.name.clone(),
                    from_uri: new.uri.clone(),
                    into_name: name.to_owned(),
                    into_uri: uri.to_owned(),
                    kind: kind.to_owned(),
                    confidence,
                    reason: because.words(),
                });
            }
        };
        for it in reading.resolution.candidates.iter().take(PROPOSED_MAX) {
            let entity = &it.entity;
            add(
                &entity.name,
                &entity.uri,
                &entity.kind,
                it.confidence,
                it.because,
            );
        }
        if let Some(kind) = self.ontology.kind(&reading.kind) {
            let alike = self.fresh.iter().filter_map(|it| {
                let is_near = it.kind == reading.kind && may_be_alike(&it.name, &reading.name);
                let found = is_near.then(|| likeness(kind, &it.name, &reading.name));
                Some((it, found.flatten()?))
            });
            for (it, found) in alike.take(PROPOSED_MAX) {
                add(&it.name, &it.uri, &it.kind, found.confidence, found.because);
            }
        }
        self.outcome.proposals.extend(all);
    }

    /// Whether an entity with this name is known with another type.
    pub(super) fn of_other_type(&self, reading: &Reading) -> Result<Option<String>> {
        let named = lines(EXACT).get_readable(self.tx, &normalized(&reading.name))?;
        for uri in named.unwrap_or_default().0.lines() {
            let Some(node) = by_uri(self.tx, uri)? else {
                continue;
            };
            let kind = super::kind(&node);
            if kind != reading.kind {
                return Ok(Some(format!(
                    "known before is \"{}\" of type {kind} (`{uri}`): state that type if it is meant",
                    node.title
                )));
            }
        }
        Ok(None)
    }
}

/// Whether it is worth comparing two names closely: they begin alike, or end in the same word.
pub(super) fn may_be_alike(a: &str, b: &str) -> bool {
    let first = |it: &str| it.chars().next().map(|it| it.to_lowercase().to_string());
    let last = |it: &str| it.split_whitespace().next_back().map(str::to_lowercase);
    first(a) == first(b) || last(a) == last(b)
}
