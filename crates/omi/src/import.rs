//! What an import asks of memories: NOW.md and daily logs are files, and foundational memories may have to wait.

use crate::Omi;
use kenning_audit::Draft;
use kenning_core::Result;
use kenning_kernel::{Caller, ImportedFiles};
use serde_json::Value;

impl ImportedFiles for Omi {
    fn must_wait(&self, caller: &Caller, draft: &Draft) -> Result<bool> {
        self.import_needs_second_key(caller, draft)
    }

    fn hold(&self, caller: &Caller, lines: Vec<Value>) -> Result<String> {
        self.propose_import(caller, lines)
    }

    fn file_of_key<'a>(&self, key: &'a str) -> Option<&'a str> {
        self.imported_file(key)
    }

    fn is_there(&self, caller: &Caller, name: &str) -> Result<bool> {
        self.has_imported_file(caller, name)
    }

    fn add(&self, caller: &Caller, name: &str, text: &str) -> Result<()> {
        self.add_imported_file(caller, name, text)
    }

    fn write(&self, caller: &Caller, name: &str, text: &str) -> Result<()> {
        self.write_imported_file(caller, name, text)
    }
}
