//! NOW.md: what an agent is doing at the moment.
//!
//! The file is Markdown that people read and edit, so [`parse`] accepts what they write, and
//! [`Now::render`] writes the format of the contract. Text that an agent sends is read back
//! unchanged: a line of the task that could be taken for a heading is written with a backslash, which
//! Markdown does not show; further lines of an item are indented by two; a path with backticks is
//! enclosed in more backticks.

use crate::lines::unix;
use crate::stamp;
use jiff::civil::{Date, DateTime};
use serde_json::json;
use std::fmt::Write;

/// The name of the file.
pub const FILE: &str = "NOW.md";

/// The default limit of tokens in the file.
pub const TOKENS_MAX_DEFAULT: usize = 1_000;

/// The default reason of a checkpoint.
pub const CHECKPOINT_REASON_DEFAULT: &str = "pre-compression";

/// A token is estimated as this many characters.
const TOKEN_CHARS: usize = 4;

/// The content of a new file.
pub const DEFAULT: &str = "\
# NOW

## Current Task
No active task (just started)

## Recent Completions
- Session initialized

## Pending Decisions
- None

## Key Files
- SOUL.md (identity)
- MEMORY.md (curated)
";

/// The heading for words that a person wrote between our lists.
const NOTES: &str = "## Notes";

const TASK: &str = "## Current Task";
const COMPLETIONS: &str = "## Recent Completions";
const PENDING: &str = "## Pending Decisions";
const FILES: &str = "## Key Files";

/// What an agent is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The current task. May have several lines.
    pub task: String,
    /// Completed tasks, oldest first.
    pub completions: Vec<String>,
    /// Pending decisions.
    pub pending: Vec<String>,
    /// Key files.
    pub files: Vec<String>,
    /// When this was written; empty if the file does not say.
    pub timestamp: String,
    /// Sections that a person added, unchanged. Agents do not set them, and updates keep them.
    pub other: String,
}

/// An update. Fields that are left out stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Replaces the task.
    pub task: Option<String>,
    /// Appended to the completed tasks.
    pub completions: Option<Vec<String>>,
    /// Replaces the pending decisions.
    pub pending: Option<Vec<String>>,
    /// Replaces the files.
    pub files: Option<Vec<String>>,
}

/// Whether the file is empty or has the default content.
pub fn is_default(text: &str) -> bool {
    let text = unix(text);
    let lines = text.trim().lines().map(str::trim_end);
    text.trim().is_empty() || lines.eq(DEFAULT.trim_end().lines())
}

impl Now {
    /// The state after an update. If the text is longer than `tokens_max`, the oldest completions are
    /// dropped; those of the update and everything else stay, however long.
    #[must_use]
    pub fn updated(mut self, update: Update, at: DateTime, tokens_max: usize) -> Self {
        let fresh = update.completions.unwrap_or_default();
        let n_fresh = fresh.len();
        self.completions.extend(fresh);
        self.task = update.task.unwrap_or(self.task);
        self.pending = update.pending.unwrap_or(self.pending);
        self.files = update.files.unwrap_or(self.files);
        self.timestamp = stamp::iso(at);
        self.forget_oldest(tokens_max, n_fresh);
        self
    }

    fn forget_oldest(&mut self, tokens_max: usize, n_kept: usize) {
        let mut chars = self.render().chars().count();
        let n_old = self.completions.len().saturating_sub(n_kept);
        let mut n_gone = 0;
        for item in self.completions.iter().take(n_old) {
            if chars / TOKEN_CHARS <= tokens_max {
                break;
            }
            chars -= list_item("[x] ", item).chars().count();
            n_gone += 1;
        }
        self.completions.drain(..n_gone);
    }

    /// How many tokens the file has.
    pub fn tokens(&self) -> usize {
        self.render().chars().count() / TOKEN_CHARS
    }

    /// The text of the file.
    pub fn render(&self) -> String {
        let mut text = String::from("# NOW");
        if !self.timestamp.is_empty() {
            // Writing to a `String` cannot fail.
            let _ = write!(text, " - {}", self.timestamp);
        }
        let list = |prefix: &str, items: &[String]| -> String {
            items.iter().map(|it| list_item(prefix, it)).collect()
        };
        let spans: Vec<String> = self.files.iter().map(|it| code_span(it)).collect();
        for (heading, content) in [
            (TASK, render_task(&self.task)),
            (COMPLETIONS, list("[x] ", &self.completions)),
            (PENDING, list("[ ] ", &self.pending)),
            (FILES, list("", &spans)),
        ] {
            // The end of the last line begins the next blank line.
            let content = content.strip_suffix('\n').unwrap_or(&content);
            let _ = write!(text, "\n\n{heading}\n{content}");
        }
        if !self.other.is_empty() {
            let _ = write!(text, "\n\n{}", self.other);
        }
        text.push('\n');
        text
    }
}

fn render_task(task: &str) -> String {
    if task.is_empty() {
        return String::new();
    }
    let lines: Vec<&str> = task.split('\n').collect();
    let is_blank = |line: &&str| line.trim().is_empty();
    let n_before = lines.iter().take_while(|it| is_blank(it)).count();
    let n_after = lines.iter().rev().take_while(|it| is_blank(it)).count();
    let edge = |at: usize| at < n_before || at + n_after >= lines.len();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        // Blank lines around a section are ignored, so those of the task itself are marked.
        if line.starts_with(['#', '\\']) || edge(at) {
            text.push('\\');
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn parse_task(lines: &[&str]) -> String {
    let is_blank = |line: &&&str| line.trim().is_empty();
    let n_before = lines.iter().take_while(is_blank).count();
    let rest = lines.get(n_before..).unwrap_or_default();
    let n_after = rest.iter().rev().take_while(is_blank).count();
    let inner = rest.iter().take(rest.len() - n_after);
    let plain = inner.map(|line| match line.strip_prefix('\\') {
        Some(rest) if rest.starts_with(['#', '\\']) || rest.trim().is_empty() => rest,
        _ => line,
    });
    plain.collect::<Vec<_>>().join("\n")
}

/// `- [x] first line`, and every further line indented by two.
fn list_item(prefix: &str, item: &str) -> String {
    format!("- {prefix}{}\n", item.replace('\n', "\n  "))
}

/// A path as Markdown code.
fn code_span(path: &str) -> String {
    if !path.is_empty() && !path.contains('`') {
        return format!("`{path}`");
    }
    let runs = path.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(1) + 1);
    format!("{fence} {path} {fence}")
}

/// The code span at the beginning of an item; words after it are a person's remark.
fn parse_code_span(item: &str) -> Option<String> {
    let rest = item.trim_start_matches('`');
    let fence = item.get(..item.len() - rest.len())?;
    if fence.is_empty() {
        return None;
    }
    let (inner, _) = rest.split_once(fence)?;
    if fence.len() == 1 {
        return Some(inner.to_owned());
    }
    Some(inner.strip_prefix(' ')?.strip_suffix(' ')?.to_owned())
}

/// The text after a bullet. We write dashes; people use any.
fn bulleted(line: &str) -> Option<&str> {
    let behind_number = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_numbered = rest.len() < line.len();
        is_numbered.then(|| rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")))?
    };
    let signs = ["- ", "* ", "+ "].iter();
    signs
        .clone()
        .find_map(|it| line.strip_prefix(it))
        .or_else(behind_number)
}

/// The items of a list, each with its lines; other lines go to `rest`.
fn items<'a>(lines: &[&'a str], rest: &mut Vec<&'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut in_item = false;
    let mut n_blank = 0;
    for &line in lines {
        if let Some(first) = bulleted(line) {
            found.push(first.to_owned());
            (in_item, n_blank) = (true, 0);
        } else if line.is_empty() {
            // Part of the item if more of it follows: editors strip the spaces of empty lines.
            n_blank += 1;
        } else if let (true, Some(further), Some(item)) =
            (in_item, line.strip_prefix("  "), found.last_mut())
        {
            item.push_str(&"\n".repeat(n_blank + 1));
            item.push_str(further);
            n_blank = 0;
        } else {
            rest.push(line);
            in_item = false;
        }
    }
    found
}

/// An item without its checkbox, and whether it was ticked; `None` without a checkbox.
fn unboxed(item: &str) -> (Option<bool>, &str) {
    for (sign, ticked) in [("[x]", true), ("[X]", true), ("[ ]", false)] {
        match item.strip_prefix(sign) {
            Some(rest) if rest.is_empty() || rest.starts_with('\n') => return (Some(ticked), rest),
            Some(rest) if rest.starts_with(' ') => return (Some(ticked), &rest[1..]),
            _ => {}
        }
    }
    (None, item)
}

/// Reads a file. What a person wrote differently is kept: items without a checkbox belong to the list
/// that they are in, a checkbox decides otherwise, and everything else is carried along.
pub fn parse(text: &str) -> Now {
    let text = unix(text);
    let mut timestamp = "";
    let mut sections: [Vec<&str>; 4] = Default::default();
    let mut other: Vec<&str> = Vec::new();
    let mut current: Option<&mut Vec<&str>> = None;
    let mut above: Vec<&str> = Vec::new();
    for line in text.split('\n') {
        if line.starts_with("## ") {
            let known = [TASK, COMPLETIONS, PENDING, FILES];
            let at = known.iter().position(|it| *it == line.trim_end());
            if at.is_none() {
                other.push(line);
            }
            current = Some(at.map_or(&mut other, |at| &mut sections[at]));
        } else if let Some(section) = &mut current {
            section.push(line);
        } else if let Some(rest) = line.strip_prefix("# NOW - ")
            && rest.get(..10).is_some_and(|it| it.parse::<Date>().is_ok())
        {
            timestamp = rest.trim_end();
        } else if !line.trim().is_empty() && !line.starts_with("# NOW") {
            above.push(line);
        }
    }
    let [task, completions, pending, files] = &sections;
    let mut rest = above;
    let mut done = Vec::new();
    let mut open = Vec::new();
    for (lines, ticked) in [(completions, true), (pending, false)] {
        for item in items(lines, &mut rest) {
            let (its, item) = unboxed(&item);
            let list = if its.unwrap_or(ticked) {
                &mut done
            } else {
                &mut open
            };
            // The template says `None`.
            if its.is_some() || item != "None" {
                list.push(item.to_owned());
            }
        }
    }
    let files = items(files, &mut rest);
    let files = files
        .into_iter()
        .map(|file| parse_code_span(&file).unwrap_or(file));
    if !rest.is_empty() {
        // Under its own heading, so that it is never taken for one of our sections.
        rest.insert(0, NOTES);
    }
    rest.extend(other);
    Now {
        task: parse_task(task),
        completions: done,
        pending: open,
        files: files.collect(),
        timestamp: timestamp.to_owned(),
        other: rest.join("\n").trim_end_matches('\n').to_owned(),
    }
}

/// `NOW-20261115-021100.md`: the name of a checkpoint.
pub fn checkpoint_name(at: DateTime) -> String {
    at.strftime("NOW-%Y%m%d-%H%M%S.md").to_string()
}

/// A checkpoint, with the reason above it.
pub fn checkpoint(text: &str, reason: &str, at: DateTime) -> String {
    // A reason must not end its own comment.
    let reason = reason.replace("--", "- -").replace(['\n', '\r'], " ");
    format!(
        "<!-- Checkpoint: {reason} at {} -->\n\n{text}",
        stamp::iso(at)
    )
}

/// The content of `heartbeat-state.json`.
pub fn heartbeat(timestamp: &str) -> String {
    format!("{:#}", json!({ "last_now_update": timestamp }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::datetime;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const AT: DateTime = datetime(2026, 11, 15, 2, 11, 0, 123_456_000);

    const GOLDEN: &str = "\
# NOW - 2026-11-15T02:11:00.123456

## Current Task
Implementing authentication middleware

## Recent Completions
- [x] Fixed database migration scripts
- [x] Added rate limiting to API endpoints

## Pending Decisions
- [ ] Choose between JWT and session-based auth

## Key Files
- `src/auth/middleware.py`
- `tests/test_auth.py`
";

    fn golden() -> Now {
        let texts = |it: &[&str]| it.iter().map(|&it| it.to_owned()).collect();
        Now {
            task: "Implementing authentication middleware".to_owned(),
            completions: texts(&[
                "Fixed database migration scripts",
                "Added rate limiting to API endpoints",
            ]),
            pending: texts(&["Choose between JWT and session-based auth"]),
            files: texts(&["src/auth/middleware.py", "tests/test_auth.py"]),
            timestamp: "2026-11-15T02:11:00.123456".to_owned(),
            other: String::new(),
        }
    }

    #[test]
    fn the_file_has_the_form_of_the_contract() {
        assert_eq!(golden().render(), GOLDEN);
        assert_eq!(parse(GOLDEN), golden());
    }

    #[test]
    fn a_file_with_other_line_ends_or_a_mark_says_the_same() {
        let windows = format!("\u{feff}{}", GOLDEN.replace('\n', "\r\n"));
        assert_eq!(parse(&windows), golden());
        assert_eq!(parse(&GOLDEN.replace("\n\n", "\n")), golden());
        assert_eq!(parse(GOLDEN.trim_end()), golden());
    }

    #[test]
    fn nothing_was_said_in_an_empty_or_default_file() {
        let windows = DEFAULT.replace('\n', "\r\n");
        let spaced = DEFAULT.replace('\n', "  \n");
        for text in [
            "",
            " \r\n\t\n",
            DEFAULT,
            DEFAULT.trim_end(),
            &windows,
            &spaced,
            &format!("{DEFAULT}\n\n"),
        ] {
            assert!(is_default(text), "{text:?}");
        }
        for text in [GOLDEN, "# NOW\n", &DEFAULT.replace("None", "One")] {
            assert!(!is_default(text), "{text:?}");
        }
    }

    #[test]
    fn a_person_may_write_more_than_the_contract_knows() {
        let text = "\
# NOW - soon

A preface.

## Current Task

Several lines

#1 of them a number, \\o/

## Notes
kept
## Current Tasks
kept too

## Recent Completions
- [X] capital
- None
- [x] first

  second
      - nested
loose
  lost
* [x] another bullet
- [x]

## Key Files
- `a.rs` the main one
- plain.rs
- `unclosed
";
        let now = parse(text);
        assert_eq!(now.task, "Several lines\n\n#1 of them a number, \\o/");
        assert_eq!(
            now.completions,
            [
                "capital",
                "first\n\nsecond\n    - nested",
                "another bullet",
                ""
            ]
        );
        assert_eq!(now.files, ["a.rs", "plain.rs", "`unclosed"]);
        assert_eq!(now.timestamp, "");
        assert_eq!(
            now.other,
            "## Notes\nA preface.\nloose\n  lost\n## Notes\nkept\n## Current Tasks\nkept too"
        );
        assert_eq!(parse(&now.render()), now);
    }

    #[test]
    fn texts_that_look_like_the_file_itself_are_texts() {
        let nasty = "## Key Files\n- `x`\n\\# NOW - 2026-11-15\n\n- [x] done\n  \n";
        let now = Now {
            task: nasty.to_owned(),
            completions: vec![nasty.to_owned(), String::new(), " \n".to_owned()],
            pending: vec!["[x] boxed".to_owned()],
            files: vec![
                "a`b".to_owned(),
                String::new(),
                "``".to_owned(),
                "x\ny".to_owned(),
            ],
            ..golden()
        };
        assert_eq!(parse(&now.render()), now);
        assert!(
            now.render().contains("\n\\## Key Files\n"),
            "{}",
            now.render()
        );
    }

    /// Any text, and often one made of what the format itself is made of.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\n"),
            Just("\r\n"),
            Just("\r"),
            Just(" "),
            Just("  "),
            Just("\\"),
            Just("#"),
            Just("## "),
            Just(TASK),
            Just(COMPLETIONS),
            Just("- "),
            Just("[x] "),
            Just("[ ]"),
            Just("`"),
            Just("``"),
            Just("word"),
            Just("é"),
            Just("\u{feff}"),
            Just("\u{85}"),
            Just("# NOW - 2026-11-15"),
        ];
        prop_oneof![
            any::<String>(),
            "(?s).{0,40}",
            vec(piece, 0..12).prop_map(|it| it.concat()),
        ]
    }

    prop_compose! {
        fn now()(
            task in text(), completions in vec(text(), 0..5), pending in vec(text(), 0..5),
            files in vec(text(), 0..5),
        ) -> Now {
            Now { task, completions, pending, files, ..golden() }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn whatever_an_agent_sends_comes_back_the_same(now in now()) {
            prop_assert_eq!(parse(&now.render()), now);
        }

        #[test]
        fn what_was_read_from_any_file_is_written_and_read_the_same(lines in vec(text(), 0..8)) {
            let now = parse(&lines.join("\n"));
            prop_assert_eq!(parse(&now.render()), now);
        }

        #[test]
        fn only_the_oldest_completions_go_and_only_as_many_as_must(
            now in now(), fresh in vec(text(), 0..3), tokens_max in 0usize..200,
        ) {
            let all: Vec<String> = now.completions.iter().chain(&fresh).cloned().collect();
            let update = Update { completions: Some(fresh.clone()), ..Update::default() };
            let after = now.clone().updated(update, AT, tokens_max);
            let n_gone = all.len() - after.completions.len();
            prop_assert_eq!(&all[n_gone..], &after.completions[..]);
            prop_assert_eq!((&after.task, &after.pending), (&now.task, &now.pending));
            prop_assert!(n_gone <= now.completions.len());
            if after.tokens() > tokens_max {
                prop_assert_eq!(&after.completions, &fresh);
            }
            if n_gone > 0 {
                let completions = all[n_gone - 1..].to_vec();
                let one_more = Now { completions, ..after };
                prop_assert!(one_more.tokens() > tokens_max);
            }
        }
    }

    #[test]
    fn an_update_replaces_the_task_adds_completions_and_keeps_the_rest() {
        let update = Update {
            task: Some("Code review PR #123".to_owned()),
            completions: Some(vec!["Implemented JWT".to_owned()]),
            ..Update::default()
        };
        let after = golden().updated(update, AT, TOKENS_MAX_DEFAULT);
        assert_eq!(after.task, "Code review PR #123");
        assert_eq!(after.completions.len(), 3);
        assert_eq!(after.completions[2], "Implemented JWT");
        assert_eq!(
            (after.pending, after.files),
            (golden().pending, golden().files)
        );
        assert_eq!(after.timestamp, "2026-11-15T02:11:00.123456");

        let update = Update {
            pending: Some(Vec::new()),
            files: Some(vec!["b.rs".to_owned()]),
            ..Update::default()
        };
        let after = golden().updated(update, AT, TOKENS_MAX_DEFAULT);
        assert_eq!(after.task, golden().task);
        assert!(after.pending.is_empty());
        assert_eq!(after.files, ["b.rs"]);
    }

    #[test]
    fn a_task_that_is_too_long_alone_is_kept() {
        let task = "x".repeat(9_000);
        let update = Update {
            task: Some(task.clone()),
            completions: Some(vec!["fresh".to_owned()]),
            ..Update::default()
        };
        let after = golden().updated(update, AT, 1_000);
        assert_eq!(after.task, task);
        assert_eq!(after.completions, ["fresh"]);
    }

    #[test]
    fn a_checkpoint_says_why_and_when_and_cannot_be_cut_short() {
        assert_eq!(checkpoint_name(AT), "NOW-20261115-021100.md");
        assert_eq!(
            checkpoint("# NOW\n", CHECKPOINT_REASON_DEFAULT, AT),
            "<!-- Checkpoint: pre-compression at 2026-11-15T02:11:00.123456 -->\n\n# NOW\n"
        );
        let sly = checkpoint("# NOW\n", "a -->\n## Current Task", AT);
        assert_eq!(sly.matches("-->").count(), 1);
        assert!(parse(&sly).task.is_empty());
    }

    #[test]
    fn the_heartbeat_is_indented_json() {
        assert_eq!(
            heartbeat("2026-11-15T02:11:00"),
            "{\n  \"last_now_update\": \"2026-11-15T02:11:00\"\n}"
        );
    }
}
