//! Pages of the web, as servers send them.

use super::{ensure, in_time, pieces};
use crate::{Source, Subject, Target};
use kenning_entities::extract::Extractor;
use kenning_entities::ontology::Ontology;
use kenning_entities::page;

pub(super) const TARGET: Target = Target {
    name: "page_html",
    about: "every page has a text, and what it names stands in it",
    words: WORDS,
    seeds: || {
        let pages = [
            include_str!("../../../../testing/pages/blog.html"),
            include_str!("../../../../testing/pages/broken.html"),
            include_str!("../../../../testing/pages/table.html"),
            include_str!("../../../../testing/pages/cjk.html"),
            "<html><head><title>T</title><meta charset=utf-8></head><body><article><p>Bill Baue works at r3.0.</p></article></body></html>",
        ];
        pages.iter().map(|it| it.as_bytes().to_vec()).collect()
    },
    generate,
    open: || Box::new(Pages(Ontology::default())),
    pass_cases: 80,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "<div>",
    "</div>",
    "<p>",
    "</p>",
    "<table>",
    "<tr>",
    "<td>",
    "</table>",
    "<script>",
    "</script>",
    "<style>",
    "</style>",
    "<svg>",
    "<math>",
    "<template>",
    "<select>",
    "<option>",
    "<title>",
    "</title>",
    "<meta charset=\"",
    "<meta property=\"og:title\" content=\"",
    "<link rel=\"canonical\" href=\"",
    "\">",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<a href=\"x\">",
    "<br>",
    "<pre>",
    "<code>",
    "<li>",
    "<ul>",
    "<nav>",
    "<article>",
    "<noscript>",
    "<iframe>",
    "<plaintext>",
    "<frameset>",
    "<b>",
    "<i>",
    "&amp;",
    "&#0;",
    "&#x110000;",
    "&notanentity;",
    "<",
    ">",
    "Bill Baue",
    "works at",
    "Regenesis Group",
    "founded",
    "<button>",
    "<form>",
    "<a>",
    "</b>",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("<div>", "</div>"),
        ("<b>", ""),
        ("<table><tr><td>", "</td></tr></table>"),
        ("<a>", "</a>"),
        ("<svg>", "</svg>"),
        ("<ul><li>", ""),
        ("<font>", ""),
        ("<template>", "</template>"),
        ("<blockquote>", ""),
        ("<span>", "</span>"),
        ("<!--", ""),
    ];
    pieces(source, WORDS, pairs).into_bytes()
}

struct Pages(Ontology);

impl Subject for Pages {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let kinds = [
            None,
            Some("text/html; charset=utf-16"),
            Some("text/html; charset=shift_jis"),
            Some(";;charset=\""),
        ];
        let kind = kinds[input.len() % kinds.len()];
        let html = in_time(input, || page::decode(input, kind))?;
        let read = in_time(input, || page::read(&html))?;
        let longest = html.len() * 4 + 1_000;
        ensure!(
            read.text.len() <= longest,
            "a text of {} bytes from {}",
            read.text.len(),
            html.len()
        );
        let _ = (read.content_hash(), read.n_words());
        let extractor = Extractor::new(&self.0, &[]);
        let found = in_time(input, || extractor.extract(&read.text))?;
        let n = found.entities.len();
        ensure!(
            n <= read.text.len(),
            "{n} entities of {} bytes",
            read.text.len()
        );
        Ok(())
    }
}
