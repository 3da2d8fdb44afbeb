//! Actions, goals and facts as somebody gives them, in JSON.
//!
//! ```json
//! { "goal": "published",
//!   "facts": { "drafted": true },
//!   "goals": { "published": { "online": true } },
//!   "actions": [{ "name": "publish", "cost": 2, "needs": { "drafted": true }, "effects": { "online": true },
//!                 "tool": "vault_write_note", "arguments": { "path": "a.md", "content": "text" } }] }
//! ```
//!
//! A number that is needed means at least so much; `{"atMost": 3}`, `{"atLeast": 3}` and `{"is": 3}` say it
//! otherwise. An effect is the new value, or `{"add": 1}`.

use crate::plan::{Action, Condition, Effect, Fact, Facts, Goal};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Actions that may be given.
const ACTIONS_MAX: usize = 200;
/// Facts, needs and effects of one thing.
const MEMBERS_MAX: usize = 100;
/// Characters of a name.
const NAME_CHARS_MAX: usize = 100;
/// Prices are at most this.
const COST_MAX: f64 = 1e6;

/// A tool that an action calls.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Its name.
    pub tool: String,
    /// What it is given.
    pub arguments: Value,
    /// Whether it may be called again after a process was killed while it ran.
    pub is_repeatable: bool,
}

/// What was given.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The goal by its name; `None` for the first unmet one by priority.
    pub goal: Option<String>,
    /// What is true.
    pub facts: Facts,
    /// More goals.
    pub goals: Vec<Goal>,
    /// More actions.
    pub actions: Vec<Action>,
    /// What actions call, by their names.
    pub calls: BTreeMap<String, ToolCall>,
}

/// Reads what was given in `options`. An error names the field, its value and the remedy.
///
/// # Errors
/// The first thing that is wrong.
pub fn read(options: &Map<String, Value>) -> Result<Given, String> {
    let mut given = Given::default();
    if let Some(goal) = options.get("goal").filter(|it| !it.is_null()) {
        match goal {
            Value::String(name) => given.goal = Some(name.clone()),
            Value::Object(wants) => {
                let wants = conditions(wants, "goal")?;
                given.goals.push(Goal {
                    name: "goal".to_owned(),
                    priority: 100.0,
                    wants,
                });
                given.goal = Some("goal".to_owned());
            }
            other => {
                return Err(format!(
                    "`goal`: {other} is neither a name nor an object of what is wanted"
                ));
            }
        }
    }
    if let Some(facts) = options.get("facts").filter(|it| !it.is_null()) {
        for (name, value) in object(facts, "facts")? {
            given.facts.insert(
                named(name, "facts")?,
                fact(value, &format!("facts.{name}"))?,
            );
        }
    }
    if let Some(goals) = options.get("goals").filter(|it| !it.is_null()) {
        for (name, wants) in object(goals, "goals")? {
            let at = format!("goals.{name}");
            given.goals.push(Goal {
                name: named(name, "goals")?,
                priority: 50.0,
                wants: conditions(object(wants, &at)?, &at)?,
            });
        }
    }
    if let Some(actions) = options.get("actions").filter(|it| !it.is_null()) {
        let Value::Array(actions) = actions else {
            return Err("`actions`: give an array of actions".to_owned());
        };
        if actions.len() > ACTIONS_MAX {
            return Err(format!(
                "`actions`: {} are more than {ACTIONS_MAX}",
                actions.len()
            ));
        }
        let mut seen = BTreeSet::new();
        for (at, value) in actions.iter().enumerate() {
            let (action, call) = action(value, &format!("actions[{at}]"))?;
            if !seen.insert(action.name.clone()) {
                return Err(format!(
                    "`actions[{at}].name`: there are two actions `{}`",
                    action.name
                ));
            }
            if let Some(call) = call {
                given.calls.insert(action.name.clone(), call);
            }
            given.actions.push(action);
        }
    }
    Ok(given)
}

fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, String> {
    let Value::Object(members) = value else {
        return Err(format!("`{at}`: {value} is not an object"));
    };
    match members.len() > MEMBERS_MAX {
        true => Err(format!(
            "`{at}`: {} members are more than {MEMBERS_MAX}",
            members.len()
        )),
        false => Ok(members),
    }
}

fn named(name: &str, at: &str) -> Result<String, String> {
    match name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        true => Err(format!(
            "`{at}`: a name has 1 to {NAME_CHARS_MAX} characters"
        )),
        false => Ok(name.to_owned()),
    }
}

fn fact(value: &Value, at: &str) -> Result<Fact, String> {
    match value {
        Value::Bool(it) => Ok(Fact::Bool(*it)),
        Value::Number(it) => {
            let number = it.as_f64().filter(|it| it.is_finite());
            let number = number.ok_or_else(|| format!("`{at}`: {it} is too large"))?;
            Ok(Fact::Number(number))
        }
        Value::String(it) => Ok(Fact::Text(it.chars().take(1_000).collect())),
        other => Err(format!(
            "`{at}`: {other} is not true, false, a number or a text"
        )),
    }
}

fn conditions(
    members: &Map<String, Value>,
    at: &str,
) -> Result<BTreeMap<String, Condition>, String> {
    let one = |(name, value): (&String, &Value)| {
        let at = format!("{at}.{name}");
        Ok((named(name, &at)?, condition(value, &at)?))
    };
    members.iter().map(one).collect()
}

fn condition(value: &Value, at: &str) -> Result<Condition, String> {
    let number = |value: &Value| match fact(value, at)? {
        Fact::Number(it) => Ok(it),
        _ => Err(format!("`{at}`: {value} is not a number")),
    };
    match value {
        Value::Object(members) => match members.iter().next() {
            Some((word, value)) if members.len() == 1 => match word.as_str() {
                "is" => Ok(Condition::Is(fact(value, at)?)),
                "atLeast" => Ok(Condition::AtLeast(number(value)?)),
                "atMost" => Ok(Condition::AtMost(number(value)?)),
                _ => Err(format!(
                    "`{at}`: `{word}` is not `is`, `atLeast` or `atMost`"
                )),
            },
            _ => Err(format!("`{at}`: give one of `is`, `atLeast` and `atMost`")),
        },
        plain => Ok(match fact(plain, at)? {
            Fact::Number(it) => Condition::AtLeast(it),
            other => Condition::Is(other),
        }),
    }
}

fn effect(value: &Value, at: &str) -> Result<Effect, String> {
    match value {
        Value::Object(members) => {
            let more = members.get("add").filter(|_| members.len() == 1);
            let more = more.and_then(Value::as_f64).filter(|it| it.is_finite());
            more.map(Effect::Add)
                .ok_or_else(|| format!("`{at}`: give a value, or `add` and a number"))
        }
        plain => Ok(Effect::Set(fact(plain, at)?)),
    }
}

const MEMBERS: [&str; 7] = [
    "name",
    "cost",
    "needs",
    "effects",
    "tool",
    "arguments",
    "repeatable",
];

fn action(value: &Value, at: &str) -> Result<(Action, Option<ToolCall>), String> {
    let members = object(value, at)?;
    if let Some(unknown) = members.keys().find(|it| !MEMBERS.contains(&it.as_str())) {
        return Err(format!(
            "`{at}.{unknown}`: an action has {}",
            MEMBERS.join(", ")
        ));
    }
    let name = members.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| format!("`{at}.name`: an action needs a name"))?;
    let name = named(name, &format!("{at}.name"))?;
    let cost = match members.get("cost") {
        None | Some(Value::Null) => 1.0,
        Some(cost) => {
            let number = cost.as_f64().filter(|it| (0.0..=COST_MAX).contains(it));
            number.ok_or_else(|| {
                format!("`{at}.cost`: {cost} is not a number between 0 and {COST_MAX}")
            })?
        }
    };
    let of = |field: &str| members.get(field).filter(|it| !it.is_null());
    let needs = match of("needs") {
        None => BTreeMap::new(),
        Some(it) => {
            let at = format!("{at}.needs");
            conditions(object(it, &at)?, &at)?
        }
    };
    let mut effects = BTreeMap::new();
    if let Some(it) = of("effects") {
        let at = format!("{at}.effects");
        for (name, value) in object(it, &at)? {
            let at = format!("{at}.{name}");
            effects.insert(named(name, &at)?, effect(value, &at)?);
        }
    }
    let call = match of("tool") {
        None => None,
        Some(Value::String(tool)) => Some(ToolCall {
            tool: tool.clone(),
            arguments: of("arguments")
                .cloned()
                .unwrap_or_else(|| Map::new().into()),
            is_repeatable: of("repeatable") == Some(&Value::Bool(true)),
        }),
        Some(other) => return Err(format!("`{at}.tool`: {other} is not the name of a tool")),
    };
    let action = Action {
        name,
        cost,
        needs,
        effects,
        surcharge: 0,
    };
    Ok((action, call))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Limits, find_plan};
    use serde_json::json;

    fn given(value: Value) -> Result<Given, String> {
        let Value::Object(options) = value else {
            panic!("an object");
        };
        read(&options)
    }

    #[test]
    fn what_is_given_becomes_a_problem() {
        let it = given(json!({
            "goal": { "bread": 2, "mood": "good", "debt": { "atMost": 0 } },
            "facts": { "flour": 4, "debt": 1 },
            "actions": [
                { "name": "bake", "cost": 2, "needs": { "flour": 2 },
                  "effects": { "flour": { "add": -2 }, "bread": { "add": 1 } } },
                { "name": "pay", "effects": { "debt": 0 }, "tool": "now_update",
                  "arguments": { "a": 1 }, "repeatable": true },
                { "name": "eat", "needs": { "bread": 2 }, "effects": { "mood": "good" } },
            ],
        }))
        .unwrap();
        let wants = &it.goals[0].wants;
        let plan = find_plan(&it.facts, wants, &it.actions, Limits::default()).unwrap();
        let mut names: Vec<&str> = plan
            .actions
            .iter()
            .map(|&at| it.actions[at].name.as_str())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["bake", "bake", "eat", "pay"]);
        assert_eq!(plan.cost, 6.0);
        assert!(it.calls["pay"].is_repeatable);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (value, expected) in [
            (json!({ "goal": 5 }), "`goal`: 5 is neither"),
            (json!({ "facts": [] }), "`facts`: [] is not an object"),
            (
                json!({ "facts": { "a": [1] } }),
                "`facts.a`: [1] is not true",
            ),
            (
                json!({ "goals": { "g": { "a": { "over": 1 } } } }),
                "`goals.g.a`: `over` is not",
            ),
            (json!({ "actions": {} }), "`actions`: give an array"),
            (
                json!({ "actions": [{}] }),
                "`actions[0].name`: an action needs a name",
            ),
            (
                json!({ "actions": [{ "name": "" }] }),
                "1 to 100 characters",
            ),
            (
                json!({ "actions": [{ "name": "a", "cost": -1 }] }),
                "`actions[0].cost`: -1",
            ),
            (
                json!({ "actions": [{ "name": "a", "price": 1 }] }),
                "`actions[0].price`",
            ),
            (
                json!({ "actions": [{ "name": "a" }, { "name": "a" }] }),
                "two actions `a`",
            ),
            (
                json!({ "actions": [{ "name": "a", "effects": { "b": { "add": "x" } } }] }),
                "`actions[0].effects.b`",
            ),
            (
                json!({ "actions": [{ "name": "a", "tool": 1 }] }),
                "`actions[0].tool`: 1",
            ),
        ] {
            let error = given(value.clone()).unwrap_err();
            assert!(error.contains(expected), "{value}: {error}");
        }
    }
}
