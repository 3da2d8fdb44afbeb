//! Graphs of other KOI servers: what their `/entities` and `/relationships` export as JSON.
//!
//! An import is one statement in several pieces, kept in one transaction under its name: importing again
//! under the same name takes its place. URIs stay what they are. What cannot be is left out and told, and
//! loses nothing else.

use super::index::{EXACT, lines};
use super::said::{
    IMPORT, SAID, Settled, SettledRelation, SettledThing, import_key, put_said, unset_said,
};
use super::stated::is_name;
use crate::Koi;
use kenning_core::{Error, Kind, Result};
use kenning_entities::names::{alias_key, entity_uri, normalized};
use kenning_entities::ontology::{Direction, Ontology, Predicate, predicate};
use kenning_kernel::{Caller, Text};
use kenning_store::{ReadTx, When};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// At most this many entities or relationships in one piece.
const PIECE: usize = 1_000;
/// At most this many rejected rows are named.
const NAMED: usize = 20;
/// The confidence of a relationship that gives none.
const CONFIDENCE: f64 = 0.9;
/// The relation if no other is possible.
const RELATED: &str = "related_to";

/// Exports that belong together.
#[derive(Clone, Debug, Default)]
pub struct EntityImport {
    /// The name of the import; a later one with the same name replaces it.
    pub name: String,
    /// The exports, in any order: arrays, or objects with `entities` or `relationships`.
    pub exports: Vec<Value>,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedEntities {
    /// Entities in it.
    pub n_entities: usize,
    /// Relationships in it.
    pub n_relationships: usize,
    /// Relationships that were stored reversed, or only as `related_to`, because they were not valid
    /// as given.
    pub n_changed: usize,
    /// Rows that were left out.
    pub n_rejected: usize,
    /// Why, for the first of them.
    pub rejected: Vec<String>,
}

impl ImportedEntities {
    fn reject(&mut self, why: String) {
        self.n_rejected += 1;
        if self.rejected.len() < NAMED {
            self.rejected.push(why);
        }
    }
}

impl Koi {
    /// Imports the exports of another KOI server.
    pub fn import_entities(
        &self,
        caller: &Caller,
        import: &EntityImport,
    ) -> Result<ImportedEntities> {
        self.kernel.may_write(caller)?;
        let name = import.name.trim();
        if name.is_empty() || name.len() > 100 || name.contains(|it: char| it.is_control()) {
            return Err(Error::invalid(format!(
                "`name` \"{name}\" is not a valid name of an import"
            ))
            .hint("use a short name, for example that of the other server"));
        }
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        let (pieces, imported) = self.kernel.log().read(space, |tx| {
            let ontology = self.ontology(space, tx)?;
            let reading = Reading {
                tx,
                ontology: &ontology,
                things: BTreeMap::new(),
                by_name: HashMap::new(),
                imported: ImportedEntities::default(),
            };
            reading.read(&import.exports)
        })?;
        let (prefix, rid) = (import_key(name), format!("{IMPORT}:{name}"));
        let told = imported.clone();
        self.kernel.log().write_long(space, move |tx| {
            for key in SAID.keys(&**tx)? {
                if key.starts_with(&prefix) {
                    unset_said(tx, &key)?;
                }
            }
            for (n, mut piece) in pieces.into_iter().enumerate() {
                piece.rid = format!("{prefix}{n:06}");
                put_said(tx, &piece)?;
            }
            let data = json!({
                "import": rid, "entities": told.n_entities, "relationships": told.n_relationships,
                "rejected": told.n_rejected,
            });
            tx.record("EntitiesImported", data).map(drop)
        })?;
        self.follow_entities(caller)?;
        Ok(imported)
    }
}

struct Reading<'a> {
    tx: &'a dyn ReadTx,
    ontology: &'a Ontology,
    /// By their URIs.
    things: BTreeMap<String, SettledThing>,
    by_name: HashMap<String, String>,
    imported: ImportedEntities,
}

impl Reading<'_> {
    fn read(mut self, exports: &[Value]) -> Result<(Vec<Settled>, ImportedEntities)> {
        let rows = |name: &str| -> Vec<&Value> {
            let lists = exports.iter().filter_map(|it| list_of(it, name));
            lists.flatten().collect()
        };
        let (entities, relationships) = (rows("entities"), rows("relationships"));
        if entities.is_empty() && relationships.is_empty() {
            return Err(
                Error::invalid("the export has neither `entities` nor `relationships`").hint(
                    "give the response of `GET /entities` or `GET /relationships` of a KOI server",
                ),
            );
        }
        for row in entities {
            self.entity(row);
        }
        let mut relations = Vec::new();
        for row in relationships {
            match self.relation(row)? {
                Ok(relation) => relations.push(relation),
                Err(why) => self.imported.reject(why),
            }
        }
        self.imported.n_entities = self.things.len();
        self.imported.n_relationships = relations.len();
        let settled = || Settled {
            source: IMPORT.to_owned(),
            ..Settled::default()
        };
        let mut pieces = Vec::new();
        let things: Vec<SettledThing> = self.things.into_values().collect();
        for piece in things.chunks(PIECE) {
            pieces.push(Settled {
                things: piece.to_vec(),
                ..settled()
            });
        }
        for piece in relations.chunks(PIECE) {
            pieces.push(Settled {
                relations: piece.to_vec(),
                ..settled()
            });
        }
        Ok((pieces, self.imported))
    }

    fn entity(&mut self, row: &Value) {
        let name = text(row, &["name", "entity_text", "label"]).unwrap_or_default();
        let said = text(row, &["type", "entity_type"]).unwrap_or_default();
        if !is_name(&name) {
            let shown: String = row.to_string().chars().take(120).collect();
            self.imported
                .reject(format!("an entity without a usable name: {shown}"));
            return;
        }
        let Some(kind) = self.ontology.kind(&said) else {
            let why = format!("\"{name}\": type \"{said}\" is not one of the ontology");
            self.imported.reject(why);
            return;
        };
        let uri = text(row, &["uri", "fuseki_uri", "entity_uri"]);
        let uri = uri.unwrap_or_else(|| entity_uri(&name, &kind.key));
        if uri.contains(char::is_control) || uri.len() > 1_000 {
            self.imported
                .reject(format!("\"{name}\": its URI is malformed"));
            return;
        }
        self.by_name.insert(normalized(&name), uri.clone());
        let thing = self
            .things
            .entry(uri.clone())
            .or_insert_with(|| SettledThing {
                uri,
                name: name.clone(),
                kind: kind.key.clone(),
                ..SettledThing::default()
            });
        for alias in aliases_of(row).iter().map(|it| alias_key(it)) {
            let is_own = normalized(&alias) == normalized(&thing.name);
            if is_name(&alias) && !is_own && !thing.aliases.contains(&alias) {
                thing.aliases.push(alias);
            }
        }
        if thing.description.is_empty() {
            thing.description = text(row, &["description", "context"]).unwrap_or_default();
        }
    }

    fn relation(&mut self, row: &Value) -> Result<std::result::Result<SettledRelation, String>> {
        let said = text(row, &["predicate"]).unwrap_or_default();
        let end = |names: [&str; 2]| text(row, &names[..1]).or_else(|| text(row, &names[1..]));
        let subject = end(["subject_uri", "subject"]).unwrap_or_default();
        let object = end(["object_uri", "object"]).unwrap_or_default();
        let shown = format!("{subject} {said} {object}");
        let Some((known, direction)) = predicate(&said) else {
            return Ok(Err(format!("{shown}: no such predicate")));
        };
        let (Some(subject), Some(object)) =
            (self.resolve_name(&subject)?, self.resolve_name(&object)?)
        else {
            return Ok(Err(format!("{shown}: one of its ends is unknown")));
        };
        let (mut from, mut to) = (subject, object);
        if direction == Direction::Incoming {
            std::mem::swap(&mut from, &mut to);
        }
        if from.0 == to.0 {
            return Ok(Err(format!("{shown}: nothing relates to itself")));
        }
        let Some((name, is_turned)) = self.fitting(known, &from.1, &to.1) else {
            let why = self.ontology.check(known, &from.1, &to.1);
            let why = why.err().map(|it| it.message).unwrap_or_default();
            return Ok(Err(format!("{shown}: {why}")));
        };
        if is_turned {
            std::mem::swap(&mut from, &mut to);
        }
        if is_turned || name != known.name {
            self.imported.n_changed += 1;
        }
        let confidence = row.get("confidence").and_then(Value::as_f64);
        Ok(Ok(SettledRelation {
            subject: from.0,
            predicate: name.to_owned(),
            object: to.0,
            confidence: confidence.unwrap_or(CONFIDENCE).clamp(0.0, 1.0),
            source: text(row, &["source"]),
            source_rid: text(row, &["source_rid"]),
        }))
    }

    /// The predicate if it is valid; otherwise reversed, as the original stored founders; otherwise
    /// `related_to`.
    fn fitting(
        &self,
        known: &'static Predicate,
        from: &str,
        to: &str,
    ) -> Option<(&'static str, bool)> {
        let name = known.name;
        if self.ontology.check(known, from, to).is_ok() {
            return Some((name, false));
        }
        if self.ontology.check(known, to, from).is_ok() {
            return Some((name, true));
        }
        let (related, _) = predicate(RELATED)?;
        let is_related = self.ontology.check(related, from, to).is_ok();
        is_related.then_some((related.name, false))
    }

    /// The URI and type of an end, from this import or from the graph.
    fn resolve_name(&self, name: &str) -> Result<Option<(String, String)>> {
        let by_name = self.by_name.get(&normalized(name)).map(String::as_str);
        for uri in [Some(name), by_name].into_iter().flatten() {
            if let Some(thing) = self.things.get(uri) {
                return Ok(Some((thing.uri.clone(), thing.kind.clone())));
            }
        }
        let mut uris = vec![name.to_owned()];
        let named = lines(EXACT).get_readable(self.tx, &normalized(name))?;
        let Text(named) = named.unwrap_or_default();
        // Of several who have the name nobody is meant.
        if let [only] = named.lines().collect::<Vec<_>>()[..] {
            uris.push(only.to_owned());
        }
        for uri in uris {
            if let Some(node) = self.tx.node_by_key("", Kind::Entity, &uri, When::Now)? {
                return Ok(Some((node.key.clone(), super::kind(&node).to_owned())));
            }
        }
        Ok(None)
    }
}

/// The list that an export has under a name; the type of a bare array is taken from its first row.
fn list_of<'a>(export: &'a Value, name: &str) -> Option<&'a Vec<Value>> {
    if let Some(list) = export.get(name).and_then(Value::as_array) {
        return Some(list);
    }
    let list = export.as_array()?;
    let is_relationships = list.first()?.get("predicate").is_some();
    (is_relationships == (name == "relationships")).then_some(list)
}

fn text(row: &Value, names: &[&str]) -> Option<String> {
    let found = names.iter().filter_map(|it| row.get(*it)?.as_str());
    let found = found.map(str::trim).find(|it| !it.is_empty());
    found.map(ToOwned::to_owned)
}

/// Other names: a list, or a list as text, as the original stores JSON in columns.
fn aliases_of(row: &Value) -> Vec<String> {
    let list = match row.get("aliases") {
        Some(Value::Array(list)) => list.clone(),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        _ => Vec::new(),
    };
    let texts = list.into_iter().filter_map(|it| match it {
        Value::String(text) => Some(text),
        _ => None,
    });
    texts.collect()
}
