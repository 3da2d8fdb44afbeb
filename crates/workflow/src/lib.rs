//! What workflows think: plans of actions, gaps in documentation, how ready a document is.
//!
//! Everything here is a function of its arguments: no store, no files, no clock, no randomness. Who runs the
//! steps, and what they do, is decided elsewhere.
//!
//! Reading order: [`plan`] (facts, actions, and the search for the cheapest plan), [`given`] (the same as
//! JSON), [`builtin`] (the actions and goals that are always there), [`gaps`] (what a text lacks).

pub mod builtin;
pub mod gaps;
pub mod given;
pub mod plan;
mod readiness;
mod spans;

pub use plan::{Action, Condition, Effect, Fact, Facts, Goal, Limits, Plan, Unplanned, find_plan};
pub use readiness::{READY_SCORE, Readiness, readiness};
pub use spans::format_duration;
