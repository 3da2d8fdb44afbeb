//! What the kernel must know about NOW.md, its checkpoints and the daily logs.

use super::{Place, checksums, is_daily_log, passages_of_log};
use kenning_core::Result;
use kenning_kernel::{FileForm, FileNode, PlainFile, ReadFile};
use kenning_memory::daily;
use kenning_search::passages;
use kenning_vault::Dir;
use serde_json::{Map, Value};

/// For the files of the context. They share checksums, so they share one lock.
#[derive(Debug)]
pub struct ContextForm;

impl FileForm for ContextForm {
    fn shares_lock(&self) -> bool {
        true
    }

    fn read(
        &self,
        file: &FileNode,
        content: &str,
        mut props: Map<String, Value>,
    ) -> Box<dyn ReadFile> {
        let (place, name) = Place::split(&file.name);
        if !place.project.is_empty() {
            // So that search shows it to nobody else.
            props.insert("project".to_owned(), place.project.into());
        }
        // A checkpoint of NOW.md says nothing new, so search does not find it.
        let is_searchable = !name.starts_with("NOW-");
        let pieces = is_searchable.then(|| {
            if is_daily_log(&file.key) {
                passages_of_log(content)
            } else {
                passages(file.title(), content)
            }
        });
        Box::new(PlainFile::new(file, content, props, pieces))
    }

    fn join(&self, file: &FileNode, one: &str, other: &str) -> Option<String> {
        is_daily_log(&file.key).then(|| daily::join(one, other))
    }

    fn written(&self, dir: &Dir, file: &FileNode, content: &str) -> Result<()> {
        checksums::record(dir, file, content)
    }
}
