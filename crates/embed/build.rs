//! Makes what the table needs to be read in place: where each word lies, a hash index over the words
//! and the length of each row, so that nothing is decoded when the program starts.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script reads its own package and writes where cargo says"
)]

use std::path::PathBuf;
use std::{env, fs};

#[path = "src/table/format.rs"]
mod format;

const TABLE: &str = "assets/static-minilm-ext256-int4.semb";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed={TABLE}");
    println!("cargo:rerun-if-changed=src/table/format.rs");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let bytes = fs::read(root.join(TABLE))?;
    let layout = format::Layout::parse(&bytes).ok_or("the embedding table is malformed")?;

    let mut offsets = Vec::new();
    let mut slots = vec![0_u16; format::SLOTS];
    let mut at = layout.words;
    for row in 0..layout.rows {
        offsets.extend_from_slice(&u32::try_from(at)?.to_le_bytes());
        let word = &bytes[at + 1..at + 1 + usize::from(bytes[at])];
        let mut slot = format::slot(word);
        while slots[slot] != 0 {
            slot = (slot + 1) % format::SLOTS;
        }
        // 0 is an empty slot.
        slots[slot] = u16::try_from(row + 1)?;
        at += 1 + word.len();
    }

    let mut norms = Vec::new();
    for row in 0..layout.rows {
        let squares: i32 = layout
            .row(&bytes, row)
            .iter()
            .map(|&byte| {
                let (low, high) = format::nibbles(byte);
                i32::from(low) * i32::from(low) + i32::from(high) * i32::from(high)
            })
            .sum();
        let norm = (squares as f32).sqrt() * layout.scale(&bytes, row);
        norms.extend_from_slice(&norm.to_le_bytes());
    }

    let slots: Vec<u8> = slots.iter().flat_map(|it| it.to_le_bytes()).collect();
    fs::write(out.join("offsets.bin"), offsets)?;
    fs::write(out.join("slots.bin"), slots)?;
    fs::write(out.join("norms.bin"), norms)?;
    Ok(())
}
