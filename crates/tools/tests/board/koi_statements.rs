//! What others than the vault's notes state: registered notes, documents, imports; merges and vetoes.

use crate::Fixture;
use crate::koi_entities::{BILL, done, graph, put, resolve, said_of, vault};
use kenning_core::{Code, Error};
use kenning_engine::Caller;
use kenning_engine::koi::{
    EntityImport, ImportedEntities, RegisterEntity, StatedDocument, StatedEntity, StatedRelation,
    StatementOutcome,
};
use kenning_tools::Selection;
use serde_json::{Map, Value, json};
use std::fs;

fn caller() -> Caller {
    Caller::new(kenning_engine::Principal::owner(
        kenning_core::Space::default(),
    ))
}

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn register(fixture: &Fixture, path: &str, kind: &str, name: &str, said: Value) -> (String, bool) {
    let note = RegisterEntity {
        vault_path: path.to_owned(),
        entity_type: kind.to_owned(),
        name: name.to_owned(),
        frontmatter: fields(said),
        ..RegisterEntity::default()
    };
    let engine = fixture.board.engine();
    let done = engine.koi().register_entity(&caller(), note).unwrap();
    (done.canonical_uri, done.is_new)
}

fn entity(name: &str, kind: &str) -> StatedEntity {
    StatedEntity {
        name: name.to_owned(),
        kind: kind.to_owned(),
        n_mentions: 1,
        confidence: 0.9,
        ..StatedEntity::default()
    }
}

fn relation(subject: &str, predicate: &str, object: &str) -> StatedRelation {
    StatedRelation {
        subject: subject.to_owned(),
        predicate: predicate.to_owned(),
        object: object.to_owned(),
        confidence: 0.8,
    }
}

fn ingest(
    fixture: &Fixture,
    rid: &str,
    entities: &[StatedEntity],
    relations: &[StatedRelation],
) -> StatementOutcome {
    let engine = fixture.board.engine();
    let stated = StatedDocument {
        rid: rid.to_owned(),
        entities: entities.to_vec(),
        relations: relations.to_vec(),
        ..StatedDocument::default()
    };
    engine.koi().ingest_statement(&caller(), stated).unwrap()
}

fn first(found: &Value) -> &str {
    found["candidates"][0]["uri"].as_str().unwrap_or("nobody")
}

#[test]
fn koi_a_registered_note_states_what_the_same_note_would_in_the_vault() {
    const CORA: &str = "orn:personal-koi.entity:person-cora-finch-";
    let fixture = Fixture::new();
    let said = json!({ "aliases": ["Coz", "[[People/Cornelia Finch|CF]]"], "affiliation": ["[[Organizations/r3.0]]"] });
    let registered = register(
        &fixture,
        "People/Cora Finch.md",
        "Person",
        "Cora Finch",
        said,
    );
    assert!(
        registered.0.starts_with(CORA) && registered.1,
        "{registered:?}"
    );
    let cora = registered.0.as_str();
    assert_eq!(
        first(&resolve(&fixture, "cornelia finch", Some("Person"))),
        cora
    );
    // The organization is not known yet: the relationship waits for it.
    assert!(said_of(&fixture, "Coz").is_empty());
    let stats = fixture
        .board
        .engine()
        .koi()
        .relationship_stats(&caller())
        .unwrap();
    assert_eq!(stats.total_pending, 1);
    assert_eq!(stats.top_pending[0].label, "r3.0");
    let founders = json!({ "founders": "[[People/Cora Finch]]" });
    register(
        &fixture,
        "Organizations/r3.0.md",
        "Organization",
        "r3.0",
        founders,
    );
    let both = [
        "Cora Finch affiliated_with r3.0",
        "r3.0 has_founder Cora Finch",
    ];
    assert_eq!(said_of(&fixture, "Coz"), both);
    // Registered again, it says only what it says now.
    let again = register(
        &fixture,
        "People/Cora Finch.md",
        "Person",
        "Cora Finch",
        json!({}),
    );
    assert_eq!(again, (cora.to_owned(), false));
    assert_eq!(said_of(&fixture, cora), ["r3.0 has_founder Cora Finch"]);
    // The vault's own note is believed instead.
    put(
        &fixture,
        "Organizations/r3.0.md",
        "---\ndescription: none\n---\n",
    );
    assert!(said_of(&fixture, cora).is_empty());
    fs::remove_file(fixture.vault().join("Organizations/r3.0.md")).unwrap();
    assert_eq!(said_of(&fixture, cora), ["r3.0 has_founder Cora Finch"]);
}

#[test]
fn koi_relationships_of_a_registered_note_are_replaced_and_those_that_wait_are_counted() {
    let fixture = Fixture::new();
    let engine = fixture.board.engine();
    register(
        &fixture,
        "People/Ann.md",
        "Person",
        "Ann",
        json!({ "aliases": ["Annie"] }),
    );
    register(&fixture, "People/Bo.md", "Person", "Bo", json!({}));
    let sync = |said: Value| {
        let note = RegisterEntity {
            vault_path: "People/Ann.md".to_owned(),
            frontmatter: fields(said),
            ..RegisterEntity::default()
        };
        let synced = engine.koi().sync_relationships(&caller(), note).unwrap();
        (synced.n_stored, synced.n_pending)
    };
    assert_eq!(sync(json!({ "knows": ["Bo", "Cy"] })), (1, 1));
    assert_eq!(said_of(&fixture, "Annie"), ["Ann knows Bo", "Bo knows Ann"]);
    assert_eq!(sync(json!({ "knows": [] })), (0, 0));
    assert!(said_of(&fixture, "Annie").is_empty());
}

#[test]
fn koi_a_bad_part_of_a_statement_loses_nothing_else() {
    let fixture = vault();
    let entities = [
        entity("Bill", "person"),
        entity("Pacific Herring", "Concept"),
        entity("Thing", "Weird"),
        entity("", "Person"),
        entity("Kelp Trust", "Organization"),
        entity("Bill Baue", "Person"),
    ];
    let relations = [
        relation("Bill", "affiliated_with", "Kelp Trust"),
        relation("Kelp Trust", "has_founder", "william baue"),
        relation("Bill Baue", "not_a_predicate", "Kelp Trust"),
        relation("Bill Baue", "collaborates_with", "Pacific Herring"),
        relation("Bill Baue", "knows", "Nobody"),
        relation("Bill Baue", "knows", "Bill"),
        relation("Shawn Anderson", "affiliated_with", "Kelp Trust"),
        relation("Pacific Herring", "related_to", "Thing"),
    ];
    let outcome = ingest(&fixture, "web:orn:web.page:x/1", &entities, &relations);
    let told: Vec<(&str, &str, bool)> = outcome
        .entities
        .iter()
        .map(|it| (it.name.as_str(), it.kind.as_str(), it.is_new))
        .collect();
    assert_eq!(
        told,
        [
            ("Bill Baue", "Person", false),
            ("Pacific Herring", "Concept", true),
            ("Thing", "Concept", true),
            ("", "Person", false),
            ("Kelp Trust", "Organization", true),
            ("Bill Baue", "Person", false),
        ]
    );
    let warned = |n: usize| outcome.entities[n].warning.clone().unwrap_or_default();
    assert!(warned(2).contains("\"Weird\""), "{}", warned(2));
    assert!(warned(3).contains("`name`"), "{}", warned(3));
    let stored: Vec<bool> = outcome.relations.iter().map(|it| it.is_stored).collect();
    assert_eq!(stored, [true, true, false, false, false, false, true, true]);
    let reason = |n: usize| outcome.relations[n].reason.clone().unwrap_or_default();
    assert!(reason(2).contains("not_a_predicate"), "{}", reason(2));
    assert!(reason(3).contains("it can be: Person"), "{}", reason(3));
    assert!(reason(4).contains("\"Nobody\""), "{}", reason(4));
    assert_eq!(
        said_of(&fixture, "Kelp Trust"),
        [
            "Bill Baue affiliated_with Kelp Trust",
            "Kelp Trust has_founder Bill Baue",
            "Shawn Anderson affiliated_with Kelp Trust",
        ]
    );
    let found = done(
        &fixture,
        "get_entity_documents",
        json!({ "entity_uri": "Kelp Trust" }),
    );
    assert_eq!(
        found["documents"][0]["document_rid"],
        "web:orn:web.page:x/1"
    );
    let found = done(
        &fixture,
        "get_entity_documents",
        json!({ "entity_uri": BILL }),
    );
    let rows = found["documents"].as_array().unwrap();
    let web = rows
        .iter()
        .find(|it| it["document_rid"] == "web:orn:web.page:x/1");
    assert_eq!(web.unwrap()["mention_count"], 2);
    // Another part of the same document takes nothing back.
    ingest(
        &fixture,
        "web:orn:web.page:x/1",
        &[entity("Bill", "Person")],
        &[],
    );
    assert_eq!(resolve(&fixture, "Kelp Trust", None)["is_new"], false);
    let engine = fixture.board.engine();
    let n = engine
        .koi()
        .forget_statement(&caller(), "web:orn:web.page:x/1");
    assert_eq!(n.unwrap(), 1);
    let error = engine
        .koi()
        .forget_statement(&caller(), "web:orn:web.page:x/1");
    assert_eq!(error.unwrap_err().code, Code::NotFound);
    assert_eq!(resolve(&fixture, "Kelp Trust", None)["is_new"], true);
    assert_eq!(resolve(&fixture, "Pacific Herring", None)["is_new"], true);
}

#[test]
fn koi_what_is_stated_twice_stays_while_one_of_both_states_it() {
    let fixture = vault();
    let said = [entity("Ida Moss", "Person"), entity("r3.0", "Organization")];
    let relations = [relation("Ida Moss", "affiliated_with", "r3.0")];
    ingest(&fixture, "api:1", &said, &relations);
    put(
        &fixture,
        "People/Ida Moss.md",
        "---\naffiliation: r3.0\n---\n",
    );
    let rows = done(
        &fixture,
        "get_entity_neighborhood",
        json!({ "entity_uri": "Ida Moss" }),
    );
    assert_eq!(rows["count"], 1);
    assert_eq!(rows["relationships"][0]["source"], "vault");
    fs::remove_file(fixture.vault().join("People/Ida Moss.md")).unwrap();
    let rows = done(
        &fixture,
        "get_entity_neighborhood",
        json!({ "entity_uri": "Ida Moss" }),
    );
    assert_eq!(rows["relationships"][0]["source"], "api");
    assert_eq!(rows["relationships"][0]["confidence"], 0.8);
}

#[test]
fn koi_two_that_were_merged_are_two_again_when_that_is_taken_back() {
    let fixture = vault();
    put(
        &fixture,
        "People/W. Baue.md",
        "---\naliases: [Dub]\naffiliation: \"[[River Stewards]]\"\n---\n",
    );
    put(&fixture, "journal.md", "Of [[W. Baue]], who came.\n");
    resolve(&fixture, "Dub", None);
    let before = graph(&fixture);
    let engine = fixture.board.engine();
    let merged = engine
        .koi()
        .merge_entities(&caller(), "Dub", "Bill Baue")
        .unwrap();
    assert_eq!(merged.into, BILL);
    for name in ["Dub", "W. Baue", "Bill", merged.uri.as_str()] {
        let found = done(
            &fixture,
            "get_entity_neighborhood",
            json!({ "entity_uri": name }),
        );
        assert_eq!(found["entity_uri"], BILL, "{name}");
    }
    let all = said_of(&fixture, BILL);
    assert!(
        all.contains(&"Bill Baue affiliated_with River Stewards".to_owned()),
        "{all:?}"
    );
    assert!(
        all.contains(&"Bill Baue affiliated_with r3.0".to_owned()),
        "{all:?}"
    );
    let documents = done(
        &fixture,
        "get_entity_documents",
        json!({ "entity_uri": BILL }),
    );
    assert!(
        documents.to_string().contains("vault:journal.md"),
        "{documents}"
    );
    // Another process sees it too, and the notes may change meanwhile.
    let second = fixture.again(Selection::default());
    assert_eq!(first(&resolve(&second, "Dub", None)), BILL);
    put(&fixture, "People/New One.md", "---\nknows: Dub\n---\n");
    assert_eq!(
        said_of(&second, "New One"),
        ["Bill Baue knows New One", "New One knows Bill Baue"]
    );
    fs::remove_file(fixture.vault().join("People/New One.md")).unwrap();
    let again = second
        .board
        .engine()
        .koi()
        .unmerge_entity(&caller(), "W. Baue")
        .unwrap();
    assert_eq!(again, merged);
    assert_ne!(first(&resolve(&fixture, "Dub", None)), BILL);
    assert_eq!(graph(&fixture), before);
}

#[test]
fn koi_merges_that_cannot_be_are_refused_by_name_and_remedy() {
    let fixture = vault();
    let engine = fixture.board.engine();
    let refused = |from: &str, into: &str| -> Error {
        engine
            .koi()
            .merge_entities(&caller(), from, into)
            .unwrap_err()
    };
    for (from, into, code, part) in [
        ("Bill", "Bill Baue", Code::Conflict, "both names"),
        ("Bill", "r3.0", Code::InvalidInput, "Organization"),
        ("Nobody At All", "Bill", Code::NotFound, "Nobody At All"),
        ("orn:nope:x", "Bill", Code::NotFound, "orn:nope:x"),
    ] {
        let error = refused(from, into);
        assert_eq!(error.code, code, "{from}");
        assert!(error.message.contains(part), "{}", error.message);
        assert!(error.hint.is_some(), "{}", error.message);
    }
    // A circle cannot be made: whoever was merged means the other one.
    engine
        .koi()
        .merge_entities(&caller(), "Shawn Anderson", "Bill")
        .unwrap();
    assert_eq!(refused("Bill", "Shawn Anderson").code, Code::Conflict);
    let error = engine.koi().unmerge_entity(&caller(), "Bill").unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert_eq!(
        engine
            .koi()
            .entity_identities(&caller())
            .unwrap()
            .merged
            .len(),
        1
    );
}

#[test]
fn koi_a_veto_holds_in_every_tier_and_against_a_merge_until_it_is_taken_back() {
    let fixture = vault();
    let engine = fixture.board.engine();
    put(&fixture, "People/Bill Bauer.md", "");
    for label in ["Bill", "Bil Baue"] {
        assert_eq!(
            first(&resolve(&fixture, label, Some("Person"))),
            BILL,
            "{label}"
        );
        engine
            .koi()
            .veto_entity(&caller(), label, BILL, false)
            .unwrap();
        let found = resolve(&fixture, label, Some("Person"));
        assert!(!found["candidates"].to_string().contains(BILL), "{found}");
    }
    engine
        .koi()
        .veto_entity(&caller(), "Bill Bauer", "Bill Baue", false)
        .unwrap();
    let error = engine
        .koi()
        .merge_entities(&caller(), "Bill Bauer", BILL)
        .unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    assert_eq!(
        engine
            .koi()
            .entity_identities(&caller())
            .unwrap()
            .vetoes
            .len(),
        3
    );
    for label in ["Bill", "Bil Baue", "Bill Bauer"] {
        engine
            .koi()
            .veto_entity(&caller(), label, BILL, true)
            .unwrap();
    }
    assert_eq!(first(&resolve(&fixture, "Bill", Some("Person"))), BILL);
    engine
        .koi()
        .merge_entities(&caller(), "Bill Bauer", BILL)
        .unwrap();
    let error = engine
        .koi()
        .veto_entity(&caller(), "Bill", BILL, true)
        .unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

fn import(fixture: &Fixture, name: &str, exports: Vec<Value>) -> ImportedEntities {
    let import = EntityImport {
        name: name.to_owned(),
        exports,
    };
    fixture
        .board
        .engine()
        .koi()
        .import_entities(&caller(), &import)
        .unwrap()
}

#[test]
fn koi_exports_of_another_server_are_taken_over_and_replaced() {
    let fixture = Fixture::new();
    let entities = json!({ "entities": [
        { "fuseki_uri": BILL, "entity_text": "Bill Baue", "entity_type": "Person", "aliases": "[\"Bill\"]" },
        { "uri": "orn:other:r3", "name": "r3.0", "type": "Organization", "aliases": ["R3"] },
        { "uri": "orn:other:w", "name": "Thing", "type": "Weird" },
        { "name": "", "type": "Person" },
    ], "count": 4 });
    let relationships = json!([
        { "subject_uri": BILL, "predicate": "affiliated_with", "object_uri": "orn:other:r3", "confidence": 0.7, "source": "vault", "source_rid": "People/Bill Baue.md" },
        // As the original stores founders.
        { "subject_uri": BILL, "predicate": "has_founder", "object_uri": "orn:other:r3" },
        { "subject_uri": BILL, "predicate": "nope", "object_uri": "orn:other:r3" },
        { "subject_uri": BILL, "predicate": "knows", "object_uri": "orn:other:nobody" },
    ]);
    let imported = import(&fixture, "octo", vec![relationships, entities]);
    assert_eq!(
        (
            imported.n_entities,
            imported.n_relationships,
            imported.n_changed,
            imported.n_rejected
        ),
        (2, 2, 1, 4)
    );
    assert_eq!(first(&resolve(&fixture, "R3", None)), "orn:other:r3");
    let rows = done(
        &fixture,
        "get_entity_neighborhood",
        json!({ "entity_uri": BILL }),
    );
    assert_eq!(
        rows["relationships"][0]["source_rid"],
        "People/Bill Baue.md"
    );
    assert_eq!(rows["relationships"][0]["confidence"], 0.7);
    assert_eq!(rows["relationships"][1]["subject_uri"], "orn:other:r3");
    let fewer = json!([{ "uri": BILL, "name": "Bill Baue", "type": "Person" }]);
    import(&fixture, "octo", vec![fewer]);
    assert_eq!(resolve(&fixture, "R3", None)["is_new"], true);
    assert_eq!(first(&resolve(&fixture, "Bill Baue", None)), BILL);
    let nothing = EntityImport {
        name: "octo".to_owned(),
        exports: vec![json!({ "stats": 1 })],
    };
    let error = fixture
        .board
        .engine()
        .koi()
        .import_entities(&caller(), &nothing)
        .unwrap_err();
    assert_eq!(error.code, Code::InvalidInput);
    assert_eq!(first(&resolve(&fixture, "Bill Baue", None)), BILL);
}

#[test]
fn koi_counts_follow_the_graph() {
    let fixture = vault();
    let engine = fixture.board.engine();
    let stats = engine.koi().entity_stats(&caller()).unwrap();
    assert_eq!(stats.by_type["Person"], 2);
    assert_eq!(stats.total, stats.by_type.values().sum::<usize>());
    ingest(&fixture, "api:1", &[entity("Ida Moss", "Person")], &[]);
    let after = engine.koi().entity_stats(&caller()).unwrap();
    assert_eq!(after.total, stats.total + 1);
    assert_eq!(after.recent[0].name, "Ida Moss");
    let all = engine
        .koi()
        .entities(&caller(), Some("person"), 100, 0)
        .unwrap();
    assert_eq!(all.len(), 3);
    let rest = engine
        .koi()
        .entities(&caller(), Some("person"), 100, 2)
        .unwrap();
    assert_eq!(rest, all[2..]);
    let view = engine.koi().entity(&caller(), "ida moss").unwrap().unwrap();
    assert_eq!(
        (view.source.as_str(), view.source_rid.as_str()),
        ("api", "api:1")
    );
    assert_eq!(engine.koi().entity(&caller(), "orn:nope:x").unwrap(), None);
}

#[test]
fn koi_entities_and_what_relates_them_are_reached_from_graph_queries() {
    let fixture = vault();
    let query = json!({ "query": "Bill Baue", "kinds": ["entity"], "includeRelations": true });
    let found = fixture.call("kg_graph_query", query).to_json();
    let nodes = found["data"]["nodes"].as_array().unwrap();
    let bill = nodes.iter().find(|it| it["id"] == BILL).unwrap();
    assert_eq!(bill["type"], "entity");
    let related = |name: &str, how: &str, end: &str| -> Vec<String> {
        let links = bill[name].as_array().unwrap().iter();
        let shown = links.map(|it| format!("{} {}", it[how].as_str().unwrap(), it[end]));
        shown.collect()
    };
    let out = related("outgoingLinks", "type", "text").join(", ");
    assert!(out.contains("affiliated_with \"r3.0\""), "{out}");
    let into = related("incomingLinks", "relation", "source").join(", ");
    assert!(
        into.contains("describes \"vault/people/bill-baue\""),
        "{into}"
    );
}

#[test]
fn koi_nothing_is_stated_where_nothing_may_be_written() {
    let fixture = vault();
    let here = Selection {
        read_only: true,
        ..Selection::default()
    };
    let reading = fixture.again(here);
    let engine = reading.board.engine();
    let caller = caller();
    let note = || RegisterEntity {
        vault_path: "People/X.md".to_owned(),
        entity_type: "Person".to_owned(),
        name: "X".to_owned(),
        ..RegisterEntity::default()
    };
    let stated = StatedDocument {
        rid: "web:x".to_owned(),
        ..StatedDocument::default()
    };
    let import = EntityImport {
        name: "import".to_owned(),
        exports: vec![json!({ "entities": [{ "name": "X", "type": "Person" }] })],
    };
    for (what, refused) in [
        (
            "merge",
            engine.koi().merge_entities(&caller, "A", "B").err(),
        ),
        ("unmerge", engine.koi().unmerge_entity(&caller, "A").err()),
        (
            "veto",
            engine.koi().veto_entity(&caller, "A", "B", false).err(),
        ),
        (
            "register",
            engine.koi().register_entity(&caller, note()).err(),
        ),
        (
            "sync",
            engine.koi().sync_relationships(&caller, note()).err(),
        ),
        (
            "ingest",
            engine.koi().ingest_statement(&caller, stated).err(),
        ),
        (
            "import",
            engine.koi().import_entities(&caller, &import).err(),
        ),
        (
            "forget",
            engine.koi().forget_statement(&caller, "web:x").err(),
        ),
    ] {
        let error: Error = refused.unwrap();
        assert_eq!(error.code, Code::Denied, "{what}: {error}");
    }
}

#[test]
fn koi_no_statement_takes_the_place_of_another_sort() {
    let fixture = Fixture::new();
    let people = json!([{ "uri": "orn:x:1", "name": "Uma Reed", "type": "Person" }]);
    import(&fixture, "import", vec![people]);
    register(&fixture, "Remote/Zed.md", "Person", "Zed Quill", json!({}));
    for rid in [
        "import:import:000000",
        "note:Remote/Zed.md",
        "Remote/Zed.md",
    ] {
        ingest(&fixture, rid, &[], &[]);
    }
    for name in ["Uma Reed", "Zed Quill"] {
        assert_eq!(resolve(&fixture, name, None)["is_new"], false, "{name}");
    }
    let engine = fixture.board.engine();
    assert_eq!(
        engine.koi().forget_statement(&caller(), "import").unwrap(),
        1
    );
    assert_eq!(resolve(&fixture, "Uma Reed", None)["is_new"], true);
}

#[test]
fn koi_a_note_keeps_who_it_is_about_when_its_name_is_mended() {
    let fixture = Fixture::new();
    let said = [
        entity("Jhon Wickham", "Person"),
        entity("Acme Guild", "Organization"),
    ];
    let relations = [relation("Jhon Wickham", "affiliated_with", "Acme Guild")];
    let outcome = ingest(&fixture, "web:p", &said, &relations);
    let uri = outcome.entities[0].uri.clone();
    let note = |name: &str| format!("---\nuri: \"{uri}\"\nname: {name}\n---\n");
    put(&fixture, "People/Wickham.md", &note("John Wickham"));
    let found = resolve(&fixture, "John Wickham", Some("Person"));
    assert_eq!(first(&found), uri);
    let said = ["John Wickham affiliated_with Acme Guild"];
    assert_eq!(said_of(&fixture, "John Wickham"), said);
    // Without the URI an alias tells.
    let other = "---\nname: John Wickham\naliases: [Jhon Wickham]\n---\n";
    put(&fixture, "People/Wickham.md", other);
    assert_eq!(said_of(&fixture, "John Wickham"), said);
    assert_eq!(said_of(&fixture, &uri), said);
}

#[test]
fn koi_a_known_name_under_another_uri_is_the_known_one() {
    let fixture = Fixture::new();
    let people = json!([{ "uri": "orn:old:bill", "name": "Bill Baue", "type": "Person" }]);
    import(&fixture, "old", vec![people]);
    assert_eq!(first(&resolve(&fixture, "Bill Baue", None)), BILL);
    let found = done(
        &fixture,
        "get_entity_neighborhood",
        json!({ "entity_uri": "orn:old:bill" }),
    );
    assert_eq!(found["entity_uri"], BILL);
}

#[test]
fn koi_different_names_of_one_document_are_different_people() {
    let fixture = Fixture::new();
    put(&fixture, "People/J. Smith.md", "");
    let said = ["John Smith", "Joan Smith", "Jim Smith"].map(|it| entity(it, "Person"));
    let relations = [relation("John Smith", "knows", "Joan Smith")];
    let outcome = ingest(&fixture, "api:x", &said, &relations);
    let uris: std::collections::BTreeSet<&str> =
        outcome.entities.iter().map(|it| it.uri.as_str()).collect();
    assert_eq!(uris.len(), 3, "{outcome:?}");
    assert!(outcome.relations[0].is_stored, "{outcome:?}");
}

#[test]
fn koi_a_registered_note_that_the_vault_has_is_the_vaults_own() {
    let fixture = Fixture::new();
    let note = RegisterEntity {
        vault_path: "People/Bill Baue.md".to_owned(),
        entity_type: "Person".to_owned(),
        name: "Totally Other".to_owned(),
        ..RegisterEntity::default()
    };
    let engine = fixture.board.engine();
    let done = engine.koi().register_entity(&caller(), note).unwrap();
    assert_eq!((done.canonical_uri.as_str(), done.is_new), (BILL, false));
    assert!(done.warning.is_some());
    let unknown = RegisterEntity {
        vault_path: "People/Phantom.md".to_owned(),
        ..RegisterEntity::default()
    };
    let error = engine
        .koi()
        .sync_relationships(&caller(), unknown)
        .unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[test]
fn koi_odd_notes_and_labels() {
    let fixture = Fixture::new();
    put(&fixture, "People/index.md", "---\nname: Ann Leeway\n---\n");
    put(&fixture, "Concepts/number.md", "---\nname: 42\n---\n");
    put(
        &fixture,
        "Meetings/Talk.md",
        "---\nattendees: [\"[[Bill Baue]]\"]\n---\n",
    );
    assert_eq!(resolve(&fixture, "index", None)["is_new"], true);
    assert_eq!(resolve(&fixture, "42", Some("Concept"))["is_new"], false);
    for label in ["[[People/Bill Baue|B]]", "People/Bill Baue.md"] {
        assert_eq!(first(&resolve(&fixture, label, None)), BILL, "{label}");
    }
    let found = done(
        &fixture,
        "get_entity_documents",
        json!({ "entity_uri": "[[People/Bill Baue]]" }),
    );
    assert_eq!(
        found["documents"][0]["document_rid"],
        "vault:Meetings/Talk.md"
    );
    let engine = fixture.board.engine();
    let error = engine
        .koi()
        .veto_entity(&caller(), "Bill Baue", BILL, false);
    assert_eq!(error.unwrap_err().code, Code::Conflict);
    put(&fixture, "Notes/zh.md", "我在东京见到王伟和海。\n");
    let found = done(
        &fixture,
        "knowledge_search",
        json!({ "query": "王伟", "source": "" }),
    );
    assert!(found.to_string().contains("vault:Notes/zh.md"), "{found}");
}

#[test]
fn koi_a_statement_merge_or_veto_that_was_changed_behind_the_log_is_told() {
    let fixture = vault();
    let engine = fixture.board.engine();
    let space = kenning_core::Space::default();
    ingest(&fixture, "api:1", &[entity("Ida Moss", "Person")], &[]);
    engine
        .koi()
        .merge_entities(&caller(), "Shawn Anderson", "Bill Baue")
        .unwrap();
    engine
        .koi()
        .veto_entity(&caller(), "Idaho Moss", "Ida Moss", false)
        .unwrap();
    engine.koi().forget_statement(&caller(), "api:1").unwrap();
    ingest(&fixture, "api:1", &[entity("Ida Moss", "Person")], &[]);
    let faults = || engine.verify(&space, &|_| {}).unwrap().faults;
    assert_eq!(faults(), Vec::<String>::new());
    for bucket in ["entities/said", "entities/merged", "entities/vetoes"] {
        let row = fixture.log().read(&space, |tx| tx.list(bucket));
        let (key, bytes) = row.unwrap().pop().unwrap();
        let gone = key.clone();
        let store = fixture.log().store();
        let unset = store.write(&space, move |tx| tx.unset(bucket, &gone));
        unset.unwrap();
        assert_eq!(faults().len(), 1, "{bucket}: {:?}", faults());
        let back = store.write(&space, move |tx| tx.set(bucket, &key, &bytes));
        back.unwrap();
        assert_eq!(faults(), Vec::<String>::new());
    }
    let forged = br#"{"source":"api","rid":"api:2"}"#;
    let put = fixture.log().store().write(&space, move |tx| {
        tx.set("entities/said", "document:api:2", forged)
    });
    put.unwrap();
    assert_eq!(
        faults(),
        ["the statement `document:api:2` is not in the log"]
    );
}
