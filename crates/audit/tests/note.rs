//! Checkpoints as signed notes. The key is that of the Go library for notes, whose published signature must
//! come out again; the lines of the other notes were made with OpenSSL by the words of the specifications.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use kenning_audit::note::{
    Note, SignatureType, Vouched, cosign, key_id, origin_line, parse_verifier_key, verifier_key,
};
use kenning_audit::{LogId, Origin, Signer, is_text_signed_by};
use kenning_core::Hash;

const SECRET: &str = "810a1402d5146c8d84f2443330f54080ebf98ee17d9c74f6252fc5d5c7283173";
const VKEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const BODY: &str =
    "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
const SIGNED: &str = "\u{2014} example.com/behind-the-sofa vtVYG5/3L9NHv4CxP0XTzEcSuWnwY/BYfHU7NnQPhQyrEuH+AqeHvF+HXNvu8ujR9RQHE17Tcer4sDE9uIi/Yx6ihwc=";
const COSIGNED: &str = "\u{2014} witness.example.com/w1 1GorGwAAAABkGFDLJeR//pqzhnEKVvEm2wWbh2RJ6oru5+cUUfm5X9NnlaGr8aSH9QE5RVZD4QGlxl2F5UpVIIi94p178KLfqPPsAA==";

fn signer() -> Signer {
    Signer::from_secret(&Hash::from_hex(SECRET).unwrap().0)
}

fn public() -> [u8; 32] {
    signer().did().public_key().unwrap()
}

#[test]
fn the_key_and_the_signature_of_the_go_library_come_out_again() {
    let (name, kind, key) = parse_verifier_key(VKEY).unwrap();
    assert_eq!(
        (name.as_str(), kind),
        ("PeterNeumann", SignatureType::Ed25519)
    );
    assert_eq!(key, public());
    assert_eq!(verifier_key(&name, kind, &key), VKEY);
    let text = b"If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
    let signature = signer().sign_text(text);
    assert!(is_text_signed_by(signer().did(), text, &signature));
    let published = "f64992e052f541bf49f7dcbc8010c5506d885ba92cbafca4070495922734\
                     8b8652060dd451580b6a5948d5e02afa9fa9d9e0a2da5165be8a13a472c81c099c03";
    assert_eq!(kenning_text::hex::encode(&signature), published);
    for bad in [
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "Peter+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10T",
        "PeterNeumann+c74f20a3",
        "",
    ] {
        assert_eq!(parse_verifier_key(bad), None, "{bad}");
    }
}

#[test]
fn a_note_of_the_specification_s_example_is_signed_and_cosigned_as_openssl_does_it() {
    let text = format!("{BODY}\n{SIGNED}\n{COSIGNED}\n");
    let note = Note::parse(&text).unwrap();
    assert_eq!(
        (note.origin.as_str(), note.size),
        ("example.com/behind-the-sofa", 20_852_163)
    );
    assert_eq!(note.text(), BODY);
    assert_eq!(note.to_signed_text(), text);
    let made = cosign(&signer(), "witness.example.com/w1", BODY, 1_679_315_147).unwrap();
    assert_eq!(made, COSIGNED);
    // One key in two roles: the first line that is of it tells.
    assert_eq!(note.vouched_by(&public()), Some(Vouched::Signed));
    let cosigned = Note::parse(&format!("{BODY}\n{COSIGNED}\n")).unwrap();
    assert_eq!(
        cosigned.vouched_by(&public()),
        Some(Vouched::Cosigned(1_679_315_147))
    );
    assert_eq!(cosigned.vouched_by(&[9; 32]), None);
}

#[test]
fn a_signature_of_another_body_name_or_time_counts_for_nothing() {
    let other = BODY.replace("20852163", "20852164");
    for text in [
        format!("{other}\n{SIGNED}\n{COSIGNED}\n"),
        format!("{BODY}\n{}\n", COSIGNED.replace("/w1", "/w2")),
        format!("{BODY}\n{}\n", COSIGNED.replace("AAABkGFDL", "AAABkGFDM")),
        format!("{}\n{SIGNED}\n", BODY.replace("CsUY", "DsUY")),
    ] {
        let note = Note::parse(&text).unwrap();
        assert_eq!(note.vouched_by(&public()), None, "{text}");
    }
}

#[test]
fn a_malformed_note_is_refused_with_what_is_wrong() {
    for (text, expected) in [
        (String::new(), "no empty line"),
        (BODY.to_owned(), "no empty line"),
        (format!("{BODY}\n{SIGNED}"), "does not end"),
        (format!("{BODY}\n- x y\n"), "a line of a signature"),
        (
            format!("{BODY}\n\u{2014} x AAAA\n"),
            "a line of a signature",
        ),
        (
            format!("{}\n{SIGNED}\n", BODY.replace("20852163", "020852163")),
            "size",
        ),
        (
            format!("{}\n{SIGNED}\n", BODY.replace("20852163", "+1")),
            "size",
        ),
        (format!("{}\n{SIGNED}\n", BODY.replace("2I=", "2I")), "root"),
        (format!("\n{BODY}\n{SIGNED}\n"), "origin"),
        (
            format!("{}\n{SIGNED}\n", BODY.replace("sofa", "so\tfa")),
            "control character",
        ),
        (
            format!("{BODY}\n{}", format!("{SIGNED}\n").repeat(101)),
            "too many",
        ),
        (format!("{BODY}{}\n{SIGNED}\n", "x".repeat(70_000)), "bytes"),
    ] {
        let error = Note::parse(&text).unwrap_err();
        assert!(
            error.message.contains(expected),
            "{}: {text:.200}",
            error.message
        );
    }
    assert!(cosign(&signer(), "a b", BODY, 1).is_err());
    assert!(cosign(&signer(), "a+b", BODY, 1).is_err());
}

#[test]
fn the_note_of_a_log_reads_back_and_is_its_own() {
    let origin = Origin {
        log: LogId([7; 16]),
        space: "default".to_owned(),
    };
    let mut note = Note::new(&origin, 3, Hash([1; 32]));
    note.sign(&signer()).unwrap();
    let line = cosign(&signer(), "example.com/second", &note.text(), 5).unwrap();
    note.add_line(&line).unwrap();
    let read = Note::parse(&note.to_signed_text()).unwrap();
    assert_eq!(read, note);
    assert_eq!(read.origin, format!("kenning/{}/default", "07".repeat(16)));
    assert_eq!(read.origin, origin_line(&origin));
    assert_eq!(read.vouched_by(&public()), Some(Vouched::Signed));
    let names: Vec<&str> = read.names().collect();
    assert_eq!(names, [read.origin.as_str(), "example.com/second"]);
    let id = key_id(
        "witness.example.com/w1",
        SignatureType::Cosignature,
        &public(),
    );
    assert_eq!(kenning_text::hex::encode(&id), "d46a2b1b");
}
