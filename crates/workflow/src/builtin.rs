//! The actions and goals that are always there: those of working from a specification.

use crate::plan::{Action, Condition, Effect, Fact, Goal};
use crate::readiness::COMPLETE;

type Needs = &'static [(&'static str, f64)];

/// Name, price, what must be at least so much before, what it is after. A truth is 1.
const ACTIONS: &[(&str, f64, Needs, Needs)] = &[
    (
        "analyze-spec",
        1.0,
        &[("hasSpecification", 1.0)],
        &[("specCompleteness", 0.5)],
    ),
    (
        "generate-acceptance-criteria",
        2.0,
        &[("hasSpecification", 1.0), ("specCompleteness", 0.5)],
        &[("hasAcceptanceCriteria", 1.0)],
    ),
    (
        "create-task",
        1.0,
        &[
            ("hasSpecification", 1.0),
            ("hasAcceptanceCriteria", 1.0),
            ("blockersFree", 1.0),
        ],
        &[("taskDefined", 1.0)],
    ),
    (
        "start-development",
        3.0,
        &[("taskDefined", 1.0), ("blockersFree", 1.0)],
        &[("developmentStarted", 1.0)],
    ),
    (
        "fill-gaps",
        2.0,
        &[("hasSpecification", 1.0)],
        &[("specCompleteness", COMPLETE), ("pendingGaps", 0.0)],
    ),
    ("resolve-blockers", 4.0, &[], &[("blockersFree", 1.0)]),
];

const GOALS: &[(&str, f64, Needs)] = &[
    (
        "start-development",
        10.0,
        &[("taskDefined", 1.0), ("developmentStarted", 1.0)],
    ),
    (
        "complete-spec",
        8.0,
        &[
            ("hasSpecification", 1.0),
            ("specCompleteness", COMPLETE),
            ("hasAcceptanceCriteria", 1.0),
        ],
    ),
    ("resolve-blockers", 9.0, &[("blockersFree", 1.0)]),
];

/// Facts that are numbers; all others are true or false.
const NUMBERS: [&str; 2] = ["specCompleteness", "pendingGaps"];

fn condition(name: &str, value: f64) -> Condition {
    match NUMBERS.contains(&name) {
        true => Condition::AtLeast(value),
        false => Condition::Is(Fact::Bool(value > 0.0)),
    }
}

fn effect(name: &str, value: f64) -> Effect {
    Effect::Set(match NUMBERS.contains(&name) {
        true => Fact::Number(value),
        false => Fact::Bool(value > 0.0),
    })
}

/// The actions.
pub fn actions() -> Vec<Action> {
    let named = ACTIONS.iter().map(|&(name, cost, needs, effects)| Action {
        name: name.to_owned(),
        cost,
        needs: needs
            .iter()
            .map(|&(of, it)| (of.to_owned(), condition(of, it)))
            .collect(),
        effects: effects
            .iter()
            .map(|&(of, it)| (of.to_owned(), effect(of, it)))
            .collect(),
        surcharge: 0,
    });
    named.collect()
}

/// The goals.
pub fn goals() -> Vec<Goal> {
    let named = GOALS.iter().map(|&(name, priority, wants)| Goal {
        name: name.to_owned(),
        priority,
        wants: wants
            .iter()
            .map(|&(of, it)| (of.to_owned(), condition(of, it)))
            .collect(),
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Facts, Limits, find_plan};

    #[test]
    fn the_default_plan_is_that_of_the_contract() {
        let facts: Facts = [
            ("hasSpecification".to_owned(), Fact::Bool(true)),
            ("blockersFree".to_owned(), Fact::Bool(true)),
        ]
        .into();
        let (actions, goals) = (actions(), goals());
        let plan = find_plan(&facts, &goals[0].wants, &actions, Limits::default()).unwrap();
        let names: Vec<&str> = plan
            .actions
            .iter()
            .map(|&it| actions[it].name.as_str())
            .collect();
        let expected = [
            "analyze-spec",
            "generate-acceptance-criteria",
            "create-task",
            "start-development",
        ];
        assert_eq!(names, expected);
        assert_eq!(plan.cost, 7.0);
        assert!((plan.confidence() - 0.73).abs() < 1e-9);
    }
}
