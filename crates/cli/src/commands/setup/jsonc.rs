//! Sets a value in a JSON file as clients keep it: with comments, trailing commas and its own order,
//! all of which are kept.

use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;

/// Spaces that a level is indented by.
const INDENT: usize = 2;

/// The value at these keys; `None` if the text is not an object, or has something else on the way.
pub(super) fn get(text: &str, keys: &[&str]) -> Option<Value> {
    let mut value: Value = serde_json::from_str(&plain(text)?).ok()?;
    for key in keys {
        value = value.as_object_mut()?.remove(*key)?;
    }
    Some(value)
}

/// The text with this value at these keys; `None` if that is impossible: the text is not an object,
/// or has something else on the way.
pub(super) fn set(text: &str, keys: &[&str], value: &Value) -> Option<String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let plain = plain(text)?;
    let whole: Value = serde_json::from_str(&plain).ok()?;
    whole.as_object()?;
    let bytes = plain.as_bytes();
    let mut object = skip_space(bytes, 0);
    for (depth, key) in keys.iter().enumerate() {
        match member(&plain, object, key).ok()? {
            Some(found) if depth + 1 == keys.len() => {
                let new = indented(value, depth + 1);
                return Some([&text[..found.start], &new, &text[found.end..]].concat());
            }
            Some(found) if bytes.get(found.start) == Some(&b'{') => object = found.start,
            Some(_) => return None,
            None => {
                let rest = keys[depth + 1..].iter().rev();
                let value = rest.fold(
                    value.clone(),
                    |inner, key| serde_json::json!({ (*key): inner }),
                );
                return Some(with_member(
                    text,
                    bytes,
                    object,
                    key,
                    &indented(&value, depth + 1),
                    depth,
                ));
            }
        }
    }
    None
}

/// The text with this value once in the list at these keys: in place of those that it replaces,
/// otherwise at the end. Comments in the list stay. `None` if that is impossible, as for [`set`].
pub(super) fn put_in_list(
    text: &str,
    keys: &[&str],
    is_replaced: impl Fn(&Value) -> bool,
    value: &Value,
) -> Option<String> {
    if get(text, keys).is_none() {
        return set(text, keys, &Value::Array(vec![value.clone()]));
    }
    let plain = plain(text)?;
    let mut list = skip_space(plain.as_bytes(), 0);
    for key in keys {
        list = member(&plain, list, key).ok()??.start;
    }
    let entries = entries(&plain, list)?;
    let close = end_of_value(plain.as_bytes(), list) - 1;
    let read = |it: &Range<usize>| serde_json::from_str::<Value>(&plain[it.clone()]).ok();
    let all = entries.iter().map(read).collect::<Option<Vec<Value>>>()?;
    let old: Vec<usize> = (0..all.len()).filter(|&at| is_replaced(&all[at])).collect();
    let new = indented(value, keys.len() + 1);
    // With its trailing comma, which plain JSON does not have.
    let with_commas = without_comments(text)?;
    let comma_in = |range: Range<usize>| {
        with_commas[range.clone()]
            .find(',')
            .map(|at| range.start + at)
    };
    let [first, rest @ ..] = old.as_slice() else {
        let end = text[..close].trim_end().len();
        let last_end = entries.last().map_or(end, |it| it.end);
        let comma = match entries.is_empty() || comma_in(last_end..close).is_some() {
            true => "",
            false => ",",
        };
        let (inner, outer) = (INDENT * (keys.len() + 1), INDENT * keys.len());
        return Some(format!(
            "{}{comma}{}\n{:inner$}{new}\n{:outer$}{}",
            &text[..last_end],
            &text[last_end..end],
            "",
            "",
            &text[close..]
        ));
    };
    let mut commas = BTreeSet::new();
    let mut edits: Vec<(Range<usize>, &str)> = Vec::new();
    for &at in rest {
        let entry = &entries[at];
        let next = entries.get(at + 1).map_or(close, |it| it.start);
        let before = entries[at - 1].end..entry.start;
        let around = [comma_in(entry.end..next), comma_in(before)];
        commas.extend(around.into_iter().flatten().find(|it| !commas.contains(it)));
        edits.push((entry.clone(), ""));
    }
    edits.extend(commas.into_iter().map(|it| (it..it + 1, "")));
    if all[*first] != *value {
        edits.push((entries[*first].clone(), &new));
    }
    edits.sort_by_key(|it| std::cmp::Reverse(it.0.start));
    let mut out = text.to_owned();
    for (range, new) in edits {
        out.replace_range(range, new);
    }
    Some(out)
}

/// The entries of the list that begins at `list`; `None` if it is not a list.
fn entries(plain: &str, list: usize) -> Option<Vec<Range<usize>>> {
    let bytes = plain.as_bytes();
    if bytes.get(list) != Some(&b'[') {
        return None;
    }
    let mut found = Vec::new();
    let mut at = skip_space(bytes, list + 1);
    while bytes.get(at).is_some_and(|&byte| byte != b']') {
        let end = end_of_value(bytes, at);
        found.push(at..end);
        at = skip_space(bytes, end);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
    }
    Some(found)
}

/// The new member comes first, so that comments after the others stay in place.
fn with_member(
    text: &str,
    plain: &[u8],
    object: usize,
    key: &str,
    value: &str,
    depth: usize,
) -> String {
    let inner = " ".repeat(INDENT * (depth + 1));
    let key = Value::from(key);
    let is_empty = plain.get(skip_space(plain, object + 1)) == Some(&b'}');
    let end = match is_empty {
        true if text[object + 1..].trim_start().starts_with('}') => {
            let close = skip_space(plain, object + 1);
            let outer = " ".repeat(INDENT * depth);
            return format!(
                "{}\n{inner}{key}: {value}\n{outer}{}",
                &text[..=object],
                &text[close..]
            );
        }
        // It contains only a comment.
        true => "",
        false => ",",
    };
    format!(
        "{}\n{inner}{key}: {value}{end}{}",
        &text[..=object],
        &text[object + 1..]
    )
}

fn indented(value: &Value, depth: usize) -> String {
    let lines = format!("{value:#}");
    lines.replace('\n', &format!("\n{}", " ".repeat(INDENT * depth)))
}

/// Where the value of a key is in the object that begins at `object`. The text is plain and complete.
/// An error if the key is there twice: programs differ in which one they read.
fn member(plain: &str, object: usize, key: &str) -> Result<Option<Range<usize>>, Ambiguous> {
    let bytes = plain.as_bytes();
    let mut found = None;
    let mut at = skip_space(bytes, object + 1);
    while bytes.get(at) == Some(&b'"') {
        let name_end = end_of_text(bytes, at);
        let name = plain.get(at..name_end).map(serde_json::from_str::<String>);
        let colon = skip_space(bytes, name_end);
        let start = skip_space(bytes, colon + 1);
        let end = end_of_value(bytes, start);
        if matches!(name, Some(Ok(name)) if name == key) {
            if found.is_some() {
                return Err(Ambiguous);
            }
            found = Some(start..end);
        }
        at = skip_space(bytes, end);
        if bytes.get(at) != Some(&b',') {
            break;
        }
        at = skip_space(bytes, at + 1);
    }
    Ok(found)
}

/// A key occurs twice in one object.
struct Ambiguous;

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_value(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_text(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return end_of_word(bytes, start),
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return end_of_word(bytes, start),
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The end of a number or of `true`, `false`, `null`.
fn end_of_word(bytes: &[u8], start: usize) -> usize {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']');
    let length = bytes[start..].iter().position(is_end);
    length.map_or(bytes.len(), |length| start + length)
}

/// The same text as plain JSON: comments and trailing commas become spaces, so that positions stay.
/// `None` if a comment or a string is not closed.
fn plain(text: &str) -> Option<String> {
    stripped(text, true)
}

/// As [`plain`], with trailing commas.
fn without_comments(text: &str) -> Option<String> {
    stripped(text, false)
}

fn stripped(text: &str, takes_commas: bool) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut comma: Option<usize> = None;
    let mut before = b'{';
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    out[..at].fill(b' ');
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest[0] == b'"' {
            let end = end_of_text(bytes, at);
            if bytes.get(end - 1) != Some(&b'"') || end == at + 1 {
                return None;
            }
            (comma, before) = (None, b'"');
            at = end;
        } else if rest.starts_with(b"//") {
            let end = rest.iter().position(|&byte| matches!(byte, b'\n' | b'\r'));
            let end = end.map_or(bytes.len(), |length| at + length);
            out[at..end].fill(b' ');
            at = end;
        } else if rest.starts_with(b"/*") {
            let end = at + 4 + text.get(at + 2..)?.find("*/")?;
            let blank = |byte: &mut u8| {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            };
            out[at..end].iter_mut().for_each(blank);
            at = end;
        } else {
            match rest[0] {
                // A comma with nothing before it is a mistake, and stays one.
                b',' if !matches!(before, b'{' | b'[' | b',' | b':') => comma = Some(at),
                b'}' | b']' => {
                    if let Some(comma) = comma.take().filter(|_| takes_commas) {
                        out[comma] = b' ';
                    }
                }
                byte if byte.is_ascii_whitespace() => {}
                _ => comma = None,
            }
            if !rest[0].is_ascii_whitespace() {
                before = rest[0];
            }
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(old: &str, expected: &str) {
        let new = set(old, &["servers", "kenning"], &json!({ "command": "k" })).unwrap();
        assert_eq!(new, expected);
        let read = get(&new, &["servers", "kenning", "command"]);
        assert_eq!(read, Some(json!("k")), "{new}");
    }

    #[test]
    fn a_member_is_added_and_everything_else_stays() {
        check(
            "",
            "{\n  \"servers\": {\n    \"kenning\": {\n      \"command\": \"k\"\n    }\n  }\n}\n",
        );
        check(
            "// mine\n{\n  \"servers\": {\n    \"other\": {\"a\": 1}, // keep\n  },\n}\n",
            "// mine\n{\n  \"servers\": {\n    \"kenning\": {\n      \"command\": \"k\"\n    },\n    \"other\": {\"a\": 1}, // keep\n  },\n}\n",
        );
        check(
            "{\"servers\": {/* none, yet */}}",
            "{\"servers\": {\n    \"kenning\": {\n      \"command\": \"k\"\n    }/* none, yet */}}",
        );
    }

    #[test]
    fn a_comment_ends_where_its_line_does_whichever_way_lines_end() {
        let new = set(
            "{// c\r\"servers\": {\"a\": 1}\n}",
            &["servers", "kenning"],
            &json!({}),
        );
        let new = new.unwrap();
        assert_eq!(new.matches("servers").count(), 1, "{new:?}");
    }

    #[test]
    fn a_member_is_replaced_where_it_is() {
        check(
            "{\"servers\": {\"a\": \"}\\\"\", \"kenning\": [1, {\"x\": \"]\"}], \"b\": 2 /* , */ }}",
            "{\"servers\": {\"a\": \"}\\\"\", \"kenning\": {\n      \"command\": \"k\"\n    }, \"b\": 2 /* , */ }}",
        );
        check(
            "{\"servers\": {\"kenning\": null}}",
            "{\"servers\": {\"kenning\": {\n      \"command\": \"k\"\n    }}}",
        );
    }

    #[test]
    fn an_entry_is_added_to_a_list_or_replaced_there_and_comments_stay() {
        let ours = |it: &Value| it["ours"] == true;
        let new = json!({ "ours": true, "n": 2 });
        let shown = "{\n        \"ours\": true,\n        \"n\": 2\n      }";
        let added = format!("\n      {shown}\n    ]");
        for (old, expected) in [
            ("[]", format!("[{added}")),
            ("[ /* none */ ]", format!("[ /* none */{added}")),
            ("[1]", format!("[1,{added}")),
            (
                "[\n  // a\n  1, // b\n  2 // c, d\n]",
                format!("[\n  // a\n  1, // b\n  2, // c, d{added}"),
            ),
            ("[1, /* x, */ ]", format!("[1, /* x, */{added}")),
            (
                "[1, {\"ours\": true} /* o */, 3]",
                format!("[1, {shown} /* o */, 3]"),
            ),
            (
                "[{\"ours\": true}, /* a */ {\"ours\": true}, 3 /* z */]",
                format!("[{shown}, /* a */  3 /* z */]"),
            ),
            (
                "[{\"ours\": true}, // a\n {\"ours\": true}]",
                format!("[{shown} // a\n ]"),
            ),
        ] {
            let text = |list: &str| format!("{{\"hooks\": {{\"End\": {list}}}}}");
            let put = put_in_list(&text(old), &["hooks", "End"], ours, &new).unwrap();
            assert_eq!(put, text(&expected), "{old}");
            let again = put_in_list(&put, &["hooks", "End"], ours, &new).unwrap();
            assert_eq!(again, put, "{old}");
            let list = get(&put, &["hooks", "End"]).unwrap();
            let n_ours = list
                .as_array()
                .unwrap()
                .iter()
                .filter(|it| ours(it))
                .count();
            assert_eq!(n_ours, 1, "{put}");
        }
        assert_eq!(put_in_list("{\"a\": 5}", &["a"], ours, &new), None);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        for text in [
            "[]",
            "{",
            "5",
            "{\"servers\": 5}",
            "{\"servers\": []}",
            "/* no end",
            "{\"a\": \"no end}",
            "{,}",
            "\"",
            "{\"a\" 1}",
        ] {
            let new = set(text, &["servers", "kenning"], &json!({}));
            assert_eq!(new, None, "{text}");
        }
    }
}
