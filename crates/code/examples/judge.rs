//! How right the links are: `cargo run -p kenning-code --example judge -- DIR [--wrong N] [--only PREFIX] [--allow-missing]`
//!
//! Each folder of DIR is a case: `sources` has the sources, `truth.tsv` what somebody else says about their calls
//! (`testing/code/README.md` tells how these are made), or `sites.tsv` the targets of single calls. Cases that have one name before `@` are counted together.
//! Beside ours stands what "the first function of that name" would give.
//!
//! It fails where a language is below its bar ([`BARS`]), and where a case is missing that `testing/code/fetch` makes.

#![allow(clippy::print_stdout, reason = "its answer is what it prints")]
#![expect(
    clippy::disallowed_methods,
    reason = "a tool of developers reads the cases that they name"
)]

use kenning_code::resolve::{Origin, Place, Project, Relation, Source, Sym};
use kenning_code::{Expr, SymbolKind, read};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// The cases that are there if all were fetched: a hash and a path for each truth …
const FROZEN: &str = include_str!("../../../testing/code/FROZEN");
/// … and the calls that were graded, beginning with their crate.
const GRADED: &str = include_str!("../../../testing/code/rust.tsv");

/// What the calls of a language must reach.
struct Bar {
    language: &'static str,
    /// The groups that count. Those that rules were developed on do not.
    groups: &'static [&'static str],
    precision_min: f64,
    recall_min: f64,
}

const BARS: &[Bar] = &[
    Bar {
        language: "TypeScript",
        groups: &["ts-rxjs", "ts-toolkit"],
        precision_min: 0.95,
        recall_min: 0.73,
    },
    Bar {
        language: "Python",
        groups: &["py-published"],
        precision_min: 0.93,
        recall_min: 0.70,
    },
    Bar {
        language: "Rust",
        groups: &["rust-graded"],
        precision_min: 0.85,
        recall_min: 0.0,
    },
    Bar {
        language: "Go",
        groups: &["go-xtools"],
        precision_min: 0.95,
        recall_min: 0.0,
    },
];

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

fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b.max(1) as f64
}

impl Score {
    fn precision(self) -> f64 {
        ratio(self.right, self.right + self.wrong)
    }

    fn recall(self) -> f64 {
        ratio(self.right, self.truth)
    }

    fn print(self, name: &str, what: &str) {
        println!(
            "{name:<16} {what:<22} precision {:.3}  recall {:.3}  unjudged {:.3}  ({} right, {} wrong, {} in truth)",
            self.precision(),
            self.recall(),
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

/// Reads all sources beneath a folder; returns how many lines of code they have.
fn files(root: &Path, at: &Path, all: &mut Vec<Source>) -> usize {
    let Ok(entries) = std::fs::read_dir(at) else {
        return 0;
    };
    let mut n_lines = 0;
    let mut entries: Vec<_> = entries.flatten().map(|it| it.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            n_lines += files(root, &path, all);
        } else if let (Ok(name), Ok(text)) =
            (path.strip_prefix(root), std::fs::read_to_string(&path))
        {
            let name = name.to_string_lossy().into_owned();
            let facts = read(&name, &text);
            if facts.language.is_some() {
                n_lines += text.lines().count();
            }
            all.push(Source { path: name, facts });
        }
    }
    n_lines
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

/// What was counted of the cases of one group.
#[derive(Default)]
struct Group {
    ours: Score,
    first: Score,
    n_files: usize,
    n_lines: usize,
    n_symbols: usize,
    took: f64,
}

/// What was asked for.
#[derive(Default)]
struct Asked {
    dir: String,
    wrong_max: usize,
    only: String,
    allow_missing: bool,
}

impl Asked {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut asked = Self::default();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--wrong" => {
                    let n = args.next().and_then(|it| it.parse().ok());
                    asked.wrong_max = n.ok_or("`--wrong` needs a number")?;
                }
                "--only" => {
                    asked.only = args
                        .next()
                        .ok_or("`--only` needs the beginning of a name")?;
                }
                "--allow-missing" => asked.allow_missing = true,
                dir if asked.dir.is_empty() && !dir.starts_with('-') => {
                    dir.clone_into(&mut asked.dir);
                }
                other => return Err(format!("`{other}` is not an option")),
            }
        }
        if asked.dir.is_empty() {
            return Err(
                "name the folder of the cases, made by `testing/code/fetch DIR`".to_owned(),
            );
        }
        Ok(asked)
    }
}

/// The cases that `testing/code/fetch` makes, with the file that each is judged by.
fn expected_cases() -> BTreeMap<String, &'static str> {
    let frozen = FROZEN.lines().filter_map(|it| {
        let (case, _) = it.split_once("  ")?.1.split_once('/')?;
        Some((case.to_owned(), "truth.tsv"))
    });
    let graded = GRADED.lines().filter_map(|it| {
        let name = it.split_once('\t')?.0;
        Some((format!("rust-graded@{name}"), "sites.tsv"))
    });
    frozen.chain(graded).collect()
}

fn judge(case: &Path, name: &str, wrong_max: usize, group: &mut Group) {
    let graded = std::fs::read_to_string(case.join("sites.tsv")).ok();
    let begun = Instant::now();
    let mut sources = Vec::new();
    let root = case.join("sources");
    group.n_lines += files(&root, &root, &mut sources);
    let edges = ours(&sources);
    group.took += begun.elapsed().as_secs_f64();
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
            score(&truth, &edges, name, wrong_max),
            score(&truth, &firsts, name, 0),
        ),
    };
    group.ours.add(found);
    group.first.add(first);
    group.n_files += sources.len();
    let symbols = sources.iter().map(|it| it.facts.symbols.len());
    group.n_symbols += symbols.sum::<usize>();
}

/// Prints what each language must reach and reaches; says how many are below.
fn judge_bars(groups: &BTreeMap<String, Group>) -> usize {
    let mut n_below = 0;
    for bar in BARS {
        let mut score = Score::default();
        let judged = bar.groups.iter().filter_map(|it| groups.get(*it));
        judged.for_each(|it| score.add(it.ours));
        // Which cases are missing was said before.
        if score.truth == 0 {
            println!("bar: {:<10} not judged", bar.language);
            continue;
        }
        let is_met = score.precision() >= bar.precision_min && score.recall() >= bar.recall_min;
        n_below += usize::from(!is_met);
        println!(
            "bar: {:<10} precision {:.3} of at least {:.2}, recall {:.3} of at least {:.2}: {}",
            bar.language,
            score.precision(),
            bar.precision_min,
            score.recall(),
            bar.recall_min,
            if is_met { "met" } else { "NOT MET" },
        );
    }
    n_below
}

fn main() -> ExitCode {
    let asked = match Asked::parse(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(why) => {
            println!("{why}");
            return ExitCode::from(2);
        }
    };
    let dir = Path::new(&asked.dir);
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut missing: Vec<String> = Vec::new();
    for (name, judged_by) in expected_cases() {
        if !name.starts_with(&asked.only) {
            continue;
        }
        let case = dir.join(&name);
        if !case.join(judged_by).exists() || !case.join("sources").is_dir() {
            missing.push(name);
            continue;
        }
        let group = name.split('@').next().unwrap_or_default().to_owned();
        let group = groups.entry(group).or_default();
        judge(&case, &name, asked.wrong_max, group);
    }
    for (name, it) in &groups {
        it.ours.print(name, "ours");
        it.first.print(name, "first of that name");
        println!(
            "{name:<16} {} files, {} lines, {} symbols, {:.2} s",
            it.n_files, it.n_lines, it.n_symbols, it.took
        );
    }
    if !missing.is_empty() {
        println!(
            "{} cases are missing: {}",
            missing.len(),
            missing.join(", ")
        );
    }
    let n_below = judge_bars(&groups);
    if !missing.is_empty() && !asked.allow_missing {
        println!(
            "fetch them with `testing/code/fetch {}`, or judge the rest with `--allow-missing`",
            asked.dir
        );
        return ExitCode::FAILURE;
    }
    if groups.is_empty() || n_below > 0 {
        println!("{n_below} languages are below their bars");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
