//! Which files of a repository are documents: those that the KOI servers read, and those whose symbols can be.

use kenning_code::Language;

/// What such files end in.
const EXTENSIONS: &[&str] = &[
    "py", "ts", "tsx", "js", "jsx", "md", "yaml", "yml", "json", "toml", "sql", "sh", "css",
    "html", "cfg", "ini",
];

/// Or are called.
const NAMES: &[&str] = &["Dockerfile", "Makefile", "Procfile"];

/// Folders of what was made and not written. Those that begin with a dot are left out too.
const SKIPPED: &[&str] = &[
    "node_modules",
    "venv",
    "env",
    "__pycache__",
    "site-packages",
    "dist",
    "build",
];

/// The largest file that is read.
pub(super) const FILE_BYTES_MAX: u64 = 500_000;

/// What kind of file it is, if it is a document.
pub(super) fn file_type(path: &str) -> Option<&str> {
    let (folders, name) = match path.rsplit_once('/') {
        Some((folders, name)) => (Some(folders), name),
        None => (None, path),
    };
    let is_skipped = |it: &str| it.starts_with('.') || SKIPPED.contains(&it);
    if folders.is_some_and(|it| it.split('/').any(is_skipped)) {
        return None;
    }
    if NAMES.contains(&name) {
        return Some(name);
    }
    if name == "go.mod" {
        return Some(name);
    }
    let (stem, extension) = name.rsplit_once('.')?;
    let known = EXTENSIONS
        .iter()
        .find(|it| extension.eq_ignore_ascii_case(it));
    let code = Language::of_path(name).map(|_| extension);
    known.copied().or(code).filter(|_| !stem.is_empty())
}

/// A blob of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blob {
    /// Its path in the repository.
    pub(super) path: String,
    /// The name of its content.
    pub(super) object: String,
    pub(super) size_bytes: u64,
    pub(super) file_type: String,
}

/// The documents of a tree, as `git ls-tree -r -z -l` prints it. Links and submodules are none.
/// Beside them stand the paths of those that are too large.
pub(super) fn documents(listing: &[u8]) -> (Vec<Blob>, Vec<String>) {
    let mut all: Vec<Blob> = Vec::new();
    let mut too_large = Vec::new();
    for entry in listing.split(|it| *it == 0) {
        let Some(tab) = entry.iter().position(|it| *it == b'\t') else {
            continue;
        };
        let (about, path) = (&entry[..tab], &entry[tab + 1..]);
        let about = String::from_utf8_lossy(about);
        let mut words = about.split_ascii_whitespace();
        let (mode, kind) = (words.next(), words.next());
        let (object, size) = (words.next(), words.next());
        let is_file = matches!(mode, Some("100644" | "100755" | "100664")) && kind == Some("blob");
        let size = size.and_then(|it| it.parse::<u64>().ok());
        let (Some(object), Some(size), true) = (object, size, is_file) else {
            continue;
        };
        let path = shown(path);
        if let Some(file_type) = file_type(&path) {
            if size > FILE_BYTES_MAX {
                too_large.push(path);
                continue;
            }
            all.push(Blob {
                object: object.to_owned(),
                size_bytes: size,
                file_type: file_type.to_owned(),
                path,
            });
        }
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    // Two names that no text tells apart are one document.
    all.dedup_by(|a, b| a.path == b.path);
    (all, too_large)
}

/// A path as text: bytes that are no UTF-8 as `\xff`.
fn shown(path: &[u8]) -> String {
    let mut text = String::new();
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The contents that `git cat-file --batch` printed, in its order; none for an object that is not there.
pub(super) fn contents(printed: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut all = Vec::new();
    let mut rest = printed;
    while let Some(end) = rest.iter().position(|it| *it == b'\n') {
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let size = head
            .rsplit_once(' ')
            .and_then(|it| it.1.parse::<usize>().ok());
        let Some(content) = size.and_then(|it| rest.get(..it)) else {
            all.push(None);
            continue;
        };
        all.push(Some(content.to_owned()));
        rest = rest.get(content.len() + 1..).unwrap_or_default();
    }
    all
}

/// The text of a file, unless it is none.
pub(super) fn text(bytes: Vec<u8>) -> Option<String> {
    if bytes.contains(&0) {
        return None;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_what_the_koi_servers_read() {
        for (path, expected) in [
            ("README.md", Some("md")),
            ("src/a.PY", Some("py")),
            ("deep/er/x.tsx", Some("tsx")),
            ("Dockerfile", Some("Dockerfile")),
            ("a/Makefile", Some("Makefile")),
            (".eslintrc.json", Some("json")),
            ("src/main.rs", Some("rs")),
            ("go.mod", Some("go.mod")),
            ("src/a.zig", None),
            ("image.png", None),
            (".github/workflows/ci.yml", None),
            ("web/node_modules/x/index.js", None),
            ("build/a.md", None),
            ("src/build.md", Some("md")),
            (".md", None),
            ("makefile", None),
        ] {
            assert_eq!(file_type(path), expected, "{path}");
        }
    }

    #[test]
    fn a_listing_is_read_whatever_its_names_are() {
        let listing =
            b"100644 blob aa      12\ta \"b\"\nc.md\x00120000 blob bb       3\tlink.md\x00\
            160000 commit cc       -\tsub.md\x00100755 blob dd  500001\tbig.md\x00\
            100755 blob ee  500000\tfull.sh\x00100644 blob ff       1\t\xff.md\x00";
        let (found, too_large) = documents(listing);
        assert_eq!(too_large, ["big.md"]);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|it| (it.path.as_str(), it.object.as_str()))
            .collect();
        let expected = [
            ("\\xff.md", "ff"),
            ("a \"b\"\nc.md", "aa"),
            ("full.sh", "ee"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn contents_are_cut_by_their_sizes_and_not_by_their_lines() {
        let printed = b"aa blob 5\na\nb\nc\nbb missing\ncc blob 0\n\n";
        let expected = [Some(b"a\nb\nc".to_vec()), None, Some(Vec::new())];
        assert_eq!(contents(printed), expected);
    }
}
