//! Callers that write as fast as they are answered, until the program ends.

use super::binary::Place;
use super::calls::{Called, Maker};
use super::client::{Answer, Client, Server, Transport};
use anyhow::{Result, anyhow};
use kenning_core::SeededRandom;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// How many write at once.
pub(super) const WRITERS: u64 = 6;
/// Notes that all of them write over and over.
const SHARED_NOTES: u64 = 4;

pub(super) struct Writers(Vec<JoinHandle<Done>>);

/// What they did and what they were told.
#[derive(Default)]
pub(super) struct Done {
    pub(super) calls: Vec<Called>,
    /// Answers that were neither success nor missing.
    pub(super) refusals: Vec<String>,
}

/// Starts them. Moments are counted across all of them.
pub(super) fn start(
    server: &Server,
    place: &Place,
    transport: Transport,
    round: u64,
    seed: u64,
) -> Writers {
    let moments = Arc::new(AtomicU64::new(1));
    let start = |writer: u64| {
        let (client, moments) = (server.client(), moments.clone());
        let seed = seed.wrapping_add(writer);
        let has_http = transport == Transport::Http;
        let maker = Maker::new(format!("round {round}/{writer}"), seed, place, has_http);
        std::thread::spawn(move || write(client, maker, &moments))
    };
    Writers((0..WRITERS).map(start).collect())
}

impl Writers {
    pub(super) fn join(self) -> Result<Done> {
        let mut all = Done::default();
        for writer in self.0 {
            let done = writer.join().map_err(|_| anyhow!("a writer panicked"))?;
            all.calls.extend(done.calls);
            all.refusals.extend(done.refusals);
        }
        Ok(all)
    }
}

fn write(mut client: Client, mut maker: Maker, moments: &AtomicU64) -> Done {
    let mut done = Done::default();
    loop {
        let mut write = maker.any();
        let sent = moments.fetch_add(1, Ordering::SeqCst);
        let (answer, value) = client.write(&write);
        let is_done = answer == Answer::Acknowledged;
        let acknowledged = is_done.then(|| moments.fetch_add(1, Ordering::SeqCst));
        if is_done {
            maker.learn(&mut write, &value);
        }
        done.calls.push(write.called(sent, acknowledged));
        match answer {
            Answer::Acknowledged => {}
            Answer::Refused(said) if write.must_wait(&said) => {}
            Answer::Refused(said) => done.refusals.push(format!("{:?}: {said}", write.sort)),
            Answer::Gone => break,
        }
    }
    done
}

/// Where a writer's next note goes, and what it says: often a file of its own, sometimes one that
/// others write too.
pub(super) fn note(writer: &str, n: u64, random: &SeededRandom) -> (String, String) {
    let path = if random.below(3) == 0 {
        format!("shared/{}.md", random.below(SHARED_NOTES))
    } else {
        format!("{writer}/{n}.md")
    };
    (path, content(&format!("{writer} {n}"), random))
}

/// Unlike every other, and of any size from a line to many pages.
fn content(name: &str, random: &SeededRandom) -> String {
    let lines = match random.below(20) {
        0 => 4_000,
        1..5 => 200,
        _ => 4,
    };
    let mut text = format!("# {name}\n\n");
    for _ in 0..random.below(lines) {
        text += &format!("line {:x} of it\n", random.next());
    }
    text
}
