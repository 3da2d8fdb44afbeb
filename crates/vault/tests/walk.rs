//! Looking for single files finds what walking the whole tree finds.

#![expect(
    clippy::disallowed_methods,
    reason = "the tree is made by others, not through the vault"
)]

use kenning_vault::Dir;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

const FILES: [&str; 9] = [
    "a.md",
    "b.txt",
    ".hidden.md",
    "x/c.md",
    "x/.secret/d.md",
    "skipped/e.md",
    "x/y/f.md",
    "x/y/draft.md",
    "x/y/g.MD",
];

fn is_markdown(name: &str) -> bool {
    name.to_lowercase().ends_with(".md")
}

#[test]
fn single_names_are_found_where_a_walk_finds_them() {
    for rules in [None, Some("draft.md\n")] {
        let root = tempfile::tempdir().unwrap();
        for name in FILES {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        symlink("a.md", root.path().join("link.md")).unwrap();
        symlink("x", root.path().join("z")).unwrap();
        if let Some(rules) = rules {
            fs::write(root.path().join("x/.gitignore"), rules).unwrap();
        }
        let dir = Dir::open(root.path()).unwrap();
        let walked = dir.walk("", &["skipped"], &is_markdown).unwrap();
        let others = ["link.md", "z/c.md", "gone.md", "x/gone/h.md"];
        let names = FILES.iter().chain(&others).map(|it| (*it).to_owned());
        let names: BTreeSet<String> = names.collect();
        let found = dir.find(&names, &["skipped"], &is_markdown).unwrap();
        assert_eq!(found, walked, "{rules:?}");
        let has_draft = found.files.iter().any(|it| it.name == "x/y/draft.md");
        assert_eq!(has_draft, rules.is_none());
    }
}

#[test]
fn the_names_in_a_folder_are_listed_with_the_files_that_they_are() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("x")).unwrap();
    fs::write(root.path().join("a.md"), "a").unwrap();
    fs::write(root.path().join(".hidden"), "").unwrap();
    let dir = Dir::open(root.path()).unwrap();
    let mut names = dir.names("").unwrap();
    names.sort_by(|a, b| a.name.cmp(&b.name));
    let shown: Vec<(&str, bool)> = names.iter().map(|it| (&*it.name, it.is_folder)).collect();
    assert_eq!(shown, [("a.md", false), ("x", true)]);
    assert_eq!(names[0].inode, dir.stamp("a.md").unwrap().inode);
}
