//! The file of the contract, and everything that a person may get wrong in it.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// The file of the contract.
const CONTRACT: &str = "\
embedding:
  provider: nim  # or 'ollama'
  model: baai/bge-m3  # or 'nomic-embed-text' for ollama
  dimensions: 1024  # or 768 for ollama
  api_key: ${NIM_API_KEY}

storage:
  max_now_tokens: 1000
  recency_half_life_days: 30

vault:
  enabled: true
  provider: local  # or 'r2'
  retention_days: 90

security:
  enable_consensus: false
  integrity_check_on_start: true
";

#[test]
fn the_file_of_the_contract_means_what_it_says() {
    let config = Config::parse(CONTRACT).unwrap();
    assert_eq!(config.embedding.provider, Provider::Nim);
    assert_eq!(config.embedding.dimensions, Some(1_024));
    let lookup = |name: &str| Some(format!("value of {name}"));
    let expand = |it: &Option<Text>| it.as_ref().unwrap().expand(&lookup).unwrap();
    assert_eq!(expand(&config.embedding.model), "baai/bge-m3");
    assert_eq!(expand(&config.embedding.api_key), "value of NIM_API_KEY");
    // Everything else in it is the default.
    let defaults = Config::default();
    assert_eq!(
        Config {
            embedding: defaults.embedding.clone(),
            ..config
        },
        defaults
    );
}

#[test]
fn without_a_file_everything_is_offline_and_as_documented() {
    for text in [
        "",
        "# nothing yet\n",
        "storage:\n",
        "embedding:\n  provider:\n",
        "---\n",
    ] {
        assert_eq!(Config::parse(text).unwrap(), Config::default(), "{text:?}");
    }
    let config = Config::default();
    assert_eq!(config.embedding.provider, Provider::Builtin);
    assert_eq!((config.max_now_tokens, config.recency_days), (1_000, 30.0));
    assert_eq!(config.thresholds, Thresholds::default());
    assert!(config.vault.enabled && config.integrity_check_on_start);
    assert_eq!(config.vault.place, BackupPlace::Local);
    assert_eq!(config.vault.retention_days, 90);
    assert!(config.webhooks.is_empty());
}

#[test]
fn every_default_of_the_table_may_stand_in_the_file() {
    for key in KEYS {
        assert!(!key.doc.is_empty(), "{}", key.name);
        if !key.default.is_empty() {
            let text = set("", key.name, key.default).unwrap();
            assert_eq!(Config::parse(&text).unwrap(), Config::default(), "{text}");
        }
    }
}

#[test]
fn providers_have_names_and_models() {
    for name in keys::PROVIDERS {
        assert_eq!(Provider::from_name(name).unwrap().as_str(), *name);
    }
    assert_eq!(
        Provider::Ollama.default_model(),
        Some(("nomic-embed-text", 768))
    );
    assert_eq!(Provider::Nim.default_model(), Some(("baai/bge-m3", 1_024)));
}

#[test]
fn what_cannot_be_meant_is_refused_with_key_value_and_remedy() {
    for (text, message, hint) in [
        (
            "embeding:\n  provider: nim",
            "config.yaml has no key `embeding`",
            "`embedding`",
        ),
        (
            "storage:\n  max_now_token: 5",
            "config.yaml has no key `storage.max_now_token`",
            "`storage.max_now_tokens`",
        ),
        (
            "vault:\n  retention: 5",
            "config.yaml has no key `vault.retention`",
            "`vault.retention_days`",
        ),
        (
            "vault:\n  retention_days: often",
            "config.yaml: `vault.retention_days`: `often` is not a whole number from 1 to 36500",
            "the default is `90`",
        ),
        (
            "vault:\n  retention_days: 0",
            "config.yaml: `vault.retention_days`: `0` is not a whole number from 1 to 36500",
            "the default is `90`",
        ),
        (
            "vault:\n  enabled: 'true'",
            "config.yaml: `vault.enabled`: `true` is not `true` or `false`",
            "the default is `true`",
        ),
        (
            "vault:\n  enabled: yes",
            "config.yaml: `vault.enabled`: `yes` is not `true` or `false`",
            "the default is `true`",
        ),
        (
            "storage:\n  recency_half_life_days: -1",
            "config.yaml: `storage.recency_half_life_days`: `-1` is not a number greater than 0",
            "the default is `30`",
        ),
        (
            "embedding:\n  provider: bert",
            "config.yaml: `embedding.provider`: `bert` is not one of builtin, local, nim, ollama, openai",
            "the default is `builtin`",
        ),
        (
            "embedding:\n  provider: ollama\n  model: 3",
            "config.yaml: `embedding.model`: `3` is not a string",
            "put it in quotes",
        ),
        (
            "embedding:\n  provider: nim\n  api_key: 12345",
            "config.yaml: `embedding.api_key`: the value is not a string",
            "put it in quotes",
        ),
        (
            "embedding:\n  model: baai/bge-m3",
            "config.yaml: `embedding.model` has no effect while `embedding.provider` is `builtin`",
            "first",
        ),
        (
            "vault:\n  bucket: b",
            "config.yaml: `vault.bucket` has no effect while `vault.provider` is `local`",
            "r2",
        ),
        (
            "storage: 5",
            "config.yaml: `storage` is not a mapping",
            "indented",
        ),
        ("- a", "config.yaml is not a mapping", "sections"),
        (
            "storage:\n  max_now_tokens: 1\n  max_now_tokens: 2",
            "config.yaml is not valid YAML in line 3, column 3",
            "once",
        ),
        (
            "events:\n  webhooks: [{ url: 'http://a', method: GET }]",
            "config.yaml: `events.webhooks[0].method` is not known",
            "`headers`",
        ),
        (
            "events:\n  webhooks: [5]",
            "config.yaml: `events.webhooks[0]` is not a URL",
            "url",
        ),
    ] {
        let error = Config::parse(text).unwrap_err();
        assert_eq!(error.message, message);
        let got = error.hint.unwrap_or_default();
        assert!(got.contains(hint), "{message}: {got}");
    }
}

#[test]
fn a_bucket_is_named_key_by_key() {
    let mut text = String::new();
    for (key, value) in [
        ("vault.provider", "r2"),
        ("vault.endpoint", "https://example.com"),
        ("vault.bucket", "backups"),
        ("vault.secret_access_key", "${R2_SECRET}"),
    ] {
        text = set(&text, key, value).unwrap();
    }
    let BackupPlace::Bucket(bucket) = Config::parse(&text).unwrap().vault.place else {
        panic!("{text}");
    };
    let expected = Text::new("vault.bucket", "backups", false);
    assert_eq!(bucket.bucket, Some(expected));
    assert_eq!(bucket.region, None);
    let message = missing("vault.region").message;
    assert_eq!(message, "config.yaml: `vault.region` is not set");
}

#[test]
fn a_secret_is_in_no_message_and_in_no_answer() {
    let text = "embedding:\n  provider: openai\n  api_key: sk-secret\n  dimensions: 'x\n";
    assert!(!format!("{:?}", Config::parse(text).unwrap_err()).contains("sk-secret"));
    let text = "\
embedding: { provider: openai, api_key: sk-secret }
events:
  webhooks:
    - url: https://example.com
      headers: { Authorization: Bearer sk-secret, X-Key: '${KEY}' }
      events: [MemoryStored]
    - https://example.org
";
    let config = Config::parse(text).unwrap();
    let shown = [
        format!("{config:?}"),
        show(text).unwrap(),
        get(text, "embedding.api_key").unwrap().to_string(),
        get(text, "events.webhooks").unwrap().to_string(),
    ];
    for shown in &shown {
        assert!(!shown.contains("sk-secret"), "{shown}");
        assert!(shown.contains("********"), "{shown}");
    }
    assert!(shown[1].contains("${KEY}"), "{}", shown[1]);
    assert_eq!(config.webhooks[0].events, ["MemoryStored"]);
    assert_eq!(
        config.webhooks[1].url,
        Text::new("events.webhooks[1]", "https://example.org", false)
    );
}

#[test]
fn setting_a_key_changes_its_line_and_no_other() {
    for (key, value, before, after) in [
        (
            "vault.enabled",
            "false",
            "  enabled: true",
            "  enabled: false",
        ),
        (
            "embedding.provider",
            "ollama",
            "  provider: nim  # or 'ollama'",
            "  provider: ollama  # or 'ollama'",
        ),
        (
            "embedding.dimensions",
            "768",
            "  dimensions: 1024  # or 768 for ollama",
            "  dimensions: 768  # or 768 for ollama",
        ),
        (
            "embedding.api_key",
            "sk-1 #2",
            "  api_key: ${NIM_API_KEY}",
            "  api_key: \"sk-1 #2\"",
        ),
        (
            "embedding.model",
            "3",
            "  model: baai/bge-m3  # or 'nomic-embed-text' for ollama",
            "  model: \"3\"  # or 'nomic-embed-text' for ollama",
        ),
        (
            "storage.recency_half_life_days",
            "7.5",
            "  recency_half_life_days: 30",
            "  recency_half_life_days: 7.5",
        ),
    ] {
        let expected = CONTRACT.replacen(before, after, 1);
        assert_ne!(expected, CONTRACT);
        assert_eq!(set(CONTRACT, key, value).unwrap(), expected);
        let windows = CONTRACT.replace('\n', "\r\n");
        assert_eq!(
            set(&windows, key, value).unwrap(),
            expected.replace('\n', "\r\n")
        );
    }
}

#[test]
fn a_key_that_is_not_there_is_added_where_it_belongs() {
    let text = "# mine\nstorage:\n    max_now_tokens: 5 # few\n\n# next\nvault:\n";
    let text = set(text, "storage.recency_half_life_days", "9").unwrap();
    let text = set(&text, "vault.retention_days", "9").unwrap();
    let text = set(&text, "events.webhooks", "[https://example.com]").unwrap();
    assert_eq!(
        text,
        "# mine\nstorage:\n    max_now_tokens: 5 # few\n    recency_half_life_days: 9\n\n\
         # next\nvault:\n  retention_days: 9\n\n\
         events:\n  webhooks: [\"https://example.com\"]\n"
    );
}

#[test]
fn a_value_of_several_lines_is_replaced_as_a_whole() {
    let list = "events:\n  webhooks:\n  - http://a\n  - url: http://b\n    events: [X]\n# end\n";
    assert_eq!(
        set(list, "events.webhooks", "[]").unwrap(),
        "events:\n  webhooks: []\n# end\n"
    );
    let folded = "embedding:\n  provider: nim\n  model: >-\n    baai/\n\n    bge-m3\n";
    let error = set(folded, "embedding.model", "x").unwrap_err();
    assert_eq!(error.code, kenning_core::Code::Conflict);
}

#[test]
fn a_file_that_cannot_be_changed_line_by_line_is_left_alone() {
    for text in [
        "storage: { max_now_tokens: 5 }\n",
        "storage:\n  'max_now_tokens': 5\n",
        "\"storage\":\n  max_now_tokens: 5\n",
    ] {
        let error = set(text, "storage.max_now_tokens", "6").unwrap_err();
        assert_eq!(error.code, kenning_core::Code::Conflict, "{text}");
    }
}

#[test]
fn what_may_not_stand_in_the_file_cannot_be_set() {
    for (key, value, message) in [
        ("vault.enabled", "maybe", "`maybe` is not `true` or `false`"),
        ("vault.enable", "true", "no key `vault.enable`"),
        ("vault.bucket", "b", "has no effect"),
        ("storage.max_now_tokens", "'5'", "is not a whole number"),
    ] {
        let error = set(CONTRACT, key, value).unwrap_err();
        assert!(error.message.contains(message), "{}", error.message);
    }
}

#[test]
fn getting_gives_what_holds() {
    for (key, expected) in [
        ("embedding.provider", json!("nim")),
        ("embedding.api_key", json!("${NIM_API_KEY}")),
        ("embedding.endpoint", json!(null)),
        ("vault.enabled", json!(true)),
        ("security.burst_edges", json!(20)),
    ] {
        assert_eq!(get(CONTRACT, key).unwrap(), expected, "{key}");
    }
    assert!(get(CONTRACT, "vault").is_err());
    let shown = show(CONTRACT).unwrap();
    assert!(shown.contains("  provider: nim\n"), "{shown}");
    assert!(shown.contains("  burst_edges: 20  # default\n"), "{shown}");
    assert_eq!(
        Config::parse(&shown).unwrap(),
        Config::parse(CONTRACT).unwrap()
    );
}

proptest! {
    #[test]
    fn any_text_that_is_set_is_what_is_got(value in "[^\\s${}]([ -~é]{0,20}[^\\s])?") {
        if let Ok(text) = set(CONTRACT, "embedding.model", &value) {
            let got = get(&text, "embedding.model").unwrap();
            // A quoted value is the text in the quotes, and an empty one is empty.
            let typed = read_yaml(&value).ok().filter(|it| it.is_null() || value.starts_with(['"', '\'']));
            prop_assert_eq!(got, typed.unwrap_or(Value::from(value)));
        }
    }

    #[test]
    fn no_file_breaks_the_reader(text in "(?s).{0,200}", yaml in "([a-z]{1,9}:|[ \n]|- |\\{|'|\\*x|&x|[0-9]){0,40}") {
        let _ = Config::parse(&text);
        let _ = set(&yaml, "vault.enabled", "true");
    }
}
