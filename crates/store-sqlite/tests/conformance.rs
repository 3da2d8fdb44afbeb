//! The embedded backend passes the conformance test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use kenning_store::{Store, conformance};
use kenning_store_sqlite::Sqlite;

#[test]
fn the_embedded_backend_passes_the_conformance_test() {
    let directory = tempfile::tempdir().unwrap();
    conformance::run(&|| Store::new(Sqlite::open(directory.path()).unwrap()));
}

#[test]
fn two_processes_may_make_the_same_store_at_once() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| Sqlite::open(directory.path()).unwrap());
            }
        });
    }
}

#[test]
fn a_store_of_a_newer_program_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(Sqlite::open(directory.path()).unwrap());
    let file = directory.path().join(kenning_store_sqlite::FILE_NAME);
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    let Err(error) = Sqlite::open(directory.path()) else {
        panic!("it was opened")
    };
    assert!(error.message.contains("version 999"), "{error}");
}

/// A directory that existed before may let other users in.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test looks at its own directory"
)]
fn the_files_of_a_store_are_the_owners_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let set = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(directory.path(), 0o755);
    let modes = || {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let entries = entries.map(Result::unwrap);
        let mode = |it: std::fs::DirEntry| it.metadata().unwrap().permissions().mode() & 0o777;
        entries.map(mode).collect::<Vec<u32>>()
    };
    let store = Sqlite::open(directory.path()).unwrap();
    assert_eq!(
        modes(),
        [0o600; 3],
        "the file, its log and its shared memory"
    );
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        set(&entry.unwrap().path(), 0o644);
    }
    // A store of an older version that everybody can read.
    let again = Sqlite::open(directory.path()).unwrap();
    assert_eq!(modes(), [0o600; 3]);
    drop((store, again));
}

/// What takes long, such as a backup, has a copy: whatever is written meanwhile, the log stays small.
#[test]
fn the_log_stays_small_beside_a_read_that_takes_long() {
    // What an address would give another meaning.
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("100% of a?b#c d");
    std::fs::create_dir(&directory).unwrap();
    let store = Store::new(Sqlite::open(&directory).unwrap());
    let space = kenning_core::Space::default();
    let put = |n: usize| {
        let value = vec![u8::try_from(n % 251).unwrap(); 4 << 20];
        #[expect(clippy::disallowed_methods, reason = "a test of the store itself")]
        let written = store.write(&space, move |tx| tx.set("bulk", &format!("{n:02}"), &value));
        written.unwrap();
    };
    let names = || {
        #[expect(clippy::disallowed_methods, reason = "the directory of this test")]
        let entries = std::fs::read_dir(&directory).unwrap();
        let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    for (first, what) in [(0, "a copy in memory"), (25, "a copy in a file")] {
        put(first);
        let before = names();
        let most = store.read_long(&space, |tx| {
            assert_eq!(names(), before, "{what} has no name");
            let mut most = 0;
            for n in first + 1..first + 25 {
                put(n);
                most = most.max(store.log_bytes().unwrap());
                let new = tx.get("bulk", &format!("{n:02}"))?;
                assert!(new.is_none(), "{what} is of the moment in which it began");
            }
            let old = tx.get("bulk", &format!("{first:02}"))?;
            assert_eq!(old.map(|it| it.len()), Some(4 << 20), "{what}");
            Ok(most)
        });
        let most = most.unwrap();
        assert!(most > 0 && most <= 40 << 20, "{what}: {most}");
        assert_eq!(names(), before, "{what}");
    }
    let read = store.read_long(&space, |tx| Ok(tx.get("bulk", "49")?.is_some()));
    assert!(read.unwrap());
}

/// A long read keeps the write-ahead log from being used again, and so does not keep it large for ever.
#[test]
fn the_log_is_small_again_after_a_long_read() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(Sqlite::open(directory.path()).unwrap());
    let space = kenning_core::Space::default();
    let log = directory.path().join("kenning.db-wal");
    let size = || std::fs::metadata(&log).unwrap().len();
    let put = |n: usize| {
        let value = vec![u8::try_from(n % 251).unwrap(); 4 << 20];
        #[expect(clippy::disallowed_methods, reason = "a test of the store itself")]
        let written = store.write(&space, move |tx| tx.set("bulk", &format!("{n}"), &value));
        written.unwrap();
    };
    put(0);
    store
        .read(&space, |tx| {
            tx.head()?;
            (1..12).for_each(&put);
            Ok(())
        })
        .unwrap();
    assert!(size() > 40 << 20, "{}", size());
    (12..15).for_each(&put);
    assert!(size() <= 40 << 20, "{}", size());
}
