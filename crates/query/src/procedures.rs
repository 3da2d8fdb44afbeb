//! What `CALL` can name.

use crate::counts;
use crate::graph::Graph;
use crate::view::View;
use kenning_cypher::{Class, Error, Procedures, Result, Signature, Value};
use kenning_kernel::search::{Search, Wanted, policy};
use kenning_kernel::{Caller, Kernel};
use kenning_search::Filter;

/// Hits of a search, unless the query asks for fewer or more.
const HITS_DEFAULT: i64 = 20;

/// Hits of a search at most.
const HITS_MAX: i64 = 1_000;

/// The procedures, over the graph of one query.
pub(crate) struct Called<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) caller: &'a Caller,
    pub(crate) graph: &'a Graph,
    pub(crate) view: &'a View<'a>,
    pub(crate) now_ms: u64,
    pub(crate) is_past: bool,
}

impl Procedures for Called<'_> {
    fn signature(&self, name: &str) -> Option<Signature> {
        let (arguments, columns): (&[(&str, bool)], &[&str]) = match name {
            "kenning.search" => (&[("query", false), ("limit", true)], &["node", "score"]),
            "kenning.labels" => (&[], &["label", "count"]),
            "kenning.types" => (&[], &["type", "count"]),
            _ => return None,
        };
        let arguments = arguments.iter();
        Some(Signature {
            arguments: arguments.map(|it| (it.0.to_owned(), it.1)).collect(),
            columns: columns.iter().map(|&it| it.to_owned()).collect(),
        })
    }

    fn call(&self, name: &str, arguments: &[Value], n_max: usize) -> Result<Vec<Vec<Value>>> {
        let [labels, types] = counts(self.graph);
        let counted = |rows: Vec<(std::sync::Arc<str>, u64)>| {
            let rows = rows.into_iter().map(|(name, n)| {
                let n = i64::try_from(n).unwrap_or(i64::MAX);
                vec![Value::Str(name), Value::Int(n)]
            });
            rows.take(n_max).collect()
        };
        match name {
            "kenning.labels" => Ok(counted(labels)),
            "kenning.types" => Ok(counted(types)),
            _ => self.search(arguments, n_max),
        }
    }
}

impl Called<'_> {
    /// The nodes that answer a question in plain words, by the one search.
    fn search(&self, arguments: &[Value], n_max: usize) -> Result<Vec<Vec<Value>>> {
        if self.is_past {
            return Err(wrong(
                "`kenning.search` answers from what is there now: leave out `as_of`",
            ));
        }
        let text = match arguments.first() {
            Some(Value::Str(text)) => text,
            Some(Value::Null) | None => return Ok(Vec::new()),
            Some(_) => return Err(wrong("`query` of `kenning.search` is not a text")),
        };
        let limit = match arguments.get(1) {
            None | Some(Value::Null) => HITS_DEFAULT,
            Some(Value::Int(it)) if (1..=HITS_MAX).contains(it) => *it,
            Some(_) => {
                let why = format!(
                    "`limit` of `kenning.search` is not a whole number from 1 to {HITS_MAX}"
                );
                return Err(wrong(why));
            }
        };
        let limit = usize::try_from(limit).unwrap_or(0).min(n_max);
        let space = &self.caller.principal.space;
        let question = self.kernel.question(text);
        let filters = [Filter::default()];
        let wanted = Wanted::new(&policy::QUERIES, &filters, limit, self.now_ms);
        let found = self.kernel.log().read(space, |tx| {
            let search = |search: &Search<'_>| search.find(&wanted);
            self.kernel.search(space, tx, &question, search)?
        });
        let found = found.map_err(|error| Error::graph(error.to_string()))?;
        let rows = found
            .hits
            .into_iter()
            .filter_map(|it| Some((self.view.find(it.node)?, it.relevance)))
            .map(|(node, score)| vec![Value::Node(node), Value::Float(score)]);
        Ok(rows.take(limit).collect())
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::run(Class::Procedure, "InvalidArgumentValue", message)
}
