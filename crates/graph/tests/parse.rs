//! What a text says, case by case.

use kenning_graph::{DocType, Document, Link, Status, parse};
use proptest::prelude::*;
use serde_json::json;

/// Links as `relation target#fragment "text"`, with `wiki` or `path` before.
fn links(text: &str) -> Vec<String> {
    let form = |it: &Link| {
        let kind = if it.is_wiki { "wiki" } else { "path" };
        let fragment = it.fragment.as_ref();
        let fragment = fragment.map_or(String::new(), |it| format!("#{it}"));
        let relation = it.relation.as_str();
        format!("{kind} {relation} {}{fragment} \"{}\"", it.target, it.text)
    };
    parse(text).links.iter().map(form).collect()
}

#[test]
fn a_text_has_links() {
    for (text, expected) in [
        ("[[page]]", &["wiki link page \"page\""][..]),
        ("[[page|an *alias*]]", &["wiki link page \"an alias\""]),
        (
            "[[page#heading]]",
            &["wiki link page#heading \"page#heading\""],
        ),
        ("[[page#^b1|x]]", &["wiki link page#^b1 \"x\""]),
        ("[[page^b1]]", &["wiki link page#^b1 \"page^b1\""]),
        (
            "[[folder/page]]",
            &["wiki link folder/page \"folder/page\""],
        ),
        ("[[a]][[b]]", &["wiki link a \"a\"", "wiki link b \"b\""]),
        ("![[note]]", &["wiki embed note \"note\""]),
        ("![[note.md#h]]", &["wiki embed note.md#h \"note.md#h\""]),
        ("![[a.png]] ![[b.rs]] [[c.pdf]]", &[]),
        ("[x](a.md)", &["path link a.md \"x\""]),
        (
            "[x](../a%20b.md#c \"title\")",
            &["path link ../a b.md#c \"x\""],
        ),
        ("[x](<a b.md>)", &["path link a b.md \"x\""]),
        (
            "[x y][r]\n\n[r]: sub/a.md 'title'",
            &["path link sub/a.md \"x y\""],
        ),
        (
            "[r][] and [r]\n\n[r]: a.md",
            &["path link a.md \"r\"", "path link a.md \"r\""],
        ),
        (
            "[x](folder/) [y](page)",
            &["path link folder/ \"x\"", "path link page \"y\""],
        ),
        ("[x](#here) [[#here]]", &[]),
        ("[[2]](../b/t.md) x", &["path link ../b/t.md \"2\""]),
        ("[[2]](https://example.org) [[3]](#x)", &[]),
        ("[[page]](2020)", &["wiki link page \"page\""]),
        ("[[page]] (a/b.md)", &["wiki link page \"page\""]),
        (
            "[[r]] [[other]]\n\n[r]: a.md",
            &["path link a.md \"r\"", "wiki link other \"other\""],
        ),
        (
            "see <a href=\"a.md#b\">the *page*</a>, [y](b.md)",
            &["path link a.md#b \"the page\"", "path link b.md \"y\""],
        ),
        (
            "<p align=\"center\">\n  <a class=\"x\"\n href='docs/a.md'><b>A</b></a>\n  <a href=\"https://example.org\">x</a>\n</p>\n",
            &["path link docs/a.md \"A\""],
        ),
        (
            "x <!-- <a href=\"a.md\">x</a> --> `<a href=\"b.md\">` <code><a href=\"c.md\"></a></code>",
            &[],
        ),
        ("<!-- <a href=\"a.md\">x</a> -->", &[]),
        (
            "an <a href=\"a.md\">open one\n\nnext",
            &["path link a.md \"open one\""],
        ),
        ("[x](a.png) [y](src/a.rs) ![z](a.png)", &[]),
        ("![z](a.md)", &["path embed a.md \"z\""]),
        ("[![alt](i.png)](a.md)", &["path link a.md \"alt\""]),
        (
            "<https://example.org/a.md> [x](https://example.org/a.md) [y](mailto:a@b.c)",
            &[],
        ),
        (
            "[x](//host/a.md) [[https://example.org]] [y](ftp://a/b.md)",
            &[],
        ),
        ("https://example.org/[[a", &[]),
        ("[`code` and $x$](a.md)", &["path link a.md \"code and x\""]),
        (
            "| a | b |\n|---|---|\n| [[p\\|q]] | [x](a.md) |",
            &["wiki link p \"q\"", "path link a.md \"x\""],
        ),
        (
            "- [ ] [[task]]\n  1. [[sub]]\n",
            &["wiki link task \"task\"", "wiki link sub \"sub\""],
        ),
        ("> [!note] see [[quoted]]", &["wiki link quoted \"quoted\""]),
        ("a[^1]\n\n[^1]: see [[foot]]", &["wiki link foot \"foot\""]),
        ("# The [[head]]", &["wiki link head \"head\""]),
        ("[[Größe/日本|語]]", &["wiki link Größe/日本 \"語\""]),
        (
            "<div>\n\n[[inside]]\n\n</div>",
            &["wiki link inside \"inside\""],
        ),
        ("\\[[escaped]] \\[x](a.md)", &[]),
        ("[broken](a.md", &[]),
        ("[[open", &[]),
        (
            "[[wrapped\nname]]",
            &["wiki link wrapped name \"wrapped name\""],
        ),
    ] {
        assert_eq!(links(text), expected, "{text:?}");
    }
}

#[test]
fn code_math_and_comments_have_no_links_and_no_tags() {
    for text in [
        "```\n[[a]] #t [x](a.md)\n```",
        "~~~md\n[[a]] #t\n~~~",
        "```\n[[a]] never closed #t",
        "    [[a]] #t",
        "- item\n\n      [[a]] #t",
        "> ```\n> [[a]] #t\n> ```",
        "`[[a]] #t`",
        "`` ` [[a]] #t ``",
        "<!-- [[a]] #t -->",
        "x <!-- [[a]] #t --> y",
        "<!--\n[[a]]\n\n#t\n-->",
        "$[[a]] #t$",
        "$$\n[[a]] #t\n$$",
        "x <code>[[a]] #t</code>",
        "x <kbd class=\"k\">[[a]] #t</kbd>",
        "<pre>\n[[a]] #t\n\n#t\n</pre>",
        "<script>\nlet a = [[a]] // #t\n</script>",
    ] {
        let it = parse(text);
        assert_eq!((it.links, it.tags), (vec![], vec![]), "{text:?}");
    }
    let after = parse("x <code>y</code> [[a]] #t");
    assert_eq!((after.links.len(), after.tags.len()), (1, 1));
    let open = parse("x <code>y\n\n[[a]] #t");
    assert_eq!((open.links.len(), open.tags.len()), (1, 1));
}

#[test]
fn fields_have_links() {
    for (fields, expected) in [
        ("related: auth", &["wiki related auth \"auth\""][..]),
        (
            "related: [auth, ./b.md]",
            &[
                "wiki related auth \"auth\"",
                "path related ./b.md \"./b.md\"",
            ],
        ),
        (
            "related: auth, b",
            &["wiki related auth \"auth\"", "wiki related b \"b\""],
        ),
        (
            "related:\n  - \"[[a|A]]\"\n  - '[x](b.md)'",
            &["wiki related a \"A\"", "path related b.md \"x\""],
        ),
        ("related: [[a]]", &["wiki related a \"a\""]),
        (
            "related:\n  - [[a#h]]\n  - [[b|B]]",
            &["wiki related a#h \"a#h\"", "wiki related b \"B\""],
        ),
        (
            "parent: Home, sweet",
            &["wiki parent Home, sweet \"Home, sweet\""],
        ),
        ("up: \"[[Home]]\"", &["wiki parent Home \"Home\""]),
        ("depends_on: [a/b]", &["wiki depends_on a/b \"a/b\""]),
        ("See Also: x", &["wiki see_also x \"x\""]),
        ("links: [plain, '[x](a.md)']", &["path links a.md \"x\""]),
        (
            "author: \"[[Ada]] and [[Bob]]\"",
            &["wiki author Ada \"Ada\"", "wiki author Bob \"Bob\""],
        ),
        ("author: Ada", &[]),
        ("source: '[x](a.md)'", &[]),
        ("matrix: [[1, 2], [3]]", &[]),
        (
            "title: \"[[a]]\"\ntags: [\"[[b]]\"]\naliases: \"[[c]]\"",
            &[],
        ),
        ("related: https://example.org/a.md", &[]),
        ("related:", &[]),
        ("related: {a: b}", &[]),
        (
            "related: \"`[[a]]`\"",
            &["wiki related `[[a]]` \"`[[a]]`\""],
        ),
    ] {
        let text = format!("---\n{fields}\n---\n");
        assert_eq!(links(&text), expected, "{fields:?}");
    }
    let toml = "+++\nrelated = ['auth']\n+++\n";
    assert_eq!(links(toml), ["wiki related auth \"auth\""]);
}

#[test]
fn a_link_has_its_line_and_its_context() {
    let text = "---\ntitle: x\nrelated:\n  - a\n  - b\nparent: c\n---\n# T\n\nfirst\nsecond [[d]] end\n\n\
                - one\n- two [e](e.md)\n  - three [[f]]\r\n";
    let found: Vec<_> = parse(text)
        .links
        .into_iter()
        .map(|it| (it.target, it.line, it.context))
        .collect();
    let expected = [
        ("a", 4, "- a"),
        ("b", 5, "- b"),
        ("c", 6, "parent: c"),
        ("d", 11, "first second [[d]] end"),
        ("e.md", 14, "two [e](e.md) - three [[f]]"),
        ("f", 15, "three [[f]]"),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|it| (it.0.to_owned(), it.1, it.2.to_owned()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_document_says_what_it_is() {
    let text = "---\ntitle: 'The  Title'\ndescription: A thing\ntype: Guide\nstatus: DRAFT\n\
                tags: [One, two]\naliases: [First, first, First]\nday: 2024-01-02\n---\n\
                Intro #three #ONE\n\n## Second *level*\n\n# First `level` #four\n\n# Other\n\nSetext\n===\n";
    let it = parse(text);
    let expected = Document {
        others: Vec::new(),
        lost: Vec::new(),
        frontmatter: json!({
            "title": "The  Title", "description": "A thing", "type": "Guide", "status": "DRAFT",
            "tags": ["One", "two"], "aliases": ["First", "first", "First"], "day": "2024-01-02",
        })
        .as_object()
        .unwrap()
        .clone(),
        faults: vec![],
        body_start: text.find("Intro").unwrap(),
        title: Some("The Title".to_owned()),
        heading: Some("First level #four".to_owned()),
        description: Some("A thing".to_owned()),
        doc_type: Some(DocType::Guide),
        status: Some(Status::Draft),
        tags: ["One", "two", "three", "four"].map(str::to_owned).to_vec(),
        aliases: ["First", "first"].map(str::to_owned).to_vec(),
        links: vec![],
        headings: ["Second level", "First level #four", "Other", "Setext"]
            .map(str::to_owned)
            .to_vec(),
        anchors: ["firstlevelfour", "other", "secondlevel", "setext"]
            .map(str::to_owned)
            .to_vec(),
        word_count: 11,
    };
    assert_eq!(it, expected);
}

#[test]
fn an_unknown_word_is_a_fault_and_stays_in_the_fields() {
    for (fields, lines) in [
        ("status: done\ntype: note", &[3, 2][..]),
        ("type: [guide]", &[2]),
        ("status: 3", &[2]),
        ("type: guide\nstatus: archived", &[]),
        ("type:\nstatus: ''", &[]),
    ] {
        let it = parse(&format!("---\n{fields}\n---\nx"));
        let found: Vec<u32> = it.faults.iter().map(|it| it.line).collect();
        assert_eq!(found, lines, "{fields:?}: {:?}", it.faults);
        assert_eq!(it.frontmatter.is_empty(), fields.is_empty());
    }
    let it = parse("---\nstatus: done\n---\n");
    assert_eq!(it.status, None);
    assert_eq!(it.frontmatter["status"], "done");
    assert_eq!(
        it.faults[0].message,
        "`status: done` is unknown: use one of draft, active, deprecated, archived"
    );
}

#[test]
fn inline_tags_are_in_prose_only() {
    for (text, expected) in [
        ("#tag", &["tag"][..]),
        ("# Heading", &[]),
        ("#a_b_c **#d** ~~x~~", &["a_b_c", "d"]),
        ("\\#no #yes", &["yes"]),
        ("&#35;no", &[]),
        ("[#no](a.md) [[#no]] [x #no](https://example.org)", &[]),
        ("<https://example.org/#no> https://example.org/a#no", &[]),
        ("C# and F# #123", &[]),
        ("| #cell | x |\n|---|---|\n| y | #row |", &["cell", "row"]),
        ("- #item\n> #quote", &["item", "quote"]),
        ("#日本\n#größe", &["日本", "größe"]),
        ("## T #in-heading ##", &["in-heading"]),
    ] {
        assert_eq!(parse(text).tags, expected, "{text:?}");
    }
}

#[test]
fn words_are_counted_without_marks() {
    for (content, words) in [
        ("", 0),
        ("# Hello *World*", 2),
        ("[a](b) `c`", 2),
        ("- x\n- y", 4),
        ("## ** ()", 0),
        ("日本 語", 2),
    ] {
        let text = format!("---\na: not counted\n---\n{content}");
        assert_eq!(parse(&text).word_count, words, "{content:?}");
    }
}

#[test]
fn hostile_texts_are_read_like_any_other() {
    let n = 100_000;
    let deep_list: String = (0..800)
        .map(|it| " ".repeat(it * 2) + "- [[a]]\n")
        .collect();
    for (name, text, n_links) in [
        ("brackets", "[".repeat(n), 0),
        ("closed brackets", "[".repeat(n) + &"]".repeat(n), 0),
        (
            "nested wikilinks",
            "[[".repeat(n) + "a" + &"]]".repeat(n),
            1,
        ),
        ("bars", "[[a|".repeat(n), 0),
        ("embeds", "![[".repeat(n), 0),
        ("half links", "[a](".repeat(n), 0),
        ("references", "[a][".repeat(n), 0),
        (
            "images in images",
            "![".repeat(n / 4) + "x" + &"](a.md)".repeat(n / 4),
            8,
        ),
        ("hashes", "#".repeat(1_000_000), 0),
        ("hash words", "#a#".repeat(n), 0),
        ("quotes", ">".repeat(n) + "[[a]]\n" + &"b\n".repeat(n), 0),
        ("lists", "- ".repeat(n) + "[[a]]\n" + &"\n".repeat(n), 0),
        (
            "lists in code",
            "- ".repeat(n) + "```\n" + &"\n".repeat(n),
            0,
        ),
        ("numbers", "1. ".repeat(n) + "a\n" + &"b\n".repeat(n), 0),
        (
            "footnotes",
            "[^a]: ".repeat(n) + "a\n" + &"b\n".repeat(n),
            0,
        ),
        ("deep list", deep_list, 800),
        (
            "backticks",
            (1..1_000).map(|it| "`".repeat(it) + " ").collect(),
            0,
        ),
        ("dollars", "$a ".repeat(n), 0),
        ("emphasis", "*a_ ".repeat(n), 0),
        ("comments", "a <!--".repeat(n), 0),
        ("tags", "<a b=\"".repeat(n), 0),
        (
            "table",
            "|a".repeat(2_000) + "\n" + &"|-".repeat(2_000) + "\n" + &"|\n".repeat(2_000),
            0,
        ),
    ] {
        let it = parse(&text);
        let found = it.links.len();
        // What nests too deeply is text; how much of it is still a link is the parser's affair.
        assert!(found >= n_links && found <= n_links + 10, "{name}: {found}");
        assert!(it.tags.len() <= 1, "{name}");
    }
}

#[test]
fn a_text_of_too_many_links_says_so() {
    let it = parse(&"[[a]] ".repeat(10_001));
    assert_eq!(it.links.len(), 10_000);
    assert!(it.faults[0].message.contains("more than 10000 links"));
    assert!(parse(&"[[a]] ".repeat(10_000)).faults.is_empty());
}

/// Pieces that Markdown gives a meaning to, in any order.
fn marked_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "---\n",
        "+++\n",
        "a: b\n",
        "related: [[x]]\n",
        "[[",
        "]]",
        "|",
        "#",
        "^",
        "!",
        "[",
        "]",
        "(",
        ")",
        "`",
        "```\n",
        "\n",
        "\r\n",
        "    ",
        "> ",
        "- ",
        "1. ",
        "é",
        "日本",
        "\u{feff}",
        "\u{0}",
        "\\",
        "<!--",
        "-->",
        "<code>",
        "$",
        "*",
        "_",
        "a.md",
        "x y",
        "#tag",
        "%20",
        ": ",
        "\t",
        "&amp;",
        "[^1]:",
        "tags:",
        "\u{301}",
        "🚀",
    ]);
    prop::collection::vec(pieces, 0..60).prop_map(|it| it.concat())
}

fn check_any(text: &str) -> Result<(), TestCaseError> {
    let it = parse(text);
    prop_assert_eq!(&it, &parse(text));
    let n_lines = text.split('\n').count();
    prop_assert!(text.is_char_boundary(it.body_start));
    for link in &it.links {
        prop_assert!((1..=n_lines).contains(&(link.line as usize)), "{:?}", link);
        prop_assert!(link.context.chars().count() <= 200 && !link.context.contains('\n'));
        prop_assert!(!link.target.is_empty());
    }
    for fault in &it.faults {
        prop_assert!(
            (1..=n_lines).contains(&(fault.line as usize)),
            "{:?}",
            fault
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_has_a_reading(text in any::<String>()) {
        check_any(&text)?;
    }

    #[test]
    fn any_marked_text_has_a_reading(text in marked_text()) {
        check_any(&text)?;
        check_any(&format!("---\n{text}\n---\n{text}"))?;
    }
}
