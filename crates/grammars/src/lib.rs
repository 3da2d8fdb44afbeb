//! The grammars of programming languages, and which file is of which.
//!
//! This is the only crate that links grammars: they are heavy to compile, so nothing else is built again
//! when one of them changes. It knows nothing of what a grammar's nodes mean; `kenning-code` does.
//!
//! Invariant: a language whose feature is off has no grammar, and is still recognized by its files.

#![deny(missing_docs)]

use serde::{Deserialize, Serialize};
pub use tree_sitter;

/// A language whose symbols can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Language {
    /// `.sh`, `.bash`
    Bash,
    /// `.c`, `.h`
    C,
    /// `.cc`, `.cpp`, `.hpp` …
    Cpp,
    /// `.cs`
    CSharp,
    /// `.go`
    Go,
    /// `.java`
    Java,
    /// `.js`, `.mjs`, `.cjs`, `.jsx`
    JavaScript,
    /// `.kt`, `.kts`
    Kotlin,
    /// `.php`
    Php,
    /// `.py`, `.pyi`
    Python,
    /// `.rb`
    Ruby,
    /// `.rs`
    Rust,
    /// `.sql`
    Sql,
    /// `.tsx`
    Tsx,
    /// `.ts`, `.mts`, `.cts`
    TypeScript,
}

/// What the names of files end in.
const EXTENSIONS: &[(&str, Language)] = &[
    ("bash", Language::Bash),
    ("bats", Language::Bash),
    ("c", Language::C),
    ("cc", Language::Cpp),
    ("cjs", Language::JavaScript),
    ("cpp", Language::Cpp),
    ("cs", Language::CSharp),
    ("cts", Language::TypeScript),
    ("cxx", Language::Cpp),
    ("go", Language::Go),
    ("h", Language::C),
    ("hh", Language::Cpp),
    ("hpp", Language::Cpp),
    ("hxx", Language::Cpp),
    ("java", Language::Java),
    ("js", Language::JavaScript),
    ("jsx", Language::JavaScript),
    ("kt", Language::Kotlin),
    ("kts", Language::Kotlin),
    ("mjs", Language::JavaScript),
    ("mts", Language::TypeScript),
    ("php", Language::Php),
    ("py", Language::Python),
    ("pyi", Language::Python),
    ("rb", Language::Ruby),
    ("rs", Language::Rust),
    ("sh", Language::Bash),
    ("sql", Language::Sql),
    ("ts", Language::TypeScript),
    ("tsx", Language::Tsx),
];

impl Language {
    /// Every language.
    pub const ALL: [Self; 15] = [
        Self::Bash,
        Self::C,
        Self::Cpp,
        Self::CSharp,
        Self::Go,
        Self::Java,
        Self::JavaScript,
        Self::Kotlin,
        Self::Php,
        Self::Python,
        Self::Ruby,
        Self::Rust,
        Self::Sql,
        Self::Tsx,
        Self::TypeScript,
    ];

    /// The language of a file, by its name.
    pub fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit_once('/').map_or(path, |it| it.1);
        let (stem, extension) = name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        let extension = extension.to_ascii_lowercase();
        let found = EXTENSIONS
            .binary_search_by(|it| it.0.cmp(&extension))
            .ok()?;
        Some(EXTENSIONS[found].1)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::CSharp => "csharp",
            Self::Go => "go",
            Self::Java => "java",
            Self::JavaScript => "javascript",
            Self::Kotlin => "kotlin",
            Self::Php => "php",
            Self::Python => "python",
            Self::Ruby => "ruby",
            Self::Rust => "rust",
            Self::Sql => "sql",
            Self::Tsx => "tsx",
            Self::TypeScript => "typescript",
        }
    }

    /// The grammar; none if this build has it not.
    pub fn grammar(self) -> Option<tree_sitter::Language> {
        match self {
            #[cfg(feature = "bash")]
            Self::Bash => Some(tree_sitter_bash::LANGUAGE.into()),
            #[cfg(feature = "c")]
            Self::C => Some(tree_sitter_c::LANGUAGE.into()),
            #[cfg(feature = "cpp")]
            Self::Cpp => Some(tree_sitter_cpp::LANGUAGE.into()),
            #[cfg(feature = "csharp")]
            Self::CSharp => Some(tree_sitter_c_sharp::LANGUAGE.into()),
            #[cfg(feature = "go")]
            Self::Go => Some(tree_sitter_go::LANGUAGE.into()),
            #[cfg(feature = "java")]
            Self::Java => Some(tree_sitter_java::LANGUAGE.into()),
            #[cfg(feature = "kotlin")]
            Self::Kotlin => Some(tree_sitter_kotlin_ng::LANGUAGE.into()),
            #[cfg(feature = "php")]
            Self::Php => Some(tree_sitter_php::LANGUAGE_PHP.into()),
            #[cfg(feature = "python")]
            Self::Python => Some(tree_sitter_python::LANGUAGE.into()),
            #[cfg(feature = "ruby")]
            Self::Ruby => Some(tree_sitter_ruby::LANGUAGE.into()),
            #[cfg(feature = "rust")]
            Self::Rust => Some(tree_sitter_rust::LANGUAGE.into()),
            #[cfg(feature = "sql")]
            Self::Sql => Some(tree_sitter_sequel::LANGUAGE.into()),
            // What JSX is allowed in is read as TSX: JavaScript is a part of it.
            #[cfg(feature = "typescript")]
            Self::JavaScript | Self::Tsx => Some(tree_sitter_typescript::LANGUAGE_TSX.into()),
            #[cfg(feature = "typescript")]
            Self::TypeScript => Some(tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()),
            #[allow(unreachable_patterns, reason = "with every feature there is none left")]
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognized_by_their_names() {
        assert!(EXTENSIONS.is_sorted(), "the list is searched by halves");
        for (path, expected) in [
            ("src/main.rs", Some(Language::Rust)),
            ("a/b.PY", Some(Language::Python)),
            ("x.d.ts", Some(Language::TypeScript)),
            (".rs", None),
            ("README.md", None),
            ("Makefile", None),
        ] {
            assert_eq!(Language::of_path(path), expected, "{path}");
        }
    }

    #[test]
    fn every_grammar_of_this_build_can_be_loaded() {
        for language in Language::ALL {
            let Some(grammar) = language.grammar() else {
                continue;
            };
            let mut parser = tree_sitter::Parser::new();
            parser.set_language(&grammar).unwrap();
            assert!(parser.parse("", None).is_some(), "{}", language.as_str());
        }
    }
}
