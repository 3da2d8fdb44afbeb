//! What a program did, in order.

/// One thing that a program did to watched files, or said. Paths are relative to what is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A new, empty file.
    Create(String),
    /// A new directory.
    MakeDir(String),
    /// Bytes at a place in a file.
    Write {
        path: String,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// A file's new length.
    Resize { path: String, length: u64 },
    /// What the file holds has reached the disk.
    SyncFile(String),
    /// The names in the directory have reached the disk; `""` is the watched one itself.
    SyncDir(String),
    /// A file or directory has another name; what had it is gone.
    Rename { from: String, to: String },
    /// A file has one more name.
    Link { from: String, to: String },
    /// A name is gone.
    Remove(String),
    /// What the program wrote to its standard output.
    Said(Vec<u8>),
}
