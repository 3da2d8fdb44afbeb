//! Hostile archives are refused before anything is written.

use super::*;
use crate::record::{FileRecord, Manifest, archive_key, manifest_key, metadata_key};
use crate::{Limits, Metadata};
use flate2::Compression;
use flate2::write::GzEncoder;
use kenning_core::{Code, Result};
use kenning_text::hex;
use std::io::Write;
use tar::{EntryType, Header};

const ID: &str = "omi_full_20261115_095318";

/// One entry, byte by byte as given: the `tar` crate would refuse to write most of these.
fn entry(kind: EntryType, name: &[u8], link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link);
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o777);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str, content: &str) -> Vec<u8> {
    entry(EntryType::Regular, name.as_bytes(), b"", content.as_bytes())
}

fn link(kind: EntryType, name: &str, to: &str) -> Vec<u8> {
    entry(kind, name.as_bytes(), to.as_bytes(), b"")
}

/// An entry whose real name stands in an entry before it.
fn long(name: &[u8], content: &str) -> Vec<u8> {
    let mut bytes = entry(EntryType::GNULongName, b"././@LongLink", b"", name);
    bytes.extend(file("short", content));
    bytes
}

fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut text = String::new();
    for (key, value) in records {
        // The length counts its own digits; all of these need two.
        let n = format!(" {key}={value}\n").len() + 2;
        text += &format!("{n} {key}={value}\n");
    }
    entry(EntryType::XHeader, b"PaxHeaders/x", b"", text.as_bytes())
}

fn end() -> Vec<u8> {
    vec![0; 1024]
}

fn gzip(tar: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(tar).unwrap();
    gzip.finish().unwrap()
}

fn with_size(mut entry: Vec<u8>, set: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut header = Header::from_byte_slice(entry[..512].try_into().unwrap()).clone();
    set(&mut header);
    header.set_cksum();
    entry[..512].copy_from_slice(header.as_bytes());
    entry
}

/// Lays a backup into the place with checksums that fit and a manifest that says `listed`.
fn lay(home: &Home, archive: &[u8], listed: &[(&str, &str)]) {
    let records = listed.iter().map(|(name, content)| FileRecord {
        name: (*name).to_owned(),
        n_bytes: content.len() as u64,
        sha256: hex::sha256(content.as_bytes()),
        is_here: true,
    });
    let manifest = Manifest::new(ID, None, records.collect());
    let manifest = serde_json::to_vec(&manifest).unwrap();
    let metadata = Metadata {
        backup_id: ID.to_owned(),
        backup_type: Kind::Full,
        created_at: NOW.to_owned(),
        file_size: archive.len() as u64,
        checksum: hex::sha256(archive),
        encrypted: false,
        files_included: listed.iter().map(|(name, _)| (*name).to_owned()).collect(),
        base_path_hash: "0".repeat(16),
        retention_days: 90,
        based_on: None,
        manifest_checksum: hex::sha256(&manifest),
    };
    let metadata = serde_json::to_vec(&metadata).unwrap();
    home.place.write(&archive_key(ID, false), archive).unwrap();
    home.place
        .write(&manifest_key(ID, false), &manifest)
        .unwrap();
    home.place.write(&metadata_key(ID), &metadata).unwrap();
}

fn small() -> Limits {
    Limits {
        files_max: 4,
        file_bytes_max: 1_000,
        total_bytes_max: 2_500,
        archive_bytes_max: 100_000,
    }
}

/// Restores a hostile backup and checks that nothing around it changed.
fn restored(archive: &[u8], listed: &[(&str, &str)]) -> (Result<()>, Files) {
    let home = Home::new();
    home.into.write("mine.md", b"mine").unwrap();
    lay(&home, archive, listed);
    let backups = home.local().within(small());
    let around = Dir::open(home.into.path().parent().unwrap()).unwrap();
    let before = content(&around);
    assert!(backups.verify(ID).is_err() == backups.restore(ID, &home.into).is_err());
    let res = backups.restore(ID, &home.into).map(drop);
    if res.is_err() {
        assert_eq!(content(&around), before, "something was written");
    }
    (res, only_files(&home.into))
}

#[test]
fn a_plain_archive_made_by_hand_is_restored() {
    let tar = [file("a", "one"), long("b/c".as_bytes(), "two"), end()].concat();
    let (res, found) = restored(&gzip(&tar), &[("a", "one"), ("b/c", "two")]);
    res.unwrap();
    assert_eq!(
        found,
        files(&[("a", "one"), ("b/c", "two"), ("mine.md", "mine")])
    );
}

#[test]
fn a_hostile_archive_is_refused_before_anything_is_written() {
    use EntryType as E;
    let big = "x".repeat(1_001);
    let much = "x".repeat(900);
    let name_of = |bytes: usize| vec![b'n'; bytes];
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("absolute name", file("/etc/cron.d/x", ""), "is absolute"),
        ("up", file("../x", ""), "leads outside"),
        ("up in the middle", file("a/../../x", ""), "leads outside"),
        (
            "up and back",
            file("a/../mine.md", ""),
            "is not a plain file name",
        ),
        ("dot", file("./mine.md", ""), "is not a plain file name"),
        ("double slash", file("a//b", ""), "is not a plain file name"),
        ("trailing slash", file("a/", ""), "is not a plain file name"),
        (
            "the directory itself",
            file(".", ""),
            "is not a plain file name",
        ),
        ("no name", file("", ""), "the name is empty"),
        ("backslash", file("..\\x", ""), "contains a backslash"),
        (
            "drive letter",
            file("c:x", ""),
            "begins with a drive letter",
        ),
        (
            "line break",
            file("a\nb", ""),
            "contains a control character",
        ),
        (
            "not UTF-8",
            entry(E::Regular, b"\xff\xfe", b"", b""),
            "is not UTF-8",
        ),
        (
            "unfinished write",
            file(".x.kenning-tmp", ""),
            "is a reserved name",
        ),
        ("long name up", long(b"../../x", ""), "leads outside"),
        (
            "long name absolute",
            long(b"/etc/passwd", ""),
            "is absolute",
        ),
        (
            "zero in a long name",
            long(b"a\0/../../x", ""),
            "contains a control character",
        ),
        (
            "endless long name",
            long(&name_of(5_000), ""),
            "a name in it is too long",
        ),
        (
            "two long names",
            [entry(E::GNULongName, b"L", b"", b"a"), long(b"b", "")].concat(),
            "an extended header",
        ),
        (
            "long name of nothing",
            entry(E::GNULongName, b"L", b"", b"a"),
            "cut off or damaged",
        ),
        (
            "extended header with another name",
            [pax(&[("path", "../../escape")]), file("a", "")].concat(),
            "an extended header",
        ),
        (
            "extended header with another size",
            [pax(&[("size", "10000000")]), file("a", "")].concat(),
            "an extended header",
        ),
        (
            "global header",
            entry(E::XGlobalHeader, b"g", b"", b""),
            "an extended header",
        ),
        (
            "symbolic link",
            link(E::Symlink, "a", "/etc"),
            "a symbolic link",
        ),
        (
            "file through a link",
            [link(E::Symlink, "a", ".."), file("a/x", "")].concat(),
            "a symbolic link",
        ),
        ("hard link", link(E::Link, "a", "mine.md"), "a hard link"),
        (
            "long link",
            entry(E::GNULongLink, b"L", b"", b"/etc"),
            "an extended header",
        ),
        ("character device", link(E::Char, "a", ""), "a device"),
        ("block device", link(E::Block, "a", ""), "a device"),
        ("pipe", link(E::Fifo, "a", ""), "a pipe"),
        ("directory", link(E::Directory, "a", ""), "a directory"),
        (
            "sparse file",
            entry(E::GNUSparse, b"a", b"", b""),
            "a sparse file",
        ),
        (
            "contiguous file",
            entry(E::Continuous, b"a", b"", b""),
            "an extended header",
        ),
        (
            "unknown kind",
            entry(E::new(b'Z'), b"a", b"", b""),
            "an extended header",
        ),
        (
            "twice",
            [file("a", ""), file("a", "")].concat(),
            "appears twice",
        ),
        (
            "file, then directory",
            [file("a", ""), file("a/b", "")].concat(),
            "a file and a directory at once",
        ),
        (
            "directory, then file",
            [file("a/b/c", ""), file("a/b", "")].concat(),
            "a file and a directory at once",
        ),
        ("large file", file("a", &big), "is larger than 1000 bytes"),
        (
            "large altogether",
            [file("a", &much), file("b", &much), file("c", &much)].concat(),
            "is larger than 2500 bytes",
        ),
        (
            "many files",
            ["a", "b", "c", "d", "e"].map(|it| file(it, "")).concat(),
            "at most 4 files",
        ),
        (
            "size beyond all numbers",
            with_size(file("a", ""), |it| it.set_size(u64::MAX)),
            "cut off or damaged",
        ),
        (
            "size beyond all disks",
            with_size(file("a", ""), |it| it.set_size(1 << 50)),
            "is larger than 1000 bytes",
        ),
        (
            "size beyond the archive",
            with_size(file("a", ""), |it| it.set_size(900)),
            "cut off or damaged",
        ),
        (
            "garbage for a header",
            vec![b'x'; 512],
            "cut off or damaged",
        ),
        (
            "unlisted file",
            file("extra", ""),
            "which is not in its manifest",
        ),
    ];
    // Files that are as they should be, so that it is the next one that is refused.
    let harmless = |what: &str| match what {
        "twice" | "file, then directory" => vec![("a", "")],
        "directory, then file" => vec![("a/b/c", "")],
        "large altogether" => vec![("a", much.as_str()), ("b", &much), ("c", &much)],
        "size beyond the archive" => vec![("a", much.as_str())],
        "many files" => vec![("a", ""), ("b", ""), ("c", ""), ("d", "")],
        _ => vec![],
    };
    println!("hostile archives: {}", cases.len());
    assert!(cases.len() >= 40);
    for (what, tar, expected) in cases {
        // What a careless reader would write first.
        for before in [vec![], file("first.md", "first")] {
            let mut listed = harmless(what);
            listed.extend((!before.is_empty()).then_some(("first.md", "first")));
            let zeros = if what.starts_with("size beyond the") {
                vec![]
            } else {
                end()
            };
            let (res, found) = restored(&gzip(&[before, tar.clone(), zeros].concat()), &listed);
            let error = res.expect_err(what);
            assert!(error.message.contains(expected), "{what}: {error}");
            assert!(
                matches!(
                    error.code,
                    Code::Corrupt | Code::InvalidInput | Code::Denied | Code::TooLarge
                ),
                "{what}: {error:?}"
            );
            assert_eq!(found, files(&[("mine.md", "mine")]), "{what}");
        }
    }
}

#[test]
fn an_archive_that_is_not_one_is_refused() {
    let tar = [file("a", "one"), end()].concat();
    let whole = gzip(&tar);
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    let after = [&tar[..], &file("b", "two")].concat();
    let random = SeededRandom::new(5);
    let noise: String = (0..900)
        .map(|_| char::from(b' ' + random.below(90) as u8))
        .collect();
    let noisy = gzip(&[file("a", &noise), end()].concat());
    for (what, bytes) in [
        ("nothing", vec![]),
        ("text", b"not an archive".to_vec()),
        ("not compressed", tar.clone()),
        ("cut in the middle", whole[..whole.len() / 2].to_vec()),
        ("cut in the content", noisy[..noisy.len() / 2].to_vec()),
        ("cut before its checksum", whole[..whole.len() - 8].to_vec()),
        ("cut by one byte", whole[..whole.len() - 1].to_vec()),
        ("wrong checksum", flipped(whole.len() - 5)),
        ("wrong length", flipped(whole.len() - 1)),
        ("a byte after the end", [&whole[..], b"x"].concat()),
        ("a second stream", [&whole[..], &whole[..]].concat()),
        ("a file after the end", gzip(&after)),
        (
            "endless zeros",
            gzip(&[&tar[..], &vec![0; 3 * 1024 * 1024]].concat()),
        ),
        ("half a header", gzip(&[&tar[..1024], &tar[..100]].concat())),
    ] {
        let content = if what == "cut in the content" {
            noise.as_str()
        } else {
            "one"
        };
        let (res, found) = restored(&bytes, &[("a", content)]);
        let error = res.expect_err(what);
        assert_eq!(error.code, Code::Corrupt, "{what}: {error}");
        assert_eq!(found, files(&[("mine.md", "mine")]), "{what}");
    }
}

#[test]
fn an_archive_that_is_not_what_its_manifest_says_is_refused() {
    let tar = |rows: &[(&str, &str)]| {
        let entries = rows.iter().flat_map(|(name, text)| file(name, text));
        gzip(&entries.chain(end()).collect::<Vec<u8>>())
    };
    for (found, listed, expected) in [
        (&[][..], &[("a", "one")][..], "lacks `a`"),
        (&[("a", "two")], &[("a", "one")], "`a` in the archive"),
        (&[("a", "ones")], &[("a", "one")], "`a` in the archive"),
        (&[("a", "")], &[("a", "one")], "`a` in the archive"),
        (&[("a", "one"), ("b", "")], &[("a", "one")], "contains `b`"),
        (&[("b", "one")], &[("a", "one")], "contains `b`"),
    ] {
        let (res, _) = restored(&tar(found), listed);
        let error = res.unwrap_err();
        assert_eq!(error.code, Code::Corrupt);
        assert!(error.message.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_hostile_manifest_is_refused() {
    let plain = gzip(&[file("a", ""), end()].concat());
    for (listed, expected) in [
        (&[("../a", "")][..], "leads outside"),
        (&[("/a", "")], "is absolute"),
        (&[("a", ""), ("a", "")], "appears twice"),
        (&[("a", ""), ("a/b", "")], "a file and a directory at once"),
        (&[("", "")], "the name is empty"),
    ] {
        let (res, _) = restored(&plain, listed);
        let error = res.unwrap_err();
        assert!(error.message.contains(expected), "{expected}: {error}");
    }
    let home = Home::new();
    lay(&home, &plain, &[("a", "")]);
    let good = home.place.read(&manifest_key(ID, false), 9_999).unwrap();
    let good = String::from_utf8(good).unwrap();
    let metadata = home.place.read(&metadata_key(ID), 9_999).unwrap();
    let metadata: Metadata = serde_json::from_slice(&metadata).unwrap();
    for (from, to) in [
        ("\"version\":1", "\"version\":2"),
        (ID, "omi_full_20200101_000000"),
        (
            "\"based_on\":null",
            "\"based_on\":\"omi_full_20200101_000000\"",
        ),
        ("\"is_here\":true", "\"is_here\":false"),
        ("{", "["),
    ] {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good);
        let manifest_checksum = hex::sha256(changed.as_bytes());
        let metadata = Metadata {
            manifest_checksum,
            ..metadata.clone()
        };
        let metadata = serde_json::to_vec(&metadata).unwrap();
        home.place
            .write(&manifest_key(ID, false), changed.as_bytes())
            .unwrap();
        home.place.write(&metadata_key(ID), &metadata).unwrap();
        let error = home.local().restore(ID, &home.into).unwrap_err();
        assert_eq!(error.code, Code::Corrupt, "{to}: {error}");
    }
    assert!(content(&home.into).is_empty());
}

/// Ten megabytes of zeros shrink to ten kilobytes: the bound is on what comes out.
#[test]
fn a_bomb_stops_at_the_bound_and_not_at_its_end() {
    let big = "\0".repeat(10 * 1024 * 1024);
    let long_name = entry(EntryType::GNULongName, b"L", b"", big.as_bytes());
    for (tar, expected) in [
        (file("a", &big), "is larger than 1000 bytes"),
        (
            [long_name, file("a", "")].concat(),
            "a name in it is too long",
        ),
    ] {
        let bomb = gzip(&[tar, end()].concat());
        assert!(bomb.len() < 20_000);
        let (res, _) = restored(&bomb, &[]);
        let error = res.unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
}
