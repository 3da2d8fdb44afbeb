//! A query in the numbers of one index: its tokens, its literal terms, and what each of them weighs.

use crate::index::Index;
use crate::tokens::{self, Word};
use kenning_embed::{Table, TokenId};

/// Words of a query that count: nobody asks in more, and each is compared with every candidate's.
const QUERY_TOKENS_MAX: usize = 128;
const QUERY_BYTES_MAX: usize = 4_096;

/// What a part of the query counts for in a passage where it does not stand literally: one with a
/// digit, and one that the table has only in pieces.
pub(super) const NUMBER: f64 = 0.1;
const IN_PIECES: f64 = 0.8;

/// The length of a row that a literal term stands for.
const LITERAL_LENGTH: f64 = 2.5;
/// Words with shorter rows are filler: training gave them short ones.
const FILLER_LENGTH: f64 = 1.45;
/// How much content a literal term is.
const LITERAL_CONTENT: f64 = 0.4;
/// A query with less content asks for nothing.
const CONTENT_MIN: f64 = 0.05;

/// Words of conversation, which say nothing about a subject.
const TALK: &[&str] = &[
    "continue", "proceed", "repeat", "start", "stop", "wait", "hold", "skip", "undo", "check",
    "change", "show", "rest", "job", "happened", "morning", "mind", "nope", "sure", "perfect",
    "hello", "hi", "hey", "bye",
    // The same in other languages, where the table has only pieces of them.
    "weiter", "danke", "merci", "beaucoup", "gracias",
];

/// Pairs of characters in which Chinese and Korean ask, and endings of verbs: they are in every
/// question and tell nothing about its subject.
const ASKING: &[&str] = &[
    "什么", "怎么", "多少", "多久", "多长", "哪里", "在哪", "是谁", "几点", "何时", "为什", "么样",
    "어디", "언제", "누구", "무엇", "어떻", "떻게", "있나", "나요", "하나", "니다", "습니", "합니",
    "됩니",
];

/// The number of a term in an index; `None` where no passage has it.
pub(super) type Term = Option<usize>;

/// A token of the query that the table knows.
#[derive(Clone, Debug)]
pub(super) struct Soft {
    pub(super) id: TokenId,
    /// The part of the query that it comes from, as a term of the full text.
    pub(super) term: Term,
    /// Which words are written without a space between them.
    pub(super) group: usize,
    /// What it counts for in a passage where its part does not stand literally.
    pub(super) share: f64,
}

/// A query in the numbers of one index.
pub(super) struct Parsed {
    pub(super) soft: Vec<Soft>,
    /// Terms that the table can give no meaning: they stand in a passage, or they do not.
    pub(super) literals: Vec<Term>,
    /// How much each of `soft` and then of `literals` tells.
    pub(super) weight: Vec<f64>,
    /// The sum of all weights, never 0.
    pub(super) weight_sum: f64,
    /// The share of the literals in it.
    pub(super) foreign: f64,
    /// The numbers of each group that has some.
    pub(super) numbers: Vec<(usize, Vec<Term>)>,
    /// Identifiers, written without a space and with a number in them (`OPS-778`): their terms.
    pub(super) identifiers: Vec<Vec<Term>>,
    /// Whether it has words that tell what it is about.
    pub(super) has_content: bool,
    pub(super) vector: Vec<f32>,
}

impl Parsed {
    pub(super) fn new(index: &Index, text: &str) -> Self {
        let number = |term: &str| index.term(term).map(|it| it.0);
        let rarity = |term: &str| index.rarity(index.term(term).map_or(0, |it| it.1));
        let (mut soft, mut literals, mut literal_weight) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers: Vec<(usize, Vec<Term>)> = Vec::new();
        let mut groups: Vec<(usize, Vec<Term>, bool)> = Vec::new();
        let mut content = 0.0;
        for part in parts(index.table, beginning(text)) {
            content += part.content;
            let term = number(&part.term);
            match groups.last_mut().filter(|it| it.0 == part.group) {
                Some(known) => {
                    known.1.push(term);
                    known.2 |= part.has_digit;
                }
                None => groups.push((part.group, vec![term], part.has_digit)),
            }
            match part.kind {
                Kind::Literal(share) => {
                    literals.push(term);
                    literal_weight.push(share * LITERAL_LENGTH * rarity(&part.term));
                }
                Kind::Soft(ids, share) => {
                    let tokens = ids.into_iter().map(|id| Soft {
                        id,
                        term,
                        group: part.group,
                        share,
                    });
                    soft.extend(tokens);
                }
            }
            if part.has_digit {
                match numbers.iter_mut().find(|it| it.0 == part.group) {
                    Some(known) => known.1.push(term),
                    None => numbers.push((part.group, vec![term])),
                }
            }
        }
        soft.truncate(QUERY_TOKENS_MAX);
        literals.truncate(QUERY_TOKENS_MAX);
        literal_weight.truncate(QUERY_TOKENS_MAX);
        let rarity: Vec<f64> = soft.iter().map(|it| index.token_rarity(it.id)).collect();
        let ids: Vec<TokenId> = soft.iter().map(|it| it.id).collect();
        let roots: Vec<f32> = rarity.iter().map(|it| it.sqrt() as f32).collect();
        let vector = index.table.query(&ids, &roots).to_vec();
        let of_table = ids.iter().zip(&rarity);
        let of_table = of_table.map(|(&id, rarity)| rarity * f64::from(index.table.norm(id)));
        let foreign: f64 = literal_weight.iter().sum();
        let weight: Vec<f64> = of_table.chain(literal_weight).collect();
        let weight_sum = weight.iter().sum::<f64>().max(1e-9);
        Self {
            soft,
            literals,
            weight,
            weight_sum,
            foreign: foreign / weight_sum,
            numbers,
            identifiers: groups
                .into_iter()
                .filter(|(_, terms, has_digit)| *has_digit && terms.len() > 1)
                .map(|(_, terms, _)| terms)
                .collect(),
            has_content: content >= CONTENT_MIN,
            vector,
        }
    }

    /// Every term that would have to stand in a passage for it to have the query literally.
    pub(super) fn terms(&self) -> impl Iterator<Item = Term> + '_ {
        let soft = self.soft.iter().map(|it| it.term);
        soft.chain(self.literals.iter().copied())
    }

    /// Whether there is nothing in it that a passage could have.
    pub(super) fn is_empty(&self) -> bool {
        self.soft.is_empty() && self.literals.is_empty()
    }
}

/// Whether a text has words that tell what it is about. `go on`, `thanks` and `run it again` have none.
pub fn asks_for_something(text: &str) -> bool {
    let parts = parts(Table::built_in(), beginning(text));
    parts.iter().map(|part| part.content).sum::<f64>() >= CONTENT_MIN
}

/// A part of a query, before it meets an index.
struct Part {
    term: String,
    group: usize,
    has_digit: bool,
    content: f64,
    kind: Kind,
}

enum Kind {
    /// With its share of the weight.
    Literal(f64),
    /// With its tokens, and what they count for where the part does not stand literally.
    Soft(Vec<TokenId>, f64),
}

fn parts(table: &Table, text: &str) -> Vec<Part> {
    let words = tokens::words(text);
    let mut out = Vec::new();
    for word in words.iter().filter(|word| !word.is_symbol) {
        if tokens::is_literal(&word.text) {
            let terms = tokens::literals(&word.text).into_iter();
            out.extend(terms.map(|term| literal(term, word, false)));
            continue;
        }
        for (part, ids) in table.parts(&word.text) {
            let term = tokens::stem(part);
            let has_digit = part.chars().any(char::is_numeric);
            if ids.is_empty() {
                out.push(literal(term, word, has_digit));
                continue;
            }
            let share = match (has_digit, ids.len()) {
                (true, _) => NUMBER,
                (false, 2..) => IN_PIECES,
                _ => 1.0,
            };
            let lengths = ids.iter().map(|&id| f64::from(table.norm(id)));
            let longest = lengths.fold(if share < 1.0 { LITERAL_LENGTH } else { 0.0 }, f64::max);
            let is_talk = TALK.contains(&tokens::folded(part).as_str());
            out.push(Part {
                term,
                group: word.group,
                has_digit,
                content: if is_talk {
                    0.0
                } else {
                    (longest - FILLER_LENGTH).max(0.0)
                },
                kind: Kind::Soft(ids, share),
            });
        }
    }
    if out.is_empty() {
        // Who asks for an emoji alone means the emoji.
        let symbols = words.iter().filter(|word| word.is_symbol);
        out.extend(symbols.map(|word| literal(word.text.clone(), word, false)));
    }
    out
}

fn literal(term: String, word: &Word, has_digit: bool) -> Part {
    let hiragana = term
        .chars()
        .take(2)
        .filter(|c| matches!(c, '\u{3040}'..='\u{309f}'));
    let share = match hiragana.count() {
        _ if ASKING.contains(&term.as_str()) => 0.1,
        0 => 1.0,
        1 => 0.4,
        _ => 0.1,
    };
    let number = if has_digit {
        LITERAL_LENGTH - FILLER_LENGTH
    } else {
        0.0
    };
    Part {
        term,
        group: word.group,
        has_digit,
        content: LITERAL_CONTENT * share + number,
        kind: Kind::Literal(share),
    }
}

/// As much of a query as counts.
pub(super) fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUERY_BYTES_MAX)]
}
