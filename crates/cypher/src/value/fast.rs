//! A quick hash for tables that live as long as a query. Its seed is the process's own, so that nobody can prepare
//! values that all fall into one place.

use super::Value;
use super::compare::hash;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Makes hashers of one seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fast {
    seed: u64,
}

impl Default for Fast {
    fn default() -> Self {
        static SEED: OnceLock<u64> = OnceLock::new();
        let seed = *SEED.get_or_init(|| RandomState::new().hash_one(0_u64));
        Self { seed }
    }
}

impl Fast {
    /// The hash of several values in order.
    pub(crate) fn of(self, values: &[Value]) -> u64 {
        let mut hasher = self.build_hasher();
        values.iter().for_each(|it| hash(it, &mut hasher));
        hasher.finish()
    }
}

impl BuildHasher for Fast {
    type Hasher = FastHasher;

    fn build_hasher(&self) -> FastHasher {
        FastHasher(self.seed)
    }
}

/// Folds words into one by multiplying.
#[derive(Debug)]
pub(crate) struct FastHasher(u64);

impl FastHasher {
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(u128::from(MIX | 1));
        self.0 = (product as u64) ^ ((product >> 64) as u64).rotate_left(23);
    }
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words
            .iter()
            .for_each(|it| self.fold(u64::from_le_bytes(*it)));
        let mut last = [0; 8];
        if let Some(last) = last.get_mut(..rest.len()) {
            last.copy_from_slice(rest);
        }
        self.fold(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    fn write_u8(&mut self, it: u8) {
        self.fold(u64::from(it));
    }

    fn write_u32(&mut self, it: u32) {
        self.fold(u64::from(it));
    }

    fn write_u64(&mut self, it: u64) {
        self.fold(it);
    }

    fn write_usize(&mut self, it: usize) {
        self.fold(it as u64);
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(MIX);
        mixed ^ (mixed >> 29)
    }
}
