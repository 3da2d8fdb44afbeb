//! How right the links are: `cargo run -p kenning-code --example judge -- DIR [--wrong N] [--only PREFIX]`
//!
//! Each folder of DIR is a case: `sources` has the sources, `truth.tsv` what somebody else says about their calls
//! (`testing/code/README.md` tells how these are made), or `sites.tsv` the targets of single calls. Cases that have one name before `@` are counted together.
//! Beside ours stands what "the first function of that name" would give.

#![allow(clippy::print_stdout, reason = "its answer is what it prints")]
#![expect(
    clippy::disallowed_methods,
    reason = "a tool of developers reads the cases that they name"
)]

use kenning_code::resolve::{Origin, Place, Project, Relation, Source, Sym};
use kenning_code::{Expr, SymbolKind, read};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Instant;

/// A function as truth names it: a path and the line of its name, 0 for code outside of functions.
type Spot = (String, u32);

#[derive(Default)]
struct Truth {
    rows: BTreeSet<(Spot, Spot)>,
    /// Lines of calls that the judge could not tell.
    unknown: BTreeSet<Spot>,
    /// Files that it looked at.
    files: BTreeSet<String>,
    /// Functions that it looked at.
    callers: BTreeSet<Spot>,
}

#[derive(Default, Clone, Copy)]
struct Score {
    right: usize,
    wrong: usize,
    unjudged: usize,
    truth: usize,
}

impl Score {
    fn print(self, name: &str, what: &str) {
        let ratio = |a: usize, b: usize| a as f64 / b.max(1) as f64;
        println!(
            "{name:<16} {what:<22} precision {:.3}  recall {:.3}  unjudged {:.3}  ({} right, {} wrong, {} in truth)",
            ratio(self.right, self.right + self.wrong),
            ratio(self.right, self.truth),
            ratio(self.unjudged, self.right + self.wrong + self.unjudged),
            self.right,
            self.wrong,
            self.truth,
        );
    }

    fn add(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.unjudged += other.unjudged;
        self.truth += other.truth;
    }
}

fn spot(text: &str) -> Option<Spot> {
    let (path, line) = text.rsplit_once(':')?;
    Some((path.to_owned(), line.parse().ok()?))
}

fn truth(path: &Path) -> Truth {
    let mut truth = Truth::default();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    for (from, to) in text.lines().filter_map(|it| it.split_once('\t')) {
        let Some(from) = spot(from) else { continue };
        truth.files.insert(from.0.clone());
        truth.callers.insert(from.clone());
        match to.strip_prefix("unknown:") {
            Some(line) => {
                truth.unknown.insert((from.0, line.parse().unwrap_or(0)));
            }
            None => {
                if let Some(to) = spot(to) {
                    truth.files.insert(to.0.clone());
                    truth.rows.insert((from, to));
                }
            }
        }
    }
    truth
}

fn files(root: &Path, at: &Path, all: &mut Vec<Source>) {
    let Ok(entries) = std::fs::read_dir(at) else {
        return;
    };
    let mut entries: Vec<_> = entries.flatten().map(|it| it.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(root, &path, all);
        } else if let (Ok(name), Ok(text)) =
            (path.strip_prefix(root), std::fs::read_to_string(&path))
        {
            let name = name.to_string_lossy().into_owned();
            let facts = read(&name, &text);
            all.push(Source { path: name, facts });
        }
    }
}

fn place(sources: &[Source], sym: Sym) -> Option<(Spot, SymbolKind)> {
    let source = sources.get(sym.file as usize)?;
    let symbol = source.facts.symbols.get(sym.n as usize)?;
    Some(((source.path.clone(), symbol.line), symbol.kind))
}

fn caller(sources: &[Source], from: &Place) -> Option<Spot> {
    match from {
        Place::Symbol(sym) => {
            let (spot, kind) = place(sources, *sym)?;
            Some(if kind.is_function() {
                spot
            } else {
                (spot.0, 0)
            })
        }
        Place::File(f) => Some((sources.get(*f as usize)?.path.clone(), 0)),
        _ => None,
    }
}

type Edges = BTreeMap<(Spot, Spot), (Vec<u32>, Origin, SymbolKind)>;

/// Single calls that were graded: a path, a line and a name, and what is called there; nothing if it is outside.
fn sites(text: &str) -> Vec<(String, u32, String, Vec<Spot>)> {
    let site = |line: &str| {
        let mut parts = line.split('\t');
        let (path, at) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        let name = parts.next()?.to_owned();
        let targets = parts.next()?.split('|').filter_map(spot).collect();
        Some((path, at, name, targets))
    };
    text.lines().filter_map(site).collect()
}

/// How right the edges are on the lines of graded calls.
fn score_sites(
    all: &[(String, u32, String, Vec<Spot>)],
    edges: &Edges,
    names: &HashMap<Spot, &str>,
    wrong_max: usize,
) -> Score {
    let mut score = Score::default();
    for (path, line, name, targets) in all {
        score.truth += usize::from(!targets.is_empty());
        let found: BTreeSet<&Spot> = edges
            .iter()
            .filter(|((from, to), (lines, _, _))| {
                from.0 == *path && lines.contains(line) && names.get(to) == Some(&name.as_str())
            })
            .map(|it| &it.0.1)
            .collect();
        let right = found.iter().filter(|it| targets.contains(it)).count();
        score.right += right.min(1);
        score.wrong += found.len() - right;
        if wrong_max > 0 && (found.len() > right || (right == 0 && !targets.is_empty())) {
            println!("  {path}:{line} {name}: {found:?} in place of {targets:?}");
        }
    }
    score
}

fn ours(sources: &[Source]) -> Edges {
    let project = Project::new(sources);
    let mut all = Edges::new();
    for f in 0..u32::try_from(sources.len()).unwrap_or(0) {
        for link in project.links(f) {
            if link.relation != Relation::Calls {
                continue;
            }
            let Place::Symbol(to) = link.to else { continue };
            if let (Some(from), Some((to, kind))) =
                (caller(sources, &link.from), place(sources, to))
            {
                all.insert((from, to), (link.lines, link.origin, kind));
            }
        }
    }
    all
}

fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) | Expr::Member(_, name) => Some(name),
        Expr::New(ty) => ty.name.rsplit('.').next(),
        _ => None,
    }
}

/// What the first function of each name would give.
fn first_of_name(sources: &[Source]) -> Edges {
    let mut first: HashMap<&str, Sym> = HashMap::new();
    for (file, source) in (0..).zip(sources) {
        for (n, symbol) in (0..).zip(&source.facts.symbols) {
            if symbol.kind.is_function() || symbol.kind.is_type() {
                first.entry(&symbol.name).or_insert(Sym { file, n });
            }
        }
    }
    let mut all = Edges::new();
    for (file, source) in (0..).zip(sources) {
        for call in &source.facts.calls {
            // What is passed on is no call, for either of them.
            if call.is_value {
                continue;
            }
            let found = last_name(&call.callee).and_then(|it| first.get(it));
            let Some((to, kind)) = found.and_then(|it| place(sources, *it)) else {
                continue;
            };
            let from = call.scope.map_or(Place::File(file), |n| {
                Place::Symbol(Sym {
                    file,
                    n: source.facts.outermost(n),
                })
            });
            if let Some(from) = caller(sources, &from) {
                let entry = all
                    .entry((from, to))
                    .or_insert((Vec::new(), Origin::NameOnly, kind));
                entry.0.push(call.line);
            }
        }
    }
    all
}

fn score(truth: &Truth, edges: &Edges, case: &str, wrong_max: usize) -> Score {
    let mut score = Score {
        truth: truth.rows.len(),
        ..Score::default()
    };
    let mut shown = 0;
    for ((from, to), (lines, origin, kind)) in edges {
        if truth.rows.contains(&(from.clone(), to.clone())) {
            score.right += 1;
            continue;
        }
        let is_unknown = lines
            .iter()
            .all(|it| truth.unknown.contains(&(from.0.clone(), *it)));
        // The published graphs have functions only, and files that were not looked at have no rows.
        let is_outside = !truth.files.contains(&from.0) || !truth.files.contains(&to.0);
        let is_unjudged = match case.split('-').next() {
            Some("py") => !kind.is_function() || is_outside,
            // Functions that the analysis did not reach have no rows.
            Some("go") => !truth.callers.contains(from),
            _ => false,
        };
        if is_unknown || is_unjudged {
            score.unjudged += 1;
            continue;
        }
        score.wrong += 1;
        if shown < wrong_max {
            shown += 1;
            println!(
                "  wrong {}:{} -> {}:{} {origin:?} lines {lines:?}",
                from.0, from.1, to.0, to.1
            );
        }
    }
    if wrong_max > 0 {
        let missing = truth.rows.iter().filter(|it| !edges.contains_key(*it));
        for (from, to) in missing.take(wrong_max) {
            println!("  missing {}:{} -> {}:{}", from.0, from.1, to.0, to.1);
        }
    }
    score
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap_or_else(|| ".".to_owned());
    let (mut wrong_max, mut only) = (0, String::new());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--wrong" => wrong_max = args.next().and_then(|it| it.parse().ok()).unwrap_or(0),
            "--only" => only = args.next().unwrap_or_default(),
            _ => {}
        }
    }
    let mut cases: Vec<_> = std::fs::read_dir(&dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.path())
        .collect();
    cases.sort();
    let mut groups: BTreeMap<String, (Score, Score, usize, usize, f64)> = BTreeMap::new();
    for case in cases {
        let name = case
            .file_name()
            .map(|it| it.to_string_lossy().into_owned())
            .unwrap_or_default();
        let graded = std::fs::read_to_string(case.join("sites.tsv")).ok();
        let is_case = graded.is_some() || case.join("truth.tsv").exists();
        if !name.starts_with(&only) || !is_case {
            continue;
        }
        let group = name.split('@').next().unwrap_or_default().to_owned();
        let begun = Instant::now();
        let mut sources = Vec::new();
        let root = case.join("sources");
        files(&root, &root, &mut sources);
        let edges = ours(&sources);
        let took = begun.elapsed().as_secs_f64();
        let truth = truth(&case.join("truth.tsv"));
        if wrong_max > 0 {
            println!("{name}");
        }
        let firsts = first_of_name(&sources);
        let (found, first) = match &graded {
            Some(graded) => {
                let graded = sites(graded);
                let symbols = sources.iter().flat_map(|source| {
                    let all = source.facts.symbols.iter();
                    all.map(|it| ((source.path.clone(), it.line), it.name.as_str()))
                });
                let names = symbols.collect();
                (
                    score_sites(&graded, &edges, &names, wrong_max),
                    score_sites(&graded, &firsts, &names, 0),
                )
            }
            None => (
                score(&truth, &edges, &name, wrong_max),
                score(&truth, &firsts, &name, 0),
            ),
        };
        let entry = groups.entry(group).or_default();
        entry.0.add(found);
        entry.1.add(first);
        entry.2 += sources.len();
        entry.3 += sources
            .iter()
            .map(|it| it.facts.symbols.len())
            .sum::<usize>();
        entry.4 += took;
    }
    for (name, (ours, first, n_files, n_symbols, took)) in &groups {
        ours.print(name, "ours");
        first.print(name, "first of that name");
        println!("{name:<16} {n_files} files, {n_symbols} symbols, {took:.2} s");
    }
}
