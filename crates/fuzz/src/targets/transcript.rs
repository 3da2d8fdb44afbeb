//! Transcripts of sessions: what people, models and programs wrote.

use super::{ensure, in_time, owned, pieces, text};
use crate::{Source, Subject, Target};
use kenning_capture::{CANDIDATES_MAX, extract, read, secrets};

pub(super) const TARGET: Target = Target {
    name: "transcript",
    about: "every text is a session of bounded candidates, and neither private parts nor a planted token are in them",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Transcripts),
    pass_cases: 600,
    fresh_every: u64::MAX,
    contains_panics: false,
};

/// A token that is put into every input, and must be in no candidate.
const PLANTED: [&str; 2] = ["ghp_", "Zq1Wx2Ec3Rv4Tb5Yn6Um7Ik8Ol9Pa0Sd1Fg2"];

const WORDS: &[&str] = &[
    "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"",
    "{\"type\":\"assistant\",\"message\":{\"content\":[",
    "{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"Bash\",\"input\":{\"command\":\"",
    "{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"is_error\":true,\"content\":\"",
    "\"}}\n",
    "\"}]}}\n",
    "{\"messages\":[",
    "{\"type\":\"response_item\",\"payload\":{",
    "User: ",
    "Assistant: ",
    "We decided to ",
    "always ",
    "never ",
    ", and remember ",
    ". ",
    "? ",
    "because ",
    "<private>",
    "</private>",
    "password=",
    "the token is ",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----",
    "https://a:b@c/",
    "-u a:b ",
    "```\n",
    "> ",
    "error: ",
    "\\n",
    "é\u{301}",
    "İ",
];

const SEEDS: &[&str] = &[
    "{\"type\":\"user\",\"sessionId\":\"s\",\"cwd\":\"/w\",\"message\":{\"role\":\"user\",\"content\":\"We decided to keep the pool.\"}}\n",
    "User: always run the tests. <private>no</private>\n\nAssistant: It failed because of the port.\n",
    "{\"timestamp\":\"t\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"never do it\"}]}}\n",
    "{\"sessionId\":\"g\",\"messages\":[{\"type\":\"user\",\"content\":\"remember that it is so\"}]}",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("{\"a\":", "}"),
        ("[", "]"),
        ("<private>", "</private>"),
        ("`", "`"),
        ("\"", "\""),
        ("> ", "\n"),
    ];
    pieces(source, WORDS, pairs).into_bytes()
}

struct Transcripts;

impl Subject for Transcripts {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let text = text(input);
        let token = PLANTED.concat();
        let planted = format!("{text}\nUser: We decided to use {token} from now on.\n");
        for text in [text.as_ref(), planted.as_str()] {
            let found = in_time(input, || extract(&read(text)))?;
            ensure!(
                found.len() <= CANDIDATES_MAX,
                "{} candidates are too many",
                found.len()
            );
            for candidate in &found {
                let n = candidate.text.chars().count();
                ensure!(n <= 2_000, "a candidate has {n} characters");
                ensure!(
                    !candidate.text.contains(&token),
                    "a secret was kept: {}",
                    candidate.text
                );
            }
        }
        let once = in_time(input, || secrets::redacted(&text))?;
        ensure!(!once.contains(PLANTED[1]), "a secret was kept");
        let kept = secrets::without_private(&text).unwrap_or_default();
        ensure!(
            !kept.to_ascii_lowercase().contains("<private>"),
            "a private part begins in what is kept"
        );
        Ok(())
    }
}
