//! Under a directive's run: what it grants, and no more.

use super::*;

impl Bench {
    /// Runs a directive with these permissions, perhaps as a part of another's run.
    fn directive(&self, id: &str, permissions: &str, parent: Option<&str>) -> String {
        let text = format!(
            "---\nname: {id}\nversion: 1.0.0\ndescription: d\npermissions:\n{permissions}\n---\n\n# Steps\n"
        );
        self.put(&format!(".ai/directives/{id}.md"), &text);
        let signed = self.execute("directive", "sign", id, json!({}));
        assert_eq!(signed["status"], "signed", "{signed:#}");
        let run = self.execute("directive", "run", id, json!({ "run_id": parent }));
        run["run_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{run:#}"))
            .to_owned()
    }

    fn run_under(&self, run_id: &str, id: &str) -> Value {
        self.execute("tool", "run", id, json!({ "run_id": run_id }))
    }
}

const ALL: &str = "  read: [\"**\"]\n  execute: [\"*\"]";

#[test]
fn a_tool_must_be_named_by_the_directive() {
    let bench = Bench::new();
    bench.tool("hello.sh", &bash("echo hi"));
    bench.tool("other.sh", &bash("echo hi"));
    let run = bench.directive("setup", "  execute: [hello, now_read]", None);
    let done = bench.run_under(&run, "hello");
    assert_eq!(done["status"], "executed", "{done:#}");
    let refused = bench.run_under(&run, "other");
    assert_eq!(refused["denied"], json!(["tool.other"]), "{refused:#}");
    assert_eq!(refused["directive"], "setup");
    // Tools of the server are held to it as well.
    let done = bench.run_under(&run, "now_read");
    assert_eq!(done["status"], "executed", "{done:#}");
    let refused = bench.run_under(&run, "integrity_check");
    assert_eq!(refused["is_error"], true, "{refused:#}");
    // Without the directive's run they may.
    bench.ran("other", json!({}));
}

#[test]
fn what_a_tool_asks_for_must_be_granted_too() {
    let bench = Bench::new();
    bench.policy("[ceiling]\nenv = [\"*\"]\nread = [\".\"]\n");
    bench.put("data.txt", "data");
    bench.made("keyed", "env: [API_KEY]", "main.sh", "echo hi");
    let run = bench.directive("narrow", "  execute: [keyed]", None);
    let refused = bench.run_under(&run, "keyed");
    assert_eq!(refused["denied"], json!(["env.API_KEY"]), "{refused:#}");
    let run = bench.directive("wider", "  execute: [keyed]\n  env: [API_KEY]", None);
    let done = bench.run_under(&run, "keyed");
    assert_eq!(done["status"], "executed", "{done:#}");
    // Reading the project is granted like anything else.
    bench.tool("reader.sh", &bash("cat data.txt"));
    let run = bench.directive("blind", "  execute: [reader]", None);
    assert_eq!(bench.run_under(&run, "reader")["status"], "error");
    let run = bench.directive("seeing", ALL, None);
    let done = bench.run_under(&run, "reader");
    assert_eq!(done["data"]["stdout"], "data", "{done:#}");
}

#[test]
fn a_run_that_is_unknown_or_long_ago_grants_nothing() {
    let bench = Bench::new();
    bench.tool("hello.sh", &bash("echo hi"));
    for id in ["hello", "now_read"] {
        let refused = bench.run_under("run_of_nobody", id);
        assert_eq!(refused["http"], 422, "{refused:#}");
        let hint = refused["hint"].as_str().unwrap();
        assert!(hint.contains("run the directive again"), "{hint}");
    }
    let run = bench.directive("setup", ALL, None);
    bench.house.clock.advance(59 * 60 * 1000);
    assert_eq!(bench.run_under(&run, "hello")["status"], "executed");
    let child = bench.directive("part", ALL, Some(&run));
    bench.house.clock.advance(2 * 60 * 1000);
    for run in [&run, &child] {
        let refused = bench.run_under(run, "hello");
        assert!(
            refused["error"]
                .as_str()
                .unwrap()
                .contains("older than an hour"),
            "{refused:#}"
        );
    }
}

#[test]
fn a_part_of_a_run_has_no_more_than_the_whole() {
    let bench = Bench::new();
    bench.tool("hello.sh", &bash("echo hi"));
    bench.tool("other.sh", &bash("echo hi"));
    let parent = bench.directive("setup", "  execute: [hello]", None);
    let child = bench.directive("part", ALL, Some(&parent));
    assert_eq!(bench.run_under(&child, "hello")["status"], "executed");
    assert_eq!(
        bench.run_under(&child, "other")["denied"],
        json!(["tool.other"])
    );
    // Another process knows it too.
    let again = Bench {
        house: everything(&bench.house),
    };
    assert_eq!(again.run_under(&child, "hello")["status"], "executed");
    assert_eq!(again.run_under(&child, "other")["is_error"], true);
}

#[test]
fn a_server_must_be_granted_as_well() {
    let bench = Bench::new();
    bench.policy("[mcp.own]\ncommand = \"bash\"\nargs = [\"-c\", \"echo so sorry >&2\"]\n");
    let text = "tool_id: far\nversion: 1.0.0\ntool_type: mcp_tool\nexecutor_id: mcp\nconfig: {server: own, tool: x}\n";
    bench.put(".ai/tools/far/manifest.yaml", text);
    bench.sign("far");
    for (permissions, word) in [
        ("  execute: [far]", "does not let"),
        ("  execute: [far]\n  mcp: [own]", "so sorry"),
    ] {
        let run = bench.directive("setup", permissions, None);
        let refused = bench.run_under(&run, "far");
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains(word), "{permissions}: {error}");
    }
}
