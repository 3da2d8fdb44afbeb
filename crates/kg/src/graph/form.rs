//! What the kernel must know about the files of the vault.

use super::{ReadNote, VAULT_CARDS, is_note};
use kenning_audit::Tx;
use kenning_core::Result;
use kenning_kernel::{FileForm, FileNode, PlainFile, ReadFile};
use kenning_search::passages;
use kenning_store::{Node, Passage};
use serde_json::{Map, Value};

/// For notes, which have cards; for other files of the vault the text is all.
#[derive(Debug)]
pub struct VaultForm;

impl FileForm for VaultForm {
    fn read(&self, file: &FileNode, content: &str, props: Map<String, Value>) -> Box<dyn ReadFile> {
        if is_note(&file.name) {
            return Box::new(ReadNote::of(&file.key, content));
        }
        let pieces = passages(file.title(), content);
        Box::new(PlainFile::new(file, content, props, Some(pieces)))
    }

    fn merged(&self, tx: &mut Tx<'_>, file: &FileNode, node: &Node) -> Result<()> {
        if !is_note(&file.name) {
            return Ok(());
        }
        ReadNote::of(&file.key, &node.body).put_card(tx, node)
    }

    fn forget(&self, tx: &mut Tx<'_>, file: &FileNode) -> Result<()> {
        VAULT_CARDS.unset(tx, &file.key)
    }
}

impl ReadFile for ReadNote {
    fn put(self: Box<Self>, tx: &mut Tx<'_>) -> Result<()> {
        (*self).put(tx).map(drop)
    }

    fn texts(&self) -> Option<(&str, &[Passage])> {
        Some(self.title_and_passages())
    }
}
