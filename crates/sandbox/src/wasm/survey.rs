//! Checks a component before it is compiled.
//!
//! A few kilobytes can keep a compiler busy for hours, so the parts that cost more than linear time
//! are counted first. The parser's own limits apply as well.

use kenning_core::{Error, Result};
use wasmparser::{Parser, Payload};

/// Largest component that is accepted.
pub(crate) const WASM_BYTES_MAX: usize = 64 * 1024 * 1024;
const FUNCTIONS_MAX: u64 = 250_000;
const MODULES_MAX: u64 = 500;
const NESTING_MAX: u32 = 32;
/// Registers are assigned per function, in more than linear time.
const FUNCTION_BYTES_MAX: usize = 1024 * 1024;

/// Whether these bytes are a component that may be compiled.
pub(crate) fn check(wasm: &[u8]) -> Result<()> {
    if wasm.len() > WASM_BYTES_MAX {
        return Err(over(
            "the component",
            wasm.len() as u64,
            "bytes",
            WASM_BYTES_MAX as u64,
        ));
    }
    if !wasm.starts_with(b"\0asm") {
        return Err(Error::invalid("the file is not WebAssembly"));
    }
    if Parser::is_core_wasm(wasm) {
        return Err(
            Error::invalid("the file is a core WebAssembly module, not a component")
                .hint("build it with `--target wasm32-wasip2`"),
        );
    }
    let (mut functions, mut modules, mut depth) = (0_u64, 0_u64, 0_u32);
    for payload in Parser::new(0).parse_all(wasm) {
        let broken = |err| Error::invalid("the component is malformed").because(err);
        match payload.map_err(broken)? {
            Payload::FunctionSection(section) => functions += u64::from(section.count()),
            Payload::CodeSectionEntry(body) if body.range().len() > FUNCTION_BYTES_MAX => {
                let bytes = body.range().len() as u64;
                return Err(over(
                    "a function",
                    bytes,
                    "bytes",
                    FUNCTION_BYTES_MAX as u64,
                ));
            }
            Payload::ModuleSection { .. } => {
                (modules, depth) = (modules + 1, depth + 1);
            }
            Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if functions > FUNCTIONS_MAX {
            return Err(over("the component", functions, "functions", FUNCTIONS_MAX));
        }
        if modules > MODULES_MAX {
            return Err(over("the component", modules, "modules", MODULES_MAX));
        }
        if depth > NESTING_MAX {
            return Err(over(
                "the component",
                depth.into(),
                "layers",
                NESTING_MAX.into(),
            ));
        }
    }
    Ok(())
}

fn over(what: &str, count: u64, unit: &str, max: u64) -> Error {
    Error::too_large(format!("{what} has {count} {unit}")).hint(format!("at most {max}"))
}
