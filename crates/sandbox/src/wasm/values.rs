//! Converts between JSON and WIT values, and makes the JSON Schema of a type.
//!
//! | WIT | JSON |
//! |---|---|
//! | numbers, `bool`, `string` | the same |
//! | `char` | a text of one character |
//! | `list`, `tuple` | array |
//! | `map` | array of pairs |
//! | `record` | object |
//! | `option` | the value or `null` |
//! | `enum` | text |
//! | `flags` | array of texts |
//! | `variant` | `{"case": value}`, or the case's name if it has no value |
//! | `result` | `{"ok": value}` or `{"err": value}` |
//!
//! Resources, streams and futures mean nothing outside the call, so a function that has one is not
//! offered.

use serde_json::{Map, Value, json};
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{Type, Val};

/// Whether values of these types can be expressed in JSON, with a schema of limited size: types that
/// nest two of the previous type, twenty levels deep, have a million parts in a few hundred bytes.
pub(crate) fn are_plain(types: impl IntoIterator<Item = Type>) -> bool {
    let mut left = PARTS_MAX;
    types.into_iter().all(|it| is_plain(&it, &mut left))
}

/// Limit for all types of a function together.
const PARTS_MAX: usize = 2_000;

fn is_plain(ty: &Type, left: &mut usize) -> bool {
    let Some(less) = left.checked_sub(1) else {
        return false;
    };
    *left = less;
    match ty {
        Type::List(it) => is_plain(&it.ty(), left),
        Type::FixedLengthList(it) => is_plain(&it.ty(), left),
        Type::Map(it) => is_plain(&it.key(), left) && is_plain(&it.value(), left),
        Type::Record(it) => it.fields().all(|it| is_plain(&it.ty, left)),
        Type::Tuple(it) => it.types().all(|it| is_plain(&it, left)),
        Type::Variant(it) => it
            .cases()
            .all(|case| case.ty.is_none_or(|it| is_plain(&it, left))),
        Type::Option(it) => is_plain(&it.ty(), left),
        Type::Result(it) => [it.ok(), it.err()]
            .iter()
            .flatten()
            .all(|it| is_plain(it, left)),
        Type::Enum(it) => it.names().len() <= PARTS_MAX,
        Type::Flags(it) => it.names().len() <= PARTS_MAX,
        Type::Own(_) | Type::Borrow(_) | Type::Future(_) | Type::Stream(_) | Type::ErrorContext => {
            false
        }
        _ => true,
    }
}

/// The JSON Schema of a function's input: an object with a property for each parameter.
pub(crate) fn input_schema(function: &ComponentFunc) -> Value {
    let fields = function.params().map(|(name, ty)| (name.to_owned(), ty));
    object(fields.collect())
}

/// The JSON Schema of a type.
pub(crate) fn schema(ty: &Type) -> Value {
    let whole = |min: i64, max: u64| json!({ "type": "integer", "minimum": min, "maximum": max });
    match ty {
        Type::Bool => json!({ "type": "boolean" }),
        Type::S8 => whole(i8::MIN.into(), i8::MAX as u64),
        Type::U8 => whole(0, u8::MAX.into()),
        Type::S16 => whole(i16::MIN.into(), i16::MAX as u64),
        Type::U16 => whole(0, u16::MAX.into()),
        Type::S32 => whole(i32::MIN.into(), i32::MAX as u64),
        Type::U32 => whole(0, u32::MAX.into()),
        Type::S64 => whole(i64::MIN, i64::MAX as u64),
        Type::U64 => whole(0, u64::MAX),
        Type::Float32 | Type::Float64 => json!({ "type": "number" }),
        Type::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        Type::String => json!({ "type": "string" }),
        Type::List(it) => json!({ "type": "array", "items": schema(&it.ty()) }),
        Type::FixedLengthList(it) => {
            let length = it.len();
            json!({ "type": "array", "items": schema(&it.ty()), "minItems": length, "maxItems": length })
        }
        Type::Map(it) => {
            let pair = tuple(vec![it.key(), it.value()]);
            json!({ "type": "array", "items": pair })
        }
        Type::Record(it) => object(
            it.fields()
                .map(|field| (field.name.to_owned(), field.ty))
                .collect(),
        ),
        Type::Tuple(it) => tuple(it.types().collect()),
        Type::Variant(it) => {
            let one = |name: &str, ty: Option<Type>| match ty {
                Some(ty) => object(vec![(name.to_owned(), ty)]),
                None => json!({ "const": name }),
            };
            json!({ "oneOf": it.cases().map(|case| one(case.name, case.ty)).collect::<Vec<_>>() })
        }
        Type::Enum(it) => json!({ "enum": it.names().collect::<Vec<_>>() }),
        Type::Option(it) => json!({ "anyOf": [schema(&it.ty()), { "type": "null" }] }),
        Type::Result(it) => {
            let side = |name: &str, ty: Option<Type>| {
                let inner = ty.map_or_else(|| json!({ "type": "null" }), |it| schema(&it));
                json!({ "type": "object", "properties": { name: inner }, "required": [name], "additionalProperties": false })
            };
            json!({ "oneOf": [side("ok", it.ok()), side("err", it.err())] })
        }
        Type::Flags(it) => {
            let names: Vec<&str> = it.names().collect();
            json!({ "type": "array", "items": { "enum": names }, "uniqueItems": true })
        }
        Type::Own(_) | Type::Borrow(_) | Type::Future(_) | Type::Stream(_) | Type::ErrorContext => {
            json!(false)
        }
    }
}

fn object(fields: Vec<(String, Type)>) -> Value {
    let required = fields.iter().filter(|it| !matches!(it.1, Type::Option(_)));
    let required: Vec<&String> = required.map(|it| &it.0).collect();
    let required = json!(required);
    let properties = fields.iter().map(|(name, ty)| (name.clone(), schema(ty)));
    let properties: Map<String, Value> = properties.collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn tuple(types: Vec<Type>) -> Value {
    let length = types.len();
    let items: Vec<Value> = types.iter().map(schema).collect();
    json!({ "type": "array", "prefixItems": items, "minItems": length, "maxItems": length })
}

/// The arguments of a function from a JSON object, or an error text.
pub(crate) fn arguments(function: &ComponentFunc, input: &Value) -> Result<Vec<Val>, String> {
    let fields: Vec<(String, Type)> = function
        .params()
        .map(|(name, ty)| (name.to_owned(), ty))
        .collect();
    let values = fields_from(&fields, input, "")?;
    Ok(values.into_iter().map(|(_, value)| value).collect())
}

fn fields_from(
    fields: &[(String, Type)],
    json: &Value,
    at: &str,
) -> Result<Vec<(String, Val)>, String> {
    let Some(object) = json.as_object() else {
        return Err(wrong(at, "an object", json));
    };
    if let Some(extra) = object
        .keys()
        .find(|key| fields.iter().all(|it| it.0 != **key))
    {
        let known: Vec<&str> = fields.iter().map(|it| it.0.as_str()).collect();
        let known = known.join("`, `");
        return Err(format!(
            "unknown field `{}`; the fields are `{known}`",
            path(at, extra)
        ));
    }
    let one = |(name, ty): &(String, Type)| {
        let at = path(at, name);
        let value = match (object.get(name), ty) {
            (Some(json), _) => from_json(ty, json, &at)?,
            (None, Type::Option(_)) => Val::Option(None),
            (None, _) => return Err(format!("`{at}` is missing")),
        };
        Ok((name.clone(), value))
    };
    fields.iter().map(one).collect()
}

fn from_json(ty: &Type, json: &Value, at: &str) -> Result<Val, String> {
    let list = |ty: &Type| -> Result<Vec<Val>, String> {
        let items = json.as_array().ok_or_else(|| wrong(at, "an array", json))?;
        let one = |(idx, it)| from_json(ty, it, &format!("{at}[{idx}]"));
        items.iter().enumerate().map(one).collect()
    };
    let text = |wanted: &str| json.as_str().ok_or_else(|| wrong(at, wanted, json));
    macro_rules! whole {
        ($case:ident, $type:ty, $read:ident) => {{
            let value = json.$read().and_then(|it| <$type>::try_from(it).ok());
            let range = || format!("a whole number from {} to {}", <$type>::MIN, <$type>::MAX);
            Val::$case(value.ok_or_else(|| wrong(at, &range(), json))?)
        }};
    }
    let float = || json.as_f64().ok_or_else(|| wrong(at, "a number", json));
    Ok(match ty {
        Type::Bool => Val::Bool(
            json.as_bool()
                .ok_or_else(|| wrong(at, "true or false", json))?,
        ),
        Type::S8 => whole!(S8, i8, as_i64),
        Type::U8 => whole!(U8, u8, as_u64),
        Type::S16 => whole!(S16, i16, as_i64),
        Type::U16 => whole!(U16, u16, as_u64),
        Type::S32 => whole!(S32, i32, as_i64),
        Type::U32 => whole!(U32, u32, as_u64),
        Type::S64 => whole!(S64, i64, as_i64),
        Type::U64 => whole!(U64, u64, as_u64),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the nearest number is meant"
        )]
        Type::Float32 => Val::Float32(float()? as f32),
        Type::Float64 => Val::Float64(float()?),
        Type::Char => {
            let mut chars = text("one character")?.chars();
            match (chars.next(), chars.next()) {
                (Some(one), None) => Val::Char(one),
                _ => return Err(wrong(at, "one character", json)),
            }
        }
        Type::String => Val::String(text("a text")?.to_owned()),
        Type::List(it) => Val::List(list(&it.ty())?),
        Type::FixedLengthList(it) => {
            let items = list(&it.ty())?;
            if items.len() != it.len() as usize {
                return Err(wrong(at, &format!("an array of {}", it.len()), json));
            }
            Val::FixedLengthList(items)
        }
        Type::Map(it) => {
            let pairs = json
                .as_array()
                .ok_or_else(|| wrong(at, "an array of pairs", json))?;
            let one = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
                Some([key, value]) => Ok((
                    from_json(&it.key(), key, at)?,
                    from_json(&it.value(), value, at)?,
                )),
                _ => Err(wrong(at, "an array of pairs", pair)),
            };
            Val::Map(pairs.iter().map(one).collect::<Result<_, String>>()?)
        }
        Type::Record(it) => {
            let fields: Vec<(String, Type)> = it
                .fields()
                .map(|field| (field.name.to_owned(), field.ty))
                .collect();
            Val::Record(fields_from(&fields, json, at)?)
        }
        Type::Tuple(it) => {
            let items = json.as_array().ok_or_else(|| wrong(at, "an array", json))?;
            if items.len() != it.types().len() {
                return Err(wrong(
                    at,
                    &format!("an array of {}", it.types().len()),
                    json,
                ));
            }
            let one = |(idx, (ty, it))| from_json(&ty, it, &format!("{at}[{idx}]"));
            let items = it.types().zip(items).enumerate().map(one);
            Val::Tuple(items.collect::<Result<_, String>>()?)
        }
        Type::Variant(it) => {
            let (name, payload) = case(json).ok_or_else(|| {
                wrong(
                    at,
                    "a case name, or an object whose only key is a case name",
                    json,
                )
            })?;
            let mut cases = it.cases();
            let Some(found) = cases.find(|it| it.name == name) else {
                return Err(format!("`{at}` has no case `{name}`"));
            };
            match (found.ty, payload) {
                (Some(ty), Some(json)) => {
                    let value = from_json(&ty, json, &path(at, name))?;
                    Val::Variant(name.to_owned(), Some(Box::new(value)))
                }
                (None, None | Some(Value::Null)) => Val::Variant(name.to_owned(), None),
                _ => return Err(wrong(&path(at, name), "another value", json)),
            }
        }
        Type::Enum(it) => {
            let name = text("a name")?;
            if !it.names().any(|it| it == name) {
                let names: Vec<&str> = it.names().collect();
                return Err(wrong(at, &format!("one of `{}`", names.join("`, `")), json));
            }
            Val::Enum(name.to_owned())
        }
        Type::Option(it) => match json {
            Value::Null => Val::Option(None),
            json => Val::Option(Some(Box::new(from_json(&it.ty(), json, at)?))),
        },
        Type::Result(it) => {
            let side = |ty: Option<Type>, json: Option<&Value>| match (ty, json) {
                (Some(ty), Some(json)) => Ok(Some(Box::new(from_json(&ty, json, at)?))),
                (None, None | Some(Value::Null)) => Ok(None),
                _ => Err(format!("`{at}` has the wrong value")),
            };
            match case(json) {
                Some(("ok", json)) => Val::Result(Ok(side(it.ok(), json)?)),
                Some(("err", json)) => Val::Result(Err(side(it.err(), json)?)),
                _ => return Err(wrong(at, "`ok` or `err`", json)),
            }
        }
        Type::Flags(it) => {
            let names = json
                .as_array()
                .ok_or_else(|| wrong(at, "an array of names", json))?;
            let known: Vec<&str> = it.names().collect();
            let one = |json: &Value| match json.as_str().filter(|it| known.contains(it)) {
                Some(name) => Ok(name.to_owned()),
                None => Err(wrong(
                    at,
                    &format!("some of `{}`", known.join("`, `")),
                    json,
                )),
            };
            Val::Flags(names.iter().map(one).collect::<Result<_, String>>()?)
        }
        Type::Own(_) | Type::Borrow(_) | Type::Future(_) | Type::Stream(_) | Type::ErrorContext => {
            return Err(format!("`{at}` has a type that JSON cannot express"));
        }
    })
}

/// A name, or an object with one key.
fn case(json: &Value) -> Option<(&str, Option<&Value>)> {
    match json {
        Value::String(name) => Some((name, None)),
        Value::Object(object) if object.len() == 1 => object
            .iter()
            .next()
            .map(|(name, it)| (name.as_str(), Some(it))),
        _ => None,
    }
}

/// What a function answered, as JSON.
pub(crate) fn to_json(value: &Val) -> Value {
    let boxed = |it: &Option<Box<Val>>| it.as_deref().map_or(Value::Null, to_json);
    match value {
        Val::Bool(it) => json!(it),
        Val::S8(it) => json!(it),
        Val::U8(it) => json!(it),
        Val::S16(it) => json!(it),
        Val::U16(it) => json!(it),
        Val::S32(it) => json!(it),
        Val::U32(it) => json!(it),
        Val::S64(it) => json!(it),
        Val::U64(it) => json!(it),
        Val::Float32(it) => json!(it),
        Val::Float64(it) => json!(it),
        Val::Char(it) => json!(it.to_string()),
        Val::String(it) => json!(it),
        Val::List(it) | Val::Tuple(it) | Val::FixedLengthList(it) => {
            it.iter().map(to_json).collect()
        }
        Val::Map(it) => it
            .iter()
            .map(|(key, value)| json!([to_json(key), to_json(value)]))
            .collect(),
        Val::Record(it) => {
            let fields = it
                .iter()
                .map(|(name, value)| (name.clone(), to_json(value)));
            Value::Object(fields.collect())
        }
        Val::Variant(name, None) | Val::Enum(name) => json!(name),
        Val::Variant(name, payload) => json!({ name: boxed(payload) }),
        Val::Option(it) => boxed(it),
        Val::Result(Ok(it)) => json!({ "ok": boxed(it) }),
        Val::Result(Err(it)) => json!({ "err": boxed(it) }),
        Val::Flags(it) => json!(it),
        Val::Resource(_) | Val::Future(_) | Val::Stream(_) | Val::ErrorContext(_) => Value::Null,
    }
}

/// As a tool answers: a text is itself, anything else is JSON.
pub(crate) fn to_text(value: &Val) -> String {
    match value {
        Val::String(text) => text.clone(),
        other => to_json(other).to_string(),
    }
}

fn path(at: &str, name: &str) -> String {
    match at {
        "" => name.to_owned(),
        _ => format!("{at}.{name}"),
    }
}

fn wrong(at: &str, wanted: &str, found: &Value) -> String {
    let found: String = found.to_string().chars().take(60).collect();
    match at {
        "" => format!("expected {wanted}, found `{found}`"),
        _ => format!("`{at}` must be {wanted}, not `{found}`"),
    }
}
