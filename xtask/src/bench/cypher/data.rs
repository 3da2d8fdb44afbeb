//! A graph of code and people as large repositories have it: most functions are called by one or two others, and
//! some by thousands.

use anyhow::Result;
use kenning_core::SeededRandom;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

/// How many nodes of each label there are in a hundred thousand.
const LABELS: [(&str, u64); 5] = [
    ("Function", 70_000),
    ("Class", 9_000),
    ("File", 16_000),
    ("Module", 1_000),
    ("Person", 4_000),
];

const VERBS: &[&str] = &[
    "parse", "write", "open", "close", "merge", "check", "find", "send", "load", "store", "build",
    "render", "count", "sort", "split", "join", "watch", "plan", "fold", "walk",
];

const NOUNS: &[&str] = &[
    "header", "packet", "ledger", "token", "schema", "record", "buffer", "stream", "cursor",
    "index", "branch", "socket", "thread", "window", "report", "filter", "market", "vector",
    "bundle", "signal",
];

/// A node: its `uid` is unique among all.
pub(super) struct Node {
    pub(super) label: &'static str,
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) lines: u64,
    pub(super) visibility: &'static str,
}

/// A relationship between two nodes, by their places.
pub(super) struct Rel {
    pub(super) start: usize,
    pub(super) kind: &'static str,
    pub(super) end: usize,
}

/// The whole graph.
pub(super) struct Data {
    pub(super) nodes: Vec<Node>,
    pub(super) rels: Vec<Rel>,
}

/// One of the ten queries.
pub(super) struct Query {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    /// As ladybug says it, where that differs.
    pub(super) ladybug: Option<&'static str>,
    /// What it is asked with, one set after another.
    pub(super) parameters: Vec<Value>,
}

struct Chance(SeededRandom);

impl Chance {
    fn below(&self, n: u64) -> u64 {
        self.0.below(n.max(1))
    }

    /// From 0 up to 1.
    fn unit(&self) -> f64 {
        self.0.below(1 << 53) as f64 / (1_u64 << 53) as f64
    }

    /// One of `n`: the greater the power, the more often one of the first.
    fn skewed(&self, n: u64, power: f64) -> u64 {
        ((n as f64 * self.unit().powf(power)) as u64).min(n.saturating_sub(1))
    }
}

impl Data {
    /// A graph of that many nodes, with three relationships for each.
    pub(super) fn new(n_nodes: u64) -> Self {
        let chance = Chance(SeededRandom::new(20));
        let mut nodes = Vec::new();
        let mut firsts = BTreeMap::new();
        for (label, share) in LABELS {
            let n = (n_nodes * share / 100_000).max(2);
            firsts.insert(label, (nodes.len() as u64, n));
            for i in 0..n {
                let verb = VERBS[chance.below(VERBS.len() as u64) as usize];
                let noun = NOUNS[chance.below(NOUNS.len() as u64) as usize];
                nodes.push(Node {
                    label,
                    uid: format!("{}-{i}", label.to_lowercase()),
                    name: format!("{verb}_{noun}_{i}"),
                    lines: 1 + chance.skewed(400, 3.0),
                    visibility: ["public", "private", "crate"][chance.below(3) as usize],
                });
            }
        }
        let mut data = Self {
            nodes,
            rels: Vec::new(),
        };
        data.connect(&chance, &firsts, n_nodes);
        data
    }

    fn connect(
        &mut self,
        chance: &Chance,
        firsts: &BTreeMap<&'static str, (u64, u64)>,
        n_nodes: u64,
    ) {
        let (functions, n_functions) = firsts["Function"];
        let (classes, n_classes) = firsts["Class"];
        let (files, n_files) = firsts["File"];
        let (modules, n_modules) = firsts["Module"];
        let (people, n_people) = firsts["Person"];
        let mut seen: HashSet<(u64, &str, u64)> = HashSet::new();
        let mut add = |start: u64, kind: &'static str, end: u64| {
            if start != end && seen.insert((start, kind, end)) {
                let [start, end] = [start as usize, end as usize];
                self.rels.push(Rel { start, kind, end });
                return 1;
            }
            0
        };
        for i in 0..n_functions {
            add(
                files + chance.skewed(n_files, 1.5),
                "CONTAINS",
                functions + i,
            );
        }
        for i in 0..n_classes {
            add(files + chance.skewed(n_files, 1.5), "CONTAINS", classes + i);
        }
        for i in 0..n_files {
            add(
                files + i,
                "BELONGS_TO",
                modules + chance.skewed(n_modules, 2.0),
            );
        }
        let mut n = 0;
        while n < n_nodes / 20 {
            n += add(
                people + chance.skewed(n_people, 2.0),
                "AUTHORED",
                files + chance.below(n_files),
            );
        }
        n = 0;
        while n < n_nodes / 5 {
            n += add(
                files + chance.below(n_files),
                "IMPORTS",
                files + chance.skewed(n_files, 2.0),
            );
        }
        // Who is called often is not who calls often: the order is another one.
        let scatter = |it: u64| it.wrapping_mul(48_271) % n_functions;
        n = 0;
        while n < n_nodes * 9 / 5 {
            let caller = scatter(chance.skewed(n_functions, 1.5));
            n += add(
                functions + caller,
                "CALLS",
                functions + chance.skewed(n_functions, 3.0),
            );
        }
    }

    /// The graph as files of comma-separated values, one for each table.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for it in &self.nodes {
            let file = files.entry(format!("nodes-{}.csv", it.label)).or_default();
            writeln!(
                file,
                "{},{},{},{}",
                it.uid, it.name, it.lines, it.visibility
            )?;
        }
        for it in &self.rels {
            let [start, end] = [&self.nodes[it.start], &self.nodes[it.end]];
            let name = format!("rels-{}-{}-{}.csv", start.label, it.kind, end.label);
            writeln!(files.entry(name).or_default(), "{},{}", start.uid, end.uid)?;
        }
        for (name, text) in files {
            std::fs::write(folder.join(name), text)?;
        }
        Ok(())
    }
}

/// The ten, with what each is asked with.
pub(super) fn queries() -> Vec<Query> {
    let by_uid = |ranks: &[u64]| {
        let uids = ranks
            .iter()
            .map(|it| json!({ "uid": format!("function-{it}") }));
        uids.collect::<Vec<Value>>()
    };
    // Functions of low numbers are called by many.
    let any = by_uid(&[11, 402, 5_003, 20_117, 33_333, 48_271, 51_999, 69_998]);
    let callers = by_uid(&[40, 90, 250, 700, 1_500, 4_000]);
    let pairs = [
        (48_271, 3),
        (26_542, 17),
        (1_234, 60),
        (60_001, 9),
        (33_000, 150),
        (5_555, 41),
    ];
    let pairs = pairs.map(
        |(from, to)| json!({ "from": format!("function-{from}"), "to": format!("function-{to}") }),
    );
    let words = ["header_17", "ledger_4242", "parse_sig", "cursor_69"];
    let query = |name, text, ladybug, parameters| Query {
        name,
        text,
        ladybug,
        parameters,
    };
    vec![
        query(
            "point",
            "MATCH (f:Function {uid: $uid}) RETURN f.name AS name, f.lines AS lines",
            None,
            any.clone(),
        ),
        query(
            "callers",
            "MATCH (f:Function {uid: $uid})<-[:CALLS]-(c:Function) RETURN c.name AS name ORDER BY name LIMIT 20",
            None,
            callers.clone(),
        ),
        query(
            "two hops",
            "MATCH (f:Function {uid: $uid})<-[:CALLS]-(:Function)<-[:CALLS]-(c:Function) RETURN count(DISTINCT c) AS n",
            None,
            callers.clone(),
        ),
        query(
            "1..4 hops",
            "MATCH (f:Function {uid: $uid})<-[:CALLS*1..4]-(c:Function) RETURN count(DISTINCT c) AS n",
            None,
            callers.clone(),
        ),
        query(
            "by module",
            "MATCH (m:Module)<-[:BELONGS_TO]-(:File)-[:CONTAINS]->(f:Function) RETURN m.name AS module, count(f) AS n, sum(f.lines) AS lines ORDER BY n DESC, module LIMIT 10",
            None,
            vec![json!({})],
        ),
        query(
            "top by degree",
            "MATCH (f:Function)<-[c:CALLS]-(:Function) RETURN f.uid AS uid, count(c) AS n ORDER BY n DESC, uid LIMIT 10",
            None,
            vec![json!({})],
        ),
        query(
            "shortest path",
            "MATCH (a:Function {uid: $from}), (b:Function {uid: $to}) MATCH p = shortestPath((a)-[:CALLS*..12]->(b)) RETURN length(p) AS n",
            Some(
                "MATCH p = (a:Function {uid: $from})-[:CALLS* SHORTEST 1..12]->(b:Function {uid: $to}) RETURN length(p) AS n",
            ),
            pairs.to_vec(),
        ),
        query(
            "text, expanded",
            "MATCH (f:Function)<-[:CALLS]-(c:Function) WHERE f.name CONTAINS $word RETURN f.name AS name, count(c) AS n ORDER BY n DESC, name LIMIT 10",
            None,
            words.map(|it| json!({ "word": it })).to_vec(),
        ),
        query(
            "filter, grouped",
            "MATCH (f:Function) WHERE f.lines > $lines AND f.visibility <> 'crate' RETURN f.visibility AS visibility, count(*) AS n, max(f.lines) AS longest ORDER BY visibility",
            None,
            [10, 100, 300].map(|it| json!({ "lines": it })).to_vec(),
        ),
        query(
            "shared callees",
            "MATCH (a:Function {uid: $uid})-[:CALLS]->(x:Function)<-[:CALLS]-(b:Function) WHERE b.uid <> $uid RETURN b.uid AS uid, count(x) AS n ORDER BY n DESC, uid LIMIT 10",
            None,
            any,
        ),
    ]
}
