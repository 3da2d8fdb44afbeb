//! `kami init`: a tool project that builds, with the guest library beside it.

use super::{done, must};
use crate::output;
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::kami::tool_manifest_wasm;
use kenning_vault::Dir;
use std::path::Path;

/// The guest library, as it was when this program was built: a tool needs nothing else.
const KIT: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("scaffold/kit.toml")),
    (
        "src/lib.rs",
        include_str!("../../../../kami-guest/src/lib.rs"),
    ),
    (
        "src/bindings.rs",
        include_str!("../../../../kami-guest/src/bindings.rs"),
    ),
    (
        "src/rt.rs",
        include_str!("../../../../kami-guest/src/rt.rs"),
    ),
    (
        "src/macros.rs",
        include_str!("../../../../kami-guest/src/macros.rs"),
    ),
    (
        "src/log.rs",
        include_str!("../../../../kami-guest/src/log.rs"),
    ),
    (
        "src/json.rs",
        include_str!("../../../../kami-guest/src/json.rs"),
    ),
    (
        "wit/kami-tool.wit",
        include_str!("../../../../kami-guest/wit/kami-tool.wit"),
    ),
];

/// The project itself; `NAME`, `CRATE` and `ID` are filled in.
const PROJECT: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("scaffold/Cargo.toml.in")),
    ("tool.toml", include_str!("scaffold/tool.toml.in")),
    ("src/lib.rs", include_str!("scaffold/lib.rs.in")),
    ("README.md", include_str!("scaffold/README.md.in")),
    (".gitignore", "/target\n*.wasm\n"),
];

pub(super) fn run(matches: &ArgMatches) -> Result<u8> {
    let (name, prefix) = (must(matches, "name")?, must(matches, "prefix")?);
    let place = Path::new(&name);
    let last = place
        .file_name()
        .and_then(|it| it.to_str())
        .unwrap_or_default()
        .to_owned();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if last.is_empty()
        || !last.chars().all(plain)
        || !last.starts_with(|it: char| it.is_ascii_lowercase())
    {
        return Err(
            Error::invalid(format!("`{name}` is not a valid name of a tool"))
                .hint("use lower-case letters, digits and hyphens, beginning with a letter"),
        );
    }
    let id = format!("{prefix}.{last}");
    let filled = |text: &str| {
        text.replace("NAME", &last)
            .replace("CRATE", &last.replace('-', "_"))
            .replace("ID", &id)
    };
    // Checked before anything is written: the new project can be installed.
    tool_manifest_wasm(&filled(include_str!("scaffold/tool.toml.in")))?;
    let dir = Dir::create(place)?;
    if !dir.list(".")?.is_empty() {
        return Err(Error::conflict(format!("`{name}` is not empty")).hint("name a new directory"));
    }
    for (file, text) in KIT {
        dir.write(&format!("kami-guest/{file}"), text.as_bytes())?;
    }
    for (file, text) in PROJECT {
        dir.write(file, filled(text).as_bytes())?;
    }
    done(&format!("made {name}"));
    output::say(&format!(
        "\n  cd {name}\n  cargo build --target wasm32-wasip2 --release\n  cp target/wasm32-wasip2/release/{}.wasm .\n  kami install .\n  kami exec {id} --input '{{\"message\":\"hello\"}}'",
        last.replace('-', "_")
    ));
    Ok(0)
}
