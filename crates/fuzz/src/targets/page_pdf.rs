//! PDF files, as servers send them.

use super::ensure;
use crate::{Source, Subject, Target};
use kenning_entities::page::pdf;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

pub(super) const TARGET: Target = Target {
    name: "page_pdf",
    about: "a file is read or refused in time, and takes no process with it",
    words: &[
        "obj",
        "endobj",
        "stream\n",
        "endstream",
        "<<",
        ">>",
        "/Type",
        "/Pages",
        "/Kids",
        "/Count",
        "/Contents",
        "/Length ",
        "/Filter",
        "/FlateDecode",
        "/LZWDecode",
        "/ASCII85Decode",
        "/ASCIIHexDecode",
        "/DecodeParms",
        "/Predictor 12",
        "/Columns ",
        "/Font",
        "/XObject",
        "/Subtype /Form",
        "/Resources",
        "/ToUnicode",
        "/Encoding",
        "xref",
        "trailer",
        "startxref",
        "%%EOF",
        "1 0 R",
        "5 0 R",
        "BT",
        "ET",
        "Tj",
        "TJ",
        "Do",
        "cm",
        "q",
        "Q",
        "(",
        ")",
        "[",
        "]",
        "/Encrypt",
        "/ObjStm",
        "/XRef",
        "/W [1 2 1]",
        "/Prev ",
        "/Parent",
    ],
    seeds: || {
        vec![
            file(&mut Source::new(1)),
            file(&mut Source::new(2)),
            file(&mut Source::new(3)),
        ]
    },
    generate: file,
    open: || Box::new(Files),
    pass_cases: 200,
    fresh_every: u64::MAX,
    contains_panics: true,
};

/// A file of a few objects with their places, which may say anything of each other.
fn file(source: &mut Source) -> Vec<u8> {
    let mut drawn = String::from("BT /F1 12 Tf 72 700 Td (Hello there) Tj ET ");
    for _ in 0..source.count().min(60) {
        let (open, close) = *source.pick(&[
            ("[", "]"),
            ("<<", ">>"),
            ("q ", " Q"),
            ("(", ")"),
            ("BT ", " ET"),
        ]);
        let depth = source.depth().min(5_000);
        drawn += match source.below(5) {
            0 => "/X1 Do ",
            1 => "[(a) -120 (b)] TJ ",
            2 => "1 0 0 1 9 9 cm ",
            _ => "(word) Tj ",
        };
        if source.one_in(10) {
            drawn += &format!("{}x{}", open.repeat(depth), close.repeat(depth));
        }
    }
    let parent = *source.pick(&["2 0 R", "2 0 R", "3 0 R", "99 0 R"]);
    let kids = *source.pick(&["3 0 R", "3 0 R", "3 0 R 3 0 R", "2 0 R", "2 0 R 3 0 R"]);
    let depth = if source.one_in(6) { source.depth() } else { 0 };
    let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count 1 /Odd {deep} >>"),
        format!(
            "<< /Type /Page /Parent {parent} /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> /XObject << /X1 6 0 R >> >> >>"
        ),
        format!("<< /Length {} >>\nstream\n{drawn}\nendstream", drawn.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X1 6 0 R >> >> /Length 16 >>\nstream\n/X1 Do /X1 Do   \nendstream".to_owned(),
    ];
    let mut out = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.extend_from_slice(format!("{} 0 obj\n{object}\nendobj\n", at + 1).as_bytes());
    }
    let xref = out.len();
    out.extend_from_slice(
        format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes(),
    );
    for place in places {
        out.extend_from_slice(format!("{place:010} 00000 n \n").as_bytes());
    }
    let size = objects.len() + 1;
    out.extend_from_slice(
        format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n").as_bytes(),
    );
    out
}

struct Files;

impl Subject for Files {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        // As the engine reads them: on a thread with a large stack that contains panics of the reader.
        let bytes = input.to_vec();
        let began = Instant::now();
        let most = Duration::from_secs(2);
        let read = move || pdf::read(&bytes, &|| began.elapsed() > most).is_ok();
        let thread = std::thread::Builder::new().stack_size(32 * 1024 * 1024);
        let thread = thread.spawn(move || catch_unwind(AssertUnwindSafe(read)).unwrap_or(false));
        let joined = thread.map_err(|it| it.to_string())?.join();
        ensure!(joined.is_ok(), "the thread died");
        let took = began.elapsed();
        ensure!(
            took < most * 2,
            "slow: {} ms for {} bytes",
            took.as_millis(),
            input.len()
        );
        Ok(())
    }
}
