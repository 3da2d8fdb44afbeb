//! For tests only: malformed and hostile inputs, and what must hold for the answers.
//!
//! A [`Target`] is a part of the program that reads untrusted input. It has a generator, which makes
//! inputs in its format, and a [`Subject`], which gets one input at a time and checks the answer.
//! [`mutate`](kenning_testing::mutate) breaks inputs without knowing what they mean, except that it
//! knows JSON when it sees it. The input of a case follows from the target, the seed and the number of
//! the case and from nothing else, so a case is named by three words.
//!
//! The [`driver`] runs a target in a process of its own ([`child`]): a stack that overflows, an endless
//! loop and unlimited memory are findings like any panic, and the driver goes on. A finding is
//! minimized, printed, and kept as a line of `testing/corpora/fuzz` ([`corpus`]), which is tried first
//! from then on.
//!
//! There is no guidance by coverage: on the ordinary toolchain it would cost a second build of
//! everything, and what is found here is found by generators that know the format.
//!
//! Its one invariant: the driver never runs a target in its own process.

#![allow(
    clippy::disallowed_methods,
    reason = "for tests only: it starts itself, and reads its own corpus"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a subject that fails is a find, and a panic is one"
)]

pub mod child;
pub mod corpus;
pub mod driver;
mod saboteurs;
pub mod targets;

pub use driver::{Find, FindKind, Plan, Program, Report};
pub use kenning_testing::{Source, mutate};

/// The code under test, with everything that it needs.
pub trait Subject {
    /// Tries one input. What is wrong with the answer is the error; a panic is wrong by itself.
    fn check(&mut self, input: &[u8]) -> Result<(), String>;
}

/// A part of the program that reads untrusted input.
pub struct Target {
    /// As it is called on the command line; the corpus file has the same name.
    pub name: &'static str,
    /// What it tries.
    pub about: &'static str,
    /// Pieces of the format, which mutations put in.
    pub words: &'static [&'static str],
    /// Good inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Generates an input in the target's format.
    pub generate: fn(&mut Source) -> Vec<u8>,
    /// Creates the subject. It may be used for many inputs.
    pub open: fn() -> Box<dyn Subject>,
    /// How many cases the tests try.
    pub pass_cases: u64,
    /// After how many cases the subject is recreated, so that a finding can be reproduced from there.
    pub fresh_every: u64,
    /// Whether contained panics are ignored, because the code contains those of a library.
    pub contains_panics: bool,
}

/// What inputs are made of: those that were kept, and those and the good ones together.
pub struct Pool {
    kept: Vec<Vec<u8>>,
    all: Vec<Vec<u8>>,
}

impl Target {
    /// What its inputs are made of.
    ///
    /// # Errors
    /// When a line of its corpus cannot be read.
    pub fn pool(&self) -> Result<Pool, String> {
        let kept = corpus::read_kept(self.name)?;
        let mut all = (self.seeds)();
        all.extend_from_slice(&kept);
        Ok(Pool { kept, all })
    }

    /// The target of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        let all = targets::ALL.iter().chain(saboteurs::ALL);
        all.copied().find(|it| it.name == name)
    }

    /// The input of a case.
    pub fn input(&self, pool: &Pool, seed: u64, case: u64) -> Vec<u8> {
        // The kept ones come first, as they are.
        if let Some(input) = usize::try_from(case).ok().and_then(|it| pool.kept.get(it)) {
            return input.clone();
        }
        let name = self.name.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, it| {
            (sum ^ u64::from(it)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut source = Source::new(seed ^ name ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if source.one_in(4) {
            return (self.generate)(&mut source);
        }
        let start = if pool.all.is_empty() || source.one_in(3) {
            (self.generate)(&mut source)
        } else {
            source.pick(&pool.all).clone()
        };
        mutate::mutated(start, &pool.all, self.words, &mut source)
    }
}
