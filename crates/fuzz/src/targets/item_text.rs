//! Directives, tools and knowledge as files, and the lines that sign them.

use super::{ensure, in_time, owned, pieces, text};
use crate::{Source, Subject, Target};
use kenning_items::mark::{self, Style};
use kenning_items::{ItemType, Place, directive, knowledge, tool};

pub(super) const TARGET: Target = Target {
    name: "item_text",
    about: "an item is read or refused with its faults, and its mark can be taken off and read back",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || {
        let place = |item_type, path: &str| Place::of(item_type, path).expect("a place");
        Box::new(Items {
            directive: place(ItemType::Directive, "c/x.md"),
            skill: place(ItemType::Directive, "c/x/SKILL.md"),
            tools: ["x.py", "x.sh", "x.js", "x.yaml", "x/tool.yaml"]
                .map(|it| place(ItemType::Tool, &format!("c/{it}")))
                .to_vec(),
            knowledge: place(ItemType::Knowledge, "c/x.md"),
        })
    },
    pass_cases: 400,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "```xml\n",
    "```\n",
    "<directive name=\"x\" version=\"1.0.0\">",
    "</directive>",
    "<metadata>",
    "</metadata>",
    "<description>d</description>",
    "<category>c</category>",
    "<author>a</author>",
    "<model tier=\"fast\">m</model>",
    "<permissions>",
    "</permissions>",
    "<permission tag=\"read\" resource=\"filesystem\" path=\"**\"/>",
    "<inputs>",
    "</inputs>",
    "<input name=\"a\" type=\"string\" required=\"true\">x</input>",
    "<process>",
    "</process>",
    "<step name=\"s\">",
    "</step>",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE a [<!ENTITY b \"c\">]>",
    "&b;",
    "&#0;",
    "&#x10ffff;",
    "&lt;",
    "<?xml version=\"1.0\"?>",
    "<a ",
    "/>",
    "<!-- ",
    " -->",
    "---\n",
    "name: x\n",
    "description: d\n",
    "version: 1.0.0\n",
    "tool_id: x\n",
    "tool_type: python\n",
    "executor_id: python\n",
    "category: c\n",
    "config:\n",
    "  command: echo\n",
    "parameters:\n",
    "  - name: a\n",
    "    type: string\n",
    "__version__ = \"1.0.0\"\n",
    "__tool_type__ = \"python\"\n",
    "__executor_id__ = \"python\"\n",
    "CONFIG = {\"a\": [1, 2]}\n",
    "\"\"\"doc\"\"\"\n",
    "'''",
    "f\"{x}\"",
    "r'\\'",
    "b'\\xff'",
    "u'\\u00e9'",
    "# kenning:signed:",
    "<!-- kenning:signed:",
    "# kiwi-mcp:validated:",
    "<!-- kiwi-mcp:validated:",
    "2026-01-02T03:04:05Z:",
    "did:key:z6Mk",
    "zettel_id: x\n",
    "title: T\n",
    "entry_type: learning\n",
    "tags: [a]\n",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\\\n",
    "None",
    "True",
    "-1e5",
];

const SEEDS: &[&str] = &[
    "# X\n\n```xml\n<directive name=\"x\" version=\"1.0.0\">\n  <metadata>\n    <description>d</description>\n    <category>c</category>\n    <author>a</author>\n    <model tier=\"fast\">m</model>\n    <permissions>\n      <permission tag=\"read\" resource=\"filesystem\" path=\"src/**\"/>\n    </permissions>\n  </metadata>\n  <inputs>\n    <input name=\"a\" type=\"string\" required=\"true\">words</input>\n  </inputs>\n  <process>\n    <step name=\"s\"><action>do &amp; <![CDATA[<it>]]></action></step>\n  </process>\n</directive>\n```\n",
    "---\nname: x\ndescription: Does it\nversion: 1.0.0\n---\n\n1. Do it.\n",
    "tool_id: x\ntool_type: python\nexecutor_id: python\nversion: 1.0.0\ncategory: c\ndescription: d\nconfig:\n  command: echo\n  args: [\"{a}\"]\nparameters:\n  - name: a\n    type: string\n    required: true\n",
    "\"\"\"Says it.\"\"\"\n__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n__executor_id__ = \"python_runtime\"\n__category__ = \"c\"\nCONFIG_SCHEMA = {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\"}}}\n\ndef main(a: str = 'x', *, b=[1, 2]):\n    return a\n",
    "---\nzettel_id: x\ntitle: T\nentry_type: learning\ncategory: c\nversion: 1.0.0\ntags: [a, b]\n---\n\nBody [[link]].\n",
    "<!-- kenning:signed:2026-01-02T03:04:05Z:0000000000000000000000000000000000000000000000000000000000000000:did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK:AAAA -->\n# X\n",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("<a>", "</a>"),
        ("<a b=\"", "\"/>"),
        ("[", "]"),
        ("{\"a\": ", "}"),
        ("(", ")"),
        ("- ", ""),
        ("a:\n ", ""),
        ("<step name=\"s\">", "</step>"),
        ("<!ENTITY a \"", "\">"),
        ("not ", ""),
        ("-", ""),
        ("x = [", "]\n"),
        ("1+", ""),
        ("'", "'"),
        ("x if y else ", ""),
        ("{", "}"),
        ("lambda: ", ""),
    ];
    let head = *source.pick(&[
        "",
        "```xml\n<directive name=\"x\" version=\"1.0.0\">",
        "---\n",
        "CONFIG = ",
    ]);
    format!("{head}{}", pieces(source, WORDS, pairs)).into_bytes()
}

struct Items {
    directive: Place,
    skill: Place,
    tools: Vec<Place>,
    knowledge: Place,
}

impl Subject for Items {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let text = text(input);
        let faults = |what: &str, words: String| -> Result<(), String> {
            ensure!(!words.is_empty(), "{what} was refused without words");
            Ok(())
        };
        for place in [&self.directive, &self.skill] {
            match in_time(input, || directive::read(&text, place))? {
                Ok(read) => {
                    let _ = directive::all_inputs(&read);
                }
                Err(it) => faults("a directive", it.to_string())?,
            }
        }
        for place in &self.tools {
            match in_time(input, || tool::read(&text, place))? {
                Ok(read) => {
                    let schema = read.input_schema();
                    let depth = super::front_matter::depth_of(&schema);
                    ensure!(
                        depth <= 126,
                        "depth: a schema of {depth} levels cannot be stored"
                    );
                    let _ = read.check_parameters(&serde_json::json!({ "a": 1 }));
                    let _ = read.as_child();
                }
                Err(it) => faults("a tool", it.to_string())?,
            }
        }
        if let Err(it) = in_time(input, || knowledge::read(&text, &self.knowledge))? {
            faults("an entry", it.to_string())?;
        }
        for style in [Style::Html, Style::Hash, Style::Slashes] {
            let bare = in_time(input, || mark::strip(&text, style))?;
            ensure!(
                bare.len() <= text.len(),
                "taking a mark off made a text longer"
            );
            if let Some(found) = mark::find(&text, style) {
                let again = mark::embed(&bare, style, &found);
                ensure!(
                    mark::find(&again, style).as_ref() == Some(&found),
                    "a mark reads back otherwise"
                );
                ensure!(
                    mark::strip(&again, style) == bare,
                    "a mark cannot be taken off again"
                );
            }
        }
        Ok(())
    }
}
