//! How beliefs move, and when two of them cannot both be right.

use crate::claims;
use crate::types::Confidence;
use kenning_core::Unit;
use std::collections::BTreeMap;

/// How far one piece of supporting evidence of full strength moves a belief.
const SUPPORT_RATE: f64 = 0.15;

/// As [`SUPPORT_RATE`], for evidence against: twice as much, so a belief falls faster than it rises.
const CONTRADICTION_RATE: f64 = 0.30;

/// The factor by which one more step of confidence counts when beliefs are retrieved.
const CONFIDENCE_BASE: f64 = 1.5;

/// Phrases that contradict each other about the same thing.
const OPPOSITES: [(&str, &str); 5] = [
    ("should always", "should never"),
    ("works well", "doesn't work"),
    ("causes", "prevents"),
    ("increases", "decreases"),
    ("enables", "blocks"),
];

/// The confidence after one more piece of evidence.
#[must_use]
pub fn ema(old: Confidence, supports: bool, strength: Unit) -> Confidence {
    let (rate, target) = if supports {
        (SUPPORT_RATE, 1.0)
    } else {
        (CONTRADICTION_RATE, 0.0)
    };
    old.unit().lerp(target, rate * strength.get()).into()
}

/// The sort key of a retrieved belief: more confident ones first.
pub fn weighted(relevance: f64, confidence: Confidence) -> f64 {
    relevance * CONFIDENCE_BASE.powf(confidence.get())
}

/// The pattern by which two texts contradict each other, such as `should always vs should never`.
pub fn contradiction(one: &str, other: &str) -> Option<String> {
    let (one, other) = (plain(one), plain(other));
    // A text that contains both phrases does not contradict its own copy.
    if one == other {
        return None;
    }
    let found = OPPOSITES.iter().find(|(yes, no)| {
        one.contains(yes) && other.contains(no) || one.contains(no) && other.contains(yes)
    });
    found
        .map(|(yes, no)| format!("{yes} vs {no}"))
        .or_else(|| contradicting_claims(&one, &other))
}

/// In what the first two sentences differ that cannot both be right.
fn contradicting_claims(one: &str, other: &str) -> Option<String> {
    let (one, other) = (claims::claims(one), claims::claims(other));
    let n_first = one.len();
    let all: Vec<&claims::Claim> = one.iter().chain(&other).collect();
    let mut found = claims::opposed(&all).into_iter();
    found
        .find(|pair| pair.one < n_first && pair.other >= n_first)
        .map(|it| it.why)
}

/// Whether a text has a phrase that another could contradict.
pub fn is_one_sided(text: &str) -> bool {
    let text = plain(text);
    OPPOSITES
        .iter()
        .any(|(yes, no)| text.contains(yes) || text.contains(no))
}

/// Lower case, with ASCII apostrophes.
fn plain(text: &str) -> String {
    text.to_lowercase().replace(['\u{2019}', '\u{02bc}'], "'")
}

/// One piece of evidence in the chain of a belief.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence<Id> {
    /// The belief that it is about.
    pub belief: Id,
    /// The memory that is the evidence.
    pub evidence: Id,
    /// Whether it supports the belief.
    pub supports: bool,
}

/// Two beliefs that disagree about one piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divided<Id> {
    /// The shared evidence.
    pub evidence: Id,
    /// The belief that it supports.
    pub supported: Id,
    /// The belief that it contradicts.
    pub contradicted: Id,
}

/// Every pair of beliefs with shared evidence that supports one and contradicts the other, ordered by
/// evidence, then by beliefs.
pub fn divided<Id: Ord + Clone>(chain: &[Evidence<Id>]) -> Vec<Divided<Id>> {
    let mut by_evidence: BTreeMap<&Id, [Vec<&Id>; 2]> = BTreeMap::new();
    for link in chain {
        let sides = by_evidence.entry(&link.evidence).or_default();
        sides[usize::from(link.supports)].push(&link.belief);
    }
    let mut found = Vec::new();
    for (evidence, mut sides) in by_evidence {
        for side in &mut sides {
            side.sort();
            side.dedup();
        }
        let [against, with] = sides;
        for &supported in &with {
            for &contradicted in against.iter().filter(|it| **it != supported) {
                found.push(Divided {
                    evidence: evidence.clone(),
                    supported: supported.clone(),
                    contradicted: contradicted.clone(),
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(value: f64) -> Unit {
        Unit::try_from(value).unwrap()
    }

    fn run(evidence: &[(bool, f64)]) -> Vec<f64> {
        let mut now = Confidence::default();
        let steps = evidence.iter().map(|&(supports, strength)| {
            now = ema(now, supports, unit(strength));
            now.get()
        });
        steps.collect()
    }

    #[test]
    fn beliefs_move_as_the_examples_of_the_contract_say() {
        for (evidence, expected) in [
            (&[(true, 0.9), (false, 0.6)][..], &[0.5675, 0.465_35][..]),
            (
                &[(true, 0.8), (false, 0.6), (true, 0.7), (false, 0.5)],
                &[0.56, 0.4592, 0.515_984, 0.438_586_4],
            ),
            (&[(true, 0.0), (false, 0.0)], &[0.5, 0.5]),
            (&[(true, 1.0), (false, 1.0)], &[0.575, 0.4025]),
        ] {
            for (got, expected) in run(evidence).iter().zip(expected) {
                assert!((got - expected).abs() < 1e-12, "{got} is not {expected}");
            }
        }
    }

    proptest! {
        #[test]
        fn evidence_moves_a_belief_toward_its_side_and_never_out_of_bounds(
            old in 0.0..=1.0, strength in 0.0..=1.0, supports: bool,
        ) {
            let before = Confidence::try_from(old).unwrap();
            let after = ema(before, supports, unit(strength)).get();
            prop_assert!((0.0..=1.0).contains(&after));
            let toward = if supports { after >= old } else { after <= old };
            prop_assert!(toward, "{} to {}", old, after);
        }
    }

    #[test]
    fn contradicting_evidence_weighs_twice_as_much() {
        let start = Confidence::default();
        let up = ema(start, true, unit(0.4)).get() - 0.5;
        let down = 0.5 - ema(start, false, unit(0.4)).get();
        assert!((down - 2.0 * up).abs() < 1e-12);
    }

    #[test]
    fn a_sure_belief_is_retrieved_before_an_unsure_one() {
        for (relevance, confidence, expected) in [
            (0.8, 0.0, 0.8),
            (0.8, 1.0, 1.2),
            (1.0, 0.5, 1.224_744_871_391_589),
        ] {
            let got = weighted(relevance, Confidence::try_from(confidence).unwrap());
            assert!((got - expected).abs() < 1e-12, "{got}");
        }
    }

    #[test]
    fn opposite_phrases_contradict_in_either_order() {
        for (one, other, pattern) in [
            (
                "We should always lint",
                "you SHOULD NEVER lint",
                Some("should always vs should never"),
            ),
            (
                "caching works well",
                "caching doesn't work",
                Some("works well vs doesn't work"),
            ),
            (
                "caching works well",
                "caching doesn\u{2019}t work",
                Some("works well vs doesn't work"),
            ),
            (
                "stress causes errors",
                "stress prevents errors",
                Some("causes vs prevents"),
            ),
            (
                "it increases latency",
                "it decreases latency",
                Some("increases vs decreases"),
            ),
            (
                "the flag enables it",
                "the flag blocks it",
                Some("enables vs blocks"),
            ),
            ("it increases latency", "it increases latency", None),
            (
                "it increases A and decreases B",
                "it increases A and decreases B",
                None,
            ),
            ("the sky is blue", "the sky is gray", None),
            ("", "", None),
        ] {
            assert_eq!(
                contradiction(one, other).as_deref(),
                pattern,
                "{one} / {other}"
            );
            assert_eq!(
                contradiction(other, one).as_deref(),
                pattern,
                "{other} / {one}"
            );
        }
    }

    #[test]
    fn beliefs_that_share_evidence_with_opposite_signs_are_divided() {
        let link = |belief, evidence, supports| Evidence {
            belief,
            evidence,
            supports,
        };
        let chain = [
            link("b1", "e1", true),
            link("b2", "e1", false),
            link("b3", "e1", false),
            link("b3", "e1", false),
            link("b1", "e2", true),
            link("b2", "e2", true),
            link("b1", "e3", true),
            link("b1", "e3", false),
        ];
        let pairs = divided(&chain);
        let pairs: Vec<_> = pairs
            .iter()
            .map(|pair| (pair.evidence, pair.supported, pair.contradicted))
            .collect();
        assert_eq!(pairs, [("e1", "b1", "b2"), ("e1", "b1", "b3")]);
        assert!(divided::<u32>(&[]).is_empty());
    }
}
