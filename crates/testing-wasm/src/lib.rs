//! For tests only: good and hostile components, and how each must end.
//!
//! A test component is written as the core functions that matter ([`Tool`]); memory, allocation and
//! the way an answer is handed over are the same for all. [`probes`] are good components that try
//! what a tool can reach, [`corpus`] is hostile ones with the end that each must come to, and
//! [`mutation`] breaks good ones at random.

pub mod corpus;
pub mod mutation;
pub mod probes;

use anyhow::{Context as _, Result};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// Builds a component.
#[derive(Clone, Default)]
pub struct Tool {
    imports: String,
    more: String,
    memory: String,
    body: String,
    is_flat: bool,
}

const WIT: &str = include_str!("../wit/host.wit");

/// What every test component has: allocation without freeing, and `$ok` and `$err`, which hand over
/// a text. Addresses below 64 KiB are for data and scratch; 16 holds the answer.
const PRELUDE: &str = r#"
  (global $next (mut i32) (i32.const 65536))
  (func $alloc (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32) (local $mask i32)
    (local.set $mask (i32.sub (local.get $align) (i32.const 1)))
    (local.set $at (i32.and (i32.add (global.get $next) (local.get $mask)) (i32.xor (local.get $mask) (i32.const -1))))
    (global.set $next (i32.add (local.get $at) (local.get $size)))
    (block $enough
      (loop $more
        (br_if $enough (i32.le_u (global.get $next) (i32.shl (memory.size) (i32.const 16))))
        (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))
        (unreachable)))
    (local.get $at))
  (func $answer (param $case i32) (param $ptr i32) (param $len i32) (result i32)
    (i32.store8 (i32.const 16) (local.get $case))
    (i32.store (i32.const 20) (local.get $ptr))
    (i32.store (i32.const 24) (local.get $len))
    (i32.const 16))
  (func $ok (param $ptr i32) (param $len i32) (result i32)
    (call $answer (i32.const 0) (local.get $ptr) (local.get $len)))
  (func $err (param $ptr i32) (param $len i32) (result i32)
    (call $answer (i32.const 1) (local.get $ptr) (local.get $len)))
"#;

impl Tool {
    /// A tool whose `run` does this with `$ptr` and `$len` and leaves the address of its answer.
    pub fn new(body: &str) -> Self {
        Self {
            body: body.to_owned(),
            memory: "(memory (export \"memory\") 2)".to_owned(),
            ..Self::default()
        }
    }

    /// Functions of the host that it calls.
    #[must_use]
    pub fn imports(mut self, imports: &str) -> Self {
        self.imports.push_str(imports);
        self
    }

    /// Further fields of the module.
    #[must_use]
    pub fn more(mut self, more: &str) -> Self {
        self.more.push_str(more);
        self
    }

    /// Other memories.
    #[must_use]
    pub fn memory(mut self, memory: &str) -> Self {
        self.memory = memory.to_owned();
        self
    }

    /// With `run` at the root instead of in the interface.
    #[must_use]
    pub fn flat(mut self) -> Self {
        self.is_flat = true;
        self
    }

    /// The core module.
    pub fn core(&self) -> String {
        let (name, describe) = match self.is_flat {
            true => ("run", ""),
            false => (
                "kami:tool/tool@0.1.0#run",
                r#"(func (export "kami:tool/tool@0.1.0#describe") (result i32)
                     (i32.store (i32.const 32) (i32.const 48))
                     (i32.store (i32.const 36) (i32.const 15))
                     (i32.const 32))
                   (data (i32.const 48) "{\"name\":\"test\"}")"#,
            ),
        };
        let Self {
            imports,
            more,
            memory,
            body,
            ..
        } = self;
        format!(
            "(module {imports} {memory} {PRELUDE} {more} {describe}
               (func (export \"{name}\") (param $ptr i32) (param $len i32) (result i32) (local $n i32) (local $m i32) {body}))"
        )
    }

    /// The component.
    pub fn build(&self) -> Result<Vec<u8>> {
        let world = if self.is_flat { "flat" } else { "tool" };
        encode(&self.core(), WIT, world)
    }
}

/// A component from a core module and the world that it is in.
pub fn encode(core: &str, wit: &str, world: &str) -> Result<Vec<u8>> {
    let mut module = wat::parse_str(core).with_context(|| core.to_owned())?;
    let mut resolve = Resolve::default();
    let package = resolve.push_str("host.wit", wit)?;
    let world = resolve.select_world(&[package], Some(world))?;
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    let encoder = ComponentEncoder::default()
        .validate(false)
        .module(&module)?;
    encoder.validate(false).encode()
}

/// A component from its text.
pub fn component(text: &str) -> Result<Vec<u8>> {
    wat::parse_str(text).with_context(|| text.to_owned())
}
