//! Patterns: nodes in parentheses, relationships in arrows.

use super::Parser;
use super::token::Tok;
use crate::ast::{Expr, ExprKind, NodePattern, PathKind, PatternPart, RelPattern};
use crate::element::Direction;
use crate::error::Result;

/// How many nodes one path pattern may have.
const STEPS_MAX: usize = 100;

impl Parser<'_> {
    pub(super) fn pattern_part(&mut self) -> Result<PatternPart> {
        let at = self.here();
        let name = if self.is_sign_at(1, "=") {
            let name = self.name("the name of a path")?;
            self.advance();
            Some(name)
        } else {
            None
        };
        let mut part = match self.shortest_kind() {
            Some(kind) => self.shortest(kind)?,
            None => self.path_pattern()?,
        };
        part.at = at;
        part.name = name;
        Ok(part)
    }

    fn shortest_kind(&self) -> Option<PathKind> {
        if !self.is_sign_at(1, "(") {
            return None;
        }
        if self.is_word("shortestPath") {
            Some(PathKind::Shortest)
        } else if self.is_word("allShortestPaths") {
            Some(PathKind::AllShortest)
        } else {
            None
        }
    }

    fn shortest(&mut self, kind: PathKind) -> Result<PatternPart> {
        let at = self.here();
        self.next += 2;
        let mut part = self.path_pattern()?;
        self.expect_sign(")")?;
        if part.steps.len() != 1 {
            let message =
                "a shortest path has one relationship between two nodes, such as `(a)-[*]-(b)`";
            return Err(self.fail("InvalidRelationshipPattern", at, message));
        }
        part.kind = kind;
        part.at = at;
        Ok(part)
    }

    /// A path pattern as a value, if it is one: `shortestPath(…)`.
    pub(super) fn shortest_value(&mut self) -> Result<Option<Expr>> {
        let Some(kind) = self.shortest_kind() else {
            return Ok(None);
        };
        let at = self.here();
        let part = self.shortest(kind)?;
        Ok(Some(Expr {
            at,
            kind: ExprKind::Pattern(Box::new(part)),
        }))
    }

    pub(super) fn path_pattern(&mut self) -> Result<PatternPart> {
        let at = self.here();
        // Parentheses around a whole path are allowed.
        if self.is_sign("(") && self.is_sign_at(1, "(") {
            return self.nested(|it| {
                it.advance();
                let part = it.path_pattern()?;
                it.expect_sign(")")?;
                Ok(part)
            });
        }
        let start = self.node_pattern()?;
        let mut steps = Vec::new();
        while self.is_sign("-") || (self.is_sign("<") && self.is_sign_at(1, "-")) {
            let rel = self.rel_pattern()?;
            let node = self.node_pattern()?;
            steps.push((rel, node));
            if steps.len() > STEPS_MAX {
                let message = format!("a path has more than {STEPS_MAX} relationships");
                return Err(self.fail("UnexpectedSyntax", at, message));
            }
        }
        Ok(PatternPart {
            at,
            name: None,
            kind: PathKind::Plain,
            start,
            steps,
        })
    }

    fn node_pattern(&mut self) -> Result<NodePattern> {
        let at = self.here();
        if !self.eat_sign("(") {
            return Err(self.unexpected("a node in parentheses"));
        }
        let name = match self.peek() {
            Tok::Word(_) | Tok::Quoted(_) => Some(self.name("the name of a node")?),
            _ => None,
        };
        let labels = self.labels()?;
        let properties = self.properties()?;
        if !self.eat_sign(")") {
            return Err(self.unexpected("`)` at the end of the node"));
        }
        Ok(NodePattern {
            at,
            name,
            labels,
            properties,
        })
    }

    pub(super) fn labels(&mut self) -> Result<Vec<String>> {
        let mut labels = Vec::new();
        while self.eat_sign(":") {
            labels.push(self.name("a label")?.text);
        }
        Ok(labels)
    }

    fn properties(&mut self) -> Result<Option<Expr>> {
        match self.peek() {
            Tok::Sign("{") => self.map_literal().map(Some),
            Tok::Param(name) => {
                let message = format!(
                    "`${name}` stands for all properties, which cannot be matched: write `{{key: $value}}`"
                );
                Err(self.fail("InvalidParameterUse", self.here(), message))
            }
            _ => Ok(None),
        }
    }

    fn rel_pattern(&mut self) -> Result<RelPattern> {
        let from_right = self.eat_sign("<");
        self.expect_sign("-")?;
        let mut rel = RelPattern {
            name: None,
            types: Vec::new(),
            properties: None,
            direction: Direction::Both,
            range: None,
        };
        if self.eat_sign("[") {
            self.rel_detail(&mut rel)?;
        }
        self.expect_sign("-")?;
        let to_right = self.eat_sign(">");
        rel.direction = match (from_right, to_right) {
            (true, false) => Direction::In,
            (false, true) => Direction::Out,
            _ => Direction::Both,
        };
        Ok(rel)
    }

    fn rel_detail(&mut self, rel: &mut RelPattern) -> Result<()> {
        if let Tok::Word(_) | Tok::Quoted(_) = self.peek() {
            rel.name = Some(self.name("the name of a relationship")?);
        }
        if self.eat_sign(":") {
            rel.types.push(self.name("a relationship type")?.text);
            while self.eat_sign("|") {
                self.eat_sign(":");
                rel.types.push(self.name("a relationship type")?.text);
            }
        }
        if self.eat_sign("*") {
            rel.range = Some(self.range()?);
        } else if self.is_sign("..") {
            let message = "found `..`, expected `*` before the range of a variable length";
            return Err(self.fail("InvalidRelationshipPattern", self.here(), message));
        }
        rel.properties = self.properties()?;
        if !self.eat_sign("]") {
            let detail = if rel.range.is_some() {
                "InvalidRelationshipPattern"
            } else {
                "UnexpectedSyntax"
            };
            let found = self.peek().describe();
            let message = format!("found {found}, expected `]` at the end of the relationship");
            return Err(self.fail(detail, self.here(), message));
        }
        Ok(())
    }

    fn range(&mut self) -> Result<(Option<u64>, Option<u64>)> {
        let least = self.bound()?;
        if self.eat_sign("..") {
            let most = self.bound()?;
            return Ok((least, most));
        }
        Ok((least, least))
    }

    fn bound(&mut self) -> Result<Option<u64>> {
        let Tok::Int(digits, radix) = self.peek().clone() else {
            return Ok(None);
        };
        let at = self.here();
        self.advance();
        let bound = u64::from_str_radix(&digits, radix).map_err(|_| {
            self.fail(
                "IntegerOverflow",
                at,
                format!("the length `{digits}` is too large"),
            )
        })?;
        Ok(Some(bound))
    }
}
