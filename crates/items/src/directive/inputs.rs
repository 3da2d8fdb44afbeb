//! The inputs of a directive, and the check of given values.

use super::Directive;
use crate::kind::shown;
use crate::schema;
use serde_json::{Map, Value, json};

/// Types of inputs that are checked, with their names in JSON Schema. Other types accept any value.
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

/// An input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its type, as written; `string` if there is none.
    pub type_name: String,
    /// Whether it must be given.
    pub required: bool,
    /// Its default value.
    pub default: Option<Value>,
    /// What it is for.
    pub description: String,
    /// The schema of its values.
    pub schema: Option<Value>,
}

impl Input {
    /// As JSON, for responses.
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

impl Input {
    /// As a property of a JSON Schema.
    pub(crate) fn to_schema(&self) -> Value {
        let declared = self.type_name.to_lowercase();
        let mut out = match &self.schema {
            Some(Value::Object(schema)) => schema.clone(),
            _ => Map::new(),
        };
        if let Some((_, word)) = TYPES.iter().find(|it| it.0 == declared) {
            out.entry("type").or_insert_with(|| (*word).into());
        }
        if !self.description.is_empty() {
            let text = self.description.as_str();
            out.entry("description").or_insert_with(|| text.into());
        }
        if let Some(default) = &self.default {
            out.entry("default").or_insert_with(|| default.clone());
        }
        Value::Object(out)
    }
}

/// Why inputs are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputFault {
    /// Required inputs that were not given.
    pub missing: Vec<String>,
    /// What does not match: the field, the value and why.
    pub issues: Vec<String>,
}

/// Checks inputs, an object, against a directive.
pub fn check_inputs(directive: &Directive, given: &Value) -> Result<(), InputFault> {
    check_against(&directive.inputs, directive.input_schema.as_ref(), given)
}

/// Checks an object against inputs and a schema.
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
            // Not reported twice.
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

/// Converts texts to the declared types: arguments of prompts are always texts.
///
/// A text that cannot be converted stays a text, which the check then refuses.
pub fn typed(directive: &Directive, given: &Map<String, Value>) -> Map<String, Value> {
    let declared = |name: &str| -> Option<String> {
        let of_input = directive.inputs.iter().find(|it| it.name == name);
        let of_input = of_input.map(|it| it.type_name.to_lowercase());
        let of_schema = || {
            let properties = directive.input_schema.as_ref()?.get("properties")?;
            Some(properties.get(name)?.get("type")?.as_str()?.to_owned())
        };
        let found = of_input.or_else(of_schema)?;
        let known = TYPES.iter().find(|it| it.0 == found);
        known.map(|it| it.1.to_owned())
    };
    let read = |(name, value): (&String, &Value)| {
        let text = value.as_str();
        let wants_more = declared(name).is_some_and(|it| it != "string");
        let read = text.filter(|_| wants_more);
        let read = read.and_then(|it| serde_json::from_str(it.trim()).ok());
        (name.clone(), read.unwrap_or_else(|| value.clone()))
    };
    given.iter().map(read).collect()
}

/// All inputs of a directive, including those that only its schema names.
pub fn all_inputs(directive: &Directive) -> Vec<Input> {
    let mut all = directive.inputs.clone();
    let schema = directive.input_schema.as_ref();
    let properties = schema.and_then(|it| it.get("properties")?.as_object());
    let required = schema.and_then(|it| it.get("required")?.as_array());
    let is_required = |name: &str| {
        let mut required = required.into_iter().flatten();
        required.any(|it| it.as_str() == Some(name))
    };
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(known) = all.iter_mut().find(|it| it.name == *name) {
            known.required |= is_required(name);
            continue;
        }
        let text = |field: &str| schema.get(field).and_then(Value::as_str);
        all.push(Input {
            name: name.clone(),
            type_name: text("type").unwrap_or("string").to_owned(),
            required: is_required(name),
            default: schema.get("default").cloned(),
            description: text("description").unwrap_or_default().to_owned(),
            schema: Some(schema.clone()),
        });
    }
    all
}

/// The given values, with defaults for the rest.
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
