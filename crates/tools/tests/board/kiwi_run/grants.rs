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
    bench.fixture.clock.advance(59 * 60 * 1000);
    assert_eq!(bench.run_under(&run, "hello")["status"], "executed");
    let child = bench.directive("part", ALL, Some(&run));
    bench.fixture.clock.advance(2 * 60 * 1000);
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
        fixture: everything(&bench.fixture),
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

impl Bench {
    /// Which of these files a tool can read, under a run or without.
    fn read_by(&self, tool: &str, run: Option<&str>, files: &[&str]) -> Vec<String> {
        let mut read = Vec::new();
        for file in files {
            let done = self.execute(
                "tool",
                "run",
                tool,
                json!({ "run_id": run, "parameters": { "inputs": { "file": file } } }),
            );
            if done["status"] == "executed" {
                read.push((*file).to_owned());
            }
        }
        read
    }

    fn granted(&self, tool: &str, run: Option<&str>) -> Value {
        let arguments = json!({ "run_id": run, "dry_run": true });
        let done = self.execute("tool", "run", tool, arguments);
        assert_eq!(done["status"], "validation_passed", "{done:#}");
        done["granted"].clone()
    }
}

const FILES: [&str; 6] = [
    "top.md",
    "src/a.rs",
    "src/a.md",
    "src/deep/b.md",
    "docs/c.md",
    "docs/d.txt",
];

/// A bench with these files and a tool `cat` that asks for what is given.
fn library(asks: &[(&str, &str)]) -> Bench {
    let bench = Bench::new();
    for file in FILES {
        bench.put(file, "text");
    }
    bench.put("secret/key", "secret");
    std::os::unix::fs::symlink("../secret/key", bench.path("src/link.md")).unwrap();
    for (id, permissions) in asks {
        bench.made(id, permissions, "main.sh", "cat \"$2\"");
    }
    bench
}

#[test]
fn a_tool_reads_what_it_asks_for_and_the_directive_grants_and_the_operator_allows() {
    let bench = library(&[
        ("anything", ""),
        ("sources", "permissions: {read: [\"src/**\"]}"),
        ("markdown", "permissions: {read: [\"**/*.md\"]}"),
        ("nothing", "permissions: {read: []}"),
    ]);
    let mut files = FILES.to_vec();
    files.extend(["secret/key", "src/link.md"]);
    let docs = bench.directive("docs", "  read: [\"docs/**\"]\n  execute: [\"*\"]", None);
    let source = bench.directive("source", "  read: [\"src\"]\n  execute: [\"*\"]", None);
    let blind = bench.directive("blind", "  execute: [\"*\"]", None);
    let all = [
        "top.md",
        "src/a.rs",
        "src/a.md",
        "src/deep/b.md",
        "docs/c.md",
        "docs/d.txt",
    ];
    let cases: [(&str, Option<&str>, Vec<&str>, Value); 9] = [
        (
            "anything",
            None,
            [&all[..], &["secret/key", "src/link.md"]].concat(),
            json!(["**"]),
        ),
        (
            "anything",
            Some(&docs),
            vec!["docs/c.md", "docs/d.txt"],
            json!(["docs/**"]),
        ),
        ("anything", Some(&blind), vec![], json!([])),
        (
            "sources",
            None,
            vec!["src/a.rs", "src/a.md", "src/deep/b.md"],
            json!(["src/**"]),
        ),
        (
            "sources",
            Some(&source),
            vec!["src/a.rs", "src/a.md", "src/deep/b.md"],
            json!(["src/**"]),
        ),
        (
            "markdown",
            None,
            vec!["top.md", "src/a.md", "src/deep/b.md", "docs/c.md"],
            json!(["top.md", "src/a.md", "src/deep/b.md", "docs/c.md"]),
        ),
        (
            "markdown",
            Some(&source),
            vec!["src/a.md", "src/deep/b.md"],
            json!(["src/a.md", "src/deep/b.md"]),
        ),
        (
            "markdown",
            Some(&docs),
            vec!["docs/c.md"],
            json!(["docs/c.md"]),
        ),
        ("nothing", None, vec![], json!([])),
    ];
    for (tool, run, expected, shown) in cases {
        let read = bench.read_by(tool, run, &files);
        assert_eq!(read, expected, "{tool} {run:?}");
        let granted = bench.granted(tool, run);
        let listed = granted["read"].as_array().unwrap();
        let mut patterns: Vec<&str> = listed
            .iter()
            .map(|it| it.as_str().unwrap())
            // The directives themselves are Markdown too.
            .filter(|it| !it.starts_with(".ai/"))
            .collect();
        let mut wanted: Vec<&str> = shown
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap())
            .collect();
        patterns.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(patterns, wanted, "{tool} {run:?}: {granted:#}");
    }
    // What is asked for by name and granted by nobody is refused.
    let refused = bench.run_under(&docs, "sources");
    assert_eq!(refused["denied"], json!(["fs.read src/**"]), "{refused:#}");
    bench.policy("[ceiling]\nread = [\"docs\"]\n");
    assert_eq!(
        bench.read_by("anything", None, &files),
        ["docs/c.md", "docs/d.txt"]
    );
}

#[test]
fn a_file_that_is_made_later_is_read_only_where_its_whole_folder_is() {
    let bench = library(&[
        (
            "folder",
            "permissions: {read: [\"src/**\"], write: [\"src/deep/**\"]}",
        ),
        (
            "files",
            "permissions: {read: [\"src/**/*.md\"], write: [\"out/**\"]}",
        ),
    ]);
    bench.policy("[ceiling]\nwrite = [\"out/**\", \"src/deep/**\"]\n");
    open(&bench.path("src/deep"), 0o777);
    let script = |folder: &str, read: &str| {
        format!("echo new > {folder}/new.md; cat {read} || echo no; ls src || echo no list")
    };
    for (id, folder) in [("folder", "src/deep"), ("files", "out")] {
        bench.put(
            &format!(".ai/tools/{id}/main.sh"),
            &script(folder, "src/a.md"),
        );
        bench.sign(id);
    }
    let done = bench.ran("folder", json!({}));
    assert!(
        done["data"]["stdout"].as_str().unwrap().starts_with("text"),
        "{done:#}"
    );
    let done = bench.ran("files", json!({}));
    let said = done["data"]["stdout"].as_str().unwrap();
    assert!(
        said.contains("text") && said.contains("no list"),
        "{done:#}"
    );
    assert_eq!(fs::read(bench.path("out/new.md")).unwrap(), b"new\n");
}

#[test]
fn a_refusal_says_what_a_person_decides_and_no_way_round() {
    let bench = library(&[("sources", "permissions: {read: [\"src/**\"]}")]);
    let run = bench.directive("docs", "  read: [\"docs/**\"]\n  execute: [sources]", None);
    let refused = bench.run_under(&run, "sources");
    let hint = refused["solution"].as_str().unwrap();
    assert!(hint.contains("kenning kiwi sign directive docs"), "{hint}");
    assert!(!refused.to_string().contains("leave out"), "{refused:#}");
}
