//! Nodes that may not do everything: no event of an author whom a node does not know, no kind that is not shared, and
//! nothing of who may not write.

use crate::node::{KINDS, Node, RULES, space};
use kenning_core::{Code, Error, Kind, Result, SeededRandom};
use kenning_peers::{Done, Peer, Policy, Request, Response, Session, answer, pack, unpack};
use std::collections::BTreeSet;

/// One exchange, each as the other knows it.
fn exchange(caller: &Node, known: &Peer, called: &Node, asker: &Peer) -> Result<Done> {
    let mut session = Session::new(&caller.log, &space(), known, RULES).with_entries_max(7);
    let mut request = session.begin()?;
    while let Some(asked) = request {
        let read = Request::from_json(asked.path(), &unpack(&pack(&asked.to_json())?)?)?;
        let (response, done) = answer(&called.log, asker, RULES, read, ())?;
        if done.forked.is_some() {
            return Err(wrong("an honest node was taken for a liar"));
        }
        let response = Response::from_json(&unpack(&pack(&response.to_json())?)?)?;
        request = session.next(response, ())?;
    }
    Ok(session.done().clone())
}

fn wrong(what: &str) -> Error {
    Error::internal(what)
}

fn is(flag: bool, what: &str) -> Result<()> {
    match flag {
        true => Ok(()),
        false => Err(wrong(what)),
    }
}

/// Two nodes share with a third one that does not make them known to each other; what one of them may do is drawn.
/// Returns how many events were refused because nobody knows their author.
///
/// # Errors
/// What went over and should not have, or the other way round.
pub fn restrict(seed: u64) -> Result<u64> {
    let draw = SeededRandom::new(seed);
    let (mut hub, mut near, mut far) = (Node::new(&draw)?, Node::new(&draw)?, Node::new(&draw)?);
    for leaf in [&near, &far] {
        hub.trust(leaf)?;
        leaf.trust(&hub)?;
    }
    let kinds: Vec<Kind> = match draw.below(2) {
        0 => Vec::new(),
        _ => KINDS.into_iter().filter(|_| draw.below(2) == 0).collect(),
    };
    // As the hub knows the near one.
    let policy = Policy {
        kinds,
        may_read: draw.below(3) > 0,
        may_write: draw.below(3) > 0,
        ..Policy::default()
    };
    // A node that writes nothing has only what others gave it.
    let is_silent = draw.below(2) == 0;
    let mut n_refused = 0;
    for _ in 0..3 {
        for _ in 0..2 + draw.below(8) {
            hub.write(&draw)?;
            far.write(&draw)?;
            if !is_silent {
                near.write(&draw)?;
            }
        }
        let (as_hub, as_far) = (
            hub.with_policy(Policy::default()),
            far.with_policy(Policy::default()),
        );
        n_refused += exchange(&far, &as_hub, &hub, &as_far)?.refused.len() as u64;
        let as_near = near.with_policy(policy.clone());
        match exchange(&near, &as_hub, &hub, &as_near) {
            Ok(done) => n_refused += done.refused.len() as u64,
            Err(error) if error.code == Code::Denied && !policy.may_write => {}
            Err(error) => return Err(error),
        }
    }
    let of = |nodes: &[&Node]| -> BTreeSet<String> { nodes.iter().map(|it| it.did()).collect() };
    is(
        near.authors()?.is_subset(&of(&[&near, &hub])),
        "an event of an unknown author was taken",
    )?;
    is(
        far.authors()?.is_subset(&of(&[&far, &hub])),
        "an event of an unknown author was taken",
    )?;
    if !policy.may_read {
        is(
            near.authors()?.is_subset(&of(&[&near])),
            "a node got what it may not read",
        )?;
    }
    if !policy.may_write {
        is(
            !hub.authors()?.contains(&near.did()),
            "a node wrote that may not",
        )?;
    }
    if is_silent && !policy.kinds.is_empty() {
        let shared: BTreeSet<Kind> = policy.kinds.iter().copied().collect();
        is(
            near.kinds()?.is_subset(&shared),
            "a node got a kind that is not shared with it",
        )?;
    }
    let has_all = |node: &Node, writer: &Node| -> Result<bool> {
        for id in &writer.acknowledged {
            if !node.has(id)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    is(has_all(&hub, &far)?, "an acknowledged event was lost")?;
    is(has_all(&far, &hub)?, "an acknowledged event was lost")?;
    if policy.may_write {
        is(has_all(&hub, &near)?, "an acknowledged event was lost")?;
    }
    if policy.may_read && policy.kinds.is_empty() {
        is(has_all(&near, &hub)?, "an acknowledged event was lost")?;
    }
    for node in [&hub, &near, &far] {
        if let Some(fault) = node.shown()?.1.first() {
            return Err(Error::internal(fault.clone()));
        }
    }
    Ok(n_refused)
}
