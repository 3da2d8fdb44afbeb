//! Tells when something in a tree may have changed.
//!
//! It tells which files, as far as the kernel does: the kernel can drop events of a burst, and then
//! ([`Change::Anything`]) the receiver must scan the whole tree. Where the kernel cannot watch so many
//! folders, [`Watch::is_live`] says so, and
//! the owner looks from time to time.
//!
//! A kernel watches directories and not names. When a tree's root is removed and made again, as a checkout
//! may do, nothing more is told of it; so the directory above is watched too, and [`Watch::is_lost`] says
//! that another one has the name now: the owner starts anew.

use crate::dir::Dir;
use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Watches trees until it is dropped.
pub struct Watch {
    // Dropping it ends the watching.
    _watcher: Option<RecommendedWatcher>,
    live: Arc<AtomicBool>,
    fault: Option<String>,
    /// Held open, so that no other directory can get the same number.
    trees: Vec<Dir>,
}

/// What may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The file or folder of this name beneath its root.
    Named {
        /// The name.
        name: &'a str,
        /// Whether it was there before and still is: only what is in it is another.
        is_content: bool,
    },
    /// Whatever is in the trees.
    Anything,
}

impl Watch {
    /// Calls `changed`, from a thread of its own, after every event in these trees. It must not wait.
    pub fn start(trees: &[&Dir], changed: impl Fn() + Send + Sync + 'static) -> Self {
        Self::of(trees, move |_, _| changed())
    }

    /// As [`Watch::start`], and says what changed in the tree. Hidden files are not told of, but for those
    /// that say which files are left out of a walk.
    pub fn start_telling(tree: &Dir, told: impl Fn(Change<'_>) + Send + Sync + 'static) -> Self {
        Self::of(&[tree], move |event, roots| match event {
            Some(event) => tell(event, roots, &told),
            None => told(Change::Anything),
        })
    }

    fn of(
        trees: &[&Dir],
        changed: impl Fn(Option<&Event>, &[PathBuf]) + Send + Sync + 'static,
    ) -> Self {
        let live = Arc::new(AtomicBool::new(true));
        let theirs = Arc::clone(&live);
        let trees: Vec<Dir> = trees.iter().map(|it| (*it).clone()).collect();
        let roots: Vec<PathBuf> = trees.iter().map(|it| it.path().to_owned()).collect();
        let own = roots.clone();
        let watcher =
            notify::recommended_watcher(move |event: notify::Result<Event>| match event {
                Ok(event) if is_a_look(&event) || is_beside(&event, &own) => {}
                Ok(event) => changed(Some(&event), &own),
                Err(_) => {
                    // A folder that could not be added: from now on looking is the only way.
                    theirs.store(false, Ordering::Relaxed);
                    changed(None, &own);
                }
            });
        let watched = watcher.and_then(|mut watcher| {
            for root in &roots {
                watcher.watch(root, RecursiveMode::Recursive)?;
            }
            for root in &roots {
                let above = root.parent();
                let above = above.filter(|it| !roots.iter().any(|root| it.starts_with(root)));
                if let Some(above) = above {
                    // One that may not be read is not watched: then only a look finds out.
                    drop(watcher.watch(above, RecursiveMode::NonRecursive));
                }
            }
            Ok(watcher)
        });
        match watched {
            Ok(watcher) => Self {
                _watcher: Some(watcher),
                live,
                fault: None,
                trees,
            },
            Err(error) => Self {
                _watcher: None,
                live: Arc::new(AtomicBool::new(false)),
                fault: Some(error.to_string()),
                trees,
            },
        }
    }

    /// Whether every event will be told.
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed) && !self.is_lost()
    }

    /// Whether a tree's path leads to another directory than the one that is watched, or to none.
    pub fn is_lost(&self) -> bool {
        !self.trees.iter().all(Dir::is_at_its_path)
    }

    /// Why not.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

/// Whether an event is of the directory above a tree, and not of the tree.
fn is_beside(event: &Event, roots: &[PathBuf]) -> bool {
    let is_ours = |path: &PathBuf| roots.iter().any(|root| path.starts_with(root));
    !event.need_rescan() && !event.paths.is_empty() && !event.paths.iter().any(is_ours)
}

/// Reading a file is an event too.
fn is_a_look(event: &Event) -> bool {
    matches!(event.kind, EventKind::Access(_)) && !event.need_rescan()
}

/// Files that say which others are left out of a walk.
const RULES: [&str; 2] = [".gitignore", ".ignore"];

fn tell(event: &Event, roots: &[PathBuf], told: &dyn Fn(Change<'_>)) {
    if event.need_rescan() || event.paths.is_empty() {
        told(Change::Anything);
    }
    let is_content = matches!(
        event.kind,
        EventKind::Modify(ModifyKind::Any | ModifyKind::Data(_) | ModifyKind::Metadata(_))
    );
    for path in &event.paths {
        let Some(beneath) = roots.iter().find_map(|root| path.strip_prefix(root).ok()) else {
            continue;
        };
        let Some(name) = beneath.to_str().filter(|it| !it.is_empty()) else {
            told(Change::Anything);
            continue;
        };
        let last = name.rsplit('/').next().unwrap_or(name);
        if RULES.contains(&last) {
            told(Change::Anything);
        } else if !name.split('/').any(|it| it.starts_with('.')) {
            told(Change::Named { name, is_content });
        }
    }
}
