//! The messages of an exchange, and what each side does with them.
//!
//! The calling side first pulls until it has everything, then pushes until the other side has
//! everything. Every message can be lost or repeated: what was applied is in the cursor, and the next
//! exchange goes on from there.

use crate::page::Wanted;
use crate::receive::{Around, cursor};
use crate::wire::{log_json, malformed, read_log};
use crate::{ENTRIES_MAX, Evidence, Page, Peer, Received, Refusal, build, receive};
use kenning_audit::foreign::Conflict;
use kenning_audit::{Log, LogId};
use kenning_core::{Error, Hash, Result, Space};
use kenning_store::{Node, Passage, Row};
use serde_json::{Value, json};
use std::collections::HashSet;

/// How much of a log somebody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Have {
    /// Which log; nothing before the first page.
    pub log: Option<LogId>,
    /// How many entries.
    pub size: u64,
}

impl Have {
    fn to_json(self) -> Value {
        json!({ "log": log_json(self.log), "size": self.size })
    }

    fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            log: read_log(value.get("log")?)?,
            size: value.get("size")?.as_u64()?,
        })
    }
}

/// What one node asks another.
#[derive(Clone, Debug)]
pub enum Request {
    /// Send the next page of your log.
    Pull {
        /// The space.
        space: Space,
        /// The log of whoever asks.
        log: Option<LogId>,
        /// What they have of yours.
        have: Have,
        /// Offered events that they want.
        include: Vec<Hash>,
        /// At most so many entries.
        entries_max: usize,
    },
    /// Take this page of my log.
    Push {
        /// The space.
        space: Space,
        /// The page.
        page: Page,
        /// Whether it has all that can be had of it.
        is_complete: bool,
    },
}

fn hashes_json(list: &[Hash]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn read_hashes(value: &Value) -> Option<Vec<Hash>> {
    let list = value.as_array().filter(|it| it.len() <= ENTRIES_MAX)?;
    list.iter().map(|it| Hash::from_hex(it.as_str()?)).collect()
}

impl Request {
    /// Where it is sent.
    pub fn path(&self) -> &'static str {
        match self {
            Self::Pull { .. } => "/sync",
            Self::Push { .. } => "/events",
        }
    }

    /// The space that it is about.
    pub fn space(&self) -> &Space {
        match self {
            Self::Pull { space, .. } | Self::Push { space, .. } => space,
        }
    }

    /// As a message.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Pull {
                space,
                log,
                have,
                include,
                entries_max,
            } => json!({
                "space": space.as_str(), "log": log_json(*log), "have": have.to_json(),
                "include": hashes_json(include), "maxEvents": entries_max,
            }),
            Self::Push {
                space,
                page,
                is_complete,
            } => json!({
                "space": space.as_str(), "page": page.to_json(), "complete": is_complete,
            }),
        }
    }

    /// Reads a message that came to this path.
    pub fn from_json(path: &str, value: &Value) -> Result<Self> {
        let space = value.get("space").and_then(Value::as_str);
        let space = space.and_then(|it| it.parse().ok());
        let space: Space = space.ok_or_else(|| malformed("space"))?;
        if path == "/events" {
            let page = value.get("page").ok_or_else(|| malformed("page"))?;
            let page = Page::from_json(page)?;
            let is_complete = value.get("complete").and_then(Value::as_bool);
            return Ok(Self::Push {
                space,
                page,
                is_complete: is_complete.ok_or_else(|| malformed("complete"))?,
            });
        }
        let have = value.get("have").and_then(Have::from_json);
        let include = value.get("include").and_then(read_hashes);
        let entries_max = value.get("maxEvents").and_then(Value::as_u64);
        Ok(Self::Pull {
            space,
            log: read_log(&value["log"]).ok_or_else(|| malformed("log"))?,
            have: have.ok_or_else(|| malformed("have"))?,
            include: include.ok_or_else(|| malformed("include"))?,
            entries_max: entries_max
                .and_then(|it| usize::try_from(it).ok())
                .ok_or_else(|| malformed("maxEvents"))?,
        })
    }
}

/// What the other node answers.
#[derive(Clone, Debug)]
pub enum Response {
    /// The next page, and how much the answering node has of the asking node's log.
    Page {
        /// Nothing if there is no log yet.
        page: Option<Page>,
        /// See above.
        yours: Have,
    },
    /// What became of a page.
    Pushed {
        /// How much the answering node has now.
        yours: Have,
        /// Offered events that it wants with the page.
        wants: Vec<Hash>,
        /// Events that it took.
        n_events: u64,
        /// Events that it refused.
        n_refused: u64,
    },
}

impl Response {
    /// As a message.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Page { page, yours } => json!({
                "page": page.as_ref().map(Page::to_json), "yours": yours.to_json(),
                "hasMore": page.as_ref().is_some_and(Page::has_more),
                "nextCursor": page.as_ref().map(Page::end),
            }),
            Self::Pushed {
                yours,
                wants,
                n_events,
                n_refused,
            } => json!({
                "yours": yours.to_json(), "wants": hashes_json(wants), "accepted": n_events,
                "refused": n_refused,
            }),
        }
    }

    /// Reads a message.
    pub fn from_json(value: &Value) -> Result<Self> {
        let yours = value.get("yours").and_then(Have::from_json);
        let yours = yours.ok_or_else(|| malformed("yours"))?;
        let Some(page) = value.get("page") else {
            let wants = value.get("wants").and_then(read_hashes);
            let number = |name: &str| value[name].as_u64().ok_or_else(|| malformed(name));
            return Ok(Self::Pushed {
                yours,
                wants: wants.ok_or_else(|| malformed("wants"))?,
                n_events: number("accepted")?,
                n_refused: number("refused")?,
            });
        };
        let page = match page {
            Value::Null => None,
            it => Some(Page::from_json(it)?),
        };
        Ok(Self::Page { page, yours })
    }
}

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
    /// The other node signed two histories.
    pub forked: Option<Evidence>,
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
    match request {
        Request::Pull {
            log: their_log,
            have,
            include,
            entries_max,
            ..
        } => {
            let include: HashSet<Hash> = include.into_iter().collect();
            let page = next_page(
                log,
                &space,
                peer,
                rules,
                their_log,
                have,
                &include,
                entries_max,
            )?;
            let page = page.filter(|_| peer.policy.may_read);
            let yours = have_of(log, &space, peer)?;
            Ok((Response::Page { page, yours }, Done::default()))
        }
        Request::Push {
            page, is_complete, ..
        } => {
            if !peer.policy.may_write {
                return Err(Error::denied(format!("`{}` may not write here", peer.did)));
            }
            let (mut done, mut wants) = (Done::default(), Vec::new());
            done.their_size = page.head.size;
            match receive(
                log,
                &space,
                peer,
                page,
                rules.passages_of,
                !is_complete,
                around,
            )? {
                Received::Merged(merged) => note(&mut done, *merged),
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
            };
            Ok((response, done))
        }
    }
}

fn note(done: &mut Done, merged: kenning_audit::foreign::Merged) {
    done.n_received += merged.n_events;
    done.conflicts.extend(merged.conflicts);
    let refused = merged.refused.into_iter();
    done.refused
        .extend(refused.map(|(_, author, why)| (author, why)));
}

fn have_of(log: &Log, space: &Space, peer: &Peer) -> Result<Have> {
    log.read(space, |tx| {
        let cursor = cursor(tx, peer)?;
        Ok(Have {
            log: cursor.log,
            size: cursor.frontier.size,
        })
    })
}

#[expect(
    clippy::too_many_arguments,
    reason = "one call with what a page depends on"
)]
fn next_page(
    log: &Log,
    space: &Space,
    peer: &Peer,
    rules: Rules,
    their_log: Option<LogId>,
    have: Have,
    include: &HashSet<Hash>,
    entries_max: usize,
) -> Result<Option<Page>> {
    let now_ms = log.clock().now_ms();
    log.read(space, |tx| {
        let mine = kenning_audit::log_id(tx)?;
        let wanted = Wanted {
            peer,
            their_log,
            from: if have.log == mine { have.size } else { 0 },
            include,
            entries_max,
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
    pushed: Option<u64>,
    n_messages: usize,
    done: Done,
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
            pushed: None,
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

    /// The first request.
    ///
    /// # Errors
    /// Those of the store.
    pub fn begin(&mut self) -> Result<Option<Request>> {
        self.pull(Vec::new()).map(Some)
    }

    fn pull(&mut self, include: Vec<Hash>) -> Result<Request> {
        let have = have_of(&self.log, &self.space, &self.peer)?;
        let log = self.log.read(&self.space, kenning_audit::log_id)?;
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
        })
    }

    fn push(&mut self, yours: Have, include: HashSet<Hash>) -> Result<Option<Request>> {
        if !self.peer.policy.may_read {
            self.step = Step::End;
            return Ok(None);
        }
        let page = next_page(
            &self.log,
            &self.space,
            &self.peer,
            self.rules,
            self.their_log,
            yours,
            &include,
            self.entries_max,
        )?;
        let Some(page) = page.filter(|it| !it.entries.is_empty()) else {
            self.step = Step::End;
            return Ok(None);
        };
        let is_complete = !include.is_empty();
        self.step = Step::Push;
        self.pushed = Some(page.end());
        Ok(Some(Request::Push {
            space: self.space.clone(),
            page,
            is_complete,
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
                    !has_asked,
                    around,
                )? {
                    Received::Merged(merged) => note(&mut self.done, *merged),
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
                },
            ) => {
                self.done.n_sent += n_events;
                self.done.n_refused_there += n_refused;
                if !wants.is_empty() {
                    return self.push(yours, wants.into_iter().collect());
                }
                // A node that did not take the page would be sent it for ever.
                if self.pushed.take().is_some_and(|it| yours.size < it) {
                    return Ok(None);
                }
                self.push(yours, HashSet::new())
            }
            (Step::Pull { .. }, Response::Pushed { .. })
            | (Step::Push, Response::Page { .. })
            | (Step::End, _) => Err(Error::invalid("the answer does not fit the request")),
        }
    }

    /// An empty page still says how the log stands, which may be less than it was.
    fn push_after_check(&mut self, page: &Page, yours: Have) -> Result<Option<Request>> {
        let cursor = self.log.read(&self.space, |tx| cursor(tx, &self.peer))?;
        if let Some(known) = cursor.head
            && page.head.is_signed()
            && page.head.author == self.peer.did
            && (page.head.size < known.size
                || page.head.origin.log != known.origin.log
                || (page.head.size == known.size && page.head.root != known.root))
        {
            self.done.forked = Some(Evidence {
                known,
                shown: page.head.clone(),
                what: "its log is not a continuation of what it was".to_owned(),
            });
            return Ok(None);
        }
        self.push(yours, HashSet::new())
    }
}
