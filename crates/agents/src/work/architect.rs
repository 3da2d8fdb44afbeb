//! Components, layers and cycles of code; of documents their groups.

use super::count;
use crate::code::{Code, components};
use crate::material::Material;
use crate::report::{Finding, Report};
use crate::task::Task;
use kenning_core::Result;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const SHOWN_MAX: usize = 100;

/// Folders with code, and what they depend on.
struct Parts {
    names: Vec<String>,
    files: Vec<usize>,
    lines: Vec<u64>,
    depends: BTreeMap<usize, Vec<usize>>,
    /// Among how many files of two parts.
    n_links: BTreeMap<(usize, usize), usize>,
}

pub(crate) fn work(task: &Task<'_>, material: &Material<'_>) -> Result<Report> {
    let mut report = Report::default();
    let code = material.code()?;
    if code.files.is_empty() {
        report.notes.extend(material.why_no_code()?);
        return of_documents(task, report);
    }
    let (parts, cycles) = task.step(
        "find-cycles",
        || Ok((parts(code), code.cycles())),
        |it| json!({ "components": it.0.names.len(), "cycles": it.1.len() }),
    )?;
    let groups = components(&parts.depends);
    let tangled: Vec<&Vec<usize>> = groups.iter().filter(|it| it.len() > 1).collect();
    let layers = task.step(
        "order-layers",
        || Ok(layers(&parts)),
        |it| json!({ "layers": it.len() }),
    )?;
    let mut used: BTreeMap<usize, usize> = BTreeMap::new();
    for &(_, to) in &code.depends {
        *used.entry(to).or_default() += 1;
    }
    let mut hubs: Vec<(usize, usize)> = used.into_iter().map(|(to, n)| (n, to)).collect();
    hubs.sort_by(|a, b| b.cmp(a));
    let name = |n: &usize| parts.names.get(*n).cloned().unwrap_or_default();
    let path = |n: &usize| {
        code.files
            .get(*n)
            .map(|it| it.path.clone())
            .unwrap_or_default()
    };

    let health = 100.0
        - (10.0 * cycles.len() as f64).min(50.0)
        - (10.0 * tangled.len() as f64).min(30.0)
        - if layers.len() <= 1 && parts.names.len() > 3 {
            10.0
        } else {
            0.0
        };
    let mut patterns: Vec<&str> = Vec::new();
    if layers.len() >= 3 && tangled.is_empty() {
        patterns.push("layered");
    }
    if parts.names.len() >= 5 && tangled.is_empty() {
        patterns.push("modular");
    }
    if hubs
        .first()
        .is_some_and(|it| it.0 * 3 > code.files.len() && code.files.len() > 6)
    {
        patterns.push("hub and spokes");
    }
    report.put("healthScore", health.max(0.0));
    report.put("patterns", patterns.clone());
    let shown = parts
        .names
        .iter()
        .enumerate()
        .take(SHOWN_MAX)
        .map(|(n, name_of)| {
            let on: Vec<String> = parts
                .depends
                .get(&n)
                .into_iter()
                .flatten()
                .map(name)
                .collect();
            json!({
                "name": name_of, "files": parts.files.get(n), "lines": parts.lines.get(n),
                "dependsOn": on,
            })
        });
    report.put("components", shown.collect::<Vec<_>>());
    let levels = layers.iter().enumerate().map(
        |(n, of)| json!({ "level": n, "components": of.iter().map(name).collect::<Vec<_>>() }),
    );
    report.put("layers", levels.collect::<Vec<_>>());
    let around = cycles
        .iter()
        .take(SHOWN_MAX)
        .map(|it| it.iter().map(path).collect::<Vec<_>>());
    report.put("cycles", around.collect::<Vec<_>>());
    let shown = hubs
        .iter()
        .take(10)
        .map(|(n, to)| json!({ "file": path(to), "usedBy": n }));
    report.put("hubs", shown.collect::<Vec<_>>());

    report.findings = cycles.iter().map(|it| cycle(code, it)).collect();
    report.findings.extend(tangled.iter().map(|group| {
        let names: Vec<String> = group.iter().map(name).collect();
        Finding {
            kind: "tangled-components",
            title: format!("{} depend on each other", names.join(", ")),
            description: "none of them can be built or understood without the others".to_owned(),
            relevance: 0.9,
            source: "code",
            references: names,
            severity: Some("medium"),
            ..Finding::default()
        }
    }));
    report.summary = format!(
        "{} in {}, {}, {}; health {} of 100.",
        count(code.files.len(), "file"),
        count(parts.names.len(), "component"),
        count(layers.len(), "layer"),
        count(cycles.len(), "dependency cycle"),
        health.max(0.0),
    );
    report.recommendations = cycles
        .iter()
        .take(5)
        .map(|it| {
            let files: Vec<String> = it.iter().map(path).collect();
            format!(
                "Break the cycle {}: move what both need into a file of its own",
                files.join(" → ")
            )
        })
        .collect();
    if report.recommendations.is_empty() {
        report
            .recommendations
            .push("Keep dependencies in the order of the layers".to_owned());
    }
    Ok(report)
}

/// A cycle as something to mend.
pub(super) fn cycle(code: &Code, way: &[usize]) -> Finding {
    let files = way.iter().filter_map(|it| code.files.get(*it));
    let paths: Vec<String> = files.clone().map(|it| it.path.clone()).collect();
    Finding {
        kind: "dependency-cycle",
        title: format!("{} import each other", paths.join(" → ")),
        description: format!("{} cannot be changed apart", count(paths.len(), "file")),
        relevance: 1.0,
        source: "code",
        references: paths,
        severity: Some("high"),
        node: files.clone().next().map(|it| it.id),
        related: Vec::new(),
    }
}

/// The folder that a file belongs to: beneath `crates`, `packages` and the like one deeper, without `src`.
fn part_of(path: &str) -> String {
    let folders: Vec<&str> = path.split('/').collect();
    let folders = folders.split_last().map_or(&[][..], |it| it.1);
    let is_shelf = |it: &str| {
        matches!(
            it,
            "crates" | "packages" | "apps" | "libs" | "services" | "src" | "lib"
        )
    };
    let mut name: Vec<&str> = Vec::new();
    for folder in folders {
        if *folder == "src" && !name.is_empty() {
            break;
        }
        name.push(folder);
        if !is_shelf(folder) {
            break;
        }
    }
    match name.is_empty() {
        true => ".".to_owned(),
        false => name.join("/"),
    }
}

fn parts(code: &Code) -> Parts {
    let with_code = |n: &usize| code.files.get(*n).is_some_and(|it| it.language.is_some());
    let names: BTreeSet<String> = code
        .files
        .iter()
        .filter(|it| it.language.is_some())
        .map(|it| part_of(&it.path))
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    let at = |path: &str| names.binary_search(&part_of(path)).ok();
    let mut parts = Parts {
        files: vec![0; names.len()],
        lines: vec![0; names.len()],
        depends: BTreeMap::new(),
        n_links: BTreeMap::new(),
        names: Vec::new(),
    };
    for it in code.files.iter().filter(|it| it.language.is_some()) {
        if let Some(n) = at(&it.path) {
            parts.files[n] += 1;
            parts.lines[n] += it.lines;
        }
    }
    for (from, to) in code
        .depends
        .iter()
        .filter(|it| with_code(&it.0) && with_code(&it.1))
    {
        let ends = (code.files.get(*from), code.files.get(*to));
        let (Some(from), Some(to)) = ends else {
            continue;
        };
        // Tests stand outside of the layers.
        if crate::code::is_test_path(&from.path) {
            continue;
        }
        if let (Some(from), Some(to)) = (at(&from.path), at(&to.path))
            && from != to
        {
            *parts.n_links.entry((from, to)).or_default() += 1;
        }
    }
    for &(from, to) in parts.n_links.keys() {
        parts.depends.entry(from).or_default().push(to);
    }
    parts.names = names;
    parts
}

/// From what depends on nothing upwards. What depends on each other is in one layer.
fn layers(parts: &Parts) -> Vec<Vec<usize>> {
    let groups = components(&parts.depends);
    let mut group_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (n, group) in groups.iter().enumerate() {
        group_of.extend(group.iter().map(|it| (*it, n)));
    }
    let mut level: BTreeMap<usize, usize> = (0..parts.names.len()).map(|it| (it, 0)).collect();
    // A layer is at most as high as there are parts.
    for _ in 0..parts.names.len() {
        let mut is_changed = false;
        for (from, all) in &parts.depends {
            for to in all {
                if group_of.get(from) == group_of.get(to) && group_of.contains_key(from) {
                    let both = level[from].max(level[to]);
                    is_changed |= level.insert(*from, both) != Some(both);
                    is_changed |= level.insert(*to, both) != Some(both);
                } else if level[from] <= level[to] {
                    level.insert(*from, level[to] + 1);
                    is_changed = true;
                }
            }
        }
        if !is_changed {
            break;
        }
    }
    let n = level.values().max().map_or(0, |it| it + 1);
    let mut layers = vec![Vec::new(); n];
    for (part, level) in level {
        layers[level].push(part);
    }
    layers.retain(|it| !it.is_empty());
    layers
}

/// Without code: how documents hang together.
fn of_documents(task: &Task<'_>, mut report: Report) -> Result<Report> {
    let groups = task.step(
        "group-documents",
        || {
            Ok(task
                .agents
                .kg
                .graph_communities(task.caller, SHOWN_MAX, 10)
                .ok())
        },
        |it| json!({ "groups": it.as_ref().map(|it| it.1) }),
    )?;
    let (groups, n) = groups.unwrap_or_default();
    let shown = groups.iter().map(|it| {
        let members: Vec<&str> = it.members.iter().map(|it| it.path.as_str()).collect();
        json!({ "name": it.members.first().map(|it| it.title.as_str()), "documents": it.size, "members": members })
    });
    report.put("components", shown.collect::<Vec<_>>());
    for name in ["layers", "cycles", "patterns"] {
        report.put(name, Value::Array(Vec::new()));
    }
    report.put("healthScore", Value::Null);
    report.summary = match n {
        0 => "There is neither code nor a graph of documents to look at.".to_owned(),
        n => format!("No code; the documents form {}.", count(n, "group")),
    };
    report
        .recommendations
        .push("Scan a repository with `github_scan`".to_owned());
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_its_package() {
        for (path, part) in [
            ("crates/core/src/ids.rs", "crates/core"),
            ("src/app/main.py", "src/app"),
            ("src/main.py", "src"),
            ("main.py", "."),
            ("packages/web/src/a/b.ts", "packages/web"),
            ("billing/invoice.py", "billing"),
        ] {
            assert_eq!(part_of(path), part, "{path}");
        }
    }
}
