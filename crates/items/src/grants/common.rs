//! The intersection of several patterns.
//!
//! The intersection of patterns is not always a pattern: `src/**` and `**/*.md` cannot be written as
//! one. So it is kept as a list of patterns that must all match.

use super::Glob;
use std::fmt;

/// The paths that all of these patterns match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    /// At least one. None of them covers another.
    globs: Vec<Glob>,
}

impl Common {
    /// The intersection of these; `None` if no path can match.
    pub fn of(globs: &[&Glob]) -> Option<Self> {
        let mut kept: Vec<Glob> = Vec::new();
        for glob in globs {
            if kept.iter().any(|it| !it.overlaps(glob)) {
                return None;
            }
            if kept.iter().any(|it| glob.covers(it)) {
                continue;
            }
            kept.retain(|it| !it.covers(glob));
            kept.push((*glob).clone());
        }
        (!kept.is_empty()).then_some(Self { globs: kept })
    }

    /// Every combination of one pattern of each list.
    pub fn all(lists: &[&[Glob]]) -> Vec<Self> {
        let mut all: Vec<Vec<&Glob>> = vec![Vec::new()];
        for list in lists {
            let longer = all.iter().flat_map(|chosen| {
                list.iter().map(|it| {
                    let mut chosen = chosen.clone();
                    chosen.push(it);
                    chosen
                })
            });
            all = longer.collect();
        }
        let mut out: Vec<Self> = Vec::new();
        for common in all.iter().filter_map(|it| Self::of(it)) {
            if !out.contains(&common) {
                out.push(common);
            }
        }
        out
    }

    /// The pattern, if it is only one.
    pub fn single(&self) -> Option<&Glob> {
        match self.globs.as_slice() {
            [glob] => Some(glob),
            _ => None,
        }
    }

    /// Whether a path matches.
    pub fn fits(&self, path: &Glob) -> bool {
        self.globs.iter().all(|it| it.covers(path))
    }

    /// Whether everything in a folder matches, including future files.
    pub fn fits_all_beneath(&self, folder: &Glob) -> bool {
        let all = folder.beneath();
        self.globs.iter().all(|it| it.covers(&all))
    }

    /// Whether something in a folder may match.
    pub fn may_fit_beneath(&self, folder: &Glob) -> bool {
        let all = folder.beneath();
        self.globs.iter().all(|it| it.overlaps(&all))
    }

    /// The folder that contains everything that matches.
    pub fn base(&self) -> String {
        let bases = self.globs.iter().map(Glob::base);
        bases.max_by_key(String::len).unwrap_or_default()
    }

    /// Whether it is relative to the root of the file system and not of the project.
    pub fn is_absolute(&self) -> bool {
        self.globs.iter().any(Glob::is_absolute)
    }
}

impl fmt::Display for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, glob) in self.globs.iter().enumerate() {
            let joint = if i == 0 { "" } else { " & " };
            write!(f, "{joint}{glob}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::parse(text).unwrap()
    }

    fn common(patterns: &[&str]) -> Option<Common> {
        let globs: Vec<Glob> = patterns.iter().map(|it| glob(it)).collect();
        Common::of(&globs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_path_fits_what_all_patterns_fit_and_no_more() {
        let patterns = [
            "**",
            "src/**",
            "src/*",
            "**/*.md",
            "src/**/*.md",
            "docs/**",
            "src/a/*.md",
            "*/a/**",
        ];
        let paths = [
            "a.md",
            "src/a.md",
            "src/a.rs",
            "src/a/b.md",
            "src/a/b.rs",
            "docs/a/b.md",
            "docs/x",
        ];
        let mut n = 0;
        for first in patterns {
            for second in patterns {
                for third in patterns {
                    let both = common(&[first, second, third]);
                    for path in paths {
                        let path = glob(path);
                        let all = [first, second, third]
                            .iter()
                            .all(|it| glob(it).covers(&path));
                        let fits = both.as_ref().is_some_and(|it| it.fits(&path));
                        assert_eq!(fits, all, "{first} {second} {third} {path}");
                        n += usize::from(fits);
                    }
                }
            }
        }
        assert!(n > 400, "{n}");
    }

    #[test]
    fn what_one_of_them_covers_is_said_once() {
        for (patterns, shown) in [
            (&["**", "src/**", "src/a"][..], Some("src/a")),
            (&["src/**", "**/*.md"], Some("src/** & **/*.md")),
            (&["src/**", "docs/**"], None),
            (&["src/*.rs", "src/*.md"], None),
            (&["/data/**", "data/**"], None),
            (&["a/**/z", "a/b/**"], Some("a/**/z & a/b/**")),
        ] {
            let found = common(patterns).map(|it| it.to_string());
            assert_eq!(found.as_deref(), shown, "{patterns:?}");
        }
    }

    #[test]
    fn a_folder_is_whole_only_if_nothing_in_it_is_left_out() {
        let both = common(&["src/**", "**/a/**"]).unwrap();
        for (folder, all, some) in [
            ("src", false, true),
            ("src/a", true, true),
            ("src/b", false, true),
            ("docs", false, false),
            (".", false, true),
        ] {
            let folder = glob(folder);
            assert_eq!(both.fits_all_beneath(&folder), all, "{folder}");
            assert_eq!(both.may_fit_beneath(&folder), some, "{folder}");
        }
        let files = common(&["docs/*.md"]).unwrap();
        assert!(!files.may_fit_beneath(&glob("docs/sub")));
        assert_eq!(files.base(), "docs");
    }

    #[test]
    fn every_combination_is_tried() {
        let list = |texts: &[&str]| texts.iter().map(|it| glob(it)).collect::<Vec<_>>();
        let (asked, granted) = (list(&["src/**", "docs/**"]), list(&["src/a/**", "out/**"]));
        let all = Common::all(&[&asked, &granted]);
        let shown: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["src/a/**"]);
        assert!(Common::all(&[&asked, &[]]).is_empty());
    }
}
