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
