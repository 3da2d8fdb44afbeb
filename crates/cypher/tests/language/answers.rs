//! What queries answer.

use crate::{ask, lines, people, run, value};
use kenning_cypher::{Budget, MemoryGraph, NoProcedures, Procedures, Result, Signature, Value};
use std::collections::BTreeMap;

#[test]
fn logic_has_three_values() {
    for (expression, expected) in [
        ("true AND null", "null"),
        ("false AND null", "false"),
        ("true OR null", "true"),
        ("false OR null", "null"),
        ("true XOR null", "null"),
        ("NOT null", "null"),
        ("null = null", "null"),
        ("null IS NULL", "true"),
        ("1 IN [2, null]", "null"),
        ("1 IN [1, null]", "true"),
        ("[1, null] = [1, 2]", "null"),
        ("[1, null] = [2, 2]", "false"),
        ("{a: null} = {a: null}", "null"),
        ("1 < 'x'", "null"),
        ("1 < null", "null"),
        ("0.0 / 0.0 = 0.0 / 0.0", "false"),
        ("1 < 2 < 3", "true"),
        ("1 < 3 < 2", "false"),
        ("any(x IN [null, true] WHERE x)", "true"),
        ("all(x IN [null, true] WHERE x)", "null"),
        ("none(x IN [null] WHERE x)", "null"),
        ("single(x IN [true, true, null] WHERE x)", "false"),
        ("'abc' STARTS WITH null", "null"),
        ("1 CONTAINS 'x'", "null"),
        ("CASE null WHEN null THEN 1 ELSE 2 END", "2"),
        ("coalesce(null, null, 3)", "3"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn numbers_keep_their_kind_and_are_compared_exactly() {
    for (expression, expected) in [
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
        ("7 / 2.0", "3.5"),
        ("2 ^ 3", "8.0"),
        ("1 = 1.0", "true"),
        ("9007199254740993 = 9007199254740992.0", "false"),
        ("9007199254740993 > 9007199254740992.0", "true"),
        ("1.0", "1.0"),
        ("1e10", "1.0E10"),
        ("1.5e-7", "1.5E-7"),
        ("-0.0", "-0.0"),
        ("0x1F + 0o17", "46"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("round(-1.5)", "-1.0"),
        ("round(2.345, 2)", "2.35"),
        ("toInteger('12.9')", "12"),
        ("toInteger('x')", "null"),
        ("toFloat('1e3')", "1000.0"),
        ("sign(-3)", "-1"),
        ("abs(-3.5)", "3.5"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn lists_texts_and_maps_have_their_functions() {
    for (expression, expected) in [
        ("[1, 2, 3][-1]", "3"),
        ("[1, 2, 3][5]", "null"),
        ("[1, 2, 3][1..]", "[2, 3]"),
        ("[1, 2, 3][..-1]", "[1, 2]"),
        ("[1, 2] + 3 + [4]", "[1, 2, 3, 4]"),
        ("[x IN range(1, 5) WHERE x % 2 = 1 | x * x]", "[1, 9, 25]"),
        ("reduce(sum = 0, x IN [1, 2, 3] | sum + x)", "6"),
        ("range(5, 1, -2)", "[5, 3, 1]"),
        ("head([]), last([1, 2]), tail([1, 2])", "null | 2 | [2]"),
        ("reverse('añb')", "'bña'"),
        ("substring('hello', 1, 3)", "'ell'"),
        ("split('a,b,,c', ',')", "['a', 'b', '', 'c']"),
        ("replace('aXbX', 'X', '-')", "'a-b-'"),
        ("left('abc', 2) + right('abc', 2)", "'abbc'"),
        ("toUpper('é') + trim('  x ')", "'Éx'"),
        ("size('añb')", "3"),
        ("keys({b: 1, a: 2})", "['a', 'b']"),
        ("{a: 1, b: {c: 2}}.b.c", "2"),
        ("'abc' =~ 'a.c' AND NOT 'xabc' =~ 'a.c'", "true"),
        ("'it\\'s' + \" \\u00e9\\n\"", "'it\\'s é\n'"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn order_by_puts_all_types_into_one_order_with_null_last() {
    let text = "UNWIND [null, 1, 'a', true, [1], {a: 1}, 0.5, 0.0/0.0, false, 'A', [0, 5]] AS x \
                RETURN x ORDER BY x";
    let expected = [
        "{a: 1}", "[0, 5]", "[1]", "'A'", "'a'", "false", "true", "0.5", "1", "NaN", "null",
    ];
    assert_eq!(lines(&MemoryGraph::new(), text), expected);
}

#[test]
fn no_relationship_is_used_twice_in_one_match_but_in_two() {
    let graph = people();
    let one = lines(&graph, "MATCH (a)-[r]-(b)-[s]-(a) RETURN count(*)");
    assert_eq!(one, ["0"]);
    let two = lines(
        &graph,
        "MATCH (a)-[r]-(b) MATCH (b)-[s]-(a) RETURN count(*)",
    );
    assert_eq!(two, ["10"]);
}

#[test]
fn variable_lengths_paths_and_shortest_paths_are_found() {
    let graph = people();
    let friends =
        "MATCH (:Person {name: 'Ann'})-[r:KNOWS*1..2]->(b) RETURN b.name, size(r) ORDER BY size(r)";
    assert_eq!(lines(&graph, friends), ["'Bob' | 1", "'Cid' | 2"]);
    let back = "MATCH p = (a {name: 'Cid'})<-[:KNOWS*2]-(b) \
                RETURN [n IN nodes(p) | n.name] AS names, length(p)";
    assert_eq!(lines(&graph, back), ["['Cid', 'Bob', 'Ann'] | 2"]);
    let shortest = "MATCH (a {name: 'Bob'}), (b {name: 'Ann'}) \
                    MATCH p = shortestPath((a)-[:KNOWS*]->(b)) RETURN [n IN nodes(p) | n.name]";
    assert_eq!(lines(&graph, shortest), ["['Bob', 'Cid', 'Ann']"]);
    let all =
        "MATCH p = allShortestPaths((a {name: 'Ann'})-[*]-(b {name: 'Bob'})) RETURN length(p)";
    assert_eq!(lines(&graph, all), ["1"]);
    let none =
        "MATCH (a {name: 'Acme'}), (b {name: 'Ann'}) RETURN shortestPath((a)-[*]->(b)) IS NULL";
    assert_eq!(lines(&graph, none), ["true"]);
}

#[test]
fn patterns_are_conditions_lists_and_subqueries() {
    let graph = people();
    let workers = "MATCH (n:Person) WHERE (n)-[:WORKS_AT]->() RETURN n.name ORDER BY n.name";
    assert_eq!(lines(&graph, workers), ["'Ann'", "'Bob'"]);
    let none = "MATCH (n:Person) WHERE NOT EXISTS { (n)-[:WORKS_AT]->(:Company) } RETURN n.name";
    assert_eq!(lines(&graph, none), ["'Cid'"]);
    let list = "MATCH (n:Company) RETURN [(n)<-[:WORKS_AT]-(m) WHERE m.age > 35 | m.name] AS names";
    assert_eq!(lines(&graph, list), ["['Ann']"]);
    let counted =
        "MATCH (n:Person) RETURN n.name, COUNT { (n)--() } AS degree ORDER BY degree DESC, n.name";
    assert_eq!(
        lines(&graph, counted),
        ["'Ann' | 3", "'Bob' | 3", "'Cid' | 2"]
    );
    let subquery = "MATCH (n:Person) WHERE EXISTS { MATCH (n)-[:KNOWS]->(m) WITH m WHERE m.age < 25 RETURN m } \
                    RETURN n.name";
    assert_eq!(lines(&graph, subquery), ["'Bob'"]);
}

#[test]
fn optional_match_keeps_rows_and_aggregates_group_them() {
    let graph = people();
    let text = "MATCH (n:Person) OPTIONAL MATCH (n)-[:WORKS_AT]->(c) \
                RETURN c.name AS at, count(*) AS n, collect(n.name) AS names ORDER BY at";
    assert_eq!(
        lines(&graph, text),
        ["'Acme' | 2 | ['Ann', 'Bob']", "null | 1 | ['Cid']"]
    );
    let none = "MATCH (n:Nothing) RETURN count(n), sum(n.x), avg(n.x), min(n.x), collect(n)";
    assert_eq!(lines(&graph, none), ["0 | 0 | null | null | []"]);
    let many = "UNWIND [1, 2, 2, 3] AS x \
                RETURN count(DISTINCT x), avg(x), percentileCont(x, 0.5), percentileDisc(x, 0.5), stDevP(x)";
    assert_eq!(
        lines(&graph, many),
        ["3 | 2.0 | 2.0 | 2 | 0.7071067811865476"]
    );
}

#[test]
fn map_projections_and_star_take_what_there_is() {
    let graph = people();
    let text = "MATCH (n {name: 'Ann'}) WITH n, 5 AS extra RETURN n {.name, extra, double: n.age * 2} AS map";
    assert_eq!(lines(&graph, text), ["{double: 80, extra: 5, name: 'Ann'}"]);
    let all = "MATCH (n {name: 'Ann'}) RETURN n {.*}";
    assert_eq!(lines(&graph, all), ["{age: 40, name: 'Ann'}"]);
    assert_eq!(
        ask(&graph, "WITH 1 AS b, 2 AS a RETURN *").unwrap().columns,
        ["a", "b"]
    );
}

#[test]
fn unions_order_and_limits_work_together() {
    let graph = MemoryGraph::new();
    let text =
        "UNWIND [3, 1, 2] AS x RETURN x ORDER BY x LIMIT 1 UNION ALL UNWIND [1, 5] AS x RETURN x";
    assert_eq!(lines(&graph, text), ["1", "1", "5"]);
    let distinct = "UNWIND [1, 1.0, null, null] AS x RETURN x UNION RETURN 1 AS x";
    assert_eq!(lines(&graph, distinct), ["1", "null"]);
    let top = "UNWIND range(1, 1000) AS x WITH x ORDER BY x % 100 DESC, x SKIP 2 LIMIT 3 RETURN x";
    assert_eq!(lines(&graph, top), ["299", "399", "499"]);
}

#[test]
fn parameters_are_values_of_any_kind() {
    let json: serde_json::Value = serde_json::json!({"name": "Ann", "list": [1, {"a": null}]});
    let mut parameters = BTreeMap::new();
    for (name, value) in json.as_object().unwrap() {
        parameters.insert(name.clone(), Value::from_json(value).unwrap());
    }
    let graph = people();
    let budget = Budget::new(&|| None);
    let text = "MATCH (n {name: $name}) RETURN n, $list AS list LIMIT $list[0]";
    let answer = run(&graph, text, &parameters, &NoProcedures, &budget).unwrap();
    let row: Vec<serde_json::Value> = answer.rows[0]
        .iter()
        .map(|it| it.to_json(&graph).unwrap())
        .collect();
    let expected = serde_json::json!([
        {"id": "0", "labels": ["Person"], "properties": {"age": 40, "name": "Ann"}},
        [1, {"a": null}],
    ]);
    assert_eq!(serde_json::Value::from(row), expected);
}

struct Search;

impl Procedures for Search {
    fn signature(&self, name: &str) -> Option<Signature> {
        (name == "kenning.search").then(|| Signature {
            arguments: vec![("text".to_owned(), false), ("n".to_owned(), true)],
            columns: vec!["node".to_owned(), "score".to_owned()],
        })
    }

    fn call(&self, _: &str, arguments: &[Value], _: usize) -> Result<Vec<Vec<Value>>> {
        assert_eq!(arguments[0].to_string(), "'ann'");
        let node = |id: u64| Value::Node(kenning_cypher::NodeId(id));
        Ok(vec![
            vec![node(0), Value::Float(0.9)],
            vec![node(1), Value::Float(0.4)],
        ])
    }
}

#[test]
fn a_procedure_yields_nodes_that_patterns_go_on_from() {
    let graph = people();
    let budget = Budget::new(&|| None);
    let text = "CALL kenning.search('ann') YIELD node AS n, score WHERE score > 0.5 \
                MATCH (n)-[:KNOWS]->(m) RETURN m.name, score";
    let answer = run(&graph, text, &BTreeMap::new(), &Search, &budget).unwrap();
    assert_eq!(answer.columns, ["m.name", "score"]);
    let row: Vec<String> = answer.rows[0].iter().map(ToString::to_string).collect();
    assert_eq!(
        (answer.rows.len(), row.join(" ")),
        (1, "'Bob' 0.9".to_owned())
    );
    let alone = run(
        &graph,
        "CALL kenning.search('ann')",
        &BTreeMap::new(),
        &Search,
        &budget,
    )
    .unwrap();
    assert_eq!(alone.columns, ["node", "score"]);
    let wrong = run(
        &graph,
        "CALL kenning.search() YIELD node RETURN node",
        &BTreeMap::new(),
        &Search,
        &budget,
    );
    assert_eq!(wrong.unwrap_err().detail(), "InvalidNumberOfArguments");
}

#[test]
fn aggregates_stand_inside_larger_expressions() {
    let graph = people();
    for (text, expected) in [
        (
            "MATCH (n:Person) RETURN [x IN collect(n.age) WHERE x > 25 | x + 1] AS l",
            "[41, 31]",
        ),
        (
            "MATCH (n:Person) RETURN size(collect(n)) * 2 + count(*) AS n",
            "9",
        ),
        (
            "MATCH (n:Person) RETURN {all: collect(n.name), n: count(*)} AS m",
            "{all: ['Ann', 'Bob', 'Cid'], n: 3}",
        ),
        (
            "MATCH (n:Person) RETURN CASE WHEN count(*) > 2 THEN 'many' ELSE 'few' END AS c",
            "'many'",
        ),
        ("MATCH (n:Company) RETURN count([(n)<--(m) | m]) AS c", "1"),
        (
            "MATCH (n:Person) WITH n.age > 25 AS old, count(*) AS c RETURN collect([old, c]) AS l",
            "[[true, 2], [false, 1]]",
        ),
        (
            "MATCH p = (:Person {name: 'Ann'})-[:KNOWS]->(b) RETURN [x IN nodes(p) | size([(x)-->(:Company) | 1])] AS l",
            "[1, 1]",
        ),
    ] {
        assert_eq!(lines(&graph, text), [expected], "{text}");
    }
}

#[test]
fn variable_lengths_with_odd_bounds_find_what_they_say() {
    let graph = people();
    for (range, n) in [
        ("*0", 4),
        ("*0..0", 4),
        ("*1..0", 0),
        ("*2..1", 0),
        ("*..0", 0),
        ("*..1", 5),
        ("*1", 5),
    ] {
        let text = format!("MATCH (a)-[{range}]->(b) RETURN count(*)");
        assert_eq!(lines(&graph, &text), [n.to_string()], "{range}");
    }
}
