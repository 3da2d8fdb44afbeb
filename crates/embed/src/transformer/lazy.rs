//! A model that loads in the background on its first use.
//!
//! Reading weights takes seconds, and most processes never embed anything. So nothing is read before
//! the first use; until it is loaded, calls fail as unavailable, and search uses full text.

use super::{Folder, Transformer};
use crate::{Embedder, Model};
use kenning_core::{Code, Error, Result};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A transformer that may not be loaded yet.
pub struct Lazy {
    folder: Folder,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone)]
enum State {
    Asleep,
    Loading,
    Ready(Arc<Transformer>),
    /// Permanent: the files do not change. Every use returns this error.
    Failed(Failure),
}

/// An error that can be returned more than once.
#[derive(Clone)]
struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
}

impl Lazy {
    /// The model of this folder, not loaded.
    pub fn new(folder: Folder) -> Self {
        let shared = Shared {
            state: Mutex::new(State::Asleep),
            changed: Condvar::new(),
        };
        Self {
            folder,
            shared: Arc::new(shared),
        }
    }

    /// Begins to load, unless it already did.
    pub fn start(&self) {
        let mut state = self.shared.state();
        if !matches!(*state, State::Asleep) {
            return;
        }
        let (folder, shared) = (self.folder.clone(), self.shared.clone());
        let thread = std::thread::Builder::new().name("embed-load".to_owned());
        let started = thread.spawn(move || {
            // A panic on a malformed file must not leave callers waiting forever.
            let loaded = std::panic::catch_unwind(AssertUnwindSafe(|| Transformer::load(&folder)));
            let loaded = loaded.unwrap_or_else(|_| Err(Error::internal("the model did not load")));
            shared.put(match loaded {
                Ok(transformer) => State::Ready(Arc::new(transformer)),
                Err(err) => State::Failed(err.into()),
            });
        });
        *state = match started {
            Ok(_) => State::Loading,
            Err(err) => {
                let error =
                    Error::unavailable("the thread that loads the model could not be started")
                        .because(err);
                State::Failed(error.into())
            }
        };
    }

    /// Loads, and waits until it is done.
    pub fn wait(&self) -> Result<()> {
        self.start();
        let loading = |state: &mut State| matches!(state, State::Loading);
        let state = self.shared.changed.wait_while(self.shared.state(), loading);
        drop(state.unwrap_or_else(PoisonError::into_inner));
        self.loaded().map(|_| ())
    }

    fn loaded(&self) -> Result<Arc<Transformer>> {
        let state = self.shared.state().clone();
        match state {
            State::Ready(transformer) => Ok(transformer),
            State::Failed(failure) => Err(failure.into_error()),
            State::Asleep | State::Loading => {
                self.start();
                Err(Error::unavailable("the embedding model is loading")
                    .hint("try again in a moment"))
            }
        }
    }
}

impl Embedder for Lazy {
    fn model(&self) -> &Model {
        self.folder.model()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        self.loaded()?.embed(texts)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        self.loaded()?.embed_query(text)
    }
}

impl fmt::Debug for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Lazy");
        shown.field("model", self.model()).finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, state: State) {
        *self.state() = state;
        self.changed.notify_all();
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Error {
            code,
            message,
            hint,
            ..
        } = error;
        Self {
            code,
            message,
            hint,
        }
    }
}

impl Failure {
    /// Not a `From`: a second way into [`Error`] would leave every `?` in other crates ambiguous.
    fn into_error(self) -> Error {
        let error = Error::new(self.code, self.message);
        match self.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
