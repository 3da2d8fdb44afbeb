//! What each side does with the messages of an exchange.
//!
//! The calling side first pulls until it has everything, then pushes until the other side has
//! everything. Every message can be lost or repeated: what was applied is in the cursor, and the next
//! exchange goes on from there.

use crate::message::{Along, Have, Request, Response};
use crate::page::Wanted;
use crate::receive::{Around, Arrival, compare, cursor};
use crate::{Cursor, ENTRIES_MAX, Evidence, Page, Peer, Received, Refusal, build, receive};
use kenning_audit::foreign::Conflict;
use kenning_audit::{Log, LogId};
use kenning_core::{Error, Hash, Result, Space};
use kenning_store::{Node, Passage, Row};
use std::collections::HashSet;

/// What a node knows of its own rows.
#[derive(Clone, Copy)]
pub struct Rules {
    /// By which passages a node is found.
    pub passages_of: fn(&Node) -> Vec<Passage>,
    /// Which rows leave this machine.
    pub is_shared: fn(&Row) -> bool,
}

/// What an exchange did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Events that were taken.
    pub n_received: u64,
    /// Events that the other node took.
    pub n_sent: u64,
    /// Events that were refused here: why, and how many; the other node's refusals under its own name.
    pub refused: Vec<(String, String)>,
    /// Events that the other node refused.
    pub n_refused_there: u64,
    /// Conflicts that were found here.
    pub conflicts: Vec<Conflict>,
    /// How many entries the other node's log has.
    pub their_size: u64,
    /// How many entries of ours the other node has, as far as it said.
    pub they_have: Option<u64>,
    /// Countersignatures of our checkpoints: the height, and the line for the note.
    pub cosignatures: Vec<(u64, String)>,
    /// How long our last answer took, as the other node said.
    pub latency_ms: Option<u64>,
    /// The other node signed two histories.
    pub forked: Option<Evidence>,
    /// Events that were not sent, because they are larger than a message may be.
    pub too_large: Vec<Hash>,
}

/// Answers a request. The caller has checked its signature.
///
/// # Errors
/// Denied where the policy does not permit it; corrupt or invalid for what is malformed; those of the
/// store.
pub fn answer(
    log: &Log,
    peer: &Peer,
    rules: Rules,
    request: Request,
    around: impl Around,
) -> Result<(Response, Done)> {
    if peer.cut_off.is_some() {
        return Err(Error::denied(format!(
            "`{}` showed two histories of its log; nothing is exchanged with it",
            peer.id
        )));
    }
    let space = request.space().clone();
    if !peer.has_space(&space) {
        return Err(Error::denied(format!(
            "the space `{space}` is not shared with `{}`",
            peer.did
        )));
    }
    let mut done = Done::default();
    let (Request::Pull { along, .. } | Request::Push { along, .. }) = &request;
    take_along(&mut done, along);
    match request {
        Request::Pull {
            log: their_log,
            have,
            include,
            entries_max,
            ..
        } => {
            let include: HashSet<Hash> = include.into_iter().collect();
            let asked = Asked {
                their_log,
                have,
                include: &include,
                leave_out: &HashSet::new(),
                entries_max,
            };
            let page = next_page(log, &space, peer, rules, &asked)?;
            let page = page.filter(|_| peer.policy.may_read);
            if let Some(page) = &page {
                done.too_large.clone_from(&page.too_large);
                let is_ours = have.log == Some(page.head.origin.log);
                done.they_have = Some(if is_ours { have.size } else { 0 });
            }
            let yours = have_of(log, &space, peer)?;
            Ok((Response::Page { page, yours }, done))
        }
        Request::Push {
            page, is_complete, ..
        } => {
            if !peer.policy.may_write {
                return Err(Error::denied(format!("`{}` may not write here", peer.did)));
            }
            let mut wants = Vec::new();
            let mut along = Along::default();
            done.their_size = page.head.size;
            match receive(
                log,
                &space,
                peer,
                page,
                rules.passages_of,
                Arrival {
                    may_ask: !is_complete,
                    asked_at: None,
                },
                around,
            )? {
                Received::Merged(merged, cosignature) => {
                    note(&mut done, *merged);
                    along.cosignatures.extend(cosignature);
                }
                Received::Refused(Refusal::Stale) => {}
                Received::Refused(Refusal::Wants(ids)) => wants = ids,
                Received::Refused(Refusal::Forked(evidence)) => done.forked = Some(*evidence),
            }
            let yours = have_of(log, &space, peer)?;
            let response = Response::Pushed {
                yours,
                wants,
                n_events: done.n_received,
                n_refused: done.refused.len() as u64,
                along,
            };
            Ok((response, done))
        }
    }
}

fn take_along(done: &mut Done, along: &Along) {
    done.n_sent += along.n_taken;
    done.cosignatures.extend_from_slice(&along.cosignatures);
    done.latency_ms = along.latency_ms.or(done.latency_ms);
}

fn note(done: &mut Done, merged: kenning_audit::foreign::Merged) {
    done.n_received += merged.n_events;
    done.conflicts.extend(merged.conflicts);
    let refused = merged.refused.into_iter();
    done.refused
        .extend(refused.map(|(_, author, why)| (author, why)));
}

fn have(cursor: &Cursor) -> Have {
    Have {
        log: cursor.log,
        size: cursor.frontier.size,
    }
}

fn have_of(log: &Log, space: &Space, peer: &Peer) -> Result<Have> {
    log.read(space, |tx| Ok(have(&cursor(tx, peer)?)))
}

/// What a page depends on, besides the log.
struct Asked<'a> {
    their_log: Option<LogId>,
    have: Have,
    include: &'a HashSet<Hash>,
    leave_out: &'a HashSet<Hash>,
    entries_max: usize,
}

fn next_page(
    log: &Log,
    space: &Space,
    peer: &Peer,
    rules: Rules,
    asked: &Asked<'_>,
) -> Result<Option<Page>> {
    let now_ms = log.clock().now_ms();
    log.read(space, |tx| {
        let mine = kenning_audit::log_id(tx)?;
        let wanted = Wanted {
            peer,
            their_log: asked.their_log,
            from: if asked.have.log == mine {
                asked.have.size
            } else {
                0
            },
            include: asked.include,
            leave_out: asked.leave_out,
            entries_max: asked.entries_max,
        };
        build(tx, space, log.signer(), now_ms, &wanted, &rules.is_shared)
    })
}

enum Step {
    /// With whether events that were offered were asked for.
    Pull {
        has_asked: bool,
    },
    Push,
    /// The other node is told what was taken at last.
    Close,
    End,
}

/// The calling side of an exchange.
pub struct Session {
    log: Log,
    space: Space,
    peer: Peer,
    rules: Rules,
    entries_max: usize,
    step: Step,
    their_log: Option<LogId>,
    /// How many entries the other log was known to have when the last page was asked for.
    asked_at: u64,
    pushed: Option<Pushed>,
    leave_out: HashSet<Hash>,
    along: Along,
    n_messages: usize,
    done: Done,
}

/// The page that was sent last.
struct Pushed {
    yours: Have,
    include: HashSet<Hash>,
    end: u64,
    first_event: Option<Hash>,
    n_entries: usize,
}

/// A session ends after so many messages; the next one goes on. A node that always has something new
/// would otherwise keep us for ever.
const MESSAGES_MAX: usize = 4_096;

impl Session {
    /// Begins an exchange of one space.
    pub fn new(log: &Log, space: &Space, peer: &Peer, rules: Rules) -> Self {
        Self {
            log: log.clone(),
            space: space.clone(),
            peer: peer.clone(),
            rules,
            entries_max: ENTRIES_MAX,
            step: Step::Pull { has_asked: false },
            their_log: None,
            asked_at: 0,
            pushed: None,
            leave_out: HashSet::new(),
            along: Along::default(),
            n_messages: 0,
            done: Done::default(),
        }
    }

    /// With pages of at most so many entries.
    #[must_use]
    pub fn with_entries_max(self, entries_max: usize) -> Self {
        Self {
            entries_max,
            ..self
        }
    }

    /// What it did so far.
    pub fn done(&self) -> &Done {
        &self.done
    }

    /// How long the last answer took.
    pub fn took(&mut self, latency_ms: u64) {
        self.along.latency_ms = Some(latency_ms);
    }

    /// The first request.
    ///
    /// # Errors
    /// Those of the store.
    pub fn begin(&mut self) -> Result<Option<Request>> {
        self.pull(Vec::new()).map(Some)
    }

    fn pull(&mut self, include: Vec<Hash>) -> Result<Request> {
        let (cursor, log) = self.log.read(&self.space, |tx| {
            Ok((cursor(tx, &self.peer)?, kenning_audit::log_id(tx)?))
        })?;
        let have = have(&cursor);
        self.asked_at = cursor.head.map_or(0, |it| it.size);
        self.step = Step::Pull {
            has_asked: !include.is_empty(),
        };
        Ok(Request::Pull {
            space: self.space.clone(),
            log,
            have,
            include,
            // Of a node that we take nothing from we only want to know what it has of ours.
            entries_max: if self.peer.policy.may_write {
                self.entries_max
            } else {
                1
            },
            along: std::mem::take(&mut self.along),
        })
    }

    /// Nothing is left to exchange. If something was taken since the last message, the other node is told.
    fn close(&mut self) -> Result<Option<Request>> {
        if !self.along.is_any() {
            self.step = Step::End;
            return Ok(None);
        }
        let mut request = self.pull(Vec::new())?;
        if let Request::Pull { entries_max, .. } = &mut request {
            *entries_max = 1;
        }
        self.step = Step::Close;
        Ok(Some(request))
    }

    fn push(&mut self, yours: Have, include: HashSet<Hash>) -> Result<Option<Request>> {
        self.done.they_have = Some(yours.size);
        if !self.peer.policy.may_read {
            return self.close();
        }
        let asked = Asked {
            their_log: self.their_log,
            have: yours,
            include: &include,
            leave_out: &self.leave_out,
            entries_max: self.entries_max,
        };
        let page = next_page(&self.log, &self.space, &self.peer, self.rules, &asked)?;
        let Some(page) = page.filter(|it| !it.entries.is_empty()) else {
            return self.close();
        };
        let is_complete = !include.is_empty();
        self.step = Step::Push;
        for id in &page.too_large {
            if !self.done.too_large.contains(id) {
                self.done.too_large.push(*id);
            }
        }
        let mut events = page.entries.iter().filter(|it| it.event.is_some());
        self.pushed = Some(Pushed {
            yours,
            include,
            end: page.end(),
            first_event: events.next().map(|it| it.id),
            n_entries: page.entries.len(),
        });
        Ok(Some(Request::Push {
            space: self.space.clone(),
            page,
            is_complete,
            along: std::mem::take(&mut self.along),
        }))
    }

    /// What to do with an answer: the next request, or nothing when all is exchanged.
    ///
    /// # Errors
    /// Corrupt or invalid if the answer is not what its sender signed, and those of the store.
    pub fn next(&mut self, response: Response, around: impl Around) -> Result<Option<Request>> {
        self.n_messages += 1;
        if self.n_messages > MESSAGES_MAX {
            return Ok(None);
        }
        match (std::mem::replace(&mut self.step, Step::End), response) {
            (Step::Pull { has_asked }, Response::Page { page, yours }) => {
                let Some(page) = page else {
                    return self.push(yours, HashSet::new());
                };
                self.their_log = Some(page.head.origin.log);
                self.done.their_size = page.head.size;
                if !self.peer.policy.may_write || page.entries.is_empty() {
                    return self.push_after_check(&page, yours);
                }
                let has_more = page.has_more();
                let passages_of = self.rules.passages_of;
                match receive(
                    &self.log,
                    &self.space,
                    &self.peer,
                    page,
                    passages_of,
                    Arrival {
                        may_ask: !has_asked,
                        asked_at: Some(self.asked_at),
                    },
                    around,
                )? {
                    Received::Merged(merged, cosignature) => {
                        self.along.n_taken += merged.n_events;
                        self.along.cosignatures.extend(cosignature);
                        note(&mut self.done, *merged);
                    }
                    Received::Refused(Refusal::Wants(ids)) => return self.pull(ids).map(Some),
                    Received::Refused(Refusal::Stale) => return self.push(yours, HashSet::new()),
                    Received::Refused(Refusal::Forked(evidence)) => {
                        self.done.forked = Some(*evidence);
                        return Ok(None);
                    }
                }
                if has_more {
                    return self.pull(Vec::new()).map(Some);
                }
                self.push(yours, HashSet::new())
            }
            (
                Step::Push,
                Response::Pushed {
                    yours,
                    wants,
                    n_events,
                    n_refused,
                    along,
                },
            ) => {
                take_along(&mut self.done, &along);
                self.done.n_sent += n_events;
                self.done.n_refused_there += n_refused;
                let was_complete = self
                    .pushed
                    .as_ref()
                    .is_some_and(|it| !it.include.is_empty());
                if !wants.is_empty() && !was_complete {
                    return self.push(yours, wants.into_iter().collect());
                }
                // A node that did not take the page would be sent it for ever.
                if self.pushed.take().is_some_and(|it| yours.size < it.end) {
                    self.done.they_have = Some(yours.size);
                    return self.close();
                }
                self.push(yours, HashSet::new())
            }
            (Step::Close, Response::Page { .. }) => Ok(None),
            (Step::Pull { .. } | Step::Close, Response::Pushed { .. })
            | (Step::Push, Response::Page { .. })
            | (Step::End, _) => Err(Error::invalid("the answer does not fit the request")),
        }
    }

    /// The other node finds the last page too large: sends a smaller one, and leaves out an event that
    /// alone is too large, so that it does not keep back those after it. Nothing if the page was not one
    /// of ours.
    ///
    /// # Errors
    /// Those of the store.
    pub fn send_less(&mut self) -> Result<Option<Request>> {
        let Some(pushed) = self.pushed.take() else {
            return Ok(None);
        };
        if pushed.n_entries > 1 {
            self.entries_max = pushed.n_entries / 2;
        } else if let Some(id) = pushed.first_event {
            self.leave_out.insert(id);
            self.entries_max = ENTRIES_MAX;
        } else {
            return Ok(None);
        }
        self.push(pushed.yours, pushed.include)
    }

    /// An empty page still says how the log stands, which may be less than it was.
    fn push_after_check(&mut self, page: &Page, yours: Have) -> Result<Option<Request>> {
        let cursor = self.log.read(&self.space, |tx| cursor(tx, &self.peer))?;
        if let Some(known) = cursor.head
            && page.head.is_signed()
            && page.head.author == self.peer.did
            && let Some(Refusal::Forked(evidence)) =
                compare(&known, &page.head, Some(self.asked_at))
        {
            self.done.forked = Some(*evidence);
            return Ok(None);
        }
        self.push(yours, HashSet::new())
    }
}
