//! The Agent Skills format: the rules for a folder with a `SKILL.md` that other programs use.
//!
//! A skill that already has this format is passed on byte for byte. For other directives a `SKILL.md`
//! is generated ([`text_of`]).

use crate::directive::{Directive, Spelling};
use crate::kind::shown;
use crate::yaml;
use kenning_text::line::{beginning, one_line};
use serde_json::{Map, Value, json};

/// The longest name of a skill.
pub const NAME_CHARS_MAX: usize = 64;
/// The longest description.
pub const DESCRIPTION_CHARS_MAX: usize = 1_024;
/// The longest note on what a skill needs.
pub const COMPATIBILITY_CHARS_MAX: usize = 500;
/// Every field of the frontmatter; other fields belong in `metadata`.
pub const FIELDS: [&str; 6] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];

/// Whether a text is a valid name of a skill.
pub fn is_name(text: &str) -> bool {
    let is_good = |c: char| c == '-' || (c.is_alphanumeric() && c.to_lowercase().eq([c]));
    !text.is_empty()
        && text.chars().nth(NAME_CHARS_MAX).is_none()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--")
        && text.chars().all(is_good)
}

/// The nearest valid name: `OAuth_setup` becomes `oauth-setup`.
pub fn name_of(id: &str) -> String {
    let mut out = String::new();
    for c in id.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let short: String = out.chars().take(NAME_CHARS_MAX).collect();
    let short = short.trim_end_matches('-');
    match short.is_empty() {
        true => "skill".to_owned(),
        false => short.to_owned(),
    }
}

/// The name in the frontmatter of a `SKILL.md`.
pub fn declared_name(text: &str) -> Option<String> {
    let (block, _) = yaml::frontmatter(text)?;
    yaml::text_at(&yaml::fields("frontmatter", block).ok()?, &["name"])
}

/// What other programs would refuse in a `SKILL.md` in a folder of this name.
pub fn faults(folder: &str, text: &str) -> Vec<String> {
    if !text.starts_with("---") {
        return vec!["`SKILL.md` does not begin with `---`".to_owned()];
    }
    let Some((block, _)) = yaml::frontmatter(text) else {
        return vec!["the frontmatter does not end with `---`".to_owned()];
    };
    let fields = match yaml::fields("frontmatter", block) {
        Ok(fields) => fields,
        Err(faults) => return faults.lines(),
    };
    let mut out = Vec::new();
    for field in fields.keys().filter(|it| !FIELDS.contains(&it.as_str())) {
        out.push(format!(
            "`{}` is not a field of skills: put it into `metadata`",
            shown(field)
        ));
    }
    match yaml::text_at(&fields, &["name"]) {
        None => out.push("`name` is missing".to_owned()),
        Some(name) if !is_name(&name) => out.push(format!(
            "`name`: `{}` is not 1 to {NAME_CHARS_MAX} lower-case letters, digits and hyphens",
            shown(&name)
        )),
        Some(name) if name != folder => out.push(format!(
            "`name`: `{name}` differs from the name of the folder, `{folder}`"
        )),
        Some(_) => {}
    }
    let mut check_length =
        |field: &str, chars_max: usize, is_required: bool| match yaml::text_at(&fields, &[field]) {
            None if is_required => out.push(format!("`{field}` is missing")),
            Some(text) if text.chars().nth(chars_max).is_some() => {
                out.push(format!("`{field}` is longer than {chars_max} characters"));
            }
            _ => {}
        };
    check_length("description", DESCRIPTION_CHARS_MAX, true);
    check_length("compatibility", COMPATIBILITY_CHARS_MAX, false);
    out
}

/// A `SKILL.md` with another name in its frontmatter and nothing else changed. `None` if the name is
/// not written on one line.
pub fn renamed(text: &str, name: &str) -> Option<String> {
    let (block, body) = yaml::frontmatter(text)?;
    let head = &text[..text.len() - body.len()];
    let mut at = head.find(block)?;
    for line in block.split_inclusive('\n') {
        if line.starts_with("name:") {
            let ending = &line[line.trim_end_matches(['\r', '\n']).len()..];
            let tail = &text[at + line.len()..];
            let out = format!("{}name: {name}{ending}{tail}", &text[..at]);
            return (declared_name(&out).as_deref() == Some(name)).then_some(out);
        }
        at += line.len();
    }
    None
}

/// Generates a `SKILL.md` for a directive in another format.
pub fn text_of(directive: &Directive, name: &str) -> String {
    let plain = directive.content.replace("\r\n", "\n");
    let (fields, body) = match (directive.spelling, yaml::frontmatter(&plain)) {
        (Spelling::Frontmatter | Spelling::Skill, Some((block, body))) => {
            let fields = yaml::fields("frontmatter", block).unwrap_or_default();
            (fields, body)
        }
        _ => (Map::new(), plain.trim_start_matches('\u{feff}')),
    };
    let described = Some(&directive.description).filter(|it| !it.trim().is_empty());
    let heading = body.lines().find_map(|it| it.strip_prefix("# "));
    let description = described.map_or(heading.unwrap_or(&directive.name), String::as_str);
    let mut head = format!(
        "---\nname: {}\ndescription: {}\n",
        quoted(name, NAME_CHARS_MAX),
        quoted(description, DESCRIPTION_CHARS_MAX)
    );
    for field in ["license", "compatibility", "allowed-tools"] {
        let said = match fields.get(field) {
            Some(list @ Value::Array(_)) => yaml::texts(list).map(|it| it.join(" ")),
            _ => yaml::text_at(&fields, &[field]),
        };
        if let Some(text) = said {
            head += &format!("{field}: {}\n", quoted(&text, COMPATIBILITY_CHARS_MAX));
        }
    }
    head += "metadata:\n";
    let mut metadata = fields.get("metadata").and_then(Value::as_object).cloned();
    let metadata = metadata.get_or_insert_default();
    let own = [
        ("version", directive.version.as_str()),
        ("category", directive.category.as_str()),
        ("author", directive.author.as_deref().unwrap_or_default()),
    ];
    for (field, value) in own.into_iter().filter(|it| !it.1.is_empty()) {
        metadata.insert(field.to_owned(), value.into());
    }
    for (field, value) in metadata {
        if let Some(value) = yaml::text_of(value) {
            let chars_max = DESCRIPTION_CHARS_MAX;
            head += &format!("  {}: {}\n", key(field), quoted(&value, chars_max));
        }
    }
    format!(
        "{head}---\n\n{}\n{}",
        body.trim(),
        inputs_as_text(directive)
    )
}

/// The inputs that only a directive's frontmatter names, for a reader who does not see it.
fn inputs_as_text(directive: &Directive) -> String {
    if directive.inputs.is_empty() || directive.spelling == Spelling::Xml {
        return String::new();
    }
    let mut out = "\n## Inputs\n\n".to_owned();
    for input in &directive.inputs {
        let how = match (&input.default, input.required) {
            (Some(default), _) => format!("{}, default `{default}`", input.type_name),
            (None, true) => format!("{}, required", input.type_name),
            (None, false) => input.type_name.clone(),
        };
        let described = match input.description.trim() {
            "" => String::new(),
            text => format!(": {text}"),
        };
        out += &format!("- `{}` ({how}){described}\n", input.name);
    }
    out
}

/// A text on one line in double quotes, as JSON: YAML reads it the same way.
fn quoted(text: &str, chars_max: usize) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.chars().map(clean).collect();
    json!(beginning(&one_line(&line), chars_max)).to_string()
}

fn key(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text, NAME_CHARS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{ItemType, Place};

    #[test]
    fn a_name_is_small_letters_digits_and_single_hyphens() {
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for (text, is_good, made) in [
            ("pdf", true, "pdf"),
            ("pdf-2-text", true, "pdf-2-text"),
            ("oauth_setup", false, "oauth-setup"),
            ("OAuth", false, "oauth"),
            ("-a", false, "a"),
            ("a--b", false, "a-b"),
            ("a.", false, "a"),
            ("", false, "skill"),
            (&long, false, &long[..NAME_CHARS_MAX]),
        ] {
            assert_eq!(is_name(text), is_good, "{text}");
            assert_eq!(name_of(text), made);
            assert!(is_name(&name_of(text)));
        }
    }

    #[test]
    fn each_rule_of_the_format_is_told_by_its_field() {
        let good = "---\nname: pdf\ndescription: Reads PDF files\nlicense: MIT\nallowed-tools: Bash(git:*) Read\nmetadata:\n  version: \"1.0\"\n---\n\nRead.\n";
        assert_eq!(faults("pdf", good), Vec::<String>::new());
        let long = good.replace("Reads", &"x".repeat(DESCRIPTION_CHARS_MAX));
        for (folder, text, said) in [
            (
                "other",
                good.to_owned(),
                "differs from the name of the folder",
            ),
            ("pdf", format!("<!-- x -->\n{good}"), "begin with `---`"),
            (
                "pdf",
                good.replace("name: pdf", "name: PDF"),
                "lower-case letters",
            ),
            ("pdf", good.replace("name: pdf\n", ""), "`name` is missing"),
            (
                "pdf",
                good.replace("license", "version"),
                "`version` is not a field",
            ),
            ("pdf", long, "longer than 1024"),
        ] {
            let found = faults(folder, &text);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(said), "{found:?}");
        }
    }

    #[test]
    fn a_skill_gets_another_name_and_nothing_else() {
        let text = "---\r\nname: \"My PDF\"\r\ndescription: x\r\n---\r\nname: no\r\n";
        assert_eq!(
            renamed(text, "my-pdf").unwrap(),
            text.replace("\"My PDF\"", "my-pdf")
        );
        assert_eq!(renamed("---\nname: >\n  a\n---\n", "b"), None);
        assert_eq!(renamed("---\na: 1\n---\n", "b"), None);
    }

    #[test]
    fn a_directive_becomes_a_skill_that_other_programs_accept() {
        let place = Place::of(ItemType::Directive, "auth/oauth_setup.md").unwrap();
        let text = "---\nname: oauth_setup\nversion: 1.2.0\ndescription: \"Sets up: OAuth\"\nallowed-tools: [Read, Bash]\ninputs:\n  - name: provider\n    required: true\n    description: Which one\npermissions:\n  read: [\"**\"]\n---\n\n# OAuth\n\nDo it.\n";
        let directive = crate::directive::read(text, &place).unwrap();
        let made = text_of(&directive, "oauth-setup");
        assert_eq!(faults("oauth-setup", &made), Vec::<String>::new());
        assert_eq!(
            made,
            "---\nname: \"oauth-setup\"\ndescription: \"Sets up: OAuth\"\nallowed-tools: \"Read Bash\"\nmetadata:\n  version: \"1.2.0\"\n  category: \"auth\"\n---\n\n# OAuth\n\nDo it.\n\n## Inputs\n\n- `provider` (string, required): Which one\n"
        );
    }
}
