//! From [`crate::ast`] to [`crate::plan`]: names become slots, invalid queries are refused, and each
//! `MATCH` is planned with the graph's statistics of labels, types and indexes.

mod expressions;
mod matches;
mod patterns;
mod projection;

use crate::ast::{Clause, ClauseKind, Expr, Query, Union, Yields};
use crate::element::Token;
use crate::error::{Class, Error, Position, Result};
use crate::graph::{Graph, Procedures};
use crate::plan::{Key, Op, OpKind, Slot, X};
use crate::types::Ty;
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// How many operators a plan may have.
const OPERATORS_MAX: usize = 400;

/// How many conditions one `MATCH` may have.
const CONDITIONS_MAX: usize = 1000;

/// How many columns a projection may have.
const COLUMNS_MAX: usize = 500;

/// The plan, and its columns.
pub(crate) struct Compiled {
    pub(crate) op: Op,
    pub(crate) columns: Vec<(String, Slot)>,
    pub(crate) n_slots: usize,
    pub(crate) n_ops: usize,
    pub(crate) names: HashMap<Slot, String>,
    pub(crate) unknown: Vec<Unknown>,
}

/// A variable.
#[derive(Clone, Debug)]
pub(crate) struct Var {
    name: String,
    slot: Slot,
    ty: Ty,
    /// Local to a comprehension, a quantifier or a subquery: not part of the row.
    local: bool,
}

/// The variables in scope, the latest of a name last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    vars: Vec<Var>,
}

impl Scope {
    fn get(&self, name: &str) -> Option<&Var> {
        self.vars.iter().rev().find(|it| it.name == name)
    }

    fn with(&self, var: Var) -> Self {
        let mut scope = self.clone();
        scope.vars.push(var);
        scope
    }

    fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.vars.iter().map(|it| it.slot)
    }
}

/// A name in a query that nothing in the graph has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// A label.
    Label(String),
    /// A type of relationships.
    Type(String),
    /// A property of a node or a relationship.
    Property(String),
}

/// The state while the items of an aggregating projection are compiled.
struct Aggregating {
    /// Inside the argument of an aggregate.
    inside: bool,
    /// Grouping keys that other items may name: variables, and properties of them.
    keys: Vec<(String, Slot, Ty)>,
    /// Variables that occur in grouping keys.
    in_keys: BTreeSet<String>,
    found: Vec<crate::plan::Aggregation>,
    /// After the projection, aggregates must have been projected.
    closed: bool,
}

pub(crate) struct Compiler<'a> {
    text: &'a str,
    graph: &'a dyn Graph,
    procedures: &'a dyn Procedures,
    parameters: &'a BTreeMap<String, Value>,
    n_slots: usize,
    n_ops: usize,
    depth: usize,
    /// The slots of the variables that were named.
    used: BTreeSet<Slot>,
    aggregating: Option<Aggregating>,
    /// Columns by the expression that made them, for `ORDER BY`.
    columns: Vec<(String, Slot, Ty)>,
    names: HashMap<Slot, String>,
    /// Where a pattern can be a condition: in `WHERE`, and below `AND`, `OR`, `NOT`.
    pattern_allowed: bool,
    unknown: BTreeSet<Unknown>,
}

/// Compiles a query for a graph.
pub(crate) fn compile(
    text: &str,
    query: &Query,
    graph: &dyn Graph,
    procedures: &dyn Procedures,
    parameters: &BTreeMap<String, Value>,
) -> Result<Compiled> {
    let mut compiler = Compiler {
        text,
        graph,
        procedures,
        parameters,
        n_slots: 0,
        n_ops: 0,
        depth: 0,
        used: BTreeSet::new(),
        aggregating: None,
        columns: Vec::new(),
        names: HashMap::new(),
        pattern_allowed: false,
        unknown: BTreeSet::new(),
    };
    let (op, columns) = compiler.union(&query.union, &Scope::default(), false)?;
    compiler.check_length(0)?;
    Ok(Compiled {
        op,
        columns,
        n_slots: compiler.n_slots,
        n_ops: compiler.n_ops,
        names: compiler.names,
        unknown: compiler.unknown.into_iter().collect(),
    })
}

impl Compiler<'_> {
    fn slot(&mut self) -> Slot {
        self.n_slots += 1;
        self.n_slots - 1
    }

    fn named_slot(&mut self, name: &str) -> Slot {
        let slot = self.slot();
        self.names.insert(slot, name.to_owned());
        slot
    }

    fn label(&mut self, name: &str) -> Option<Token> {
        let found = self.graph.label(name);
        if found.is_none() {
            self.unknown.insert(Unknown::Label(name.to_owned()));
        }
        found
    }

    fn rel_type(&mut self, name: &str) -> Option<Token> {
        let found = self.graph.rel_type(name);
        if found.is_none() {
            self.unknown.insert(Unknown::Type(name.to_owned()));
        }
        found
    }

    /// The name of a property of a node or relationship.
    fn stored_key(&mut self, name: &str) -> Key {
        let key = self.key(name);
        if key.number.is_none() && self.graph.numbers_keys() {
            self.unknown.insert(Unknown::Property(name.to_owned()));
        }
        key
    }

    fn parameter(&self, name: &str) -> X {
        X::Param(Arc::from(name), self.parameters.get(name).cloned())
    }

    /// The name of a property of anything.
    fn key(&self, name: &str) -> Key {
        Key {
            name: Arc::from(name),
            number: self.graph.key(name),
        }
    }

    fn op(&mut self, estimate: f64, kind: OpKind) -> Op {
        self.n_ops += 1;
        Op {
            id: self.n_ops - 1,
            estimate,
            kind,
        }
    }

    /// Plans are chains that are walked recursively, so their length is bounded before they are made.
    fn check_length(&self, n_more: usize) -> Result<()> {
        if self.n_ops + n_more > OPERATORS_MAX {
            let message = format!("the query needs more than {OPERATORS_MAX} steps");
            return Err(Error::limit("QueryTooLong", message));
        }
        Ok(())
    }

    fn position(&self, at: usize) -> Position {
        Position::of(self.text, at)
    }

    fn fail(&self, detail: &'static str, at: usize, message: impl Into<String>) -> Error {
        Error::syntax(detail, self.position(at), message)
    }

    /// Compiles, and says which slots were named.
    fn tracked<T>(
        &mut self,
        compile: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, BTreeSet<Slot>)> {
        let outer = std::mem::take(&mut self.used);
        let compiled = compile(self);
        let used = std::mem::replace(&mut self.used, outer);
        self.used.extend(&used);
        Ok((compiled?, used))
    }

    /// The rows of one or more queries. In a subquery, the last clause need not be `RETURN`.
    fn union(
        &mut self,
        union: &Union,
        scope: &Scope,
        in_subquery: bool,
    ) -> Result<(Op, Vec<(String, Slot)>)> {
        let mut parts = Vec::new();
        for clauses in &union.parts {
            parts.push(self.single(clauses, scope, in_subquery)?);
        }
        if parts.len() == 1
            && let Some(part) = parts.pop()
        {
            return Ok(part);
        }
        let names = |columns: &[(String, Slot)]| -> Vec<String> {
            columns.iter().map(|it| it.0.clone()).collect()
        };
        let first = parts.first().map(|it| names(&it.1)).unwrap_or_default();
        for ((_, columns), clauses) in parts.iter().zip(&union.parts).skip(1) {
            let mut here = names(columns);
            let mut there = first.clone();
            here.sort();
            there.sort();
            if here != there {
                let at = clauses.last().map_or(0, |it| it.at);
                let message = format!(
                    "all parts of a `UNION` must have the same columns: [{}] and [{}] differ",
                    first.join(", "),
                    names(columns).join(", ")
                );
                return Err(self.fail("DifferentColumnsInUnion", at, message));
            }
        }
        let slots: Vec<Slot> = first.iter().map(|it| self.named_slot(it)).collect();
        let estimate = parts.iter().map(|it| it.0.estimate).sum();
        let parts = parts.into_iter().map(|(op, columns)| {
            let slot_of = |name: &String| {
                let column = columns.iter().find(|it| it.0 == *name);
                column.map_or(0, |it| it.1)
            };
            let from = first.iter().map(slot_of).collect();
            (op, from)
        });
        let kind = OpKind::Union {
            parts: parts.collect(),
            slots: slots.clone(),
            distinct: !union.all,
        };
        let op = self.op(estimate, kind);
        Ok((op, first.into_iter().zip(slots).collect()))
    }

    fn single(
        &mut self,
        clauses: &[Clause],
        outer: &Scope,
        in_subquery: bool,
    ) -> Result<(Op, Vec<(String, Slot)>)> {
        if let Some(counted) = self.count_from_store(clauses, in_subquery) {
            return Ok(counted);
        }
        let mut scope = outer.clone();
        let mut op = self.op(1.0, OpKind::Argument);
        let mut columns = Vec::new();
        for clause in clauses {
            match &clause.kind {
                ClauseKind::Match {
                    optional,
                    parts,
                    filter,
                } => {
                    (op, scope) =
                        self.match_clause(op, &scope, *optional, parts, filter.as_ref())?;
                }
                ClauseKind::Unwind { list, name } => {
                    let (list, ty) = self.expression(&scope, list)?;
                    if scope.get(&name.text).is_some() {
                        let message = format!("the variable `{}` exists already", name.text);
                        return Err(self.fail("VariableAlreadyBound", name.at, message));
                    }
                    let slot = self.named_slot(&name.text);
                    scope.vars.push(Var {
                        name: name.text.clone(),
                        slot,
                        ty: ty.item(),
                        local: false,
                    });
                    let estimate = op.estimate * 10.0;
                    let input = Box::new(op);
                    op = self.op(estimate, OpKind::Unwind { input, list, slot });
                }
                ClauseKind::With { projection, filter } => {
                    let projected =
                        self.projection(op, &scope, projection, filter.as_ref(), clause.at, true)?;
                    op = projected.op;
                    scope = projected.scope;
                    // The variables around a subquery stay visible in it.
                    if in_subquery {
                        let kept = outer.vars.iter();
                        let kept = kept.filter(|it| scope.get(&it.name).is_none());
                        let kept: Vec<Var> = kept.cloned().collect();
                        scope.vars.splice(0..0, kept);
                    }
                }
                ClauseKind::Return(projection) => {
                    let projected =
                        self.projection(op, &scope, projection, None, clause.at, false)?;
                    op = projected.op;
                    columns = projected.columns;
                }
                ClauseKind::Call {
                    procedure,
                    arguments,
                    yields,
                    filter,
                } => {
                    let call = Call {
                        procedure,
                        arguments: arguments.as_deref(),
                        yields: yields.as_ref(),
                        filter: filter.as_ref(),
                        alone: clauses.len() == 1,
                    };
                    (op, columns) = self.call_clause(op, &mut scope, &call, clause.at)?;
                }
            }
        }
        Ok((op, columns))
    }

    fn call_clause(
        &mut self,
        input: Op,
        scope: &mut Scope,
        call: &Call<'_>,
        at: usize,
    ) -> Result<(Op, Vec<(String, Slot)>)> {
        let procedure = call.procedure;
        let fail = |detail, message: String| {
            Error::compile(
                Class::Procedure,
                detail,
                Position::of(self.text, at),
                message,
            )
        };
        let Some(signature) = self.procedures.signature(procedure) else {
            return Err(fail(
                "ProcedureNotFound",
                format!("there is no procedure `{procedure}`"),
            ));
        };
        let given: &[Expr] = match call.arguments {
            Some(it) => it,
            None if call.alone => &[],
            None => {
                let message = format!("arguments are missing: write `{procedure}(…)`");
                return Err(self.fail("InvalidArgumentPassingMode", at, message));
            }
        };
        let least = signature.arguments.iter().filter(|it| !it.1).count();
        // A call alone takes its arguments from the parameters of the same names.
        let implicit = call.arguments.is_none();
        if !implicit && !(least..=signature.arguments.len()).contains(&given.len()) {
            let names: Vec<&str> = signature.arguments.iter().map(|it| &*it.0).collect();
            let message = format!(
                "`{procedure}` takes ({}), but {} arguments are given",
                names.join(", "),
                given.len()
            );
            return Err(self.fail("InvalidNumberOfArguments", at, message));
        }
        let arguments = if implicit {
            let names = signature.arguments.iter().filter(|it| !it.1);
            names.map(|it| self.parameter(&it.0)).collect()
        } else {
            let mut arguments = Vec::new();
            for argument in given {
                if contains_aggregate(argument) {
                    let message = "an aggregate cannot be an argument of a procedure";
                    return Err(self.fail("InvalidAggregation", argument.at, message));
                }
                arguments.push(self.expression(scope, argument)?.0);
            }
            arguments
        };
        let everything: Vec<(usize, String)> =
            signature.columns.iter().cloned().enumerate().collect();
        let wanted: Vec<(usize, String)> = match call.yields {
            Some(Yields::Star) => everything,
            None if call.alone => everything,
            None => Vec::new(),
            Some(Yields::Columns(columns)) => {
                let mut wanted = Vec::new();
                for (column, alias) in columns {
                    let place = signature.columns.iter().position(|it| *it == column.text);
                    let Some(place) = place else {
                        let message = format!(
                            "`{procedure}` has no column `{}`: it has {}",
                            column.text,
                            signature.columns.join(", ")
                        );
                        return Err(self.fail("UndefinedVariable", column.at, message));
                    };
                    let name = alias.as_ref().unwrap_or(column);
                    wanted.push((place, name.text.clone()));
                }
                wanted
            }
        };
        let mut columns = Vec::new();
        let mut named = Vec::new();
        for (place, name) in wanted {
            if scope.get(&name).is_some() {
                let message = format!("the variable `{name}` exists already");
                return Err(self.fail("VariableAlreadyBound", at, message));
            }
            let slot = self.named_slot(&name);
            scope.vars.push(Var {
                name: name.clone(),
                slot,
                ty: Ty::Any,
                local: false,
            });
            columns.push((place, slot));
            named.push((name, slot));
        }
        let estimate = input.estimate * 10.0;
        let kind = OpKind::Call {
            input: Box::new(input),
            procedure: procedure.to_owned(),
            arguments,
            columns,
        };
        let mut op = self.op(estimate, kind);
        if let Some(filter) = call.filter {
            let condition = self.condition(scope, filter)?;
            let estimate = op.estimate * 0.3;
            let input = Box::new(op);
            op = self.op(estimate, OpKind::Filter { input, condition });
        }
        Ok((op, named))
    }
}

struct Call<'a> {
    procedure: &'a str,
    arguments: Option<&'a [Expr]>,
    yields: Option<&'a Yields>,
    filter: Option<&'a Expr>,
    alone: bool,
}

pub(crate) use projection::contains_aggregate;
