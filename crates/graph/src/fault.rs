//! What is wrong in a text, and where.

/// Something wrong in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1.
    pub line: u32,
    /// What is wrong, and the remedy.
    pub message: String,
}

impl Fault {
    /// How a message begins that is about malformed frontmatter.
    pub const FRONTMATTER: &'static str = "the frontmatter";

    /// How a message begins that is about an unknown `type:`.
    pub const TYPE: &'static str = "`type: ";

    /// How a message begins that is about an unknown `status:`.
    pub const STATUS: &'static str = "`status: ";

    pub(crate) const fn new(line: u32, message: String) -> Self {
        Self { line, message }
    }
}
