//! Targets that are broken on purpose, to prove that the driver notices.
//!
//! Each fails only on inputs that contain `boo`.

use crate::{Source, Subject, Target};

struct Broken(fn() -> Result<(), String>);

impl Subject for Broken {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        if input.windows(3).any(|it| it == b"boo") {
            (self.0)()
        } else {
            Ok(())
        }
    }
}

fn generate(source: &mut Source) -> Vec<u8> {
    let mut text = source.text();
    if source.one_in(10) {
        text += "boo";
        text += &source.text();
    }
    text.into_bytes()
}

const fn saboteur(name: &'static str, open: fn() -> Box<dyn Subject>) -> Target {
    Target {
        name,
        about: "broken on purpose",
        words: &[],
        seeds: Vec::new,
        generate,
        open,
        pass_cases: 0,
        fresh_every: 1_000,
        contains_panics: false,
    }
}

fn deeper(n: u64) -> u64 {
    std::hint::black_box(if n == u64::MAX { 0 } else { deeper(n + 1) + 1 })
}

/// All of them.
pub(crate) const ALL: &[&Target] = &[
    &saboteur("saboteur_panics", || Box::new(Broken(|| panic!("boo")))),
    &saboteur("saboteur_is_wrong", || {
        Box::new(Broken(|| Err("one and one are three".to_owned())))
    }),
    &saboteur("saboteur_contains_a_panic", || {
        Box::new(Broken(|| {
            std::panic::catch_unwind(|| panic!("nobody sees this")).ok();
            Ok(())
        }))
    }),
    &saboteur("saboteur_overflows_its_stack", || {
        Box::new(Broken(|| {
            std::hint::black_box(deeper(0));
            Ok(())
        }))
    }),
    &saboteur("saboteur_loops", || {
        Box::new(Broken(|| {
            loop {
                std::hint::spin_loop();
            }
        }))
    }),
    &saboteur("saboteur_eats_memory", || {
        Box::new(Broken(|| {
            let mut all = Vec::new();
            loop {
                all.push(vec![1_u8; 1024 * 1024]);
                std::hint::black_box(&all);
            }
        }))
    }),
];
