//! Cypher, as strangers write it.

use super::{ensure, in_time, owned, pieces, text};
use crate::{Source, Subject, Target};
use kenning_core::Code;
use kenning_engine::Caller;
use kenning_testing::Fixture;
use kenning_tools::koi::code_query::{Request, answer};

pub(super) const TARGET: Target = Target {
    name: "query_parse",
    about: "a query is answered or refused with its place, and changes nothing",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || {
        let fixture = Fixture::without_vault(kenning_tools::Selection::default());
        let caller = fixture.owner();
        Box::new(Queries { fixture, caller })
    },
    pass_cases: 1_200,
    fresh_every: 1_000_000,
    contains_panics: false,
};

pub(super) const WORDS: &[&str] = &[
    "MATCH ",
    "OPTIONAL MATCH ",
    "RETURN ",
    "WITH ",
    "UNWIND ",
    "WHERE ",
    "ORDER BY ",
    "SKIP ",
    "LIMIT ",
    "DISTINCT ",
    " AS ",
    " AND ",
    " OR ",
    " XOR ",
    "NOT ",
    " IN ",
    " IS NULL",
    " IS NOT NULL",
    " STARTS WITH ",
    " ENDS WITH ",
    " CONTAINS ",
    "CASE ",
    " WHEN ",
    " THEN ",
    " ELSE ",
    " END",
    "(n)",
    "(n:File {a: 1})",
    "-[:CALLS*1..3]->",
    "<-[r]-",
    "--",
    "-->",
    "count(*)",
    "count(",
    "collect(",
    "sum(",
    "labels(n)",
    "size(",
    "coalesce(",
    "toString(",
    "n.name",
    "x",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "|",
    "..",
    "'a'",
    "\"b\"",
    "'\\u00e9'",
    "`odd`",
    "1",
    "-1",
    "2.5",
    "1e3",
    "0x10",
    "null",
    "true",
    "$p",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "=",
    "<>",
    "<=",
    ">=",
    "<",
    ">",
    "=~",
    ",",
    ";",
    "// c\n",
    "/* c */",
    "CREATE ",
    "DELETE ",
    "CALL ",
    "UNION ",
    " DESC",
];

const SEEDS: &[&str] = &[
    "MATCH (n) RETURN labels(n), count(n)",
    "MATCH (f:Function) WHERE f.name = 'helper' RETURN f.file_path, f.signature",
    "MATCH (a)-[:CALLS*1..3]->(b) WHERE NOT (a)-[:X]->() RETURN a.name, b.name ORDER BY a.name DESC SKIP 1 LIMIT 3",
    "UNWIND [1, 2, 2] AS x RETURN count(x) AS n, sum(x) AS s, collect(DISTINCT x) AS c",
    "WITH [1, 2, 3] AS xs RETURN size(xs) AS n, xs[0] AS a, [x IN xs WHERE x > 1 | x * 2] AS b, xs[0..2]",
    "RETURN CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END AS x, 2 IN [1, 2] AS y, coalesce(null, 3) AS z, {a: 1}.a",
    "WITH 'x' AS a WITH a+a AS a WITH a+a AS a WITH a+a AS a RETURN size(a)",
    "MATCH p=(a:File)-[:BELONGS_TO]->(b:Module) RETURN p LIMIT 1;",
    "RETURN NOT NOT NOT true, - - 1, 1*1*1*1, 'a'+'b'+'c'",
    "MATCH (n) CREATE (m) SET n.x = 1",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("(", ")"),
        ("[", "]"),
        ("{a: ", "}"),
        ("NOT ", ""),
        ("-", ""),
        ("1+", ""),
        ("1*", ""),
        ("[x IN ", "| x]"),
        ("CASE WHEN ", " THEN 1 END"),
        ("size(", ")"),
        ("x.", ""),
        ("1^", ""),
        ("WITH x+x AS x ", ""),
        ("WITH [x, x] AS x ", ""),
        ("(a)-->", ""),
        ("x[", "]"),
        ("1 = ", ""),
        ("UNWIND [1,2] AS x ", ""),
        ("true AND ", ""),
        ("'a' STARTS WITH ", ""),
        ("`", ""),
    ];
    let head = *source.pick(&[
        "RETURN ",
        "WITH 'x' AS x ",
        "MATCH (n) WHERE ",
        "UNWIND [1] AS x ",
        "",
    ]);
    let tail = *source.pick(&["", " RETURN 1", " RETURN x", " AS y RETURN y"]);
    format!("{head}{}{tail}", pieces(source, WORDS, pairs)).into_bytes()
}

pub(super) struct Queries {
    fixture: Fixture,
    caller: Caller,
}

impl Subject for Queries {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let query = text(input).into_owned();
        let request = Request {
            cypher: Some(query),
            ..Default::default()
        };
        let engine = self.fixture.board.engine();
        let before = engine.roots(&self.caller).map_err(|it| it.to_string())?.seq;
        match in_time(input, || answer(engine, &self.caller, request))? {
            Ok(output) => {
                let output = serde_json::to_value(&output).map_err(|it| it.to_string())?;
                let rows = output["results"].as_array().map_or(0, Vec::len);
                ensure!(
                    output["count"] == rows,
                    "count is not that of the rows: {rows}"
                );
            }
            Err(refusal) => {
                let error = &refusal.error;
                let code = error.code;
                ensure!(
                    matches!(
                        code,
                        Code::InvalidInput | Code::TooLarge | Code::Limited | Code::Timeout
                    ),
                    "a query was answered with {code:?}: {error}"
                );
                super::short(error)?;
            }
        }
        let after = engine.roots(&self.caller).map_err(|it| it.to_string())?.seq;
        ensure!(before == after, "a query made an event");
        Ok(())
    }
}
