//! What a language model's server answers.

use super::{ensure, in_time, owned, pieces};
use crate::{Source, Subject, Target};
use kenning_llm::{Api, object_in, read_answer, read_refusal};

pub(super) const TARGET: Target = Target {
    name: "model_answer",
    about: "an answer of any form is read within bounds, or refused in few words",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Answers),
    pass_cases: 2_000,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "{\"choices\":[{\"message\":{",
    "\"content\":\"a\"",
    "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]",
    "{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"a\",\"input\":{}}",
    "\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}}]",
    "\"arguments\":",
    "\"function\":{",
    "\"message\":{",
    "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}",
    "\"prompt_eval_count\":18446744073709551615,\"eval_count\":18446744073709551615",
    "\"error\":{\"message\":\"no\"}",
    "\"detail\":\"no\"",
    "}",
    "]",
    ",",
    "null",
    "```json\\n",
    "\\u0000",
    "\\u202e",
];

const SEEDS: &[&str] = &[
    r#"{"choices":[{"message":{"content":"It is {\"a\": 1}.","tool_calls":[{"id":"c1","type":"function","function":{"name":"memory_recall","arguments":"{\"query\":\"x\"}"}}]}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}"#,
    r#"{"content":[{"type":"text","text":"yes"},{"type":"tool_use","id":"t1","name":"koi_search","input":{"query":"x"}}],"usage":{"input_tokens":3,"output_tokens":4}}"#,
    r#"{"message":{"content":"yes","tool_calls":[{"function":{"name":"koi_search","arguments":{"query":"x"}}}]},"prompt_eval_count":3,"eval_count":4,"done":true}"#,
    r#"{"error":{"message":"the key is `wrong`\n","type":"auth"}}"#,
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("{\"a\":", "}"),
        ("[", "]"),
        ("{\"content\":[", "]}"),
        ("\"", "\""),
    ];
    pieces(source, WORDS, pairs).into_bytes()
}

struct Answers;

impl Subject for Answers {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        for api in Api::ALL {
            let answer = match in_time(input, || read_answer(api, input))? {
                Ok(answer) => answer,
                Err(why) => {
                    ensure!(why.len() < 100, "{api:?}: `{why}`");
                    continue;
                }
            };
            ensure!(
                !answer.text.trim().is_empty() || !answer.calls.is_empty(),
                "{api:?}: an answer that says nothing"
            );
            // Every escape is longer than what it stands for.
            ensure!(
                answer.text.len() <= input.len(),
                "{api:?}: {} bytes became {}",
                input.len(),
                answer.text.len()
            );
            ensure!(
                answer.calls.len() <= 16,
                "{api:?}: {} calls",
                answer.calls.len()
            );
            for call in &answer.calls {
                ensure!(call.arguments.is_object(), "{api:?}: {}", call.arguments);
            }
            let mut usage = answer.usage;
            usage.add(answer.usage);
            ensure!(usage.total() >= answer.usage.total(), "{api:?}: {usage:?}");
            if let Some(object) = in_time(input, || object_in(&answer.text))? {
                ensure!(object.is_object(), "{api:?}: {object}");
            }
        }
        if let Some(line) = in_time(input, || read_refusal(input))? {
            let n = line.chars().count();
            ensure!(
                (1..=160).contains(&n),
                "the reason for a refusal has {n} characters"
            );
            ensure!(
                !line.contains(|it: char| it.is_control() || it == '`'),
                "the reason for a refusal: {line:?}"
            );
        }
        Ok(())
    }
}
