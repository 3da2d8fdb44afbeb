//! The prompts that the suite gets.

use super::ask::{accepted, form, required};
use super::{Fixtures, PNG};
use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    Prompt, PromptArgument, PromptMessage, ResourceContents, Role,
};
use serde_json::{Value, json};

impl Fixtures {
    pub(crate) fn list_prompts(&self) -> ListPromptsResult {
        let argument = |name: &str, description: &str| {
            PromptArgument::new(name)
                .with_description(description)
                .with_required(true)
        };
        ListPromptsResult::with_all_items(vec![
            Prompt::new("test_simple_prompt", Some("A prompt."), None),
            Prompt::new(
                "test_prompt_with_arguments",
                Some("A prompt with arguments."),
                Some(vec![
                    argument("arg1", "First test argument"),
                    argument("arg2", "Second test argument"),
                ]),
            ),
            Prompt::new(
                "test_prompt_with_embedded_resource",
                Some("A prompt with a resource."),
                Some(vec![argument("resourceUri", "The resource to embed")]),
            ),
            Prompt::new(
                "test_prompt_with_image",
                Some("A prompt with an image."),
                None,
            ),
            Prompt::new(
                "test_input_required_result_prompt",
                Some("A prompt that asks first."),
                None,
            ),
        ])
    }

    pub(crate) fn get_prompt(
        &self,
        request: &GetPromptRequestParams,
    ) -> Result<GetPromptResponse, ErrorData> {
        let argument = |name: &str| {
            let arguments = request.arguments.as_ref();
            let value = arguments
                .and_then(|it| it.get(name))
                .and_then(Value::as_str);
            value.ok_or_else(|| {
                ErrorData::invalid_params(format!("Invalid params: no argument `{name}`"), None)
            })
        };
        let user = |content| PromptMessage::new(Role::User, content);
        let messages = match request.name.as_str() {
            "test_simple_prompt" => vec![user(ContentBlock::text(
                "This is a simple prompt for testing.",
            ))],
            "test_prompt_with_arguments" => vec![user(ContentBlock::text(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1")?,
                argument("arg2")?
            )))],
            "test_prompt_with_embedded_resource" => {
                let text = "Embedded resource content for testing.";
                let resource = ResourceContents::text(text, argument("resourceUri")?)
                    .with_mime_type("text/plain");
                vec![
                    user(ContentBlock::resource(resource)),
                    user(ContentBlock::text(
                        "Please process the embedded resource above.",
                    )),
                ]
            }
            "test_prompt_with_image" => vec![
                user(ContentBlock::image(PNG, "image/png")),
                user(ContentBlock::text("Please analyze the image above.")),
            ],
            "test_input_required_result_prompt" => {
                let given = request.input_responses.as_ref();
                let Some(context) = accepted(given, "user_context", "context") else {
                    let message = "What context should the prompt use?";
                    let asked = json!({ "user_context": form(message, "context", "string") });
                    return Ok(required(asked, None)?.into());
                };
                vec![user(ContentBlock::text(format!("Context: {context}")))]
            }
            name => {
                let message = format!("Unknown prompt: {name}");
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(GetPromptResult::new(messages).into())
    }
}
