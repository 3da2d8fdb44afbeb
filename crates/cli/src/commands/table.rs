//! Rows for people: a table on a terminal, otherwise one line each.

use crate::output;
use kenning_text::line::{dotted, one_line};
use std::io::IsTerminal;

/// The widest cell of a table.
const CELL_CHARS_MAX: usize = 72;

/// Rows under a head; separated by tabs if there is no terminal.
pub(crate) fn rows(head: &[&str], rows: &[Vec<String>]) -> String {
    if std::io::stdout().is_terminal() {
        let columns = console::Term::stdout().size_checked().map(|it| it.1);
        table(head, rows, columns.map_or(usize::MAX, usize::from))
    } else {
        lines(rows)
    }
}

/// Prints rows under a head, or says that there are none.
pub(crate) fn print(head: &[&str], all: &[Vec<String>], none: &str) {
    match all.is_empty() {
        true => output::say(none),
        false => output::print(&rows(head, all)),
    }
}

fn lines(rows: &[Vec<String>]) -> String {
    let rows = rows.iter().map(|row| {
        let cells: Vec<String> = row.iter().map(|it| one_line(it)).collect();
        cells.join("\t")
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// The narrowest column that is made narrower so that a table fits.
const COLUMN_CHARS_MIN: usize = 12;

/// Makes the widest columns narrower until a row fits.
fn fitted(mut widths: Vec<usize>, columns: usize) -> Vec<usize> {
    let gaps = 2 * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > columns {
        let widest = widths.iter_mut().max_by_key(|it| **it);
        match widest {
            Some(width) if *width > COLUMN_CHARS_MIN => *width -= 1,
            _ => break,
        }
    }
    widths
}

fn table(head: &[&str], rows: &[Vec<String>], columns: usize) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|it| cut(&one_line(it))).collect())
        .collect();
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let cells = cells.map(|it| width_of(it));
        cells.chain([head[at].chars().count()]).max().unwrap_or(0)
    };
    let widths = fitted((0..head.len()).map(width).collect(), columns);
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths);
        let narrow = |it: &String, width: usize| match width_of(it) > width {
            true => dotted(it, width.saturating_sub(1)),
            false => it.clone(),
        };
        let padded: Vec<String> = cells
            .map(|(it, &width)| format!("{:<width$}", narrow(it, width)))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let titles: Vec<String> = head.iter().map(ToString::to_string).collect();
    let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    let mut out = vec![line(&titles), line(&rule)];
    out.extend(rows.iter().map(|row| line(row)));
    out.join("\n")
}

/// A text as the content of a cell.
pub(crate) fn cell(text: &str) -> String {
    if std::io::stdout().is_terminal() {
        cut(&one_line(text))
    } else {
        one_line(text)
    }
}

/// How many characters are shown.
fn width_of(text: &str) -> usize {
    text.chars().filter(|&c| !output::is_mark(c)).count()
}

fn cut(text: &str) -> String {
    if width_of(text) <= CELL_CHARS_MAX {
        return text.to_owned();
    }
    dotted(text, CELL_CHARS_MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let long = "x".repeat(100);
        let rows = [
            vec!["a".to_owned(), "é\nb".to_owned()],
            vec!["long".to_owned(), long],
        ];
        let shown = table(&["id", "text"], &rows, usize::MAX);
        let shown: Vec<&str> = shown.lines().collect();
        assert_eq!(shown[0], "id    text");
        assert_eq!(shown[2], "a     é b");
        assert_eq!(shown[3].chars().count(), 6 + CELL_CHARS_MAX);
        assert_eq!(lines(&rows[..1]), "a\té b");
        let narrow = table(&["id", "text"], &rows, 40);
        assert!(
            narrow.lines().all(|it| it.chars().count() <= 40),
            "{narrow}"
        );
    }
}
