//! Proposes the document that a broken link may have meant.
//!
//! Names are found by the trigrams that they share with the target, and only the best of those are
//! compared letter by letter. If the intended folder is known, the nearest of several documents with
//! the same name is preferred.

use super::Entry;
use crate::target::without_extension;
use kenning_text::fold;
use std::collections::HashMap;

/// Below this, names are similar only by chance.
const SIMILARITY_MIN: f64 = 0.6;
/// At most this many names are compared letter by letter.
const COMPARED_MAX: usize = 32;
/// At most this many letters of a name are compared.
const CHARS_MAX: usize = 80;
/// The share of the folders in the similarity.
const FOLDER_SHARE: f64 = 0.2;

#[derive(Debug)]
pub(super) struct Nearest {
    names: Vec<Name>,
    by_letters: HashMap<[char; 3], Vec<u32>>,
}

#[derive(Debug)]
struct Name {
    entry: u32,
    text: Box<str>,
    n_groups: u32,
}

impl Nearest {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut it = Self {
            names: Vec::new(),
            by_letters: HashMap::new(),
        };
        // In the order of paths, so that ties are broken alike whatever the order of insertion.
        let is_there = |at: &usize| entries[*at].doc != u32::MAX;
        let mut order: Vec<usize> = (0..entries.len()).filter(is_there).collect();
        order.sort_by_key(|at| &entries[*at].path);
        for at in order {
            it.add_all(u32::try_from(at).unwrap_or(u32::MAX), &entries[at]);
        }
        it
    }

    fn add_all(&mut self, at: u32, entry: &Entry) {
        let aliases = entry.aliases.iter().map(|it| &**it);
        let names = [last_segment(&entry.docs_path), &entry.title];
        let mut texts: Vec<String> = names.into_iter().chain(aliases).map(normal).collect();
        texts.sort_unstable();
        texts.dedup();
        for text in texts {
            self.add(at, text);
        }
    }

    fn add(&mut self, entry: u32, text: String) {
        let name = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let groups = groups(&text);
        self.names.push(Name {
            entry,
            text: text.into_boxed_str(),
            n_groups: u32::try_from(groups.len()).unwrap_or(u32::MAX),
        });
        for it in groups {
            self.by_letters.entry(it).or_default().push(name);
        }
    }

    pub(super) fn find(
        &self,
        target: &str,
        folder: Option<&str>,
        entries: &[Entry],
    ) -> Option<(u32, f64)> {
        let text = normal(last_segment(target));
        let groups = groups(&text);
        let mut shared = vec![0u32; self.names.len()];
        let mut touched = Vec::new();
        let known = groups.iter().filter_map(|it| self.by_letters.get(it));
        for &name in known.flatten() {
            let count = &mut shared[name as usize];
            if *count == 0 {
                touched.push(name);
            }
            *count += 1;
        }
        let likeness = |name: u32| {
            let both = f64::from(shared[name as usize]) * 2.0;
            let n_groups = f64::from(self.names[name as usize].n_groups);
            both / (n_groups + f64::from(u32::try_from(groups.len()).unwrap_or(u32::MAX)))
        };
        let weight = |name: u32| {
            let entry = entries.get(self.names[name as usize].entry as usize);
            let (Some(folder), Some(entry)) = (folder, entry) else {
                return 1.0;
            };
            let own = entry.path.rsplit_once('/').map_or("", |it| it.0);
            1.0 - FOLDER_SHARE + FOLDER_SHARE * folder_likeness(folder, own)
        };
        let descending = |a: &f64, b: &f64| b.total_cmp(a);
        if touched.len() > COMPARED_MAX {
            // Folders are compared only where they can decide: hundreds of files can have the same
            // name.
            let mut all: Vec<f64> = touched.iter().map(|it| likeness(*it)).collect();
            let (_, least, _) = all.select_nth_unstable_by(COMPARED_MAX - 1, descending);
            let floor = *least * (1.0 - FOLDER_SHARE);
            touched.retain(|it| likeness(*it) >= floor);
        }
        let mut ordered: Vec<(f64, u32)> = touched
            .into_iter()
            .map(|doc| (likeness(doc) * weight(doc), doc))
            .collect();
        let order =
            |a: &(f64, u32), b: &(f64, u32)| descending(&a.0, &b.0).then_with(|| a.1.cmp(&b.1));
        if ordered.len() > COMPARED_MAX {
            ordered.select_nth_unstable_by(COMPARED_MAX, order);
            ordered.truncate(COMPARED_MAX);
        }
        ordered.sort_unstable_by(order);
        let mut best: Option<(u32, f64)> = None;
        for (_, name) in ordered {
            let it = &self.names[name as usize];
            let letters = strsim::normalized_damerau_levenshtein(&text, &it.text);
            // Words in another order share their trigrams.
            let similarity = letters.max(0.9 * likeness(name)) * weight(name);
            if similarity >= SIMILARITY_MIN && best.is_none_or(|best| similarity > best.1) {
                best = Some((it.entry, similarity));
            }
        }
        best
    }
}

/// The similarity of two folders, from 0 to 1: the share of equal segments at both ends.
fn folder_likeness(a: &str, b: &str) -> f64 {
    if a == b {
        return 1.0;
    }
    let segments = |text: &str| text.split('/').filter(|it| !it.is_empty()).count();
    let (n_a, n_b) = (segments(a), segments(b));
    let pairs = a.split('/').zip(b.split('/'));
    let before = pairs.take_while(|pair| pair.0 == pair.1).count();
    let pairs = a.rsplit('/').zip(b.rsplit('/'));
    let after = pairs.take_while(|pair| pair.0 == pair.1).count();
    let both = (before + after).min(n_a.min(n_b));
    both as f64 / n_a.max(n_b).max(1) as f64
}

fn last_segment(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    without_extension(name)
}

fn normal(name: &str) -> String {
    fold::title(name).chars().take(CHARS_MAX).collect()
}

/// The trigrams of a name, each once; the name is padded, so that its beginning counts more.
fn groups(name: &str) -> Vec<[char; 3]> {
    if name.is_empty() {
        return Vec::new();
    }
    let padded: Vec<char> = "  ".chars().chain(name.chars()).chain([' ']).collect();
    let mut out: Vec<[char; 3]> = padded
        .windows(3)
        .map(|three| [three[0], three[1], three[2]])
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}
