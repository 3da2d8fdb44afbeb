//! Locates code, explains it by what it calls and what calls it, and proposes a change as a diff.

use super::count;
use super::patch::{self, Edits};
use crate::code::{Code, Symbol, is_comment};
use crate::material::{Material, subject, words};
use crate::report::{Artifact, Finding, Report};
use crate::task::Task;
use kenning_core::{NodeId, Result};
use serde_json::json;
use std::collections::BTreeMap;

const LOCATED_MAX: usize = 10;
const LINKS_MAX: usize = 10;
const SEARCHED: usize = 30;

pub(crate) fn work(task: &Task<'_>, material: &Material<'_>) -> Result<Report> {
    let mut report = Report::default();
    let code = material.code()?;
    report.notes.extend(material.why_no_code()?);
    let located = task.step(
        "locate",
        || locate(task, material, code),
        |it| json!({ "symbols": it.len() }),
    )?;
    task.step(
        "explain",
        || {
            let shown = located.iter().map(|it| explained(code, it));
            report.findings = shown.collect();
            Ok(())
        },
        |()| json!({}),
    )?;
    let Proposal {
        patches,
        what,
        refused,
    } = task.step(
        "propose",
        || propose(task, material, code, &located),
        |it| json!({ "files": it.patches.len(), "refused": it.refused }),
    )?;
    let is_refused = refused.is_some();
    report.notes.extend(refused);
    let n_files = patches.len();
    let text: String = patches.into_values().collect();
    report.summary = match located.first() {
        None => "No symbol of the scanned code fits the task.".to_owned(),
        Some(it) => format!(
            "{} found, first `{}` at {}.{}",
            count(located.len(), "symbol"),
            it.qualified,
            it.place(),
            match n_files {
                0 => String::new(),
                n => format!(" The proposal ({what}) changes {}.", count(n, "file")),
            }
        ),
    };
    let places = located.iter().map(|it| {
        json!({
            "symbol": it.qualified, "kind": it.label, "repo": it.repo, "file": it.path, "line": it.line,
            "signature": it.signature,
        })
    });
    report.put("locations", places.collect::<Vec<_>>());
    report.put("explanation", explanation(code, &located));
    report.put("patch", (n_files > 0).then(|| text.clone()));
    if n_files > 0 {
        report.recommendations.push(format!(
            "Read the proposal ({what}), then apply it with `git apply`"
        ));
        report.artifacts.push(Artifact {
            kind: "code",
            name: "proposal.patch".to_owned(),
            content: text,
            mime_type: "text/x-diff",
        });
    } else if !is_refused {
        report.recommendations.push(
            "For a proposal say `rename A to B`, `document A` or `fix broken links`; other changes need a model"
                .to_owned(),
        );
    }
    Ok(report)
}

/// The symbols that a task names, else those that search finds.
fn locate<'a>(task: &Task<'_>, material: &Material<'_>, code: &'a Code) -> Result<Vec<&'a Symbol>> {
    let words: Vec<String> = words(task.text).collect();
    let named = |it: &&Symbol| {
        let qualified = it.qualified.to_lowercase();
        let name = it.name.to_lowercase();
        // A word such as `get` is rarely meant as a name; one in code quotes always is.
        let is_quoted = task.text.contains(&format!("`{}`", it.name));
        words
            .iter()
            .any(|word| *word == qualified && qualified.contains('.'))
            || (words.contains(&name) && (is_quoted || name.contains('_') || name.len() > 4))
    };
    let mut found: Vec<&Symbol> = code.symbols.iter().filter(named).collect();
    found.sort_by_key(|it| (it.is_test, it.path.clone(), it.line));
    if found.is_empty() && !code.symbols.is_empty() {
        let query = subject(task.text).join(" ");
        let sources = material.search(&[task.text.to_owned(), query], SEARCHED)?;
        found = sources
            .iter()
            .filter_map(|it| code.symbol(it.node.id))
            .collect();
    }
    found.truncate(LOCATED_MAX);
    Ok(found)
}

/// Whom a symbol calls, and who calls it.
fn around(code: &Code, id: NodeId) -> (Vec<&Symbol>, Vec<&Symbol>) {
    let calls = code.calls.iter().filter(|it| !it.is_guess);
    let out = calls
        .clone()
        .filter(|it| it.from == id)
        .filter_map(|it| code.symbol(it.to));
    let into = calls
        .filter(|it| it.to == id)
        .filter_map(|it| code.symbol(it.from));
    (
        out.take(LINKS_MAX).collect(),
        into.take(LINKS_MAX).collect(),
    )
}

fn names(of: &[&Symbol]) -> String {
    let names: Vec<String> = of.iter().map(|it| format!("`{}`", it.qualified)).collect();
    names.join(", ")
}

fn explained(code: &Code, it: &Symbol) -> Finding {
    let (calls, callers) = around(code, it.id);
    let doc = it.doc.lines().next().unwrap_or_default().trim();
    let mut text = format!("`{}`", it.signature);
    if !doc.is_empty() {
        text += &format!(": {doc}");
    }
    Finding {
        kind: "location",
        title: it.qualified.clone(),
        description: text,
        relevance: 0.9,
        source: "code",
        references: vec![it.place()],
        related: callers
            .iter()
            .map(|other| format!("called by {} ({})", other.qualified, other.place()))
            .chain(
                calls
                    .iter()
                    .map(|other| format!("calls {} ({})", other.qualified, other.place())),
            )
            .collect(),
        severity: None,
        node: Some(it.id),
    }
}

fn explanation(code: &Code, located: &[&Symbol]) -> String {
    let mut out = String::new();
    for it in located.iter().take(3) {
        let (calls, callers) = around(code, it.id);
        out += &format!(
            "`{}` is a {} of {} lines in {}.",
            it.qualified,
            it.label.to_lowercase(),
            (it.line_end + 1).saturating_sub(it.line),
            it.path
        );
        if !calls.is_empty() {
            out += &format!(" It calls {}.", names(&calls));
        }
        match callers.is_empty() {
            true => out += " Nothing that was scanned calls it.",
            false => out += &format!(" It is called by {}.", names(&callers)),
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// A change.
#[derive(Default)]
struct Proposal {
    /// The diffs by file.
    patches: BTreeMap<String, String>,
    /// What they do.
    what: String,
    /// Why there is none, although the task asks for one that could be made.
    refused: Option<String>,
}

impl Proposal {
    fn of(patches: BTreeMap<String, String>, what: String) -> Self {
        Self {
            patches,
            what,
            refused: None,
        }
    }

    fn refused(why: String) -> Self {
        Self {
            refused: Some(why),
            ..Self::default()
        }
    }
}

fn propose(
    task: &Task<'_>,
    material: &Material<'_>,
    code: &Code,
    located: &[&Symbol],
) -> Result<Proposal> {
    let lower = task.text.to_lowercase();
    let plain: Vec<String> = task
        .text
        .split_whitespace()
        .map(|it| {
            it.trim_matches(|it: char| !it.is_alphanumeric() && it != '_')
                .to_owned()
        })
        .filter(|it| !it.is_empty())
        .collect();
    let after = |word: &str| {
        let at = plain.iter().position(|it| it.eq_ignore_ascii_case(word))?;
        plain.get(at + 1)
    };
    if lower.contains("broken link") {
        let patches = mended_links(material)?;
        return Ok(Proposal::of(patches, "mends broken links".to_owned()));
    }
    if let (Some(old), Some(new)) = (after("rename"), after("to"))
        && let Some(symbol) = located.iter().find(|it| it.name == *old)
        && is_name(new)
    {
        return match renamed(material, code, symbol, new)? {
            Ok(patches) => Ok(Proposal::of(patches, format!("renames `{old}` to `{new}`"))),
            Err(place) => Ok(Proposal::refused(format!(
                "`{old}` was not renamed: `{new}` is in use at {place}, and one of the two would hide the other; \
                 choose another name"
            ))),
        };
    }
    if let Some(name) = after("document")
        && let Some(symbol) = located
            .iter()
            .find(|it| it.name == *name && it.doc.is_empty())
    {
        let patches = documented(material, code, symbol)?;
        return Ok(Proposal::of(patches, format!("documents `{name}`")));
    }
    Ok(Proposal::default())
}

fn is_name(word: &str) -> bool {
    !word.starts_with(|it: char| it.is_ascii_digit())
        && word.chars().all(|it| it.is_alphanumeric() || it == '_')
}

/// The definition, and every line that certainly means it; or where the new name is in use already.
fn renamed(
    material: &Material<'_>,
    code: &Code,
    symbol: &Symbol,
    new: &str,
) -> Result<Result<BTreeMap<String, String>, String>> {
    // What has the new name in the same type or module, in whatever file.
    let scope = |it: &Symbol| {
        let scope = it.qualified.rsplit_once(['.', ':', '#']).map(|it| it.0);
        scope.unwrap_or_default().to_owned()
    };
    let is_member = symbol.label == "Method";
    let clash = code.symbols.iter().find(|it| {
        it.name == new
            && it.repo == symbol.repo
            && scope(it) == scope(symbol)
            && (is_member || it.path == symbol.path)
    });
    if let Some(it) = clash {
        return Ok(Err(it.place()));
    }
    let mut places: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    let of = |it: &Symbol| (it.repo.clone(), it.path.clone());
    places.entry(of(symbol)).or_default().push(symbol.line);
    for link in code.calls.iter().chain(&code.imports) {
        if link.to != symbol.id || link.is_guess {
            continue;
        }
        let from = code.symbol(link.from).map(of).or_else(|| {
            let file = code.files.iter().find(|it| it.id == link.from)?;
            Some((file.repo.clone(), file.path.clone()))
        });
        if let Some(from) = from {
            places.entry(from).or_default().extend(&link.lines);
        }
    }
    let mut patches = BTreeMap::new();
    for ((repo, path), lines) in places {
        let file = code
            .files
            .iter()
            .find(|it| it.repo == repo && it.path == path);
        let Some(text) = file
            .map(|it| material.file_text(it.id))
            .transpose()?
            .flatten()
        else {
            continue;
        };
        let all: Vec<&str> = text.lines().collect();
        // Whatever is called so where the symbol is named, be it a variable or an import. A member is named after
        // its object, so other things of that name do not meet it.
        if !is_member
            && let Some(at) = all
                .iter()
                .position(|it| !is_comment(it) && patch::replace_word(it, new, "").is_some())
        {
            return Ok(Err(format!("{path}:{}", at + 1)));
        }
        let mut edits = Edits::new();
        for line in lines {
            let at = usize::try_from(line).unwrap_or(usize::MAX);
            let old = at.checked_sub(1).and_then(|it| all.get(it));
            if let Some(new) = old.and_then(|it| patch::replace_word(it, &symbol.name, new)) {
                edits.insert(at, vec![new]);
            }
        }
        let text = patch::diff(&path, &text, &edits);
        if !text.is_empty() {
            patches.insert(path, text);
        }
    }
    Ok(Ok(patches))
}

/// A comment in the form of the language, made of the name and the signature.
fn documented(
    material: &Material<'_>,
    code: &Code,
    symbol: &Symbol,
) -> Result<BTreeMap<String, String>> {
    let file = code
        .files
        .iter()
        .find(|it| it.repo == symbol.repo && it.path == symbol.path);
    let Some(file) = file else {
        return Ok(BTreeMap::new());
    };
    let Some(text) = material.file_text(file.id)? else {
        return Ok(BTreeMap::new());
    };
    let at = usize::try_from(symbol.line).unwrap_or(usize::MAX);
    let Some(line) = at.checked_sub(1).and_then(|it| text.lines().nth(it)) else {
        return Ok(BTreeMap::new());
    };
    let indent = &line[..line.len() - line.trim_start().len()];
    let said = sentence(&symbol.name);
    let new = match file.language.as_deref().unwrap_or_default() {
        "python" if line.trim_end().ends_with(':') => {
            vec![line.to_owned(), format!("{indent}    \"\"\"{said}\"\"\"")]
        }
        "python" | "ruby" | "bash" => vec![format!("{indent}# {said}"), line.to_owned()],
        "rust" => vec![format!("{indent}/// {said}"), line.to_owned()],
        "go" => vec![
            format!("{indent}// {} {}", symbol.name, said.to_lowercase()),
            line.to_owned(),
        ],
        "sql" => vec![format!("{indent}-- {said}"), line.to_owned()],
        _ => vec![format!("{indent}/** {said} */"), line.to_owned()],
    };
    let patch = patch::diff(&symbol.path, &text, &Edits::from([(at, new)]));
    Ok(BTreeMap::from([(symbol.path.clone(), patch)]))
}

/// `parse_header` and `parseHeader` as a sentence.
fn sentence(name: &str) -> String {
    let mut out = String::new();
    for it in name.chars() {
        match it {
            '_' | '-' => out.push(' '),
            it if it.is_uppercase() && !out.is_empty() => {
                out.push(' ');
                out.extend(it.to_lowercase());
            }
            it if out.is_empty() => out.extend(it.to_uppercase()),
            it => out.push(it),
        }
    }
    out.push('.');
    out
}

/// Links that lead nowhere, led to the document that was probably meant.
fn mended_links(material: &Material<'_>) -> Result<BTreeMap<String, String>> {
    let broken = material.broken_links()?.unwrap_or_default();
    let texts = material.texts()?;
    let mut edits: BTreeMap<&str, (&str, Edits)> = BTreeMap::new();
    for it in &broken {
        let Some((meant, _)) = &it.suggestion else {
            continue;
        };
        let Some(text) = texts.iter().find(|text| text.place == it.source.path) else {
            continue;
        };
        let at = it.line as usize;
        let of = edits
            .entry(&text.place)
            .or_insert((&text.body, Edits::new()));
        let line = match of.1.get(&at).and_then(|it| it.first()) {
            Some(line) => Some(line.clone()),
            None => at
                .checked_sub(1)
                .and_then(|it| text.body.lines().nth(it))
                .map(ToOwned::to_owned),
        };
        let Some(line) = line else { continue };
        let target = it.target.split('#').next().unwrap_or(&it.target);
        let wiki = meant.path.rsplit('/').next().unwrap_or(&meant.path);
        let wiki = wiki.strip_suffix(".md").unwrap_or(wiki);
        let new = line
            .replace(&format!("[[{target}"), &format!("[[{wiki}"))
            .replace(
                &format!("]({target}"),
                &format!("]({}", relative(&it.source.path, &meant.path)),
            );
        if new != line {
            of.1.insert(at, vec![new]);
        }
    }
    let patches = edits
        .into_iter()
        .map(|(path, (text, edits))| (path.to_owned(), patch::diff(path, text, &edits)));
    Ok(patches.filter(|it| !it.1.is_empty()).collect())
}

/// The way from one file to another.
fn relative(from: &str, to: &str) -> String {
    let mut from: Vec<&str> = from.split('/').collect();
    from.pop();
    let to: Vec<&str> = to.split('/').collect();
    let n_same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from.len() - n_same;
    let parts = std::iter::repeat_n("..", up).chain(to.iter().skip(n_same).copied());
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_between_files() {
        for (from, to, expected) in [
            ("docs/a.md", "docs/b.md", "b.md"),
            ("docs/a.md", "docs/x/b.md", "x/b.md"),
            ("docs/x/a.md", "docs/b.md", "../b.md"),
            ("a.md", "docs/b.md", "docs/b.md"),
        ] {
            assert_eq!(relative(from, to), expected);
        }
    }

    #[test]
    fn a_name_is_a_sentence() {
        assert_eq!(sentence("parse_header"), "Parse header.");
        assert_eq!(sentence("parseHeader"), "Parse header.");
    }
}
