//! Pages that are written by the tables they describe.
//!
//! A generated page is one function that returns its text and one row in [`PAGES`]. The pages are
//! tracked, so that they can be read without building anything; `--check` (and a test) compares them
//! with what the tables say now.

mod cli;
mod config;
mod errors;
mod markdown;
mod tools;

use crate::options::Options;
use crate::repository::root;
use anyhow::{Context as _, Result, bail};
use std::path::Path;

/// The command that repairs.
const REPAIR: &str = "cargo xtask codegen";

/// Where a page is and what writes it.
type Page = (&'static str, fn() -> String);

const PAGES: &[Page] = &[
    ("docs/reference/tools.md", tools::page),
    ("docs/reference/items.md", items),
    ("docs/reference/errors.md", errors::page),
    ("docs/reference/cli.md", cli::page),
    ("docs/reference/environment.md", cli::environment),
    ("docs/reference/config.md", config::page),
    ("docs/reference/openapi.json", openapi),
];

/// What the tool `help` answers, topic by topic.
fn items() -> String {
    let mut page = markdown::notice("`TOPICS` of crates/tools/src/kiwi/help.rs");
    page += "# Items\n\nWhat the tool `help` answers, topic by topic.\n";
    for topic in kenning_tools::kiwi::TOPICS {
        // Each begins with a heading of its own, which is one of a chapter here.
        page += &format!("\n#{}\n", topic.text.trim_end());
    }
    page
}

fn openapi() -> String {
    format!("{:#}\n", kenning_rest::openapi(kenning_tools::TOOLS))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    options.only(&["check"])?;
    let stale = stale(&root());
    if options.has("check") {
        if stale.is_empty() {
            println!("codegen: {} pages are current", PAGES.len());
            return Ok(());
        }
        let names: Vec<&str> = stale.iter().map(|(name, _)| *name).collect();
        bail!("not current: {}; `{REPAIR}` writes them", names.join(", "));
    }
    for (name, text) in &stale {
        let path = root().join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, text).with_context(|| format!("`{name}` could not be written"))?;
        println!("codegen: wrote {name}");
    }
    println!("codegen: {} pages are current", PAGES.len());
    Ok(())
}

/// The pages that are not what the tables say, with what they should be.
fn stale(root: &Path) -> Vec<(&'static str, String)> {
    let made = PAGES.iter().map(|(name, make)| (*name, make()));
    made.filter(|(name, text)| std::fs::read_to_string(root.join(name)).ok().as_ref() != Some(text))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generated_page_is_current() {
        let stale = stale(&root());
        let names: Vec<&str> = stale.iter().map(|(name, _)| *name).collect();
        assert!(names.is_empty(), "{names:?}: run `{REPAIR}`");
    }

    #[test]
    fn a_page_that_was_edited_or_is_missing_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(stale(folder.path()).len(), PAGES.len());
        std::fs::create_dir_all(folder.path().join("docs/reference")).unwrap();
        for (name, make) in PAGES {
            std::fs::write(folder.path().join(name), make()).unwrap();
        }
        assert!(stale(folder.path()).is_empty());
        std::fs::write(folder.path().join(PAGES[0].0), "edited").unwrap();
        assert_eq!(stale(folder.path())[0].0, PAGES[0].0);
    }
}
