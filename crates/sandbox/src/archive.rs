//! A package: `tool.toml`, the component that it names, and a signature if there is one.
//!
//! It comes from a directory or a zip archive, and is read into memory as a whole before it is used: the
//! bytes that are hashed are those that are checked, compiled and stored. Nothing is unpacked to disk, so
//! names in an archive are compared and never opened. An archive is limited in bytes, entries and the
//! decompressed size of an entry.

use crate::manifest::{MANIFEST_BYTES_MAX, Manifest};
use crate::signature::{SIGNATURE_FILE, Signed};
use kenning_core::{Code, Error, Result};
use kenning_vault::Dir;
use std::io::{Cursor, Read as _};
use zip::ZipArchive;

/// The manifest's file.
pub const MANIFEST_FILE: &str = "tool.toml";

/// A tool as it was delivered.
#[derive(Clone, Debug)]
pub struct Package {
    /// What `tool.toml` says.
    pub manifest: Manifest,
    /// Its text, to be stored.
    pub manifest_text: String,
    /// The component.
    pub wasm: Vec<u8>,
    /// What `tool.sig` says.
    pub signed: Option<Signed>,
}

/// Bounds of a package.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Size of the archive itself.
    pub archive_bytes_max: usize,
    /// Number of files and directories in it.
    pub entries_max: usize,
    /// Size of the component.
    pub wasm_bytes_max: u64,
    /// The highest compression ratio of an entry.
    pub ratio_max: u64,
}

const SIGNATURE_BYTES_MAX: u64 = 4 * 1024;
/// Smaller entries are accepted at any ratio.
const RATIO_FREE_BYTES: u64 = 1024 * 1024;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            archive_bytes_max: 64 * 1024 * 1024,
            entries_max: 1_000,
            wasm_bytes_max: 64 * 1024 * 1024,
            ratio_max: 100,
        }
    }
}

/// Reads a package from a directory.
pub fn read_dir(dir: &Dir, bounds: &Bounds) -> Result<Package> {
    let text = dir.read(MANIFEST_FILE, MANIFEST_BYTES_MAX as u64);
    let text = text.map_err(|err| missing(err, MANIFEST_FILE, "tool.toml not found"))?;
    let signed = match dir.read(SIGNATURE_FILE, SIGNATURE_BYTES_MAX) {
        Ok(bytes) => Some(bytes),
        Err(err) if err.code == Code::NotFound => None,
        Err(err) => return Err(err),
    };
    assemble(text, signed, |name| {
        let wasm = dir.read(name, bounds.wasm_bytes_max);
        wasm.map_err(|err| missing(err, name, "WASM file missing"))
    })
}

/// Reads a package from a zip archive. The files are at its root or in its only directory.
pub fn read_zip(bytes: &[u8], bounds: &Bounds) -> Result<Package> {
    if bytes.len() > bounds.archive_bytes_max {
        let why = format!("the archive has {} bytes", bytes.len());
        return Err(Error::too_large(why).hint(format!("at most {}", bounds.archive_bytes_max)));
    }
    // The count at the end of an archive is not trustworthy, so it is checked before memory is reserved for it.
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    if archive.len() > bounds.entries_max {
        let why = format!("the archive has {} entries", archive.len());
        return Err(Error::too_large(why).hint(format!("at most {}", bounds.entries_max)));
    }
    require_single_entries(&mut archive, bytes)?;
    let names = names(&mut archive)?;
    let root = root(&names)?;
    let mut take = |name: &str, max: u64| -> Result<Option<Vec<u8>>> {
        let wanted = format!("{root}{name}");
        let Some(idx) = names.iter().position(|it| *it == wanted) else {
            return Ok(None);
        };
        entry(&mut archive, idx, name, max, bounds.ratio_max).map(Some)
    };
    let text = take(MANIFEST_FILE, MANIFEST_BYTES_MAX as u64)?;
    let text = text.ok_or_else(|| Error::invalid("tool.toml not found in the archive"))?;
    let signed = take(SIGNATURE_FILE, SIGNATURE_BYTES_MAX)?;
    assemble(text, signed, |name| {
        let wasm = take(name, bounds.wasm_bytes_max)?;
        wasm.ok_or_else(|| {
            Error::invalid(format!("WASM file missing: `{name}` is not in the archive"))
        })
    })
}

fn assemble(
    text: Vec<u8>,
    signed: Option<Vec<u8>>,
    mut wasm: impl FnMut(&str) -> Result<Vec<u8>>,
) -> Result<Package> {
    let utf8 = |name: &str, bytes| {
        String::from_utf8(bytes)
            .map_err(|err| Error::invalid(format!("`{name}` is not UTF-8")).because(err))
    };
    let manifest_text = utf8(MANIFEST_FILE, text)?;
    let manifest = Manifest::parse(&manifest_text)?;
    let signed = signed
        .map(|it| Signed::parse(&utf8(SIGNATURE_FILE, it)?))
        .transpose()?;
    let wasm = wasm(&manifest.wasm)?;
    Ok(Package {
        manifest,
        manifest_text,
        wasm,
        signed,
    })
}

/// The names of all entries. One bad name refuses the archive, even if nothing would be read from it:
/// other programs that unpack the same archive would write outside their directory.
fn names(archive: &mut ZipArchive<Cursor<&[u8]>>) -> Result<Vec<String>> {
    let mut names = Vec::with_capacity(archive.len());
    for idx in 0..archive.len() {
        let entry = archive.by_index_raw(idx).map_err(broken)?;
        let name = entry.name().map_err(broken)?.into_owned();
        let is_part = |part: &str| !matches!(part, "" | "." | "..");
        let plain = name.strip_suffix('/').unwrap_or(&name);
        let refused = |why: &str| {
            let shown: String = name
                .chars()
                .filter(|it| !it.is_control())
                .take(80)
                .collect();
            Error::denied(format!("the archive's entry `{shown}` {why}"))
        };
        if plain.contains(['\\', ':', '\0']) || !plain.split('/').all(is_part) {
            return Err(refused("leaves the archive or is not a plain file name"));
        }
        if entry.is_symlink() {
            return Err(refused("is a symbolic link"));
        }
        if entry.encrypted() {
            return Err(refused("is encrypted"));
        }
        // Some file systems treat them as the same name, and so do people.
        if names
            .iter()
            .any(|it: &String| it.eq_ignore_ascii_case(&name))
        {
            return Err(refused("appears twice"));
        }
        names.push(name);
    }
    Ok(names)
}

/// Refuses an archive of which two programs would read different files. The zip reader silently keeps one
/// of two entries with the same name, so the entries of the central directory are counted here. Programs
/// that read from the front use the names in the local headers, so both must agree.
fn require_single_entries(archive: &mut ZipArchive<Cursor<&[u8]>>, bytes: &[u8]) -> Result<()> {
    let part = |from: usize, len: usize| bytes.get(from..from.checked_add(len)?);
    let number = |at: usize| {
        let two: [u8; 2] = part(at, 2)?.try_into().ok()?;
        Some(usize::from(u16::from_le_bytes(two)))
    };
    let mut at = usize::try_from(archive.central_directory_start()).unwrap_or(usize::MAX);
    let mut count = 0_usize;
    while part(at, 4) == Some(b"PK\x01\x02") {
        let lens = [at + 28, at + 30, at + 32].map(|it| number(it).unwrap_or(usize::MAX / 8));
        at = at.saturating_add(46 + lens.iter().sum::<usize>());
        count += 1;
    }
    if count != archive.len() {
        return Err(
            Error::denied("the archive has two entries with the same name")
                .hint("pack it again from a directory"),
        );
    }
    for idx in 0..archive.len() {
        let entry = archive.by_index_raw(idx).map_err(broken)?;
        let start = usize::try_from(entry.header_start()).unwrap_or(usize::MAX);
        let name = start.checked_add(26).and_then(number);
        let name = name.and_then(|len| part(start.checked_add(30)?, len));
        if name != Some(entry.name_raw()) {
            return Err(Error::denied(
                "an archive entry has one name in its header and another in the directory",
            )
            .hint("pack it again from a directory"));
        }
    }
    Ok(())
}

/// The prefix of the package's files: empty, or the only directory that holds the manifest.
fn root(names: &[String]) -> Result<String> {
    // In any directory and in any letter case: two manifests are ambiguous.
    let is_manifest = |name: &&String| {
        let name = name.rsplit('/').next().unwrap_or_default();
        name.eq_ignore_ascii_case(MANIFEST_FILE)
    };
    let found: Vec<&String> = names.iter().filter(is_manifest).collect();
    if found.len() > 1 {
        return Err(
            Error::invalid("the archive has more than one `tool.toml`").hint("pack one tool only")
        );
    }
    let root = found.first().and_then(|it| it.strip_suffix(MANIFEST_FILE));
    match root.filter(|it| it.matches('/').count() <= 1) {
        Some(root) => Ok(root.to_owned()),
        None => Err(Error::invalid("tool.toml not found in the archive")
            .hint("put it at the root of the archive or in its only directory")),
    }
}

fn entry(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    idx: usize,
    name: &str,
    max: u64,
    ratio_max: u64,
) -> Result<Vec<u8>> {
    let entry = archive.by_index(idx).map_err(broken)?;
    let too_large = |max: u64| {
        Error::too_large(format!("`{name}` in the archive is too large"))
            .hint(format!("at most {max} bytes"))
    };
    if !entry.is_file() {
        return Err(Error::invalid(format!(
            "`{name}` in the archive is not a file"
        )));
    }
    let ratio = entry.compressed_size().saturating_mul(ratio_max);
    let max = max.min(ratio.max(RATIO_FREE_BYTES));
    if entry.size() > max {
        return Err(too_large(max));
    }
    // The size in the archive's directory is not trustworthy, so memory is allocated as needed.
    let mut bytes = Vec::new();
    let mut part = entry.take(max.saturating_add(1));
    part.read_to_end(&mut bytes).map_err(|err| {
        Error::invalid(format!("`{name}` in the archive cannot be decompressed")).because(err)
    })?;
    if bytes.len() as u64 > max {
        return Err(too_large(max));
    }
    Ok(bytes)
}

fn missing(err: Error, name: &str, what: &str) -> Error {
    match err.code {
        Code::NotFound if name == MANIFEST_FILE => Error::new(
            Code::NotFound,
            format!("{what}: `{name}`"),
        )
        .hint(
            "name a directory with a `tool.toml`; `kami init NAME` makes one with everything in it",
        ),
        Code::NotFound => Error::new(Code::NotFound, format!("{what}: `{name}`"))
            .hint("check the `wasm` field of `tool.toml`, and build the tool first"),
        _ => err,
    }
}

fn broken(err: zip::result::ZipError) -> Error {
    Error::invalid("the archive is not a readable zip file").because(err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use zip::write::{SimpleFileOptions, ZipWriter};

    const MANIFEST: &str = "[tool]\nid = \"a.b\"\nname = \"b\"\nversion = \"1.0.0\"\nwasm = \"b.wasm\"\n[mcp]\ndescription = \"d\"\n";

    fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in entries {
            writer
                .start_file(*name, SimpleFileOptions::default())
                .unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn check(entries: &[(&str, &[u8])], expected: &str) {
        let found = read_zip(&zip(entries), &Bounds::default());
        match expected {
            "" => assert_eq!(found.unwrap().wasm, b"wasm"),
            _ => {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(expected), "{error}");
            }
        }
    }

    #[test]
    fn a_package_is_found_at_the_root_or_in_one_directory() {
        let manifest = MANIFEST.as_bytes();
        check(&[("tool.toml", manifest), ("b.wasm", b"wasm")], "");
        check(
            &[
                ("x/tool.toml", manifest),
                ("x/b.wasm", b"wasm"),
                ("README.md", b""),
            ],
            "",
        );
        check(
            &[("x/tool.toml", manifest), ("b.wasm", b"wasm")],
            "WASM file missing",
        );
        check(&[("b.wasm", b"wasm")], "tool.toml not found");
        check(&[("x/y/tool.toml", manifest)], "tool.toml not found");
        check(
            &[("x/tool.toml", manifest), ("tool.toml", manifest)],
            "more than one",
        );
        for second in ["x/y/tool.toml", "examples/other/tool.toml", "x/TOOL.toml"] {
            check(
                &[
                    ("tool.toml", manifest),
                    ("b.wasm", b"wasm"),
                    (second, manifest),
                ],
                "more than one",
            );
        }
        check(
            &[("tool.toml", manifest), ("TOOL.TOML", manifest)],
            "appears twice",
        );
        check(&[("tool.toml", b"\xff")], "not UTF-8");
        check(
            &[("tool.toml", manifest), ("b.wasm", b""), ("tool.sig", b"x")],
            "does not contain a signature",
        );
    }

    #[test]
    fn an_archive_that_leads_outside_is_refused_whole() {
        let manifest = MANIFEST.as_bytes();
        for name in ["../x", "/x", "a/../../x", "a\\x", "c:x", "./x", "a//x"] {
            let bytes = zip(&[("tool.toml", manifest), ("b.wasm", b"wasm"), (name, b"")]);
            let found = read_zip(&bytes, &Bounds::default());
            // The writer may have made the name plain; then there is nothing to refuse.
            let mut archive = ZipArchive::new(Cursor::new(&bytes[..])).unwrap();
            let written = archive
                .by_index_raw(2)
                .unwrap()
                .name()
                .unwrap()
                .into_owned();
            if written == name {
                assert_eq!(found.unwrap_err().code, Code::Denied, "{name}");
            }
        }
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer
            .start_file("tool.toml", SimpleFileOptions::default())
            .unwrap();
        writer.write_all(manifest).unwrap();
        writer
            .add_symlink("b.wasm", "/etc/passwd", SimpleFileOptions::default())
            .unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        let error = read_zip(&bytes, &Bounds::default()).unwrap_err();
        assert!(error.message.contains("is a symbolic link"), "{error}");
    }

    #[test]
    fn an_archive_that_two_programs_would_read_differently_is_refused() {
        let manifest = MANIFEST.as_bytes();
        let other = MANIFEST.replace("a.b", "c.d");
        // The writer makes no two entries with the same name, so one is renamed afterwards.
        let bytes = zip(&[
            ("tool.toml", manifest),
            ("b.wasm", b"wasm"),
            ("fool.toml", other.as_bytes()),
        ]);
        let places: Vec<usize> = (0..bytes.len() - 9)
            .filter(|start| &bytes[*start..start + 9] == b"fool.toml")
            .collect();
        let [local, central] = places[..] else {
            panic!("{places:?}")
        };
        for (renamed, expected) in [
            (vec![local, central], "two entries with the same name"),
            (vec![central], "two entries with the same name"),
            (vec![local], "and another in the directory"),
        ] {
            let mut bytes = bytes.clone();
            renamed.iter().for_each(|it| bytes[*it] = b't');
            let error = read_zip(&bytes, &Bounds::default()).unwrap_err();
            assert!(error.message.contains(expected), "{renamed:?}: {error}");
        }
        assert!(read_zip(&bytes, &Bounds::default()).is_ok());
    }

    #[test]
    fn an_archive_that_grows_too_much_is_refused() {
        let bomb = vec![0; 20 * 1024 * 1024];
        check(
            &[("tool.toml", MANIFEST.as_bytes()), ("b.wasm", &bomb)],
            "too large",
        );
        let bytes = zip(&[("tool.toml", MANIFEST.as_bytes()), ("b.wasm", b"wasm")]);
        for (bounds, expected) in [
            (
                Bounds {
                    archive_bytes_max: 10,
                    ..Bounds::default()
                },
                "the archive has",
            ),
            (
                Bounds {
                    entries_max: 1,
                    ..Bounds::default()
                },
                "2 entries",
            ),
            (
                Bounds {
                    wasm_bytes_max: 3,
                    ..Bounds::default()
                },
                "`b.wasm` in the archive is too large",
            ),
        ] {
            let error = read_zip(&bytes, &bounds).unwrap_err();
            assert_eq!(error.code, Code::TooLarge);
            assert!(error.message.contains(expected), "{error}");
        }
    }

    #[test]
    fn bytes_that_are_no_archive_are_refused_and_never_panic() {
        let good = zip(&[("tool.toml", MANIFEST.as_bytes()), ("b.wasm", b"wasm")]);
        for cut in 0..good.len() {
            assert!(read_zip(&good[..cut], &Bounds::default()).is_err(), "{cut}");
        }
        for idx in 0..good.len() {
            let mut bytes = good.clone();
            bytes[idx] ^= 0x41;
            // Either it is refused, or the byte did not matter.
            if let Ok(package) = read_zip(&bytes, &Bounds::default()) {
                assert_eq!(
                    (package.manifest_text.as_str(), &package.wasm[..]),
                    (MANIFEST, &b"wasm"[..])
                );
            }
        }
    }

    #[test]
    fn a_directory_is_a_package_too() {
        let home = tempfile::tempdir().unwrap();
        let dir = Dir::open(home.path()).unwrap();
        let error = read_dir(&dir, &Bounds::default()).unwrap_err();
        assert!(error.message.contains("tool.toml not found"), "{error}");
        dir.write("tool.toml", MANIFEST.as_bytes()).unwrap();
        let error = read_dir(&dir, &Bounds::default()).unwrap_err();
        assert!(error.message.contains("WASM file missing"), "{error}");
        dir.write("b.wasm", b"wasm").unwrap();
        assert_eq!(read_dir(&dir, &Bounds::default()).unwrap().wasm, b"wasm");
    }
}
