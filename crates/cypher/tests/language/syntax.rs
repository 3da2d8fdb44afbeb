//! What is refused, where, and why.

use crate::{ask, error, people};
use kenning_cypher::{Class, MemoryGraph, Phase};

#[track_caller]
fn check(text: &str, class: Class, detail: &str, line: u32, column: u32, words: &str) {
    let error = error(text);
    assert_eq!(
        (error.class(), error.detail()),
        (class, detail),
        "{text}: {error}"
    );
    assert_eq!(error.phase(), Phase::Compile, "{text}: {error}");
    let at = error.position().map(|it| (it.line, it.column));
    assert_eq!(at, Some((line, column)), "{text}: {error}");
    assert!(error.message().contains(words), "{text}: {error}");
}

#[test]
fn an_error_names_the_place_what_was_found_and_what_was_expected() {
    let check =
        |text, column, words| check(text, Class::Syntax, "UnexpectedSyntax", 1, column, words);
    check(
        "RETURN",
        7,
        "found the end of the query, expected an expression",
    );
    check(
        "RETURN 1 2",
        10,
        "found the number `2`, expected the end of the query",
    );
    check(
        "MATCH (n RETURN n",
        10,
        "found `RETURN`, expected `)` at the end of the node",
    );
    check("MATCH (n)-[:A RETURN n", 15, "expected `]`");
    check("RETURN 'abc", 8, "the text has no end");
    check("RETURN 1 /* x", 10, "the comment has no end");
    check(
        "MATCH (n) WHERE n.x = RETURN n",
        23,
        "found `RETURN`, expected an expression",
    );
    check("RETURN $", 8, "name of a parameter");
    check("HELLO", 1, "found `HELLO`, expected a clause");
}

#[test]
fn lines_and_columns_count_characters() {
    let text = "MATCH (n)\nWHERE n.ä = 'ö' AND missing\nRETURN n";
    check(
        text,
        Class::Syntax,
        "UndefinedVariable",
        2,
        21,
        "`missing` is not defined",
    );
}

#[test]
fn clauses_that_write_are_refused_by_name() {
    for (text, clause) in [
        ("CREATE (n)", "`CREATE`"),
        ("MATCH (n) DELETE n", "`DELETE`"),
        ("MATCH (n) DETACH DELETE n", "`DETACH DELETE`"),
        ("MATCH (n) SET n.x = 1", "`SET`"),
        ("MATCH (n) REMOVE n.x", "`REMOVE`"),
        ("MERGE (n:A) RETURN n", "`MERGE`"),
        ("FOREACH (x IN [1] | CREATE (n))", "`FOREACH`"),
        ("LOAD CSV FROM 'x' AS line RETURN line", "`LOAD`"),
        ("DROP INDEX x", "`DROP`"),
        ("EXPLAIN CREATE (n)", "`CREATE`"),
        (
            "MATCH (n) RETURN n UNION MERGE (m) RETURN m AS n",
            "`MERGE`",
        ),
        (
            "MATCH (n) WHERE EXISTS { MATCH (n) SET n.x = 1 RETURN n } RETURN n",
            "`SET`",
        ),
    ] {
        let error = error(text);
        assert!(error.message().starts_with(clause), "{text}: {error}");
        assert!(
            error.message().contains("queries only read"),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_name_of_a_clause_is_a_property_a_label_or_a_text_without_harm() {
    let graph = people();
    for text in [
        "MATCH (n:Person) RETURN n.delete AS set",
        "MATCH (n) WHERE n.name = 'CREATE (x)' RETURN n",
        "MATCH (`create`:Person) RETURN `create`.name",
        "MATCH (n:Create) RETURN n // DELETE n",
        "MATCH (n)-[:MERGE]->(m) RETURN n /* SET n.x = 1 */",
    ] {
        assert!(ask(&graph, text).is_ok(), "{text}");
    }
}

#[test]
fn semantic_errors_have_the_classes_of_the_conformance_kit() {
    let check = |text: &str, class: Class, detail: &str| {
        let error = error(text);
        assert_eq!(
            (error.class(), error.detail()),
            (class, detail),
            "{text}: {error}"
        );
        assert_eq!(error.phase(), Phase::Compile, "{text}: {error}");
    };
    for (text, detail) in [
        ("RETURN x", "UndefinedVariable"),
        ("MATCH (a)-[a]->() RETURN a", "VariableTypeConflict"),
        (
            "MATCH (a) MATCH ()-[a]->() RETURN a",
            "VariableTypeConflict",
        ),
        (
            "MATCH (a) MATCH a = ()-->() RETURN a",
            "VariableAlreadyBound",
        ),
        (
            "UNWIND [1] AS a UNWIND [2] AS a RETURN a",
            "VariableAlreadyBound",
        ),
        (
            "MATCH ()-[r]->()-[r]->() RETURN r",
            "RelationshipUniquenessViolation",
        ),
        (
            "MATCH (a) WHERE count(a) > 1 RETURN a",
            "InvalidAggregation",
        ),
        ("RETURN [x IN [1] | count(x)]", "InvalidAggregation"),
        ("RETURN count(count(*))", "NestedAggregation"),
        (
            "MATCH (a) RETURN a.x + count(*)",
            "AmbiguousAggregationExpression",
        ),
        ("RETURN 1 AS a, 2 AS a", "ColumnNameConflict"),
        ("MATCH (a) WITH a.x RETURN 1", "NoExpressionAlias"),
        ("RETURN *", "NoVariablesInScope"),
        ("RETURN foo(1)", "UnknownFunction"),
        ("RETURN size()", "InvalidNumberOfArguments"),
        ("RETURN 1 AND true", "InvalidArgumentType"),
        ("MATCH (n) RETURN type(n)", "InvalidArgumentType"),
        ("MATCH (n) RETURN length(n)", "InvalidArgumentType"),
        ("RETURN properties(1)", "InvalidArgumentType"),
        ("RETURN 1 IN 'x'", "InvalidArgumentType"),
        ("MATCH (n) RETURN n SKIP n.x", "NonConstantExpression"),
        ("RETURN 1 LIMIT -1", "NegativeIntegerArgument"),
        ("RETURN 1 LIMIT 1.5", "InvalidArgumentType"),
        (
            "RETURN 1 AS a UNION RETURN 2 AS b",
            "DifferentColumnsInUnion",
        ),
        (
            "RETURN 1 AS a UNION RETURN 2 AS a UNION ALL RETURN 3 AS a",
            "InvalidClauseComposition",
        ),
        ("MATCH (n)", "InvalidClauseComposition"),
        ("RETURN 1 MATCH (n) RETURN n", "InvalidClauseComposition"),
        ("MATCH (n $map) RETURN n", "InvalidParameterUse"),
        ("RETURN 9223372036854775808", "IntegerOverflow"),
        ("RETURN 1e999", "FloatingPointOverflow"),
        ("RETURN 12x", "InvalidNumberLiteral"),
        ("RETURN -0x", "InvalidNumberLiteral"),
        ("RETURN {1a: 1}", "UnexpectedSyntax"),
        ("RETURN {, }", "UnexpectedSyntax"),
        ("RETURN {a: }", "UnexpectedSyntax"),
        ("RETURN {a.b: 1}", "UnexpectedSyntax"),
        ("MATCH ()-[r:T $map]->() RETURN r", "InvalidParameterUse"),
        (
            "WITH 1 AS r MATCH ()-[r]->() RETURN r",
            "VariableTypeConflict",
        ),
        (
            "WITH 1 AS p MATCH p = ()-->() RETURN p",
            "VariableAlreadyBound",
        ),
        (
            "MATCH (p)-->(), p = ()-->() RETURN p",
            "VariableAlreadyBound",
        ),
        (
            "MATCH (n) WITH n AS a, count(*) AS c ORDER BY max(n.x) RETURN c",
            "InvalidAggregation",
        ),
        ("RETURN '\\uZZZZ'", "InvalidUnicodeLiteral"),
        ("RETURN 1 — 2", "InvalidUnicodeCharacter"),
        ("MATCH (n) RETURN (n)-->()", "UnexpectedSyntax"),
    ] {
        check(text, Class::Syntax, detail);
    }
    check("CALL nothing.here()", Class::Procedure, "ProcedureNotFound");
    check("WITH 1 AS x RETURN x.y", Class::Type, "InvalidArgumentType");
}

#[test]
fn errors_at_run_time_have_their_classes_too() {
    for (text, class, detail) in [
        ("RETURN 1 / 0", Class::Arithmetic, "DivisionByZero"),
        (
            "RETURN 9223372036854775807 + 1",
            Class::Arithmetic,
            "IntegerOverflow",
        ),
        (
            "RETURN -(-9223372036854775808)",
            Class::Arithmetic,
            "IntegerOverflow",
        ),
        ("RETURN range(1, 2, 0)", Class::Argument, "NumberOutOfRange"),
        (
            "RETURN $missing",
            Class::ParameterMissing,
            "MissingParameter",
        ),
        ("RETURN toInteger([1])", Class::Type, "InvalidArgumentValue"),
        (
            "UNWIND [1, 'x'] AS x RETURN x - 1",
            Class::Type,
            "InvalidArgumentType",
        ),
        (
            "RETURN date('2026-13-01')",
            Class::Argument,
            "InvalidArgumentValue",
        ),
        ("RETURN 'a' =~ '('", Class::Argument, "InvalidArgumentValue"),
    ] {
        let error = error(text);
        assert_eq!(
            (error.class(), error.detail()),
            (class, detail),
            "{text}: {error}"
        );
        assert_eq!(error.phase(), Phase::Run, "{text}: {error}");
    }
}

#[test]
fn float_division_by_zero_and_float_overflow_are_values() {
    let graph = MemoryGraph::new();
    assert_eq!(
        crate::lines(&graph, "RETURN 1.0 / 0, -1 / 0.0, 0.0 / 0"),
        ["Infinity | -Infinity | NaN"]
    );
}
