//! `vault_backup` through the server, where calls come from asynchronous tasks and a bucket's client
//! must not run in one.

use crate::place::{Place, Setup};
use kenning_tools::Selection;

async fn place() -> Place {
    Place::with(Setup {
        selection: Selection {
            toolsets: vec!["all".to_owned()],
            ..Selection::default()
        },
        ..Setup::default()
    })
    .await
}

#[tokio::test]
async fn a_backup_is_made_by_a_call_over_http() {
    let place = place().await;
    let answer = place.post("/tools/vault_backup", "", "{}").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["backup_id"], "omi_full_20270115_080000");
}

#[tokio::test]
async fn a_bucket_that_cannot_be_reached_is_an_answer_and_no_panic() {
    let place = place().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let config = format!(
        "vault:\n  provider: r2\n  endpoint: http://{address}\n  bucket: copies\n  \
         access_key_id: AKIA\n  secret_access_key: secret\n"
    );
    std::fs::create_dir_all(place.fixture.omi()).unwrap();
    std::fs::write(place.fixture.omi().join("config.yaml"), config).unwrap();
    let answer = place.post("/tools/vault_backup", "", "{}").await;
    assert_eq!(answer.code(), "unavailable", "{answer:?}");
    assert!(
        answer.message().contains(&address.to_string()),
        "{answer:?}"
    );
}
