//! Against what the reference implementation signed and hashed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use kenning_federation::envelope::{handover, seal};
use kenning_federation::manifest::hash_of;
use kenning_federation::{
    EdgeProfile, Envelope, Json, Limits, NodeProfile, NodeRid, Payload, PublicKey, Refused,
    SecretKey, edge_rid,
};

const VECTORS: &str = include_str!("../../../testing/vectors/koi-net-vectors.json");

struct Known {
    vectors: Json,
}

impl Known {
    fn read() -> Self {
        let vectors = Json::parse(VECTORS.as_bytes(), Limits::default()).unwrap();
        Self { vectors }
    }

    fn text(&self, name: &str) -> &str {
        self.vectors.get(name).unwrap().as_str().unwrap()
    }

    fn alpha(&self) -> SecretKey {
        SecretKey::from_pem(self.text("alpha_pkcs8_pem")).unwrap()
    }

    /// Each envelope as it would be on the wire.
    fn envelopes(&self) -> Vec<(String, String)> {
        let all = self.vectors.get("envelopes").unwrap().items().unwrap();
        let each = all.iter().map(|it| {
            let unsigned = it.get("unsigned_bytes").unwrap().as_str().unwrap();
            let signature = it.get("signature_r_s_b64").unwrap().as_str().unwrap();
            let open = unsigned.strip_suffix('}').unwrap();
            let whole = format!("{open},\"signature\":\"{signature}\"}}");
            (unsigned.to_owned(), whole)
        });
        each.collect()
    }
}

fn read(text: &str) -> Envelope {
    Envelope::read(text.as_bytes(), Limits::default()).unwrap()
}

#[test]
fn keys_and_names_are_those_of_the_reference() {
    let known = Known::read();
    let alpha = known.alpha();
    let hex = kenning_text::hex::encode(&*alpha.secret());
    assert_eq!(hex, known.text("alpha_priv_scalar_hex"));
    let public = alpha.public();
    assert_eq!(public.as_str(), known.text("alpha_pub_der_b64"));
    let rid = NodeRid::of("alpha", &public).unwrap();
    assert_eq!(rid.as_str(), known.text("alpha_rid"));
    let beta = PublicKey::parse(known.text("beta_pub_der_b64")).unwrap();
    let beta_rid = NodeRid::parse(known.text("beta_rid")).unwrap();
    assert!(beta_rid.is_of(&beta) && !beta_rid.is_of(&public));
    let short = NodeRid::parse(&known.text("beta_rid")[..rid_prefix(&beta_rid) + 16]).unwrap();
    assert!(short.is_of(&beta) && !short.is_of(&public));
    let edge = edge_rid(beta_rid.as_str(), rid.as_str());
    assert_eq!(edge, known.text("edge_rid_beta_to_alpha"));
    assert!(SecretKey::from_pem(known.text("encrypted_pem")).is_err());
}

fn rid_prefix(rid: &NodeRid) -> usize {
    rid.as_str().find('+').unwrap() + 1
}

#[test]
fn profiles_edges_and_hashes_are_those_of_the_reference() {
    let known = Known::read();
    let profile = known.vectors.get("alpha_profile").unwrap();
    assert_eq!(NodeProfile::from_json(profile).unwrap().to_json(), *profile);
    assert_eq!(
        hash_of(profile).unwrap(),
        known.text("alpha_profile_sha256")
    );
    let edge = known.vectors.get("edge_contents").unwrap();
    assert_eq!(EdgeProfile::from_json(edge).unwrap().to_json(), *edge);
    for case in known.vectors.get("jcs").unwrap().items().unwrap() {
        let input = case.get("input").unwrap();
        let expected = case.get("canonical").unwrap().as_str().unwrap();
        assert_eq!(input.to_canonical().unwrap(), expected);
        let expected = case.get("sha256").unwrap().as_str().unwrap();
        assert_eq!(hash_of(input).unwrap(), expected);
    }
}

#[test]
fn every_envelope_of_the_reference_is_verified_and_ours_have_the_same_bytes() {
    let known = Known::read();
    let alpha = known.alpha();
    let (public, me) = (
        alpha.public(),
        NodeRid::parse(known.text("alpha_rid")).unwrap(),
    );
    let beta = NodeRid::parse(known.text("beta_rid")).unwrap();
    for (n, (unsigned, whole)) in known.envelopes().into_iter().enumerate() {
        let envelope = read(&whole);
        assert_eq!(envelope.check(&public, &beta), Ok(()), "{unsigned}");
        let payload = Payload::from_json(&envelope.payload).unwrap().to_json();
        let ours = seal(&payload, &me, beta.as_str(), &alpha, &[7; 32]);
        let is_as_sent = ours.starts_with(unsigned.strip_suffix('}').unwrap());
        // The fifth has a manifest of the newest generation; ours have three members, for all.
        assert_eq!(is_as_sent, n != 4, "{ours}");
        assert_eq!(read(&ours).check(&public, &beta), Ok(()));
        assert_eq!(read(&ours).check(&public, &me), Err(Refused::InvalidTarget));
        let spaced = whole.replace("\":", "\" : ");
        assert_eq!(read(&spaced).check(&public, &beta), Ok(()), "{spaced}");
    }
}

#[test]
fn a_signature_may_be_der_and_the_order_of_members_counts() {
    let known = Known::read();
    let public = known.alpha().public();
    let beta = NodeRid::parse(known.text("beta_rid")).unwrap();
    // The same as `openssl dgst -sha256 -sign` gives, of the first envelope.
    let (_, whole) = known.envelopes().remove(0);
    let envelope = read(&whole);
    let der = der_of(&envelope.signature);
    let with_der = whole.replace(&envelope.signature, &der);
    assert_eq!(read(&with_der).check(&public, &beta), Ok(()));
    assert_eq!(read(&with_der).fingerprint(), envelope.fingerprint());
    let turned = whole.replace(
        r#"{"type":"poll_events","limit":5}"#,
        r#"{"limit":5,"type":"poll_events"}"#,
    );
    assert_ne!(turned, whole);
    assert_eq!(
        read(&turned).check(&public, &beta),
        Err(Refused::InvalidSignature)
    );
}

/// The DER form of a signature, written by hand.
fn der_of(raw: &str) -> String {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let raw = engine.decode(raw).unwrap();
    let integer = |bytes: &[u8]| {
        let first = bytes.iter().position(|it| *it != 0).unwrap();
        let mut digits = bytes[first..].to_vec();
        if digits[0] >= 0x80 {
            digits.insert(0, 0);
        }
        let mut out = vec![2, u8::try_from(digits.len()).unwrap()];
        out.extend(digits);
        out
    };
    let body = [integer(&raw[..32]), integer(&raw[32..])].concat();
    let mut out = vec![0x30, u8::try_from(body.len()).unwrap()];
    out.extend(body);
    engine.encode(out)
}

#[test]
fn two_signatures_of_one_message_differ_and_copies_are_recognized() {
    let known = Known::read();
    let alpha = known.alpha();
    let rid = NodeRid::parse(known.text("alpha_rid")).unwrap();
    let payload = Payload::Rids(Vec::new()).to_json();
    let one = seal(&payload, &rid, "x", &alpha, &[1; 32]);
    let two = seal(&payload, &rid, "x", &alpha, &[2; 32]);
    assert_ne!(one, two);
    assert_ne!(read(&one).fingerprint(), read(&two).fingerprint());
    assert_eq!(one, seal(&payload, &rid, "x", &alpha, &[1; 32]));
    let text = handover(&rid, &rid);
    let signed = alpha.sign(text.as_bytes(), &[0; 32]);
    assert!(alpha.public().is_signed(text.as_bytes(), &signed));
    assert!(!alpha.public().is_signed(b"other", &signed));
}

#[test]
fn ten_thousand_changes_of_one_bit_are_refused() {
    let known = Known::read();
    let public = known.alpha().public();
    let beta = NodeRid::parse(known.text("beta_rid")).unwrap();
    let envelopes = known.envelopes();
    let (mut n_changed, mut seed) = (0, 0x9e37_79b9_7f4a_7c15_u64);
    while n_changed < 10_000 {
        for (_, whole) in &envelopes {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let mut bytes = whole.clone().into_bytes();
            let bit = usize::try_from(seed >> 20).unwrap() % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            n_changed += 1;
            let Ok(envelope) = Envelope::read(&bytes, Limits::default()) else {
                continue;
            };
            let checked = envelope.check(&public, &beta);
            assert!(checked.is_err(), "{}", String::from_utf8_lossy(&bytes));
        }
    }
}
