//! What a document states beside, or in place of, what it stated before.

use super::said::{Settled, SettledRelation, SettledThing, put_said, said_by};
use kenning_audit::Tx;
use kenning_core::Result;
use kenning_entities::names::normalized;
use std::collections::HashSet;

impl Settled {
    /// Drops what a text no longer names: entities, and relationships of those.
    fn keep_named_in(&mut self, text: &str) {
        let text = normalized(text);
        let is_named = |it: &SettledThing| {
            let mut names = it.aliases.iter().chain([&it.name]);
            names.any(|name| text.contains(&normalized(name)))
        };
        let (kept, gone): (Vec<_>, Vec<_>) = self.things.drain(..).partition(is_named);
        self.things = kept;
        let gone: HashSet<String> = gone.into_iter().map(|it| it.uri).collect();
        self.relations
            .retain(|it| !gone.contains(&it.subject) && !gone.contains(&it.object));
    }

    /// Adds what the same source stated before. A mention counts once, however often it is sent.
    pub(super) fn add(&mut self, before: Self) {
        for thing in before.things {
            match self.things.iter_mut().find(|it| it.uri == thing.uri) {
                None => self.things.push(thing),
                Some(it) => {
                    it.n_mentions = it.n_mentions.max(thing.n_mentions);
                    if it.description.is_empty() {
                        it.description = thing.description;
                    }
                    for alias in thing.aliases {
                        if !it.aliases.contains(&alias) {
                            it.aliases.push(alias);
                        }
                    }
                }
            }
        }
        for relation in before.relations {
            let is_same = |it: &SettledRelation| {
                (&it.subject, &it.predicate, &it.object)
                    == (&relation.subject, &relation.predicate, &relation.object)
            };
            if !self.relations.iter().any(is_same) {
                self.relations.push(relation);
            }
        }
    }

    /// How many entities and relationships it has.
    fn size(&self) -> (usize, usize) {
        (self.things.len(), self.relations.len())
    }
}

/// Stores what a changed document states. With `text`, what it stated before stays as far as the text still
/// names it. Says how many entities and relationships it states before and after.
pub(crate) fn put_said_again(
    tx: &mut Tx<'_>,
    mut settled: Settled,
    text: Option<&str>,
) -> Result<[(usize, usize); 2]> {
    let before = said_by(&**tx, &settled.key())?.unwrap_or_default();
    let n_before = before.size();
    if let Some(text) = text {
        let mut before = before;
        before.keep_named_in(text);
        settled.add(before);
    }
    put_said(tx, &settled)?;
    Ok([n_before, settled.size()])
}
