//! Whole backups in a real directory and on a server that speaks S3.

mod bucket;
mod hostile;
mod scenarios;
mod server;

use crate::{Backups, BucketSettings, Kind, Metadata, Passphrase, Place, Request, Source};
use jiff::Timestamp;
use kenning_core::SeededRandom;
use kenning_vault::Dir;
use server::Server;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

pub(crate) const NOW: &str = "2026-11-15T09:53:18Z";

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A fresh directory with `place`, `scratch` and `into` in it.
pub(crate) struct Home {
    _home: tempfile::TempDir,
    pub(crate) place: Dir,
    pub(crate) scratch: Dir,
    pub(crate) into: Dir,
    pub(crate) random: SeededRandom,
}

impl Home {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let dir = |name: &str| Dir::create(&home.path().join(name)).unwrap();
        Self {
            place: dir("place"),
            scratch: dir("scratch"),
            into: dir("into"),
            random: SeededRandom::new(1),
            _home: home,
        }
    }

    pub(crate) fn local(&self) -> Backups {
        Backups::new(Place::Local(self.place.clone()), self.scratch.clone())
    }

    pub(crate) fn on(&self, server: &Server) -> Backups {
        let bucket = server.bucket(settings(server)).unwrap();
        Backups::new(Place::Bucket(bucket), self.scratch.clone())
    }

    pub(crate) fn request(&self, kind: Kind, now: &str) -> Request<'_> {
        Request {
            kind,
            base_path: "/home/agent/omi",
            retention_days: 90,
            now: at(now),
            random: &self.random,
        }
    }
}

pub(crate) fn settings(server: &Server) -> BucketSettings {
    BucketSettings {
        endpoint: server.endpoint(),
        region: "auto".to_owned(),
        bucket: server::BUCKET.to_owned(),
        prefix: "laptop".to_owned(),
        access_key_id: server::ACCESS_KEY.to_owned(),
        secret_access_key: Zeroizing::new(server::SECRET_KEY.to_owned()),
        session_token: None,
    }
}

pub(crate) fn sealed(backups: Backups) -> Backups {
    backups.sealed_with(Some(Passphrase::cheap("correct horse")))
}

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn files(rows: &[(&str, &str)]) -> Files {
    let rows = rows.iter();
    rows.map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
        .collect()
}

pub(crate) fn sources(files: &Files) -> Vec<Source<'_>> {
    let sources = files.iter().map(|(name, bytes)| {
        let source = Source::reader(name, &bytes[..]);
        if name == "store.dump" {
            source.always()
        } else {
            source
        }
    });
    sources.collect()
}

/// Everything in a directory, by its whole name. Leftovers of any kind are in it as well.
pub(crate) fn content(dir: &Dir) -> Files {
    fn walk(root: &std::path::Path, at: &std::path::Path, files: &mut Files) {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test looks at what is really there"
        )]
        let entries = std::fs::read_dir(at).unwrap();
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if path.is_symlink() {
                files.insert(name, b"(link)".to_vec());
            } else if path.is_dir() {
                files.insert(format!("{name}/"), Vec::new());
                walk(root, &path, files);
            } else {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "a test looks at what is really there"
                )]
                let bytes = std::fs::read(&path).unwrap();
                files.insert(name, bytes);
            }
        }
    }
    let mut files = Files::new();
    walk(dir.path(), dir.path(), &mut files);
    files
}

/// The files of a directory, without the directories.
pub(crate) fn only_files(dir: &Dir) -> Files {
    let mut files = content(dir);
    files.retain(|name, _| !name.ends_with('/'));
    files
}

pub(crate) fn ids(backups: &[Metadata]) -> Vec<&str> {
    backups.iter().map(|it| it.backup_id.as_str()).collect()
}

pub(crate) fn sample() -> Files {
    let mut sample = files(&[
        ("store.dump", "rows\n"),
        ("NOW.md", "# now"),
        ("memory/2026-11-15.md", "a day"),
        ("empty", ""),
    ]);
    let deep = format!("{}/{}.md", vec!["deep"; 40].join("/"), "x".repeat(200));
    sample.insert(deep, b"a name too long for a plain header".to_vec());
    sample
}
