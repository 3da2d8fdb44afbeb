//! Backups made and brought back by the engine.

use crate::server::Server;
use crate::{DAY_MS, Place, Start, only, owner};
use kenning_core::{Code, Error};
use kenning_engine::{BackupKind, BackupView, NewToken, RestoreOptions, RestoreTo, Scope};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const KEY: Start = Start {
    data: "",
    passphrase: Some("correct horse"),
    read_only: false,
};

/// A second data directory, with nothing in it.
const EMPTY: Start = Start {
    data: "empty",
    passphrase: None,
    read_only: false,
};

const PLAINLY: RestoreOptions = RestoreOptions {
    with_store: false,
    force: false,
    accept_unsealed: false,
    keep_tokens: false,
};

const WITH_STORE: RestoreOptions = RestoreOptions {
    with_store: true,
    ..PLAINLY
};

fn lived_in() -> Place {
    let place = Place::new();
    place.task("write the report");
    place
        .engine
        .omi()
        .daily_append(&owner(), "a good day")
        .unwrap();
    place.remember("the cache is warm after ten minutes");
    place.put("MEMORY.md", "# Curated\n");
    place.put("config.yaml", "vault:\n  retention_days: 30\n");
    place.put("scratch.txt", "nobody's business");
    place
}

fn backup(place: &Place, kind: BackupKind) -> BackupView {
    place.engine.vault_backup(&owner(), kind).unwrap()
}

fn ids(place: &Place) -> Vec<String> {
    let listed = place.engine.backup_list(&owner()).unwrap();
    assert_eq!(listed.broken, []);
    listed.backups.into_iter().map(|it| it.backup_id).collect()
}

fn to(place: &Place, name: &str) -> RestoreTo {
    RestoreTo::Dir(place.path(name))
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let name = |it: std::io::Result<std::fs::DirEntry>| it.unwrap().file_name();
    let names = entries.map(|it| name(it).to_str().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn refused(error: &Error, code: Code, part: &str) {
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(part), "{error}");
    assert!(error.hint.is_some(), "{error}");
}

#[test]
fn a_backup_has_the_store_and_the_files_of_the_contract_and_nothing_else() {
    let place = lived_in();
    let made = backup(&place, BackupKind::Full);
    assert_eq!(made.backup_id, "omi_full_20270115_080000");
    assert_eq!(made.created_at, "2027-01-15T08:00:00Z");
    assert_eq!((made.encrypted, made.retention_days), (false, 30));
    assert_eq!(made.remarks, [""; 0]);
    let mut files = made.files_included.clone();
    files.sort();
    assert_eq!(
        files,
        [
            ".daily.hash",
            ".now.hash",
            "MEMORY.md",
            "NOW.md",
            "config.yaml",
            "memory/2027-01-15.md",
            "store.jsonl",
        ]
    );
    assert_eq!(ids(&place), ["omi_full_20270115_080000"]);
    assert_eq!(place.kinds().last().unwrap(), "VaultBackedUp");
    let last = std::fs::read_to_string(place.omi().join(".moltvault_last_backup")).unwrap();
    assert_eq!(last, "2027-01-15T08:00:00Z");
    let verified = place
        .engine
        .backup_verify(&owner(), &made.backup_id, false)
        .unwrap();
    assert_eq!(verified.files, files);
    assert_eq!(verified.backup, made);
}

#[test]
fn a_lost_house_is_rebuilt_from_a_backup() {
    let place = lived_in();
    let made = backup(&place, BackupKind::Full);
    let roots = place.engine.roots(&owner()).unwrap();
    let now = std::fs::read(place.omi().join("NOW.md")).unwrap();

    let fresh = place.again(EMPTY);
    for name in ["NOW.md", "config.yaml", "MEMORY.md", ".now.hash"] {
        std::fs::remove_file(place.omi().join(name)).unwrap();
    }
    std::fs::remove_dir_all(place.omi().join("memory")).unwrap();
    let restored = fresh
        .engine
        .backup_restore(&owner(), &made.backup_id, &RestoreTo::InPlace, WITH_STORE)
        .unwrap();
    assert_eq!(restored.directory, place.omi());
    assert!(!restored.files.contains(&"store.jsonl".to_owned()));
    assert_eq!(restored.backup.remarks, [""; 0]);
    let store = restored.store.unwrap();
    assert_eq!(store.spaces.len(), 1);
    assert_eq!(std::fs::read(place.omi().join("NOW.md")).unwrap(), now);
    assert!(!place.omi().join("store.jsonl").exists());
    assert_eq!(names(&fresh.path("empty/restoring")), [""; 0]);
    // The event of the backup itself came after the copy.
    assert_eq!(fresh.engine.roots(&owner()).unwrap().seq, roots.seq - 1);
    let report = fresh
        .engine
        .verify(&kenning_core::Space::default(), &|_| ());
    assert!(report.unwrap().is_clean());
    // File, checksum and node are of one moment.
    let integrity = fresh.engine.omi().context_integrity(&owner()).unwrap();
    assert_eq!(integrity.faults, [""; 0]);
}

#[test]
fn an_incremental_backup_leaves_what_did_not_change_to_the_full_one() {
    let place = lived_in();
    let first = backup(&place, BackupKind::Incremental);
    assert_eq!(first.kind, BackupKind::Full);
    assert!(first.remarks[0].contains("a full backup was made"));
    place.clock.advance(60_000);
    place.task("send the report");
    let second = backup(&place, BackupKind::Incremental);
    assert_eq!(second.kind, BackupKind::Incremental);
    assert_eq!(second.based_on.as_deref(), Some(first.backup_id.as_str()));
    assert_eq!(
        second.files_included,
        ["store.jsonl", "NOW.md", ".now.hash"]
    );

    let target = to(&place, "drill");
    let restored = place
        .engine
        .backup_restore(&owner(), &second.backup_id, &target, PLAINLY)
        .unwrap();
    assert_eq!(restored.files.len(), 7);
    assert!(restored.store.is_none());
    assert!(restored.backup.remarks[0].contains("store.jsonl"));
    let now = std::fs::read_to_string(place.path("drill/NOW.md")).unwrap();
    assert!(now.contains("send the report"));
}

#[test]
fn a_restore_replaces_nothing_unasked() {
    let place = lived_in();
    let id = backup(&place, BackupKind::Full).backup_id;
    let restore = |fixture: &Place, to: &RestoreTo, store: bool, force: bool| {
        fixture.engine.backup_restore(
            &owner(),
            &id,
            to,
            RestoreOptions {
                with_store: store,
                force,
                ..RestoreOptions::default()
            },
        )
    };
    // In place, as long as everything is as it was, there is nothing to replace.
    restore(&place, &RestoreTo::InPlace, false, false).unwrap();
    place.task("something newer");
    let newer = std::fs::read(place.omi().join("NOW.md")).unwrap();
    let error = restore(&place, &RestoreTo::InPlace, false, false).unwrap_err();
    refused(&error, Code::Conflict, "`.now.hash`, `NOW.md`");
    assert_eq!(std::fs::read(place.omi().join("NOW.md")).unwrap(), newer);
    let restored = restore(&place, &RestoreTo::InPlace, false, true).unwrap();
    assert!(restored.backup.remarks[0].contains("integrity_check"));
    assert_ne!(std::fs::read(place.omi().join("NOW.md")).unwrap(), newer);

    std::fs::create_dir(place.path("drill")).unwrap();
    std::fs::write(place.path("drill/mine.txt"), "mine").unwrap();
    let error = restore(&place, &to(&place, "drill"), false, false).unwrap_err();
    refused(&error, Code::Conflict, "`mine.txt`");
    assert_eq!(names(&place.path("drill")), ["mine.txt"]);
    restore(&place, &to(&place, "drill"), false, true).unwrap();
    assert!(place.path("drill/mine.txt").exists());

    let error = restore(&place, &to(&place, "other"), true, false).unwrap_err();
    refused(&error, Code::Conflict, "the store is not empty");
    assert!(!place.path("other").exists());
}

#[test]
fn a_sealed_backup_is_opened_by_its_passphrase_only() {
    let place = lived_in();
    let plain = backup(&place, BackupKind::Full).backup_id;
    place.clock.advance(60_000);
    let sealing = place.again(KEY);
    let sealed = backup(&sealing, BackupKind::Full);
    assert!(sealed.encrypted);
    let id = &sealed.backup_id;
    let wrong = place.again(Start {
        passphrase: Some("battery staple"),
        ..KEY
    });
    let empty = place.again(Start {
        passphrase: Some(""),
        ..KEY
    });
    let target = to(&place, "drill");
    for fixture in [&place, &wrong] {
        let restored = fixture
            .engine
            .backup_restore(&owner(), id, &target, PLAINLY);
        assert_eq!(restored.unwrap_err().code, Code::Denied);
        let verified = fixture.engine.backup_verify(&owner(), id, false);
        assert_eq!(verified.unwrap_err().code, Code::Denied);
        assert_eq!(names(&place.path("drill")), [""; 0]);
    }
    let error = empty
        .engine
        .vault_backup(&owner(), BackupKind::Full)
        .unwrap_err();
    refused(&error, Code::InvalidInput, "passphrase is empty");

    let restored = sealing
        .engine
        .backup_restore(&owner(), id, &target, PLAINLY);
    assert_eq!(restored.unwrap().backup.remarks.len(), 1);
    // That a backup is sealed is said by its metadata, which whoever can write to the place can change: one that
    // says that it is not is taken only from somebody who asks for it.
    let other = to(&place, "other");
    let restore = |options| {
        let engine = &sealing.engine;
        engine.backup_restore(&owner(), &plain, &other, options)
    };
    let error = restore(PLAINLY).unwrap_err();
    refused(&error, Code::Denied, "is not encrypted");
    assert_eq!(names(&place.path("other")), [""; 0]);
    let error = sealing.engine.backup_verify(&owner(), &plain, false);
    refused(&error.unwrap_err(), Code::Denied, "is not encrypted");
    sealing
        .engine
        .backup_verify(&owner(), &plain, true)
        .unwrap();
    let restored = restore(RestoreOptions {
        accept_unsealed: true,
        ..PLAINLY
    });
    assert!(restored.unwrap().backup.remarks[0].contains("not sealed"));
}

#[test]
fn a_sealed_backup_that_was_replaced_by_an_open_one_is_refused() {
    let place = lived_in();
    let sealing = place.again(KEY);
    let id = backup(&sealing, BackupKind::Full).backup_id;
    // An open backup of the same id, from a directory that somebody else has written.
    let forger = lived_in();
    forger.task("send everything to the forger");
    assert_eq!(backup(&forger, BackupKind::Full).backup_id, id);
    let backups = place.omi().join("backups");
    for name in names(&backups) {
        std::fs::remove_file(backups.join(name)).unwrap();
    }
    let forged = forger.omi().join("backups");
    for name in names(&forged) {
        std::fs::copy(forged.join(&name), backups.join(&name)).unwrap();
    }
    let target = to(&place, "drill");
    let restored = sealing
        .engine
        .backup_restore(&owner(), &id, &target, PLAINLY);
    refused(&restored.unwrap_err(), Code::Denied, "is not encrypted");
    assert_eq!(names(&place.path("drill")), [""; 0]);
}

#[test]
fn a_restore_revives_no_token() {
    let place = lived_in();
    let new = NewToken {
        name: "laptop".to_owned(),
        scopes: vec![Scope::Read],
        space: kenning_core::Space::default(),
        expires_ms: None,
    };
    let token = place.engine.create_token(&owner(), new).unwrap();
    let id = backup(&place, BackupKind::Full).backup_id;
    let listed = place.engine.tokens(&owner()).unwrap();
    place.engine.revoke_token(&owner(), &listed[0].id).unwrap();
    for keep_tokens in [false, true] {
        let fresh = place.again(Start {
            data: if keep_tokens { "kept" } else { "empty" },
            ..EMPTY
        });
        let options = RestoreOptions {
            keep_tokens,
            force: true,
            ..WITH_STORE
        };
        let restored = fresh
            .engine
            .backup_restore(&owner(), &id, &RestoreTo::InPlace, options);
        let store = restored.unwrap().store.unwrap();
        assert_eq!(store.tokens_revoked, u64::from(!keep_tokens));
        let let_in = fresh.engine.authenticate(&token);
        assert_eq!(let_in.is_ok(), keep_tokens, "{let_in:?}");
        let system = "_system".parse().unwrap();
        let report = fresh.engine.verify(&system, &|_| ()).unwrap();
        assert!(report.is_clean(), "{report:?}");
    }
}

#[test]
fn old_backups_are_deleted_after_a_good_one() {
    let place = lived_in();
    let old = backup(&place, BackupKind::Full).backup_id;
    place.clock.advance(31 * DAY_MS);
    let new = backup(&place, BackupKind::Full);
    assert_eq!(ids(&place), [new.backup_id.as_str()]);
    assert!(new.remarks[0].contains(&old), "{:?}", new.remarks);
    assert!(new.remarks[0].contains("30 days"));
}

#[test]
fn what_is_switched_off_or_not_permitted_is_refused_with_the_reason() {
    let place = lived_in();
    let id = backup(&place, BackupKind::Full).backup_id;
    place.put("config.yaml", "vault:\n  enabled: false\n");
    let error = place
        .engine
        .vault_backup(&owner(), BackupKind::Full)
        .unwrap_err();
    refused(&error, Code::Denied, "`vault.enabled: false`");
    // Off is for making them; those that there are can be brought back.
    assert_eq!(ids(&place), [id.as_str()]);
    place.put("config.yaml", "");

    place.clock.advance(60_000);
    let writer = only(Scope::Write);
    place
        .engine
        .vault_backup(&writer, BackupKind::Full)
        .unwrap();
    let error = place
        .engine
        .vault_backup(&only(Scope::Read), BackupKind::Full);
    refused(&error.unwrap_err(), Code::Denied, "`write`");
    refused(
        &place.engine.backup_list(&writer).unwrap_err(),
        Code::Denied,
        "`admin`",
    );
    let error = place.engine.backup_verify(&writer, &id, false).unwrap_err();
    refused(&error, Code::Denied, "`admin`");
    let target = to(&place, "drill");
    let error = place.engine.backup_restore(&writer, &id, &target, PLAINLY);
    refused(&error.unwrap_err(), Code::Denied, "`admin`");

    let reader = place.again(Start {
        read_only: true,
        ..Start::default()
    });
    let error = reader
        .engine
        .vault_backup(&owner(), BackupKind::Full)
        .unwrap_err();
    refused(&error, Code::Denied, "the store is read-only");
    let error = reader
        .engine
        .backup_restore(&owner(), &id, &target, PLAINLY);
    refused(&error.unwrap_err(), Code::Denied, "the store is read-only");
    let mut stranger = owner();
    stranger.principal.space = "other".parse().unwrap();
    let error = place
        .engine
        .vault_backup(&stranger, BackupKind::Full)
        .unwrap_err();
    refused(&error, Code::Denied, "the space `other`");
}

#[test]
fn an_unknown_backup_is_named() {
    let place = lived_in();
    let id = "omi_full_20200101_000000";
    let error = place.engine.backup_verify(&owner(), id, false).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(error.message.contains(id));
    let target = to(&place, "drill");
    let error = place
        .engine
        .backup_restore(&owner(), "../x", &target, PLAINLY);
    assert_eq!(error.unwrap_err().code, Code::InvalidInput);
    assert!(!place.path("drill").exists());
    assert!(
        Place::new()
            .engine
            .backup_list(&owner())
            .unwrap()
            .backups
            .is_empty()
    );
}

fn bucket(endpoint: &str) -> String {
    format!(
        "vault:\n  provider: r2\n  endpoint: {endpoint}\n  bucket: copies\n  access_key_id: AKIA\n  \
         secret_access_key: ${{HOOK_TOKEN}}\n"
    )
}

#[test]
fn a_bucket_that_cannot_be_reached_is_named_and_nothing_is_listed() {
    let place = lived_in();
    // A port that was free a moment ago, and that nobody listens on.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    place.put("config.yaml", &bucket(&format!("http://127.0.0.1:{port}")));
    let error = place
        .engine
        .vault_backup(&owner(), BackupKind::Full)
        .unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.message.contains("`copies`"), "{error}");
    assert!(
        error.message.contains(&format!("127.0.0.1:{port}")),
        "{error}"
    );
    assert!(!place.kinds().contains(&"VaultBackedUp".to_owned()));
    assert!(!place.omi().join(".moltvault_last_backup").exists());
    place.put("config.yaml", "");
    assert_eq!(ids(&place), [""; 0]);
    assert_eq!(names(&place.omi().join("backups")), [""; 0]);
}

#[test]
fn a_bucket_is_asked_with_what_the_file_says() {
    let place = lived_in();
    let server = Server::start();
    server.answer(&[403]);
    place.put(
        "config.yaml",
        &bucket(&format!("http://{}", server.address)),
    );
    let error = place.engine.backup_list(&owner()).unwrap_err();
    assert!(error.message.contains("`copies`"), "{error}");
    assert!(!error.to_string().contains("s3cret"));
    let seen = server.next();
    assert!(seen.line.starts_with("GET /copies?"), "{}", seen.line);
    let signed = &seen.headers["authorization"];
    assert!(signed.contains("Credential=AKIA/"), "{signed}");
    assert!(signed.contains("/auto/s3/"), "{signed}");

    place.put("config.yaml", "vault:\n  provider: r2\n");
    let error = place
        .engine
        .vault_backup(&owner(), BackupKind::Full)
        .unwrap_err();
    refused(&error, Code::InvalidInput, "`vault.endpoint` is not set");
    place.put(
        "config.yaml",
        &bucket("http://127.0.0.1:9").replace("HOOK_TOKEN", "NOT_SET"),
    );
    let error = place
        .engine
        .vault_backup(&owner(), BackupKind::Full)
        .unwrap_err();
    refused(&error, Code::InvalidInput, "`NOT_SET` is not set");
}

#[test]
fn files_and_store_are_of_one_moment_while_others_write() {
    let place = lived_in();
    // Time to write in, between the first file and the last.
    for n in 0..20 {
        place.put(&format!("memory/other-{n}.md"), "not a day");
    }
    place.put(
        "MEMORY.md",
        &"a long line of a curated file\n".repeat(400_000),
    );
    let writer = place.again(Start::default());
    let is_done = AtomicBool::new(false);
    let made = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !is_done.load(Ordering::Relaxed) {
                n += 1;
                writer.task(&format!("task number {n}"));
                // Whoever waits for the lock asks for it now and then only.
                std::thread::sleep(std::time::Duration::from_millis(15));
            }
        });
        let made: Vec<String> = (0..4)
            .map(|_| {
                place.clock.advance(1_000);
                backup(&place, BackupKind::Full).backup_id
            })
            .collect();
        is_done.store(true, Ordering::Relaxed);
        made
    });
    for id in made {
        let target = to(&place, &id);
        let restored = place.engine.backup_restore(&owner(), &id, &target, PLAINLY);
        let dir = restored.unwrap().directory;
        let file = std::fs::read_to_string(dir.join("NOW.md")).unwrap();
        let dump = std::fs::read_to_string(dir.join("store.jsonl")).unwrap();
        let rows = dump
            .lines()
            .map(|it| serde_json::from_str::<serde_json::Value>(it).unwrap());
        let mut nodes = rows.filter(|it| it["table"] == "nodes" && it["key"] == "omi:NOW.md");
        assert_eq!(nodes.next().unwrap()["body"], file.as_str(), "{id}");
    }
}
