//! From words to a query.
//!
//! Only brackets nest, and they are counted. Chains (`1 + 2 + 3`, `a.b.c`, `NOT NOT x`) are lists and not
//! trees, so whoever walks or drops an expression calls itself once for a bracket and never for a link.

use super::Fault;
use super::token::{Token, What, near, place};
use serde_json::Value;

/// How deep expressions and patterns may be.
const DEPTH_MAX: usize = 32;
/// How many patterns expressions may have.
const TRIES_MAX: usize = 200;
/// How many variables and columns there may be at once.
const NAMES_MAX: usize = 1_000;

/// Words that begin a clause that changes something, or may.
const WRITING: &[&str] = &[
    "CREATE", "MERGE", "SET", "DELETE", "DETACH", "REMOVE", "DROP", "LOAD", "CALL", "FOREACH",
    "START", "ALTER", "GRANT", "INSERT",
];

/// Words that no variable is called without backticks.
const RESERVED: &[&str] = &[
    "RETURN", "MATCH", "OPTIONAL", "WHERE", "WITH", "UNWIND", "UNION", "ORDER", "SKIP", "LIMIT",
    "AS", "AND", "OR", "XOR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE", "CASE", "WHEN", "THEN",
    "ELSE", "END", "DISTINCT", "STARTS", "ENDS", "CONTAINS", "BY",
];

/// Functions that make one value of many rows.
pub(super) const AGGREGATES: &[&str] = &["count", "sum", "avg", "min", "max", "collect"];

#[derive(Debug)]
pub(super) struct Query {
    pub(super) clauses: Vec<Clause>,
}

#[derive(Debug)]
pub(super) enum Clause {
    Match {
        is_optional: bool,
        variables: Vec<String>,
    },
    Unwind(Expr, String),
    /// `WITH`, or the last one, which is `RETURN`.
    Project(Projection),
}

#[derive(Debug)]
pub(super) struct Projection {
    pub(super) is_distinct: bool,
    pub(super) items: Vec<(String, Expr)>,
    pub(super) order: Vec<(Expr, bool)>,
    pub(super) skip: Option<Expr>,
    pub(super) limit: Option<Expr>,
    pub(super) condition: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Literal(Value),
    Variable(String),
    /// A value and what is taken out of it, one step after the other.
    Part(Box<Expr>, Vec<Step>),
    List(Vec<Expr>),
    Map(Vec<(String, Expr)>),
    /// The value with the other sign.
    Negative(Box<Expr>),
    /// `NOT`, once or twice: twice makes null of what is not true or false.
    Not(Box<Expr>, bool),
    /// Operators of one rank, applied from the left.
    Chain(Box<Expr>, Vec<Link>),
    /// A name in lower case, where it stands, whether `DISTINCT`, its arguments; none for `*`.
    Call(String, usize, bool, Option<Vec<Expr>>),
    Case(Option<Box<Expr>>, Vec<(Expr, Expr)>, Option<Box<Expr>>),
    /// `[x IN list WHERE condition | value]`
    Comprehension(String, Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    /// A pattern that is or is not in the graph; or a label that something has.
    InGraph,
}

/// What is taken out of a value.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Property(String),
    Index(Expr),
    Slice(Option<Expr>, Option<Expr>),
}

/// An operator and what stands on its right.
#[derive(Clone, Debug)]
pub(super) enum Link {
    Binary(&'static str, Expr),
    /// `IS NULL`, or `IS NOT NULL`.
    IsNull(bool),
}

pub(super) fn query(text: &str, tokens: &[Token]) -> Result<Query, Fault> {
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        depth: 0,
        is_too_deep: false,
        scope: Vec::new(),
        aggregates: Aggregates::Refused,
        tries: 0,
    };
    let mut clauses = Vec::new();
    loop {
        let (clause, is_last) = parser.clause()?;
        clauses.push(clause);
        if is_last {
            break;
        }
    }
    parser.sign(";");
    match parser.peek() {
        None => Ok(Query { clauses }),
        Some(_) if parser.is_word("UNION") => Err(parser.said("`UNION` is not understood")),
        Some(_) => Err(parser.unexpected()),
    }
}

/// Whether a function of many rows may stand here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregates {
    Taken,
    Inside,
    Refused,
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    /// Whether it was nested too deeply, whatever else could be tried.
    is_too_deep: bool,
    /// Variables that are defined.
    scope: Vec<String>,
    aggregates: Aggregates,
    /// Patterns that were looked for in expressions.
    tries: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn what(&self) -> Option<&'a What> {
        self.peek().map(|it| &it.what)
    }

    fn unexpected(&self) -> Fault {
        match self.peek() {
            None => Fault("syntax error at end of input".to_owned()),
            Some(it) => near(
                self.text,
                it.start,
                self.text.get(it.start..it.end).unwrap_or_default(),
            ),
        }
    }

    /// Something about the word that is next.
    fn said(&self, why: &str) -> Fault {
        let at = self.peek().map_or(self.text.len(), |it| it.start);
        Fault(format!("{why} {}", place(self.text, at)))
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.what(), Some(What::Word(it)) if it.eq_ignore_ascii_case(word))
    }

    fn word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.what(), Some(What::Sign(it)) if *it == sign)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let is = self.is_sign(sign);
        self.at += usize::from(is);
        is
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Fault> {
        if self.word(word) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        if self.sign(sign) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// A name; a keyword only where none could be meant.
    fn name(&mut self, may_be_reserved: bool) -> Result<String, Fault> {
        let name = self.name_if_any(may_be_reserved);
        name.ok_or_else(|| self.unexpected())
    }

    fn optional_name(&mut self) -> Option<String> {
        self.name_if_any(false)
    }

    fn name_if_any(&mut self, may_be_reserved: bool) -> Option<String> {
        let is_reserved = |it: &str| RESERVED.iter().any(|word| it.eq_ignore_ascii_case(word));
        let name = match self.what() {
            Some(What::Word(it)) if may_be_reserved || !is_reserved(it) => it.clone(),
            Some(What::Quoted(it)) => it.clone(),
            _ => return None,
        };
        self.at += 1;
        Some(name)
    }

    fn define(&mut self, name: &str) -> Result<(), Fault> {
        if !self.scope.iter().any(|it| it == name) {
            self.scope.push(name.to_owned());
        }
        few_names(self.scope.len())
    }

    /// A clause, and whether it is the last one.
    fn clause(&mut self) -> Result<(Clause, bool), Fault> {
        if self.word("RETURN") {
            return Ok((Clause::Project(self.projection(true)?), true));
        }
        if self.word("WITH") {
            return Ok((Clause::Project(self.projection(false)?), false));
        }
        if self.word("UNWIND") {
            let list = self.expr()?;
            self.expect_word("AS")?;
            let name = self.name(false)?;
            self.define(&name)?;
            return Ok((Clause::Unwind(list, name), false));
        }
        let is_optional = self.word("OPTIONAL");
        if self.word("MATCH") {
            let n_known = self.scope.len();
            loop {
                self.path()?;
                if !self.sign(",") {
                    break;
                }
            }
            // Read to be checked: there is nothing that it could hold of.
            self.condition()?;
            let variables = self.scope.iter().skip(n_known).cloned().collect();
            let clause = Clause::Match {
                is_optional,
                variables,
            };
            return Ok((clause, false));
        }
        if let Some(What::Word(word)) = self.what()
            && WRITING.iter().any(|it| word.eq_ignore_ascii_case(it))
        {
            let why = format!("`{word}` is refused: queries only read the graph");
            return Err(self.said(&why));
        }
        Err(self.unexpected())
    }

    fn condition(&mut self) -> Result<Option<Expr>, Fault> {
        if self.word("WHERE") {
            self.expr().map(Some)
        } else {
            Ok(None)
        }
    }

    fn projection(&mut self, is_last: bool) -> Result<Projection, Fault> {
        let is_distinct = self.word("DISTINCT");
        let mut items: Vec<(String, Expr)> = Vec::new();
        if self.is_sign("*") {
            if self.scope.is_empty() {
                return Err(self.said("there are no variables for `*`"));
            }
            self.at += 1;
            let mut names = self.scope.clone();
            names.sort();
            items.extend(names.into_iter().map(|it| (it.clone(), Expr::Variable(it))));
            if self.sign(",") {
                self.items(is_last, &mut items)?;
            }
        } else {
            self.items(is_last, &mut items)?;
        }
        few_names(items.len())?;
        for (n, (name, _)) in items.iter().enumerate() {
            if items.iter().take(n).any(|it| it.0 == *name) {
                return Err(Fault(format!("two columns are called `{name}`")));
            }
        }
        // Order may be by what is projected and by what it was made of.
        let before = std::mem::take(&mut self.scope);
        let names: Vec<String> = items.iter().map(|it| it.0.clone()).collect();
        self.scope = before.into_iter().chain(names.clone()).collect();
        let mut order = Vec::new();
        if self.word("ORDER") {
            self.expect_word("BY")?;
            self.aggregates = Aggregates::Taken;
            loop {
                let by = self.expr()?;
                let is_descending = self.word("DESC") || self.word("DESCENDING");
                if !is_descending {
                    let _ = self.word("ASC") || self.word("ASCENDING");
                }
                order.push((by, is_descending));
                if !self.sign(",") {
                    break;
                }
            }
            self.aggregates = Aggregates::Refused;
        }
        let skip = if self.word("SKIP") {
            Some(self.expr()?)
        } else {
            None
        };
        let limit = if self.word("LIMIT") {
            Some(self.expr()?)
        } else {
            None
        };
        self.scope = names;
        let condition = if is_last { None } else { self.condition()? };
        Ok(Projection {
            is_distinct,
            items,
            order,
            skip,
            limit,
            condition,
        })
    }

    fn items(&mut self, is_last: bool, items: &mut Vec<(String, Expr)>) -> Result<(), Fault> {
        loop {
            let start = self.peek().map_or(self.text.len(), |it| it.start);
            self.aggregates = Aggregates::Taken;
            let value = self.expr()?;
            self.aggregates = Aggregates::Refused;
            let end = self
                .tokens
                .get(self.at.wrapping_sub(1))
                .map_or(start, |it| it.end);
            let name = if self.word("AS") {
                self.name(true)?
            } else {
                match &value {
                    Expr::Variable(name) => name.clone(),
                    _ if is_last => self.text.get(start..end).unwrap_or_default().to_owned(),
                    _ => return Err(self.said("in `WITH` an expression needs a name by `AS`")),
                }
            };
            items.push((name, value));
            few_names(items.len())?;
            if !self.sign(",") {
                return Ok(());
            }
        }
    }

    /// `p = (a)-[r:X]->(b)`
    fn path(&mut self) -> Result<(), Fault> {
        let before = self.at;
        match self.optional_name() {
            Some(name) if self.sign("=") => self.define(&name)?,
            _ => self.at = before,
        }
        let is_call = self.word("shortestPath") || self.word("allShortestPaths");
        if is_call {
            self.expect("(")?;
        }
        self.pattern()?;
        if is_call {
            self.expect(")")?;
        }
        Ok(())
    }

    /// Nodes and what is between them. Says whether there is anything between.
    fn pattern(&mut self) -> Result<bool, Fault> {
        self.node()?;
        let mut has_edges = false;
        while self.is_sign("-") || self.is_sign("<") {
            self.edge()?;
            self.node()?;
            has_edges = true;
        }
        Ok(has_edges)
    }

    fn node(&mut self) -> Result<(), Fault> {
        self.expect("(")?;
        if let Some(name) = self.optional_name() {
            self.define(&name)?;
        }
        self.labels()?;
        if self.is_sign("{") {
            self.map()?;
        }
        self.condition()?;
        self.expect(")")
    }

    fn edge(&mut self) -> Result<(), Fault> {
        self.sign("<");
        self.expect("-")?;
        if self.sign("[") {
            if let Some(name) = self.optional_name() {
                self.define(&name)?;
            }
            self.labels()?;
            if self.sign("*") {
                self.whole();
                if self.sign("..") {
                    self.whole();
                }
            }
            if self.is_sign("{") {
                self.map()?;
            }
            self.condition()?;
            self.expect("]")?;
        }
        self.expect("-")?;
        self.sign(">");
        Ok(())
    }

    fn whole(&mut self) {
        let is_whole = matches!(self.what(), Some(What::Literal(it)) if it.is_u64());
        self.at += usize::from(is_whole);
    }

    /// `:A|B`, `:A:B`, `:!A&B`
    fn labels(&mut self) -> Result<(), Fault> {
        if !self.sign(":") {
            return Ok(());
        }
        loop {
            self.sign("!");
            self.name(true)?;
            if self.sign("|") || self.sign("&") {
                self.sign(":");
            } else if !self.sign(":") {
                return Ok(());
            }
        }
    }

    fn map(&mut self) -> Result<Expr, Fault> {
        self.expect("{")?;
        let mut entries = Vec::new();
        if self.sign("}") {
            return Ok(Expr::Map(entries));
        }
        loop {
            let name = self.name(true)?;
            self.expect(":")?;
            entries.push((name, self.expr()?));
            if !self.sign(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(Expr::Map(entries))
    }

    fn expr(&mut self) -> Result<Expr, Fault> {
        let first = self.conjunction()?;
        self.chain(first, Self::conjunction, |it| {
            ["OR", "XOR"].into_iter().find(|word| it.word(word))
        })
    }

    /// What follows a first operand: an operator and the next operand, again and again.
    fn chain(
        &mut self,
        first: Expr,
        operand: fn(&mut Self) -> Result<Expr, Fault>,
        operator: fn(&mut Self) -> Option<&'static str>,
    ) -> Result<Expr, Fault> {
        let mut links = Vec::new();
        while let Some(operator) = operator(self) {
            links.push(Link::Binary(operator, operand(self)?));
        }
        Ok(chained(first, links))
    }

    fn conjunction(&mut self) -> Result<Expr, Fault> {
        let first = self.negation()?;
        self.chain(first, Self::negation, |it| it.word("AND").then_some("AND"))
    }

    fn negation(&mut self) -> Result<Expr, Fault> {
        let mut n = 0_usize;
        while self.word("NOT") {
            n += 1;
        }
        let value = self.comparison()?;
        Ok(match n {
            0 => value,
            _ => Expr::Not(Box::new(value), n.is_multiple_of(2)),
        })
    }

    fn comparison(&mut self) -> Result<Expr, Fault> {
        let first = self.sum()?;
        let mut links = Vec::new();
        loop {
            let sign = ["=", "<>", "<=", ">=", "<", ">", "=~"]
                .into_iter()
                .find(|it| self.sign(it));
            let operator = match sign {
                Some(sign) => sign,
                None if self.word("IN") => "IN",
                None if self.word("CONTAINS") => "CONTAINS",
                None if self.word("STARTS") => {
                    self.expect_word("WITH")?;
                    "STARTS WITH"
                }
                None if self.word("ENDS") => {
                    self.expect_word("WITH")?;
                    "ENDS WITH"
                }
                None if self.word("IS") => {
                    let is_negated = self.word("NOT");
                    self.expect_word("NULL")?;
                    links.push(Link::IsNull(!is_negated));
                    continue;
                }
                None => return Ok(chained(first, links)),
            };
            links.push(Link::Binary(operator, self.sum()?));
        }
    }

    fn sum(&mut self) -> Result<Expr, Fault> {
        let first = self.product()?;
        self.chain(first, Self::product, |it| {
            ["+", "-"].into_iter().find(|sign| it.sign(sign))
        })
    }

    fn product(&mut self) -> Result<Expr, Fault> {
        let first = self.power()?;
        self.chain(first, Self::power, |it| {
            ["*", "/", "%"].into_iter().find(|sign| it.sign(sign))
        })
    }

    fn power(&mut self) -> Result<Expr, Fault> {
        let first = self.signed()?;
        self.chain(first, Self::signed, |it| it.sign("^").then_some("^"))
    }

    fn signed(&mut self) -> Result<Expr, Fault> {
        let mut is_negative = false;
        loop {
            if self.sign("-") {
                is_negative = !is_negative;
            } else if !self.sign("+") {
                break;
            }
        }
        let value = self.counted()?;
        Ok(if is_negative {
            Expr::Negative(Box::new(value))
        } else {
            value
        })
    }

    /// Whatever nests passes here, so here it is counted.
    fn counted(&mut self) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.is_too_deep = true;
            return Err(Fault(format!(
                "the query is nested too deeply: at most {DEPTH_MAX} brackets in one another"
            )));
        }
        let value = self.postfix();
        self.depth -= 1;
        value
    }

    fn postfix(&mut self) -> Result<Expr, Fault> {
        let mut value = self.primary()?;
        let mut steps = Vec::new();
        loop {
            if self.sign(".") {
                steps.push(Step::Property(self.name(true)?));
            } else if self.sign("[") {
                let from = if self.is_sign("..") {
                    None
                } else {
                    Some(self.expr()?)
                };
                if self.sign("..") {
                    let to = if self.is_sign("]") {
                        None
                    } else {
                        Some(self.expr()?)
                    };
                    steps.push(Step::Slice(from, to));
                } else if let Some(index) = from {
                    steps.push(Step::Index(index));
                }
                self.expect("]")?;
            } else if self.is_sign(":") && steps.is_empty() && matches!(value, Expr::Variable(_)) {
                self.labels()?;
                value = Expr::InGraph;
            } else if steps.is_empty() {
                return Ok(value);
            } else {
                return Ok(Expr::Part(Box::new(value), steps));
            }
        }
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        match self.what() {
            Some(What::Literal(value)) => {
                self.at += 1;
                Ok(Expr::Literal(value.clone()))
            }
            Some(What::Parameter(name)) => {
                let why = format!("there is no way to give the parameter `{name}` a value");
                Err(self.said(&why))
            }
            Some(What::Sign("(")) => self.parenthesis(),
            Some(What::Sign("[")) => self.list(),
            Some(What::Sign("{")) => self.map(),
            Some(What::Word(_) | What::Quoted(_)) => self.named(),
            _ => Err(self.unexpected()),
        }
    }

    /// A pattern that is or is not there, or an expression.
    fn parenthesis(&mut self) -> Result<Expr, Fault> {
        if self.may_be_pattern() {
            // What fails is read a second time, and so is what is in it.
            self.tries += 1;
            if self.tries > TRIES_MAX {
                return Err(Fault("the query has too many patterns in it".to_owned()));
            }
            let (at, scope, depth) = (self.at, self.scope.clone(), self.depth);
            match self.pattern() {
                Ok(true) => return Ok(Expr::InGraph),
                Err(fault) if self.is_too_deep => return Err(fault),
                _ => {}
            }
            (self.at, self.scope, self.depth) = (at, scope, depth);
        }
        self.expect("(")?;
        let value = self.expr()?;
        self.expect(")")?;
        Ok(value)
    }

    /// Whether an arrow begins where this parenthesis ends.
    fn may_be_pattern(&self) -> bool {
        let is = |at: usize, signs: &[&str]| matches!(self.tokens.get(at), Some(Token { what: What::Sign(it), .. }) if signs.contains(it));
        let mut open = 0;
        for at in self.at..self.tokens.len() {
            open += usize::from(is(at, &["("]));
            if is(at, &[")"]) {
                open -= 1;
                if open == 0 {
                    return (is(at + 1, &["-"]) && is(at + 2, &["[", "-"]))
                        || (is(at + 1, &["<"]) && is(at + 2, &["-"]));
                }
            }
        }
        false
    }

    fn list(&mut self) -> Result<Expr, Fault> {
        self.expect("[")?;
        if self.sign("]") {
            return Ok(Expr::List(Vec::new()));
        }
        let at = self.at;
        if let Some(name) = self.optional_name()
            && self.word("IN")
        {
            let value = self.comprehension(name)?;
            self.expect("]")?;
            return Ok(value);
        }
        self.at = at;
        let mut items = vec![self.expr()?];
        while self.sign(",") {
            items.push(self.expr()?);
        }
        self.expect("]")?;
        Ok(Expr::List(items))
    }

    /// After `x IN`.
    fn comprehension(&mut self, name: String) -> Result<Expr, Fault> {
        let list = Box::new(self.sum()?);
        let scope = self.scope.clone();
        self.define(&name)?;
        let condition = self.condition()?.map(Box::new);
        let value = if self.sign("|") {
            Some(Box::new(self.expr()?))
        } else {
            None
        };
        self.scope = scope;
        Ok(Expr::Comprehension(name, list, condition, value))
    }

    fn named(&mut self) -> Result<Expr, Fault> {
        for (word, value) in [
            ("TRUE", Value::Bool(true)),
            ("FALSE", Value::Bool(false)),
            ("NULL", Value::Null),
        ] {
            if self.word(word) {
                return Ok(Expr::Literal(value));
            }
        }
        if self.word("CASE") {
            return self.case();
        }
        let start = self.peek().map_or(0, |it| it.start);
        let follows = |sign: &str| {
            let next = self.tokens.get(self.at + 1);
            matches!(next, Some(Token { what: What::Sign(it), .. }) if *it == sign)
        };
        if follows("{")
            && (self.is_word("EXISTS") || self.is_word("COUNT") || self.is_word("COLLECT"))
        {
            return Err(self.said("a query inside an expression is not understood"));
        }
        if follows("(") {
            return self.call(start);
        }
        let name = self.name(false)?;
        if !self.scope.contains(&name) {
            let at = place(self.text, start);
            return Err(Fault(format!("variable `{name}` is not defined {at}")));
        }
        Ok(Expr::Variable(name))
    }

    fn call(&mut self, start: usize) -> Result<Expr, Fault> {
        let name = self.name(true)?.to_lowercase();
        let at = || place(self.text, start);
        let outer = self.aggregates;
        if AGGREGATES.contains(&name.as_str()) {
            self.aggregates = match outer {
                Aggregates::Taken => Aggregates::Inside,
                Aggregates::Inside => {
                    return Err(Fault(format!("an aggregate stands in another {}", at())));
                }
                Aggregates::Refused => {
                    return Err(Fault(format!(
                        "an aggregate stands where there are no groups {}",
                        at()
                    )));
                }
            };
        }
        self.expect("(")?;
        let is_distinct = self.word("DISTINCT");
        let arguments = if name == "count" && self.sign("*") {
            None
        } else {
            Some(self.arguments(&name)?)
        };
        self.expect(")")?;
        self.aggregates = outer;
        Ok(Expr::Call(name, start, is_distinct, arguments))
    }

    fn arguments(&mut self, function: &str) -> Result<Vec<Expr>, Fault> {
        let mut arguments = Vec::new();
        if self.is_sign(")") {
            return Ok(arguments);
        }
        if ["all", "any", "none", "single"].contains(&function) {
            let name = self.name(false)?;
            self.expect_word("IN")?;
            return Ok(vec![self.comprehension(name)?]);
        }
        if ["exists", "shortestpath", "size"].contains(&function) && self.is_sign("(") {
            // What is asked about may be a pattern.
            return Ok(vec![self.parenthesis()?]);
        }
        loop {
            arguments.push(self.expr()?);
            if !self.sign(",") {
                return Ok(arguments);
            }
        }
    }

    fn case(&mut self) -> Result<Expr, Fault> {
        let subject = if self.is_word("WHEN") {
            None
        } else {
            Some(Box::new(self.expr()?))
        };
        let mut branches = Vec::new();
        while self.word("WHEN") {
            let when = self.expr()?;
            self.expect_word("THEN")?;
            branches.push((when, self.expr()?));
        }
        if branches.is_empty() {
            return Err(self.unexpected());
        }
        let otherwise = if self.word("ELSE") {
            Some(Box::new(self.expr()?))
        } else {
            None
        };
        self.expect_word("END")?;
        Ok(Expr::Case(subject, branches, otherwise))
    }
}

fn chained(first: Expr, links: Vec<Link>) -> Expr {
    if links.is_empty() {
        first
    } else {
        Expr::Chain(Box::new(first), links)
    }
}

fn few_names(n: usize) -> Result<(), Fault> {
    if n > NAMES_MAX {
        return Err(Fault(format!(
            "the query has more than {NAMES_MAX} variables or columns"
        )));
    }
    Ok(())
}
