//! Planned evaluation and a naive one agree: on random small graphs, a pattern finds what trying every
//! assignment of nodes and relationships finds.

use crate::{ask, properties};
use kenning_cypher::{Graph, MemoryGraph, NodeId, Rel, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;

const LABELS: [&str; 3] = ["A", "B", "C"];
const TYPES: [&str; 2] = ["R", "S"];

/// A graph as it is made: labels and a number for each node; ends, type and a number for each relationship.
#[derive(Clone, Debug)]
struct Made {
    nodes: Vec<(Vec<usize>, i64)>,
    rels: Vec<(usize, usize, usize, i64)>,
    index: bool,
}

/// A chain of nodes and relationships, where a name may come again.
#[derive(Clone, Debug)]
struct Chain {
    start: Node,
    steps: Vec<(Step, Node)>,
}

#[derive(Clone, Debug)]
struct Node {
    name: usize,
    label: Option<usize>,
    number: Option<i64>,
}

#[derive(Clone, Debug)]
struct Step {
    /// Out, in or both.
    direction: u8,
    types: Vec<usize>,
    number: Option<i64>,
}

fn made() -> impl Strategy<Value = Made> {
    let node = (proptest::collection::vec(0..3usize, 0..3), 0..3i64);
    let nodes = proptest::collection::vec(node, 1..5);
    (nodes, any::<bool>()).prop_flat_map(|(nodes, index)| {
        let n = nodes.len();
        let rel = (0..n, 0..n, 0..2usize, 0..3i64);
        proptest::collection::vec(rel, 0..7).prop_map(move |rels| Made {
            nodes: nodes.clone(),
            rels,
            index,
        })
    })
}

fn node() -> impl Strategy<Value = Node> {
    let label = proptest::option::weighted(0.4, 0..3usize);
    let number = proptest::option::weighted(0.3, 0..3i64);
    (0..4usize, label, number).prop_map(|(name, label, number)| Node {
        name,
        label,
        number,
    })
}

fn chain() -> impl Strategy<Value = Chain> {
    let types = proptest::collection::vec(0..2usize, 0..2);
    let number = proptest::option::weighted(0.2, 0..3i64);
    let step = (0..3u8, types, number);
    let step = step.prop_map(|(direction, types, number)| Step {
        direction,
        types,
        number,
    });
    (node(), proptest::collection::vec((step, node()), 0..3))
        .prop_map(|(start, steps)| Chain { start, steps })
}

fn build(made: &Made) -> MemoryGraph {
    let mut graph = MemoryGraph::new();
    for (labels, number) in &made.nodes {
        let labels: Vec<&str> = labels.iter().map(|it| LABELS[*it]).collect();
        graph.add_node(&labels, properties(&[("x", Value::Int(*number))]));
    }
    for (from, to, kind, number) in &made.rels {
        let values = properties(&[("x", Value::Int(*number))]);
        let (from, to) = (NodeId(*from as u64), NodeId(*to as u64));
        graph.add_rel(from, TYPES[*kind], to, values).unwrap();
    }
    if made.index {
        graph.add_index("A", "x");
    }
    graph
}

fn write_node(node: &Node) -> String {
    let label = node
        .label
        .map_or(String::new(), |it| format!(":{}", LABELS[it]));
    let number = node
        .number
        .map_or(String::new(), |it| format!(" {{x: {it}}}"));
    format!("(n{}{label}{number})", node.name)
}

fn write(chains: &[Chain]) -> String {
    let mut n_rels = 0;
    let mut parts = Vec::new();
    for chain in chains {
        let mut text = write_node(&chain.start);
        for (step, node) in &chain.steps {
            let types: Vec<&str> = step.types.iter().map(|it| TYPES[*it]).collect();
            let types = if types.is_empty() {
                String::new()
            } else {
                format!(":{}", types.join("|"))
            };
            let number = step
                .number
                .map_or(String::new(), |it| format!(" {{x: {it}}}"));
            let (left, right) = [("-", "->"), ("<-", "-"), ("-", "-")][step.direction as usize];
            text += &format!(
                "{left}[r{n_rels}{types}{number}]{right}{}",
                write_node(node)
            );
            n_rels += 1;
        }
        parts.push(text);
    }
    parts.join(", ")
}

/// Every assignment, one row a match: the nodes by name, then the relationships.
fn naive(graph: &MemoryGraph, made: &Made, chains: &[Chain], less: bool) -> Vec<String> {
    let rels: Vec<Rel> = graph.all_rels().collect();
    let steps: Vec<(&Node, &Step, &Node)> = chains
        .iter()
        .flat_map(|chain| {
            let nodes = std::iter::once(&chain.start).chain(chain.steps.iter().map(|it| &it.1));
            let ends = chain.steps.iter().map(|it| &it.1);
            nodes.zip(chain.steps.iter().map(|it| &it.0)).zip(ends)
        })
        .map(|((from, step), to)| (from, step, to))
        .collect();
    let alone: Vec<&Node> = chains.iter().map(|it| &it.start).collect();
    let mut found = Vec::new();
    let mut names: Vec<usize> = alone.iter().map(|it| it.name).collect();
    names.extend(steps.iter().map(|it| it.2.name));
    names.sort_unstable();
    names.dedup();
    let mut nodes = BTreeMap::new();
    assign_nodes(graph, &names, &mut nodes, &mut |nodes| {
        let all = alone.iter().copied().chain(steps.iter().map(|it| it.2));
        for node in all {
            let id = nodes[&node.name];
            let label = node.label.is_none_or(|it| made.nodes[id].0.contains(&it));
            if !label || node.number.is_some_and(|it| made.nodes[id].1 != it) {
                return;
            }
        }
        if less && made.nodes[nodes[&names[0]]].1 >= made.nodes[nodes[&names[names.len() - 1]]].1 {
            return;
        }
        assign_rels(&rels, made, &steps, nodes, &mut Vec::new(), &mut |used| {
            let mut row: Vec<String> = names.iter().map(|it| nodes[it].to_string()).collect();
            row.extend(used.iter().map(|it| it.to_string()));
            found.push(row.join(" "));
        });
    });
    found.sort();
    found
}

fn assign_nodes(
    graph: &MemoryGraph,
    names: &[usize],
    nodes: &mut BTreeMap<usize, usize>,
    call: &mut dyn FnMut(&BTreeMap<usize, usize>),
) {
    let Some((name, rest)) = names.split_first() else {
        return call(nodes);
    };
    for id in 0..graph.n_nodes(None) as usize {
        nodes.insert(*name, id);
        assign_nodes(graph, rest, nodes, call);
    }
}

fn assign_rels(
    rels: &[Rel],
    made: &Made,
    steps: &[(&Node, &Step, &Node)],
    nodes: &BTreeMap<usize, usize>,
    used: &mut Vec<u64>,
    call: &mut dyn FnMut(&[u64]),
) {
    let Some(((from, step, to), rest)) = steps.split_first() else {
        return call(used);
    };
    let (from, to) = (nodes[&from.name] as u64, nodes[&to.name] as u64);
    for rel in rels {
        let ends = (rel.start.0, rel.end.0);
        let leads = match step.direction {
            0 => ends == (from, to),
            1 => ends == (to, from),
            _ => ends == (from, to) || ends == (to, from),
        };
        let (_, _, kind, number) = made.rels[rel.id.0 as usize];
        let fits = (step.types.is_empty() || step.types.contains(&kind))
            && step.number.is_none_or(|it| it == number);
        if leads && fits && !used.contains(&rel.id.0) {
            used.push(rel.id.0);
            assign_rels(rels, made, rest, nodes, used, call);
            used.pop();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_planned_pattern_finds_what_trying_everything_finds(
        made in made(),
        chains in proptest::collection::vec(chain(), 1..3),
        less in any::<bool>(),
        split in any::<bool>(),
    ) {
        let graph = build(&made);
        let n_steps: usize = chains.iter().map(|it| it.steps.len()).sum();
        let mut names: Vec<usize> = chains
            .iter()
            .flat_map(|it| std::iter::once(it.start.name).chain(it.steps.iter().map(|it| it.1.name)))
            .collect();
        names.sort_unstable();
        names.dedup();
        let columns: Vec<String> = names
            .iter()
            .map(|it| format!("id(n{it})"))
            .chain((0..n_steps).map(|it| format!("id(r{it})")))
            .collect();
        let condition = if less {
            format!("WHERE n{}.x < n{}.x", names[0], names[names.len() - 1])
        } else {
            String::new()
        };
        // Nodes that are known before make other plans, and the same rows.
        let before = if split { format!("MATCH (n{}) ", names[0]) } else { String::new() };
        let text = format!("{before}MATCH {} {condition} RETURN {}", write(&chains), columns.join(", "));
        let answer = ask(&graph, &text).map_err(|it| TestCaseError::fail(format!("{text}: {it}")))?;
        let mut found: Vec<String> = answer
            .rows
            .iter()
            .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            .collect();
        found.sort();
        prop_assert_eq!(found, naive(&graph, &made, &chains, less), "{}", text);
    }

    #[test]
    fn a_variable_length_is_the_union_of_its_lengths(made in made(), direction in 0..3usize) {
        let graph = build(&made);
        let (left, right) = [("-", "->"), ("<-", "-"), ("-", "-")][direction];
        let mut expected = Vec::new();
        for n in 1..=3 {
            let steps: String = (0..n).map(|it| format!("{left}[r{it}]{right}()")).collect();
            let rels: Vec<String> = (0..n).map(|it| format!("id(r{it})")).collect();
            let rels = rels.join(", ");
            let text = format!("MATCH p = (){steps} RETURN id(nodes(p)[0]) AS a, [{rels}] AS b");
            for row in ask(&graph, &text).map_err(|it| TestCaseError::fail(format!("{text}: {it}")))?.rows {
                expected.push(format!("{} {}", row[0], row[1]));
            }
        }
        expected.sort();
        let text = format!("MATCH p = (){left}[rs*1..3]{right}() RETURN id(nodes(p)[0]) AS a, [r IN rs | id(r)] AS b");
        let answer = ask(&graph, &text).map_err(|it| TestCaseError::fail(format!("{text}: {it}")))?;
        let mut found: Vec<String> = answer.rows.iter().map(|row| format!("{} {}", row[0], row[1])).collect();
        found.sort();
        prop_assert_eq!(found, expected);
    }
}
