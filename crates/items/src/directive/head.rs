//! Directives with YAML frontmatter, and skills.

use super::{Directive, Input, Model, Spelling, Step, TIERS};
use crate::grants::Permission;
use crate::kind::{Place, shown};
use crate::{Faults, schema, version, yaml};
use serde_json::{Map, Value};

/// Reads a directive in the contract's format.
pub(super) fn directive(content: String, place: &Place) -> Result<Directive, Faults> {
    let (block, body) = yaml::frontmatter(&content).unwrap_or(("", &content));
    let fields = yaml::fields("frontmatter", block)?;
    let mut faults = Faults::default();
    match yaml::text_at(&fields, &["name"]) {
        None => faults.add("name", "is missing", format!("add `name: {}`", place.id)),
        Some(name) if name != place.id.as_str() => faults.add(
            "name",
            format!(
                "`{}` differs from the name of the file, `{}`",
                shown(&name),
                place.id
            ),
            "give both the same name",
        ),
        Some(_) => {}
    }
    let found = yaml::text_at(&fields, &["version"]).unwrap_or_default();
    if found.is_empty() {
        faults.add("version", "is missing", "add `version: 1.0.0`");
    } else {
        version::check(&mut faults, &found);
    }
    if body.trim().is_empty() {
        faults.add(
            "content",
            "is empty",
            "write the steps after the frontmatter",
        );
    }
    let directive = from_fields(&mut faults, &fields, place, found, Spelling::Frontmatter);
    faults.or(Directive {
        content,
        ..directive
    })
}

/// Reads the `SKILL.md` of a skill. The name of its folder is its id, because `name` may be any text.
pub(super) fn skill(content: String, place: &Place) -> Result<Directive, Faults> {
    let Some((block, body)) = yaml::frontmatter(&content) else {
        return Err(Faults::one(
            "frontmatter",
            "there is none",
            "begin SKILL.md with `---`, the fields `name` and `description`, and `---`",
        ));
    };
    let fields = yaml::fields("frontmatter", block)?;
    let mut faults = Faults::default();
    for name in ["name", "description"] {
        if yaml::text_at(&fields, &[name]).is_none() {
            faults.add(
                name,
                "is missing",
                format!("add `{name}: …` to the frontmatter"),
            );
        }
    }
    if body.trim().is_empty() {
        faults.add(
            "content",
            "is empty",
            "write instructions after the frontmatter",
        );
    }
    let nested = fields.get("metadata").and_then(Value::as_object);
    let found = yaml::text_at(&fields, &["version"])
        .or_else(|| yaml::text_at(nested?, &["version"]))
        .unwrap_or_else(|| version::DEFAULT.to_owned());
    // Skills from elsewhere may say `1.0`.
    let found = padded(found);
    version::check(&mut faults, &found);
    let directive = from_fields(&mut faults, &fields, place, found, Spelling::Skill);
    faults.or(Directive {
        content,
        ..directive
    })
}

/// `1` and `1.0` as three numbers; anything else as it is.
fn padded(version: String) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = version.split('.').collect();
    match parts.as_slice() {
        [a] if is_number(a) => format!("{a}.0.0"),
        [a, b] if is_number(a) && is_number(b) => format!("{a}.{b}.0"),
        _ => version,
    }
}

/// Everything but the fields that the two formats require.
fn from_fields(
    faults: &mut Faults,
    fields: &Map<String, Value>,
    place: &Place,
    version: String,
    spelling: Spelling,
) -> Directive {
    let json = |name: &str| fields.get(name).cloned().unwrap_or(Value::Null);
    let (inputs, input_schema) = inputs(faults, fields);
    Directive {
        name: place.id.as_str().to_owned(),
        version,
        category: crate::declared_category(faults, fields, place),
        description: yaml::text_at(fields, &["description"]).unwrap_or_default(),
        author: yaml::text_at(fields, &["author"]),
        inputs,
        input_schema,
        steps: steps(faults, fields),
        permissions: permissions(faults, fields),
        model: model(faults, fields),
        relationships: relationships(faults, fields),
        outputs: json("outputs"),
        context: json("context"),
        mcps: json("mcps"),
        content: String::new(),
        spelling,
        validated: None,
    }
}

fn inputs(faults: &mut Faults, fields: &Map<String, Value>) -> (Vec<Input>, Option<Value>) {
    let whole = fields.get("input_schema").cloned();
    if let Some(Err(wrong)) = whole.as_ref().map(schema::check) {
        faults.0.extend(wrong.0);
    }
    (inputs_at(faults, fields.get("inputs"), "inputs"), whole)
}

/// A list of inputs, or a map from names to inputs.
pub(crate) fn inputs_at(faults: &mut Faults, found: Option<&Value>, field: &str) -> Vec<Input> {
    let entries: Vec<(Option<&str>, &Value)> = match found {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().map(|it| (None, it)).collect(),
        Some(Value::Object(map)) => map.iter().map(|(k, v)| (Some(k.as_str()), v)).collect(),
        Some(_) => {
            faults.add(
                field,
                "is not a list",
                "write a list of `name`, `type`, `required`",
            );
            Vec::new()
        }
    };
    let read = |(name, value)| input(faults, field, name, value);
    entries.into_iter().filter_map(read).collect()
}

fn input(faults: &mut Faults, field: &str, name: Option<&str>, value: &Value) -> Option<Input> {
    let empty = Map::new();
    let (fields, description) = match value {
        Value::Object(fields) => (fields, yaml::text_at(fields, &["description"])),
        Value::String(text) if name.is_none() => return Some(named(text.trim())),
        Value::Null => (&empty, None),
        other => (&empty, yaml::text_of(other)),
    };
    let name = name.map(str::to_owned);
    let Some(name) = name.or_else(|| yaml::text_at(fields, &["name"])) else {
        faults.add(field, "an entry has no name", "give each entry a `name`");
        return None;
    };
    let required = match fields.get("required") {
        None => false,
        Some(Value::Bool(flag)) => *flag,
        Some(other) => {
            let message = format!("`{other}` is not true or false");
            faults.add(
                format!("{field}.{name}.required"),
                message,
                "use `true` or `false`",
            );
            false
        }
    };
    let schema = fields.get("schema").cloned();
    if let Some(Err(wrong)) = schema.as_ref().map(schema::check) {
        faults.0.extend(wrong.0);
    }
    Some(Input {
        type_name: yaml::text_at(fields, &["type"]).unwrap_or_else(|| "string".to_owned()),
        required,
        default: fields.get("default").filter(|it| !it.is_null()).cloned(),
        description: description.unwrap_or_default(),
        schema,
        name,
    })
}

fn named(name: &str) -> Input {
    Input {
        name: name.to_owned(),
        type_name: "string".to_owned(),
        required: false,
        default: None,
        description: String::new(),
        schema: None,
    }
}

fn steps(faults: &mut Faults, fields: &Map<String, Value>) -> Vec<Step> {
    let list = match fields.get("process").or_else(|| fields.get("steps")) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            faults.add(
                "process",
                "is not a list of steps",
                "write a list of `name`, `action`",
            );
            return Vec::new();
        }
    };
    let read = |(i, step): (usize, &Value)| match step {
        Value::Object(fields) => {
            let text = |name: &str| yaml::text_at(fields, &[name]).unwrap_or_default();
            let name = yaml::text_at(fields, &["name"]);
            Step {
                name: name.unwrap_or_else(|| format!("step_{}", i + 1)),
                description: text("description"),
                action: text("action"),
            }
        }
        other => Step {
            name: format!("step_{}", i + 1),
            description: String::new(),
            action: yaml::text_of(other).unwrap_or_default(),
        },
    };
    list.iter().enumerate().map(read).collect()
}

fn permissions(faults: &mut Faults, fields: &Map<String, Value>) -> Vec<Permission> {
    match fields.get("permissions").map(Permission::list) {
        None => Vec::new(),
        Some(Ok(list)) => list,
        Some(Err(wrong)) => {
            faults.0.extend(wrong.0);
            Vec::new()
        }
    }
}

fn model(faults: &mut Faults, fields: &Map<String, Value>) -> Option<Model> {
    let model = match fields.get("model")? {
        Value::Object(fields) => Model {
            tier: yaml::text_at(fields, &["tier"]).unwrap_or_default(),
            id: yaml::text_at(fields, &["id"]),
            fallback: yaml::text_at(fields, &["fallback"]),
            parallel: fields.get("parallel").and_then(Value::as_bool),
        },
        // Skills name a model and no tier.
        other => Model {
            id: yaml::text_of(other),
            ..Model::default()
        },
    };
    if !model.tier.is_empty() && !TIERS.contains(&model.tier.as_str()) {
        let message = format!("`{}` is not a tier", shown(&model.tier));
        faults.add(
            "model.tier",
            message,
            format!("use one of {}", TIERS.join(", ")),
        );
    }
    Some(model)
}

fn relationships(faults: &mut Faults, fields: &Map<String, Value>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let Some(Value::Object(found)) = fields.get("relationships") else {
        return out;
    };
    for (word, targets) in found {
        if !super::xml::RELATIONS.contains(&word.as_str()) {
            let message = format!("`{}` is not a relation of directives", shown(word));
            let remedy = format!("use one of {}", super::xml::RELATIONS.join(", "));
            faults.add("relationships", message, remedy);
            continue;
        }
        for target in yaml::texts(targets).unwrap_or_default() {
            out.push((word.clone(), target));
        }
    }
    out
}
