//! Queries that were written to hurt: each ends within its budget, with an error that says why.

use crate::{ask, run};
use kenning_cypher::{
    Budget, Class, Error, MemoryGraph, NoProcedures, Result, Statement, Stop, Value,
};
use std::cell::Cell;
use std::collections::BTreeMap;

/// A graph in which every node leads to every other.
fn complete(n: u64) -> MemoryGraph {
    let mut graph = MemoryGraph::new();
    let nodes: Vec<_> = (0..n).map(|_| graph.add_node(&["N"], [])).collect();
    for from in &nodes {
        for to in &nodes {
            graph.add_rel(*from, "T", *to, []).unwrap();
        }
    }
    graph
}

/// Runs with a small budget.
fn within(graph: &MemoryGraph, text: &str) -> Result<usize> {
    let mut budget = Budget::new(&|| None);
    budget.rows_max = 10_000;
    budget.steps_max = 300_000;
    budget.memory_bytes_max = 16 << 20;
    budget.value.bytes_max = 4 << 20;
    let answer = run(graph, text, &BTreeMap::new(), &NoProcedures, &budget);
    assert!(budget.memory_bytes_peak() <= 16 << 20, "{text}");
    Ok(answer?.rows.len())
}

#[track_caller]
fn limited(found: Result<usize>, text: &str) -> Error {
    let short: String = text.chars().take(80).collect();
    let error = found.expect_err(&short);
    assert_eq!(error.class(), Class::Limit, "{short}: {error}");
    error
}

#[test]
fn nesting_of_any_kind_is_refused_at_its_limit() {
    let nest = |open: &str, inner: &str, close: &str, n: usize| {
        format!("RETURN {}{inner}{} AS x", open.repeat(n), close.repeat(n))
    };
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{a: ", "1", "}"),
        ("-(", "1", ")"),
        ("NOT (", "true", ")"),
        ("size([", "1", "])"),
        ("[x IN ", "[1]", "]"),
        ("CASE WHEN true THEN ", "1", " END"),
        ("1 + (", "1", ")"),
        ("(true AND ", "true", ")"),
        ("reduce(a = 0, b IN [1] | ", "1", ")"),
        ("EXISTS { RETURN ", "1 AS y", " }"),
        ("EXISTS { MATCH (n) WHERE ", "true", " }"),
        ("[()-->() | ", "1", "]"),
        ("[(", "1", ")][0]"),
        ("({a: ", "1", "}).a"),
    ] {
        let text = nest(open, inner, close, 10_000);
        let error = limited(within(&MemoryGraph::new(), &text), &text);
        assert!(
            ["QueryTooDeep", "QueryTooLong"].contains(&error.detail()),
            "{open}: {error}"
        );
        // Half of what is allowed runs.
        let text = nest(open, inner, close, 12);
        assert!(ask(&MemoryGraph::new(), &text).is_ok(), "{text}");
    }
}

#[test]
fn the_deepest_that_is_allowed_runs_on_a_small_stack() {
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("abs(-(", "1", "))"),
        ("EXISTS { MATCH (n) WHERE ", "true", " }"),
        ("CASE WHEN true THEN ", "1", " END"),
        ("[x IN [1] | ", "1", "]"),
    ] {
        // Some are refused by depth, none may overflow: the threads of tests have 2 MiB.
        for n in [30, 50, 60, 90, 98, 99, 100, 101] {
            let text = format!("RETURN {}{inner}{} AS x", open.repeat(n), close.repeat(n));
            let _ = within(&complete(2), &text);
        }
    }
}

#[test]
fn long_chains_are_flat_or_refused() {
    let graph = MemoryGraph::new();
    let sum = format!("RETURN {} AS x", ["1"; 5000].join(" + "));
    assert_eq!(crate::lines(&graph, &sum), ["5000"]);
    let and = format!("RETURN {} AS x", ["true"; 5000].join(" AND "));
    assert_eq!(crate::lines(&graph, &and), ["true"]);
    let not = format!("RETURN {} true AS x", "NOT ".repeat(10_001));
    assert_eq!(crate::lines(&graph, &not), ["false"]);
    let minus = format!("RETURN {}1 AS x", "- ".repeat(10_000));
    assert_eq!(crate::lines(&graph, &minus), ["1"]);
    for text in [
        format!("RETURN {{}}{} AS x", ".a".repeat(10_000)),
        format!("RETURN []{} AS x", "[0]".repeat(10_000)),
        format!("RETURN 1{} AS x", " IS NULL".repeat(10_000)),
        format!("MATCH (n) RETURN n{} AS x", ":A".repeat(10_000)),
        format!("MATCH (n){} RETURN 1", "--()".repeat(10_000)),
        format!("MATCH (n) {} RETURN 1", "MATCH (m) ".repeat(1000)),
        ["RETURN 1 AS x"; 10_000].join(" UNION "),
        format!("RETURN '{}' AS x", "x".repeat(300_000)),
    ] {
        let found = within(&graph, &text);
        let short: String = text.chars().take(60).collect();
        if let Err(error) = found {
            assert!(
                matches!(error.class(), Class::Limit | Class::Syntax),
                "{short}: {error}"
            );
        }
    }
}

#[test]
fn long_patterns_and_many_clauses_are_refused_or_run_on_a_small_stack() {
    let graph = complete(2);
    let many = |part: &str, n: usize, with: &str| vec![part; n].join(with);
    for text in [
        format!("MATCH (n {{{}}}) RETURN n", many("a: 1", 30_000, ", ")),
        format!("MATCH (n{}) RETURN n", ":N".repeat(60_000)),
        format!(
            "MATCH (n) WHERE {} RETURN n",
            many("n.a = 1", 20_000, " AND ")
        ),
        format!("MATCH {} RETURN 1", many("(:N)", 40_000, ", ")),
        format!("MATCH {} RETURN 1", many("()--()", 30_000, ", ")),
        format!(
            "RETURN {}",
            (0..20_000)
                .map(|it| format!("1 AS a{it}"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        format!(
            "{} RETURN 1",
            format!("MATCH (){} ", "--()".repeat(90)).repeat(90)
        ),
    ] {
        limited(within(&graph, &text), &text);
    }
    for text in [
        format!("MATCH (){} RETURN count(*)", "-->()".repeat(99)),
        format!(
            "MATCH (n) {} RETURN n",
            "OPTIONAL MATCH (n)-->({x: 1}) ".repeat(98)
        ),
        format!(
            "WITH 1 AS x {} RETURN x",
            "WITH x + 1 AS x ORDER BY x LIMIT 1 ".repeat(98)
        ),
        format!(
            "WITH [1] AS x {} RETURN x",
            "UNWIND x AS y WITH collect(DISTINCT y) AS x ".repeat(49)
        ),
        format!(
            "MATCH (n) WHERE {} RETURN n",
            many("n.a IS NULL", 900, " AND ")
        ),
    ] {
        let found = within(&graph, &text);
        let short: String = text.chars().take(80).collect();
        let fine = found
            .as_ref()
            .map_or_else(|it| it.class() == Class::Limit, |_| true);
        assert!(fine, "{short}: {found:?}");
    }
}

/// Other limits would end these queries as well, but later: the limit of a value has to be what stops them.
#[test]
fn what_doubles_meets_the_limit_of_a_value() {
    let graph = MemoryGraph::new();
    let twice = |start: &str, step: &str| {
        format!(
            "WITH {start} AS a {} RETURN a",
            format!("WITH {step} AS a ").repeat(60)
        )
    };
    for (text, detail) in [
        (twice("'x'", "a + a"), "ValueTooLarge"),
        (twice("[1]", "a + a"), "ValueTooLarge"),
        (twice("[1]", "[a, a]"), "ValueTooLarge"),
        (twice("{a: 1}", "{a: a, b: a}"), "ValueTooLarge"),
        (twice("'x'", "replace(a, 'x', 'xx')"), "ValueTooLarge"),
        (
            "RETURN reduce(a = 'x', i IN range(1, 60) | a + a)".to_owned(),
            "ValueTooLarge",
        ),
        (
            "RETURN reduce(a = [1], i IN range(1, 60) | a + a)".to_owned(),
            "ValueTooLarge",
        ),
        (
            "RETURN reduce(a = [1], i IN range(1, 60) | [a, a])".to_owned(),
            "ValueTooLarge",
        ),
        (
            "RETURN reduce(a = [], i IN range(1, 100000) | [a])".to_owned(),
            "ValueTooDeep",
        ),
        (
            "RETURN reduce(a = {}, i IN range(1, 100000) | {a: a})".to_owned(),
            "ValueTooDeep",
        ),
    ] {
        let error = limited(within(&graph, &text), &text);
        assert_eq!(error.detail(), detail, "{text}: {error}");
    }
}

/// A query is asked to stop every few hundred steps: what takes long must be many.
#[test]
fn work_with_a_large_value_takes_steps_by_its_size() {
    const BYTES: usize = 1 << 20;
    const TIMES: u64 = 20;
    let graph = MemoryGraph::new();
    let text = Value::str("ab".repeat(BYTES / 2));
    let list = Value::list(vec![Value::Int(1); BYTES / 16]).unwrap();
    let parameters = BTreeMap::from([("t".to_owned(), text), ("l".to_owned(), list)]);
    for work in [
        "count(toUpper($t))",
        "count(toLower($t))",
        "count(size($t))",
        "count(char_length($t))",
        "count(reverse($t))",
        "count(left($t, 1000000))",
        "count(right($t, 1))",
        "count(substring($t, 1000000))",
        "count(trim($t))",
        "count(replace($t, 'c', 'd'))",
        "count(split($t, 'c'))",
        "count(split($t, ['c', 'd']))",
        "count(toInteger($t))",
        "count(toFloat($t))",
        "count($t =~ 'c')",
        "count($t CONTAINS 'c')",
        "count($t + 'c')",
        "count($t = $t + 'c')",
        "count($t IN [$t + 'c'])",
        "count(DISTINCT $t)",
        "min($t)",
        "$t, count(*)",
        "DISTINCT $t",
        "$t ORDER BY $t LIMIT 1",
        "count(tail($l))",
        "count(reverse($l))",
        "count($l + 1)",
        "count($l[1..])",
        "count(DISTINCT $l)",
        "count($l IN [$l])",
    ] {
        let query = format!("UNWIND range(1, {TIMES}) AS i RETURN {work}");
        let mut budget = Budget::new(&|| None);
        budget.memory_bytes_max = 1 << 30;
        let found = run(&graph, &query, &parameters, &NoProcedures, &budget);
        // Not every text is a number.
        let _ = found;
        let least = TIMES * (BYTES as u64 >> 8);
        assert!(
            budget.steps() >= least,
            "{work}: {} steps of {least}",
            budget.steps()
        );
    }
}

/// Each part of a text looked for all delimiters in all of the rest.
#[test]
fn a_text_is_split_at_many_delimiters_in_one_pass() {
    let graph = MemoryGraph::new();
    let text = Value::str("a".repeat(1_000_000));
    let parameters = BTreeMap::from([("t".to_owned(), text)]);
    let query = "RETURN size(split($t, ['a', 'b', 'aab', '', 'ba']))";
    let budget = Budget::new(&|| None);
    let found = run(&graph, query, &parameters, &NoProcedures, &budget).unwrap();
    assert_eq!(found.rows.len(), 1);
    assert_eq!(
        crate::lines(&graph, "RETURN split('a-bb, c,-d', [', ', ',', '-', ',-'])"),
        ["['a', 'bb', ' c', '', 'd']"]
    );
}

#[test]
fn huge_ranges_and_products_meet_a_limit() {
    let graph = complete(30);
    for text in [
        "RETURN range(1, 9223372036854775807)",
        "RETURN range(-9223372036854775808, 9223372036854775807)",
        "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN a",
        "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN count(*)",
        "MATCH (a), (b), (c), (d), (e) RETURN count(*)",
        "MATCH (a), (b), (c), (d), (e) RETURN a",
        "MATCH (a)-[*]-(b) RETURN count(*)",
        "MATCH p = (a)-[*1..30]->(b) RETURN p",
        "MATCH (a) WHERE (a)-[*]->({missing: 1}) RETURN a",
        "MATCH (a) RETURN [(a)-[*]->(b) | b]",
        "MATCH (a)--(b)--(c)--(d) RETURN DISTINCT a, b, c, d",
        "MATCH (a)--(b)--(c)--(d) RETURN collect([a, b, c, d])",
        "MATCH (a)--(b)--(c)--(d) WITH a, b, c, d ORDER BY a RETURN count(*)",
        "UNWIND range(1, 90000) AS x WITH collect(x) AS l UNWIND l AS y WITH l, y WHERE y IN l RETURN y",
        "RETURN [x IN range(1, 90000) | [y IN range(1, 90000) | x * y]]",
        "RETURN none(x IN range(1, 90000) WHERE any(y IN range(1, 90000) WHERE x + y < 0))",
        "UNWIND range(1, 50000) AS x RETURN x",
    ] {
        limited(within(&graph, text), text);
    }
}

#[test]
fn the_caller_can_end_a_query_at_any_time() {
    let graph = complete(40);
    for (stop, class) in [
        (Stop::TimedOut, Class::Limit),
        (Stop::Cancelled, Class::Cancelled),
    ] {
        for text in [
            "MATCH (a)-[*]-(b) RETURN count(*)",
            "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN count(*)",
            "RETURN reduce(a = 0, x IN range(1, 1000000) | a + reduce(b = 0, y IN range(1, 1000) | b + y))",
            "MATCH (a), (b), (c), (d), (e), (f) WHERE id(a) + id(b) + id(c) + id(d) + id(e) + id(f) < 0 RETURN count(*)",
        ] {
            let asked = Cell::new(0u32);
            let ends = || {
                asked.set(asked.get() + 1);
                (asked.get() > 20).then_some(stop)
            };
            let budget = Budget::new(&ends);
            let error = run(&graph, text, &BTreeMap::new(), &NoProcedures, &budget).unwrap_err();
            assert_eq!(error.class(), class, "{text}: {error}");
            // It is not asked again after it said so, and not much work lies between two questions.
            assert_eq!(asked.get(), 21, "{text}");
            assert!(budget.steps() < 1_000_000, "{text}: {}", budget.steps());
        }
    }
}

#[test]
fn shortest_paths_in_a_dense_graph_end() {
    let graph = complete(60);
    let all =
        "MATCH (a), (b) WHERE id(a) = 0 AND id(b) = 1 RETURN allShortestPaths((a)-[*]-(b)) AS p";
    assert!(within(&graph, all).is_ok());
    let every = "MATCH (a), (b), p = allShortestPaths((a)-[*]-(b)) RETURN count(p)";
    limited(within(&complete(200), every), every);
}

#[test]
fn any_text_is_read_or_refused_but_never_more() {
    let pieces = [
        "MATCH",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "-",
        ">",
        "<",
        ":",
        "|",
        "..",
        "*",
        "n",
        "RETURN",
        "WHERE",
        "'",
        "\"",
        "`",
        "$",
        "1",
        "1.5",
        "0x",
        "\\u12",
        "//",
        "/*",
        "*/",
        "AS",
        "x",
        ",",
        "=",
        "EXISTS",
        "CASE",
        "WHEN",
        "END",
        "NOT",
        "IN",
        "é",
        "\u{0}",
        "😀",
        "shortestPath",
        "UNION",
        "all",
        "reduce",
    ];
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for _ in 0..4000 {
        let mut text = String::new();
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let n = (state >> 59) as usize + 1;
        for _ in 0..n {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let place = (state >> 33) as usize % pieces.len();
            text.push_str(pieces[place]);
            if state >> 63 == 0 {
                text.push(' ');
            }
        }
        let _ = Statement::parse(&text);
        let _ = Statement::parse(&format!("MATCH (n) WHERE {text} RETURN n"));
    }
}
