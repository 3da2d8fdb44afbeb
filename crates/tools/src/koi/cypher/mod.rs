//! Cypher over a graph that has nothing in it yet.
//!
//! A query is read to its end and checked as if there were a graph: words, patterns, expressions, names.
//! Then it is answered by the rules of the language: a `MATCH` finds no rows, an `OPTIONAL MATCH` finds one
//! of nulls, what needs no graph is computed. Nothing is guessed: what is not understood is refused, with
//! the place. The code graph will answer in place of [`answer`]; what is read here stays the same.

mod eval;
mod parse;
mod token;

use serde_json::{Map, Value};

/// Why a query is refused, in one sentence with the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

/// What a query answers.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    /// The names of the columns, in order.
    pub(super) columns: Vec<String>,
    /// One object a row, with these names.
    pub(super) rows: Vec<Map<String, Value>>,
}

/// Answers a query from an empty graph.
pub(super) fn answer(text: &str) -> Result<Answer, Fault> {
    let tokens = token::tokens(text)?;
    let query = parse::query(text, &tokens)?;
    eval::run(&query)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, expected: Value) {
        let found = match answer(text) {
            Ok(it) => json!({ "columns": it.columns, "rows": it.rows }),
            Err(Fault(why)) => why.into(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn an_empty_graph_has_no_rows_but_columns() {
        for (text, columns) in [
            (
                "MATCH (n) RETURN labels(n), count(n)",
                json!(["labels(n)", "count(n)"]),
            ),
            (
                "MATCH (f:Function) WHERE f.name = 'helper' RETURN f.file_path, f.signature",
                json!(["f.file_path", "f.signature"]),
            ),
            (
                "match (f:Function) return f.name order by f.name limit 3",
                json!(["f.name"]),
            ),
            (
                "MATCH (f:File)-[r:CONTAINS]->(x) RETURN f.name, type(r), x.name ORDER BY x.name",
                json!(["f.name", "type(r)", "x.name"]),
            ),
            (
                "MATCH (a)-[:CALLS*1..3]->(b) RETURN a.name, b.name",
                json!(["a.name", "b.name"]),
            ),
            (
                "MATCH p=(a:File)-[:BELONGS_TO]->(b:Module) RETURN p LIMIT 1",
                json!(["p"]),
            ),
            (
                "MATCH (n) RETURN n.name AS name, n.line_start AS ls LIMIT 1",
                json!(["name", "ls"]),
            ),
            ("MATCH (n:Nope) RETURN n", json!(["n"])),
            (
                "MATCH (n)--(m), (m)<-[:X|Y {a: 1}]-(o) RETURN *",
                json!(["m", "n", "o"]),
            ),
            (
                "MATCH (a) WHERE NOT (a)-[:CALLS]->() AND a.x STARTS WITH 'b' RETURN DISTINCT a.`odd name`;",
                json!(["a.`odd name`"]),
            ),
            (
                "MATCH (a) WITH a.name AS name, count(*) AS n WHERE n > 1 RETURN name, n",
                json!(["name", "n"]),
            ),
            (
                "MATCH (a) // every one\n RETURN /* its */ a.name",
                json!(["a.name"]),
            ),
        ] {
            check(text, json!({ "columns": columns, "rows": [] }));
        }
    }

    #[test]
    fn what_needs_no_graph_is_computed() {
        for (text, row) in [
            ("MATCH (n) RETURN count(n)", json!({ "count(n)": 0 })),
            (
                "MATCH (n) RETURN count(*) AS n, collect(n.name) AS all",
                json!({ "n": 0, "all": [] }),
            ),
            (
                "MATCH (n) RETURN count(n) + 1 AS more, max(n.x) AS most",
                json!({ "more": 1, "most": null }),
            ),
            (
                "RETURN 1, 'a', 2.5, true, null, [1,2], {a: 1}",
                json!({ "1": 1, "'a'": "a", "2.5": 2.5, "true": true, "null": null, "[1,2]": [1, 2],
                    "{a: 1}": { "a": 1 } }),
            ),
            (
                "RETURN 1 + 2 * 3 AS x, 7 / 2 AS y, 7 % 4 AS z, -(2) AS w",
                json!({ "x": 7, "y": 3, "z": 3, "w": -2 }),
            ),
            (
                "RETURN 'a' + 'b' AS x, 1 < 2 AND NOT false AS y, null = 1 AS z",
                json!({ "x": "ab", "y": true, "z": null }),
            ),
            (
                "OPTIONAL MATCH (n) RETURN n, n.name AS name",
                json!({ "n": null, "name": null }),
            ),
            (
                "UNWIND [1, 2, 2] AS x RETURN count(x) AS n, sum(x) AS s, collect(DISTINCT x) AS c",
                json!({ "n": 3, "s": 5, "c": [1, 2] }),
            ),
            (
                "WITH [1, 2, 3] AS xs RETURN size(xs) AS n, xs[0] AS a, [x IN xs WHERE x > 1 | x * 2] AS b",
                json!({ "n": 3, "a": 1, "b": [4, 6] }),
            ),
            (
                "RETURN CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END AS x, 2 IN [1, 2] AS y, coalesce(null, 3) AS z",
                json!({ "x": "b", "y": true, "z": 3 }),
            ),
            (
                "RETURN 'it\\'s' AS x, \"q\" AS y, 0x10 AS z, 1e3 AS w",
                json!({ "x": "it's", "y": "q", "z": 16, "w": 1000.0 }),
            ),
        ] {
            let columns: Vec<&String> = row.as_object().unwrap().keys().collect();
            check(text, json!({ "columns": columns, "rows": [row] }));
        }
        check(
            "UNWIND [3, 1, 2] AS x RETURN x ORDER BY x DESC SKIP 1 LIMIT 1",
            json!({ "columns": ["x"], "rows": [{ "x": 2 }] }),
        );
    }

    #[test]
    fn queries_only_read() {
        for (word, text) in [
            ("CREATE", "CREATE (n:Evil {name:'x'}) RETURN n.name"),
            ("DELETE", "MATCH (n:Evil) DELETE n"),
            ("DETACH", "MATCH (n) DETACH DELETE n"),
            ("MERGE", "MERGE (n)"),
            ("SET", "MATCH (n) SET n.x = 1"),
            ("REMOVE", "MATCH (n) REMOVE n.x"),
            ("DROP", "DROP INDEX x"),
            ("LOAD", "LOAD CSV FROM 'file:///etc/passwd' AS x RETURN x"),
            ("CALL", "CALL db.labels()"),
            ("FOREACH", "FOREACH (x IN [1] | CREATE (n))"),
            ("create", "match (n) create (m)"),
        ] {
            let Fault(why) = answer(text).unwrap_err();
            assert!(
                why.contains(&format!("`{word}`")) && why.contains("line 1"),
                "{text}: {why}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, why) in [
            (
                "BAD CYPHER",
                "syntax error at or near \"BAD\" (line 1, column 1)",
            ),
            ("", "syntax error at end of input"),
            ("  ", "syntax error at end of input"),
            ("MATCH (n)", "syntax error at end of input"),
            (
                "MATCH (n RETURN n",
                "syntax error at or near \"RETURN\" (line 1, column 10)",
            ),
            ("MATCH (n)\nRETURN n.", "syntax error at end of input"),
            (
                "MATCH (n)\nRETURN ,",
                "syntax error at or near \",\" (line 2, column 8)",
            ),
            (
                "MATCH (n) RETURN n n",
                "syntax error at or near \"n\" (line 1, column 20)",
            ),
            (
                "MATCH (n) RETURN 'open",
                "a text is not closed (line 1, column 18)",
            ),
            ("RETURN x", "variable `x` is not defined (line 1, column 8)"),
            (
                "MATCH (n) WITH n.x AS y RETURN n",
                "variable `n` is not defined (line 1, column 32)",
            ),
            ("RETURN 1 AS a, 2 AS a", "two columns are called `a`"),
            (
                "RETURN $x",
                "there is no way to give the parameter `$x` a value (line 1, column 8)",
            ),
            (
                "RETURN frob(1)",
                "the function `frob` is not known (line 1, column 8)",
            ),
            (
                "MATCH (n) RETURN n LIMIT -1",
                "`LIMIT` takes a whole number that is not negative",
            ),
            (
                "RETURN 1 UNION RETURN 2",
                "`UNION` is not understood (line 1, column 10)",
            ),
            (
                "RETURN \u{1}",
                "syntax error at or near \"\u{1}\" (line 1, column 8)",
            ),
            (
                "RETURN count(count(1))",
                "an aggregate stands in another (line 1, column 14)",
            ),
            (
                "MATCH (n) WHERE count(n) > 1 RETURN n",
                "an aggregate stands where there are no groups (line 1, column 17)",
            ),
        ] {
            check(text, why.into());
        }
        let deep = format!("RETURN {}1{}", "(".repeat(5_000), ")".repeat(5_000));
        check(&deep, "the query is nested too deeply".into());
    }
}
