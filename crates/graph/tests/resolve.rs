//! Which document a link means, case by case.

use kenning_graph::{
    Files, Link, Meaning, Mentions, Named, Names, Origin, Relation, slug, title_of_path,
};
use proptest::prelude::*;

/// An example project: paths from the project's root, titles, headings and aliases.
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

fn example_names() -> Names {
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

fn resolve(names: &Names, path: &str, docs_root: &str, link: &Link) -> Option<u32> {
    let from = Origin {
        path,
        docs_root,
        is_note: false,
    };
    match names.resolve(&from, link, &Files::new()) {
        Meaning::Document(it) => Some(it),
        Meaning::File | Meaning::Outside | Meaning::Missing => None,
    }
}

fn check(is_wiki: bool, cases: &[(&str, &str, Option<&str>)]) {
    let names = example_names();
    for (from, target, expected) in cases {
        let found = resolve(&names, from, "docs", &link(target, is_wiki));
        let found = found.map(|it| HOUSE[it as usize].0);
        assert_eq!(found, *expected, "{target:?} in {from}");
    }
}

#[test]
fn a_path_means_what_is_there_and_only_a_bare_name_is_searched_for() {
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
            ("docs/guides/first_steps.md", "docs/auth.md", None),
            ("docs/guides/first_steps.md", "api/index.md", None),
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
            ("docs/index.md", "deep/auth.md", None),
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
            ("docs/index.md", "../../../auth.md", None),
            // A bare name that several files have means none of them, and one that every folder has none.
            ("docs/a/b/c/x.md", "auth.md", None),
            ("docs/a/b/c/x.md", "README.md", None),
            (
                "docs/a/b/c/x.md",
                "page.md",
                Some("docs/guides/deep/page.md"),
            ),
            ("docs/a/b/c/x.md", "./page.md", None),
            ("docs/a/b/c/x.md", "page", None),
            ("docs/index.md", "./Auth.md", None),
            ("docs/index.md", "./node.js", Some("docs/node.js.md")),
            ("docs/index.md", "auth.mdx", None),
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
    let names = example_names();
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
    let mut grown = example_names();
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
        let found = resolve(
            &names,
            "docs/x.md",
            "docs",
            &link(&format!("Page {doc}"), true),
        );
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
        assert_eq!(
            resolve(&names, "x.md", "docs", &link("same", true)),
            Some(1)
        );
        assert_eq!(
            resolve(&names, "docs/c/y.md", "docs", &link("same", true)),
            Some(2)
        );
        assert_eq!(names.nearest("samee").unwrap().0, 1);
    }
}

#[test]
fn what_is_there_and_no_document_is_no_broken_link() {
    let names = example_names();
    let mut files = Files::new();
    files.insert("LICENSE", false);
    files.insert("docs/guides/deep", true);
    files.insert("docs/page.mdx", false);
    files.insert("docs/node.js", false);
    let meaning = |path: &str, target: &str, is_wiki: bool| {
        let from = Origin {
            path,
            docs_root: "docs",
            is_note: false,
        };
        names.resolve(&from, &link(target, is_wiki), &files)
    };
    for (target, expected) in [
        ("../LICENSE", Meaning::File),
        ("/LICENSE", Meaning::File),
        ("guides/deep", Meaning::File),
        ("guides/deep/", Meaning::File),
        ("page.mdx", Meaning::File),
        // The file itself comes before a document of its name and `.md`.
        ("node.js", Meaning::File),
        ("guides/", Meaning::Document(2)),
        ("LICENSE", Meaning::Missing),
        ("../../above.md", Meaning::Outside),
        ("../docs/../../x", Meaning::Outside),
    ] {
        assert_eq!(
            meaning("docs/index.md", target, false),
            expected,
            "{target}"
        );
    }
    assert_eq!(meaning("docs/index.md", "LICENSE", true), Meaning::File);
    assert_eq!(
        meaning("docs/index.md", "Node.js", true),
        Meaning::Document(12)
    );
    let from = Origin {
        path: "docs/index.md",
        docs_root: "docs",
        is_note: false,
    };
    let doubtful = |target: &str| names.doubtful(&from, &link(target, false));
    assert_eq!(doubtful("../LICENSE"), ["LICENSE"]);
    assert_eq!(doubtful("/x"), ["x", "docs/x"]);
    assert_eq!(doubtful("auth.md"), <[&str; 0]>::default());
    assert_eq!(doubtful("../../x"), <[&str; 0]>::default());
}

#[test]
fn notes_of_a_vault_link_from_its_root_and_in_any_letters() {
    let names = example_names();
    let meaning = |target: &str| {
        let from = Origin {
            path: "docs/guides/first_steps.md",
            docs_root: "",
            is_note: true,
        };
        names.resolve(&from, &link(target, false), &Files::new())
    };
    assert_eq!(meaning("docs/auth.md"), Meaning::Document(1));
    assert_eq!(meaning("./AUTH.md"), Meaning::Document(4));
    assert_eq!(meaning("./first-steps.md"), Meaning::Missing);
    assert_eq!(meaning("../none/auth.md"), Meaning::Missing);
}

#[test]
fn a_suggestion_lies_near_the_path_of_the_link() {
    let mut names = Names::new();
    let paths = [
        "docs/a/setup.md",
        "docs/b/setup.md",
        "docs/b/deep/setup.md",
        "docs/b/setups.md",
    ];
    for (doc, path) in (0u32..).zip(paths) {
        let id = slug(path);
        names.insert(doc, &named(path, &id, ""));
    }
    let near = |path: &str, target: &str, is_wiki: bool| {
        let from = Origin {
            path,
            docs_root: "docs",
            is_note: false,
        };
        let found = names.nearest_to(&from, &link(target, is_wiki));
        found.map(|it| paths[it.0 as usize])
    };
    assert_eq!(
        near("docs/x.md", "b/stup.md", false),
        Some("docs/b/setup.md")
    );
    assert_eq!(
        near("docs/x.md", "a/stup.md", false),
        Some("docs/a/setup.md")
    );
    assert_eq!(
        near("docs/b/deep/x.md", "stup.md", false),
        Some("docs/b/deep/setup.md")
    );
    let found = near("docs/a/x.md", "../b/deeper/setup.md", false);
    assert!(found.unwrap().starts_with("docs/b/"), "{found:?}");
    let mut many = Names::new();
    for doc in 0..300u32 {
        let path = format!("docs/part{doc}/README.md");
        many.insert(doc, &named(&path, &slug(&path), "README"));
    }
    let from = Origin {
        path: "docs/index.md",
        docs_root: "docs",
        is_note: false,
    };
    let found = many.nearest_to(&from, &link("part217/REDME.md", false));
    assert_eq!(found.unwrap().0, 217);
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
        let mut names = example_names();
        let id = slug(&path);
        names.insert(99, &named(&path, &id, &title));
        for target in [&target, &title, &path] {
            let found = resolve(&names, &from, "docs", &link(target, is_wiki));
            prop_assert_eq!(found, resolve(&names, &from, "docs", &link(target, is_wiki)));
            prop_assert!(found.is_none_or(|it| it == 99 || (it as usize) < HOUSE.len()));
            let near = names.nearest(target);
            prop_assert!(near.is_none_or(|it| (0.6..=1.0).contains(&it.1)));
        }
        let mentions = Mentions::new(&[(1, title.clone()), (2, path)]).find(&title);
        prop_assert!(mentions.iter().all(|it| it.line >= 1 && it.count >= 1));
    }
}
