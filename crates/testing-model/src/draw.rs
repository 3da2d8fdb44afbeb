//! Random values: mostly plain ones that meet each other, sometimes the odd ones that break things.

use kenning_core::{Hash, Hlc, Kind, NodeId, SeededRandom};
use kenning_store::{EdgeFilter, NodeFilter, Passage, When};
use serde_json::{Map, Value, json};

/// Texts that somebody's code was once not ready for.
const ODD: &[&str] = &[
    "",
    "\0",
    "nul\0nul",
    "会議",
    "會議室",
    "🚀👩‍👩‍👧",
    "e\u{301}",
    "é",
    "É",
    "\u{feff}bom",
    "'; DROP TABLE nodes; --",
    "\\\"\n\r\t",
    "%_*",
    "\u{10ffff}",
    "\u{10ffff}x",
    "\u{d7ff}",
    "\u{e000}",
    "A",
    "a",
    "Z z",
    " ",
    "ß",
    "İ",
    "x'y",
];

const TOKENS: &[&str] = &[
    "red",
    "green",
    "blue",
    "white",
    "common",
    "Red",
    "RED",
    "don't",
    "don",
    "t",
    "'",
    "''",
    "c++",
    "c#",
    "会議",
    "会",
    "🚀",
    "é",
    "e\u{301}",
    "É",
    "k:memory",
    "k:document",
    "s:e0-0",
    "p:x",
    "a:b",
    "title:red",
    "AND",
    "NEAR(",
    "*",
    "-",
    "_",
    "\"",
    "\\",
    "tab\tbed",
    "tab",
    "bed",
    "nul\0x",
    "nulx",
    "\0",
    "\u{1}",
    "\u{7f}",
    "x\ny",
    "(",
    "red*",
    "^red",
    "\u{a0}",
    "\u{3000}",
];

const DIRECTORIES: &[&str] = &[
    "",
    "a/",
    "a",
    "b/",
    "ä/",
    "会/",
    "a\u{10ffff}",
    "\u{10ffff}",
    "a/\0",
    "A/",
    "a%",
];

const PROJECTS: &[&str] = &["", "/a project", "p", "P", "会議\0", "p "];

const WORDS: &[&str] = &[
    "Bill",
    "Baue",
    "bill",
    "Ada",
    "Lovelace",
    "Sean",
    "Andersen",
    "会議室",
    "Émile",
    "o'Neill",
    "X-1",
    "!!!",
    "",
];

/// Draws everything from one seed.
pub(crate) struct Draw(SeededRandom);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    pub(crate) fn below(&self, n: u64) -> u64 {
        self.0.below(n)
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn index(&self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    pub(crate) fn of<'a, T>(&self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    pub(crate) fn maybe<T>(&self, value: impl FnOnce() -> T) -> Option<T> {
        (self.below(2) == 0).then(value)
    }

    /// A text of any kind.
    pub(crate) fn text(&self) -> String {
        match self.below(20) {
            0..9 => self.words(4),
            9..18 => (*self.of(ODD)).to_owned(),
            18 => format!("{}{}", self.of(ODD), self.of(ODD)),
            _ => self.long(),
        }
    }

    /// Longer than an entry of an index may be, and not compressible.
    fn long(&self) -> String {
        let n = 3_000 + self.index(3_000);
        let char = |_| char::from(b'a' + self.below(26) as u8);
        (0..n).map(char).collect()
    }

    fn words(&self, n_max: u64) -> String {
        let words: Vec<&str> = (0..=self.below(n_max)).map(|_| *self.of(WORDS)).collect();
        words.join(" ")
    }

    pub(crate) fn name(&self) -> String {
        if self.once_in(60) {
            self.text()
        } else {
            self.words(3)
        }
    }

    pub(crate) fn body(&self) -> String {
        match self.below(300) {
            0 => "é".repeat(100_000 + self.index(400_000)),
            1 => self.long().repeat(20),
            _ => self.text(),
        }
    }

    /// One of few, so that different operations meet at the same node.
    pub(crate) fn id(&self) -> NodeId {
        match self.below(80) {
            0 => NodeId([0; 16]),
            1 => NodeId([0xff; 16]),
            n => NodeId::new(Hlc::from_ms(n % 5), &SeededRandom::new(n)),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.once_in(4) {
            *self.of(&Kind::ALL)
        } else {
            Kind::Document
        }
    }

    pub(crate) fn project(&self) -> String {
        (*self.of(PROJECTS)).to_owned()
    }

    pub(crate) fn key(&self) -> String {
        let directory = self.of(DIRECTORIES);
        match self.below(40) {
            0..36 => format!("{directory}{}", self.below(60)),
            36..38 => format!("{directory}{}", self.of(ODD)),
            38 => format!("{directory}{}", self.text()),
            // Two long keys that differ at the end only.
            _ => format!("{}{}", "long".repeat(1_000), self.below(3)),
        }
    }

    /// A bucket, a collection, a relation.
    pub(crate) fn short(&self, of: &str) -> String {
        match self.below(40) {
            0 => self.text(),
            n => format!("{of}{}", n % 3),
        }
    }

    pub(crate) fn number(&self) -> f64 {
        match self.below(12) {
            0 => 0.0,
            1 => -0.0,
            2 => f64::MAX,
            3 => f64::MIN_POSITIVE / 4.0,
            4..8 => f64::from_bits(self.0.next()),
            _ => self.below(1_000) as f64 / 1_000.0,
        }
    }

    pub(crate) fn weight(&self) -> f64 {
        match self.below(60) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            _ => self.number(),
        }
    }

    pub(crate) fn props(&self) -> Map<String, Value> {
        let entry = |_| (self.name(), self.json(2));
        (0..self.below(4)).map(entry).collect()
    }

    fn json(&self, depth: u64) -> Value {
        match self.below(if depth == 0 { 7 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            // JSON has no NaN: it becomes null.
            2 | 3 => json!(self.number()),
            4 => json!(*self.of(&[0, 1, u64::MAX, 1 << 53, (1 << 53) + 1])),
            5 => json!(*self.of(&[-1, i64::MIN, i64::MIN + 1])),
            6 => json!(self.text()),
            7 => (0..self.below(3)).map(|_| self.json(depth - 1)).collect(),
            _ => {
                let entry = |_| (self.name(), self.json(depth - 1));
                Value::Object((0..self.below(3)).map(entry).collect())
            }
        }
    }

    pub(crate) fn hash(&self) -> Hash {
        Hash::of(&self.0.next().to_be_bytes())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let n = if self.once_in(100) {
            20_000
        } else {
            self.below(20)
        };
        (0..n).map(|_| self.below(256) as u8).collect()
    }

    /// A past moment, a boundary, or now.
    pub(crate) fn when(&self, now: u64) -> When {
        match self.below(30) {
            0..12 => When::Now,
            12 => When::At(Hlc(0)),
            13 => When::At(Hlc(Hlc::MAX.0 - 1)),
            _ => When::At(Hlc(self.below(now + 3))),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        match self.below(12) {
            0 => 0,
            1 => usize::MAX,
            2 => 1,
            3..8 => self.index(12),
            _ => 100,
        }
    }

    pub(crate) fn filter(&self) -> NodeFilter {
        if self.once_in(3) {
            return NodeFilter::default();
        }
        let kinds = |_| self.kind();
        let prefix = || match self.below(3) {
            0 => self.key(),
            1 => (*self.of(ODD)).to_owned(),
            _ => (*self.of(DIRECTORIES)).to_owned(),
        };
        NodeFilter {
            kinds: (0..self.below(3)).map(kinds).collect(),
            project: self.maybe(|| self.project()),
            key_prefix: self.maybe(prefix),
        }
    }

    pub(crate) fn edge_filter(&self) -> EdgeFilter {
        EdgeFilter {
            src: self.maybe(|| self.few()),
            rel: self.maybe(|| self.short("rel")),
            dst: self.maybe(|| self.few()),
        }
    }

    /// The end of an edge: fewer than nodes, so that edges meet.
    pub(crate) fn few(&self) -> NodeId {
        let n = self.below(12);
        NodeId::new(Hlc::from_ms(n % 5), &SeededRandom::new(n + 2))
    }

    fn token(&self) -> String {
        match self.below(400) {
            0 => self.long(),
            1 => self.long().repeat(12),
            2..6 => "w".repeat(60 + self.index(8)),
            n if n % 3 == 0 => (*self.of(&TOKENS[..7])).to_owned(),
            _ => (*self.of(TOKENS)).to_owned(),
        }
    }

    fn tokens(&self, n_max: u64) -> String {
        let blank = if self.once_in(10) { "  " } else { " " };
        let all: Vec<String> = (0..self.below(n_max)).map(|_| self.token()).collect();
        all.join(blank)
    }

    pub(crate) fn passages(&self) -> Vec<Passage> {
        let mut next = 0;
        let title_tokens = self.tokens(3);
        let passage = |_| {
            let n = next;
            // Sometimes the same number twice, which is refused.
            next += if self.once_in(50) { 0 } else { 1 };
            Passage {
                n: if self.once_in(100) { u32::MAX - n } else { n },
                text: self.text(),
                start: self.below(1_000),
                tokens: self.tokens(8),
                title_tokens: title_tokens.clone(),
            }
        };
        (0..self.below(4)).map(passage).collect()
    }

    pub(crate) fn numbers(&self) -> Vec<f32> {
        let n = match self.below(300) {
            0 => 0,
            1 => 16_000,
            2 => 16_001,
            n => *self.of(&[2, 2, 3, 8, 1 + (n as usize % 40)]),
        };
        let scale = match self.below(40) {
            0 => 1e38,
            1 => 1e-38,
            2 => 1e-44,
            3 => 0.0,
            _ => 1.0,
        };
        let number = |_| (self.below(7) as f32 / 2.0 - 1.5) * scale;
        let mut all: Vec<f32> = (0..n).map(number).collect();
        if self.once_in(60)
            && let Some(last) = all.last_mut()
        {
            *last = *self.of(&[f32::NAN, f32::INFINITY, -0.0]);
        }
        all
    }
}
