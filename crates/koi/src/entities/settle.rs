//! Whom a statement means.
//!
//! Each name of a statement is somebody who is known, or somebody new. Who is new may still be one with
//! another: because the caller says so (`merge`), because the name is only written in another way, or because
//! it is a nickname of somebody known with the same family name and the statement is about that person's
//! company too. The last is kept as a merge, which can be taken back. What is less sure is proposed.

use super::asked_merge::{ASKED, is_of_the_caller, refused};
use super::identity::{NewMerge, is_vetoed};
use super::resolve::{Meanings, by_uri};
use super::said::{
    EntityOutcome, MergeOutcome, NEW_CONFIDENCE, RelationOutcome, Said, Settled, SettledRelation,
    SettledThing, StatedEntity, StatedMerge, StatedRelation, StatementOutcome,
};
use super::stated::is_name;
use crate::Koi;
use kenning_core::{Code, Error, Result, Space};
use kenning_entities::names::{alias_key, entity_uri, normalized};
use kenning_entities::ontology::{Direction, Ontology, predicate};
use kenning_entities::resolve::{Candidate, Query, Resolution};
use kenning_store::ReadTx;
use std::collections::{HashMap, HashSet};

/// What an entity is whose type nobody knows.
const TYPE_DEFAULT: &str = "Concept";
/// So many known entities are proposed for one that is new.
pub(super) const PROPOSED_MAX: usize = 3;
/// So many new entities of a statement are compared with each other.
const COMPARED_MAX: usize = 500;
/// So many relationships of an entity tell its company.
pub(super) const COMPANY_MAX: usize = 500;
/// Whoever shares one of these is in the same company; a place or a topic is shared by many.
pub(super) const COMPANY_KINDS: &[&str] = &["Person", "Organization", "Project", "Meeting"];

/// An entity, as far as a statement needs it.
#[derive(Clone, Debug)]
pub(super) struct Meant {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) kind: String,
}

/// A stated entity, before it is known whom it means.
pub(super) struct Reading {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) warning: Option<String>,
    pub(super) resolution: Resolution,
}

/// A statement that is being settled.
pub(super) struct Settling<'a> {
    pub(super) engine: &'a Koi,
    pub(super) space: &'a Space,
    pub(super) tx: &'a dyn ReadTx,
    pub(super) meanings: &'a Meanings,
    pub(super) ontology: &'a Ontology,
    pub(super) said: &'a Said,
    /// The keys of all names of this statement.
    pub(super) names: HashSet<String>,
    /// Those who are known and whom this statement surely names.
    pub(super) known: HashSet<String>,
    /// Whom the names of this statement mean, with their types.
    pub(super) by_name: HashMap<String, (String, String)>,
    /// By which name each was first stated.
    pub(super) said_as: HashMap<String, String>,
    /// Those whom nobody knew.
    pub(super) fresh: Vec<Meant>,
    /// Who was merged into whom by this statement.
    pub(super) same: HashMap<String, String>,
    pub(super) settled: Settled,
    pub(super) outcome: StatementOutcome,
}

impl Koi {
    /// Finds out whom a statement means and whether its relationships can be. Nothing is stored.
    pub(crate) fn settle_statement(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        meanings: &Meanings,
        said: &Said,
    ) -> Result<(Settled, StatementOutcome)> {
        let ontology = self.ontology(space, tx)?;
        let mut settling = Settling {
            engine: self,
            space,
            tx,
            meanings,
            ontology: &ontology,
            said,
            names: said
                .entities
                .iter()
                .map(|it| normalized(&it.name))
                .collect(),
            known: HashSet::new(),
            by_name: HashMap::new(),
            said_as: HashMap::new(),
            fresh: Vec::new(),
            same: HashMap::new(),
            settled: Settled {
                source: said.source.to_owned(),
                rid: said.source_rid.clone(),
                document: said.document.map(|it| it.to_string()),
                ..Settled::default()
            },
            outcome: StatementOutcome::default(),
        };
        settling.entities()?;
        for it in &said.relations {
            let reason = settling.relation(it)?;
            settling.outcome.relations.push(RelationOutcome {
                subject: it.subject.clone(),
                predicate: it.predicate.clone(),
                object: it.object.clone(),
                is_stored: reason.is_none(),
                reason,
            });
        }
        settling.defer_merges();
        Ok((settling.settled, settling.outcome))
    }
}

impl Settling<'_> {
    /// Who is to be merged into another comes last: the other may be of this statement too.
    fn entities(&mut self) -> Result<()> {
        let said = self.said;
        let mut readings = Vec::new();
        for it in &said.entities {
            let reading = self.read(it)?;
            let sure = reading.as_ref().and_then(|it| it.resolution.chosen());
            let sure = sure.filter(|it| it.is_sure());
            self.known.extend(sure.map(|it| it.entity.uri.clone()));
            readings.push(reading);
        }
        let mut outcomes: Vec<Option<EntityOutcome>> = vec![None; readings.len()];
        let is_asked: Vec<bool> = readings
            .iter()
            .map(|it| it.as_ref().is_some_and(|it| self.asked(it).is_some()))
            .collect();
        for round in [false, true] {
            for (n, it) in said.entities.iter().enumerate() {
                if is_asked[n] == round {
                    outcomes[n] = Some(match &readings[n] {
                        None => left_out(it),
                        Some(reading) => self.entity(it, reading)?,
                    });
                }
            }
        }
        self.outcome.entities = outcomes.into_iter().flatten().collect();
        Ok(())
    }

    /// `None` if it cannot be an entity.
    fn read(&self, it: &StatedEntity) -> Result<Option<Reading>> {
        let name = it.name.trim();
        if !is_name(name) {
            return Ok(None);
        }
        let known_kind = self.ontology.kind(&it.kind);
        let warning = known_kind.is_none().then(|| {
            format!(
                "`type` \"{}\" is not one of the ontology: stored as {TYPE_DEFAULT}",
                it.kind
            )
        });
        let kind = known_kind.map_or(TYPE_DEFAULT, |it| &it.key).to_owned();
        let query = Query {
            label: name,
            kind: Some(&kind),
            ..Query::default()
        };
        let resolution = self
            .engine
            .resolve_in(self.space, self.tx, self.meanings, &query)?;
        Ok(Some(Reading {
            name: name.to_owned(),
            kind,
            warning,
            resolution,
        }))
    }

    fn entity(&mut self, it: &StatedEntity, reading: &Reading) -> Result<EntityOutcome> {
        // To store is to say that they are one. So what only looks alike is not taken for two names of one
        // statement, unless they are one name in two spellings.
        let is_other = |it: &Candidate| {
            let said = self.said_as.get(&it.entity.uri);
            !it.because.is_writing() && said.is_some_and(|it| *it != normalized(&reading.name))
        };
        let found = reading.resolution.chosen();
        let found = found.filter(|it| it.is_sure() && !is_other(it));
        if let Some(found) = found {
            let meant = Meant {
                uri: found.entity.uri.clone(),
                name: found.entity.name.clone(),
                kind: found.entity.kind.clone(),
            };
            return Ok(self.add(it, reading, meant, found.confidence, false));
        }
        let asked = self.asked(reading).cloned();
        if let Some(asked) = asked
            && let Some(into) = self.target(&asked, reading)?
        {
            return Ok(self.add_merged(it, reading, into, (1.0, ASKED)));
        }
        if let Some(it_too) = self.same_in_statement(reading) {
            return Ok(self.add(it, reading, it_too, NEW_CONFIDENCE, false));
        }
        if let Some(likely) = self.likely(reading)? {
            let into = Meant {
                uri: likely.entity.uri.clone(),
                name: likely.entity.name.clone(),
                kind: likely.entity.kind.clone(),
            };
            let why = format!("{}, in the same company", likely.because.words());
            let why = (likely.confidence, why.as_str());
            return Ok(self.add_merged(it, reading, into, why));
        }
        let new = Meant {
            uri: entity_uri(&reading.name, &reading.kind),
            name: reading.name.clone(),
            kind: reading.kind.clone(),
        };
        self.propose(reading, &new);
        let mut outcome = self.add(it, reading, new.clone(), NEW_CONFIDENCE, true);
        outcome.warning = joined(outcome.warning, self.of_other_type(reading)?);
        if self.fresh.len() < COMPARED_MAX {
            self.fresh.push(new);
        }
        Ok(outcome)
    }

    /// Adds what is stated of somebody.
    fn add(
        &mut self,
        it: &StatedEntity,
        reading: &Reading,
        meant: Meant,
        confidence: f64,
        is_new: bool,
    ) -> EntityOutcome {
        let Meant { uri, name, kind } = meant;
        let things = &mut self.settled.things;
        let before = things.iter().position(|it| it.uri == uri);
        let index = before.unwrap_or_else(|| {
            things.push(SettledThing {
                uri: uri.clone(),
                name: name.clone(),
                kind: kind.clone(),
                ..SettledThing::default()
            });
            things.len() - 1
        });
        if let Some(thing) = things.get_mut(index) {
            thing.n_mentions += it.n_mentions.max(1);
            for alias in it.aliases.iter().map(|it| alias_key(it)) {
                let is_own = normalized(&alias) == normalized(&thing.name);
                if is_name(&alias) && !is_own && !thing.aliases.contains(&alias) {
                    thing.aliases.push(alias);
                }
            }
            if thing.description.is_empty() {
                it.description.trim().clone_into(&mut thing.description);
            }
        }
        self.said_as
            .entry(uri.clone())
            .or_insert_with(|| normalized(&reading.name));
        let aliases = it.aliases.iter().map(String::as_str);
        for name in aliases.chain([reading.name.as_str(), name.as_str()]) {
            for key in [normalized(name), alias_key(name)] {
                self.by_name.insert(key, (uri.clone(), kind.clone()));
            }
        }
        EntityOutcome {
            name,
            said: it.name.clone(),
            uri,
            kind,
            is_new: is_new && before.is_none(),
            confidence,
            warning: reading.warning.clone(),
        }
    }

    /// Adds somebody new together with the merge that makes them one with another.
    fn add_merged(
        &mut self,
        it: &StatedEntity,
        reading: &Reading,
        into: Meant,
        (confidence, reason): (f64, &str),
    ) -> EntityOutcome {
        let own = Meant {
            uri: entity_uri(&reading.name, &into.kind),
            name: reading.name.clone(),
            kind: into.kind.clone(),
        };
        if own.uri == into.uri {
            return self.add(it, reading, into, confidence, false);
        }
        let mut outcome = self.add(it, reading, own.clone(), confidence, false);
        self.same.insert(own.uri.clone(), into.uri.clone());
        self.settled.merges.push(NewMerge {
            uri: own.uri.clone(),
            name: own.name.clone(),
            into: into.uri.clone(),
        });
        self.outcome.merged.push(MergeOutcome {
            from_name: own.name,
            from_uri: own.uri,
            into_name: into.name.clone(),
            into_uri: into.uri.clone(),
            is_merged: true,
            reason: reason.to_owned(),
        });
        (outcome.name, outcome.uri, outcome.kind) = (into.name, into.uri, into.kind);
        outcome
    }

    /// The merge that the caller wants for a name of the statement.
    fn asked(&self, reading: &Reading) -> Option<&StatedMerge> {
        let keys = [normalized(&reading.name), alias_key(&reading.name)];
        let uri = entity_uri(&reading.name, &reading.kind);
        self.said.merges.iter().find(|it| {
            let from = it.from.trim();
            from == uri || keys.contains(&normalized(from)) || keys.contains(&alias_key(from))
        })
    }

    /// Whom somebody new is to be merged into; `None` if that cannot be, which is told.
    fn target(&mut self, asked: &StatedMerge, reading: &Reading) -> Result<Option<Meant>> {
        let found = self.entity_of(&asked.into).and_then(|it| {
            let message = format!("\"{}\" is neither among `entities` nor known", asked.into);
            it.ok_or_else(|| Error::new(Code::NotFound, message))
        });
        let into = match found {
            Ok(into) => into,
            Err(error) if is_of_the_caller(&error) => {
                self.outcome.merged.push(refused(asked, &error));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if is_vetoed(self.tx, &normalized(&reading.name), &into.uri)? {
            let message = format!(
                "somebody said that \"{}\" does not mean `{}`",
                reading.name, into.uri
            );
            let error = Error::conflict(message)
                .hint("take that veto back first: `kenning koi veto --undo`");
            self.outcome.merged.push(refused(asked, &error));
            return Ok(None);
        }
        Ok(Some(into))
    }

    /// The entity of a name or a URI: one of this statement, else one that is known.
    fn entity_of(&self, name: &str) -> Result<Option<Meant>> {
        for key in [normalized(name), alias_key(name)] {
            let Some((uri, kind)) = self.by_name.get(&key) else {
                continue;
            };
            let thing = self.settled.things.iter().find(|it| it.uri == *uri);
            return Ok(Some(Meant {
                uri: uri.clone(),
                name: thing.map(|it| it.name.clone()).unwrap_or_default(),
                kind: kind.clone(),
            }));
        }
        let node = self
            .engine
            .entity_in(self.space, self.tx, self.meanings, name)?;
        Ok(node.map(|it| Meant {
            kind: super::kind(&it).to_owned(),
            uri: it.key,
            name: it.title,
        }))
    }

    /// `None` if the relationship can be; else why it cannot.
    fn relation(&mut self, it: &StatedRelation) -> Result<Option<String>> {
        let Some((known, direction)) = predicate(&it.predicate) else {
            return Ok(Some(format!(
                "`{}` is no predicate of the ontology",
                it.predicate
            )));
        };
        let mut ends = Vec::new();
        for (end, name) in [("subject", &it.subject), ("object", &it.object)] {
            let Some(found) = self.resolve_name(name)? else {
                return Ok(Some(format!(
                    "the {end} \"{name}\" is neither among `entities` nor known"
                )));
            };
            ends.push(found);
        }
        if direction == Direction::Incoming {
            ends.reverse();
        }
        let [(subject, from), (object, to)] = &ends[..] else {
            return Ok(Some("a relationship has two ends".to_owned()));
        };
        if self.canonical(subject) == self.canonical(object) {
            return Ok(Some("nothing relates to itself".to_owned()));
        }
        if let Err(error) = self.ontology.check(known, from, to) {
            let hint = error.hint.map(|it| format!(" ({it})")).unwrap_or_default();
            return Ok(Some(format!("{}{hint}", error.message)));
        }
        let confidence = if it.confidence.is_finite() {
            it.confidence.clamp(0.0, 1.0)
        } else {
            NEW_CONFIDENCE
        };
        self.settled.relations.push(SettledRelation {
            subject: subject.clone(),
            predicate: known.name.to_owned(),
            object: object.clone(),
            confidence,
            ..SettledRelation::default()
        });
        Ok(None)
    }

    /// Who stands for a URI after the merges of this statement.
    fn canonical<'u>(&'u self, uri: &'u str) -> &'u str {
        self.same.get(uri).map_or(uri, String::as_str)
    }

    /// Whom a name means: one of this statement's, else one that is known.
    pub(super) fn resolve_name(&self, name: &str) -> Result<Option<(String, String)>> {
        for key in [normalized(name), alias_key(name)] {
            if let Some(found) = self.by_name.get(&key) {
                return Ok(Some(found.clone()));
            }
        }
        let name = name.trim();
        if let Some(node) = by_uri(self.tx, name)? {
            return Ok(Some((node.key.clone(), super::kind(&node).to_owned())));
        }
        if !is_name(name) || name.starts_with("orn:") {
            return Ok(None);
        }
        let query = Query {
            label: name,
            ..Query::default()
        };
        let resolution = self
            .engine
            .resolve_in(self.space, self.tx, self.meanings, &query)?;
        let found = resolution.chosen();
        Ok(found.map(|it| (it.entity.uri.clone(), it.entity.kind.clone())))
    }

    /// What the caller asked for and what is not about a new name is done later.
    fn defer_merges(&mut self) {
        let settled: Vec<&str> = self
            .settled
            .merges
            .iter()
            .flat_map(|it| [it.uri.as_str(), it.name.as_str()])
            .collect();
        let told: Vec<&str> = self
            .outcome
            .merged
            .iter()
            .filter(|it| !it.is_merged)
            .map(|it| it.from_name.as_str())
            .collect();
        let is_done = |asked: &&StatedMerge| {
            let from = asked.from.trim();
            let key = normalized(from);
            told.contains(&asked.from.as_str())
                || settled
                    .iter()
                    .any(|it| *it == from || normalized(it) == key)
        };
        let rest = self.said.merges.iter().filter(|it| !is_done(it)).cloned();
        self.outcome.deferred = rest.collect();
    }
}

fn left_out(it: &StatedEntity) -> EntityOutcome {
    let warning = "left out: `name` is empty, too long or has control characters";
    EntityOutcome {
        name: it.name.clone(),
        said: it.name.clone(),
        kind: it.kind.clone(),
        warning: Some(warning.to_owned()),
        ..EntityOutcome::default()
    }
}

fn joined(a: Option<String>, b: Option<String>) -> Option<String> {
    match (a, b) {
        (Some(a), Some(b)) => Some(format!("{a}; {b}")),
        (a, b) => a.or(b),
    }
}
