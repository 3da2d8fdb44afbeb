//! What lies in memory for a few of many: the one that was not asked for longest makes room.

use std::collections::HashMap;
use std::hash::Hash;

/// Spaces whose indexes, documents and names lie in memory at once. What made room is made anew from rows or from
/// its file when it is asked for again.
pub const SPACES_MAX: usize = 32;

/// A table with a ceiling.
#[derive(Debug)]
pub struct Recent<K, V> {
    kept: HashMap<K, (V, u64)>,
    max: usize,
    /// Counts what was asked for, so that the latest is known without a clock.
    tick: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self::new(SPACES_MAX)
    }
}

impl<K, V> Recent<K, V> {
    /// An empty one that keeps at most this many.
    pub fn new(max: usize) -> Self {
        Self {
            kept: HashMap::new(),
            max: max.max(1),
            tick: 0,
        }
    }
}

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    /// What is kept under this key; it is made if there is nothing, and then another may go.
    pub fn entry(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        self.tick += 1;
        let tick = self.tick;
        if !self.kept.contains_key(key) {
            self.make_room();
        }
        let kept = self.kept.entry(key.clone());
        let kept = kept.or_insert_with(|| (make(), tick));
        kept.1 = tick;
        &mut kept.0
    }

    /// What is kept under this key.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.tick += 1;
        let kept = self.kept.get_mut(key)?;
        kept.1 = self.tick;
        Some(&kept.0)
    }

    /// Everything that is kept.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.kept.values().map(|kept| &kept.0)
    }

    /// Whether something is kept under a key like this. Asking does not count as use.
    pub fn has(&self, is_like: impl FnMut(&K) -> bool) -> bool {
        self.kept.keys().any(is_like)
    }

    /// Keeps this under a key, in the place of what was there.
    pub fn insert(&mut self, key: K, value: V) {
        self.tick += 1;
        if !self.kept.contains_key(&key) {
            self.make_room();
        }
        self.kept.insert(key, (value, self.tick));
    }

    /// Keeps nothing under this key.
    pub fn remove(&mut self, key: &K) {
        self.kept.remove(key);
    }

    /// Keeps only what is under keys like these.
    pub fn retain(&mut self, mut stays: impl FnMut(&K) -> bool) {
        self.kept.retain(|key, _| stays(key));
    }

    fn make_room(&mut self) {
        while self.kept.len() >= self.max {
            let oldest = self.kept.iter().min_by_key(|it| it.1.1);
            let Some(oldest) = oldest.map(|it| it.0.clone()) else {
                return;
            };
            self.kept.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_longest_makes_room() {
        let mut recent = Recent::new(2);
        recent.insert("a", 1);
        *recent.entry(&"b", || 0) += 2;
        assert_eq!(recent.get(&"a"), Some(&1));
        recent.insert("c", 3);
        assert_eq!(recent.get(&"b"), None);
        assert_eq!(recent.get(&"a"), Some(&1));
        assert_eq!(recent.get(&"c"), Some(&3));
        // What is there already takes no room.
        recent.insert("a", 4);
        assert_eq!(recent.get(&"c"), Some(&3));
        let mut many = Recent::default();
        for n in 0..1_000 {
            many.entry(&n, || n);
        }
        assert_eq!(many.kept.len(), SPACES_MAX);
        many.retain(|&n| n == 999);
        assert_eq!(many.kept.len(), 1);
    }
}
