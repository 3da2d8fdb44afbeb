//! Recognizes prompts that only tell an agent to continue: `commit and push`, `rename the variable`.
//!
//! Their words are in half of all memories and do not say which one is relevant. So a memory is given
//! with such a prompt only if it contains every word of it.

/// What is done to code and files, and what it is done to.
const CHORES: &[&str] = &[
    "add",
    "amend",
    "argument",
    "branch",
    "build",
    "class",
    "comment",
    "commit",
    "compile",
    "delete",
    "extract",
    "file",
    "fix",
    "format",
    "function",
    "import",
    "inline",
    "install",
    "line",
    "lint",
    "merge",
    "method",
    "move",
    "parameter",
    "pull",
    "push",
    "rebase",
    "refactor",
    "remove",
    "rename",
    "rerun",
    "restart",
    "retry",
    "revert",
    "run",
    "save",
    "stage",
    "stash",
    "test",
    "typo",
    "update",
    "variable",
];

/// Words around them.
const AROUND: &[&str] = &[
    "a", "again", "all", "and", "it", "in", "my", "now", "of", "please", "the", "them", "then",
    "this", "that", "these", "those", "to", "you", "can", "could", "also", "just", "first",
];

/// Words of arithmetic questions.
const SUM: &[&str] = &[
    "what",
    "whats",
    "is",
    "calculate",
    "compute",
    "how",
    "much",
    "s",
];

/// The words of a prompt that is only a chore or a sum; `None` for every other.
pub(super) fn words_of_chore(prompt: &str) -> Option<Vec<String>> {
    if is_sum(prompt) {
        return Some(vec![prompt.trim().to_lowercase()]);
    }
    let words = prompt.split(|it: char| !it.is_alphanumeric());
    let words = words.filter(|it| !it.is_empty()).map(str::to_lowercase);
    let words: Vec<String> = words.filter(|it| !AROUND.contains(&it.as_str())).collect();
    let is_chore = |it: &String| CHORES.contains(&singular(it));
    (!words.is_empty() && words.iter().all(is_chore)).then_some(words)
}

/// Whether a text has every one of these words.
pub(super) fn has_all(text: &str, words: &[String]) -> bool {
    let text = text.to_lowercase();
    words.iter().all(|it| text.contains(singular(it)))
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s')
        .filter(|it| CHORES.contains(it))
        .unwrap_or(word)
}

fn is_sum(prompt: &str) -> bool {
    let mut words = prompt.split(|it: char| !it.is_alphabetic());
    let has_other_word = words.any(|it| {
        let word = it.to_lowercase();
        !word.is_empty() && word != "x" && !SUM.contains(&word.as_str())
    });
    let has_digit = prompt.contains(|it: char| it.is_ascii_digit());
    let has_sign = prompt.contains(['+', '*', '/', '^', '×', '÷']) || prompt.contains(" - ");
    has_digit && has_sign && !has_other_word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chores_and_sums_are_told_from_questions() {
        for prompt in [
            "commit and push",
            "Rename the variable.",
            "run the tests again, please",
            "what is 2+2",
            "What's 12 * (3 + 4)?",
        ] {
            assert!(words_of_chore(prompt).is_some(), "{prompt}");
        }
        for prompt in [
            "how do we run the tests",
            "commit the billing service",
            "which port does the mail service listen on",
            "what is OPS-778",
            "what is 42",
            "who merged 17/3",
            "",
        ] {
            assert_eq!(words_of_chore(prompt), None, "{prompt}");
        }
        let words = words_of_chore("run the tests").unwrap();
        assert!(has_all("Run the test suite with `make check`", &words));
        assert!(!has_all("The suite takes an hour to run", &words));
    }
}
