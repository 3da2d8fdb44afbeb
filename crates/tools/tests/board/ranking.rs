//! What comes first: relevance before age, names before meanings, and nothing for prompts that ask for
//! nothing.

use kenning_testing::Fixture;
use serde_json::{Value, json};
use std::fs;

const DAY_MS: u64 = 86_400_000;

fn answer(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

fn store(fixture: &Fixture, arguments: Value) -> String {
    let stored = answer(fixture, "memory_store", arguments);
    stored["memory_id"].as_str().unwrap().to_owned()
}

fn recall(fixture: &Fixture, arguments: Value) -> Vec<Value> {
    let found = answer(fixture, "memory_recall", arguments);
    found.as_array().unwrap().clone()
}

const SERVICES: [&str; 5] = ["billing", "search", "mail", "login", "upload"];
const FACTS: [(&str, &str); 6] = [
    (
        "listens on port",
        "which port does the {} service listen on",
    ),
    (
        "is deployed every Tuesday after",
        "when is the {} service deployed",
    ),
    (
        "keeps its logs for days:",
        "for how long are logs of the {} service kept",
    ),
    (
        "is owned by the team of Marta, room",
        "who owns the {} service",
    ),
    (
        "gives up a request after seconds:",
        "when does the {} service give up a request",
    ),
    (
        "writes its files to bucket",
        "where does the {} service write its files",
    ),
];

/// One memory for each fact of each service, over 90 days, the first ones the oldest.
fn team(fixture: &Fixture) {
    let n = SERVICES.len() * FACTS.len();
    for i in 0..n {
        let (service, fact) = (SERVICES[i % SERVICES.len()], FACTS[i / SERVICES.len()].0);
        store(
            fixture,
            json!({ "content": format!("The {service} service {fact} {i}."), "memory_id": format!("m{i}") }),
        );
        fixture.clock.advance(90 * DAY_MS / n as u64);
    }
}

/// How many of the questions have the right memory first.
fn right_ones(fixture: &Fixture, extra: &Value) -> usize {
    let mut right = 0;
    for (i, (_, question)) in FACTS.iter().enumerate() {
        for (k, service) in SERVICES.iter().enumerate() {
            let mut arguments = json!({ "query": question.replace("{}", service) });
            for (name, value) in extra.as_object().unwrap() {
                arguments[name.as_str()] = value.clone();
            }
            let found = recall(fixture, arguments);
            let wanted = json!(format!("m{}", i * SERVICES.len() + k));
            right += usize::from(found.first().is_some_and(|it| it["memory_id"] == wanted));
        }
    }
    right
}

#[test]
fn the_right_memory_is_first_however_old_it_is() {
    let fixture = Fixture::new();
    team(&fixture);
    let by_relevance = right_ones(&fixture, &json!({ "sort": "relevance" }));
    assert_eq!(by_relevance, 30, "by relevance");
    // By the contract's formula a newer memory that says nearly the same may come first.
    let by_formula = right_ones(&fixture, &json!({}));
    assert!(by_formula >= 24, "by the formula: {by_formula} of 30");
}

#[test]
fn relevance_spreads_instead_of_being_flat_near_one() {
    let fixture = Fixture::new();
    team(&fixture);
    let found = recall(
        &fixture,
        json!({ "query": "which port does the billing service listen on" }),
    );
    let relevance: Vec<f64> = found
        .iter()
        .map(|it| it["relevance"].as_f64().unwrap())
        .collect();
    let high = relevance.iter().filter(|it| **it > 0.95).count();
    assert!(high <= 2, "{relevance:?}");
}

#[test]
fn prompts_that_ask_for_nothing_find_nothing() {
    let fixture = Fixture::new();
    team(&fixture);
    for text in [
        "The tests are run again every night, no matter what.",
        "Thanks to Ann the cache is warm.",
        "Go on with the migration on Friday.",
    ] {
        store(&fixture, json!({ "content": text }));
    }
    for prompt in [
        "no",
        "run it again",
        "thanks",
        "go on",
        "ok, do it",
        "yes please",
        "weiter",
        "merci beaucoup",
        "?",
    ] {
        let found = recall(&fixture, json!({ "query": prompt }));
        assert!(found.is_empty(), "{prompt}: {found:?}");
    }
    let found = recall(&fixture, json!({ "query": "who warmed the cache?" }));
    assert!(!found.is_empty());
}

#[test]
fn questions_in_other_scripts_are_answered_only_where_their_words_are() {
    let fixture = Fixture::new();
    for text in [
        "定例会議は毎週火曜日の午前十時に行います。",
        "大阪支店の担当者は田中さんです。",
        "회의록은 위키에 있습니다.",
        "Сервер обновляют по вторникам.",
    ] {
        store(&fixture, json!({ "content": text }));
    }
    for (question, wanted) in [
        ("会議はいつですか", Some("定例会議")),
        ("회의록은 어디에 있나요", Some("회의록")),
        ("когда обновление сервера", Some("Сервер")),
        ("富士山の高さは何メートルですか", None),
        ("김치찌개는 어떻게 만드나요", None),
        ("как сварить борщ", None),
    ] {
        let found = recall(&fixture, json!({ "query": question }));
        let first = found.first().map(|it| it["content"].as_str().unwrap());
        match wanted {
            Some(wanted) => assert!(
                first.is_some_and(|it| it.starts_with(wanted)),
                "{question}: {first:?}"
            ),
            None => assert_eq!(first, None, "{question}"),
        }
    }
}

#[test]
fn a_rare_identifier_is_found_whatever_is_said_around_it() {
    let fixture = Fixture::new();
    team(&fixture);
    for (id, text) in [
        (
            "a",
            "OPS-777: the certificate of the gateway expires in May.",
        ),
        ("b", "OPS-7777: no toner in the printer."),
        ("c", "ERR_CONN_4012 means that the pool is exhausted."),
    ] {
        store(&fixture, json!({ "content": text, "memory_id": id }));
    }
    let log = "INFO started worker 3\nINFO listening\n".repeat(10);
    for (prompt, wanted) in [
        ("@src/main.rs fix OPS-777 please", &["a"][..]),
        (
            "what is the difference between OPS-777 and OPS-7777?",
            &["a", "b"],
        ),
        (
            &format!(
                "Here is the log, please tell me what is wrong:\n{log}ERROR ERR_CONN_4012 refused"
            ),
            &["c"],
        ),
    ] {
        let found = recall(&fixture, json!({ "query": prompt, "sort": "relevance" }));
        let ids: Vec<&str> = found
            .iter()
            .map(|it| it["memory_id"].as_str().unwrap())
            .collect();
        for id in wanted {
            assert!(ids.contains(id), "{prompt}: {ids:?}");
        }
    }
    let found = recall(&fixture, json!({ "query": "a, b c" }));
    let ids: Vec<&str> = found
        .iter()
        .map(|it| it["memory_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["a", "b", "c"], "a query may be ids");
}

#[test]
fn memories_of_a_session_give_one_another_context() {
    let fixture = Fixture::new();
    let talk = [
        "Did the supplier answer about the pallets?",
        "Yes, on Thursday: they come in two weeks.",
        "Good. Who books the lorry?",
        "Marta does, as always.",
    ];
    for text in talk {
        store(&fixture, json!({ "content": text, "session_id": "monday" }));
        fixture.clock.advance(1_000);
    }
    store(
        &fixture,
        json!({ "content": "The canteen has a new menu.", "session_id": "tuesday" }),
    );
    store(&fixture, json!({ "content": "Ring them two days ahead." }));
    let contents = |found: &[Value]| -> Vec<String> {
        let texts = found
            .iter()
            .map(|it| it["content"].as_str().unwrap().to_owned());
        texts.collect()
    };
    let found = recall(&fixture, json!({ "query": "when do the pallets come" }));
    assert_eq!(
        contents(&found),
        talk[..2],
        "a reply is about what was asked"
    );
    assert!(found[0].get("context").is_none());

    let found = recall(
        &fixture,
        json!({ "query": "who books the lorry", "context": 1, "limit": 1 }),
    );
    assert_eq!(contents(&found), [talk[2]]);
    let near = found[0]["context"].as_array().unwrap();
    assert_eq!(contents(near), [talk[1], talk[3]]);
    assert_eq!(
        (&near[0]["offset"], &near[1]["offset"]),
        (&json!(-1), &json!(1))
    );

    let found = recall(
        &fixture,
        json!({ "query": "new menu of the canteen", "context": 3 }),
    );
    assert!(
        found[0].get("context").is_none(),
        "nobody else is of that session"
    );
    let refused = fixture.call(
        "memory_store",
        json!({ "content": "x", "session_id": "a b" }),
    );
    assert!(
        refused.is_error() && refused.text.contains("session_id"),
        "{}",
        refused.text
    );
}

#[test]
fn the_session_of_a_connection_is_the_default_and_a_batch_has_none() {
    let fixture = Fixture::new();
    let mut caller = fixture.owner();
    caller.session = Some("connection".into());
    for text in ["Is the harbor closed?", "It opens at nine."] {
        let reply = fixture
            .board
            .call("memory_store", json!({ "content": text }), &caller);
        assert!(!reply.unwrap().is_error());
        fixture.clock.advance(1_000);
    }
    let found = recall(&fixture, json!({ "query": "harbor closed", "context": 1 }));
    assert_eq!(found[0]["context"][0]["content"], "It opens at nine.");
    let fixture = crate::everything(&Fixture::new());
    let memories =
        json!([{ "content": "Is the harbor closed?" }, { "content": "It opens at nine." }]);
    let reply = fixture.board.call(
        "memory_store_batch",
        json!({ "memories": memories }),
        &caller,
    );
    assert!(!reply.unwrap().is_error());
    let found = recall(&fixture, json!({ "query": "harbor closed", "context": 1 }));
    assert!(found[0].get("context").is_none(), "{found:?}");
}

#[test]
fn exact_titles_and_aliases_come_first() {
    let fixture = Fixture::new();
    let notes = [
        (
            "Organizations/Sound Water Keepers.md",
            "---\naliases: [SWK]\n---\nThey look after the inlet.\n",
        ),
        (
            "People/Swika Karlsen.md",
            "Swika works with SWK and for SWK, and writes about SWK and water.\n",
        ),
        (
            "Notes/Water.md",
            "Water keepers keep water. The sound keeps water, says SWK. Water, water.\n",
        ),
        ("Meetings/2026-02-03 Kickoff.md", "We began.\n"),
        (
            "Meetings/2026-03-01 Review.md",
            "Kickoff of the review of the kickoff, 2026-02-03.\n",
        ),
    ];
    for (name, text) in notes {
        let path = fixture.vault().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for (query, rid) in [
        ("SWK", "vault:Organizations/Sound Water Keepers.md"),
        ("swk", "vault:Organizations/Sound Water Keepers.md"),
        (
            "sound water keepers",
            "vault:Organizations/Sound Water Keepers.md",
        ),
        ("2026-02-03 Kickoff", "vault:Meetings/2026-02-03 Kickoff.md"),
    ] {
        let found = answer(&fixture, "knowledge_search", json!({ "query": query }));
        let first = &found["results"][0];
        assert_eq!(first["rid"], json!(rid), "{query}: {found}");
        assert_eq!(first["similarity"], json!(1.0), "{query}");
        let title = rid.rsplit('/').next().unwrap().trim_end_matches(".md");
        assert_eq!(first["title"], title, "as the file is called");
    }
    let found = answer(&fixture, "koi_search", json!({ "query": "SWK" }));
    assert_eq!(
        found["results"][0]["name"], "Sound Water Keepers",
        "{found}"
    );
}

#[test]
fn an_entity_is_found_by_what_its_note_tells() {
    let fixture = Fixture::new();
    for (name, text) in [
        (
            "People/Ana Ruiz.md",
            "Marine biologist. She researches seagrass meadows and their carbon.\n",
        ),
        (
            "People/Tom Berg.md",
            "Repairs bicycles and plays the tuba.\n",
        ),
        ("Notes/Seagrass.md", "Seagrass is a plant.\n"),
    ] {
        let path = fixture.vault().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let query = "person who researches seagrass";
    for arguments in [
        json!({ "query": query }),
        json!({ "query": query, "type_filter": "Person" }),
    ] {
        let found = answer(&fixture, "koi_search", arguments);
        assert_eq!(found["results"][0]["name"], "Ana Ruiz", "{found}");
        assert_eq!(found["search_method"], "semantic");
    }
}

#[test]
fn what_has_no_word_of_the_question_was_not_found_by_its_words() {
    let fixture = Fixture::new();
    let path = fixture.vault().join("Notes/Drowsy.md");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "Snooze the alarm and nap.\n").unwrap();
    for query in ["snoozing", "slumbery", "alarm"] {
        let found = answer(&fixture, "knowledge_search", json!({ "query": query }));
        let words = kenning_search_words(query);
        for hit in found["results"].as_array().unwrap() {
            let text = hit["content_preview"].as_str().unwrap().to_lowercase();
            if !words.iter().any(|word| text.contains(word.as_str())) {
                assert_eq!(found["search_type"], "semantic", "{query}: {found}");
            }
        }
    }
}

/// The first letters of each word: what its forms have in common.
fn kenning_search_words(query: &str) -> Vec<String> {
    let words = query.split_whitespace();
    words.map(|word| word.chars().take(5).collect()).collect()
}

#[test]
fn a_name_is_found_however_its_umlauts_are_written_and_a_german_verb_by_the_word_it_is_made_of() {
    let fixture = Fixture::new();
    for (id, content) in [
        ("krüger", "Frau Krüger leitet den Einkauf seit dem Sommer."),
        (
            "mueller",
            "Herr Mueller repairs the mill when the wheel is stuck.",
        ),
        (
            "deploy",
            "We deploy to production every Tuesday after the standup.",
        ),
        ("lunch", "Lunch is served at noon in the small kitchen."),
        ("port", "The billing service listens on port 8443."),
    ] {
        store(&fixture, json!({ "content": content, "memory_id": id }));
    }
    for (query, expected) in [
        ("Krueger", "krüger"),
        ("Krüger", "krüger"),
        ("Müller", "mueller"),
        ("Mueller", "mueller"),
        ("Wann deployen wir?", "deploy"),
    ] {
        let found = recall(&fixture, json!({ "query": query }));
        let first = found.first().map(|it| &it["memory_id"]);
        assert_eq!(first, Some(&json!(expected)), "{query}: {found:#?}");
    }
}

#[test]
fn names_numbers_and_identifiers_in_a_german_question_are_found_among_english_memories() {
    let fixture = Fixture::new();
    for (id, content) in [
        (
            "ops",
            "Ticket OPS-778: the cache was cold after the failover",
        ),
        ("error", "Error E1042 means the license has expired"),
        (
            "base",
            "The production database runs PostgreSQL 16 on db-prod-3",
        ),
        ("bill", "Invoice 2024-0815 from Acme GmbH is still unpaid"),
        ("baue", "Bill Baue prefers meetings after 10am"),
        ("office", "The office in Leipzig closes on Fridays"),
        ("parse", "parseHeader() fails on empty input"),
        (
            "key",
            "The API key rotates every 90 days; the script is rotate_keys.sh",
        ),
        ("lunch", "Lunch is at noon in the canteen"),
    ] {
        store(&fixture, json!({ "content": content, "memory_id": id }));
    }
    for (query, expected) in [
        ("Wann ist OPS-778 passiert?", "ops"),
        ("Was bedeutet der Fehler E1042?", "error"),
        ("Welche Version von PostgreSQL läuft auf db-prod-3?", "base"),
        ("Ist die Rechnung 2024-0815 bezahlt?", "bill"),
        ("Wann hat Bill Baue Zeit?", "baue"),
        ("Wann schließt das Büro in Leipzig?", "office"),
        ("Warum schlägt parseHeader fehl?", "parse"),
    ] {
        let found = recall(&fixture, json!({ "query": query }));
        let first = found.first().map(|it| &it["memory_id"]);
        assert_eq!(first, Some(&json!(expected)), "{query}: {found:#?}");
    }
    // A question of which nothing stands anywhere finds nothing.
    let found = recall(
        &fixture,
        json!({ "query": "Wie wird das Wetter am Wochenende?" }),
    );
    assert!(found.is_empty(), "{found:#?}");
    // Where somebody writes German, its words count as any others do.
    store(
        &fixture,
        json!({ "content": "Die Kantine ist am Freitag geschlossen, das Büro nicht", "memory_id": "kantine" }),
    );
    let found = recall(
        &fixture,
        json!({ "query": "Wann ist die Kantine geschlossen?" }),
    );
    assert_eq!(found[0]["memory_id"], "kantine", "{found:#?}");
}

#[test]
fn by_relevance_the_numbers_that_are_shown_fall() {
    let fixture = Fixture::new();
    for i in 0..40 {
        let more = ["the mill", "the old mill by the river", "grain", "a wheel"][i % 4];
        let content = format!("Note {i}: {more} grinds grain number {}", i * 7 % 11);
        store(&fixture, json!({ "content": content }));
    }
    let asked = json!({ "query": "which mill grinds grain", "sort": "relevance", "min_relevance": 0, "limit": 40 });
    let found = recall(&fixture, asked);
    let shown: Vec<f64> = found
        .iter()
        .map(|it| it["relevance"].as_f64().unwrap())
        .collect();
    assert!(shown.len() > 10, "{shown:?}");
    assert!(shown.is_sorted_by(|a, b| a >= b), "{shown:?}");
}
