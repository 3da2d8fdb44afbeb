//! The programs and the tools that are measured, built if they must be.

use crate::options::Options;
use crate::repository::{cargo, output, root};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `kenning` and the `kami` beside it.
pub(in crate::bench) struct Programs {
    kenning: PathBuf,
    kami: PathBuf,
}

impl Programs {
    /// Those where `--binary` names `kenning`, or a fresh build.
    pub(in crate::bench) fn find(options: &Options) -> Result<Self> {
        let kenning = match options.text("binary") {
            Some(path) => std::path::absolute(path)?,
            None => {
                let built = cargo()
                    .args(["build", "--quiet", "--release", "--package", "kenning"])
                    .status()?;
                ensure!(built.success(), "the program could not be built");
                target()?.join("release/kenning")
            }
        };
        let kami = kenning.with_file_name("kami");
        for program in [&kenning, &kami] {
            let place = program.display();
            ensure!(program.is_file(), "there is no program at `{place}`");
        }
        Ok(Self { kenning, kami })
    }

    /// Where `kenning` is.
    pub(in crate::bench) fn kenning(&self) -> &Path {
        &self.kenning
    }

    pub(in crate::bench) fn kami(&self, data: &Path) -> Command {
        command(&self.kami, data)
    }

    /// `kenning` over a data directory.
    pub(in crate::bench) fn command(&self, data: &Path) -> Command {
        command(&self.kenning, data)
    }

    /// A server over its standard streams.
    pub(in crate::bench) fn mcp(&self, data: &Path) -> Command {
        let mut command = command(&self.kenning, data);
        // What is measured is not all in the default set.
        command.arg("mcp").env("KENNING_TOOLSETS", "all");
        command
    }

    /// Installs a package.
    pub(in crate::bench) fn install(&self, data: &Path, package: &Path) -> Result<()> {
        output(self.kami(data).arg("install").arg(package)).map(drop)
    }
}

fn command(program: &Path, data: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg("--data")
        .arg(data)
        .env_remove("KENNING_DATA")
        .env_remove("KENNING_DATABASE_URL")
        .env_remove("KAMI_DATA_DIR");
    command
}

fn target() -> Result<PathBuf> {
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"].as_str();
    Ok(PathBuf::from(target.context("no target directory")?))
}

/// The tools of `examples/tools`.
pub(in crate::bench) struct Tools {
    built: PathBuf,
}

impl Tools {
    pub(in crate::bench) fn build() -> Result<Self> {
        let target = target()?.join("tools");
        let built = cargo()
            .args(["build", "--quiet", "--release", "--target", "wasm32-wasip2"])
            .args(["--manifest-path", "examples/tools/Cargo.toml"])
            .arg("--target-dir")
            .arg(&target)
            // How the programs are built is no matter of the tools.
            .env_remove("CARGO_PROFILE_RELEASE_LTO")
            .env_remove("CARGO_PROFILE_RELEASE_CODEGEN_UNITS")
            .status()?;
        ensure!(
            built.success(),
            "the tools could not be built; `rustup target add wasm32-wasip2` may help"
        );
        let built = target.join("wasm32-wasip2/release");
        Ok(Self { built })
    }

    /// The bytes of a component.
    pub(in crate::bench) fn component(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.built.join(format!("{name}.wasm"));
        std::fs::read(&path).with_context(|| path.display().to_string())
    }

    /// A directory with a tool under an id.
    pub(in crate::bench) fn package(&self, name: &str, id: &str, into: &Path) -> Result<PathBuf> {
        let package = into.join(id);
        std::fs::create_dir_all(&package)?;
        let manifest = root().join(format!("examples/tools/{name}/tool.toml"));
        let manifest = std::fs::read_to_string(manifest)?;
        let (old, new) = (format!("\"dev.example.{name}\""), format!("\"{id}\""));
        ensure!(manifest.contains(&old), "the manifest has no id {old}");
        std::fs::write(package.join("tool.toml"), manifest.replace(&old, &new))?;
        std::fs::write(package.join(format!("{name}.wasm")), self.component(name)?)?;
        Ok(package)
    }
}

/// A directory with a tool of a few instructions that answers with its input.
pub(in crate::bench) fn small_echo(id: &str, into: &Path) -> Result<PathBuf> {
    let package = into.join(id);
    std::fs::create_dir_all(&package)?;
    let manifest = format!(
        "[tool]\nid = \"{id}\"\nname = \"echo\"\nversion = \"1.0.0\"\nwasm = \"tool.wasm\"\n\
         [mcp]\ndescription = \"Answers with its input\"\n\
         [[mcp.arguments]]\nname = \"message\"\ntype = \"string\"\ndescription = \"Anything\"\n"
    );
    std::fs::write(package.join("tool.toml"), manifest)?;
    std::fs::write(
        package.join("tool.wasm"),
        kenning_testing_wasm::probes::echo()?,
    )?;
    Ok(package)
}
