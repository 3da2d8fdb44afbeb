//! Finds the program that runs a script.
//!
//! Only the system's directories are searched, and those that the operator names: a program in a home
//! directory would need files around it that no tool should see.

use super::install::project_python;
use super::{Ready, run_dir::RunDir};
use crate::Kiwi;
use crate::policy::{ItemPolicy, POLICY_FILE};
use kenning_core::{Error, Result};
use std::path::{Path, PathBuf};

/// Directories of the system's programs.
pub(super) const SYSTEM_DIRS: [&str; 7] = [
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
    "/run/current-system/sw/bin",
];

/// A program, and the files that it needs.
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// What it may execute in addition to the system's programs.
    pub(super) exec: Vec<PathBuf>,
    /// What it may read in addition.
    pub(super) read: Vec<PathBuf>,
    /// Put first in `PATH`.
    pub(super) first_in_path: Option<PathBuf>,
}

impl Program {
    fn plain(path: PathBuf) -> Self {
        Self {
            path,
            exec: Vec::new(),
            read: Vec::new(),
            first_in_path: None,
        }
    }
}

impl Kiwi {
    /// The program that a configuration names.
    pub(super) fn program(&self, ready: &Ready<'_>, run_dir: Option<&RunDir>) -> Result<Program> {
        let command = ready.text("command").unwrap_or_default();
        if command.contains('/') && !command.starts_with('/') {
            return own_program(ready, run_dir, command);
        }
        if matches!(command, "python" | "python3")
            && let Some(python) = self.virtual_python(ready, run_dir.is_some())?
        {
            return Ok(python);
        }
        if !ready.plan.tool.dependencies.is_empty() && !is_python(command) {
            return Err(Error::invalid(format!(
                "`dependencies`: packages cannot be installed for `{command}`"
            ))
            .hint("put them beside the tool's own files"));
        }
        find(ready.policy, command)
    }

    /// A Python that has the packages of the project or of the tool; `None` if the system's has them.
    fn virtual_python(&self, ready: &Ready<'_>, install: bool) -> Result<Option<Program>> {
        let project = ready.plan.project.as_ref();
        let project = project.filter(|_| ready.permitted.reads_packages);
        if let Some((path, bin)) = project.and_then(|it| project_python(&it.dir)) {
            return Ok(Some(Program {
                read: bin.parent().map(Path::to_owned).into_iter().collect(),
                exec: vec![bin.clone()],
                first_in_path: Some(bin),
                ..Program::plain(path)
            }));
        }
        if ready.plan.tool.dependencies.is_empty() {
            return Ok(None);
        }
        self.python_with_packages(ready, install).map(Some)
    }
}

/// A program of the system, or of a directory that the operator named.
pub(super) fn find(policy: &ItemPolicy, command: &str) -> Result<Program> {
    if command.starts_with('/') {
        // It may be executed if it is in one of the operator's directories, or in the system's.
        return Ok(Program {
            exec: policy.exec.clone(),
            ..Program::plain(command.into())
        });
    }
    let wanted = match command {
        "python" => "python3",
        command => command,
    };
    let system = SYSTEM_DIRS.iter().map(|it| Path::new(it).join(wanted));
    if let Some(path) = system.into_iter().find(|it| it.is_file()) {
        return Ok(Program::plain(path));
    }
    for root in &policy.exec {
        for dir in [root.join("bin"), root.clone()] {
            let path = dir.join(wanted);
            if path.is_file() {
                return Ok(Program {
                    exec: vec![root.clone()],
                    first_in_path: Some(dir),
                    ..Program::plain(path)
                });
            }
        }
    }
    Err(Error::not_found("program", wanted).hint(format!(
        "install it for the system, or add its directory to `exec` in `{POLICY_FILE}` of the data directory"
    )))
}

fn is_python(command: &str) -> bool {
    matches!(command, "python" | "python3")
}

/// A program among the tool's own files.
fn own_program(ready: &Ready<'_>, run_dir: Option<&RunDir>, command: &str) -> Result<Program> {
    let name = command.trim_start_matches("./");
    if ready.plan.package.file(name).is_none() {
        return Err(Error::not_found("file of the tool", name)
            .hint("name a program of the system, or a file beside the manifest"));
    }
    let root = run_dir
        .map(|it| it.code.path().to_owned())
        .unwrap_or_default();
    Ok(Program {
        exec: vec![root.clone()],
        ..Program::plain(root.join(name))
    })
}
