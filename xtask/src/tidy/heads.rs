//! Checks that every file begins with its purpose, and is short enough to be read, and that crates which only
//! compose stay small.

use super::Faults;
use crate::repository::Tree;

/// No file is longer.
const LINES_MAX: usize = 900;
/// No source file is longer, its tests aside …
const PRODUCT_LINES_MAX: usize = 600;
/// … but these, which are to be split by what they do, or are tables. None may grow, and one that was
/// split leaves the list.
const LARGER: &[(&str, usize)] = &[
    ("crates/cypher/src/compile/expressions.rs", 830),
    ("crates/cypher/src/compile/projection.rs", 680),
    ("crates/cypher/src/parse/expressions.rs", 730),
    ("crates/cypher/src/run/eval.rs", 740),
    // The story that every backend of the store lives through: a test, in the crate of the trait.
    ("crates/store/src/conformance.rs", 840),
];
/// Crates whose sources together may not be longer: what grows there belongs into a crate of its own.
const CRATE_LINES_MAX: &[(&str, usize)] = &[("engine", 2_000)];
/// A crate's root file shorter than this needs no guide …
const TINY_LINES: usize = 40;
/// … and the guide of the others has at least so many lines.
const GUIDE_LINES_MIN: usize = 3;

pub(super) fn check(tree: &Tree) -> Faults {
    let mut faults = Faults::new();
    for (name, text) in tree.ending(".rs") {
        let n_lines = text.lines().count();
        if n_lines > LINES_MAX {
            faults.push(format!(
                "{name}: {n_lines} lines are more than {LINES_MAX}: split it by what it does"
            ));
        }
        faults.extend(product_fault(name, text));
        // A script's first line names its program.
        let mut lines = text.lines().skip_while(|line| line.starts_with("#!"));
        if !lines.next().is_some_and(|line| line.starts_with("//!")) {
            faults.push(format!(
                "{name}: begins without `//!`: say what the file is for"
            ));
        }
        // An example is a template that is copied whole: its page is its guide.
        let is_example = name.starts_with("examples/");
        let is_root = name.ends_with("src/lib.rs") || name.ends_with("src/main.rs");
        let n_guide = text.lines().filter(|line| line.starts_with("//! ")).count();
        if is_root && !is_example && n_lines >= TINY_LINES && n_guide < GUIDE_LINES_MIN {
            faults.push(format!(
                "{name}: its head has {n_guide} lines: say what the crate is for, what it does not \
                 know, and its one invariant"
            ));
        }
    }
    faults.extend(
        CRATE_LINES_MAX
            .iter()
            .filter_map(|row| crate_fault(tree, row)),
    );
    faults
}

/// A crate whose sources have grown too long.
fn crate_fault(tree: &Tree, &(name, max): &(&str, usize)) -> Option<String> {
    let sources = format!("crates/{name}/src/");
    let files = tree.ending(".rs").filter(|it| it.0.starts_with(&sources));
    let n_lines: usize = files.map(|(_, text)| text.lines().count()).sum();
    (n_lines > max).then(|| {
        format!(
            "crates/{name}: {n_lines} lines are more than {max}: it composes; move what it does to a crate of its own"
        )
    })
}

/// A source file of the product that is too long.
fn product_fault(name: &str, text: &str) -> Option<String> {
    let is_product = name.starts_with("crates/")
        && name.contains("/src/")
        && !name.contains("/tests/")
        && !name.starts_with("crates/testing")
        && !name.starts_with("crates/fuzz");
    if !is_product {
        return None;
    }
    let tests = text.find("#[cfg(test)]\nmod ");
    let n_lines = text[..tests.unwrap_or(text.len())].lines().count();
    let row = LARGER.iter().find(|row| row.0 == name);
    let max = row.map_or(PRODUCT_LINES_MAX, |row| row.1);
    match row {
        _ if n_lines > max => Some(format!(
            "{name}: {n_lines} lines before its tests are more than {max}: split it by what it does"
        )),
        Some(_) if n_lines <= PRODUCT_LINES_MAX => Some(format!(
            "{name}: it has {n_lines} lines now: take its row out of `LARGER` of \
             xtask/src/tidy/heads.rs"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> usize {
        check(&Tree::of(&[(name, text)])).len()
    }

    #[test]
    fn a_file_without_a_head_is_refused() {
        assert_eq!(faults("a.rs", "//! What it is.\n"), 0);
        assert_eq!(faults("a.rs", "#!/usr/bin/env cargo\n//! What it is.\n"), 0);
        assert_eq!(faults("a.rs", "use std::fs;\n//! Late.\n"), 1);
        assert_eq!(faults("tests/a.rs", "// Not a doc.\n"), 1);
        assert_eq!(faults("a.txt", "anything"), 0);
    }

    #[test]
    fn a_long_file_is_refused() {
        let text = |n: usize| format!("//! Head.\n{}", "\n".repeat(n));
        assert_eq!(faults("a.rs", &text(LINES_MAX - 1)), 0);
        assert_eq!(faults("a.rs", &text(LINES_MAX)), 1);
    }

    #[test]
    fn a_source_file_is_shorter_than_a_test() {
        let text = |n: usize| format!("//! Head.\n{}", "\n".repeat(n));
        let name = "crates/x/src/a.rs";
        assert_eq!(faults(name, &text(PRODUCT_LINES_MAX - 1)), 0);
        assert_eq!(faults(name, &text(PRODUCT_LINES_MAX)), 1);
        assert_eq!(faults("crates/x/tests/a.rs", &text(PRODUCT_LINES_MAX)), 0);
        let tested = format!("//! Head.\n#[cfg(test)]\nmod tests {{}}\n{}", text(800));
        assert_eq!(faults(name, &tested), 0);
        // A row is a ceiling, and goes when it is no longer needed.
        let (larger, max) = LARGER[0];
        assert_eq!(faults(larger, &text(max - 1)), 0);
        assert_eq!(faults(larger, &text(max)), 1);
        assert_eq!(faults(larger, &text(100)), 1);
    }

    #[test]
    fn a_crate_that_composes_stays_small() {
        let text = |n: usize| format!("//! Head.\n{}", "\n".repeat(n - 1));
        let (name, max) = CRATE_LINES_MAX[0];
        let n_files = max / 500;
        let of = |last: usize, tests: usize| {
            let source = |at: usize| format!("crates/{name}/src/a{at}.rs");
            let mut files: Vec<(String, String)> =
                (1..n_files).map(|at| (source(at), text(500))).collect();
            files.push((source(n_files), text(last)));
            files.push((format!("crates/{name}/tests/a.rs"), text(tests)));
            let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
            check(&Tree::of(&files))
        };
        assert!(of(500, 500).is_empty());
        let faults = of(501, 500);
        assert!(
            faults[0].contains("2001 lines are more than 2000"),
            "{faults:?}"
        );
    }

    #[test]
    fn a_crate_has_a_guide_unless_it_is_tiny() {
        let long = "\n".repeat(TINY_LINES);
        let guide = "//! One.\n//!\n//! Two.\n//! Three.\n";
        assert_eq!(faults("x/src/lib.rs", &format!("//! One.\n{long}")), 1);
        assert_eq!(faults("x/src/lib.rs", &format!("{guide}{long}")), 0);
        assert_eq!(faults("x/src/lib.rs", "//! One.\n"), 0);
        assert_eq!(faults("x/src/other.rs", &format!("//! One.\n{long}")), 0);
        assert_eq!(
            faults("examples/x/src/lib.rs", &format!("//! One.\n{long}")),
            0
        );
        assert_eq!(faults("examples/x/src/lib.rs", &long), 1);
    }
}
