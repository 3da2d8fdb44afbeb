//! Directives as resources and prompts: `skill://NAME/SKILL.md`, and a prompt of the same name.
//!
//! Only what somebody vouches for is shown. The text is data for the model; nothing in it is acted on
//! here.

use crate::server::Server;
use kenning_core::Code;
use kenning_engine::{Caller, Principal, Skill};
use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, Prompt, PromptArgument, PromptMessage,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::{Value, json};

/// The methods that there are where items are shown.
pub(crate) const METHODS: &[&str] = &[
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
];

const SCHEME: &str = "skill://";
const FILE: &str = "/SKILL.md";
const MARKDOWN: &str = "text/markdown";

fn uri(name: &str) -> String {
    format!("{SCHEME}{name}{FILE}")
}

/// Looks on a thread that may wait.
async fn looked<T: Send + 'static>(
    server: &Server,
    principal: Principal,
    look: impl FnOnce(&kenning_engine::Engine, &Caller) -> Result<T, kenning_core::Error>
    + Send
    + 'static,
) -> Result<T, ErrorData> {
    let engine = server.board().engine().clone();
    let looked = tokio::task::spawn_blocking(move || look(&engine, &Caller::new(principal))).await;
    let looked = looked.map_err(|_| ErrorData::internal_error("Internal error", None))?;
    looked.map_err(|error| match error.code {
        Code::Internal => ErrorData::internal_error("Internal error", None),
        _ => ErrorData::invalid_params(error.to_string(), None),
    })
}

pub(crate) async fn list_resources(
    server: &Server,
    principal: Principal,
) -> Result<ListResourcesResult, ErrorData> {
    let skills = looked(server, principal, |engine, caller| engine.skills(caller)).await?;
    let resources = skills.into_iter().map(|it| {
        Resource::new(uri(&it.name), it.name.clone())
            .with_description(it.description)
            .with_mime_type(MARKDOWN)
    });
    Ok(ListResourcesResult::with_all_items(resources.collect()))
}

pub(crate) fn list_resource_templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(vec![
        ResourceTemplate::new(uri("{name}"), "skill")
            .with_description("A directive as a skill")
            .with_mime_type(MARKDOWN),
    ])
}

pub(crate) async fn read_resource(
    server: &Server,
    principal: Principal,
    asked: &str,
) -> Result<ReadResourceResponse, ErrorData> {
    let name = asked
        .strip_prefix(SCHEME)
        .and_then(|it| it.strip_suffix(FILE));
    let missing = || {
        let data = json!({ "uri": asked });
        ErrorData::resource_not_found("Resource not found", Some(data))
    };
    let name = name.ok_or_else(missing)?.to_owned();
    let skill = one(server, principal, name).await?.ok_or_else(missing)?;
    let contents = ResourceContents::text(skill.text, asked).with_mime_type(MARKDOWN);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

/// A skill; `None` where there is none of that name.
async fn one(
    server: &Server,
    principal: Principal,
    name: String,
) -> Result<Option<Skill>, ErrorData> {
    looked(server, principal, move |engine, caller| {
        match engine.skill(caller, &name) {
            Ok(skill) => Ok(Some(skill)),
            Err(fault) if fault.error.code == Code::NotFound => Ok(None),
            Err(fault) => Err(fault.error),
        }
    })
    .await
}

pub(crate) async fn list_prompts(
    server: &Server,
    principal: Principal,
) -> Result<ListPromptsResult, ErrorData> {
    let skills = looked(server, principal, |engine, caller| engine.skills(caller)).await?;
    let prompts = skills.into_iter().map(|it| {
        let arguments = it.inputs.iter().map(|(name, description, required)| {
            PromptArgument::new(name)
                .with_description(description)
                .with_required(*required)
        });
        let arguments: Vec<PromptArgument> = arguments.collect();
        let arguments = Some(arguments).filter(|it| !it.is_empty());
        Prompt::new(it.name, Some(it.description), arguments)
    });
    Ok(ListPromptsResult::with_all_items(prompts.collect()))
}

pub(crate) async fn get_prompt(
    server: &Server,
    principal: Principal,
    request: GetPromptRequestParams,
) -> Result<GetPromptResponse, ErrorData> {
    let skill = one(server, principal, request.name.clone()).await?;
    let skill = skill.ok_or_else(|| {
        ErrorData::invalid_params(format!("Unknown prompt: {}", request.name), None)
    })?;
    let given = request.arguments.unwrap_or_default();
    let missing = skill
        .inputs
        .iter()
        .find(|it| it.2 && !given.contains_key(&it.0));
    if let Some((name, ..)) = missing {
        let message = format!("Invalid params: no argument `{name}`");
        return Err(ErrorData::invalid_params(message, None));
    }
    let mut text = skill.text;
    if !given.is_empty() {
        let given = Value::Object(given.into_iter().collect());
        text += &format!("\nInputs: {given}\n");
    }
    let message = PromptMessage::new(Role::User, ContentBlock::text(text));
    Ok(GetPromptResult::new(vec![message]).into())
}
