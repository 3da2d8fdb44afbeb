//! Patterns for paths and names.
//!
//! `*` and `?` stay within one segment of a path, a segment `**` is any number of segments;
//! everything else is literal. That is narrower than in the original, where `*` also matched `/`. A
//! relative pattern never matches an absolute path, and `..` is refused.

use std::fmt;

const BYTES_MAX: usize = 1024;
const PARTS_MAX: usize = 64;

/// A pattern of paths, normalized; a path is a pattern without wildcards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glob {
    is_absolute: bool,
    parts: Vec<String>,
}

impl Glob {
    /// Reads a pattern or a path. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > BYTES_MAX {
            return Err("is too long");
        }
        if text.chars().any(char::is_control) {
            return Err("contains a control character");
        }
        if text.contains('\\') {
            return Err("contains a backslash");
        }
        if text.starts_with('~') {
            return Err("begins with `~`");
        }
        let parts = text
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".");
        let parts: Vec<String> = parts.map(str::to_owned).collect();
        if parts.len() > PARTS_MAX {
            return Err("has too many parts");
        }
        if parts.iter().any(|it| it == "..") {
            return Err("goes up by `..`");
        }
        let is_absolute = text.starts_with('/');
        Ok(Self { is_absolute, parts })
    }

    /// Whether this matches everything that `other` matches. For a path: whether it matches.
    pub fn covers(&self, other: &Self) -> bool {
        let fits = |wide: &String, narrow: &String| {
            if narrow == "**" {
                wide == "**"
            } else {
                part_covers(wide, narrow)
            }
        };
        self.is_absolute == other.is_absolute
            && aligned(&self.parts, &other.parts, |it| it == "**", fits)
    }

    /// Whether a path can match both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let meets = |a: &String, b: &String| {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            meet(
                &a,
                &b,
                |it| *it == '*',
                |a, b| a == b || *a == '?' || *b == '?',
            )
        };
        self.is_absolute == other.is_absolute
            && meet(&self.parts, &other.parts, |it| it == "**", meets)
    }

    /// Everything below this path.
    pub fn beneath(&self) -> Self {
        let mut all = self.clone();
        if all.parts.last().is_none_or(|it| it != "**") {
            all.parts.push("**".to_owned());
        }
        all
    }

    /// Whether it is a path and not a pattern.
    pub fn is_path(&self) -> bool {
        self.parts.iter().all(|it| !it.contains(['*', '?']))
    }

    /// The folder, if the pattern matches everything in one folder and nothing else.
    pub fn folder(&self) -> Option<String> {
        let (last, above) = self.parts.split_last()?;
        let is_folder = last == "**" && above.iter().all(|it| !it.contains(['*', '?']));
        is_folder.then(|| self.base())
    }

    /// Whether it is relative to the root of the file system and not of the project.
    pub fn is_absolute(&self) -> bool {
        self.is_absolute
    }

    /// The folder that contains everything that it matches: its segments before the first wildcard.
    pub fn base(&self) -> String {
        let parts: Vec<&str> = self
            .parts
            .iter()
            .map(String::as_str)
            .take_while(|it| !it.contains(['*', '?']))
            .collect();
        let root = if self.is_absolute { "/" } else { "" };
        format!("{root}{}", parts.join("/"))
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = if self.is_absolute { "/" } else { "" };
        let parts = self.parts.join("/");
        let parts = if root.is_empty() && parts.is_empty() {
            "."
        } else {
            &parts
        };
        write!(f, "{root}{parts}")
    }
}

/// The same for a name without segments: a host, an id.
pub(super) fn name_covers(wide: &str, narrow: &str) -> bool {
    part_covers(wide, narrow)
}

fn part_covers(wide: &str, narrow: &str) -> bool {
    let wide: Vec<char> = wide.chars().collect();
    let narrow: Vec<char> = narrow.chars().collect();
    let fits = |wide: &char, narrow: &char| match wide {
        '*' => true,
        '?' => *narrow != '*',
        _ => wide == narrow,
    };
    aligned(&wide, &narrow, |it| *it == '*', fits)
}

/// Whether `wide` covers `narrow`, where elements that `stretches` accepts match any number.
///
/// By dynamic programming, so that no pattern takes more time than the product of both lengths.
fn aligned<T>(
    wide: &[T],
    narrow: &[T],
    stretches: impl Fn(&T) -> bool,
    fits: impl Fn(&T, &T) -> bool,
) -> bool {
    // `reached[j]`: the part of `wide` so far covers the first `j` elements of `narrow`.
    let mut reached = vec![false; narrow.len() + 1];
    reached[0] = true;
    for element in wide {
        let mut next = vec![false; narrow.len() + 1];
        for j in 0..=narrow.len() {
            next[j] = if stretches(element) {
                reached[j] || (j > 0 && next[j - 1])
            } else {
                j > 0 && reached[j - 1] && fits(element, &narrow[j - 1])
            };
        }
        reached = next;
    }
    reached[narrow.len()]
}

/// Whether something can match both, where elements that `stretches` accepts match any number.
fn meet<T>(
    a: &[T],
    b: &[T],
    stretches: impl Fn(&T) -> bool,
    fits: impl Fn(&T, &T) -> bool,
) -> bool {
    // `open[j]`: the rest of `a` and the rest of `b` from `j` on can match the same.
    let mut open = vec![false; b.len() + 1];
    for i in (0..=a.len()).rev() {
        let mut next = vec![false; b.len() + 1];
        for j in (0..=b.len()).rev() {
            let (of_a, of_b) = (a.get(i), b.get(j));
            let a_stretches = of_a.is_some_and(&stretches);
            let b_stretches = of_b.is_some_and(&stretches);
            next[j] = match (of_a, of_b) {
                (None, None) => true,
                _ if a_stretches || b_stretches => {
                    (a_stretches && open[j])
                        || (b_stretches && next[j + 1])
                        || (a_stretches && of_b.is_some() && next[j + 1])
                        || (b_stretches && of_a.is_some() && open[j])
                }
                (Some(of_a), Some(of_b)) => open[j + 1] && fits(of_a, of_b),
                _ => false,
            };
        }
        open = next;
    }
    open[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(wide: &str, narrow: &str) -> bool {
        Glob::parse(wide)
            .unwrap()
            .covers(&Glob::parse(narrow).unwrap())
    }

    #[test]
    fn a_pattern_fits_what_it_says_and_no_more() {
        for (pattern, path, fits) in [
            ("**", "a/b", true),
            ("**", "", true),
            ("**", "/etc/passwd", false),
            ("*", "a", true),
            ("*", "a/b", false),
            ("src/*", "src/a.rs", true),
            ("src/*", "src/a/b.rs", false),
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src", true),
            ("src/**", "srcs/a", false),
            ("**/*.md", "a.md", true),
            ("**/*.md", "a/b/c.md", true),
            ("**/*.md", "a/b/c.mdx", false),
            ("a/**/z", "a/z", true),
            ("a/**/z", "a/b/c/z", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("./a//b/", "a/b", true),
            ("app/[id].ts", "app/[id].ts", true),
            ("app/[id].ts", "app/i.ts", false),
            ("/data/**", "/data/x", true),
            ("/data/**", "data/x", false),
            ("A", "a", false),
        ] {
            assert_eq!(covers(pattern, path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_covers_only_narrower_patterns() {
        for (wide, narrow, fits) in [
            ("**", "src/**", true),
            ("src/**", "**", false),
            ("src/**", "src/*.rs", true),
            ("src/*", "src/**", false),
            ("src/*", "src/*.rs", true),
            ("src/*.rs", "src/*", false),
            ("*.rs", "?.rs", true),
            ("?.rs", "*.rs", false),
            ("a/**/b", "a/**/b", true),
            ("a/**/b", "a/*/b", true),
            ("a/*/b", "a/**/b", false),
        ] {
            assert_eq!(covers(wide, narrow), fits, "{wide} {narrow}");
        }
    }

    #[test]
    fn patterns_overlap_where_a_path_can_be_both() {
        for (a, b, both) in [
            ("**", "a/b", true),
            ("a/**", "**/b", true),
            ("a/**", "b/**", false),
            ("a/**", "a", true),
            ("a/*", "a/*/c", false),
            ("a/*/c", "a/b/**", true),
            ("*.rs", "a*", true),
            ("*.rs", "*.md", false),
            ("a?c", "abd", false),
            ("a?c", "*bc", true),
            ("", "", true),
            ("", "a", false),
            ("/a/**", "a/**", false),
            ("x*y", "xay", true),
            ("x*y", "xa", false),
        ] {
            let (left, right) = (Glob::parse(a).unwrap(), Glob::parse(b).unwrap());
            assert_eq!(left.overlaps(&right), both, "{a} {b}");
            assert_eq!(right.overlaps(&left), both, "{b} {a}");
        }
    }

    #[test]
    fn nothing_goes_up() {
        let long = "a".repeat(BYTES_MAX + 1);
        for bad in [
            "..", "a/../b", "../*", "a/..", "a\\..\\b", "~/x", "a\0", "a\n", &long,
        ] {
            assert!(Glob::parse(bad).is_err(), "{bad:?}");
        }
        let stars = "*a".repeat(400);
        let text = format!("{}b", "a".repeat(900));
        assert!(!covers(&stars, &text), "and it ends soon");
    }

    #[test]
    fn the_base_is_what_precedes_the_first_star() {
        for (pattern, base) in [
            ("src/**", "src"),
            ("/data/x/*.md", "/data/x"),
            ("**", ""),
            ("a/b", "a/b"),
        ] {
            assert_eq!(Glob::parse(pattern).unwrap().base(), base);
        }
    }
}
