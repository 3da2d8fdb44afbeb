//! A tool: something that runs.
//!
//! A directory with `manifest.yaml` (or `tool.yaml`, the early form), or one source file with the
//! same fields in it (`source`). Both become fields, and the fields a [`Tool`].

mod literal;
mod source;

use crate::directive::Input;
use crate::grants::{Asks, is_variable};
use crate::kind::{Layout, Place, shown};
use crate::mark::{self, Compared, FileHash, Line, Style, Validated, original};
use crate::{Faults, ItemType, schema, version, yaml};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Types that have no executor.
const WITHOUT_EXECUTOR: [&str; 2] = ["primitive", "extractor"];
/// The default runtime for a file extension or a language.
const RUNTIMES: &[(&str, &str)] = &[
    ("py", "python_runtime"),
    ("python", "python_runtime"),
    ("python3", "python_runtime"),
    ("sh", "bash_runtime"),
    ("bash", "bash_runtime"),
    ("shell", "bash_runtime"),
    ("js", "node_runtime"),
    ("mjs", "node_runtime"),
    ("javascript", "node_runtime"),
    ("node", "node_runtime"),
    ("wasm", "wasm"),
];

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its id, which is the name of its file or directory.
    pub id: String,
    /// Its version.
    pub version: String,
    /// What kind of tool: `script`, `runtime`, `api`, …
    pub tool_type: String,
    /// The tool that runs it; none for a primitive.
    pub executor_id: Option<String>,
    /// The category that it declares, otherwise the folders above it.
    pub category: String,
    /// What it is for.
    pub description: String,
    /// The file to start, relative to the tool's directory.
    pub entrypoint: Option<String>,
    /// Its language.
    pub language: Option<String>,
    /// Packages that it needs.
    pub dependencies: Vec<String>,
    /// Its part of the configuration.
    pub config: Map<String, Value>,
    /// The schema of the configuration.
    pub config_schema: Option<Value>,
    /// Its parameters.
    pub parameters: Vec<Input>,
    /// The same as one JSON Schema, where that was written instead.
    pub parameters_schema: Option<Value>,
    /// Capabilities that it needs, as `resource.action`.
    pub requires: Vec<String>,
    /// Whether it changes something.
    pub mutates_state: bool,
    /// Environment variables that it declares, with the values that it sets.
    pub env: BTreeMap<String, Option<String>>,
    /// How its interpreter is found, as written.
    pub env_config: Value,
    /// What it requests to read, write, reach and see.
    pub asks: Asks,
    /// What it requires of the tools that it runs. `None` if nothing.
    pub child_schemas: Option<Vec<ChildSchema>>,
    /// The scope of the token that it needs.
    pub required_scope: Option<String>,
    /// The nested `manifest`, as written.
    pub manifest: Map<String, Value>,
    /// All fields, as written or extracted.
    pub fields: Map<String, Value>,
    /// The validation by the original program.
    pub validated: Option<Validated>,
}

impl Tool {
    /// The original's hash, if there is one, compared with this tool and its files.
    pub fn compared(&self, files: &[FileHash]) -> Option<Compared> {
        let validated = self.validated.as_ref()?;
        let manifests = original::tool_manifests(&self.id, &self.fields);
        let hash = |it: &Value| original::tool_sha256(&self.id, &self.version, it, files);
        let candidates: Vec<String> = manifests.iter().map(hash).collect();
        Some(validated.compare(&candidates))
    }
}

/// What a tool requires of those that it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildSchema {
    /// Which tools this is about: paths in the child, such as `tool_type` or `manifest.language`, and
    /// their values.
    pub matches: Map<String, Value>,
    /// The schema that they must match.
    pub schema: Value,
}

/// Reads a tool by the text of the file that describes it.
pub fn read(text: &str, place: &Place) -> Result<Tool, Faults> {
    let (extension, name) = match &place.layout {
        Layout::File(extension) => (extension.as_str(), format!("{}.{extension}", place.id)),
        Layout::Directory(name) => ("yaml", name.clone()),
    };
    let style = Style::of(ItemType::Tool, &name);
    let validated = match style.and_then(|style| mark::read(text, style)) {
        Some(Line::Validated(validated)) => Some(validated),
        Some(Line::Signed(_) | Line::Broken(_)) | None => None,
    };
    let bare = style.map_or_else(|| text.to_owned(), |style| mark::strip(text, style));
    let mut faults = Faults::default();
    let fields = match extension {
        "py" => source::python(&mut faults, &bare),
        "sh" => source::comments(&mut faults, &bare, "#"),
        "js" => source::comments(&mut faults, &bare, "//"),
        _ => yaml::fields(&name, &bare)?,
    };
    let is_source = matches!(extension, "py" | "sh" | "js");
    let own = is_source.then_some((extension, name.as_str()));
    let tool = from_fields(&mut faults, fields, place, own);
    faults.or(Tool { validated, ..tool })
}

/// `own`: the extension and the name, if the file is the tool itself.
fn from_fields(
    faults: &mut Faults,
    fields: Map<String, Value>,
    place: &Place,
    own: Option<(&str, &str)>,
) -> Tool {
    let text = |names: &[&str]| yaml::text_at(&fields, names);
    check_id(faults, &fields, place, own.is_some());
    let version = text(&["version"]).unwrap_or_default();
    if version.is_empty() {
        faults.add(
            "version",
            "is missing",
            "add `version: 1.0.0` (Python: `__version__ = \"1.0.0\"`)",
        );
    } else {
        version::check(faults, &version);
    }
    let tool_type = tool_type(faults, &fields);
    let manifest = map(faults, &fields, "manifest");
    let entrypoint = entrypoint(faults, &fields, &manifest, own);
    let language = yaml::text_at(&manifest, &["language"]).or_else(|| text(&["language"]));
    let executor_id = text(&["executor_id", "executor"])
        .or_else(|| default_executor(&tool_type, own, language.as_deref(), entrypoint.as_deref()))
        .filter(|_| !WITHOUT_EXECUTOR.contains(&tool_type.as_str()));
    check_executor(faults, executor_id.as_deref(), &tool_type);
    let (parameters, parameters_schema) = parameters(faults, &fields);
    let asks = taken(
        faults,
        Asks::read(fields.get("permissions").unwrap_or(&Value::Null)),
    );
    let config_schema = schema_at(faults, &fields, "config_schema");
    Tool {
        id: place.id.as_str().to_owned(),
        version,
        category: crate::declared_category(faults, &fields, place),
        description: text(&["description"]).unwrap_or_default(),
        entrypoint,
        language,
        dependencies: dependencies(faults, &fields),
        config: config(faults, &fields),
        config_schema,
        parameters,
        parameters_schema,
        requires: requires(faults, &fields),
        mutates_state: flag(faults, &fields, "mutates_state"),
        env: env(faults, &fields, &asks),
        env_config: fields.get("env_config").cloned().unwrap_or(Value::Null),
        asks,
        child_schemas: child_schemas(faults, &fields),
        required_scope: text(&["required_scope"]),
        manifest,
        tool_type,
        executor_id,
        validated: None,
        fields,
    }
}

fn taken<T: Default>(faults: &mut Faults, read: Result<T, Faults>) -> T {
    read.unwrap_or_else(|wrong| {
        faults.0.extend(wrong.0);
        T::default()
    })
}

/// A source file need not declare its id, because its name is the id. A manifest must.
fn check_id(faults: &mut Faults, fields: &Map<String, Value>, place: &Place, is_source: bool) {
    match yaml::text_at(fields, &["tool_id", "name"]) {
        None if is_source => {}
        None => faults.add(
            "tool_id",
            "is missing",
            format!("add `tool_id: {}`", place.id),
        ),
        Some(id) if id != place.id.as_str() => faults.add(
            "tool_id",
            format!(
                "`{}` is not the name of the file or directory, `{}`",
                shown(&id),
                place.id
            ),
            "give both the same name",
        ),
        Some(_) => {}
    }
}

fn tool_type(faults: &mut Faults, fields: &Map<String, Value>) -> String {
    let found = yaml::text_at(fields, &["tool_type"]).unwrap_or_default();
    let remedy = "use for example `script`, `runtime`, `api` or `mcp_tool`";
    if found.is_empty() {
        faults.add("tool_type", "is missing", remedy);
    } else if !found
        .bytes()
        .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    {
        faults.add(
            "tool_type",
            format!("`{}` is not a type", shown(&found)),
            remedy,
        );
    }
    found
}

fn default_executor(
    tool_type: &str,
    own: Option<(&str, &str)>,
    language: Option<&str>,
    entrypoint: Option<&str>,
) -> Option<String> {
    let extension = entrypoint.and_then(|it| it.rsplit_once('.')).map(|it| it.1);
    let hints = [own.map(|it| it.0), language, extension, Some(tool_type)];
    let runtime = |hint: &str| {
        RUNTIMES
            .iter()
            .find(|it| it.0 == hint)
            .map(|it| it.1.to_owned())
    };
    hints.into_iter().flatten().find_map(runtime)
}

fn check_executor(faults: &mut Faults, executor_id: Option<&str>, tool_type: &str) {
    match executor_id {
        None if !WITHOUT_EXECUTOR.contains(&tool_type) => faults.add(
            "executor_id",
            "is missing",
            "name its runtime: `python_runtime`, `bash_runtime`, `node_runtime`, `http_client`, …",
        ),
        Some(id) if id.parse::<crate::ItemId>().is_err() => {
            let message = format!("`{}` is not a valid tool id", shown(id));
            faults.add(
                "executor_id",
                message,
                "name a tool such as `python_runtime`",
            );
        }
        _ => {}
    }
}

fn map(faults: &mut Faults, fields: &Map<String, Value>, name: &str) -> Map<String, Value> {
    match fields.get(name) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(other) => {
            let message = format!("`{}` is not a mapping", shown(&other.to_string()));
            faults.add(name, message, "write `key: value` lines under it");
            Map::new()
        }
    }
}

fn entrypoint(
    faults: &mut Faults,
    fields: &Map<String, Value>,
    manifest: &Map<String, Value>,
    own: Option<(&str, &str)>,
) -> Option<String> {
    if let Some((_, name)) = own {
        return Some(name.to_owned());
    }
    let config = fields.get("executor_config").and_then(Value::as_object);
    let found = yaml::text_at(manifest, &["entrypoint"])
        .or_else(|| yaml::text_at(fields, &["entrypoint"]))
        .or_else(|| yaml::text_at(config?, &["entrypoint"]))?;
    let is_good = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_below = found.split('/').all(is_good) && !found.contains(['\\', '\0', '\n']);
    if !is_below || found.starts_with('-') {
        let message = format!("`{}` is outside the tool's directory", shown(&found));
        faults.add(
            "manifest.entrypoint",
            message,
            "name a file beside the manifest, such as `main.py`",
        );
    }
    Some(found)
}

fn config(faults: &mut Faults, fields: &Map<String, Value>) -> Map<String, Value> {
    let mut config = map(faults, fields, "executor_config");
    config.extend(map(faults, fields, "config"));
    config
}

fn flag(faults: &mut Faults, fields: &Map<String, Value>, name: &str) -> bool {
    match fields.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(other) => {
            let message = format!("`{}` is not true or false", shown(&other.to_string()));
            faults.add(name, message, "use `true` or `false`");
            false
        }
    }
}

/// A package with an option, a path or a URL would install something else than it names.
fn dependencies(faults: &mut Faults, fields: &Map<String, Value>) -> Vec<String> {
    let list = texts(faults, fields, "dependencies");
    let good = |c: char| c.is_ascii_alphanumeric() || " ._-[],<>=!~@/^*+".contains(c);
    for text in &list {
        let is_scoped = text.starts_with('@');
        let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric()) || is_scoped;
        let has_path = text.contains("..") || text.contains('/') && !is_scoped;
        if !is_name || has_path || !text.chars().all(good) {
            let message = format!("`{}` is not a package", shown(text));
            faults.add(
                "dependencies",
                message,
                "use names with versions such as `requests>=2`",
            );
        }
    }
    list
}

fn texts(faults: &mut Faults, fields: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = fields.get(name).map_or(Some(Vec::new()), yaml::texts);
    list.unwrap_or_else(|| {
        faults.add(
            name,
            "is not a list of strings",
            format!("write `{name}: [one, two]`"),
        );
        Vec::new()
    })
}

fn requires(faults: &mut Faults, fields: &Map<String, Value>) -> Vec<String> {
    let list = texts(faults, fields, "requires");
    let good = |part: &str| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
        !part.is_empty() && part.chars().all(is_word)
    };
    for text in &list {
        if !text.contains('.') || !text.split('.').all(good) {
            let message = format!("`{}` is not of the form `resource.action`", shown(text));
            faults.add("requires", message, "write for example `fs.read`");
        }
    }
    list
}

fn schema_at(faults: &mut Faults, fields: &Map<String, Value>, name: &str) -> Option<Value> {
    let found = fields.get(name).filter(|it| !it.is_null())?;
    if let Err(wrong) = schema::check(found) {
        let named = wrong.0.into_iter().map(|fault| crate::Fault {
            field: fault.field.replacen("schema", name, 1),
            ..fault
        });
        faults.0.extend(named);
    }
    Some(found.clone())
}

fn parameters(faults: &mut Faults, fields: &Map<String, Value>) -> (Vec<Input>, Option<Value>) {
    let found = fields.get("parameters");
    let is_schema = found.is_some_and(|it| it.get("properties").is_some());
    if is_schema {
        return (Vec::new(), schema_at(faults, fields, "parameters"));
    }
    (
        crate::directive::inputs_at(faults, found, "parameters"),
        None,
    )
}

fn env(
    faults: &mut Faults,
    fields: &Map<String, Value>,
    asks: &Asks,
) -> BTreeMap<String, Option<String>> {
    let mut out: BTreeMap<_, _> = asks.env.iter().map(|it| (it.clone(), None)).collect();
    let nested = fields.get("env_config").and_then(|it| it.get("env"));
    for declared in [nested, fields.get("env")].into_iter().flatten() {
        match declared {
            Value::Object(map) => {
                out.extend(
                    map.iter()
                        .map(|(name, value)| (name.clone(), yaml::text_of(value))),
                );
            }
            list => match yaml::texts(list) {
                Some(names) => out.extend(names.into_iter().map(|name| (name, None))),
                None => faults.add("env", "is not a list of names", "write `env: [API_KEY]`"),
            },
        }
    }
    for name in out.keys().filter(|it| !is_variable(it)) {
        let message = format!("`{}` is not the name of a variable", shown(name));
        faults.add("env", message, "use letters, digits and `_`");
    }
    out
}

fn child_schemas(faults: &mut Faults, fields: &Map<String, Value>) -> Option<Vec<ChildSchema>> {
    let remedy = "write a list of `match: {tool_type: script}` and `schema: {…}`";
    let nested = fields
        .get("validation")
        .and_then(|it| it.get("child_schemas"));
    let Value::Array(list) = nested.or_else(|| fields.get("child_schemas"))? else {
        faults.add("validation.child_schemas", "is not a list", remedy);
        return None;
    };
    let mut out = Vec::new();
    for (i, entry) in list.iter().enumerate() {
        let field = format!("validation.child_schemas[{i}]");
        let matches = entry.get("match").and_then(Value::as_object);
        let (Some(matches), Some(wanted)) = (matches, entry.get("schema")) else {
            faults.add(field, "has no `match` or no `schema`", remedy);
            continue;
        };
        if let Err(wrong) = schema::check(wanted) {
            faults.0.extend(wrong.0);
        }
        out.push(ChildSchema {
            matches: matches.clone(),
            schema: wanted.clone(),
        });
    }
    Some(out)
}

impl Tool {
    /// The fields that the tool that runs it checks.
    pub fn as_child(&self) -> Value {
        let mut manifest = self.manifest.clone();
        for (key, value) in [
            ("entrypoint", &self.entrypoint),
            ("language", &self.language),
        ] {
            if let Some(value) = value {
                manifest.entry(key).or_insert_with(|| value.clone().into());
            }
        }
        json!({
            "tool_id": self.id,
            "version": self.version,
            "tool_type": self.tool_type,
            "executor_id": self.executor_id,
            "category": self.category,
            "config": self.config,
            "manifest": manifest,
        })
    }

    /// Its parameters as one JSON Schema.
    pub fn input_schema(&self) -> Value {
        if let Some(schema) = &self.parameters_schema {
            return schema.clone();
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        for input in &self.parameters {
            properties.insert(input.name.clone(), input.to_schema());
            if input.required && input.default.is_none() {
                required.push(input.name.as_str());
            }
        }
        json!({ "type": "object", "properties": properties, "required": required })
    }

    /// Checks parameters.
    pub fn check_parameters(&self, given: &Value) -> Result<(), crate::directive::InputFault> {
        crate::directive::check_against(&self.parameters, self.parameters_schema.as_ref(), given)
    }
}
