//! `config.yaml` in its place.

use super::*;
use kenning_core::Code;
use std::os::unix::fs::PermissionsExt;

#[test]
fn what_is_set_holds_and_the_rest_of_the_file_stays() {
    let place = Place::new();
    let get = |key| place.engine.omi().config_get(&owner(), key).unwrap();
    let set = |key, value| place.engine.omi().config_set(&owner(), key, value);
    assert_eq!(get("storage.max_now_tokens"), 1_000);
    assert!(!place.omi().exists(), "asking makes nothing");
    set("storage.max_now_tokens", "50").unwrap();
    place.put(
        "config.yaml",
        &format!("# mine\n{}", place.file("config.yaml")),
    );
    set("vault.enabled", "false").unwrap();
    assert_eq!(
        place.file("config.yaml"),
        "# mine\nstorage:\n  max_now_tokens: 50\n\nvault:\n  enabled: false\n"
    );
    assert_eq!(
        (get("storage.max_now_tokens"), get("vault.enabled")),
        (50.into(), false.into())
    );
    assert_eq!(place.events(), ["ConfigChanged", "ConfigChanged"]);
    for n in 0..9 {
        place.update("task", &[&format!("a completion that has some length {n}")]);
    }
    assert!(place.now().tokens() <= 50, "it is heard at once");
    assert!(place.is_clean());
}

#[test]
fn a_key_in_the_file_is_its_owners_alone() {
    let place = Place::new();
    let set = |key, value| place.engine.omi().config_set(&owner(), key, value).unwrap();
    set("embedding.provider", "openai");
    set("embedding.api_key", "sk-secret");
    let mode = std::fs::metadata(place.omi().join("config.yaml"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let events = place.engine.events_after(&owner(), 0, 9).unwrap();
    let told = [
        events
            .iter()
            .map(|it| it.json.to_string())
            .collect::<String>(),
        place.engine.omi().config_show(&owner()).unwrap(),
        place
            .engine
            .omi()
            .config_get(&owner(), "embedding.api_key")
            .unwrap()
            .to_string(),
    ];
    for text in told {
        assert!(!text.contains("sk-secret"), "{text}");
    }
}

#[test]
fn a_setting_that_is_refused_changes_nothing() {
    let place = Place::new();
    for (caller, key, code) in [
        (owner(), "vault.enable", Code::InvalidInput),
        (only(Scope::Write), "vault.enabled", Code::Denied),
    ] {
        let error = place
            .engine
            .omi()
            .config_set(&caller, key, "true")
            .unwrap_err();
        assert_eq!(error.code, code, "{error}");
    }
    assert!(!place.omi().join("config.yaml").exists());
    assert_eq!(place.events(), [""; 0]);
}
