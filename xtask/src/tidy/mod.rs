//! Rules that no compiler checks, held as data.
//!
//! Each rule is a function from the tracked files (and `cargo metadata`) to sentences, one for each
//! place where it is broken; a sentence says what to do. Nothing here needs a build of the workspace.
//! The rules run as a command and as a test, so that `cargo test` knows no rule less than CI.

mod directions;
mod heads;
mod modules;
mod pages;
mod plain;
mod report;
mod rows;
mod words;

use crate::options::Options;
use crate::repository::{self, Tree, cargo, output};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// What a rule finds: one sentence for each place where it is broken.
type Faults = Vec<String>;

pub(crate) fn run(options: &Options) -> Result<()> {
    options.only(&["report"])?;
    if options.has("report") {
        report::print(&Tree::tracked(&repository::root())?);
    }
    match modules::groups(&Tree::tracked(&repository::root())?).as_slice() {
        [] => println!("cycles: none"),
        groups => groups.iter().for_each(|it| println!("cycle in {it}")),
    }
    let (n_files, faults) = check()?;
    if faults.is_empty() {
        println!("tidy: {n_files} files, nothing to say");
        return Ok(());
    }
    faults.iter().for_each(|fault| println!("{fault}"));
    bail!("tidy: {} faults in {n_files} files", faults.len());
}

/// Every rule, on this repository.
fn check() -> Result<(usize, Faults)> {
    let tree = Tree::tracked(&repository::root())?;
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value =
        serde_json::from_str(&metadata).context("`cargo metadata` is not JSON")?;
    let faults = [
        directions::check(&metadata),
        words::check(&tree),
        heads::check(&tree),
        modules::check(&tree),
        pages::check(&tree),
        plain::check(&tree),
        rows::check(&tree),
    ];
    Ok((tree.0.len(), faults.concat()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        let (_, faults) = super::check().unwrap();
        assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    }
}
