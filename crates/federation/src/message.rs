//! What nodes ask each other, and what they answer.

use crate::event::Event;
use crate::json::Json;
use crate::manifest::{Bundle, Manifest};
use kenning_core::{Error, Result};

/// At most this many things are in one message.
pub const ITEMS_MAX: usize = 1_000_000;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// What happened; at most so many, 0 for all.
    PollEvents {
        /// At most so many.
        limit: u64,
    },
    /// The names of all things of these types, or of all.
    FetchRids {
        /// The types.
        rid_types: Vec<String>,
    },
    /// Manifests of these things, or else of these types.
    FetchManifests {
        /// The types.
        rid_types: Vec<String>,
        /// The things.
        rids: Vec<String>,
    },
    /// These things.
    FetchBundles {
        /// The things.
        rids: Vec<String>,
    },
    /// That these events arrived (Octo).
    ConfirmEvents {
        /// Their numbers.
        event_ids: Vec<String>,
    },
}

/// What a signed envelope carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Events, as a message or an answer.
    Events(Vec<Event>),
    /// A question.
    Query(Query),
    /// The names of things, in answer to a question.
    Rids(Vec<String>),
    /// The manifests that were asked for.
    Manifests {
        /// Those that are there.
        manifests: Vec<Manifest>,
        /// Those that are not.
        not_found: Vec<String>,
    },
    /// The things that were asked for, with their contents.
    Bundles {
        /// Those that are there.
        bundles: Vec<Bundle>,
        /// Those that are not.
        not_found: Vec<String>,
        /// Those that did not fit.
        deferred: Vec<String>,
    },
    /// How many events were confirmed (Octo).
    Confirmed(u64),
}

impl Payload {
    /// As it is sent: every member, in the order of the reference.
    pub fn to_json(&self) -> Json {
        let of = |kind: &str, members: Vec<(&str, Json)>| {
            let kind = ("type".to_owned(), Json::text(kind));
            let members = members.into_iter().map(|(name, it)| (name.to_owned(), it));
            Json::Object(std::iter::once(kind).chain(members).collect())
        };
        let list = |items: &mut dyn Iterator<Item = Json>| Json::List(items.collect());
        match self {
            Self::Events(events) => {
                let events = list(&mut events.iter().map(Event::to_json));
                of("events_payload", vec![("events", events)])
            }
            Self::Query(Query::PollEvents { limit }) => {
                of("poll_events", vec![("limit", Json::count(*limit))])
            }
            Self::Query(Query::FetchRids { rid_types }) => {
                of("fetch_rids", vec![("rid_types", Json::texts(rid_types))])
            }
            Self::Query(Query::FetchManifests { rid_types, rids }) => of(
                "fetch_manifests",
                vec![
                    ("rid_types", Json::texts(rid_types)),
                    ("rids", Json::texts(rids)),
                ],
            ),
            Self::Query(Query::FetchBundles { rids }) => {
                of("fetch_bundles", vec![("rids", Json::texts(rids))])
            }
            Self::Query(Query::ConfirmEvents { event_ids }) => of(
                "confirm_events",
                vec![("event_ids", Json::texts(event_ids))],
            ),
            Self::Rids(rids) => of("rids_payload", vec![("rids", Json::texts(rids))]),
            Self::Manifests {
                manifests,
                not_found,
            } => of(
                "manifests_payload",
                vec![
                    (
                        "manifests",
                        list(&mut manifests.iter().map(Manifest::to_json)),
                    ),
                    ("not_found", Json::texts(not_found)),
                ],
            ),
            Self::Bundles {
                bundles,
                not_found,
                deferred,
            } => of(
                "bundles_payload",
                vec![
                    ("bundles", list(&mut bundles.iter().map(Bundle::to_json))),
                    ("not_found", Json::texts(not_found)),
                    ("deferred", Json::texts(deferred)),
                ],
            ),
            Self::Confirmed(n) => of(
                "confirm_events_response",
                vec![("confirmed", Json::count(*n))],
            ),
        }
    }

    /// Reads a payload. What has a default may be missing.
    ///
    /// # Errors
    /// Invalid if its type is unknown or a member is malformed.
    pub fn from_json(value: &Json) -> Result<Self> {
        let kind = value.get("type").and_then(Json::as_str);
        let kind = kind.ok_or_else(|| Error::invalid("`payload.type` is missing"))?;
        let texts = |name: &str| -> Result<Vec<String>> {
            let read = |it: &Json| {
                it.as_str()
                    .map(ToOwned::to_owned)
                    .ok_or_else(|| malformed(name))
            };
            items(value, name)?.iter().map(read).collect()
        };
        Ok(match kind {
            "events_payload" => {
                let events = value.get("events").ok_or_else(|| malformed("events"))?;
                let events = events.items().filter(|it| it.len() <= ITEMS_MAX);
                let events = events.ok_or_else(|| malformed("events"))?;
                Self::Events(events.iter().map(Event::from_json).collect::<Result<_>>()?)
            }
            "poll_events" => {
                let limit = value.get("limit").map_or(Some(0), Json::as_u64);
                let limit = limit.ok_or_else(|| malformed("limit"))?;
                Self::Query(Query::PollEvents { limit })
            }
            "fetch_rids" => Self::Query(Query::FetchRids {
                rid_types: texts("rid_types")?,
            }),
            "fetch_manifests" => Self::Query(Query::FetchManifests {
                rid_types: texts("rid_types")?,
                rids: texts("rids")?,
            }),
            "fetch_bundles" => Self::Query(Query::FetchBundles {
                rids: texts("rids")?,
            }),
            "confirm_events" => Self::Query(Query::ConfirmEvents {
                event_ids: texts("event_ids")?,
            }),
            "rids_payload" => Self::Rids(texts("rids")?),
            "manifests_payload" => Self::Manifests {
                manifests: read_all(value, "manifests", Manifest::from_json)?,
                not_found: texts("not_found")?,
            },
            "bundles_payload" => Self::Bundles {
                bundles: read_all(value, "bundles", Bundle::from_json)?,
                not_found: texts("not_found")?,
                deferred: texts("deferred")?,
            },
            "confirm_events_response" => {
                let n = value.get("confirmed").and_then(Json::as_u64);
                Self::Confirmed(n.ok_or_else(|| malformed("confirmed"))?)
            }
            other => {
                let other = crate::json::shown(other);
                return Err(Error::invalid(format!(
                    "`payload.type`: `{other}` is not known"
                )));
            }
        })
    }
}

fn malformed(name: &str) -> Error {
    Error::invalid(format!(
        "`payload.{name}` is missing, malformed or too long"
    ))
}

fn items<'a>(value: &'a Json, name: &str) -> Result<&'a [Json]> {
    match value.get(name) {
        None | Some(Json::Null) => Ok(&[]),
        Some(it) => it
            .items()
            .filter(|it| it.len() <= ITEMS_MAX)
            .ok_or_else(|| malformed(name)),
    }
}

fn read_all<T>(value: &Json, name: &str, read: fn(&Json) -> Result<T>) -> Result<Vec<T>> {
    items(value, name)?.iter().map(read).collect()
}
