//! No reply is longer than a model can read at once.
//!
//! A longer reply is cut in its longest list or text, and says so: which field, how much of it is
//! shown, and the `cursor` with which the same call continues. A cursor is a field and a position in
//! it, so nothing is kept between calls. A tool that can start in the middle of its list asks
//! [`Call::skip`](crate::Call) for the position; for every other tool the reply is made as a whole and then cut.

use crate::Effect;
use kenning_core::{Error, Result};
use serde_json::{Map, Value, json};

/// Reserved for the envelope and the remarks.
const MARGIN_CHARS: usize = 4_000;

/// Nothing is cut to less than this.
const LEAST_CHARS: usize = 200;

/// Longer values that were in the reply before are shown only in part.
const SEEN_CHARS: usize = 2_000;

/// The argument that every read-only tool accepts in addition to its own.
pub(crate) const CURSOR: &str = "cursor";

/// Where a tool's own list continues, in replies that are objects without metadata.
pub(crate) const NEXT_CURSOR: &str = "next_cursor";

/// The place in a list or a text where a reply continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) field: String,
    pub(crate) offset: usize,
}

/// A list that its tool started in the middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) field: String,
    pub(crate) skipped: usize,
    pub(crate) total: Option<usize>,
    pub(crate) has_more: bool,
}

/// A list or text that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    field: String,
    skipped: usize,
    shown: usize,
    total: Option<usize>,
    is_text: bool,
    /// Whether it was cut because of its length, and not by the caller's limit.
    pub(crate) is_by_length: bool,
    /// Whether a cursor can reach it: not inside an entry of a list that was started in the middle.
    is_reachable: bool,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let (field, offset) = text.rsplit_once(':')?;
        let offset = offset.parse().ok().filter(|it| *it > 0)?;
        let field = field.to_owned();
        (!field.is_empty()).then_some(Self { field, offset })
    }
}

/// Removes the cursor from the arguments of a read-only tool.
pub(crate) fn take_cursor(effect: Effect, arguments: &mut Value) -> Result<Option<Cursor>> {
    if effect != Effect::Read {
        return Ok(None);
    }
    let taken = arguments.as_object_mut().and_then(|it| it.remove(CURSOR));
    match taken {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => match Cursor::parse(&text) {
            Some(cursor) => Ok(Some(cursor)),
            None => Err(unknown(&text)),
        },
        Some(other) => Err(unknown(&other.to_string())),
    }
}

fn unknown(text: &str) -> Error {
    let text: String = text.chars().take(60).collect();
    Error::invalid(format!(
        "`cursor`: `{text}` is not a cursor from an earlier answer"
    ))
    .hint("give the `cursor` of an answer that was cut, with the same arguments, or leave it out")
}

/// Adds it to the schema of a read-only tool.
pub(crate) fn add_to_schema(effect: Effect, schema: &mut Value) {
    if effect != Effect::Read {
        return;
    }
    if let Some(properties) = schema["properties"].as_object_mut() {
        let field = json!({
            "type": "string", "description": "Of a cut answer",
        });
        properties.entry(CURSOR).or_insert(field);
    }
}

/// Starts a reply at the cursor, cuts it to what can be read at once, and says what was cut.
pub(crate) fn fit(
    answer: &mut Value,
    cursor: Option<&Cursor>,
    windows: &[Window],
    is_pretty: bool,
    chars_max: Option<usize>,
) -> Result<Vec<Cut>> {
    let window = |field: &str| windows.iter().find(|it| it.field == field);
    let mut begun = None;
    if let Some(cursor) = cursor.filter(|it| window(&it.field).is_none()) {
        begin(answer, cursor)?;
        begun = Some(cursor);
    }
    let mut cuts: Vec<Cut> = Vec::new();
    let skipped_of = |field: &str| {
        let own = begun.filter(|it| it.field == field).map(|it| it.offset);
        own.or_else(|| window(field).map(|it| it.skipped))
            .unwrap_or(0)
    };
    if let Some(chars_max) = chars_max {
        let budget = chars_max.saturating_sub(MARGIN_CHARS);
        let going_on = cursor.map(|it| it.field.as_str());
        shorten(
            answer,
            budget,
            is_pretty,
            going_on,
            &mut |field, before, shown, is_text| {
                let skipped = skipped_of(field);
                match cuts.iter_mut().find(|it| it.field == field) {
                    Some(it) => it.shown = shown,
                    None => cuts.push(Cut {
                        field: field.to_owned(),
                        skipped,
                        shown,
                        total: Some(skipped + before),
                        is_text,
                        is_by_length: true,
                        is_reachable: !is_in_begun_list(field, &skipped_of),
                    }),
                }
            },
        )?;
    }
    for Window {
        field,
        skipped,
        total,
        has_more,
    } in windows
    {
        if let Some(cut) = cuts.iter_mut().find(|it| it.field == *field) {
            cut.total = *total;
            continue;
        }
        let shown = at(answer, field).and_then(|it| it.as_array().map(Vec::len));
        let shown = shown.unwrap_or(0);
        if *has_more || total.is_some_and(|total| skipped + shown < total) {
            cuts.push(Cut {
                field: field.clone(),
                skipped: *skipped,
                shown,
                total: *total,
                is_text: false,
                is_by_length: false,
                is_reachable: true,
            });
        }
    }
    Ok(cuts)
}

fn is_in_begun_list(field: &str, skipped: &dyn Fn(&str) -> usize) -> bool {
    let mut path = field;
    while let Some((parent, name)) = path.rsplit_once('.') {
        if name == "0" && skipped(parent) > 0 {
            return true;
        }
        path = parent;
    }
    path == "0" && skipped(WHOLE) > 0
}

impl Cut {
    /// As JSON, for metadata.
    pub(crate) fn to_json(&self, has_cursor: bool) -> Value {
        let mut out = json!({ "field": self.field, "shown": self.shown, "from": self.skipped });
        if let Some(total) = self.total {
            out["total"] = total.into();
        }
        if has_cursor && self.is_reachable {
            out[CURSOR] = self.cursor().into();
        }
        out
    }

    fn cursor(&self) -> String {
        format!("{}:{}", self.field, self.skipped + self.shown)
    }

    /// As text, for people and models.
    pub(crate) fn to_text(&self, has_cursor: bool) -> String {
        let Self {
            field,
            skipped,
            shown,
            total,
            is_text,
            is_reachable,
            is_by_length,
        } = self;
        let what = if *is_text { "characters" } else { "entries" };
        let until = skipped + shown;
        let total = total.map_or(String::new(), |it| format!(" of {it}"));
        let rest = if has_cursor && *is_reachable {
            format!(
                "the same call with `{CURSOR}: \"{}\"` goes on from there",
                self.cursor()
            )
        } else {
            "the rest is left out".to_owned()
        };
        let why = if *is_by_length { "cut" } else { "more" };
        format!("{why}: `{field}` shows {what} {skipped} to {until}{total}; {rest}")
    }
}

/// The cursor of a reply whose tool started its lists in the middle: the first entries that were not
/// shown.
pub(crate) fn next_cursor(cuts: &[Cut], windows: &[Window]) -> Option<String> {
    let is_begun = |it: &&Cut| windows.iter().any(|window| window.field == it.field);
    let own = cuts.iter().filter(is_begun);
    own.min_by_key(|it| it.skipped + it.shown).map(Cut::cursor)
}

/// The value at a path of names in a reply; a reply that is itself a list or a text is `answer`.
fn at<'a>(answer: &'a Value, field: &str) -> Option<&'a Value> {
    if field == WHOLE {
        return Some(answer);
    }
    let mut found = answer;
    for name in field.split('.') {
        found = match found {
            Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
            other => other.get(name)?,
        };
    }
    Some(found)
}

fn at_mut<'a>(answer: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    if field == WHOLE {
        return Some(answer);
    }
    let mut found = answer;
    for name in field.split('.') {
        found = match found {
            Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?)?,
            other => other.get_mut(name)?,
        };
    }
    Some(found)
}

/// The name of a reply that is itself a list or a text.
pub(crate) const WHOLE: &str = "answer";

fn begin(answer: &mut Value, cursor: &Cursor) -> Result<()> {
    let given = || format!("{}:{}", cursor.field, cursor.offset);
    match at_mut(answer, &cursor.field) {
        Some(Value::Array(items)) => {
            let n_items = items.len();
            items.drain(..cursor.offset.min(items.len()));
            let left = items.len();
            recount(answer, &cursor.field, n_items, left);
        }
        Some(Value::String(text)) => {
            let start = text.char_indices().nth(cursor.offset).map(|it| it.0);
            *text = text.split_off(start.unwrap_or(text.len()));
        }
        _ => return Err(unknown(&given())),
    }
    Ok(())
}

/// Corrects a length that is given beside the list, or in the metadata.
fn recount(answer: &mut Value, field: &str, before: usize, after: usize) {
    let fix = |it: Option<&mut Value>| {
        if let Some(it) = it.filter(|it| it.as_u64() == Some(before as u64)) {
            *it = after.into();
        }
    };
    if let Some((parent, _)) = field.rsplit_once('.') {
        for name in ["count", "returned"] {
            fix(at_mut(answer, parent).and_then(|it| it.get_mut(name)));
        }
    }
    fix(answer.pointer_mut("/metadata/itemCount"));
}

fn length(value: &Value, is_pretty: bool) -> usize {
    let text = if is_pretty && !value.is_string() {
        format!("{value:#}")
    } else {
        value.to_string()
    };
    text.chars().count()
}

/// A list or a text that can be cut, by its path.
struct Longest {
    field: String,
    chars: usize,
}

/// Cuts the longest list or text until the whole is short enough. What a cursor asks for is cut last.
fn shorten(
    answer: &mut Value,
    budget: usize,
    is_pretty: bool,
    going_on: Option<&str>,
    told: &mut dyn FnMut(&str, usize, usize, bool),
) -> Result<()> {
    // Each round cuts one list or text, so few are needed.
    for _ in 0..64 {
        let chars = length(answer, is_pretty);
        if chars <= budget {
            return Ok(());
        }
        let mut all = Vec::new();
        gather(answer, "", 0, &mut all);
        all.retain(|it| it.chars > LEAST_CHARS);
        let is_shown_before =
            |it: &Longest| going_on.is_some_and(|field| field != it.field) && it.chars > SEEN_CHARS;
        let rank = |it: &Longest| (is_shown_before(it), it.chars);
        let Some(longest) = all.iter().max_by_key(|it| rank(it)) else {
            break;
        };
        let field = longest.field.clone();
        // Lengths are measured in compact JSON; the pretty form is proportional.
        let compact = length(answer, false);
        let excess = (chars - budget) * compact / chars + 1;
        let room = longest.chars.saturating_sub(excess).max(LEAST_CHARS / 2);
        let Some(place) = at_mut(answer, &field) else {
            break;
        };
        match place {
            Value::String(text) => {
                let before = text.chars().count();
                let end = text.char_indices().nth(room).map(|it| it.0);
                text.truncate(end.unwrap_or(text.len()));
                let shown = text.chars().count();
                told(&field, before, shown, true);
            }
            Value::Array(items) => {
                let before = items.len();
                let mut used = 0;
                let fitting = items.iter().take_while(|it| {
                    used += it.to_string().chars().count() + 1;
                    used <= room
                });
                // One entry is always shown; its own texts are cut next.
                let shown = fitting.count().max(1);
                items.truncate(shown);
                told(&field, before, shown, false);
                recount(answer, &field, before, shown);
            }
            _ => break,
        }
    }
    let chars = length(answer, is_pretty);
    if chars <= budget {
        return Ok(());
    }
    Err(
        Error::too_large(format!("the answer has {chars} characters"))
            .hint("ask for less: a smaller `limit`, a narrower query, or the file itself"),
    )
}

/// The lists and texts that are not parts of others. A list with one entry is searched too.
fn gather(value: &Value, path: &str, depth: usize, all: &mut Vec<Longest>) {
    let field = || {
        if path.is_empty() {
            WHOLE.to_owned()
        } else {
            path.to_owned()
        }
    };
    let beneath = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match value {
        Value::String(text) => all.push(Longest {
            field: field(),
            chars: text.chars().count(),
        }),
        Value::Array(items) if items.len() > 1 => all.push(Longest {
            field: field(),
            chars: value.to_string().chars().count(),
        }),
        Value::Array(items) => {
            if let Some(only) = items.first().filter(|_| depth < 8) {
                gather(only, &beneath("0"), depth + 1, all);
            }
        }
        Value::Object(fields) if depth < 8 => {
            for (name, value) in fields.iter().filter(|it| !it.0.contains('.')) {
                gather(value, &beneath(name), depth + 1, all);
            }
        }
        _ => {}
    }
}

/// Cuts the fields of an error to half of what a reply may have.
pub(crate) fn fit_details(
    details: Map<String, Value>,
    chars_max: Option<usize>,
) -> Map<String, Value> {
    let mut whole = Value::Object(details);
    let half = chars_max.map(|it| it / 2);
    match (fit(&mut whole, None, &[], true, half), whole) {
        (Ok(cuts), Value::Object(mut details)) => {
            if !cuts.is_empty() {
                let all = cuts.iter().map(|it| it.to_text(false));
                details.insert("cut".to_owned(), all.collect::<Vec<_>>().into());
            }
            details
        }
        _ => Map::new(),
    }
}

/// The beginning of a text without a cursor, and a remark if it was cut.
pub(crate) fn fit_text(text: &mut String, chars_max: Option<usize>) -> Option<String> {
    let chars_max = chars_max?;
    let end = text.char_indices().nth(chars_max)?.0;
    let total = text.chars().count();
    text.truncate(end);
    Some(format!(
        "cut: the answer shows {chars_max} of {total} characters; ask for less, or let the tool write a file"
    ))
}

/// The cuts in the form of the graph tools' metadata.
pub(crate) fn metadata(cuts: &[Cut], has_cursor: bool) -> Map<String, Value> {
    let mut out = Map::new();
    let all: Vec<Value> = cuts.iter().map(|it| it.to_json(has_cursor)).collect();
    out.insert("truncated".to_owned(), all.into());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(answer: &mut Value, cursor: Option<&str>, max: usize) -> Vec<Cut> {
        let cursor = cursor.map(|it| Cursor::parse(it).unwrap());
        fit(
            answer,
            cursor.as_ref(),
            &[],
            false,
            Some(max + MARGIN_CHARS),
        )
        .unwrap()
    }

    #[test]
    fn a_long_list_is_read_in_parts_that_are_the_whole() {
        let whole: Vec<String> = (0..1_000).map(|it| format!("entry {it}")).collect();
        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..20 {
            let mut answer = json!({ "data": { "list": whole, "count": 1_000 }, "other": "x" });
            let cuts = fitted(&mut answer, cursor.as_deref(), 3_000);
            assert!(answer.to_string().len() <= 3_000);
            let list = answer["data"]["list"].as_array().unwrap();
            assert_eq!(answer["data"]["count"], list.len());
            seen.extend(list.iter().map(|it| it.as_str().unwrap().to_owned()));
            let Some(cut) = cuts.first() else { break };
            assert_eq!(cut.total, Some(1_000));
            cursor = Some(cut.cursor());
        }
        assert_eq!(seen, whole);
    }

    #[test]
    fn a_long_text_is_read_in_parts_that_are_the_whole() {
        let whole: String = "aé日".repeat(2_000);
        let (mut seen, mut cursor) = (String::new(), None::<String>);
        for _ in 0..20 {
            let mut answer = Value::String(whole.clone());
            let cuts = fitted(&mut answer, cursor.as_deref(), 1_000);
            seen.push_str(answer.as_str().unwrap());
            let Some(cut) = cuts.first() else { break };
            cursor = Some(cut.cursor());
        }
        assert_eq!(seen, whole);
    }

    #[test]
    fn the_one_entry_that_is_too_long_is_cut_itself() {
        let mut answer = json!([{ "id": 1, "text": "x".repeat(9_000) }, { "id": 2, "text": "y" }]);
        let cuts = fitted(&mut answer, None, 2_000);
        assert!(answer.to_string().len() <= 2_000, "{answer}");
        let fields: Vec<&str> = cuts.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["answer", "0.text"]);
        assert_eq!(answer[0]["id"], 1);
        let mut short = json!({ "a": 1 });
        assert_eq!(fitted(&mut short, None, 2_000), []);
        let wide: Map<String, Value> = (0..2_000).map(|it| (it.to_string(), it.into())).collect();
        let mut wide = Value::Object(wide);
        let error = fit(&mut wide, None, &[], false, Some(5_000)).unwrap_err();
        assert_eq!(error.code, kenning_core::Code::TooLarge);
    }

    #[test]
    fn a_cursor_that_no_answer_gave_is_refused() {
        for text in ["", "x", "x:", "x:-1", ":5", "x:0"] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
        let mut answer = json!({ "a": [1, 2, 3] });
        let cursor = Cursor::parse("b:2").unwrap();
        assert!(fit(&mut answer, Some(&cursor), &[], false, None).is_err());
        let cursor = Cursor::parse("a:2").unwrap();
        fit(&mut answer, Some(&cursor), &[], false, None).unwrap();
        assert_eq!(answer, json!({ "a": [3] }));
    }
}
