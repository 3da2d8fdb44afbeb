//! Whether a directory must be looked at again.
//!
//! A process that looks once compares stamps and is gone. One that looks again is a server: from then on
//! the kernel tells when something changed, and where nothing did not even the stamps are compared.

use kenning_vault::{Dir, Watch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is known of a directory's freshness.
#[derive(Default)]
pub struct Follow {
    looks: u32,
    /// Its folders, and when something was last added to them or taken out.
    folders: (Vec<String>, Vec<i64>),
    watch: Option<(Watch, Arc<AtomicBool>)>,
}

impl Follow {
    /// Counts a look, and says whether something may have changed since the last one.
    pub fn is_stale(&mut self, dir: &Dir) -> bool {
        self.looks += 1;
        let is_watched = |it: &(Watch, _)| !it.0.is_lost();
        // A directory that was removed and made again is another one to the kernel.
        if self.looks >= 2 && !self.watch.as_ref().is_some_and(is_watched) {
            let changed = Arc::new(AtomicBool::new(true));
            let theirs = Arc::clone(&changed);
            let tell = move || theirs.store(true, Ordering::Release);
            self.watch = Some((Watch::start(&[dir], tell), changed));
        }
        match &self.watch {
            Some((watch, changed)) => {
                // The kernel tells a moment later; a folder knows at once what was added to it.
                changed.swap(false, Ordering::AcqRel)
                    || !watch.is_live()
                    || dir.folder_times(&self.folders.0) != self.folders.1
            }
            None => true,
        }
    }

    /// The next look is a real one, whatever the kernel says.
    pub fn touch(&self) {
        if let Some((_, changed)) = &self.watch {
            changed.store(true, Ordering::Release);
        }
    }

    /// Notes the folders, those above them too, before they are looked at.
    pub fn note_folders<'a>(&mut self, dir: &Dir, folders: impl Iterator<Item = &'a str>) {
        let above = folders.flat_map(|it| ancestors(it).chain([it]));
        let mut folders: Vec<String> = above.map(ToOwned::to_owned).collect();
        folders.push(String::new());
        folders.sort_unstable();
        folders.dedup();
        let times = dir.folder_times(&folders);
        let is_folder = |it: &(String, i64)| it.1 != 0;
        self.folders = folders.into_iter().zip(times).filter(is_folder).unzip();
    }
}

/// The folders above a file, the nearest first.
pub fn ancestors(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(name.rsplit_once('/').map(|it| it.0), |it| {
        it.rsplit_once('/').map(|it| it.0)
    })
}
