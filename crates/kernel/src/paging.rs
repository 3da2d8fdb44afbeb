//! Ranked lists that can be read on past their first page.
//!
//! How deep a search looks depends on how much is asked for, and with the depth scores may change. So a
//! later page is not cut out of a deeper search: the list is what the first page's search found, then what
//! a search four times as deep finds beyond that, and so on. No page repeats or misses what another has.

use kenning_core::{Error, Result};
use std::collections::HashSet;
use std::hash::Hash;

/// The most entries of a ranked list; whoever wants more asks more narrowly.
const RANKED_MAX: usize = 1_000;
/// How much deeper each further search goes.
const DEEPER: usize = 4;

/// A page of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// This many entries come before it.
    pub skip: usize,
    /// At most this many entries.
    pub limit: usize,
}

impl Page {
    /// The first page of a list.
    #[must_use]
    pub const fn first(limit: usize) -> Self {
        Self { skip: 0, limit }
    }

    /// One entry more than the page, to find out whether there are more.
    pub fn with_one_more(self) -> usize {
        self.skip.saturating_add(self.limit).saturating_add(1)
    }

    /// Refuses a page of a ranked list beyond its end.
    pub fn check_ranked(self) -> Result<()> {
        if self.skip < RANKED_MAX {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "`cursor`: answers by relevance are listed up to the {RANKED_MAX}th, not from the {}th on",
            self.skip
        ))
        .hint("ask with more words, or with a filter"))
    }

    /// Cuts the page out of a list, and says whether there are more after it.
    pub fn of<T>(self, mut all: Vec<T>) -> (Vec<T>, bool) {
        let end = self.with_one_more() - 1;
        let has_more = all.len() > end;
        all.truncate(end);
        all.drain(..self.skip.min(all.len()));
        (all, has_more)
    }

    /// The same for a ranked list, which has an end.
    pub fn of_ranked<T>(self, all: Vec<T>) -> (Vec<T>, bool) {
        let (page, has_more) = self.of(all);
        (page, has_more && self.is_within_ranked())
    }

    /// Whether the next page of a ranked list is still within its end.
    pub fn is_within_ranked(self) -> bool {
        self.with_one_more() <= RANKED_MAX
    }
}

/// A ranked list that is long enough for a page, or as long as possible. `search` is given the wanted
/// number, and may find more.
pub fn ranked_until<T, K: Eq + Hash>(
    page: Page,
    key: impl Fn(&T) -> K,
    mut search: impl FnMut(usize) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let mut limit = page.limit;
    let mut all = search(limit)?;
    // The first page is one search, whatever it finds.
    if page.skip == 0 {
        return Ok(all);
    }
    let mut seen: HashSet<K> = all.iter().map(&key).collect();
    while all.len() < page.with_one_more() {
        limit = limit.saturating_mul(DEEPER);
        let more = search(limit)?.into_iter();
        let n_before = all.len();
        all.extend(more.filter(|it| seen.insert(key(it))));
        if all.len() == n_before {
            break;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search whose order depends on how deep it looks.
    fn shuffled(depth: usize) -> Vec<usize> {
        let mut found: Vec<usize> = (0..300.min(4 * depth)).collect();
        found.sort_by_key(|it| it * 7_919 % (depth + 13));
        found
    }

    #[test]
    fn pages_of_a_ranked_list_are_the_whole_list_and_repeat_nothing() {
        let (mut seen, mut skip) = (Vec::new(), 0);
        loop {
            let page = Page { skip, limit: 10 };
            let all = ranked_until(page, |it| *it, |depth| Ok(shuffled(depth))).unwrap();
            let (shown, has_more) = page.of_ranked(all);
            skip += shown.len();
            seen.extend(shown);
            if !has_more {
                break;
            }
        }
        assert_eq!(seen.len(), 300);
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 300);
        assert_eq!(&seen[..10], &shuffled(10)[..10]);
    }

    #[test]
    fn a_ranked_list_ends_where_nobody_reads_on() {
        let page = Page {
            skip: RANKED_MAX - 10,
            limit: 10,
        };
        assert!(page.check_ranked().is_ok());
        let (shown, has_more) = page.of_ranked((0..5_000).collect());
        assert_eq!((shown.len(), has_more), (10, false));
        let beyond = Page {
            skip: RANKED_MAX,
            limit: 10,
        };
        assert!(beyond.check_ranked().is_err());
        let end = Page {
            skip: usize::MAX,
            limit: 10,
        };
        assert_eq!(end.of(vec![1, 2, 3]), (Vec::new(), false));
    }
}
