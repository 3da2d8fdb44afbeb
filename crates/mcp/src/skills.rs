//! Directives as resources and prompts: `skill://NAME/SKILL.md`, the other files of a skill's folder
//! (`skill://NAME/scripts/x.py`), and a prompt of the same name.
//!
//! Only trusted directives are shown. The text is data for the model; nothing in it is acted on
//! here.

use crate::call;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kenning_core::Code;
use kenning_engine::{Caller, Principal};
use kenning_text::percent::{self, Stray};
use kenning_tools::Board;
use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, Prompt,
    PromptArgument, PromptMessage, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, Role,
};
use serde_json::{Map, Value, json};

/// The methods that exist if items are shown.
pub(crate) const METHODS: &[&str] = &[
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
];

const SCHEME: &str = "skill://";
const FILE: &str = "SKILL.md";
const MARKDOWN: &str = "text/markdown";
/// Resources of one page: a repository of skills has hundreds of files.
const PAGE_SIZE: usize = 200;

/// MIME types by file extension. Everything else is text or bytes.
const MIME_TYPES: &[(&str, &str)] = &[
    ("md", MARKDOWN),
    ("py", "text/x-python"),
    ("sh", "text/x-shellscript"),
    ("js", "text/javascript"),
    ("ts", "text/typescript"),
    ("html", "text/html"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("json", "application/json"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
    ("xml", "application/xml"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("svg", "image/svg+xml"),
    ("ttf", "font/ttf"),
    ("zip", "application/zip"),
    ("txt", "text/plain"),
];

fn mime_type(path: &str) -> Option<&'static str> {
    let extension = path.rsplit_once('.')?.1.to_ascii_lowercase();
    let known = MIME_TYPES.iter().find(|it| it.0 == extension);
    known.map(|it| it.1)
}

fn uri(name: &str, path: &str) -> String {
    format!(
        "{SCHEME}{}/{}",
        percent::encoded(name, "/"),
        percent::encoded(path, "/")
    )
}

/// The name of the skill and the path in its folder that an address means.
fn parse_uri(asked: &str) -> Option<(String, String)> {
    let (name, path) = asked.strip_prefix(SCHEME)?.split_once('/')?;
    Some((decode_percent(name)?, decode_percent(path)?))
}

fn decode_percent(text: &str) -> Option<String> {
    percent::decoded(text, Stray::Refuse)
}

/// Runs a query on a blocking thread.
async fn query<T: Send + 'static>(
    board: &Board,
    principal: Principal,
    look: impl FnOnce(&kenning_engine::Engine, &Caller) -> Result<T, kenning_core::Error>
    + Send
    + 'static,
) -> Result<T, ErrorData> {
    let engine = board.engine().clone();
    let (slots, caller) = (board.slots(), Caller::new(principal));
    let looked = call::run_blocking(slots, caller, move |caller| look(&engine, caller)).await;
    looked.flatten().map_err(|error| match error.code {
        Code::Internal => ErrorData::internal_error("Internal error", None),
        _ => ErrorData::invalid_params(error.to_string(), None),
    })
}

/// Every skill, then the other files of their folders, a page at a time.
pub(crate) async fn list_resources(
    board: &Board,
    principal: Principal,
    request: Option<PaginatedRequestParams>,
) -> Result<ListResourcesResult, ErrorData> {
    let skills = query(board, principal, |engine, caller| {
        engine.kiwi().skills(caller)
    })
    .await?;
    let mut all = Vec::new();
    for skill in &skills {
        all.push(
            Resource::new(uri(&skill.name, FILE), skill.name.clone())
                .with_description(skill.description.clone())
                .with_mime_type(MARKDOWN),
        );
    }
    for skill in &skills {
        for (path, size_bytes) in &skill.files {
            let name = format!("{}/{path}", skill.name);
            let mut resource = Resource::new(uri(&skill.name, path), name);
            resource.mime_type = mime_type(path).map(ToOwned::to_owned);
            resource.size = Some(*size_bytes);
            all.push(resource);
        }
    }
    let cursor = request.and_then(|it| it.cursor);
    let start = match &cursor {
        None => 0,
        Some(cursor) => {
            let place = all.iter().position(|it| it.uri == *cursor);
            let unknown = || ErrorData::invalid_params(format!("Invalid cursor: {cursor}"), None);
            place.ok_or_else(unknown)? + 1
        }
    };
    let rest = all.split_off(start.min(all.len()));
    let is_cut = rest.len() > PAGE_SIZE;
    let page: Vec<Resource> = rest.into_iter().take(PAGE_SIZE).collect();
    let last = page.last().map(|it| it.uri.clone());
    let mut result = ListResourcesResult::with_all_items(page);
    result.next_cursor = last.filter(|_| is_cut);
    Ok(result)
}

pub(crate) fn list_resource_templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(vec![
        ResourceTemplate::new(format!("{SCHEME}{{name}}/{FILE}"), "skill")
            .with_description("A directive as a skill")
            .with_mime_type(MARKDOWN),
        ResourceTemplate::new(format!("{SCHEME}{{name}}/{{+path}}"), "skill file")
            .with_description("A file in the folder of a skill"),
    ])
}

pub(crate) async fn read_resource(
    board: &Board,
    principal: Principal,
    asked: &str,
) -> Result<ReadResourceResponse, ErrorData> {
    let missing = || {
        let data = json!({ "uri": asked });
        ErrorData::resource_not_found("Resource not found", Some(data))
    };
    let (name, path) = parse_uri(asked).ok_or_else(missing)?;
    let mime_type = mime_type(&path);
    let bytes = query(board, principal, move |engine, caller| {
        match engine.kiwi().skill_file(caller, &name, &path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(fault) if fault.error.code == Code::NotFound => Ok(None),
            Err(fault) => Err(fault.error),
        }
    });
    let bytes = bytes.await?.ok_or_else(missing)?;
    let mut contents = match String::from_utf8(bytes) {
        Ok(text) => {
            ResourceContents::text(text, asked).with_mime_type(mime_type.unwrap_or("text/plain"))
        }
        Err(error) => ResourceContents::blob(STANDARD.encode(error.as_bytes()), asked)
            .with_mime_type("application/octet-stream"),
    };
    if let Some(mime_type) = mime_type {
        contents = contents.with_mime_type(mime_type);
    }
    Ok(ReadResourceResult::new(vec![contents]).into())
}

pub(crate) async fn list_prompts(
    board: &Board,
    principal: Principal,
) -> Result<ListPromptsResult, ErrorData> {
    let skills = query(board, principal, |engine, caller| {
        engine.kiwi().skills(caller)
    })
    .await?;
    let prompts = skills.into_iter().map(|skill| {
        let arguments = skill.inputs.iter().map(|input| {
            PromptArgument::new(&input.name)
                .with_description(&input.description)
                .with_required(input.required && input.default.is_none())
        });
        let arguments: Vec<PromptArgument> = arguments.collect();
        let arguments = Some(arguments).filter(|it| !it.is_empty());
        Prompt::new(skill.name, Some(skill.description), arguments)
    });
    Ok(ListPromptsResult::with_all_items(prompts.collect()))
}

pub(crate) async fn get_prompt(
    board: &Board,
    principal: Principal,
    request: GetPromptRequestParams,
) -> Result<GetPromptResponse, ErrorData> {
    let name = request.name.clone();
    let given: Map<String, Value> = request.arguments.unwrap_or_default().into_iter().collect();
    let found = query(board, principal, move |engine, caller| {
        match engine.kiwi().skill_prompt(caller, &name, &given) {
            Ok(found) => Ok(Some(found)),
            Err(fault) if fault.error.code == Code::NotFound => Ok(None),
            Err(fault) => Err(fault.error),
        }
    });
    let (skill, told) = found.await?.ok_or_else(|| {
        ErrorData::invalid_params(format!("Unknown prompt: {}", request.name), None)
    })?;
    let mut text = skill.text;
    if !told.is_empty() {
        text += &format!("\nInputs: {}\n", Value::Object(told));
    }
    let message = PromptMessage::new(Role::User, ContentBlock::text(text));
    Ok(GetPromptResult::new(vec![message]).into())
}
