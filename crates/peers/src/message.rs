//! The messages of an exchange.

use crate::wire::{log_json, malformed, read_log};
use crate::{ENTRIES_MAX, Page};
use kenning_audit::LogId;
use kenning_core::{Hash, Result, Space};
use serde_json::{Value, json};

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

/// What goes along with every message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Along {
    /// Events of the receiver that were taken since the last message.
    pub n_taken: u64,
    /// Countersignatures of the receiver's checkpoints: the height, and the line for the note.
    pub cosignatures: Vec<(u64, String)>,
    /// How long the receiver's last answer took, in milliseconds.
    pub latency_ms: Option<u64>,
}

/// The most countersignatures of a message, and the longest one.
const COSIGNATURES_MAX: usize = 16;
const COSIGNATURE_BYTES_MAX: usize = 1_000;

impl Along {
    /// Whether the receiver must be told.
    pub(crate) fn is_any(&self) -> bool {
        self.n_taken > 0 || !self.cosignatures.is_empty()
    }

    fn to_json(&self) -> Value {
        json!({
            "taken": self.n_taken, "cosignatures": self.cosignatures, "latencyMs": self.latency_ms,
        })
    }

    fn from_json(value: &Value) -> Result<Self> {
        let read = || {
            let list = value.get("cosignatures")?.as_array()?;
            let list = Some(list).filter(|it| it.len() <= COSIGNATURES_MAX)?;
            let pair = |it: &Value| {
                let line = it.get(1)?.as_str()?;
                let line = Some(line).filter(|it| it.len() <= COSIGNATURE_BYTES_MAX)?;
                Some((it.get(0)?.as_u64()?, line.to_owned()))
            };
            Some(Self {
                n_taken: value.get("taken")?.as_u64()?,
                cosignatures: list.iter().map(pair).collect::<Option<_>>()?,
                latency_ms: value.get("latencyMs")?.as_u64(),
            })
        };
        read().ok_or_else(|| malformed("along"))
    }
}

fn along_of(message: &Value) -> Result<Along> {
    let along = message.get("along");
    along.map_or_else(|| Ok(Along::default()), Along::from_json)
}

/// What one node asks another.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it holds a page"
)]
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
        /// What goes along.
        along: Along,
    },
    /// Take this page of my log.
    Push {
        /// The space.
        space: Space,
        /// The page.
        page: Page,
        /// Whether it has all that can be had of it.
        is_complete: bool,
        /// What goes along.
        along: Along,
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
                along,
            } => json!({
                "space": space.as_str(), "log": log_json(*log), "have": have.to_json(),
                "include": hashes_json(include), "maxEvents": entries_max,
                "along": along.to_json(),
            }),
            Self::Push {
                space,
                page,
                is_complete,
                along,
            } => json!({
                "space": space.as_str(), "page": page.to_json(), "complete": is_complete,
                "along": along.to_json(),
            }),
        }
    }

    /// Reads a message that came to this path.
    pub fn from_json(path: &str, value: &Value) -> Result<Self> {
        let space = value.get("space").and_then(Value::as_str);
        let space = space.and_then(|it| it.parse().ok());
        let space: Space = space.ok_or_else(|| malformed("space"))?;
        let along = along_of(value)?;
        if path == "/events" {
            let page = value.get("page").ok_or_else(|| malformed("page"))?;
            let page = Page::from_json(page)?;
            let is_complete = value.get("complete").and_then(Value::as_bool);
            return Ok(Self::Push {
                space,
                page,
                is_complete: is_complete.ok_or_else(|| malformed("complete"))?,
                along,
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
            along,
        })
    }
}

/// What the other node answers.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it holds a page"
)]
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
        /// What goes along.
        along: Along,
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
                along,
            } => json!({
                "yours": yours.to_json(), "wants": hashes_json(wants), "accepted": n_events,
                "refused": n_refused, "along": along.to_json(),
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
                along: along_of(value)?,
            });
        };
        let page = match page {
            Value::Null => None,
            it => Some(Page::from_json(it)?),
        };
        Ok(Self::Page { page, yours })
    }
}
