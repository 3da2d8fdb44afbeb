//! What the formats of others are given.

use kenning_graph::export::{Picture, PictureEdge, PictureNode, canvas, dot, graphml, html, json};
use kenning_graph::{DocType, Status};
use proptest::prelude::*;
use serde_json::{Value, json as value};
use sha2::{Digest, Sha256};

const NASTY: &str = "</script><script>alert('x')</script> \"&\\ <!-- ]]> \u{0}\u{7}\r\n{{title}} {{data}} \u{2028}é";

fn node(id: &str, title: &str, community: u32) -> PictureNode {
    PictureNode {
        id: id.to_owned(),
        title: title.to_owned(),
        doc_type: DocType::Guide,
        status: Status::Active,
        tags: vec!["one".to_owned(), "two & three".to_owned()],
        path: format!("docs/{id}.md"),
        rank: 0.25,
        community,
        words: 12,
    }
}

fn edge(source: &str, target: &str, relation: &str) -> PictureEdge {
    PictureEdge {
        source: source.to_owned(),
        target: target.to_owned(),
        relation: relation.to_owned(),
        weight: 0.5,
        text: NASTY.to_owned(),
    }
}

fn picture() -> Picture {
    Picture {
        nodes: vec![node("a/b", "A \"B\"", 0), node("c", NASTY, 1)],
        edges: vec![
            edge("a/b", "c", "depends_on"),
            edge("c", "a/b", "link"),
            edge("c", "gone", "link"),
        ],
    }
}

#[test]
fn graphml_is_read_back_by_a_parser() {
    let text = graphml(&picture());
    let document = roxmltree::Document::parse(&text).unwrap();
    let all = |name: &str| -> Vec<_> {
        let named = document
            .descendants()
            .filter(|it| it.has_tag_name(("http://graphml.graphdrawing.org/xmlns", name)));
        named.collect()
    };
    assert_eq!((all("node").len(), all("edge").len()), (2, 2));
    let fields = |of: roxmltree::Node<'_, '_>| -> Vec<(String, String)> {
        let data = of.children().filter(|it| it.has_tag_name("data"));
        let field = |it: roxmltree::Node<'_, '_>| {
            let key = it.attribute("key").unwrap().to_owned();
            (key, it.text().unwrap_or_default().to_owned())
        };
        data.map(field).collect()
    };
    let expected = [
        ("node-name", "a/b"),
        ("node-label", "A \"B\""),
        ("node-type", "guide"),
        ("node-status", "active"),
        ("node-tags", "one, two & three"),
        ("node-path", "docs/a/b.md"),
        ("node-rank", "0.25"),
        ("node-community", "0"),
        ("node-words", "12"),
    ]
    .map(|it| (it.0.to_owned(), it.1.to_owned()));
    assert_eq!(fields(all("node")[0]), expected);
    let label = NASTY.replace(['\u{0}', '\u{7}'], "\u{fffd}");
    assert_eq!(fields(all("node")[1])[1].1, label);
    let edge = all("edge")[0];
    assert_eq!(edge.attribute("source"), Some("n0"));
    assert_eq!(edge.attribute("target"), Some("n1"));
    assert_eq!(fields(edge)[0].1, "depends_on");
    assert_eq!(fields(edge)[2].1, label);
    // Every field is declared, with a type.
    let declared: Vec<&str> = all("key")
        .iter()
        .filter_map(|it| it.attribute("id"))
        .collect();
    for it in document.descendants().filter_map(|it| it.attribute("key")) {
        assert!(declared.contains(&it), "{it}");
    }
    assert!(
        all("key")
            .iter()
            .all(|it| it.attribute("attr.type").is_some())
    );
}

#[test]
fn a_number_that_is_none_is_zero_in_graphml() {
    let mut picture = picture();
    picture.nodes[0].rank = f64::NAN;
    picture.edges[0].weight = f64::INFINITY;
    let text = graphml(&picture);
    assert!(text.contains("<data key=\"node-rank\">0</data>"), "{text}");
    assert!(
        text.contains("<data key=\"edge-weight\">0</data>"),
        "{text}"
    );
}

#[test]
fn dot_is_escaped() {
    let mut picture = picture();
    picture.nodes[1].title = "x\\\"; a\u{0}\n&amp; é".to_owned();
    picture.nodes[1].id = "c\\".to_owned();
    picture.edges[0].target = "c\\".to_owned();
    let expected = r#"digraph documents {
  node [shape=box, style=rounded];
  "a/b" [label="A \"B\"", tooltip="docs/a/b.md", class="guide"];
  "c\\" [label="x\\\"; a \n&amp;amp; é", tooltip="docs/c.md", class="guide"];
  "a/b" -> "c\\" [label="depends_on"];
}
"#;
    assert_eq!(dot(&picture), expected);
}

#[test]
fn json_is_nodes_and_edges() {
    let it = json(&picture());
    assert_eq!(
        it["nodes"][0],
        value!({
            "id": "a/b", "title": "A \"B\"", "type": "guide", "status": "active",
            "tags": ["one", "two & three"], "path": "docs/a/b.md", "rank": 0.25, "community": 0,
            "words": 12,
        })
    );
    assert_eq!(
        it["edges"],
        value!([
            {"source": "a/b", "target": "c", "relation": "depends_on", "weight": 0.5, "text": NASTY},
            {"source": "c", "target": "a/b", "relation": "link", "weight": 0.5, "text": NASTY},
        ])
    );
    assert_eq!(
        json(&Picture::default()),
        value!({"nodes": [], "edges": []})
    );
}

#[test]
fn a_canvas_has_a_card_for_each_file_and_no_two_overlap() {
    let it = canvas(&picture());
    assert_eq!(
        it["nodes"][0],
        value!({
            "id": "a/b", "type": "file", "file": "docs/a/b.md", "x": 0, "y": 0, "width": 320,
            "height": 160, "color": "1",
        })
    );
    assert_eq!(
        it["edges"],
        value!([
            {"id": "edge-0", "fromNode": "a/b", "toNode": "c", "toEnd": "arrow", "label": "depends_on"},
            {"id": "edge-1", "fromNode": "c", "toNode": "a/b", "toEnd": "arrow"},
        ])
    );
    let mut many = Picture::default();
    for at in 0..400u32 {
        many.nodes.push(node(&format!("n{at}"), "x", at * at % 23));
    }
    let drawn = canvas(&many);
    assert_eq!(drawn, canvas(&many));
    let cards = drawn["nodes"].as_array().unwrap();
    let number = |it: &Value, key: &str| it[key].as_i64().unwrap();
    for (at, a) in cards.iter().enumerate() {
        for b in &cards[at + 1..] {
            let apart_x = (number(a, "x") - number(b, "x")).abs() >= number(a, "width");
            let apart_y = (number(a, "y") - number(b, "y")).abs() >= number(a, "height");
            assert!(apart_x || apart_y, "{a} {b}");
        }
    }
    assert_eq!(
        canvas(&Picture::default()),
        value!({"nodes": [], "edges": []})
    );
}

/// What stands between two texts of the page.
fn between<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let rest = page.split_once(start).map_or("", |it| it.1);
    rest.split_once(end).map_or("", |it| it.0)
}

#[test]
fn the_page_holds_its_data_as_data() {
    let picture = picture();
    let page = html(&picture, NASTY);
    let empty = html(&Picture::default(), "x");
    for it in ["<script", "</script", "<title", "<style", "<!--"] {
        assert_eq!(page.matches(it).count(), empty.matches(it).count(), "{it}");
    }
    let data = between(
        &page,
        "<script id=\"data\" type=\"application/json\">",
        "</script>",
    );
    assert!(!data.contains('<'), "{data}");
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data, json(&picture));
    assert!(!page.contains(|it: char| it.is_control() && it != '\n'));
    let title = between(&page, "<title>", "</title>");
    assert!(title.starts_with("&lt;/script&gt;"), "{title}");
    assert!(title.contains("\"&amp;\\ &lt;!--"), "{title}");
}

#[test]
fn the_page_loads_nothing_and_runs_only_its_own_script() {
    let page = html(&Picture::default(), "x");
    assert!(!page.contains("{{"), "a place was not filled");
    for it in [
        "http:",
        "https:",
        "//cdn",
        " src=",
        "@import",
        "url(",
        "innerHTML",
        "eval(",
        "fetch(",
    ] {
        assert!(!page.contains(it), "{it}");
    }
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    for (kind, element) in [("script-src", "script"), ("style-src", "style")] {
        let text = between(&page, &format!("<{element}>"), &format!("</{element}>"));
        let hash = base64(&Sha256::digest(text.as_bytes()));
        let source = format!("{kind} 'sha256-{hash}'");
        assert!(
            policy.contains(&source),
            "assets/graph.html changed: its policy needs {source}"
        );
    }
}

#[test]
fn the_page_can_be_used_without_a_pointer() {
    let page = html(&Picture::default(), "x");
    for it in [
        "<html lang=\"en\">",
        "tabindex=\"0\"",
        "aria-live=\"polite\"",
        "prefers-color-scheme: dark",
        "prefers-reduced-motion",
        "ArrowLeft",
        "type=\"search\"",
    ] {
        assert!(page.contains(it), "{it}");
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0u8; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at > chunk.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    out
}

proptest! {
    #[test]
    fn any_title_is_text_in_every_format(id in any::<String>(), title in any::<String>()) {
        let picture = Picture {
            nodes: vec![node(&id, &title, 0)],
            edges: vec![edge(&id, &id, &title)],
        };
        let text = graphml(&picture);
        let document = roxmltree::Document::parse(&text).unwrap();
        prop_assert_eq!(document.descendants().filter(|it| it.has_tag_name("node")).count(), 1);
        let page = html(&picture, &title);
        prop_assert_eq!(page.matches("<script").count(), 2);
        let data = between(&page, "type=\"application/json\">", "</script>");
        prop_assert_eq!(serde_json::from_str::<Value>(data).unwrap(), json(&picture));
        // Outside its quotes DOT has nothing of the title: a quote in it is escaped.
        let drawn = dot(&picture).replace("\\\\", "").replace("\\\"", "");
        prop_assert_eq!(drawn.matches('"').count(), 8 + if title == "link" { 4 } else { 6 });
    }
}
