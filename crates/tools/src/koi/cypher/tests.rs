//! What queries answer, and how they are refused.

use super::*;
use serde_json::json;

fn answered(text: &str) -> Result<Answer, Fault> {
    answer(text, &|| Ok(())).map_err(|stop| match stop {
        Stop::Fault(fault) => fault,
        Stop::Ended(error) => panic!("nothing ended: {error}"),
    })
}

fn check(text: &str, expected: Value) {
    let found = match answered(text) {
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
            "RETURN null IN [] AS x, 1 IN [] AS y, null IN [1] AS z, 1 IN [null] AS w",
            json!({ "x": false, "y": false, "z": null, "w": null }),
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
        let Fault(why) = answered(text).unwrap_err();
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
    check(
        &deep,
        "the query is nested too deeply: at most 32 brackets in one another".into(),
    );
}

/// On a stack as small as a thread of a server may have.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn long_chains_are_computed_and_overflow_no_stack() {
    on_a_small_stack(|| {
        let n = 20_000;
        for (text, expected) in [
            (format!("RETURN 1{} AS x", "*1".repeat(n)), json!(1)),
            (format!("RETURN 0{} AS x", "+1".repeat(n)), json!(n)),
            (format!("RETURN 1{} AS x", "^1".repeat(n)), json!(1.0)),
            (format!("RETURN {}true AS x", "NOT ".repeat(n)), json!(true)),
            (
                format!("RETURN {}true AS x", "NOT ".repeat(n + 1)),
                json!(false),
            ),
            (format!("RETURN {}5 AS x", "NOT ".repeat(n)), json!(null)),
            (format!("RETURN {}1 AS x", "- ".repeat(n + 1)), json!(-1)),
            (
                format!("RETURN true{} AS x", " AND true".repeat(n / 2)),
                json!(true),
            ),
            (
                format!("RETURN true{} AS x", " XOR true".repeat(n / 2)),
                json!(true),
            ),
            (
                format!("RETURN 1{} AS x", " IS NULL".repeat(n / 2)),
                json!(false),
            ),
            (
                format!("WITH {{b: 1}} AS a RETURN a{} AS x", ".b".repeat(n)),
                json!(null),
            ),
            (
                format!("WITH [1] AS a RETURN a{} AS x", "[0]".repeat(n)),
                json!(null),
            ),
            (
                format!("WITH [1] AS a RETURN a{} AS x", "[0..]".repeat(n / 2)),
                json!([1]),
            ),
        ] {
            let found = answered(&text).unwrap_or_else(|it| panic!("{}: {it:?}", &text[..40]));
            assert_eq!(found.rows[0]["x"], expected, "{}", &text[..40]);
        }
    });
}

#[test]
fn brackets_in_brackets_are_refused_before_the_stack_ends() {
    on_a_small_stack(|| {
        let n = 10_000;
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{a: ", "}"),
            ("[x IN ", "]"),
            ("[x IN [1] WHERE ", "]"),
            ("all(x IN ", ")"),
            ("size(", ")"),
            ("exists((", "))"),
            ("CASE WHEN ", " THEN 1 END"),
            ("[1][", "]"),
            ("coalesce(", ")"),
            ("(a {b: ", "})-->()"),
            ("-(", ")"),
            ("NOT (", ")"),
        ] {
            let n = n.min(90_000 / (open.len() + close.len()));
            let text = format!("RETURN {}1{} AS x", open.repeat(n), close.repeat(n));
            let Fault(why) = answered(&text).unwrap_err();
            assert!(
                why.starts_with("the query is nested too deeply"),
                "{open}: {why}"
            );
            // What is below the limit is read, evaluated and dropped.
            let text = format!("RETURN {}1{} AS x", open.repeat(30), close.repeat(30));
            let _ = answered(&text);
        }
    });
}

#[test]
fn values_do_not_grow_without_end() {
    on_a_small_stack(|| {
        for (text, why) in [
            (
                format!(
                    "WITH 'xxxxxxxx' AS a {}RETURN a",
                    "WITH a+a AS a ".repeat(60)
                ),
                "the query makes more than 32 MiB of values",
            ),
            (
                format!("WITH [1,2,3] AS a {}RETURN a", "WITH a+a AS a ".repeat(60)),
                "a list has more than 10000 items",
            ),
            (
                format!(
                    "WITH [1,2] AS a {}RETURN a",
                    "WITH [a,a,a,a] AS a ".repeat(60)
                ),
                "the query makes more than 32 MiB of values",
            ),
            (
                format!("WITH 1 AS a {}RETURN a", "WITH [a] AS a ".repeat(6_000)),
                "a value is nested too deeply: at most 64 lists and maps",
            ),
            (
                format!("WITH 1 AS a {}RETURN a", "WITH {a: a} AS a ".repeat(5_000)),
                "a value is nested too deeply: at most 64 lists and maps",
            ),
            (
                format!(
                    "WITH 1 AS a {}RETURN a",
                    "WITH collect(a) AS a ".repeat(4_000)
                ),
                "a value is nested too deeply: at most 64 lists and maps",
            ),
            (
                format!(
                    "WITH [1,2,3,4,5,6,7,8,9,10] AS a RETURN {}1{} AS x",
                    "[x IN a | ".repeat(20),
                    "]".repeat(20)
                ),
                "the query makes more than 32 MiB of values",
            ),
            (
                format!("RETURN {}1", "1,".repeat(1_200)),
                "the query has more than 1000 variables or columns",
            ),
        ] {
            let Fault(found) = answered(&text).unwrap_err();
            assert_eq!(found, why, "{}", &text[..50]);
        }
    });
}

#[test]
fn a_query_ends_when_its_call_does() {
    let n_looks = std::cell::Cell::new(0);
    let check = || {
        n_looks.set(n_looks.get() + 1);
        if n_looks.get() < 3 {
            return Ok(());
        }
        Err(Error::timeout("the deadline of the call passed"))
    };
    let text = format!(
        "WITH 'xxxxxxxx' AS a {}RETURN a",
        "WITH a+a AS a ".repeat(60)
    );
    let stop = answer(&text, &check).unwrap_err();
    assert!(
        matches!(&stop, Stop::Ended(error) if error.code == kenning_core::Code::Timeout),
        "{stop:?}"
    );
}

#[test]
fn values_of_all_kinds_have_one_order() {
    let mixed = "UNWIND [3, 'b', null, 1.5, true, 'a', [1], 9007199254740993, 9007199254740992.0, \
                 9007199254740992, false, 2] AS x RETURN x ORDER BY x";
    let found = answered(mixed).unwrap();
    let found: Vec<&Value> = found.rows.iter().map(|it| &it["x"]).collect();
    assert_eq!(
        json!(found),
        json!([
            [1],
            "a",
            "b",
            false,
            true,
            1.5,
            2,
            3,
            9007199254740992.0,
            9007199254740992_i64,
            9007199254740993_i64,
            null
        ])
    );
    let many = format!(
        "UNWIND [{}'z'] AS x RETURN x ORDER BY x",
        "1, 'a', 2, null, ".repeat(200)
    );
    assert_eq!(answered(&many).unwrap().rows.len(), 801);
    check(
        "UNWIND [{a: 1, b: 2}, {b: 2, a: 1}, 1, 1, '1'] AS x RETURN DISTINCT x",
        json!({ "columns": ["x"], "rows": [{ "x": { "a": 1, "b": 2 } }, { "x": 1 }, { "x": "1" }] }),
    );
}
