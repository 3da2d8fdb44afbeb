//! `config.yaml` in the directory of NOW.md, which every domain crate reads.
//!
//! A call looks at the file once and keeps to what it found ([`Kernel::with_wait_limit`] begins a call): it costs
//! one look, and no call works by two versions of the settings. Whatever is no call looks each time.

use crate::Kernel;
use crate::file_node::read_text;
use kenning_core::Result;
use kenning_memory::config::{self, Config, READS_SAMPLED, Reads};
use kenning_vault::Dir;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// The call that this thread is running.
    static CALL: RefCell<Option<OneCall>> = const { RefCell::new(None) };
}

/// What a call has read of the settings.
struct OneCall {
    /// The address of its kernel: a call may open another one.
    kernel: usize,
    config: Option<Arc<Config>>,
}

/// Ends a call, even one that panics, and goes on with the one around it.
struct Ends(Option<OneCall>);

impl Drop for Ends {
    fn drop(&mut self) {
        CALL.with_borrow_mut(|call| *call = self.0.take());
    }
}

impl Kernel {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Runs a call, or a part of one, during which the settings stay as they are first read.
    pub(crate) fn with_one_config<T>(&self, work: impl FnOnce() -> T) -> T {
        let kernel = self.address();
        if CALL.with_borrow(|call| call.as_ref().is_some_and(|it| it.kernel == kernel)) {
            return work();
        }
        let config = None;
        let around = CALL.replace(Some(OneCall { kernel, config }));
        let _ends = Ends(around);
        work()
    }

    /// The settings in effect. A person may change them at any time, and another process may have.
    pub fn memory_config(&self) -> Result<Arc<Config>> {
        let kernel = self.address();
        let known = CALL.with_borrow(|call| {
            let own = call.as_ref().filter(|it| it.kernel == kernel);
            own.and_then(|it| it.config.clone())
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let config = self.config_in_file()?;
        CALL.with_borrow_mut(|call| {
            if let Some(own) = call.as_mut().filter(|it| it.kernel == kernel) {
                own.config = Some(Arc::clone(&config));
            }
        });
        Ok(config)
    }

    /// For a call that has changed the file: it goes on by the new settings.
    pub fn forget_config(&self) {
        CALL.with_borrow_mut(|call| {
            if let Some(call) = call {
                call.config = None;
            }
        });
    }

    fn config_in_file(&self) -> Result<Arc<Config>> {
        if !self.omi.is_named() {
            return Ok(Arc::default());
        }
        match self.omi.existing(self.omi.space())? {
            Some(dir) => {
                // The stamp is taken before the file is read: a write in between is noticed the next
                // time.
                let stamp = dir.stamp(config::FILE).ok();
                let read = || Config::parse(&self.config_text(&dir)?).map(Arc::new);
                match stamp {
                    Some(stamp) => self.chosen.config_at(stamp, read),
                    None => read(),
                }
            }
            None => Ok(Arc::default()),
        }
    }

    /// The file as it is; empty if there is none.
    pub fn config_text(&self, dir: &Dir) -> Result<String> {
        let file = self.omi.file(config::FILE, config::BYTES_MAX);
        Ok(read_text(dir, &file)?.unwrap_or_default())
    }

    /// Whether this read is recorded as an event. A mistake in the file costs no event.
    pub fn records_read(&self) -> bool {
        match self.memory_config().unwrap_or_default().reads {
            Reads::All => true,
            Reads::Off => false,
            Reads::Sampled => {
                let mut bytes = [0; 8];
                self.log.random().fill(&mut bytes);
                u64::from_be_bytes(bytes).is_multiple_of(READS_SAMPLED)
            }
        }
    }
}
