//! The order in which a `MATCH` is read, chosen by cost.
//!
//! Greedy: of all steps that can be taken next, the one that is thought to leave the fewest rows. A step
//! reads the relationships of a node that is known, or finds a new node by id, index or label. Conditions
//! are checked as soon as all that they name is known.

use super::Compiler;
use super::patterns::{Condition, Node, Pattern, Rel};
use crate::ast::{Compare, Junction};
use crate::element::{Direction, Token};
use crate::error::Result;
use crate::functions;
use crate::plan::{Endpoints, Expand, Far, Op, OpKind, Shortest, Slot, X};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a new node is found.
enum Start {
    All,
    Label(Arc<str>, Option<Token>),
    /// By the condition of this number.
    Index {
        condition: usize,
        label: Option<(Arc<str>, Token)>,
        key: Arc<str>,
    },
    Id {
        condition: usize,
    },
    /// By an equality between known rows and this node.
    Join {
        condition: usize,
    },
}

struct Planner {
    op: Op,
    known: BTreeSet<Slot>,
    conditions: Vec<Option<Condition>>,
    /// The relationships that were read, and their types.
    read: Vec<(Slot, crate::plan::Types)>,
}

impl Compiler<'_> {
    pub(super) fn plan_match(
        &mut self,
        input: Op,
        pattern: Pattern,
        known: BTreeSet<Slot>,
    ) -> Result<Op> {
        let Pattern {
            nodes,
            rels,
            paths,
            shortest,
            conditions,
        } = pattern;
        // Local variables of expressions are slots too, but always known where they are named.
        let own: BTreeSet<Slot> = nodes
            .iter()
            .map(|it| it.slot)
            .chain(rels.iter().map(|it| it.slot))
            .chain(paths.iter().map(|it| it.slot))
            .chain(shortest.iter().flat_map(|it| [it.path, it.rel.slot]))
            .filter(|it| !known.contains(it))
            .collect();
        let conditions = conditions.into_iter().map(|mut it| {
            it.needs.retain(|slot| own.contains(slot));
            Some(it)
        });
        let mut planner = Planner {
            op: input,
            known: known.clone(),
            conditions: conditions.collect(),
            read: Vec::new(),
        };
        for node in nodes.iter().filter(|it| it.known) {
            let slot = node.slot;
            self.push(&mut planner, 1.0, |input| OpKind::IsNode { input, slot });
        }
        let mut rels: Vec<Rel> = rels;
        for rel in &mut rels {
            rel.filter_needs.retain(|slot| own.contains(slot));
        }
        let mut paths = paths;
        let mut shortest = shortest;
        loop {
            self.apply(&mut planner);
            paths.retain(|path| {
                let slots = path.steps.iter().flat_map(|step| [step.rel, step.node]);
                let ready = planner.known.contains(&path.start)
                    && slots.clone().all(|it| planner.known.contains(&it));
                if ready {
                    self.push(&mut planner, 1.0, |input| OpKind::BindPath {
                        input,
                        slot: path.slot,
                        start: path.start,
                        steps: path.steps.clone(),
                    });
                    planner.known.insert(path.slot);
                }
                !ready
            });
            self.apply(&mut planner);
            let next = rels
                .iter()
                .enumerate()
                .filter_map(|(idx, rel)| Some((idx, self.rel_cost(&planner, rel, &nodes)?)))
                .min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((idx, factor)) = next {
                let rel = rels.swap_remove(idx);
                self.read_rel(&mut planner, rel, factor);
                continue;
            }
            let ready = shortest.iter().position(|it| {
                let ends = [it.rel.from, it.rel.to];
                ends.iter().all(|end| planner.known.contains(end))
                    && it.rel.filter_needs.is_subset(&planner.known)
            });
            if let Some(idx) = ready {
                let it = shortest.swap_remove(idx);
                self.read_shortest(&mut planner, it);
                continue;
            }
            let next = nodes
                .iter()
                .filter(|it| !planner.known.contains(&it.slot))
                .map(|it| (it, self.start(&planner, it, &own)))
                .min_by(|a, b| a.1.1.total_cmp(&b.1.1));
            let Some((node, (start, n_rows))) = next else {
                break;
            };
            self.find_node(&mut planner, node, start, n_rows);
        }
        self.apply(&mut planner);
        let waits = planner.conditions.iter().any(Option::is_some);
        if waits || !rels.is_empty() || !paths.is_empty() || !shortest.is_empty() {
            let message = "the pattern refers to itself: a part of it needs what only it gives";
            return Err(self.fail("UndefinedVariable", 0, message));
        }
        Ok(planner.op)
    }

    fn push(&mut self, planner: &mut Planner, factor: f64, kind: impl FnOnce(Box<Op>) -> OpKind) {
        let placeholder = Op {
            id: 0,
            estimate: 0.0,
            kind: OpKind::Argument,
        };
        let input = std::mem::replace(&mut planner.op, placeholder);
        let estimate = input.estimate * factor;
        planner.op = self.op(estimate, kind(Box::new(input)));
    }

    /// Checks every condition whose names are all known, in one step, so that many do not make a plan deep.
    fn apply(&mut self, planner: &mut Planner) {
        let known = &planner.known;
        let ready = planner
            .conditions
            .iter_mut()
            .filter_map(|condition| condition.take_if(|it| it.needs.is_subset(known)));
        let ready: Vec<Condition> = ready.collect();
        let selectivity = ready.iter().map(|it| it.selectivity).product();
        if let Some(condition) = all_of(ready) {
            self.push(planner, selectivity, |input| OpKind::Filter {
                input,
                condition,
            });
        }
    }

    /// The factor by which the next relationship multiplies the rows; none if it cannot be read yet.
    fn rel_cost(&self, planner: &Planner, rel: &Rel, nodes: &[Node]) -> Option<f64> {
        if !rel.filter_needs.is_subset(&planner.known) {
            return None;
        }
        if rel.known {
            return Some(0.1);
        }
        let from = planner.known.contains(&rel.from);
        let to = planner.known.contains(&rel.to);
        if !from && !to {
            return None;
        }
        let n_all = (self.graph.n_nodes(None) as f64).max(1.0);
        let n_rels = if rel.types.names.is_empty() {
            self.graph.n_rels(None) as f64
        } else {
            let tokens = rel.types.tokens.iter();
            tokens.map(|it| self.graph.n_rels(Some(*it)) as f64).sum()
        };
        let n_of = |slot: Slot| {
            let node = nodes.iter().find(|it| it.slot == slot);
            let labels = node.map_or(&[][..], |it| &it.labels[..]);
            let counts = labels.iter().map(|label| {
                label
                    .1
                    .map_or(0.0, |it| self.graph.n_nodes(Some(it)) as f64)
            });
            counts.fold(n_all, f64::min).max(1.0)
        };
        let near = if from { rel.from } else { rel.to };
        let far = if from { rel.to } else { rel.from };
        let both = if rel.direction == Direction::Both {
            2.0
        } else {
            1.0
        };
        let degree = n_rels * both / n_of(near);
        let steps = match rel.range {
            None => degree,
            Some((_, most)) => {
                let most = most.min(5) as i32;
                (1..=most.max(1)).map(|it| degree.powi(it)).sum()
            }
        };
        // Conditions on the other end are checked at once.
        let kept: f64 = planner
            .conditions
            .iter()
            .flatten()
            .filter(|it| it.needs.len() == 1 && it.needs.contains(&far))
            .map(|it| it.selectivity)
            .product();
        let into = if from && to { 1.0 / n_all } else { 1.0 };
        Some(steps * kept * into)
    }

    fn read_rel(&mut self, planner: &mut Planner, rel: Rel, factor: f64) {
        let unique: Vec<Slot> = planner
            .read
            .iter()
            .filter(|(slot, types)| *slot != rel.slot && !types.is_disjoint(&rel.types))
            .map(|it| it.0)
            .collect();
        planner.read.push((rel.slot, rel.types.clone()));
        let from = planner.known.contains(&rel.from);
        let to = planner.known.contains(&rel.to);
        planner.known.extend([rel.from, rel.to, rel.slot]);
        if rel.known {
            let step = Box::new(Endpoints {
                from: rel.from,
                rel: rel.slot,
                to: rel.to,
                direction: rel.direction,
                types: rel.types,
                from_known: from,
                to_known: to,
                range: rel.range,
                filter: rel.filter,
                unique,
            });
            self.push(planner, factor, |input| OpKind::Endpoints { input, step });
            return;
        }
        let reversed = !from;
        let step = Expand {
            from: if reversed { rel.to } else { rel.from },
            rel: rel.slot,
            to: if reversed { rel.from } else { rel.to },
            direction: if reversed {
                rel.direction.reverse()
            } else {
                rel.direction
            },
            types: rel.types,
            // A relationship from a node to itself leads to a known node.
            into: from && to || rel.from == rel.to,
            unique,
        };
        match rel.range {
            None => self.push(planner, factor, |input| OpKind::Expand { input, step }),
            Some((least, most)) => {
                let step = Box::new(Far {
                    step,
                    least,
                    most,
                    reversed,
                    filter: rel.filter,
                });
                self.push(planner, factor, |input| OpKind::Far { input, step });
            }
        }
    }

    fn read_shortest(&mut self, planner: &mut Planner, it: super::patterns::Shortest) {
        let (least, most) = it.rel.range.unwrap_or((1, 1));
        planner.known.extend([it.rel.slot, it.path]);
        let step = Expand {
            from: it.rel.from,
            rel: it.rel.slot,
            to: it.rel.to,
            direction: it.rel.direction,
            types: it.rel.types,
            into: true,
            unique: Vec::new(),
        };
        let step = Box::new(Shortest {
            far: Far {
                step,
                least,
                most,
                reversed: false,
                filter: it.rel.filter,
            },
            path: it.path,
            all: it.all,
        });
        self.push(planner, 1.0, |input| OpKind::Shortest { input, step });
    }

    /// The cheapest way to find a node, and the estimated number of nodes.
    fn start(&self, planner: &Planner, node: &Node, own: &BTreeSet<Slot>) -> (Start, f64) {
        let n_all = self.graph.n_nodes(None) as f64;
        let mut best = (Start::All, n_all);
        for (name, token) in &node.labels {
            let n = token.map_or(0.0, |it| self.graph.n_nodes(Some(it)) as f64);
            if n < best.1 || matches!(best.0, Start::All) {
                best = (Start::Label(Arc::clone(name), *token), n);
            }
        }
        let mut n_rows = best.1;
        let has_rows = planner.known.iter().any(|it| own.contains(it));
        for (idx, condition) in planner.conditions.iter().enumerate() {
            let Some(condition) = condition else { continue };
            let only = condition.needs.contains(&node.slot)
                && condition
                    .needs
                    .iter()
                    .all(|need| *need == node.slot || planner.known.contains(need));
            if !only || matches!(condition.condition, X::HasLabels(..)) {
                continue;
            }
            n_rows *= condition.selectivity;
            let Some((of, value_side)) = equality(&condition.condition, node.slot) else {
                continue;
            };
            if names(value_side, node.slot) {
                continue;
            }
            match of {
                Of::Id => return (Start::Id { condition: idx }, 1.0),
                Of::Property(key) => {
                    let labels = node
                        .labels
                        .iter()
                        .map(|label| label.1.map(|token| (Arc::clone(&label.0), token)));
                    for label in labels.chain([None]) {
                        let token = label.as_ref().map(|it| it.1);
                        let Some(n) = self.graph.index_selectivity(token, key) else {
                            continue;
                        };
                        if n < best.1 {
                            let key = Arc::clone(key);
                            best = (
                                Start::Index {
                                    condition: idx,
                                    label,
                                    key,
                                },
                                n,
                            );
                        }
                    }
                    let joins = has_rows && condition.needs.len() > 1;
                    if joins && matches!(best.0, Start::All | Start::Label(..)) {
                        best = (Start::Join { condition: idx }, best.1 * 0.1);
                    }
                }
            }
        }
        (best.0, best.1.min(n_rows.max(0.0)))
    }

    fn find_node(&mut self, planner: &mut Planner, node: &Node, start: Start, n_rows: f64) {
        let slot = node.slot;
        planner.known.insert(slot);
        let take = |planner: &mut Planner, idx: usize| {
            let condition = planner.conditions.get_mut(idx).and_then(Option::take);
            condition.map(|it| it.condition)
        };
        match start {
            Start::All => self.push(planner, n_rows.max(1e-3), |input| OpKind::Scan {
                input,
                slot,
                label: None,
            }),
            Start::Label(name, token) => {
                self.drop_label(planner, slot, &name);
                let n_label = token.map_or(0.0, |it| self.graph.n_nodes(Some(it)) as f64);
                self.push(planner, n_label, |input| OpKind::Scan {
                    input,
                    slot,
                    label: Some((name, token)),
                });
            }
            Start::Index {
                condition,
                label,
                key,
            } => {
                if let Some((name, _)) = &label {
                    self.drop_label(planner, slot, name);
                }
                if let Some(value) = take(planner, condition).and_then(|it| value_of(it, slot)) {
                    self.push(planner, n_rows, |input| OpKind::Seek {
                        input,
                        slot,
                        label,
                        key,
                        value,
                    });
                }
            }
            Start::Id { condition } => {
                if let Some(value) = take(planner, condition).and_then(|it| value_of(it, slot)) {
                    self.push(planner, 1.0, |input| OpKind::ById { input, slot, value });
                }
            }
            Start::Join { condition } => {
                let Some((own_side, other)) =
                    take(planner, condition).and_then(|it| sides(it, slot))
                else {
                    return;
                };
                let build = self.build_side(planner, node);
                self.push(planner, n_rows.max(1.0), |input| OpKind::Join {
                    input,
                    build: Box::new(build),
                    slot,
                    build_key: own_side,
                    probe_key: other,
                });
            }
        }
    }

    /// The nodes of one pattern with the conditions on them alone.
    fn build_side(&mut self, planner: &mut Planner, node: &Node) -> Op {
        let slot = node.slot;
        let argument = self.op(1.0, OpKind::Argument);
        let label = node.labels.first().cloned();
        if let Some((name, _)) = &label {
            self.drop_label(planner, slot, name);
        }
        let n = match &label {
            None => self.graph.n_nodes(None) as f64,
            Some((_, token)) => token.map_or(0.0, |it| self.graph.n_nodes(Some(it)) as f64),
        };
        let input = Box::new(argument);
        let mut op = self.op(n, OpKind::Scan { input, slot, label });
        let alone = planner.conditions.iter_mut().filter_map(|condition| {
            condition.take_if(|it| {
                let own = it.needs.len() == 1 && it.needs.contains(&slot);
                own && only_slot(&it.condition, slot)
            })
        });
        let alone: Vec<Condition> = alone.collect();
        let selectivity: f64 = alone.iter().map(|it| it.selectivity).product();
        if let Some(condition) = all_of(alone) {
            let kind = OpKind::Filter {
                input: Box::new(op),
                condition,
            };
            op = self.op(n * selectivity, kind);
        }
        op
    }

    /// The scan has already checked this label.
    fn drop_label(&self, planner: &mut Planner, slot: Slot, name: &str) {
        for condition in &mut planner.conditions {
            let is_it = match condition.as_ref().map(|it| &it.condition) {
                Some(X::HasLabels(of, labels)) => {
                    matches!(**of, X::Slot(it) if it == slot)
                        && labels.len() == 1
                        && labels.iter().all(|it| &*it.0 == name)
                }
                _ => false,
            };
            if is_it {
                *condition = None;
                return;
            }
        }
    }
}

/// Conditions that must all hold, as one.
fn all_of(conditions: Vec<Condition>) -> Option<X> {
    let mut conditions: Vec<X> = conditions.into_iter().map(|it| it.condition).collect();
    if conditions.len() > 1 {
        return Some(X::Junction(Junction::And, conditions));
    }
    conditions.pop()
}

/// The part of a node that is compared.
enum Of<'a> {
    Id,
    Property(&'a Arc<str>),
}

/// A side of an equality that is about a node: `n.key` or `id(n)`.
fn about(it: &X, slot: Slot) -> Option<Of<'_>> {
    match it {
        X::Property(of, key) => {
            matches!(**of, X::Slot(it) if it == slot).then_some(Of::Property(&key.name))
        }
        X::Call(function, arguments) if *function == functions::id() => {
            matches!(&arguments[..], [X::Slot(it)] if *it == slot).then_some(Of::Id)
        }
        _ => None,
    }
}

fn equality(condition: &X, slot: Slot) -> Option<(Of<'_>, &X)> {
    let X::Compare(left, rest) = condition else {
        return None;
    };
    let [(Compare::Equal, right)] = &rest[..] else {
        return None;
    };
    if let Some(of) = about(left, slot) {
        return Some((of, right));
    }
    about(right, slot).map(|of| (of, &**left))
}

/// The side that is about the node, and the other.
fn sides(condition: X, slot: Slot) -> Option<(X, X)> {
    let X::Compare(left, mut rest) = condition else {
        return None;
    };
    let (_, right) = rest.pop()?;
    if about(&left, slot).is_some() {
        return Some((*left, right));
    }
    Some((right, *left))
}

fn value_of(condition: X, slot: Slot) -> Option<X> {
    sides(condition, slot).map(|it| it.1)
}

/// Whether a simple expression names a slot; for other expressions true is assumed.
fn names(it: &X, slot: Slot) -> bool {
    match it {
        X::Const(_) | X::Param(..) => false,
        X::Slot(it) => *it == slot,
        X::Property(of, _) | X::Negate(of) => names(of, slot),
        X::Call(_, arguments) | X::List(arguments) => arguments.iter().any(|it| names(it, slot)),
        X::Arith(first, rest) => names(first, slot) || rest.iter().any(|it| names(&it.1, slot)),
        _ => true,
    }
}

/// Whether a condition names this slot and no other, so that it does not depend on the row.
fn only_slot(it: &X, slot: Slot) -> bool {
    match it {
        X::Const(_) | X::Param(..) => true,
        X::Slot(it) => *it == slot,
        X::Property(of, _)
        | X::Negate(of)
        | X::Not(of)
        | X::IsNull(of, _)
        | X::HasLabels(of, _) => only_slot(of, slot),
        X::Compare(first, rest) => {
            only_slot(first, slot) && rest.iter().all(|it| only_slot(&it.1, slot))
        }
        X::TextTest(_, a, b) | X::In(a, b) => only_slot(a, slot) && only_slot(b, slot),
        _ => false,
    }
}
