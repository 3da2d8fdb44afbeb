//! How queries are planned.

use crate::{ask, lines, properties};
use kenning_cypher::{MemoryGraph, Step, Value};

/// A hundred people, three cities; everybody lives in one, and knows the next.
fn graph() -> MemoryGraph {
    let mut graph = MemoryGraph::new();
    let mut add = |label: &str, n: i64| -> Vec<_> {
        let node = |id: i64| {
            (
                label,
                properties(&[("id", Value::Int(id)), ("group", Value::Int(id % 10))]),
            )
        };
        (0..n)
            .map(node)
            .map(|(label, values)| graph.add_node(&[label], values))
            .collect()
    };
    let (people, cities) = (add("Person", 100), add("City", 3));
    for (idx, person) in people.iter().enumerate() {
        graph
            .add_rel(*person, "LIVES_IN", cities[idx % 3], [])
            .unwrap();
        graph
            .add_rel(*person, "KNOWS", people[(idx + 1) % 100], [])
            .unwrap();
    }
    graph
}

/// Operators from the first to the last, with what they are about.
fn plan(graph: &MemoryGraph, text: &str) -> Vec<String> {
    let answer = ask(graph, &format!("EXPLAIN {text}")).unwrap();
    assert!(answer.rows.is_empty());
    let mut steps: Vec<Step> = answer.plan.unwrap();
    steps.reverse();
    let line = |it: &Step| format!("{} {}", it.operator, it.detail).trim().to_owned();
    steps
        .iter()
        .map(line)
        .filter(|it| it != "Argument")
        .collect()
}

#[test]
fn a_pattern_is_read_from_its_rarest_label() {
    let plan = plan(&graph(), "MATCH (p:Person)-[:LIVES_IN]->(c:City) RETURN p");
    assert_eq!(plan[0], "NodeByLabelScan c:City");
    assert!(plan[1].starts_with("ExpandAll (c)<-["), "{plan:?}");
}

#[test]
fn an_index_is_used_where_there_is_one() {
    let mut graph = graph();
    let text = "MATCH (p:Person {id: 5})-[:LIVES_IN]->(c:City) RETURN p";
    assert_eq!(plan(&graph, text)[0], "NodeByLabelScan c:City");
    graph.add_index("Person", "id");
    assert_eq!(plan(&graph, text)[0], "NodeIndexSeek p:Person(id)");
    assert_eq!(
        lines(
            &graph,
            "MATCH (p:Person {id: 5})-[:LIVES_IN]->(c) RETURN c.id"
        ),
        ["2"]
    );
    let joined = "MATCH (c:City) MATCH (p:Person) WHERE p.id = c.id RETURN p.id ORDER BY p.id";
    assert!(plan(&graph, joined).contains(&"NodeIndexSeek p:Person(id)".to_owned()));
    assert_eq!(lines(&graph, joined), ["0", "1", "2"]);
}

#[test]
fn an_id_is_looked_up() {
    let graph = graph();
    let text = "MATCH (n)-[:KNOWS]->(m) WHERE id(n) = 7 RETURN m.id";
    assert_eq!(plan(&graph, text)[0], "NodeByIdSeek n");
    assert_eq!(lines(&graph, text), ["8"]);
}

#[test]
fn equal_values_of_two_patterns_are_joined_by_hash() {
    let graph = graph();
    let text = "MATCH (a:Person), (b:Person) WHERE a.group = b.id RETURN count(*)";
    let plan = plan(&graph, text);
    assert!(
        plan.iter().any(|it| it.starts_with("ValueHashJoin")),
        "{plan:?}"
    );
    assert_eq!(lines(&graph, text), ["100"]);
}

#[test]
fn counts_come_from_the_graph() {
    let graph = graph();
    for (text, operator, n) in [
        (
            "MATCH (n) RETURN count(*)",
            "NodeCountFromCountStore *",
            "103",
        ),
        (
            "MATCH (n:City) RETURN count(n) AS n",
            "NodeCountFromCountStore City",
            "3",
        ),
        (
            "MATCH ()-[r:KNOWS]->() RETURN count(r)",
            "RelationshipCountFromCountStore :KNOWS",
            "100",
        ),
        (
            "MATCH ()-->() RETURN count(*)",
            "RelationshipCountFromCountStore",
            "200",
        ),
        (
            "MATCH (n:Nothing) RETURN count(*)",
            "NodeCountFromCountStore Nothing",
            "0",
        ),
    ] {
        assert_eq!(plan(&graph, text), [operator], "{text}");
        assert_eq!(lines(&graph, text), [n], "{text}");
    }
    let counted = plan(&graph, "MATCH (n:City) RETURN count(DISTINCT n)");
    assert!(counted.len() > 1, "{counted:?}");
}

#[test]
fn order_with_a_limit_keeps_only_what_is_wanted() {
    let graph = graph();
    let text = "MATCH (n:Person) RETURN n.id AS id ORDER BY id DESC LIMIT 2";
    assert!(plan(&graph, text).contains(&"Top id DESC".to_owned()));
    assert_eq!(lines(&graph, text), ["99", "98"]);
}

#[test]
fn a_condition_is_checked_as_soon_as_it_can_be() {
    let graph = graph();
    let text =
        "MATCH (c:City)<-[:LIVES_IN]-(p:Person)-[:KNOWS]->(q) WHERE c.id = 1 AND q.id > 5 RETURN q";
    let plan = plan(&graph, text);
    let place = |part: &str| plan.iter().position(|it| it.contains(part)).unwrap();
    assert!(place("c.id = 1") < place("LIVES_IN"), "{plan:?}");
}

#[test]
fn a_limit_ends_what_is_before_it() {
    let graph = graph();
    let answer = ask(&graph, "PROFILE MATCH (n:Person) RETURN n LIMIT 3").unwrap();
    assert_eq!(answer.rows.len(), 3);
    let steps = answer.plan.unwrap();
    let rows: Vec<Option<u64>> = steps.iter().map(|it| it.rows).collect();
    assert_eq!(rows, [Some(3), Some(3), Some(1)]);
}
