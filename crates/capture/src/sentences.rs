//! Texts as sentences.

/// The most sentences of one text.
const SENTENCES_MAX: usize = 400;

/// The sentences of a text: without code blocks and quotations, which somebody else wrote.
pub(crate) fn of(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code || line.is_empty() || line.starts_with('>') || line.starts_with('|') {
            continue;
        }
        let line = line.trim_start_matches(['-', '*', '#', '•', ' ']);
        sentences.extend(of_line(without_number(line)));
        if sentences.len() >= SENTENCES_MAX {
            break;
        }
    }
    sentences
}

/// `2. Decision: …` without the number of a list.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(['.', ')']) {
        Some(after) if rest.len() < line.len() && after.starts_with(' ') => after.trim_start(),
        _ => line,
    }
}

fn of_line(line: &str) -> Vec<String> {
    let (mut found, mut start) = (Vec::new(), 0);
    let mut is_quoted = false;
    for (at, c) in line.char_indices() {
        if c == '`' {
            is_quoted = !is_quoted;
        }
        let end = at + c.len_utf8();
        let is_end = matches!(c, '.' | '!' | '?' | ';') && !is_quoted;
        // A dot inside of a name, a number or an abbreviation ends nothing.
        let is_last = line[end..].chars().next().is_none_or(char::is_whitespace);
        if is_end && is_last && !is_abbreviation(&line[start..at]) {
            push(&mut found, &line[start..end]);
            start = end;
        }
    }
    push(&mut found, &line[start..]);
    found.iter().flat_map(|it| parts(it)).collect()
}

fn is_abbreviation(before: &str) -> bool {
    let last = before.rsplit(char::is_whitespace).next().unwrap_or(before);
    ["e.g", "i.e", "etc", "vs", "z.B", "bzw", "ca", "resp"].contains(&last.trim_start_matches('('))
}

fn push(found: &mut Vec<String>, text: &str) {
    let text = text.trim();
    if text.chars().any(char::is_alphabetic) {
        found.push(text.to_owned());
    }
}

/// Two demands in one sentence are two: "…, and remember that …".
fn parts(sentence: &str) -> Vec<String> {
    const JOINTS: [&str; 8] = [
        ", and remember ",
        ", and please ",
        ", and always ",
        ", and never ",
        ", and don't ",
        " and please ",
        " and also ",
        ", also ",
    ];
    for joint in JOINTS {
        if let Some((one, other)) = sentence.split_once(joint)
            && words(one).len() >= 4
            && words(other).len() >= 3
        {
            let word = joint
                .trim()
                .trim_start_matches(", ")
                .trim_start_matches("and ");
            let other = match word {
                "also" | "and also" => other.to_owned(),
                word => format!("{word} {other}"),
            };
            return std::iter::once(one.to_owned())
                .chain(parts(&other))
                .collect();
        }
    }
    vec![sentence.to_owned()]
}

/// The words of a text, in small letters, without signs around them.
pub(crate) fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    let words = words.filter(|it| !it.is_empty());
    words
        .map(|it| it.to_lowercase().replace('’', "'"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_quotations_are_no_sentences() {
        let text = "Use 3.5 of it. Right?\n```\nalways x\n```\n> never y\n- a `b. c` d\n2. Decision: yes. No";
        assert_eq!(
            of(text),
            [
                "Use 3.5 of it.",
                "Right?",
                "a `b. c` d",
                "Decision: yes.",
                "No"
            ]
        );
    }

    #[test]
    fn two_demands_are_two() {
        let text = "Never deploy on Fridays, and remember that rollbacks go through argocd.";
        assert_eq!(
            of(text),
            [
                "Never deploy on Fridays",
                "remember that rollbacks go through argocd."
            ]
        );
    }
}
