//! The code graph: how right its calls are, and what a scan costs.
//!
//! `cargo xtask bench code --cases DIR` judges the calls of the cases that `testing/code/fetch DIR` made.
//! `cargo xtask bench code --repository DIR` scans a repository with the real program, three times: all of it,
//! nothing new, and one file changed. It is a copy that is changed.

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
    let call = |args: &[&str]| -> Result<(f64, String)> {
        let begun = Instant::now();
        let output = Command::new(&binary)
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
        println!("{what}: {took:.2} s {}", said.replace('\n', " "));
    }
    Ok(())
}

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
