//! Chains: what runs a tool is checked as the tool is.

use super::*;

/// A runtime that is an item.
fn runtime(bench: &Bench, id: &str, rest: &str) {
    let text = format!(
        "tool_id: {id}\nversion: 1.0.0\ntool_type: runtime\n{rest}\nvalidation:\n  child_schemas:\n    - {{match: {{tool_type: script}}, schema: {{type: object}}}}\n    - {{match: {{tool_type: runtime}}, schema: {{type: object}}}}\n"
    );
    bench.put(&format!(".ai/tools/{id}/manifest.yaml"), &text);
}

const LOUD: &str = "executor_id: subprocess\nconfig: {command: bash, args: [-x]}";

#[test]
fn a_runtime_can_be_an_item() {
    let bench = Bench::new();
    runtime(&bench, "loud_runtime", LOUD);
    bench.made("leaf", "executor_id: loud_runtime", "main.sh", "echo hi");
    let refused = bench.failed("leaf", json!({}));
    assert_eq!(refused["http"], 422);
    assert_eq!(refused["chain"], json!(["leaf", "loud_runtime"]));
    assert_eq!(refused["failed_at"]["tool_id"], "loud_runtime");
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("has no signature"), "{error}");
    let solution = refused["solution"].as_str().unwrap();
    assert!(
        solution.contains("kiwi sign tool loud_runtime"),
        "{solution}"
    );
    bench.sign("loud_runtime");
    let done = bench.ran("leaf", json!({}));
    assert_eq!(done["data"]["stdout"], "hi\n");
    assert_eq!(done["data"]["stderr"], "+ echo hi\n");
    assert_eq!(
        done["metadata"]["chain"],
        json!(["leaf", "loud_runtime", "subprocess"])
    );
}

#[test]
fn a_circle_and_a_gap_are_named() {
    let bench = Bench::new();
    runtime(&bench, "round", "executor_id: about");
    runtime(&bench, "about", "executor_id: round");
    bench.sign("round");
    bench.sign("about");
    bench.made("leaf", "executor_id: round", "main.sh", "true");
    let refused = bench.failed("leaf", json!({}));
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("leaf -> round -> about -> round"), "{error}");
    bench.made("alone", "executor_id: nowhere", "main.sh", "true");
    let refused = bench.failed("alone", json!({}));
    assert_eq!(refused["failed_at"]["tool_id"], "nowhere");
    assert_eq!(refused["chain"], json!(["alone", "nowhere"]));
}

#[test]
fn unsigned_and_changed_tools_are_refused() {
    let bench = Bench::new();
    bench.put(".ai/tools/raw.sh", &bash("echo hi"));
    let refused = bench.failed("raw", json!({}));
    assert_eq!(refused["status"], "missing");
    bench.policy("allow_unsigned = true\n");
    assert_eq!(bench.ran("raw", json!({}))["data"]["stdout"], "hi\n");
    bench.policy("");
    bench.sign("raw");
    let signed = fs::read_to_string(bench.path(".ai/tools/raw.sh")).unwrap();
    bench.put(".ai/tools/raw.sh", &signed.replace("echo hi", "echo ho"));
    let refused = bench.failed("raw", json!({}));
    assert_eq!(refused["status"], "modified", "{refused:#}");
}

#[test]
fn a_chain_that_changed_is_refused_until_it_is_signed_again() {
    let bench = Bench::new();
    runtime(&bench, "loud_runtime", LOUD);
    bench.sign("loud_runtime");
    bench.made("leaf", "executor_id: loud_runtime", "main.sh", "echo hi");
    bench.ran("leaf", json!({}));
    let lockfile = bench.path(".ai/lockfiles/leaf@1.0.0.lock.json");
    let locked: Value = serde_json::from_slice(&fs::read(&lockfile).unwrap()).unwrap();
    assert_eq!(locked["root"]["tool_id"], "leaf");
    assert_eq!(locked["resolved_chain"].as_array().unwrap().len(), 3);
    bench.ran("leaf", json!({}));
    runtime(&bench, "loud_runtime", &LOUD.replace("-x", "-e"));
    bench.sign("loud_runtime");
    let refused = bench.failed("leaf", json!({}));
    assert_eq!(refused["status"], "locked", "{refused:#}");
    assert_eq!(refused["position"], 1);
    assert_eq!(refused["field"], "integrity");
    assert_eq!(refused["http"], 422);
    bench.sign("leaf");
    let done = bench.ran("leaf", json!({}));
    assert_eq!(done["data"]["stderr"], "");
    fs::write(&lockfile, "{}").unwrap();
    let refused = bench.failed("leaf", json!({}));
    assert!(
        refused["error"].as_str().unwrap().contains("lockfile"),
        "{refused:#}"
    );
    fs::remove_file(&lockfile).unwrap();
    bench.ran("leaf", json!({}));
    assert!(lockfile.exists());
}

#[test]
fn a_configuration_that_does_not_fit_is_shown_with_its_place() {
    let bench = Bench::new();
    bench.made("odd", "config: {timeout: soon}", "main.sh", "true");
    let refused = bench.failed("odd", json!({}));
    assert_eq!(refused["code"], "CONFIG_VALIDATION_ERROR", "{refused:#}");
    let place = refused["failed_at"]["config_path"].as_str().unwrap();
    assert!(place.contains("timeout"), "{place}");
    bench.made("unset", "config: {cwd: \"${WHERE}\"}", "main.sh", "true");
    let refused = bench.failed("unset", json!({}));
    assert!(
        refused["error"].as_str().unwrap().contains("`WHERE`"),
        "{refused:#}"
    );
}

#[test]
fn tools_of_the_user_run_too_and_the_project_comes_first() {
    let bench = Bench::new();
    let user = bench.fixture.root.path().join("user/tools");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("both.sh"), bash("echo user")).unwrap();
    bench.sign("both");
    let done = bench.ran("both", json!({}));
    assert_eq!(done["location"], "user");
    assert_eq!(done["data"]["stdout"], "user\n");
    let lockfile = "user/lockfiles/both@1.0.0.lock.json";
    assert!(bench.fixture.root.path().join(lockfile).exists());
    bench.tool("both.sh", &bash("echo project"));
    let done = bench.ran("both", json!({}));
    assert_eq!(done["location"], "project");
    assert_eq!(done["data"]["stdout"], "project\n");
}
