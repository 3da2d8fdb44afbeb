//! Relations between items, and the parameters that name them.

use crate::kind::{ItemId, ItemType, shown};
use kenning_core::{Error, Result};
use serde_json::Value;

/// The relations of one type of item.
pub const fn relations(item_type: ItemType) -> &'static [&'static str] {
    match item_type {
        ItemType::Knowledge => &[
            "references",
            "contradicts",
            "extends",
            "implements",
            "supersedes",
            "depends_on",
            "related",
            "example_of",
        ],
        ItemType::Directive => &["requires", "suggests", "extends", "related"],
        ItemType::Tool => &["depends_on", "imports", "related"],
    }
}

/// A link that a caller asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTo {
    /// The other item.
    pub target_id: ItemId,
    /// One of [`relations`].
    pub relationship_type: String,
}

/// From parameters in either spelling: `target_id` and `relationship_type`, or `to` and
/// `relationship`.
pub fn read(item_type: ItemType, parameters: &Value) -> Result<LinkTo> {
    let target = either(parameters, "target_id", "to")?;
    let relation = either(parameters, "relationship_type", "relationship")?;
    let known = relations(item_type);
    if !known.contains(&relation) {
        return Err(Error::invalid(format!(
            "relationship_type: `{}` is not a relation of {item_type} items",
            shown(relation)
        ))
        .hint(format!("use one of {}", known.join(", "))));
    }
    let target_id = target.parse().map_err(|mut error: Error| {
        error.message = error.message.replacen("item_id", "target_id", 1);
        error
    })?;
    Ok(LinkTo {
        target_id,
        relationship_type: relation.to_owned(),
    })
}

fn either<'a>(parameters: &'a Value, name: &str, other: &str) -> Result<&'a str> {
    let text = |name: &str| parameters.get(name).filter(|it| !it.is_null());
    match (text(name), text(other)) {
        (Some(a), Some(b)) if a != b => Err(Error::invalid(format!(
            "{name}: `{}` and {other}: `{}` say different things",
            shown(&a.to_string()),
            shown(&b.to_string())
        ))
        .hint(format!("give only `{name}`"))),
        (Some(value), _) | (None, Some(value)) => value.as_str().ok_or_else(|| {
            Error::invalid(format!(
                "{name}: `{}` is not text",
                shown(&value.to_string())
            ))
            .hint(format!("give `{name}` as a string"))
        }),
        (None, None) => Err(Error::invalid(format!("{name}: is missing"))
            .hint(format!("add `{name}` to `parameters`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_are_the_same_link() {
        let link = LinkTo {
            target_id: "002-smtp".parse().unwrap(),
            relationship_type: "references".to_owned(),
        };
        for parameters in [
            json!({"target_id": "002-smtp", "relationship_type": "references"}),
            json!({"to": "002-smtp", "relationship": "references"}),
            json!({"to": "002-smtp", "target_id": "002-smtp", "relationship_type": "references"}),
        ] {
            assert_eq!(read(ItemType::Knowledge, &parameters).unwrap(), link);
        }
    }

    #[test]
    fn what_is_missing_or_of_another_type_is_named() {
        for (item_type, parameters, part) in [
            (ItemType::Knowledge, json!({"to": "a"}), "relationship_type"),
            (
                ItemType::Knowledge,
                json!({"relationship": "related"}),
                "target_id",
            ),
            (
                ItemType::Knowledge,
                json!({"to": "a", "relationship": "imports"}),
                "`imports`",
            ),
            (
                ItemType::Directive,
                json!({"to": "a", "relationship": "references"}),
                "`references`",
            ),
            (
                ItemType::Tool,
                json!({"to": "a", "relationship": "extends"}),
                "`extends`",
            ),
            (
                ItemType::Tool,
                json!({"to": "../a", "relationship": "related"}),
                "target_id: `../a`",
            ),
            (
                ItemType::Tool,
                json!({"to": 7, "relationship": "related"}),
                "`7`",
            ),
            (
                ItemType::Tool,
                json!({"to": "a", "target_id": "b", "relationship": "related"}),
                "different",
            ),
        ] {
            let error = read(item_type, &parameters).unwrap_err();
            assert!(error.message.contains(part), "{}", error.message);
            assert!(error.hint.is_some());
        }
    }
}
