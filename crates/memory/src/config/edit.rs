//! Changes one key of the file and leaves every other line as a person wrote it.
//!
//! The file has two levels, so the change is made line by line. Some files are written in ways that
//! this does not understand (a whole section on one line, anchors, quoted keys): the caller reads the
//! result again and refuses it if anything but the one key has changed.

/// The text with `section.name` set to `value`, which is valid YAML on one line.
pub(super) fn set(text: &str, section: &str, name: &str, value: &str) -> String {
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match lines.iter().position(|it| key_of(it) == Some((0, section))) {
        None => {
            if lines.last().is_some_and(|it| !it.trim().is_empty()) {
                lines.push(String::new());
            }
            lines.push(format!("{section}:"));
            lines.push(format!("  {name}: {value}"));
        }
        Some(head) => set_in_section(&mut lines, head, name, value),
    }
    let mut text = lines.join(ending);
    text.push_str(ending);
    text
}

fn set_in_section(lines: &mut Vec<String>, head: usize, name: &str, value: &str) {
    let body = lines.iter().enumerate().skip(head + 1);
    let end = body
        .clone()
        .find(|(_, line)| key_of(line).is_some_and(|(indent, _)| indent == 0) || is_marker(line))
        .map_or(lines.len(), |(at, _)| at);
    let keys: Vec<(usize, usize, &str)> = body
        .take(end - head - 1)
        .filter_map(|(at, line)| key_of(line).map(|(indent, key)| (at, indent, key)))
        .collect();
    let indent = keys.first().map_or(2, |&(_, indent, _)| indent);
    let own = keys.iter().filter(|it| it.1 == indent);
    let found = own.clone().find(|it| it.2 == name).map(|it| it.0);
    let pad = " ".repeat(indent);
    match found {
        Some(at) => {
            let stop = value_end(lines, at, indent, end);
            let comment = trailing_comment(&lines[at]).to_owned();
            lines.splice(at..stop, [format!("{pad}{name}: {value}{comment}")]);
        }
        None => {
            // After the last line of the section, before comments that introduce the next one.
            let last = (head..end).rev().find(|&at| {
                let line = &lines[at];
                at == head || line.starts_with(' ') && !line.trim().is_empty()
            });
            let at = last.unwrap_or(head) + 1;
            lines.insert(at, format!("{pad}{name}: {value}"));
        }
    }
}

/// Indentation and name of a line `name: …`.
fn key_of(line: &str) -> Option<(usize, &str)> {
    let inner = line.trim_start_matches(' ');
    let (name, rest) = inner.split_once(':')?;
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_key = !name.is_empty() && name.chars().all(good);
    let ends = rest.is_empty() || rest.starts_with([' ', '\t', '\r']);
    (is_key && ends).then_some((line.len() - inner.len(), name))
}

fn is_marker(line: &str) -> bool {
    line.starts_with("---") || line.starts_with("...")
}

/// The line after a value that may span several lines.
fn value_end(lines: &[String], at: usize, indent: usize, end: usize) -> usize {
    let goes_on = |line: &str| {
        let inner = line.trim_start_matches(' ');
        let own = line.len() - inner.len();
        own > indent || own == indent && (inner.starts_with("- ") || inner == "-")
    };
    let rest = lines.get(at + 1..end).unwrap_or_default();
    let n_more = rest.iter().take_while(|it| goes_on(it)).count();
    at + 1 + n_more
}

/// The comment of a line with the spaces before it.
fn trailing_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            // A quote opens a string only at its beginning.
            (None, '"' | '\'') if before == ' ' => quote = Some(c),
            (None, '#') if before.is_whitespace() => {
                let start = line.get(..at).unwrap_or_default().trim_end().len();
                return line.get(start..).unwrap_or_default();
            }
            (None, _) => {}
        }
        before = c;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_found_where_yaml_finds_it() {
        for (line, comment) in [
            ("  provider: nim  # or 'ollama'", "  # or 'ollama'"),
            ("  model: \"a # b\" # real", " # real"),
            ("  model: 'a # b'", ""),
            ("  model: a#b", ""),
            ("  model: it's # real", " # real"),
            ("  model:", ""),
        ] {
            assert_eq!(trailing_comment(line), comment, "{line}");
        }
    }
}
