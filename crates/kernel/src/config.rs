//! `config.yaml` in the directory of NOW.md, which every domain crate reads.

use crate::Kernel;
use crate::files::read_text;
use kenning_core::Result;
use kenning_memory::config::{self, Config, READS_SAMPLED, Reads};
use kenning_vault::Dir;

impl Kernel {
    /// The settings in effect. A person may change them at any time, and another process may have.
    pub fn memory_config(&self) -> Result<Config> {
        if !self.omi.is_named() {
            return Ok(Config::default());
        }
        match self.omi.existing(self.omi.space())? {
            Some(dir) => {
                // The stamp is taken before the file is read: a write in between is noticed the next
                // time.
                let stamp = dir.stamp(config::FILE).ok();
                let read = || Config::parse(&self.config_text(&dir)?);
                match stamp {
                    Some(stamp) => self.chosen.config_at(stamp, read),
                    None => read(),
                }
            }
            None => Ok(Config::default()),
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
