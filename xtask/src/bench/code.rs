//! The code graph: how right its calls are, and what a scan costs.
//!
//! `cargo xtask bench code --cases DIR` judges the calls of the cases that `testing/code/fetch DIR` made, and fails
//! where a language is below its bar or a case is missing (`--allow-missing` judges the rest).
//! `cargo xtask bench code --repository DIR` (any number of them) scans a repository with the real program, four
//! times: all of it, nothing new, one function renamed, and a second work tree of it. It is a copy that is changed.
//! Times are those of a command, so the start of the program is in them; it is printed beside them.

use super::fixture;
use crate::options::{ALLOW_MISSING, AS_BUILT, Options};
use crate::repository::cargo;
use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["cases", "repository", "wrong", "binary", ALLOW_MISSING])?;
    let cases: Option<PathBuf> = options.text("cases").map(PathBuf::from);
    let repositories = options.texts("repository");
    ensure!(
        cases.is_some() || !repositories.is_empty(),
        "give `--cases DIR` (made by testing/code/fetch) or `--repository DIR`"
    );
    if let Some(cases) = cases {
        let wrong = options.value("wrong", 0_usize)?.to_string();
        let is_optimized = !options.has(AS_BUILT) || !cfg!(debug_assertions);
        judge(&cases, &wrong, options.has(ALLOW_MISSING), is_optimized)?;
    }
    let binary: Option<PathBuf> = options.text("binary").map(PathBuf::from);
    for repository in repositories {
        scan(Path::new(repository), binary.clone())?;
    }
    Ok(())
}

/// The judge is an example of the crate alone: it is built without the rest of the program.
fn judge(cases: &Path, wrong: &str, allow_missing: bool, is_optimized: bool) -> Result<()> {
    let mut command = cargo();
    command.args([
        "run",
        "--quiet",
        "--package",
        "kenning-code",
        "--example",
        "judge",
    ]);
    if is_optimized {
        command.arg("--release");
    }
    command.arg("--").arg(cases).args(["--wrong", wrong]);
    if allow_missing {
        command.arg("--allow-missing");
    }
    let status = command.status()?;
    ensure!(
        status.success(),
        "a language is below its bar, or a case is missing: see above"
    );
    Ok(())
}

/// A data directory, a copy of a repository, and the program over both.
struct Bench {
    root: tempfile::TempDir,
    binary: PathBuf,
    copy: PathBuf,
    /// How long the program takes that has nothing to do.
    idle: f64,
}

/// What a command took and said.
struct Done {
    seconds: f64,
    /// Of the processor.
    processor: f64,
    peak_mb: f64,
    said: Value,
}

impl Bench {
    fn new(repository: &Path, binary: Option<PathBuf>) -> Result<Self> {
        let binary = match binary {
            Some(binary) => binary,
            None => std::env::current_exe()?.with_file_name("kenning"),
        };
        ensure!(
            binary.exists(),
            "no program at {}: build it first",
            binary.display()
        );
        let root = fixture::directory()?;
        let copy = root.path().join("repositories/copy");
        std::fs::create_dir_all(copy.parent().context("a folder")?)?;
        let (from, to) = (repository.display().to_string(), copy.display().to_string());
        let clone = ["clone", "--quiet", "--no-hardlinks", "--", &from, &to];
        git(&clone, root.path())?;
        let mut bench = Self {
            root,
            binary,
            copy,
            idle: 0.0,
        };
        bench.call(&["koi", "add_repo", &to])?;
        bench.idle = bench
            .call(&["call", "github_scan", "--json", "{}"])?
            .seconds;
        Ok(bench)
    }

    fn call(&self, args: &[&str]) -> Result<Done> {
        let peak = self.root.path().join("peak");
        let begun = Instant::now();
        // A shell that ends by becoming the program would hide its peak: it stays and asks for it.
        let output = Command::new("sh")
            .args(["-c", MEASURED, "sh"])
            .arg(&peak)
            .arg(&self.binary)
            .args(args)
            .current_dir(self.root.path())
            .env("KENNING_REPO_PATHS", self.root.path().join("repositories"))
            .env("KENNING_DATA", self.data())
            .env("HOME", self.root.path())
            .output()?;
        let seconds = begun.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{args:?}: {said}{failed}");
        let peak_kb = std::fs::read_to_string(&peak).unwrap_or_default();
        let used = std::fs::read_to_string(peak.with_extension("used")).unwrap_or_default();
        Ok(Done {
            seconds,
            processor: processor_seconds(&used).unwrap_or(f64::NAN),
            peak_mb: peak_kb.trim().parse::<f64>().unwrap_or(0.0) / 1_000.0,
            said: serde_json::from_str(&said).unwrap_or_default(),
        })
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Scans one repository, and prints what that took; how many files were read.
    fn scan(&self, what: &str, repository: &str, n_lines: Option<usize>) -> Result<u64> {
        let asked = json!({ "action": "scan", "repo_name": repository }).to_string();
        // A second work tree is only read by whoever works in it.
        let project = ["--project", repository];
        let call = ["call", "github_scan", "--json", &asked];
        let done = self.call(&[&project[..], &call[..]].concat())?;
        let row = &done.said["results"][0];
        ensure!(done.said["status"] == "completed", "{}", done.said);
        let n = |name: &str| row[name].as_u64().unwrap_or(0);
        let work = (done.seconds - self.idle).max(0.001);
        let n_files = n("files_processed");
        let speed = match n_lines {
            Some(n_lines) => format!(
                " ({:.0} a second, {:.0} lines a second)",
                n_files as f64 / work,
                n_lines as f64 / work
            ),
            None => String::new(),
        };
        println!(
            "{what}: {:.2} s ({:.2} s of the processor), of which {work:.2} s for the scan; {n_files} files{speed}, {} symbols, {} edges, {} skipped, peak {:.0} MB",
            done.seconds,
            done.processor,
            n("code_entities"),
            n("code_edges"),
            n("files_skipped"),
            done.peak_mb,
        );
        Ok(n_files)
    }

    fn query(&self, cypher: &str) -> Result<Value> {
        let asked = json!({ "cypher": cypher }).to_string();
        let done = self.call(&["call", "code_query", "--json", &asked])?;
        Ok(done.said["results"].clone())
    }

    /// How many texts have their facts in the store.
    fn n_facts(&self) -> Result<u64> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let store = Connection::open_with_flags(self.data().join("kenning.db"), flags)?;
        let query = "SELECT count(*) FROM kv WHERE bucket = 'code.facts'";
        let n: i64 = store.query_row(query, [], |row| row.get(0))?;
        Ok(u64::try_from(n)?)
    }

    /// Renames a function that another file calls, where it is defined: its symbol is another one, and what called
    /// it has to be resolved again.
    fn rename_a_function(&self) -> Result<()> {
        let found = self.query(CALLED_FROM_ELSEWHERE)?;
        let row = found
            .as_array()
            .and_then(|all| all.get(all.len() / 2))
            .context("no function is called from another file")?;
        let name = row["name"].as_str().context("a function has a name")?;
        let path = row["path"].as_str().context("a function has a file")?;
        let line = usize::try_from(row["line"].as_u64().context("a function has a line")?)?;
        let file = self.copy.join(path);
        let text = std::fs::read_to_string(&file)?;
        let renamed = format!("{name}_renamed");
        let lines = text.split_inclusive('\n').zip(1_usize..);
        // What stands above a function, such as a decorator, is part of it.
        let mut is_done = false;
        let text: String = lines
            .map(|(it, n)| {
                if is_done || n < line || !it.contains(name) {
                    return it.to_owned();
                }
                is_done = true;
                it.replacen(name, &renamed, 1)
            })
            .collect();
        ensure!(is_done, "{path} has no `{name}` from line {line} on");
        std::fs::write(&file, text)?;
        let commit = ["commit", "--quiet", "--all", "--message", "rename"];
        git(&commit, &self.copy)
    }
}

/// Functions that are called from another file, in an order of their own.
const CALLED_FROM_ELSEWHERE: &str = "MATCH (f:Function)<-[:CALLS]-(c) \
    WHERE f.file_path <> c.file_path AND size(f.name) > 4 \
    RETURN DISTINCT f.name AS name, f.file_path AS path, f.line_start AS line ORDER BY path, line LIMIT 1000";

fn git(args: &[&str], dir: &Path) -> Result<()> {
    let status = Command::new("git")
        .args(["-c", "user.name=bench"])
        .args(["-c", "user.email=bench@example.com"])
        .args(args)
        .current_dir(dir)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "git {args:?} failed");
    Ok(())
}

/// Scans a copy of a repository, and prints what each scan took.
fn scan(repository: &Path, binary: Option<PathBuf>) -> Result<()> {
    let bench = Bench::new(repository, binary)?;
    let name = repository.file_name().unwrap_or_default().to_string_lossy();
    let (mut n_lines, mut n_code) = (0_usize, 0_usize);
    count(&bench.copy, &mut n_lines, &mut n_code)?;
    println!("{name}: {n_code} files of code, {n_lines} lines");
    println!("starting the program: {:.2} s", bench.idle);
    let copy = bench.copy.display().to_string();
    bench.scan("all of it", &copy, Some(n_lines))?;
    bench.scan("nothing new", &copy, None)?;
    bench.rename_a_function()?;
    let n_files = bench.scan("one function renamed", &copy, None)?;
    ensure!(n_files == 1, "{n_files} files were read in place of one");
    let renamed = "MATCH (f:Function) WHERE f.name ENDS WITH '_renamed' RETURN count(f) AS n";
    let renamed = bench.query(renamed)?;
    ensure!(
        renamed[0]["n"].as_u64() >= Some(1),
        "the renamed function is not in the graph: {renamed}"
    );
    let second = bench.root.path().join("repositories/second");
    let second = second.display().to_string();
    git(
        &["worktree", "add", "--quiet", "-b", "second", &second],
        &bench.copy,
    )?;
    let before = bench.n_facts()?;
    let n_files = bench.scan("a second work tree of it", &second, None)?;
    let after = bench.n_facts()?;
    println!(
        "shared by both: what was read of {} of {n_files} files",
        n_files.saturating_sub(after - before)
    );
    ensure!(
        after == before,
        "{} texts were read again for the second work tree",
        after - before
    );
    Ok(())
}

/// Runs a program and writes its largest memory, in kB, into a file, and what it used of the processor beside it.
const MEASURED: &str = r#"file=$1; shift
"$@" & pid=$!
while kill -0 $pid 2> /dev/null; do
  grep -s VmHWM /proc/$pid/status | tr -dc '0-9\n' > "$file.now" && [ -s "$file.now" ] && mv "$file.now" "$file"
  cat /proc/$pid/stat > "$file.stat" 2> /dev/null && [ -s "$file.stat" ] && mv "$file.stat" "$file.used"
  sleep 0.02
done
wait $pid"#;

/// The time of the processor in a line of `/proc/PID/stat`.
fn processor_seconds(stat: &str) -> Option<f64> {
    // The name of the program, in brackets, may have spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let [user, system]: [f64; 2] = [fields.next()?.parse().ok()?, fields.next()?.parse().ok()?];
    Some((user + system) / 100.0)
}

fn count(dir: &Path, n_lines: &mut usize, n_code: &mut usize) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().map(|it| it.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') {
            count(&path, n_lines, n_code)?;
        } else if kenning_engine::koi::is_code(&name) {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            *n_lines += text.lines().count();
            *n_code += 1;
        }
    }
    Ok(())
}
