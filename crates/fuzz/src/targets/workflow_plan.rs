//! Facts, goals and actions that a caller gives to a workflow.

use super::{ensure, in_time, owned, text};
use crate::{Source, Subject, Target};
use kenning_workflow::plan::{all_hold, apply};
use kenning_workflow::{Limits, find_plan, given};
use serde_json::{Map, Value, json};

pub(super) const TARGET: Target = Target {
    name: "workflow_plan",
    about: "a plan that is found can be carried out and reaches its goal, and looking for one ends",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Plans),
    pass_cases: 800,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "\"goal\":",
    "\"goals\":{",
    "\"facts\":{",
    "\"actions\":[",
    "\"name\":\"a\"",
    "\"cost\":",
    "\"needs\":{",
    "\"effects\":{",
    "{\"add\":1}",
    "{\"add\":-1}",
    "{\"add\":1e308}",
    "{\"atMost\":0}",
    "{\"atLeast\":3}",
    "{\"is\":\"x\"}",
    "\"tool\":\"now_update\"",
    "\"arguments\":{}",
    "\"repeatable\":true",
    "true",
    "-0.0",
    "0.1",
    "1e-320",
];

const SEEDS: &[&str] = &[
    r#"{"goal":"published","facts":{"drafted":true},"goals":{"published":{"online":true}},"actions":[{"name":"publish","cost":2,"needs":{"drafted":true},"effects":{"online":true},"tool":"vault_write_note","arguments":{"path":"a.md"}}]}"#,
    r#"{"goal":{"bread":2,"mood":"good","debt":{"atMost":0}},"facts":{"flour":4,"debt":1},"actions":[{"name":"bake","needs":{"flour":2},"effects":{"flour":{"add":-2},"bread":{"add":1}}},{"name":"pay","effects":{"debt":0}},{"name":"eat","needs":{"bread":2},"effects":{"mood":"good"}}]}"#,
    r#"{"goal":{"n":{"is":1}},"actions":[{"name":"up","cost":0,"effects":{"n":{"add":1e308}}},{"name":"down","cost":0.0001,"effects":{"n":{"add":-1e308}}}]}"#,
];

const NAMES: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "h"];

/// A problem with few names, so that actions meet each other's needs.
fn generate(source: &mut Source) -> Vec<u8> {
    fn fact(source: &mut Source) -> Value {
        match source.below(8) {
            0 => json!(1e308),
            1 => json!(-0.0),
            2 => json!(0.1),
            3 | 4 => json!(source.below(4)),
            5 => json!(*source.pick(&["x", "y", ""])),
            _ => json!(source.one_in(2)),
        }
    }
    fn members(source: &mut Source, most: usize, one: fn(&mut Source) -> Value) -> Value {
        let n = source.below(most);
        let members = (0..n).map(|_| ((*source.pick(NAMES)).to_owned(), one(source)));
        Value::Object(members.collect::<Map<_, _>>())
    }
    fn condition(source: &mut Source) -> Value {
        match source.below(4) {
            0 => json!({ "atMost": source.below(4) }),
            1 => json!({ "atLeast": source.below(30) }),
            2 => json!({ "is": fact(source) }),
            _ => fact(source),
        }
    }
    fn effect(source: &mut Source) -> Value {
        match source.below(4) {
            0 => json!({ "add": *source.pick(&[1.0, -1.0, 0.1, 1e308, -1e308, 0.0]) }),
            _ => fact(source),
        }
    }
    let n = if source.one_in(10) { 200 } else { 12 };
    let n = source.below(n);
    let actions: Vec<Value> = (0..n)
        .map(|at| {
            json!({
                "name": format!("do {at}"), "cost": *source.pick(&[0.0, 0.5, 1.0, 3.0, 1e6]),
                "needs": members(source, 4, condition), "effects": members(source, 4, effect),
            })
        })
        .collect();
    let problem = json!({
        "goal": members(source, 6, condition), "facts": members(source, 6, fact),
        "actions": actions,
    });
    problem.to_string().into_bytes()
}

struct Plans;

impl Subject for Plans {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let Ok(Value::Object(options)) = serde_json::from_str(&text(input)) else {
            return Ok(());
        };
        let Ok(given) = in_time(input, || given::read(&options))? else {
            return Ok(());
        };
        for goal in given.goals.iter().take(3) {
            // The bounds of the program, a tenth of them so that many cases are tried.
            let limits = Limits {
                states_max: 5_000,
                comparisons_max: 10_000_000,
                ..Limits::default()
            };
            let found = in_time(input, || {
                find_plan(&given.facts, &goal.wants, &given.actions, limits)
            })?;
            let Ok(plan) = found else { continue };
            ensure!(
                plan.actions.len() <= limits.actions_max,
                "a plan of {} actions",
                plan.actions.len()
            );
            ensure!(plan.cost.is_finite(), "a plan costs {}", plan.cost);
            let mut facts = given.facts.clone();
            for &at in &plan.actions {
                let action = given.actions.get(at).ok_or("an action that is not there")?;
                ensure!(
                    all_hold(&action.needs, &facts),
                    "`{}` is done before it can be: {:?}",
                    action.name,
                    plan.actions
                );
                apply(&mut facts, action);
            }
            ensure!(
                all_hold(&goal.wants, &facts),
                "the plan {:?} does not reach `{}`",
                plan.actions,
                goal.name
            );
        }
        Ok(())
    }
}
