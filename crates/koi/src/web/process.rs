//! Extracts what a page states: with the operator's model, otherwise by rules.

use super::ingest::IngestRequest;
use super::matching::Matcher;
use super::model::{self, Question};
use super::pages::{self, Status, StoredPage, StoredText};
use super::{
    IngestedPage, Ingestion, WebEntity, WebFault, WebFaultKind, WebRelation, WebResult, address,
};
use crate::Koi;
use kenning_core::{Hash, Result};
use kenning_entities::extract::{Extractor, KnownName};
use kenning_entities::ontology::Ontology;
use kenning_kernel::{Caller, Scope};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// A longer name is a text.
pub(super) const NAME_CHARS_MAX: usize = 300;
/// At most this many characters of a description are kept.
pub(super) const TEXT_CHARS_MAX: usize = 2_000;
/// At most this many characters of a page are searched.
const PAGE_CHARS_MAX: usize = 200_000;
const SUMMARY_CHARS: usize = 500;
const TOPICS_MAX: usize = 10;
const HINTS_MAX: usize = 200;
/// How long a model may take, if the call has the time.
const MODEL_TIMEOUT: Duration = Duration::from_secs(120);
/// What the model is called where there is none.
pub(super) const NO_MODEL: &str = "none";
/// As the original says it: that key names a model, as `KENNING_MODEL_…` do.
const OFF: &str =
    "LLM enrichment not configured. Set LLM_ENRICHMENT_ENABLED=true and GEMINI_API_KEY.";

/// Which page, and how.
#[derive(Clone, Debug, Default)]
pub struct ProcessRequest {
    /// Its address.
    pub url: String,
    /// Names that may be in it.
    pub hint_entities: Vec<String>,
    /// Whether what is found goes into the graph at once.
    pub auto_ingest: bool,
}

/// An entity that a page is about.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtractedEntity {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// What is said of it.
    pub description: String,
    /// What else is said of it.
    pub fields: Map<String, Value>,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// Where the page names it.
    pub context: String,
}

/// A relationship that a page states.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtractedRelation {
    /// The subject.
    pub subject: String,
    /// The predicate.
    pub predicate: String,
    /// The object.
    pub object: String,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
}

/// What a page states.
#[derive(Clone, Debug)]
pub struct ProcessedPage {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// What it is about.
    pub summary: String,
    /// In a few words.
    pub topics: Vec<String>,
    /// The model that was asked; `none` where rules were.
    pub model_used: String,
    /// The entities in it.
    pub entities: Vec<ExtractedEntity>,
    /// The relationships in it.
    pub relationships: Vec<ExtractedRelation>,
    /// What became of it in the graph, if it was to.
    pub ingestion: Option<IngestedPage>,
}

/// What was made of a text.
pub(super) struct Extracted {
    pub(super) summary: String,
    pub(super) topics: Vec<String>,
    pub(super) entities: Vec<ExtractedEntity>,
    pub(super) relationships: Vec<ExtractedRelation>,
}

impl Koi {
    /// Says what a page states that was previewed.
    pub fn process_page(
        &self,
        caller: &Caller,
        request: &ProcessRequest,
    ) -> WebResult<ProcessedPage> {
        caller.principal.require(Scope::Fetch)?;
        let settings = self.web_settings()?;
        if !settings.is_enriching {
            return Err(WebFault::off(
                OFF,
                "set LLM_ENRICHMENT_ENABLED=true; rules need no model, and one is named by GEMINI_API_KEY \
                 or by KENNING_MODEL_ENDPOINT and KENNING_MODEL_NAME",
            ));
        }
        let url = address::normalize_url(&request.url)?;
        let space = &caller.principal.space;
        let known = self.kernel.log().read(space, |tx| {
            let page = pages::page(tx, &url)?;
            page.map(|it| Ok((it, pages::text(tx, &url)?))).transpose()
        })?;
        let Some((page, text)) = known else {
            let message = "URL not found. Preview it first with /web/preview.";
            return Err(WebFault::not_found(message));
        };
        self.follow_entities(caller)?;
        let (matcher, ontology) = self.kernel.log().read(space, |tx| {
            Ok((self.matcher(space, tx)?, self.ontology(space, tx)?))
        })?;
        let of = Material {
            page: &page,
            text: &text,
            ontology: &ontology,
            matcher: &matcher,
            hints: &request.hint_entities,
        };
        let (model_used, found) = self
            .extract(&of, caller.deadline)
            .map_err(|error| WebFault::new(WebFaultKind::Model, error))?;
        let mut processed = ProcessedPage {
            url,
            title: page.title.clone(),
            summary: found.summary,
            topics: found.topics,
            model_used,
            entities: found.entities,
            relationships: found.relationships,
            ingestion: None,
        };
        if request.auto_ingest && page.status != Status::Ingested {
            let found = all_of(
                &processed.url,
                &processed.entities,
                &processed.relationships,
            );
            let ingestion = self.ingest_page(caller, &found)?;
            if let Ingestion::Done(done) = ingestion {
                processed.ingestion = Some(*done);
            }
        }
        Ok(processed)
    }

    /// What a text states, and which model said so; `none` where rules did.
    pub(super) fn extract(
        &self,
        of: &Material<'_>,
        deadline: Instant,
    ) -> Result<(String, Extracted)> {
        let Some(model) = self.kernel.language_model()? else {
            return Ok((NO_MODEL.to_owned(), of.by_rules()));
        };
        let deadline = deadline.min(Instant::now() + MODEL_TIMEOUT);
        let question = of.question(self.page_fence());
        let found = model::ask(&model, &question, deadline)?;
        Ok((model.model.name().to_owned(), found))
    }

    /// A line that no page can know.
    fn page_fence(&self) -> String {
        let mut bytes = [0; 16];
        self.kernel.log().random().fill(&mut bytes);
        let name = Hash::of(&bytes).to_string();
        format!("PAGE-{}", name.get(..24).unwrap_or(&name))
    }
}

/// Everything that was found, to be ingested.
pub(super) fn all_of(
    url: &str,
    entities: &[ExtractedEntity],
    relationships: &[ExtractedRelation],
) -> IngestRequest {
    let entities = entities.iter().map(|it| WebEntity {
        name: it.name.clone(),
        kind: it.kind.clone(),
        mentions: Vec::new(),
        confidence: it.confidence,
        context: Some(&it.description)
            .filter(|it| !it.is_empty())
            .or(Some(&it.context))
            .cloned(),
    });
    let relationships = relationships.iter().map(|it| WebRelation {
        subject: it.subject.clone(),
        predicate: it.predicate.clone(),
        object: it.object.clone(),
        confidence: it.confidence,
    });
    IngestRequest {
        url: url.to_owned(),
        entities: entities.collect(),
        relationships: relationships.collect(),
        ..IngestRequest::default()
    }
}

/// What there is to go by.
pub(super) struct Material<'a> {
    pub(super) page: &'a StoredPage,
    pub(super) text: &'a StoredText,
    pub(super) ontology: &'a Ontology,
    pub(super) matcher: &'a Matcher,
    pub(super) hints: &'a [String],
}

impl<'a> Material<'a> {
    fn question(&self, fence: String) -> Question<'a> {
        let found = self.matcher.find(&self.text.text).into_iter();
        let hints = self.hints.iter().take(HINTS_MAX);
        let hints = hints.map(|it| (crate::inert::line(it, NAME_CHARS_MAX), "hint".to_owned()));
        Question {
            url: &self.page.url,
            title: self.page.shown_title(),
            text: &self.text.text,
            known: hints
                .chain(found.map(|(it, _)| (it.name.clone(), it.kind.clone())))
                .collect(),
            ontology: self.ontology,
            fence,
        }
    }

    pub(super) fn by_rules(&self) -> Extracted {
        let text: String = self.text.text.chars().take(PAGE_CHARS_MAX).collect();
        let found = self.matcher.find(&text);
        let mut known = Vec::new();
        for (id, (it, _)) in (0u32..).zip(&found) {
            let names = std::iter::once(&it.name).chain(&it.aliases);
            known.extend(names.map(|name| KnownName {
                id,
                name,
                kind: &it.kind,
            }));
        }
        let named: HashSet<String> = known.iter().map(|it| it.name.to_lowercase()).collect();
        let hints: Vec<String> = self
            .hints
            .iter()
            .take(HINTS_MAX)
            .map(|it| crate::inert::line(it, NAME_CHARS_MAX))
            .filter(|it| !it.is_empty() && !named.contains(&it.to_lowercase()))
            .collect();
        let after = u32::try_from(found.len()).unwrap_or(u32::MAX);
        for (id, name) in (after..).zip(&hints) {
            known.push(KnownName {
                id,
                name,
                kind: "Concept",
            });
        }
        let stated = Extractor::new(self.ontology, &known).extract(&text);
        let name = |id: Option<u32>, said: &str| {
            let known = id.and_then(|it| found.get(usize::try_from(it).ok()?));
            known.map_or_else(|| said.to_owned(), |(it, _)| it.name.clone())
        };
        let names: Vec<String> = stated
            .entities
            .iter()
            .map(|it| crate::inert::line(&name(it.id, &it.name), NAME_CHARS_MAX))
            .collect();
        let entities = stated.entities.iter().zip(&names).map(|(it, name)| {
            let kind = self.ontology.kind(&it.kind);
            ExtractedEntity {
                name: name.clone(),
                kind: kind.map_or("Concept", |it| it.key.as_str()).to_owned(),
                description: String::new(),
                fields: Map::new(),
                confidence: it.confidence,
                context: it.context.clone(),
            }
        });
        let relations = stated.relationships.iter().filter_map(|it| {
            Some(ExtractedRelation {
                subject: names.get(it.subject)?.clone(),
                predicate: it.predicate.to_owned(),
                object: names.get(it.object)?.clone(),
                confidence: it.confidence,
            })
        });
        Extracted {
            summary: self.summary(),
            topics: self.topics(),
            entities: entities.collect(),
            relationships: relations.collect(),
        }
    }

    /// What the page says that it is about, else how it begins.
    fn summary(&self) -> String {
        if let Some(said) = &self.page.metadata.description {
            return said.clone();
        }
        let text = &self.text.summary;
        let body = match text.strip_prefix("# ") {
            Some(rest) => rest.split_once('\n').map_or(rest, |it| it.1),
            None => text,
        };
        crate::inert::line(body, SUMMARY_CHARS)
    }

    fn topics(&self) -> Vec<String> {
        let keywords = self.page.metadata.keywords.iter();
        let judged = self.page.evaluation.iter();
        let tags = judged.flat_map(|it| &it.bioregional_tags);
        let mut topics: Vec<String> = Vec::new();
        for topic in tags.chain(keywords) {
            if topics.len() < TOPICS_MAX && !topics.contains(topic) {
                topics.push(topic.clone());
            }
        }
        topics
    }
}
