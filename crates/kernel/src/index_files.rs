//! Stored indexes: one file for each space in the data directory.
//!
//! A process that starts reads the file and adds what came after, instead of everything. The file is
//! derived and may be removed at any time.

use kenning_core::Space;
use kenning_search::Keeper;
use kenning_vault::Dir;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// Larger than the index of some millions of passages.
const BYTES_MAX: u64 = 16 << 30;

/// The directory of the files.
const FOLDER: &str = "index";

pub(crate) struct IndexFiles {
    data: Dir,
    read_only: bool,
    writing: Mutex<Option<JoinHandle<()>>>,
}

impl IndexFiles {
    pub(crate) fn new(data: Dir, read_only: bool) -> Self {
        Self {
            data,
            read_only,
            writing: Mutex::default(),
        }
    }
}

impl Keeper for IndexFiles {
    fn load(&self, space: &Space) -> Option<Vec<u8>> {
        self.data.read(&name(space), BYTES_MAX).ok()
    }

    fn save(&self, space: &Space, snapshot: Vec<u8>) {
        if self.read_only {
            return;
        }
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if writing.as_ref().is_some_and(|it| !it.is_finished()) {
            // The next one will contain this one.
            return;
        }
        let (data, name) = (self.data.clone(), name(space));
        *writing = Some(std::thread::spawn(move || {
            let written = data
                .private_subdir(FOLDER)
                .and_then(|_| data.write_private(&name, &snapshot));
            if let Err(error) = written {
                tracing::warn!("the index is not kept, and will be made again: {error}");
            }
        }));
    }
}

impl Drop for IndexFiles {
    fn drop(&mut self) {
        let writing = self
            .writing
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = writing.take() {
            // Otherwise a command that ends at once would never store anything.
            drop(thread.join());
        }
    }
}

fn name(space: &Space) -> String {
    format!("{FOLDER}/{space}.idx")
}
