//! `execute`

mod signing;

use super::words::{Answer, item_type, with_details};
use crate::{Call, Effect, Example, Reply, Tool, Toolset, near};
use kenning_core::{Code, Error, Result};
use kenning_engine::Scope;
use kenning_engine::kami::{FoundTool, ToolFunction, ToolRun};
use kenning_engine::kiwi::{
    DirectiveRun, ItemScope, ItemSource, ItemTarget, ItemType, KnowledgeRun, SignAs, ToolItemRun,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// At most this many characters of a program's output are shown beside its result.
const REPEATED_CHARS_MAX: usize = 500;

/// The tool.
pub struct Execute;

/// Execute operations on items: run, publish, delete, create, update, sign, link. `run` with
/// item_type `tool` runs any tool of this server by its name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Type of item
    #[schemars(extend("enum" = ["directive", "tool", "knowledge"]))]
    pub item_type: String,
    /// Operation to perform
    #[schemars(extend("enum" = ["run", "publish", "delete", "create", "update", "sign", "link"]))]
    pub action: String,
    /// Item identifier
    pub item_id: String,
    /// Action-specific parameters
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Validate without executing
    #[serde(default)]
    pub dry_run: bool,
    /// Project path for local operations
    pub project_path: Option<String>,
    /// Stay within what the directive of this run may do
    pub run_id: Option<String>,
}

/// At most this many items of a list are shown.
const LISTED_MAX: usize = 100;

/// What can be done.
const ACTIONS: [&str; 7] = [
    "run", "publish", "delete", "create", "update", "sign", "link",
];

impl Tool for Execute {
    const NAME: &'static str = "execute";
    const TITLE: &'static str = "Use an item";
    const TOOLSET: Toolset = Toolset::Kiwi;
    const EFFECT: Effect = Effect::Run;
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A directive that is not there",
            input: r#"{"item_type": "directive", "action": "run", "item_id": "oauth_setup"}"#,
            output: "Directive 'oauth_setup' not found locally",
        },
        Example {
            title: "Any tool of the server by its name",
            input: r#"{"item_type": "tool", "action": "run", "item_id": "now_read", "parameters": {}}"#,
            output: r#""status": "executed""#,
        },
        Example {
            title: "Deleting must be confirmed",
            input: r#"{"item_type": "knowledge", "action": "delete", "item_id": "001-old-entry"}"#,
            output: "Delete requires confirmation",
        },
    ];
    type Input = Input;
    type Output = Answer;
    const SCOPES: &'static [Scope] = &[Scope::Read, Scope::Write, Scope::Run, Scope::Destroy];

    /// The scope of each action, not of the most powerful one.
    fn scope(arguments: &Value) -> Scope {
        let is = |name: &str, value: &str| arguments[name] == value;
        match arguments["action"].as_str() {
            Some("run") if !is("item_type", "tool") => Scope::Read,
            Some("publish" | "create" | "update" | "sign" | "link") => Scope::Write,
            Some("delete") => Scope::Destroy,
            _ => Scope::Run,
        }
    }

    fn call(ctx: &Call<'_>, input: Input) -> Result<Answer> {
        let item_type = item_type(ctx, &input.item_type)?;
        let has_dry_run = input.parameters.get("dry_run") == Some(&Value::Bool(true));
        let dry_run = input.dry_run || has_dry_run;
        let doing = Doing {
            ctx,
            target: ItemTarget {
                item_type,
                id: input.item_id,
                project_path: input.project_path,
                dry_run,
            },
            parameters: input.parameters,
            run_id: input.run_id,
        };
        if ACTIONS.contains(&input.action.as_str()) && input.action != "run" {
            doing.require_run_may_act()?;
        }
        let target = doing.target.clone();
        let done = match input.action.as_str() {
            "run" => doing.run(),
            "publish" => doing.publish(),
            "delete" => doing.delete(),
            "create" => doing.sign(SignAs::Create),
            "update" => doing.sign(SignAs::Update),
            "sign" => doing.sign(SignAs::Sign),
            "link" => doing.link(),
            other => {
                ctx.detail(json!({ "supported_actions": ACTIONS }));
                Err(Error::invalid(format!("Unknown action: {other}"))
                    .hint(format!("use one of {}", ACTIONS.join(", "))))
            }
        };
        done.map_err(|error| with_near_names(ctx, &target, error))
    }
}

/// Adds similar names to the error about an item that does not exist.
fn with_near_names(ctx: &Call<'_>, target: &ItemTarget, mut error: Error) -> Error {
    if error.code != Code::NotFound {
        return error;
    }
    let (engine, project) = (ctx.engine, target.project_path.as_deref());
    let ids = engine
        .kiwi()
        .item_ids(ctx.caller, target.item_type, project);
    let mut known = ids.unwrap_or_default();
    match target.item_type {
        ItemType::Tool => known.extend(ctx.others.tool_names(ctx.caller)),
        ItemType::Directive => {
            known.extend(
                engine
                    .kiwi()
                    .builtin_directive_names()
                    .map(ToOwned::to_owned),
            );
        }
        ItemType::Knowledge => {}
    }
    known.retain(|it| *it != target.id);
    let near = near::names(&target.id, known);
    if near.is_empty() {
        return error;
    }
    let sentence = near::sentence(&near);
    ctx.detail(json!({ "did_you_mean": near }));
    let hint = error.hint.unwrap_or_default();
    error.hint = Some(
        format!("{hint}.{sentence}")
            .trim_start_matches(['.', ' '])
            .to_owned(),
    );
    error
}

/// An action in progress.
struct Doing<'a> {
    ctx: &'a Call<'a>,
    target: ItemTarget,
    parameters: Map<String, Value>,
    run_id: Option<String>,
}

impl Doing<'_> {
    /// Within a directive's run, items are changed only if the directive grants it.
    fn require_run_may_act(&self) -> Result<()> {
        let Some(run_id) = &self.run_id else {
            return Ok(());
        };
        let (ctx, engine) = (self.ctx, self.ctx.engine);
        with_details(
            ctx,
            engine
                .kiwi()
                .require_run_may_act(ctx.caller, run_id, "execute"),
        )
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        match self.parameters.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(Error::invalid(format!(
                "`parameters.{name}`: `{other}` is not text"
            ))
            .hint("write it in quotes")),
        }
    }

    /// A reply with the common fields.
    fn answer(&self, status: &str, action: &str, fields: Value) -> Answer {
        let is_dry = self.target.dry_run;
        let status = if is_dry { "validation_passed" } else { status };
        let mut all = json!({
            "status": status, "name": self.target.id, "action": action,
            "item_type": self.target.item_type.word(),
            "dry_run": is_dry.then_some(true),
        });
        if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), fields) {
            let result = outcome(&fields);
            all.extend(fields);
            all.entry("result").or_insert(result);
        }
        Answer::new(self.ctx, all)
    }

    fn run(self) -> Result<Answer> {
        match self.target.item_type {
            ItemType::Directive => {
                let given = self.given(&["dry_run"]);
                let engine = self.ctx.engine;
                let parent = self.run_id.as_deref();
                let run = engine.kiwi().run_directive_within(
                    self.ctx.caller,
                    &self.target,
                    &given,
                    parent,
                );
                let run = with_details(self.ctx, run)?;
                Ok(self.answer("executed", "run", directive(run)))
            }
            ItemType::Knowledge => {
                if let Some(run_id) = &self.run_id {
                    let known = self.ctx.engine.kiwi().require_run(self.ctx.caller, run_id);
                    with_details(self.ctx, known)?;
                }
                let run = self
                    .ctx
                    .engine
                    .kiwi()
                    .run_knowledge(self.ctx.caller, &self.target);
                let run = with_details(self.ctx, run)?;
                Ok(self.answer("executed", "run", knowledge(run)))
            }
            ItemType::Tool => self.run_tool(),
        }
    }

    /// The inputs: `inputs` if it is an object, otherwise all parameters.
    fn given(&self, except: &[&str]) -> Map<String, Value> {
        if let Some(Value::Object(inputs)) = self.parameters.get("inputs") {
            return inputs.clone();
        }
        let mut given = self.parameters.clone();
        for name in except {
            given.remove(*name);
        }
        given
    }

    /// A tool of the table takes precedence over an installed one, and that over an item.
    fn run_tool(self) -> Result<Answer> {
        let (ctx, id) = (self.ctx, self.target.id.as_str());
        let given = self.given(&["dry_run"]);
        let inputs = Value::Object(given.clone());
        if let Some(tool) = ctx.others.reachable(id) {
            self.require_run_may(id)?;
            if self.target.dry_run {
                let fields = json!({ "message": "Tool is ready to execute", "source": "server" });
                return Ok(self.answer("executed", "run", fields));
            }
            let reply = ctx.others.call_reachable(tool, inputs, ctx.caller);
            return self.replied(reply, tool.toolset().as_str());
        }
        let installed = ctx.others.find_installed(id, ctx.caller)?;
        let reached = installed.as_ref().and_then(FoundTool::function);
        if let Some(function) = reached.filter(|it| ctx.others.reaches_installed(it)) {
            let name = function.name.clone();
            self.require_run_may(&name)?;
            if self.target.dry_run {
                let fields = json!({ "message": "Tool is ready to execute", "source": "wasm" });
                return Ok(self.answer("executed", "run", fields));
            }
            let run = ctx
                .engine
                .kami()
                .run_tool(ctx.caller, &name, &inputs.to_string())?;
            return self.ran_wasm(run);
        }
        let run_id = self.run_id.as_deref();
        let reaches = |it: &ToolFunction| ctx.others.reaches_installed(it);
        let run =
            ctx.engine
                .kiwi()
                .run_item_tool(ctx.caller, &self.target, &given, run_id, &reaches);
        let run = with_details(ctx, run)?;
        self.ran_item(run)
    }

    /// Within a directive's run, a tool of the server must be one that the directive grants.
    fn require_run_may(&self, tool: &str) -> Result<()> {
        let Some(run_id) = &self.run_id else {
            return Ok(());
        };
        let (ctx, engine) = (self.ctx, self.ctx.engine);
        with_details(ctx, engine.kiwi().require_run_may(ctx.caller, run_id, tool))
    }

    /// A tool that fails is an error, with all of its output.
    fn ran_item(self, run: ToolItemRun) -> Result<Answer> {
        let metadata = json!({
            "duration_ms": run.duration_ms, "tool_type": run.tool_type,
            "primitive_type": run.primitive_type, "chain": run.chain,
        });
        let warnings = Some(run.warnings).filter(|it| !it.is_empty());
        if self.target.dry_run {
            let fields = json!({
                "message": "Tool is ready to execute", "source": "local",
                "version": run.version, "location": run.location.word(), "path": run.path,
                "metadata": metadata, "granted": run.granted, "warnings": warnings,
            });
            return Ok(self.answer("executed", "run", fields));
        }
        let checkpoint = run.checkpoint_recommended.then_some(true);
        let mut fields = json!({
            "source": "local", "version": run.version, "location": run.location.word(),
            "path": run.path, "data": run.data, "metadata": metadata,
            "output_path": run.output_path, "truncated": run.is_truncated.then_some(true),
            "checkpoint_recommended": checkpoint,
            "checkpoint_hint": checkpoint.map(|_| "This tool changes files: commit before you run it again."),
            "warnings": warnings,
        });
        let Some(error) = run.error else {
            say_once(&mut fields["data"], &run.result);
            fields["result"] = run.result;
            return Ok(self.answer("executed", "run", fields));
        };
        fields["status"] = "error".into();
        for name in ["stdout", "stderr", "return_code"] {
            fields[name] = run.data.get(name).cloned().unwrap_or_default();
        }
        if run.data.get("return_code").is_some() {
            // The three fields contain all of it.
            fields["data"] = Value::Null;
        }
        if let Some(fields) = fields.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        self.ctx.detail(fields);
        Err(Error::invalid(error).hint("`stdout` and `stderr` have its output"))
    }

    /// The reply of another tool of the server, as the result of this one.
    fn replied(self, reply: Reply, toolset: &str) -> Result<Answer> {
        if let Some(error) = reply.error {
            return Err(error);
        }
        let result = reply.value.unwrap_or_else(|| reply.text.into());
        let metadata = json!({ "tool_type": "server", "toolset": toolset });
        Ok(self.answer(
            "executed",
            "run",
            json!({ "source": "server", "result": result, "metadata": metadata }),
        ))
    }

    fn ran_wasm(self, run: ToolRun) -> Result<Answer> {
        let usage = run.usage;
        let metadata = json!({
            "duration_ms": usage.wall_us as f64 / 1_000.0, "tool_type": "wasm",
            "primitive_type": "wasm", "fuel": usage.fuel,
        });
        match run.result {
            Ok(text) => {
                let result = serde_json::from_str(&text).unwrap_or(Value::String(text));
                Ok(self.answer(
                    "executed",
                    "run",
                    json!({ "source": "wasm", "result": result, "metadata": metadata }),
                ))
            }
            Err(text) => {
                self.ctx
                    .detail(json!({ "status": "error", "metadata": metadata }));
                Err(Error::new(run.code.unwrap_or(Code::Unavailable), text))
            }
        }
    }

    fn publish(self) -> Result<Answer> {
        let (version, changelog) = (self.text("version")?, self.text("changelog")?);
        let done = self.ctx.engine.kiwi().publish_item(
            self.ctx.caller,
            &self.target,
            version.as_deref(),
            changelog,
        );
        let done = with_details(self.ctx, done)?;
        let fields = json!({
            "version": done.version, "registry": done.registry, "url": done.url,
            "integrity": done.sha256,
        });
        Ok(self.answer("published", "publish", fields))
    }

    fn delete(self) -> Result<Answer> {
        if self.parameters.get("confirm") != Some(&Value::Bool(true)) && !self.target.dry_run {
            let (kind, id) = (self.target.item_type, &self.target.id);
            self.ctx.detail(json!({
                "required": { "confirm": true },
                "example": format!("execute(item_type='{kind}', action='delete', item_id='{id}', parameters={{'confirm': true}})"),
            }));
            return Err(Error::invalid("Delete requires confirmation")
                .hint("give `parameters: {\"confirm\": true}`"));
        }
        let source = match self.text("source")?.as_deref() {
            None | Some("local") => ItemSource::Local,
            Some("registry") => ItemSource::Registry,
            Some("all") => ItemSource::All,
            Some(other) => {
                return Err(
                    Error::invalid(format!("`parameters.source`: `{other}` is unknown"))
                        .hint("use `local`, `registry` or `all`"),
                );
            }
        };
        let done = self
            .ctx
            .engine
            .kiwi()
            .delete_item(self.ctx.caller, &self.target, source);
        let done = with_details(self.ctx, done)?;
        let fields = json!({ "deleted_from": done.from, "deleted": done.paths });
        Ok(self.answer("deleted", "delete", fields))
    }

    fn link(self) -> Result<Answer> {
        let engine = self.ctx.engine;
        let done = engine
            .kiwi()
            .link_items(self.ctx.caller, &self.target, &self.parameters);
        let done = with_details(self.ctx, done)?;
        let fields = json!({
            "from": done.from, "to": done.to, "target_id": done.to,
            "relationship_type": done.relationship, "updated": done.is_update.then_some(true),
        });
        Ok(self.answer("linked", "link", fields))
    }
}

/// The result of an action, which every reply has as `result`. A text that is given beside it is not
/// repeated.
fn outcome(fields: &Map<String, Value>) -> Value {
    const TOLD: [&str; 18] = [
        "version",
        "location",
        "path",
        "signed",
        "integrity",
        "old_category",
        "new_category",
        "registry",
        "url",
        "deleted_from",
        "deleted",
        "from",
        "to",
        "relationship_type",
        "run_id",
        "capabilities",
        "title",
        "summary",
    ];
    let told = TOLD.iter().filter_map(|name| {
        let value = fields.get(*name).filter(|it| !it.is_null())?;
        if *name == "signed" && value.is_array() {
            return None;
        }
        Some(((*name).to_owned(), value.clone()))
    });
    Value::Object(told.collect())
}

/// The output of a program is its result. A long one is not repeated.
fn say_once(data: &mut Value, result: &Value) {
    if let Some(Value::String(stdout)) = data.get_mut("stdout")
        && !result.is_null()
        && let Some((end, _)) = stdout.char_indices().nth(REPEATED_CHARS_MAX)
    {
        stdout.truncate(end);
        stdout.push_str(" ... (`result` has all of it)");
    }
}

/// The first digits of a hash, for people.
fn short(hash: Option<&str>) -> Option<String> {
    hash.map(|it| it.chars().take(12).collect())
}

fn directive(run: DirectiveRun) -> Value {
    let steps: Vec<Value> = run
        .steps
        .iter()
        .map(|step| json!({ "name": step.name, "description": step.description, "action": step.action }))
        .collect();
    json!({
        "source": if run.location.is_some() { "local" } else { "builtin" },
        "content": run.content,
        "instructions": "Follow the directive steps above.",
        "version": run.version, "description": run.description, "category": run.category,
        "location": run.location.map(ItemScope::word), "path": run.path,
        "inputs": run.inputs, "process": steps, "provided_inputs": run.provided,
        "inputs_validated": true, "input_schema": run.input_schema,
        "integrity_short": short(run.integrity.as_deref()), "integrity": run.integrity,
        "run_id": run.run_id, "capabilities": run.capabilities,
    })
}

fn knowledge(run: KnowledgeRun) -> Value {
    json!({
        "source": "local",
        "zettel_id": run.zettel_id, "title": run.title, "version": run.version,
        "content": run.content, "entry_type": run.entry_type, "category": run.category,
        "tags": run.tags, "location": run.location.word(), "path": run.path,
        "integrity_short": short(run.integrity.as_deref()), "integrity": run.integrity,
        "instructions": "Use this knowledge to inform your decisions.",
    })
}
