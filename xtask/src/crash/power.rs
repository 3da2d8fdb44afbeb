//! The power goes out while the program writes.
//!
//! The real program is watched: everything that it does to its files, and what it answers, is written
//! down in one order ([`kenning_testing_disk`]). Then the power goes out at a chosen moment, again and
//! again: what had been synced is there, of the rest each piece is there, missing, torn, older or
//! nonsense. The store, the vault, the context and the items are opened as they were left, and judged
//! as after any crash: nothing that was acknowledged before that moment may be lost, and nothing may
//! disagree.
//!
//! `--without` leaves syncs out while the program runs, and then the test **must** fail: `database` is
//! what `synchronous=OFF` does, `files` a vault without `sync_all`, `names` one that does not sync
//! directories.

use super::TOLD_MAX;
use super::binary::{Binary, Place};
use super::calls::{Called, Maker};
use super::client::{Answer, Client, Server, Transport};
use super::verdict::{self, Verdict};
use crate::options::Options;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use kenning_core::SeededRandom;
use kenning_testing_disk::image::{self, Files, Tree};
use kenning_testing_disk::{Disk, Leaves, Settings, Step, start};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often the power goes out in what was written down once.
const CUTS: u64 = 50;
/// How many write at once.
const CALLERS: u64 = 4;
/// How much each of them writes in one life of the program.
const CALLS: u64 = 12;
/// How many lives are written down as one.
const LIVES: u64 = 2;
/// How many store, one beside the other, are looked at.
const WORKERS: usize = 2;

/// What a program did in some lives, and what it was asked for.
struct Recording {
    before: Tree,
    steps: Vec<Step>,
    calls: Vec<Called>,
}

/// The results of all cuts.
#[derive(Default)]
struct Tally {
    n_cuts: u64,
    n_acknowledged: usize,
    n_pending: usize,
    n_lost: usize,
    n_unsound: usize,
    told: Vec<String>,
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["cuts", "seed", "binary", "without"])?;
    let n_cuts: u64 = options.value("cuts", 2_000)?;
    let seed = super::seed(options)?;
    let leaves = match options.text("without") {
        None => Leaves::Nothing,
        Some("database") => Leaves::Files("kenning.db"),
        Some("files") => Leaves::FilesBut("kenning.db"),
        Some("names") => Leaves::Directories,
        Some(other) => bail!("`--without {other}`: database, files or names"),
    };
    let binary = Binary::find(options, false)?;
    let tally = Mutex::new(Tally::default());
    let n_recordings = n_cuts.div_ceil(CUTS);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let n = next.fetch_add(1, Ordering::SeqCst);
                if n >= n_recordings {
                    return Ok(());
                }
                let cuts = CUTS.min(n_cuts - n * CUTS);
                one_recording(&binary, seed.wrapping_add(n), cuts, leaves, &tally)?;
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|it| it.join());
        ended
            .map(|it| it.map_err(|_| anyhow!("a worker panicked"))?)
            .collect::<Result<Vec<()>>>()
    })?;
    let tally = tally
        .into_inner()
        .map_err(|_| anyhow!("a worker panicked"))?;
    report(&tally, seed, options.text("without"))
}

fn report(tally: &Tally, seed: u64, without: Option<&str>) -> Result<()> {
    for sentence in tally.told.iter().take(TOLD_MAX) {
        println!("{sentence}");
    }
    let n_failures = tally.n_lost + tally.n_unsound;
    println!(
        "power: {} cuts, {n_failures} failures ({} lost, {} unsound), {} acknowledged, {} unsynced \
         changes at the moment of a cut, seed {seed}",
        tally.n_cuts,
        tally.n_lost,
        tally.n_unsound,
        tally.n_acknowledged,
        tally.n_pending as u64 / tally.n_cuts.max(1),
    );
    ensure!(
        tally.n_acknowledged > 0,
        "nothing was acknowledged, so nothing was tested"
    );
    match without {
        None => ensure!(n_failures == 0, "promises were broken"),
        Some(what) => {
            ensure!(
                n_failures > 0,
                "nothing was lost without the syncs of `{what}`: the test is blind"
            );
            println!("power: it was seen that the syncs of `{what}` are missing");
        }
    }
    Ok(())
}

/// Lets the program live, then lets the power go out at many moments of that life.
fn one_recording(
    binary: &Binary,
    seed: u64,
    n_cuts: u64,
    leaves: Leaves,
    tally: &Mutex<Tally>,
) -> Result<()> {
    let random = SeededRandom::new(seed);
    let place = Place::fresh()?;
    let recording = record(binary, &place, &random, leaves)?;
    let mut moments: Vec<usize> = (0..n_cuts)
        .map(|_| moment(&recording.steps, &random))
        .collect();
    moments.sort_unstable();
    let mut files = Files::new(&recording.before);
    let mut n_done = 0;
    for moment in moments {
        while n_done < moment {
            files.follow(&recording.steps[n_done]);
            n_done += 1;
        }
        let tree = files.cut(&mut |below| random.below(below));
        let calls = until(&recording.calls, moment as u64);
        empty(&place)?;
        image::write(&tree, place.root())?;
        let verdict = match binary.look(&place) {
            Ok(found) => verdict::judge_all(&BTreeMap::new(), &calls, &found),
            Err(error) => Verdict {
                lost: Vec::new(),
                unsound: vec![format!("it cannot be looked at: {error:#}")],
            },
        };
        let sentences = [&verdict.lost[..], &verdict.unsound].concat();
        let mut tally = tally.lock().map_err(|_| anyhow!("a worker panicked"))?;
        tally.n_cuts += 1;
        tally.n_acknowledged += calls.iter().filter(|it| it.acknowledged.is_some()).count();
        tally.n_pending += files.n_pending();
        tally.n_lost += verdict.lost.len();
        tally.n_unsound += verdict.unsound.len();
        let n_steps = recording.steps.len();
        let told = sentences
            .iter()
            .map(|it| format!("seed {seed}, cut at {moment} of {n_steps}: {it}"));
        tally.told.extend(told.take(4));
        drop(tally);
        if std::env::var_os("KENNING_CRASH_KEEP").is_some() && !sentences.is_empty() {
            // Written once more as it was left, for debugging.
            empty(&place)?;
            image::write(&tree, place.root())?;
            println!("left in {}", place.clone().keep().display());
            return Ok(());
        }
    }
    Ok(())
}

/// What was asked for and answered before this moment.
fn until(calls: &[Called], moment: u64) -> Vec<Called> {
    let sent = calls.iter().filter(|it| it.sent <= moment);
    let mut calls: Vec<Called> = sent.cloned().collect();
    for call in &mut calls {
        call.acknowledged = call.acknowledged.filter(|it| *it < moment);
    }
    calls
}

/// Any moment, or one shortly after an answer: there a sync that comes too late shows.
fn moment(steps: &[Step], random: &SeededRandom) -> usize {
    let n = steps.len() as u64;
    let any = random.below(n + 1) as usize;
    if random.below(2) == 0 {
        return any;
    }
    let said = steps[any.min(steps.len().saturating_sub(1))..]
        .iter()
        .position(|it| matches!(it, Step::Said(_)));
    let at = said.map_or(any, |it| any + it + 1);
    (at + random.below(3) as usize).min(steps.len())
}

/// Removes what is in a place, not the place.
fn empty(place: &Place) -> Result<()> {
    for entry in std::fs::read_dir(place.root())? {
        let path = entry?.path();
        if path.is_dir() {
            std::fs::remove_dir_all(path)?;
        } else {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Some lives of the program, the last of which ends in order and the others perhaps not.
fn record(
    binary: &Binary,
    place: &Place,
    random: &SeededRandom,
    leaves: Leaves,
) -> Result<Recording> {
    let before = image::read(place.root())?;
    let (mut steps, mut calls) = (Vec::new(), Vec::new());
    for life in 0..LIVES {
        let mut disk = None;
        let server = Server::start_as(binary, place, Transport::Stdio, |command| {
            let settings = Settings {
                records: true,
                leaves,
                fault: None,
            };
            let (child, watched) = start(command, place.root(), settings)?;
            disk = Some(watched);
            Ok(child)
        })?;
        let disk = disk.context("the program was not started")?;
        let answered = one_life(&server, place, &disk, life, random.next())?;
        if life + 1 < LIVES && random.below(2) == 0 {
            server.kill()?;
        } else {
            server.stop()?;
        }
        let done = disk.take_steps();
        let said = when_said(&done);
        let offset = steps.len() as u64;
        for (id, mut call) in answered {
            let at = id.and_then(|id| said.get(&id));
            call.sent += offset;
            call.acknowledged = at.map(|it| *it as u64 + offset);
            calls.push(call);
        }
        steps.extend(done);
    }
    Ok(Recording {
        before,
        steps,
        calls,
    })
}

/// All callers at once. Each call with the number of its good answer.
fn one_life(
    server: &Server,
    place: &Place,
    disk: &Disk,
    life: u64,
    seed: u64,
) -> Result<Vec<(Option<u64>, Called)>> {
    let callers = (0..CALLERS).map(|caller| {
        let (mut client, disk) = (server.client(), disk.clone());
        let name = format!("life {life}/{caller}");
        let mut maker = Maker::new(name, seed.wrapping_add(caller), place, false);
        std::thread::spawn(move || {
            let mut done = Vec::new();
            for _ in 0..CALLS {
                done.push(one_call(&mut client, &mut maker, &disk)?);
            }
            Ok(done)
        })
    });
    let callers: Vec<_> = callers.collect();
    let mut all = Vec::new();
    for caller in callers {
        let done: Result<Vec<_>> = caller.join().map_err(|_| anyhow!("a caller panicked"))?;
        all.extend(done?);
    }
    Ok(all)
}

fn one_call(client: &mut Client, maker: &mut Maker, disk: &Disk) -> Result<(Option<u64>, Called)> {
    let mut write = maker.any();
    let sent = disk.n_steps() as u64;
    let (answer, value) = client.write(&write);
    match answer {
        Answer::Acknowledged => {
            maker.learn(&mut write, &value);
            Ok((Some(client.last_id()), write.called(sent, None)))
        }
        Answer::Refused(said) if write.must_wait(&said) => Ok((None, write.called(sent, None))),
        Answer::Refused(said) => bail!("{:?} was refused: {said}", write.sort),
        Answer::Gone => bail!("the program ended by itself"),
    }
}

/// The step that ended the line of each answer.
fn when_said(steps: &[Step]) -> HashMap<u64, usize> {
    let (mut out, mut line) = (HashMap::new(), Vec::new());
    for (at, step) in steps.iter().enumerate() {
        let Step::Said(bytes) = step else { continue };
        for byte in bytes {
            if *byte != b'\n' {
                line.push(*byte);
                continue;
            }
            let message: Value = serde_json::from_slice(&line).unwrap_or_default();
            if let Some(id) = message["id"].as_u64() {
                out.insert(id, at);
            }
            line.clear();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_given_when_its_line_ends() {
        let said = |text: &str| Step::Said(text.as_bytes().to_vec());
        let steps = [
            said("{\"id\":1}\n{\"id\""),
            Step::SyncDir(String::new()),
            said(":2}\n"),
        ];
        assert_eq!(when_said(&steps), HashMap::from([(1, 0), (2, 2)]));
    }
}
