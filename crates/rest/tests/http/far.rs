//! The KOI tests of the board once more, through a second Kenning that asks the first over HTTP with a token.

use crate::place::{Place, Setup};
use kenning_engine::Scope;
use kenning_testing::Outside;
use kenning_tools::{Reply, Selection};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// A house whose KOI tools are called at another one, which has no vault and asks this one.
pub(crate) struct House {
    here: Place,
    near: kenning_testing::House,
    runtime: Arc<Runtime>,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::of(kenning_testing::House::new(), runtime())
    }

    pub(crate) fn without_vault(selection: Selection) -> Self {
        Self::of(kenning_testing::House::without_vault(selection), runtime())
    }

    pub(crate) fn without_vault_in(selection: Selection, outside: Outside) -> Self {
        let house = kenning_testing::House::without_vault_in(selection, outside);
        Self::of(house, runtime())
    }

    pub(crate) fn in_world(selection: Selection, outside: Outside) -> Self {
        Self::of(
            kenning_testing::House::in_world(selection, outside),
            runtime(),
        )
    }

    pub(crate) fn again(&self, selection: Selection) -> Self {
        Self::of(self.here.house.again(selection), Arc::clone(&self.runtime))
    }

    fn of(house: kenning_testing::House, runtime: Arc<Runtime>) -> Self {
        let setup = Setup {
            require_token: true,
            ..Setup::default()
        };
        let here = runtime.block_on(Place::of(house, setup));
        let token = here.token(&Scope::ALL, "default", None);
        let near = near(&format!("http://{}", here.address), &token);
        Self {
            here,
            near,
            runtime,
        }
    }

    /// The tools of the KOI API at the other house, all others here.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Reply {
        let listed = self.here.house.board.find(tool);
        let is_far = listed.is_some_and(|it| it.toolset() == kenning_tools::Toolset::Koi)
            && !tool.starts_with("vault_");
        if !is_far {
            return self.here.house.call(tool, arguments);
        }
        let mut reply = self.near.call(tool, arguments);
        // What these tests look for is what the server says.
        if let Some((_, said)) = reply.text.split_once(" — ").filter(|_| reply.is_error()) {
            reply.text = said.to_owned();
        }
        reply
    }
}

impl Deref for House {
    type Target = kenning_testing::House;

    fn deref(&self) -> &Self::Target {
        &self.here.house
    }
}

fn runtime() -> Arc<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Arc::new(builder.worker_threads(1).enable_all().build().unwrap())
}

/// A house that asks another server.
fn near(endpoint: &str, token: &str) -> kenning_testing::House {
    let (endpoint, token) = (endpoint.to_owned(), token.to_owned());
    let environment = move |name: &str| match name {
        "KOI_API_ENDPOINT" => Some(endpoint.clone()),
        "KOI_API_TOKEN" => Some(token.clone()),
        _ => None,
    };
    kenning_testing::House::with_environment(Arc::new(environment))
}

#[test]
fn what_the_other_server_refuses_is_told_by_its_status_and_its_words() {
    let house = House::new();
    let endpoint = format!("http://{}", house.here.address);
    for (endpoint, token, expected) in [
        (
            endpoint.as_str(),
            "wrong",
            "KOI API error (koi_search): Request failed with status code 401 — ",
        ),
        (
            "http://127.0.0.1:9",
            "",
            "the KOI server at 127.0.0.1:9, which KOI_API_ENDPOINT names, does not answer",
        ),
        (
            "nowhere",
            "",
            "KOI_API_ENDPOINT: `nowhere` is not the address of a server",
        ),
    ] {
        let reply = near(endpoint, token).call("koi_search", json!({ "query": "herring" }));
        assert!(reply.is_error());
        assert!(reply.text.starts_with(expected), "{}", reply.text);
    }
    let near = near(
        &endpoint,
        &house.here.token(&[Scope::Read], "default", None),
    );
    let reply = near.call("resolve_entity", json!({ "label": "Bill Baue" }));
    assert!(!reply.is_error(), "{}", reply.text);
    // Bad arguments do not leave the house.
    let reply = near.call("resolve_entity", json!({ "lable": "Bill Baue" }));
    assert!(
        reply.text.contains("unknown field `lable`"),
        "{}",
        reply.text
    );
    let reply = near.call("koi_search", json!({ "query": " " }));
    assert!(reply.text.contains("`query` is empty"), "{}", reply.text);
}

/// The original answers an unknown name with one that it has made up.
#[test]
fn what_a_server_made_up_is_nobody() {
    let runtime = runtime();
    let phantom = axum::Router::new().route(
        "/entity/resolve",
        axum::routing::post(|| async {
            let made_up = json!({ "name": "X", "uri": "orn:x", "type": "", "confidence": 0.9 });
            json!({ "candidates": [made_up], "is_new": true }).to_string()
        }),
    );
    let listener = runtime.block_on(kenning_rest::bind(([127, 0, 0, 1], 0).into()));
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        kenning_rest::serve(listener, phantom, std::future::pending()).await;
    });
    let near = near(&format!("http://{address}/"), "");
    for tool in ["get_entity_neighborhood", "get_entity_documents"] {
        let reply = near.call(tool, json!({ "entity_uri": "X" }));
        let expected = "Could not resolve \"X\" to a known entity";
        assert!(
            reply.is_error() && reply.text.starts_with(expected),
            "{}",
            reply.text
        );
    }
    let reply = near.call("resolve_entity", json!({ "label": "X" }));
    let said = &reply.to_json()["candidates"][0];
    assert_eq!(said["uri"], "orn:x", "what the server says is passed on");
}

#[test]
fn the_routes_of_a_house_that_asks_another_answer_for_that_one() {
    let house = House::new();
    let endpoint = format!("http://{}", house.here.address);
    let token = house.here.token(&[Scope::Read], "default", None);
    let near = near(&endpoint, &token);
    let door = house.runtime.block_on(Place::of(near, Setup::default()));
    let get = |path: &str, headers: &str| house.runtime.block_on(door.get(path, headers));
    let found = get("/entity/resolve?label=Bill%20Baue", "").json();
    assert_eq!(found["candidates"][0]["name"], "Bill Baue");
    let path = "/entity/orn%3Apersonal-koi.entity%3Aperson-bill-baue-376ffc2e6245";
    assert_eq!(get(path, "").json()["entity"]["entity_text"], "Bill Baue");
    let unknown = get("/entity/orn:x/y", "");
    assert_eq!(
        (unknown.status, unknown.json()["detail"].as_str()),
        (404, Some("Entity not found"))
    );
    let wrong = get("/entity-search?limit=abc&query=x", "");
    assert_eq!(wrong.json()["detail"][0]["type"], "int_parsing");
    let body = json!({ "document_rid": "vault:a.md", "entities": [] }).to_string();
    let refused = house.runtime.block_on(door.post("/ingest", "", &body));
    assert_eq!(
        refused.status, 403,
        "the token there only reads: {refused:?}"
    );
    let ring = get("/stats", "kenning-forwarded: 1\r\n");
    assert_eq!(ring.status, 508, "{ring:?}");
}
