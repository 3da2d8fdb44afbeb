//! Memories that other programs wrote, in the forms in which they write them.
//!
//! Nothing is opened here: a form gets the names and texts of files, and gives memories. What a form does not know is
//! left out and not guessed.

use crate::session::short;
use kenning_text::frontmatter::{self, Head};
use serde_json::Value;

/// The largest file that is read.
pub const IMPORT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The most characters of an imported memory.
const CONTENT_CHARS_MAX: usize = 8_000;

/// The most memories of one import.
const MEMORIES_MAX: usize = 100_000;

/// Whose form it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The JSON that claude-mem's export script writes.
    ClaudeMem,
    /// What mem0's `get_all` answers.
    Mem0,
    /// Markdown notes of Basic Memory.
    BasicMemory,
    /// The files of Claude Code's own memory.
    ClaudeAutoMemory,
    /// Objects with a text each, as a list or a line each.
    Json,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 5] = [
        Self::ClaudeMem,
        Self::Mem0,
        Self::BasicMemory,
        Self::ClaudeAutoMemory,
        Self::Json,
    ];

    /// Its word on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeMem => "claude-mem",
            Self::Mem0 => "mem0",
            Self::BasicMemory => "basic-memory",
            Self::ClaudeAutoMemory => "claude-auto-memory",
            Self::Json => "json",
        }
    }

    /// Whether it is a folder of Markdown files.
    pub const fn is_folder(self) -> bool {
        matches!(self, Self::BasicMemory | Self::ClaudeAutoMemory)
    }
}

/// A memory of another program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedMemory {
    /// Its text.
    pub content: String,
    /// `fact`, `experience`, `belief` or `decision`, if the other program says so.
    pub memory_type: Option<&'static str>,
    /// Words to filter by.
    pub tags: Vec<String>,
    /// When it was made: a date, or milliseconds since 1970 as digits.
    pub at: Option<String>,
}

/// The memories in a file; `None` if the file is not of the form.
pub fn read(form: Form, name: &str, text: &str) -> Option<Vec<ImportedMemory>> {
    let mut found = match form {
        Form::BasicMemory => basic_memory(name, text),
        Form::ClaudeAutoMemory => auto_memory(name, text),
        Form::ClaudeMem => claude_mem(&serde_json::from_str(text).ok()?)?,
        Form::Mem0 | Form::Json => objects(text)?,
    };
    found.retain(|it| !it.content.trim().is_empty());
    found.truncate(MEMORIES_MAX);
    for memory in &mut found {
        if memory.content.chars().count() > CONTENT_CHARS_MAX {
            memory.content = memory.content.chars().take(CONTENT_CHARS_MAX).collect();
        }
    }
    Some(found)
}

/// A list, an object with a list in it, or an object a line.
fn objects(text: &str) -> Option<Vec<ImportedMemory>> {
    let rows: Vec<Value> = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(rows)) => rows,
        Ok(value) => {
            let lists = ["results", "memories", "items", "data"];
            let list = lists.iter().find_map(|it| value[*it].as_array());
            list.cloned().unwrap_or_else(|| vec![value.clone()])
        }
        Err(_) => {
            let lines = text.lines().filter(|it| !it.trim().is_empty());
            let rows: Result<Vec<Value>, _> = lines.map(serde_json::from_str).collect();
            rows.ok()?
        }
    };
    rows.iter().map(object).collect()
}

fn object(row: &Value) -> Option<ImportedMemory> {
    let text = |names: &[&str]| names.iter().find_map(|it| row[*it].as_str());
    let content = text(&["content", "memory", "text", "body"])?;
    let kind = text(&["memory_type", "type"]).or(row["metadata"]["type"].as_str());
    let mut tags = words(&row["tags"]);
    tags.extend(words(&row["categories"]));
    Some(ImportedMemory {
        content: content.to_owned(),
        memory_type: kind.and_then(memory_type),
        tags,
        at: text(&["created_at", "createdAt", "timestamp", "date"]).map(ToOwned::to_owned),
    })
}

/// A list of words, or a text with a list in it.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list
            .iter()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect(),
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(list @ Value::Array(_)) => words(&list),
            _ => text
                .split(',')
                .map(|it| it.trim().to_owned())
                .filter(|it| !it.is_empty())
                .collect(),
        },
        _ => Vec::new(),
    }
}

fn memory_type(word: &str) -> Option<&'static str> {
    Some(match word.to_lowercase().as_str() {
        "decision" => "decision",
        "fact" | "discovery" | "reference" | "preference" | "user" | "feedback" | "requirement"
        | "constraint" => "fact",
        "belief" => "belief",
        "experience" | "bugfix" | "feature" | "refactor" | "change" | "project" => "experience",
        _ => return None,
    })
}

/// `{"observations": […], "summaries": […]}`: an observation has a title, a narrative and facts.
fn claude_mem(export: &Value) -> Option<Vec<ImportedMemory>> {
    let observations = export["observations"].as_array();
    let summaries = export["summaries"].as_array();
    if observations.is_none() && summaries.is_none() {
        return None;
    }
    let at = |row: &Value| {
        let digits = row["created_at_epoch"].as_u64().map(|it| it.to_string());
        digits.or_else(|| row["created_at"].as_str().map(ToOwned::to_owned))
    };
    let mut found = Vec::new();
    for row in observations.into_iter().flatten() {
        let mut parts: Vec<String> = Vec::new();
        for field in ["title", "subtitle", "narrative", "text"] {
            parts.extend(row[field].as_str().map(ToOwned::to_owned));
        }
        parts.extend(words_of_facts(&row["facts"]));
        parts.retain(|it| !it.trim().is_empty());
        found.push(ImportedMemory {
            content: parts.join("\n"),
            memory_type: row["type"].as_str().and_then(memory_type),
            tags: words(&row["concepts"]),
            at: at(row),
        });
    }
    for row in summaries.into_iter().flatten() {
        let fields = [
            "request",
            "investigated",
            "learned",
            "completed",
            "next_steps",
            "notes",
        ];
        let parts = fields.iter().filter_map(|field| {
            let text = row[*field].as_str().filter(|it| !it.trim().is_empty())?;
            Some(format!("{}: {text}", field.replace('_', " ")))
        });
        found.push(ImportedMemory {
            content: parts.collect::<Vec<_>>().join("\n"),
            memory_type: Some("experience"),
            tags: vec!["summary".to_owned()],
            at: at(row),
        });
    }
    Some(found)
}

/// Facts are sentences, so commas separate none.
fn words_of_facts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if !text.trim_start().starts_with('[') => vec![text.clone()],
        other => words(other),
    }
}

/// `- [category] text #tag (context)`, under the title of the note. What is not an observation stays in the note.
fn basic_memory(name: &str, text: &str) -> Vec<ImportedMemory> {
    let (title, tags, body) = head(name, text);
    let mut found = Vec::new();
    for line in lines(body) {
        let Some(item) = line
            .strip_prefix("- [")
            .or_else(|| line.strip_prefix("* ["))
        else {
            continue;
        };
        let Some((category, content)) = item.split_once("] ") else {
            continue;
        };
        // Boxes to tick and links begin like that too.
        let is_category = !category.is_empty()
            && category
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
        if !is_category || matches!(category, "x" | "X" | " ") {
            continue;
        }
        let own = content
            .split_whitespace()
            .filter_map(|it| it.strip_prefix('#'));
        let mut own: Vec<String> = own.map(ToOwned::to_owned).collect();
        own.push(category.to_owned());
        own.extend(tags.iter().cloned());
        let content = content.split_whitespace().filter(|it| !it.starts_with('#'));
        found.push(ImportedMemory {
            content: format!("{title}: {}", content.collect::<Vec<_>>().join(" ")),
            memory_type: memory_type(category).or(Some("fact")),
            tags: own,
            at: None,
        });
    }
    found
}

/// Each item of a list is a memory, under the heading that it stands below; a file without lists is one memory. The
/// index of the other files says nothing of its own.
fn auto_memory(name: &str, text: &str) -> Vec<ImportedMemory> {
    let (title, tags, body) = head(name, text);
    let (mut found, mut heading) = (Vec::new(), String::new());
    for line in lines(body) {
        if let Some(text) = line.strip_prefix('#') {
            heading = text.trim_start_matches('#').trim().to_owned();
        } else if let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            // `- [topic](topic.md)` leads to a file that is read itself.
            if item.starts_with('[') && item.contains(".md)") {
                continue;
            }
            let under = if heading.is_empty() { &title } else { &heading };
            found.push(ImportedMemory {
                content: format!("{under}: {item}"),
                memory_type: Some("fact"),
                tags: tags.clone(),
                at: None,
            });
        }
    }
    let prose = body.trim();
    if found.is_empty() && !prose.is_empty() && !title.eq_ignore_ascii_case("memory") {
        found.push(ImportedMemory {
            content: format!("{title}: {prose}"),
            memory_type: Some("fact"),
            tags,
            at: None,
        });
    }
    found
}

/// The title of a note, its tags and its text.
fn head<'a>(name: &str, text: &'a str) -> (String, Vec<String>, &'a str) {
    let (yaml, body) = frontmatter::yaml(text, Head::FirstLine).unwrap_or(("", text));
    let value = |key: &str| {
        let line = yaml
            .lines()
            .find_map(|it| it.strip_prefix(key)?.strip_prefix(':'));
        line.map(|it| it.trim().trim_matches(['"', '\'']).to_owned())
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    let stem = last.strip_suffix(".md").unwrap_or(last);
    let title = value("title")
        .or_else(|| value("name"))
        .filter(|it| !it.is_empty());
    let tags = value("tags").unwrap_or_default();
    let tags = tags.trim_matches(['[', ']']).split(',');
    let tags = tags.map(|it| it.trim().trim_matches(['"', '\'']).to_owned());
    (
        short(&title.unwrap_or_else(|| stem.to_owned()), 200),
        tags.filter(|it| !it.is_empty()).collect(),
        body,
    )
}

/// Lines outside of code blocks, without the spaces around them.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().map(str::trim).filter(move |line| {
        if line.starts_with("```") {
            is_code = !is_code;
            return false;
        }
        !is_code
    })
}
