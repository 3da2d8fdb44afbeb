//! `kg_export`

use crate::kg::words::{CONTENT_BYTES_MAX, KgReply};
use crate::{Call, Effect, Example, Tool, Toolset};
use kenning_core::{Error, Result};
use kenning_engine::kg::ExportFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
pub struct KgExport;

/// The whole graph in the form of another program: GraphML, DOT, JSON or JSON Canvas. `kenning kg export` writes files of any size, and a picture.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The form
    pub format: FormatWord,
}

/// The answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    format: String,
    text: String,
}

/// A form of text.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FormatWord {
    /// For Gephi, yEd and others.
    Graphml,
    /// For Graphviz.
    Dot,
    /// Nodes and edges.
    Json,
    /// For Obsidian.
    Canvas,
}

impl Tool for KgExport {
    const NAME: &'static str = "kg_export";
    const TITLE: &'static str = "Export the graph";
    const TOOLSET: Toolset = Toolset::KgExtra;
    const EFFECT: Effect = Effect::Read;
    const EXAMPLES: &'static [Example] = &[Example {
        title: "For Graphviz",
        input: r#"{"format": "dot"}"#,
        output: r#"digraph"#,
    }];
    type Input = Input;
    type Output = KgReply<Output>;

    fn call(ctx: &Call<'_>, input: Input) -> Result<KgReply<Output>> {
        let format = match input.format {
            FormatWord::Graphml => ExportFormat::GraphMl,
            FormatWord::Dot => ExportFormat::Dot,
            FormatWord::Json => ExportFormat::Json,
            FormatWord::Canvas => ExportFormat::Canvas,
        };
        let text = ctx.engine.kg().export_graph(ctx.caller, format)?;
        if text.len() > CONTENT_BYTES_MAX {
            return Err(Error::too_large(format!(
                "the graph is {} bytes as {}",
                text.len(),
                format.as_str()
            ))
            .hint(
                "write it to a file: `kenning kg export --format graphml --output graph.graphml`",
            ));
        }
        Ok(KgReply::new(Output {
            format: format.as_str().to_owned(),
            text,
        }))
    }
}
