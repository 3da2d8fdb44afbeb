//! What a document states after it has changed.

use super::said::{Settled, SettledThing, put_said, said_by};
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
