//! PDF files as text: good ones, broken ones, and such as were made to do harm.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use kenning_entities::page::pdf::{PdfFault, read};
use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Object, Stream, dictionary};

fn never() -> bool {
    false
}

/// A file with these content streams as pages, and what else `with` adds.
fn file(pages: &[Vec<u8>], with: impl FnOnce(&mut Document, &mut Dictionary)) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let font = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier",
        "Encoding" => "WinAnsiEncoding", "FirstChar" => 32,
        "Widths" => vec![Object::Integer(600); 200],
    });
    let mut resources = dictionary! { "Font" => dictionary! { "F1" => font } };
    with(&mut document, &mut resources);
    let resources = document.add_object(resources);
    let mut kids: Vec<Object> = Vec::new();
    for content in pages {
        let mut stream = Stream::new(dictionary! {}, content.clone());
        stream.compress().unwrap();
        let content = document.add_object(stream);
        let page = document.add_object(dictionary! {
            "Type" => "Page", "Parent" => tree, "Contents" => content,
        });
        kids.push(page.into());
    }
    let count = i64::try_from(kids.len()).unwrap();
    let pages = dictionary! {
        "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
    };
    document.objects.insert(tree, Object::Dictionary(pages));
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn operations(operations: Vec<(&str, Vec<Object>)>) -> Vec<u8> {
    let operations = operations.into_iter();
    let operations = operations.map(|(name, operands)| Operation::new(name, operands));
    let operations: Vec<Operation> = operations.collect();
    let content = Content { operations };
    content.encode().unwrap()
}

fn literal(text: &str) -> Object {
    Object::string_literal(text)
}

fn with_text(parts: Vec<(&str, Vec<Object>)>) -> Vec<u8> {
    let mut all = vec![("BT", vec![]), ("Tf", vec!["F1".into(), 10.into()])];
    all.extend(parts);
    all.push(("ET", vec![]));
    operations(all)
}

#[test]
fn words_lines_and_paragraphs_are_put_together_from_where_they_stand() {
    let page = with_text(vec![
        ("Td", vec![50.into(), 700.into()]),
        (
            "TJ",
            vec![Object::Array(vec![
                literal("Her"),
                20.into(),
                literal("ring"),
                (-600).into(),
                literal("of"),
            ])],
        ),
        // In the same line, further on.
        ("Td", vec![90.into(), 0.into()]),
        ("Tj", vec![literal("the")]),
        ("Td", vec![(-90).into(), (-12).into()]),
        ("Tj", vec![literal("Salish Sea")]),
        ("TL", vec![12.into()]),
        ("'", vec![literal("eat.")]),
        ("Td", vec![0.into(), (-40).into()]),
        ("Tj", vec![literal("Kelp")]),
        // Each letter in its own place.
        (
            "Tm",
            vec![
                1.into(),
                0.into(),
                0.into(),
                1.into(),
                50.into(),
                500.into(),
            ],
        ),
        ("Tj", vec![literal("B")]),
        (
            "Tm",
            vec![
                1.into(),
                0.into(),
                0.into(),
                1.into(),
                56.into(),
                500.into(),
            ],
        ),
        ("Tj", vec![literal("o")]),
    ]);
    let bytes = file(
        &[
            page.clone(),
            with_text(vec![("Tj", vec![literal("Page two")])]),
        ],
        |document, _| {
            let info = document.add_object(dictionary! {
                "Title" => literal("About  herring"), "Author" => literal("Ann Lee"),
                "Keywords" => literal("fish; sea"),
            });
            document.trailer.set("Info", info);
        },
    );
    let page = read(&bytes, &never).unwrap();
    assert_eq!(
        page.text,
        "Herring of the\nSalish Sea\neat.\n\nKelp\n\nBo\n\nPage two"
    );
    assert_eq!(page.metadata.title.as_deref(), Some("About herring"));
    assert_eq!(page.metadata.author.as_deref(), Some("Ann Lee"));
    assert_eq!(page.metadata.keywords, ["fish", "sea"]);
    assert!(
        page.summary
            .starts_with("# About herring\n\nHerring of the"),
        "{}",
        page.summary
    );
    assert!(!page.is_truncated);
}

#[test]
fn text_in_forms_is_read_and_forms_that_draw_themselves_end() {
    let page = operations(vec![("Do", vec!["X".into()])]);
    let bytes = file(&[page], |document, resources| {
        let content = [
            with_text(vec![("Tj", vec![literal("inside")])]),
            b"/X Do /X Do".to_vec(),
        ]
        .concat();
        let form = Stream::new(
            dictionary! { "Type" => "XObject", "Subtype" => "Form" },
            content,
        );
        let form = document.add_object(form);
        resources.set("XObject", dictionary! { "X" => form });
    });
    let page = read(&bytes, &never).unwrap();
    assert!(page.text.starts_with("inside"), "{:.80}", page.text);
    assert!(
        page.is_truncated,
        "it was cut where it would never have ended"
    );
}

#[test]
fn what_has_no_text_says_why() {
    for (bytes, expected) in [
        (b"no PDF at all".to_vec(), PdfFault::Broken),
        (Vec::new(), PdfFault::Broken),
        (b"%PDF-1.7\n".to_vec(), PdfFault::Broken),
        (
            file(&[b"0 0 m 10 10 l S".to_vec()], |_, _| {}),
            PdfFault::NoText,
        ),
    ] {
        assert_eq!(
            read(&bytes, &never).unwrap_err(),
            expected,
            "{:?}",
            &bytes[..bytes.len().min(20)]
        );
    }
    let bytes = file(&[with_text(vec![("Tj", vec![literal("x")])])], |_, _| {});
    assert_eq!(read(&bytes, &|| true).unwrap_err(), PdfFault::Late);
}

#[test]
fn a_page_that_unpacks_to_too_much_costs_only_itself() {
    let bomb = vec![b' '; 200 * 1024 * 1024];
    let good = with_text(vec![("Tj", vec![literal("still here")])]);
    let bytes = file(&[bomb, good], |_, _| {});
    assert!(bytes.len() < 1024 * 1024);
    let page = read(&bytes, &never).unwrap();
    assert_eq!(
        (page.text.as_str(), page.is_truncated),
        ("still here", true)
    );
    assert_eq!(page.metadata.title.as_deref(), Some("still here"));
}

#[test]
fn deep_nests_circles_and_cut_or_changed_files_end() {
    let deep = format!("{} {} Tj", "[".repeat(100_000), "]".repeat(100_000));
    let dictionaries = "<</a ".repeat(100_000);
    let parents = |document: &mut Document, resources: &mut Dictionary| {
        let id = document.new_object_id();
        document.objects.insert(id, Object::Reference(id));
        resources.set("Font", Object::Reference(id));
    };
    for content in [
        deep,
        dictionaries,
        "(".repeat(200_000),
        "BT /F1 1 Tf (x) Tj".to_owned(),
    ] {
        let bytes = file(&[content.into_bytes()], parents);
        // Whatever it says: it ends.
        let _ended = read(&bytes, &never);
    }
    let good = with_text(vec![("Tj", vec![literal("The herring spawn in spring")])]);
    let bytes = file(&[good], |_, _| {});
    for end in (0..bytes.len()).step_by(7) {
        let _ended = read(&bytes[..end], &never);
    }
    let mut seed = 7u64;
    for _ in 0..2_000 {
        let mut changed = bytes.clone();
        for _ in 0..4 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = usize::try_from(seed >> 33).unwrap() % changed.len();
            changed[at] = u8::try_from(seed >> 24 & 255).unwrap();
        }
        // A panic of the reader is contained by whoever calls it; here it would fail the test.
        let _ended = read(&changed, &never);
    }
}

/// Parsed, each of these operators takes hundreds of bytes: six megabytes of them took gigabytes.
#[test]
fn a_page_of_nothing_but_operators_is_left_out_and_the_next_one_read() {
    let many = "q ".repeat(3_000_000).into_bytes();
    let text = operations(vec![
        ("BT", vec![]),
        ("Tf", vec!["F1".into(), 12.into()]),
        ("Td", vec![72.into(), 700.into()]),
        ("Tj", vec![Object::string_literal("Kelp grows here")]),
        ("ET", vec![]),
    ]);
    let bytes = file(&[many, text], |_, _| {});
    let page = read(&bytes, &never).unwrap();
    assert!(page.text.contains("Kelp grows here"), "{}", page.text);
}
