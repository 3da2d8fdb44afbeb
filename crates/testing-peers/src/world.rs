//! Several nodes, and a network that loses, repeats and reorders.

use crate::node::{Node, RULES, space};
use kenning_audit::Tx;
use kenning_audit::foreign::{Batch, Merged};
use kenning_core::{Error, Result, SeededRandom};
use kenning_peers::{Around, Peer, Policy, Request, Response, Session, answer, pack, unpack};
use std::collections::{BTreeMap, BTreeSet};

/// One seed of so many runs on SQLite files.
const FILES_EVERY: u64 = 16;

/// A message under way.
#[derive(Clone)]
struct Message {
    from: usize,
    to: usize,
    session: u64,
    /// Which request of the session it is, or answers: answers are signed with their requests.
    number: u64,
    path: &'static str,
    is_request: bool,
    bytes: Vec<u8>,
}

/// Kills the process in the middle of a transaction, now and then.
struct Killed(bool);

impl Around for Killed {
    fn before(&mut self, _: &mut Tx<'_>, _: &mut Batch) -> Result<()> {
        Ok(())
    }

    fn after(&mut self, _: &mut Tx<'_>, _: &Merged) -> Result<()> {
        if self.0 {
            return Err(Error::unavailable("killed"));
        }
        Ok(())
    }
}

struct World {
    draw: SeededRandom,
    nodes: Vec<Node>,
    /// Who knows whom.
    links: Vec<(usize, usize)>,
    parted: BTreeSet<(usize, usize)>,
    under_way: Vec<Message>,
    sessions: BTreeMap<u64, (usize, usize, Session)>,
    /// The request of each session that waits for its answer.
    waiting: BTreeMap<u64, u64>,
    n_requests: u64,
    n_sessions: u64,
    is_healed: bool,
    /// Whether nodes take what others pass on; where everybody knows everybody, nobody has to.
    relays: bool,
}

impl World {
    fn new(seed: u64) -> Result<Self> {
        let draw = SeededRandom::new(seed);
        let n = usize::try_from(2 + draw.below(4)).unwrap_or(2);
        // Some on files, which are as slow as the disk is.
        let on_files = seed % FILES_EVERY == FILES_EVERY - 1;
        let nodes = (0..n).map(|_| match on_files {
            true => Node::on_files(&draw),
            false => Node::new(&draw),
        });
        let nodes: Vec<Node> = nodes.collect::<Result<_>>()?;
        let mut links = Vec::new();
        // A line or a star connects all; more links may be there.
        let is_star = draw.below(2) == 0;
        for other in 1..n {
            links.push((if is_star { 0 } else { other - 1 }, other));
        }
        for one in 0..n {
            for other in one + 1..n {
                if !links.contains(&(one, other)) && draw.below(2) == 0 {
                    links.push((one, other));
                }
            }
        }
        for &(one, other) in &links {
            if let (Some(a), Some(b)) = (nodes.get(one), nodes.get(other)) {
                a.trust(b)?;
                b.trust(a)?;
            }
        }
        let relays = links.len() < n * (n - 1) / 2 || draw.below(2) == 0;
        Ok(Self {
            relays,
            draw,
            nodes,
            links,
            parted: BTreeSet::new(),
            under_way: Vec::new(),
            sessions: BTreeMap::new(),
            waiting: BTreeMap::new(),
            n_requests: 0,
            n_sessions: 0,
            is_healed: false,
        })
    }

    fn index(&self, n: usize) -> usize {
        usize::try_from(self.draw.below(n.max(1) as u64)).unwrap_or_default()
    }

    fn node(&self, n: usize) -> Result<&Node> {
        self.nodes
            .get(n)
            .ok_or_else(|| Error::internal("no such node"))
    }

    fn step(&mut self) -> Result<()> {
        match self.draw.below(20) {
            0..=6 => {
                let n = self.index(self.nodes.len());
                let is_killed = self.draw.below(12) == 0;
                if let Some(node) = self.nodes.get_mut(n) {
                    match is_killed {
                        true => node.die_writing(&self.draw)?,
                        false => node.write(&self.draw)?,
                    }
                }
                if is_killed {
                    self.forget(n);
                }
            }
            7..=9 => {
                let n = self.index(self.links.len());
                if let Some(&(one, other)) = self.links.get(n) {
                    let (from, to) = if self.draw.below(2) == 0 {
                        (one, other)
                    } else {
                        (other, one)
                    };
                    self.call(from, to)?;
                }
            }
            10..=16 => self.deliver()?,
            17 => {
                // A killed process forgets what it was doing; its store does not.
                let n = self.index(self.nodes.len());
                self.forget(n);
                if let Some(node) = self.nodes.get_mut(n) {
                    node.kill()?;
                }
            }
            18 => {
                let n = self.index(self.links.len());
                if let Some(link) = self.links.get(n).copied()
                    && !self.parted.remove(&link)
                {
                    self.parted.insert(link);
                }
            }
            _ => {
                let n = self.index(self.nodes.len());
                let is_set_back = self.draw.below(4) == 0;
                let node = self.node(n)?;
                match is_set_back {
                    true => node.set_clock_back(&self.draw),
                    false => node.advance(&self.draw),
                }
            }
        }
        Ok(())
    }

    /// What a process knew of its exchanges is gone with it.
    fn forget(&mut self, n: usize) {
        self.sessions.retain(|_, it| it.0 != n);
    }

    fn peer(&self, n: usize) -> Result<Peer> {
        Ok(self.node(n)?.with_policy(Policy {
            relays: self.relays,
            ..Policy::default()
        }))
    }

    fn call(&mut self, from: usize, to: usize) -> Result<()> {
        let peer = self.peer(to)?;
        let n = usize::try_from(1 + self.draw.below(12)).unwrap_or(1);
        let log = &self.node(from)?.log;
        let mut session = Session::new(log, &space(), &peer, RULES).with_entries_max(n);
        let request = session.begin()?;
        self.n_sessions += 1;
        let id = self.n_sessions;
        self.sessions.insert(id, (from, to, session));
        self.send(from, to, id, request)
    }

    fn send(
        &mut self,
        from: usize,
        to: usize,
        session: u64,
        request: Option<Request>,
    ) -> Result<()> {
        let Some(request) = request else {
            self.sessions.remove(&session);
            return Ok(());
        };
        self.n_requests += 1;
        self.waiting.insert(session, self.n_requests);
        self.under_way.push(Message {
            from,
            to,
            session,
            number: self.n_requests,
            path: request.path(),
            is_request: true,
            bytes: pack(&request.to_json())?,
        });
        Ok(())
    }

    fn deliver(&mut self) -> Result<()> {
        if self.under_way.is_empty() {
            return Ok(());
        }
        let n = self.index(self.under_way.len());
        let message = self.under_way.swap_remove(n);
        let (low, high) = (message.from.min(message.to), message.from.max(message.to));
        if !self.is_healed {
            if self.parted.contains(&(low, high)) || self.draw.below(10) == 0 {
                return Ok(());
            }
            if self.draw.below(10) == 0 {
                self.under_way.push(message.clone());
            }
        }
        let is_killed = !self.is_healed && self.draw.below(12) == 0;
        if message.is_request {
            return self.answer(message, is_killed);
        }
        if self.waiting.get(&message.session) != Some(&message.number) {
            return Ok(());
        }
        let Some((from, to, mut session)) = self.sessions.remove(&message.session) else {
            return Ok(());
        };
        let response = Response::from_json(&unpack(&message.bytes)?)?;
        match session.next(response, Killed(is_killed)) {
            Ok(request) => {
                if session.done().forked.is_some() {
                    return Err(Error::internal("an honest node was taken for a liar"));
                }
                self.sessions.insert(message.session, (from, to, session));
                self.send(from, to, message.session, request)
            }
            // Killed, or an answer that came twice: the exchange is over, and another one begins.
            Err(error) if !self.is_healed && error.message != "killed" => {
                match error.message.contains("does not fit the request") {
                    true => Ok(()),
                    false => Err(error),
                }
            }
            Err(error) if self.is_healed => Err(error),
            Err(_) => Ok(()),
        }
    }

    fn answer(&mut self, message: Message, is_killed: bool) -> Result<()> {
        let asker = self.peer(message.from)?;
        let here = self.node(message.to)?;
        let request = Request::from_json(message.path, &unpack(&message.bytes)?)?;
        let answered = answer(&here.log, &asker, RULES, request, Killed(is_killed));
        let (response, done) = match answered {
            Ok(answered) => answered,
            Err(error) if error.message == "killed" => return Ok(()),
            Err(error) => return Err(error),
        };
        if done.forked.is_some() {
            return Err(Error::internal("an honest node was taken for a liar"));
        }
        let bytes = pack(&response.to_json())?;
        self.under_way.push(Message {
            from: message.to,
            to: message.from,
            is_request: false,
            bytes,
            ..message
        });
        Ok(())
    }

    /// Lets everything arrive until nothing is new anywhere.
    fn heal(&mut self) -> Result<()> {
        self.is_healed = true;
        self.parted.clear();
        self.sessions.clear();
        self.under_way.clear();
        for _ in 0..4 * self.nodes.len() {
            let before = self.sizes()?;
            for (one, other) in self.links.clone() {
                self.call(one, other)?;
                while !self.under_way.is_empty() {
                    self.deliver()?;
                }
            }
            if self.sizes()? == before {
                return Ok(());
            }
        }
        Err(Error::internal("the nodes exchange for ever"))
    }

    fn sizes(&self) -> Result<Vec<u64>> {
        self.nodes.iter().map(Node::size).collect()
    }

    fn check(&self) -> Result<()> {
        let first = self.node(0)?;
        let (wanted, _) = first.shown()?;
        for (n, node) in self.nodes.iter().enumerate() {
            let (there, faults) = node.shown()?;
            if let Some(fault) = faults.first() {
                return Err(Error::internal(format!("node {n}: {fault}")));
            }
            if there != wanted {
                let differs = wanted.iter().zip(&there).find(|(a, b)| a != b);
                return Err(Error::internal(format!(
                    "node {n} holds other rows ({} and {}): {differs:#?}",
                    wanted.len(),
                    there.len()
                )));
            }
        }
        let all: BTreeSet<String> = self.nodes.iter().map(Node::did).collect();
        for (n, node) in self.nodes.iter().enumerate() {
            if let Some(stranger) = node.authors()?.difference(&all).next() {
                return Err(Error::internal(format!(
                    "node {n} took an event of {stranger}, whom nobody knows"
                )));
            }
            for writer in &self.nodes {
                for id in &writer.acknowledged {
                    if !node.has(id)? {
                        return Err(Error::internal(format!("node {n} lost the event {id}")));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Lets nodes write while the network and the processes fail, heals, and compares. Returns how many
/// events there are in the end.
///
/// # Errors
/// What differs.
pub fn converge(seed: u64, steps: u64) -> Result<u64> {
    let mut world = World::new(seed)?;
    for _ in 0..steps {
        world.step()?;
    }
    world.heal()?;
    world.check()?;
    Ok(world.sizes()?.iter().sum())
}
