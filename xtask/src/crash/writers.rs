//! Callers that write as fast as they are answered, until there is nobody to answer.

use super::client::{Answer, Client, Server};
use super::verdict::Attempt;
use anyhow::{Result, anyhow};
use kenning_core::{Hash, SeededRandom};
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
    pub(super) attempts: Vec<Attempt>,
    /// Answers that were neither yes nor silence.
    pub(super) refusals: Vec<String>,
}

/// Starts them. Moments are counted across all of them.
pub(super) fn start(server: &Server, round: u64, seed: u64) -> Writers {
    let moments = Arc::new(AtomicU64::new(1));
    let start = |writer: u64| {
        let (client, moments) = (server.client(), moments.clone());
        let random = SeededRandom::new(seed.wrapping_add(writer));
        std::thread::spawn(move || write(client, round, writer, &random, &moments))
    };
    Writers((0..WRITERS).map(start).collect())
}

impl Writers {
    pub(super) fn join(self) -> Result<Done> {
        let mut all = Done::default();
        for writer in self.0 {
            let done = writer.join().map_err(|_| anyhow!("a writer panicked"))?;
            all.attempts.extend(done.attempts);
            all.refusals.extend(done.refusals);
        }
        Ok(all)
    }
}

fn write(
    mut client: Client,
    round: u64,
    writer: u64,
    random: &SeededRandom,
    moments: &AtomicU64,
) -> Done {
    let mut done = Done::default();
    for n in 0.. {
        let (path, content) = note(round, writer, n, random);
        let sent = moments.fetch_add(1, Ordering::SeqCst);
        let answer = client.write_note(&path, &content);
        let acknowledged =
            (answer == Answer::Acknowledged).then(|| moments.fetch_add(1, Ordering::SeqCst));
        let content = Hash::of(content.as_bytes());
        done.attempts.push(Attempt {
            path,
            content,
            sent,
            acknowledged,
        });
        match answer {
            Answer::Acknowledged => {}
            Answer::Refused(said) => done.refusals.push(said),
            Answer::Gone => break,
        }
    }
    done
}

/// Where a writer's next note goes, and what it says: often a file of its own, sometimes one that
/// others write too.
pub(super) fn note(round: u64, writer: u64, n: u64, random: &SeededRandom) -> (String, String) {
    let path = if random.below(3) == 0 {
        format!("shared/{}.md", random.below(SHARED_NOTES))
    } else {
        format!("round {round}/{writer}-{n}.md")
    };
    (path, content(&format!("{round} {writer} {n}"), random))
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
