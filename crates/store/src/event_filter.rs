//! Which events of a log: by kind, effect, author, time and text.

use crate::EventRow;
use kenning_core::Hlc;

/// Which events. What is left out admits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Of any of these kinds.
    pub kinds: Vec<String>,
    /// Or with any of these effects. Without kinds and effects, all events are admitted.
    pub effects: Vec<EventEffect>,
    /// Kinds that are not admitted because of their effects, only because of their names.
    pub effects_except: Vec<String>,
    /// Not before this moment.
    pub from: Option<Hlc>,
    /// Not after this moment.
    pub to: Option<Hlc>,
    /// Signed by this author, or written for this agent.
    pub author: Option<String>,
    /// Of exactly these moments: those at which a node was changed, for instance.
    pub at: Option<Vec<Hlc>>,
    /// With this text in what they say or in the rows that they name; ASCII letters of any case. It is
    /// compared with JSON as it is stored.
    pub text: Option<String>,
}

impl EventFilter {
    /// Whether it admits an event: what a backend answers from its indexes.
    pub fn admits(&self, event: &EventRow) -> bool {
        let is_of =
            |did: &String| *did == event.author || (!did.is_empty() && *did == event.sealed.agent);
        let has_effect = || {
            !self.effects_except.contains(&event.kind)
                && self.effects.iter().any(|it| it.is_in(&event.payload))
        };
        let is_any = self.kinds.is_empty() && self.effects.is_empty();
        (is_any || self.kinds.contains(&event.kind) || has_effect())
            && self.from.is_none_or(|it| it <= event.hlc)
            && self.to.is_none_or(|it| event.hlc <= it)
            && self.author.as_ref().is_none_or(is_of)
            && self.at.as_ref().is_none_or(|it| it.contains(&event.hlc))
            && self.text.as_ref().is_none_or(|it| {
                let has = |bytes: &[u8]| {
                    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
                    text.contains(&it.to_ascii_lowercase())
                };
                has(&event.payload) || has(&event.sealed.data)
            })
    }

    /// The parts that an index answers one by one: each kind for itself, each effect for itself, and each of
    /// an author's two roles. Together they admit what the filter admits; no event is in two of them.
    pub fn parts(&self) -> Vec<EventPart<'_>> {
        let mut kinds: Vec<&str> = self.kinds.iter().map(String::as_str).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut effects = self.effects.clone();
        effects.sort_unstable();
        effects.dedup();
        let mut what: Vec<EventWhat<'_>> = kinds.iter().map(|it| EventWhat::Kind(it)).collect();
        let except: Vec<&str> = kinds
            .into_iter()
            .chain(self.effects_except.iter().map(String::as_str))
            .collect();
        for (n, &effect) in effects.iter().enumerate() {
            what.push(EventWhat::Effect {
                effect,
                without: effects.get(..n).unwrap_or_default().to_vec(),
                except: except.clone(),
            });
        }
        if what.is_empty() {
            what.push(EventWhat::Any);
        }
        let whose = match &self.author {
            None => vec![EventOf::Any],
            Some(did) if did.is_empty() => vec![EventOf::Author(did)],
            Some(did) => vec![EventOf::Author(did), EventOf::Agent(did)],
        };
        let parts = what.into_iter();
        parts
            .flat_map(|what| {
                let of = move |&whose| EventPart {
                    what: what.clone(),
                    whose,
                };
                whose.iter().map(of)
            })
            .collect()
    }

    /// Whether it admits every event.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What an event does to nodes and edges, whatever its kind is called. It is read from the canonical JSON of
/// the signed changes, so that both backends can index it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventEffect {
    /// Puts the first revision of a node.
    CreatesNode,
    /// Puts a later revision of a node.
    UpdatesNode,
    /// Removes a node.
    RemovesNode,
    /// Puts an edge.
    PutsEdge,
    /// Ends an edge.
    EndsEdge,
}

/// In the changes of an event that puts the first revision of a node. Quotation marks in texts are escaped, so
/// no text contains it.
pub const NODE_CREATED_MARK: &str = r#""put":"node","rev":1}"#;

impl EventEffect {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::CreatesNode,
        Self::UpdatesNode,
        Self::RemovesNode,
        Self::PutsEdge,
        Self::EndsEdge,
    ];

    /// What the changes contain; for [`Self::UpdatesNode`] after every [`NODE_CREATED_MARK`] was taken out.
    pub fn mark(self) -> &'static str {
        match self {
            Self::CreatesNode => NODE_CREATED_MARK,
            Self::UpdatesNode => r#""put":"node""#,
            Self::RemovesNode => r#""remove":"node""#,
            Self::PutsEdge => r#""put":"edge""#,
            Self::EndsEdge => r#""remove":"edge""#,
        }
    }

    /// Whether the changes of an event have this effect.
    pub fn is_in(self, payload: &[u8]) -> bool {
        let find = |bytes: &[u8], mark: &str| {
            let mut windows = bytes.windows(mark.len());
            windows.position(|it| it == mark.as_bytes())
        };
        if self != Self::UpdatesNode {
            return find(payload, self.mark()).is_some();
        }
        let (mut rest, mut later) = (payload, Vec::new());
        while let Some(at) = find(rest, NODE_CREATED_MARK) {
            later.extend_from_slice(&rest[..at]);
            rest = &rest[at + NODE_CREATED_MARK.len()..];
        }
        later.extend_from_slice(rest);
        find(&later, self.mark()).is_some()
    }
}

/// Which events, by what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventWhat<'a> {
    /// Events of every kind.
    Any,
    /// Of this kind.
    Kind(&'a str),
    /// With an effect.
    Effect {
        /// This one.
        effect: EventEffect,
        /// And none of these.
        without: Vec<EventEffect>,
        /// Of none of these kinds.
        except: Vec<&'a str>,
    },
}

/// A part of an [`EventFilter`] that one index answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPart<'a> {
    /// What they are.
    pub what: EventWhat<'a>,
    /// Who wrote them.
    pub whose: EventOf<'a>,
}

/// Whose events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOf<'a> {
    /// Anybody's.
    Any,
    /// Signed by this author.
    Author(&'a str),
    /// Written for this agent, which is not also the author.
    Agent(&'a str),
}

/// Which part of the events that a filter admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventPage {
    /// Leave out so many.
    pub skip: u64,
    /// Give at most so many.
    pub limit: usize,
    /// Begin with the newest.
    pub newest_first: bool,
}
