//! Queries that want too much, for tests and for measuring what a second caller notices of them.

use serde_json::{Value, json};

/// A query that wants too much, and what it is asked with.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The query.
    pub cypher: String,
    /// The values of `$name`.
    pub parameters: Value,
}

/// Queries that want too much, in as many ways as there are.
pub fn hostile_queries() -> Vec<Hostile> {
    let plain = |cypher: String| Hostile {
        cypher,
        parameters: json!({}),
    };
    let mut all: Vec<Hostile> = nested_and_long().into_iter().map(plain).collect();
    all.extend(short().into_iter().map(plain));
    all.extend(greedy().into_iter().map(plain));
    all.extend(with_parameters());
    all
}

/// The same thing a hundred, a thousand and ten thousand times.
fn nested_and_long() -> Vec<String> {
    let mut all = Vec::new();
    for n in [100, 1_000, 10_000] {
        all.push(format!("RETURN {}1", "NOT ".repeat(n)));
        all.push(format!("RETURN {}1{}", "(".repeat(n), ")".repeat(n)));
        all.push(format!("RETURN {}1{}", "[".repeat(n), "]".repeat(n)));
        all.push(format!("RETURN {}1{}", "{a:".repeat(n), "}".repeat(n)));
        all.push(format!("RETURN 1{}", "*1".repeat(n)));
        all.push(format!("RETURN 1{}", "^1".repeat(n)));
        all.push(format!("RETURN 1{}", " + 1".repeat(n)));
        all.push(format!("RETURN -{}1", "-".repeat(n)));
        all.push(format!("WITH {{}} AS a RETURN a{}", ".a".repeat(n)));
        all.push(format!("WITH [] AS a RETURN a{}", "[0]".repeat(n)));
        all.push(format!("RETURN {}", vec!["1"; n].join(" OR ")));
        all.push(format!(
            "RETURN {}1{}",
            "CASE WHEN true THEN ".repeat(n),
            " END".repeat(n)
        ));
        all.push(format!("RETURN {}[]{}", "size(".repeat(n), ")".repeat(n)));
        all.push(format!("MATCH {} RETURN 1", vec!["(a)"; n].join(",")));
        all.push(format!("MATCH (a){} RETURN 1", "--()".repeat(n)));
        all.push(format!("MATCH (a){} RETURN 1", "-[*]-()".repeat(n)));
        all.push(format!("{}RETURN 1", "MATCH (a) ".repeat(n)));
        all.push(format!("RETURN 1{}", " UNION RETURN 1".repeat(n)));
        all.push(format!("WITH 1 AS a{} RETURN a", " WITH a".repeat(n)));
        all.push(format!(
            "WITH 'x' AS a{} RETURN a",
            " WITH a + a AS a".repeat(n)
        ));
        all.push(format!(
            "WITH [1] AS a{} RETURN size(a)",
            " WITH a + a AS a".repeat(n)
        ));
        all.push(format!(
            "WITH [1] AS a{} RETURN a",
            " WITH [a, a] AS a".repeat(n)
        ));
        all.push(format!(
            "WITH {{}} AS a{} RETURN a",
            " WITH {a: a, b: a} AS a".repeat(n)
        ));
        all.push(format!(
            "{}RETURN 1",
            "UNWIND range(1, 100) AS a ".repeat(n)
        ));
        all.push(format!("RETURN '{}'", "x".repeat(n * 100)));
        all.push(format!("RETURN `{}`", "x".repeat(n)));
        all.push(format!("RETURN {}", "9".repeat(n)));
        all.push(format!("RETURN {}1", "/* ".repeat(n)));
        all.push(format!("{}RETURN 1", "EXPLAIN ".repeat(n)));
        all.push(format!(
            "RETURN {}true{}",
            "EXISTS { MATCH (a) WHERE ".repeat(n),
            " }".repeat(n)
        ));
        all.push(format!(
            "RETURN {}1{}",
            "[x IN ".repeat(n),
            " | x]".repeat(n)
        ));
        all.push(format!(
            "RETURN reduce(a = '', x IN range(1, {n}0000) | a + 'xxxxxxxxxx')"
        ));
        all.push(format!("UNWIND range(1, {n}00000) AS x RETURN count(x)"));
        all.push(format!("UNWIND range(1, {n}000) AS x RETURN collect(x)"));
        all.push(format!(
            "UNWIND range(1, {n}00) AS x WITH x ORDER BY rand() RETURN x"
        ));
        all.push(format!("RETURN range(1, {n}000000000)"));
    }
    all
}

fn short() -> Vec<String> {
    let mut all = Vec::new();
    for path in [
        "MATCH (a)-[*]-(b)-[*]-(c)-[*]-(d) RETURN count(*)",
        "MATCH (a), (b), (c), (d), (e), (f), (g), (h), (i), (j) RETURN count(*)",
        "MATCH p = (a)-[*0..100]-(b) RETURN p",
        "MATCH p = shortestPath((a)-[*]-(b)) RETURN p",
        "MATCH p = allShortestPaths((a)-[*]-(b)) RETURN p",
        "MATCH (a) MATCH (b) MATCH (c) WHERE a.text CONTAINS b.text RETURN count(*)",
        "MATCH (n) RETURN n, n, n, n, n, n",
        "RETURN 9223372036854775807 + 1",
        "RETURN -9223372036854775808 / -1",
        "RETURN 1 % 0",
        "RETURN 1 / 0",
        "RETURN toInteger('9'*3)",
        "RETURN duration({years: 9223372036854775807})",
        "RETURN date('9999999999-01-01')",
        "RETURN datetime({epochSeconds: 9223372036854775807})",
        "RETURN duration.between(date('-999999999-01-01'), date('999999999-12-31'))",
        "RETURN 'aaaaaaaaaaaaaaaaaaaaaaaaaaaa!' =~ '(a+)+$'",
        "RETURN 'x' =~ '(((((((((((a{1,99}){1,99}){1,99}){1,99}){1,99}))))))'",
        "RETURN 'x' =~ '['",
        "RETURN substring('x', -1)",
        "RETURN left('x', -9223372036854775808)",
        "RETURN [1][9223372036854775807]",
        "RETURN [1][-9223372036854775808..9223372036854775807]",
        "RETURN replace('xxxxxxxxxxxxxxxxxxxx', '', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy')",
        "RETURN split('x', '')",
        "RETURN \u{0}",
        "RETURN '\\uD800'",
        "RETURN $`\u{202e}`",
        "LOAD CSV FROM 'file:///etc/passwd' AS row RETURN row",
        "CALL dbms.components() YIELD name RETURN name",
        "CALL apoc.load.json('http://127.0.0.1/') YIELD value RETURN value",
        "CALL kenning.search('x', 9223372036854775807) YIELD node RETURN node",
        "USE other MATCH (n) RETURN n",
        "MATCH (n) SET n.x = 1",
        "MATCH (n) REMOVE n.name",
        "MERGE (n:Person {name: 'x'})",
        "FOREACH (x IN [1] | CREATE ())",
        "CREATE INDEX FOR (n:Person) ON (n.name)",
        "DROP DATABASE neo4j",
        "MATCH (n) RETURN n; MATCH (n) DELETE n",
        "'; DROP TABLE nodes; --",
        "MATCH (n) WHERE n.name = \"'; DROP TABLE nodes; --\" RETURN n",
        "$$) AS (x agtype); DROP TABLE nodes; --",
    ] {
        all.push(path.to_owned());
        all.push(format!("PROFILE {path}"));
    }
    all
}

/// Products, paths and searches without end, and texts of other languages.
fn greedy() -> Vec<String> {
    let all = [
        "MATCH (n) RETURN n LIMIT 9223372036854775807",
        "MATCH (n) RETURN n SKIP 9223372036854775807",
        "MATCH (n) RETURN n SKIP 9223372036854775807 LIMIT 9223372036854775807",
        "MATCH (n) RETURN n LIMIT -1",
        "MATCH (n) RETURN n LIMIT 1e308",
        "UNWIND range(1, 1000000) AS x UNWIND range(1, 1000000) AS y RETURN x, y LIMIT 10000000000",
        "MATCH (a), (b), (c), (d), (e), (f) WHERE a.name < b.name RETURN a, b, c, d, e, f",
        "MATCH (a), (b), (c), (d), (e), (f), (g) RETURN DISTINCT a.name, b.name, c.name, d.name",
        "MATCH (a), (b), (c), (d), (e), (f), (g) WITH * ORDER BY a.name, g.name RETURN collect(a)",
        "MATCH (a)-[*1..1000000]-(b) RETURN count(*)",
        "MATCH (a)-[*0..]-(b)-[*0..]-(a) RETURN count(*)",
        "MATCH p = (a)-[*..50]-(b) RETURN [n IN nodes(p) | properties(n)]",
        "MATCH (a)-[r*]-(b) RETURN reduce(s = 0, x IN r | s + 1)",
        "MATCH (a), (b) MATCH p = shortestPath((a)-[*..1000000]-(b)) RETURN p",
        "MATCH (a), (b) MATCH p = allShortestPaths((a)-[*..1000000]-(b)) RETURN collect(p)",
        "MATCH (a), (b), (c) MATCH p = shortestPath((a)-[*]-(b)), q = shortestPath((b)-[*]-(c)) RETURN p, q",
        "UNWIND range(1, 1000000) AS x RETURN count(CASE WHEN toString(x) =~ '(.*)*(.*)*(.*)*x' THEN 1 END)",
        "RETURN reduce(s = 'a', x IN range(1, 20) | s + s) =~ '(a|aa)+$'",
        "RETURN 'x' =~ '(x{0,1000}){0,1000}'",
        "RETURN 'x' =~ '\\p{L}{1,100000}'",
        "UNWIND range(1, 100000) AS x CALL kenning.search('word ' + toString(x), 1000) YIELD node RETURN count(node)",
        "CALL kenning.search('a') YIELD node AS a CALL kenning.search('b') YIELD node AS b CALL kenning.search('c') YIELD node AS c RETURN count(*)",
        "MATCH (n) CALL kenning.search(n.text, 1000) YIELD node MATCH (node)-[*]-(m) RETURN count(m)",
        "UNWIND range(1, 100000) AS x CALL kenning.events(null, 10000) YIELD event RETURN count(event)",
        "MATCH (e:Event), (f:Event), (g:Event) RETURN count(*)",
        "MATCH (a)--(b)--(c)--(d)--(e)--(f)--(g)--(h) RETURN count(*)",
        "MATCH (n) WHERE EXISTS { MATCH (n)-[*]-(m) WHERE EXISTS { (m)-[*]-(n) } } RETURN count(n)",
        "MATCH (n) RETURN [(n)-[*]-(m) | [(m)-[*]-(k) | k.name]]",
        "$.store.book[*].author",
        "$..*",
        "SELECT * FROM nodes WHERE 1 = 1",
        "SELECT pg_sleep(60)",
        "MATCH (n) WHERE n.name = 'x' UNION SELECT body FROM nodes RETURN n",
        "MATCH (n) WHERE n.`name\"; DROP TABLE nodes; --` = 1 RETURN n",
        "MATCH (n:`'; DELETE FROM events; --`) RETURN n",
    ];
    all.map(ToOwned::to_owned).to_vec()
}

/// What is asked with may want too much as well.
fn with_parameters() -> Vec<Hostile> {
    let mut deep = json!(1);
    for _ in 0..60 {
        deep = json!([deep]);
    }
    let of = |cypher: &str, p: Value| Hostile {
        cypher: cypher.to_owned(),
        parameters: json!({ "p": p }),
    };
    let long: Vec<u32> = (0..200_000).collect();
    vec![
        of("MATCH (n) WHERE n.name IN $p RETURN n", json!(long)),
        of("UNWIND $p AS a UNWIND $p AS b RETURN count(*)", json!(long)),
        of("RETURN $p + $p + $p", json!("x".repeat(1 << 20))),
        of("RETURN 'x' =~ $p", json!("(a|".repeat(10_000))),
        of("RETURN $p", deep),
        of("MATCH (n) RETURN n LIMIT $p", json!(i64::MAX)),
        of("MATCH (n) RETURN n SKIP $p", json!(-1)),
        of(
            "MATCH (n {name: $p}) RETURN n",
            json!("'; DROP TABLE nodes; --"),
        ),
    ]
}
