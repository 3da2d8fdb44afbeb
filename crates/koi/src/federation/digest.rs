//! Takes what arrived into the graph: each thing that a peer provides is one statement of that peer.

use super::carrier::Carrier;
use super::node::Me;
use super::records::{
    ABOUT, Dialect, INBOX, InboxRow, PEERS, ReceivedRow, note_status, received, short,
    take_from_inbox,
};
use super::take::cut_off;
use crate::Koi;
use crate::entities::{
    CrossReference, KOI_NET, Said, Settled, StatedEntity, StatedRelation, forget_federated,
    put_federated,
};
use crate::inert::line as inert_line;
use kenning_audit::{Passages, Tx};
use kenning_core::{Error, Result};
use kenning_entities::ontology::Ontology;
use kenning_federation::{Event, EventType, Json, Limits, Manifest, Payload, Query, time};
use kenning_kernel::{Caller, Principal, Text};
use kenning_search::passages;
use serde_json::json;

/// Messages that are taken in together.
const BATCH: usize = 16;
/// A message that fails so often is given up.
const TRIES_MAX: u32 = 5;
/// A manifest may be so far ahead of this machine's clock.
const AHEAD_MICROS: i64 = 24 * 3_600 * 1_000_000;
const NAME_CHARS_MAX: usize = 300;
const RELATIONS_MAX: usize = 200;

/// The name of a peer's statement about a thing.
pub(super) fn statement_rid(peer: &str, rid: &str) -> String {
    let owner = short(peer);
    let owner = owner.get(..16).unwrap_or(owner);
    format!("{KOI_NET}:{owner}:{rid}")
}

/// What is to be done with one event.
enum Step {
    Forget(String),
    Put(Box<Put>),
}

struct Put {
    rid: String,
    row: ReceivedRow,
    settled: Option<(Settled, Option<(String, Passages)>)>,
}

/// What became of the events of a message.
#[derive(Default)]
struct Digested {
    steps: Vec<Step>,
    n_duplicates: u64,
    n_refused: u64,
    fault: Option<String>,
    /// Two contents with one time: the peer tells two histories.
    forked: Option<String>,
}

impl Koi {
    /// Takes messages of the inbox into the graph; false if there were none.
    pub(super) fn digest_inbox(&self, me: &Me, carrier: &dyn Carrier) -> Result<bool> {
        let space = self.federated_space();
        let all = self
            .kernel
            .log()
            .read(&space, |tx| INBOX.list_readable(tx))?;
        if all.is_empty() {
            return Ok(false);
        }
        let caller = || Caller::new(Principal::owner(space.clone()));
        self.follow_entities(&caller())?;
        for batch in all.chunks(BATCH) {
            for (number, row) in batch {
                match self.digest(me, carrier, number, row) {
                    Ok(()) => {}
                    Err(error) if row.n_tries < TRIES_MAX && error.retryable() => {
                        let (number, mut row) = (number.clone(), row.clone());
                        row.n_tries += 1;
                        self.kernel
                            .log()
                            .write(&space, move |tx| INBOX.set(tx, &number, &row))?;
                    }
                    Err(error) => {
                        let (number, row) = (number.clone(), row.clone());
                        let n_events = row.events.len() as u64;
                        self.kernel.log().write(&space, move |tx| {
                            take_from_inbox(tx, &number, &row)?;
                            let peer = row.peer;
                            note_status(tx, &peer, |it| {
                                it.n_refused += n_events;
                                it.last_error = Some(error.message.clone());
                            })?;
                            let data =
                                json!({ "node": peer, "events": n_events, "why": error.message });
                            tx.record("FederationRefused", data).map(drop)
                        })?;
                    }
                }
            }
            self.follow_entities(&caller())?;
        }
        Ok(true)
    }

    fn digest(&self, me: &Me, carrier: &dyn Carrier, number: &str, row: &InboxRow) -> Result<()> {
        let space = self.federated_space();
        let events = self.complete_events(me, carrier, row)?;
        let digested = self.read_naming(&space, |tx, meanings| {
            let ontology = self.ontology(&space, tx)?;
            let mut digested = Digested::default();
            let known = received(&row.peer);
            let is_octo = PEERS
                .get_readable(tx, &row.peer)?
                .is_some_and(|it| it.dialect == Dialect::Octo);
            // What one message says twice counts in its order.
            let mut seen: Vec<(String, ReceivedRow)> = Vec::new();
            for event in &events {
                let rid = event.rid.as_str();
                if event.event_type == EventType::Forget {
                    digested.steps.push(Step::Forget(rid.to_owned()));
                    seen.retain(|it| it.0 != rid);
                    continue;
                }
                let before = match seen.iter().rev().find(|it| it.0 == rid) {
                    Some((_, before)) => Some(before.clone()),
                    None => known.get_readable(tx, rid)?,
                };
                let fresh = match fresh(event, row, before.as_ref(), is_octo) {
                    Fresh::Yes(manifest, contents) => (manifest, contents),
                    Fresh::Duplicate => {
                        digested.n_duplicates += 1;
                        continue;
                    }
                    Fresh::Refused(why) => {
                        digested.n_refused += 1;
                        digested.fault = Some(why);
                        continue;
                    }
                    Fresh::Forked(why) => {
                        digested.forked = Some(why);
                        break;
                    }
                };
                let stated = Stated::of(&ontology, rid, event.rid.rid_type(), fresh.1);
                let mut put = Put {
                    rid: rid.to_owned(),
                    row: ReceivedRow {
                        timestamp: fresh.0.timestamp.clone(),
                        sha256_hash: fresh.0.sha256_hash.clone(),
                        signature: row.signature.clone(),
                        at_ms: row.at_ms,
                        name: stated.name.clone(),
                        kind: stated.kind.clone(),
                        relation: "unresolved".to_owned(),
                        uri: None,
                        confidence: 0,
                    },
                    settled: None,
                };
                if let Some((said, text)) = stated.said(&row.peer, rid) {
                    let (settled, found) = self.settle_federated(&space, tx, meanings, &said)?;
                    note_reference(&mut put.row, found);
                    let text = text.map(|it| {
                        let cut = passages(&put.row.name, &it).into();
                        (it, cut)
                    });
                    put.settled = Some((settled, text));
                }
                seen.push((rid.to_owned(), put.row.clone()));
                digested.steps.push(Step::Put(Box::new(put)));
            }
            Ok(digested)
        })?;
        let (number, row) = (number.to_owned(), row.clone());
        self.kernel.log().write_long(&space, move |tx| {
            take_from_inbox(tx, &number, &row)?;
            carry_out(tx, &row.peer, digested)
        })
    }

    /// Events without contents are completed by asking their sender.
    fn complete_events(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        row: &InboxRow,
    ) -> Result<Vec<Event>> {
        let read = |it: &String| Event::from_json(&Json::parse(it.as_bytes(), Limits::default())?);
        let mut events = row.events.iter().map(read).collect::<Result<Vec<_>>>()?;
        let is_bare = |it: &&Event| it.contents.is_none() && it.event_type != EventType::Forget;
        let rids: Vec<String> = events
            .iter()
            .filter(is_bare)
            .map(|it| it.rid.to_string())
            .collect();
        if rids.is_empty() {
            return Ok(events);
        }
        let Some(peer) = self.peer_by_rid(&row.peer)? else {
            return Ok(events);
        };
        let (answer, _) = self.ask_node(me, carrier, &peer, Query::FetchBundles { rids })?;
        let Payload::Bundles { bundles, .. } = answer else {
            return Ok(events);
        };
        for bundle in bundles {
            let bare = events.iter_mut().filter(|it| it.rid == bundle.manifest.rid);
            for event in bare.filter(|it| it.contents.is_none()) {
                event.manifest = Some(bundle.manifest.clone());
                event.contents = Some(bundle.contents.clone());
            }
        }
        Ok(events)
    }
}

enum Fresh<'a> {
    Yes(Manifest, &'a Json),
    Duplicate,
    Refused(String),
    Forked(String),
}

/// Whether an event tells something that is not known yet.
fn fresh<'a>(
    event: &'a Event,
    row: &InboxRow,
    before: Option<&ReceivedRow>,
    is_octo: bool,
) -> Fresh<'a> {
    let rid = &event.rid;
    let Some(contents) = &event.contents else {
        return Fresh::Refused(format!("`{rid}` has no contents"));
    };
    let manifest = match &event.manifest {
        Some(manifest) if manifest.has_short_hash() && !is_octo => {
            return Fresh::Refused(format!("the hash of `{rid}` is only a part of one"));
        }
        Some(manifest) if !manifest.is_of(contents) => {
            return Fresh::Refused(format!("the hash of `{rid}` is not that of its contents"));
        }
        Some(manifest) => manifest.clone(),
        // Octo's events have none.
        None => match Manifest::of(rid, contents, row.at_ms) {
            Ok(manifest) => manifest,
            Err(error) => return Fresh::Refused(error.message),
        },
    };
    let at = i64::try_from(row.at_ms)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000);
    if manifest.micros() > at.saturating_add(AHEAD_MICROS) {
        return Fresh::Refused(format!("`{rid}` is dated in the future"));
    }
    let Some(before) = before else {
        return Fresh::Yes(manifest, contents);
    };
    if before.sha256_hash == manifest.sha256_hash {
        return Fresh::Duplicate;
    }
    let known = time::read(&before.timestamp).unwrap_or_default();
    match manifest.micros().cmp(&known) {
        std::cmp::Ordering::Greater => Fresh::Yes(manifest, contents),
        std::cmp::Ordering::Less => Fresh::Duplicate,
        // Octo's events have no time, or one in seconds: two in one moment are no lie.
        std::cmp::Ordering::Equal
            if is_octo && (event.manifest.is_none() || known % 1_000_000 == 0) =>
        {
            Fresh::Yes(manifest, contents)
        }
        std::cmp::Ordering::Equal => Fresh::Forked(format!(
            "it signed two contents of `{rid}` for one time ({} and {})",
            before.sha256_hash, manifest.sha256_hash
        )),
    }
}

fn note_reference(row: &mut ReceivedRow, found: CrossReference) {
    found.relation.clone_into(&mut row.relation);
    row.uri = found.uri;
    // Between 0 and 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is clamped"
    )]
    let confidence = (found.confidence.clamp(0.0, 1.0) * 1_000.0).round() as u32;
    row.confidence = confidence;
}

fn carry_out(tx: &mut Tx<'_>, peer: &str, digested: Digested) -> Result<()> {
    let received = received(peer);
    let (mut n_put, mut n_forgotten) = (0_u64, 0_u64);
    for step in digested.steps {
        match step {
            Step::Forget(rid) => {
                n_forgotten += u64::from(forget_received(tx, peer, &rid)?);
            }
            Step::Put(put) => {
                let statement = statement_rid(peer, &put.rid);
                forget_about(tx, peer, &put.rid)?;
                match put.settled {
                    Some((settled, text)) => {
                        for uri in put_federated(tx, settled, text)? {
                            note_about(tx, &uri, &statement)?;
                        }
                    }
                    // It may have been understood before.
                    None => drop(forget_federated(tx, &statement)?),
                }
                received.set(tx, &put.rid, &put.row)?;
                n_put += 1;
            }
        }
    }
    let forked = digested.forked;
    if let Some(why) = &forked {
        cut_off(tx, peer, why)?;
    }
    note_status(tx, peer, |it| {
        it.n_duplicates += digested.n_duplicates;
        it.n_refused += digested.n_refused;
        if let Some(fault) = forked.or(digested.fault) {
            it.last_error = Some(fault);
        }
    })?;
    if n_put + n_forgotten > 0 {
        let data = json!({ "node": peer, "stated": n_put, "forgotten": n_forgotten });
        tx.record("FederationTakenIn", data)?;
    }
    Ok(())
}

/// Removes what a peer stated of a thing; false if it stated nothing.
pub(super) fn forget_received(tx: &mut Tx<'_>, peer: &str, rid: &str) -> Result<bool> {
    let received = received(peer);
    if !received.has(&**tx, rid)? {
        return Ok(false);
    }
    forget_about(tx, peer, rid)?;
    forget_federated(tx, &statement_rid(peer, rid))?;
    received.unset(tx, rid)?;
    Ok(true)
}

fn note_about(tx: &mut Tx<'_>, uri: &str, statement: &str) -> Result<()> {
    let Text(lines) = ABOUT.get_readable(&**tx, uri)?.unwrap_or_default();
    if lines.lines().any(|it| it == statement) {
        return Ok(());
    }
    let lines = if lines.is_empty() {
        statement.to_owned()
    } else {
        format!("{lines}\n{statement}")
    };
    ABOUT.set(tx, uri, &lines.into())
}

fn forget_about(tx: &mut Tx<'_>, peer: &str, rid: &str) -> Result<()> {
    let statement = statement_rid(peer, rid);
    for uri in crate::entities::uris_stated(&**tx, &statement)? {
        let Text(lines) = ABOUT.get_readable(&**tx, &uri)?.unwrap_or_default();
        let left: Vec<&str> = lines.lines().filter(|it| *it != statement).collect();
        match left.is_empty() {
            true => ABOUT.unset(tx, &uri)?,
            false => ABOUT.set(tx, &uri, &left.join("\n").into())?,
        }
    }
    Ok(())
}

/// What contents say, as far as it is understood.
#[derive(Default)]
struct Stated {
    name: String,
    kind: String,
    is_entity: bool,
    aliases: Vec<String>,
    description: String,
    text: Option<String>,
    /// Predicate, name and type of each object.
    relations: Vec<(String, String, String)>,
}

impl Stated {
    fn of(ontology: &Ontology, rid: &str, rid_type: &str, contents: &Json) -> Self {
        let text = |names: &[&str]| {
            let found = names.iter().filter_map(|it| contents.get(it)?.as_str());
            let found = found.map(str::trim).find(|it| !it.is_empty());
            found.unwrap_or_default().to_owned()
        };
        let bare = rid_type.rsplit(['.', ':']).next().unwrap_or_default();
        let stated = text(&["entity_type", "@type", "type"]);
        let kind = ontology.kind(&stated).or_else(|| ontology.kind(bare));
        let name = text(&["name", "title", "label", "entity_text"]);
        let name = if name.is_empty() {
            rid.to_owned()
        } else {
            name
        };
        let body = text(&["text", "content", "markdown", "body"]);
        let aliases = contents
            .get("aliases")
            .and_then(Json::items)
            .unwrap_or_default();
        let has_name = name != rid;
        Self {
            name: inert_line(&name, NAME_CHARS_MAX),
            is_entity: kind.is_some() && has_name,
            kind: kind.map_or(stated, |it| it.key.clone()),
            aliases: aliases
                .iter()
                .filter_map(|it| it.as_str().map(ToOwned::to_owned))
                .take(50)
                .collect(),
            description: text(&["description", "summary", "context"]),
            text: Some(crate::inert::inert(&body).0).filter(|it| !it.is_empty()),
            relations: relations(contents),
        }
    }

    /// As a statement; `None` for what is neither an entity nor a text.
    fn said(&self, peer: &str, rid: &str) -> Option<(Said, Option<String>)> {
        if !self.is_entity && self.text.is_none() {
            return None;
        }
        let mut said = Said {
            source: KOI_NET,
            source_rid: statement_rid(peer, rid),
            ..Said::default()
        };
        if self.is_entity {
            said.entities.push(StatedEntity {
                name: self.name.clone(),
                kind: self.kind.clone(),
                aliases: self.aliases.clone(),
                description: self.description.clone(),
                n_mentions: 1,
                confidence: 0.9,
            });
            for (predicate, object, kind) in &self.relations {
                said.entities.push(StatedEntity {
                    name: object.clone(),
                    kind: kind.clone(),
                    n_mentions: 1,
                    confidence: 0.9,
                    ..StatedEntity::default()
                });
                said.relations.push(StatedRelation {
                    subject: self.name.clone(),
                    predicate: predicate.clone(),
                    object: object.clone(),
                    confidence: 0.9,
                });
            }
        }
        Some((said, self.text.clone()))
    }
}

/// Relationships whose objects have a name and a type.
fn relations(contents: &Json) -> Vec<(String, String, String)> {
    let list = contents
        .get("relationships")
        .and_then(Json::items)
        .unwrap_or_default();
    let read = |it: &Json| {
        let text = |value: &Json, name: &str| value.get(name)?.as_str().map(ToOwned::to_owned);
        let object = it.get("object")?;
        let name = text(object, "name").or_else(|| object.as_str().map(ToOwned::to_owned))?;
        let kind = text(object, "entity_type").or_else(|| text(it, "object_type"))?;
        let predicate = text(it, "predicate")?;
        Some((predicate, inert_line(&name, NAME_CHARS_MAX), kind))
    };
    list.iter().filter_map(read).take(RELATIONS_MAX).collect()
}

/// An error for what no longer is a peer.
pub(super) fn no_such_peer(name: &str) -> Error {
    Error::not_found("node", name).hint("`kenning federation peers` lists those that are known")
}
