use crate::*;
use kenning_core::Result;
pub(crate) struct FilesIntegrity {
    pub(crate) now_md: bool,
    pub(crate) memory_md: bool,
    pub(crate) faults: Vec<String>,
}
pub use kenning_memory::now::{Now, Update as NowUpdate};
impl Engine {
    pub(crate) fn context_integrity(&self, _: &Caller) -> Result<FilesIntegrity> {
        Ok(FilesIntegrity {
            now_md: true,
            memory_md: true,
            faults: vec![],
        })
    }
    pub(crate) fn omi_config(&self) -> Result<kenning_memory::config::Config> {
        Ok(Default::default())
    }
    pub fn now_read(&self, _: &Caller) -> Result<Option<Now>> {
        Ok(None)
    }
    pub fn now_update(&self, _: &Caller, _: NowUpdate) -> Result<()> {
        Ok(())
    }
    pub fn daily_append(&self, _: &Caller, _: &str) -> Result<String> {
        Ok("memory/2027-01-15.md".into())
    }
}
