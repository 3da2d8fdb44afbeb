//! Expressions: names become slots, and impossible types are refused.

use super::{Compiler, Scope, Var};
use crate::ast::{Arith, Expr, ExprKind, Junction, PathKind, Projected};
use crate::error::{Class, Error, Result};
use crate::functions::{self, Aggregate};
use crate::plan::{Aggregation, Case, ListComprehension, MapEntry, Op, Reduce, X};
use crate::types::Ty;
use crate::value::{Limits, Value};
use std::sync::Arc;

/// How deep a tree of expressions may be; more than the allowed nesting, because one level may have
/// several operators.
const DEPTH_MAX: usize = 200;

type Typed = (X, Ty);

fn boxed(it: X) -> Box<X> {
    Box::new(it)
}

impl Compiler<'_> {
    /// A condition of `WHERE`.
    pub(super) fn condition(&mut self, scope: &Scope, expr: &Expr) -> Result<X> {
        let outer = std::mem::replace(&mut self.pattern_allowed, true);
        let compiled = self.boolean(scope, expr);
        self.pattern_allowed = outer;
        compiled
    }

    fn boolean(&mut self, scope: &Scope, expr: &Expr) -> Result<X> {
        let (it, ty) = self.any(scope, expr)?;
        if !ty.may_be_bool() {
            let message = format!("expected a condition, found {}", ty.name());
            return Err(self.fail("InvalidArgumentType", expr.at, message));
        }
        Ok(it)
    }

    /// An expression that is a value.
    pub(super) fn expression(&mut self, scope: &Scope, expr: &Expr) -> Result<Typed> {
        let outer = std::mem::replace(&mut self.pattern_allowed, false);
        let compiled = self.any(scope, expr);
        self.pattern_allowed = outer;
        compiled
    }

    fn any(&mut self, scope: &Scope, expr: &Expr) -> Result<Typed> {
        if self.depth >= DEPTH_MAX {
            let message = format!("an expression is deeper than {DEPTH_MAX} operations");
            return Err(Error::limit("QueryTooDeep", message).at(self.position(expr.at)));
        }
        if !self.columns.is_empty() {
            let text = format!("{expr:?}");
            let column = self.columns.iter().find(|it| it.0 == text);
            if let Some((_, slot, ty)) = column.cloned() {
                self.used.insert(slot);
                return Ok((X::Slot(slot), ty));
            }
        }
        self.depth += 1;
        let compiled = self.kind(scope, expr);
        self.depth -= 1;
        compiled
    }

    fn kind(&mut self, scope: &Scope, expr: &Expr) -> Result<Typed> {
        match &expr.kind {
            ExprKind::Literal(value) => Ok((X::Const(value.clone()), Ty::of(value))),
            ExprKind::Param(name) => Ok((self.parameter(name), Ty::Any)),
            ExprKind::Var(name) => self.variable(scope, name, expr.at),
            ExprKind::Property(of, key) => self.property(scope, of, key, expr.at),
            ExprKind::Index(of, index) => {
                let (of, ty) = self.expression(scope, of)?;
                let (index, _) = self.expression(scope, index)?;
                let item = ty.item();
                Ok((X::Index(boxed(of), boxed(index)), item))
            }
            ExprKind::Slice(of, from, to) => {
                let (of, ty) = self.expression(scope, of)?;
                let mut bound = |it: &Option<Box<Expr>>| -> Result<Option<Box<X>>> {
                    let it = it.as_deref().map(|it| self.expression(scope, it));
                    Ok(it.transpose()?.map(|it| boxed(it.0)))
                };
                let (from, to) = (bound(from)?, bound(to)?);
                Ok((X::Slice(boxed(of), from, to), ty))
            }
            ExprKind::HasLabels(of, labels) => self.has_labels(scope, of, labels, expr.at),
            ExprKind::List(items) => self.list(scope, items),
            ExprKind::Map(entries) => self.map(scope, entries),
            ExprKind::MapProjection(of, entries) => self.map_projection(scope, of, entries),
            ExprKind::Call {
                name,
                distinct,
                arguments,
            } => self.call(scope, name, *distinct, arguments, expr.at),
            ExprKind::CountStar => self.aggregate(scope, Aggregate::Count, false, &[], expr.at),
            ExprKind::Not(of) => {
                let of = self.boolean(scope, of)?;
                Ok((X::Not(boxed(of)), Ty::Bool))
            }
            ExprKind::Negate(of) => {
                let (it, ty) = self.expression(scope, of)?;
                if !(ty.is_unknown() || ty.is_number() || ty == Ty::Duration) {
                    let message = format!("{} has no negative", ty.name());
                    return Err(self.fail("InvalidArgumentType", of.at, message));
                }
                Ok((X::Negate(boxed(it)), ty))
            }
            ExprKind::Junction(kind, operands) => {
                let operands = operands.iter().map(|it| self.boolean(scope, it));
                let operands = operands.collect::<Result<Vec<X>>>()?;
                Ok((X::Junction(*kind, operands), Ty::Bool))
            }
            ExprKind::Arith(first, rest) => self.arithmetic(scope, first, rest),
            ExprKind::Compare(first, rest) => {
                let first = self.expression(scope, first)?.0;
                let mut compiled = Vec::new();
                for (sign, operand) in rest {
                    compiled.push((*sign, self.expression(scope, operand)?.0));
                }
                Ok((X::Compare(boxed(first), compiled), Ty::Bool))
            }
            ExprKind::In(item, list) => {
                let item = self.expression(scope, item)?.0;
                let (it, ty) = self.expression(scope, list)?;
                if !(ty.is_unknown() || matches!(ty, Ty::List(_))) {
                    let message = format!("`IN` needs a list, found {}", ty.name());
                    return Err(self.fail("InvalidArgumentType", list.at, message));
                }
                Ok((X::In(boxed(item), boxed(it)), Ty::Bool))
            }
            ExprKind::TextTest(test, left, right) => {
                let left = self.expression(scope, left)?.0;
                let right = self.expression(scope, right)?.0;
                Ok((X::TextTest(*test, boxed(left), boxed(right)), Ty::Bool))
            }
            ExprKind::IsNull(of, negated) => {
                let of = self.expression(scope, of)?.0;
                Ok((X::IsNull(boxed(of), *negated), Ty::Bool))
            }
            ExprKind::Case {
                subject,
                arms,
                otherwise,
            } => self.case(scope, subject.as_deref(), arms, otherwise.as_deref()),
            ExprKind::ListComprehension {
                name,
                list,
                filter,
                map,
            } => self.list_comprehension(scope, name, list, filter.as_deref(), map.as_deref()),
            ExprKind::Quantifier {
                kind,
                name,
                list,
                filter,
            } => {
                let (it, inner) = self.over_list(scope, name, list)?;
                let filter = Some(self.condition(&inner, filter)?);
                let quantifier = ListComprehension {
                    slot: it.0,
                    list: it.1,
                    filter,
                    map: None,
                };
                Ok((X::Quantifier(*kind, Box::new(quantifier)), Ty::Bool))
            }
            ExprKind::Reduce {
                sum,
                start,
                name,
                list,
                step,
            } => {
                let (start, _) = self.expression(scope, start)?;
                let (it, inner) = self.over_list(scope, name, list)?;
                let sum_slot = self.named_slot(sum);
                let inner = inner.with(Var {
                    name: sum.clone(),
                    slot: sum_slot,
                    ty: Ty::Any,
                    local: true,
                });
                let step = self.without_aggregates(step, |compiler| {
                    Ok(compiler.expression(&inner, step)?.0)
                })?;
                let reduce = Reduce {
                    sum: sum_slot,
                    start,
                    slot: it.0,
                    list: it.1,
                    step,
                };
                Ok((X::Reduce(Box::new(reduce)), Ty::Any))
            }
            ExprKind::PatternComprehension { part, filter, map } => {
                let (op, inner) = self.pattern_rows(scope, part, filter.as_deref(), true)?;
                let (map, ty) =
                    self.without_aggregates(map, |compiler| compiler.expression(&inner, map))?;
                let ty = Ty::List(Box::new(ty));
                Ok((X::Collect(Box::new(op), boxed(map)), ty))
            }
            ExprKind::Pattern(part) => self.pattern_value(scope, part, expr.at),
            ExprKind::Subquery { counts, body } => {
                let inner = self.hide_aggregation(|compiler| compiler.union(body, scope, true));
                let op = Box::new(inner?.0);
                if *counts {
                    return Ok((X::Count(op), Ty::Int));
                }
                Ok((X::Exists(op), Ty::Bool))
            }
        }
    }

    fn variable(&mut self, scope: &Scope, name: &str, at: usize) -> Result<Typed> {
        if let Some(state) = &self.aggregating {
            let is_local = scope.get(name).is_some_and(|it| it.local);
            if !state.inside && !is_local {
                let key = state.keys.iter().find(|it| it.0 == name).cloned();
                if let Some((_, slot, ty)) = key {
                    self.used.insert(slot);
                    return Ok((X::Slot(slot), ty));
                }
                if scope.get(name).is_some() && !state.closed || state.in_keys.contains(name) {
                    let message = format!(
                        "`{name}` is neither aggregated nor a column of its own: project it first"
                    );
                    return Err(self.fail("AmbiguousAggregationExpression", at, message));
                }
                if state.closed {
                    return Err(self.undefined(name, at));
                }
            }
        }
        let Some(var) = scope.get(name) else {
            return Err(self.undefined(name, at));
        };
        let (slot, ty) = (var.slot, var.ty.clone());
        self.used.insert(slot);
        Ok((X::Slot(slot), ty))
    }

    pub(super) fn undefined(&self, name: &str, at: usize) -> Error {
        let message = format!("the variable `{name}` is not defined");
        self.fail("UndefinedVariable", at, message)
    }

    fn property(&mut self, scope: &Scope, of: &Expr, key: &str, at: usize) -> Result<Typed> {
        if let Some(state) = &self.aggregating
            && !state.inside
            && let Some(path) = simple_key(of).map(|it| format!("{it}.{key}"))
        {
            let found = state.keys.iter().find(|it| it.0 == path).cloned();
            if let Some((_, slot, ty)) = found {
                self.used.insert(slot);
                return Ok((X::Slot(slot), ty));
            }
        }
        let (it, ty) = self.expression(scope, of)?;
        let found = match &ty {
            Ty::Any | Ty::Null | Ty::Map | Ty::Node | Ty::Rel => Ty::Any,
            Ty::Temporal | Ty::Duration => Ty::Any,
            Ty::Path => {
                let message =
                    "a path has no properties: use `nodes(path)` or `relationships(path)`";
                return Err(self.fail("InvalidArgumentType", at, message));
            }
            Ty::Bool | Ty::Int | Ty::Float | Ty::Number | Ty::Str | Ty::List(_) => {
                let message = format!("{} has no properties, so no `{key}`", ty.name());
                let at = self.position(at);
                return Err(Error::compile(
                    Class::Type,
                    "InvalidArgumentType",
                    at,
                    message,
                ));
            }
        };
        let key = match ty {
            Ty::Node | Ty::Rel => self.stored_key(key),
            _ => self.key(key),
        };
        Ok((X::Property(boxed(it), key), found))
    }

    fn has_labels(
        &mut self,
        scope: &Scope,
        of: &Expr,
        labels: &[String],
        at: usize,
    ) -> Result<Typed> {
        let (it, ty) = self.expression(scope, of)?;
        if !(ty.is_unknown() || matches!(ty, Ty::Node | Ty::Rel)) {
            let message = format!("{} has no labels", ty.name());
            return Err(self.fail("InvalidArgumentType", at, message));
        }
        let is_rel = ty == Ty::Rel;
        let mut found = Vec::with_capacity(labels.len());
        for label in labels {
            let token = if is_rel {
                self.rel_type(label)
            } else {
                self.label(label)
            };
            found.push((Arc::from(label.as_str()), token));
        }
        Ok((X::HasLabels(boxed(it), found), Ty::Bool))
    }

    fn list(&mut self, scope: &Scope, items: &[Expr]) -> Result<Typed> {
        let mut compiled = Vec::with_capacity(items.len());
        let mut types = Vec::with_capacity(items.len());
        for item in items {
            let (it, ty) = self.expression(scope, item)?;
            compiled.push(it);
            types.push(ty);
        }
        let ty = Ty::list(types.into_iter());
        let constants: Option<Vec<Value>> = compiled
            .iter()
            .map(|it| match it {
                X::Const(value) => Some(value.clone()),
                _ => None,
            })
            .collect();
        Ok(match constants {
            Some(values) => (X::Const(Value::list_within(values, Limits::default())?), ty),
            None => (X::List(compiled), ty),
        })
    }

    fn map(&mut self, scope: &Scope, entries: &[(String, Expr)]) -> Result<Typed> {
        let mut compiled = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let value = self.expression(scope, value)?.0;
            compiled.push((Arc::from(key.as_str()), value));
        }
        Ok((X::Map(compiled), Ty::Map))
    }

    fn map_projection(&mut self, scope: &Scope, of: &Expr, entries: &[Projected]) -> Result<Typed> {
        let (it, ty) = self.expression(scope, of)?;
        if !(ty.is_unknown() || matches!(ty, Ty::Node | Ty::Rel | Ty::Map)) {
            let message = format!(
                "a map projection needs a node, a relationship or a map, found {}",
                ty.name()
            );
            return Err(self.fail("InvalidArgumentType", of.at, message));
        }
        let mut compiled = Vec::new();
        for entry in entries {
            compiled.push(match entry {
                Projected::Property(key) => MapEntry::Property(Arc::from(key.as_str())),
                Projected::Everything => MapEntry::Everything,
                Projected::Entry(key, value) => {
                    let value = self.expression(scope, value)?.0;
                    MapEntry::Entry(Arc::from(key.as_str()), value)
                }
            });
        }
        Ok((X::MapProjection(boxed(it), compiled), Ty::Map))
    }

    fn call(
        &mut self,
        scope: &Scope,
        name: &str,
        distinct: bool,
        arguments: &[Expr],
        at: usize,
    ) -> Result<Typed> {
        if let Some(aggregate) = Aggregate::named(name) {
            let n_wanted = aggregate.n_arguments();
            if arguments.len() != n_wanted {
                let message = format!(
                    "`{name}` takes {n_wanted} arguments, found {}",
                    arguments.len()
                );
                return Err(self.fail("InvalidNumberOfArguments", at, message));
            }
            return self.aggregate(scope, aggregate, distinct, arguments, at);
        }
        if name == "exists"
            && let [argument] = arguments
        {
            if let ExprKind::Pattern(part) = &argument.kind {
                let (op, _) = self.pattern_rows(scope, part, None, false)?;
                return Ok((X::Exists(Box::new(op)), Ty::Bool));
            }
            let of = self.expression(scope, argument)?.0;
            return Ok((X::IsNull(boxed(of), true), Ty::Bool));
        }
        let Some(function) = functions::find(name) else {
            let message = format!("there is no function `{name}`");
            return Err(self.fail("UnknownFunction", at, message));
        };
        if distinct {
            let message = format!("`DISTINCT` is for aggregates, and `{name}` is none");
            return Err(self.fail("UnexpectedSyntax", at, message));
        }
        if !function.takes(arguments.len()) {
            let message = format!(
                "`{name}` takes {}, found {}",
                function.n_arguments(),
                arguments.len()
            );
            return Err(self.fail("InvalidNumberOfArguments", at, message));
        }
        let mut compiled = Vec::with_capacity(arguments.len());
        let mut types = Vec::with_capacity(arguments.len());
        for (idx, argument) in arguments.iter().enumerate() {
            let (it, ty) = self.expression(scope, argument)?;
            if !function.accepts(idx, &ty) {
                let message = format!("`{name}` cannot be called with {}", ty.name());
                return Err(self.fail("InvalidArgumentType", argument.at, message));
            }
            compiled.push(it);
            types.push(ty);
        }
        let ty = function.returns(&types);
        Ok((X::Call(function, compiled), ty))
    }

    fn aggregate(
        &mut self,
        scope: &Scope,
        function: Aggregate,
        distinct: bool,
        arguments: &[Expr],
        at: usize,
    ) -> Result<Typed> {
        let name = function.name();
        match &self.aggregating {
            None => {
                let message = format!(
                    "`{name}` aggregates rows, which only the items of `WITH` and `RETURN` can: \
                     aggregate there, then filter with `WITH … WHERE …`"
                );
                return Err(self.fail("InvalidAggregation", at, message));
            }
            Some(state) if state.inside => {
                let message = format!("`{name}` is inside another aggregate");
                return Err(self.fail("NestedAggregation", at, message));
            }
            Some(_) => {}
        }
        if let Some(random) = arguments.iter().find_map(find_random) {
            let message = "`rand()` gives another value each time: it cannot be aggregated";
            return Err(self.fail("NonConstantExpression", random, message));
        }
        let closed = self.aggregating.as_ref().is_some_and(|it| it.closed);
        if closed {
            // The rows are gone: only projected columns can be named.
            let in_keys = self
                .aggregating
                .as_mut()
                .map(|it| std::mem::take(&mut it.in_keys));
            let named = arguments.iter().map(|it| self.expression(scope, it));
            let named = named.collect::<Result<Vec<_>>>();
            if let (Some(state), Some(in_keys)) = (&mut self.aggregating, in_keys) {
                state.in_keys = in_keys;
            }
            named?;
            let message = format!("`{name}` is not among the columns: project it to sort by it");
            return Err(self.fail("InvalidAggregation", at, message));
        }
        if let Some(state) = &mut self.aggregating {
            state.inside = true;
        }
        let mut compiled = arguments.iter().map(|it| self.expression(scope, it));
        let first = compiled.next().transpose();
        let second = compiled.next().transpose();
        drop(compiled);
        if let Some(state) = &mut self.aggregating {
            state.inside = false;
        }
        let (first, second) = (first?, second?);
        let ty = function.returns(first.as_ref().map(|it| &it.1));
        let slot = self.slot();
        let aggregation = Aggregation {
            slot,
            function,
            distinct,
            argument: first.map(|it| it.0),
            second: second.map(|it| it.0),
        };
        if let Some(state) = &mut self.aggregating {
            state.found.push(aggregation);
        }
        self.used.insert(slot);
        Ok((X::Slot(slot), ty))
    }

    fn arithmetic(&mut self, scope: &Scope, first: &Expr, rest: &[(Arith, Expr)]) -> Result<Typed> {
        let (it, mut ty) = self.expression(scope, first)?;
        let mut compiled = Vec::with_capacity(rest.len());
        let mut at = first.at;
        for (sign, operand) in rest {
            let (right, right_ty) = self.expression(scope, operand)?;
            ty = result_type(*sign, &ty, &right_ty).ok_or_else(|| {
                let message = format!("{} and {} cannot be calculated", ty.name(), right_ty.name());
                self.fail("InvalidArgumentType", at, message)
            })?;
            at = operand.at;
            compiled.push((*sign, right));
        }
        Ok((X::Arith(boxed(it), compiled), ty))
    }

    fn case(
        &mut self,
        scope: &Scope,
        subject: Option<&Expr>,
        arms: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Result<Typed> {
        let subject = match subject {
            Some(it) => Some(self.expression(scope, it)?.0),
            None => None,
        };
        let mut compiled = Vec::new();
        let mut ty: Option<Ty> = None;
        let mut join = |next: Ty| {
            ty = Some(match ty.take() {
                Some(ty) => ty.join(next),
                None => next,
            });
        };
        for (when, then) in arms {
            let when = if subject.is_some() {
                self.expression(scope, when)?.0
            } else {
                self.condition(scope, when)?
            };
            let (then, then_ty) = self.expression(scope, then)?;
            join(then_ty);
            compiled.push((when, then));
        }
        let otherwise = match otherwise {
            Some(it) => {
                let (it, it_ty) = self.expression(scope, it)?;
                join(it_ty);
                Some(it)
            }
            None => None,
        };
        let case = Case {
            subject,
            arms: compiled,
            otherwise,
        };
        Ok((X::Case(Box::new(case)), ty.unwrap_or(Ty::Any)))
    }

    /// The slot and the list of a comprehension, and what can be named inside it.
    fn over_list(&mut self, scope: &Scope, name: &str, list: &Expr) -> Result<((usize, X), Scope)> {
        let (it, ty) = self.expression(scope, list)?;
        if !(ty.is_unknown() || matches!(ty, Ty::List(_))) {
            let message = format!("expected a list, found {}", ty.name());
            return Err(self.fail("InvalidArgumentType", list.at, message));
        }
        let slot = self.named_slot(name);
        let inner = scope.with(Var {
            name: name.to_owned(),
            slot,
            ty: ty.item(),
            local: true,
        });
        Ok(((slot, it), inner))
    }

    fn list_comprehension(
        &mut self,
        scope: &Scope,
        name: &str,
        list: &Expr,
        filter: Option<&Expr>,
        map: Option<&Expr>,
    ) -> Result<Typed> {
        let (it, inner) = self.over_list(scope, name, list)?;
        let mut item = inner.get(name).map_or(Ty::Any, |it| it.ty.clone());
        let filter = match filter {
            Some(filter) => Some(
                self.without_aggregates(filter, |compiler| compiler.condition(&inner, filter))?,
            ),
            None => None,
        };
        let map = match map {
            Some(map) => {
                let (map, ty) =
                    self.without_aggregates(map, |compiler| compiler.expression(&inner, map))?;
                item = ty;
                Some(map)
            }
            None => None,
        };
        let comprehension = ListComprehension {
            slot: it.0,
            list: it.1,
            filter,
            map,
        };
        let ty = Ty::List(Box::new(item));
        Ok((X::ListComprehension(Box::new(comprehension)), ty))
    }

    /// Compiles what runs once for each item of a list, where there are no rows to aggregate.
    fn without_aggregates<T>(
        &mut self,
        expr: &Expr,
        compile: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if super::contains_aggregate(expr) {
            let message = "an aggregate cannot stand inside a comprehension";
            return Err(self.fail("InvalidAggregation", expr.at, message));
        }
        compile(self)
    }

    /// Compiles a subquery, which has its own rows to aggregate.
    fn hide_aggregation<T>(&mut self, compile: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = self.aggregating.take();
        let columns = std::mem::take(&mut self.columns);
        let allowed = std::mem::replace(&mut self.pattern_allowed, false);
        let compiled = compile(self);
        self.aggregating = outer;
        self.columns = columns;
        self.pattern_allowed = allowed;
        compiled
    }

    /// The rows of a pattern inside an expression, and the names in them.
    fn pattern_rows(
        &mut self,
        scope: &Scope,
        part: &crate::ast::PatternPart,
        filter: Option<&Expr>,
        names_new: bool,
    ) -> Result<(Op, Scope)> {
        if !names_new {
            let nodes = part.steps.iter().map(|it| &it.1);
            let nodes = std::iter::once(&part.start).chain(nodes);
            let names = nodes.filter_map(|it| it.name.as_ref());
            let rels = part.steps.iter().filter_map(|it| it.0.name.as_ref());
            for name in names.chain(rels) {
                if scope.get(&name.text).is_none() {
                    return Err(self.undefined(&name.text, name.at));
                }
            }
        }
        if let Some(state) = &self.aggregating {
            // The variables of the row are gone once it is aggregated, unless they are keys.
            if !state.inside {
                let nodes = part.steps.iter().map(|it| &it.1);
                let nodes = std::iter::once(&part.start).chain(nodes);
                for name in nodes.filter_map(|it| it.name.as_ref()) {
                    let is_row = scope.get(&name.text).is_some_and(|it| !it.local);
                    if is_row && !state.keys.iter().any(|it| it.0 == name.text) {
                        let message = format!(
                            "`{}` is not a column of its own: project it first",
                            name.text
                        );
                        return Err(self.fail("AmbiguousAggregationExpression", name.at, message));
                    }
                }
            }
        }
        self.hide_aggregation(|compiler| {
            let input = compiler.op(1.0, crate::plan::OpKind::Argument);
            let parts = std::slice::from_ref(part);
            let (op, mut inner) = compiler.match_clause(input, scope, false, parts, filter)?;
            for var in &mut inner.vars {
                if scope.get(&var.name).is_none() {
                    var.local = true;
                }
            }
            Ok((op, inner))
        })
    }

    fn pattern_value(
        &mut self,
        scope: &Scope,
        part: &crate::ast::PatternPart,
        at: usize,
    ) -> Result<Typed> {
        if part.kind != PathKind::Plain {
            let mut named = part.clone();
            let name = "  path".to_owned();
            named.name = Some(crate::ast::Name {
                text: name.clone(),
                at,
            });
            for node in [&part.start]
                .into_iter()
                .chain(part.steps.iter().map(|it| &it.1))
            {
                let known = node.name.as_ref().and_then(|it| scope.get(&it.text));
                if known.is_none() {
                    let message = "both ends of a shortest path must be nodes that are known";
                    return Err(self.fail("UndefinedVariable", node.at, message));
                }
            }
            let (op, inner) = self.pattern_rows(scope, &named, None, true)?;
            let (path, _) = self.variable(&inner, &name, at)?;
            if part.kind == PathKind::AllShortest {
                let ty = Ty::List(Box::new(Ty::Path));
                return Ok((X::Collect(Box::new(op), boxed(path)), ty));
            }
            return Ok((X::First(Box::new(op), boxed(path)), Ty::Path));
        }
        if !self.pattern_allowed {
            let message = "a pattern is a condition here, not a value: use it in `WHERE`, `EXISTS { … }` \
                           or a pattern comprehension `[(a)-->(b) | b]`";
            return Err(self.fail("UnexpectedSyntax", at, message));
        }
        let (op, _) = self.pattern_rows(scope, part, None, false)?;
        Ok((X::Exists(Box::new(op)), Ty::Bool))
    }
}

/// The type of an operation; none if it is never valid.
fn result_type(sign: Arith, left: &Ty, right: &Ty) -> Option<Ty> {
    use Ty::{Any, Duration, Float, Int, List, Null, Str, Temporal};
    let number = |left: &Ty, right: &Ty| match (left, right) {
        (Int, Int) => Int,
        (Float, _) | (_, Float) => Float,
        _ => Ty::Number,
    };
    match (left, right) {
        (left, right) if left.is_number() && right.is_number() => {
            return Some(match sign {
                Arith::Power => Float,
                _ => number(left, right),
            });
        }
        _ => {}
    }
    match (sign, left, right) {
        (Arith::Add, List(_), List(_)) => Some(left.clone().join(right.clone())),
        (Arith::Add, List(item), other) | (Arith::Add, other, List(item)) => {
            let item = if other.is_unknown() {
                Any
            } else {
                (**item).clone().join(other.clone())
            };
            Some(List(Box::new(item)))
        }
        (Arith::Add, Str, Str) => Some(Str),
        (Arith::Add, Str, _) | (Arith::Add, _, Str) => Some(Any),
        (Arith::Add, Duration, Duration) | (Arith::Subtract, Duration, Duration) => Some(Duration),
        (Arith::Add | Arith::Subtract, Temporal, Duration) => Some(Temporal),
        (Arith::Add, Duration, Temporal) => Some(Temporal),
        (Arith::Multiply, Duration, it) | (Arith::Multiply, it, Duration)
            if it.is_number() || it.is_unknown() =>
        {
            Some(Duration)
        }
        (Arith::Divide, Duration, it) if it.is_number() || it.is_unknown() => Some(Duration),
        (_, Any | Null, Any | Null) => Some(Any),
        (_, Any | Null, it) | (_, it, Any | Null)
            if it.is_number() || matches!(it, Temporal | Duration) =>
        {
            Some(Any)
        }
        (Arith::Add, Any | Null, _) | (Arith::Add, _, Any | Null) => Some(Any),
        _ => None,
    }
}

/// A variable, or a property of one, as text.
pub(super) fn simple_key(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Var(name) => Some(name.clone()),
        ExprKind::Property(of, key) => Some(format!("{}.{key}", simple_key(of)?)),
        _ => None,
    }
}

fn find_random(expr: &Expr) -> Option<usize> {
    let mut found = None;
    super::projection::visit(expr, &mut |it| {
        if let ExprKind::Call { name, .. } = &it.kind
            && name == "rand"
        {
            found = Some(it.at);
        }
    });
    found
}

/// The conditions that must all hold.
pub(super) fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Junction(Junction::And, operands) => {
            operands.iter().flat_map(conjuncts).collect()
        }
        _ => vec![expr],
    }
}
