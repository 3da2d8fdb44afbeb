//! Links of Markdown texts, what they mean, and names that a text says without a link.

use super::{ensure, in_time, owned, pieces, text};
use crate::{Source, Subject, Target};
use kenning_graph::{Files, Mentions, Named, Names, Origin};

pub(super) const TARGET: Target = Target {
    name: "markdown_links",
    about: "links are where they stand, and lead to a document or nowhere",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Texts::new()),
    pass_cases: 200,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "[[Alpha]]",
    "[[Beta|shown]]",
    "[[Alpha#Head]]",
    "![[pic.png]]",
    "[a](beta.md)",
    "[a](../x/y.md)",
    "[a]: beta.md\n",
    "[a][b]",
    "<https://a.b>",
    "`code`",
    "```\ncode\n```\n",
    "~~~\n",
    "$x$",
    "$$\n",
    "<div>",
    "</div>",
    "<!-- c -->",
    "%%c%%",
    "# ",
    "## Head\n",
    "- [ ] ",
    "> ",
    "> [!note]\n",
    "* ",
    "1. ",
    "| a | b |\n|---|---|\n",
    "**",
    "_",
    "~~",
    "==",
    "^block",
    "#tag",
    "#a/b",
    "\n\n",
    "    ",
    "\\",
    "&amp;",
    "&#x41;",
    "Alpha",
    "Beta",
    "Gamma Delta",
    "[^1]",
    "[^1]: note\n",
    "- ",
    "\t",
];

const SEEDS: &[&str] = &[
    "# Title\n\ntext [[Alpha]] and [[Beta|b]] and [c](notes/gamma.md#part \"t\") #tag\n",
    "[a]: beta.md 'title'\n\nsee [a] and [x][a] and ![[pic.png]] and <https://example.com>\n",
    "```\n[[not a link]]\n```\n`[[nor this]]` $[[x]]$ <!-- [[y]] -->\n",
    "| a | b |\n|---|---|\n| [[Alpha\\|x]] | [b](beta.md) |\n",
    "> - 1. > [[Alpha#H|x]] ^block\n\nAlpha and Beta are named, Gamma Delta too.\n",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("> ", ""),
        ("- ", ""),
        ("[", "]"),
        ("[[", "]]"),
        ("(", ")"),
        ("**", "**"),
        ("_", "_"),
        ("![", "](x)"),
        ("[", "](x)"),
        ("<div>", "</div>"),
        ("`", "`"),
        ("*", ""),
        ("~", "~"),
        ("<", ">"),
        ("1. ", ""),
        ("![[", "]]"),
        ("&", ";"),
        ("[^", "]"),
        ("$", "$"),
        ("|", "|"),
    ];
    pieces(source, WORDS, pairs).into_bytes()
}

struct Texts {
    names: Names,
    mentions: Mentions,
    files: Files,
}

impl Texts {
    fn new() -> Self {
        let mut names = Names::new();
        let documents = [
            "alpha.md",
            "beta.md",
            "notes/gamma.md",
            "notes/deep/alpha.md",
        ];
        for (at, path) in documents.iter().enumerate() {
            let named = Named {
                id: path.trim_end_matches(".md"),
                path,
                docs_path: path,
                title: "Gamma Delta",
                heading: Some("Alpha"),
                aliases: &[],
            };
            names.insert(at as u32, &named);
        }
        let said = ["Alpha", "Beta", "Gamma Delta"].iter().enumerate();
        let said: Vec<(u32, String)> = said.map(|(at, it)| (at as u32, (*it).to_owned())).collect();
        Self {
            names,
            mentions: Mentions::new(&said),
            files: Files::default(),
        }
    }
}

impl Subject for Texts {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let text = text(input);
        let document = in_time(input, || kenning_graph::parse(&text))?;
        let n_lines = text.split('\n').count() as u32;
        let from = Origin {
            path: "notes/from.md",
            docs_root: "notes",
            is_note: text.len().is_multiple_of(2),
        };
        for link in document.links.iter().chain(&document.others).take(200) {
            ensure!(!link.target.is_empty(), "a link leads nowhere by name");
            ensure!(
                (1..=n_lines).contains(&link.line),
                "line: {} of {n_lines}",
                link.line
            );
            let n = link.context.chars().count();
            ensure!(n <= 200, "context: {n} characters");
            ensure!(!link.context.contains('\n'), "context: more than a line");
            let _ = self.names.resolve(&from, link, &self.files);
            for path in self.names.doubtful(&from, link) {
                let leads_out = path.starts_with('/') || path.split('/').any(|it| it == "..");
                ensure!(!leads_out, "path: `{path}` leads outside");
            }
            let _ = self.names.nearest_to(&from, link);
        }
        for mention in in_time(input, || self.mentions.find(&text))? {
            let n = mention.context.chars().count();
            ensure!(n <= 200, "context: {n} characters");
            ensure!(
                (1..=n_lines).contains(&mention.line),
                "line: {} of {n_lines}",
                mention.line
            );
        }
        let slug = kenning_graph::slug(&text);
        ensure!(!slug.contains(['\\', '\0']), "slug: `{slug}`");
        let _ = kenning_graph::title_of_path(&text);
        let _ = kenning_graph::type_of_path(&text);
        Ok(())
    }
}
