//! Plans as people read them: `EXPLAIN` and `PROFILE`.

use super::{Expand, Op, OpKind, Slot, Types, X};
use crate::element::Direction;
use std::collections::HashMap;

/// One step of a plan, for a reader.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// How deep it stands below the last step.
    pub depth: usize,
    /// What is done, such as `NodeByLabelScan`.
    pub operator: &'static str,
    /// With what, such as `n:Person`.
    pub detail: String,
    /// The estimated number of rows.
    pub estimated_rows: f64,
    /// How many it gave, under `PROFILE`.
    pub rows: Option<u64>,
}

/// The steps of a plan, the last one first, each above what it reads from.
pub(crate) fn describe(op: &Op, names: &HashMap<Slot, String>, rows: Option<&[u64]>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut printer = Printer { names, rows };
    printer.step(op, 0, &mut steps);
    steps
}

struct Printer<'a> {
    names: &'a HashMap<Slot, String>,
    rows: Option<&'a [u64]>,
}

impl Printer<'_> {
    fn name(&self, slot: Slot) -> String {
        let name = self.names.get(&slot).cloned();
        name.unwrap_or_else(|| format!("#{slot}"))
    }

    fn list(&self, slots: &[Slot]) -> String {
        let names: Vec<String> = slots.iter().map(|it| self.name(*it)).collect();
        names.join(", ")
    }

    fn arrow(&self, step: &Expand, range: &str) -> String {
        let types = types(&step.types);
        let (left, right) = match step.direction {
            Direction::Out => ("-", "->"),
            Direction::In => ("<-", "-"),
            Direction::Both => ("-", "-"),
        };
        let (from, rel, to) = (
            self.name(step.from),
            self.name(step.rel),
            self.name(step.to),
        );
        format!("({from}){left}[{rel}{types}{range}]{right}({to})")
    }

    fn step(&mut self, op: &Op, depth: usize, steps: &mut Vec<Step>) {
        let mut inputs: Vec<&Op> = Vec::new();
        let (operator, detail) = match &op.kind {
            OpKind::Argument => ("Argument", String::new()),
            OpKind::Scan { input, slot, label } => {
                inputs.push(input);
                match label {
                    Some((label, _)) => {
                        ("NodeByLabelScan", format!("{}:{label}", self.name(*slot)))
                    }
                    None => ("AllNodesScan", self.name(*slot)),
                }
            }
            OpKind::Seek {
                input,
                slot,
                label,
                key,
                ..
            } => {
                inputs.push(input);
                let label = label
                    .as_ref()
                    .map_or(String::new(), |it| format!(":{}", it.0));
                (
                    "NodeIndexSeek",
                    format!("{}{label}({key})", self.name(*slot)),
                )
            }
            OpKind::ById { input, slot, .. } => {
                inputs.push(input);
                ("NodeByIdSeek", self.name(*slot))
            }
            OpKind::Expand { input, step } => {
                inputs.push(input);
                let operator = if step.into { "ExpandInto" } else { "ExpandAll" };
                (operator, self.arrow(step, ""))
            }
            OpKind::Far { input, step } => {
                inputs.push(input);
                let range = range(step.least, step.most);
                ("VarLengthExpand", self.arrow(&step.step, &range))
            }
            OpKind::Endpoints { input, step } => {
                inputs.push(input);
                ("ProjectEndpoints", self.name(step.rel))
            }
            OpKind::Shortest { input, step } => {
                inputs.push(input);
                let far = &step.far;
                (
                    "ShortestPath",
                    self.arrow(&far.step, &range(far.least, far.most)),
                )
            }
            OpKind::Join {
                input, build, slot, ..
            } => {
                inputs.extend([&**input, &**build]);
                ("ValueHashJoin", self.name(*slot))
            }
            OpKind::Filter { input, condition } => {
                inputs.push(input);
                ("Filter", self.expression(condition))
            }
            OpKind::IsNode { input, slot } => {
                inputs.push(input);
                ("Filter", format!("{} IS NOT NULL", self.name(*slot)))
            }
            OpKind::Optional {
                input,
                inner,
                slots,
            } => {
                inputs.extend([&**input, &**inner]);
                ("Optional", self.list(slots))
            }
            OpKind::BindPath { input, slot, .. } => {
                inputs.push(input);
                ("BindPath", self.name(*slot))
            }
            OpKind::Unwind { input, slot, .. } => {
                inputs.push(input);
                ("Unwind", self.name(*slot))
            }
            OpKind::Project { input, items } => {
                inputs.push(input);
                let slots: Vec<Slot> = items.iter().map(|it| it.0).collect();
                ("Projection", self.list(&slots))
            }
            OpKind::Aggregate {
                input,
                keys,
                aggregations,
            } => {
                inputs.push(input);
                let keys: Vec<Slot> = keys.iter().map(|it| it.0).collect();
                let values: Vec<String> = aggregations
                    .iter()
                    .map(|it| it.function.name().to_owned())
                    .collect();
                let detail = format!("{} by [{}]", values.join(", "), self.list(&keys));
                ("Aggregation", detail)
            }
            OpKind::Distinct { input, slots } => {
                inputs.push(input);
                ("Distinct", self.list(slots))
            }
            OpKind::Sort { input, sort } => {
                inputs.push(input);
                let keys: Vec<String> = sort
                    .keys
                    .iter()
                    .map(|(key, descending)| {
                        let way = if *descending { " DESC" } else { "" };
                        format!("{}{way}", self.expression(key))
                    })
                    .collect();
                let operator = if sort.top.is_some() { "Top" } else { "Sort" };
                (operator, keys.join(", "))
            }
            OpKind::Skip { input, n } => {
                inputs.push(input);
                ("Skip", self.expression(n))
            }
            OpKind::Limit { input, n } => {
                inputs.push(input);
                ("Limit", self.expression(n))
            }
            OpKind::Call {
                input, procedure, ..
            } => {
                inputs.push(input);
                ("ProcedureCall", procedure.clone())
            }
            OpKind::Union {
                parts, distinct, ..
            } => {
                inputs.extend(parts.iter().map(|it| &it.0));
                (
                    "Union",
                    if *distinct { "distinct" } else { "all" }.to_owned(),
                )
            }
            OpKind::CountNodes { label, .. } => {
                let label = label.as_ref().map_or("*", |it| &it.0);
                ("NodeCountFromCountStore", label.to_owned())
            }
            OpKind::CountRels { types: of, .. } => ("RelationshipCountFromCountStore", types(of)),
        };
        let rows = self.rows.map(|it| it.get(op.id).copied().unwrap_or(0));
        steps.push(Step {
            depth,
            operator,
            detail,
            estimated_rows: op.estimate,
            rows,
        });
        let n_inputs = inputs.len();
        for (idx, input) in inputs.into_iter().enumerate() {
            // A chain stays in one column; what joins it is indented.
            let deeper =
                usize::from(n_inputs > 1 && idx > 0 || matches!(op.kind, OpKind::Union { .. }));
            self.step(input, depth + deeper, steps);
        }
    }

    fn expression(&self, it: &X) -> String {
        match it {
            X::Const(value) => value.to_string(),
            X::Param(name, _) => format!("${name}"),
            X::Slot(slot) => self.name(*slot),
            X::Property(of, key) => format!("{}.{}", self.expression(of), key.name),
            X::HasLabels(of, labels) => {
                let labels: Vec<&str> = labels.iter().map(|it| &*it.0).collect();
                format!("{}:{}", self.expression(of), labels.join(":"))
            }
            X::Compare(first, rest) => {
                let mut text = self.expression(first);
                for (sign, operand) in rest {
                    text = format!("{text} {} {}", sign.sign(), self.expression(operand));
                }
                text
            }
            X::IsNull(of, negated) => {
                let not = if *negated { "NOT " } else { "" };
                format!("{} IS {not}NULL", self.expression(of))
            }
            X::Not(of) => format!("NOT {}", self.expression(of)),
            X::Junction(kind, operands) => {
                let operands: Vec<String> = operands.iter().map(|it| self.expression(it)).collect();
                operands.join(&format!(" {} ", kind.word()))
            }
            X::In(item, list) => {
                format!("{} IN {}", self.expression(item), self.expression(list))
            }
            X::Call(function, arguments) => {
                let arguments: Vec<String> =
                    arguments.iter().map(|it| self.expression(it)).collect();
                format!("{}({})", function.name(), arguments.join(", "))
            }
            X::Exists(_) => "EXISTS { … }".to_owned(),
            _ => "…".to_owned(),
        }
    }
}

fn types(types: &Types) -> String {
    if types.names.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = types.names.iter().map(|it| &**it).collect();
    format!(":{}", names.join("|"))
}

fn range(least: u64, most: u64) -> String {
    match (least, most) {
        (1, u64::MAX) => "*".to_owned(),
        (least, u64::MAX) => format!("*{least}.."),
        (least, most) => format!("*{least}..{most}"),
    }
}
