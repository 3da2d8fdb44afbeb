//! What a directory promises.

use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;

use super::*;

fn fresh() -> (tempfile::TempDir, Dir) {
    let home = tempfile::tempdir().unwrap();
    let dir = Dir::create(&home.path().join("made/root")).unwrap();
    (home, dir)
}

fn mode(dir: &Dir, name: &str) -> u32 {
    let metadata = std::fs::metadata(dir.path().join(name)).unwrap();
    metadata.permissions().mode() & 0o7777
}

fn set_mode(dir: &Dir, name: &str, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(dir.path().join(name), mode).unwrap();
}

/// Every name on the disk, unfinished writes as well.
fn raw_names(dir: &Dir) -> Vec<String> {
    let names = std::fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> = names
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[track_caller]
fn check<T: fmt::Debug>(res: Result<T>, code: Code, message: &str) {
    let error = res.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (code, message));
}

#[test]
fn what_was_written_is_read_and_listed() {
    let (_home, dir) = fresh();
    dir.write("a/b/note.md", b"one").unwrap();
    dir.write("./a/x/../b/note.md", b"three").unwrap();
    assert_eq!(dir.read("a/b/note.md", 5).unwrap(), b"three");
    let listed = dir.list("a/b").unwrap();
    assert_eq!(listed, [dir.metadata("a/b/note.md").unwrap()]);
    let entry = listed.first().unwrap();
    assert!(entry.is_file && !entry.is_dir && entry.modified_ms > 0);
    assert_eq!((entry.name.as_str(), entry.size_bytes), ("note.md", 5));
    assert!(dir.list("").unwrap().first().unwrap().is_dir);
    assert!(dir.exists("a/b/note.md").unwrap());
    assert!(!dir.exists("a/b/note.md/beneath").unwrap());
    dir.remove("a/b/note.md").unwrap();
    assert!(!dir.exists("a/b/note.md").unwrap());
}

#[test]
fn messages_name_what_was_asked_for_and_nothing_of_the_machine() {
    let (home, dir) = fresh();
    dir.write("note.md", b"12345").unwrap();
    std::os::unix::fs::symlink("../../elsewhere", dir.path().join("out")).unwrap();
    check(dir.read("no.md", 9), Code::NotFound, "no file `no.md`");
    check(dir.list("no"), Code::NotFound, "no directory `no`");
    check(
        dir.read("note.md", 4),
        Code::TooLarge,
        "`note.md` is too large",
    );
    check(dir.read("out/x", 4), Code::Denied, "`out/x` leads outside");
    check(dir.write("out", b""), Code::Denied, "`out` leads outside");
    check(
        dir.read(".", 4),
        Code::InvalidInput,
        "`.` is the directory itself",
    );
    check(
        dir.write("note.md/x", b""),
        Code::InvalidInput,
        "`note.md/x` is not a directory that can be used: a part of it is not a directory",
    );
    check(
        Dir::open(&home.path().join("absent")),
        Code::NotFound,
        "no directory `absent`",
    );
}

#[test]
fn a_failed_write_leaves_the_old_content_and_no_trace() {
    let (_home, dir) = fresh();
    dir.write("note.md", b"old").unwrap();
    let res = dir.write_as("note.md", Access::Shared, |file| {
        file.write_all(b"half of the n")?;
        Err(Errno::NOSPC.into())
    });
    check(
        res,
        Code::Unavailable,
        "`note.md` cannot be reached: the disk is full",
    );
    assert_eq!(dir.read("note.md", 99).unwrap(), b"old");
    dir.create_subdir("taken").unwrap();
    check(
        dir.write("taken", b"new"),
        Code::InvalidInput,
        "`taken` is not a regular file",
    );
    assert_eq!(raw_names(&dir), ["note.md", "taken"]);
}

#[test]
fn a_failed_rename_at_the_end_of_a_write_leaves_no_trace() {
    let (_home, dir) = fresh();
    let inside = dir.clone();
    let res = dir.write_as("note.md", Access::Shared, move |_| {
        // Somebody takes the name for a directory while the bytes are on their way.
        inside
            .create_subdir("note.md")
            .map(drop)
            .map_err(io::Error::other)
    });
    assert_eq!(res.unwrap_err().code, Code::InvalidInput);
    assert_eq!(raw_names(&dir), ["note.md"]);
}

#[test]
fn a_reader_sees_only_whole_contents_during_two_thousand_overwrites() {
    let (_home, dir) = fresh();
    let content = |n: usize| vec![b'a' + (n % 26) as u8; 1 + (n % 7) * 5_000];
    dir.write("note.md", &content(0)).unwrap();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let n_reads = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut n_reads = 0;
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                let bytes = dir.read("note.md", 1 << 20).unwrap();
                let first = *bytes.first().unwrap();
                assert!(bytes.iter().all(|it| *it == first), "a torn content");
                assert_eq!(bytes.len() % 5_000, 1, "a cut content");
                n_reads += 1;
            }
            n_reads
        });
        for n in 0..2_000 {
            dir.write("note.md", &content(n)).unwrap();
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().unwrap()
    });
    println!("atomicity: 2000 overwrites, {n_reads} reads, all whole");
    assert_eq!(raw_names(&dir), ["note.md"]);
}

#[test]
fn leftovers_of_a_power_cut_are_not_listed_and_cannot_be_named() {
    let (_home, dir) = fresh();
    let leftover = ".0123456789abcdef.kenning-tmp";
    std::fs::write(dir.path().join(leftover), "half").unwrap();
    std::fs::write(dir.path().join("back\\slash"), "odd").unwrap();
    std::fs::write(dir.path().join("line\nbreak"), "odd").unwrap();
    dir.write("note.md", b"whole").unwrap();
    let names: Vec<_> = dir
        .list(".")
        .unwrap()
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names, ["note.md"]);
    assert_eq!(dir.read(leftover, 9).unwrap_err().code, Code::InvalidInput);
}

#[test]
fn permissions_are_kept_and_keys_are_private() {
    let (_home, dir) = fresh();
    assert_eq!(mode(&dir, "."), 0o700);
    assert_eq!(mode(&dir, ".."), 0o700);
    dir.write("note.md", b"one").unwrap();
    set_mode(&dir, "note.md", 0o640);
    dir.write("note.md", b"two").unwrap();
    assert_eq!(mode(&dir, "note.md"), 0o640);
    dir.write("key", b"one").unwrap();
    set_mode(&dir, "key", 0o666);
    dir.write_private("key", b"two").unwrap();
    assert_eq!(mode(&dir, "key"), 0o600);
    assert!(dir.create_new_private("keys/new", b"three").unwrap());
    assert_eq!(mode(&dir, "keys/new"), 0o600);
    assert_eq!(mode(&dir, "keys"), 0o700);
}

#[test]
fn of_eight_who_make_a_key_at_once_one_wins_and_all_agree() {
    let (_home, dir) = fresh();
    for round in 0..25 {
        let name = format!("key-{round}");
        let barrier = Barrier::new(8);
        let results: Vec<(bool, Vec<u8>)> = std::thread::scope(|scope| {
            let make = |n: u8| {
                let (dir, name, barrier) = (&dir, &name, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let has_won = dir.create_new_private(name, &[n; 32]).unwrap();
                    (has_won, dir.read(name, 32).unwrap())
                })
            };
            let threads: Vec<_> = (0..8).map(make).collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|it| it.0).count(), 1);
        let winner = results.iter().find(|it| it.0).unwrap();
        assert!(results.iter().all(|it| it.1 == winner.1));
    }
    assert_eq!(raw_names(&dir).len(), 25);
}

#[test]
fn a_link_inside_is_followed_and_stays_a_link() {
    let (_home, dir) = fresh();
    dir.write("real/note.md", b"old").unwrap();
    dir.create_subdir("links").unwrap();
    std::os::unix::fs::symlink("../real/note.md", dir.path().join("links/a")).unwrap();
    std::os::unix::fs::symlink("a", dir.path().join("links/b")).unwrap();
    std::os::unix::fs::symlink("../real/new.md", dir.path().join("links/c")).unwrap();
    dir.write("links/b", b"new").unwrap();
    assert_eq!(dir.read("real/note.md", 9).unwrap(), b"new");
    dir.write("links/c", b"made").unwrap();
    assert_eq!(dir.read("real/new.md", 9).unwrap(), b"made");
    for name in ["links/a", "links/b", "links/c"] {
        assert!(dir.path().join(name).is_symlink(), "{name}");
    }
    check(
        dir.rename("links/a", "real/note.md"),
        Code::Conflict,
        "`links/a` and `real/note.md` are the same file",
    );
    dir.remove("links/a").unwrap();
    assert_eq!(dir.read("real/note.md", 9).unwrap(), b"new");
}

#[test]
fn another_hard_link_keeps_its_old_content() {
    let (home, dir) = fresh();
    let other = home.path().join("other.md");
    dir.write("note.md", b"old").unwrap();
    std::fs::hard_link(dir.path().join("note.md"), &other).unwrap();
    dir.write("note.md", b"new").unwrap();
    assert_eq!(std::fs::read(other).unwrap(), b"old");
}

#[test]
fn a_rename_moves_files_and_directories_beneath() {
    let (_home, dir) = fresh();
    dir.write("a/note.md", b"one").unwrap();
    dir.write("other.md", b"two").unwrap();
    dir.rename("a/note.md", "b/c/moved.md").unwrap();
    assert_eq!(dir.read("b/c/moved.md", 9).unwrap(), b"one");
    dir.rename("b/", "d/").unwrap();
    dir.rename("other.md", "d/c/moved.md").unwrap();
    assert_eq!(dir.read("d/c/moved.md", 9).unwrap(), b"two");
    dir.rename("d", "d").unwrap();
    for (from, to, code) in [
        ("d", "d/c/inside-itself", Code::InvalidInput),
        ("d/c/moved.md", "a", Code::InvalidInput),
        ("d/c/moved.md", "a/", Code::InvalidInput),
        ("a", "d", Code::Conflict),
        ("absent", "x", Code::NotFound),
        ("a", "../a", Code::Denied),
    ] {
        let error = dir.rename(from, to).unwrap_err();
        assert_eq!(error.code, code, "{from} to {to}: {error}");
    }
}

#[test]
fn a_subdirectory_is_a_root_of_its_own() {
    let (_home, dir) = fresh();
    dir.write("secret.md", b"above").unwrap();
    let sub = dir.create_subdir("a/b").unwrap();
    assert_eq!(sub.path(), dir.path().join("a/b"));
    assert_eq!(
        sub.read("../../secret.md", 9).unwrap_err().code,
        Code::Denied
    );
    std::os::unix::fs::symlink("../../secret.md", sub.path().join("up")).unwrap();
    assert_eq!(sub.read("up", 9).unwrap_err().code, Code::Denied);
    assert_eq!(dir.read("a/b/up", 9).unwrap(), b"above");
}

#[test]
fn a_scratch_file_has_no_name_and_keeps_what_was_written() {
    use std::io::Seek as _;
    let (_home, dir) = fresh();
    let mut file = dir.scratch().unwrap();
    assert!(raw_names(&dir).is_empty());
    file.write_all(b"kept").unwrap();
    file.rewind().unwrap();
    assert_eq!(io::read_to_string(file).unwrap(), "kept");
}

#[test]
fn only_an_empty_directory_is_removed() {
    let (_home, dir) = fresh();
    dir.write("a/b/note.md", b"one").unwrap();
    std::os::unix::fs::symlink("a", dir.path().join("link")).unwrap();
    for (name, code) in [
        ("a/b", Code::Conflict),
        ("a/b/note.md", Code::InvalidInput),
        ("link", Code::InvalidInput),
        ("absent", Code::NotFound),
        ("..", Code::Denied),
        (".", Code::InvalidInput),
    ] {
        let error = dir.remove_dir(name).unwrap_err();
        assert_eq!(error.code, code, "{name}: {error}");
    }
    dir.remove("a/b/note.md").unwrap();
    dir.remove_dir("a/b/").unwrap();
    assert!(dir.list("a").unwrap().is_empty());
}

#[test]
fn a_directory_can_be_shared_between_threads() {
    fn check<T: Clone + Send + Sync>(_: &T) {}
    check(&fresh().1);
}

#[test]
fn a_lock_excludes_others_until_it_is_dropped() {
    let (_home, dir) = fresh();
    let lock = dir.lock("data.lock", Duration::ZERO).unwrap();
    check(
        dir.lock("data.lock", Duration::from_millis(20)),
        Code::Unavailable,
        "`data.lock` is locked by another holder",
    );
    drop(lock);
    let lock = dir.lock("data.lock", Duration::ZERO).unwrap();
    // A lock on a file that is no longer there excludes nobody, so the next holder makes a new one.
    dir.remove("data.lock").unwrap();
    dir.lock("data.lock", Duration::ZERO).unwrap();
    drop(lock);
}

#[test]
fn a_change_that_the_disk_did_not_confirm_is_told_apart_from_one_that_did_not_happen() {
    let (_home, dir) = fresh();
    dir.write("a.md", b"old").unwrap();
    // A second attempt is made.
    crate::temp::FAILING_SYNCS.set(1);
    dir.write("a.md", b"newer").unwrap();
    crate::temp::FAILING_SYNCS.set(2);
    let error = dir.write("a.md", b"newest").unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    assert!(crate::is_unconfirmed(&error), "{error:?}");
    assert!(error.message.contains("`a.md` was changed"), "{error}");
    assert_eq!(dir.read("a.md", 100).unwrap(), b"newest");
    crate::temp::FAILING_SYNCS.set(2);
    assert!(crate::is_unconfirmed(&dir.confirm("a.md").unwrap_err()));
    dir.confirm("a.md").unwrap();
    crate::temp::FAILING_SYNCS.set(2);
    assert!(crate::is_unconfirmed(&dir.remove("a.md").unwrap_err()));
    assert!(!dir.exists("a.md").unwrap());
    let missing = dir.remove("a.md").unwrap_err();
    assert!(!crate::is_unconfirmed(&missing));
    assert_eq!(raw_names(&dir), [""; 0]);
}

#[test]
fn a_staged_content_is_nothing_until_it_takes_its_name() {
    let (_home, dir) = fresh();
    dir.write("note.md", b"old").unwrap();
    set_mode(&dir, "note.md", 0o640);
    drop(dir.stage("note.md", b"dropped").unwrap());
    assert_eq!(raw_names(&dir), ["note.md"]);
    let staged = dir.stage("note.md", b"new").unwrap();
    assert_eq!(dir.read("note.md", 9).unwrap(), b"old");
    staged.take_name().unwrap();
    assert_eq!(dir.read("note.md", 9).unwrap(), b"new");
    assert_eq!(mode(&dir, "note.md"), 0o640);
    assert_eq!(raw_names(&dir), ["note.md"]);
    let staged = dir.stage("taken", b"new").unwrap();
    dir.create_subdir("taken/by/folders").unwrap();
    assert!(staged.take_name().is_err());
    assert_eq!(raw_names(&dir), ["note.md", "taken"]);
    assert!(dir.stage("taken", b"new").is_err());
}
