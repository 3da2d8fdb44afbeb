//! Compares everything that a peer has with what was taken from it: what was missed is fetched, and what it
//! no longer has is forgotten.

use super::ask::Trouble;
use super::carrier::Carrier;
use super::node::Me;
use super::peers::is_accepted;
use super::records::{Dialect, EDGES, PUBLISHED, PeerRow, note_status, received};
use super::take::Arrived;
use crate::Koi;
use kenning_core::Error;
use kenning_federation::rid::edge_rid;
use kenning_federation::{Event, EventType, Payload, Query, Rid};
use std::collections::{BTreeMap, BTreeSet};

/// So many manifests are asked for at once.
const MANIFESTS: usize = 1_000;
/// So many bundles.
const BUNDLES: usize = 100;
/// More things of one peer are not taken.
const RIDS_MAX: usize = 1_000_000;

impl Koi {
    /// The types of a peer that are taken from it, as it names them.
    pub(super) fn types_wanted(&self, peer: &PeerRow) -> Vec<String> {
        let all = peer.provides_event.iter().chain(&peer.provides_state);
        let mut types: Vec<String> = Vec::new();
        for name in all.filter(|it| is_accepted(peer, it)) {
            if !types.contains(name) {
                types.push(name.clone());
            }
        }
        types
    }

    /// Brings what was taken from a peer up to date; returns how many things are other than before.
    pub(super) fn catch_up_with(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
    ) -> Result<usize, Trouble> {
        let types = self.types_wanted(peer);
        let space = self.federated_space();
        let mut n_news = 0;
        if !types.is_empty() {
            let query = Query::FetchRids { rid_types: types };
            let (answer, signature) = self.ask_node(me, carrier, peer, query)?;
            let Payload::Rids(rids) = answer else {
                return Err(Error::denied("the answer is not a list of RIDs").into());
            };
            let is_meant =
                |it: &String| Rid::parse(it).is_ok_and(|it| is_accepted(peer, it.rid_type()));
            let theirs: BTreeSet<String> =
                rids.into_iter().filter(is_meant).take(RIDS_MAX).collect();
            let known = self
                .kernel
                .log()
                .read(&space, |tx| received(&peer.rid).list_readable(tx))?;
            let known: BTreeMap<String, String> = known
                .into_iter()
                .map(|(rid, row)| (rid, row.sha256_hash))
                .collect();
            let gone = known.keys().filter(|it| !theirs.contains(*it));
            let gone: Vec<Event> = gone
                .filter_map(|it| Rid::parse(it).ok())
                .map(Event::forget)
                .collect();
            n_news += gone.len();
            self.take_fetched(me, carrier, peer, &signature, gone)?;
            let theirs: Vec<String> = theirs.into_iter().collect();
            for page in theirs.chunks(MANIFESTS) {
                let stale = self.stale_of(me, carrier, peer, page, &known)?;
                n_news += self.fetch_all(me, carrier, peer, stale)?;
            }
        }
        self.check_edge(me, carrier, peer)?;
        let (now, rid) = (self.federation_now(), peer.rid.clone());
        self.kernel.log().write(&space, move |tx| {
            note_status(tx, &rid, |it| it.caught_up_ms = now)
        })?;
        Ok(n_news)
    }

    /// Those of which the peer has other contents than were taken.
    fn stale_of(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
        page: &[String],
        known: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, Trouble> {
        let query = Query::FetchManifests {
            rid_types: Vec::new(),
            rids: page.to_vec(),
        };
        let (answer, _) = self.ask_node(me, carrier, peer, query)?;
        let Payload::Manifests { manifests, .. } = answer else {
            return Err(Error::denied("the answer has no manifests").into());
        };
        let space = self.federated_space();
        let stale = self.kernel.log().read(&space, |tx| {
            let (mut stale, mut told) = (Vec::new(), BTreeSet::new());
            for manifest in manifests {
                let rid = manifest.rid.to_string();
                let own = PUBLISHED.get_readable(tx, &rid)?;
                let is_echo = own.is_some_and(|it| it.is_echo(&manifest.sha256_hash));
                told.insert(rid.clone());
                if known.get(&rid) != Some(&manifest.sha256_hash) && !is_echo {
                    stale.push(rid);
                }
            }
            // An Octo node has manifests only of what it once sent with one.
            if peer.dialect == Dialect::Octo {
                let is_untold = |it: &&String| !told.contains(*it) && !known.contains_key(*it);
                stale.extend(page.iter().filter(is_untold).cloned());
            }
            Ok(stale)
        });
        Ok(stale?)
    }

    fn fetch_all(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
        mut rids: Vec<String>,
    ) -> Result<usize, Trouble> {
        let mut n_fetched = 0;
        while !rids.is_empty() {
            let now = rids.len().min(BUNDLES);
            let query = Query::FetchBundles {
                rids: rids.drain(..now).collect(),
            };
            let (answer, signature) = self.ask_node(me, carrier, peer, query)?;
            let Payload::Bundles {
                bundles, deferred, ..
            } = answer
            else {
                return Err(Error::denied("the answer has no bundles").into());
            };
            // A node that gives nothing of what it defers would be asked for ever.
            if !bundles.is_empty() {
                rids.extend(deferred);
            }
            n_fetched += bundles.len();
            let events = bundles
                .into_iter()
                .map(|it| Event::of(EventType::Update, it));
            self.take_fetched(me, carrier, peer, &signature, events.collect())?;
        }
        Ok(n_fetched)
    }

    fn take_fetched(
        &self,
        me: &Me,
        carrier: &dyn Carrier,
        peer: &PeerRow,
        signature: &str,
        events: Vec<Event>,
    ) -> Result<(), Trouble> {
        for events in events.chunks(BUNDLES) {
            let arrived = Arrived {
                peer: peer.rid.clone(),
                signature: signature.to_owned(),
                fingerprint: None,
                events: events.to_vec(),
            };
            self.take_answer(me, carrier, arrived)?;
        }
        Ok(())
    }

    /// A peer may have lost what was agreed: then it is proposed anew.
    fn check_edge(&self, me: &Me, carrier: &dyn Carrier, peer: &PeerRow) -> Result<(), Trouble> {
        let rid = edge_rid(&peer.rid, me.rid.as_str());
        let space = self.federated_space();
        let edge = self
            .kernel
            .log()
            .read(&space, |tx| EDGES.get_readable(tx, &rid))?;
        if peer.dialect == Dialect::Octo || edge.is_none_or(|it| !it.is_approved) {
            return Ok(());
        }
        let query = Query::FetchBundles {
            rids: vec![rid.clone()],
        };
        let (answer, _) = self.ask_node(me, carrier, peer, query)?;
        if let Payload::Bundles { not_found, .. } = answer
            && not_found.contains(&rid)
        {
            self.kernel.log().write(&space, move |tx| {
                EDGES.unset(tx, &rid)?;
                tx.record("FederationEdgeLost", serde_json::json!({ "edge": rid }))
                    .map(drop)
            })?;
        }
        Ok(())
    }
}
