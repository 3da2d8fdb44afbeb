//! Forgetting memories: taken away at once, restorable for a while, erased after that.

use crate::everything;
use crate::memories::{recall, store};
use kenning_core::Space;
use kenning_engine::{Caller, Principal, Scope};
use kenning_store::{Row, Table};
use kenning_testing::Fixture;
use serde_json::{Value, json};

const SECRET: &str = "quartzheronlantern7731";

const HOUR: u64 = 60 * 60 * 1_000;

fn every_row(fixture: &Fixture) -> String {
    let mut all = String::new();
    let read = |tx: &dyn kenning_store::ReadTx| {
        for table in Table::ALL {
            tx.scan(table, &mut |row| {
                match &row {
                    Row::Event(it) => all += &String::from_utf8_lossy(&it.sealed.data),
                    Row::Kv(it) => all += &String::from_utf8_lossy(&it.value),
                    _ => {}
                }
                all += &format!("{row:?}\n");
                Ok(())
            })?;
        }
        Ok(())
    };
    fixture.log().read(&Space::default(), read).unwrap();
    all
}

fn forget(fixture: &Fixture, arguments: Value) -> Value {
    let reply = fixture.call("memory_forget", arguments);
    assert!(!reply.is_error(), "{}", reply.text);
    reply.to_json()
}

fn is_found(fixture: &Fixture) -> bool {
    let found = recall(fixture, json!({ "query": SECRET, "min_relevance": 0 }));
    found
        .iter()
        .any(|it| it["content"].to_string().contains(SECRET))
}

fn assert_clean(fixture: &Fixture) -> u64 {
    let report = fixture.board.engine().verify(&Space::default(), &|_| ());
    let report = report.unwrap();
    assert_eq!(report.faults, Vec::<String>::new());
    report.n_erased
}

#[test]
fn a_forgotten_memory_waits_for_its_grace_time_and_is_then_erased() {
    let fixture = everything(&Fixture::new());
    let omi = fixture.board.engine().omi();
    let id = store(
        &fixture,
        json!({ "content": format!("the code is {SECRET}") }),
    );
    let answer = forget(&fixture, json!({ "memory_ids": [id, "mem_unknown"] }));
    assert_eq!(answer["forgotten"], json!([id]));
    assert_eq!(answer["missing"], json!(["mem_unknown"]));
    assert!(answer["restorable_until"].is_string());
    assert!(!is_found(&fixture));
    assert!(every_row(&fixture).contains(SECRET), "it can be restored");
    fixture.clock.advance(23 * HOUR);
    omi.forget_due(&Space::default()).unwrap();
    let restored = omi
        .restore_memories(&fixture.owner(), std::slice::from_ref(&id))
        .unwrap();
    assert_eq!(restored, [id.as_str()]);
    assert!(is_found(&fixture));
    assert_clean(&fixture);
    forget(&fixture, json!({ "memory_ids": [id] }));
    fixture.clock.advance(25 * HOUR);
    omi.forget_due(&Space::default()).unwrap();
    assert!(!every_row(&fixture).contains(SECRET));
    assert!(omi.restore_memories(&fixture.owner(), &[id]).is_err());
    assert!(assert_clean(&fixture) > 0);
}

#[test]
fn a_memory_goes_with_the_earlier_versions_that_it_superseded() {
    let fixture = everything(&Fixture::new());
    let first = store(
        &fixture,
        json!({ "content": format!("the code is {SECRET}") }),
    );
    let second = store(
        &fixture,
        json!({ "content": format!("the code is {SECRET}, since May"), "supersedes": first }),
    );
    let answer = forget(
        &fixture,
        json!({ "memory_ids": [second], "erase_now": true }),
    );
    assert_eq!(answer["forgotten"], json!([second, first]));
    assert_eq!(answer["restorable_until"], Value::Null);
    assert!(!every_row(&fixture).contains(SECRET));
    assert_clean(&fixture);
}

#[test]
fn notes_that_hold_the_text_are_named_and_left_to_the_person() {
    let fixture = everything(&Fixture::new());
    let text = format!("the code is {SECRET}");
    let id = store(&fixture, json!({ "content": text }));
    let note = json!({ "path": "Safe.md", "content": text });
    fixture.call("vault_write_note", note);
    let changed = json!({ "path": "Safe.md", "content": format!("{text}, and more") });
    fixture.call("vault_write_note", changed);
    let answer = forget(&fixture, json!({ "memory_ids": [id], "erase_now": true }));
    assert!(
        answer["still_in"].to_string().contains("Safe.md"),
        "{answer}"
    );
    fixture.call(
        "vault_write_note",
        json!({ "path": "Safe.md", "content": "empty" }),
    );
    let owner = fixture.owner();
    let omi = fixture.board.engine().omi();
    let report = omi.forget_text(&owner, SECRET).unwrap();
    assert_eq!(report.also_in, Vec::<String>::new());
    assert!(!every_row(&fixture).contains(SECRET));
    assert_clean(&fixture);
}

#[test]
fn memories_older_than_their_type_may_become_are_erased() {
    let fixture = everything(&Fixture::new());
    let omi = fixture.board.engine().omi();
    let owner = fixture.owner();
    omi.init_context(&owner).unwrap();
    omi.config_set(&owner, "retention.experience_days", "30")
        .unwrap();
    let old = json!({ "content": format!("the code is {SECRET}"), "memory_type": "experience" });
    store(&fixture, old);
    store(
        &fixture,
        json!({ "content": "a fact stays", "memory_type": "fact" }),
    );
    fixture.clock.advance(29 * 24 * HOUR);
    store(
        &fixture,
        json!({ "content": "a newer experience", "memory_type": "experience" }),
    );
    omi.forget_due(&Space::default()).unwrap();
    assert!(every_row(&fixture).contains(SECRET));
    fixture.clock.advance(2 * 24 * HOUR);
    omi.forget_due(&Space::default()).unwrap();
    let rows = every_row(&fixture);
    assert!(!rows.contains(SECRET));
    assert!(rows.contains("a fact stays") && rows.contains("a newer experience"));
    assert_clean(&fixture);
}

#[test]
fn who_may_write_may_not_erase() {
    let fixture = everything(&Fixture::new());
    let id = store(&fixture, json!({ "content": "stays here" }));
    let caller = Caller::new(Principal {
        name: "writer".to_owned(),
        space: Space::default(),
        scopes: vec![Scope::Read, Scope::Write],
        token: None,
        project: None,
    });
    let arguments = json!({ "memory_ids": [id] });
    let reply = fixture.call_as("memory_forget", arguments, &caller);
    assert!(
        reply.is_error() && reply.text.contains("destroy"),
        "{}",
        reply.text
    );
    assert_eq!(
        fixture.board.engine().omi().memory_count(&caller).unwrap(),
        1
    );
}
