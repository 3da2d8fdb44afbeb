//! The figures as a Markdown table.

use super::Took;

#[derive(Default)]
pub(in crate::bench) struct Table(Vec<String>);

impl Table {
    /// What was timed: what was aimed at, the times, and what stands beside them.
    pub(in crate::bench) fn row(&mut self, what: &str, target: &str, took: &Took, beside: &str) {
        let Took {
            wall,
            wall_p99,
            cpu,
        } = took;
        let (wall, wall_p99, cpu) = (short(*wall), short(*wall_p99), short(*cpu));
        self.0.push(format!(
            "| {what} | {target} | {wall} | {wall_p99} | {cpu} | {beside} |"
        ));
    }

    /// What is no time.
    pub(in crate::bench) fn figure(&mut self, what: &str, figure: &str) {
        self.0.push(format!("| {what} | | | | | {figure} |"));
    }

    pub(in crate::bench) fn print(&self) {
        println!("| what | target | median ms | p99 ms | processor ms | beside it |");
        println!("|---|---|---|---|---|---|");
        self.0.iter().for_each(|row| println!("{row}"));
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
}
