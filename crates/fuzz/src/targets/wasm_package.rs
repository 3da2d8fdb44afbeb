//! Packages of WASM tools: archives that somebody else made.

use super::{ensure, in_time, text};
use crate::{Source, Subject, Target};
use kenning_core::Code;
use kenning_sandbox::archive::{Bounds, read_zip};
use kenning_sandbox::signature::{PublicKey, Signed};
use std::io::{Cursor, Write as _};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

pub(super) const TARGET: Target = Target {
    name: "wasm_package",
    about: "an archive is a package within its bounds, or refused",
    words: &[
        "PK\x03\x04",
        "PK\x01\x02",
        "PK\x05\x06",
        "PK\x06\x06",
        "tool.toml",
        "tool.sig",
        "../",
        "\0\0\0\0",
    ],
    seeds: || {
        vec![
            package(&mut Source::new(1), true),
            package(&mut Source::new(2), false),
        ]
    },
    generate: |source| package(source, false),
    open: || Box::new(Packages),
    pass_cases: 600,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const MANIFEST: &str = "[tool]\nid = \"dev.example.echo\"\nname = \"Echo\"\nversion = \"1.0.0\"\nwasm = \"echo.wasm\"\n[mcp]\ndescription = \"d\"\n";

fn package(source: &mut Source, is_good: bool) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, bytes: &[u8], method| {
        let options = SimpleFileOptions::default().compression_method(method);
        if zip.start_file(name, options).is_ok() {
            zip.write_all(bytes).expect("memory");
        }
    };
    let stored = CompressionMethod::Stored;
    add("tool.toml", MANIFEST.as_bytes(), stored);
    add("echo.wasm", b"\0asm\x01\0\0\0", CompressionMethod::Deflated);
    if !is_good {
        for _ in 0..source.below(6) {
            let names = [
                "../x",
                "/etc/x",
                "a/b",
                "tool.toml",
                "tool.sig",
                "echo.wasm",
                "a\\b",
                "C:x",
                ".",
                "",
            ];
            let name = if source.one_in(3) {
                source.text()
            } else {
                (*source.pick(&names)).to_owned()
            };
            let n = *source.pick(&[0, 10, 1_000, 300_000, 3_000_000]);
            let method = if source.one_in(2) {
                stored
            } else {
                CompressionMethod::Deflated
            };
            let n = if method == stored { n.min(1_000) } else { n };
            add(&name, &vec![source.byte(); n], method);
        }
    }
    zip.finish().expect("memory").into_inner()
}

struct Packages;

impl Subject for Packages {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let bounds = Bounds {
            archive_bytes_max: 1_000_000,
            entries_max: 20,
            wasm_bytes_max: 1_000_000,
            ratio_max: 100,
        };
        match in_time(input, || read_zip(input, &bounds))? {
            Ok(package) => {
                let n = package.wasm.len();
                ensure!(n <= 1_000_000, "a component of {n} bytes passed");
            }
            Err(error) => {
                let code = error.code;
                let known = matches!(
                    code,
                    Code::InvalidInput
                        | Code::TooLarge
                        | Code::Denied
                        | Code::NotFound
                        | Code::Limited
                );
                ensure!(known, "an archive was answered with {code:?}: {error}");
            }
        }
        let _ = Signed::parse(&text(input));
        let _ = PublicKey::parse(&text(input));
        Ok(())
    }
}
