//! `preview_url`

use super::Refusal;
use super::api::{self, Api, Place, Route, Verb};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use kenning_engine::koi::{
    MatchedEntity, PageEvaluation, PageMetadata, PagePreview, PreviewRequest, Previewed,
};
use kenning_engine::{Caller, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The flag of a page that was not read to its end.
const TRUNCATED: &str = "truncated";

/// The tool.
pub struct PreviewUrl;

/// Fetch and preview a URL for evaluation. Does NOT ingest.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// URL to preview
    pub url: String,
    /// Username who shared the URL
    #[serde(default)]
    pub submitted_by: Option<String>,
    /// Channel: telegram, discord, or api (default: api)
    #[serde(default)]
    #[schemars(extend("default" = "api"))]
    pub submitted_via: Option<String>,
}

/// What may be asked over HTTP.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// URL to preview
    pub url: String,
    /// Who shared it
    #[serde(default)]
    pub submitted_by: Option<String>,
    /// Where it was shared
    #[serde(default)]
    #[schemars(with = "String")]
    pub submitted_via: Option<String>,
    /// What was said with it; taken, and not looked at
    #[serde(default)]
    pub submission_message: Option<String>,
}

impl From<Input> for Request {
    fn from(input: Input) -> Self {
        Self {
            url: input.url,
            submitted_by: input.submitted_by,
            // Other servers have another default than the contract's.
            submitted_via: input.submitted_via.or_else(|| Some("api".to_owned())),
            submission_message: None,
        }
    }
}

/// Title, content summary, detected entities, safety check.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    /// The page
    Page(Box<Page>),
    /// It is in the graph already
    Ingested {
        /// Always true
        already_ingested: bool,
        /// Its number
        submission_id: u64,
        /// Its title
        title: Option<String>,
        /// What it is called
        rid: String,
        /// The same in words
        message: &'static str,
    },
}

/// A page at first sight.
#[derive(Serialize, JsonSchema)]
pub struct Page {
    url: String,
    rid: String,
    domain: String,
    title: Option<String>,
    description: Option<String>,
    content_summary: String,
    content_hash: String,
    word_count: usize,
    /// How the text was made of what was fetched: `html`, `text` or `pdf`
    rendered_with: &'static str,
    metadata: Metadata,
    matching_entities: Vec<Matching>,
    /// Why only a part of the page was read, if so
    fetch_error: Option<String>,
    /// Absent where another server answers that does not tell
    #[serde(skip_serializing_if = "Option::is_none")]
    safety: Option<Safety>,
    /// What was said of it by `/web/evaluate`
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluation: Option<Evaluation>,
    /// Why entities may be missing here
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Evaluation {
    decision: Option<String>,
    relevance_score: Option<f64>,
    relevance_reasoning: Option<String>,
    bioregional_tags: Vec<String>,
}

impl From<PageEvaluation> for Evaluation {
    fn from(it: PageEvaluation) -> Self {
        Self {
            decision: it.decision,
            relevance_score: it.relevance_score,
            relevance_reasoning: it.relevance_reasoning,
            bioregional_tags: it.bioregional_tags,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Metadata {
    title: Option<String>,
    description: Option<String>,
    keywords: Vec<String>,
    author: Option<String>,
    published_date: Option<String>,
    og_image: Option<String>,
    site_name: Option<String>,
}

impl From<PageMetadata> for Metadata {
    fn from(it: PageMetadata) -> Self {
        Self {
            title: it.title,
            description: it.description,
            keywords: it.keywords,
            author: it.author,
            published_date: it.published_date,
            og_image: it.og_image,
            site_name: it.site_name,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Matching {
    name: String,
    uri: String,
    r#type: String,
    context: String,
}

impl From<MatchedEntity> for Matching {
    fn from(it: MatchedEntity) -> Self {
        Self {
            name: it.name,
            uri: it.uri,
            r#type: it.kind,
            context: it.context,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Safety {
    checked_ip: String,
    redirects: Vec<String>,
    flags: Vec<String>,
}

impl From<PagePreview> for Page {
    fn from(it: PagePreview) -> Self {
        Self {
            url: it.url,
            rid: it.rid,
            domain: it.domain,
            title: it.metadata.title.clone(),
            description: it.metadata.description.clone(),
            content_summary: it.content_summary,
            content_hash: it.content_hash,
            word_count: it.word_count,
            rendered_with: it.rendered_with,
            metadata: it.metadata.into(),
            matching_entities: it
                .matching_entities
                .into_iter()
                .map(Matching::from)
                .collect(),
            fetch_error: it.safety.flags.iter().any(|it| it == TRUNCATED).then(|| {
                "the end of the page was not read: it is too large or nested too deeply".to_owned()
            }),
            evaluation: it.evaluation.map(Evaluation::from),
            warnings: Vec::new(),
            safety: Some(Safety {
                checked_ip: it.safety.checked_ip,
                redirects: it.safety.redirects,
                flags: it.safety.flags,
            }),
        }
    }
}

/// Fetches a page and shows it.
pub fn answer(engine: &Engine, caller: &Caller, request: Request) -> Result<Output, Refusal> {
    let request = PreviewRequest {
        url: request.url,
        submitted_by: request.submitted_by,
        submitted_via: request.submitted_via,
    };
    Ok(match engine.koi().preview_page(caller, &request)? {
        Previewed::Page(page) => {
            let mut page = Page::from(*page);
            page.warnings = engine.koi().entity_warnings(caller);
            Output::Page(Box::new(page))
        }
        Previewed::Ingested {
            submission_id,
            title,
            rid,
        } => Output::Ingested {
            already_ingested: true,
            submission_id,
            title,
            rid,
            message: "This URL has already been ingested into the knowledge graph.",
        },
    })
}

impl Tool for PreviewUrl {
    const NAME: &'static str = "preview_url";
    const TITLE: &'static str = "Preview a web page";
    const TOOLSET: Toolset = Toolset::Koi;
    const EFFECT: Effect = Effect::Fetch;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "An address that is not of the public internet",
        input: r#"{"url": "http://10.0.0.1/"}"#,
        output: "Blocked private IP: 10.0.0.1",
    }];
    type Input = Input;
    type Output = Output;
    const API: Option<Api<Input>> = Some(Api {
        routes: &[Route {
            verb: Verb::Post,
            path: "/web/preview",
            summary: "Fetches a page and shows it",
            tool: Self::NAME,
            fixed: &[],
            place: Place::Body,
            schema: api::fields::<Request>,
            answer: |engine, caller, request| api::via(engine, caller, request, answer),
        }],
        request: |input| api::written(&Request::from(input)),
        complete: api::as_it_is,
    });

    fn call(ctx: &Call<'_>, input: Input) -> Result<Output> {
        Ok(answer(ctx.engine, ctx.caller, input.into())?)
    }
}
