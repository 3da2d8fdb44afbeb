//! Which files of a vault are notes: not its settings, not its templates, not what it ignores.
//!
//! Obsidian keeps settings and plugins in `.obsidian`, deleted notes in `.trash`, and runs what lies there; so
//! nothing beneath a hidden folder is read or written. A template is a form for notes and says nothing itself.

use super::survey::SKIPPED;
use kenning_core::{Error, Result};
use kenning_vault::Dir;
use serde_json::Value;

/// Larger settings are not read.
const SETTINGS_BYTES_MAX: u64 = 1024 * 1024;
/// So many folders and patterns are taken from settings.
const RULES_MAX: usize = 200;
/// Where templates are, in the settings of Obsidian and of its most used plugin.
const TEMPLATES: [(&str, &str); 2] = [
    (".obsidian/templates.json", "folder"),
    (
        ".obsidian/plugins/templater-obsidian/data.json",
        "templates_folder",
    ),
];
/// Where they are if no settings say so.
const TEMPLATES_DEFAULT: &str = "templates";

/// Which files of a vault are notes, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteRules {
    /// Folders of templates, in small letters.
    templates: Vec<String>,
    /// Paths that the vault excludes.
    excluded: Vec<String>,
}

impl NoteRules {
    /// Those of a vault. Settings that cannot be read say nothing.
    #[must_use]
    pub fn of(dir: &Dir) -> Self {
        let mut templates = Vec::new();
        let mut is_set = false;
        for (file, field) in TEMPLATES {
            let settings = settings(dir, file);
            if let Some(folder) = settings.as_ref().and_then(|it| it.get(field)?.as_str()) {
                is_set = true;
                templates.extend(folder_key(folder));
            }
        }
        if !is_set {
            templates.push(TEMPLATES_DEFAULT.to_owned());
        }
        let app = settings(dir, ".obsidian/app.json");
        let excluded = app.as_ref().and_then(|it| it.get("userIgnoreFilters"));
        let excluded = excluded.and_then(Value::as_array).into_iter().flatten();
        // A filter between slashes is a pattern; only paths are understood here.
        let is_path = |it: &&str| !(it.len() > 1 && it.starts_with('/') && it.ends_with('/'));
        let excluded = excluded.filter_map(Value::as_str).filter(is_path);
        let excluded = excluded.filter_map(folder_key).take(RULES_MAX);
        Self {
            templates,
            excluded: excluded.collect(),
        }
    }

    /// Why a file is no note, in words; nothing if it may be one.
    #[must_use]
    pub fn why_not(&self, name: &str) -> Option<&'static str> {
        let parts = || name.split('/').filter(|it| !it.is_empty() && *it != ".");
        if parts().any(|it| it.starts_with('.') && it != "..") {
            return Some("is hidden: settings, plugins and the trash of a vault are not notes");
        }
        if parts().any(|it| SKIPPED.contains(&it)) {
            return Some("is in a folder that holds no notes");
        }
        let key = name.to_lowercase();
        if self.templates.iter().any(|it| is_beneath(&key, it)) {
            return Some("is a template, and templates are not notes");
        }
        if self.excluded.iter().any(|it| is_beneath(&key, it)) {
            return Some("is excluded by the settings of the vault");
        }
        None
    }

    /// Refuses a name that is no note's.
    ///
    /// # Errors
    /// The reason; the vault is not touched.
    pub fn check(&self, dir: &Dir, name: &str) -> Result<()> {
        let ignored = || match dir.is_ignored(name) {
            Ok(true) => Some("is ignored by the rules of the vault (`.gitignore`)"),
            _ => None,
        };
        let Some(why) = self.why_not(name).or_else(ignored) else {
            return Ok(());
        };
        let shown: String = name.chars().take(200).collect();
        Err(Error::denied(format!("`{shown}` {why}"))
            .hint("choose another folder; it was neither read nor written"))
    }
}

fn settings(dir: &Dir, file: &str) -> Option<Value> {
    let bytes = dir.read(file, SETTINGS_BYTES_MAX).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn folder_key(folder: &str) -> Option<String> {
    let folder = folder.trim().trim_matches('/');
    (!folder.is_empty() && folder != ".").then(|| folder.to_lowercase())
}

fn is_beneath(name: &str, folder: &str) -> bool {
    let rest = name.strip_prefix(folder);
    rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}
