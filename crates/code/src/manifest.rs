//! Manifests: which package a folder is, and where it begins.

use crate::facts::Manifest;
use serde_json::Value;

/// The largest manifest that is read.
const BYTES_MAX: usize = 1 << 20;
/// So many prefixes of one file are kept.
const PATHS_MAX: usize = 200;

/// Whether a file is a manifest that tells about the files around it.
pub fn is_manifest(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |it| it.1);
    let is_config = |it: &str| it.starts_with("tsconfig") && it.ends_with(".json");
    matches!(
        name,
        "Cargo.toml" | "package.json" | "go.mod" | "jsconfig.json"
    ) || is_config(name)
}

pub(crate) fn read(path: &str, text: &str) -> Option<Manifest> {
    if !is_manifest(path) {
        return None;
    }
    if text.len() > BYTES_MAX {
        return Some(Manifest::default());
    }
    let name = path.rsplit_once('/').map_or(path, |it| it.1);
    Some(match name {
        "Cargo.toml" => cargo(text),
        "go.mod" => go(text),
        "package.json" => package(text),
        _ => config(text),
    })
}

/// The name of the package. Only the line is looked for: the rest of the file says nothing about names.
fn cargo(text: &str) -> Manifest {
    let mut is_package = false;
    let mut manifest = Manifest::default();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_package = line == "[package]";
        } else if is_package
            && let Some(rest) = line.strip_prefix("name")
            && let Some(value) = rest.trim_start().strip_prefix('=')
        {
            manifest.name = value.trim().trim_matches(['"', '\'']).to_owned();
        }
    }
    manifest
}

fn go(text: &str) -> Manifest {
    let mut lines = text.lines().map(str::trim);
    let name = lines.find_map(|it| it.strip_prefix("module "));
    Manifest {
        name: name.unwrap_or_default().trim().trim_matches('"').to_owned(),
        ..Manifest::default()
    }
}

fn package(text: &str) -> Manifest {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Manifest::default();
    };
    let entries = ["types", "module", "main"].iter();
    let entries = entries.filter_map(|it| value.get(it)?.as_str());
    let entries = entries.map(ToOwned::to_owned).collect();
    let name = value.get("name").and_then(Value::as_str);
    Manifest {
        name: name.unwrap_or_default().to_owned(),
        entries,
        paths: Vec::new(),
    }
}

/// Prefixes of imports, from `compilerOptions`.
fn config(text: &str) -> Manifest {
    let Ok(value) = serde_json::from_str::<Value>(&without_comments(text)) else {
        return Manifest::default();
    };
    let options = value.get("compilerOptions");
    let option = |name: &str| options.and_then(|it| it.get(name));
    let base = option("baseUrl").and_then(Value::as_str);
    let mut paths = Vec::new();
    let listed = option("paths").and_then(Value::as_object);
    for (prefix, targets) in listed.into_iter().flatten().take(PATHS_MAX) {
        let targets = targets.as_array().into_iter().flatten();
        for target in targets.filter_map(Value::as_str).take(4) {
            let target = format!("{}/{target}", base.unwrap_or("."));
            paths.push((prefix.clone(), target));
        }
    }
    if let Some(base) = base {
        paths.push(("*".to_owned(), format!("{base}/*")));
    }
    Manifest {
        paths,
        ..Manifest::default()
    }
}

/// Such files may have comments and commas at the end of a list.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    let mut in_text = false;
    while let Some(sign) = signs.next() {
        match sign {
            '"' => {
                in_text = !in_text;
                out.push(sign);
            }
            '\\' if in_text => {
                out.push(sign);
                out.extend(signs.next());
            }
            '/' if !in_text && signs.peek() == Some(&'/') => {
                signs.by_ref().take_while(|it| *it != '\n').for_each(drop);
            }
            '/' if !in_text && signs.peek() == Some(&'*') => {
                signs.next();
                let mut before = ' ';
                for it in signs.by_ref() {
                    if before == '*' && it == '/' {
                        break;
                    }
                    before = it;
                }
            }
            ']' | '}' if !in_text => {
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
                out.push(sign);
            }
            it => out.push(it),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_tell_names_and_prefixes() {
        let name = |path, text| read(path, text).map(|it| it.name);
        let toml = "[workspace]\nname = \"no\"\n[package]\nname = \"acme-core\"\n";
        assert_eq!(name("a/Cargo.toml", toml).as_deref(), Some("acme-core"));
        assert_eq!(
            name("go.mod", "// x\nmodule example.com/acme\n").as_deref(),
            Some("example.com/acme")
        );
        assert_eq!(
            name("package.json", "{\"name\": \"@a/b\"}").as_deref(),
            Some("@a/b")
        );
        assert_eq!(name("src/main.rs", ""), None);
        let text = "{ // c\n \"compilerOptions\": {\"baseUrl\": \"src\", \"paths\": {\"@/*\": [\"*\"],},},}";
        let found = read("tsconfig.json", text).unwrap();
        assert_eq!(
            found.paths,
            [
                ("@/*".to_owned(), "src/*".to_owned()),
                ("*".to_owned(), "src/*".to_owned())
            ]
        );
    }
}
