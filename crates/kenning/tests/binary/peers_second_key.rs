//! What a peer writes needs a second key where what is written here does, on both stores.

use crate::peers::{call, joined, root, sync};
use crate::{Place, Server};
use kenning_testing_postgres::shared;
use serde_json::{Value, json};

/// A server on PostgreSQL, and a node on SQLite that calls it; one of them wants a second key.
struct Two {
    workstation: Place,
    laptop: Place,
    is_laptop_strict: bool,
    _server: Server,
}

fn two(is_laptop_strict: bool) -> Two {
    let workstation = Place::on_database(&shared().database(), "default");
    let laptop = Place::new();
    let strict = if is_laptop_strict {
        &laptop
    } else {
        &workstation
    };
    strict.good(&["omi", "init"]);
    strict.good(&["omi", "config", "set", "security.enable_consensus", "true"]);
    let server = joined(&workstation, &laptop);
    Two {
        is_laptop_strict,
        _server: server,
        workstation,
        laptop,
    }
}

impl Two {
    fn strict(&self) -> &Place {
        match self.is_laptop_strict {
            true => &self.laptop,
            false => &self.workstation,
        }
    }

    fn other(&self) -> &Place {
        match self.is_laptop_strict {
            true => &self.workstation,
            false => &self.laptop,
        }
    }
}

/// Exchanges until there is nothing left: servers link memories that are alike in the background.
fn agree(two: &Two) {
    for _ in 0..10 {
        let done = sync(&two.laptop);
        if (&done["received"], &done["sent"]) == (&json!(0), &json!(0))
            && root(&two.laptop) == root(&two.workstation)
        {
            return;
        }
    }
    assert_eq!(root(&two.laptop), root(&two.workstation));
}

fn store(place: &Place, content: &str, more: &[&str]) -> String {
    let told = place.good(&[&["omi", "store", content], more].concat());
    told.lines().last().unwrap().trim().to_owned()
}

fn recalls(place: &Place, query: &str) -> String {
    call(place, "memory_recall", &json!({ "query": query })).to_string()
}

fn waiting(place: &Place) -> Vec<Value> {
    let listed = place.good(&["--json", "omi", "pending", "list"]);
    let all = serde_json::Deserializer::from_str(&listed).into_iter();
    all.map(Result::unwrap).collect()
}

fn confirm(place: &Place, id: &str) -> String {
    if !place.good(&["agent-key", "list"]).contains("reviewer") {
        place.good(&["agent-key", "new", "reviewer"]);
    }
    place.good(&["omi", "pending", "confirm", id, "--agent", "reviewer"])
}

#[test]
fn a_foundational_memory_of_a_peer_waits_and_what_would_replace_it_too() {
    for is_laptop_strict in [true, false] {
        let two = two(is_laptop_strict);
        let (strict, other) = (two.strict(), two.other());
        store(other, "the office plant is a fern", &[]);
        let old = store(
            other,
            "never deploy on Fridays",
            &["--tags", "#Foundational"],
        );
        sync(&two.laptop);
        assert!(recalls(strict, "office plant").contains("fern"));
        assert!(!recalls(strict, "deploy Fridays").contains("never deploy"));
        let waits = waiting(strict);
        assert_eq!(waits.len(), 1, "{waits:?}");
        assert_eq!(
            waits[0]["memories"][0]["content"],
            "never deploy on Fridays"
        );
        assert_eq!(waits[0]["event"].as_str().unwrap().len(), 64);
        assert!(waiting(other).is_empty(), "it is stored there");

        let confirmed = confirm(strict, waits[0]["id"].as_str().unwrap());
        assert!(confirmed.contains(&old), "it keeps its id: {confirmed}");
        assert!(recalls(strict, "deploy Fridays").contains("never deploy"));
        // The confirmation goes back.
        agree(&two);

        // A successor does not go round it, and what was rejected does not come again.
        store(other, "deploy whenever you like", &["--supersedes", &old]);
        sync(&two.laptop);
        assert!(recalls(strict, "deploy").contains("never deploy"));
        let waits = waiting(strict);
        assert_eq!(waits.len(), 1, "{waits:?}");
        strict.good(&["omi", "pending", "reject", waits[0]["id"].as_str().unwrap()]);
        let peers: Value =
            serde_json::from_str(&two.laptop.good(&["peer", "list", "--json"])).unwrap();
        let (url, did) = (&peers[0]["endpoint"], &peers[0]["did"]);
        let (url, did) = (url.as_str().unwrap(), did.as_str().unwrap());
        two.laptop.good(&["peer", "add", url, "--did", did]);
        sync(&two.laptop);
        assert!(waiting(strict).is_empty());
        assert!(recalls(strict, "deploy").contains("never deploy"));
        root(strict);
    }
}

#[test]
fn what_one_node_proposes_and_another_confirms_has_its_two_keys() {
    for is_laptop_strict in [true, false] {
        let two = two(is_laptop_strict);
        let (strict, other) = (two.strict(), two.other());
        let id = store(
            strict,
            "never deploy on Fridays",
            &["--tags", "foundational"],
        );
        assert!(id.starts_with("pending_"), "{id}");
        sync(&two.laptop);
        confirm(other, &id);
        sync(&two.laptop);
        assert!(recalls(strict, "deploy Fridays").contains("never deploy"));
        assert!(waiting(strict).is_empty() && waiting(other).is_empty());
        agree(&two);
    }
}
