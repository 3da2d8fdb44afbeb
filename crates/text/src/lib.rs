//! What more than one crate does with texts, each of it once.
//!
//! [`fold`] makes spellings of one name or word equal, [`similarity`] and [`sound`] compare what is left.
//! [`phrases`] finds known names in a text. [`frontmatter`] finds the fields at the head of a text and
//! [`yaml`] reads them within limits. [`hex`], [`percent`], [`json`], [`json_bytes`] and [`escape`] write bytes and texts so that others
//! can read them back; [`line`] and [`list`] show texts to people, [`round`] numbers. [`script`] tells
//! characters apart.
//!
//! The crate knows no other crate of the workspace, opens nothing and keeps nothing: the same arguments give
//! the same answer. Texts come from anywhere, so no text makes it panic, and whatever reads one has limits.
//! Where two contracts need different answers, a parameter names the difference.

#![deny(missing_docs)]

pub mod escape;
pub mod fold;
pub mod frontmatter;
pub mod hex;
pub mod json;
pub mod json_bytes;
pub mod line;
pub mod list;
pub mod percent;
pub mod phrases;
pub mod round;
pub mod script;
pub mod similarity;
pub mod sound;
pub mod yaml;
