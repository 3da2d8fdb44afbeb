//! The same operations on every backend, compared one by one.

use crate::model::Model;
use crate::steps::{Answer, Step, same};
use crate::world::World;
use kenning_core::{Error, Result};
use kenning_store::Store;
use kenning_store_postgres::Postgres;
use kenning_store_sqlite::Sqlite;
use std::collections::BTreeMap;
use std::fmt;

/// How much of an answer is printed.
const SHOWN_CHARS: usize = 3_000;

/// A backend, and how it is opened again.
struct Place {
    name: &'static str,
    open: Box<dyn Fn() -> Result<Store>>,
    store: Option<Store>,
}

impl Place {
    fn new(name: &'static str, open: impl Fn() -> Result<Store> + 'static) -> Self {
        let open = Box::new(open);
        let store = None;
        Self { name, open, store }
    }

    fn store(&mut self) -> Result<Store> {
        if self.store.is_none() {
            self.store = Some((self.open)()?);
        }
        let store = self.store.clone();
        store.ok_or_else(|| Error::internal("the store is not open"))
    }
}

/// What was done, when nothing differed.
#[derive(Debug, Default)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// How many operations.
    pub operations: u64,
    /// How often a backend was closed and opened again.
    pub reopened: u64,
    /// How many steps were refused, by their code, the same for every backend.
    pub refused: BTreeMap<&'static str, u64>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operations, seed) = (self.operations, self.seed);
        write!(
            f,
            "model: {operations} operations, 0 differences, seed {seed}"
        )?;
        write!(f, " ({} reopened; refused:", self.reopened)?;
        for (code, n) in &self.refused {
            write!(f, " {code} {n}")?;
        }
        f.write_str(")")
    }
}

/// The first answer that differs, with all that is needed to see it again.
#[derive(Debug)]
pub struct Difference(String);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Does so many random operations to the model, to SQLite and to PostgreSQL, and stops at the first
/// difference.
pub fn replay(seed: u64, operations: u64) -> std::result::Result<Summary, Difference> {
    let broken = |error: &dyn fmt::Display| Difference(format!("seed {seed}: {error}"));
    let directory = tempfile::tempdir().map_err(|error| broken(&error))?;
    let (path, model) = (directory.path().to_owned(), Model::default());
    let url = kenning_testing_postgres::shared().database();
    let known = Store::new(model.clone());
    let mut places = [
        Place::new("the model", move || Ok(Store::new(model.clone()))),
        Place::new("SQLite", move || Ok(Store::new(Sqlite::open(&path)?))),
        Place::new("PostgreSQL", move || {
            Ok(Store::new(Postgres::open(&url, None)?))
        }),
    ];
    let mut world = World::new(seed, known);
    let mut summary = Summary {
        seed,
        ..Summary::default()
    };
    while summary.operations < operations {
        let step = world.next();
        if let Step::Reopen(which) = step {
            places[which].store = None;
            summary.reopened += 1;
        }
        let mut answers = Vec::new();
        for place in &mut places {
            let store = place.store().map_err(|error| broken(&error))?;
            answers.push(step.run_on(&store));
        }
        for (place, answer) in places.iter().zip(&answers).skip(1) {
            if !same(&answers[0], answer) {
                let number = summary.operations;
                return Err(differs(
                    seed,
                    number,
                    &step,
                    place.name,
                    &answers[0],
                    answer,
                ));
            }
        }
        if let Err(error) = &answers[0] {
            *summary.refused.entry(error.code.row().name).or_default() += 1;
        }
        summary.operations += step.n_operations();
    }
    for place in &mut places {
        let wrong = place.store().and_then(|it| it.check());
        let wrong = wrong.map_err(|error| broken(&error))?;
        if !wrong.is_empty() {
            return Err(broken(&format!("{}: {}", place.name, wrong.join("; "))));
        }
    }
    Ok(summary)
}

type Answers = Result<Vec<Answer>>;

fn differs(
    seed: u64,
    number: u64,
    step: &Step,
    name: &str,
    expected: &Answers,
    got: &Answers,
) -> Difference {
    // Of many answers the first that differs tells most.
    let (one, two) = match (expected, got) {
        (Ok(expected), Ok(got)) => {
            let mut pairs = expected.iter().zip(got);
            let at = pairs.position(|(a, b)| !same(&Ok(vec![a.clone()]), &Ok(vec![b.clone()])));
            let show = |all: &[Answer]| shown(&at.and_then(|at| all.get(at)));
            (show(expected), show(got))
        }
        _ => (shown(expected), shown(got)),
    };
    Difference(format!(
        "model: {number} operations, 1 difference, seed {seed}\n\
         operation {number}: {name} differs from the model\nstep: {}\nthe model: {one}\n{name}: {two}",
        shown(step)
    ))
}

fn shown(it: &dyn fmt::Debug) -> String {
    let text = format!("{it:?}");
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{} … ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
