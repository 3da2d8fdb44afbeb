//! What holds of every name, text and page.

use kenning_entities::extract::{Extractor, KnownName};
use kenning_entities::likeness::{contradicts, could_be_called, likeness};
use kenning_entities::mentions::{Mentions, context};
use kenning_entities::names::{alias_key, entity_uri, normalized, phonetic_key};
use kenning_entities::ontology::Ontology;
use kenning_entities::page::{decode, read};
use kenning_text::fold;
use kenning_text::similarity::{edits, jaro_winkler};
use proptest::prelude::*;

/// Names as people write them, and what nobody would.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Z][a-zéüñ]{1,8}( [A-Z][a-z]{1,9}){0,3}",
        "\\PC{0,20}",
        "[a-zA-Z0-9 _@.,'&-]{0,30}",
    ]
}

/// Pieces of pages in any order.
fn html() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<p>".to_owned()),
        Just("</p>".to_owned()),
        Just("<table><tr><td>".to_owned()),
        Just("</div><ul><li>".to_owned()),
        Just("<a href=x>".to_owned()),
        Just("<b><i></b></i>".to_owned()),
        Just("<script>".to_owned()),
        Just("<template>".to_owned()),
        Just("<svg><title>".to_owned()),
        Just("<select><option>".to_owned()),
        Just("<!--".to_owned()),
        Just("<h2>".to_owned()),
        Just("<pre>\n".to_owned()),
        Just("<body class=content>".to_owned()),
        "\\PC{0,8}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|it| it.concat())
}

proptest! {
    #[test]
    fn likeness_has_no_direction_and_a_name_is_like_itself(a in name(), b in name()) {
        let ontology = Ontology::default();
        for kind in ontology.kinds().iter().chain([ontology.unknown()]) {
            let (there, back) = (likeness(kind, &a, &b), likeness(kind, &b, &a));
            prop_assert_eq!(there.is_some(), back.is_some(), "{} {:?} {:?}", kind.key, a, b);
            if let (Some(there), Some(back)) = (there, back) {
                prop_assert!((there.confidence - back.confidence).abs() < 1e-9);
                prop_assert!((0.0..=1.0).contains(&there.confidence));
                prop_assert_eq!(there.is_sure, back.is_sure);
            }
            prop_assert_eq!(could_be_called(kind, &a, &b), could_be_called(kind, &b, &a));
            prop_assert_eq!(contradicts(kind, &a, &b), contradicts(kind, &b, &a));
            prop_assert!(could_be_called(kind, &a, &a) && !contradicts(kind, &a, &a), "{a:?}");
            prop_assert!(likeness(kind, &a, &a).is_some(), "{} {a:?}", kind.key);
        }
    }

    #[test]
    fn similarity_is_a_share(a in name(), b in name()) {
        let similarity = jaro_winkler(&a, &b);
        prop_assert!((0.0..=1.0).contains(&similarity));
        prop_assert_eq!(edits(&a, &b, 3), edits(&b, &a, 3));
        prop_assert_eq!(edits(&a, &b, 3) == Some(0), a == b);
    }

    #[test]
    fn keys_are_made_of_any_name(a in name()) {
        prop_assert_eq!(fold::name(&fold::name(&a)), fold::name(&a));
        prop_assert!(phonetic_key(&a, &[]).len() <= 4);
        prop_assert!(entity_uri(&a, "Person").starts_with("orn:personal-koi.entity:person-"));
        prop_assert!(normalized(&a).len() + alias_key(&a).len() <= 8 * a.len() + 8);
    }

    #[test]
    fn mentions_are_where_they_say(names in prop::collection::vec(name(), 0..6), text in "\\PC{0,60}") {
        let all = names.join(" ") + &text;
        let mentions = Mentions::new((0u32..).zip(names.iter().map(String::as_str)));
        let mut end = 0;
        for mention in mentions.find(&all) {
            prop_assert!(mention.range.start >= end && !mention.ids.is_empty());
            end = mention.range.end;
            let said = context(&all, &mention.range);
            let words: Vec<&str> = all[mention.range].split_whitespace().collect();
            prop_assert!(said.contains(&words.join(" ")));
        }
        let known: Vec<KnownName<'_>> = names
            .iter()
            .map(|name| KnownName { id: 1, name, kind: "Person" })
            .collect();
        let found = Extractor::new(&Ontology::default(), &known).extract(&all);
        for it in &found.relationships {
            prop_assert!(it.subject < found.entities.len() && it.object < found.entities.len());
        }
    }

    #[test]
    fn any_page_is_read(html in html(), bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let page = read(&html);
        prop_assert!(page.text.len() <= 8 * html.len() + 64);
        let decoded = decode(&bytes, None);
        prop_assert!(read(&decoded).text.len() <= 8 * decoded.len() + 64);
    }
}
