//! A tool that is a process: in the jail, or not at all.
//!
//! It may read the project, its own files and the system's; it may write to a directory that is gone
//! afterwards, and to what was granted. It has no network and no environment but what was granted.
//! Every argument is one argument: no shell ever sees it.

use super::room::Room;
use super::runtime::{Program, SYSTEM_DIRS};
use super::{Ran, Ready, parsed};
use crate::Engine;
use crate::items::ItemResult;
use crate::wasm_tools::Pulse;
use kenning_core::{Error, Result};
use kenning_items::arguments;
use kenning_jail::{Exit, Limits, Net, Outcome, Spec};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where names are looked up; without it an address can only be written as a number.
const DNS_PORT: u16 = 53;
/// What a host without a port means.
const WEB_PORTS: [u16; 2] = [80, 443];

impl Engine {
    /// Whether it would start.
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
        let room = self.make_room(&ready.plan.package, strength.own_user)?;
        let program = self.program(ready, Some(&room))?;
        let mut warnings = ready.permitted.warnings.clone();
        let project = readable_project(ready, strength.own_user, &mut warnings);
        let spec = spec(ready, &room, program, project)?;
        let run = || kenning_jail::run(&self.launcher(), &spec, &ready.caller.cancelled);
        let outcome = match &ready.caller.progress {
            None => run(),
            Some(progress) => {
                Pulse::new(Arc::clone(progress), spec.limits.wall).during("running", run)
            }
        }?;
        Ok(Ran {
            warnings,
            ..ran(ready, &spec, outcome)?
        })
    }
}

/// The project, if the program can be let into it.
fn readable_project(
    ready: &Ready<'_>,
    own_user: bool,
    warnings: &mut Vec<String>,
) -> Option<PathBuf> {
    let project = ready.plan.project.as_ref()?;
    if !ready.permitted.reads_project {
        return None;
    }
    if own_user && !project.dir.is_open_to_everybody() {
        warnings.push(
            "the tool could not read the project: Kenning runs as root, so tools run as a user \
             without rights, whom the project's modes keep out (`chmod o+rX`, also above it)"
                .to_owned(),
        );
        return None;
    }
    Some(project.dir.path().to_owned())
}

fn spec(
    ready: &Ready<'_>,
    room: &Room,
    program: Program,
    project: Option<PathBuf>,
) -> Result<Spec> {
    let (code, scratch) = (room.code.path(), room.scratch.path());
    let mut spec = Spec::new(program.path);
    spec.net = match ports(ready)? {
        ports if ports.is_empty() => Net::None,
        ports => Net::Tcp(ports),
    };
    spec.allow_system();
    spec.exec.extend(program.exec);
    spec.read.extend(program.read);
    spec.read.push(code.to_owned());
    spec.read.extend(ready.permitted.read.iter().cloned());
    spec.write.extend(ready.permitted.write.iter().cloned());
    spec.scratch = Some(scratch.to_owned());
    spec.cwd = working_directory(ready, project.as_ref(), &scratch.to_owned())?;
    spec.read.extend(project);
    let given = ready.config.get("args").and_then(Value::as_array);
    let given = given.into_iter().flatten().filter_map(Value::as_str);
    spec.args.extend(given.map(OsString::from));
    if let Some(name) = script(ready)? {
        spec.args.push(code.join(name).into());
    }
    let inputs = arguments::of(ready.inputs)?;
    spec.args.extend(inputs.into_iter().map(OsString::from));
    spec.env = environment(ready, &spec, program.first_in_path);
    spec.stdin = ready.text("input_data").unwrap_or_default().into();
    let limits = &ready.policy.limits;
    let wall = ready.timeout();
    spec.limits = Limits {
        wall,
        // So much as all processors together have in that time.
        cpu: wall.saturating_mul(64),
        memory_bytes: limits.memory_mb.max(16).saturating_mul(1 << 20),
        processes: limits.processes.max(1),
        output_bytes: limits.output_mb.max(1).saturating_mul(1 << 20),
        ..Limits::default()
    };
    Ok(spec)
}

/// The file that is run, which must be one of those that were verified.
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

fn working_directory(
    ready: &Ready<'_>,
    project: Option<&PathBuf>,
    scratch: &PathBuf,
) -> Result<PathBuf> {
    let here = project.unwrap_or(scratch).clone();
    let Some(named) = ready.text("cwd").filter(|it| *it != ".") else {
        return Ok(here);
    };
    let Some(project) = ready.plan.project.as_ref().filter(|_| project.is_some()) else {
        return Err(Error::denied(format!(
            "`cwd`: the tool may not read the project, so it cannot start in `{named}`"
        ))
        .hint("leave it out, or let the tool read the project"));
    };
    Ok(project.dir.subdir(named)?.path().to_owned())
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

/// The ports that were asked for. The kernel can hold a program to ports and not to hosts, so only who
/// may reach every host gets any.
fn ports(ready: &Ready<'_>) -> Result<Vec<u16>> {
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
                    "`permissions.net`: a program cannot be held to the host `{asked}`"
                ))
                .hint("use `http_client` or a WASM tool, or ask for every host as `*:443`"));
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
