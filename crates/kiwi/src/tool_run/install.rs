//! Packages that a Python tool depends on, in a virtual environment of their own.
//!
//! Packages come from strangers, so they are installed in a jail, as tools are run in one: the
//! installer may write to a directory made for it, and reach the index. The environment is then
//! renamed as a whole to the hash of the requested packages, and never changed again.

use super::Ready;
use super::runtime::{self, Program};
use crate::Kiwi;
use crate::policy::POLICY_FILE;
use kenning_core::{Code, Error, Hash, Result};
use kenning_jail::{Exit, Limits, Net, Spec};
use kenning_vault::Dir;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The packages are passed as arguments, so the shell does not interpret them.
const SCRIPT: &str = r#"
venv=$1
shift
python3 -m venv --without-pip "$venv"
"$venv/bin/python3" -m ensurepip --default-pip > "$TMPDIR/said" 2>&1 || { cat "$TMPDIR/said" >&2; exit 1; }
"$venv/bin/python3" -m pip install --no-input --no-cache-dir --disable-pip-version-check -- "$@"
"#;
/// If the program runs as the same user as Kenning, the jail refuses to change modes and times,
/// because the kernel could not limit that to some files. The installer works without them if these
/// calls do nothing.
const WITHOUT_MODES: &str = r#"
import os

def quiet(call):
    def called(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        except PermissionError:
            return None
    return called

for name in ("chmod", "fchmod", "lchmod", "chown", "utime"):
    if hasattr(os, name):
        setattr(os, name, quiet(getattr(os, name)))
"#;
/// Below the data directory.
const VENVS: &str = "kiwi/venvs";
/// Files that the installer reads to detect the system; it fails if one exists and cannot be read.
const ABOUT_SYSTEM: [&str; 5] = [
    "/etc/debian_version",
    "/etc/lsb-release",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/redhat-release",
];
const DNS_PORT: u16 = 53;
const HTTPS_PORT: u16 = 443;
const MEMORY_BYTES_MIN: u64 = 1 << 30;
/// Some packages are large.
const DISK_BYTES_MIN: u64 = 8 << 30;
const FILES_MIN: u64 = 150_000;
const COMPLAINT_CHARS: usize = 500;
/// The suffix of a file that says when an environment was last used.
const LEASE: &str = ".used";
const HOUR_MS: u64 = 60 * 60 * 1_000;
/// An environment that was not used for this long is removed.
pub const VENV_DAYS_MAX: u64 = 30;
/// At most this many are kept, unless all were used recently.
pub const VENVS_MAX: usize = 20;
/// One that was used within this time may be in use: no run takes longer.
const VENV_HOURS_MIN: u64 = 2;

impl Kiwi {
    /// A Python that has the packages of the tool. Installs them if requested and allowed.
    pub(super) fn python_with_packages(&self, ready: &Ready<'_>, install: bool) -> Result<Program> {
        let wanted = &ready.plan.tool.dependencies;
        if !ready.policy.allow_install {
            return Err(Error::denied(format!(
                "Tool '{}' depends on packages that are not installed: {}",
                ready.plan.tool.id,
                wanted.join(", ")
            ))
            .hint(format!(
                "install them into `.venv` of the project, or set `allow_install = true` in `{POLICY_FILE}` of the data directory"
            )));
        }
        let python = runtime::find(ready.policy, "python3")?;
        let own_user = self.jail()?.own_user;
        let (base, name) = self.venv_place(own_user, &key(&python.path, wanted))?;
        let path = base.path().join(&name);
        if !path.join("bin/python3").is_file() && install {
            let left = ready.timeout();
            let _lock = self.kernel.data().lock("kiwi/venvs.lock", left)?;
            // The process that had the lock before may have done it.
            if !path.join("bin/python3").is_file() {
                self.install(ready, own_user, &base, &name)?;
                self.note_use(&base, &name);
                self.forget_old_environments(&base, &name);
            }
        }
        self.note_use(&base, &name);
        Ok(Program {
            exec: vec![path.join("bin")],
            read: vec![path.clone()],
            first_in_path: Some(path.join("bin")),
            path: path.join("bin/python3"),
        })
    }

    /// The place of an environment: a directory, and the name in it.
    fn venv_place(&self, own_user: bool, key: &str) -> Result<(Dir, String)> {
        if !own_user {
            return Ok((self.kernel.data().clone(), format!("{VENVS}/{key}")));
        }
        // Another user cannot access our data directory.
        let base = Dir::open(&std::env::temp_dir())?;
        let folder = self.venvs_for_others();
        if !base.create_subdir(&folder)?.is_ours_alone() {
            return Err(Error::denied(format!(
                "`{folder}` in the system's temporary directory belongs to another user"
            ))
            .hint("remove it"));
        }
        Ok((base, format!("{folder}/{key}")))
    }

    /// Records the use of an environment, at most once in a while, in the file beside it.
    fn note_use(&self, base: &Dir, name: &str) {
        let now_ms = self.kernel.log().clock().now_ms();
        if last_use_ms(base, name).is_none_or(|it| it.saturating_add(HOUR_MS) < now_ms)
            && base.exists(name).unwrap_or(false)
        {
            // An environment without this file is the first to be removed, and is made again when
            // needed.
            drop(base.write(&format!("{name}{LEASE}"), now_ms.to_string().as_bytes()));
        }
    }

    /// Removes environments that were not used for long, and the oldest if there are too many. The
    /// caller holds the lock of all environments; recently used ones may be in use and stay.
    fn forget_old_environments(&self, base: &Dir, but: &str) {
        let now_ms = self.kernel.log().clock().now_ms();
        let folder = but.rsplit_once('/').map_or("", |it| it.0);
        let mut kept: Vec<(u64, String)> = environments(base, folder)
            .into_iter()
            .map(|name| format!("{folder}/{name}"))
            .filter(|name| name != but)
            .map(|name| (last_use_ms(base, &name).unwrap_or(0), name))
            .collect();
        kept.sort();
        let n_over = (kept.len() + 1).saturating_sub(VENVS_MAX);
        for (n, (used_ms, name)) in kept.into_iter().enumerate() {
            let age_ms = now_ms.saturating_sub(used_ms);
            let is_old = age_ms > VENV_DAYS_MAX * 24 * HOUR_MS;
            if is_old || (n < n_over && age_ms > VENV_HOURS_MIN * HOUR_MS) {
                let removed = base.remove_tree(&name);
                let removed = removed.and_then(|()| base.remove(&format!("{name}{LEASE}")));
                if let Err(error) = removed.or_else(not_found_is_fine) {
                    tracing::warn!("an old virtual environment could not be removed: {error}");
                }
            }
        }
    }

    /// How many environments there are.
    pub fn n_environments(&self) -> usize {
        let Ok(strength) = self.jail() else { return 0 };
        match strength.own_user {
            false => environments(self.kernel.data(), VENVS).len(),
            true => {
                let base = Dir::open(&std::env::temp_dir());
                base.map_or(0, |it| environments(&it, &self.venvs_for_others()).len())
            }
        }
    }

    /// The directory of environments in the system's temporary directory.
    fn venvs_for_others(&self) -> String {
        let ours = Hash::of(self.kernel.data().path().to_string_lossy().as_bytes()).to_string();
        format!("kenning-venvs-{}", &ours[..16])
    }

    fn install(&self, ready: &Ready<'_>, own_user: bool, base: &Dir, name: &str) -> Result<()> {
        let run_dir = self.make_empty_run_dir(own_user)?;
        // Every Python process imports this by its name.
        run_dir
            .code
            .put("sitecustomize.py", WITHOUT_MODES.as_bytes(), 0o644)?;
        let scratch = run_dir.scratch.path();
        let venv = scratch.join("venv");
        let mut spec = Spec::new(runtime::find(ready.policy, "bash")?.path);
        let install = &ready.policy.install;
        spec.net = net(install.index_url.as_deref(), install.find_links.is_some())?;
        spec.allow_system();
        let code = run_dir.code.path();
        spec.read.push(code.to_owned());
        spec.read.extend(install.find_links.iter().cloned());
        let about = ABOUT_SYSTEM.iter().map(PathBuf::from);
        spec.read.extend(about.filter(|it| it.exists()));
        spec.args = ["-e", "-o", "pipefail", "-c", SCRIPT, "install"]
            .map(Into::into)
            .into();
        spec.args.push(venv.clone().into());
        let wanted = &ready.plan.tool.dependencies;
        spec.args.extend(wanted.iter().map(Into::into));
        let home = scratch.to_string_lossy().into_owned();
        spec.env = vec![
            ("HOME".to_owned(), home.clone()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("PATH".to_owned(), runtime::SYSTEM_DIRS.join(":")),
            ("PYTHONPATH".to_owned(), code.to_string_lossy().into_owned()),
            ("RES_OPTIONS".to_owned(), "use-vc".to_owned()),
            ("TMPDIR".to_owned(), home),
        ];
        let mut set = |name: &str, value: String| spec.env.push((name.to_owned(), value));
        if let Some(url) = &install.index_url {
            set("PIP_INDEX_URL", url.clone());
        }
        if let Some(path) = &install.find_links {
            set("PIP_FIND_LINKS", path.to_string_lossy().into_owned());
            if install.index_url.is_none() {
                set("PIP_NO_INDEX", "1".to_owned());
            }
        }
        spec.cwd = scratch.to_owned();
        spec.scratch = Some(scratch.to_owned());
        let (wall, limits) = (ready.timeout(), &ready.policy.limits);
        spec.limits = Limits {
            wall,
            cpu: wall.saturating_mul(64),
            memory_bytes: (limits.memory_mb << 20).max(MEMORY_BYTES_MIN),
            file_bytes: 1 << 30,
            processes: limits.processes.max(16),
            output_bytes: 16 << 20,
            disk_bytes: DISK_BYTES_MIN.max(limits.disk_mb.saturating_mul(1 << 20)),
            files: FILES_MIN.max(limits.files),
            ..Limits::default()
        };
        let began = Instant::now();
        ready.caller.progress(0.0, None, "installing packages");
        let outcome = kenning_jail::run(&self.launcher(), &spec, &ready.caller.cancelled)?;
        if outcome.exit != Exit::Exited(0) {
            return Err(not_installed(ready, &outcome, began.elapsed()));
        }
        let from = venv.strip_prefix(base.path()).map_err(|cause| {
            Error::internal("the virtual environment cannot be moved after creation").because(cause)
        })?;
        base.rename(&from.to_string_lossy(), name)
    }
}

/// The names of the environments in a folder.
fn environments(base: &Dir, folder: &str) -> Vec<String> {
    let entries = base.list(folder).unwrap_or_default().into_iter();
    entries.filter(|it| it.is_dir).map(|it| it.name).collect()
}

/// When an environment was last used, as far as that was recorded.
fn last_use_ms(base: &Dir, name: &str) -> Option<u64> {
    let bytes = base.read(&format!("{name}{LEASE}"), 64).ok()?;
    String::from_utf8_lossy(&bytes).trim().parse().ok()
}

fn not_found_is_fine(error: Error) -> Result<()> {
    match error.code {
        Code::NotFound => Ok(()),
        _ => Err(error),
    }
}

/// Another Python needs another environment.
fn key(python: &Path, wanted: &[String]) -> String {
    let about = std::fs::metadata(python);
    let made = about.and_then(|it| it.modified()).ok();
    let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    let text = format!("{}\n{made:?}\n{}", python.display(), wanted.join("\n"));
    Hash::of(text.as_bytes()).to_string()[..32].to_owned()
}

/// The index is reached over HTTPS, or at the port of its URL; packages in a directory need no
/// network.
fn net(index_url: Option<&str>, has_directory: bool) -> Result<Net> {
    Ok(match index_url {
        None if has_directory => Net::None,
        None => Net::Tcp(vec![DNS_PORT, HTTPS_PORT]),
        Some(url) => {
            let (_, port) = kenning_egress::host_of(url)?;
            Net::Tcp(vec![DNS_PORT, HTTPS_PORT, port])
        }
    })
}

fn not_installed(ready: &Ready<'_>, outcome: &kenning_jail::Outcome, took: Duration) -> Error {
    let wanted = ready.plan.tool.dependencies.join(", ");
    if outcome.exit == Exit::TimedOut {
        return Error::timeout(format!(
            "installing {wanted} took more than {} seconds",
            took.as_secs()
        ))
        .hint("install them into `.venv` of the project");
    }
    let said = String::from_utf8_lossy(&outcome.stderr);
    let skipped = said.trim().chars().count().saturating_sub(COMPLAINT_CHARS);
    let said: String = said.trim().chars().skip(skipped).collect();
    Error::unavailable(format!("{wanted} could not be installed: {said}")).hint(format!(
        "look at `[install]` in `{POLICY_FILE}`, or install them into `.venv` of the project"
    ))
}

/// A directory of the project with the packages that its tools need.
pub(super) fn project_python(project: &Dir) -> Option<(PathBuf, PathBuf)> {
    let bin = project.path().join(".venv/bin");
    let path = bin.join("python3");
    path.is_file().then_some((path, bin))
}

#[cfg(test)]
mod environments_that_nobody_uses {
    use super::*;
    use crate::{ItemOptions, Kiwi};
    use kenning_core::{FixedClock, SeededRandom, Space};
    use kenning_kami::{Kami, WasmOptions};
    use kenning_kernel::{Forms, Hooks, Kernel, Options, PlainForm};
    use kenning_store::Store;
    use kenning_store_sqlite::Sqlite;
    use std::sync::Arc;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn wing(root: &Path) -> Kiwi {
        let data = Dir::create(root).unwrap();
        let options = Options {
            store: Store::new(Sqlite::open(data.path()).unwrap()),
            data,
            vault: None,
            omi: None,
            project: None,
            space: Space::default(),
            clock: Arc::new(FixedClock::at(NOW_MS)),
            zone: jiff::tz::TimeZone::UTC,
            random: Arc::new(SeededRandom::new(7)),
            environment: Arc::new(|_| None),
            shared: false,
            read_only: false,
            hooks: Hooks {
                forms: Forms {
                    vault: &PlainForm,
                    omi: &PlainForm,
                },
                passages_of: crate::passages_of,
                hold: |_, _| Ok(()),
                merged: |_, _| Ok(()),
            },
        };
        let kernel = Arc::new(Kernel::open(options).unwrap());
        let kami = Arc::new(Kami::new(Arc::clone(&kernel), WasmOptions::default()));
        Kiwi::new(kernel, kami, ItemOptions::default())
    }

    #[test]
    fn are_removed_after_a_month_and_the_oldest_where_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let kiwi = wing(folder.path());
        let data = kiwi.kernel.data();
        let put = |name: &str, hours: Option<u64>| {
            let name = format!("{VENVS}/{name}");
            data.write(&format!("{name}/bin/python3"), b"x").unwrap();
            if let Some(hours) = hours {
                let at = NOW_MS - hours * HOUR_MS;
                let lease = format!("{name}{LEASE}");
                data.write(&lease, at.to_string().as_bytes()).unwrap();
            }
        };
        put("new", Some(0));
        put("used", Some(1));
        put("old", Some(31 * 24));
        put("unknown", None);
        kiwi.forget_old_environments(data, &format!("{VENVS}/new"));
        assert_eq!(environments(data, VENVS), ["new", "used"]);
        assert!(!data.exists(&format!("{VENVS}/old{LEASE}")).unwrap());
        for n in 0..30 {
            put(&format!("many{n:02}"), Some(3 + n));
        }
        kiwi.forget_old_environments(data, &format!("{VENVS}/new"));
        let left = environments(data, VENVS);
        assert_eq!(left.len(), VENVS_MAX);
        assert!(left.contains(&"used".to_owned()) && left.contains(&"many00".to_owned()));
        assert!(!left.contains(&"many29".to_owned()), "{left:?}");
        // Using an environment updates its file.
        kiwi.note_use(data, &format!("{VENVS}/many05"));
        let used = last_use_ms(data, &format!("{VENVS}/many05"));
        assert_eq!(used, Some(NOW_MS));
    }
}
