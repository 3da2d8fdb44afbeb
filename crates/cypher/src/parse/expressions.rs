//! Expressions, one function for each level of precedence.

use super::token::Tok;
use super::{DEPTH_MAX, Parser};
use crate::ast::{Arith, Compare, Expr, ExprKind, Junction, Projected, Quantifier, TextTest};
use crate::error::{Error, Position, Result};
use crate::value::Value;

/// How many links chains such as `a.b.c[0]` may have in one query, beyond two each.
const LINKS_MAX: usize = 1000;

fn expr(at: usize, kind: ExprKind) -> Expr {
    Expr { at, kind }
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nested(Self::or)
    }

    fn junction(
        &mut self,
        word: &str,
        kind: Junction,
        operand: fn(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let at = self.here();
        let first = operand(self)?;
        if !self.is_word(word) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.eat_word(word) {
            operands.push(operand(self)?);
        }
        Ok(expr(at, ExprKind::Junction(kind, operands)))
    }

    fn or(&mut self) -> Result<Expr> {
        self.junction("OR", Junction::Or, Self::xor)
    }

    fn xor(&mut self) -> Result<Expr> {
        self.junction("XOR", Junction::Xor, Self::and)
    }

    fn and(&mut self) -> Result<Expr> {
        self.junction("AND", Junction::And, Self::not)
    }

    fn not(&mut self) -> Result<Expr> {
        let at = self.here();
        let mut n_nots = 0usize;
        while self.eat_word("NOT") {
            n_nots += 1;
        }
        let mut operand = self.comparison()?;
        // An even number still asks for a boolean.
        let n_nots = if n_nots > 2 { 2 - n_nots % 2 } else { n_nots };
        for _ in 0..n_nots {
            operand = expr(at, ExprKind::Not(Box::new(operand)));
        }
        Ok(operand)
    }

    fn comparison(&mut self) -> Result<Expr> {
        let at = self.here();
        let first = self.predicate()?;
        let mut rest = Vec::new();
        loop {
            let sign = match self.peek() {
                Tok::Sign("=") => Compare::Equal,
                Tok::Sign("<>") => Compare::NotEqual,
                Tok::Sign("<") => Compare::Less,
                Tok::Sign("<=") => Compare::LessEqual,
                Tok::Sign(">") => Compare::Greater,
                Tok::Sign(">=") => Compare::GreaterEqual,
                _ => break,
            };
            self.advance();
            rest.push((sign, self.predicate()?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(expr(at, ExprKind::Compare(Box::new(first), rest)))
    }

    fn predicate(&mut self) -> Result<Expr> {
        let at = self.here();
        let mut left = self.additive()?;
        for n_links in 0.. {
            self.count_link(n_links)?;
            let test = if self.eat_sign("=~") {
                TextTest::Matches
            } else if self.is_word("STARTS") && self.is_word_at(1, "WITH") {
                self.next += 2;
                TextTest::StartsWith
            } else if self.is_word("ENDS") && self.is_word_at(1, "WITH") {
                self.next += 2;
                TextTest::EndsWith
            } else if self.eat_word("CONTAINS") {
                TextTest::Contains
            } else if self.eat_word("IN") {
                let right = self.additive()?;
                left = expr(at, ExprKind::In(Box::new(left), Box::new(right)));
                continue;
            } else if self.is_word("IS") && self.is_word_at(1, "NULL") {
                self.next += 2;
                left = expr(at, ExprKind::IsNull(Box::new(left), false));
                continue;
            } else if self.is_word("IS") && self.is_word_at(1, "NOT") && self.is_word_at(2, "NULL")
            {
                self.next += 3;
                left = expr(at, ExprKind::IsNull(Box::new(left), true));
                continue;
            } else {
                break;
            };
            let right = self.additive()?;
            left = expr(
                at,
                ExprKind::TextTest(test, Box::new(left), Box::new(right)),
            );
        }
        Ok(left)
    }

    /// Chains make deep trees without nesting, so they are counted.
    fn count_link(&mut self, n_links: usize) -> Result<()> {
        if n_links <= 2 {
            return Ok(());
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            let at = Position::of(self.text, self.here());
            let message = format!("the query has chains of more than {LINKS_MAX} links");
            return Err(Error::limit("QueryTooDeep", message).at(at));
        }
        Ok(())
    }

    fn arithmetic(
        &mut self,
        signs: &[(&'static str, Arith)],
        operand: fn(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let at = self.here();
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Some((_, sign)) = signs.iter().find(|it| self.is_sign(it.0)) {
            self.advance();
            rest.push((*sign, operand(self)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(expr(at, ExprKind::Arith(Box::new(first), rest)))
    }

    fn additive(&mut self) -> Result<Expr> {
        let signs = [("+", Arith::Add), ("-", Arith::Subtract)];
        self.arithmetic(&signs, Self::multiplicative)
    }

    fn multiplicative(&mut self) -> Result<Expr> {
        let signs = [
            ("*", Arith::Multiply),
            ("/", Arith::Divide),
            ("%", Arith::Modulo),
        ];
        self.arithmetic(&signs, Self::power)
    }

    fn power(&mut self) -> Result<Expr> {
        self.arithmetic(&[("^", Arith::Power)], Self::unary)
    }

    fn unary(&mut self) -> Result<Expr> {
        let at = self.here();
        let mut negative = false;
        let mut signed = false;
        loop {
            if self.eat_sign("-") {
                negative = !negative;
            } else if !self.eat_sign("+") {
                break;
            }
            signed = true;
        }
        if negative {
            // The smallest integer is only a number with its sign.
            if let Tok::Int(digits, radix) = self.peek().clone() {
                let value = self.integer(&digits, radix, true)?;
                self.advance();
                let literal = expr(at, ExprKind::Literal(Value::Int(value)));
                return self.postfix(literal);
            }
        }
        let atom = self.atom()?;
        let operand = self.postfix(atom)?;
        if negative {
            return Ok(expr(at, ExprKind::Negate(Box::new(operand))));
        }
        if signed {
            let zero = expr(at, ExprKind::Negate(Box::new(operand)));
            return Ok(expr(at, ExprKind::Negate(Box::new(zero))));
        }
        Ok(operand)
    }

    fn integer(&self, digits: &str, radix: u32, negative: bool) -> Result<i64> {
        let sign = if negative { "-" } else { "" };
        i64::from_str_radix(&format!("{sign}{digits}"), radix).map_err(|_| {
            let message = format!("the number `{sign}{digits}` does not fit into 64 bits");
            self.fail("IntegerOverflow", self.here(), message)
        })
    }

    fn postfix(&mut self, atom: Expr) -> Result<Expr> {
        let at = atom.at;
        let mut left = atom;
        for n_links in 0.. {
            self.count_link(n_links)?;
            if n_links > DEPTH_MAX {
                let at = Position::of(self.text, self.here());
                let message = format!("a chain of properties has more than {DEPTH_MAX} links");
                return Err(Error::limit("QueryTooDeep", message).at(at));
            }
            let kind = if self.eat_sign(".") {
                let name = self.name("the name of a property")?;
                ExprKind::Property(Box::new(left), name.text)
            } else if self.is_sign(":") {
                let labels = self.labels()?;
                ExprKind::HasLabels(Box::new(left), labels)
            } else if self.eat_sign("[") {
                self.index(left)?
            } else {
                break;
            };
            left = expr(at, kind);
        }
        Ok(left)
    }

    fn index(&mut self, left: Expr) -> Result<ExprKind> {
        let left = Box::new(left);
        let first = if self.is_sign("..") {
            None
        } else {
            Some(Box::new(self.expression()?))
        };
        let kind = if self.eat_sign("..") {
            let last = if self.is_sign("]") {
                None
            } else {
                Some(Box::new(self.expression()?))
            };
            ExprKind::Slice(left, first, last)
        } else {
            match first {
                Some(first) => ExprKind::Index(left, first),
                None => return Err(self.unexpected("an index")),
            }
        };
        self.expect_sign("]")?;
        Ok(kind)
    }

    fn atom(&mut self) -> Result<Expr> {
        let at = self.here();
        let kind = match self.peek().clone() {
            Tok::Int(digits, radix) => {
                let value = self.integer(&digits, radix, false)?;
                self.advance();
                ExprKind::Literal(Value::Int(value))
            }
            Tok::Float(value) => {
                self.advance();
                ExprKind::Literal(Value::Float(value))
            }
            it @ Tok::NoNumber(_) => {
                let message = format!("{} is not a number", it.describe());
                return Err(self.fail("InvalidNumberLiteral", at, message));
            }
            Tok::Str(text) => {
                self.advance();
                ExprKind::Literal(Value::str(text))
            }
            Tok::Param(name) => {
                self.advance();
                ExprKind::Param(name)
            }
            Tok::Sign("(") if self.looks_like_path(0) => {
                ExprKind::Pattern(Box::new(self.path_pattern()?))
            }
            Tok::Sign("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect_sign(")")?;
                return Ok(inner);
            }
            Tok::Sign("[") => return self.bracket(at),
            Tok::Sign("{") => return self.map_literal(),
            Tok::Quoted(name) => {
                self.advance();
                return self.variable(at, name);
            }
            Tok::Word(word) => return self.word_atom(at, &word),
            _ => return Err(self.unexpected("an expression")),
        };
        Ok(expr(at, kind))
    }

    fn variable(&mut self, at: usize, name: String) -> Result<Expr> {
        let variable = expr(at, ExprKind::Var(name));
        if !self.is_sign("{") {
            return Ok(variable);
        }
        self.advance();
        let mut entries = Vec::new();
        if !self.is_sign("}") {
            entries.push(self.projected()?);
            while self.eat_sign(",") {
                entries.push(self.projected()?);
            }
        }
        self.expect_sign("}")?;
        Ok(expr(
            at,
            ExprKind::MapProjection(Box::new(variable), entries),
        ))
    }

    fn projected(&mut self) -> Result<Projected> {
        if self.eat_sign(".") {
            if self.eat_sign("*") {
                return Ok(Projected::Everything);
            }
            return Ok(Projected::Property(
                self.name("the name of a property")?.text,
            ));
        }
        let name = self.name("`.property`, `.*`, `key: value` or a variable")?;
        let value = if self.eat_sign(":") {
            self.expression()?
        } else {
            expr(name.at, ExprKind::Var(name.text.clone()))
        };
        Ok(Projected::Entry(name.text, value))
    }

    fn word_atom(&mut self, at: usize, word: &str) -> Result<Expr> {
        let upper = word.to_ascii_uppercase();
        let calls = self.is_sign_at(1, "(");
        match upper.as_str() {
            "TRUE" | "FALSE" if !calls => {
                self.advance();
                return Ok(expr(at, ExprKind::Literal(Value::Bool(upper == "TRUE"))));
            }
            "NULL" if !calls => {
                self.advance();
                return Ok(expr(at, ExprKind::Literal(Value::Null)));
            }
            "CASE" => return self.case(at),
            "EXISTS" | "COUNT" if self.is_sign_at(1, "{") => {
                self.next += 2;
                return self.subquery(at, upper == "COUNT");
            }
            "COUNT" if calls && self.is_sign_at(2, "*") => {
                self.next += 3;
                self.expect_sign(")")?;
                return Ok(expr(at, ExprKind::CountStar));
            }
            "ALL" | "ANY" | "NONE" | "SINGLE" if calls && self.is_word_at(3, "IN") => {
                return self.quantifier(at, &upper);
            }
            "REDUCE" if calls && self.is_sign_at(3, "=") => return self.reduce(at),
            _ => {}
        }
        if let Some(path) = self.shortest_value()? {
            return Ok(path);
        }
        let mut n_parts = 1;
        while self.is_sign_at(n_parts, ".") && matches!(self.peek_at(n_parts + 1), Tok::Word(_)) {
            n_parts += 2;
        }
        if self.is_sign_at(n_parts, "(") {
            return self.call(at);
        }
        if RESERVED.contains(&upper.as_str()) {
            return Err(self.unexpected("an expression"));
        }
        self.advance();
        self.variable(at, word.to_owned())
    }

    fn call(&mut self, at: usize) -> Result<Expr> {
        let mut name = self.name("the name of a function")?.text;
        while self.eat_sign(".") {
            name.push('.');
            name.push_str(&self.name("the rest of the function's name")?.text);
        }
        self.expect_sign("(")?;
        let distinct = self.eat_word("DISTINCT");
        let mut arguments = Vec::new();
        if !self.is_sign(")") {
            arguments.push(self.expression()?);
            while self.eat_sign(",") {
                arguments.push(self.expression()?);
            }
        }
        self.expect_sign(")")?;
        // Names of functions have no case.
        let name = name.to_lowercase();
        Ok(expr(
            at,
            ExprKind::Call {
                name,
                distinct,
                arguments,
            },
        ))
    }

    fn case(&mut self, at: usize) -> Result<Expr> {
        self.advance();
        let subject = if self.is_word("WHEN") {
            None
        } else {
            Some(Box::new(self.expression()?))
        };
        let mut arms = Vec::new();
        while self.eat_word("WHEN") {
            let when = self.expression()?;
            self.expect_word("THEN")?;
            arms.push((when, self.expression()?));
        }
        if arms.is_empty() {
            return Err(self.unexpected("`WHEN`"));
        }
        let otherwise = if self.eat_word("ELSE") {
            Some(Box::new(self.expression()?))
        } else {
            None
        };
        self.expect_word("END")?;
        Ok(expr(
            at,
            ExprKind::Case {
                subject,
                arms,
                otherwise,
            },
        ))
    }

    fn quantifier(&mut self, at: usize, word: &str) -> Result<Expr> {
        let kind = match word {
            "ALL" => Quantifier::All,
            "ANY" => Quantifier::Any,
            "NONE" => Quantifier::None,
            _ => Quantifier::Single,
        };
        self.next += 2;
        let name = self.name("the name of a variable")?.text;
        self.expect_word("IN")?;
        let list = Box::new(self.expression()?);
        let Some(filter) = self.filter()? else {
            return Err(self.unexpected("`WHERE`"));
        };
        self.expect_sign(")")?;
        Ok(expr(
            at,
            ExprKind::Quantifier {
                kind,
                name,
                list,
                filter: Box::new(filter),
            },
        ))
    }

    fn reduce(&mut self, at: usize) -> Result<Expr> {
        self.next += 2;
        let sum = self.name("the name of a variable")?.text;
        self.expect_sign("=")?;
        let start = Box::new(self.expression()?);
        self.expect_sign(",")?;
        let name = self.name("the name of a variable")?.text;
        self.expect_word("IN")?;
        let list = Box::new(self.expression()?);
        self.expect_sign("|")?;
        let step = Box::new(self.expression()?);
        self.expect_sign(")")?;
        Ok(expr(
            at,
            ExprKind::Reduce {
                sum,
                start,
                name,
                list,
                step,
            },
        ))
    }

    /// A list, a list comprehension or a pattern comprehension.
    fn bracket(&mut self, at: usize) -> Result<Expr> {
        self.advance();
        let is_name = matches!(self.peek(), Tok::Word(_) | Tok::Quoted(_));
        if is_name && self.is_word_at(1, "IN") {
            return self.list_comprehension(at);
        }
        let named = is_name && self.is_sign_at(1, "=") && self.looks_like_path(2);
        if named || self.looks_like_path(0) {
            return self.pattern_comprehension(at);
        }
        let mut items = Vec::new();
        if !self.is_sign("]") {
            items.push(self.expression()?);
            while self.eat_sign(",") {
                items.push(self.expression()?);
            }
        }
        self.expect_sign("]")?;
        Ok(expr(at, ExprKind::List(items)))
    }

    fn list_comprehension(&mut self, at: usize) -> Result<Expr> {
        let name = self.name("the name of a variable")?.text;
        self.expect_word("IN")?;
        let list = Box::new(self.expression()?);
        let filter = self.filter()?.map(Box::new);
        let map = if self.eat_sign("|") {
            Some(Box::new(self.expression()?))
        } else {
            None
        };
        self.expect_sign("]")?;
        Ok(expr(
            at,
            ExprKind::ListComprehension {
                name,
                list,
                filter,
                map,
            },
        ))
    }

    fn pattern_comprehension(&mut self, at: usize) -> Result<Expr> {
        let part = Box::new(self.pattern_part()?);
        let filter = self.filter()?.map(Box::new);
        self.expect_sign("|")?;
        let map = Box::new(self.expression()?);
        self.expect_sign("]")?;
        Ok(expr(
            at,
            ExprKind::PatternComprehension { part, filter, map },
        ))
    }

    pub(super) fn map_literal(&mut self) -> Result<Expr> {
        let at = self.here();
        self.expect_sign("{")?;
        let mut entries = Vec::new();
        if !self.is_sign("}") {
            loop {
                let key = self.name("the name of a key")?;
                self.expect_sign(":")?;
                entries.push((key.text, self.expression()?));
                if !self.eat_sign(",") {
                    break;
                }
            }
        }
        self.expect_sign("}")?;
        Ok(expr(at, ExprKind::Map(entries)))
    }

    fn subquery(&mut self, at: usize, counts: bool) -> Result<Expr> {
        let outer = std::mem::replace(&mut self.in_subquery, true);
        let body = self.nested(|it| {
            let starts_with_clause = ["MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL"];
            let is_pattern = it.is_sign("(")
                || it.is_sign_at(1, "=") && !starts_with_clause.iter().any(|word| it.is_word(word));
            if !is_pattern {
                return it.union();
            }
            let at = it.here();
            let mut parts = vec![it.pattern_part()?];
            while it.eat_sign(",") {
                parts.push(it.pattern_part()?);
            }
            let filter = it.filter()?;
            let kind = crate::ast::ClauseKind::Match {
                optional: false,
                parts,
                filter,
            };
            Ok(crate::ast::Union {
                parts: vec![vec![crate::ast::Clause { at, kind }]],
                all: true,
            })
        })?;
        self.in_subquery = outer;
        self.expect_sign("}")?;
        Ok(expr(
            at,
            ExprKind::Subquery {
                counts,
                body: Box::new(body),
            },
        ))
    }

    /// Whether a path starts here: a node in parentheses, then an arrow. Nothing is read twice for it.
    fn looks_like_path(&self, ahead: usize) -> bool {
        let mut ahead = ahead;
        if !self.is_sign_at(ahead, "(") {
            return false;
        }
        ahead += 1;
        if matches!(self.peek_at(ahead), Tok::Word(_) | Tok::Quoted(_)) {
            ahead += 1;
        }
        while self.is_sign_at(ahead, ":")
            && matches!(self.peek_at(ahead + 1), Tok::Word(_) | Tok::Quoted(_))
        {
            ahead += 2;
        }
        if self.is_sign_at(ahead, "{") {
            let mut open = 0usize;
            loop {
                match self.peek_at(ahead) {
                    Tok::Sign("{") => open += 1,
                    Tok::Sign("}") => open -= 1,
                    Tok::End => return false,
                    _ => {}
                }
                ahead += 1;
                if open == 0 {
                    break;
                }
            }
        }
        if !self.is_sign_at(ahead, ")") {
            return false;
        }
        let arrow = ahead + 1 + usize::from(self.is_sign_at(ahead + 1, "<"));
        let after = arrow + 1;
        self.is_sign_at(arrow, "-") && (self.is_sign_at(after, "[") || self.is_sign_at(after, "-"))
    }
}

/// Words that cannot be variables without backticks, because a clause or an operator starts with them.
const RESERVED: &[&str] = &[
    "AND",
    "AS",
    "ASC",
    "ASCENDING",
    "BY",
    "CALL",
    "CASE",
    "CONTAINS",
    "CREATE",
    "DELETE",
    "DESC",
    "DESCENDING",
    "DETACH",
    "DISTINCT",
    "ELSE",
    "END",
    "ENDS",
    "EXISTS",
    "IN",
    "IS",
    "LIMIT",
    "MATCH",
    "MERGE",
    "NOT",
    "ON",
    "OPTIONAL",
    "OR",
    "ORDER",
    "REMOVE",
    "RETURN",
    "SET",
    "SKIP",
    "STARTS",
    "THEN",
    "UNION",
    "UNWIND",
    "WHEN",
    "WHERE",
    "WITH",
    "XOR",
    "YIELD",
];
