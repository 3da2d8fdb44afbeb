//! Communities by the Louvain method.
//!
//! Each node joins the community of a neighbor as long as that raises the modularity; then
//! communities become the nodes of a smaller graph, and so on. Nodes are visited in the order of
//! their numbers.

use super::Graph;

/// Bounds on rounds over all nodes and on levels, well above what real graphs need.
const ROUNDS_MAX: usize = 32;
const LEVELS_MAX: usize = 32;
/// The smallest gain that counts: with less, rounding would let two communities trade a node forever.
const GAIN_MIN: f64 = 1e-12;

/// An undirected graph.
struct Level {
    /// Neighbors of each node with the weights of both directions together, without itself.
    near: Vec<Vec<(usize, f64)>>,
    /// Twice the weight within each node.
    within: Vec<f64>,
}

/// A community for each node; the numbers are below the number of nodes but otherwise arbitrary.
pub(super) fn louvain(graph: &Graph) -> Vec<u32> {
    let mut level = Level::of(graph);
    let mut of_node: Vec<usize> = (0..graph.len()).collect();
    for _ in 0..LEVELS_MAX {
        let (communities, n) = numbered(&level.joined());
        of_node
            .iter_mut()
            .for_each(|node| *node = communities[*node]);
        if n == level.near.len() {
            break;
        }
        level = level.merged(&communities, n);
    }
    let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
    of_node.into_iter().map(number).collect()
}

impl Level {
    fn of(graph: &Graph) -> Self {
        let near = graph.nodes().map(|node| {
            let both = graph.out.at(node).iter().chain(graph.into.at(node));
            summed(both.map(|pair| (pair.0 as usize, pair.1)).collect())
        });
        Self {
            near: near.collect(),
            within: vec![0.0; graph.len()],
        }
    }

    /// Assigns nodes to communities until no single move improves the result.
    fn joined(&self) -> Vec<usize> {
        let n = self.near.len();
        let degrees: Vec<f64> = (0..n)
            .map(|it| self.within[it] + self.near[it].iter().map(|it| it.1).sum::<f64>())
            .collect();
        let all: f64 = degrees.iter().sum();
        let mut community: Vec<usize> = (0..n).collect();
        if all <= 0.0 {
            return community;
        }
        let mut totals = degrees.clone();
        let mut weights = vec![0.0; n];
        for _ in 0..ROUNDS_MAX {
            let mut has_moved = false;
            for node in 0..n {
                let own = community[node];
                totals[own] -= degrees[node];
                let mut candidates = vec![own];
                for &(other, weight) in &self.near[node] {
                    let it = community[other];
                    if weights[it] == 0.0 && it != own {
                        candidates.push(it);
                    }
                    weights[it] += weight;
                }
                let gain = |index: usize| weights[index] - totals[index] * degrees[node] / all;
                let mut best = own;
                for &it in &candidates {
                    let more = gain(it) - gain(best);
                    if more > GAIN_MIN || more >= -GAIN_MIN && best != own && it < best {
                        best = it;
                    }
                }
                candidates.iter().for_each(|it| weights[*it] = 0.0);
                totals[best] += degrees[node];
                has_moved |= best != own;
                community[node] = best;
            }
            if !has_moved {
                break;
            }
        }
        community
    }

    fn merged(&self, communities: &[usize], n: usize) -> Self {
        let mut near: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n];
        let mut within = vec![0.0; n];
        for (node, &own) in communities.iter().enumerate() {
            within[own] += self.within[node];
            for &(other, weight) in &self.near[node] {
                let its = communities[other];
                if its == own {
                    within[own] += weight;
                } else {
                    near[own].push((its, weight));
                }
            }
        }
        Self {
            near: near.into_iter().map(summed).collect(),
            within,
        }
    }
}

/// One entry for each neighbor, in their order.
fn summed(mut near: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    near.sort_by_key(|it| it.0);
    near.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1 += next.1;
        }
        is_same
    });
    near
}

/// The same communities, numbered from 0 without gaps, and how many there are.
fn numbered(communities: &[usize]) -> (Vec<usize>, usize) {
    let mut numbers: Vec<Option<usize>> = vec![None; communities.len()];
    let mut n = 0;
    let numbered = communities.iter().map(|it| {
        *numbers[*it].get_or_insert_with(|| {
            n += 1;
            n - 1
        })
    });
    let numbered = numbered.collect();
    (numbered, n)
}
