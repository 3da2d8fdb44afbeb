//! Finds out which entity a label means.
//!
//! Tiers are tried in order, the most reliable first, and the first that finds anything answers: the
//! name, an alias, the entities mentioned beside it, its letters, its sound, its meaning. What is
//! found is ranked; nothing is stored. An unknown label gets the URI that it would have, separate
//! from the candidates, so that nobody takes it for an existing entity.

use crate::likeness::{Because, By, contradicts, could_be_called, likeness, may_mean_the_same};
use crate::names::{alias_key, entity_uri, normalized};
use crate::ontology::{EntityType, Ontology};
use kenning_core::Error;
use kenning_text::similarity::jaro_winkler;
use kenning_text::sound::phonetic_key;
use std::cmp::Ordering;

/// At most this many candidates are returned unless the caller says otherwise.
pub const LIMIT: usize = 5;
const LIMIT_MAX: usize = 100;
/// At most this many similar names are compared: a backend ranks them in its own way.
const SIMILAR_MAX: usize = 50;
/// At most this many characters of a label: a longer one is a text.
const LABEL_CHARS_MAX: usize = 500;
/// A shorter name is more often ambiguous.
const SHORT_CHARS: usize = 8;
/// A short name must be this much nearer in meaning.
const SHORT_MEANING: f64 = 0.03;
/// The context decides from this score on if the sound agrees …
const COMPANY_HEARD_MIN: f64 = 0.6;
/// … and from here on if it does not.
const COMPANY_MIN: f64 = 0.75;
/// The context is never as reliable as a name.
const COMPANY_MAX: f64 = 0.99;

/// An entity as resolution needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its URI.
    pub uri: String,
    /// By its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Its other names.
    pub aliases: Vec<String>,
}

/// An entity that occurs in the same context as the label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Companion {
    /// The entity.
    pub entity: Entity,
    /// Documents that mention both it and somebody from the context.
    pub n_documents: u32,
    /// It belongs to the project of the context.
    pub is_of_project: bool,
    /// It belongs to an organization of the context.
    pub is_of_organization: bool,
    /// It is related to somebody in the context.
    pub is_near: bool,
    /// It is related to anything at all.
    pub has_relations: bool,
}

/// The context of a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// People in the context.
    pub people: Vec<String>,
    /// The project of the context.
    pub project: Option<String>,
    /// Organizations in the context.
    pub organizations: Vec<String>,
}

/// Where candidates come from. A source may propose too many, but none that does not exist.
pub trait Candidates {
    /// Those whose [`normalized`] name is this.
    fn exact(&self, key: &str) -> Result<Vec<Entity>, Error>;
    /// Those that have an alias with this [`alias_key`].
    fn alias(&self, key: &str) -> Result<Vec<Entity>, Error>;
    /// Those whose name, or an alias, is spelled somewhat like this.
    fn similar(&self, name: &str, limit: usize) -> Result<Vec<Entity>, Error>;
    /// Those whose name has this [`phonetic_key`].
    fn phonetic(&self, key: &str) -> Result<Vec<Entity>, Error>;
    /// Those whose name has a similar meaning, with the cosine; none without an embedding model.
    fn semantic(&self, name: &str) -> Result<Vec<(Entity, f64)>, Error>;

    /// Those that occur in this context.
    fn in_company(&self, _context: &Context) -> Result<Vec<Companion>, Error> {
        Ok(Vec::new())
    }

    /// Whether somebody said that a label ([`normalized`]) does not mean this entity.
    fn is_vetoed(&self, _key: &str, _uri: &str) -> Result<bool, Error> {
        Ok(false)
    }
}

/// How an entity was found, the most reliable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The tier's name.
    Exact,
    /// By an alias.
    Alias,
    /// By the entities around the label.
    Contextual,
    /// By the letters of a name.
    Fuzzy,
    /// By the sound of a name.
    Phonetic,
    /// By the meaning of a name.
    Semantic,
}

impl Tier {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Alias => "alias",
            Self::Contextual => "contextual",
            Self::Fuzzy => "fuzzy",
            Self::Phonetic => "phonetic",
            Self::Semantic => "semantic",
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Query<'a> {
    /// The label.
    pub label: &'a str,
    /// Its type, if the caller knows.
    pub kind: Option<&'a str>,
    /// The context of the label.
    pub context: Context,
    /// How many candidates, at most; 0 means [`LIMIT`].
    pub limit: usize,
}

/// An entity that the label may mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The entity.
    pub entity: Entity,
    /// How sure, from 0 to 1.
    pub confidence: f64,
    /// How it was found.
    pub tier: Tier,
    /// The label, where it is not the entity's name.
    pub merged_with: Option<String>,
    /// How the label differs from the entity's names.
    pub because: Because,
    is_sure: bool,
}

impl Candidate {
    /// Whether a caller that stores something may take the label for this entity without asking.
    ///
    /// True where the label is the entity's name or alias, or differs only in spelling or sound.
    /// False where the label fits several names: an initial fits John and Joan (`J. Smith`), a short
    /// name is one of two (`Chris`), a missing middle name may be any. Context and meaning are never
    /// sure.
    #[must_use]
    pub const fn is_sure(&self) -> bool {
        self.is_sure
    }
}

/// The entity that an unknown label would become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The URI that it would have.
    pub uri: String,
    /// The name: the label itself.
    pub name: String,
    /// The type, empty if nobody said one.
    pub kind: String,
}

/// What a label means.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// The candidates, the most likely first.
    pub candidates: Vec<Candidate>,
    /// What the label would become if it means no known entity.
    pub proposed: Option<Proposed>,
}

impl Resolution {
    /// Whether the label means no known entity.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.candidates.is_empty()
    }

    /// The most likely candidate, unless another is as likely: then choosing one would be a guess.
    #[must_use]
    pub fn chosen(&self) -> Option<&Candidate> {
        let (first, rest) = self.candidates.split_first()?;
        let is_tie = |it: &Candidate| first.confidence - it.confidence < 1e-9;
        (!rest.first().is_some_and(is_tie)).then_some(first)
    }
}

/// Finds the entities that a label may mean.
///
/// # Errors
/// Invalid input if the label is empty, too large if it is a text; otherwise errors of the
/// candidates.
pub fn resolve(
    ontology: &Ontology,
    known: &dyn Candidates,
    query: &Query<'_>,
) -> Result<Resolution, Error> {
    let label = query.label.trim();
    if label.is_empty() {
        return Err(Error::invalid("`label` is empty").hint("give the name to resolve"));
    }
    let n_chars = label.chars().count();
    if n_chars > LABEL_CHARS_MAX {
        return Err(
            Error::too_large(format!("`label` has {n_chars} characters"))
                .hint(format!("the limit is {LABEL_CHARS_MAX}")),
        );
    }
    let hint = query.kind.map(str::trim).filter(|it| !it.is_empty());
    let asked = Asked {
        label,
        key: normalized(label),
        hint,
        kind: hint
            .and_then(|it| ontology.kind(it))
            .unwrap_or(ontology.unknown()),
        ontology,
        known,
    };
    let mut candidates = Vec::new();
    for tier in TIERS {
        for found in tier(&asked, query)? {
            asked.admit(&mut candidates, found)?;
        }
        if !candidates.is_empty() {
            break;
        }
    }
    candidates.sort_by(ranking);
    let limit = if query.limit == 0 { LIMIT } else { query.limit };
    candidates.truncate(limit.min(LIMIT_MAX));
    let proposed = candidates.is_empty().then(|| asked.proposed());
    Ok(Resolution {
        candidates,
        proposed,
    })
}

/// The URI and the type that a new entity of this name gets.
#[must_use]
pub fn proposed(ontology: &Ontology, label: &str, hint: Option<&str>) -> Proposed {
    let hint = hint.map_or("", str::trim);
    let kind = ontology.kind(hint).map_or(hint, |it| it.key.as_str());
    let name = label.trim();
    Proposed {
        uri: entity_uri(name, kind),
        name: name.to_owned(),
        kind: kind.to_owned(),
    }
}

struct Hit {
    entity: Entity,
    confidence: f64,
    tier: Tier,
    because: Because,
    is_sure: bool,
}

type Found = Vec<Hit>;

/// Candidates that have the label as a name.
fn as_candidates(found: Vec<Entity>, tier: Tier, because: Because) -> Found {
    let hit = |entity| Hit {
        entity,
        confidence: 1.0,
        tier,
        because,
        is_sure: true,
    };
    found.into_iter().map(hit).collect()
}

type Ask = fn(&Asked<'_>, &Query<'_>) -> Result<Found, Error>;

/// In the order in which they are tried.
const TIERS: &[Ask] = &[
    |asked, _| asked.exact(),
    |asked, _| asked.alias(),
    |asked, query| asked.contextual(&query.context),
    |asked, _| asked.fuzzy(),
    |asked, _| asked.phonetic(),
    |asked, _| asked.semantic(),
];

struct Asked<'a> {
    label: &'a str,
    key: String,
    hint: Option<&'a str>,
    /// The type whose rules apply.
    kind: &'a EntityType,
    ontology: &'a Ontology,
    known: &'a dyn Candidates,
}

impl Asked<'_> {
    fn exact(&self) -> Result<Found, Error> {
        let found = self.known.exact(&self.key)?;
        Ok(as_candidates(found, Tier::Exact, Because::Name))
    }

    fn alias(&self) -> Result<Found, Error> {
        let key = alias_key(self.label);
        let mut found = self.known.alias(&key)?;
        if key != self.key {
            found.extend(self.known.alias(&self.key)?);
        }
        Ok(as_candidates(found, Tier::Alias, Because::Alias))
    }

    fn contextual(&self, context: &Context) -> Result<Found, Error> {
        let n_people = u32::try_from(context.people.len()).unwrap_or(u32::MAX);
        if n_people == 0 || n_people < self.kind.min_context_people {
            return Ok(Vec::new());
        }
        let found = self.known.in_company(context)?;
        let scored = found.into_iter().filter_map(|candidate| {
            let confidence = self.in_company(&candidate)?;
            Some(Hit {
                entity: candidate.entity,
                confidence,
                tier: Tier::Contextual,
                because: Because::Company,
                is_sure: false,
            })
        });
        Ok(scored.collect())
    }

    fn in_company(&self, it: &Companion) -> Option<f64> {
        if !self.could_mean(&it.entity) {
            return None;
        }
        let name = self.comparable(&it.entity.name);
        let stopwords = &self.kind.phonetic_stopwords;
        let heard = phonetic_key(self.label, stopwords);
        let is_heard = !heard.is_empty() && heard == phonetic_key(&it.entity.name, stopwords);
        let is_short = self.label.chars().count() < SHORT_CHARS;
        if is_short && !is_heard {
            return None;
        }
        let is_relevant = it.is_of_project || it.is_of_organization || it.is_near;
        let bonus = |holds: bool, by: f64| if holds { by } else { 0.0 };
        let score = 0.5 * jaro_winkler(&self.key, &name)
            + bonus(is_heard, 0.2)
            + 0.3 * (f64::from(it.n_documents) / 3.0).min(1.0)
            + bonus(it.is_of_project, 0.3)
            + bonus(it.is_of_organization, 0.2)
            + bonus(it.is_near, 0.1)
            - bonus(it.has_relations && !is_relevant, 0.15);
        let least = if is_heard {
            COMPANY_HEARD_MIN
        } else {
            COMPANY_MIN
        };
        (score >= least).then_some(score.min(COMPANY_MAX))
    }

    /// Whether one of its names could be what the label says: the context only chooses among such.
    fn could_mean(&self, entity: &Entity) -> bool {
        let kind = self.ontology.kind(&entity.kind).unwrap_or(self.kind);
        let mut names = std::iter::once(&entity.name).chain(&entity.aliases);
        names.any(|name| could_be_called(kind, self.label, name))
    }

    /// The part of a name that a label is compared with: a single word is compared with the first
    /// word.
    fn comparable(&self, name: &str) -> String {
        let name = normalized(name);
        if self.key.contains(' ') {
            return name;
        }
        name.split(' ').next().unwrap_or_default().to_owned()
    }

    fn fuzzy(&self) -> Result<Found, Error> {
        let found = self.known.similar(self.label, SIMILAR_MAX)?;
        Ok(self.alike(found, By::Letters, Tier::Fuzzy))
    }

    fn phonetic(&self) -> Result<Found, Error> {
        if !self.kind.phonetic_matching {
            return Ok(Vec::new());
        }
        let key = phonetic_key(self.label, &self.kind.phonetic_stopwords);
        if key.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.known.phonetic(&key)?;
        let mut alike = self.alike(found.clone(), By::Sound, Tier::Phonetic);
        // A backend that ranks by letters may not have proposed names that sound the same.
        alike.extend(self.alike(found, By::Letters, Tier::Fuzzy));
        Ok(alike)
    }

    fn alike(&self, found: Vec<Entity>, by: By, tier: Tier) -> Found {
        let scored = found.into_iter().filter_map(|entity| {
            let mut names = std::iter::once(&entity.name).chain(&entity.aliases);
            let likenesses = names
                .clone()
                .filter_map(|name| likeness(self.kind, self.label, name));
            let found: Vec<_> = likenesses.filter(|it| it.by == by).collect();
            let is_sure = found.iter().any(|it| it.is_sure);
            if !is_sure && names.any(|name| contradicts(self.kind, self.label, name)) {
                return None;
            }
            let best = found
                .iter()
                .max_by(|a, b| a.confidence.total_cmp(&b.confidence))?;
            Some(Hit {
                confidence: best.confidence,
                tier,
                because: best.because,
                is_sure,
                entity,
            })
        });
        scored.collect()
    }

    fn semantic(&self) -> Result<Found, Error> {
        let is_short = self.label.chars().count() < SHORT_CHARS;
        let least = self.kind.semantic_threshold + if is_short { SHORT_MEANING } else { 0.0 };
        let found = self.known.semantic(self.label)?;
        let scored = found.into_iter().filter_map(|(entity, cosine)| {
            let is_near = cosine > least && may_mean_the_same(self.kind, self.label, &entity.name);
            is_near.then_some(Hit {
                entity,
                confidence: cosine.min(1.0),
                tier: Tier::Semantic,
                because: Because::Meaning,
                is_sure: false,
            })
        });
        Ok(scored.collect())
    }

    /// Adds a candidate that has the requested type and no veto, once.
    fn admit(&self, candidates: &mut Vec<Candidate>, found: Hit) -> Result<(), Error> {
        let Hit {
            entity,
            confidence,
            tier,
            because,
            is_sure,
        } = found;
        if !self.is_of_kind(&entity.kind) || self.known.is_vetoed(&self.key, &entity.uri)? {
            return Ok(());
        }
        if let Some(old) = candidates.iter_mut().find(|it| it.entity.uri == entity.uri) {
            old.is_sure |= is_sure;
            if confidence > old.confidence {
                (old.confidence, old.tier) = (confidence, tier);
                old.because = because;
            }
            return Ok(());
        }
        let merged_with = (entity.name != self.label).then(|| self.label.to_owned());
        candidates.push(Candidate {
            entity,
            confidence,
            tier,
            merged_with,
            because,
            is_sure,
        });
        Ok(())
    }

    fn is_of_kind(&self, kind: &str) -> bool {
        let Some(hint) = self.hint else { return true };
        match (self.ontology.kind(hint), self.ontology.kind(kind)) {
            (Some(hint), Some(kind)) => hint.key == kind.key,
            (None, None) => hint.eq_ignore_ascii_case(kind),
            _ => false,
        }
    }

    fn proposed(&self) -> Proposed {
        proposed(self.ontology, self.label, self.hint)
    }
}

/// The most likely first; equally likely ones in an order that does not depend on their source.
fn ranking(a: &Candidate, b: &Candidate) -> Ordering {
    b.confidence
        .total_cmp(&a.confidence)
        .then(a.tier.cmp(&b.tier))
        .then_with(|| a.entity.name.cmp(&b.entity.name))
        .then_with(|| a.entity.uri.cmp(&b.entity.uri))
}
