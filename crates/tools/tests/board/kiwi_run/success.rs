//! How often a tool's runs went well.

use super::{Bench, bash};
use serde_json::json;

#[test]
fn the_share_of_runs_that_went_well_is_shown_and_counts() {
    let bench = Bench::new();
    bench.tool("flaky.sh", &bash(r#"[ "$2" = yes ]"#));
    for answer in ["yes", "no", "yes", "yes"] {
        let run = json!({ "parameters": { "inputs": { "well": answer } } });
        let done = bench.execute("tool", "run", "flaky", run);
        assert_eq!(done["is_error"], json!(answer == "no"), "{done:#}");
    }
    let bench = bench.settled();
    let asked = json!({ "item_type": "tool", "query": "flaky" });
    let found = bench.fixture.call("search", asked).to_json();
    let row = &found["results"][0];
    assert_eq!(row["success_rate"], 0.75, "{found:#}");
    // 60 for being valid, 25 for the signature, three quarters of 15.
    assert_eq!(row["quality_score"], 96.3, "{found:#}");
}
