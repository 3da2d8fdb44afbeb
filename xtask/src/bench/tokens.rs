//! What a model pays for the listing of tools, before it has called any.

use crate::options::Options;
use anyhow::Result;
use kenning_tools::{AnyTool, TOOLS, Toolset};
use serde_json::{Value, json};

/// All listed tools together stay under it.
const TOKENS_MAX: usize = 6_000;

struct Cost {
    n_tools: usize,
    tokens: usize,
    bytes: usize,
}

/// Of what reaches the model: name, description and schema of the arguments, as compact JSON.
fn cost(tools: &[&dyn AnyTool]) -> Cost {
    let listing: Vec<Value> = tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name(), "description": tool.description(),
                "inputSchema": tool.input_schema(),
            })
        })
        .collect();
    let text = Value::Array(listing).to_string();
    Cost {
        n_tools: tools.len(),
        tokens: bpe_openai::o200k_base().count(text.as_str()),
        bytes: text.len(),
    }
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&[])?;
    println!(
        "{:<8} {:>5} {:>7} {:>7}  (o200k)",
        "toolset", "tools", "tokens", "bytes"
    );
    let print = |name: &str, cost: &Cost| {
        println!(
            "{name:<8} {:>5} {:>7} {:>7}",
            cost.n_tools, cost.tokens, cost.bytes
        );
    };
    for toolset in Toolset::ALL {
        let of = TOOLS.iter().copied().filter(|it| it.toolset() == toolset);
        print(toolset.as_str(), &cost(&of.collect::<Vec<_>>()));
    }
    let all = cost(TOOLS);
    print("all", &all);
    if all.tokens > TOKENS_MAX {
        eprintln!("warning: {} tokens are more than {TOKENS_MAX}", all.tokens);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tools_together_stay_under_the_ceiling() {
        let tokens = cost(TOOLS).tokens;
        assert!(tokens <= TOKENS_MAX, "{tokens} tokens");
    }

    #[test]
    fn the_count_is_that_of_the_known_vocabulary() {
        // Counted with the reference implementation.
        assert_eq!(bpe_openai::o200k_base().count("hello world"), 2);
        assert!(cost(TOOLS).tokens > cost(&TOOLS[..1]).tokens);
    }
}
