//! Extracts the entities and relationships that a text states, by rules.
//!
//! Three things are found: names that are already known, names whose own words give their type (`Dr.
//! Anjali Rao`, `Salish Stewardship Society`), and relationships: two names in one sentence with
//! words between them that mean a predicate. Rules prefer to miss something over claiming what is
//! unclear. A text that tells the reader what to do is treated as any other text.

mod cues;
mod patterns;
mod sentences;

use crate::mentions::{Mentions, context};
use crate::ontology::Ontology;
use kenning_text::fold;
use kenning_text::line::one_line;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Confidence in a name that is already known.
const KNOWN: f64 = 0.95;
/// Confidence in a relationship whose ends are both known.
const STATED: f64 = 0.8;
/// Confidence in a relationship that a list implies: `A and B founded C`.
const JOINED: f64 = 0.7;
/// At most this many names of one list get the same relationship.
const JOINED_MAX: usize = 8;

/// An entity whose name to look for.
#[derive(Clone, Copy, Debug)]
pub struct KnownName<'a> {
    /// A number that the caller chose.
    pub id: u32,
    /// One of its names; an entity may be listed several times, once for each name.
    pub name: &'a str,
    /// Its type.
    pub kind: &'a str,
}

/// An entity that a text is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its name as the text first says it.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Its number, if it is known.
    pub id: Option<u32>,
    /// How sure it is that this is an entity, and of this type.
    pub confidence: f64,
    /// How often it is named.
    pub n_mentions: u32,
    /// The words around its first mention.
    pub context: String,
}

/// A relationship that a text states between two of the entities found.
#[derive(Clone, Debug, PartialEq)]
pub struct Relationship {
    /// The index of the subject in [`Extraction::entities`].
    pub subject: usize,
    /// The predicate.
    pub predicate: &'static str,
    /// The index of the object.
    pub object: usize,
    /// How sure it is.
    pub confidence: f64,
    /// The sentence that states it.
    pub sentence: String,
}

/// What a text states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// Entities, in the order in which they are first named.
    pub entities: Vec<Found>,
    /// Relationships, in the order in which they are stated, each once.
    pub relationships: Vec<Relationship>,
}

/// The known names, prepared once for many texts.
#[derive(Debug)]
pub struct Extractor<'a> {
    ontology: &'a Ontology,
    mentions: Mentions,
    kinds: HashMap<u32, &'a str>,
}

/// A name that was found, before it is matched with an entity.
struct Name {
    range: Range<usize>,
    kind: String,
    id: Option<u32>,
    confidence: f64,
}

/// A name in a sentence.
struct Named {
    entity: usize,
    range: Range<usize>,
}

/// What was found so far.
#[derive(Default)]
struct Facts {
    extraction: Extraction,
    by_key: HashMap<(String, String), usize>,
    stated: HashSet<(usize, &'static str, usize)>,
}

impl<'a> Extractor<'a> {
    /// If several entities have a name, the first counts.
    #[must_use]
    pub fn new(ontology: &'a Ontology, known: &[KnownName<'a>]) -> Self {
        Self {
            ontology,
            mentions: Mentions::new(known.iter().map(|entity| (entity.id, entity.name))),
            kinds: known
                .iter()
                .map(|entity| (entity.id, entity.kind))
                .collect(),
        }
    }

    /// What a text states.
    #[must_use]
    pub fn extract(&self, text: &str) -> Extraction {
        let mut facts = Facts::default();
        for sentence in sentences::of(text) {
            let names = self.names_in(text, &sentence).into_iter();
            let named: Vec<Named> = names
                .map(|name| Named {
                    range: name.range.clone(),
                    entity: facts.count_mention(text, name),
                })
                .collect();
            self.relate(text, &sentence, &named, &mut facts);
        }
        facts.extraction
    }

    /// The names of a sentence in their order: known ones, and between them those whose words give
    /// their type.
    fn names_in(&self, text: &str, sentence: &Range<usize>) -> Vec<Name> {
        let within = |range: Range<usize>| sentence.start + range.start..sentence.start + range.end;
        let mut out = Vec::new();
        let mut taken = Vec::new();
        for mention in self.mentions.find(&text[sentence.clone()]) {
            taken.push(mention.range.clone());
            let Some(&id) = mention.ids.first() else {
                continue;
            };
            let kind = self.kinds.get(&id).copied().unwrap_or_default();
            let kind = self.ontology.kind(kind).map_or(kind, |it| it.key.as_str());
            out.push(Name {
                range: within(mention.range),
                kind: kind.to_owned(),
                id: Some(id),
                confidence: KNOWN,
            });
        }
        for (range, kind, confidence) in patterns::find(&text[sentence.clone()], &taken) {
            out.push(Name {
                range: within(range),
                kind: kind.to_owned(),
                id: None,
                confidence,
            });
        }
        out.sort_by_key(|it| it.range.start);
        out
    }

    fn relate(&self, text: &str, sentence: &Range<usize>, named: &[Named], out: &mut Facts) {
        for at in 1..named.len() {
            let (a, b) = (&named[at - 1], &named[at]);
            let (kind_a, kind_b) = (out.kind(a), out.kind(b));
            let between = &text[a.range.end..b.range.start];
            let stated = cues::predicate_between(self.ontology, kind_a, between, kind_b);
            let Some((predicate, is_swapped)) = stated else {
                continue;
            };
            // `A and B founded C` states it of both, and so does `C was founded by A and B`.
            let lefts = joined(text, named[..at].iter().rev(), |it| out.kind(it) == kind_a);
            let rights = joined(text, named[at..].iter(), |it| out.kind(it) == kind_b);
            for (i, &left) in lefts.iter().enumerate() {
                for (j, &right) in rights.iter().enumerate() {
                    let (subject, object) = if is_swapped {
                        (right, left)
                    } else {
                        (left, right)
                    };
                    let sure = if i + j == 0 { STATED } else { JOINED };
                    let sentence = text[sentence.clone()].trim();
                    out.add_relationship((subject, predicate, object), sure, sentence);
                }
            }
        }
    }
}

/// The first of some names, and those of the same type that follow it in one list.
fn joined<'n>(
    text: &str,
    names: impl Iterator<Item = &'n Named>,
    is_alike: impl Fn(&Named) -> bool,
) -> Vec<usize> {
    let mut out: Vec<&Named> = Vec::new();
    for it in names.take(JOINED_MAX) {
        if let Some(last) = out.last() {
            let gap = if last.range.end <= it.range.start {
                &text[last.range.end..it.range.start]
            } else {
                &text[it.range.end..last.range.start]
            };
            if !cues::joins(gap) || !is_alike(it) {
                break;
            }
        }
        out.push(it);
    }
    out.into_iter().map(|it| it.entity).collect()
}

impl Facts {
    /// The number of an entity; counts one more mention of it.
    fn count_mention(&mut self, text: &str, name: Name) -> usize {
        let written = &text[name.range.clone()];
        let key = match name.id {
            Some(id) => (id.to_string(), String::new()),
            None => (fold::name(written), name.kind.clone()),
        };
        let entities = &mut self.extraction.entities;
        let entity = *self.by_key.entry(key).or_insert_with(|| {
            entities.push(Found {
                name: one_line(written),
                kind: name.kind,
                id: name.id,
                confidence: name.confidence,
                n_mentions: 0,
                context: context(text, &name.range),
            });
            entities.len() - 1
        });
        entities[entity].n_mentions += 1;
        entity
    }

    fn kind(&self, named: &Named) -> &str {
        &self.extraction.entities[named.entity].kind
    }

    /// Adds a relationship that was not stated before.
    fn add_relationship(&mut self, fact: (usize, &'static str, usize), sure: f64, sentence: &str) {
        let (subject, predicate, object) = fact;
        if subject == object || !self.stated.insert(fact) {
            return;
        }
        let entities = &self.extraction.entities;
        let least = entities[subject]
            .confidence
            .min(entities[object].confidence);
        self.extraction.relationships.push(Relationship {
            subject,
            predicate,
            object,
            confidence: sure * least,
            sentence: sentence.to_owned(),
        });
    }
}
