//! `kg_path`

use crate::kg::words::{KgReply, NodeName};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgPath;

/// The shortest way from one document to another along links.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Id, path or title of the first document
    pub from: String,
    /// Id, path or title of the last document
    pub to: String,
    /// Follow links only from a document to what it links to
    #[serde(default)]
    pub directed: bool,
}

/// The answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    found: bool,
    length: usize,
    path: Vec<Step>,
}

/// A document on the way.
#[derive(Serialize, JsonSchema)]
pub(super) struct Step {
    #[serde(flatten)]
    node: NodeName,
    /// How the document before relates to this one; a way back is marked by `<-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<String>,
}

impl Tool for KgPath {
    const NAME: &'static str = "kg_path";
    const TITLE: &'static str = "Shortest path";
    const TOOLSET: Toolset = Toolset::KgExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "A document and itself",
        input: r#"{"from": "concepts/auth", "to": "concepts/auth"}"#,
        output: r#""length":0"#,
    }];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let path =
            ctx.engine
                .kg()
                .graph_path(ctx.caller, &input.from, &input.to, input.directed)?;
        let found = path.is_some();
        let path: Vec<Step> = path
            .unwrap_or_default()
            .into_iter()
            .map(|it| Step {
                via: it.relation.map(|word| {
                    if it.is_forward {
                        word
                    } else {
                        format!("<-{word}")
                    }
                }),
                node: it.document.into(),
            })
            .collect();
        Ok(KgReply::new(Output {
            found,
            length: path.len().saturating_sub(1),
            path,
        }))
    }
}
