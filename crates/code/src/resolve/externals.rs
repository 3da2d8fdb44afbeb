//! What is known of the world outside of a repository: names that every file has, and containers.

use super::file::Family;

/// Whether every file of a language has this name.
pub(super) fn is_builtin(family: Family, name: &str) -> bool {
    let all: &[&str] = match family {
        Family::Script => &[
            "Array",
            "ArrayBuffer",
            "BigInt",
            "Boolean",
            "Buffer",
            "Date",
            "Error",
            "Function",
            "Infinity",
            "Intl",
            "JSON",
            "Map",
            "Math",
            "NaN",
            "Number",
            "Object",
            "Promise",
            "Proxy",
            "Reflect",
            "RegExp",
            "Set",
            "String",
            "Symbol",
            "TypeError",
            "URL",
            "URLSearchParams",
            "Uint8Array",
            "WeakMap",
            "WeakSet",
            "clearInterval",
            "clearTimeout",
            "console",
            "decodeURIComponent",
            "document",
            "encodeURIComponent",
            "exports",
            "fetch",
            "globalThis",
            "isNaN",
            "module",
            "parseFloat",
            "parseInt",
            "process",
            "queueMicrotask",
            "require",
            "setImmediate",
            "setInterval",
            "setTimeout",
            "structuredClone",
            "window",
        ],
        Family::Python => &[
            "Exception",
            "KeyError",
            "NotImplementedError",
            "RuntimeError",
            "TypeError",
            "ValueError",
            "abs",
            "all",
            "any",
            "bool",
            "bytes",
            "callable",
            "chr",
            "dict",
            "dir",
            "enumerate",
            "eval",
            "exec",
            "filter",
            "float",
            "format",
            "frozenset",
            "getattr",
            "hasattr",
            "hash",
            "hex",
            "id",
            "input",
            "int",
            "isinstance",
            "issubclass",
            "iter",
            "len",
            "list",
            "map",
            "max",
            "min",
            "next",
            "object",
            "open",
            "ord",
            "pow",
            "print",
            "property",
            "range",
            "repr",
            "reversed",
            "round",
            "set",
            "setattr",
            "slice",
            "sorted",
            "staticmethod",
            "str",
            "sum",
            "tuple",
            "type",
            "vars",
            "zip",
        ],
        Family::Rust => &[
            "Arc", "BTreeMap", "Box", "Default", "Err", "From", "HashMap", "Into", "Iterator",
            "None", "Ok", "Option", "Rc", "Result", "Some", "String", "ToString", "Vec", "alloc",
            "core", "drop", "std", "str", "u8", "u16", "u32", "u64", "usize", "i32", "i64", "f64",
            "bool", "char",
        ],
        Family::Go => &[
            "append", "cap", "clear", "close", "copy", "delete", "error", "len", "make", "max",
            "min", "new", "panic", "print", "println", "recover", "string", "int", "byte",
        ],
        Family::Jvm => &[
            "Boolean",
            "Exception",
            "IllegalArgumentException",
            "IllegalStateException",
            "Integer",
            "Long",
            "Math",
            "Object",
            "RuntimeException",
            "String",
            "StringBuilder",
            "System",
            "Thread",
            "println",
            "listOf",
            "mapOf",
            "setOf",
            "require",
            "check",
            "error",
        ],
        Family::C => &[
            "free", "malloc", "memcpy", "memset", "printf", "fprintf", "snprintf", "strlen",
            "strcmp", "std", "assert", "exit", "abort",
        ],
        Family::CSharp => &["Console", "Math", "String", "Task", "Exception", "nameof"],
        Family::Ruby => &[
            "puts",
            "require",
            "require_relative",
            "raise",
            "attr_accessor",
            "attr_reader",
            "lambda",
            "proc",
        ],
        Family::Php => &[
            "array_map",
            "count",
            "strlen",
            "sprintf",
            "isset",
            "in_array",
            "implode",
            "explode",
        ],
        Family::Bash => &[
            "echo", "cd", "printf", "exit", "return", "local", "export", "set", "test", "source",
            "read", "shift", "eval", "trap",
        ],
        Family::Sql => &[],
    };
    all.contains(&name)
}

/// Whether the members of what it holds are its own members.
pub(super) fn is_wrapper(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    matches!(
        last,
        "Box"
            | "Mutex"
            | "RwLock"
            | "RefCell"
            | "OnceLock"
            | "Arc"
            | "Rc"
            | "Ref"
            | "RefMut"
            | "MutexGuard"
            | "RwLockReadGuard"
            | "RwLockWriteGuard"
            | "Cow"
            | "Pin"
            | "unique_ptr"
            | "shared_ptr"
            | "Lazy"
            | "LazyLock"
            | "ManuallyDrop"
    )
}

/// What a method of a container gives.
pub(super) enum Gives {
    /// The same kind of container.
    Same,
    /// What it holds.
    Inner,
    /// What it holds, each with its number.
    Numbered,
}

/// Methods of Rust that give a value of the type they are called on.
pub(super) fn gives_itself(method: &str) -> bool {
    matches!(
        method,
        "clone" | "to_owned" | "as_ref" | "as_mut" | "borrow" | "borrow_mut" | "by_ref"
    )
}

/// What a method of a container gives; in Rust what may be missing is in a container of its own.
pub(super) fn gives(method: &str, family: Option<Family>) -> Option<Gives> {
    match method {
        "iter" | "iter_mut" | "into_iter" | "clone" | "as_ref" | "as_mut" | "as_deref"
        | "filter" | "rev" | "skip" | "take" | "chain" | "cloned" | "copied" | "peekable"
        | "to_vec" | "sort" | "slice" | "reverse" | "concat" | "values" | "or" | "or_else"
        | "map_err" | "context" | "with_context" | "stream" | "toList" | "ok" | "to_owned"
        | "borrow" | "catch" | "finally" | "lock" | "read" | "write" | "borrow_mut" | "ok_or"
        | "ok_or_else" => Some(Gives::Same),
        "unwrap" | "expect" | "unwrap_or" | "unwrap_or_else" | "unwrap_or_default" => {
            Some(Gives::Inner)
        }
        "first" | "last" | "get" | "get_mut" | "next" | "pop" | "find" | "remove" | "nth" => {
            Some(match family {
                Some(Family::Rust) => Gives::Same,
                _ => Gives::Inner,
            })
        }
        "enumerate" => Some(Gives::Numbered),
        "at" | "shift" | "orElse" | "orElseThrow" | "findFirst" | "load" => Some(Gives::Inner),
        _ => None,
    }
}

/// Methods that the types of every standard library have: their names say nothing.
pub(super) fn is_common_method(name: &str) -> bool {
    matches!(
        name,
        "add"
            | "append"
            | "as_str"
            | "as_ref"
            | "at"
            | "clear"
            | "clone"
            | "close"
            | "collect"
            | "contains"
            | "copy"
            | "count"
            | "decode"
            | "drop"
            | "encode"
            | "entries"
            | "eq"
            | "equals"
            | "error"
            | "extend"
            | "filter"
            | "find"
            | "first"
            | "flush"
            | "fmt"
            | "forEach"
            | "format"
            | "from"
            | "get"
            | "has"
            | "hash"
            | "includes"
            | "index"
            | "indexOf"
            | "info"
            | "insert"
            | "into"
            | "is_empty"
            | "items"
            | "iter"
            | "join"
            | "keys"
            | "last"
            | "len"
            | "length"
            | "lock"
            | "log"
            | "lower"
            | "map"
            | "match"
            | "max"
            | "min"
            | "next"
            | "open"
            | "parse"
            | "pop"
            | "push"
            | "put"
            | "read"
            | "remove"
            | "replace"
            | "reverse"
            | "run"
            | "send"
            | "set"
            | "size"
            | "slice"
            | "sort"
            | "split"
            | "start"
            | "startswith"
            | "startsWith"
            | "stop"
            | "strip"
            | "sub"
            | "take"
            | "test"
            | "then"
            | "to_owned"
            | "to_string"
            | "toString"
            | "trim"
            | "unwrap"
            | "update"
            | "upper"
            | "value"
            | "values"
            | "warn"
            | "write"
    )
}
