//! Patterns whose relationship is known already.

use super::expand::{is_used, other_end};
use super::{Flow, Next, Row};
use crate::context::Context;
use crate::element::{Direction, NodeId, Rel};
use crate::error::{Error, Result};
use crate::plan::{Endpoints, Op};
use crate::value::Value;

impl Context<'_> {
    #[inline(never)]
    pub(super) fn endpoints(
        &self,
        input: &Op,
        step: &Endpoints,
        row: &mut Row,
        next: Next<'_>,
    ) -> Result<Flow> {
        self.run(input, row, &mut |row| {
            self.steps(1)?;
            let Some(rels) = known_rels(step, &row[step.rel])? else {
                return Ok(Flow::Continue);
            };
            if let Some((least, most)) = step.range
                && !(least..=most).contains(&(rels.len() as u64))
            {
                return Ok(Flow::Continue);
            }
            for rel in &rels {
                if !step.types.allows(rel.kind) || is_used(rel, &step.unique, row) {
                    return Ok(Flow::Continue);
                }
                if let Some((slot, condition)) = &step.filter {
                    row[*slot] = Value::Rel(*rel);
                    if !self.holds(condition, row)? {
                        return Ok(Flow::Continue);
                    }
                }
            }
            let mut starts: Vec<NodeId> = Vec::new();
            match rels.first() {
                Some(first) => {
                    if step.direction != Direction::In {
                        starts.push(first.start);
                    }
                    if step.direction != Direction::Out && !starts.contains(&first.end) {
                        starts.push(first.end);
                    }
                }
                None => starts.extend(self.node(&row[step.from])?),
            }
            for start in starts {
                let Some(end) = walk(&rels, start, step.direction) else {
                    continue;
                };
                let fits = |known: bool, value: &Value, node: NodeId| {
                    !known || matches!(value, Value::Node(it) if *it == node)
                };
                if !fits(step.from_known, &row[step.from], start)
                    || !fits(step.to_known, &row[step.to], end)
                    || step.from == step.to && start != end
                {
                    continue;
                }
                row[step.from] = Value::Node(start);
                row[step.to] = Value::Node(end);
                if next(row)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        })
    }
}

/// The relationships of a slot; none for null.
fn known_rels(step: &Endpoints, value: &Value) -> Result<Option<Vec<Rel>>> {
    let wrong = |value: &Value| {
        let message = format!("expected a Relationship, found {}", value.type_name());
        Err(Error::type_error(message))
    };
    match (value, step.range) {
        (Value::Null, _) => Ok(None),
        (Value::Rel(it), None) => Ok(Some(vec![*it])),
        (Value::List(it), Some(_)) => {
            let mut rels = Vec::new();
            for item in it.items() {
                match item {
                    Value::Rel(it) => rels.push(*it),
                    Value::Null => return Ok(None),
                    other => return wrong(other),
                }
            }
            Ok(Some(rels))
        }
        (other, _) => wrong(other),
    }
}

/// Where a chain of relationships leads.
fn walk(rels: &[Rel], start: NodeId, direction: Direction) -> Option<NodeId> {
    let mut node = start;
    for rel in rels {
        let follows = match direction {
            Direction::Out => rel.start == node,
            Direction::In => rel.end == node,
            Direction::Both => rel.start == node || rel.end == node,
        };
        if !follows {
            return None;
        }
        node = other_end(rel, node);
    }
    Some(node)
}
