//! Follows the trees: after each burst of changes the graph is updated from the files.

use super::Generate;
use crate::Kg;
use kenning_core::Result;
use kenning_kernel::worker::contained;
use kenning_kernel::worker::{Complaint, Signal, Woken, Worker};
use kenning_kernel::{Caller, Principal};
use kenning_vault::Watch;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How to watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The folder of documents, relative to the project.
    pub docs_path: String,
    /// How long it must be quiet before a run …
    pub quiet: Duration,
    /// … but at most this long after the first change.
    pub patience: Duration,
    /// How often the tree is checked where the operating system does not notify.
    pub poll: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            docs_path: "docs".to_owned(),
            quiet: Duration::from_millis(150),
            patience: Duration::from_secs(2),
            poll: Duration::from_secs(5),
        }
    }
}

/// How often it is checked that the watched folders still have their names …
const LOST_LOOK: Duration = Duration::from_secs(30);

/// … and how often the tree is checked without a notification.
const SURE_LOOK: Duration = Duration::from_secs(3_600);

/// Called after each run.
type Told = dyn Fn(&Result<super::Generated>) + Send;

/// Follows the trees until it is dropped, then waits for the run in progress.
pub struct GraphWatch(Worker);

impl GraphWatch {
    /// Generates once, then after each change. `told` is called after every run that did something.
    pub fn start(
        engine: &Arc<Kg>,
        principal: Principal,
        options: WatchOptions,
        told: impl Fn(&Result<super::Generated>) + Send + 'static,
    ) -> Result<Self> {
        let signal = Arc::new(Signal::default());
        let watch = watched(engine, &principal, &options, &signal)?;
        if let Some(fault) = watch.fault() {
            tracing::warn!(
                "the tree is checked every {:?}, because it cannot be watched: {fault}",
                options.poll
            );
        }
        let mut following = Following {
            engine: Arc::downgrade(engine),
            principal,
            options,
            watch,
            wake: Arc::clone(&signal),
            told: Box::new(told),
        };
        Ok(Self(Worker::start("graph", signal, move |signal| {
            following.run(signal);
        })))
    }
}

impl Drop for GraphWatch {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Starts to watch the folder of documents, and the vault.
fn watched(
    engine: &Kg,
    principal: &Principal,
    options: &WatchOptions,
    wake: &Arc<Signal>,
) -> Result<Watch> {
    let space = &principal.space;
    let project = engine.kernel.project().open(space)?;
    let vault = (engine.kernel.vault().is_named() && engine.kernel.vault().space() == space)
        .then(|| engine.kernel.vault().open(space))
        .transpose()?;
    let docs = if matches!(options.docs_path.as_str(), "" | ".") {
        project
    } else {
        project.subdir(&options.docs_path)?
    };
    let trees: Vec<_> = [Some(&docs), vault.as_ref()]
        .into_iter()
        .flatten()
        .collect();
    let wake = Arc::clone(wake);
    Ok(Watch::start(&trees, move || wake.wake()))
}

struct Following {
    engine: Weak<Kg>,
    principal: Principal,
    options: WatchOptions,
    watch: Watch,
    wake: Arc<Signal>,
    told: Box<Told>,
}

impl Following {
    fn run(&mut self, signal: &Signal) {
        let mut is_settled = false;
        let mut is_first = true;
        let mut looked = Instant::now();
        let mut complaint = Complaint::default();
        let mut seen = signal.n_wakes();
        loop {
            let is_back = self.watch.is_lost() && self.watch_again();
            let wait = match (is_first || is_back, is_settled, self.watch.is_live()) {
                (true, ..) => Duration::ZERO,
                (_, false, true) => self.options.patience,
                (.., false) => self.options.poll,
                (_, true, true) => LOST_LOOK,
            };
            match signal.next(&mut seen, wait) {
                Woken::ToStop => return,
                Woken::ByOthers => {
                    is_settled = false;
                    if !rest(signal, &mut seen, &self.options) {
                        return;
                    }
                    if self.watch.is_lost() {
                        self.watch_again();
                    }
                }
                Woken::ByTime => {
                    let is_quiet = is_settled && self.watch.is_live() && !is_back;
                    if is_quiet && looked.elapsed() < SURE_LOOK {
                        continue;
                    }
                    is_settled = !is_first && !is_back;
                }
            }
            let Some(engine) = self.engine.upgrade() else {
                return;
            };
            let done = contained(|| self.generate(&engine, is_first));
            is_first = false;
            looked = Instant::now();
            match &done {
                Ok(it) => {
                    complaint.clear();
                    let n_nodes = it.nodes_added + it.nodes_updated + it.nodes_removed;
                    if n_nodes + it.edges_created > 0 {
                        (self.told)(&done);
                    }
                }
                Err(error) => {
                    if complaint.say("the graph does not follow its files", error) {
                        (self.told)(&done);
                    }
                }
            }
        }
    }

    fn generate(&self, engine: &Kg, is_first: bool) -> Result<super::Generated> {
        let mut caller = Caller::new(self.principal.clone());
        caller.deadline = Instant::now() + Duration::from_secs(24 * 3_600);
        let what = Generate {
            docs_path: self.options.docs_path.clone(),
            incremental: !is_first,
            force: false,
        };
        engine.generate_graph(&caller, &what)
    }

    /// Watches whatever has the folder's name now; false while nothing has.
    fn watch_again(&mut self) -> bool {
        let Some(engine) = self.engine.upgrade() else {
            return false;
        };
        match watched(&engine, &self.principal, &self.options, &self.wake) {
            Ok(watch) => {
                self.watch = watch;
                true
            }
            // The next check finds out.
            Err(_) => false,
        }
    }
}

/// Waits until it is quiet; false if there is nothing to wait for any more.
fn rest(signal: &Signal, seen: &mut u64, options: &WatchOptions) -> bool {
    let until = Instant::now() + options.patience;
    loop {
        match signal.next(seen, options.quiet) {
            Woken::ToStop => return false,
            Woken::ByOthers if Instant::now() < until => {}
            Woken::ByOthers | Woken::ByTime => return true,
        }
    }
}
