//! Directives as an XML block in Markdown, checked as strictly as by the original.

use super::{Directive, Input, Model, Spelling, Step};
use crate::grants::Permission;
use crate::kind::{Place, shown};
use crate::{Faults, schema, version};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Map, Value};
use std::ops::Range;

/// Tiers of models.
pub const TIERS: [&str; 6] = [
    "fast",
    "balanced",
    "general",
    "reasoning",
    "expert",
    "orchestrator",
];
/// Relations between directives.
pub(super) const RELATIONS: [&str; 4] = ["requires", "suggests", "extends", "related"];
const NODES_MAX: u32 = 20_000;
/// How deep elements may nest: reading is recursive.
const DEPTH_MAX: usize = 64;
const OPEN: &str = "<directive";
const CLOSE: &str = "</directive>";

/// The range of the block, from the first `<directive …>` to the last `</directive>`.
pub(super) fn find(text: &str) -> Option<Range<usize>> {
    let is_tag = |at: &usize| {
        let after = text[at + OPEN.len()..].chars().next();
        after.is_some_and(|c| c == '>' || c.is_whitespace())
    };
    let start = text.match_indices(OPEN).map(|it| it.0).find(is_tag)?;
    let end = text.rfind(CLOSE).map(|it| it + CLOSE.len())?;
    (start < end).then_some(start..end)
}

/// Reads the block.
pub(super) fn read(
    content: &str,
    found: &Range<usize>,
    place: &Place,
) -> Result<Directive, Faults> {
    let source = &content[found.clone()];
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(source, options).map_err(|error| {
        Faults::one(
            "xml",
            format!("is not well formed ({error})"),
            "close every element; write `&lt;` and `&amp;`, or use CDATA",
        )
    })?;
    check_depth(&document)?;
    let root = document.root_element();
    let mut faults = Faults::default();
    check_surroundings(&mut faults, content, found);
    let name = name(&mut faults, root, place);
    let version = root.attribute("version").unwrap_or_default().to_owned();
    if version.is_empty() {
        faults.add(
            "version",
            "is missing",
            "add `version=\"1.0.0\"` to `<directive>`",
        );
    } else {
        version::check_plain(&mut faults, &version);
    }
    let Some(metadata) = child(root, "metadata") else {
        faults.add(
            "metadata",
            "is missing",
            "add `<metadata>` with `<permissions>` and `<model tier=\"…\"/>`",
        );
        return Err(faults);
    };
    let category = category(&mut faults, metadata, place);
    let permissions = permissions(&mut faults, metadata);
    let model = model(&mut faults, metadata);
    let relationships = relationships(&mut faults, metadata);
    let (inputs, input_schema) = inputs(&mut faults, root);
    let json = |name: &str| child(root, name).map_or(Value::Null, json_of);
    let mcps = child(metadata, "mcps").map_or_else(|| json("mcps"), json_of);
    faults.or(Directive {
        name,
        version,
        category,
        description: child_text(metadata, "description").unwrap_or_default(),
        author: child_text(metadata, "author"),
        inputs,
        input_schema,
        steps: steps(root),
        permissions,
        model,
        relationships,
        outputs: json("outputs"),
        context: child(metadata, "context").map_or_else(|| json("context"), json_of),
        mcps,
        content: content.to_owned(),
        spelling: Spelling::Xml,
        validated: None,
    })
}

/// Refuses elements that nest too deeply. Nodes come in document order, parents first.
fn check_depth(document: &Document<'_>) -> Result<(), Faults> {
    let mut depths: Vec<usize> = Vec::new();
    for node in document.descendants() {
        let above = node
            .parent()
            .and_then(|it| depths.get(it.id().get_usize()).copied());
        let depth = above.map_or(0, |it| it + 1);
        depths.push(depth);
        if depth > DEPTH_MAX && node.is_element() {
            return Err(Faults::one(
                "xml",
                format!(
                    "`<{}>` is nested too deep: the limit is {DEPTH_MAX} levels",
                    shown(node.tag_name().name())
                ),
                "make it flatter",
            ));
        }
    }
    Ok(())
}

/// The block must end with its fence, and no other XML may follow it.
fn check_surroundings(faults: &mut Faults, content: &str, found: &Range<usize>) {
    let before = &content[..found.start];
    let after = &content[found.end..];
    let is_fenced = before.matches("```").count() % 2 == 1;
    let (inside, outside) = match after.split_once("```") {
        Some(pieces) if is_fenced => pieces,
        _ if is_fenced => {
            faults.add(
                "xml",
                "its fence is not closed",
                "add a line of three backticks",
            );
            (after, "")
        }
        _ => ("", after),
    };
    if !inside.trim().is_empty() {
        let message = format!("`{}` follows `</directive>`", shown(inside.trim()));
        faults.add("xml", message, "close the fence right after `</directive>`");
    }
    if let Some(tag) = xml_like(outside) {
        let message = format!("`{}` after the block looks like XML", shown(tag));
        faults.add("xml", message, "put it inside `<directive>` or remove it");
    }
}

/// The first thing in a text that looks like a tag.
fn xml_like(text: &str) -> Option<&str> {
    text.match_indices('<').find_map(|(at, _)| {
        let rest = &text[at..];
        let name = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
        let end = rest.find('>')?;
        let is_tag = name.starts_with(|c: char| c.is_ascii_alphabetic());
        // `<https://…>` is a link of Markdown.
        (is_tag && !rest[..end].contains("://")).then(|| &rest[..=end])
    })
}

fn name(faults: &mut Faults, root: Node<'_, '_>, place: &Place) -> String {
    let name = root.attribute("name").unwrap_or_default().to_owned();
    let is_snake = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if name.is_empty() {
        let remedy = format!("add `name=\"{}\"` to `<directive>`", place.id);
        faults.add("name", "is missing", remedy);
    } else if !is_snake {
        let message = format!("`{}` is not snake case", shown(&name));
        faults.add(
            "name",
            message,
            "use lower-case letters, digits and `_`, beginning with a letter",
        );
    }
    if !name.is_empty() && name != place.id.as_str() {
        let message = format!(
            "`{}` differs from the name of the file, `{}`",
            shown(&name),
            place.id
        );
        faults.add("name", message, "give both the same name");
    }
    name
}

fn category(faults: &mut Faults, metadata: Node<'_, '_>, place: &Place) -> String {
    let declared = child_text(metadata, "category").filter(|it| !it.is_empty());
    crate::agreed_category(faults, declared, place)
}

fn permissions(faults: &mut Faults, metadata: Node<'_, '_>) -> Vec<Permission> {
    let remedy = "add for example `<read resource=\"filesystem\" path=\"src/**\"/>`";
    let Some(found) = child(metadata, "permissions") else {
        faults.add(
            "permissions",
            "is missing",
            "add `<permissions>` to `<metadata>`",
        );
        return Vec::new();
    };
    let children: Vec<_> = found.children().filter(Node::is_element).collect();
    if children.is_empty() {
        faults.add("permissions", "is empty", remedy);
    }
    let mut out = Vec::new();
    for child in children {
        let tag = child.tag_name().name();
        if child.attributes().len() == 0 {
            let message = format!("`<{tag}>` has no attributes");
            faults.add(format!("permissions.{tag}"), message, remedy);
            continue;
        }
        let attributes = child
            .attributes()
            .map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned()));
        match Permission::new(tag, attributes) {
            Ok(permission) => out.push(permission),
            Err(wrong) => faults.0.extend(wrong.0),
        }
    }
    out
}

fn model(faults: &mut Faults, metadata: Node<'_, '_>) -> Option<Model> {
    let tiers = format!("use one of {}", TIERS.join(", "));
    let found = child(metadata, "model").or_else(|| child(metadata, "model_class"));
    let Some(found) = found else {
        faults.add(
            "model",
            "is missing",
            "add `<model tier=\"balanced\"/>` to `<metadata>`",
        );
        return None;
    };
    let text = |name: &str| found.attribute(name).map(str::to_owned);
    let tier = text("tier").unwrap_or_default();
    if tier.is_empty() {
        faults.add("model.tier", "is missing", tiers);
    } else if !TIERS.contains(&tier.as_str()) {
        faults.add(
            "model.tier",
            format!("`{}` is not a tier", shown(&tier)),
            tiers,
        );
    }
    let parallel = text("parallel");
    let parallel = match parallel.as_deref() {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(other) => {
            let message = format!("`{}` is not true or false", shown(other));
            faults.add("model.parallel", message, "use `true` or `false`");
            None
        }
    };
    for name in ["fallback", "id"] {
        if text(name).is_some_and(|it| it.trim().is_empty()) {
            faults.add(
                format!("model.{name}"),
                "is empty",
                "name a model or leave it out",
            );
        }
    }
    Some(Model {
        tier,
        id: text("id"),
        fallback: text("fallback"),
        parallel,
    })
}

fn relationships(faults: &mut Faults, metadata: Node<'_, '_>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let children = child(metadata, "relationships")
        .into_iter()
        .flat_map(|it| it.children().filter(Node::is_element));
    for it in children {
        let word = it.tag_name().name();
        // `<relationship type="requires">` is accepted too.
        let word = if word == "relationship" {
            it.attribute("type").unwrap_or(word)
        } else {
            word
        };
        if RELATIONS.contains(&word) {
            out.push((word.to_owned(), text_of(it)));
        } else {
            let message = format!("`{}` is not a relation of directives", shown(word));
            let remedy = format!("use one of {}", RELATIONS.join(", "));
            faults.add("relationships", message, remedy);
        }
    }
    out
}

fn inputs(faults: &mut Faults, root: Node<'_, '_>) -> (Vec<Input>, Option<Value>) {
    let Some(found) = child(root, "inputs") else {
        return (Vec::new(), None);
    };
    let mut out: Vec<Input> = Vec::new();
    for it in found.children().filter(|it| it.has_tag_name("input")) {
        let name = it.attribute("name").unwrap_or_default().to_owned();
        if name.is_empty() {
            faults.add("inputs", "an `<input>` has no name", "add `name=\"…\"`");
            continue;
        }
        if out.iter().any(|other| other.name == name) {
            let message = format!("`{}` is declared twice", shown(&name));
            faults.add("inputs", message, "give each input its own name");
        }
        let required = match it.attribute("required").unwrap_or("false") {
            "true" => true,
            "false" => false,
            other => {
                let message = format!("`{}` is not true or false", shown(other));
                faults.add(
                    format!("inputs.{name}.required"),
                    message,
                    "use `true` or `false`",
                );
                false
            }
        };
        let type_name = it.attribute("type").unwrap_or("string").to_owned();
        let default = it.attribute("default").map(|it| default_of(&type_name, it));
        out.push(Input {
            name,
            type_name,
            required,
            default,
            description: text_of(it),
            schema: None,
        });
    }
    (
        out,
        child(found, "schema").and_then(|it| input_schema(faults, it)),
    )
}

/// An attribute is text; a default of another type is written as JSON.
fn default_of(type_name: &str, text: &str) -> Value {
    let plain = || Value::String(text.to_owned());
    if type_name == "string" {
        plain()
    } else {
        serde_json::from_str(text).unwrap_or_else(|_| plain())
    }
}

fn input_schema(faults: &mut Faults, found: Node<'_, '_>) -> Option<Value> {
    let text = text_of(found);
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        let message = format!("`{}` is not JSON", shown(&text));
        faults.add("inputs.schema", message, "write a JSON Schema");
        return None;
    };
    if let Err(wrong) = schema::check(&value) {
        faults.0.extend(wrong.0);
    }
    Some(value)
}

fn steps(root: Node<'_, '_>) -> Vec<Step> {
    let Some(process) = child(root, "process") else {
        return Vec::new();
    };
    let steps = process.children().filter(|it| it.has_tag_name("step"));
    let read = |(i, it): (usize, Node<'_, '_>)| {
        let name = it.attribute("name").map(str::to_owned);
        Step {
            name: name.unwrap_or_else(|| format!("step_{}", i + 1)),
            description: child_text(it, "description").unwrap_or_default(),
            action: child_text(it, "action").unwrap_or_default(),
        }
    };
    steps.enumerate().map(read).collect()
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|it| it.has_tag_name(name))
}

fn child_text(node: Node<'_, '_>, name: &str) -> Option<String> {
    child(node, name).map(text_of)
}

/// The text of an element; child elements are included as they are written.
fn text_of(node: Node<'_, '_>) -> String {
    let mut out = String::new();
    for it in node.children() {
        if it.is_element() {
            out.push_str(&it.document().input_text()[it.range()]);
        } else if it.is_text() {
            out.push_str(it.text().unwrap_or_default());
        }
    }
    expanded(out.trim())
}

/// CDATA cannot contain the end of CDATA, so authors write these words for it.
fn expanded(text: &str) -> String {
    text.replace("{CDATA_OPEN}", "<![CDATA[")
        .replace("{CDATA_CLOSE}", "]]>")
}

/// An element as JSON: text alone is a string; otherwise attributes, text and children by name.
fn json_of(node: Node<'_, '_>) -> Value {
    let children: Vec<_> = node.children().filter(Node::is_element).collect();
    let own: String = node
        .children()
        .filter(Node::is_text)
        .filter_map(|it| it.text())
        .collect();
    let own = expanded(own.trim());
    if children.is_empty() && node.attributes().len() == 0 {
        return Value::String(own);
    }
    let mut out = Map::new();
    if node.attributes().len() > 0 {
        let attributes = node.attributes();
        let attributes =
            attributes.map(|attribute| (attribute.name().to_owned(), attribute.value().into()));
        out.insert("_attrs".to_owned(), Value::Object(attributes.collect()));
    }
    if !own.is_empty() {
        out.insert("_text".to_owned(), Value::String(own));
    }
    for child in children {
        let value = json_of(child);
        match out.get_mut(child.tag_name().name()) {
            None => {
                out.insert(child.tag_name().name().to_owned(), value);
            }
            Some(Value::Array(list)) => list.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Value::Object(out)
}
