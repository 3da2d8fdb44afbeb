//! What a documentation lacks.
//!
//! A text is cut at its headings; a heading names a required section by its words. What is wrong is a [`Gap`] with a
//! place. Nothing here guesses: the same texts have the same gaps.

use std::collections::BTreeSet;

/// A section that documentation must have, and the words by which a heading is recognized as it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    words: &'static [&'static str],
    severity: Severity,
}

/// The sections that must be there.
pub const REQUIRED: [Section; 5] = [
    Section {
        name: "overview",
        words: &[
            "overview",
            "introduction",
            "summary",
            "about",
            "purpose",
            "what it is",
        ],
        severity: Severity::Medium,
    },
    Section {
        name: "requirements",
        words: &[
            "requirement",
            "must do",
            "user stories",
            "use cases",
            "goals",
        ],
        severity: Severity::High,
    },
    Section {
        name: "acceptance-criteria",
        words: &["acceptance", "definition of done", "done when"],
        severity: Severity::High,
    },
    Section {
        name: "technical-spec",
        words: &[
            "technical",
            "architecture",
            "design",
            "implementation",
            "how it works",
            "api",
            "interface",
        ],
        severity: Severity::Medium,
    },
    Section {
        name: "test-cases",
        words: &["test"],
        severity: Severity::Medium,
    },
];

/// Phrases that say that something is not decided.
const UNCLEAR: [&str; 10] = [
    "tbd",
    "to be decided",
    "to be defined",
    "to be determined",
    "todo",
    "fixme",
    "???",
    "not decided yet",
    "open question",
    "somehow",
];

/// A section with fewer words than this says nothing yet.
const WORDS_MIN: usize = 5;

/// What kind of gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapKind {
    /// A required section is not there.
    MissingSection,
    /// A section is there and says next to nothing.
    IncompleteSpec,
    /// Something is not decided.
    UnclearRequirement,
    /// There is no example.
    MissingExample,
    /// A link leads nowhere.
    BrokenLink,
    /// What is said was true once.
    StaleFact,
    /// Two texts, or a text and a memory, say opposite things.
    Contradiction,
}

impl GapKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::MissingSection,
        Self::IncompleteSpec,
        Self::UnclearRequirement,
        Self::MissingExample,
        Self::BrokenLink,
        Self::StaleFact,
        Self::Contradiction,
    ];

    /// The word in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissingSection => "missing_section",
            Self::IncompleteSpec => "incomplete_spec",
            Self::UnclearRequirement => "unclear_requirement",
            Self::MissingExample => "missing_example",
            Self::BrokenLink => "broken_link",
            Self::StaleFact => "stale_fact",
            Self::Contradiction => "contradiction",
        }
    }
}

/// How bad a gap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to have.
    Low,
    /// Somebody will miss it.
    Medium,
    /// Nobody can work from it.
    High,
}

impl Severity {
    /// The word in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Something that is missing or wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What kind.
    pub kind: GapKind,
    /// How bad.
    pub severity: Severity,
    /// The document; empty for the documentation as a whole.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// What to do, as an imperative sentence without a period.
    pub message: String,
}

/// What a text has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Required sections that are there and say something.
    pub sections: BTreeSet<&'static str>,
    /// Items of a list under the acceptance criteria.
    pub n_criteria: usize,
    /// Whether it has a block of code or a heading about examples.
    pub has_example: bool,
    /// Words outside of headings and code.
    pub n_words: usize,
    /// What is wrong in this text alone.
    pub gaps: Vec<Gap>,
    /// Open tasks and questions that are in the way: lines that begin with a box, or say that they block.
    pub n_blockers: usize,
}

/// Looks at a text. The title counts as a heading of what comes before the first one.
pub fn look(path: &str, title: &str, text: &str) -> Seen {
    let mut seen = Seen::default();
    let mut open: Vec<(u32, &'static Section, usize)> = named(title).map(|it| (0, it, 0)).collect();
    let mut depth_of_open = 1;
    let mut in_code = false;
    let close = |open: &mut Vec<(u32, &'static Section, usize)>, seen: &mut Seen| {
        for (line, section, n_words) in open.drain(..) {
            if n_words >= WORDS_MIN {
                seen.sections.insert(section.name);
            } else if line > 0 {
                seen.gaps.push(Gap {
                    kind: GapKind::IncompleteSpec,
                    severity: section.severity,
                    path: path.to_owned(),
                    line: Some(line),
                    message: format!(
                        "Fill the {} section, which says next to nothing",
                        section.name
                    ),
                });
            }
        }
    };
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            in_code = !in_code;
            seen.has_example = true;
            continue;
        }
        if in_code {
            // Code under a heading is content of its section too.
            for it in &mut open {
                it.2 += trimmed.split_whitespace().count();
            }
            continue;
        }
        let level = trimmed.bytes().take_while(|it| *it == b'#').count();
        let heading = trimmed.get(level..).filter(|it| it.starts_with(' '));
        if let Some(heading) = heading.filter(|_| (1..=6).contains(&level)) {
            let found: Vec<&'static Section> = named(heading).collect();
            // A section goes on through its subsections.
            if !found.is_empty() || level <= depth_of_open {
                close(&mut open, &mut seen);
                depth_of_open = level;
            }
            seen.has_example |= heading.to_lowercase().contains("example");
            open.extend(found.into_iter().map(|it| (number, it, 0)));
            continue;
        }
        let n_words = trimmed.split_whitespace().count();
        seen.n_words += n_words;
        for it in &mut open {
            it.2 += n_words;
            if it.1.name == "acceptance-criteria" && is_item(trimmed) {
                seen.n_criteria += 1;
            }
        }
        let low = trimmed.to_lowercase();
        if low.starts_with("blocked by")
            || low.contains("blocker:")
            || low.starts_with("- [ ] block")
        {
            seen.n_blockers += 1;
        }
        if let Some(phrase) = UNCLEAR.iter().find(|it| has_phrase(&low, it)) {
            seen.gaps.push(Gap {
                kind: GapKind::UnclearRequirement,
                severity: Severity::Medium,
                path: path.to_owned(),
                line: Some(number),
                message: format!("Decide what `{phrase}` leaves open"),
            });
        }
    }
    close(&mut open, &mut seen);
    seen
}

/// The sections that a heading names.
fn named(heading: &str) -> impl Iterator<Item = &'static Section> {
    let heading = heading.to_lowercase().replace(['-', '_'], " ");
    REQUIRED.iter().filter(move |section| {
        let words = section.words.iter();
        words.into_iter().any(|it| has_word(&heading, it))
    })
}

/// Whether a text has a word, or words that begin with it.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|it| it.chars().next_back());
        before.is_none_or(|it| !it.is_alphanumeric())
    })
}

/// Whether a text has a phrase as whole words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, found)| {
        let before = text.get(..at).and_then(|it| it.chars().next_back());
        let after = text
            .get(at + found.len()..)
            .and_then(|it| it.chars().next());
        let is_word = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
        !is_word(before) && !is_word(after)
    })
}

fn is_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    ["- ", "* ", "+ "].iter().any(|it| line.starts_with(it))
        || (digits > 0 && line.get(digits..).is_some_and(|it| it.starts_with(". ")))
}

/// What all these texts together have, and what they lack as a whole.
pub fn together(all: &[Seen]) -> (f64, Vec<Gap>) {
    let mut gaps: Vec<Gap> = all.iter().flat_map(|it| it.gaps.iter().cloned()).collect();
    let mut n_found = 0;
    for section in &REQUIRED {
        if all.iter().any(|it| it.sections.contains(section.name)) {
            n_found += 1;
            continue;
        }
        gaps.push(Gap {
            kind: GapKind::MissingSection,
            severity: section.severity,
            path: String::new(),
            line: None,
            message: format!("Add missing {} section", section.name),
        });
    }
    if !all.iter().any(|it| it.has_example) {
        gaps.push(Gap {
            kind: GapKind::MissingExample,
            severity: Severity::Low,
            path: String::new(),
            line: None,
            message: "Add an example".to_owned(),
        });
    }
    sort(&mut gaps);
    (f64::from(n_found) / REQUIRED.len() as f64, gaps)
}

/// The worst first, then by place.
pub fn sort(gaps: &mut [Gap]) {
    gaps.sort_by(|a, b| {
        (b.severity, a.kind, &a.path, a.line, &a.message)
            .cmp(&(a.severity, b.kind, &b.path, b.line, &b.message))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "An engine that counts walruses on beaches.\n\n\
        ## Requirements\n\nIt counts every walrus once, even at night.\n\n\
        ### Night\n\nTBD\n\n\
        ## Acceptance criteria\n\n- two walruses are two\n- none is none\n\n\
        ## Design\n\n```rust\nlet n = count(&beach, Walrus);\n```\n\n\
        ## Tests\n";

    #[test]
    fn a_text_has_the_sections_that_its_headings_name_and_say_something() {
        let seen = look("docs/spec.md", "Overview", SPEC);
        let there: Vec<&str> = seen.sections.iter().copied().collect();
        let expected = [
            "acceptance-criteria",
            "overview",
            "requirements",
            "technical-spec",
        ];
        assert_eq!(there, expected);
        assert_eq!((seen.n_criteria, seen.has_example), (2, true));
        let gaps: Vec<(GapKind, Option<u32>)> =
            seen.gaps.iter().map(|it| (it.kind, it.line)).collect();
        let expected = [
            (GapKind::UnclearRequirement, Some(9)),
            (GapKind::IncompleteSpec, Some(22)),
        ];
        assert_eq!(gaps, expected);
    }

    #[test]
    fn what_no_text_has_is_missing_and_the_worst_comes_first() {
        let (completeness, gaps) = together(&[look("a.md", "Notes", "nothing much")]);
        assert_eq!(completeness, 0.0);
        let messages: Vec<&str> = gaps.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "Add missing acceptance-criteria section",
                "Add missing requirements section",
                "Add missing overview section",
                "Add missing technical-spec section",
                "Add missing test-cases section",
                "Add an example",
            ]
        );
        let (completeness, gaps) = together(&[look("docs/spec.md", "Overview", SPEC)]);
        assert_eq!(completeness, 0.8);
        assert_eq!(gaps.len(), 3);
    }

    #[test]
    fn a_word_inside_another_word_is_no_phrase() {
        assert!(!has_phrase("the todos of methodology", "todo"));
        assert!(has_phrase("todo: count", "todo"));
        assert!(has_phrase("how? ???", "???"));
    }
}
