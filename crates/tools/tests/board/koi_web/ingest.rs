//! Ingestion: outcomes part by part, notes that never replace another's, and nothing half-done.

use super::server::{Answer, Site};
use super::*;
use kenning_core::{Kind, Space};
use kenning_engine::koi::PageEvaluation;
use kenning_store::{EdgeFilter, NodeFilter, When};

const BILL: &str = "orn:personal-koi.entity:person-bill-baue-376ffc2e6245";
const R3: &str = "orn:personal-koi.entity:organization-r3.0-f7b3cca66645";

#[test]
fn web_ingestion_is_as_it_was_recorded() {
    let site = Site::start();
    site.put("/page.html", Answer::html(herring()));
    let fixture = fixture(&site);
    let url = site.url("/page.html");
    let line = recorded("ingest before preview");
    let (status, found) = asked(&fixture, "ingest", json!({ "url": url }));
    assert_eq!(
        (json!(status), &found),
        (line["status"].clone(), &line["response"])
    );
    previewed(&fixture, &url);

    let line = recorded("web ingest");
    let (expected, mut body) = (&line["response"], line["body"].clone());
    body["url"] = url.clone().into();
    let (status, found) = asked(&fixture, "ingest", body);
    assert_eq!(status, 200, "{found}");
    for field in ["success", "vault_note_path", "entities_resolved"] {
        assert_eq!(found[field], expected[field], "{field}");
    }
    assert_eq!(
        found["document_rid"],
        format!("web:{}", found["rid"].as_str().unwrap())
    );
    // The first two as recorded; a type that nobody knows is a concept, and said to be.
    for n in 0..2 {
        assert_eq!(found["entities"][n], expected["entities"][n]);
    }
    let odd = &found["entities"][2];
    assert_eq!(
        (&odd["name"], &odd["type"]),
        (&json!("Thing"), &json!("Concept"))
    );
    assert!(odd["warning"].as_str().unwrap().contains("Weird"), "{odd}");
    let said: Vec<(&Value, &Value)> = found["relationships"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["status"], &it["reason"]))
        .collect();
    assert_eq!(said.len(), 2);
    // Who collaborates is a person, and nobody is called Nobody.
    for (status, reason) in said {
        assert_eq!(status, "rejected");
        assert!(reason.as_str().unwrap().contains("object"), "{reason}");
    }

    let line = recorded("web ingest again");
    let (status, again) = asked(&fixture, "ingest", json!({ "url": url }));
    assert_eq!(status, 200);
    for field in ["already_ingested", "vault_note_path", "message"] {
        assert_eq!(again[field], line["response"][field]);
    }
    let line = recorded("preview after ingest");
    let (status, again) = asked(&fixture, "preview", json!({ "url": url }));
    assert_eq!((status, &again["rid"]), (200, &found["rid"]));
    for field in ["already_ingested", "submission_id", "title", "message"] {
        assert_eq!(again[field], line["response"][field]);
    }
    assert_eq!(again.as_object().unwrap().len(), 5);
    assert_eq!(site.n_seen(), 1, "an ingested page is not fetched again");

    let documents = done(
        &fixture,
        "get_entity_documents",
        json!({ "entity_uri": BILL }),
    );
    let rids: Vec<&str> = documents["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["document_rid"].as_str().unwrap())
        .collect();
    let page = found["document_rid"].as_str().unwrap();
    assert_eq!(rids.iter().filter(|it| **it == page).count(), 1, "{rids:?}");
    let row = documents["documents"].as_array().unwrap().iter();
    let row = row
        .into_iter()
        .find(|it| it["document_rid"] == page)
        .unwrap();
    assert_eq!(row["source_url"], url);
}

#[test]
fn web_one_bad_predicate_loses_nothing_else() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    previewed(&fixture, &site.url("/"));
    let found = done(
        &fixture,
        "ingest_url",
        json!({
            "url": site.url("/"),
            "entities": [
                { "name": "Bill", "type": "person" },
                { "name": "Kelp Watch", "type": "Project", "context": "Counts kelp" },
            ],
            "relationships": [
                { "subject": "Bill", "predicate": "not_a_predicate", "object": "r3.0" },
                { "subject": "Bill", "predicate": "founded", "object": "Kelp Watch" },
                // By its canonical name, and one that only the graph knows.
                { "subject": "Bill Baue", "predicate": "affiliated with", "object": "r3.0" },
                { "subject": "Kelp Watch", "predicate": "founded", "object": "Bill" },
                { "subject": "Bill", "predicate": "knows", "object": "Bill Baue" },
                { "subject": R3, "predicate": "has_project", "object": "Kelp Watch" },
            ],
        }),
    );
    assert_eq!(found["entities"][0]["uri"], BILL);
    assert_eq!(found["entities"][0]["name"], "Bill Baue");
    let outcomes: Vec<String> = found["relationships"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            format!(
                "{} {}",
                it["status"].as_str().unwrap(),
                it["reason"].as_str().unwrap_or("")
            )
        })
        .collect();
    let expected = [
        ("rejected", "not_a_predicate"),
        ("stored", ""),
        ("stored", ""),
        ("rejected", "Person"),
        ("rejected", "itself"),
        ("stored", ""),
    ];
    assert_eq!(outcomes.len(), expected.len());
    for (found, (status, reason)) in outcomes.iter().zip(expected) {
        assert!(
            found.starts_with(status) && found.contains(reason),
            "{found}: {status} {reason}"
        );
    }
    let warnings = found["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let around = done(
        &fixture,
        "get_entity_neighborhood",
        json!({ "entity_uri": "Kelp Watch" }),
    );
    let rows = around["relationships"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{around}");
    for row in rows {
        assert_eq!(
            (&row["source"], &row["source_rid"]),
            (&json!("web"), &found["document_rid"])
        );
    }
    let about = note(&fixture, "Projects/Kelp Watch.md");
    assert!(about.contains("description: \"Counts kelp\""), "{about}");
    let resolved = done(&fixture, "resolve_entity", json!({ "label": "kelp watch" }));
    assert_eq!(resolved["is_new"], false);
}

#[test]
fn web_a_page_is_found_by_its_words_with_its_source() {
    let tail = "The very last words are about wolf eels.";
    let text = format!(
        "{} {tail}",
        "Plain words about kelp and its keepers. ".repeat(200)
    );
    let site = Site::of(page("Kelp \u{1b}[31mkeepers", &text));
    let fixture = fixture(&site);
    previewed(&fixture, &site.url("/"));
    let before = done(
        &fixture,
        "knowledge_search",
        json!({ "query": "wolf eels" }),
    );
    assert_eq!(before["count"], 0, "what is only previewed is not found");
    done(&fixture, "ingest_url", json!({ "url": site.url("/") }));
    for source in [Value::Null, json!("web"), json!("web-sensor")] {
        let found = done(
            &fixture,
            "knowledge_search",
            json!({ "query": "wolf eels", "source": source }),
        );
        let first = &found["results"][0];
        assert_eq!(first["source"], "web-sensor", "{found}");
        assert_eq!(first["metadata"]["url"], site.url("/"));
        assert_eq!(first["title"], "Kelp [31mkeepers");
        let chunk = found["chunk_results"][0]["text"].as_str().unwrap();
        assert!(chunk.contains(tail), "{chunk}");
    }
    let found = done(&fixture, "koi_search", json!({ "query": "wolf eels" }));
    let documents = found["documents"].as_array().unwrap().iter();
    let rids: Vec<(&Value, &Value)> = documents.map(|it| (&it["rid"], &it["type"])).collect();
    let is_page = |it: &&(&Value, &Value)| {
        it.0.as_str().unwrap().starts_with("web:orn:web.page:") && it.1 == "page"
    };
    assert_eq!(rids.iter().filter(is_page).count(), 1, "{found}");
    let vault = done(
        &fixture,
        "knowledge_search",
        json!({ "query": "wolf eels", "source": "vault" }),
    );
    assert_eq!(vault["count"], 0);
}

#[test]
fn web_two_pages_of_one_title_have_two_notes() {
    let site = Site::start();
    let fixture = fixture(&site);
    let mut notes = Vec::new();
    for (path, text) in [
        ("/a", "The first page of this title"),
        ("/b", "The second page of it"),
    ] {
        site.put(path, Answer::html(page("One Title", text)));
        previewed(&fixture, &site.url(path));
        let found = done(&fixture, "ingest_url", json!({ "url": site.url(path) }));
        notes.push(found["vault_note_path"].as_str().unwrap().to_owned());
    }
    assert_eq!(notes, ["Sources/One Title.md", "Sources/One Title (2).md"]);
    for (path, name) in [("/a", &notes[0]), ("/b", &notes[1])] {
        assert!(note(&fixture, name).contains(&format!("url: \"{}\"", site.url(path))));
    }
}

#[test]
fn web_a_note_of_somebody_else_is_never_written_over() {
    let site = Site::of(page("Mine", "A page that is called as a note already is."));
    let fixture = fixture(&site);
    put(&fixture, "Sources/Mine.md", "my own words\n");
    put(
        &fixture,
        "Concepts/Kelp.md",
        "---\n\"@type\": bkc:Practice\nname: Kelping\n---\nmine too\n",
    );
    // Not yet read by anybody, and a folder where a note would be.
    fs::create_dir_all(fixture.vault().join("People/Ann.md")).unwrap();
    previewed(&fixture, &site.url("/"));
    let found = done(
        &fixture,
        "ingest_url",
        json!({
            "url": site.url("/"),
            "entities": [
                { "name": "Ann", "type": "Person" },
                { "name": "Algae/Kelp", "type": "Concept" },
                { "name": "algae: kelp", "type": "Concept" },
            ],
        }),
    );
    assert_eq!(found["vault_note_path"], "Sources/Mine (2).md");
    assert_eq!(note(&fixture, "Sources/Mine.md"), "my own words\n");
    assert!(note(&fixture, "Concepts/Kelp.md").ends_with("mine too\n"));
    assert!(note(&fixture, "People/Ann (2).md").contains("name: \"Ann\""));
    assert!(note(&fixture, "Concepts/Algae Kelp.md").contains("Algae/Kelp"));
}

#[test]
fn web_titles_and_names_cannot_break_a_note() {
    let titles = [
        "a \"quoted\" title: with colon",
        "--- \n... ---",
        "[[People/Bill Baue]] #tag",
        "../../outside",
        "CON",
        ".hidden",
        "{{ template }} <% x %>",
        "- list\n- of things",
        "'single' | pipe",
        "\u{202e}reversed\u{2066}",
    ];
    let site = Site::start();
    let fixture = fixture(&site);
    for (n, title) in titles.iter().enumerate() {
        let path = format!("/{n}");
        let html = title.replace('&', "&amp;").replace('<', "&lt;");
        site.put(
            &path,
            Answer::html(page(&html, "Some text of a page with such a title")),
        );
        previewed(&fixture, &site.url(&path));
        let entity = format!("{title} Circle");
        let found = done(
            &fixture,
            "ingest_url",
            json!({
                "url": site.url(&path),
                "entities": [{ "name": entity, "type": "Concept", "context": title }],
            }),
        );
        let source = found["vault_note_path"].as_str().unwrap();
        let name = source.strip_prefix("Sources/").unwrap();
        assert!(!name.contains('/') && !name.starts_with('.'), "{source}");
        let written = note(&fixture, source);
        let head = written
            .strip_prefix("---\n")
            .unwrap()
            .split("\n---\n")
            .next()
            .unwrap();
        assert_eq!(head.lines().count(), 5, "{written}");
        // One line of fields each, and the first heading below them.
        let mut fields = head.lines().map(|it| it.split(": ").next().unwrap());
        for expected in ["\"@type\"", "name", "source", "url", "rid"] {
            assert_eq!(fields.next(), Some(expected), "{written}");
        }
        assert_eq!(found["entities"][0]["is_new"], true, "{found}");
        let uri = found["entities"][0]["uri"].as_str().unwrap();
        // The note and the statement are about one entity.
        let resolved = done(
            &fixture,
            "get_entity_neighborhood",
            json!({ "entity_uri": uri }),
        );
        assert_eq!(resolved["entity_uri"], uri);
    }
    assert!(!fixture.root.path().join("outside.md").exists());
    let entities = entities(&fixture);
    assert_eq!(
        entities.iter().filter(|it| it.contains("circle")).count(),
        titles.len(),
        "{entities:?}"
    );
    let bill = done(
        &fixture,
        "get_entity_documents",
        json!({ "entity_uri": BILL }),
    );
    let linking = bill["documents"].as_array().unwrap().iter();
    let links = linking.filter(|it| {
        it["vault_path"]
            .as_str()
            .unwrap()
            .starts_with("Sources/Bill")
    });
    assert_eq!(links.count(), 0, "{bill}");
}

/// The keys of all entities.
fn entities(fixture: &Fixture) -> Vec<String> {
    let log = fixture.log();
    let filter = NodeFilter {
        kinds: vec![Kind::Entity],
        ..NodeFilter::default()
    };
    let nodes = log.read(&Space::default(), |tx| {
        tx.nodes(&filter, When::Now, None, 1_000)
    });
    nodes.unwrap().into_iter().map(|it| it.key).collect()
}

#[test]
fn web_what_was_previewed_is_ingested_after_a_restart() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    previewed(&fixture, &site.url("/"));
    let other = fixture.again(Selection::default());
    drop(fixture);
    let found = done(&other, "ingest_url", json!({ "url": site.url("/") }));
    assert_eq!(found["vault_note_path"], "Sources/Salish Sea Herring.md");
    assert_eq!(site.n_seen(), 1);
    let report = other
        .board
        .engine()
        .verify(&Space::default(), &|_| {})
        .unwrap();
    assert!(report.faults.is_empty(), "{report:?}");
}

#[test]
fn web_without_a_vault_there_are_no_notes() {
    let site = Site::of(herring());
    let outside = Outside::of(&[("KENNING_WEB_ALLOW", &site.address())]);
    let fixture = Fixture::without_vault_in(Selection::default(), outside);
    previewed(&fixture, &site.url("/"));
    let found = done(
        &fixture,
        "ingest_url",
        json!({ "url": site.url("/"), "entities": [{ "name": "Kelp", "type": "Concept" }] }),
    );
    assert_eq!(
        (&found["vault_note_path"], &found["success"]),
        (&Value::Null, &json!(true))
    );
    let resolved = done(&fixture, "resolve_entity", json!({ "label": "kelp" }));
    assert_eq!(resolved["is_new"], false);
}

#[test]
fn web_a_rejected_page_is_not_ingested() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    let url = site.url("/");
    let engine = fixture.board.engine();
    let judge = |decision: &str| {
        let evaluation = PageEvaluation {
            decision: Some(decision.to_owned()),
            ..PageEvaluation::default()
        };
        engine
            .koi()
            .evaluate_page(&fixture.owner(), &url, evaluation)
    };
    assert!(judge("rejected").is_err());
    previewed(&fixture, &url);
    let judged = judge("rejected").unwrap();
    assert_eq!(judged.status, "rejected");
    let (status, found) = asked(&fixture, "ingest", json!({ "url": url }));
    let expected = "URL is in 'rejected' state, not ready for ingestion.";
    assert_eq!((status, &found["detail"]), (400, &json!(expected)));
    let judged = judge("ingest").unwrap();
    assert_eq!(judged.status, "evaluated");
    assert_eq!(asked(&fixture, "ingest", json!({ "url": url })).0, 200);
}

#[test]
fn web_one_page_is_ingested_once_however_many_ask() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    let url = site.url("/");
    previewed(&fixture, &url);
    let fixtures: Vec<Fixture> = (0..4)
        .map(|_| fixture.again(Selection::default()))
        .collect();
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let asking: Vec<_> = fixtures
            .iter()
            .map(|fixture| {
                let body = json!({
                    "url": url, "entities": [{ "name": "Kelp Keepers", "type": "Organization" }],
                });
                scope.spawn(move || done(fixture, "ingest_url", body))
            })
            .collect();
        asking.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let n_done = answers.iter().filter(|it| it["success"] == true).count();
    let n_already = answers
        .iter()
        .filter(|it| it["already_ingested"] == true)
        .count();
    assert_eq!((n_done, n_already), (1, 3), "{answers:?}");
    let notes = fs::read_dir(fixture.vault().join("Sources"))
        .unwrap()
        .count();
    assert_eq!(notes, 1);
    assert_eq!(
        fixture
            .event_kinds()
            .iter()
            .filter(|it| *it == "WebPageIngested")
            .count(),
        1
    );
    let log = fixture.log();
    let n_edges = log
        .read(&Space::default(), |tx| {
            let entity = entities(&fixture)
                .into_iter()
                .find(|it| it.contains("kelp-keepers"));
            let node = tx
                .node_by_key("", Kind::Entity, &entity.unwrap(), When::Now)?
                .unwrap();
            let filter = EdgeFilter {
                dst: Some(node.id),
                rel: Some("mentions".to_owned()),
                ..EdgeFilter::default()
            };
            Ok(tx.edges(&filter, When::Now, 100)?.len())
        })
        .unwrap();
    assert!(n_edges >= 1);
}

#[test]
fn web_wrong_requests_name_what_is_wrong() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    previewed(&fixture, &site.url("/"));
    for folder in ["../x", ".obsidian", "a/.b"] {
        let (status, found) = asked(
            &fixture,
            "ingest",
            json!({ "url": site.url("/"), "vault_folder": folder }),
        );
        assert!(matches!(status, 403 | 422), "{folder}: {status} {found}");
    }
    let (_, found) = asked(
        &fixture,
        "ingest",
        json!({ "url": site.url("/"), "vault_folder": "Clips/Web" }),
    );
    assert_eq!(found["vault_note_path"], "Clips/Web/Salish Sea Herring.md");
    let many: Vec<Value> = (0..2_001)
        .map(|n| json!({ "name": format!("n{n}"), "type": "Concept" }))
        .collect();
    let (status, _) = asked(
        &fixture,
        "ingest",
        json!({ "url": site.url("/"), "entities": many }),
    );
    assert_eq!(status, 413);
}

#[test]
fn web_a_vault_that_takes_no_note_keeps_no_page_from_the_graph() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    // A file where the folder of pages would be.
    put(&fixture, "Sources", "not a folder\n");
    previewed(&fixture, &site.url("/"));
    let found = done(
        &fixture,
        "ingest_url",
        json!({ "url": site.url("/"), "entities": [{ "name": "Kelp", "type": "Concept" }] }),
    );
    assert_eq!(found["vault_note_path"], Value::Null);
    let warnings = found["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{found}");
    assert!(
        warnings[0].as_str().unwrap().contains("Sources/"),
        "{found}"
    );
    assert_eq!(note(&fixture, "Sources"), "not a folder\n");
    assert!(note(&fixture, "Concepts/Kelp.md").contains("name: \"Kelp\""));
    let (_, again) = asked(&fixture, "ingest", json!({ "url": site.url("/") }));
    assert_eq!(again["vault_note_path"], Value::Null);
    let searched = done(
        &fixture,
        "knowledge_search",
        json!({ "query": "keystone species", "source": "web" }),
    );
    assert_eq!(searched["count"], 1);
    // Nobody tries again for ever.
    let doctor = fixture.board.engine().doctor().unwrap();
    assert!(doctor.faults.is_empty(), "{:?}", doctor.faults);
    let verified = fixture
        .board
        .engine()
        .verify(&Space::default(), &|_| {})
        .unwrap();
    assert!(verified.is_clean(), "{verified:?}");
}

/// A fixture with somebody of a full name, and a page to ingest.
fn house_of_william(site: &Site) -> Fixture {
    let fixture = fixture(site);
    put(
        &fixture,
        "People/William Holm.md",
        "---\naffiliation: [\"[[Organizations/r3.0]]\"]\n---\n",
    );
    put(&fixture, "Organizations/OpenCivics.md", "");
    previewed(&fixture, &site.url("/"));
    fixture
}

const WILLIAM: &str = "orn:personal-koi.entity:person-william-holm-";

fn entity(fixture: &Fixture, name: &str) -> Value {
    let hint = json!({ "label": name, "type_hint": "Person" });
    done(fixture, "resolve_entity", hint)["candidates"][0].clone()
}

#[test]
fn web_a_nickname_of_somebody_known_is_proposed_and_merged_when_the_caller_says_so() {
    let site = Site::of(herring());
    let fixture = house_of_william(&site);
    let url = site.url("/");
    let found = done(
        &fixture,
        "ingest_url",
        json!({ "url": url, "entities": [{ "name": "Bill Holm", "type": "Person" }] }),
    );
    assert_eq!(found["entities"][0]["is_new"], true, "{found}");
    let proposed = &found["merge_proposals"][0];
    assert_eq!(
        (
            &proposed["from"],
            &proposed["into"],
            &proposed["confidence"]
        ),
        (&json!("Bill Holm"), &json!("William Holm"), &json!(0.95)),
        "{found}"
    );
    assert!(proposed["reason"].as_str().unwrap().contains("family name"));
    assert!(found["merges"].is_null(), "{found}");

    // The proposal is what the caller sends back, of a page that is ingested already.
    let merge = json!([{ "from": proposed["from_uri"], "into": proposed["into_uri"] }]);
    let request = json!({ "url": url, "merge": merge });
    let again = done(&fixture, "ingest_url", request.clone());
    assert_eq!(again["already_ingested"], true);
    assert_eq!(again["merges"][0]["status"], "merged", "{again}");
    let bill = entity(&fixture, "Bill Holm");
    assert_eq!(bill["name"], "William Holm", "{bill}");
    let again = done(&fixture, "ingest_url", request);
    assert_eq!(again["merges"][0]["status"], "merged", "{again}");

    // It can be taken back.
    let engine = fixture.board.engine();
    engine
        .koi()
        .unmerge_entity(&fixture.owner(), "Bill Holm")
        .unwrap();
    assert_eq!(entity(&fixture, "Bill Holm")["name"], "Bill Holm");
}

#[test]
fn web_a_merge_that_the_caller_says_at_once_leaves_no_second_note() {
    let site = Site::of(herring());
    let fixture = house_of_william(&site);
    let found = done(
        &fixture,
        "ingest_url",
        json!({
            "url": site.url("/"),
            "entities": [
                { "name": "Bill Holm", "type": "Person" },
                { "name": "Liz Holm", "type": "Person" },
                { "name": "Elizabeth Holm", "type": "Person" },
            ],
            "relationships": [
                { "subject": "Bill Holm", "predicate": "knows", "object": "Liz Holm" },
                { "subject": "Bill Holm", "predicate": "knows", "object": "William Holm" },
            ],
            "merge": [
                { "from": "Bill Holm", "into": "William Holm" },
                { "from": "Liz Holm", "into": "Elizabeth Holm" },
                { "from": "Nobody At All", "into": "William Holm" },
            ],
        }),
    );
    // Two who have nothing to do with the page are not merged by its ingestion.
    let others = json!({ "url": site.url("/"), "merge": [{ "from": "Bill Baue", "into": "Somebody Else" }] });
    let refused = done(&fixture, "ingest_url", others);
    assert_eq!(refused["merges"][0]["status"], "rejected", "{refused}");
    let reason = refused["merges"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("is of this page"), "{reason}");
    let rows = found["merges"].as_array().unwrap();
    let states: Vec<&str> = rows
        .iter()
        .map(|it| it["status"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["merged", "merged", "rejected"], "{found}");
    assert!(
        rows[2]["reason"]
            .as_str()
            .unwrap()
            .contains("Nobody At All")
    );
    let names: Vec<&str> = found["entities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["William Holm", "Elizabeth Holm", "Elizabeth Holm"]);
    assert!(
        found["entities"][0]["uri"]
            .as_str()
            .unwrap()
            .starts_with(WILLIAM)
    );
    let reason = found["relationships"][1]["reason"].as_str().unwrap();
    assert!(reason.contains("itself"), "{found}");
    for (path, is_there) in [
        ("People/Bill Holm.md", false),
        ("People/Liz Holm.md", false),
        ("People/Elizabeth Holm.md", true),
    ] {
        assert_eq!(fixture.vault().join(path).exists(), is_there, "{path}");
    }
    let around = done(
        &fixture,
        "get_entity_neighborhood",
        json!({ "entity_uri": "William Holm" }),
    );
    let knows = around["relationships"].as_array().unwrap().iter();
    let knows = knows.filter(|it| it["predicate"] == "knows");
    let knows: Vec<&str> = knows
        .map(|it| it["object_name"].as_str().unwrap())
        .collect();
    assert!(knows.contains(&"Elizabeth Holm"), "{around}");
    let engine = fixture.board.engine();
    let report = engine.verify(&Space::default(), &|_| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn web_a_nickname_in_the_same_company_is_settled_and_can_be_taken_back() {
    let site = Site::of(herring());
    let fixture = house_of_william(&site);
    let found = done(
        &fixture,
        "ingest_url",
        json!({
            "url": site.url("/"),
            "entities": [
                { "name": "Bill Holm", "type": "Person" },
                { "name": "r3.0", "type": "Organization" },
            ],
        }),
    );
    assert_eq!(found["entities"][0]["name"], "William Holm", "{found}");
    assert_eq!(found["entities"][0]["is_new"], false);
    assert_eq!(found["merges"][0]["status"], "merged", "{found}");
    let reason = found["merges"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("in the same company"), "{reason}");
    assert!(found["merge_proposals"].is_null(), "{found}");
    assert!(!fixture.vault().join("People/Bill Holm.md").exists());
    assert_eq!(entity(&fixture, "Bill Holm")["name"], "William Holm");
    let engine = fixture.board.engine();
    engine
        .koi()
        .unmerge_entity(&fixture.owner(), "Bill Holm")
        .unwrap();
    assert_eq!(entity(&fixture, "Bill Holm")["name"], "Bill Holm");
    let report = engine.verify(&Space::default(), &|_| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn web_both_names_on_one_page_are_two_people_until_somebody_says_otherwise() {
    let site = Site::of(herring());
    let fixture = house_of_william(&site);
    let found = done(
        &fixture,
        "ingest_url",
        json!({
            "url": site.url("/"),
            "entities": [
                { "name": "Bill Holm", "type": "Person" },
                { "name": "William Holm", "type": "Person" },
                { "name": "r3.0", "type": "Organization" },
            ],
        }),
    );
    assert_eq!(found["entities"][0]["name"], "Bill Holm", "{found}");
    assert_eq!(
        found["merge_proposals"][0]["into"], "William Holm",
        "{found}"
    );
}

#[test]
fn web_words_written_together_or_apart_are_one_entity() {
    let site = Site::of(herring());
    let fixture = house_of_william(&site);
    let found = done(
        &fixture,
        "ingest_url",
        json!({
            "url": site.url("/"),
            "entities": [
                { "name": "OpenCivics", "type": "Organization" },
                { "name": "Open Civics", "type": "Organization" },
                { "name": "Kelp Watch", "type": "Project" },
                { "name": "KelpWatch", "type": "Project" },
                { "name": "The Kelp Watch", "type": "Project" },
            ],
        }),
    );
    let named: Vec<(&str, bool)> = found["entities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["is_new"] == true))
        .collect();
    let expected = [
        ("OpenCivics", false),
        ("OpenCivics", false),
        ("Kelp Watch", true),
        ("Kelp Watch", false),
        ("Kelp Watch", false),
    ];
    assert_eq!(named, expected, "{found}");
    assert!(found["merge_proposals"].is_null(), "{found}");
}

#[test]
fn web_a_veto_is_heard_and_another_type_of_the_same_name_is_told() {
    let site = Site::of(herring());
    let fixture = house_of_william(&site);
    let engine = fixture.board.engine();
    engine
        .koi()
        .veto_entity(&fixture.owner(), "Bill Holm", "William Holm", false)
        .unwrap();
    let found = done(
        &fixture,
        "ingest_url",
        json!({
            "url": site.url("/"),
            "entities": [
                { "name": "Bill Holm", "type": "Person" },
                { "name": "r3.0", "type": "Project" },
            ],
            "merge": [{ "from": "Bill Holm", "into": "William Holm" }],
        }),
    );
    assert_eq!(found["merges"][0]["status"], "rejected", "{found}");
    assert!(
        found["merges"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("does not mean")
    );
    assert!(found["merge_proposals"].is_null(), "{found}");
    let warning = found["entities"][1]["warning"].as_str().unwrap();
    assert!(
        warning.contains("Organization") && warning.contains(R3),
        "{warning}"
    );
}

#[test]
fn web_a_judgment_is_kept_and_goes_into_note_document_and_topics() {
    let site = Site::of(herring());
    let fixture = fixture(&site);
    let url = site.url("/");
    previewed(&fixture, &url);
    let engine = fixture.board.engine();
    let judgment = PageEvaluation {
        decision: Some("ingest".to_owned()),
        relevance_score: Some(0.8),
        relevance_reasoning: Some("Names \"our\" herring: twice".to_owned()),
        bioregional_tags: vec!["herring".to_owned(), "estuary".to_owned()],
    };
    let judged = engine
        .koi()
        .evaluate_page(&fixture.owner(), &url, judgment.clone());
    assert_eq!(judged.unwrap().evaluation, judgment);
    let shown = previewed(&fixture, &url);
    let expected = json!({
        "decision": "ingest", "relevance_score": 0.8,
        "relevance_reasoning": "Names \"our\" herring: twice",
        "bioregional_tags": ["herring", "estuary"],
    });
    assert_eq!(shown["evaluation"], expected, "{shown}");
    let stated = done(&fixture, "process_url", json!({ "url": url }));
    let topics = stated["topics"].as_array().unwrap();
    assert!(topics.contains(&json!("estuary")), "{stated}");
    let found = done(&fixture, "ingest_url", json!({ "url": url }));
    let about = note(&fixture, found["vault_note_path"].as_str().unwrap());
    for line in [
        "relevance: 0.8\n",
        "relevance_reasoning: \"Names \\\"our\\\" herring: twice\"\n",
        "tags: [\"herring\", \"estuary\"]\n",
    ] {
        assert!(about.contains(line), "{about}");
    }
    let props = |fixture: &Fixture| {
        let key = found["document_rid"].as_str().unwrap();
        let log = fixture.log();
        let node = log.read(&Space::default(), |tx| {
            tx.node_by_key("", Kind::Page, key, When::Now)
        });
        node.unwrap().unwrap().props
    };
    assert_eq!(props(&fixture)["tags"], json!(["herring", "estuary"]));
    assert_eq!(props(&fixture)["relevance"], 0.8);

    // Judged again after it was ingested, it stays ingested and says the new judgment.
    let judgment = PageEvaluation {
        relevance_score: Some(0.1),
        ..judgment
    };
    let judged = engine.koi().evaluate_page(&fixture.owner(), &url, judgment);
    assert_eq!(judged.unwrap().status, "ingested");
    assert_eq!(props(&fixture)["relevance"], 0.1);
}
