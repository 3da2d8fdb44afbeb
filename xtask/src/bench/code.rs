//! The code graph: how right its calls are, and what a scan costs.
//!
//! `cargo xtask bench code --cases DIR` judges the calls of the cases that `testing/code/fetch DIR` made.
//! `cargo xtask bench code --repository DIR` scans a repository with the real program, three times: all of it,
//! nothing new, and one file changed. It is a copy that is changed. Times are those of a command, so the start of
//! the program is in them; it is printed beside them.

use super::fixture;
use crate::options::Options;
use crate::repository::cargo;
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["cases", "repository", "wrong", "binary"])?;
    let cases: Option<PathBuf> = options.text("cases").map(PathBuf::from);
    let repository: Option<PathBuf> = options.text("repository").map(PathBuf::from);
    ensure!(
        cases.is_some() || repository.is_some(),
        "give `--cases DIR` (made by testing/code/fetch) or `--repository DIR`"
    );
    if let Some(cases) = cases {
        judge(&cases, &options.value("wrong", 0_usize)?.to_string())?;
    }
    if let Some(repository) = repository {
        let binary: Option<PathBuf> = options.text("binary").map(PathBuf::from);
        scan(&repository, binary)?;
    }
    Ok(())
}

fn judge(cases: &Path, wrong: &str) -> Result<()> {
    let mut command = cargo();
    command.args([
        "run",
        "--quiet",
        "--package",
        "kenning-code",
        "--example",
        "judge",
    ]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let status = command
        .arg("--")
        .arg(cases)
        .args(["--wrong", wrong])
        .status()?;
    ensure!(status.success(), "the judge failed");
    Ok(())
}

/// Scans a copy of a repository, and prints what each scan took.
fn scan(repository: &Path, binary: Option<PathBuf>) -> Result<()> {
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
    let git = |args: &[&str], dir: &Path| -> Result<()> {
        let status = Command::new("git")
            .args([
                "-c",
                "user.name=bench",
                "-c",
                "user.email=bench@example.com",
            ])
            .args(args)
            .current_dir(dir)
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.success(), "git {args:?} failed");
        Ok(())
    };
    std::fs::create_dir_all(copy.parent().context("a folder")?)?;
    let (from, to) = (repository.display().to_string(), copy.display().to_string());
    git(
        &["clone", "--quiet", "--no-hardlinks", "--", &from, &to],
        root.path(),
    )?;
    let mut n_lines = 0_usize;
    let mut code = Vec::new();
    count(&copy, &mut n_lines, &mut code)?;
    println!("{} files of code, {n_lines} lines", code.len());
    let peak = root.path().join("peak");
    let call = |args: &[&str]| -> Result<(f64, String)> {
        let begun = Instant::now();
        // A shell that ends by becoming the program would hide its peak: it stays and asks for it.
        let output = Command::new("sh")
            .args(["-c", MEASURED, "sh"])
            .arg(&peak)
            .arg(&binary)
            .args(args)
            .current_dir(root.path())
            .env("KENNING_REPO_PATHS", root.path().join("repositories"))
            .env("KENNING_DATA", root.path().join("data"))
            .env("HOME", root.path())
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{args:?}: {said}{failed}");
        Ok((begun.elapsed().as_secs_f64(), said))
    };
    call(&["koi", "add_repo", &to])?;
    let status = ["call", "github_scan", "--json", "{}"];
    let (idle, _) = call(&status)?;
    println!("starting the program: {idle:.2} s");
    let once = ["call", "github_scan", "--json", r#"{"action": "scan"}"#];
    for what in ["all of it", "nothing new", "one file changed"] {
        if what == "one file changed" {
            let changed = code.get(code.len() / 2).context("no files of code")?;
            let mut text = std::fs::read_to_string(changed)?;
            text.push('\n');
            std::fs::write(changed, text)?;
            git(
                &["commit", "--quiet", "--all", "--message", "change"],
                &copy,
            )?;
        }
        let (took, said) = call(&once)?;
        let said: serde_json::Value = serde_json::from_str(&said)?;
        let row = &said["results"][0];
        let n = |name: &str| row[name].as_u64().unwrap_or(0);
        let (n_files, n_symbols, n_edges) =
            (n("files_processed"), n("code_entities"), n("code_edges"));
        let peak_kb = std::fs::read_to_string(&peak).unwrap_or_default();
        let peak_mb = peak_kb.trim().parse::<f64>().unwrap_or(0.0) / 1_000.0;
        let work = (took - idle).max(0.001);
        println!(
            "{what}: {took:.2} s, of which {work:.2} s for the scan; {n_files} files ({:.0} a second, {:.0} lines a second), {n_symbols} symbols, {n_edges} edges, {} skipped, peak {peak_mb:.0} MB",
            n_files as f64 / work,
            if what == "all of it" {
                n_lines as f64 / work
            } else {
                0.0
            },
            n("files_skipped"),
        );
    }
    Ok(())
}

/// Runs a program and writes its largest memory, in kB, into a file.
const MEASURED: &str = r#"file=$1; shift
"$@" & pid=$!
while kill -0 $pid 2> /dev/null; do
  grep -s VmHWM /proc/$pid/status | tr -dc '0-9\n' > "$file.now" && [ -s "$file.now" ] && mv "$file.now" "$file"
  sleep 0.02
done
wait $pid"#;

fn count(dir: &Path, n_lines: &mut usize, code: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().map(|it| it.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') {
            count(&path, n_lines, code)?;
        } else if kenning_engine::koi::is_code(&name) {
            *n_lines += std::fs::read_to_string(&path)
                .unwrap_or_default()
                .lines()
                .count();
            code.push(path);
        }
    }
    Ok(())
}
