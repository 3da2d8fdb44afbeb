//! `vault_backup` over a real store.

use crate::everything;
use kenning_engine::{Caller, Principal, Scope};
use kenning_testing::Fixture;
use serde_json::json;

#[test]
fn a_backup_answers_with_its_metadata_and_says_what_else_is_to_know() {
    let fixture = everything(&Fixture::new());
    fixture.call("now_update", json!({ "current_task": "ship it" }));
    let reply = fixture.call("vault_backup", json!({ "backup_type": "incremental" }));
    assert!(!reply.is_error(), "{}", reply.text);
    assert!(reply.remarks[0].contains("a full backup was made"));
    let made = reply.value.unwrap();
    assert_eq!(made["backup_id"], "omi_full_20270115_080000");
    assert_eq!(made["backup_type"], "full");
    assert_eq!(made["encrypted"], false);
    assert_eq!(made["retention_days"], 90);
    assert_eq!(
        made["files_included"],
        json!(["store.jsonl", "NOW.md", ".now.hash"])
    );
    assert_eq!(made["base_path_hash"].as_str().unwrap().len(), 16);
    assert_eq!(made["checksum"].as_str().unwrap().len(), 64);
    let archive = fixture
        .omi()
        .join("backups/omi_full_20270115_080000.tar.gz");
    let size = std::fs::metadata(archive).unwrap().len();
    assert_eq!(made["file_size"], size);

    fixture.clock.advance(1_000);
    let reply = fixture.call("vault_backup", json!({ "backup_type": "incremental" }));
    assert!(reply.remarks.is_empty(), "{:?}", reply.remarks);
    let made = reply.value.unwrap();
    assert_eq!(made["backup_type"], "incremental");
    assert_eq!(made["based_on"], "omi_full_20270115_080000");
}

#[test]
fn a_backup_needs_the_scope_that_writing_needs() {
    let fixture = everything(&Fixture::new());
    let reader = Caller::new(Principal {
        scopes: vec![Scope::Read],
        ..fixture.owner().principal
    });
    let reply = fixture
        .board
        .call("vault_backup", json!({}), &reader)
        .unwrap();
    assert!(reply.text.contains("`write`"), "{}", reply.text);
    assert!(!fixture.omi().join("backups").exists());
}
