//! What a directive wants to be told, and whether it was.

use super::Directive;
use crate::kind::shown;
use crate::schema;
use serde_json::{Map, Value, json};

/// Types of inputs that are checked, with their names in JSON Schema. Others admit anything.
const TYPES: &[(&str, &str)] = &[
    ("string", "string"),
    ("str", "string"),
    ("text", "string"),
    ("path", "string"),
    ("file", "string"),
    ("url", "string"),
    ("integer", "integer"),
    ("int", "integer"),
    ("number", "number"),
    ("float", "number"),
    ("boolean", "boolean"),
    ("bool", "boolean"),
    ("array", "array"),
    ("list", "array"),
    ("object", "object"),
    ("dict", "object"),
];

/// One thing that a directive wants to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its type, as written; `string` if nothing was.
    pub type_name: String,
    /// Whether it must be given.
    pub required: bool,
    /// What it is if it is not given.
    pub default: Option<Value>,
    /// What it is for.
    pub description: String,
    /// What it must look like.
    pub schema: Option<Value>,
}

impl Input {
    /// For answers.
    pub fn to_json(&self) -> Value {
        let mut out = json!({
            "name": self.name,
            "type": self.type_name,
            "required": self.required,
            "description": self.description,
        });
        for (key, value) in [("default", &self.default), ("schema", &self.schema)] {
            if let Some(value) = value {
                out[key] = value.clone();
            }
        }
        out
    }
}

/// Why inputs do not do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputFault {
    /// Required inputs that were not given.
    pub missing: Vec<String>,
    /// What does not fit: the field, the value and why.
    pub issues: Vec<String>,
}

/// Whether these inputs, an object, do for a directive.
pub fn check_inputs(directive: &Directive, given: &Value) -> Result<(), InputFault> {
    check_against(&directive.inputs, directive.input_schema.as_ref(), given)
}

/// Whether what was given, an object, is what these inputs and this schema want.
pub(crate) fn check_against(
    inputs: &[Input],
    wanted: Option<&Value>,
    given: &Value,
) -> Result<(), InputFault> {
    let mut fault = InputFault::default();
    let empty = Map::new();
    let fields = match given {
        Value::Object(fields) => fields,
        Value::Null => &empty,
        other => {
            let message = format!("inputs: `{}` is not an object", shown(&other.to_string()));
            fault.issues.push(message);
            return Err(fault);
        }
    };
    for input in inputs {
        match fields.get(&input.name) {
            None | Some(Value::Null) => {
                if input.required && input.default.is_none() {
                    fault.missing.push(input.name.clone());
                }
            }
            Some(value) => look(&mut fault, input, value),
        }
    }
    if let Some(wanted) = wanted {
        let all = with_defaults(inputs, fields);
        for issue in schema::validate(wanted, &all).err().unwrap_or_default() {
            // Said once is enough.
            if !fault.missing.contains(&issue.path) {
                fault.issues.push(issue.to_string());
            }
        }
    }
    if fault == InputFault::default() {
        Ok(())
    } else {
        Err(fault)
    }
}

/// What was given, and the defaults of what was not.
pub fn with_defaults(inputs: &[Input], given: &Map<String, Value>) -> Value {
    let mut all = given.clone();
    for input in inputs {
        if let Some(default) = &input.default {
            all.entry(&input.name).or_insert_with(|| default.clone());
        }
    }
    Value::Object(all)
}

fn look(fault: &mut InputFault, input: &Input, value: &Value) {
    let declared = input.type_name.to_lowercase();
    let of_type = TYPES
        .iter()
        .find(|(name, _)| *name == declared)
        .map(|(_, name)| json!({ "type": name }));
    for wanted in of_type.iter().chain(&input.schema) {
        let issues = schema::validate(wanted, value).err().unwrap_or_default();
        for issue in issues {
            let dot = if issue.path.is_empty() || issue.path.starts_with('[') {
                ""
            } else {
                "."
            };
            let line = format!("{}{dot}{}: {}", input.name, issue.path, issue.message);
            if !fault.issues.contains(&line) {
                fault.issues.push(line);
            }
        }
    }
}
