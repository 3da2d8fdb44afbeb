//! The figures as a Markdown table.

use super::Took;

#[derive(Default)]
pub(in crate::bench) struct Table {
    rows: Vec<String>,
    missed: Vec<String>,
}

impl Table {
    /// What was timed: what was aimed at, the times, and what stands beside them. A target in milliseconds
    /// is that of the median.
    pub(in crate::bench) fn row(&mut self, what: &str, target: &str, took: &Took, beside: &str) {
        let Took {
            wall,
            wall_p99,
            cpu,
        } = took;
        if limit_ms(target).is_some_and(|limit| *wall > limit) {
            self.missed.push(format!("missed: {what}, {target}"));
        }
        let (wall, wall_p99, cpu) = (short(*wall), short(*wall_p99), short(*cpu));
        self.rows.push(format!(
            "| {what} | {target} | {wall} | {wall_p99} | {cpu} | {beside} |"
        ));
    }

    /// What is no time.
    pub(in crate::bench) fn figure(&mut self, what: &str, figure: &str) {
        self.rows.push(format!("| {what} | | | | | {figure} |"));
    }

    pub(in crate::bench) fn print(&self) {
        println!("| what | target | median ms | p99 ms | processor ms | beside it |");
        println!("|---|---|---|---|---|---|");
        self.rows.iter().for_each(|row| println!("{row}"));
        self.missed.iter().for_each(|row| println!("{row}"));
    }
}

/// A target like `5 ms` or `30 s`, in milliseconds.
fn limit_ms(target: &str) -> Option<f64> {
    let (number, unit) = target.split_once(' ')?;
    let number: f64 = number.parse().ok()?;
    match unit {
        "ms" => Some(number),
        "s" => Some(number * 1_000.0),
        _ => None,
    }
}

/// Three digits that matter.
fn short(ms: f64) -> String {
    match ms {
        ms if ms >= 10.0 => format!("{ms:.0}"),
        ms if ms >= 1.0 => format!("{ms:.1}"),
        ms => format!("{ms:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_matter() {
        for (ms, expected) in [(0.0254, "0.025"), (3.25, "3.2"), (412.7, "413")] {
            assert_eq!(short(ms), expected);
        }
    }

    #[test]
    fn a_missed_target_is_named() {
        let took = |wall| Took {
            wall,
            wall_p99: wall,
            cpu: wall,
        };
        let mut table = Table::default();
        table.row("a", "5 ms", &took(5.0), "");
        table.row("b", "1.5 x native", &took(6.0), "");
        assert!(table.missed.is_empty());
        table.row("c", "5 ms", &took(5.1), "");
        assert_eq!(table.missed, ["missed: c, 5 ms"]);
        table.row("d", "1 s", &took(1_001.0), "");
        assert_eq!(table.missed.len(), 2);
    }
}
