//! Which document a link means, case by case.

use kenning_graph::{Link, Mentions, Named, Names, Relation, slug, title_of_path};
use proptest::prelude::*;

/// The house: paths from the project's root, titles, headings and aliases.
const HOUSE: &[(&str, &str, &str, &[&str])] = &[
    ("docs/index.md", "Home", "Welcome", &[]),
    (
        "docs/auth.md",
        "Authentication",
        "Auth",
        &["Login", "Sign in"],
    ),
    ("docs/guides/README.md", "Guides", "", &[]),
    ("docs/guides/first_steps.md", "First Steps", "", &[]),
    ("docs/guides/auth.md", "Auth Guide", "How to log in", &[]),
    ("docs/guides/deep/auth.md", "Deep Auth", "", &[]),
    ("docs/guides/deep/page.md", "Page", "", &[]),
    ("docs/api/index.md", "API", "", &[]),
    ("docs/api/Größe.md", "Größe", "", &[]),
    ("docs/api/日本.md", "日本", "", &["Nippon"]),
    ("docs/login.md", "Something", "", &[]),
    ("README.md", "Readme", "", &[]),
    ("docs/node.js.md", "Node.js", "", &[]),
    ("docs/a/b/c/x.md", "X", "", &[]),
    ("docs/z/b/c/x.md", "X too", "", &[]),
    ("docs/Case.md", "upper", "", &[]),
    ("docs/case.md", "lower", "", &[]),
];

fn house() -> Names {
    let mut names = Names::new();
    for (doc, (path, title, heading, aliases)) in (0u32..).zip(HOUSE) {
        let docs_path = path.strip_prefix("docs/").unwrap_or(path);
        let aliases: Vec<String> = aliases.iter().map(|it| (*it).to_owned()).collect();
        let id = slug(docs_path);
        names.insert(
            doc,
            &Named {
                id: &id,
                path,
                docs_path,
                title,
                heading: Some(*heading).filter(|it| !it.is_empty()),
                aliases: &aliases,
            },
        );
    }
    names
}

fn link(target: &str, is_wiki: bool) -> Link {
    Link {
        target: target.to_owned(),
        fragment: None,
        text: String::new(),
        relation: Relation::LINK,
        is_wiki,
        context: String::new(),
        line: 1,
    }
}

fn check(is_wiki: bool, cases: &[(&str, &str, Option<&str>)]) {
    let names = house();
    for (from, target, expected) in cases {
        let found = names.resolve(from, "docs", &link(target, is_wiki));
        let found = found.map(|it| HOUSE[it as usize].0);
        assert_eq!(found, *expected, "{target:?} in {from}");
    }
}

#[test]
fn a_path_is_looked_up_from_the_file_then_the_roots_then_by_name() {
    check(
        false,
        &[
            ("docs/index.md", "auth.md", Some("docs/auth.md")),
            ("docs/index.md", "./auth", Some("docs/auth.md")),
            ("docs/index.md", "guides/", Some("docs/guides/README.md")),
            ("docs/index.md", "guides", Some("docs/guides/README.md")),
            ("docs/index.md", "api/", Some("docs/api/index.md")),
            (
                "docs/guides/first_steps.md",
                "auth.md",
                Some("docs/guides/auth.md"),
            ),
            (
                "docs/guides/first_steps.md",
                "../auth.md",
                Some("docs/auth.md"),
            ),
            ("docs/guides/first_steps.md", "..", Some("docs/index.md")),
            (
                "docs/guides/first_steps.md",
                ".",
                Some("docs/guides/README.md"),
            ),
            (
                "docs/guides/first_steps.md",
                "docs/auth.md",
                Some("docs/auth.md"),
            ),
            (
                "docs/guides/first_steps.md",
                "api/index.md",
                Some("docs/api/index.md"),
            ),
            (
                "docs/guides/first_steps.md",
                "/docs/auth.md",
                Some("docs/auth.md"),
            ),
            (
                "docs/guides/first_steps.md",
                "/auth.md",
                Some("docs/auth.md"),
            ),
            (
                "docs/guides/first_steps.md",
                "/README.md",
                Some("README.md"),
            ),
            ("docs/index.md", "../README.md", Some("README.md")),
            (
                "docs/index.md",
                "deep/auth.md",
                Some("docs/guides/deep/auth.md"),
            ),
            (
                "docs/index.md",
                "FIRST-STEPS.md",
                Some("docs/guides/first_steps.md"),
            ),
            (
                "docs/api/index.md",
                "gro\u{308}ße.md",
                Some("docs/api/Größe.md"),
            ),
            ("docs/index.md", "Case.md", Some("docs/Case.md")),
            ("docs/index.md", "case.md", Some("docs/case.md")),
            ("docs/index.md", "folder\\none.md", None),
            (
                "docs/index.md",
                "guides\\auth.md",
                Some("docs/guides/auth.md"),
            ),
            ("docs/index.md", "../../../auth.md", Some("docs/auth.md")),
            ("docs/index.md", "missing.md", None),
            ("docs/index.md", "other/auth.md", None),
        ],
    );
}

#[test]
fn a_name_is_looked_up_as_path_id_file_alias_title_and_heading() {
    check(
        true,
        &[
            ("docs/index.md", "auth", Some("docs/auth.md")),
            // A path from the docs root comes before a nearer file of the name.
            ("docs/guides/first_steps.md", "auth", Some("docs/auth.md")),
            ("docs/index.md", "auth.md", Some("docs/auth.md")),
            ("docs/index.md", "guides/auth", Some("docs/guides/auth.md")),
            (
                "docs/index.md",
                "guides/first-steps",
                Some("docs/guides/first_steps.md"),
            ),
            (
                "docs/index.md",
                "first_steps",
                Some("docs/guides/first_steps.md"),
            ),
            (
                "docs/index.md",
                "first steps",
                Some("docs/guides/first_steps.md"),
            ),
            (
                "docs/index.md",
                "First Steps",
                Some("docs/guides/first_steps.md"),
            ),
            (
                "docs/index.md",
                "deep/page",
                Some("docs/guides/deep/page.md"),
            ),
            ("docs/index.md", "eep/page", None),
            (
                "docs/index.md",
                "guides/deep/page",
                Some("docs/guides/deep/page.md"),
            ),
            // The exact alias comes before a file in other letters.
            ("docs/index.md", "Login", Some("docs/auth.md")),
            ("docs/index.md", "login", Some("docs/login.md")),
            ("docs/index.md", "LOGIN", Some("docs/login.md")),
            ("docs/index.md", "sign IN", Some("docs/auth.md")),
            ("docs/index.md", "Authentication", Some("docs/auth.md")),
            (
                "docs/index.md",
                "how to log in",
                Some("docs/guides/auth.md"),
            ),
            ("docs/index.md", "Welcome", Some("docs/index.md")),
            ("docs/index.md", "GRÖSSE", Some("docs/api/Größe.md")),
            ("docs/index.md", "日本", Some("docs/api/日本.md")),
            ("docs/index.md", "nippon", Some("docs/api/日本.md")),
            ("docs/index.md", "Node.js", Some("docs/node.js.md")),
            ("docs/index.md", "Case", Some("docs/Case.md")),
            ("docs/index.md", "case", Some("docs/case.md")),
            // A path from the project's root.
            (
                "docs/index.md",
                "docs/guides/auth",
                Some("docs/guides/auth.md"),
            ),
            ("docs/index.md", "docs/none/auth", None),
            // The folder of an index.
            ("docs/index.md", "guides", Some("docs/guides/README.md")),
            // The nearer, then the shorter, then the first.
            ("docs/a/b/c/y.md", "c/x", Some("docs/a/b/c/x.md")),
            ("docs/z/b/c/y.md", "c/x", Some("docs/z/b/c/x.md")),
            ("docs/z/y.md", "b/c/x", Some("docs/z/b/c/x.md")),
            ("docs/index.md", "b/c/x", Some("docs/a/b/c/x.md")),
            (
                "docs/guides/deep/page.md",
                "./auth",
                Some("docs/guides/deep/auth.md"),
            ),
            (
                "docs/guides/deep/page.md",
                "../auth",
                Some("docs/guides/auth.md"),
            ),
            ("docs/guides/deep/page.md", "/auth", Some("docs/auth.md")),
            ("docs/index.md", "missing", None),
            ("docs/index.md", "a/b/c/d/x", None),
            ("docs/index.md", "--", None),
            ("docs/index.md", "/", Some("README.md")),
        ],
    );
}

#[test]
fn a_broken_link_has_a_nearest_document() {
    let names = house();
    for (target, expected) in [
        ("authentification", Some("docs/auth.md")),
        ("first-step", Some("docs/guides/first_steps.md")),
        ("steps first", Some("docs/guides/first_steps.md")),
        (
            "old/place/first_steps.md",
            Some("docs/guides/first_steps.md"),
        ),
        ("Nipon", Some("docs/api/日本.md")),
        ("zzzzzz", None),
        ("", None),
        ("/", None),
    ] {
        let found = names.nearest(target);
        let path = found.map(|it| HOUSE[it.0 as usize].0);
        assert_eq!(path, expected, "{target:?}");
        assert!(found.is_none_or(|it| (0.6..=1.0).contains(&it.1)));
    }
    assert_eq!(Names::new().nearest("auth"), None);
    let mut grown = house();
    assert_eq!(grown.nearest("quaternion"), None);
    grown.insert(
        99,
        &named("docs/quaternions.md", "quaternions", "Quaternions"),
    );
    assert_eq!(grown.nearest("quaternion").unwrap().0, 99);
}

fn named<'a>(path: &'a str, id: &'a str, title: &'a str) -> Named<'a> {
    Named {
        id,
        path,
        docs_path: path.strip_prefix("docs/").unwrap_or(path),
        title,
        heading: None,
        aliases: &[],
    }
}

#[test]
fn many_documents_and_many_broken_links_have_answers() {
    let mut names = Names::new();
    for doc in 0..14_000u32 {
        let path = format!("docs/area{}/topic{}/page-{doc}.md", doc % 40, doc % 700);
        let id = slug(&path[5..]);
        names.insert(doc, &named(&path, &id, &title_of_path(&path)));
    }
    for doc in (0..14_000u32).step_by(7) {
        let found = names.resolve("docs/x.md", "docs", &link(&format!("Page {doc}"), true));
        assert_eq!(found, Some(doc));
    }
    for doc in (1_000..9_000u32).step_by(80) {
        let (_, similarity) = names.nearest(&format!("pgae-{doc}")).unwrap();
        assert!(similarity > 0.8, "{doc}: {similarity}");
    }
}

#[test]
fn the_order_of_insertion_does_not_decide() {
    let paths = ["docs/b/same.md", "docs/a/same.md", "docs/c/d/same.md"];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut names = Names::new();
        for at in order {
            let id = slug(paths[at]);
            names.insert(u32::try_from(at).unwrap(), &named(paths[at], &id, "Same"));
        }
        assert_eq!(names.resolve("x.md", "docs", &link("same", true)), Some(1));
        assert_eq!(
            names.resolve("docs/c/y.md", "docs", &link("same", true)),
            Some(2)
        );
        assert_eq!(names.nearest("samee").unwrap().0, 1);
    }
}

proptest! {
    #[test]
    fn any_name_and_any_target_have_an_answer(
        path in "[a-zß./ _-]{0,12}",
        title in any::<String>(),
        from in "[a-z./]{0,8}",
        target in any::<String>(),
        is_wiki in any::<bool>(),
    ) {
        let mut names = house();
        let id = slug(&path);
        names.insert(99, &named(&path, &id, &title));
        for target in [&target, &title, &path] {
            let found = names.resolve(&from, "docs", &link(target, is_wiki));
            prop_assert_eq!(found, names.resolve(&from, "docs", &link(target, is_wiki)));
            prop_assert!(found.is_none_or(|it| it == 99 || (it as usize) < HOUSE.len()));
            let near = names.nearest(target);
            prop_assert!(near.is_none_or(|it| (0.6..=1.0).contains(&it.1)));
        }
        let mentions = Mentions::new(&[(1, title.clone()), (2, path)]).find(&title);
        prop_assert!(mentions.iter().all(|it| it.line >= 1 && it.count >= 1));
    }
}
