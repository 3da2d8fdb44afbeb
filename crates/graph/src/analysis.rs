//! The shape of a graph: neighbors, paths, ranks, communities and components.
//!
//! Documents are numbers from 0. Every answer depends on the graph alone: ties are broken by number,
//! and nothing is random.

mod communities;

use std::collections::VecDeque;

/// The most steps of [`Graph::page_rank`]; at the usual damping it has converged long before.
const STEPS_MAX: usize = 1_000;
/// The ranks have converged when their total change is below this.
const SETTLED: f64 = 1e-9;

/// A directed graph with weights.
#[derive(Clone, Debug)]
pub struct Graph {
    out: Neighbors,
    into: Neighbors,
}

/// For each node, those at the other ends of its edges in the order of their numbers.
#[derive(Clone, Debug)]
struct Neighbors {
    starts: Vec<usize>,
    ends: Vec<(u32, f64)>,
}

impl Neighbors {
    /// Takes edges that are sorted.
    fn of(n: usize, edges: &[(u32, u32, f64)]) -> Self {
        let mut starts = Vec::with_capacity(n + 1);
        let mut at = 0;
        for node in 0..n {
            starts.push(at);
            at += edges[at..]
                .iter()
                .take_while(|it| it.0 as usize == node)
                .count();
        }
        starts.push(at);
        Self {
            starts,
            ends: edges.iter().map(|edge| (edge.1, edge.2)).collect(),
        }
    }

    fn at(&self, node: u32) -> &[(u32, f64)] {
        let node = node as usize;
        match (self.starts.get(node), self.starts.get(node + 1)) {
            (Some(&start), Some(&end)) => &self.ends[start..end],
            _ => &[],
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Directions {
    Out,
    Both,
}

impl Graph {
    /// A graph of `n` nodes. Parallel edges become one with the sum of their weights; an edge from a
    /// node to itself or to a node that does not exist is left out, and a weight that is not a
    /// positive number counts as 0.
    pub fn new(n: usize, edges: impl IntoIterator<Item = (u32, u32, f64)>) -> Self {
        let is_inside = |it: u32| (it as usize) < n;
        let mut edges: Vec<(u32, u32, f64)> = edges
            .into_iter()
            .filter(|edge| edge.0 != edge.1 && is_inside(edge.0) && is_inside(edge.1))
            .map(|(from, to, weight)| {
                let weight = if weight.is_finite() { weight } else { 0.0 };
                (from, to, weight.max(0.0))
            })
            .collect();
        edges.sort_by_key(|edge| (edge.0, edge.1));
        edges.dedup_by(|next, kept| {
            let is_same = (next.0, next.1) == (kept.0, kept.1);
            if is_same {
                kept.2 += next.2;
            }
            is_same
        });
        let out = Neighbors::of(n, &edges);
        let mut turned: Vec<_> = edges.iter().map(|edge| (edge.1, edge.0, edge.2)).collect();
        turned.sort_by_key(|edge| (edge.0, edge.1));
        let into = Neighbors::of(n, &turned);
        Self { out, into }
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.starts.len() - 1
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn nodes(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.len()).unwrap_or(u32::MAX)
    }

    /// Those at the other ends of a node's edges; in both directions, one may come twice.
    fn around(&self, node: u32, directions: Directions) -> impl Iterator<Item = u32> {
        let into = match directions {
            Directions::Out => &[],
            Directions::Both => self.into.at(node),
        };
        self.out.at(node).iter().chain(into).map(|it| it.0)
    }

    /// At most `limit` nodes that `depth` edges in any direction lead to, the nearest first, each with how
    /// many edges that is. The node itself is not among them.
    #[must_use]
    pub fn neighbourhood(&self, of: u32, depth: u32, limit: usize) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut is_known = vec![false; self.len()];
        let Some(known) = is_known.get_mut(of as usize) else {
            return found;
        };
        *known = true;
        let mut queue = VecDeque::from([(of, 0)]);
        while let Some((node, distance)) = queue.pop_front() {
            if distance == depth {
                break;
            }
            for next in self.around(node, Directions::Both) {
                if found.len() >= limit {
                    return found;
                }
                if !std::mem::replace(&mut is_known[next as usize], true) {
                    found.push((next, distance + 1));
                    queue.push_back((next, distance + 1));
                }
            }
        }
        found
    }

    /// The fewest edges from one node to another, as the nodes on the way, both included.
    #[must_use]
    pub fn shortest_path(&self, from: u32, to: u32, directed: bool) -> Option<Vec<u32>> {
        let directions = if directed {
            Directions::Out
        } else {
            Directions::Both
        };
        let n = self.len();
        if from as usize >= n || to as usize >= n {
            return None;
        }
        let mut before: Vec<Option<u32>> = vec![None; n];
        before[from as usize] = Some(from);
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            if node == to {
                return Some(way(&before, from, to));
            }
            for next in self.around(node, directions) {
                let known = &mut before[next as usize];
                if known.is_none() {
                    *known = Some(node);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// The PageRank of each node, with a sum of 1: the share of time that a reader spends there who
    /// follows a link with probability `damping` and starts anywhere otherwise.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of documents")]
    pub fn page_rank(&self, damping: f64) -> Vec<f64> {
        let n = self.len();
        let damping = if damping.is_finite() { damping } else { 0.85 };
        let damping = damping.clamp(0.0, 0.999);
        let share = 1.0 / n.max(1) as f64;
        let weights: Vec<f64> = self
            .nodes()
            .map(|node| self.out.at(node).iter().map(|it| it.1).sum())
            .collect();
        let mut ranks = vec![share; n];
        for _ in 0..STEPS_MAX {
            // A reader on a page without links starts anywhere.
            let stuck: f64 = ranks
                .iter()
                .zip(&weights)
                .filter(|it| *it.1 <= 0.0)
                .map(|it| it.0)
                .sum();
            let base = (1.0 - damping + damping * stuck) * share;
            let mut next: Vec<f64> = self
                .nodes()
                .map(|node| {
                    let parts = self.into.at(node).iter().map(|&(from, weight)| {
                        let all = weights[from as usize];
                        let part = if all > 0.0 { weight / all } else { 0.0 };
                        ranks[from as usize] * part
                    });
                    base + damping * parts.sum::<f64>()
                })
                .collect();
            let sum: f64 = next.iter().sum();
            next.iter_mut().for_each(|it| *it /= sum);
            let change: f64 = next
                .iter()
                .zip(&ranks)
                .map(|pair| (pair.0 - pair.1).abs())
                .sum();
            ranks = next;
            if change < SETTLED {
                break;
            }
        }
        ranks
    }

    /// The number of the community of each node: nodes that are connected more with each other than
    /// with the rest. The largest is 0.
    #[must_use]
    pub fn communities(&self) -> Vec<u32> {
        by_size(&communities::louvain(self))
    }

    /// The number of the connected component of each node, whatever the direction of edges. The
    /// largest is 0.
    #[must_use]
    pub fn components(&self) -> Vec<u32> {
        let mut component: Vec<Option<u32>> = vec![None; self.len()];
        for start in self.nodes() {
            if component[start as usize].is_some() {
                continue;
            }
            component[start as usize] = Some(start);
            let mut stack = vec![start];
            while let Some(node) = stack.pop() {
                for next in self.around(node, Directions::Both) {
                    let known = &mut component[next as usize];
                    if known.is_none() {
                        *known = Some(start);
                        stack.push(next);
                    }
                }
            }
        }
        by_size(&component.into_iter().flatten().collect::<Vec<u32>>())
    }

    /// The nodes without edges.
    #[must_use]
    pub fn orphans(&self) -> Vec<u32> {
        let is_alone = |it: &u32| self.around(*it, Directions::Both).next().is_none();
        self.nodes().filter(is_alone).collect()
    }
}

fn way(before: &[Option<u32>], from: u32, to: u32) -> Vec<u32> {
    let mut way = vec![to];
    let mut node = to;
    while node != from
        && let Some(it) = before[node as usize]
    {
        node = it;
        way.push(it);
    }
    way.reverse();
    way
}

/// The same groups, numbered by size and then by their first member. Group numbers are below the length.
fn by_size(groups: &[u32]) -> Vec<u32> {
    let mut sizes = vec![0usize; groups.len()];
    let mut order = Vec::new();
    for &group in groups {
        if sizes[group as usize] == 0 {
            order.push(group);
        }
        sizes[group as usize] += 1;
    }
    // The sort is stable, so that of two groups of one size the first stays first.
    order.sort_by_key(|it| std::cmp::Reverse(sizes[*it as usize]));
    let mut numbers = vec![0u32; groups.len()];
    for (number, group) in (0u32..).zip(order) {
        numbers[group as usize] = number;
    }
    groups.iter().map(|it| numbers[*it as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(n: usize, edges: &[(u32, u32)]) -> Graph {
        Graph::new(n, edges.iter().map(|edge| (edge.0, edge.1, 1.0)))
    }

    #[test]
    fn the_nearest_come_first_whichever_way_edges_point() {
        // 0 → 1 → 2 → 3, 4 → 0, 5 alone.
        let graph = graph(6, &[(0, 1), (1, 2), (2, 3), (4, 0)]);
        for (of, depth, limit, expected) in [
            (0, 0, 9, &[][..]),
            (0, 1, 9, &[(1, 1), (4, 1)]),
            (0, 2, 9, &[(1, 1), (4, 1), (2, 2)]),
            (0, 9, 9, &[(1, 1), (4, 1), (2, 2), (3, 3)]),
            (0, 9, 2, &[(1, 1), (4, 1)]),
            (0, 9, 0, &[]),
            (3, u32::MAX, 9, &[(2, 1), (1, 2), (0, 3), (4, 4)]),
            (5, 9, 9, &[]),
            (6, 9, 9, &[]),
        ] {
            let found = graph.neighbourhood(of, depth, limit);
            assert_eq!(found, expected, "{of} {depth} {limit}");
        }
    }

    #[test]
    fn the_shortest_path_minds_directions_if_asked() {
        let graph = graph(6, &[(0, 1), (1, 2), (2, 3), (0, 4), (4, 3)]);
        for (from, to, directed, expected) in [
            (0, 3, true, Some(&[0, 4, 3][..])),
            (3, 0, true, None),
            (3, 0, false, Some(&[3, 4, 0])),
            (2, 2, true, Some(&[2])),
            (0, 5, false, None),
            (0, 6, false, None),
            (6, 0, true, None),
        ] {
            let found = graph.shortest_path(from, to, directed);
            assert_eq!(found.as_deref(), expected, "{from} {to} {directed}");
        }
    }

    #[test]
    fn ranks_are_those_of_the_formula() {
        // Two pages that link to each other are alike; a third that both link to, and that links nowhere,
        // is ranked above them.
        let ranks = graph(2, &[(0, 1), (1, 0)]).page_rank(0.85);
        assert!((ranks[0] - 0.5).abs() < 1e-9, "{ranks:?}");
        let ranks = graph(3, &[(0, 2), (1, 2)]).page_rank(0.85);
        // x = base, y = base + 2·0.85·x, base = (0.15 + 0.85·y) / 3, and 2x + y = 1.
        let x = 1.0 / (2.0 + 2.7);
        assert!((ranks[0] - x).abs() < 1e-8, "{ranks:?}");
        assert!((ranks[2] - 2.7 * x).abs() < 1e-8, "{ranks:?}");
        let heavy = Graph::new(3, [(0, 1, 3.0), (0, 2, 1.0)]).page_rank(0.85);
        assert!(heavy[1] > heavy[2] && heavy[2] > heavy[0]);
        assert!(graph(0, &[]).page_rank(0.85).is_empty());
    }

    #[test]
    fn what_is_joined_belongs_together() {
        let clique = |from: u32, n: u32| {
            (from..from + n).flat_map(move |a| (a + 1..from + n).map(move |b| (a, b)))
        };
        // Five, then four, joined by one edge, and one alone.
        let edges: Vec<(u32, u32)> = clique(0, 5).chain(clique(5, 4)).chain([(4, 5)]).collect();
        let it = graph(10, &edges);
        assert_eq!(it.communities(), [0, 0, 0, 0, 0, 1, 1, 1, 1, 2]);
        assert_eq!(it.components(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(it.orphans(), [9]);
        // The larger is first even if its numbers are later.
        let edges: Vec<(u32, u32)> = clique(0, 3).chain(clique(3, 6)).collect();
        assert_eq!(graph(9, &edges).communities(), [1, 1, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(graph(3, &[]).communities(), [0, 1, 2]);
        assert!(graph(0, &[]).communities().is_empty());
    }

    #[test]
    fn a_ring_of_cliques_falls_into_its_cliques() {
        let mut edges = Vec::new();
        for clique in 0..30u32 {
            let nodes = clique * 5..clique * 5 + 5;
            edges.extend(
                nodes
                    .clone()
                    .flat_map(|a| (a + 1..nodes.end).map(move |b| (a, b))),
            );
            edges.push((clique * 5, (clique * 5 + 7) % 150));
        }
        let found = graph(150, &edges).communities();
        for clique in found.chunks(5) {
            assert!(clique.iter().all(|it| *it == clique[0]), "{clique:?}");
        }
        let n = found.iter().max().unwrap() + 1;
        assert!((10..=30).contains(&n), "{n} communities");
    }

    #[test]
    fn edges_that_say_nothing_are_left_out() {
        let it = Graph::new(3, [(0, 0, 1.0), (0, 7, 1.0), (9, 1, 1.0), (1, 2, f64::NAN)]);
        assert_eq!(it.orphans(), [0]);
        assert!(it.page_rank(f64::NAN).iter().all(|it| it.is_finite()));
        assert_eq!(it.communities().len(), 3);
        assert_eq!((it.len(), it.is_empty()), (3, false));
    }

    #[test]
    fn large_graphs_of_bad_shapes_are_read() {
        let n = 20_000u32;
        let star = Graph::new(n as usize, (1..n).map(|it| (it, 0, 1.0)));
        let line = Graph::new(n as usize, (1..n).map(|it| (it - 1, it, 1.0)));
        for it in [star, line] {
            assert!((it.page_rank(0.85).iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert_eq!(it.components(), vec![0; n as usize]);
            assert_eq!(it.communities().len(), n as usize);
        }
        let line = Graph::new(n as usize, (1..n).map(|it| (it - 1, it, 1.0)));
        assert_eq!(
            line.shortest_path(0, n - 1, true).unwrap().len(),
            n as usize
        );
    }

    proptest! {
        #[test]
        fn what_holds_for_any_graph(
            n in 0usize..30,
            edges in prop::collection::vec((0u32..35, 0u32..35, -1.0f64..3.0), 0..80),
        ) {
            let graph = Graph::new(n, edges.iter().copied());
            let ranks = graph.page_rank(0.85);
            let sum: f64 = ranks.iter().sum();
            prop_assert!(n == 0 || (sum - 1.0).abs() < 1e-9);
            prop_assert!(ranks.iter().all(|it| *it > 0.0));
            let communities = graph.communities();
            let components = graph.components();
            prop_assert_eq!(&communities, &graph.communities());
            // A community is within one component, and numbers have no gaps.
            for a in 0..n {
                for b in 0..n {
                    prop_assert!(communities[a] != communities[b] || components[a] == components[b]);
                }
            }
            let n_communities = communities.iter().max().map_or(0, |it| it + 1);
            prop_assert!((0..n_communities).all(|it| communities.contains(&it)));
            for orphan in graph.orphans() {
                prop_assert!(graph.neighbourhood(orphan, 9, 99).is_empty());
            }
        }
    }
}
