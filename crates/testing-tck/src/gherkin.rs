//! Feature files: scenarios with their steps, outlines expanded.

/// A scenario.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// The feature, such as `Match1 - Match nodes`.
    pub feature: String,
    /// Its name, with the number of the example for outlines.
    pub name: String,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Its words, without `Given`, `When` and so on.
    pub text: String,
    /// The text between `"""`.
    pub doc: Option<String>,
    /// The lines between `|`.
    pub table: Vec<Vec<String>>,
}

/// A scenario before its examples are filled in.
#[derive(Default)]
struct Draft {
    name: String,
    steps: Vec<Step>,
    examples: Vec<Vec<Vec<String>>>,
}

/// The scenarios of a feature file.
#[must_use]
pub fn scenarios(text: &str) -> Vec<Scenario> {
    let mut feature = String::new();
    let mut background: Vec<Step> = Vec::new();
    let mut drafts: Vec<Draft> = Vec::new();
    let mut in_background = false;
    let mut in_examples = false;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') || trimmed.starts_with('@') {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix("Feature:") {
            name.trim().clone_into(&mut feature);
        } else if trimmed.starts_with("Background:") {
            in_background = true;
        } else if let Some(name) = trimmed
            .strip_prefix("Scenario:")
            .or_else(|| trimmed.strip_prefix("Scenario Outline:"))
        {
            in_background = false;
            in_examples = false;
            drafts.push(Draft {
                name: name.trim().to_owned(),
                ..Draft::default()
            });
        } else if trimmed.starts_with("Examples:") {
            in_examples = true;
            if let Some(draft) = drafts.last_mut() {
                draft.examples.push(Vec::new());
            }
        } else if trimmed.starts_with("\"\"\"") {
            let indent = line.len() - line.trim_start().len();
            let mut doc = Vec::new();
            for line in lines.by_ref() {
                if line.trim() == "\"\"\"" {
                    break;
                }
                doc.push(line.get(indent..).unwrap_or_else(|| line.trim_start()));
            }
            let steps = match drafts.last_mut() {
                Some(draft) if !in_background => &mut draft.steps,
                _ => &mut background,
            };
            if let Some(step) = steps.last_mut() {
                step.doc = Some(doc.join("\n"));
            }
        } else if trimmed.starts_with('|') {
            let row = cells(trimmed);
            match drafts.last_mut() {
                Some(draft) if in_examples => {
                    if let Some(table) = draft.examples.last_mut() {
                        table.push(row);
                    }
                }
                Some(draft) if !in_background => {
                    if let Some(step) = draft.steps.last_mut() {
                        step.table.push(row);
                    }
                }
                _ => {
                    if let Some(step) = background.last_mut() {
                        step.table.push(row);
                    }
                }
            }
        } else if let Some((word, rest)) = trimmed.split_once(' ') {
            if !["Given", "When", "Then", "And", "But"].contains(&word) {
                continue;
            }
            let step = Step {
                text: rest.trim().to_owned(),
                ..Step::default()
            };
            match drafts.last_mut() {
                Some(draft) if !in_background => draft.steps.push(step),
                _ => background.push(step),
            }
        }
    }
    let expand = |draft: Draft| expand(&feature, &background, draft);
    drafts.into_iter().flat_map(expand).collect()
}

fn expand(feature: &str, background: &[Step], draft: Draft) -> Vec<Scenario> {
    let steps: Vec<Step> = background.iter().chain(&draft.steps).cloned().collect();
    let scenario = |name: String, steps: Vec<Step>| Scenario {
        feature: feature.to_owned(),
        name,
        steps,
    };
    if draft.examples.is_empty() {
        return vec![scenario(draft.name, steps)];
    }
    let mut scenarios = Vec::new();
    for table in &draft.examples {
        let Some((names, rows)) = table.split_first() else {
            continue;
        };
        for row in rows {
            let fill = |text: &str| {
                let pairs = names.iter().zip(row);
                pairs.fold(text.to_owned(), |text, (name, value)| {
                    text.replace(&format!("<{name}>"), value)
                })
            };
            let filled = steps.iter().map(|step| Step {
                text: fill(&step.text),
                doc: step.doc.as_deref().map(fill),
                table: step
                    .table
                    .iter()
                    .map(|row| row.iter().map(|it| fill(it)).collect())
                    .collect(),
            });
            let name = format!("{} #{}", draft.name, scenarios.len() + 1);
            scenarios.push(scenario(name, filled.collect()));
        }
    }
    scenarios
}

/// The cells of a line of a table.
fn cells(line: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut rest = line.trim().chars().skip(1);
    while let Some(it) = rest.next() {
        match it {
            '\\' => match rest.next() {
                Some('|') => cell.push('|'),
                Some('\\') => cell.push('\\'),
                Some('n') => cell.push('\n'),
                Some(other) => {
                    cell.push('\\');
                    cell.push(other);
                }
                None => cell.push('\\'),
            },
            '|' => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            _ => cell.push(it),
        }
    }
    cells
}
