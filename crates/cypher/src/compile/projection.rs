//! `WITH` and `RETURN`: columns, grouping, order, and how many rows.

use super::expressions::simple_key;
use super::{Aggregating, Compiler, Scope, Var};
use crate::ast::{Clause, ClauseKind, Expr, ExprKind, Item, Name, PathKind, Projected, Projection};
use crate::element::Direction;
use crate::error::Result;
use crate::functions::Aggregate;
use crate::plan::{Op, OpKind, Slot, Sort, X};
use crate::types::Ty;
use crate::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) struct Rows {
    pub(super) op: Op,
    pub(super) scope: Scope,
    pub(super) columns: Vec<(String, Slot)>,
}

/// A column that is being made.
struct Column {
    name: String,
    slot: Slot,
    ty: Ty,
    /// The expression as text, which `ORDER BY` may repeat.
    text: String,
}

impl Compiler<'_> {
    pub(super) fn projection(
        &mut self,
        input: Op,
        scope: &Scope,
        projection: &Projection,
        filter: Option<&Expr>,
        at: usize,
        is_with: bool,
    ) -> Result<Rows> {
        let items = self.items(scope, projection, at, is_with)?;
        let aggregates = items.iter().any(|(_, expr)| contains_aggregate(expr));
        let estimate = input.estimate;
        let (mut op, columns) = if aggregates {
            self.aggregated(input, scope, &items)?
        } else {
            self.plain(input, scope, &items)?
        };
        let slots: Vec<Slot> = columns.iter().map(|it| it.slot).collect();
        if projection.distinct {
            let kind = OpKind::Distinct {
                input: Box::new(op),
                slots: slots.clone(),
            };
            op = self.op(estimate, kind);
        }
        let mut projected = Scope::default();
        for column in &columns {
            projected.vars.push(Var {
                name: column.name.clone(),
                slot: column.slot,
                ty: column.ty.clone(),
                local: false,
            });
        }
        // Sorting and filtering see the columns, and the variables that they were made of if these
        // still exist.
        let sees_rows = !aggregates && !projection.distinct;
        let mut visible = if sees_rows {
            scope.clone()
        } else {
            Scope::default()
        };
        for var in scope.vars.iter().filter(|it| it.local && !sees_rows) {
            visible.vars.push(var.clone());
        }
        visible.vars.extend(projected.vars.iter().cloned());
        let outer = std::mem::replace(
            &mut self.columns,
            columns
                .iter()
                .map(|column| (column.text.clone(), column.slot, column.ty.clone()))
                .collect(),
        );
        let sorted = self.sort_keys(&visible, projection, &items, aggregates, &columns);
        let filtered = filter.map(|it| self.tracked(|compiler| compiler.condition(&visible, it)));
        self.columns = outer;
        let keys = sorted?;
        let filtered = filtered.transpose()?;
        let skip = self.row_count(projection.skip.as_ref(), "SKIP")?;
        let limit = self.row_count(projection.limit.as_ref(), "LIMIT")?;
        if !keys.is_empty() {
            let mut kept: BTreeSet<Slot> = slots.iter().copied().collect();
            if let Some((_, used)) = &filtered {
                kept.extend(used);
            }
            let top = match (&skip, &limit) {
                (None, Some(limit)) => copy(limit).map(|limit| (None, limit)),
                (Some(skip), Some(limit)) => {
                    copy(skip).zip(copy(limit)).map(|it| (Some(it.0), it.1))
                }
                (_, None) => None,
            };
            let sort = Sort {
                keys,
                slots: kept.into_iter().collect(),
                top,
            };
            let kind = OpKind::Sort {
                input: Box::new(op),
                sort: Box::new(sort),
            };
            op = self.op(estimate, kind);
        }
        if let Some(n) = skip {
            let input = Box::new(op);
            op = self.op(estimate, OpKind::Skip { input, n });
        }
        if let Some(n) = limit {
            let at_most = match &n {
                X::Const(Value::Int(n)) => (*n as f64).max(0.0),
                _ => estimate,
            };
            let estimate = op.estimate.min(at_most);
            let input = Box::new(op);
            op = self.op(estimate, OpKind::Limit { input, n });
        }
        if let Some((condition, _)) = filtered {
            let estimate = op.estimate * 0.3;
            let input = Box::new(op);
            op = self.op(estimate, OpKind::Filter { input, condition });
        }
        Ok(Rows {
            op,
            scope: projected,
            columns: columns
                .into_iter()
                .map(|column| (column.name, column.slot))
                .collect(),
        })
    }

    /// The columns by name, with the expressions that make them.
    fn items(
        &mut self,
        scope: &Scope,
        projection: &Projection,
        at: usize,
        is_with: bool,
    ) -> Result<Vec<(String, Expr)>> {
        if projection.items.len() > super::COLUMNS_MAX {
            let message = format!("more than {} columns", super::COLUMNS_MAX);
            return Err(crate::Error::limit("QueryTooLong", message).at(self.position(at)));
        }
        let mut items: Vec<(String, Expr)> = Vec::new();
        if projection.star {
            let mut names: Vec<&String> = Vec::new();
            for var in scope.vars.iter().filter(|it| !it.local) {
                if !names.contains(&&var.name) {
                    names.push(&var.name);
                }
            }
            if names.is_empty() && !is_with {
                let message = "`*` stands for all variables, and there are none";
                return Err(self.fail("NoVariablesInScope", at, message));
            }
            names.sort();
            for name in names {
                let kind = ExprKind::Var(name.clone());
                items.push((name.clone(), Expr { at, kind }));
            }
        }
        for Item { expr, alias, text } in &projection.items {
            let name = match (alias, &expr.kind) {
                (Some(Name { text, .. }), _) => text.clone(),
                (None, ExprKind::Var(name)) => name.clone(),
                (None, _) if is_with => {
                    // `WITH` names are variables, so an expression needs one; errors in it come first.
                    if !contains_aggregate(expr) {
                        self.expression(scope, expr)?;
                    }
                    let message = format!("`{text}` has no name: write `{text} AS name`");
                    return Err(self.no_alias(projection, expr, message));
                }
                (None, _) => text.clone(),
            };
            if items.iter().any(|it| it.0 == name) {
                let message = format!("two columns are called `{name}`");
                return Err(self.fail("ColumnNameConflict", expr.at, message));
            }
            items.push((name, expr.clone()));
        }
        Ok(items)
    }

    /// A missing name is reported after an ambiguous order, which would remain when the name is
    /// added.
    fn no_alias(&self, projection: &Projection, expr: &Expr, message: String) -> crate::Error {
        let keys = projection
            .items
            .iter()
            .filter(|it| !contains_aggregate(&it.expr));
        let mut in_keys = BTreeSet::new();
        for key in keys.filter(|it| simple_key(&it.expr).is_none()) {
            variables(&key.expr, &mut in_keys);
        }
        for sort in projection
            .order
            .iter()
            .filter(|it| contains_aggregate(&it.expr))
        {
            let mut named = BTreeSet::new();
            outside_aggregates(&sort.expr, &mut named);
            if named.iter().any(|it| in_keys.contains(it)) {
                let message = "the order mixes an aggregate with what is not a column of its own";
                return self.fail("AmbiguousAggregationExpression", sort.expr.at, message);
            }
        }
        self.fail("NoExpressionAlias", expr.at, message)
    }

    fn plain(
        &mut self,
        input: Op,
        scope: &Scope,
        items: &[(String, Expr)],
    ) -> Result<(Op, Vec<Column>)> {
        let mut computed = Vec::new();
        let mut columns = Vec::new();
        for (name, expr) in items {
            let (it, ty) = self.expression(scope, expr)?;
            let slot = self.column_slot(name, it, &mut computed);
            columns.push(Column {
                name: name.clone(),
                slot,
                ty,
                text: format!("{expr:?}"),
            });
        }
        if computed.is_empty() {
            return Ok((input, columns));
        }
        let estimate = input.estimate;
        let kind = OpKind::Project {
            input: Box::new(input),
            items: computed,
        };
        Ok((self.op(estimate, kind), columns))
    }

    /// A variable keeps its slot; anything else is computed into a new one.
    fn column_slot(&mut self, name: &str, it: X, computed: &mut Vec<(Slot, X)>) -> Slot {
        if let X::Slot(slot) = it {
            return slot;
        }
        let slot = self.named_slot(name);
        computed.push((slot, it));
        slot
    }

    fn aggregated(
        &mut self,
        input: Op,
        scope: &Scope,
        items: &[(String, Expr)],
    ) -> Result<(Op, Vec<Column>)> {
        let mut keys = Vec::new();
        let mut state = Aggregating {
            inside: false,
            keys: Vec::new(),
            in_keys: BTreeSet::new(),
            found: Vec::new(),
            closed: false,
        };
        let mut columns: Vec<Option<Column>> = Vec::new();
        for (name, expr) in items {
            if contains_aggregate(expr) {
                columns.push(None);
                continue;
            }
            let (it, ty) = self.expression(scope, expr)?;
            let slot = match &it {
                X::Slot(slot) => *slot,
                _ => self.named_slot(name),
            };
            keys.push((slot, it));
            match simple_key(expr) {
                Some(path) => state.keys.push((path, slot, ty.clone())),
                None => variables(expr, &mut state.in_keys),
            }
            columns.push(Some(Column {
                name: name.clone(),
                slot,
                ty,
                text: format!("{expr:?}"),
            }));
        }
        let outer = self.aggregating.replace(state);
        let mut computed = Vec::new();
        let mut failed = None;
        for ((name, expr), column) in items.iter().zip(&mut columns) {
            if column.is_some() {
                continue;
            }
            match self.expression(scope, expr) {
                Ok((it, ty)) => {
                    let slot = self.column_slot(name, it, &mut computed);
                    self.names.entry(slot).or_insert_with(|| name.clone());
                    *column = Some(Column {
                        name: name.clone(),
                        slot,
                        ty,
                        text: format!("{expr:?}"),
                    });
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let state = std::mem::replace(&mut self.aggregating, outer);
        if let Some(error) = failed {
            return Err(error);
        }
        let aggregations = state.map(|it| it.found).unwrap_or_default();
        let estimate = if keys.is_empty() {
            1.0
        } else {
            input.estimate.sqrt().max(1.0)
        };
        let kind = OpKind::Aggregate {
            input: Box::new(input),
            keys,
            aggregations,
        };
        let mut op = self.op(estimate, kind);
        if !computed.is_empty() {
            let kind = OpKind::Project {
                input: Box::new(op),
                items: computed,
            };
            op = self.op(estimate, kind);
        }
        Ok((op, columns.into_iter().flatten().collect()))
    }

    fn sort_keys(
        &mut self,
        visible: &Scope,
        projection: &Projection,
        items: &[(String, Expr)],
        aggregates: bool,
        columns: &[Column],
    ) -> Result<Vec<(X, bool)>> {
        let mut keys = Vec::new();
        if aggregates {
            let mut in_keys = BTreeSet::new();
            let mut simple = Vec::new();
            for ((name, expr), column) in items.iter().zip(columns) {
                simple.push((name.clone(), column.slot, column.ty.clone()));
                if contains_aggregate(expr) {
                    continue;
                }
                match simple_key(expr) {
                    Some(path) => simple.push((path, column.slot, column.ty.clone())),
                    None => variables(expr, &mut in_keys),
                }
            }
            let state = Aggregating {
                inside: false,
                keys: simple,
                in_keys,
                found: Vec::new(),
                closed: true,
            };
            let outer = self.aggregating.replace(state);
            // A complex key may stand alone, but not beside an aggregate.
            let all = std::mem::take(&mut self.columns);
            let mut failed = None;
            for sort in &projection.order {
                let mixes = contains_aggregate(&sort.expr);
                self.columns = all
                    .iter()
                    .zip(items)
                    .filter(|(_, item)| {
                        !mixes || contains_aggregate(&item.1) || simple_key(&item.1).is_some()
                    })
                    .map(|it| it.0.clone())
                    .collect();
                match self.expression(visible, &sort.expr) {
                    Ok((key, _)) => keys.push((key, sort.descending)),
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            self.columns = all;
            self.aggregating = outer;
            return failed.map_or(Ok(keys), Err);
        }
        for sort in &projection.order {
            let (key, _) = self.expression(visible, &sort.expr)?;
            keys.push((key, sort.descending));
        }
        Ok(keys)
    }

    /// The number of `SKIP` and `LIMIT`: of no row, and not negative.
    fn row_count(&mut self, expr: Option<&Expr>, word: &str) -> Result<Option<X>> {
        let Some(expr) = expr else { return Ok(None) };
        let mut named = BTreeSet::new();
        variables(expr, &mut named);
        if let Some(name) = named.first() {
            let message =
                format!("`{word}` cannot depend on `{name}`: it is one number for all rows");
            return Err(self.fail("NonConstantExpression", expr.at, message));
        }
        let (it, ty) = self.expression(&Scope::default(), expr)?;
        if !(ty.is_unknown() || matches!(ty, Ty::Int | Ty::Number)) {
            let message = format!("`{word}` needs an Integer, found {}", ty.name());
            return Err(self.fail("InvalidArgumentType", expr.at, message));
        }
        if let X::Const(Value::Int(n @ ..0)) = it {
            let message = format!("`{word}` is {n}: it cannot be negative");
            return Err(self.fail("NegativeIntegerArgument", expr.at, message));
        }
        Ok(Some(it))
    }

    /// `MATCH (n:Label) RETURN count(*)` and the like, which the graph knows without counting.
    pub(super) fn count_from_store(
        &mut self,
        clauses: &[Clause],
        in_subquery: bool,
    ) -> Option<(Op, Vec<(String, Slot)>)> {
        let [first, second] = clauses else {
            return None;
        };
        let ClauseKind::Match {
            optional: false,
            parts,
            filter: None,
        } = &first.kind
        else {
            return None;
        };
        let ([part], ClauseKind::Return(projection)) = (&parts[..], &second.kind) else {
            return None;
        };
        let plain = !projection.distinct
            && !projection.star
            && projection.order.is_empty()
            && projection.skip.is_none()
            && projection.limit.is_none()
            && part.name.is_none()
            && part.kind == PathKind::Plain
            && part.start.properties.is_none()
            && self.graph.counts_are_exact()
            && !in_subquery;
        if !plain {
            return None;
        }
        let counted = match &part.steps[..] {
            [] if part.start.labels.len() <= 1 => &part.start.name,
            [(rel, end)]
                if rel.direction != Direction::Both
                    && rel.range.is_none()
                    && rel.types.len() <= 1
                    && rel.properties.is_none()
                    && part.start.labels.is_empty()
                    && part.start.name.is_none()
                    && end.labels.is_empty()
                    && end.properties.is_none()
                    && end.name.is_none() =>
            {
                &rel.name
            }
            _ => return None,
        };
        let mut columns: Vec<(String, Slot)> = Vec::new();
        for item in &projection.items {
            let counts = match &item.expr.kind {
                ExprKind::CountStar => true,
                ExprKind::Call {
                    name,
                    distinct: false,
                    arguments,
                } if name == "count" => match &arguments[..] {
                    [argument] => match (&argument.kind, counted) {
                        (ExprKind::Var(name), Some(counted)) => *name == counted.text,
                        _ => false,
                    },
                    _ => false,
                },
                _ => false,
            };
            let name = item.alias.as_ref().map_or(&item.text, |it| &it.text);
            if !counts || columns.iter().any(|it| it.0 == *name) {
                return None;
            }
            let slot = self.named_slot(name);
            columns.push((name.clone(), slot));
        }
        let slots = columns.iter().map(|it| it.1).collect();
        let kind = match part.steps.first() {
            None => {
                let label = part.start.labels.first();
                let label = label.map(|it| (Arc::from(it.as_str()), self.label(it)));
                OpKind::CountNodes { label, slots }
            }
            Some((rel, _)) => OpKind::CountRels {
                types: self.types(&rel.types),
                slots,
            },
        };
        Some((self.op(1.0, kind), columns))
    }
}

/// A constant or a parameter; anything else could differ the second time.
fn copy(it: &X) -> Option<X> {
    match it {
        X::Const(value) => Some(X::Const(value.clone())),
        X::Param(name, value) => Some(X::Param(Arc::clone(name), value.clone())),
        _ => None,
    }
}

/// Whether an expression has an aggregate of its own rows in it.
pub(crate) fn contains_aggregate(expr: &Expr) -> bool {
    let mut found = false;
    visit(expr, &mut |it| {
        found |= match &it.kind {
            ExprKind::CountStar => true,
            ExprKind::Call { name, .. } => Aggregate::named(name).is_some(),
            _ => false,
        };
    });
    found
}

/// The free variables of an expression.
fn variables(expr: &Expr, into: &mut BTreeSet<String>) {
    visit(expr, &mut |it| {
        if let ExprKind::Var(name) = &it.kind {
            into.insert(name.clone());
        }
    });
}

/// The variables that stand outside aggregates.
fn outside_aggregates(expr: &Expr, into: &mut BTreeSet<String>) {
    let is_aggregate = match &expr.kind {
        ExprKind::Call { name, .. } => Aggregate::named(name).is_some(),
        _ => false,
    };
    if is_aggregate {
        return;
    }
    if let ExprKind::Var(name) = &expr.kind {
        into.insert(name.clone());
    }
    children(expr, &mut |child| outside_aggregates(child, into));
}

/// Calls for an expression and all that it is made of, except subqueries.
pub(super) fn visit(expr: &Expr, call: &mut dyn FnMut(&Expr)) {
    call(expr);
    children(expr, &mut |child| visit(child, call));
}

fn children(expr: &Expr, call: &mut dyn FnMut(&Expr)) {
    let optional = |it: &Option<Box<Expr>>, call: &mut dyn FnMut(&Expr)| {
        if let Some(it) = it {
            call(it);
        }
    };
    match &expr.kind {
        ExprKind::Literal(_)
        | ExprKind::Param(_)
        | ExprKind::Var(_)
        | ExprKind::CountStar
        | ExprKind::Pattern(_) => {}
        ExprKind::Property(of, _)
        | ExprKind::HasLabels(of, _)
        | ExprKind::Not(of)
        | ExprKind::Negate(of)
        | ExprKind::IsNull(of, _) => call(of),
        ExprKind::Index(a, b) | ExprKind::In(a, b) | ExprKind::TextTest(_, a, b) => {
            call(a);
            call(b);
        }
        ExprKind::Slice(of, from, to) => {
            call(of);
            optional(from, call);
            optional(to, call);
        }
        ExprKind::List(items) | ExprKind::Junction(_, items) => items.iter().for_each(call),
        ExprKind::Map(entries) => entries.iter().for_each(|it| call(&it.1)),
        ExprKind::MapProjection(of, entries) => {
            call(of);
            for entry in entries {
                if let Projected::Entry(_, value) = entry {
                    call(value);
                }
            }
        }
        ExprKind::Call { arguments, .. } => arguments.iter().for_each(call),
        ExprKind::Arith(first, rest) => {
            call(first);
            rest.iter().for_each(|it| call(&it.1));
        }
        ExprKind::Compare(first, rest) => {
            call(first);
            rest.iter().for_each(|it| call(&it.1));
        }
        ExprKind::Case {
            subject,
            arms,
            otherwise,
        } => {
            optional(subject, call);
            for (when, then) in arms {
                call(when);
                call(then);
            }
            optional(otherwise, call);
        }
        ExprKind::ListComprehension {
            list, filter, map, ..
        } => {
            call(list);
            optional(filter, call);
            optional(map, call);
        }
        ExprKind::PatternComprehension { filter, map, .. } => {
            optional(filter, call);
            call(map);
        }
        ExprKind::Quantifier { list, filter, .. } => {
            call(list);
            call(filter);
        }
        ExprKind::Reduce {
            start, list, step, ..
        } => {
            call(start);
            call(list);
            call(step);
        }
        // A subquery has its own rows, so nothing in it is a part of the expression.
        ExprKind::Subquery { .. } => {}
    }
}
