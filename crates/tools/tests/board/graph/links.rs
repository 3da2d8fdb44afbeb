//! Which document a link means, and which links are broken.

use super::{ask, generate};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};

fn project(files: &[(&str, &str)]) -> Fixture {
    let fixture = crate::everything(&Fixture::without_vault(Selection::default()));
    for (name, text) in files {
        fixture.put_document(name, text);
    }
    fixture
}

/// `source -> target` for every edge, and `source: target` for every broken link.
fn said(fixture: &Fixture) -> (Vec<String>, Vec<String>) {
    generate(fixture);
    let nodes = ask(fixture, "kg_query", json!({ "limit": 100 }))["data"].clone();
    let (mut edges, mut broken) = (Vec::new(), Vec::new());
    for node in nodes.as_array().unwrap() {
        let id = node["id"].as_str().unwrap();
        let full = ask(fixture, "kg_get_node", json!({ "id": id }))["data"].clone();
        for link in full["outgoingLinks"].as_array().unwrap() {
            let target = link["target"].as_str().unwrap();
            if link["broken"] == true {
                broken.push(format!("{id}: {target}"));
            } else {
                edges.push(format!("{id} -> {target}"));
            }
        }
    }
    edges.sort();
    broken.sort();
    (edges, broken)
}

#[test]
fn a_link_to_a_file_that_is_there_is_not_broken() {
    let fixture = project(&[
        (
            "docs/a/page.md",
            "[l](../../LICENSE) [f](../b) [f](../b/) [m](../b/part.mdx) [r](../../README.md) \
             [x](../../NOTHING) [y](../c/) [z](../b/none.mdx) [above](../../../elsewhere.md)",
        ),
        ("docs/b/part.mdx", "# no document"),
        ("LICENSE", "do what you like"),
        ("README.md", "# outside the folder of documents"),
    ]);
    let broken = [
        "a/page: ../../NOTHING",
        "a/page: ../b/none.mdx",
        "a/page: ../c/",
    ];
    let (edges, found) = said(&fixture);
    assert_eq!(
        (edges, found),
        (Vec::new(), broken.map(String::from).to_vec())
    );
    assert_eq!(
        ask(&fixture, "kg_broken_links", json!({}))["data"]["total"],
        3
    );
    // Another process sees the same, and what comes and goes is followed.
    let other = fixture.again(fixture.board.selection().clone());
    let total =
        |fixture: &Fixture| ask(fixture, "kg_broken_links", json!({}))["data"]["total"].clone();
    assert_eq!(total(&other), 3);
    std::fs::remove_file(fixture.project().join("LICENSE")).unwrap();
    fixture.put_document("docs/c/x.txt", "now there is a folder");
    generate(&fixture);
    assert_eq!((total(&fixture), total(&other)), (json!(3), json!(3)));
    let (_, found) = said(&fixture);
    assert!(
        found.contains(&"a/page: ../../LICENSE".to_owned()),
        "{found:?}"
    );
    assert!(!found.contains(&"a/page: ../c/".to_owned()), "{found:?}");
}

#[test]
fn a_path_means_that_path_and_a_bare_name_is_searched_for() {
    let fixture = project(&[
        (
            "docs/a/page.md",
            "[1](./target.md) [2](../target.md) [3](/target.md) [4](sub/target.md) [5](unique.md) \
             [[2]](../b/t.md) [6](../b/config.v1) [7](../b/src.rs) <a href=\"../b/html.md\">8</a> \
             [9](README.md) [[target]]",
        ),
        ("docs/b/deep/target.md", "# Target"),
        ("docs/b/deep/unique.md", "# Unique"),
        ("docs/b/deep/README.md", "# A part"),
        ("docs/b/t.md", "# T"),
        ("docs/b/config.v1.md", "# Version 1"),
        ("docs/b/html.md", "# By HTML"),
    ]);
    let (edges, broken) = said(&fixture);
    let expected = [
        "a/page -> b/config-v1",
        "a/page -> b/deep/target",
        "a/page -> b/deep/unique",
        "a/page -> b/html",
        "a/page -> b/t",
    ];
    assert_eq!(edges, expected);
    let expected = [
        "a/page: ../target.md",
        "a/page: ./target.md",
        "a/page: /target.md",
        "a/page: README.md",
        "a/page: sub/target.md",
    ];
    assert_eq!(broken, expected);
}

#[test]
fn a_broken_link_is_told_with_the_document_nearest_to_its_path() {
    let fixture = project(&[
        ("docs/page.md", "[s](api/setup.md) [t](guides/setup.md)"),
        ("docs/api/set-up.md", "# One"),
        ("docs/guides/set-up.md", "# Two"),
    ]);
    generate(&fixture);
    let links = ask(&fixture, "kg_broken_links", json!({}))["data"]["links"].clone();
    let suggested = |it: &Value| it["suggestion"]["id"].as_str().unwrap().to_owned();
    let suggested: Vec<String> = links.as_array().unwrap().iter().map(suggested).collect();
    assert_eq!(suggested, ["api/set-up", "guides/set-up"]);
}

#[test]
fn a_file_that_is_called_as_many_are_has_its_heading_for_a_title() {
    let fixture = project(&[
        ("docs/README.md", "# The shop\n"),
        ("docs/api/index.md", "text\n\n# The API\n"),
        ("docs/plain/README.md", "no heading"),
        ("docs/first_steps.md", "# Something else\n"),
        ("docs/guide/README.md", "---\ntitle: Own\n---\n# Other\n"),
    ]);
    generate(&fixture);
    let data = ask(&fixture, "kg_query", json!({}))["data"].clone();
    let titles = data.as_array().unwrap().iter();
    let titles: Vec<String> = titles
        .map(|it| {
            format!(
                "{}: {}",
                it["id"].as_str().unwrap(),
                it["title"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "readme: The shop",
        "api/index: The API",
        "first-steps: First Steps",
        "guide/readme: Own",
        "plain/readme: README",
    ];
    assert_eq!(titles, expected);
}

#[test]
fn images_other_files_and_headings_that_are_not_there_are_told_as_broken() {
    let fixture = project(&[
        (
            "docs/page.md",
            "# Page\n\n![there](img/there.png) ![gone](img/gone.png)\n\n[s](../src/lib.rs) \
             [t](../src/none.rs) [h](old.html)\n\n[a](guide.md#set-up) [b](guide.md#nope) \
             [c](guide.md#here) ![web](https://example.org/x.png)\n\n[[guide#Set up]] [[guide#Lost]]\n",
        ),
        (
            "docs/guide.md",
            "# Guide\n\n## Set up\n\n<a id=\"here\"></a>\n",
        ),
        ("docs/img/there.png", "png"),
        ("src/lib.rs", "// code"),
    ]);
    let (edges, broken) = said(&fixture);
    assert_eq!(
        (edges, broken),
        (vec!["page -> guide".to_owned()], Vec::new())
    );
    let told = ask(&fixture, "kg_broken_links", json!({}))["data"].clone();
    let told: Vec<(&str, &str)> = told["links"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["missing"].as_str().unwrap(),
                it["target"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("file", "img/gone.png"),
        ("file", "../src/none.rs"),
        ("file", "old.html"),
        ("heading", "guide.md#nope"),
        ("heading", "guide#Lost"),
    ];
    assert_eq!(told, expected);
    // What is made afterwards is seen by the next run.
    fixture.put_document("docs/img/gone.png", "png");
    fixture.put_document(
        "docs/guide.md",
        "# Guide\n\n## Set up\n\n## Nope\n\n## Lost\n\n<a id=\"here\"></a>\n",
    );
    generate(&fixture);
    let total = ask(&fixture, "kg_broken_links", json!({}))["data"]["total"].clone();
    assert_eq!(total, 2);
}

#[test]
fn a_link_to_a_heading_of_its_own_page_that_is_not_there_is_told_as_broken() {
    let fixture = project(&[(
        "docs/page.md",
        "# Page\n\n[good](#set-up) [top](#top) [no place](#) [bad](#missing) [[#Set up]] [[#Gone|shown]]\n\n\
         `[code](#never)`\n\n<a href=\"#lost\">x</a> <a href=\"#here\">y</a> <a id=\"here\"></a>\n\n\
         ![picture](#icon)\n\n## Set up\n",
    )]);
    generate(&fixture);
    let told = ask(&fixture, "kg_broken_links", json!({}))["data"].clone();
    let rows = told["links"].as_array().unwrap().iter();
    let text = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let rows: Vec<[String; 3]> = rows
        .map(|it| ["missing", "target", "text"].map(|name| text(it, name)))
        .collect();
    let expected = [
        ["heading", "#missing", "bad"],
        ["heading", "#Gone", "shown"],
        ["heading", "#lost", "<a href=\"#lost\">"],
    ];
    assert_eq!(rows, expected, "{told:#}");
    // They are no edges, and no links to other documents.
    let page = ask(&fixture, "kg_get_node", json!({ "id": "page" }))["data"].clone();
    assert_eq!(page["outgoingLinks"], json!([]));
    fixture.put_document("docs/page.md", "# Page\n\n[bad](#missing)\n\n## Missing\n");
    generate(&fixture);
    assert_eq!(
        ask(&fixture, "kg_broken_links", json!({}))["data"]["total"],
        0
    );
}

#[test]
fn a_type_of_entity_is_no_fault_of_a_document() {
    let fixture = project(&[
        ("docs/ada.md", "---\ntype: Person\n---\n# Ada\n"),
        ("docs/slip.md", "---\ntype: conept\n---\n# Slip\n"),
    ]);
    let done = ask(&fixture, "kg_graph_generate", json!({ "docsPath": "docs" }));
    let errors = done["data"]["errors"].to_string();
    assert!(!errors.contains("Person"), "{done:#}");
    assert!(errors.contains("conept"), "{done:#}");
}
