//! Clauses and how they follow one another.

use super::Parser;
use super::token::Tok;
use crate::ast::{Clause, ClauseKind, Expr, Item, Name, Projection, Sort, Union, Yields};
use crate::error::{Error, Result};

/// How many clauses a query may have.
const CLAUSES_MAX: usize = 100;

/// Clauses that write, with the word that starts them.
const WRITING: &[&str] = &[
    "CREATE",
    "MERGE",
    "DELETE",
    "DETACH",
    "SET",
    "REMOVE",
    "FOREACH",
    "DROP",
    "LOAD",
    "INSERT",
    "ALTER",
    "GRANT",
    "DENY",
    "REVOKE",
    "START",
    "STOP",
    "TERMINATE",
];

impl Parser<'_> {
    pub(super) fn union(&mut self) -> Result<Union> {
        let mut parts = vec![self.single()?];
        let mut all = None;
        while self.is_word("UNION") {
            let at = self.here();
            self.advance();
            let keeps = self.eat_word("ALL");
            if !keeps {
                self.eat_word("DISTINCT");
            }
            if all.is_some_and(|it| it != keeps) {
                let message = "`UNION` and `UNION ALL` cannot be mixed in one query";
                return Err(self.fail("InvalidClauseComposition", at, message));
            }
            all = Some(keeps);
            parts.push(self.single()?);
            if parts.len() > CLAUSES_MAX {
                return Err(self.too_many());
            }
        }
        Ok(Union {
            parts,
            all: all.unwrap_or(true),
        })
    }

    fn too_many(&self) -> Error {
        let message = format!("the query has more than {CLAUSES_MAX} clauses");
        Error::limit("QueryTooLong", message)
    }

    fn single(&mut self) -> Result<Vec<Clause>> {
        let mut clauses: Vec<Clause> = Vec::new();
        while let Some(clause) = self.clause()? {
            if let Some(last) = clauses.last()
                && matches!(last.kind, ClauseKind::Return(_))
            {
                let message = "`RETURN` must be the last clause";
                return Err(self.fail("InvalidClauseComposition", clause.at, message));
            }
            clauses.push(clause);
            if clauses.len() > CLAUSES_MAX {
                return Err(self.too_many());
            }
        }
        let ends_well = match clauses.last().map(|it| &it.kind) {
            None => return Err(self.unexpected("a clause such as `MATCH` or `RETURN`")),
            Some(ClauseKind::Return(_)) => true,
            // A call alone gives its columns.
            Some(ClauseKind::Call { .. }) => clauses.len() == 1,
            Some(ClauseKind::Match { .. }) => self.in_subquery,
            Some(ClauseKind::With { .. } | ClauseKind::Unwind { .. }) => self.in_subquery,
        };
        if !ends_well {
            if self.peek() == &Tok::End
                || self.is_sign(";")
                || self.is_sign("}")
                || self.is_word("UNION")
            {
                let at = clauses.last().map_or(0, |it| it.at);
                let message = "the query has no `RETURN`: say which values are wanted";
                return Err(self.fail("InvalidClauseComposition", at, message));
            }
            return Err(self.unexpected("a clause such as `RETURN`"));
        }
        Ok(clauses)
    }

    fn clause(&mut self) -> Result<Option<Clause>> {
        let at = self.here();
        let Tok::Word(word) = self.peek() else {
            return Ok(None);
        };
        let word = word.to_ascii_uppercase();
        let kind = match word.as_str() {
            "MATCH" => {
                self.advance();
                self.match_clause(false)?
            }
            "OPTIONAL" if self.is_word_at(1, "MATCH") => {
                self.next += 2;
                self.match_clause(true)?
            }
            "UNWIND" => {
                self.advance();
                let list = self.expression()?;
                self.expect_word("AS")?;
                let name = self.name("the name of a variable")?;
                ClauseKind::Unwind { list, name }
            }
            "WITH" => {
                self.advance();
                let projection = self.projection()?;
                let filter = self.filter()?;
                ClauseKind::With { projection, filter }
            }
            "RETURN" => {
                self.advance();
                ClauseKind::Return(self.projection()?)
            }
            "CALL" => {
                self.advance();
                self.call_clause()?
            }
            _ if WRITING.contains(&word.as_str()) => {
                let detail = if self.in_subquery {
                    "InvalidClauseComposition"
                } else {
                    "UnexpectedSyntax"
                };
                let name = if word == "DETACH" {
                    "DETACH DELETE"
                } else {
                    &word
                };
                let message = format!("`{name}` is refused: queries only read");
                return Err(self.fail(detail, at, message));
            }
            _ => return Ok(None),
        };
        Ok(Some(Clause { at, kind }))
    }

    fn match_clause(&mut self, optional: bool) -> Result<ClauseKind> {
        let mut parts = vec![self.pattern_part()?];
        while self.eat_sign(",") {
            parts.push(self.pattern_part()?);
        }
        let filter = self.filter()?;
        Ok(ClauseKind::Match {
            optional,
            parts,
            filter,
        })
    }

    pub(super) fn filter(&mut self) -> Result<Option<Expr>> {
        if self.eat_word("WHERE") {
            return self.expression().map(Some);
        }
        Ok(None)
    }

    fn projection(&mut self) -> Result<Projection> {
        let distinct = self.eat_word("DISTINCT");
        let star = self.eat_sign("*");
        let mut items = Vec::new();
        if !star || self.eat_sign(",") {
            items.push(self.item()?);
            while self.eat_sign(",") {
                items.push(self.item()?);
            }
        }
        let mut order = Vec::new();
        if self.is_word("ORDER") {
            self.advance();
            self.expect_word("BY")?;
            order.push(self.sort()?);
            while self.eat_sign(",") {
                order.push(self.sort()?);
            }
        }
        let skip = if self.eat_word("SKIP") || self.eat_word("OFFSET") {
            Some(self.expression()?)
        } else {
            None
        };
        let limit = if self.eat_word("LIMIT") {
            Some(self.expression()?)
        } else {
            None
        };
        Ok(Projection {
            distinct,
            star,
            items,
            order,
            skip,
            limit,
        })
    }

    fn item(&mut self) -> Result<Item> {
        let from = self.here();
        let expr = self.expression()?;
        let text = self.written(from, self.end_of_last()).to_owned();
        let alias = if self.eat_word("AS") {
            Some(self.name("a name for the column")?)
        } else {
            None
        };
        Ok(Item { expr, alias, text })
    }

    fn sort(&mut self) -> Result<Sort> {
        let expr = self.expression()?;
        let descending = self.eat_word("DESC") || self.eat_word("DESCENDING");
        if !descending {
            let _ = self.eat_word("ASC") || self.eat_word("ASCENDING");
        }
        Ok(Sort { expr, descending })
    }

    fn call_clause(&mut self) -> Result<ClauseKind> {
        let mut procedure = self.name("the name of a procedure")?.text;
        while self.eat_sign(".") {
            procedure.push('.');
            procedure.push_str(&self.name("the rest of the procedure's name")?.text);
        }
        let arguments = if self.eat_sign("(") {
            let mut arguments = Vec::new();
            if !self.is_sign(")") {
                arguments.push(self.expression()?);
                while self.eat_sign(",") {
                    arguments.push(self.expression()?);
                }
            }
            self.expect_sign(")")?;
            Some(arguments)
        } else {
            None
        };
        let mut yields = None;
        let mut filter = None;
        if self.eat_word("YIELD") {
            yields = Some(self.yields()?);
            filter = self.filter()?;
        }
        Ok(ClauseKind::Call {
            procedure,
            arguments,
            yields,
            filter,
        })
    }

    fn yields(&mut self) -> Result<Yields> {
        if self.eat_sign("*") {
            return Ok(Yields::Star);
        }
        let mut columns: Vec<(Name, Option<Name>)> = Vec::new();
        loop {
            let column = self.name("a column of the procedure")?;
            let alias = if self.eat_word("AS") {
                Some(self.name("a name for the column")?)
            } else {
                None
            };
            columns.push((column, alias));
            if !self.eat_sign(",") {
                return Ok(Yields::Columns(columns));
            }
        }
    }
}
