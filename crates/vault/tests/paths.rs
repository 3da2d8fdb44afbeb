//! Every name of `testing/corpora/paths.txt`, with every operation, in a tree full of ways out.
//!
//! A case passes if its code is right, nothing outside was read or changed, and an operation that was
//! refused changed nothing inside either. The saboteurs at the end resolve the same names as careless
//! servers do; that they are caught shows that the corpus can see.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test are tests as well"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at the tree directly"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use kenning_core::{Code, Error, Result};
use kenning_vault::{Dir, Name};
use rustix::fs::{CWD, FileType, Mode};

const CORPUS: &str = include_str!("../../../testing/corpora/paths.txt");
const LINES_MIN: usize = 650;
const CASES_MIN: usize = 7_000;

/// Stands in every file outside. Whoever returns it has read outside.
const CANARY: &str = "canary-7f3a";

const ALL: &[&str] = &[
    "read",
    "write",
    "private",
    "create",
    "list",
    "remove",
    "rename",
    "rename-to",
    "subdir",
    "mkdir",
    "stat",
    "exists",
    "lock",
];
const LOOK: &[&str] = &["read", "list", "subdir", "stat", "exists"];

struct Line {
    number: usize,
    expected: &'static str,
    operations: Vec<&'static str>,
    name: &'static str,
}

fn corpus() -> Vec<Line> {
    let mut lines = Vec::new();
    for (idx, text) in CORPUS.lines().enumerate() {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let mut fields = text.split('\t');
        let (Some(expected), Some(operations), Some(name), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            panic!("line {}: not three fields", idx + 1);
        };
        let operations = match operations {
            "*" => ALL.to_vec(),
            "look" => LOOK.to_vec(),
            list => list.split(',').collect(),
        };
        for it in &operations {
            assert!(ALL.contains(it), "line {}: no operation `{it}`", idx + 1);
        }
        lines.push(Line {
            number: idx + 1,
            expected,
            operations,
            name,
        });
    }
    lines
}

/// Resolves the escapes that the head of the corpus lists.
fn unescape(text: &str, tree: &Tree) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        let kind = chars.next().expect("an escape has a letter");
        rest = chars.as_str();
        match kind {
            '\\' => out.push('\\'),
            '0' => out.push('\0'),
            'e' => {}
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'x' => {
                let (hex, tail) = rest.split_at(2);
                out.push(char::from(u8::from_str_radix(hex, 16).unwrap()));
                rest = tail;
            }
            'u' => {
                let (hex, tail) = rest[1..].split_once('}').unwrap();
                out.push(char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap());
                rest = tail;
            }
            'p' => {
                let (place, tail) = rest[1..].split_once('}').unwrap();
                let path = match place {
                    "root" => tree.root(),
                    "outside" => tree.outside(),
                    _ => panic!("no place `{place}`"),
                };
                out.push_str(path.to_str().unwrap());
                rest = tail;
            }
            '*' => {
                // The text may hold an escape with braces of its own.
                let (count, tail) = rest[1..].split_once(',').unwrap();
                let mut depth = 1;
                let end = tail.find(|c| {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    depth == 0
                });
                let (repeated, tail) = tail.split_at(end.unwrap());
                out.push_str(&unescape(repeated, tree).repeat(count.parse().unwrap()));
                rest = &tail[1..];
            }
            other => panic!("no escape `{other}`"),
        }
    }
    out + rest
}

/// The root with everything in it that could lead out, and the outside beside it.
struct Tree {
    home: tempfile::TempDir,
    has_device: bool,
    /// Bound in the tree; closed with it.
    _socket: std::os::unix::net::UnixListener,
}

impl Tree {
    fn root(&self) -> PathBuf {
        self.home.path().join("vault")
    }

    fn outside(&self) -> PathBuf {
        self.home.path().join("outside")
    }

    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().canonicalize().unwrap();
        let (root, outside) = (top.join("vault"), top.join("outside"));
        for dir in ["vault/a/c", "vault/été", "outside/dir", "vault-evil"] {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        for file in [
            "note.md",
            "spare.md",
            "a/b.md",
            "a/c/d.md",
            "café.md",
            "été/ﬁ.md",
        ] {
            fs::write(root.join(file), "inside").unwrap();
        }
        for file in [
            "outside/secret.md",
            "outside/dir/inner.md",
            "vault-evil/x",
            "vault.md",
        ] {
            fs::write(top.join(file), CANARY).unwrap();
        }
        fs::write(outside.join("hard.md"), "two names").unwrap();
        fs::hard_link(outside.join("hard.md"), root.join("hard")).unwrap();
        symlink("../vault", outside.join("link-back")).unwrap();

        let link = |name: &str, target: &str| symlink(target, root.join(name)).unwrap();
        let abs = |path: &str| top.join(path).to_str().unwrap().to_owned();
        link("out-file", "../outside/secret.md");
        link("out-file-abs", &abs("outside/secret.md"));
        link("out-sibling", "../vault-evil/x");
        link("out-chain", "out-file");
        link("out-chain3", "a/../out-chain");
        link("out-up-and-back", "../vault/note.md");
        link("out-through-root", "a/../../outside/secret.md");
        link("a/out-file", "../../outside/secret.md");
        link("out-new", "../outside/new.md");
        link("out-new-abs", &abs("outside/new.md"));
        link("out-mixed", "out-dir/dir/inner.md");
        link("out-dir", "../outside");
        link("out-dir-abs", &abs("outside"));
        link("out-dir-chain", "out-dir");
        link("out-parent", "..");
        link("a/out-parent", "../..");
        link("out-root", "/");
        link("out-top", &"../".repeat(20));
        link("out-passwd", &format!("{}etc/passwd", "../".repeat(20)));
        link("out-passwd-abs", "/etc/passwd");
        link("abs-inside", &abs("vault/note.md"));
        link("abs-inside-dir", &abs("vault/a"));
        link("link-proc-root", "/proc/self/root");
        link("link-proc-cwd", "/proc/self/cwd");
        link("link-dev-fd", "/dev/fd");
        link("link-dev-null", "/dev/null");
        link("link-dev-zero", "/dev/zero");
        link("link-etc", "/etc");
        link("link-in", "note.md");
        link("link-in-chain", "link-in");
        link("link-dir", "a");
        link("link-deep", "a/c/..");
        link("link-dots", "a/c/../../a/../note.md");
        link("a/link-up", "..");
        link("a/link-note", "../note.md");
        link("dangling", "nowhere.md");
        link("dangling-deep", "nowhere/deep.md");
        link("dangling-dir", "nowhere");
        link("loop-a", "loop-b");
        link("loop-b", "loop-a");
        link("loop-self", "loop-self");
        link("loop-dir", "loop-dir/x");
        link("a/loop-up-self", "../a/loop-up-self");
        link("self", ".");
        // No circle, but more links than the kernel follows.
        link("loop-long", &format!("{}note.md", "self/".repeat(41)));
        link("link-fifo", "fifo");
        link("link-socket", "socket");
        for name in ["fifo", "a/fifo"] {
            rustix::fs::mknodat(CWD, root.join(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        let socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        // Only the superuser may make a device: here the one that is read without end.
        let zero = rustix::fs::makedev(1, 5);
        let device = root.join("device");
        let device = rustix::fs::mknodat(CWD, device, FileType::CharacterDevice, Mode::RWXU, zero);
        Self {
            home,
            has_device: device.is_ok(),
            _socket: socket,
        }
    }

    /// Everything beside the root, with its content.
    fn outside_now(&self) -> Snapshot {
        snapshot(self.home.path(), Some(&self.root()), |path, metadata| {
            let content = if metadata.is_symlink() {
                let target = fs::read_link(path).unwrap();
                target.into_os_string().into_encoded_bytes()
            } else if metadata.is_file() {
                fs::read(path).unwrap()
            } else {
                Vec::new()
            };
            format!("{:o} {content:?}", metadata.mode())
        })
    }

    /// Everything in the root, by the marks that any change leaves. (A directory's own time changes
    /// when an unfinished write comes and goes, which is no change.)
    fn inside_now(&self) -> Snapshot {
        snapshot(&self.root(), None, |_, it| {
            let time = if it.is_dir() {
                (0, 0)
            } else {
                (it.ctime(), it.ctime_nsec())
            };
            format!("{:o} {} {time:?}", it.mode(), it.ino())
        })
    }
}

impl Tree {
    /// Takes away what a case has made, which is much quicker than a new tree. False if more has
    /// happened than that.
    fn repair(&self, inside: &mut Snapshot) -> bool {
        let now = self.inside_now();
        for path in now.keys().rev().filter(|it| !inside.contains_key(*it)) {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
        let spare = self.root().join("spare.md");
        if !now.contains_key(&spare) {
            fs::write(&spare, "inside").unwrap();
            let mark = self.inside_now().remove(&spare).unwrap();
            inside.insert(spare, mark);
        }
        self.inside_now() == *inside
    }
}

type Snapshot = BTreeMap<PathBuf, String>;

fn snapshot(
    top: &Path,
    without: Option<&Path>,
    mark: impl Fn(&Path, &fs::Metadata) -> String,
) -> Snapshot {
    let mut all = Snapshot::new();
    let mut open = vec![top.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if Some(path.as_path()) == without {
                continue;
            }
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                open.push(path.clone());
            }
            let mark = mark(&path, &metadata);
            all.insert(path, mark);
        }
    }
    all
}

/// Does it, and gives everything that came back as text.
fn run(dir: &Dir, operation: &str, name: &str) -> Result<String> {
    Ok(match operation {
        "read" => String::from_utf8_lossy(&dir.read(name, 1 << 16)?).into_owned(),
        "write" => format!("{:?}", dir.write(name, b"written")?),
        "private" => format!("{:?}", dir.write_private(name, b"written")?),
        "create" => format!("{:?}", dir.create_new_private(name, b"written")?),
        "list" => format!("{:?}", dir.list(name)?),
        "remove" => format!("{:?}", dir.remove(name)?),
        "rename" => format!("{:?}", dir.rename(name, "renamed.md")?),
        "rename-to" => format!("{:?}", dir.rename("spare.md", name)?),
        "subdir" => format!("{:?}", dir.subdir(name)?.list(".")?),
        "mkdir" => format!("{:?}", dir.create_subdir(name)?.list(".")?),
        "stat" => format!("{:?}", dir.metadata(name)?),
        "exists" => format!("{:?}", dir.exists(name)?),
        "lock" => dir.lock(name, Duration::ZERO).map(|_| String::new())?,
        other => panic!("no operation `{other}`"),
    })
}

/// What the corpus expects of this operation. `None` is success.
fn expected(line: &Line, operation: &str, name: &str, root: &Path) -> Option<Code> {
    let makes = matches!(
        operation,
        "write" | "private" | "create" | "mkdir" | "rename-to" | "exists"
    );
    match line.expected {
        "ok" => None,
        "denied" => Some(Code::Denied),
        "invalid" => Some(Code::InvalidInput),
        "missing" => Some(Code::NotFound),
        "literal" => {
            // A lock makes its file, but not the directories on the way.
            let has_parent = || plain(root, name).parent().is_some_and(Path::is_dir);
            let is_made = makes || (operation == "lock" && has_parent());
            (!is_made).then_some(Code::NotFound)
        }
        "file" => matches!(operation, "list" | "subdir" | "mkdir").then_some(Code::InvalidInput),
        "dir" => matches!(
            operation,
            "read" | "write" | "private" | "remove" | "rename-to" | "lock"
        )
        .then_some(Code::InvalidInput),
        "special" => {
            (!matches!(operation, "create" | "stat" | "exists")).then_some(Code::InvalidInput)
        }
        other => panic!("line {}: no expectation `{other}`", line.number),
    }
}

fn plain(root: &Path, name: &str) -> PathBuf {
    root.join(
        Name::parse(name)
            .expect("a literal name is a good one")
            .as_str(),
    )
}

#[test]
fn no_name_leads_outside() {
    let lines = corpus();
    let (mut n_cases, mut n_skipped) = (0, 0);
    let mut failures = Vec::new();
    let mut tree = Tree::new();
    let mut dir = Dir::open(&tree.root()).unwrap();
    let (mut outside, mut inside) = (tree.outside_now(), tree.inside_now());
    for line in &lines {
        for &operation in &line.operations {
            if line.name.starts_with("device") && !tree.has_device {
                n_skipped += 1;
                continue;
            }
            let name = unescape(line.name, &tree);
            let expected = expected(line, operation, &name, &tree.root());
            let res = run(&dir, operation, &name);
            n_cases += 1;

            let mut fail = |what: String| {
                failures.push(format!(
                    "line {}: {operation} {}: {what}",
                    line.number, line.name
                ));
            };
            let code = res.as_ref().err().map(|error| error.code);
            if code != expected {
                fail(format!("{expected:?} expected, but {code:?}: {res:?}"));
            }
            let is_outside_changed = tree.outside_now() != outside;
            if is_outside_changed {
                fail("changed something outside".to_owned());
            }
            match &res {
                Ok(text) if text.contains(CANARY) || text.contains("secret.md") => {
                    fail(format!("told what is outside: {text}"));
                }
                Ok(_) if line.expected == "literal" && operation != "exists" => {
                    let made = plain(&tree.root(), &name);
                    if fs::symlink_metadata(&made).is_err() {
                        fail("made something, but not of this name".to_owned());
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    if let Some(what) = fault_of_message(error, &name, &tree) {
                        fail(format!("{what}: {error}"));
                    }
                }
            }
            let is_inside_changed = !LOOK.contains(&operation) && tree.inside_now() != inside;
            if is_inside_changed && res.is_err() {
                fail("was refused and changed something inside".to_owned());
            }
            if is_outside_changed || (is_inside_changed && !tree.repair(&mut inside)) {
                tree = Tree::new();
                dir = Dir::open(&tree.root()).unwrap();
                (outside, inside) = (tree.outside_now(), tree.inside_now());
            }
        }
    }
    for failure in failures.iter().take(50) {
        println!("{failure}");
    }
    println!("paths: {n_cases} cases, {} failures", failures.len());
    println!("paths: {} lines, {n_skipped} cases skipped", lines.len());
    assert!(failures.is_empty());
    assert!(lines.len() >= LINES_MIN, "the corpus has shrunk");
    assert!(n_cases >= CASES_MIN, "the corpus has shrunk");
}

/// Messages go to callers: they are short, one line, and name no place that the caller did not name.
fn fault_of_message(error: &Error, name: &str, tree: &Tree) -> Option<&'static str> {
    let text = error.to_string();
    let home = tree.home.path().to_str().unwrap();
    if text.len() > 600 || text.contains(char::is_control) {
        Some("a message that is not one short line")
    } else if error.message.ends_with('.') && !error.message.ends_with("..") {
        Some("a message with a period")
    } else if text.contains(home) && !name.contains(home) {
        Some("a message with a path of the machine")
    } else {
        None
    }
}

#[test]
fn a_saboteur_who_joins_paths_is_caught() {
    let escapes = escapes_of(|root, name| Some(root.join(name)));
    println!("saboteur who joins: {escapes} escapes");
    assert!(escapes > 100);
}

#[test]
fn a_saboteur_who_compares_the_beginning_of_strings_is_caught() {
    // As in CVE-2025-53110 and CVE-2025-53109: dots are taken back, then the text is compared.
    let escapes = escapes_of(|root, name| {
        let mut path = PathBuf::new();
        for part in root.join(name).components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                Component::CurDir => {}
                part => path.push(part),
            }
        }
        let is_inside = path.to_str()?.starts_with(root.to_str()?);
        is_inside.then_some(path)
    });
    println!("saboteur who compares strings: {escapes} escapes");
    assert!(escapes > 20);
}

/// How many lines of the corpus lead outside if names are resolved like this. Only looks: what the
/// saboteur would write to may be a real file of this machine.
fn escapes_of(resolve: impl Fn(&Path, &str) -> Option<PathBuf>) -> usize {
    let tree = Tree::new();
    let root = tree.root().canonicalize().unwrap();
    let is_outside = |path: &Path| {
        // What is not there yet would be made in its directory.
        let real = path.canonicalize().or_else(|_| {
            let parent = path.parent().unwrap_or(path);
            parent.canonicalize()
        });
        real.is_ok_and(|it| !it.starts_with(&root))
    };
    let lines = corpus();
    let escapes = lines.iter().filter(|line| {
        let path = resolve(&root, &unescape(line.name, &tree));
        path.is_some_and(|it| is_outside(&it))
    });
    escapes.count()
}
