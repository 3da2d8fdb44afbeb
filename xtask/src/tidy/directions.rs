//! Which crate may depend on which.
//!
//! Dependencies point down: binary, servers (MCP, REST, CLI), tools, engine, wings, kernel, then search,
//! audit, store, vault and egress, then core, then text. [`CRATES`] is the whole rule; a new crate needs a
//! row here, and a reason of the form "so that X cannot depend on Y".

use super::Faults;
use serde_json::Value;

/// What a crate may name.
enum May {
    Only(&'static [&'static str]),
    /// Anything but what exists for tests only.
    AnyProduct,
    Anything,
}

use May::{AnyProduct, Anything, Only};

const CRATES: &[(&str, May)] = &[
    // So that what is done with texts can depend on nothing that knows why.
    ("kenning-text", Only(&[])),
    ("kenning-core", Only(&["kenning-text"])),
    ("kenning-store", Only(&["kenning-text", "kenning-core"])),
    (
        "kenning-store-sqlite",
        Only(&["kenning-core", "kenning-store"]),
    ),
    (
        "kenning-store-postgres",
        Only(&["kenning-core", "kenning-store"]),
    ),
    (
        "kenning-audit",
        Only(&["kenning-text", "kenning-core", "kenning-store"]),
    ),
    ("kenning-vault", Only(&["kenning-core"])),
    ("kenning-egress", Only(&["kenning-text", "kenning-core"])),
    (
        "kenning-embed",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-egress",
            "kenning-vault",
        ]),
    ),
    // So that crates with unsafe code are few and small.
    ("kenning-simd", Only(&[])),
    (
        "kenning-search",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-embed",
            "kenning-simd",
        ]),
    ),
    ("kenning-memory", Only(&["kenning-text", "kenning-core"])),
    // So that what reads transcripts of strangers can reach neither a store nor a file.
    ("kenning-capture", Only(&["kenning-text"])),
    ("kenning-graph", Only(&["kenning-text", "kenning-core"])),
    // So that names can be compared without a store to keep them in.
    ("kenning-entities", Only(&["kenning-text", "kenning-core"])),
    // So that what an item says and whether it was changed is decided without files or a store.
    ("kenning-items", Only(&["kenning-text", "kenning-core"])),
    // So that the query language runs over any graph, and a store cannot leak into what it means.
    ("kenning-cypher", Only(&[])),
    // So that grammars, which are heavy to compile, are built once and nothing else with them.
    ("kenning-grammars", Only(&[])),
    // So that what a text says cannot depend on where it is kept.
    ("kenning-code", Only(&["kenning-grammars"])),
    // So that nothing else is built anew when the runtime is, and no tool's code runs beside ours.
    (
        "kenning-sandbox",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-egress",
            "kenning-vault",
        ]),
    ),
    // So that the jail is built and tried without the runtime, and nothing of ours runs inside it.
    ("kenning-jail", Only(&["kenning-core"])),
    // What people who write WASM tools build on: nothing of ours comes with it.
    ("kami-guest", Only(&[])),
    (
        "kenning-backup",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-egress",
            "kenning-vault",
        ]),
    ),
    // So that every question to a language model has one budget and one way out.
    ("kenning-llm", Only(&["kenning-core", "kenning-egress"])),
    // So that what goes over the wire of KOI-net follows from the message alone.
    (
        "kenning-federation",
        Only(&["kenning-text", "kenning-core"]),
    ),
    // So that an exchange between nodes can be simulated without a network, files or a clock.
    (
        "kenning-peers",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-store",
            "kenning-audit",
        ]),
    ),
    // So that a plan follows from its problem alone.
    ("kenning-workflow", Only(&[])),
    // So that what all wings share can depend on none of them.
    (
        "kenning-kernel",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-embed",
            "kenning-llm",
            "kenning-memory",
            "kenning-peers",
            "kenning-vault",
            "kenning-egress",
        ]),
    ),
    // So that a query reads every wing's rows and calls none of them.
    (
        "kenning-query",
        Only(&[
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-cypher",
            "kenning-kernel",
        ]),
    ),
    // So that a durable run knows none of the wings whose work its steps do.
    (
        "kenning-runs",
        Only(&[
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-vault",
            "kenning-workflow",
            "kenning-kernel",
        ]),
    ),
    // One crate a wing, so that a wing cannot reach into another and is built without it.
    (
        "kenning-kami",
        Only(&[
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-sandbox",
            "kenning-vault",
            "kenning-egress",
            "kenning-kernel",
        ]),
    ),
    (
        "kenning-kiwi",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-items",
            "kenning-jail",
            "kenning-vault",
            "kenning-egress",
            "kenning-kernel",
            "kenning-kami",
        ]),
    ),
    (
        "kenning-kg",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-embed",
            "kenning-graph",
            "kenning-entities",
            "kenning-vault",
            "kenning-kernel",
        ]),
    ),
    (
        "kenning-omi",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-memory",
            "kenning-capture",
            "kenning-llm",
            "kenning-vault",
            "kenning-egress",
            "kenning-kernel",
        ]),
    ),
    (
        "kenning-koi",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-embed",
            "kenning-graph",
            "kenning-federation",
            "kenning-entities",
            "kenning-items",
            "kenning-code",
            "kenning-llm",
            "kenning-vault",
            "kenning-egress",
            "kenning-kernel",
            "kenning-kg",
            "kenning-kiwi",
        ]),
    ),
    // So that an agent looks into the wings and nothing in them knows of agents.
    (
        "kenning-agents",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-memory",
            "kenning-llm",
            "kenning-kernel",
            "kenning-kg",
            "kenning-runs",
            "kenning-koi",
        ]),
    ),
    // So that `engine` composes and knows no step of a workflow. The engine alone names it; tools and servers
    // reach it through the engine, and nothing below can.
    (
        "kenning-workflow-steps",
        Only(&[
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-memory",
            "kenning-workflow",
            "kenning-kernel",
            "kenning-runs",
            "kenning-kg",
        ]),
    ),
    (
        "kenning-engine",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-search",
            "kenning-memory",
            "kenning-backup",
            "kenning-vault",
            "kenning-egress",
            "kenning-kernel",
            "kenning-kami",
            "kenning-kiwi",
            "kenning-kg",
            "kenning-omi",
            "kenning-koi",
            "kenning-agents",
            "kenning-llm",
            "kenning-query",
            "kenning-runs",
            "kenning-workflow",
            "kenning-workflow-steps",
        ]),
    ),
    (
        "kenning-tools",
        Only(&["kenning-text", "kenning-core", "kenning-engine"]),
    ),
    (
        "kenning-mcp",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-engine",
            "kenning-tools",
        ]),
    ),
    (
        "kenning-rest",
        Only(&[
            "kenning-text",
            "kenning-core",
            "kenning-engine",
            "kenning-tools",
        ]),
    ),
    (
        "kenning-cli",
        Only(&[
            "kenning-text",
            "kenning-capture",
            "kenning-core",
            "kenning-engine",
            "kenning-tools",
            "kenning-vault",
        ]),
    ),
    ("kenning", AnyProduct),
    ("kenning-testing-postgres", Only(&[])),
    // So that a scripted model can come near no product.
    ("kenning-testing-llm", Only(&[])),
    (
        "kenning-testing",
        Only(&[
            "kenning-audit",
            // For its features: tests read all languages.
            "kenning-code",
            "kenning-core",
            "kenning-engine",
            "kenning-kernel",
            "kenning-store",
            "kenning-store-sqlite",
            "kenning-store-postgres",
            "kenning-testing-postgres",
            "kenning-tools",
            "kenning-vault",
        ]),
    ),
    (
        "kenning-testing-model",
        Only(&[
            "kenning-core",
            "kenning-store",
            "kenning-store-sqlite",
            "kenning-store-postgres",
            "kenning-testing-postgres",
        ]),
    ),
    (
        "kenning-testing-peers",
        Only(&[
            "kenning-core",
            "kenning-store",
            "kenning-audit",
            "kenning-engine",
            "kenning-kernel",
            "kenning-peers",
            "kenning-store-sqlite",
            "kenning-testing-model",
            "kenning-tools",
            "kenning-vault",
        ]),
    ),
    (
        "kenning-testing-wasm",
        Only(&["kenning-core", "kenning-sandbox"]),
    ),
    // So that the product's server knows nothing of what the conformance suite asks for.
    (
        "kenning-testing-mcp",
        Only(&[
            "kenning-core",
            "kenning-engine",
            "kenning-tools",
            "kenning-mcp",
            "kenning-rest",
            "kenning-testing",
        ]),
    ),
    // So that the unsafe code which watches a program's system calls can come near no product.
    ("kenning-testing-disk", Only(&[])),
    // So that the writer of the conformance kit's setup can come near no product.
    ("kenning-testing-tck", Only(&["kenning-cypher"])),
    // So that what makes hostile inputs can use every crate, and nothing depends on it.
    ("kenning-fuzz", Anything),
    ("xtask", Anything),
];

/// No product crate depends on these.
const TESTS_ONLY: &[&str] = &[
    "kenning-testing",
    "kenning-testing-postgres",
    "kenning-testing-model",
    "kenning-testing-peers",
    "kenning-testing-mcp",
    "kenning-testing-wasm",
    "kenning-testing-disk",
    "kenning-testing-tck",
    "kenning-testing-llm",
    "kenning-fuzz",
];

/// What tests may use besides: the test fixture, a real store, and its rows.
const TESTS_ALSO: &[&str] = &[
    "kenning-testing",
    "kenning-testing-postgres",
    "kenning-store",
    "kenning-store-sqlite",
    "kenning-store-postgres",
];

/// What the tests of one crate may name besides.
const TESTS_OF_ONE: &[(&str, &[&str])] = &[
    ("kenning-omi", &["kenning-testing-model"]),
    ("kenning-peers", &["kenning-testing-model"]),
    ("kenning-llm", &["kenning-testing-llm"]),
    ("kenning-mcp", &["kenning-testing-mcp"]),
    ("kenning-sandbox", &["kenning-testing-wasm"]),
    // Installed tools are called over the board, one that is broken among them; pages are fetched from an
    // internet of the test's own.
    (
        "kenning-tools",
        &[
            "kenning-federation",
            "kenning-audit",
            "kenning-egress",
            "kenning-items",
            "kenning-testing-llm",
            "kenning-testing-wasm",
        ],
    ),
    ("kenning", &["kenning-testing-llm", "kenning-testing-wasm"]),
    // The layer is around every route, so its tests put the MCP server behind it.
    (
        "kenning-rest",
        &[
            "kenning-egress",
            "kenning-mcp",
            "kenning-store",
            "kenning-testing-llm",
        ],
    ),
];

pub(super) fn check(metadata: &Value) -> Faults {
    let packages = metadata["packages"].as_array();
    let packages = packages.map_or(&[][..], Vec::as_slice);
    let name = |it: &Value| it["name"].as_str().unwrap_or_default().to_owned();
    let members: Vec<String> = packages.iter().map(name).collect();
    let mut faults = Faults::new();
    for package in packages {
        let from = name(package);
        let Some((_, may)) = CRATES.iter().find(|(row, _)| *row == from) else {
            faults.push(format!(
                "crate `{from}` has no row in `CRATES` of xtask/src/tidy/directions.rs: add one that \
                 says what it may depend on"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = name(dependency);
            if !members.contains(&to) {
                continue;
            }
            let in_tests = dependency["kind"] == "dev";
            if !(may.names(&to) || in_tests && tests_may_name(&from, &to)) {
                let kind = if in_tests { "dev-depends" } else { "depends" };
                faults.push(format!(
                    "crate `{from}` {kind} on `{to}`, which `CRATES` of \
                     xtask/src/tidy/directions.rs does not allow"
                ));
            }
        }
    }
    faults
}

fn tests_may_name(from: &str, to: &str) -> bool {
    let mut of_one = TESTS_OF_ONE.iter().filter(|(row, _)| *row == from);
    TESTS_ALSO.contains(&to) || of_one.any(|(_, list)| list.contains(&to))
}

impl May {
    fn names(&self, to: &str) -> bool {
        match self {
            Self::Only(list) => list.contains(&to),
            Self::AnyProduct => !TESTS_ONLY.contains(&to),
            Self::Anything => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Of a workspace with these dependencies: from, to, whether for tests.
    fn faults(dependencies: &[(&str, &str, bool)]) -> Faults {
        let names = dependencies.iter().flat_map(|it| [it.0, it.1]);
        let names: std::collections::BTreeSet<&str> = names.collect();
        let packages = names.iter().map(|&from| {
            let of = dependencies.iter().filter(|it| it.0 == from);
            let of = of.map(|it| json!({ "name": it.1, "kind": it.2.then_some("dev") }));
            json!({ "name": from, "dependencies": of.collect::<Vec<_>>() })
        });
        check(&json!({ "packages": packages.collect::<Vec<_>>() }))
    }

    #[test]
    fn a_server_that_names_the_store_is_refused() {
        let faults = faults(&[("kenning-mcp", "kenning-store", false)]);
        assert!(faults[0].contains("`kenning-mcp` depends on `kenning-store`"));
    }

    #[test]
    fn tools_name_the_engine_and_nothing_beneath_it() {
        assert!(faults(&[("kenning-tools", "kenning-engine", false)]).is_empty());
        for below in ["kenning-store", "kenning-audit", "kenning-vault"] {
            assert_eq!(faults(&[("kenning-tools", below, false)]).len(), 1);
        }
    }

    #[test]
    fn the_engine_alone_names_the_steps_of_workflows() {
        let steps = "kenning-workflow-steps";
        assert!(faults(&[("kenning-engine", steps, false)]).is_empty());
        for from in [
            "kenning-tools",
            "kenning-agents",
            "kenning-koi",
            "kenning-runs",
        ] {
            assert_eq!(faults(&[(from, steps, false)]).len(), 1, "{from}");
        }
    }

    #[test]
    fn a_backend_and_the_test_fixture_are_for_tests() {
        let backends = ["kenning-store-sqlite", "kenning-store-postgres"];
        for to in backends.iter().chain(&TESTS_ONLY[..2]) {
            assert!(faults(&[("kenning-mcp", to, true)]).is_empty());
            assert_eq!(faults(&[("kenning-mcp", to, false)]).len(), 1);
        }
        for to in TESTS_ONLY {
            assert_eq!(faults(&[("kenning", to, false)]).len(), 1);
            assert!(faults(&[("xtask", to, false)]).is_empty());
        }
        for to in backends {
            assert!(faults(&[("kenning", to, false)]).is_empty());
        }
        assert!(faults(&[("kenning-rest", "kenning-mcp", true)]).is_empty());
        assert_eq!(faults(&[("kenning-mcp", "kenning-rest", true)]).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_told_where_to_add_one() {
        let faults = faults(&[("kenning-new", "kenning-core", false)]);
        assert!(faults[0].contains("xtask/src/tidy/directions.rs"));
    }

    #[test]
    fn every_row_names_only_rows() {
        for (from, may) in CRATES {
            let Only(list) = may else { continue };
            for to in *list {
                let row = CRATES.iter().position(|(row, _)| row == to).unwrap();
                let own = CRATES.iter().position(|(row, _)| row == from).unwrap();
                assert!(row < own, "`{from}` names `{to}`, which stands above it");
            }
        }
    }
}
