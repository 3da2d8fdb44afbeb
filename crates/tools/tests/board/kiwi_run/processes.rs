//! Processes: what they are given, and what they cannot do.

use super::*;

#[test]
fn scripts_of_each_language_run() {
    let bench = Bench::new();
    bench.tool(
        "hello.sh",
        &bash(r#"echo "{\"args\": \"$*\"}"; echo note >&2"#),
    );
    bench.tool(
        "snake.py",
        &python("import json, sys\nprint(json.dumps({'args': ' '.join(sys.argv[1:])}))\nprint('note', file=sys.stderr)"),
    );
    bench.tool(
        "hexagon.js",
        &node("console.log(JSON.stringify({args: process.argv.slice(2).join(' ')})); console.error('note')"),
    );
    for (id, runtime) in [
        ("hello", "bash_runtime"),
        ("snake", "python_runtime"),
        ("hexagon", "node_runtime"),
    ] {
        let done = bench.ran(id, json!({ "name": "you", "loud": true }));
        assert_eq!(
            done["result"],
            json!({ "args": "--name you --loud" }),
            "{id}"
        );
        assert_eq!(done["data"]["stderr"], "note\n");
        assert_eq!(done["data"]["return_code"], 0);
        let metadata = &done["metadata"];
        assert_eq!(metadata["chain"], json!([id, runtime, "subprocess"]));
        assert_eq!(metadata["tool_type"], "script");
        assert_eq!(metadata["primitive_type"], "subprocess");
        assert!(metadata["duration_ms"].as_f64().unwrap() > 0.0);
    }
}
