//! How notes are read: what counts as a field, as a name and as a mention.

use kenning_testing::Fixture;
use serde_json::{Value, json};

fn fixture(notes: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::new();
    for (path, text) in notes {
        let path = fixture.vault().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    fixture
}

fn answer(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

/// The name of what a label means, or nothing.
fn meant(fixture: &Fixture, label: &str, kind: &str) -> Value {
    let arguments = json!({ "label": label, "type_hint": kind });
    let found = answer(fixture, "resolve_entity", arguments);
    found["candidates"]
        .get(0)
        .map_or(Value::Null, |it| it["name"].clone())
}

/// The documents that mention an entity, and how often.
fn mentioning(fixture: &Fixture, name: &str) -> Vec<(String, u64)> {
    let found = answer(
        fixture,
        "get_entity_documents",
        json!({ "entity_uri": name }),
    );
    let documents = found["documents"].as_array().unwrap().iter();
    let shown = documents.map(|it| {
        let path = it["vault_path"].as_str().unwrap().to_owned();
        (path, it["mention_count"].as_u64().unwrap())
    });
    shown.collect()
}

#[test]
fn a_colon_without_quotes_costs_no_other_field_and_is_told() {
    let broken = "---\ntitle: Kelp: a study\naliases:\n  - KS\n  - The: study\n\
                  affiliation: \"[[Kelp Trust]]\"\n---\n";
    let fixture = fixture(&[
        ("Projects/Kelp.md", broken),
        ("Organizations/Kelp Trust.md", "# Trust\n"),
        ("People/Ann Lee.md", "---\nrole: host\n---\n"),
    ]);
    let found = answer(
        &fixture,
        "resolve_entity",
        json!({ "label": "KS", "type_hint": "Project" }),
    );
    assert_eq!(found["candidates"][0]["name"], "Kelp");
    let warning = found["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("`Projects/Kelp.md`, line 2: the frontmatter"),
        "{warning}"
    );
    assert!(
        warning.contains("only these fields are read: `title`, `aliases`, `affiliation`"),
        "{warning}"
    );
    let near = answer(
        &fixture,
        "get_entity_neighborhood",
        json!({ "entity_uri": "Kelp" }),
    );
    assert_eq!(near["warnings"][0], warning);
    assert_eq!(near["count"], 1, "{near}");
    // Of others nothing is said, and where nobody is found everything.
    let ann = answer(&fixture, "resolve_entity", json!({ "label": "Ann Lee" }));
    assert_eq!(ann.get("warnings"), None);
    let nobody = answer(&fixture, "resolve_entity", json!({ "label": "Zzyzx Qux" }));
    assert_eq!(nobody["warnings"][0], warning);
    let read = fixture.call("vault_read_note", json!({ "path": "Projects/Kelp.md" }));
    assert_eq!(
        (read.text.as_str(), read.remarks.as_slice()),
        (broken, &[warning.to_owned()][..])
    );
    let arguments = json!({ "path": "Projects/Kelp.md", "content": "---\na: [\n---\n" });
    let written = fixture.call("vault_write_note", arguments);
    assert_eq!(written.text, "Written: Projects/Kelp.md");
    assert!(
        written.remarks[0].contains("not valid YAML"),
        "{:?}",
        written.remarks
    );
    let doctor = fixture.board.engine().doctor().unwrap();
    assert_eq!(doctor.faults, Vec::<String>::new());
    assert_eq!(doctor.warnings.len(), 1, "{:?}", doctor.warnings);
    assert!(
        doctor.warnings[0].starts_with("vault: `Projects/Kelp.md`"),
        "{:?}",
        doctor.warnings
    );
}

#[test]
fn a_name_in_a_longer_name_is_no_mention() {
    let fixture = fixture(&[
        ("Locations/Salish Sea.md", ""),
        ("Organizations/Salish Sea Alliance.md", ""),
        ("Meetings/a.md", "With the Salish Sea Alliance."),
        (
            "Meetings/b.md",
            "With [[Salish Sea Alliance|those of the Salish Sea]].",
        ),
        (
            "Meetings/c.md",
            "The Salish Sea Alliance met by the Salish Sea, [[Salish Sea]].",
        ),
        (
            "Meetings/d.md",
            "See [the Salish Sea](https://example.org/).",
        ),
    ]);
    let expected = [("Meetings/c".to_owned(), 2), ("Meetings/d".to_owned(), 1)];
    assert_eq!(mentioning(&fixture, "Salish Sea"), expected);
    let expected = [("Meetings/a", 1), ("Meetings/b", 1), ("Meetings/c", 1)];
    let found = mentioning(&fixture, "Salish Sea Alliance");
    let found: Vec<(&str, u64)> = found.iter().map(|it| (it.0.as_str(), it.1)).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_stands_in_code_and_comments_is_no_mention() {
    let fixture = fixture(&[
        ("People/Ann Lee.md", ""),
        ("Meetings/a.md", "```\n[[Ann Lee]]\n```\nand `Ann Lee`\n"),
        (
            "Meetings/b.md",
            "%% [[Ann Lee]] %%\n\n%%\nAnn Lee\n\nwas here\n%%\n",
        ),
        ("Meetings/c.md", "[[Ann Lee]] %% not [[Ann Lee]] %%"),
    ]);
    assert_eq!(
        mentioning(&fixture, "Ann Lee"),
        [("Meetings/c".to_owned(), 1)]
    );
}

#[test]
fn templates_are_no_entities() {
    let person = "---\n\"@type\": Person\naliases: [Somebody New]\n---\n";
    let fixture = fixture(&[
        ("Templates/Person.md", person),
        ("_templates/Person.md", person),
        ("People/Person Template.md", person),
        ("People/Ann Lee.md", "---\nname: \"{{title}}\"\n---\n"),
    ]);
    for label in ["Person", "Somebody New", "Person Template", "{{title}}"] {
        assert_eq!(meant(&fixture, label, "Person"), Value::Null, "{label}");
    }
    assert_eq!(meant(&fixture, "Bill Baue", "Person"), "Bill Baue");
}

#[test]
fn hyphens_legal_forms_pictures_and_ways_of_writing_accents_make_no_other_name() {
    let zoe = "Zoe\u{308} Flu\u{308}gge";
    let note = format!("People/{zoe}.md");
    let fixture = fixture(&[
        ("Organizations/Food Co-op.md", ""),
        ("Organizations/Kelpforum e.V..md", ""),
        ("Organizations/🌱 Seed Library.md", ""),
        (&note, "# Zoe\n"),
        (
            "Meetings/a.md",
            "The Food Coop, the Kelpforum, the Seed Library and Zo\u{eb} Fl\u{fc}gge.",
        ),
    ]);
    for (label, kind, expected) in [
        ("Food Coop", "Organization", "Food Co-op"),
        ("Food Cooperative", "Organization", "Food Co-op"),
        ("Kelpforum", "Organization", "Kelpforum e.V."),
        ("Kelpforum e. V.", "Organization", "Kelpforum e.V."),
        ("Seed Library", "Organization", "🌱 Seed Library"),
        ("Zo\u{eb} Fl\u{fc}gge", "Person", "Zo\u{eb} Fl\u{fc}gge"),
        (zoe, "Person", "Zo\u{eb} Fl\u{fc}gge"),
    ] {
        assert_eq!(meant(&fixture, label, kind), expected, "{label}");
        let found = mentioning(&fixture, label);
        assert_eq!(found, [("Meetings/a".to_owned(), 1)], "{label}");
    }
    let found = answer(
        &fixture,
        "koi_search",
        json!({ "query": "Zo\u{eb} Fl\u{fc}gge" }),
    );
    assert_eq!(
        found["results"][0]["name"], "Zo\u{eb} Fl\u{fc}gge",
        "{found}"
    );
    let arguments = json!({ "path": "People/Zo\u{eb} Fl\u{fc}gge.md" });
    let read = fixture.call("vault_read_note", arguments);
    assert_eq!(read.text, "# Zoe\n");
    let by_path = json!({ "entity_uri": "[[People/Zo\u{eb} Fl\u{fc}gge]]" });
    assert_eq!(
        answer(&fixture, "get_entity_neighborhood", by_path)["count"],
        0
    );
}

#[test]
fn fields_in_the_text_are_fields() {
    let fixture = fixture(&[
        (
            "People/Ann Lee.md",
            "---\naliases: [AL]\n---\naliases:: Annie\n\n- **Affiliation**:: [[r3.0]]\n\n`knows:: [[Bo]]`\n",
        ),
        ("Organizations/r3.0.md", ""),
        ("People/Bo.md", ""),
    ]);
    for label in ["AL", "Annie"] {
        assert_eq!(meant(&fixture, label, "Person"), "Ann Lee", "{label}");
    }
    let near = answer(
        &fixture,
        "get_entity_neighborhood",
        json!({ "entity_uri": "Ann Lee" }),
    );
    let relations = near["relationships"].as_array().unwrap();
    assert_eq!(relations.len(), 1, "{near}");
    assert_eq!(relations[0]["predicate"], "affiliated_with");
    assert_eq!(relations[0]["object_name"], "r3.0");
}
