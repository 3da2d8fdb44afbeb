//! Where choices come from: a seeded stream, and what generators ask of it.

use kenning_core::SeededRandom;

/// A stream of choices. The same seed gives the same ones.
pub struct Source(SeededRandom);

/// Numbers at which something often breaks.
const ODD_NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9007199254740991",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e309",
    "-1e309",
    "1e-400",
    "0.1",
    "1.0",
    "NaN",
    "Infinity",
    "00",
    "+1",
    "0x10",
    "1_000",
];

/// Texts at which something often breaks.
const ODD_TEXTS: &[&str] = &[
    "",
    " ",
    "\u{0}",
    "\t",
    "\r",
    "\n",
    "\r\n",
    "\u{b}",
    "\u{85}",
    "\u{a0}",
    "\u{ad}",
    "\u{200b}",
    "\u{200d}",
    "\u{202e}",
    "\u{2028}",
    "\u{feff}",
    "\u{fffd}",
    "\u{ffff}",
    "\u{1f600}",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    "e\u{301}",
    "\u{e9}",
    "\u{df}",
    "\u{130}",
    "\u{fb03}",
    "\u{10ffff}",
    "\u{e000}",
    "..",
    "/",
    "\\",
    "'",
    "\"",
    "`",
    "$(id)",
    "%00",
    "%2e%2e",
    "{{",
    "}}",
    "<!--",
    "-->",
    "]]>",
    "---",
    "null",
    "true",
    "\u{1b}[2J",
    "\u{ff0e}\u{ff0e}",
    "\u{661}",
    "\u{4e2d}\u{6587}",
    "\u{5d0}\u{5d1}",
    "-",
    "--",
    "~",
    "\u{c4}\u{308}\u{308}",
];

impl Source {
    /// The choices of this seed.
    pub fn new(seed: u64) -> Self {
        let stream = SeededRandom::new(seed);
        // Two seeds that differ by one bit should not begin alike.
        stream.next();
        Self(stream)
    }

    /// A number.
    pub fn number(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.below(n.max(1) as u64)).unwrap_or(0)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    /// So many bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.byte()).collect()
    }

    /// Mostly a few, now and then many.
    pub fn count(&mut self) -> usize {
        match self.below(20) {
            0 => self.below(2_000),
            1..=4 => self.below(40),
            _ => self.below(6),
        }
    }

    /// How deep something is nested: mostly a little, now and then without measure.
    pub fn depth(&mut self) -> usize {
        const DEEP: &[usize] = &[
            60, 63, 64, 65, 99, 100, 101, 126, 127, 128, 129, 500, 5_000, 20_000,
        ];
        if self.one_in(4) {
            *self.pick(DEEP)
        } else {
            1 + self.below(12)
        }
    }

    /// Any character, the odd ones more often than they are.
    pub fn character(&mut self) -> char {
        match self.below(8) {
            0 => self.odd_text().chars().next().unwrap_or('x'),
            1 => char::from_u32(self.below(0x11_0000) as u32).unwrap_or('\u{fffd}'),
            2 => char::from(self.below(0x80) as u8),
            _ => char::from(b' ' + self.below(95) as u8),
        }
    }

    /// A text of any characters.
    pub fn text(&mut self) -> String {
        let n = self.count();
        (0..n).map(|_| self.character()).collect()
    }

    /// A word of a few letters.
    pub fn word(&mut self) -> String {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFG0123456789_-";
        let n = 1 + self.below(8);
        (0..n).map(|_| char::from(*self.pick(LETTERS))).collect()
    }

    /// A text at which something often breaks.
    pub fn odd_text(&mut self) -> &'static str {
        ODD_TEXTS[self.below(ODD_TEXTS.len())]
    }

    /// A number at which something often breaks.
    pub fn odd_number(&mut self) -> &'static str {
        ODD_NUMBERS[self.below(ODD_NUMBERS.len())]
    }

    /// JSON of any form; deep only if asked to be.
    pub fn json(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => (*self.pick(&["null", "true", "false"])).to_owned(),
            1 => self.odd_number().to_owned(),
            2 => format!("{}", self.number() as i64 % 1_000),
            3 => serde_json::Value::from(self.odd_text()).to_string(),
            4 => serde_json::Value::from(self.text()).to_string(),
            5 | 6 => {
                let n = self.below(4);
                let pairs: Vec<String> = (0..n)
                    .map(|_| {
                        format!(
                            "{}:{}",
                            serde_json::Value::from(self.word()),
                            self.json(depth - 1)
                        )
                    })
                    .collect();
                format!("{{{}}}", pairs.join(","))
            }
            _ => {
                let n = self.below(5);
                let items: Vec<String> = (0..n).map(|_| self.json(depth - 1)).collect();
                format!("[{}]", items.join(","))
            }
        }
    }
}
