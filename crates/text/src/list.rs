//! Names in sentences.

/// Names in backticks with commas between them: `` `a`, `b` and 3 more ``.
#[must_use]
pub fn quoted<T: AsRef<str>>(names: &[T], shown_max: usize) -> String {
    let shown = names.iter().take(shown_max);
    let shown: Vec<String> = shown.map(|it| format!("`{}`", it.as_ref())).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(shown_max) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_shown_ones_are_counted() {
        assert_eq!(quoted(&["a", "b"], 2), "`a`, `b`");
        assert_eq!(quoted(&["a", "b", "c", "d"], 2), "`a`, `b` and 2 more");
        assert_eq!(quoted::<&str>(&[], 2), "");
    }
}
