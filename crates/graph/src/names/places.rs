//! Where a target may be.

use super::Origin;
use unicode_normalization::UnicodeNormalization;

/// Whether a path ends with this one, at the boundary of a folder.
pub(super) fn ends_with_path(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// A path from a folder, or nothing if it leads above the root.
pub(super) fn joined(base: &str, path: &str) -> Option<String> {
    let mut out: Vec<&str> = Vec::new();
    for segment in base.split('/').chain(path.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                out.pop()?;
            }
            it => out.push(it),
        }
    }
    Some(out.join("/"))
}

/// The places where a target may be, the preferred first; `None` is above the root.
pub(super) fn places<'a>(
    from: &Origin<'a>,
    is_wiki: bool,
    target: &'a str,
) -> impl Iterator<Item = Option<String>> + use<'a> {
    let folder = folder_of(from.path);
    let bases: [Option<&str>; 2] = if target.starts_with('/') {
        [Some(""), Some(from.docs_root).filter(|it| !it.is_empty())]
    } else if (is_wiki || from.is_note) && !is_rooted(target) && !folder.is_empty() {
        [Some(folder), Some("")]
    } else {
        [Some(folder), None]
    };
    let bases = bases.into_iter().flatten();
    bases.map(move |base| joined(base, target))
}

pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |it| it.0)
}

/// Whether a path says where it starts.
pub(super) fn is_rooted(path: &str) -> bool {
    path.starts_with(['/', '\\'])
        || matches!(path, "." | "..")
        || ["./", "../"].iter().any(|it| path.starts_with(it))
}

/// In composed Unicode form: file systems differ in this.
pub(super) fn composed(path: &str) -> String {
    if path.is_ascii() {
        return path.to_owned();
    }
    path.nfc().collect()
}

/// How many folders two paths begin with in common.
pub(super) fn n_shared_folders(a: &str, b: &str) -> usize {
    let pairs = a.bytes().zip(b.bytes());
    let same = pairs.take_while(|pair| pair.0 == pair.1);
    same.filter(|it| it.0 == b'/').count()
}
