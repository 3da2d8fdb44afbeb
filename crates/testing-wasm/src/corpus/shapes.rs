//! Components that are hostile by what they are, before they do anything.

use super::{Cases, End};
use crate::{component, probes};
use anyhow::Result;

pub(super) fn add(cases: &mut Cases) -> Result<()> {
    instances(cases)?;
    exports(cases)?;
    features(cases)?;
    bytes(cases)
}

fn instances(cases: &mut Cases) -> Result<()> {
    let lift = "(func $run (param \"input\" string) (result (result string (error string)))
        (canon lift (core func $first \"run\") (memory $first \"memory\") (realloc (func $first \"realloc\"))))
      (export \"run\" (func $run))";
    let module = "(core module $m (memory (export \"memory\") 1)
        (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
        (func (export \"run\") (param i32 i32) (result i32) (i32.const 16)))
      (core module $small (func))";
    for count in [257, 400, 900] {
        let many = "(core instance (instantiate $small))".repeat(count);
        let text =
            format!("(component {module} (core instance $first (instantiate $m)) {many} {lift})");
        cases.push(&format!("{count} instances"), component(&text)?, End::Limit);
    }
    let many = "(core instance (instantiate $m))".repeat(20);
    let text =
        format!("(component {module} (core instance $first (instantiate $m)) {many} {lift})");
    cases.push(
        "twenty-one memories in as many instances",
        component(&text)?,
        End::Limit,
    );
    let many = "(core module (func))".repeat(501);
    let text =
        format!("(component {module} (core instance $first (instantiate $m)) {many} {lift})");
    cases.push("five hundred modules", component(&text)?, End::Refused);
    let text = "(component (type $r (resource (rep i32))) (core func $new (canon resource.new $r))
        (core module $m (import \"\" \"new\" (func $new (param i32) (result i32)))
          (func (export \"run\") (loop $on (drop (call $new (i32.const 1))) (br $on))))
        (core instance $i (instantiate $m (with \"\" (instance (export \"new\" (func $new))))))
        (func (export \"run\") (canon lift (core func $i \"run\"))))";
    cases.push(
        "resources of its own for ever",
        component(text)?,
        End::Limit,
    );
    let many = "(table 1 funcref)".repeat(101);
    let text = format!(
        "(component {module} (core instance $first (instantiate $m)) (core module {many}) {lift})"
    );
    cases.push("a hundred and one tables", component(&text)?, End::Refused);
    let mut nested = "(component)".to_owned();
    for _ in 0..40 {
        nested = format!("(component {nested})");
    }
    cases.push(
        "forty components in each other",
        component(&nested)?,
        End::Refused,
    );
    Ok(())
}

fn exports(cases: &mut Cases) -> Result<()> {
    cases.push(
        "an empty component",
        component("(component)")?,
        End::Refused,
    );
    cases.push(
        "a core module",
        component("(module (func (export \"run\")))")?,
        End::Refused,
    );
    let lifted = |ty: &str, core: &str, options: &str, interface: bool| {
        let export = match interface {
            true => {
                "(instance $tool (export \"run\" (func $run))) (export \"kami:tool/tool@0.1.0\" (instance $tool))"
            }
            false => "(export \"run\" (func $run))",
        };
        component(&format!(
            "(component
               (core module $m (memory (export \"memory\") 1)
                 (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
                 (func (export \"run\") {core}))
               (core instance $i (instantiate $m))
               (func $run {ty} (canon lift (core func $i \"run\") {options}))
               {export})"
        ))
    };
    let text = "(memory $i \"memory\") (realloc (func $i \"realloc\"))";
    for (name, ty, core, options) in [
        ("`run` without anything", "", "", ""),
        (
            "`run` without an input",
            "(result (result string (error string)))",
            "(result i32) (i32.const 0)",
            text,
        ),
        (
            "`run` without an answer",
            "(param \"input\" string)",
            "(param i32 i32)",
            text,
        ),
        (
            "`run` that answers with a text",
            "(param \"input\" string) (result string)",
            "(param i32 i32) (result i32) (i32.const 0)",
            text,
        ),
        (
            "`run` that takes a number",
            "(param \"input\" u32) (result (result string (error string)))",
            "(param i32) (result i32) (i32.const 0)",
            text,
        ),
        (
            "`run` that fails with a number",
            "(param \"input\" string) (result (result string (error u32)))",
            "(param i32 i32) (result i32) (i32.const 0)",
            text,
        ),
        (
            "`run` that takes bytes",
            "(param \"input\" (list u8)) (result (result string (error string)))",
            "(param i32 i32) (result i32) (i32.const 0)",
            text,
        ),
        (
            "`run` that takes two texts",
            "(param \"a\" string) (param \"b\" string) (result (result string (error string)))",
            "(param i32 i32 i32 i32) (result i32) (i32.const 0)",
            text,
        ),
    ] {
        cases.push(
            &format!("{name}, in the interface"),
            lifted(ty, core, options, true)?,
            End::Refused,
        );
    }
    for name in [
        "wasi:sockets/everything@0.2.0",
        "wasi:nn/tensor@0.2.0",
        "wasi:keyvalue/store@0.2.0",
        "wasi:blobstore/blobstore@0.2.0",
        "kami:tool/secrets@0.1.0",
        "kami:tool/host@9.0.0",
        "evil:corp/backdoor@1.0.0",
        "wasi:cli/environment@0.3.0",
        "wasi:filesystem/everything@0.2.0",
        "wasi:http/incoming-handler@9.0.0",
    ] {
        let text = format!(
            "(component (import \"{name}\" (instance (export \"f\" (func))))
               (core module $m (func (export \"run\"))) (core instance $i (instantiate $m))
               (func (export \"run\") (canon lift (core func $i \"run\"))))"
        );
        cases.push(
            &format!("an import of `{name}`"),
            component(&text)?,
            End::Refused,
        );
    }
    let text = "(component (import \"kami:tool/host@0.1.0\" (instance (export \"log\" (func (param \"level\" u64)))))
        (core module $m (func (export \"run\"))) (core instance $i (instantiate $m))
        (func (export \"run\") (canon lift (core func $i \"run\"))))";
    cases.push("an import of another type", component(text)?, End::Refused);
    // A type made of itself twice, fifteen times over, has a schema of thirty thousand parts.
    let mut types = "(type $t0 (tuple u8 u8))".to_owned();
    for level in 1..15 {
        types.push_str(&format!(
            "(type $t{level} (tuple $t{} $t{}))",
            level - 1,
            level - 1
        ));
    }
    let text = format!(
        "(component {types} (core module $m (memory (export \"memory\") 1)
             (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
             (func (export \"f\") (param i32)))
           (core instance $i (instantiate $m))
           (func (export \"f\") (param \"x\" $t14) (canon lift (core func $i \"f\") (memory $i \"memory\") (realloc (func $i \"realloc\")))))"
    );
    cases.push(
        "a type of thirty thousand parts",
        component(&text)?,
        End::Refused,
    );
    Ok(())
}

fn features(cases: &mut Cases) -> Result<()> {
    for (name, fields) in [
        ("shared memory", "(memory 1 1 shared)"),
        (
            "atomic operations",
            "(memory 1 1 shared) (func (drop (i32.atomic.load (i32.const 0))))",
        ),
        ("a 64-bit memory", "(memory i64 1)"),
        ("a 64-bit table", "(table i64 1 funcref)"),
        ("collected structures", "(type (struct (field i32)))"),
        ("collected arrays", "(type (array i8))"),
        ("exceptions", "(tag $e) (func (throw $e))"),
        (
            "relaxed vectors",
            "(func (param v128 v128 v128) (result v128) (f32x4.relaxed_madd (local.get 0) (local.get 1) (local.get 2)))",
        ),
        ("small pages", "(memory 1 (pagesize 1))"),
        (
            "wide arithmetic",
            "(func (param i64 i64 i64 i64) (result i64 i64) (i64.add128 (local.get 0) (local.get 1) (local.get 2) (local.get 3)))",
        ),
    ] {
        let text = format!(
            "(component (core module {fields})
               (core module $m (func (export \"run\"))) (core instance $i (instantiate $m))
               (func (export \"run\") (canon lift (core func $i \"run\"))))"
        );
        cases.push(name, component(&text)?, End::Refused);
    }
    Ok(())
}

fn bytes(cases: &mut Cases) -> Result<()> {
    let good = probes::echo()?;
    cases.push("no bytes", Vec::new(), End::Refused);
    cases.push("a text", b"#!/bin/sh\nrm -rf /\n".to_vec(), End::Refused);
    cases.push(
        "an ELF file",
        [b"\x7fELF\x02\x01\x01", &[0; 60][..]].concat(),
        End::Refused,
    );
    cases.push("only a magic number", b"\0asm".to_vec(), End::Refused);
    cases.push(
        "the magic number of a component",
        b"\0asm\x0d\0\x01\0".to_vec(),
        End::Refused,
    );
    cases.push(
        "another version",
        b"\0asm\x0e\0\x01\0".to_vec(),
        End::Refused,
    );
    for part in 1..16 {
        let cut = good.len() * part / 16;
        cases.push(
            &format!("the first {part} of 16 parts"),
            good[..cut].to_vec(),
            End::Refused,
        );
    }
    for part in 0..24 {
        let mut wasm = good.clone();
        let at = 8 + (wasm.len() - 8) * part / 24;
        wasm[at] ^= 0x10;
        let case = cases.push(&format!("another bit at part {part} of 24"), wasm, End::Any);
        case.limits.max_fuel = 1_000_000;
    }
    let sections = [b"\0asm\x0d\0\x01\0".to_vec(), vec![0xff; 64]].concat();
    cases.push("a section of no kind", sections, End::Refused);
    let long = [
        b"\0asm\x0d\0\x01\0".to_vec(),
        vec![0x01, 0xff, 0xff, 0xff, 0xff, 0x0f],
    ]
    .concat();
    cases.push("a section longer than the file", long, End::Refused);
    cases.push(
        "twice the same",
        [good.clone(), good].concat(),
        End::Refused,
    );
    Ok(())
}
