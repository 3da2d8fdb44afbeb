//! What a power cut leaves.
//!
//! [`Files`] follows what a program did and keeps apart what has reached the disk and what has not:
//! the bytes of a file are there once the file was synced, its name once the directory was. [`Files::cut`]
//! then decides by chance what becomes of the rest. Every piece may be there, missing, torn at the
//! borders of sectors, older than one that was written after it, or nonsense; bytes that were not being
//! written stay as they were. This is harsher than most file systems, and what portable programs must
//! expect.

use crate::step::Step;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// What a disk writes at once.
const SECTOR: u64 = 512;
/// The watched directory itself.
const ROOT: usize = 0;

/// Files by their path, directories as `None`.
pub type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// Chance: a number below the one given.
pub type Chance<'a> = dyn FnMut(u64) -> u64 + 'a;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    File(usize),
    Dir(usize),
}

type Names = BTreeMap<String, Entry>;

#[derive(Default)]
struct Dir {
    /// As the program sees it.
    now: Names,
    /// As the disk has it.
    kept: Names,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Resize(u64),
}

#[derive(Default)]
struct File {
    kept: Vec<u8>,
    /// With their places in the order of everything.
    pending: Vec<(usize, Change)>,
}

/// Names that change together, atomically.
struct Renaming {
    at: usize,
    edits: Vec<(usize, String, Option<Entry>)>,
}

/// The files of a program, and what of them has reached the disk.
pub struct Files {
    files: Vec<File>,
    dirs: Vec<Dir>,
    pending: Vec<Renaming>,
    n_steps: usize,
}

impl Files {
    /// These files were on the disk before.
    pub fn new(before: &Tree) -> Self {
        let mut files = Self {
            files: Vec::new(),
            dirs: vec![Dir::default()],
            pending: Vec::new(),
            n_steps: 0,
        };
        for (path, content) in before {
            let entry = match content {
                None => files.add_dir(),
                Some(bytes) => {
                    files.files.push(File {
                        kept: bytes.clone(),
                        pending: Vec::new(),
                    });
                    Entry::File(files.files.len() - 1)
                }
            };
            if let Some((dir, name)) = files.place(path) {
                files.dirs[dir].now.insert(name.clone(), entry);
                files.dirs[dir].kept.insert(name, entry);
            }
        }
        files
    }

    /// The program did this.
    pub fn follow(&mut self, step: &Step) {
        self.n_steps += 1;
        match step {
            Step::Create(path) => {
                self.files.push(File::default());
                let entry = Entry::File(self.files.len() - 1);
                self.rename(&[(path, Some(entry))]);
            }
            Step::MakeDir(path) => {
                let entry = self.add_dir();
                self.rename(&[(path, Some(entry))]);
            }
            Step::Write {
                path,
                offset,
                bytes,
            } => {
                let (offset, bytes) = (*offset, bytes.clone());
                self.change(path, Change::Write { offset, bytes });
            }
            Step::Resize { path, length } => self.change(path, Change::Resize(*length)),
            Step::SyncFile(path) => {
                if let Some(Entry::File(file)) = self.find(path) {
                    let file = &mut self.files[file];
                    for (_, change) in std::mem::take(&mut file.pending) {
                        change.apply(&mut file.kept);
                    }
                }
            }
            Step::SyncDir(path) => {
                if let Some(Entry::Dir(dir)) = self.find(path) {
                    self.sync_names(dir);
                }
            }
            Step::Rename { from, to } => {
                if let Some(entry) = self.find(from) {
                    self.rename(&[(from, None), (to, Some(entry))]);
                }
            }
            Step::Link { from, to } => {
                if let Some(entry) = self.find(from) {
                    self.rename(&[(to, Some(entry))]);
                }
            }
            Step::Remove(path) => match self.find(path) {
                Some(Entry::Dir(dir)) if !self.dirs[dir].now.is_empty() => {}
                Some(_) => self.rename(&[(path, None)]),
                None => {}
            },
            Step::Said(_) => {}
        }
    }

    /// The files after a power cut at this moment.
    pub fn cut(&self, chance: &mut Chance<'_>) -> Tree {
        let fate = Fate::draw(self.n_steps, chance);
        let mut names: Vec<Names> = self.dirs.iter().map(|it| it.kept.clone()).collect();
        for renaming in &self.pending {
            if fate.keeps(renaming.at, chance) {
                for edit in &renaming.edits {
                    edit_names(&mut names, edit);
                }
            }
        }
        let mut tree = Tree::new();
        let mut left = vec![(String::new(), ROOT)];
        while let Some((path, dir)) = left.pop() {
            for (name, entry) in &names[dir] {
                let path = join(&path, name);
                match entry {
                    Entry::File(file) => {
                        let bytes = self.files[*file].after(&fate, chance);
                        tree.insert(path, Some(bytes));
                    }
                    Entry::Dir(dir) => {
                        tree.insert(path.clone(), None);
                        left.push((path, *dir));
                    }
                }
            }
        }
        tree
    }

    /// How many changes have not reached the disk.
    pub fn n_pending(&self) -> usize {
        let in_files: usize = self.files.iter().map(|it| it.pending.len()).sum();
        in_files + self.pending.len()
    }

    fn add_dir(&mut self) -> Entry {
        self.dirs.push(Dir::default());
        Entry::Dir(self.dirs.len() - 1)
    }

    /// The directory that a path's last name is in, and that name.
    fn place(&self, path: &str) -> Option<(usize, String)> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.find(parent)? {
            Entry::Dir(dir) if !name.is_empty() => Some((dir, name.to_owned())),
            _ => None,
        }
    }

    fn find(&self, path: &str) -> Option<Entry> {
        let mut at = Entry::Dir(ROOT);
        for name in path.split('/').filter(|it| !it.is_empty()) {
            let Entry::Dir(dir) = at else { return None };
            at = *self.dirs[dir].now.get(name)?;
        }
        Some(at)
    }

    fn change(&mut self, path: &str, change: Change) {
        if let Some(Entry::File(file)) = self.find(path) {
            self.files[file].pending.push((self.n_steps, change));
        }
    }

    fn rename(&mut self, edits: &[(&String, Option<Entry>)]) {
        let places = edits.iter().map(|(path, entry)| {
            let (dir, name) = self.place(path)?;
            Some((dir, name, *entry))
        });
        let Some(edits) = places.collect::<Option<Vec<_>>>() else {
            return;
        };
        for (dir, name, entry) in &edits {
            edit_one(&mut self.dirs[*dir].now, name, *entry);
        }
        let at = self.n_steps;
        self.pending.push(Renaming { at, edits });
    }

    fn sync_names(&mut self, dir: usize) {
        let (done, left) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|it| it.edits.iter().any(|edit| edit.0 == dir));
        self.pending = left;
        let done: Vec<Renaming> = done;
        for (dir, name, entry) in done.into_iter().flat_map(|it| it.edits) {
            edit_one(&mut self.dirs[dir].kept, &name, entry);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}/{name}")
    }
}

fn edit_one(names: &mut Names, name: &str, entry: Option<Entry>) {
    match entry {
        Some(entry) => names.insert(name.to_owned(), entry),
        None => names.remove(name),
    };
}

fn edit_names(names: &mut [Names], (dir, name, entry): &(usize, String, Option<Entry>)) {
    edit_one(&mut names[*dir], name, *entry);
}

/// What happens to data that has not reached the disk.
enum Fate {
    Nothing,
    Everything,
    /// What was done before this step; the step itself is torn.
    Before(usize),
    /// Each piece by chance, in order.
    Some,
    /// Each piece by chance, in any order, and some of them nonsense.
    Chaos,
}

impl Fate {
    fn draw(n_steps: usize, chance: &mut Chance<'_>) -> Self {
        match chance(8) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2 | 3 => Self::Before(n_steps.saturating_sub(chance(16) as usize)),
            4 | 5 => Self::Some,
            _ => Self::Chaos,
        }
    }

    fn keeps(&self, at: usize, chance: &mut Chance<'_>) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Before(step) => at < *step,
            Self::Some | Self::Chaos => chance(2) == 0,
        }
    }
}

impl File {
    /// What it holds after the cut.
    fn after(&self, fate: &Fate, chance: &mut Chance<'_>) -> Vec<u8> {
        let mut bytes = self.kept.clone();
        let mut pieces: Vec<Change> = Vec::new();
        for (at, change) in &self.pending {
            match fate {
                Fate::Nothing => {}
                Fate::Everything => pieces.push(change.clone()),
                Fate::Before(step) if at < step => pieces.push(change.clone()),
                Fate::Before(step) if at == step => {
                    let torn = change.sectors();
                    let n = chance(torn.len() as u64 + 1) as usize;
                    pieces.extend(torn.into_iter().take(n));
                }
                Fate::Before(_) => {}
                Fate::Some | Fate::Chaos => {
                    let sectors = change.sectors().into_iter();
                    pieces.extend(sectors.filter(|_| chance(2) == 0));
                }
            }
        }
        if matches!(fate, Fate::Chaos) {
            for n in (1..pieces.len()).rev() {
                pieces.swap(n, chance(n as u64 + 1) as usize);
            }
            for piece in &mut pieces {
                if chance(8) == 0 {
                    piece.spoil(chance);
                }
            }
        }
        for piece in pieces {
            piece.apply(&mut bytes);
        }
        bytes
    }
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Resize(length) => to.resize(*length as usize, 0),
            Self::Write { offset, bytes } => {
                let (from, end) = (*offset as usize, *offset as usize + bytes.len());
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[from..end].copy_from_slice(bytes);
            }
        }
    }

    /// The pieces that reach the disk one by one.
    fn sectors(&self) -> Vec<Self> {
        let Self::Write { offset, bytes } = self else {
            return vec![self.clone()];
        };
        let mut out = Vec::new();
        let mut done = 0_usize;
        while done < bytes.len() {
            let at = offset + done as u64;
            let length = ((SECTOR - at % SECTOR) as usize).min(bytes.len() - done);
            out.push(Self::Write {
                offset: at,
                bytes: bytes[done..done + length].to_vec(),
            });
            done += length;
        }
        out
    }

    fn spoil(&mut self, chance: &mut Chance<'_>) {
        if let Self::Write { bytes, .. } = self {
            bytes.iter_mut().for_each(|it| *it = chance(256) as u8);
        }
    }
}

/// Creates these files in an empty directory, readable by their owner only.
pub fn write(tree: &Tree, into: &Path) -> io::Result<()> {
    for (path, content) in tree {
        let path = into.join(path);
        match content {
            None => std::fs::DirBuilder::new().mode(0o700).create(path)?,
            Some(bytes) => {
                let mut file = std::fs::OpenOptions::new();
                let mut file = file.write(true).create_new(true).mode(0o600).open(path)?;
                file.write_all(bytes)?;
            }
        }
    }
    Ok(())
}

/// The files that lie in a directory.
pub fn read(from: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut left = vec![String::new()];
    while let Some(path) = left.pop() {
        for entry in std::fs::read_dir(from.join(&path))? {
            let entry = entry?;
            let path = join(&path, &entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                tree.insert(path.clone(), None);
                left.push(path);
            } else if kind.is_file() {
                tree.insert(path, Some(std::fs::read(entry.path())?));
            }
        }
    }
    Ok(tree)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    fn write(path: &str, offset: u64, bytes: &[u8]) -> Step {
        Step::Write {
            path: path.to_owned(),
            offset,
            bytes: bytes.to_vec(),
        }
    }

    fn rename(from: &str, to: &str) -> Step {
        Step::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
        }
    }

    /// Every file that is there after any of many cuts, by its content; a dash where it is not there.
    fn seen(steps: &[Step], path: &str) -> Vec<String> {
        let before = Tree::from([("a".to_owned(), Some(b"old".to_vec()))]);
        let mut files = Files::new(&before);
        steps.iter().for_each(|it| files.follow(it));
        let mut state = 1_u64;
        let mut chance = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut out: Vec<String> = (0..400)
            .map(|_| match files.cut(&mut chance).get(path) {
                Some(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
                _ => "-".to_owned(),
            })
            // Nonsense is left out.
            .filter(|word| word.bytes().all(|it| b"-oldnewx\0".contains(&it)))
            .collect();
        out.sort();
        out.dedup();
        out
    }

    #[test]
    fn a_careful_replacement_is_old_or_new_and_then_new() {
        let mut steps = vec![
            Step::Create("t".to_owned()),
            write("t", 0, b"new"),
            Step::SyncFile("t".to_owned()),
            rename("t", "a"),
        ];
        assert_eq!(seen(&steps, "a"), ["new", "old"]);
        steps.push(Step::SyncDir(String::new()));
        assert_eq!(seen(&steps, "a"), ["new"]);
        assert_eq!(seen(&steps, "t"), ["-"]);
    }

    #[test]
    fn without_the_sync_of_the_file_the_name_may_have_nothing() {
        let steps = [
            Step::Create("t".to_owned()),
            write("t", 0, b"new"),
            rename("t", "a"),
            Step::SyncDir(String::new()),
        ];
        assert_eq!(seen(&steps, "a"), ["", "new"]);
    }

    #[test]
    fn without_the_sync_of_the_directory_the_file_may_be_old_or_gone() {
        let steps = [
            Step::MakeDir("d".to_owned()),
            Step::Create("d/b".to_owned()),
            write("d/b", 0, b"new"),
            Step::SyncFile("d/b".to_owned()),
            Step::SyncDir("d".to_owned()),
        ];
        assert_eq!(seen(&steps, "d/b"), ["-", "new"]);
    }

    #[test]
    fn a_long_write_is_torn_and_what_nobody_wrote_stays() {
        let steps = [write("a", 1, &[b'x'; 1_500])];
        let all = seen(&steps, "a");
        assert!(all.len() > 4, "{}", all.len());
        assert!(all.iter().all(|it| it.starts_with('o')));
    }

    #[test]
    fn what_was_written_here_is_read_here() {
        let home = tempfile::tempdir().unwrap();
        let tree = Tree::from([
            ("d".to_owned(), None),
            ("d/b".to_owned(), Some(b"1".to_vec())),
        ]);
        super::write(&tree, home.path()).unwrap();
        assert_eq!(read(home.path()).unwrap(), tree);
    }
}
