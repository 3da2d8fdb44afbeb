//! Directives that come with the program: how to write new items.
//!
//! An item with the same name in the project or in the user's directory replaces one of these.

/// A directive that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its name.
    pub id: &'static str,
    /// Its file.
    pub text: &'static str,
}

/// The category of all of them.
pub const CATEGORY: &str = "kiwi";

const fn builtin(id: &'static str, text: &'static str) -> Builtin {
    Builtin { id, text }
}

/// All of them.
pub const DIRECTIVES: &[Builtin] = &[
    builtin("create_knowledge", include_str!("create_knowledge.md")),
    builtin("create_directive", include_str!("create_directive.md")),
    builtin("create_tool", include_str!("create_tool.md")),
];

/// The one of this name.
pub fn directive(id: &str) -> Option<&'static Builtin> {
    DIRECTIVES.iter().find(|it| it.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{ItemType, Place};

    #[test]
    fn every_directive_that_comes_along_is_valid_and_says_what_it_needs() {
        for it in DIRECTIVES {
            let place = Place::of(ItemType::Directive, &format!("{CATEGORY}/{}.md", it.id));
            let read = crate::directive::read(it.text, &place.unwrap()).unwrap();
            assert_eq!(
                (read.name.as_str(), read.category.as_str()),
                (it.id, CATEGORY)
            );
            assert!(!read.description.is_empty() && !read.permissions.is_empty());
            assert!(read.inputs.iter().any(|it| it.required));
        }
    }
}
