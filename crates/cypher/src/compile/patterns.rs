//! Patterns: their nodes and relationships, and the conditions on them.

use super::expressions::conjuncts;
use super::{Compiler, Scope, Var};
use crate::ast::{Compare, Expr, ExprKind, Name, NodePattern, PathKind, PatternPart, RelPattern};
use crate::element::{Direction, Token};
use crate::error::Result;
use crate::plan::{Op, OpKind, PathStep, Slot, Types, X};
use crate::types::Ty;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What one `MATCH` asks for.
#[derive(Default)]
pub(super) struct Pattern {
    pub(super) nodes: Vec<Node>,
    pub(super) rels: Vec<Rel>,
    pub(super) paths: Vec<PathPattern>,
    pub(super) shortest: Vec<Shortest>,
    pub(super) conditions: Vec<Condition>,
}

pub(super) struct Node {
    pub(super) slot: Slot,
    pub(super) labels: Vec<(Arc<str>, Option<Token>)>,
    /// It had a value before.
    pub(super) known: bool,
}

pub(super) struct Rel {
    pub(super) slot: Slot,
    pub(super) from: Slot,
    pub(super) to: Slot,
    pub(super) direction: Direction,
    pub(super) types: Types,
    pub(super) range: Option<(u64, u64)>,
    /// It had a value before.
    pub(super) known: bool,
    /// What each relationship of a variable length must be, and what that names.
    pub(super) filter: Option<(Slot, X)>,
    pub(super) filter_needs: BTreeSet<Slot>,
}

pub(super) struct PathPattern {
    pub(super) slot: Slot,
    pub(super) start: Slot,
    pub(super) steps: Vec<PathStep>,
}

pub(super) struct Shortest {
    pub(super) rel: Rel,
    pub(super) path: Slot,
    pub(super) all: bool,
}

pub(super) struct Condition {
    pub(super) condition: X,
    /// The slots that it names.
    pub(super) needs: BTreeSet<Slot>,
    /// The estimated share of rows that remain.
    pub(super) selectivity: f64,
}

impl Compiler<'_> {
    /// Adds the rows of a `MATCH`.
    pub(super) fn match_clause(
        &mut self,
        input: Op,
        scope: &Scope,
        optional: bool,
        parts: &[PatternPart],
        filter: Option<&Expr>,
    ) -> Result<(Op, Scope)> {
        let mut inner = scope.clone();
        let mut pattern = Pattern::default();
        let mut own_rels = BTreeSet::new();
        let mut unread = Vec::new();
        for part in parts {
            self.part(
                scope,
                part,
                &mut inner,
                &mut pattern,
                &mut own_rels,
                &mut unread,
            )?;
            self.check_length(pattern.nodes.len() + pattern.rels.len() + pattern.paths.len())?;
        }
        for (of, properties, filter_slot) in unread {
            self.properties(&inner, of, properties, filter_slot, &mut pattern)?;
        }
        self.label_conditions(&mut pattern);
        if let Some(filter) = filter {
            for part in conjuncts(filter) {
                let (condition, needs) = self.tracked(|it| it.condition(&inner, part))?;
                let selectivity = selectivity(part);
                pattern.conditions.push(Condition {
                    condition,
                    needs,
                    selectivity,
                });
            }
        }
        if pattern.conditions.len() > super::CONDITIONS_MAX {
            let message = format!(
                "a `MATCH` has more than {} conditions",
                super::CONDITIONS_MAX
            );
            return Err(crate::Error::limit("QueryTooLong", message));
        }
        let known: BTreeSet<Slot> = scope.slots().collect();
        for node in &mut pattern.nodes {
            node.known = known.contains(&node.slot);
        }
        if !optional {
            return Ok((self.plan_match(input, pattern, known)?, inner));
        }
        let new: Vec<Slot> = inner.slots().filter(|it| !known.contains(it)).collect();
        let estimate = input.estimate;
        let argument = self.op(1.0, OpKind::Argument);
        let plan = self.plan_match(argument, pattern, known)?;
        let kind = OpKind::Optional {
            input: Box::new(input),
            inner: Box::new(plan),
            slots: new,
        };
        Ok((self.op(estimate, kind), inner))
    }

    fn part<'e>(
        &mut self,
        outer: &Scope,
        part: &'e PatternPart,
        scope: &mut Scope,
        pattern: &mut Pattern,
        own_rels: &mut BTreeSet<Slot>,
        unread: &mut Vec<(Slot, &'e Expr, Option<usize>)>,
    ) -> Result<()> {
        let start = self.node(&part.start, scope, pattern, unread)?;
        let mut from = start;
        let mut steps = Vec::new();
        for (rel, node) in &part.steps {
            // Names of relationships are read before those of the nodes to their right.
            let slot = self.rel_slot(outer, rel, scope, own_rels, part.kind)?;
            let to = self.node(node, scope, pattern, unread)?;
            let is_far = rel.range.is_some() || part.kind != PathKind::Plain;
            let range = match (rel.range, part.kind) {
                (None, PathKind::Plain) => None,
                (None, _) => Some((1, 1)),
                (Some((least, most)), _) => Some((least.unwrap_or(1), most.unwrap_or(u64::MAX))),
            };
            let mut found = Rel {
                slot,
                from,
                to,
                direction: rel.direction,
                types: self.types(&rel.types),
                range,
                known: outer.slots().any(|it| it == slot),
                filter: None,
                filter_needs: BTreeSet::new(),
            };
            if let Some(properties) = &rel.properties {
                if is_far {
                    // Each relationship is looked at in a slot of its own.
                    let item = self.slot();
                    found.filter = Some((item, X::Const(true.into())));
                    let place = match part.kind {
                        PathKind::Plain => pattern.rels.len(),
                        _ => usize::MAX - pattern.shortest.len(),
                    };
                    unread.push((item, properties, Some(place)));
                } else {
                    unread.push((slot, properties, None));
                }
            }
            if part.kind == PathKind::Plain {
                pattern.rels.push(found);
                steps.push(PathStep {
                    rel: slot,
                    node: to,
                });
            } else {
                let path = match &part.name {
                    Some(name) => self.path_slot(name, scope)?,
                    None => self.slot(),
                };
                pattern.shortest.push(Shortest {
                    rel: found,
                    path,
                    all: part.kind == PathKind::AllShortest,
                });
            }
            from = to;
        }
        if let (PathKind::Plain, Some(name)) = (part.kind, &part.name) {
            let slot = self.path_slot(name, scope)?;
            pattern.paths.push(PathPattern { slot, start, steps });
        }
        Ok(())
    }

    fn path_slot(&mut self, name: &Name, scope: &mut Scope) -> Result<Slot> {
        if scope.get(&name.text).is_some() {
            let message = format!("the variable `{}` exists already", name.text);
            return Err(self.fail("VariableAlreadyBound", name.at, message));
        }
        Ok(self.declare(scope, &name.text, Ty::Path))
    }

    fn declare(&mut self, scope: &mut Scope, name: &str, ty: Ty) -> Slot {
        let slot = self.named_slot(name);
        scope.vars.push(Var {
            name: name.to_owned(),
            slot,
            ty,
            local: false,
        });
        slot
    }

    fn conflict(&self, name: &Name, found: &Ty, wanted: &str) -> crate::Error {
        let message = format!(
            "the variable `{}` is {} already, and cannot be {wanted} too",
            name.text,
            found.name()
        );
        self.fail("VariableTypeConflict", name.at, message)
    }

    fn node<'e>(
        &mut self,
        node: &'e NodePattern,
        scope: &mut Scope,
        pattern: &mut Pattern,
        unread: &mut Vec<(Slot, &'e Expr, Option<usize>)>,
    ) -> Result<Slot> {
        let slot = match &node.name {
            None => self.slot(),
            Some(name) => match scope.get(&name.text) {
                None => self.declare(scope, &name.text, Ty::Node),
                Some(var) if matches!(var.ty, Ty::Node | Ty::Any | Ty::Null) => {
                    let slot = var.slot;
                    self.used.insert(slot);
                    slot
                }
                Some(var) => return Err(self.conflict(name, &var.ty, "a node")),
            },
        };
        let labels = node.labels.iter();
        let labels = labels.map(|label| (Arc::from(label.as_str()), self.label(label)));
        let labels: Vec<_> = labels.collect();
        match pattern.nodes.iter_mut().find(|it| it.slot == slot) {
            Some(seen) => seen.labels.extend(labels),
            None => pattern.nodes.push(Node {
                slot,
                labels,
                known: false,
            }),
        }
        if let Some(properties) = &node.properties {
            unread.push((slot, properties, None));
        }
        Ok(slot)
    }

    fn rel_slot(
        &mut self,
        outer: &Scope,
        rel: &RelPattern,
        scope: &mut Scope,
        own: &mut BTreeSet<Slot>,
        kind: PathKind,
    ) -> Result<Slot> {
        let is_far = rel.range.is_some() || kind != PathKind::Plain;
        let Some(name) = &rel.name else {
            return Ok(self.slot());
        };
        let Some(var) = scope.get(&name.text).cloned() else {
            let ty = if is_far {
                Ty::List(Box::new(Ty::Rel))
            } else {
                Ty::Rel
            };
            let slot = self.declare(scope, &name.text, ty);
            own.insert(slot);
            return Ok(slot);
        };
        let fits = match (&var.ty, is_far) {
            (Ty::Any | Ty::Null, _) | (Ty::Rel, false) => true,
            (Ty::List(item), true) => matches!(**item, Ty::Rel | Ty::Any | Ty::Null),
            _ => false,
        };
        if own.contains(&var.slot) && fits {
            let message = format!(
                "the relationship `{}` is in the pattern twice, and no path uses one twice",
                name.text
            );
            return Err(self.fail("RelationshipUniquenessViolation", name.at, message));
        }
        if !fits {
            return Err(self.conflict(name, &var.ty, "a relationship"));
        }
        debug_assert!(outer.get(&name.text).is_some());
        own.insert(var.slot);
        self.used.insert(var.slot);
        Ok(var.slot)
    }

    pub(super) fn types(&mut self, names: &[String]) -> Types {
        Types {
            names: names.iter().map(|it| Arc::from(it.as_str())).collect(),
            tokens: names.iter().filter_map(|it| self.rel_type(it)).collect(),
        }
    }

    /// `{key: value}` as conditions.
    fn properties(
        &mut self,
        scope: &Scope,
        of: Slot,
        properties: &Expr,
        filter_of: Option<usize>,
        pattern: &mut Pattern,
    ) -> Result<()> {
        let ExprKind::Map(entries) = &properties.kind else {
            return Ok(());
        };
        let mut all = Vec::new();
        let mut all_needs = BTreeSet::new();
        for (key, value) in entries {
            let ((value, _), mut needs) = self.tracked(|it| it.expression(scope, value))?;
            let key = X::Property(Box::new(X::Slot(of)), self.stored_key(key));
            let condition = X::Compare(Box::new(key), vec![(Compare::Equal, value)]);
            if filter_of.is_some() {
                all_needs.extend(needs);
                all.push(condition);
                continue;
            }
            needs.insert(of);
            pattern.conditions.push(Condition {
                condition,
                needs,
                selectivity: 0.1,
            });
        }
        if let Some(place) = filter_of {
            let rel = match pattern.rels.get_mut(place) {
                Some(rel) => Some(rel),
                None => pattern
                    .shortest
                    .get_mut(usize::MAX - place)
                    .map(|it| &mut it.rel),
            };
            if let Some(rel) = rel {
                rel.filter = Some((of, X::Junction(crate::ast::Junction::And, all)));
                rel.filter_needs = all_needs;
            }
        }
        Ok(())
    }

    fn label_conditions(&mut self, pattern: &mut Pattern) {
        let n_all = (self.graph.n_nodes(None) as f64).max(1.0);
        for node in &pattern.nodes {
            for label in &node.labels {
                let n = label
                    .1
                    .map_or(0.0, |it| self.graph.n_nodes(Some(it)) as f64);
                let of = Box::new(X::Slot(node.slot));
                pattern.conditions.push(Condition {
                    condition: X::HasLabels(of, vec![label.clone()]),
                    needs: BTreeSet::from([node.slot]),
                    selectivity: (n / n_all).clamp(0.0, 1.0),
                });
            }
        }
    }
}

/// The estimated share of rows that a condition leaves.
fn selectivity(expr: &Expr) -> f64 {
    match &expr.kind {
        ExprKind::Compare(_, rest) => match &rest[..] {
            [(Compare::Equal, _)] => 0.1,
            [(Compare::NotEqual, _)] => 0.9,
            _ => 0.3,
        },
        ExprKind::In(..) => 0.2,
        ExprKind::TextTest(..) => 0.1,
        ExprKind::Junction(crate::ast::Junction::Or, operands) => {
            operands.iter().map(selectivity).sum::<f64>().min(0.9)
        }
        ExprKind::Not(of) => 1.0 - selectivity(of),
        _ => 0.5,
    }
}
