//! Erased rows are gone, and nothing else is.

use super::{edge, event, id, next, node, put, space};
use crate::{EdgeFilter, Store, When};
use kenning_core::Hlc;

pub(super) fn run(store: &Store) {
    let space = space("erasure");
    let first = node(1, "one", "first", 10);
    let second = next(&first, "second", 20);
    let third = next(&second, "third", 30);
    let other = node(2, "two", "other", 10);
    for it in [
        &first,
        &second,
        &third,
        &other,
        &next(&other, "other again", 20),
    ] {
        put(store, &space, it);
    }
    let hash = first.hash;
    store
        .write(&space, move |tx| {
            for (src, dst) in [(1, 2), (2, 1), (2, 3)] {
                tx.put_edge(&edge(src, "knows", dst, 1.0, 10))?;
                tx.end_edge(id(src), "knows", id(dst), Hlc::from_ms(20))?;
            }
            tx.put_edge(&edge(1, "likes", 2, 1.0, 10))?;
            tx.append_event(&event(1))?;
            tx.append_event(&event(2))?;
            tx.erase_revisions(id(1), Some(&hash))
        })
        .unwrap();
    let bodies = |n: u64| {
        let history = store.read(&space, |tx| tx.history(id(n))).unwrap();
        let bodies = history.into_iter().map(|it| it.0.body);
        bodies.collect::<Vec<String>>()
    };
    assert_eq!(bodies(1), ["second"]);
    let erased = event(1).id;
    store
        .write(&space, move |tx| {
            tx.erase_revisions(id(1), None)?;
            tx.erase_ended_edges(id(1))?;
            tx.erase_event_data(&erased)
        })
        .unwrap();
    assert!(bodies(1).is_empty());
    assert_eq!(bodies(2), ["other"]);
    store
        .read(&space, |tx| {
            let current = tx.node(id(1), When::Now)?;
            assert_eq!(current.map(|it| it.body).as_deref(), Some("third"));
            assert_eq!(tx.edge_history(id(1), "knows", id(2))?, []);
            assert_eq!(tx.edge_history(id(2), "knows", id(1))?, []);
            assert_eq!(tx.edge_history(id(2), "knows", id(3))?.len(), 1);
            let now = tx.edges(&EdgeFilter::default(), When::Now, 10)?;
            assert_eq!(now.len(), 1, "{now:?}");
            let [one, two] = tx.events_after(0, 10)?.try_into().unwrap();
            assert!(one.sealed.data.is_empty() && one.sealed.salt.is_empty());
            assert_eq!(one.sealed.commitment, event(1).sealed.commitment);
            assert_eq!(two, event(2));
            Ok(())
        })
        .unwrap();
    assert!(store.scrub().unwrap());
}
