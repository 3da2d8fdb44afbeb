//! The declaration of a tool.

use crate::envelope::{self, Reply};
use crate::koi_api::{Api, Route, conform, far};
use crate::metrics::Metrics;
use crate::pages::{self, Cursor, Window};
use crate::toolset::{Effect, Toolset};
use crate::{input, schema};
use kenning_core::Result;
use kenning_engine::kami::{FoundTool, ToolFunction};
use kenning_engine::workflow_steps::ToolRunner;
use kenning_engine::{Caller, Engine, Principal, Scope};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

/// A tool, declared in a file with its name.
pub trait Tool: Send + Sync + 'static {
    /// The name in every API.
    const NAME: &'static str;
    /// The name for people.
    const TITLE: &'static str;
    /// The contract it belongs to.
    const TOOLSET: Toolset;
    /// What it does.
    const EFFECT: Effect;
    /// Calls with their results: run as tests, shown in the manual.
    const EXAMPLES: &'static [Example];

    /// The doc comment of this type is the description that a model reads.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// What it answers. [`Text`] where the contract promises bare text.
    type Output: Serialize + JsonSchema;

    /// The tool's part of its contract's HTTP API, if it has one: then the operator may let another
    /// server answer it.
    const API: Option<Api<Self::Input>> = None;

    /// The permissions that calls need, each of some call; none where the effect decides alone.
    const SCOPES: &'static [Scope] = &[];

    /// The permission that a call with these arguments needs.
    fn scope(arguments: &Value) -> Scope {
        let _ = arguments;
        Self::EFFECT.scope()
    }

    /// Runs the tool.
    fn call(ctx: &Call<'_>, input: Self::Input) -> Result<Self::Output>;
}

/// A call and its expected result.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// What it shows.
    pub title: &'static str,
    /// The arguments, as JSON.
    pub input: &'static str,
    /// The text of the reply, or a part of it that must appear.
    pub output: &'static str,
}

/// Plain text, for replies that a contract gives as text and not as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// What a tool works with.
pub struct Call<'a> {
    /// The engine.
    pub engine: &'a Arc<Engine>,
    /// The caller, with its deadline.
    pub caller: &'a Caller,
    /// The other tools of the server.
    pub others: &'a dyn OtherTools,
    /// See [`Call::remark`].
    pub(crate) remarks: RefCell<Vec<String>>,
    /// See [`Call::detail`].
    pub(crate) details: RefCell<Map<String, Value>>,
    /// Where a reply that was cut is continued.
    pub(crate) cursor: Option<Cursor>,
    /// See [`Call::skip`].
    pub(crate) windows: RefCell<Vec<Window>>,
}

/// The other tools of a server, as far as a tool may use them.
pub trait OtherTools: ToolRunner {
    /// Every tool, listed or not.
    fn all(&self) -> &'static [&'static dyn AnyTool];

    /// Whether a tool can be called through another one, even if it is not listed.
    fn reaches(&self, tool: &dyn AnyTool) -> bool;

    /// A tool that can be called through another one.
    fn reachable(&self, name: &str) -> Option<&'static dyn AnyTool>;

    /// The names of all tools that can be called through another one, installed ones included.
    fn tool_names(&self, caller: &Caller) -> Vec<String>;

    /// Calls a tool under its own permissions.
    fn call_reachable(
        &self,
        tool: &'static dyn AnyTool,
        arguments: Value,
        caller: &Caller,
    ) -> Reply;

    /// The installed tools that are listed, with their names.
    fn installed(&self, caller: &Caller) -> Vec<ToolFunction>;

    /// The installed tool with a name.
    ///
    /// # Errors
    /// The installed tools cannot be read.
    fn find_installed(&self, name: &str, caller: &Caller) -> Result<Option<FoundTool>>;

    /// Whether an installed tool can be called through another one.
    fn reaches_installed(&self, tool: &ToolFunction) -> bool;

    /// Whether few tools are listed because the others are found and run through them.
    fn is_lean(&self) -> bool;

    /// Whether a tool is listed under a name.
    fn is_listed(&self, name: &str) -> bool;

    /// Counts of calls, errors and times.
    fn metrics(&self) -> &Metrics;
}

impl Call<'_> {
    /// Adds a remark beside the reply.
    pub fn remark(&self, text: impl Into<String>) {
        self.remarks.borrow_mut().push(text.into());
    }

    /// Adds fields to an error, where the contract's envelope allows them.
    pub fn detail(&self, fields: Value) {
        if let Value::Object(fields) = fields {
            self.details.borrow_mut().extend(fields);
        }
    }
}

impl Call<'_> {
    /// How many entries of this list the caller has seen. The name is the path of the list in the
    /// reply: `data.nodes`.
    pub(crate) fn skip(&self, field: &str) -> usize {
        let known = self.cursor.as_ref().filter(|it| it.field == field);
        let skipped = known.map_or(0, |it| it.offset);
        self.windows.borrow_mut().push(Window {
            field: field.to_owned(),
            skipped,
            total: None,
            has_more: false,
        });
        skipped
    }

    /// The same for lists that continue together: a cursor in one of them is a cursor in all.
    pub(crate) fn skip_together(&self, fields: &[&str]) -> usize {
        let cursor = self.cursor.as_ref();
        let known = cursor.filter(|it| fields.contains(&it.field.as_str()));
        let skipped = known.map_or(0, |it| it.offset);
        let windows = fields.iter().map(|field| Window {
            field: (*field).to_owned(),
            skipped,
            total: None,
            has_more: false,
        });
        self.windows.borrow_mut().extend(windows);
        skipped
    }

    /// A page of a complete list: at most `limit` entries, from the cursor on.
    pub(crate) fn part<T>(&self, field: &str, all: Vec<T>, limit: usize) -> Vec<T> {
        let skip = self.skip(field);
        self.of_all(field, all.len());
        all.into_iter().skip(skip).take(limit).collect()
    }

    /// Says whether a list of unknown length has more.
    pub(crate) fn more(&self, field: &str, has_more: bool) {
        let mut windows = self.windows.borrow_mut();
        if let Some(it) = windows.iter_mut().find(|it| it.field == field) {
            it.has_more = has_more;
        }
    }

    /// Says how many entries that list has in total.
    pub(crate) fn of_all(&self, field: &str, total: usize) {
        let mut windows = self.windows.borrow_mut();
        if let Some(it) = windows.iter_mut().find(|it| it.field == field) {
            it.total = Some(total);
        }
    }
}

/// A tool without its types, as transports see it.
pub trait AnyTool: Send + Sync {
    /// The name in every API.
    fn name(&self) -> &'static str;
    /// The name for people.
    fn title(&self) -> &'static str;
    /// The contract it belongs to.
    fn toolset(&self) -> Toolset;
    /// What it does.
    fn effect(&self) -> Effect;
    /// Calls with their results.
    fn examples(&self) -> &'static [Example];
    /// What a model reads about it.
    fn description(&self) -> String;
    /// The JSON Schema of its arguments.
    fn input_schema(&self) -> Value;
    /// The JSON Schema of its structured reply; `None` if it replies in plain text.
    fn output_schema(&self) -> Option<Value>;
    /// The permission that a call with these arguments needs.
    fn scope(&self, arguments: &Value) -> Scope;
    /// Whether a caller may make any call of it: to others it is not listed.
    fn is_for(&self, principal: &Principal) -> bool;
    /// Its routes in the HTTP API of its contract.
    fn routes(&self) -> &'static [Route];
    /// Checks the arguments and runs the tool.
    fn call(&self, ctx: &Call<'_>, arguments: Value) -> Reply;
}

/// The listing entry of a tool.
pub fn summary(tool: &dyn AnyTool) -> Value {
    json!({
        "name": tool.name(), "title": tool.title(), "toolset": tool.toolset().as_str(),
        "effect": tool.effect().as_str(), "description": tool.description(),
        "inputSchema": tool.input_schema(),
    })
}

/// Makes an [`AnyTool`] of a [`Tool`].
pub(crate) struct Erased<T>(pub(crate) PhantomData<T>);

impl<T: Tool> AnyTool for Erased<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn title(&self) -> &'static str {
        T::TITLE
    }

    fn toolset(&self) -> Toolset {
        T::TOOLSET
    }

    fn effect(&self) -> Effect {
        T::EFFECT
    }

    fn examples(&self) -> &'static [Example] {
        T::EXAMPLES
    }

    fn description(&self) -> String {
        schema::description::<T::Input>()
    }

    fn input_schema(&self) -> Value {
        let mut schema = schema::of_input::<T::Input>();
        pages::add_to_schema(T::EFFECT, &mut schema);
        schema
    }

    fn output_schema(&self) -> Option<Value> {
        schema::of_output::<T::Output>()
    }

    fn scope(&self, arguments: &Value) -> Scope {
        T::scope(arguments)
    }

    fn is_for(&self, principal: &Principal) -> bool {
        let may = |scope: &Scope| principal.scopes.contains(scope);
        match T::SCOPES {
            [] => may(&T::EFFECT.scope()),
            scopes => scopes.iter().any(may),
        }
    }

    fn routes(&self) -> &'static [Route] {
        T::API.map_or(&[], |api| api.routes)
    }

    fn call(&self, ctx: &Call<'_>, arguments: Value) -> Reply {
        let began = Instant::now();
        let asked = envelope::asked(T::TOOLSET, &arguments);
        let far = match T::API {
            None => Ok(None),
            Some(api) => {
                let server = ctx.engine.koi().far_server(&ctx.caller.principal.space);
                server.map(|server| server.map(|server| (api, server)))
            }
        };
        let answered = far.and_then(|far| match far {
            None => {
                let output = T::call(ctx, input::parse::<T::Input>(arguments)?)?;
                envelope::to_value(&output)
            }
            Some((api, server)) => {
                let request = (api.request)(input::parse::<T::Input>(arguments)?)?;
                let mut answer = far::ask(&server, T::NAME, api.routes, request)?;
                if let Some(fields) = answer.as_object_mut() {
                    (api.complete)(fields);
                }
                conform::conform(T::NAME, self.output_schema().as_ref(), answer)
            }
        });
        let answered = answered.and_then(|mut answer| {
            let is_pretty = !matches!(
                T::TOOLSET,
                Toolset::Kg | Toolset::KgExtra | Toolset::Omi | Toolset::OmiExtra
            );
            let chars_max = ctx.caller.answer_chars_max;
            let (cursor, windows) = (ctx.cursor.as_ref(), ctx.windows.take());
            let cuts = pages::fit(&mut answer, cursor, &windows, is_pretty, chars_max)?;
            let has_cursor = T::EFFECT == Effect::Read;
            if !cuts.is_empty()
                && let Some(metadata) = answer.get_mut("metadata").and_then(Value::as_object_mut)
                && matches!(T::TOOLSET, Toolset::Kg | Toolset::KgExtra)
            {
                metadata.extend(pages::metadata(&cuts, has_cursor));
            }
            let next = pages::next_cursor(&cuts, &windows);
            if let Some(next) = next
                && matches!(T::TOOLSET, Toolset::Core | Toolset::Koi | Toolset::Kiwi)
                && answer.is_object()
            {
                answer[pages::NEXT_CURSOR] = next.into();
            }
            // Metadata or a field says what a limit left out; a bare list has no place for it.
            let is_bare = answer.is_array();
            for cut in cuts.iter().filter(|it| it.is_by_length || is_bare) {
                ctx.remark(cut.to_text(has_cursor));
            }
            Ok(answer)
        });
        let reply = match (T::TOOLSET, answered) {
            (Toolset::Kiwi, Err(error)) => {
                let details = pages::fit_details(ctx.details.take(), ctx.caller.answer_chars_max);
                envelope::kiwi_error(error, asked, details)
            }
            (toolset, result) => envelope::wrap(toolset, result, began.elapsed()),
        };
        Reply {
            remarks: ctx.remarks.take(),
            ..reply
        }
    }
}
