//! NOW.md, daily logs, `config.yaml` and capsules: files that people edit.

use super::{ensure, in_time, owned, pieces, text};
use crate::{Source, Subject, Target};
use kenning_memory::{capsule::Capsule, config, daily, now};

pub(super) const TARGET: Target = Target {
    name: "memory_files",
    about: "every text has a reading that writes and reads back, and settings are read or refused",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Files),
    pass_cases: 800,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "# NOW\n",
    "## Current Task\n",
    "## Key Decisions\n",
    "## Recent Context\n",
    "- ",
    "* ",
    "\n\n",
    "[2026-01-02 03:04] ",
    "## 03:04:05\n",
    "## Session End\n",
    "<!-- ",
    " -->",
    "---\n",
    "a: 1\n",
    "omi:\n",
    "  path: ",
    "${HOME}",
    "$$",
    "${A:-b}",
    "embedding:\n",
    "  model: x\n",
    "{\"intent\":",
    "\"checksum\":",
    "}",
    "\t",
    "    ",
    "```\n",
];

const SEEDS: &[&str] = &[
    now::DEFAULT,
    "# NOW\n\n## Current Task\n\nwrite tests\nand more\n\n## Key Decisions\n\n- one\n- two\n",
    "## 03:04:05\n\nsomething happened\n\n## 04:05:06\n\n### Session End\n\nlast\n",
    "memory:\n  recency_days: 30\nembedding:\n  model: \"${MODEL:-x}\"\n",
    "{\"intent\": \"x\", \"partial_plan\": {\"a\": [1, 2]}, \"timestamp\": \"2026-01-02T03:04:05Z\"}",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("- ", ""),
        ("[", "]"),
        ("{a: ", "}"),
        ("a:\n ", ""),
        ("${", "}"),
        ("<!-- ", " -->"),
        ("#", ""),
        ("{\"a\":", "}"),
    ];
    pieces(source, WORDS, pairs).into_bytes()
}

struct Files;

impl Subject for Files {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let text = text(input);
        let read = in_time(input, || now::parse(&text))?;
        let written = read.render();
        let again = now::parse(&written);
        ensure!(
            again.render() == written,
            "NOW.md: what was written reads back otherwise"
        );
        for entry in in_time(input, || daily::parse(&text))? {
            let _ = daily::is_session_end(&entry);
        }
        for start in daily::starts(&text) {
            ensure!(
                text.is_char_boundary(start),
                "daily: {start} is inside a character"
            );
        }
        let _ = daily::day_of(&text);
        let _ = in_time(input, || config::Config::parse(&text))?;
        let _ = config::show(&text);
        if let Ok(set) = config::set(&text, "memory.recency_days", "31") {
            let got =
                config::get(&set, "memory.recency_days").map_err(|it| format!("set: {it}"))?;
            ensure!(got == 31 || got == 31.0 || got == "31", "set: {got}");
        }
        if let Ok(value) = serde_json::from_str(&text)
            && let Some(capsule) = Capsule::from_json(&value)
        {
            let _ = (capsule.is_whole(), capsule.to_json());
        }
        Ok(())
    }
}
