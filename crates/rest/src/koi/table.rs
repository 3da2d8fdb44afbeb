//! Every route of the KOI API.
//!
//! A tool of the contract declares its own routes; the others are here. The router, the OpenAPI
//! document and the tests all read [`routes`].

use super::descriptions;
use super::fields::{Field, Kind};
use super::{facts, federated, statements};
use kenning_tools::TOOLS;
use kenning_tools::koi::api::{self, Nothing, Place, Route, Verb};
use kenning_tools::koi::{github_files, github_repos};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Where a route has its arguments, and their types.
#[derive(Clone, Debug)]
pub(super) enum Takes {
    /// It has none.
    Nothing,
    /// In the query.
    Query(Vec<Field>),
    /// In a JSON body.
    Body(Kind),
}

/// A route, and what it takes.
pub(super) struct Entry {
    pub(super) route: &'static Route,
    pub(super) takes: Takes,
}

impl Entry {
    fn new(route: &'static Route) -> Self {
        let elsewhere = |name: &str| {
            route.field_in_path() == Some(name) || route.fixed.iter().any(|it| it.0 == name)
        };
        let kind = match Kind::of(&(route.schema)()) {
            Kind::Record(mut fields) => {
                fields.retain(|it| !elsewhere(&it.name));
                Kind::Record(fields)
            }
            other => other,
        };
        let takes = match (route.place, kind) {
            (Place::Query, Kind::Record(mut fields)) => {
                fields.retain(|it| it.kind.fits_a_query());
                Takes::Query(fields)
            }
            (Place::Nowhere | Place::Query, _) => Takes::Nothing,
            (Place::Body, kind) => Takes::Body(kind),
        };
        Self { route, takes }
    }

    /// Whether a request may also ask to ingest what it finds.
    pub(super) fn may_ingest(&self) -> bool {
        match &self.takes {
            Takes::Body(Kind::Record(fields)) => fields.iter().any(|it| it.name == "auto_ingest"),
            _ => false,
        }
    }
}

/// Every route: those of the tools in the order of the contract, then the others.
pub(super) fn routes() -> &'static [Entry] {
    static ROUTES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let of_tools = TOOLS.iter().flat_map(|tool| tool.routes());
        of_tools.chain(OTHERS).map(Entry::new).collect()
    });
    &ROUTES
}

/// A tool that only reads, and one that changes entities.
pub(super) const LOOK: &str = "koi_search";
const CHANGE: &str = "vault_write_note";
/// What these routes may do beyond looking needs the scope `admin`.
const FEDERATION: &str = "federation_status";

/// The routes that are not tools of the contract.
const OTHERS: &[Route] = &[
    github_repos::REGISTER,
    github_repos::UNREGISTER,
    github_files::FILES,
    Route {
        verb: Verb::Post,
        path: "/web/evaluate",
        summary: "Keeps what somebody thinks of a page",
        tool: "ingest_url",
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<statements::EvaluateRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, statements::evaluate),
    },
    Route {
        verb: Verb::Get,
        path: "/health",
        summary: "Whether the KOI server is well, and what it can",
        tool: LOOK,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<Nothing>,
        answer: |engine, caller, request| api::via(engine, caller, request, facts::health),
    },
    Route {
        verb: Verb::Get,
        path: "/stats",
        summary: "How many entities there are",
        tool: LOOK,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<Nothing>,
        answer: |engine, caller, request| api::via(engine, caller, request, facts::stats),
    },
    Route {
        verb: Verb::Get,
        path: "/relationship-stats",
        summary: "How many relationships there are",
        tool: LOOK,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<Nothing>,
        answer: |engine, caller, request| {
            api::via(engine, caller, request, facts::relationship_stats)
        },
    },
    Route {
        verb: Verb::Get,
        path: "/entity-types",
        summary: "The types of entities, and how their names are compared",
        tool: LOOK,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<Nothing>,
        answer: |engine, caller, request| api::via(engine, caller, request, facts::entity_types),
    },
    Route {
        verb: Verb::Post,
        path: "/reload-schemas",
        summary: "Reads the types that the vault declares",
        tool: LOOK,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<Nothing>,
        answer: |engine, caller, request| api::via(engine, caller, request, facts::reload_schemas),
    },
    Route {
        verb: Verb::Get,
        path: "/entities",
        summary: "The entities",
        tool: LOOK,
        fixed: &[],
        place: Place::Query,
        schema: api::fields::<facts::PageRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, facts::entities),
    },
    Route {
        verb: Verb::Get,
        path: "/entity/{entity_uri}",
        summary: "An entity and the documents that mention it",
        tool: LOOK,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<facts::EntityRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, facts::entity),
    },
    Route {
        verb: Verb::Get,
        path: "/vault-entities",
        summary: "The entities that notes are about",
        tool: LOOK,
        fixed: &[],
        place: Place::Query,
        schema: api::fields::<facts::PageRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, facts::vault_entities),
    },
    Route {
        verb: Verb::Post,
        path: "/resolve-to-vault",
        summary: "The notes about entities",
        tool: LOOK,
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<Vec<String>>,
        answer: |engine, caller, request| {
            api::via(engine, caller, request, facts::resolve_to_vault)
        },
    },
    Route {
        verb: Verb::Post,
        path: "/entities/mentioned-in",
        summary: "The documents that mention each of several entities",
        tool: "get_entity_documents",
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<facts::AllMentionedRequest>,
        answer: |engine, caller, request| {
            api::via(engine, caller, request, facts::all_mentioned_in)
        },
    },
    Route {
        verb: Verb::Post,
        path: "/get-contextual-candidates",
        summary: "Who is spoken of together with others",
        tool: LOOK,
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<facts::CandidatesRequest>,
        answer: |engine, caller, request| {
            api::via(engine, caller, request, facts::contextual_candidates)
        },
    },
    Route {
        verb: Verb::Post,
        path: "/query",
        summary: "Documents that answer a question, in another form",
        tool: "knowledge_search",
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<facts::QueryRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, facts::query),
    },
    Route {
        verb: Verb::Post,
        path: "/register-entity",
        summary: "Registers a note about an entity",
        tool: CHANGE,
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<statements::RegisterRequest>,
        answer: |engine, caller, request| {
            api::via(engine, caller, request, statements::register_entity)
        },
    },
    Route {
        verb: Verb::Post,
        path: "/sync-relationships",
        summary: "Takes over what the fields of a note say",
        tool: CHANGE,
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<statements::SyncRequest>,
        answer: |engine, caller, request| {
            api::via(engine, caller, request, statements::sync_relationships)
        },
    },
    Route {
        verb: Verb::Post,
        path: "/ingest",
        summary: "Takes over what a document says of entities",
        tool: CHANGE,
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<statements::IngestRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, statements::ingest),
    },
    Route {
        verb: Verb::Post,
        path: "/entity/enrich",
        summary: "Describes entities by what texts say of them, with a language model",
        tool: CHANGE,
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<descriptions::EnrichRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, descriptions::enrich),
    },
    Route {
        verb: Verb::Post,
        path: "/entity/describe",
        summary: "Describes entities by what a language model knows of them",
        tool: CHANGE,
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<descriptions::DescribeRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, descriptions::describe),
    },
    Route {
        verb: Verb::Post,
        path: "/vault/regenerate",
        summary: "Writes notes about entities that have none",
        tool: CHANGE,
        fixed: &[],
        place: Place::Query,
        schema: api::fields::<statements::RegenerateRequest>,
        answer: |engine, caller, request| {
            api::via(engine, caller, request, statements::regenerate_notes)
        },
    },
    Route {
        verb: Verb::Post,
        path: "/koi-net/connect",
        summary: "Connects to a node of KOI-net",
        tool: FEDERATION,
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<federated::ConnectRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, federated::connect),
    },
    Route {
        verb: Verb::Get,
        path: "/koi-net/nodes",
        summary: "The nodes of KOI-net that are known",
        tool: FEDERATION,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<Nothing>,
        answer: |engine, caller, request| api::via(engine, caller, request, federated::nodes),
    },
    Route {
        verb: Verb::Get,
        path: "/koi-net/edges",
        summary: "Who subscribes to what",
        tool: FEDERATION,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<Nothing>,
        answer: |engine, caller, request| api::via(engine, caller, request, federated::edges),
    },
    Route {
        verb: Verb::Post,
        path: "/koi-net/edges/approve",
        summary: "Approves a node that introduced itself, and what it subscribes to",
        tool: FEDERATION,
        fixed: &[],
        place: Place::Body,
        schema: api::fields::<federated::NodeRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, federated::approve),
    },
    Route {
        verb: Verb::Get,
        path: "/koi-net/cross-refs",
        summary: "What was taken from other nodes, and which entities that is",
        tool: FEDERATION,
        fixed: &[],
        place: Place::Query,
        schema: api::fields::<federated::ReferencesRequest>,
        answer: |engine, caller, request| api::via(engine, caller, request, federated::references),
    },
    Route {
        verb: Verb::Get,
        path: "/koi-net/dead-letters",
        summary: "What could not be delivered",
        tool: FEDERATION,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<Nothing>,
        answer: |engine, caller, request| {
            api::via(engine, caller, request, federated::dead_letters)
        },
    },
    Route {
        verb: Verb::Post,
        path: "/koi-net/dead-letters/retry",
        summary: "Delivers it again",
        tool: FEDERATION,
        fixed: &[],
        place: Place::Nowhere,
        schema: api::fields::<Nothing>,
        answer: |engine, caller, request| api::via(engine, caller, request, federated::resend),
    },
];

/// The value in a path where the pattern has a `{name}`; `None` if the path does not match.
pub(super) fn matched(pattern: &str, path: &str) -> Option<Map<String, Value>> {
    let mut said = Map::new();
    let Some((before, rest)) = pattern.split_once('{') else {
        return (pattern == path).then_some(said);
    };
    let (name, after) = rest.split_once('}')?;
    let value = path.strip_prefix(before)?.strip_suffix(after)?;
    if value.is_empty() {
        return None;
    }
    said.insert(name.to_owned(), value.into());
    Some(said)
}

/// The router's pattern for everything with this prefix.
pub(super) fn family(before: &str) -> &'static str {
    match before {
        "/entity/" => "/entity/{*rest}",
        _ => "/relationships/{*rest}",
    }
}
