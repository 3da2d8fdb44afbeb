//! RELIABILITY.md, written by the commands that measured: `cargo xtask reliability`.
//!
//! A row of its tables names itself, says what is promised, and holds the command that measures it. To
//! measure is to run that command from here: what it says of itself on its summary lines becomes the
//! row's figure, beside the commit and the date. Nobody types figures. A new row needs a name, a promise
//! and a command; the last two columns are left empty.
//!
//! The commit is the one from which the command was started. With uncommitted changes nothing is measured,
//! because nobody could measure the same again; `--uncommitted` measures all the same and marks the figure.
//!
//! Summary lines are what every long test prints: `crash: 1000 kills, 0 lost, seed 11`. A row that wants
//! only some of them says which: ``(line `fuzz:`)`` after its command. A command that prints none, such
//! as tests that hold or do not, is counted by its tests.

use crate::options::Options;
use crate::repository::{cargo, output, root};
use anyhow::{Context as _, Result, bail, ensure};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

const FILE: &str = "RELIABILITY.md";
/// The head of a table that is ours.
const HEAD: &str = "| row | promise | command | figure | measured |";

/// One row: where it stands, and its cells.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    line: usize,
    name: String,
    command: String,
    figure: String,
    measured: String,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    options.only(&["uncommitted"])?;
    let path = root().join(FILE);
    let text = std::fs::read_to_string(&path)?;
    let rows = rows(&text)?;
    let words: Vec<&str> = options.words.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            for row in &rows {
                let measured = match row.measured.as_str() {
                    "" => "never measured",
                    it => it,
                };
                println!("{:<16} {:<24} {}", row.name, measured, row.command);
            }
            Ok(())
        }
        ["run", ref names @ ..] if !names.is_empty() => {
            for name in names {
                ensure!(
                    *name == "all" || rows.iter().any(|it| it.name == *name),
                    "no row `{name}` in {FILE}; `cargo xtask reliability` lists them"
                );
            }
            let wanted = rows
                .iter()
                .filter(|it| names.contains(&"all") || names.contains(&it.name.as_str()));
            let mut failed = Vec::new();
            for row in wanted {
                println!("== {}: {}", row.name, row.command);
                // Before the command: a commit that is made while it runs is not what it measures.
                let stamp = Stamp::now()?.checked(options.has("uncommitted"))?;
                match measure(row) {
                    Ok(figure) => {
                        println!("{}: {figure}", row.name);
                        // Read again: it may have been edited while the command ran.
                        let text = std::fs::read_to_string(&path)?;
                        std::fs::write(&path, written(&text, &row.name, &figure, &stamp)?)?;
                    }
                    Err(why) => {
                        println!("{}: FAILED: {why:#}", row.name);
                        failed.push(row.name.clone());
                    }
                }
            }
            ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
            Ok(())
        }
        _ => bail!("`reliability` takes nothing, or `run ROW…`, or `run all`"),
    }
}

/// The rows of a text.
fn rows(text: &str) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut is_ours = false;
    for (line, words) in text.lines().enumerate() {
        if !words.starts_with('|') {
            is_ours = false;
            continue;
        }
        if words == HEAD {
            is_ours = true;
            continue;
        }
        if !is_ours || words.starts_with("|---") {
            continue;
        }
        let cells = cells(words);
        let place = || format!("{FILE}, line {}", line + 1);
        let [name, promise, command, figure, measured] = &cells[..] else {
            bail!("{}: {} cells in place of 5", place(), cells.len());
        };
        ensure!(
            !name.is_empty() && !promise.is_empty(),
            "{}: a row has a name and a promise",
            place()
        );
        ensure!(
            !rows.iter().any(|it| it.name == *name),
            "{}: `{name}` stands twice",
            place()
        );
        ensure!(
            argv(command).is_some(),
            "{}: `{command}` does not begin with a command in backticks: `cargo …` or `bash …`",
            place()
        );
        ensure!(
            figure.is_empty() == measured.is_empty(),
            "{}: a figure and when it was measured come together, from `cargo xtask reliability run {name}`",
            place()
        );
        rows.push(Row {
            line,
            name: name.clone(),
            command: command.clone(),
            figure: figure.clone(),
            measured: measured.clone(),
        });
    }
    ensure!(!rows.is_empty(), "{FILE} has no table of figures");
    Ok(rows)
}

/// The cells of a line; `\|` is no border.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let marked = inner.replace("\\|", "\u{0}");
    let cells = marked.split('|').map(|it| it.replace('\u{0}', "\\|"));
    cells.map(|it| it.trim().to_owned()).collect()
}

/// The name of a variable of the environment, and its value.
type Variable = (String, String);

/// The variables and the words of the command in backticks at the beginning of a cell.
fn argv(cell: &str) -> Option<(Vec<Variable>, Vec<String>)> {
    let command = cell.strip_prefix('`')?.split_once('`')?.0;
    let mut words = command.split_whitespace().map(str::to_owned).peekable();
    let mut variables = Vec::new();
    while let Some((name, value)) = words.peek().and_then(|it| it.split_once('=')) {
        if name.starts_with('-') {
            break;
        }
        variables.push((name.to_owned(), value.to_owned()));
        words.next();
    }
    let words: Vec<String> = words.collect();
    matches!(words.first()?.as_str(), "cargo" | "bash" | "python3").then_some((variables, words))
}

/// Runs a row's command and gives its figure.
fn measure(row: &Row) -> Result<String> {
    let (variables, mut words) = argv(&row.command).context("no command")?;
    if words.get(1).is_some_and(|it| it == "test") {
        // The summary lines of tests that pass are hidden otherwise.
        if !words.contains(&"--".to_owned()) {
            words.push("--".to_owned());
        }
        words.push("--nocapture".to_owned());
    }
    // This program is `cargo xtask`: no second one is built for it.
    let mut command = match &words[..] {
        [cargo, xtask, rest @ ..] if cargo == "cargo" && xtask == "xtask" => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(rest);
            command
        }
        [program, rest @ ..] => {
            // The one that `CARGO` names, if it does: what is built already was perhaps built by a wrapper.
            let mut command = match program.as_str() {
                "cargo" => cargo(),
                _ => Command::new(program),
            };
            command.args(rest);
            command
        }
        [] => bail!("no command"),
    };
    let done = command
        .envs(variables)
        .current_dir(root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    if !done.status.success() {
        let last: Vec<&str> = said.lines().rev().take(12).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        bail!("it ended with {}\n{}", done.status, last.join("\n"));
    }
    figure(&said, wanted_line(&row.command)).context("it printed no summary line and ran no tests")
}

/// The beginning of the lines that a row wants, if it says so.
fn wanted_line(cell: &str) -> Option<&str> {
    Some(cell.split_once("(line `")?.1.split_once('`')?.0)
}

/// What a command says of itself.
fn figure(said: &str, wanted: Option<&str>) -> Option<String> {
    // A test's own line may be begun already when it prints.
    let lines = said.lines().map(|line| match line.rsplit_once(" ... ") {
        Some((test, rest)) if test.starts_with("test ") => rest,
        _ => line,
    });
    let summaries = lines.filter(|line| match wanted {
        Some(wanted) => line.starts_with(wanted),
        None => is_summary(line),
    });
    let summaries: Vec<String> = summaries.map(with_commas).collect();
    if !summaries.is_empty() {
        return Some(summaries.join("; ").replace('|', "\\|"));
    }
    let results = said
        .lines()
        .filter_map(|it| it.strip_prefix("test result: ok. "));
    let passed = results.filter_map(|it| it.split(' ').next()?.parse::<u64>().ok());
    let n_passed: u64 = passed.sum();
    (n_passed > 0).then(|| match n_passed {
        1 => "1 test passes".to_owned(),
        n => format!("{n} tests pass"),
    })
}

/// `what: 12 things, …`
fn is_summary(line: &str) -> bool {
    let Some((what, rest)) = line.split_once(": ") else {
        return false;
    };
    let is_name = what.len() <= 60 && what.starts_with(|it: char| it.is_ascii_lowercase());
    let mut words = rest.split(' ');
    let is_number =
        |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit() || it == b',');
    let is_noun = |it: &str| it.starts_with(|it: char| it.is_ascii_lowercase());
    is_name && words.next().is_some_and(is_number) && words.next().is_some_and(is_noun)
}

/// Long numbers with commas, but seeds as they are typed.
fn with_commas(line: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let digits = word.trim_end_matches([',', ';', '.', ')']);
        let is_seed = out.last().is_some_and(|it| it == "seed" || it == "case");
        let is_long = digits.len() > 3 && digits.bytes().all(|it| it.is_ascii_digit());
        if !is_long || is_seed {
            out.push(word.to_owned());
            continue;
        }
        let mut grouped = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        out.push(grouped + &word[digits.len()..]);
    }
    out.join(" ")
}

/// The text with another figure in one row.
fn written(text: &str, name: &str, figure: &str, stamp: &str) -> Result<String> {
    let rows = rows(text)?;
    let row = rows.iter().find(|it| it.name == name);
    let row = row.with_context(|| format!("the row `{name}` is gone"))?;
    let lines = text.lines().enumerate().map(|(at, line)| {
        if at != row.line {
            return line.to_owned();
        }
        let cells = cells(line);
        format!(
            "| {} | {} | {} | {figure} | {stamp} |",
            cells[0], cells[1], cells[2]
        )
    });
    Ok(lines.collect::<Vec<_>>().join("\n") + "\n")
}

/// What is measured, and when.
struct Stamp {
    commit: String,
    /// Tracked files that differ from the commit, as `git status` lists them.
    changed: String,
    days: u64,
}

impl Stamp {
    /// The repository as it is at this moment.
    fn now() -> Result<Self> {
        let git = |words: &[&str]| output(Command::new("git").args(words).current_dir(root()));
        let commit = git(&["rev-parse", "--short=9", "HEAD"])?;
        // The figures themselves are not what is measured.
        let changed = git(&[
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            ".",
            ":!RELIABILITY.md",
        ])?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        Ok(Self {
            commit: commit.trim().to_owned(),
            changed: changed.trim_end().to_owned(),
            days: now / 86_400,
        })
    }

    /// The text of the last column. Uncommitted changes are refused, or marked where they are allowed.
    fn checked(&self, allows_changes: bool) -> Result<String> {
        let is_clean = self.changed.is_empty();
        ensure!(
            is_clean || allows_changes,
            "files differ from the commit, so nobody could measure the same again:\n{}\ncommit them first, or \
             measure with `--uncommitted`, which marks the figure",
            self.changed
        );
        let mark = if is_clean { "" } else { " and changes" };
        Ok(format!("`{}`{mark}, {}", self.commit, date(self.days)))
    }
}

/// A day since 1970 as people write it.
fn date(mut days: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# R\n\n| row | promise | command | figure | measured |\n|---|---|---|---|---|\n\
        | D1 | it survives | `cargo xtask crash --kills 9` (CI: 1) | | |\n\
        | A1 | proofs | `KENNING_X=1 cargo test -p a --test b` (line `proofs:`) | 3 cases | `abc`, 2026-01-02 |\n\n\
        | other | table |\n|---|---|\n| D1 | x |\n";

    #[test]
    fn rows_are_read_and_one_is_written() {
        let read = rows(TEXT).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(wanted_line(&read[1].command), Some("proofs:"));
        let (variables, words) = argv(&read[1].command).unwrap();
        assert_eq!(variables, [("KENNING_X".to_owned(), "1".to_owned())]);
        assert_eq!(words[..2], ["cargo", "test"]);
        let now = written(TEXT, "D1", "crash: 9 kills", "`def`, 2026-01-03").unwrap();
        assert!(
            now.contains("(CI: 1) | crash: 9 kills | `def`, 2026-01-03 |\n"),
            "{now}"
        );
        assert_eq!(now.lines().count(), TEXT.lines().count());
        assert_eq!(rows(&now).unwrap()[1], read[1]);
    }

    #[test]
    fn a_figure_that_somebody_typed_is_refused() {
        for (from, to) in [
            ("(CI: 1) | | |", "(CI: 1) | 5 kills | |"),
            ("| A1 |", "| D1 |"),
            ("`cargo xtask", "`xtask"),
            ("| proofs |", "| |"),
            ("| | |\n", "| |\n"),
        ] {
            assert!(rows(&TEXT.replacen(from, to, 1)).is_err(), "{to}");
        }
    }

    #[test]
    fn the_summary_lines_are_the_figure() {
        let said = "crash: 1000 kills, 20394 acknowledged, 0 lost, seed 20261116\nwarning: 3 things\nnot: a number\n\
            round 3: x: y\n";
        assert_eq!(
            figure(said, None).unwrap(),
            "crash: 1,000 kills, 20,394 acknowledged, 0 lost, seed 20261116; warning: 3 things"
        );
        assert_eq!(figure(said, Some("warning:")).unwrap(), "warning: 3 things");
        let tests = "running 2 tests\ntest a ... proofs: 12 cases, 0 failures\nok\ntest result: ok. 2 passed; 0 failed\n";
        assert_eq!(figure(tests, None).unwrap(), "proofs: 12 cases, 0 failures");
        let quiet = "test a ... ok\ntest result: ok. 2 passed; 0 failed\ntest result: ok. 3 passed; 0 failed\n";
        assert_eq!(figure(quiet, None).unwrap(), "5 tests pass");
        assert_eq!(figure("nothing\n", None), None);
    }

    #[test]
    fn a_figure_names_the_commit_and_a_changed_tree_is_refused_or_marked() {
        let mut stamp = Stamp {
            commit: "abc".to_owned(),
            changed: String::new(),
            days: 20_773,
        };
        assert_eq!(stamp.checked(false).unwrap(), "`abc`, 2026-11-16");
        stamp.changed = " M crates/core/src/lib.rs".to_owned();
        let refused = stamp.checked(false).unwrap_err().to_string();
        assert!(refused.contains("crates/core/src/lib.rs"), "{refused}");
        let marked = stamp.checked(true).unwrap();
        assert_eq!(marked, "`abc` and changes, 2026-11-16");
    }

    #[test]
    fn the_opening_line_of_a_soak_is_no_figure() {
        let said =
            crate::soak::opening(30.0, 1) + "\nsoak: 9 calls in 30 minutes, 0 wrong answers\n";
        assert_eq!(
            figure(&said, Some("soak:")).unwrap(),
            "soak: 9 calls in 30 minutes, 0 wrong answers"
        );
    }

    #[test]
    fn days_are_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(20_773), "2026-11-16");
    }

    #[test]
    fn every_row_of_the_page_can_be_measured() {
        let text = std::fs::read_to_string(root().join(FILE)).unwrap();
        rows(&text).unwrap();
    }
}
