//! Whole programs that share a space: every wing's tools write, and all must answer alike.
//!
//! The nodes are complete engines over stores in memory, each with directories of its own; some have no
//! vault. Messages go through the real door for peers, with seals and challenges, over a carrier that
//! loses, repeats and sends again; nodes are killed and opened again.

use crate::node::space;
use jiff::tz::TimeZone;
use kenning_core::{Clock, Code, Error, FixedClock, Hlc, Kind, Result, SeededRandom};
use kenning_engine::koi::{StatedDocument, StatedEntity, StatedRelation};
use kenning_engine::{
    Caller, Engine, NewPeer, Options, PeerAnswer, PeerMessage, PeerPolicy, Principal, kami, kiwi,
    koi,
};
use kenning_kernel::{Carrier, Kernel};
use kenning_store::{Row, Store, Table};
use kenning_testing_model::Model;
use kenning_tools::{Board, Selection};
use kenning_vault::Dir;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const START_MS: u64 = 1_800_000_000_000;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// Rounds of exchanges after which everything must have arrived.
const ROUNDS_MAX: usize = 12;

fn wrong(what: impl std::fmt::Display) -> Error {
    Error::internal(what.to_string())
}

/// A program, and what outlives it.
struct Program {
    board: Board,
    kernel: Arc<Kernel>,
    store: Store,
    clock: Arc<FixedClock>,
    home: tempfile::TempDir,
    has_vault: bool,
    n_opened: u64,
    seed: u64,
}

impl Program {
    fn new(draw: &SeededRandom, has_vault: bool) -> Result<Self> {
        let home = tempfile::tempdir().map_err(|it| wrong("a directory").because(it))?;
        let store = Store::new(Model::default());
        let clock = Arc::new(FixedClock::at(START_MS + draw.below(2 * HOUR_MS)));
        let seed = draw.next();
        let (board, kernel) = open(&store, &clock, home.path().to_owned(), has_vault, seed)?;
        Ok(Self {
            board,
            kernel,
            store,
            clock,
            home,
            has_vault,
            n_opened: 1,
            seed,
        })
    }

    /// A killed process: whatever it was about to do is not done, and another one opens the same store.
    fn kill(&mut self) -> Result<()> {
        self.kernel.later().flush();
        let home = self.home.path().to_owned();
        let seed = self.seed.wrapping_add(self.n_opened);
        self.n_opened += 1;
        let (board, kernel) = open(&self.store, &self.clock, home, self.has_vault, seed)?;
        (self.board, self.kernel) = (board, kernel);
        Ok(())
    }

    fn caller(&self) -> Caller {
        Caller::new(Principal::owner(space())).by_person()
    }

    fn call(&self, tool: &str, input: Value) -> Result<Value> {
        let reply = self.board.call(tool, input, &self.caller());
        let reply = reply.ok_or_else(|| wrong(format!("no tool `{tool}`")))?;
        let answer = reply.to_json();
        match reply.is_error() {
            true => Err(wrong(format!("`{tool}`: {answer}"))),
            false => Ok(answer),
        }
    }

    fn size(&self) -> Result<u64> {
        self.kernel.later().flush();
        Ok(self.kernel.log().roots(&space())?.seq)
    }
}

fn open(
    store: &Store,
    clock: &Arc<FixedClock>,
    home: PathBuf,
    has_vault: bool,
    seed: u64,
) -> Result<(Board, Arc<Kernel>)> {
    for name in ["vault", "project"] {
        Dir::create(&home.join(name))?;
    }
    let (options, wings) = Options {
        store: store.clone(),
        data: Dir::create(&home.join("data"))?,
        vault: has_vault.then(|| home.join("vault")),
        omi: Some(home.join("omi")),
        project: Some(home.join("project")),
        wasm: kami::WasmOptions::default(),
        items: kiwi::ItemOptions {
            user: Some(home.join("user")),
            ..kiwi::ItemOptions::default()
        },
        repositories: koi::RepositoryOptions::default(),
        mail: None,
        web: koi::WebOptions::default(),
        space: space(),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        zone: TimeZone::UTC,
        random: Arc::new(SeededRandom::new(seed)),
        environment: Arc::new(|_| None),
        shared: false,
        read_only: false,
    }
    .split();
    let kernel = Arc::new(Kernel::open(options)?);
    let engine = Engine::over(Arc::clone(&kernel), wings)?;
    let board = Board::new(Arc::new(engine), Selection::default())?;
    Ok((board, kernel))
}

/// A network between two programs.
struct Wire<'a> {
    there: &'a Program,
    draw: &'a SeededRandom,
    is_bad: bool,
    /// Messages that were sent before and may come again.
    old: Vec<PeerMessage>,
}

impl Carrier for Wire<'_> {
    fn post(&mut self, message: &PeerMessage) -> Result<PeerAnswer> {
        let engine = self.there.board.engine();
        if self.is_bad {
            let lost = || Error::unavailable("the message was lost");
            match self.draw.below(16) {
                0 => return Err(lost()),
                1 => {
                    // It arrives, and the answer does not.
                    let _ = engine.answer_peer(message);
                    return Err(lost());
                }
                2 => {
                    let _ = engine.answer_peer(message);
                }
                3 => {
                    for it in self.old.drain(..) {
                        if it.challenge.is_some() && engine.answer_peer(&it).is_ok() {
                            return Err(wrong("a message was taken twice"));
                        }
                    }
                }
                _ => {}
            }
            self.old.push(message.clone());
        }
        engine.answer_peer(message)
    }

    fn wait(&mut self, _: Duration) {}
}

struct World {
    draw: SeededRandom,
    programs: Vec<Program>,
    links: Vec<(usize, usize)>,
    n_written: u64,
}

impl World {
    fn new(seed: u64) -> Result<Self> {
        let draw = SeededRandom::new(seed);
        let n = 2 + usize::try_from(draw.below(4)).unwrap_or_default();
        let programs = (0..n).map(|it| Program::new(&draw, it == 0 || draw.below(3) > 0));
        let programs: Vec<Program> = programs.collect::<Result<_>>()?;
        let mut links = Vec::new();
        for other in 1..n {
            let to = usize::try_from(draw.below(other as u64)).unwrap_or_default();
            links.push((to, other));
        }
        let world = Self {
            draw,
            programs,
            links,
            n_written: 0,
        };
        for &(one, other) in &world.links {
            world.introduce(one, other)?;
            world.introduce(other, one)?;
        }
        Ok(world)
    }

    fn at(&self, n: usize) -> Result<&Program> {
        self.programs.get(n).ok_or_else(|| wrong("no such program"))
    }

    fn introduce(&self, here: usize, there: usize) -> Result<()> {
        let (here, there) = (self.at(here)?, self.at(there)?);
        let did = there.kernel.log().signer().did().clone();
        let new = NewPeer {
            endpoint: String::new(),
            did: Some(did),
            policy: PeerPolicy {
                relays: true,
                ..PeerPolicy::default()
            },
        };
        here.kernel.add_peer(&here.caller(), new).map(drop)
    }

    fn below(&self, n: usize) -> usize {
        usize::try_from(self.draw.below(n.max(1) as u64)).unwrap_or_default()
    }

    fn step(&mut self) -> Result<()> {
        match self.draw.below(12) {
            0..=7 => {
                let n = self.below(self.programs.len());
                let clock = &self.at(n)?.clock;
                clock.advance(self.draw.below(3_000));
                write(self.at(n)?, &self.draw)?;
                self.n_written += 1;
            }
            8..=10 => {
                let n = self.below(self.links.len());
                let Some(&(one, other)) = self.links.get(n) else {
                    return Ok(());
                };
                let (from, to) = match self.draw.below(2) {
                    0 => (one, other),
                    _ => (other, one),
                };
                match self.exchange(from, to, true) {
                    // A message that came twice was refused the second time, or all were lost.
                    Err(error)
                        if matches!(error.code, Code::Unavailable | Code::Unauthenticated) => {}
                    other => other?,
                }
            }
            _ => {
                let n = self.below(self.programs.len());
                if let Some(program) = self.programs.get_mut(n) {
                    program.kill()?;
                }
            }
        }
        Ok(())
    }

    fn exchange(&self, from: usize, to: usize, is_bad: bool) -> Result<()> {
        let (here, there) = (self.at(from)?, self.at(to)?);
        let did = there.kernel.log().signer().did().clone();
        let peers = here.kernel.peers(&here.caller())?;
        let peer = peers.iter().find(|it| it.did == did);
        let peer = peer.ok_or_else(|| wrong("no such peer"))?;
        let mut wire = Wire {
            there,
            draw: &self.draw,
            is_bad,
            old: Vec::new(),
        };
        let done = here.kernel.sync_over(peer, &mut wire)?;
        match done.refused.first() {
            Some((author, why)) => Err(wrong(format!("an event of {author} was refused: {why}"))),
            None => Ok(()),
        }
    }

    /// Everything arrives, and every program derives what follows from it.
    fn heal(&mut self) -> Result<()> {
        // Answers depend on the time of day.
        let latest = self.programs.iter().map(|it| it.clock.now_ms()).max();
        for it in &self.programs {
            it.clock
                .advance(latest.unwrap_or_default() + 1_000 - it.clock.now_ms());
        }
        for _ in 0..ROUNDS_MAX {
            for it in &self.programs {
                // Whoever looks brings the graph up to date.
                it.call("koi_search", json!({ "query": "anything" }))?;
            }
            let before = self.sizes()?;
            for (one, other) in self.links.clone() {
                self.exchange(one, other, false)?;
            }
            if self.sizes()? == before {
                return Ok(());
            }
        }
        Err(wrong("the programs exchange for ever"))
    }

    fn sizes(&self) -> Result<Vec<u64>> {
        self.programs.iter().map(Program::size).collect()
    }

    fn check(&self) -> Result<()> {
        let mut first: Option<(Answers, BTreeSet<String>)> = None;
        for (n, program) in self.programs.iter().enumerate() {
            let shown = shown(program)?;
            let report = program.kernel.log().read(&space(), |tx| {
                kenning_audit::verify(tx, &kenning_audit::Verify::of(&space()), &|_| ())
            })?;
            if let Some(fault) = report.faults.first() {
                return Err(wrong(format!("program {n}: {fault}")));
            }
            let faults = program
                .kernel
                .log()
                .read(&space(), koi::faults_of_statements)?;
            if let Some(fault) = faults.first() {
                return Err(wrong(format!("program {n}: {fault}")));
            }
            let root = rows(program)?;
            let Some((wanted, wanted_root)) = &first else {
                first = Some((shown, root));
                continue;
            };
            let differs = wanted.iter().zip(&shown).find(|(a, b)| a != b);
            if let Some(((asked, one), (_, other))) = differs {
                return Err(wrong(format!(
                    "program {n} answers {asked} otherwise:\n{one:#}\n{other:#}"
                )));
            }
            if let Some(row) = wanted_root.symmetric_difference(&root).next() {
                return Err(wrong(format!(
                    "only one of the programs 0 and {n} has this row: {row}"
                )));
            }
        }
        Ok(())
    }
}

/// Every row that all must have: what follows from files of one machine is not among them.
fn rows(program: &Program) -> Result<BTreeSet<String>> {
    let (mut rows, mut local) = (BTreeSet::new(), BTreeSet::new());
    program.kernel.log().read(&space(), |tx| {
        tx.scan(Table::Nodes, &mut |row| {
            let Row::Node(node) = row else { return Ok(()) };
            let is_local =
                node.kind == Kind::Item && node.props.get("source") != Some(&json!("registry"));
            if is_local {
                local.insert(node.id);
                return Ok(());
            }
            // Each node derives entities for itself, when somebody looks.
            let updated = if node.kind == Kind::Entity {
                0
            } else {
                node.updated.0
            };
            rows.insert(format!(
                "{} {} {} {updated}",
                node.kind.as_str(),
                node.key,
                node.hash
            ));
            Ok(())
        })?;
        tx.scan(Table::Edges, &mut |row| {
            let Row::Edge(edge) = row else { return Ok(()) };
            let is_shared = !local.contains(&edge.src) && !local.contains(&edge.dst);
            if is_shared && edge.to == Hlc::MAX {
                rows.insert(format!(
                    "{} {} {} {}",
                    edge.src, edge.rel, edge.dst, edge.hash
                ));
            }
            Ok(())
        })?;
        tx.scan(Table::Vectors, &mut |row| {
            let Row::Vector(vector) = row else {
                return Ok(());
            };
            rows.insert(format!(
                "{} {} {}",
                vector.collection,
                vector.id,
                vector.canonical_hash()
            ));
            Ok(())
        })?;
        tx.scan(Table::Kv, &mut |row| {
            let Row::Kv(row) = row else { return Ok(()) };
            if kenning_audit::is_shared_bucket(&row.bucket) {
                rows.insert(format!(
                    "{} {} {:?}",
                    row.bucket,
                    row.key,
                    String::from_utf8_lossy(&row.value)
                ));
            }
            Ok(())
        })
    })?;
    Ok(rows)
}

const NAMES: [&str; 6] = [
    "Ada Lovelace",
    "Grace Hopper",
    "Alan Turing",
    "Barbara Liskov",
    "Edsger Dijkstra",
    "Frances Allen",
];

fn one_of<'a>(draw: &SeededRandom, list: &[&'a str]) -> &'a str {
    let n = usize::try_from(draw.below(list.len() as u64)).unwrap_or_default();
    list.get(n).copied().unwrap_or_default()
}

/// One write of some wing.
fn write(program: &Program, draw: &SeededRandom) -> Result<()> {
    let n = draw.below(5);
    let caller = program.caller();
    let engine = program.board.engine();
    match draw.below(16) {
        0..=2 => {
            let text = format!("fact {} about {}", draw.below(1_000), one_of(draw, &NAMES));
            let input = json!({ "content": text, "memory_type": "fact" });
            program.call("memory_store", input).map(drop)
        }
        3 => {
            // One id on several nodes.
            let text = format!("belief {n} of {}", draw.below(9));
            let input = json!({ "content": text, "memory_type": "belief", "confidence": 0.5 });
            program.call("memory_store", input).map(drop)
        }
        4..=6 if program.has_vault => {
            let text = format!(
                "---\ntype: person\n---\n# Note {n}\n\nKnows [[note {}]] and {} ({}).\n",
                draw.below(5),
                one_of(draw, &NAMES),
                draw.below(100),
            );
            let input = json!({ "path": format!("people/note {n}.md"), "content": text });
            program.call("vault_write_note", input).map(drop)
        }
        4..=8 => {
            let stated = StatedDocument {
                rid: format!("api:document-{n}"),
                source: None,
                content: Some(format!("A text about {}.", one_of(draw, &NAMES))),
                entities: (0..2)
                    .map(|_| StatedEntity {
                        name: one_of(draw, &NAMES).to_owned(),
                        kind: "person".to_owned(),
                        n_mentions: 1,
                        confidence: 0.9,
                        ..StatedEntity::default()
                    })
                    .collect(),
                relations: vec![StatedRelation {
                    subject: one_of(draw, &NAMES).to_owned(),
                    predicate: "knows".to_owned(),
                    object: one_of(draw, &NAMES).to_owned(),
                    confidence: 0.9,
                }],
            };
            engine.koi().ingest_statement(&caller, stated).map(drop)
        }
        9 => match engine
            .koi()
            .forget_statement(&caller, &format!("api:document-{n}"))
        {
            Err(error) if error.code != Code::NotFound => Err(error),
            _ => Ok(()),
        },
        10 | 11 => {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let numbers = [1.0, draw.below(9) as f64, draw.below(9) as f64];
            let input = json!({
                "id": format!("vector-{n}"), "vector": numbers,
                "metadata": { "title": format!("title {}", draw.below(9)) },
            });
            program.call("kg_vector_upsert", input).map(drop)
        }
        12 => {
            let removed = engine
                .kg()
                .delete_vector(&caller, None, &format!("vector-{n}"));
            removed.map(drop)
        }
        13 => {
            let input = json!({ "current_task": format!("task {}", draw.below(100)) });
            program.call("now_update", input).map(drop)
        }
        14 => {
            let text = format!("entry {}", draw.below(1_000));
            engine.omi().daily_append(&caller, &text).map(drop)
        }
        _ => publish(program, draw),
    }
}

/// Writes, signs and publishes a directive.
fn publish(program: &Program, draw: &SeededRandom) -> Result<()> {
    let (id, version) = (draw.below(3), draw.below(40));
    let text = format!(
        "---\nname: directive_{id}\nversion: 1.{version}.0\ncategory: test\ndescription: Number {id}\n---\n\n# Directive\n\n1. Step {version}.\n"
    );
    let dir = Dir::create(&program.home.path().join("project/.ai/directives/test"))?;
    dir.write(&format!("directive_{id}.md"), text.as_bytes())?;
    for action in ["sign", "publish"] {
        let input = json!({
            "item_type": "directive", "action": action, "item_id": format!("directive_{id}"),
            "parameters": {},
        });
        let reply = program.board.call("execute", input, &program.caller());
        let reply = reply.ok_or_else(|| wrong("no tool `execute`"))?;
        let answer = reply.to_json().to_string();
        // Another node owns it, or has published this version: which of them was first depends on what has arrived.
        let is_expected = ["belongs to", "already", "published"];
        if reply.is_error() && !is_expected.iter().any(|text| answer.contains(text)) {
            return Err(wrong(format!("`{action}`: {answer}")));
        }
    }
    Ok(())
}

/// What was asked, and what was answered.
type Answers = Vec<(String, Value)>;

/// What the tools answer, without what depends on whoever asked before.
fn shown(program: &Program) -> Result<Answers> {
    let mut all = Vec::new();
    let mut ask = |tool: &str, input: Value| -> Result<()> {
        let answer = match program.call(tool, input.clone()) {
            Ok(answer) => stripped(answer),
            Err(error) => Value::from(error.message),
        };
        all.push((format!("`{tool}` {input}"), answer));
        Ok(())
    };
    for name in NAMES {
        ask("resolve_entity", json!({ "label": name }))?;
        ask("get_entity_neighborhood", json!({ "label": name }))?;
    }
    ask(
        "kg_vector_search",
        json!({ "query": "title", "vector": [1.0, 2.0, 3.0], "k": 20 }),
    )?;
    ask("now_read", json!({}))?;
    for id in 0..3 {
        let query = format!("directive_{id}");
        ask(
            "search",
            json!({ "item_type": "directive", "query": query, "source": "registry" }),
        )?;
    }
    let caller = program.caller();
    let engine = program.board.engine();
    all.push((
        "the log of the day".to_owned(),
        engine.omi().daily_read(&caller, 0)?.into(),
    ));
    for query in NAMES {
        let found = program.call("memory_recall", json!({ "query": query, "limit": 50 }))?;
        let memories = found["memories"].as_array().cloned().unwrap_or_default();
        let mut texts: Vec<Value> = memories.iter().map(|it| it["content"].clone()).collect();
        texts.sort_by_key(Value::to_string);
        all.push((format!("memories about {query}"), texts.into()));
    }
    for n in 0..5 {
        let key = format!("vault:people/note {n}.md");
        let node = program.kernel.log().read(&space(), |tx| {
            use kenning_store::When;
            tx.node_by_key("", Kind::Document, &key, When::Now)
        })?;
        let body = node.map(|it| it.body);
        if program.has_vault {
            let dir = Dir::open(&program.home.path().join("vault"))?;
            let file = dir.read(&format!("people/note {n}.md"), 1 << 20).ok();
            let file = file.and_then(|it| String::from_utf8(it).ok());
            if file != body {
                return Err(wrong(format!(
                    "the file of note {n} is not what its node says: {file:?} and {body:?}"
                )));
            }
        }
        all.push((key, body.into()));
    }
    Ok(all)
}

/// Without times, and without scores that depend on what was asked before.
fn stripped(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_kept = |name: &str| {
                ![
                    "executionTime",
                    // They depend on everything that is searched, files of this machine too.
                    "relevance",
                    "quality_score",
                    "first_seen",
                    "created_at",
                    "last_seen",
                    "updated_at",
                    "path",
                ]
                .contains(&name)
            };
            let fields = fields.into_iter().filter(|it| is_kept(&it.0));
            fields.map(|(name, it)| (name, stripped(it))).collect()
        }
        Value::Array(list) => list.into_iter().map(stripped).collect(),
        other => other,
    }
}

/// Lets programs use every wing's tools while messages are lost and repeated and processes are killed, heals,
/// and compares what they answer. Returns how many writes there were.
///
/// # Errors
/// What differs.
pub fn use_tools(seed: u64, steps: u64) -> Result<u64> {
    let mut world = World::new(seed)?;
    for _ in 0..steps {
        world.step()?;
    }
    world.heal()?;
    world.check()?;
    Ok(world.n_written)
}
