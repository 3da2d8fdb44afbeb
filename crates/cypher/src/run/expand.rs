//! Following relationships, one or many.

use super::{Flow, Next, Row};
use crate::context::Context;
use crate::element::{NodeId, Rel};
use crate::error::Result;
use crate::plan::{Expand, Far, Op, Slot};
use crate::value::Value;

/// Whether a relationship is in a slot, alone or in a list.
fn is_in(rel: &Rel, value: &Value) -> bool {
    match value {
        Value::Rel(it) => it.id == rel.id,
        Value::List(it) => it.items().iter().any(|it| is_in(rel, it)),
        _ => false,
    }
}

pub(super) fn is_used(rel: &Rel, unique: &[Slot], row: &Row) -> bool {
    unique.iter().any(|it| is_in(rel, &row[*it]))
}

pub(super) fn other_end(rel: &Rel, node: NodeId) -> NodeId {
    if rel.start == node {
        rel.end
    } else {
        rel.start
    }
}

impl Context<'_> {
    #[inline(never)]
    pub(super) fn expand(
        &self,
        input: &Op,
        step: &Expand,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        if step.types.is_impossible() {
            return Ok(Flow::Continue);
        }
        let mut rels: Vec<Rel> = Vec::new();
        self.run(input, row, &mut |row| {
            let Some(from) = self.node(&row[step.from])? else {
                return Ok(Flow::Continue);
            };
            let mut found = std::mem::take(&mut rels);
            found.clear();
            let into = if step.into {
                match self.node(&row[step.to])? {
                    Some(to) => Some(to),
                    None => return Ok(Flow::Continue),
                }
            } else {
                None
            };
            self.rels_between(step, from, into, &mut found)?;
            for rel in &found {
                self.steps(1)?;
                let to = other_end(rel, from);
                if into.is_some_and(|it| it != to) || is_used(rel, &step.unique, row) {
                    continue;
                }
                row[step.rel] = Value::Rel(*rel);
                if into.is_none() {
                    row[step.to] = Value::Node(to);
                }
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            rels = found;
            Ok(Flow::Continue)
        })
    }

    /// The relationships of a node, or those of the other end where it has fewer.
    fn rels_between(
        &self,
        step: &Expand,
        from: NodeId,
        into: Option<NodeId>,
        found: &mut Vec<Rel>,
    ) -> Result<()> {
        let tokens = &step.types.tokens;
        if let Some(to) = into {
            let reverse = step.direction.reverse();
            let here = self.graph.degree(from, step.direction, tokens)?;
            if here > 8 && self.graph.degree(to, reverse, tokens)? < here {
                self.graph.rels(to, reverse, tokens, found)?;
                found.retain(|it| other_end(it, to) == from);
                return Ok(());
            }
        }
        self.graph.rels(from, step.direction, tokens, found)
    }

    #[inline(never)]
    pub(super) fn far(&self, input: &Op, far: &Far, row: &mut Row, next: Next<'_>) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            let Some(from) = self.node(&row[far.step.from])? else {
                return Ok(Flow::Continue);
            };
            let into = if far.step.into {
                match self.node(&row[far.step.to])? {
                    Some(to) => Some(to),
                    None => return Ok(Flow::Continue),
                }
            } else {
                None
            };
            self.walk(far, from, into, row, next)
        })
    }

    /// All paths from a node, depth first, no relationship twice.
    fn walk(
        &self,
        far: &Far,
        from: NodeId,
        into: Option<NodeId>,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        let mut path: Vec<Rel> = Vec::new();
        if far.least == 0 && self.arrive(far, from, into, &path, row, next)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        if far.most == 0 || far.step.types.is_impossible() {
            return Ok(Flow::Continue);
        }
        // For each node on the way, the relationships that are still to be followed.
        let mut open: Vec<Vec<Rel>> = vec![self.rels_of(far, from)?];
        let mut nodes = vec![from];
        let mut held = self.hold();
        while let (Some(rels), Some(node)) = (open.last_mut(), nodes.last().copied()) {
            let Some(rel) = rels.pop() else {
                open.pop();
                nodes.pop();
                path.pop();
                continue;
            };
            self.steps(1)?;
            let seen = path.iter().any(|it| it.id == rel.id);
            if seen || is_used(&rel, &far.step.unique, row) || !self.fits(far, &rel, row)? {
                continue;
            }
            let to = other_end(&rel, node);
            path.push(rel);
            let n_steps = path.len() as u64;
            if n_steps >= far.least && self.arrive(far, to, into, &path, row, next)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            if n_steps < far.most {
                let rels = self.rels_of(far, to)?;
                held.replace(32 * (n_steps + 1) * (rels.len() as u64 + 1))?;
                open.push(rels);
                nodes.push(to);
            } else {
                path.pop();
            }
        }
        Ok(Flow::Continue)
    }

    fn rels_of(&self, far: &Far, node: NodeId) -> Result<Vec<Rel>> {
        let mut rels = Vec::new();
        let step = &far.step;
        self.graph
            .rels(node, step.direction, &step.types.tokens, &mut rels)?;
        rels.reverse();
        Ok(rels)
    }

    /// Whether a relationship is as the pattern asks.
    pub(super) fn fits(&self, far: &Far, rel: &Rel, row: &mut Row) -> Result<bool> {
        let Some((slot, condition)) = &far.filter else {
            return Ok(true);
        };
        row[*slot] = Value::Rel(*rel);
        self.holds(condition, row)
    }

    fn arrive(
        &self,
        far: &Far,
        to: NodeId,
        into: Option<NodeId>,
        path: &[Rel],
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        if into.is_some_and(|it| it != to) {
            return Ok(Flow::Continue);
        }
        self.steps(path.len() as u64 / 4)?;
        let mut rels: Vec<Value> = path.iter().map(|it| Value::Rel(*it)).collect();
        if far.reversed {
            rels.reverse();
        }
        row[far.step.rel] = self.list(rels)?;
        if into.is_none() {
            row[far.step.to] = Value::Node(to);
        }
        next(row)
    }
}
