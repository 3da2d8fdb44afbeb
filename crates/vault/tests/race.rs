//! A directory and a link to the outside change places all the time, while others work through it.
//!
//! A check before the use would be true and then false. Here nothing is checked: the kernel resolves
//! each name in one step beneath the open root. A careless reader runs along and does read outside,
//! which shows that the race is one.
//!
//! `KENNING_RACE_SWAPS` sets the number of swaps, `KENNING_RACE_SEED` the order of the operations.

#![expect(clippy::unwrap_used, reason = "helpers of a test are tests as well")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test makes the race and looks at the tree directly"
)]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use kenning_core::SeededRandom;
use kenning_vault::Dir;
use rustix::fs::{CWD, RenameFlags};

const SWAPS: u64 = 100_000;
/// The race goes on until this many operations have found the directory in its place. They are few
/// beside those that found the link, because to be refused is quicker than to sync a disk.
const SUCCEEDED_MIN: u64 = 1_000;
const CANARY: &[u8] = b"canary-7f3a";

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|it| it.parse().unwrap())
}

/// Every name outside with its content.
fn outside_now(outside: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(outside).unwrap().map(|it| it.unwrap());
    let mut all: Vec<_> = entries
        .map(|entry| {
            let content = fs::read(entry.path()).unwrap_or_default();
            (entry.file_name().into_string().unwrap(), content)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_directory_swapped_with_a_link_lets_nothing_out() {
    let n_swaps_wanted = from_env("KENNING_RACE_SWAPS").unwrap_or(SWAPS);
    let seed = from_env("KENNING_RACE_SEED").unwrap_or_else(|| getrandom::u64().unwrap());
    let start = std::time::Instant::now();

    let home = tempfile::tempdir().unwrap();
    let (root, outside) = (home.path().join("vault"), home.path().join("outside"));
    fs::create_dir_all(root.join("swap/dir")).unwrap();
    fs::create_dir_all(outside.join("dir")).unwrap();
    fs::write(root.join("swap/secret.md"), "inside").unwrap();
    fs::write(outside.join("secret.md"), CANARY).unwrap();
    fs::write(outside.join("only-outside.md"), CANARY).unwrap();
    std::os::unix::fs::symlink("../outside", root.join("link")).unwrap();
    let before = outside_now(&outside);

    let dir = Dir::open(&root).unwrap();
    let is_done = AtomicBool::new(false);
    let (n_swaps, n_operations, n_succeeded) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (n_escapes, n_careless) = (AtomicU64::new(0), AtomicU64::new(0));

    let work = |random: SeededRandom| {
        while !is_done.load(Relaxed) {
            let n = random.below(8);
            let res = match random.below(16) {
                0 => dir.write(&format!("swap/written-{n}.md"), b"written"),
                1 => dir.write(&format!("swap/new-{n}/deep/written.md"), b"written"),
                2 => dir
                    .create_new_private(&format!("swap/key-{n}"), b"key")
                    .map(drop),
                3 => dir.remove(&format!("swap/key-{n}")),
                4 => dir.rename(
                    &format!("swap/written-{n}.md"),
                    &format!("swap/moved-{n}.md"),
                ),
                5 => dir.create_subdir(&format!("swap/made-{n}")).map(drop),
                6 | 7 => dir.list("swap").map(|entries| {
                    let leaked = entries.iter().any(|it| it.name == "only-outside.md");
                    n_escapes.fetch_add(leaked.into(), Relaxed);
                }),
                8 => dir.subdir("swap").map(|sub| {
                    let leaked = sub.exists("only-outside.md").unwrap();
                    n_escapes.fetch_add(leaked.into(), Relaxed);
                }),
                9 => dir.exists("swap/only-outside.md").map(|leaked| {
                    n_escapes.fetch_add(leaked.into(), Relaxed);
                }),
                _ => dir.read("swap/secret.md", 99).map(|bytes| {
                    n_escapes.fetch_add((bytes == CANARY).into(), Relaxed);
                }),
            };
            n_operations.fetch_add(1, Relaxed);
            n_succeeded.fetch_add(res.is_ok().into(), Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| work(SeededRandom::new(seed)));
        scope.spawn(|| work(SeededRandom::new(seed.wrapping_add(1))));
        // What the test would find if names were plain paths.
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                let seen = fs::read(root.join("swap/secret.md"));
                n_careless.fetch_add(seen.is_ok_and(|it| it == CANARY).into(), Relaxed);
                std::thread::yield_now();
            }
        });
        let (a, b) = (root.join("swap"), root.join("link"));
        while n_swaps.load(Relaxed) < n_swaps_wanted || n_succeeded.load(Relaxed) < SUCCEEDED_MIN {
            rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
            n_swaps.fetch_add(1, Relaxed);
        }
        is_done.store(true, Relaxed);
    });

    let is_changed = outside_now(&outside) != before;
    let n_escapes = n_escapes.into_inner() + u64::from(is_changed);
    println!(
        "race: {} swaps, {} operations, {n_escapes} escapes, seed {seed}",
        n_swaps.into_inner(),
        n_operations.into_inner(),
    );
    println!(
        "race: {} operations succeeded, a careless reader escaped {} times, {} ms",
        n_succeeded.load(Relaxed),
        n_careless.load(Relaxed),
        start.elapsed().as_millis(),
    );
    assert_eq!(n_escapes, 0, "changed outside: {is_changed}");
    assert!(n_careless.into_inner() > 0, "there was no race");
}
