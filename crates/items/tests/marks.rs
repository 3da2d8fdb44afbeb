//! A byte changed anywhere in a signed item is noticed.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use ed25519_dalek::{Signer as _, SigningKey};
use kenning_core::{Did, Random, SeededRandom};
use kenning_items::mark::{self, Line, Mark, MarkFaultKind, Style, Subject};
use kenning_items::{ItemType, Layout, Place, Scope, directive, knowledge, tool};

const AT: &str = "2026-01-02T03:04:05Z";

const DIRECTIVE: &str = "---\nname: oauth_setup\nversion: 2.1.0\ncategory: auth\ndescription: Sets up OAuth\n---\n\n# OAuth\n\nConfigure it.\n";
const KNOWLEDGE: &str = "---\nzettel_id: 001-email\ntitle: Email\nentry_type: pattern\ntags: [smtp]\n---\n\n# Email\n\nWarm up slowly – always.\n";
const TOOL: &str = "#!/usr/bin/env python3\n\"\"\"Echoes.\"\"\"\n__version__ = \"1.0.0\"\n__tool_type__ = \"script\"\n\nprint(\"a\")\n";

struct Item {
    item_type: ItemType,
    path: &'static str,
    style: Style,
    text: &'static str,
}

const ITEMS: [Item; 3] = [
    Item {
        item_type: ItemType::Directive,
        path: "auth/oauth_setup.md",
        style: Style::Html,
        text: DIRECTIVE,
    },
    Item {
        item_type: ItemType::Knowledge,
        path: "email/001-email.md",
        style: Style::Html,
        text: KNOWLEDGE,
    },
    Item {
        item_type: ItemType::Tool,
        path: "demo/echo.py",
        style: Style::Hash,
        text: TOOL,
    },
];

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn did() -> Did {
    Did::of_key(&key().verifying_key().to_bytes())
}

fn signed(subject: &Subject) -> Mark {
    mark::sign(subject, AT, &did(), |bytes| key().sign(bytes).to_bytes()).unwrap()
}

/// As the engine reads an item: bytes to text, text to version, all of it to the subject.
fn subject(item: &Item, text: &str) -> Option<Subject> {
    let place = Place::of(item.item_type, item.path)?;
    let version = match item.item_type {
        ItemType::Directive => directive::read(text, &place).ok()?.version,
        ItemType::Tool => tool::read(text, &place).ok()?.version,
        ItemType::Knowledge => knowledge::read(text, &place).ok()?.version,
    };
    let name = item.path.rsplit('/').next()?;
    Some(Subject::of_file(
        item.item_type,
        place.id,
        version,
        Scope::Project,
        place.category,
        (name, text),
    ))
}

fn is_accepted(item: &Item, bytes: &[u8]) -> bool {
    let check = || {
        let text = std::str::from_utf8(bytes).ok()?;
        let mark = mark::find(text, item.style)?;
        mark::verify(&subject(item, text)?, &mark).ok()
    };
    check().is_some()
}

fn signed_text(item: &Item) -> String {
    let mark = signed(&subject(item, item.text).unwrap());
    mark::embed(item.text, item.style, &mark)
}

#[test]
fn a_signed_item_is_accepted_and_stands_where_the_contract_says() {
    for item in &ITEMS {
        let text = signed_text(item);
        assert!(is_accepted(item, text.as_bytes()), "{text}");
        assert_eq!(mark::strip(&text, item.style), item.text);
        // After the interpreter's line or the frontmatter: what must be the first line stays it.
        let n_line = match item.text.starts_with("#!") {
            true => 1,
            false => {
                1 + item
                    .text
                    .lines()
                    .skip(1)
                    .position(|it| it == "---")
                    .unwrap()
                    + 1
            }
        };
        let line = text.lines().nth(n_line).unwrap();
        assert!(
            line.contains("kenning:signed:2026-01-02T03:04:05Z:"),
            "{text}"
        );
        assert_eq!(text.lines().next(), item.text.lines().next());
    }
}

#[test]
fn a_mark_on_the_first_line_before_the_frontmatter_is_still_read() {
    for item in ITEMS.iter().filter(|it| it.style == Style::Html) {
        let mark = signed(&subject(item, item.text).unwrap());
        let old = format!("<!-- {mark} -->\n{}", item.text);
        assert!(is_accepted(item, old.as_bytes()), "{old}");
        assert_eq!(mark::strip(&old, item.style), item.text);
        let again = mark::embed(&old, item.style, &mark);
        assert_eq!(again, signed_text(item), "it moves when it is signed again");
        let changed = old.replace("a", "b");
        assert!(!is_accepted(item, changed.as_bytes()));
        // A second line is text like any other.
        let twice = format!("<!-- {mark} -->\n{again}");
        assert!(!is_accepted(item, twice.as_bytes()));
    }
}

#[test]
fn a_thousand_changed_bits_are_all_refused() {
    let random = SeededRandom::new(11);
    let mut n_in_mark = 0;
    let mut n_flips = 0;
    for round in 0..1_000 {
        let item = &ITEMS[round % ITEMS.len()];
        let text = signed_text(item);
        let mut draw = [0; 8];
        random.fill(&mut draw);
        let at = usize::try_from(u64::from_le_bytes(draw) >> 8).unwrap() % text.len();
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1 << (draw[0] % 8);
        let mark_at = text.find("kenning:signed").unwrap();
        n_in_mark += usize::from((mark_at..mark_at + 250).contains(&at));
        n_flips += 1;
        assert!(!is_accepted(item, &bytes), "byte {at} of {text}");
    }
    assert_eq!(n_flips, 1_000);
    assert!(n_in_mark > 100, "{n_in_mark} flips in the line itself");
}

#[test]
fn every_bit_of_the_line_itself_counts() {
    for item in &ITEMS {
        let text = signed_text(item);
        let mark_at = text.find("kenning:signed").unwrap();
        let start = text[..mark_at].rfind('\n').map_or(0, |at| at + 1);
        let end = mark_at + text[mark_at..].find('\n').unwrap() + 1;
        for at in start..end {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                assert!(!is_accepted(item, &bytes), "bit {bit} of byte {at}");
            }
        }
    }
}

#[test]
fn ends_of_lines_marks_of_order_and_added_bytes_are_noticed() {
    for item in &ITEMS {
        let text = signed_text(item);
        let mark_line = text
            .lines()
            .find(|it| it.contains("kenning:signed"))
            .unwrap();
        for changed in [
            text.replace('\n', "\r\n"),
            text.replacen('\n', "\r\n", 1),
            text.replace(mark_line, &format!("{mark_line}\r")),
            text.replace(mark_line, &format!("{mark_line} ")),
            text.replace(mark_line, &format!("{mark_line}\n{mark_line}")),
            text.trim_end().to_owned(),
            format!("{text}\n"),
            format!("\n{text}"),
            format!("\u{feff}{text}"),
            text.replace("\n\n", "\n"),
        ] {
            assert!(!is_accepted(item, changed.as_bytes()), "{changed}");
        }
    }
}

#[test]
fn what_is_not_in_the_text_counts_too() {
    for item in &ITEMS {
        let good = subject(item, item.text).unwrap();
        let mark = signed(&good);
        assert_eq!(mark::verify(&good, &mark), Ok(()));
        let other = |change: fn(&mut Subject)| {
            let mut changed = good.clone();
            change(&mut changed);
            mark::verify(&changed, &mark).unwrap_err()
        };
        for fault in [
            other(|it| it.id = "other".parse().unwrap()),
            other(|it| it.version = "9.9.9".to_owned()),
            other(|it| it.scope = Scope::User),
            other(|it| it.category = "elsewhere".parse().unwrap()),
            other(|it| it.files[0].path.push('x')),
            other(|it| it.files.clear()),
            other(|it| {
                it.item_type = match it.item_type {
                    ItemType::Tool => ItemType::Knowledge,
                    ItemType::Directive | ItemType::Knowledge => ItemType::Tool,
                }
            }),
        ] {
            assert_eq!(fault.kind, MarkFaultKind::Changed);
            assert_eq!(fault.stored, mark.sha256);
            assert_ne!(fault.computed, fault.stored);
        }
    }
}

#[test]
fn nobody_signs_for_another() {
    let item = &ITEMS[0];
    let subject = subject(item, item.text).unwrap();
    let good = signed(&subject);
    let other = Did::of_key(&SigningKey::from_bytes(&[8; 32]).verifying_key().to_bytes());
    let mut signature = good.signature;
    signature[0] ^= 1;
    for forged in [
        Mark {
            signer: other,
            ..good.clone()
        },
        Mark {
            at: "2027-01-02T03:04:05Z".to_owned(),
            ..good.clone()
        },
        Mark {
            signature,
            ..good.clone()
        },
    ] {
        let fault = mark::verify(&subject, &forged).unwrap_err();
        assert_eq!(fault.kind, MarkFaultKind::Forged);
    }
    assert!(mark::sign(&subject, "yesterday", &did(), |_| [0; 64]).is_err());
}

#[test]
fn a_line_goes_in_and_comes_out_of_any_text() {
    let mark = signed(&subject(&ITEMS[0], DIRECTIVE).unwrap());
    for (text, style) in [
        ("", Style::Html),
        ("a", Style::Html),
        ("a\r\nb\r\n", Style::Html),
        ("\u{feff}---\r\na: 1\r\n---\r\nb", Style::Html),
        ("---\na: 1\n---\n\nb\n", Style::Html),
        ("---\na: 1\n---\n", Style::Html),
        ("---\na: 1\n---", Style::Html),
        ("\n---\na: 1\n...\nb", Style::Html),
        ("---\na: 1\n", Style::Html),
        ("#!/bin/sh", Style::Hash),
        ("#!/bin/sh\n", Style::Hash),
        ("#!/bin/sh\r\necho\r\n", Style::Hash),
        ("\u{feff}#!/bin/sh\necho", Style::Hash),
        ("#!/usr/bin/env node\nx()\n", Style::Slashes),
        ("x()", Style::Slashes),
        ("\n\n", Style::Hash),
    ] {
        let marked = mark::embed(text, style, &mark);
        assert_eq!(mark::find(&marked, style), Some(mark.clone()), "{marked:?}");
        assert_eq!(mark::strip(&marked, style), text);
        assert_eq!(mark::embed(&marked, style, &mark), marked, "once is enough");
        assert_eq!(mark::find(text, style), None);
        assert_eq!(mark::strip(text, style), text);
    }
}

#[test]
fn every_file_of_a_directory_counts() {
    let manifest = "tool_id: t\n";
    let subject = |files: &[(&str, &[u8])]| {
        Subject::of_directory(
            ItemType::Tool,
            "t".parse().unwrap(),
            "1.0.0",
            Scope::User,
            "a/b".parse().unwrap(),
            "manifest.yaml",
            files.iter().copied(),
        )
    };
    let files: [(&str, &[u8]); 3] = [
        ("manifest.yaml", manifest.as_bytes()),
        ("main.py", b"print()"),
        ("lib/x.bin", b"\xff\0"),
    ];
    let mark = signed(&subject(&files));
    let marked = mark::embed(manifest, Style::Hash, &mark);
    let mut found = files;
    found[0].1 = marked.as_bytes();
    found.reverse();
    assert_eq!(
        mark::verify(&subject(&found), &mark),
        Ok(()),
        "order and line do not count"
    );
    let line = format!("{}\nprint()", marked.lines().next().unwrap());
    for changed in [
        vec![found[0], found[1]],
        vec![found[0], found[1], found[2], ("new", b"")],
        vec![found[0], found[1], ("main.py", b"print( )")],
        vec![found[0], ("main2.py", b"print()"), found[2]],
        vec![found[0], ("main.py", line.as_bytes()), found[2]],
        vec![("lib/x.bin", b"\xff\x01"), found[1], found[2]],
    ] {
        assert!(
            mark::verify(&subject(&changed), &mark).is_err(),
            "{changed:?}"
        );
    }
}

#[test]
fn a_line_that_is_nearly_one_is_called_broken() {
    let text = signed_text(&ITEMS[0]);
    assert!(matches!(
        mark::read(&text, Style::Html),
        Some(Line::Signed(_))
    ));
    let broken = text.replacen("2026-01", "2026-0x", 1);
    assert!(matches!(
        mark::read(&broken, Style::Html),
        Some(Line::Broken(_))
    ));
    let place = Place {
        id: "oauth_setup".parse().unwrap(),
        category: "auth".parse().unwrap(),
        layout: Layout::File("md".to_owned()),
    };
    assert!(
        directive::read(&broken, &place).is_ok(),
        "it can still be read and signed again"
    );
}

#[test]
fn a_line_of_megabytes_is_broken_and_not_decoded() {
    let text = signed_text(&ITEMS[0]);
    let (before, after) = text.split_once("did:key:z").unwrap();
    // A signer of this length would take hours to decode.
    let long = format!("{before}did:key:z{}{after}", "6".repeat(3_000_000));
    assert!(matches!(
        mark::read(&long, Style::Html),
        Some(Line::Broken(_))
    ));
    assert_eq!(mark::find(&long, Style::Html), None);
}
