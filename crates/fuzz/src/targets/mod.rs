//! Every target: how its inputs are generated, and what must hold for the answers.
//!
//! One of the plan is missing: `cypher_roundtrip`, because nothing prints a query.

mod archive_rows;
mod audit_file;
mod cli_args;
mod code_read;
mod event_decode;
mod front_matter;
mod http_headers_vs_body;
mod item_id_and_path;
mod item_text;
mod jsonrpc_line;
mod koi_net_message;
mod mail_message;
mod manifest_toml;
mod markdown_links;
mod memory_files;
mod model_answer;
mod page_html;
mod page_pdf;
mod proof_verify;
mod query_grammar;
mod query_parse;
mod query_run;
mod query_stored;
mod rpc;
mod sync_message;
mod tool_input;
mod transcript;
mod url_policy;
mod vault_name;
mod wasm_component;
mod wasm_package;
mod workflow_plan;

use crate::{Source, Target};

/// Every target.
pub const ALL: &[&Target] = &[
    &jsonrpc_line::TARGET,
    &http_headers_vs_body::TARGET,
    &tool_input::TARGET,
    &query_parse::TARGET,
    &query_run::TARGET,
    &query_grammar::TARGET,
    &front_matter::TARGET,
    &markdown_links::TARGET,
    &manifest_toml::TARGET,
    &item_id_and_path::TARGET,
    &item_text::TARGET,
    &url_policy::TARGET,
    &vault_name::TARGET,
    &event_decode::TARGET,
    &archive_rows::TARGET,
    &proof_verify::TARGET,
    &wasm_component::TARGET,
    &wasm_package::TARGET,
    &cli_args::TARGET,
    &memory_files::TARGET,
    &page_html::TARGET,
    &page_pdf::TARGET,
    &code_read::TARGET,
    &sync_message::TARGET,
    &koi_net_message::TARGET,
    &mail_message::TARGET,
    &workflow_plan::TARGET,
    &model_answer::TARGET,
    &audit_file::TARGET,
    &transcript::TARGET,
];

/// The input as text: invalid UTF-8 is replaced, as every server does unless it refuses it.
fn text(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input)
}

fn owned(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|it| it.as_bytes().to_vec()).collect()
}

/// Fails with this message unless the condition holds.
macro_rules! ensure {
    ($so:expr, $($words:tt)*) => {
        if !$so {
            return Err(format!($($words)*));
        }
    };
}
use ensure;

/// A message repeats only a short part of the input.
fn short(error: &kenning_core::Error) -> Result<(), String> {
    let n = error.message.chars().count();
    ensure!(
        n <= kenning_core::MESSAGE_CHARS_MAX,
        "a message has {n} characters"
    );
    Ok(())
}

/// Pieces one after the other, some of them nested in pairs, mostly a few.
fn pieces(source: &mut Source, words: &[&str], pairs: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let n = 1 + source.count().min(200);
    for _ in 0..n {
        match source.below(10) {
            0 => out += &source.text(),
            1 => out += source.odd_text(),
            2 if !pairs.is_empty() => {
                let (open, close) = *source.pick(pairs);
                let depth = source.depth();
                let inner = *source.pick(words);
                out += &format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            }
            3 => {
                let word = *source.pick(words);
                let n = source.count();
                out += &word.repeat(n);
            }
            _ => {
                out += *source.pick(words);
                if source.one_in(3) {
                    out.push(' ');
                }
            }
        }
        if out.len() > crate::mutate::INPUT_BYTES_MAX {
            break;
        }
    }
    out
}

/// Finds inputs that take more work than their length warrants.
///
/// Generous: it sees what is quadratic in a long text, not what is slow. Counted is the processor's time of
/// this thread, so that a busy machine makes nothing slow.
fn in_time<T>(input: &[u8], work: impl FnOnce() -> T) -> Result<T, String> {
    let began = processor_ms();
    let made = work();
    let took = processor_ms().saturating_sub(began);
    let most = 2_000 + input.len() as u64 / 20;
    if took > most {
        return Err(format!("slow: {took} ms for {} bytes", input.len()));
    }
    Ok(made)
}

/// How long this thread has worked, in milliseconds; `None` where that is unknown.
fn processor_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|it| it.parse::<u64>().ok());
    ns.unwrap_or(0) / 1_000_000
}
