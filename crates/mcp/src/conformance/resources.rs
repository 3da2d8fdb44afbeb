//! The resources that the suite reads.

use super::{Fixtures, PNG};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResponse, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;

impl Fixtures {
    pub(crate) fn list_resources(&self) -> ListResourcesResult {
        let resource = |uri: &str, description: &str, mime_type: &str| {
            Resource::new(uri, uri)
                .with_description(description)
                .with_mime_type(mime_type)
        };
        ListResourcesResult::with_all_items(vec![
            resource("test://static-text", "A text.", "text/plain"),
            resource("test://static-binary", "An image.", "image/png"),
            resource("test://watched-resource", "A watched text.", "text/plain"),
        ])
    }

    pub(crate) fn list_resource_templates(&self) -> ListResourceTemplatesResult {
        ListResourceTemplatesResult::with_all_items(vec![
            ResourceTemplate::new("test://template/{id}/data", "template")
                .with_description("Data with an id.")
                .with_mime_type("application/json"),
        ])
    }

    pub(crate) fn read_resource(&self, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
        let contents = match uri {
            "test://static-text" => {
                ResourceContents::text("This is the content of the static text resource.", uri)
                    .with_mime_type("text/plain")
            }
            "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
            "test://watched-resource" => ResourceContents::text("Watched resource content.", uri)
                .with_mime_type("text/plain"),
            _ => {
                let id = uri
                    .strip_prefix("test://template/")
                    .and_then(|rest| rest.strip_suffix("/data"))
                    .ok_or_else(|| {
                        let data = json!({ "uri": uri });
                        ErrorData::resource_not_found("Resource not found", Some(data))
                    })?;
                let data = format!("Data for ID: {id}");
                let text = json!({ "id": id, "templateTest": true, "data": data }).to_string();
                ResourceContents::text(text, uri).with_mime_type("application/json")
            }
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
