//! Shortest paths between two nodes, searched from both ends.

use super::expand::other_end;
use super::{Flow, Next, Row};
use crate::context::Context;
use crate::element::{Direction, NodeId, Rel};
use crate::error::Result;
use crate::plan::{Far, Op, Shortest};
use crate::value::{Fast, Path, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// What was reached from one end.
struct Side {
    direction: Direction,
    depth: u64,
    /// The nodes at this depth.
    edge: Vec<NodeId>,
    /// How each node was reached: its depth, and the last relationships of all shortest ways.
    reached: HashMap<NodeId, (u64, Vec<Rel>), Fast>,
}

impl Side {
    fn new(node: NodeId, direction: Direction) -> Self {
        Self {
            direction,
            depth: 0,
            edge: vec![node],
            reached: HashMap::from_iter([(node, (0, Vec::new()))]),
        }
    }
}

impl Context<'_> {
    /// A path from a node to itself has no relationships, so it is only found where none are allowed.
    #[inline(never)]
    pub(super) fn shortest(
        &self,
        input: &Op,
        shortest: &Shortest,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        let far = &shortest.far;
        self.run(input, row, &mut |row| {
            let from = self.node(&row[far.step.from])?;
            let to = self.node(&row[far.step.to])?;
            let (Some(from), Some(to)) = (from, to) else {
                return Ok(Flow::Continue);
            };
            let paths = if from == to {
                let here = Path {
                    nodes: vec![from],
                    rels: Vec::new(),
                };
                if far.least == 0 {
                    vec![here]
                } else {
                    Vec::new()
                }
            } else {
                self.search(far, from, to, shortest.all, row)?
            };
            for path in paths {
                if (path.rels.len() as u64) < far.least {
                    continue;
                }
                let rels = path.rels.iter().map(|it| Value::Rel(*it)).collect();
                row[far.step.rel] = self.list(rels)?;
                row[shortest.path] = Value::Path(Arc::new(path));
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        })
    }

    fn search(
        &self,
        far: &Far,
        from: NodeId,
        to: NodeId,
        all: bool,
        row: &mut Row,
    ) -> Result<Vec<Path>> {
        if far.step.types.is_impossible() {
            return Ok(Vec::new());
        }
        let mut here = Side::new(from, far.step.direction);
        let mut there = Side::new(to, far.step.direction.reverse());
        let mut held = self.hold();
        loop {
            if here.depth + there.depth >= far.most {
                return Ok(Vec::new());
            }
            let (side, other) = if here.edge.len() <= there.edge.len() {
                (&mut here, &there)
            } else {
                (&mut there, &here)
            };
            self.advance(far, side, row)?;
            held.add(64 * side.edge.len() as u64)?;
            if side.edge.is_empty() {
                return Ok(Vec::new());
            }
            let mut meets: Vec<NodeId> = side.edge.clone();
            meets.retain(|it| other.reached.contains_key(it));
            if meets.is_empty() {
                continue;
            }
            meets.sort();
            let mut paths = Vec::new();
            for meet in meets {
                let before = self.ways(&here, meet, all)?;
                let after = self.ways(&there, meet, all)?;
                for first in &before {
                    for second in &after {
                        self.steps((first.len() + second.len()) as u64)?;
                        held.add(40 * (first.len() + second.len()) as u64)?;
                        paths.push(path(from, first, second));
                        if !all {
                            return Ok(paths);
                        }
                    }
                }
            }
            return Ok(paths);
        }
    }

    /// Goes one step further from one end.
    fn advance(&self, far: &Far, side: &mut Side, row: &mut Row) -> Result<()> {
        side.depth += 1;
        let mut edge = Vec::new();
        let mut rels = Vec::new();
        for node in std::mem::take(&mut side.edge) {
            rels.clear();
            self.graph
                .rels(node, side.direction, &far.step.types.tokens, &mut rels)?;
            for rel in &rels {
                self.steps(1)?;
                if !self.fits(far, rel, row)? {
                    continue;
                }
                let to = other_end(rel, node);
                let (depth, ways) = side.reached.entry(to).or_insert_with(|| {
                    edge.push(to);
                    (side.depth, Vec::new())
                });
                if *depth == side.depth {
                    ways.push(*rel);
                }
            }
        }
        side.edge = edge;
        Ok(())
    }

    /// The shortest ways from a node back to the end of a side, as relationships.
    fn ways(&self, side: &Side, node: NodeId, all: bool) -> Result<Vec<Vec<Rel>>> {
        let mut done = Vec::new();
        let mut open = vec![(node, Vec::new())];
        while let Some((node, way)) = open.pop() {
            self.steps(1 + way.len() as u64)?;
            let rels = side.reached.get(&node).map_or(&[][..], |it| &it.1);
            if rels.is_empty() {
                done.push(way);
                if !all {
                    break;
                }
                continue;
            }
            self.check_size(48 * (open.len() + done.len()) as u64)?;
            for rel in rels {
                let mut longer: Vec<Rel> = way.clone();
                longer.push(*rel);
                open.push((other_end(rel, node), longer));
            }
        }
        Ok(done)
    }
}

/// A path from its start: the way back from where both ends met, reversed, then the way on.
fn path(from: NodeId, before: &[Rel], after: &[Rel]) -> Path {
    let rels: Vec<Rel> = before.iter().rev().chain(after).copied().collect();
    let mut node = from;
    let mut nodes = vec![from];
    for rel in &rels {
        node = other_end(rel, node);
        nodes.push(node);
    }
    Path { nodes, rels }
}
