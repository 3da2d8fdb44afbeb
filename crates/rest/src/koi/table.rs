//! Every route of the KOI API: what it takes, whose permission it needs, and what answers it.
//!
//! The router, the OpenAPI document and the tests all read this table.

use super::facts;
use super::fields::{Field, Kind, default, optional, required};
use kenning_core::Error;
use kenning_engine::{Caller, Engine};
use kenning_tools::koi::{
    Refusal, code_query, federation_status, github_files, github_repos, github_scan, ingest_url,
    knowledge_search, koi_search, monitor_url, preview_url, process_url, resolve_entity,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// How a route is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// `GET`
    Get,
    /// `POST`
    Post,
}

/// Where a route has its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Takes {
    /// Nowhere.
    Nothing,
    /// In the query.
    Query(&'static [Field]),
    /// In a JSON body.
    Body(Kind),
}

/// A route.
pub(super) struct Route {
    /// How it is asked.
    pub(super) verb: Verb,
    /// Its path; `{name}` is a part that may have slashes.
    pub(super) path: &'static str,
    /// For the manual.
    pub(super) summary: &'static str,
    /// The tool whose permission it needs.
    pub(super) like: &'static str,
    /// What the path itself says beside its `{name}`.
    pub(super) fixed: &'static [(&'static str, &'static str)],
    /// Where its arguments are.
    pub(super) takes: Takes,
    /// What answers it.
    pub(super) answer: fn(&Engine, &Caller, Value) -> Result<Value, Refusal>,
}

impl Route {
    /// Whether a request may also ask to keep what it finds.
    pub(super) fn may_ingest(&self) -> bool {
        match self.takes {
            Takes::Body(Kind::Record(fields)) => fields.iter().any(|it| it.name == "auto_ingest"),
            _ => false,
        }
    }
}

/// Reads a request, asks, writes the answer.
fn via<R: DeserializeOwned, O: Serialize>(
    engine: &Engine,
    caller: &Caller,
    request: Value,
    answer: fn(&Engine, &Caller, R) -> Result<O, Refusal>,
) -> Result<Value, Refusal> {
    let request = serde_json::from_value(request)
        .map_err(|cause| Error::invalid(format!("the request cannot be read: {cause}")))?;
    let answered = answer(engine, caller, request)?;
    let written = serde_json::to_value(answered);
    Ok(written.map_err(|cause| Error::internal("an answer is not JSON").because(cause))?)
}

macro_rules! via {
    ($answer:path) => {
        |engine, caller, request| via(engine, caller, request, $answer)
    };
}

const RESOLVE: &[Field] = &[
    required("label", Kind::Name),
    optional("type_hint", Kind::Text),
    default("limit", Kind::Whole),
    optional("context", CONTEXT),
];

const CONTEXT: Kind = Kind::Record(&[
    optional("associated_people", Kind::List(&Kind::Text)),
    optional("project", Kind::Text),
    optional("organizations", Kind::List(&Kind::Text)),
    optional("topics", Kind::List(&Kind::Text)),
    optional("source_text", Kind::Text),
]);

const ENTITY: Kind = Kind::Record(&[
    required("name", Kind::Text),
    required("type", Kind::Text),
    default("mentions", Kind::List(&Kind::Text)),
    default("confidence", Kind::Number),
    optional("context", Kind::Text),
]);

const RELATIONSHIP: Kind = Kind::Record(&[
    required("subject", Kind::Text),
    required("predicate", Kind::Text),
    required("object", Kind::Text),
    default("confidence", Kind::Number),
]);

const MERGE: Kind = Kind::Record(&[required("from", Kind::Text), required("into", Kind::Text)]);

const PAGE: &[Field] = &[
    optional("entity_type", Kind::Text),
    default("limit", Kind::Whole),
    default("offset", Kind::Whole),
];

const MONITOR: &[Field] = &[required("url", Kind::Text), default("title", Kind::Text)];

/// A tool that only looks, and one that changes what entities there are.
pub(super) const LOOK: &str = "koi_search";
const CHANGE: &str = "vault_write_note";

/// The routes, in the order of the contract, then those that other clients use.
pub(super) const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Post,
        path: "/entity/resolve",
        summary: "Which entities a label may mean",
        like: "resolve_entity",
        fixed: &[],
        takes: Takes::Body(Kind::Record(RESOLVE)),
        answer: via!(resolve_entity::answer),
    },
    Route {
        verb: Verb::Get,
        path: "/entity/resolve",
        summary: "The same by a query",
        like: "resolve_entity",
        fixed: &[],
        takes: Takes::Query(&[
            required("label", Kind::Name),
            optional("type_hint", Kind::Text),
            default("limit", Kind::Whole),
        ]),
        answer: via!(resolve_entity::answer),
    },
    Route {
        verb: Verb::Get,
        path: "/relationships/{entity_uri}",
        summary: "What an entity is related to",
        like: "get_entity_neighborhood",
        fixed: &[],
        takes: Takes::Query(&[optional("predicate", Kind::Text)]),
        answer: via!(facts::relationships),
    },
    Route {
        verb: Verb::Get,
        path: "/entity/{entity_uri}/mentioned-in",
        summary: "The documents that mention an entity",
        like: "get_entity_documents",
        fixed: &[],
        takes: Takes::Query(&[default("limit", Kind::Whole)]),
        answer: via!(facts::mentioned_in),
    },
    Route {
        verb: Verb::Get,
        path: "/entity-search",
        summary: "Entities and documents that answer a question",
        like: "koi_search",
        fixed: &[],
        takes: Takes::Query(&[
            required("query", Kind::Name),
            default("limit", Kind::Whole),
            optional("type_filter", Kind::Text),
        ]),
        answer: via!(koi_search::answer),
    },
    Route {
        verb: Verb::Post,
        path: "/search",
        summary: "Documents and passages that answer a question",
        like: "knowledge_search",
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            required("query", Kind::Name),
            default("limit", Kind::Whole),
            optional("source", Kind::Text),
            default("include_chunks", Kind::Flag),
        ])),
        answer: via!(knowledge_search::answer),
    },
    Route {
        verb: Verb::Get,
        path: "/search",
        summary: "The same by a query",
        like: "knowledge_search",
        fixed: &[],
        takes: Takes::Query(&[
            required("q", Kind::Name),
            default("limit", Kind::Whole),
            optional("source", Kind::Text),
        ]),
        answer: via!(facts::search),
    },
    Route {
        verb: Verb::Post,
        path: "/web/preview",
        summary: "Fetches a page and shows it",
        like: "preview_url",
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            required("url", Kind::Text),
            optional("submitted_by", Kind::Text),
            default("submitted_via", Kind::Text),
            optional("submission_message", Kind::Text),
        ])),
        answer: via!(preview_url::answer),
    },
    Route {
        verb: Verb::Post,
        path: "/web/evaluate",
        summary: "Keeps what somebody thinks of a page",
        like: "ingest_url",
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            required("url", Kind::Text),
            optional("relevance_score", Kind::Number),
            optional("relevance_reasoning", Kind::Text),
            default("bioregional_tags", Kind::List(&Kind::Text)),
            default("decision", Kind::Text),
        ])),
        answer: via!(facts::evaluate),
    },
    Route {
        verb: Verb::Post,
        path: "/web/process",
        summary: "Extracts entities and relationships from a page",
        like: "process_url",
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            required("url", Kind::Text),
            default("hint_entities", Kind::List(&Kind::Text)),
            default("auto_ingest", Kind::Flag),
        ])),
        answer: via!(process_url::answer),
    },
    Route {
        verb: Verb::Post,
        path: "/web/ingest",
        summary: "Takes a page into the graph",
        like: "ingest_url",
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            required("url", Kind::Text),
            default("entities", Kind::List(&ENTITY)),
            default("relationships", Kind::List(&RELATIONSHIP)),
            default("vault_folder", Kind::Text),
            default("merge", Kind::List(&MERGE)),
        ])),
        answer: via!(ingest_url::answer),
    },
    Route {
        verb: Verb::Get,
        path: "/web/monitor/status",
        summary: "Which pages are monitored",
        like: "monitor_url",
        fixed: &[("action", "status")],
        takes: Takes::Nothing,
        answer: via!(monitor_url::answer),
    },
    Route {
        verb: Verb::Post,
        path: "/web/monitor/add",
        summary: "Monitors a page",
        like: "monitor_url",
        fixed: &[("action", "add")],
        takes: Takes::Body(Kind::Record(MONITOR)),
        answer: via!(monitor_url::answer),
    },
    Route {
        verb: Verb::Post,
        path: "/web/monitor/remove",
        summary: "Monitors a page no longer",
        like: "monitor_url",
        fixed: &[("action", "remove")],
        takes: Takes::Body(Kind::Record(MONITOR)),
        answer: via!(monitor_url::answer),
    },
    Route {
        verb: Verb::Post,
        path: "/web/monitor/scan",
        summary: "Looks at every monitored page now",
        like: "monitor_url",
        fixed: &[("action", "add")],
        takes: Takes::Nothing,
        answer: via!(facts::scan_monitored),
    },
    Route {
        verb: Verb::Post,
        path: "/github/scan",
        summary: "Scans repositories",
        like: "github_scan",
        fixed: &[("action", "scan")],
        takes: Takes::Query(&[optional("repo_name", Kind::Text)]),
        answer: via!(github_scan::answer),
    },
    Route {
        verb: Verb::Get,
        path: "/github/status",
        summary: "How repositories stand",
        like: "github_scan",
        fixed: &[("action", "status")],
        takes: Takes::Query(&[optional("repo_name", Kind::Text)]),
        answer: via!(github_scan::answer),
    },
    Route {
        verb: Verb::Post,
        path: "/github/repos",
        summary: "Registers a repository",
        like: "github_scan",
        fixed: &[("action", "scan")],
        takes: Takes::Body(Kind::Record(&[
            required("repo_url", Kind::Name),
            optional("repo_name", Kind::Text),
            default("branch", Kind::Text),
        ])),
        answer: via!(github_repos::answer),
    },
    Route {
        verb: Verb::Post,
        path: "/github/repos/remove",
        summary: "Unregisters a repository, with its documents or without",
        like: "github_scan",
        fixed: &[("action", "scan")],
        takes: Takes::Body(Kind::Record(&[
            required("repo_name", Kind::Name),
            default("keep_documents", Kind::Flag),
        ])),
        answer: via!(github_repos::remove),
    },
    Route {
        verb: Verb::Get,
        path: "/github/files",
        summary: "The files of repositories",
        like: "github_scan",
        fixed: &[("action", "status")],
        takes: Takes::Query(&[
            optional("repo_name", Kind::Text),
            default("limit", Kind::Whole),
        ]),
        answer: via!(github_files::answer),
    },
    Route {
        verb: Verb::Post,
        path: "/code/query",
        summary: "Asks the graph of code",
        like: "code_query",
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[default("cypher", Kind::Text)])),
        answer: via!(code_query::answer),
    },
    Route {
        verb: Verb::Get,
        path: "/koi-net/health",
        summary: "How this node stands among others",
        like: "federation_status",
        fixed: &[],
        takes: Takes::Nothing,
        answer: via!(federation_status::answer),
    },
    Route {
        verb: Verb::Get,
        path: "/health",
        summary: "Whether the KOI server is well, and what it can",
        like: LOOK,
        fixed: &[],
        takes: Takes::Nothing,
        answer: via!(facts::health),
    },
    Route {
        verb: Verb::Get,
        path: "/stats",
        summary: "How many entities there are",
        like: LOOK,
        fixed: &[],
        takes: Takes::Nothing,
        answer: via!(facts::stats),
    },
    Route {
        verb: Verb::Get,
        path: "/relationship-stats",
        summary: "How many relationships there are",
        like: LOOK,
        fixed: &[],
        takes: Takes::Nothing,
        answer: via!(facts::relationship_stats),
    },
    Route {
        verb: Verb::Get,
        path: "/entity-types",
        summary: "The types of entities, and how their names are compared",
        like: LOOK,
        fixed: &[],
        takes: Takes::Nothing,
        answer: via!(facts::entity_types),
    },
    Route {
        verb: Verb::Post,
        path: "/reload-schemas",
        summary: "Reads the types that the vault declares",
        like: LOOK,
        fixed: &[],
        takes: Takes::Nothing,
        answer: via!(facts::reload_schemas),
    },
    Route {
        verb: Verb::Get,
        path: "/entities",
        summary: "The entities",
        like: LOOK,
        fixed: &[],
        takes: Takes::Query(PAGE),
        answer: via!(facts::entities),
    },
    Route {
        verb: Verb::Get,
        path: "/entity/{entity_uri}",
        summary: "An entity and the documents that mention it",
        like: LOOK,
        fixed: &[],
        takes: Takes::Nothing,
        answer: via!(facts::entity),
    },
    Route {
        verb: Verb::Get,
        path: "/vault-entities",
        summary: "The entities that notes are about",
        like: LOOK,
        fixed: &[],
        takes: Takes::Query(PAGE),
        answer: via!(facts::vault_entities),
    },
    Route {
        verb: Verb::Post,
        path: "/resolve-to-vault",
        summary: "The notes about entities",
        like: LOOK,
        fixed: &[],
        takes: Takes::Body(Kind::List(&Kind::Text)),
        answer: via!(facts::resolve_to_vault),
    },
    Route {
        verb: Verb::Post,
        path: "/entities/mentioned-in",
        summary: "The documents that mention each of several entities",
        like: "get_entity_documents",
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            required("uris", Kind::List(&Kind::Text)),
            default("limit_per_entity", Kind::Whole),
        ])),
        answer: via!(facts::all_mentioned_in),
    },
    Route {
        verb: Verb::Post,
        path: "/get-contextual-candidates",
        summary: "Who is spoken of together with others",
        like: LOOK,
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            optional("project", Kind::Text),
            optional("attendees", Kind::List(&Kind::Text)),
            optional("topics", Kind::List(&Kind::Text)),
            optional("document_rid", Kind::Text),
            default("entity_types", Kind::List(&Kind::Text)),
        ])),
        answer: via!(facts::contextual_candidates),
    },
    Route {
        verb: Verb::Post,
        path: "/query",
        summary: "Documents that answer a question, in another form",
        like: "knowledge_search",
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            optional("query", Kind::Text),
            optional("question", Kind::Text),
            default("limit", Kind::Whole),
            optional("source", Kind::Text),
            optional("filters", Kind::Map),
        ])),
        answer: via!(facts::query),
    },
    Route {
        verb: Verb::Post,
        path: "/register-entity",
        summary: "Registers a note about an entity",
        like: CHANGE,
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            required("vault_rid", Kind::Text),
            required("vault_path", Kind::Text),
            required("entity_type", Kind::Text),
            required("name", Kind::Name),
            default("properties", Kind::Map),
            optional("frontmatter", Kind::Map),
            required("content_hash", Kind::Text),
        ])),
        answer: via!(facts::register_entity),
    },
    Route {
        verb: Verb::Post,
        path: "/sync-relationships",
        summary: "Takes over what the fields of a note say",
        like: CHANGE,
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            required("vault_path", Kind::Text),
            required("entity_uri", Kind::Text),
            required("frontmatter", Kind::Map),
        ])),
        answer: via!(facts::sync_relationships),
    },
    Route {
        verb: Verb::Post,
        path: "/ingest",
        summary: "Takes over what a document says of entities",
        like: CHANGE,
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            required("document_rid", Kind::Text),
            optional("content", Kind::Text),
            required("entities", Kind::List(&ENTITY)),
            default("relationships", Kind::List(&RELATIONSHIP)),
            default("source", Kind::Text),
            optional("context", CONTEXT),
        ])),
        answer: via!(facts::ingest),
    },
    Route {
        verb: Verb::Post,
        path: "/entity/enrich",
        summary: "Describes entities by what pages say of them, with a language model",
        like: CHANGE,
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            optional("entity_uri", Kind::Text),
            optional("entity_type", Kind::Text),
            default("limit", Kind::Whole),
        ])),
        answer: via!(facts::no_descriptions),
    },
    Route {
        verb: Verb::Post,
        path: "/entity/describe",
        summary: "Describes entities by what a language model knows of them",
        like: CHANGE,
        fixed: &[],
        takes: Takes::Body(Kind::Record(&[
            optional("entity_type", Kind::Text),
            default("limit", Kind::Whole),
            default("regenerate_notes", Kind::Flag),
        ])),
        answer: via!(facts::no_descriptions),
    },
    Route {
        verb: Verb::Post,
        path: "/vault/regenerate",
        summary: "Writes notes about entities that have none",
        like: CHANGE,
        fixed: &[],
        takes: Takes::Query(&[
            optional("entity_type", Kind::Text),
            default("limit", Kind::Whole),
        ]),
        answer: via!(facts::regenerate_notes),
    },
];

/// What the path of a route itself says.
pub(super) fn fixed(route: &Route) -> Map<String, Value> {
    let fixed = route.fixed.iter();
    fixed
        .map(|(name, value)| ((*name).to_owned(), (*value).into()))
        .collect()
}

/// What a path says where the pattern has a `{name}`; `None` when it is no such path.
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

/// The router's pattern for everything that begins so.
pub(super) fn family(before: &str) -> &'static str {
    match before {
        "/entity/" => "/entity/{*rest}",
        _ => "/relationships/{*rest}",
    }
}
