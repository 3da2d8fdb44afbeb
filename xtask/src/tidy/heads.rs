//! Checks that every file begins with its purpose, and is short enough to be read.

use super::Faults;
use crate::repository::Tree;

/// No source file is longer.
const LINES_MAX: usize = 900;
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
    faults
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
