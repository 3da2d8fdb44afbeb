//! The harness on features of our own: what should pass passes, and what should fail fails.

use kenning_testing_tck::{Outcome, gherkin, run};

fn outcomes(text: &str) -> Vec<(String, Outcome)> {
    let named = |name: &str| (name == "pair").then(|| "CREATE (:A)-[:T]->(:B)".to_owned());
    let scenarios = gherkin::scenarios(text);
    let run = |it: gherkin::Scenario| (it.name.clone(), run(&it, &named));
    scenarios.into_iter().map(run).collect()
}

const FEATURE: &str = r#"
Feature: Own

  Background:
    Given an empty graph

  # A comment, and a tag.
  @tag
  Scenario: rows in any order
    And having executed:
      """
      CREATE (a:A {name: 'it\'s'})
      """
    When executing query:
      """
      RETURN 1 AS a
      """
    Then the result should be, in any order:
      | a |
      | 1 |

  Scenario: nodes, relationships and paths
    And having executed:
      """
      UNWIND range(1, 2) AS i
      CREATE (a:A:X {i: i, t: 'x}'})-[r:T {w: i * 1.5}]->(:B)
      WITH a MATCH (a) CREATE (a)<-[:BACK]-(:C)
      """
    And parameters are:
      | i | 1 |
    When executing query:
      """
      MATCH p = (a {i: $i})-[r:T]->(b) RETURN a, r, p, [b, null] AS l
      """
    Then the result should be, in order:
      | a                          | r               | p                                                    | l            |
      | (:X:A {i: 1, t: 'x}'})     | [:T {w: 1.5}]   | <(:A:X {i: 1, t: 'x}'})-[:T {w: 1.5}]->(:B)>         | [(:B), null] |
    And no side effects

  Scenario: a named graph
    Given the pair graph
    When executing query:
      """
      MATCH p = (:B)<--() RETURN p
      """
    Then the result should be, in any order:
      | p                    |
      | <(:B)<-[:T]-(:A)>    |

  Scenario Outline: errors
    When executing query:
      """
      RETURN <what>
      """
    Then a <class> should be raised at <when>: <detail>

    Examples:
      | what  | class           | when         | detail            |
      | x     | SyntaxError     | compile time | UndefinedVariable |
      | 1 / 0 | ArithmeticError | runtime      | *                 |

  Scenario: writes that are not supported
    When executing query:
      """
      MERGE (a) RETURN a
      """
    Then the result should be empty
"#;

#[test]
fn what_should_pass_passes() {
    let outcomes = outcomes(FEATURE);
    assert_eq!(outcomes.len(), 6);
    for (name, outcome) in outcomes {
        if name.starts_with("writes") {
            assert_eq!(outcome, Outcome::Skipped("writes with MERGE".to_owned()));
        } else {
            assert_eq!(outcome, Outcome::Passed, "{name}");
        }
    }
}

#[test]
fn what_should_fail_fails() {
    for (from, to) in [
        ("      | 1 |\n", "      | 2 |\n"),
        ("      | 1 |\n", "      | 1 |\n      | 1 |\n"),
        ("      | a |\n", "      | b |\n"),
        ("| (:X:A {i: 1", "| (:X {i: 1"),
        ("[:T {w: 1.5}]   |", "[:T {w: 1.6}]   |"),
        ("<(:B)<-[:T]-(:A)>", "<(:B)-[:T]->(:A)>"),
        ("[(:B), null]", "[null, (:B)]"),
        (
            "compile time | UndefinedVariable",
            "runtime | UndefinedVariable",
        ),
        ("| UndefinedVariable", "| UnknownFunction"),
        ("ArithmeticError", "TypeError"),
    ] {
        let text = FEATURE.replacen(from, to, 1);
        assert_ne!(text, FEATURE, "{from}");
        let failed = outcomes(&text)
            .into_iter()
            .filter(|it| matches!(it.1, Outcome::Failed(_)));
        assert_eq!(failed.count(), 1, "{from} -> {to}");
    }
}
