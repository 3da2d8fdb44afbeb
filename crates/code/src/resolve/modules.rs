//! Files as modules: which file an import means.

use super::file::{Family, File};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Something that has names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Module {
    /// A file.
    File(u32),
    /// A module in a file.
    Inline(super::Sym),
    /// A folder.
    Folder(String),
    /// A package by its name, of whichever files say so.
    Package(String),
}

/// The files of a repository by their paths.
pub(super) struct Tree<'a> {
    by_path: HashMap<&'a str, u32>,
    pub(super) by_folder: BTreeMap<&'a str, Vec<u32>>,
    /// Every folder that has files, somewhere in it.
    folders: HashSet<&'a str>,
    /// Files by the packages that they say they are of.
    pub(super) by_package: HashMap<(Family, &'a str), Vec<u32>>,
    /// Modules of Python by the last part of their names.
    python: HashMap<&'a str, Vec<(u32, &'a str)>>,
    /// Packages by the names of their manifests: folder, entries.
    manifests: Vec<(&'a str, &'a str, u32)>,
    /// Folder and file of each manifest that maps prefixes.
    mapped: Vec<(&'a str, u32)>,
}

pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |it| it.0)
}

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |it| it.1)
}

fn stem(path: &str) -> &str {
    let name = file_name(path);
    name.rsplit_once('.').map_or(name, |it| it.0)
}

pub(super) fn join(folder: &str, more: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
    for part in more.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            it => parts.push(it),
        }
    }
    parts.join("/")
}

/// How many folders two paths have in common.
pub(super) fn nearness(a: &str, b: &str) -> usize {
    let pairs = folder(a).split('/').zip(folder(b).split('/'));
    pairs.take_while(|(a, b)| a == b).count()
}

const SCRIPT_ENDINGS: &[&str] = &[
    ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs",
];

impl<'a> Tree<'a> {
    pub(super) fn new(files: &[File<'a>]) -> Self {
        let mut tree = Self {
            by_path: HashMap::new(),
            by_folder: BTreeMap::new(),
            folders: HashSet::new(),
            by_package: HashMap::new(),
            python: HashMap::new(),
            manifests: Vec::new(),
            mapped: Vec::new(),
        };
        for (f, file) in (0..).zip(files) {
            let path: &'a str = file.path;
            tree.by_path.insert(path, f);
            let at = folder(path);
            tree.by_folder.entry(at).or_default().push(f);
            let mut up = at;
            while tree.folders.insert(up) && !up.is_empty() {
                up = folder(up);
            }
            if let Some(manifest) = &file.facts.manifest {
                if !manifest.name.is_empty() {
                    tree.manifests.push((&manifest.name, at, f));
                }
                if !manifest.paths.is_empty() {
                    tree.mapped.push((at, f));
                }
            }
            let Some(family) = file.family else { continue };
            if !file.facts.package.is_empty() {
                let key = (family, file.facts.package.as_str());
                tree.by_package.entry(key).or_default().push(f);
            }
            if family == Family::Python {
                let name = match stem(path) {
                    "__init__" => file_name(at),
                    it => it,
                };
                tree.python.entry(name).or_default().push((f, path));
            }
        }
        tree.manifests
            .sort_by_key(|it| std::cmp::Reverse(it.0.len()));
        tree.mapped.sort_by_key(|it| std::cmp::Reverse(it.0.len()));
        tree
    }

    pub(super) fn path(&self, path: &str) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    pub(super) fn has_folder(&self, path: &str) -> bool {
        self.folders.contains(path)
    }

    /// A relative or mapped import of TypeScript or JavaScript.
    pub(super) fn script(&self, files: &[File<'a>], from: &str, module: &str) -> Option<u32> {
        if module.starts_with('.') {
            return self.script_file(&join(folder(from), module));
        }
        for (at, f) in &self.mapped {
            let inside =
                at.is_empty() || from.strip_prefix(at).is_some_and(|it| it.starts_with('/'));
            if !inside {
                continue;
            }
            let manifest = files.get(*f as usize)?.facts.manifest.as_ref()?;
            for (prefix, target) in &manifest.paths {
                let rest = match prefix.strip_suffix('*') {
                    Some(prefix) => module.strip_prefix(prefix),
                    None => (module == prefix).then_some(""),
                };
                let Some(rest) = rest else { continue };
                let target = target.strip_suffix('*').unwrap_or(target);
                let path = join(at, &format!("{target}{rest}"));
                if let Some(found) = self.script_file(&path) {
                    return Some(found);
                }
            }
        }
        for (name, at, f) in &self.manifests {
            let manifest = files.get(*f as usize)?.facts.manifest.as_ref()?;
            let rest = module.strip_prefix(name);
            let rest = rest.filter(|it| it.is_empty() || it.starts_with('/'));
            let Some(rest) = rest else { continue };
            if !rest.is_empty() {
                let tries = [join(at, rest), join(&join(at, "src"), rest)];
                if let Some(found) = tries.iter().find_map(|it| self.script_file(it)) {
                    return Some(found);
                }
                continue;
            }
            let entries = manifest.entries.iter().map(|it| {
                let path = join(at, it);
                // What is built is made of what is written.
                let source = path.replace("/dist/", "/src/").replace("/lib/", "/src/");
                self.script_file(&path)
                    .or_else(|| self.script_file(&source))
            });
            let usual = ["src/index", "index", "lib/index", "src/main"];
            let usual = usual.iter().map(|it| self.script_file(&join(at, it)));
            if let Some(found) = entries.chain(usual).flatten().next() {
                return Some(found);
            }
        }
        None
    }

    fn script_file(&self, path: &str) -> Option<u32> {
        if let Some(found) = self.path(path)
            && SCRIPT_ENDINGS.iter().any(|it| path.ends_with(it))
        {
            return Some(found);
        }
        // `./a.js` in TypeScript means `a.ts`.
        let bases = [".js", ".jsx", ".mjs", ".cjs"]
            .iter()
            .filter_map(|it| path.strip_suffix(it));
        for base in bases.chain([path]) {
            for ending in SCRIPT_ENDINGS {
                if let Some(found) = self.path(&format!("{base}{ending}")) {
                    return Some(found);
                }
            }
        }
        SCRIPT_ENDINGS
            .iter()
            .find_map(|it| self.path(&format!("{path}/index{it}")))
    }

    /// A module of Python, as a file or a folder.
    pub(super) fn python(&self, from: &str, module: &str) -> Option<Module> {
        let dots = module.len() - module.trim_start_matches('.').len();
        if dots > 0 {
            let mut at = folder(from);
            for _ in 1..dots {
                at = folder(at);
            }
            let rest = module.trim_start_matches('.').replace('.', "/");
            return self.python_at(&join(at, &rest));
        }
        let path = module.replace('.', "/");
        let last = module.rsplit('.').next().unwrap_or_default();
        let mut found: Vec<(usize, u32, &str)> = Vec::new();
        for (f, full) in self.python.get(last).map_or(&[][..], Vec::as_slice) {
            let dotted = full
                .strip_suffix("/__init__.py")
                .or_else(|| full.strip_suffix(".py"));
            let dotted = dotted.or_else(|| full.strip_suffix(".pyi"));
            let Some(root) = dotted.and_then(|it| it.strip_suffix(path.as_str())) else {
                continue;
            };
            let root = match root {
                "" => "",
                it => match it.strip_suffix('/') {
                    Some(it) => it,
                    None => continue,
                },
            };
            // A part of a package is not found without the package.
            if self.path(&join(root, "__init__.py")).is_some() {
                continue;
            }
            found.push((nearness(full, from), *f, full));
        }
        found.sort_by_key(|it| std::cmp::Reverse(it.0));
        match found.as_slice() {
            [] => None,
            [only] => Some(Module::File(only.1)),
            [first, second, ..] if first.0 > second.0 => Some(Module::File(first.1)),
            _ => None,
        }
        .or_else(|| {
            let tries = [path.clone(), format!("src/{path}")];
            let found = tries.into_iter().find(|it| self.has_folder(it));
            found.map(Module::Folder)
        })
    }

    pub(super) fn python_at(&self, path: &str) -> Option<Module> {
        let tries = [
            format!("{path}/__init__.py"),
            format!("{path}.py"),
            format!("{path}.pyi"),
        ];
        let tries = tries.iter().map(|it| it.trim_start_matches('/'));
        let found = tries.into_iter().find_map(|it| self.path(it));
        let found = found.map(Module::File);
        found.or_else(|| {
            self.has_folder(path)
                .then(|| Module::Folder(path.to_owned()))
        })
    }

    /// A package of Go, by its import path.
    pub(super) fn go(&self, module: &str) -> Option<String> {
        for (name, at, _) in &self.manifests {
            let rest = module.strip_prefix(name);
            if let Some(rest) = rest.filter(|it| it.is_empty() || it.starts_with('/')) {
                let path = join(at, rest);
                return self.has_folder(&path).then_some(path);
            }
        }
        None
    }

    /// The root of a Rust crate, by the crate's name.
    pub(super) fn rust_crate(&self, name: &str) -> Option<u32> {
        let found = self.manifests.iter().find(|it| {
            it.0.len() == name.len()
                && it
                    .0
                    .chars()
                    .zip(name.chars())
                    .all(|(a, b)| a == b || (a == '-' && b == '_'))
        })?;
        ["src/lib.rs", "lib.rs", "src/main.rs"]
            .iter()
            .find_map(|it| self.path(&join(found.1, it)))
    }

    /// The folder of a Rust module's children.
    fn rust_children(path: &str) -> String {
        match file_name(path) {
            "lib.rs" | "main.rs" | "mod.rs" => folder(path).to_owned(),
            _ => join(folder(path), stem(path)),
        }
    }

    /// A child of a Rust module that is a file.
    pub(super) fn rust_child(&self, path: &str, name: &str) -> Option<u32> {
        let at = Self::rust_children(path);
        let found = self.path(&join(&at, &format!("{name}.rs")));
        found
            .or_else(|| self.path(&join(&at, &format!("{name}/mod.rs"))))
            .or_else(|| {
                // A root may be called otherwise: `tests/a.rs` has `tests/b.rs` for a child.
                let is_root = self.rust_parent(path).is_none();
                let beside = join(folder(path), &format!("{name}.rs"));
                is_root.then(|| self.path(&beside)).flatten()
            })
    }

    /// The parent of a Rust module; none of a root.
    pub(super) fn rust_parent(&self, path: &str) -> Option<u32> {
        let name = file_name(path);
        if matches!(name, "lib.rs" | "main.rs" | "build.rs") {
            return None;
        }
        let at = match name {
            "mod.rs" => folder(folder(path)),
            _ => folder(path),
        };
        let tries = ["mod.rs", "lib.rs", "main.rs"];
        let found = tries.iter().find_map(|it| self.path(&join(at, it)));
        found
            .or_else(|| self.path(&format!("{at}.rs")))
            .filter(|it| self.by_path.get(path) != Some(it))
    }

    /// The root of the crate that a file is of.
    pub(super) fn rust_root(&self, files: &[File<'a>], f: u32) -> u32 {
        let mut at = f;
        for _ in 0..32 {
            let Some(file) = files.get(at as usize) else {
                break;
            };
            match self.rust_parent(file.path) {
                Some(up) => at = up,
                None => break,
            }
        }
        at
    }
}
