//! The shape of the code in figures: module graphs, the largest files, and what each crate shows.

use super::modules;
use crate::repository::Tree;
use std::collections::BTreeMap;

/// Files that are listed.
const LARGEST: usize = 10;

pub(super) fn print(tree: &Tree) {
    println!("modules (who names whom):");
    for (name, edges) in modules::graphs(tree) {
        println!("  {name}");
        for (from, to) in edges.iter().filter(|it| !it.1.is_empty()) {
            let to: Vec<&str> = to.keys().map(String::as_str).collect();
            println!("    {from} -> {}", to.join(", "));
        }
    }
    let mut files: Vec<(usize, &str)> = tree
        .ending(".rs")
        .map(|(name, text)| (text.lines().count(), name))
        .collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    println!("largest files:");
    for (n_lines, name) in files.iter().take(LARGEST) {
        println!("  {n_lines:>5}  {name}");
    }
    println!("crates (lines, public items):");
    for (name, (n_lines, n_public)) in crates(tree) {
        println!("  {n_lines:>6} {n_public:>5}  {name}");
    }
}

/// Lines and public items of the sources of each crate.
fn crates(tree: &Tree) -> BTreeMap<&str, (usize, usize)> {
    let mut crates: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (name, text) in tree.ending(".rs") {
        let Some((crate_name, _)) = name
            .strip_prefix("crates/")
            .and_then(|it| it.split_once("/src/"))
        else {
            continue;
        };
        let of = crates.entry(crate_name).or_default();
        of.0 += text.lines().count();
        of.1 += text.lines().filter(|it| is_public_item(it)).count();
    }
    crates
}

/// Whether a line declares something that other crates can see, fields and re-exports aside.
fn is_public_item(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("pub ") else {
        return false;
    };
    let rest = rest
        .trim_start_matches("const ")
        .trim_start_matches("async ");
    let keywords = ["fn ", "struct ", "enum ", "trait ", "type ", "static "];
    // A constant: its keyword was taken off above.
    let is_constant = line.contains("pub const ") && rest.contains(": ");
    keywords.iter().any(|it| rest.starts_with(it)) || is_constant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_and_fields_are_not() {
        for line in [
            "pub fn f() {",
            "    pub const fn f(&self) -> u8 {",
            "pub const MAX: usize = 3;",
            "pub struct S;",
            "pub type T = u8;",
        ] {
            assert!(is_public_item(line), "{line}");
        }
        for line in [
            "    pub name: String,",
            "pub(crate) fn f() {",
            "pub use a::B;",
            "pub mod a;",
            "fn f() {}",
        ] {
            assert!(!is_public_item(line), "{line}");
        }
    }
}
