//! Backups without an attacker, in a directory and in a bucket: created, listed, restored, damaged,
//! interrupted, aged.

use super::server::Server;
use super::*;
use crate::record::{archive_key, metadata_key};
use crate::{Cleaned, Limits, Metadata};
use kenning_core::{Code, Error, Random};
use std::io::Write;

/// Runs a scenario in a directory and in a bucket, sealed and not.
fn everywhere(scenario: impl Fn(&Home, Backups)) {
    for is_sealed in [false, true] {
        let server = Server::start();
        for is_bucket in [false, true] {
            let home = Home::new();
            let backups = if is_bucket {
                home.on(&server)
            } else {
                home.local()
            };
            let backups = if is_sealed { sealed(backups) } else { backups };
            scenario(&home, backups);
        }
    }
}

#[test]
fn what_was_backed_up_is_listed_verified_and_restored() {
    everywhere(|home, backups| {
        let sample = sample();
        let made = backups
            .create(&home.request(Kind::Full, NOW), sources(&sample))
            .unwrap();
        assert_eq!(made.backup_id, "omi_full_20261115_095318");
        assert_eq!(made.created_at, "2026-11-15T09:53:18Z");
        assert_eq!(made.files_included.len(), sample.len());
        assert_eq!(made.base_path_hash.len(), 16);
        let listing = backups.list().unwrap();
        assert_eq!(listing.backups, std::slice::from_ref(&made));
        assert!(listing.broken.is_empty());
        let verified = backups.verify(&made.backup_id).unwrap();
        assert!(verified.files.iter().eq(sample.keys()));
        home.into.write("NOW.md", b"newer").unwrap();
        home.into.write("stays.md", b"untouched").unwrap();
        let restored = backups.restore(&made.backup_id, &home.into).unwrap();
        assert!(restored.files.iter().eq(sample.keys()));
        let mut expected = sample;
        expected.insert("stays.md".to_owned(), b"untouched".to_vec());
        assert_eq!(only_files(&home.into), expected);
        let beside = content(&home.into).into_keys();
        let beside: Vec<_> = beside.filter(|it| it.starts_with('.')).collect();
        assert!(beside.is_empty(), "{beside:?}");
        assert!(content(&home.scratch).is_empty());
    });
}

#[test]
fn metadata_has_the_fields_that_its_readers_know() {
    let home = Home::new();
    let made = home
        .local()
        .create(&home.request(Kind::Full, NOW), sources(&sample()))
        .unwrap();
    let bytes = home
        .place
        .read(&metadata_key(&made.backup_id), 9_999)
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let fields: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let known = [
        "backup_id",
        "backup_type",
        "created_at",
        "file_size",
        "checksum",
        "encrypted",
        "files_included",
        "base_path_hash",
        "retention_days",
        "manifest_checksum",
    ];
    assert_eq!(fields, known);
    assert_eq!(json["backup_type"], "full");
    let archive = home
        .place
        .read(&archive_key(&made.backup_id, false), 9_999)
        .unwrap();
    assert_eq!(json["checksum"], kenning_text::hex::sha256(&archive));
    assert_eq!(json["file_size"], archive.len());
}

#[test]
fn a_sealed_backup_shows_names_and_no_content() {
    let home = Home::new();
    let secret = files(&[("diary.md", "the treasure is under the oak")]);
    let backups = sealed(home.local());
    backups
        .create(&home.request(Kind::Full, NOW), sources(&secret))
        .unwrap();
    let hash = kenning_text::hex::sha256(b"the treasure is under the oak");
    for (name, bytes) in only_files(&home.place) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains("treasure") && !text.contains(&hash),
            "{name}"
        );
    }
    assert!(!format!("{backups:?}").contains("horse"));
}

#[test]
fn several_backups_of_one_second_have_ids_of_their_own() {
    everywhere(|home, backups| {
        let mut made = Vec::new();
        for text in ["one", "two", "three"] {
            let files = files(&[("a", text)]);
            let request = home.request(Kind::Full, NOW);
            made.push((backups.create(&request, sources(&files)).unwrap(), files));
        }
        assert_eq!(made[0].0.backup_id, "omi_full_20261115_095318");
        assert_eq!(backups.list().unwrap().backups.len(), 3);
        for (metadata, files) in made {
            backups.restore(&metadata.backup_id, &home.into).unwrap();
            assert_eq!(only_files(&home.into), files);
        }
    });
}

#[test]
fn of_many_that_begin_at_once_each_gets_its_own() {
    let server = Server::start();
    let homes: Vec<Home> = (0..6).map(|_| Home::new()).collect();
    let shared = homes[0].place.clone();
    for is_bucket in [false, true] {
        let made: Vec<(Metadata, Files)> = std::thread::scope(|scope| {
            let make = |(n, home)| {
                let (server, shared): (&Server, &Dir) = (&server, &shared);
                let home: &Home = home;
                scope.spawn(move || {
                    let place = Backups::new(Place::Local(shared.clone()), home.scratch.clone());
                    let backups = if is_bucket { home.on(server) } else { place };
                    let files = files(&[("a", &format!("writer {n}"))]);
                    // Each has a randomness of its own, as each process has.
                    let mut request = home.request(Kind::Full, NOW);
                    let random = SeededRandom::new(100 + n);
                    request.random = &random;
                    (backups.create(&request, sources(&files)).unwrap(), files)
                })
            };
            let threads: Vec<_> = (0_u64..).zip(&homes).map(make).collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        for ((metadata, files), home) in made.iter().zip(&homes) {
            let place = Backups::new(Place::Local(shared.clone()), home.scratch.clone());
            let backups = if is_bucket { home.on(&server) } else { place };
            backups.restore(&metadata.backup_id, &home.into).unwrap();
            assert_eq!(&only_files(&home.into), files);
        }
    }
}

#[test]
fn an_incremental_backup_holds_what_changed_and_restores_everything() {
    everywhere(|home, backups| {
        let before = files(&[
            ("store.dump", "rows"),
            ("same.md", "same"),
            ("changed.md", "old"),
            ("gone.md", "gone"),
        ]);
        let full = backups
            .create(&home.request(Kind::Full, NOW), sources(&before))
            .unwrap();
        for (day, text) in [("16", "new"), ("17", "newer")] {
            let after = files(&[
                ("store.dump", "rows"),
                ("same.md", "same"),
                ("changed.md", text),
                ("added.md", "added"),
            ]);
            let now = format!("2026-11-{day}T00:00:00Z");
            let made = backups
                .create(&home.request(Kind::Incremental, &now), sources(&after))
                .unwrap();
            assert_eq!(
                made.backup_id,
                format!("omi_incremental_202611{day}_000000")
            );
            assert_eq!(made.based_on.as_ref(), Some(&full.backup_id));
            assert_eq!(
                made.files_included,
                ["added.md", "changed.md", "store.dump"]
            );
            let home = Home::new();
            assert_eq!(backups.verify(&made.backup_id).unwrap().files.len(), 4);
            backups.restore(&made.backup_id, &home.into).unwrap();
            assert_eq!(only_files(&home.into), after);
        }
    });
}

#[test]
fn an_incremental_backup_without_its_base_restores_nothing_and_names_it() {
    let home = Home::new();
    let backups = home.local();
    let full = backups
        .create(&home.request(Kind::Full, NOW), sources(&sample()))
        .unwrap();
    let next = home.request(Kind::Incremental, "2026-11-16T00:00:00Z");
    let made = backups.create(&next, sources(&sample())).unwrap();
    let damaged = |key: &str| {
        let mut bytes = home.place.read(key, 99_999).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        home.place.write(key, &bytes).unwrap();
    };
    damaged(&archive_key(&full.backup_id, false));
    let error = backups.restore(&made.backup_id, &home.into).unwrap_err();
    assert!(
        error.message.starts_with("Checksum mismatch! Expected "),
        "{error}"
    );
    assert!(error.message.contains(&full.backup_id));
    home.place.remove(&metadata_key(&full.backup_id)).unwrap();
    let error = backups.restore(&made.backup_id, &home.into).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert_eq!(error.message, format!("no backup `{}`", full.backup_id));
    assert!(content(&home.into).is_empty());
}

#[test]
fn an_incremental_backup_with_nothing_to_build_on_is_a_full_one() {
    let home = Home::new();
    let plain = home.local();
    let make = |backups: &Backups, day: &str, base_path: &'static str| {
        let now = format!("2026-11-{day}T00:00:00Z");
        let mut request = home.request(Kind::Incremental, &now);
        request.base_path = base_path;
        backups
            .create(&request, sources(&sample()))
            .unwrap()
            .backup_type
    };
    assert_eq!(make(&plain, "01", "/a"), Kind::Full);
    assert_eq!(make(&plain, "02", "/a"), Kind::Incremental);
    assert_eq!(make(&plain, "03", "/b"), Kind::Full, "other files");
    let locked = sealed(home.local());
    assert_eq!(
        make(&locked, "04", "/a"),
        Kind::Full,
        "the base is not sealed"
    );
    assert_eq!(make(&locked, "05", "/a"), Kind::Incremental);
    let changed = home.local().sealed_with(Some(Passphrase::cheap("another")));
    assert_eq!(make(&changed, "06", "/a"), Kind::Full, "another passphrase");
}

#[test]
fn a_wrong_a_missing_and_a_damaged_one_are_three_different_errors() {
    let home = Home::new();
    let made = sealed(home.local())
        .create(&home.request(Kind::Full, NOW), sources(&sample()))
        .unwrap();
    let id = &made.backup_id;
    let wrong = home.local().sealed_with(Some(Passphrase::cheap("wrong")));
    let error = wrong.restore(id, &home.into).unwrap_err();
    assert_eq!(error.code, Code::Denied);
    assert!(error.message.starts_with("wrong passphrase"), "{error}");
    let error = home.local().restore(id, &home.into).unwrap_err();
    assert_eq!(error.code, Code::Denied);
    assert!(
        error.message.contains("encrypted with a passphrase"),
        "{error}"
    );
    let key = archive_key(id, true);
    let mut bytes = home.place.read(&key, 99_999).unwrap();
    bytes[200] ^= 1;
    home.place.write(&key, &bytes).unwrap();
    let error = sealed(home.local()).restore(id, &home.into).unwrap_err();
    assert_eq!(error.code, Code::Corrupt);
    assert!(
        error.message.starts_with("Checksum mismatch! Expected "),
        "{error}"
    );
    assert!(content(&home.into).is_empty());
}

/// Anyone who can write to the place can also write a matching checksum.
#[test]
fn a_flipped_byte_of_a_sealed_backup_is_found_even_if_the_checksum_fits() {
    let home = Home::new();
    let backups = sealed(home.local());
    let mut noise = vec![0; 200_000];
    home.random.fill(&mut noise);
    let noise = Files::from([("a".to_owned(), noise)]);
    let made = backups
        .create(&home.request(Kind::Full, NOW), sources(&noise))
        .unwrap();
    let key = archive_key(&made.backup_id, true);
    let whole = home.place.read(&key, 999_999).unwrap();
    assert!(
        whole.len() > 2 * 65_552,
        "several chunks, not {}",
        whole.len()
    );
    for n in 0..100 {
        let mut bytes = whole.clone();
        bytes[n * whole.len() / 100] ^= 4;
        home.place.write(&key, &bytes).unwrap();
        let checksum = kenning_text::hex::sha256(&bytes);
        let metadata = Metadata {
            checksum,
            ..made.clone()
        };
        let json = serde_json::to_vec(&metadata).unwrap();
        home.place
            .write(&metadata_key(&made.backup_id), &json)
            .unwrap();
        let error = backups.verify(&made.backup_id).unwrap_err();
        assert_eq!(error.code, Code::Corrupt, "{n} of 100: {error}");
        let error = backups.restore(&made.backup_id, &home.into).unwrap_err();
        assert_eq!(error.code, Code::Corrupt, "{n} of 100: {error}");
    }
    assert!(content(&home.into).is_empty());
}

#[test]
fn one_sealed_backup_cannot_be_passed_off_as_another() {
    let home = Home::new();
    let backups = sealed(home.local());
    let make = |now: &str, text: &str| {
        let request = home.request(Kind::Full, now);
        backups
            .create(&request, sources(&files(&[("a", text)])))
            .unwrap()
    };
    let old = make("2026-11-01T00:00:00Z", "old");
    let new = make("2026-11-02T00:00:00Z", "new");
    for key in [Metadata::archive_key, Metadata::manifest_key] {
        home.place
            .write(&key(&new), &home.place.read(&key(&old), 99_999).unwrap())
            .unwrap();
    }
    let forged = Metadata {
        backup_id: new.backup_id.clone(),
        created_at: new.created_at.clone(),
        ..old
    };
    let json = serde_json::to_vec(&forged).unwrap();
    home.place
        .write(&metadata_key(&new.backup_id), &json)
        .unwrap();
    assert_eq!(backups.list().unwrap().backups.len(), 2);
    let error = backups.restore(&new.backup_id, &home.into).unwrap_err();
    assert_eq!(error.code, Code::Corrupt, "{error}");
}

#[test]
fn a_source_that_fails_in_the_middle_leaves_nothing() {
    everywhere(|home, backups| {
        let noise = vec![7; 100_000];
        let failing = || {
            let whole = Source::reader("whole", &noise[..]);
            let half = Source::new("half", |out: &mut dyn Write| {
                out.write_all(b"half of it").unwrap();
                Err(Error::unavailable("the store is locked"))
            });
            [whole, half]
        };
        let error = backups
            .create(&home.request(Kind::Full, NOW), failing())
            .unwrap_err();
        assert_eq!(error.message, "the store is locked");
        assert!(backups.place.list("backups/").unwrap().is_empty());
        let twice = [
            Source::reader("a", &b"1"[..]),
            Source::reader("a", &b"2"[..]),
        ];
        let error = backups
            .create(&home.request(Kind::Full, NOW), twice)
            .unwrap_err();
        assert_eq!(error.message, "`a` appears twice");
        assert!(backups.place.list("backups/").unwrap().is_empty());
    });
}

#[test]
fn what_restore_would_refuse_create_refuses_to_make() {
    let home = Home::new();
    let limits = Limits {
        files_max: 2,
        file_bytes_max: 10,
        total_bytes_max: 15,
        archive_bytes_max: 1_000,
    };
    let backups = home.local().within(limits);
    let check = |files: &[(&str, &str)], code: Option<Code>| {
        let files = super::files(files);
        let made = backups.create(&home.request(Kind::Full, NOW), sources(&files));
        assert_eq!(made.err().map(|it| it.code), code, "{files:?}");
    };
    check(&[("a", "0123456789"), ("b", "01234")], None);
    check(&[("a", "0123456789+")], Some(Code::TooLarge));
    check(
        &[("a", "0123456789"), ("b", "012345")],
        Some(Code::TooLarge),
    );
    check(&[("a", ""), ("b", ""), ("c", "")], Some(Code::TooLarge));
    check(&[("../a", "")], Some(Code::Denied));
    check(&[("/a", "")], Some(Code::InvalidInput));
    check(&[("./a", "")], Some(Code::InvalidInput));
    check(&[("a", ""), ("a/b", "")], Some(Code::InvalidInput));
    assert_eq!(backups.list().unwrap().backups.len(), 1);
    let tiny = Limits {
        archive_bytes_max: 20,
        ..limits
    };
    let made = home.local().within(tiny).create(
        &home.request(Kind::Full, NOW),
        sources(&files(&[("a", "x")])),
    );
    assert_eq!(made.unwrap_err().code, Code::TooLarge);
}

#[test]
fn what_stands_in_the_way_is_found_before_anything_is_changed() {
    let home = Home::new();
    let backups = home.local();
    let made = backups
        .create(
            &home.request(Kind::Full, NOW),
            sources(&files(&[("a", "new"), ("dir/b", "new"), ("z", "new")])),
        )
        .unwrap();
    let check = |prepare: &dyn Fn(&Dir), code: Code| {
        let home = Home::new();
        home.into.write("a", b"old").unwrap();
        prepare(&home.into);
        let before = content(&home.into);
        let error = backups.restore(&made.backup_id, &home.into).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert_eq!(content(&home.into), before);
    };
    check(
        &|into| drop(into.create_subdir("z").unwrap()),
        Code::Conflict,
    );
    check(
        &|into| into.write("dir", b"a file").unwrap(),
        Code::Conflict,
    );
    let link = |to: &'static str, name: &'static str| {
        move |into: &Dir| std::os::unix::fs::symlink(to, into.path().join(name)).unwrap()
    };
    check(&link("../place", "dir"), Code::Denied);
    check(&link("../place/x", "z"), Code::Denied);
    check(&link("/etc", "dir"), Code::Denied);
    let beside = format!(".restore-{}", made.backup_id);
    check(
        &|into| into.write(&beside, b"a file").unwrap(),
        Code::InvalidInput,
    );
}

#[test]
fn a_restore_that_was_killed_can_be_run_again() {
    let home = Home::new();
    let backups = home.local();
    let sample = sample();
    let made = backups
        .create(&home.request(Kind::Full, NOW), sources(&sample))
        .unwrap();
    let beside = format!(".restore-{}", made.backup_id);
    let half = format!("{beside}/memory/2026-11-15.md");
    home.into.write(&half, b"half of a d").unwrap();
    home.into.write("NOW.md", b"# now").unwrap();
    let lock_name = format!("{beside}.lock");
    let running = home
        .into
        .lock(&lock_name, std::time::Duration::ZERO)
        .unwrap();
    let error = backups.restore(&made.backup_id, &home.into).unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "another one is running");
    drop(running);
    backups.restore(&made.backup_id, &home.into).unwrap();
    assert_eq!(only_files(&home.into), sample);
    assert!(!home.into.exists(&beside).unwrap());
}

#[test]
fn broken_backups_are_listed_apart_with_the_reason() {
    let home = Home::new();
    let backups = home.local();
    let make = |day: u32| {
        let now = format!("2026-11-{day:02}T00:00:00Z");
        let made = backups.create(&home.request(Kind::Full, &now), sources(&sample()));
        made.unwrap()
    };
    let made: Vec<Metadata> = (1..=6).map(make).collect();
    home.place
        .write(&metadata_key(&made[0].backup_id), b"{")
        .unwrap();
    home.place.remove(&made[1].archive_key()).unwrap();
    home.place.remove(&made[2].manifest_key()).unwrap();
    home.place.write(&made[3].archive_key(), b"short").unwrap();
    let other = serde_json::to_vec(&made[5]).unwrap();
    home.place
        .write(&metadata_key(&made[4].backup_id), &other)
        .unwrap();
    home.place.write("backups/notes.txt", b"not ours").unwrap();
    home.place
        .write("backups/omi_full_2026.json", b"not ours")
        .unwrap();
    let listing = backups.list().unwrap();
    assert_eq!(ids(&listing.backups), [made[5].backup_id.as_str()]);
    let broken: Vec<_> = listing
        .broken
        .iter()
        .map(|it| it.backup_id.as_str())
        .collect();
    assert_eq!(broken, ids(&made[..5]));
    let whys: Vec<_> = listing.broken.iter().map(|it| it.why.as_str()).collect();
    assert!(whys[0].ends_with("cannot be read"), "{whys:?}");
    assert_eq!(
        whys[1..3],
        ["its archive is missing", "its manifest is missing"]
    );
    assert!(whys[3].starts_with("its archive has 5 bytes"), "{whys:?}");
    assert!(whys[4].ends_with("belongs to another backup"), "{whys:?}");
    for bad in ["", "../x", "omi_full_20261106_000000/../../x"] {
        assert_eq!(backups.verify(bad).unwrap_err().code, Code::InvalidInput);
    }
    let error = backups.verify("omi_full_20200101_000000").unwrap_err();
    assert_eq!(error.message, "no backup `omi_full_20200101_000000`");
}

fn cleaned(backups: &Backups, days: u32, now: &str, dry_run: bool) -> Cleaned {
    let mut cleaned = backups.cleanup(days, at(now), dry_run).unwrap();
    cleaned.n_bytes = 0;
    cleaned
}

#[test]
fn cleanup_deletes_what_is_old_and_nothing_that_is_needed() {
    everywhere(|home, backups| {
        let make = |kind, day: u32, text: &str| {
            let now = format!("2026-01-{day:02}T00:00:00Z");
            let files = files(&[("a", text), ("b", "b")]);
            let made = backups.create(&home.request(kind, &now), sources(&files));
            made.unwrap().backup_id
        };
        let first = make(Kind::Full, 1, "1");
        let on_first = make(Kind::Incremental, 2, "2");
        let second = make(Kind::Full, 3, "3");
        let on_second = make(Kind::Incremental, 4, "4");
        let nothing = Cleaned::default();
        assert_eq!(cleaned(&backups, 7, "2026-01-05T00:00:00Z", false), nothing);

        // On the 8th the first is too old, but the second needs it.
        let expected = Cleaned {
            kept: vec![first.clone()],
            ..Cleaned::default()
        };
        assert_eq!(
            cleaned(&backups, 7, "2026-01-08T12:00:00Z", false),
            expected
        );

        // On the 10th the first three are too old, and the fourth needs the third.
        let expected = Cleaned {
            backups: vec![on_first.clone(), first.clone()],
            kept: vec![second.clone()],
            ..Cleaned::default()
        };
        for dry_run in [true, false] {
            assert_eq!(backups.list().unwrap().backups.len(), 4);
            assert_eq!(
                cleaned(&backups, 6, "2026-01-10T00:00:00Z", dry_run),
                expected
            );
        }
        assert_eq!(ids(&backups.list().unwrap().backups), [&on_second, &second]);
        backups.verify(&on_second).unwrap();

        // Years later only the newest full one stays.
        let expected = Cleaned {
            backups: vec![on_second],
            kept: vec![second.clone()],
            ..Cleaned::default()
        };
        assert_eq!(
            cleaned(&backups, 0, "2030-01-01T00:00:00Z", false),
            expected
        );
        backups.verify(&second).unwrap();
        assert_eq!(backups.place.list("backups/").unwrap().len(), 3);
    });
}

#[test]
fn a_clock_that_jumped_ahead_deletes_no_backup() {
    let home = Home::new();
    let backups = home.local();
    let make = |now: &str| {
        let made = backups.create(&home.request(Kind::Full, now), sources(&sample()));
        made.unwrap().backup_id
    };
    let days = (1..=9).map(|day| make(&format!("2026-01-{day:02}T00:00:00Z")));
    let days: Vec<String> = days.collect();
    // The clock is ten years ahead, today and tomorrow.
    for now in ["2036-01-10T00:00:00Z", "2036-01-11T00:00:00Z"] {
        make(now);
        let cleaned = backups.cleanup(30, at(now), false).unwrap();
        assert_eq!(cleaned.backups, Vec::<String>::new());
    }
    // Those that are old by the days that passed go, as always.
    let later = ["2036-01-20T00:00:00Z", "2036-01-31T00:00:00Z"];
    later.iter().for_each(|it| drop(make(it)));
    let cleaned = backups.cleanup(30, at(later[1]), false).unwrap();
    assert_eq!(cleaned.backups.len(), days.len());
}

#[test]
fn a_damaged_newest_backup_does_not_cost_the_last_good_one() {
    let home = Home::new();
    let backups = home.local();
    let make = |day: u32| {
        let now = format!("2026-01-{day:02}T00:00:00Z");
        let made = backups.create(&home.request(Kind::Full, &now), sources(&sample()));
        made.unwrap()
    };
    let (oldest, good, damaged) = (make(1), make(2), make(3));
    let mut bytes = home.place.read(&damaged.archive_key(), 99_999).unwrap();
    bytes[20] ^= 1;
    home.place.write(&damaged.archive_key(), &bytes).unwrap();
    // The damaged one is young, so by age alone both others would go.
    let cleaned = cleaned(&backups, 5, "2026-01-08T00:00:00Z", false);
    assert_eq!(cleaned.backups, [oldest.backup_id]);
    assert_eq!(cleaned.kept, std::slice::from_ref(&good.backup_id));
    backups.verify(&good.backup_id).unwrap();

    let mut bytes = home.place.read(&good.manifest_key(), 99_999).unwrap();
    bytes[0] ^= 1;
    home.place.write(&good.manifest_key(), &bytes).unwrap();
    let cleaned = backups
        .cleanup(0, at("2030-01-01T00:00:00Z"), false)
        .unwrap();
    assert!(
        cleaned.backups.is_empty(),
        "damage everywhere deletes nothing"
    );
}

#[test]
fn cleanup_sweeps_old_remains_and_leaves_young_ones_and_strangers() {
    let home = Home::new();
    let backups = home.local();
    let made = backups
        .create(&home.request(Kind::Full, NOW), sources(&sample()))
        .unwrap();
    for name in [
        "omi_full_20261101_000000.tar.gz",
        "omi_full_20261101_000000.files",
        "omi_full_20261101_000000.claim",
        "omi_full_20261115_010000.tar.gz.enc",
        "omi_full_20261115_010000.claim",
        "notes.txt",
    ] {
        home.place.write(&format!("backups/{name}"), b"x").unwrap();
    }
    home.place
        .write(&format!("backups/{}.claim", made.backup_id), b"x")
        .unwrap();
    let swept = backups.cleanup(90, at(NOW), false).unwrap();
    let old =
        ["claim", "files", "tar.gz"].map(|it| format!("backups/omi_full_20261101_000000.{it}"));
    assert_eq!((swept.remains, swept.n_bytes), (old.to_vec(), 3));
    assert!(home.place.exists("backups/notes.txt").unwrap());
    let later = backups
        .cleanup(90, at("2026-11-20T00:00:00Z"), false)
        .unwrap();
    assert_eq!(later.remains.len(), 3);
    backups.verify(&made.backup_id).unwrap();
}

#[test]
fn a_part_is_restored_only_from_a_backup_that_is_whole() {
    let home = Home::new();
    let backups = home.local();
    let made = backups
        .create(&home.request(Kind::Full, NOW), sources(&sample()))
        .unwrap();
    let id = &made.backup_id;
    let restored = backups
        .restore_part(id, &home.into, &|name| name == "NOW.md")
        .unwrap();
    assert_eq!(restored.files, ["NOW.md"]);
    assert_eq!(content(&home.into), files(&[("NOW.md", "# now")]));

    home.into.remove("NOW.md").unwrap();
    let key = format!("backups/{id}.tar.gz");
    let mut bytes = home.place.read(&key, 1 << 20).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    home.place.write(&key, &bytes).unwrap();
    let error = backups.restore_part(id, &home.into, &|name| name == "NOW.md");
    assert_eq!(error.unwrap_err().code, Code::Corrupt);
    assert!(content(&home.into).is_empty());
}

#[test]
fn what_a_restore_would_replace_is_told_before() {
    let home = Home::new();
    let backups = home.local();
    let made = backups
        .create(&home.request(Kind::Full, NOW), sources(&sample()))
        .unwrap();
    let differing = || backups.differing(&made.backup_id, &home.into).unwrap();
    assert_eq!(differing(), [""; 0]);
    home.into.write("other.txt", b"not in the backup").unwrap();
    home.into.write("NOW.md", b"# now").unwrap();
    assert_eq!(differing(), [""; 0]);
    home.into.write("NOW.md", b"# later").unwrap();
    home.into.write("empty", b"no more").unwrap();
    assert_eq!(differing(), ["NOW.md", "empty"]);
}
