//! Suspicious shapes in the graph of memories: memories without edges, and memories that gained many
//! edges quickly.
//!
//! Edges that the program made itself do not count (see [`crate::types::relation::counts`]); the
//! caller leaves them out.

/// At most this many of each kind are named in the warnings.
const NAMED_MAX: usize = 5;

/// How many orphans are still safe.
const ORPHANS_SAFE_MAX: usize = 5;

/// Thresholds for sudden cores: memories that became important too quickly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// This many edges into a memory make it a core … (default 5)
    pub core_edges_min: usize,
    /// … and a core that was read less often than this is a sudden one (default 3).
    pub core_access_min: u64,
    /// This many edges into a memory within the window make it a sudden core too (default 20).
    pub burst_edges_min: usize,
    /// The window, in milliseconds. (default one minute)
    pub burst_window_ms: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            core_edges_min: 5,
            core_access_min: 3,
            burst_edges_min: 20,
            burst_window_ms: 60_000,
        }
    }
}

/// A memory and its edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex<Id> {
    /// Its id.
    pub id: Id,
    /// The number of edges from it.
    pub out_edges: usize,
    /// When each edge to it was made, in milliseconds since 1970, in any order.
    pub in_edges_ms: Vec<u64>,
    /// How often it was read.
    pub access_count: u64,
}

/// The findings about the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology<Id> {
    /// Memories without an edge, in the order they were given.
    pub orphans: Vec<Id>,
    /// Memories that gained edges too quickly, in the order they were given.
    pub sudden_cores: Vec<Id>,
}

impl<Id: Clone> Topology<Id> {
    /// The first orphans, then the first sudden cores.
    pub fn warnings(&self) -> Vec<Id> {
        let orphans = self.orphans.iter().take(NAMED_MAX);
        orphans
            .chain(self.sudden_cores.iter().take(NAMED_MAX))
            .cloned()
            .collect()
    }

    /// Whether there is nothing to worry about.
    pub fn is_safe(&self) -> bool {
        self.orphans.len() <= ORPHANS_SAFE_MAX && self.sudden_cores.is_empty()
    }
}

/// Inspects every memory.
pub fn inspect<Id: Clone>(vertices: &[Vertex<Id>], thresholds: &Thresholds) -> Topology<Id> {
    let ids = |chosen: &dyn Fn(&Vertex<Id>) -> bool| -> Vec<Id> {
        let chosen = vertices.iter().filter(|it| chosen(it));
        chosen.map(|it| it.id.clone()).collect()
    };
    Topology {
        orphans: ids(&|node| node.out_edges == 0 && node.in_edges_ms.is_empty()),
        sudden_cores: ids(&|it| is_sudden_core(it, thresholds)),
    }
}

fn is_sudden_core<Id>(vertex: &Vertex<Id>, thresholds: &Thresholds) -> bool {
    let unread_core = vertex.in_edges_ms.len() >= thresholds.core_edges_min
        && vertex.access_count < thresholds.core_access_min;
    unread_core || has_burst(&vertex.in_edges_ms, thresholds)
}

/// Whether enough times are within one window, wherever it begins.
fn has_burst(moments_ms: &[u64], thresholds: &Thresholds) -> bool {
    let mut sorted = moments_ms.to_vec();
    sorted.sort_unstable();
    sorted
        .windows(thresholds.burst_edges_min.max(1))
        .any(|run| match run {
            [first, .., last] => last - first <= thresholds.burst_window_ms,
            // A single edge is a burst if one is enough.
            _ => true,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vertex(id: u32, out_edges: usize, in_edges_ms: &[u64], access_count: u64) -> Vertex<u32> {
        Vertex {
            id,
            out_edges,
            in_edges_ms: in_edges_ms.to_vec(),
            access_count,
        }
    }

    fn hours(n: u64) -> Vec<u64> {
        (0..n).map(|it| it * 3_600_000).collect()
    }

    #[test]
    fn five_orphans_are_safe_and_six_are_not() {
        for (n, safe) in [(0, true), (5, true), (6, false)] {
            let orphans: Vec<_> = (0..n).map(|id| vertex(id, 0, &[], 0)).collect();
            let found = inspect(&orphans, &Thresholds::default());
            assert_eq!(found.orphans.len(), n as usize);
            assert_eq!(found.is_safe(), safe, "{n} orphans");
        }
    }

    #[test]
    fn an_edge_in_either_direction_is_enough_not_to_be_an_orphan() {
        let found = inspect(
            &[
                vertex(1, 1, &[], 0),
                vertex(2, 0, &[7], 0),
                vertex(3, 0, &[], 9),
            ],
            &Thresholds::default(),
        );
        assert_eq!(found.orphans, [3]);
    }

    #[test]
    fn a_core_is_sudden_when_nobody_read_it_or_when_it_came_at_once() {
        let at_once = vec![5_000; 20];
        let within: Vec<u64> = (0..20).map(|it| it * 3_157).collect();
        let beyond: Vec<u64> = (0..20).map(|it| it * 3_158).collect();
        for (why, edges, accesses, sudden) in [
            ("five edges, two reads", &hours(5), 2, true),
            ("five edges, three reads", &hours(5), 3, false),
            ("four edges, unread", &hours(4), 0, false),
            ("twenty edges at once, well read", &at_once, 100, true),
            ("twenty edges in a minute", &within, 100, true),
            ("twenty edges in a little more", &beyond, 100, false),
            ("many edges over days, well read", &hours(90), 100, false),
        ] {
            let found = inspect(&[vertex(1, 3, edges, accesses)], &Thresholds::default());
            assert_eq!(!found.sudden_cores.is_empty(), sudden, "{why}");
            assert_eq!(found.is_safe(), !sudden, "{why}");
        }
    }

    #[test]
    fn the_order_of_edges_does_not_hide_a_burst() {
        let mut moments = hours(40);
        moments.extend([500_000_000_000; 10]);
        moments.rotate_left(13);
        let thresholds = Thresholds {
            burst_edges_min: 10,
            ..Thresholds::default()
        };
        let found = inspect(&[vertex(1, 0, &moments, 50)], &thresholds);
        assert_eq!(found.sudden_cores, [1]);
    }

    #[test]
    fn warnings_name_the_first_five_of_each() {
        let orphans = (0..8).map(|id| vertex(id, 0, &[], 0));
        let cores = (10..18).map(|id| vertex(id, 0, &hours(5), 0));
        let found = inspect(
            &orphans.chain(cores).collect::<Vec<_>>(),
            &Thresholds::default(),
        );
        assert_eq!(found.warnings(), [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]);
    }

    #[test]
    fn thresholds_of_zero_do_not_break_anything() {
        let none = Thresholds {
            core_edges_min: 0,
            core_access_min: 0,
            burst_edges_min: 0,
            burst_window_ms: 0,
        };
        assert!(
            inspect(&[vertex(1, 0, &[], 0)], &none)
                .sudden_cores
                .is_empty()
        );
        assert_eq!(inspect(&[vertex(1, 0, &[1], 9)], &none).sudden_cores, [1]);
    }
}
