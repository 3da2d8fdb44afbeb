//! A tool that is a process: it runs in a jail, or not at all.
//!
//! It may read the project, its own files and the system's; it may write to a temporary directory,
//! and to what was granted. It has no network and no environment variables but those that were
//! granted. Arguments are passed as they are: no shell sees them.

use super::run_dir::RunDir;
use super::runtime::{Program, SYSTEM_DIRS};
use super::{Ran, Ready, parsed};
use crate::ItemResult;
use crate::Kiwi;
use kenning_core::{Error, Hash, Result};
use kenning_items::arguments;
use kenning_jail::{Exit, Limits, Net, Outcome, Spec};
use kenning_kami::Pulse;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The port of DNS; without it only numeric addresses work.
const DNS_PORT: u16 = 53;
/// Passes the inputs to `main` of a Python tool.
const BIND: &str = include_str!("bind.py");
/// The ports of a host without a port.
const WEB_PORTS: [u16; 2] = [80, 443];

impl Kiwi {
    /// Checks whether it would start.
    pub(super) fn check_process(&self, ready: &Ready<'_>) -> ItemResult<()> {
        self.jail()?;
        self.program(ready, None)?;
        ports(ready)?;
        script(ready)?;
        arguments::of(ready.inputs)?;
        Ok(())
    }

    pub(super) fn run_process(&self, ready: &Ready<'_>) -> ItemResult<Ran> {
        let strength = self.jail()?;
        let run_dir = self.make_run_dir(&ready.plan.package, strength.own_user)?;
        let program = self.program(ready, Some(&run_dir))?;
        let spec = self.spec(ready, &run_dir, program, true)?;
        let run = || kenning_jail::run(&self.launcher(), &spec, &ready.caller.cancelled);
        let outcome = match &ready.caller.progress {
            None => run(),
            Some(progress) => {
                Pulse::new(Arc::clone(progress), spec.limits.wall).during("running", run)
            }
        }?;
        Ok(Ran {
            warnings: ready.permitted.warnings.clone(),
            ..ran(ready, &spec, outcome)?
        })
    }
}

impl Kiwi {
    /// Everything that the program may access. `inputs` says whether it gets its inputs as arguments.
    pub(super) fn spec(
        &self,
        ready: &Ready<'_>,
        run_dir: &RunDir,
        program: Program,
        inputs: bool,
    ) -> Result<Spec> {
        let (code, scratch) = (run_dir.code.path(), run_dir.scratch.path());
        let mut spec = Spec::new(program.path);
        spec.net = match ports(ready)? {
            ports if ports.is_empty() => Net::None,
            ports => Net::Tcp(ports),
        };
        spec.allow_system();
        spec.exec.extend(program.exec);
        spec.read.extend(program.read);
        spec.read.push(code.to_owned());
        let files = &ready.permitted.files;
        spec.read.extend(files.read.paths.iter().cloned());
        spec.write.extend(files.write.paths.iter().cloned());
        spec.made = files.write.made.clone();
        spec.scratch = Some(scratch.to_owned());
        spec.cwd = working_directory(ready, scratch)?;
        if let Some(project) = &ready.plan.project {
            spec.without_links = Some(project.dir.path().to_owned());
        }
        if !spec.write.is_empty() {
            spec.user_number = Some(self.user_number(ready));
        }
        let given = ready.config.get("args").and_then(Value::as_array);
        let given = given.into_iter().flatten().filter_map(Value::as_str);
        spec.args.extend(given.map(OsString::from));
        if let Some(name) = script(ready)? {
            if inputs && let Some(bound) = bound_inputs(ready, run_dir, name)? {
                spec.read.push(run_dir.beside.path().to_owned());
                spec.args.extend(bound);
            }
            spec.args.push(code.join(name).into());
        }
        if inputs {
            let inputs = arguments::of(ready.inputs)?;
            spec.args.extend(inputs.into_iter().map(OsString::from));
        }
        spec.env = environment(ready, &spec, program.first_in_path);
        spec.stdin = ready.text("input_data").unwrap_or_default().into();
        let limits = &ready.policy.limits;
        let wall = ready.timeout();
        spec.limits = Limits {
            wall,
            // As much as all processors together have in that time.
            cpu: wall.saturating_mul(64),
            memory_bytes: limits.memory_mb.max(16).saturating_mul(1 << 20),
            processes: limits.processes.max(1),
            output_bytes: limits.output_mb.max(1).saturating_mul(1 << 20),
            disk_bytes: limits.disk_mb.saturating_mul(1 << 20),
            files: limits.files,
            ..Limits::default()
        };
        Ok(spec)
    }
}

impl Kiwi {
    /// The same for all programs that write to a project, so that if Kenning is root, each can change
    /// what the others wrote.
    fn user_number(&self, ready: &Ready<'_>) -> u32 {
        let project = ready.plan.project.as_ref();
        let project = project.map_or_else(PathBuf::new, |it| it.dir.path().to_owned());
        let text = format!(
            "{}\n{}",
            self.kernel.data().path().display(),
            project.display()
        );
        let digits = Hash::of(text.as_bytes()).to_string();
        u32::from_str_radix(digits.get(..8).unwrap_or_default(), 16).unwrap_or(0)
    }
}

/// The file to run, which must be one of the verified ones.
fn script<'a>(ready: &'a Ready<'_>) -> Result<Option<&'a str>> {
    let Some(name) = ready.plan.tool.entrypoint.as_deref() else {
        return Ok(None);
    };
    if ready.plan.package.file(name).is_none() {
        return Err(Error::not_found("file of the tool", name)
            .hint("name a file beside the manifest as `manifest.entrypoint`"));
    }
    // A tool that is itself the program needs no script.
    let command = ready.text("command").unwrap_or_default();
    let is_program = command.trim_start_matches("./") == name && command.contains('/');
    Ok(Some(name).filter(|_| !is_program))
}

/// The arguments before a Python script whose `main` takes its inputs by name: the program that binds
/// them, and the inputs. That program checks closely; here only clear misfits are left out.
fn bound_inputs(
    ready: &Ready<'_>,
    run_dir: &RunDir,
    script: &str,
) -> Result<Option<[OsString; 2]>> {
    let is_python = matches!(ready.text("command"), Some("python" | "python3"));
    let args = ready.config.get("args").and_then(Value::as_array);
    let mut args = args.into_iter().flatten().filter_map(Value::as_str);
    let is_plain = args.all(|arg| arg.starts_with('-') && !matches!(arg, "-c" | "-m"));
    let source = ready.plan.package.file(script).unwrap_or_default();
    let source = String::from_utf8_lossy(source);
    if !is_python || !is_plain || !source.lines().any(takes_arguments) {
        return Ok(None);
    }
    let inputs = Value::Object(ready.inputs.clone()).to_string();
    run_dir.beside.put("bind.py", BIND.as_bytes(), 0o644)?;
    run_dir
        .beside
        .put("inputs.json", inputs.as_bytes(), 0o644)?;
    let path = run_dir.beside.path();
    Ok(Some([
        path.join("bind.py").into(),
        path.join("inputs.json").into(),
    ]))
}

/// Whether a line begins a `main` with parameters.
fn takes_arguments(line: &str) -> bool {
    let line = line.strip_prefix("async ").unwrap_or(line).trim_start();
    let rest = line.strip_prefix("def main").map(str::trim_start);
    let inner = rest.and_then(|it| it.strip_prefix('('));
    inner.is_some_and(|it| !it.trim_start().starts_with(')'))
}

/// It starts in the project if it may access anything there. That gives it no permissions.
fn working_directory(ready: &Ready<'_>, scratch: &Path) -> Result<PathBuf> {
    let files = &ready.permitted.files;
    let is_let_in = files.read.in_project || files.write.in_project;
    let project = ready.plan.project.as_ref().filter(|_| is_let_in);
    let named = ready.text("cwd").filter(|it| *it != ".");
    match (project, named) {
        (None, None) => Ok(scratch.to_owned()),
        (Some(project), None) => Ok(project.dir.path().to_owned()),
        (Some(project), Some(named)) => Ok(project.dir.subdir(named)?.path().to_owned()),
        (None, Some(named)) => Err(Error::denied(format!(
            "`cwd`: the tool may read nothing of the project, so it cannot start in `{named}`"
        ))
        .hint("leave it out, or let the tool read the project")),
    }
}

/// What is set for every program, and what this one declares.
fn environment(
    ready: &Ready<'_>,
    spec: &Spec,
    first_in_path: Option<PathBuf>,
) -> Vec<(String, String)> {
    let scratch = spec.scratch.clone().unwrap_or_default();
    let scratch = scratch.to_string_lossy().into_owned();
    let first = first_in_path.map(|it| it.to_string_lossy().into_owned());
    let path: Vec<&str> = first.as_deref().into_iter().chain(SYSTEM_DIRS).collect();
    let mut all: std::collections::BTreeMap<String, String> = [
        ("HOME", scratch.clone()),
        ("LANG", "C.UTF-8".to_owned()),
        ("PATH", path.join(":")),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ("TMPDIR", scratch),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    if spec.net != Net::None {
        // The jail has no UDP.
        all.insert("RES_OPTIONS".to_owned(), "use-vc".to_owned());
    }
    all.extend(ready.permitted.env.clone());
    let own = ready.config.get("env").and_then(Value::as_object);
    for (name, value) in own.into_iter().flatten() {
        all.extend(value.as_str().map(|it| (name.clone(), it.to_owned())));
    }
    all.into_iter().collect()
}

/// The requested ports. The kernel can restrict a program to ports but not to hosts, so only a
/// program that may reach every host gets any.
pub(super) fn ports(ready: &Ready<'_>) -> Result<Vec<u16>> {
    let mut ports = Vec::new();
    for asked in &ready.permitted.net.0 {
        let (host, port) = match asked.split_once(':') {
            None => (asked.as_str(), None),
            Some((host, port)) => (host, Some(port)),
        };
        let port = port.map(str::parse::<u16>).transpose();
        match (host, port) {
            ("*", Ok(None)) => ports.extend(WEB_PORTS),
            ("*", Ok(Some(port))) => ports.push(port),
            _ => {
                return Err(Error::denied(format!(
                    "`permissions.net`: a program cannot be restricted to the host `{asked}`"
                ))
                .hint("use `http_client` or a WASM tool, or request every host as `*:443`"));
            }
        }
    }
    if !ports.is_empty() {
        ports.push(DNS_PORT);
    }
    Ok(ports)
}

fn ran(ready: &Ready<'_>, spec: &Spec, outcome: Outcome) -> Result<Ran> {
    let stdout = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let id = &ready.plan.tool.id;
    let limits = &spec.limits;
    let (return_code, why) = match outcome.exit {
        Exit::Exited(0) => (0, None),
        Exit::Exited(code) => (code, Some(format!("failed with return code {code}"))),
        Exit::Killed(signal) => (-signal, Some(format!("was killed by signal {signal}"))),
        Exit::TimedOut => {
            let said = format!("Command timed out after {} seconds", shown(limits.wall));
            if !stderr.is_empty() && !stderr.ends_with('\n') {
                stderr.push('\n');
            }
            stderr.push_str(&said);
            (
                -1,
                Some(format!("timed out after {} seconds", shown(limits.wall))),
            )
        }
        Exit::Cancelled => return Err(Error::timeout("the call was cancelled")),
        Exit::OutputTooLarge => {
            let most = limits.output_bytes;
            (
                -1,
                Some(format!("wrote more than {most} bytes and was stopped")),
            )
        }
        Exit::TooMuchMemory => {
            let most = limits.memory_bytes;
            (
                -1,
                Some(format!(
                    "took more than {most} bytes of memory and was stopped"
                )),
            )
        }
        Exit::TooManyProcesses => {
            let most = limits.processes;
            (
                -1,
                Some(format!("had more than {most} processes and was stopped")),
            )
        }
        Exit::TooMuchCpu => (
            -1,
            Some("took too much processor time and was stopped".to_owned()),
        ),
        Exit::TooMuchDisk => {
            let most = limits.disk_bytes;
            (
                -1,
                Some(format!(
                    "wrote more than {most} bytes to the disk, or all that was left, and was stopped"
                )),
            )
        }
        Exit::TooManyFiles => {
            let most = limits.files;
            (
                -1,
                Some(format!("made more than {most} files and was stopped")),
            )
        }
    };
    let usage = outcome.usage;
    let micros = |it: Duration| u64::try_from(it.as_micros()).unwrap_or(u64::MAX);
    Ok(Ran {
        result: parsed(&stdout),
        data: json!({ "stdout": stdout, "stderr": stderr, "return_code": return_code }),
        error: why.map(|it| format!("Tool '{id}' {it}")),
        usage: json!({
            "wall_us": micros(usage.wall), "cpu_user_us": micros(usage.cpu_user),
            "cpu_system_us": micros(usage.cpu_system), "max_rss_bytes": usage.max_rss_bytes,
        }),
        is_truncated: outcome.exit == Exit::OutputTooLarge,
        warnings: Vec::new(),
    })
}

/// Seconds as people write them.
fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds.fract() < 0.001 {
        format!("{seconds:.0}")
    } else {
        format!("{seconds:.1}")
    }
}
