//! Whole programs that share a space: every wing's tools write, and all must answer alike.
//!
//! The nodes are complete engines over stores in memory, each with directories of its own; some have no
//! vault. Messages go through the real door for peers, with seals and challenges, over a carrier that
//! loses, repeats and sends again; nodes are killed at any write and opened again.
//!
//! A seed draws the same writes, messages and kills on every machine. What a killed program's background
//! thread had done by then depends on the machine too; whatever it was must be right.

mod answers;
mod program;
mod writes;

use crate::node::space;
use answers::{Answers, memories, rows, shown};
use kenning_core::{Clock as _, Code, Error, Result, SeededRandom};
use kenning_engine::{NewPeer, PeerPolicy, koi};
use program::{Program, Wire};
use serde_json::json;
use std::collections::BTreeSet;
use writes::write;

const START_MS: u64 = 1_800_000_000_000;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// Rounds of exchanges after which everything must have arrived.
const ROUNDS_MAX: usize = 12;

fn wrong(what: impl std::fmt::Display) -> Error {
    Error::internal(what.to_string())
}

struct World {
    draw: SeededRandom,
    programs: Vec<Program>,
    links: Vec<(usize, usize)>,
    /// Memories that somebody was told are stored.
    acknowledged: BTreeSet<String>,
    n_written: u64,
    n_killed: u64,
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
            acknowledged: BTreeSet::new(),
            n_written: 0,
            n_killed: 0,
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
                if self.draw.below(6) == 0 {
                    self.at(n)?.endanger(&self.draw);
                }
                let written = write(self.at(n)?, &self.draw);
                if !self.revive(n)? {
                    self.acknowledged.extend(written?);
                    self.n_written += 1;
                }
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
                for n in [from, to] {
                    if self.draw.below(6) == 0 {
                        self.at(n)?.endanger(&self.draw);
                    }
                }
                let exchanged = self.exchange(from, to, true);
                let is_killed = [self.revive(from)?, self.revive(to)?];
                match exchanged {
                    _ if is_killed.contains(&true) => {}
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
                    self.n_killed += 1;
                }
            }
        }
        Ok(())
    }

    /// Opens a program again that was killed. Says whether it was.
    fn revive(&mut self, n: usize) -> Result<bool> {
        let program = self.programs.get_mut(n);
        let program = program.ok_or_else(|| wrong("no such program"))?;
        let is_killed = program.revive()?;
        self.n_killed += u64::from(is_killed);
        Ok(is_killed)
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
            let stored = memories(program)?;
            if let Some(lost) = self.acknowledged.difference(&stored).next() {
                return Err(wrong(format!(
                    "program {n} lost an acknowledged memory: {lost}"
                )));
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
