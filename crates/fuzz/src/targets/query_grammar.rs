//! Queries made by a grammar, over a small graph with a hub: whole ones, and ones that somebody broke.
//!
//! The bytes of an input are choices, and the choices make a query, so a mutated input is another query.
//! Each runs over a plain graph and one with indexes, and over the graph that users query, filled through a store,
//! and a copy of that one: two graphs that say the same give the same rows.

use super::query_stored::Stored;
use super::{ensure, in_time};
use crate::{Source, Subject, Target};
use kenning_cypher::{
    Answer, Budget, Class, Error, Graph, MemoryGraph, Moment, NoProcedures, Run, Statement, Stop,
    Value, Zone,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const TARGET: Target = Target {
    name: "query_grammar",
    about: "a query over a graph keeps its limits, ends when it is told to, and answers alike with and without an index or a store",
    words: &[],
    seeds: || (0..8).map(|it| Source::new(it).bytes(96)).collect(),
    generate: |source| {
        let n = 8 + source.below(160);
        source.bytes(n)
    },
    open: || {
        Box::new(Graphs {
            plain: graph(),
            indexed: with_indexes(graph()),
            stored: Stored::open(),
        })
    },
    pass_cases: 1_500,
    fresh_every: 1_000_000,
    contains_panics: false,
};

const LABELS: &[&str] = &["Function", "File", "Person", "Nothing"];
const TYPES: &[&str] = &["CALLS", "CONTAINS", "NOWHERE"];
const KEYS: &[&str] = &["name", "n", "tags", "none"];

const ROWS_MAX: u64 = 300;
const STEPS_MAX: u64 = 150_000;
const MEMORY_BYTES_MAX: u64 = 1 << 20;
const VALUE_BYTES_MAX: u64 = 64 << 10;

/// Sixty nodes; the first is called by most others.
fn graph() -> MemoryGraph {
    let mut graph = MemoryGraph::default();
    let mut source = Source::new(8);
    let key = |name: &str| -> Arc<str> { Arc::from(name) };
    let nodes: Vec<_> = (0..60_i64)
        .map(|it| {
            let label = ["Function", "Function", "File", "Person"][source.below(4)];
            let tags = vec![Value::str("a"), Value::Int(it % 3)];
            graph.add_node(
                &[label],
                [
                    (key("name"), Value::str(format!("name {}", it % 20))),
                    (key("n"), Value::Int(it % 7)),
                    (key("tags"), Value::list(tags).unwrap_or_default()),
                ],
            )
        })
        .collect();
    for (at, node) in nodes.iter().enumerate().skip(1) {
        graph.add_rel(*node, "CALLS", nodes[0], []);
        for _ in 0..2 {
            let kind = ["CALLS", "CONTAINS"][source.below(2)];
            let other = nodes[source.below(nodes.len())];
            let weight = Value::Int(i64::try_from(at % 5).unwrap_or(0));
            graph.add_rel(*node, kind, other, [(key("n"), weight)]);
        }
    }
    graph
}

fn with_indexes(mut graph: MemoryGraph) -> MemoryGraph {
    for label in ["Function", "File", "Person"] {
        for key in ["name", "n"] {
            graph.add_index(label, key);
        }
    }
    graph
}

/// Choices, one byte each; at the end all are the first.
struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
    variables: Vec<String>,
    /// Whether the rows do not depend on the order in which nodes are found.
    is_ordered: bool,
}

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % n
    }

    fn pick<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }

    fn variable(&mut self) -> String {
        if !self.variables.is_empty() && self.below(3) > 0 {
            let at = self.below(self.variables.len());
            return self.variables[at].clone();
        }
        let name = format!("v{}", self.variables.len());
        self.variables.push(name.clone());
        name
    }

    fn known(&mut self) -> String {
        match self.variables.is_empty() {
            true => "1".to_owned(),
            false => {
                let at = self.below(self.variables.len());
                self.variables[at].clone()
            }
        }
    }

    fn node(&mut self) -> String {
        let variable = match self.below(4) {
            0 => String::new(),
            _ => self.variable(),
        };
        let label = match self.below(2) {
            0 => String::new(),
            _ => format!(":{}", self.pick(LABELS)),
        };
        let properties = match self.below(4) {
            0 => format!(" {{{}: {}}}", self.pick(KEYS), self.literal()),
            _ => String::new(),
        };
        format!("({variable}{label}{properties})")
    }

    fn rel(&mut self) -> String {
        let kind = match self.below(2) {
            0 => String::new(),
            _ => format!(":{}", self.pick(TYPES)),
        };
        let range = self.pick(&["", "", "", "*", "*1..3", "*0..2", "*..9", "*2"]);
        let [left, right] = [["-", "->"], ["<-", "-"], ["-", "-"]][self.below(3)];
        format!("{left}[{kind}{range}]{right}")
    }

    fn pattern(&mut self) -> String {
        let mut pattern = self.node();
        for _ in 0..self.below(3) {
            let (rel, node) = (self.rel(), self.node());
            pattern = format!("{pattern}{rel}{node}");
        }
        pattern
    }

    fn literal(&mut self) -> String {
        let words = [
            "0", "1", "3", "'name 3'", "null", "true", "[1, 'a']", "$p", "-1.5",
        ];
        self.pick(&words).to_owned()
    }

    fn expression(&mut self, depth: usize) -> String {
        let n = if depth == 0 { 4 } else { 14 };
        match self.below(n) {
            0 => self.literal(),
            1 | 2 => format!("{}.{}", self.known(), self.pick(KEYS)),
            3 => self.known(),
            4 => {
                let sign = self.pick(&["+", "-", "*", "/", "%", "^"]);
                let (a, b) = (self.expression(depth - 1), self.expression(depth - 1));
                format!("({a} {sign} {b})")
            }
            5 => {
                let name = self.pick(&[
                    "size",
                    "toString",
                    "labels",
                    "keys",
                    "properties",
                    "id",
                    "type",
                    "abs",
                    "head",
                    "toUpper",
                    "reverse",
                    "nodes",
                    "length",
                    "datetime",
                    "toInteger",
                ]);
                format!("{name}({})", self.expression(depth - 1))
            }
            6 => format!("[x IN {} | x]", self.expression(depth - 1)),
            7 => {
                let (when, then) = (self.condition(depth - 1), self.expression(depth - 1));
                format!("CASE WHEN {when} THEN {then} ELSE 0 END")
            }
            8 => format!("range(0, {})", self.pick(&["3", "30", "999999999", "-1"])),
            9 => {
                let n = self.variables.len();
                let pattern = self.pattern();
                self.variables.truncate(n);
                format!("[{pattern} | 1]")
            }
            10 => format!(
                "reduce(s = '', x IN {} | s + s + 'ab')",
                self.expression(depth - 1)
            ),
            11 => self.condition(depth - 1),
            12 => format!(
                "{{a: {}, b: [{}]}}",
                self.expression(depth - 1),
                self.literal()
            ),
            _ => format!(
                "coalesce({}, {})",
                self.expression(depth - 1),
                self.literal()
            ),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let n = if depth == 0 { 3 } else { 7 };
        match self.below(n) {
            0 | 1 => {
                let sign = self.pick(&[
                    "=",
                    "<>",
                    "<",
                    ">=",
                    " CONTAINS ",
                    " STARTS WITH ",
                    " IN ",
                    " =~ ",
                ]);
                let (a, b) = (self.expression(0), self.expression(0));
                format!("{a} {sign} {b}")
            }
            2 => format!("{} IS NOT NULL", self.expression(0)),
            3 => format!("NOT ({})", self.condition(depth - 1)),
            4 => {
                let word = self.pick(&["AND", "OR", "XOR"]);
                let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
                format!("({a} {word} {b})")
            }
            5 => {
                let n = self.variables.len();
                let pattern = self.pattern();
                self.variables.truncate(n);
                format!("EXISTS {{ {pattern} }}")
            }
            _ => format!("{}:{}", self.known(), self.pick(LABELS)),
        }
    }

    fn clause(&mut self) -> String {
        match self.below(7) {
            0..=2 => {
                let optional = self.pick(&["", "", "OPTIONAL "]);
                let mut clause = format!("{optional}MATCH {}", self.pattern());
                if self.below(3) == 0 {
                    clause = format!("{clause}, {}", self.pattern());
                }
                if self.below(2) == 0 {
                    clause = format!("{clause} WHERE {}", self.condition(2));
                }
                clause
            }
            3 => {
                let list = self.expression(1);
                let name = format!("v{}", self.variables.len());
                self.variables.push(name.clone());
                format!("UNWIND {list} AS {name}")
            }
            4 => {
                let (item, count) = (self.known(), self.aggregate());
                let (item, variable) = match item.starts_with('v') {
                    true => (item.clone(), item),
                    false => (format!("{item} AS v0"), "v0".to_owned()),
                };
                self.variables = vec![variable, "n".to_owned()];
                format!("WITH {item}, {count} AS n")
            }
            5 => {
                self.is_ordered = false;
                let limit = self.pick(&["0", "1", "5", "$p"]);
                format!("WITH * SKIP {limit} LIMIT 7")
            }
            _ => {
                self.is_ordered = false;
                let (a, b) = (self.variable(), self.variable());
                format!("MATCH ({a}), ({b}) MATCH p = shortestPath(({a})-[*..4]-({b}))")
            }
        }
    }

    fn aggregate(&mut self) -> String {
        let name = self.pick(&["count", "sum", "min", "max", "avg", "collect", "stDev"]);
        if name == "collect" || name == "avg" || name == "stDev" {
            self.is_ordered = false;
        }
        let distinct = self.pick(&["", "", "DISTINCT "]);
        format!("{name}({distinct}{})", self.expression(1))
    }

    fn query(&mut self) -> String {
        let mut parts: Vec<String> = (0..1 + self.below(4)).map(|_| self.clause()).collect();
        let distinct = self.pick(&["", "", "DISTINCT "]);
        let mut items: Vec<String> = (0..1 + self.below(3)).map(|_| self.expression(2)).collect();
        if self.below(3) == 0 {
            items.push(self.aggregate());
        }
        let items: Vec<String> = items
            .iter()
            .enumerate()
            .map(|(at, it)| format!("{it} AS c{at}"))
            .collect();
        parts.push(format!("RETURN {distinct}{}", items.join(", ")));
        if self.below(4) == 0 {
            parts.push("ORDER BY c0 DESC".to_owned());
        }
        if self.below(6) == 0 {
            let writing = ["CREATE (x)", "SET v0.n = 1", "DELETE v0", "MERGE (x:Y)"];
            let at = self.below(parts.len());
            parts.insert(at, self.pick(&writing).to_owned());
        }
        parts.join(" ")
    }

    /// The text with some of its letters lost, repeated or exchanged.
    fn broken(&mut self, text: String) -> String {
        if self.below(4) > 0 {
            return text;
        }
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..1 + self.below(3) {
            let at = (self.below(256) * 256 + self.below(256)) % letters.len().max(1);
            match self.below(4) {
                0 => drop(letters.drain(at.min(letters.len())..(at + 1).min(letters.len()))),
                1 => letters.insert(at, ['(', '}', '\'', '$', '*', '\u{0}', 'é'][self.below(7)]),
                2 => letters.swap(at, 0),
                _ => {
                    let piece: Vec<char> = letters[at..(at + 9).min(letters.len())].to_vec();
                    letters.splice(at..at, piece);
                }
            }
        }
        letters.into_iter().collect()
    }
}

struct Graphs {
    plain: MemoryGraph,
    indexed: MemoryGraph,
    stored: Result<Stored, String>,
}

/// What a run needed.
struct Needed {
    steps: u64,
    memory_bytes: u64,
    n_asked: u64,
}

/// Runs a query that is told to stop when it asks for the `stop_at`th time.
fn run(graph: &dyn Graph, text: &str, stop_at: u64) -> (Result<Answer, Error>, Needed) {
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        (asked.get() >= stop_at).then_some(Stop::TimedOut)
    };
    let mut budget = Budget::new(&stop);
    budget.rows_max = ROWS_MAX;
    budget.steps_max = STEPS_MAX;
    budget.memory_bytes_max = MEMORY_BYTES_MAX;
    budget.value.bytes_max = VALUE_BYTES_MAX;
    let parameters = BTreeMap::from([("p".to_owned(), Value::Int(2))]);
    let run = Run {
        parameters: &parameters,
        procedures: &NoProcedures,
        now: Moment {
            seconds: 1_800_000_000,
            nanos: 0,
        },
        zone: Zone::Offset(0),
        seed: 7,
        budget: &budget,
    };
    let answer = Statement::parse(text).and_then(|it| it.run(graph, &run));
    let needed = Needed {
        steps: budget.steps(),
        memory_bytes: budget.memory_bytes_peak(),
        n_asked: asked.get(),
    };
    (answer, needed)
}

/// The rows in an order of their own.
fn sorted(answer: &Answer) -> Vec<String> {
    let mut rows: Vec<String> = answer.rows.iter().map(|it| format!("{it:?}")).collect();
    rows.sort();
    rows
}

impl Subject for Graphs {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let mut choices = Choices {
            bytes: input.iter(),
            variables: Vec::new(),
            is_ordered: true,
        };
        let whole = choices.query();
        let text = choices.broken(whole);
        let (answer, needed) = in_time(text.as_bytes(), || run(&self.plain, &text, u64::MAX))?;
        ensure!(
            needed.memory_bytes <= MEMORY_BYTES_MAX,
            "{} bytes are held: {text}",
            needed.memory_bytes
        );
        match &answer {
            Ok(answer) => {
                ensure!(needed.steps <= STEPS_MAX, "{} steps: {text}", needed.steps);
                let n_rows = answer.rows.len() as u64;
                ensure!(n_rows <= ROWS_MAX, "{n_rows} rows: {text}");
            }
            Err(error) => {
                ensure!(
                    error.class() != Class::Graph,
                    "the graph is blamed: {text}: {error}"
                );
            }
        }
        // One that is told to end does.
        if needed.n_asked > 1 {
            let (stopped, _) = run(&self.plain, &text, needed.n_asked / 2 + 1);
            let class = stopped.as_ref().err().map(Error::class);
            ensure!(class == Some(Class::Limit), "it did not stop: {text}");
        }
        // Another plan gives the same rows.
        let (other, _) = run(&self.indexed, &text, u64::MAX);
        if let (Ok(one), Ok(other), true) = (&answer, &other, choices.is_ordered) {
            let [one, other] = [one, other].map(sorted);
            ensure!(
                one == other,
                "an index changes the rows: {text}\n{one:?}\n{other:?}"
            );
        }
        self.compare_stored(&text, choices.is_ordered)
    }
}

impl Graphs {
    /// The graph of a store gives the rows that a copy of it gives, and keeps the same limits.
    fn compare_stored(&self, text: &str, is_ordered: bool) -> Result<(), String> {
        let stored = self.stored.as_ref().map_err(Clone::clone)?;
        let (answer, needed) = in_time(text.as_bytes(), || {
            stored.look(|graph| run(graph, text, u64::MAX))
        })??;
        ensure!(
            needed.memory_bytes <= MEMORY_BYTES_MAX,
            "{} bytes are held over a store: {text}",
            needed.memory_bytes
        );
        let (other, _) = run(&stored.copy, text, u64::MAX);
        match (&answer, &other) {
            (Ok(one), Ok(other)) if is_ordered => {
                let [one, other] = [one, other].map(sorted);
                ensure!(
                    one == other,
                    "a store changes the rows: {text}\n{one:?}\n{other:?}"
                );
            }
            // Plans differ, so one may need more than the other, or find another error first; but the store is
            // never the reason.
            (Err(error), _) => ensure!(
                error.class() != Class::Graph,
                "the store is blamed: {text}: {error}"
            ),
            _ => {}
        }
        Ok(())
    }
}
