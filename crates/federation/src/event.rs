//! What happened to a thing.

use crate::json::Json;
use crate::manifest::{Bundle, Manifest};
use crate::rid::Rid;
use kenning_core::{Error, Result};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// It is new.
    New,
    /// It changed.
    Update,
    /// It is to be forgotten.
    Forget,
}

impl EventType {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::Update => "UPDATE",
            Self::Forget => "FORGET",
        }
    }

    /// Reads it.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "NEW" => Some(Self::New),
            "UPDATE" => Some(Self::Update),
            "FORGET" => Some(Self::Forget),
            _ => None,
        }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The thing.
    pub rid: Rid,
    /// What happened to it.
    pub event_type: EventType,
    /// Its manifest.
    pub manifest: Option<Manifest>,
    /// Its contents.
    pub contents: Option<Json>,
    /// The number that an Octo node gave it, or is to be given.
    pub event_id: Option<String>,
}

impl Event {
    /// With its bundle.
    pub fn of(event_type: EventType, bundle: Bundle) -> Self {
        Self {
            rid: bundle.manifest.rid.clone(),
            event_type,
            manifest: Some(bundle.manifest),
            contents: Some(bundle.contents),
            event_id: None,
        }
    }

    /// That a thing is to be forgotten.
    pub fn forget(rid: Rid) -> Self {
        Self {
            rid,
            event_type: EventType::Forget,
            manifest: None,
            contents: None,
            event_id: None,
        }
    }

    /// The manifest and the contents, if both are there.
    pub fn bundle(&self) -> Option<Bundle> {
        Some(Bundle {
            manifest: self.manifest.clone()?,
            contents: self.contents.clone()?,
        })
    }

    /// Reads an event.
    ///
    /// # Errors
    /// Invalid if a member is missing or malformed, or if the manifest names another thing.
    pub fn from_json(value: &Json) -> Result<Self> {
        let text = |name: &str| value.get(name).and_then(Json::as_str);
        let missing =
            |name: &str| Error::invalid(format!("`event.{name}` is missing or malformed"));
        let rid = Rid::parse(text("rid").ok_or_else(|| missing("rid"))?)?;
        let event_type = text("event_type").and_then(EventType::parse);
        let event_type = event_type.ok_or_else(|| missing("event_type"))?;
        let present = |name: &str| value.get(name).filter(|it| **it != Json::Null);
        let manifest = present("manifest").map(Manifest::from_json).transpose()?;
        if manifest.as_ref().is_some_and(|it| it.rid != rid) {
            return Err(Error::invalid("`event.manifest` is of another RID"));
        }
        let contents = present("contents").cloned();
        if contents.as_ref().is_some_and(|it| it.members().is_none()) {
            return Err(missing("contents"));
        }
        Ok(Self {
            rid,
            event_type,
            manifest,
            contents,
            event_id: text("event_id").map(ToOwned::to_owned),
        })
    }

    /// As it is sent. The reference knows no `event_id`: with one its verification fails.
    pub fn to_json(&self) -> Json {
        let mut members = Vec::new();
        let mut put = |name: &str, value: Json| members.push((name.to_owned(), value));
        if let Some(id) = &self.event_id {
            put("event_id", Json::text(id));
        }
        put("rid", Json::text(self.rid.as_str()));
        put("event_type", Json::text(self.event_type.as_str()));
        if let Some(manifest) = &self.manifest {
            put("manifest", manifest.to_json());
        }
        if let Some(contents) = &self.contents {
            put("contents", contents.clone());
        }
        Json::Object(members)
    }
}
