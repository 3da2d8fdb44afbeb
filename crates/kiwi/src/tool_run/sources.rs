//! Checks a tool's source for syntax errors before it is signed.
//!
//! The language's own program checks it, in a jail, without running the source. If there is no such
//! program, or no jail, the item can be signed anyway, with a warning.

use super::runtime;
use crate::Kiwi;
use crate::item_dirs::ItemDir;
use crate::package::{Item, Package};
use crate::{ItemFault, ItemResult};
use kenning_core::{Error, Result};
use kenning_jail::{Exit, Limits, Outcome, Spec};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Prints the name, line and error of each file that cannot be compiled. Compiling runs nothing.
const PYTHON: &str = r#"
import json, sys
for name in sys.argv[1:]:
    try:
        with open(name, "rb") as file:
            compile(file.read(), name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        print(json.dumps([name, line, getattr(error, "msg", None) or str(error)]))
"#;
const WALL: Duration = Duration::from_secs(20);
const FILES_MAX: usize = 200;
const COMPLAINT_CHARS: usize = 300;

/// The result of checking a source.
enum Checked {
    /// Names of files and what is wrong with them.
    Faults(Vec<(String, String)>),
    /// It could not be checked, and why.
    Unknown(String),
}

impl Kiwi {
    /// Refuses a tool whose source has syntax errors. Returns warnings for whoever signs it.
    pub(crate) fn check_sources(
        &self,
        package: &Package,
        item_dir: &ItemDir,
    ) -> ItemResult<Vec<String>> {
        let Ok(Item::Tool(tool)) = package.item() else {
            return Ok(Vec::new());
        };
        let entry = tool.entrypoint.as_deref().unwrap_or_default();
        let executor = tool.executor_id.as_deref().unwrap_or_default();
        let language = match (executor, entry.rsplit_once('.').map(|it| it.1)) {
            ("python_runtime", _) | (_, Some("py")) => "python3",
            ("bash_runtime", _) => "bash",
            ("node_runtime", _) => "node",
            _ => return Ok(Vec::new()),
        };
        let mut files = vec![entry.to_owned()];
        if language == "python3" {
            let others = package.files.iter().map(|it| &it.0);
            let others = others.filter(|other| other.ends_with(".py") && *other != entry);
            files.extend(others.take(FILES_MAX).cloned());
        }
        if package.file(entry).is_none() {
            // Its runtime reports it.
            return Ok(Vec::new());
        }
        let checked = self.read_by_language(package, language, &files);
        let faults = match faults_of(entry, checked) {
            Ok(faults) => faults,
            Err(unchecked) => return Ok(vec![unchecked]),
        };
        let (of_entry, of_others): (Vec<_>, Vec<_>) =
            faults.into_iter().partition(|it| it.0 == entry);
        let told = |it: &(String, String)| format!("{}: {}", it.0, it.1);
        if of_entry.is_empty() {
            return Ok(of_others.iter().map(told).collect());
        }
        let issues: Vec<String> = of_entry.iter().chain(&of_others).map(told).collect();
        Err(ItemFault::with(
            Error::invalid(format!(
                "`{language}` reports errors in tool '{}': {}",
                package.id(),
                issues.join("; ")
            ))
            .hint("correct the source, then sign it"),
            json!({
                "validation_issues": issues,
                "path": package.path_on(item_dir).to_string_lossy(),
            }),
        ))
    }

    fn read_by_language(
        &self,
        package: &Package,
        language: &str,
        files: &[String],
    ) -> Result<Checked> {
        let policy = self.item_policy()?;
        let program = runtime::find(&policy, language)?;
        let strength = self.jail()?;
        let run_dir = self.make_run_dir(package, strength.own_user)?;
        let (code, scratch) = (run_dir.code.path(), run_dir.scratch.path());
        let mut spec = Spec::new(program.path);
        spec.allow_system();
        spec.exec.extend(program.exec);
        spec.read.push(code.to_owned());
        let before: &[&str] = match language {
            "python3" => &["-I", "-S", "-W", "ignore", "-c", PYTHON],
            "bash" => &["-n", "--"],
            _ => &["--check", "--"],
        };
        let names = files.iter().map(|file| match language {
            "python3" => file.into(),
            // A path cannot be taken for an option.
            _ => OsString::from(code.join(file)),
        });
        spec.args = before.iter().map(OsString::from).chain(names).collect();
        spec.env = vec![
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("PATH".to_owned(), runtime::SYSTEM_DIRS.join(":")),
        ];
        spec.cwd = code.to_owned();
        spec.scratch = Some(scratch.to_owned());
        spec.limits = Limits {
            wall: WALL,
            cpu: WALL,
            memory_bytes: 1 << 30,
            ..Limits::default()
        };
        let outcome = kenning_jail::run(&self.launcher(), &spec, &Arc::default())?;
        Ok(match language {
            "python3" => of_python(&outcome),
            _ => of_another(&outcome, files, code, language),
        })
    }
}

/// What is wrong with which file; the error is a warning for whoever signs a source that could not be
/// checked.
fn faults_of(
    entry: &str,
    checked: Result<Checked>,
) -> std::result::Result<Vec<(String, String)>, String> {
    match checked.unwrap_or_else(|it| Checked::Unknown(it.message)) {
        Checked::Unknown(why) => Err(format!("`{entry}` was not checked: {why}")),
        Checked::Faults(faults) => Ok(faults),
    }
}

fn of_python(outcome: &Outcome) -> Checked {
    if outcome.exit != Exit::Exited(0) {
        return Checked::Unknown("`python3` did not finish".to_owned());
    }
    let said = String::from_utf8_lossy(&outcome.stdout);
    let rows = said.lines().filter_map(|line| {
        let row: Value = serde_json::from_str(line).ok()?;
        let why = row.get(2)?.as_str()?;
        let why = match row.get(1).and_then(Value::as_u64) {
            Some(line) => format!("line {line}: {why}"),
            None => why.to_owned(),
        };
        Some((row.get(0)?.as_str()?.to_owned(), why))
    });
    Checked::Faults(rows.collect())
}

fn of_another(outcome: &Outcome, files: &[String], code: &Path, language: &str) -> Checked {
    match outcome.exit {
        Exit::Exited(0) => Checked::Faults(Vec::new()),
        Exit::Exited(_) => {
            let said = String::from_utf8_lossy(&outcome.stderr);
            let said = said.replace(&format!("{}/", code.display()), "");
            let why: String = said.trim().chars().take(COMPLAINT_CHARS).collect();
            let entry = files.first().cloned().unwrap_or_default();
            Checked::Faults(vec![(entry, why)])
        }
        _ => Checked::Unknown(format!("`{language}` did not finish")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ItemPolicy;

    #[test]
    fn a_source_whose_interpreter_is_not_there_is_not_refused_and_whoever_signs_it_is_told() {
        let policy = ItemPolicy::default();
        let found = runtime::find(&policy, "no-such-interpreter");
        let checked = found.map(|_| Checked::Faults(Vec::new()));
        let told = faults_of("main.py", checked).unwrap_err();
        assert_eq!(
            told,
            "`main.py` was not checked: no program `no-such-interpreter`"
        );
        let fault = ("main.py".to_owned(), "line 1: invalid syntax".to_owned());
        let read = faults_of("main.py", Ok(Checked::Faults(vec![fault.clone()])));
        assert_eq!(read, Ok(vec![fault]));
    }
}
