//! Where the answers of `code_query` differ on purpose: a graph with more in it, named columns and JSON values.

use super::differences::{Instead, Row};
use serde_json::Value;

fn rows(answer: &Value) -> impl Iterator<Item = &Value> {
    answer["results"].as_array().into_iter().flatten()
}

/// Whether every label that was recorded is there, on as many nodes at least.
fn has_labels(theirs: &Value, ours: &Value) -> bool {
    rows(theirs).all(|row| {
        let label = row["c1"].as_str().unwrap_or_default();
        let label = label.trim_matches(['[', ']', '"']);
        let n: u64 = row["c2"].as_str().unwrap_or_default().parse().unwrap();
        let has = |it: &&Value| it["labels(n)"].as_array().unwrap().contains(&label.into());
        let found = rows(ours).filter(has);
        found.filter_map(|it| it["count(n)"].as_u64()).sum::<u64>() >= n
    })
}

fn is_told(answer: &Value) -> bool {
    answer["detail"]
        .as_str()
        .is_some_and(|it| it.contains("line 1"))
}

pub(super) const ROWS: &[Row] = &[
    Row {
        lines: &[84, 98],
        path: "results*|count|columns",
        theirs: "columns are `c1`, `c2`, values texts; only code is in the graph",
        ours: "columns have their names and values are JSON; every kind of node is in the graph, methods and calls out of the repository too",
        note: "6.14",
        instead: Instead::Holds(has_labels),
    },
    Row {
        lines: &[85],
        path: "results*|columns",
        theirs: "texts in quotes; the colon belongs to the signature",
        ours: "named columns; a signature ends before it",
        note: "6.14",
        instead: Instead::Holds(|_, ours| {
            let row = &ours["results"][0];
            row["f.file_path"] == "src/a.py" && row["f.signature"] == "def helper(n)"
        }),
    },
    Row {
        lines: &[86],
        path: "results*|columns",
        theirs: "`c1`, `c2` with texts in quotes",
        ours: "named columns; the same names in the same order",
        note: "6.14",
        instead: Instead::Holds(|theirs, ours| {
            let quoted = |it: &Value| format!("\"{}\"", it["f.name"].as_str().unwrap());
            let ours: Vec<String> = rows(ours).map(quoted).collect();
            let theirs: Vec<&str> = rows(theirs).filter_map(|it| it["c1"].as_str()).collect();
            ours == theirs
        }),
    },
    Row {
        lines: &[87],
        path: "results*|count|columns",
        theirs: "a file contains functions, classes and interfaces",
        ours: "methods and imports too",
        note: "1.11",
        instead: Instead::Holds(|theirs, ours| {
            rows(theirs).all(|row| {
                let text = |name: &str| row[name].as_str().unwrap().trim_matches('"').to_owned();
                let is_same = |it: &Value| {
                    it["f.name"] == text("c1")
                        && it["type(r)"] == "CONTAINS"
                        && it["x.name"] == text("c3")
                };
                rows(ours).any(is_same)
            })
        }),
    },
    Row {
        lines: &[88],
        path: "results*|count|columns",
        theirs: "a call goes to the first function of its name; calls out of the repository are lost",
        ours: "the same call, and those out of the repository, to nodes of their own",
        note: "1.11",
        instead: Instead::Holds(|_, ours| {
            let is_same = |it: &Value| it["a.name"] == "hello" && it["b.name"] == "helper";
            rows(ours).any(is_same)
        }),
    },
    Row {
        lines: &[89],
        path: "results*|columns",
        theirs: "a node is a text that ends in `::vertex`",
        ours: "a JSON object with the same properties and more",
        note: "6.14",
        instead: Instead::Holds(|_, ours| {
            let node = &ours["results"][0]["f"];
            node["labels"][0] == "Function" && node["properties"]["name"] == "helper"
        }),
    },
    Row {
        lines: &[90],
        path: "results*|columns",
        theirs: "a path is a text that ends in `::path`",
        ours: "a JSON object with its nodes and relationships",
        note: "6.14",
        instead: Instead::Holds(|_, ours| {
            let nodes = ours["results"][0]["p"]["nodes"].as_array();
            nodes.is_some_and(|it| it.len() == 2)
        }),
    },
    Row {
        lines: &[91, 97],
        path: "status",
        theirs: "500 for a query that cannot be read",
        ours: "400, with the line and column",
        note: "6.14",
        instead: Instead::Status(400, is_told),
    },
    Row {
        lines: &[92],
        path: "columns|warnings",
        theirs: "an unknown label finds nothing, without a word",
        ours: "the names of the columns, and which labels there are",
        note: "6.14",
        instead: Instead::Holds(|_, ours| {
            let said = ours["warnings"][0].as_str();
            ours["columns"] == serde_json::json!(["n"])
                && said.is_some_and(|it| it.contains("`Nope`"))
        }),
    },
    Row {
        lines: &[93, 94],
        path: "status",
        theirs: "a query can write, and is answered",
        ours: "400: queries only read",
        note: "6.14",
        instead: Instead::Status(400, is_told),
    },
    Row {
        lines: &[95],
        path: "status",
        theirs: "500: commas in a list count as columns",
        ours: "every value",
        note: "1.11",
        instead: Instead::Status(200, |ours| {
            let row = &ours["results"][0];
            row["1"] == 1 && row["[1,2]"][1] == 2 && row["{a: 1}"]["a"] == 1
        }),
    },
    Row {
        lines: &[96],
        path: "results*|columns",
        theirs: "`c1`, `c2` in place of the names that were asked for",
        ours: "the names that were asked for",
        note: "6.14",
        instead: Instead::Holds(|_, ours| {
            let row = &ours["results"][0];
            ours["columns"] == serde_json::json!(["name", "ls"]) && row.get("ls").is_some()
        }),
    },
];

/// Lines whose values are compared in the first server's own form as well.
pub(super) const AGTYPE: &[usize] = &[85, 86, 89, 90];

/// What is wrong with an answer in that form.
pub(super) fn agtype_faults(n: usize, theirs: &Value, ours: &Value) -> Vec<String> {
    let text = |of: &Value, name: &str| {
        let text = of["results"][0][name].as_str().unwrap_or_default();
        text.to_owned()
    };
    let is_same = match n {
        // The colon belongs to their signature and not to ours.
        85 => {
            let [signature, shorter] = [theirs, ours].map(|it| text(it, "c2"));
            text(theirs, "c1") == text(ours, "c1") && signature.replace(":\"", "\"") == shorter
        }
        86 => theirs["results"] == ours["results"] && theirs["count"] == ours["count"],
        89 => is_same_vertex(&text(theirs, "c1"), &text(ours, "c1")),
        // Which path is the first is not said by the query.
        90 => [theirs, ours].iter().all(|it| is_path(&text(it, "c1"))),
        _ => false,
    };
    match is_same {
        true => Vec::new(),
        false => vec![format!("as agtype: {ours}, not {theirs}")],
    }
}

fn vertex(text: &str) -> Option<Value> {
    serde_json::from_str(text.strip_suffix("::vertex")?).ok()
}

/// Properties that mean the same here and there. Others are of their extractor, or in another form: parameters are
/// a list, a signature has no colon, what is empty is left out. The number of a vertex is the id of a node here, a
/// text, and the kind of a symbol is in small letters.
const SAME: &[&str] = &[
    "name",
    "repo",
    "language",
    "file_path",
    "line_start",
    "line_end",
];

fn is_same_vertex(theirs: &str, ours: &str) -> bool {
    let (Some(theirs), Some(ours)) = (vertex(theirs), vertex(ours)) else {
        return false;
    };
    let is_same = |it: &&str| theirs["properties"][*it] == ours["properties"][*it];
    let kind = |of: &Value| {
        let kind = of["properties"]["entity_type"].as_str();
        kind.unwrap_or_default().to_lowercase()
    };
    theirs["label"] == ours["label"]
        && kind(&theirs) == kind(&ours)
        && ours["id"].is_string()
        && SAME.iter().filter(|it| !is_same(it)).count() == 0
}

/// A file, the relationship to its module, and the module.
fn is_path(text: &str) -> bool {
    let parts = [
        "\"label\": \"File\"",
        "::vertex",
        "\"label\": \"BELONGS_TO\"",
        "::edge",
    ];
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.contains("\"label\": \"Module\"") && text.starts_with('[') && text.ends_with("::path")
}
