//! The log can be asked by kind, author, time and text.

use super::space;
use crate::{EventEffect, EventFilter, EventPage, EventRow, SealedData, Store};
use kenning_core::{Hash, Hlc};

fn event(seq: u64, at: u64, kind: &str, author: &str, agent: &str, data: &str) -> EventRow {
    EventRow {
        seq,
        version: 2,
        id: Hash::of(&seq.to_be_bytes()),
        parents: Vec::new(),
        hlc: Hlc(at),
        author: author.to_owned(),
        kind: kind.to_owned(),
        payload: format!(r#"[{{"id":"node {seq}","remove":"node"}}]"#).into_bytes(),
        signature: vec![7; 64],
        sealed: SealedData {
            agent: agent.to_owned(),
            data: data.as_bytes().to_vec(),
            ..SealedData::default()
        },
    }
}

/// What an event does is found whatever it is called, and no event is found twice.
fn effects(store: &Store) {
    use EventEffect::{CreatesNode, EndsEdge, PutsEdge, RemovesNode, UpdatesNode};
    let here = space("log-effects");
    let changes = [
        r#"[{"hash":"aa","id":"a","put":"node","rev":1}]"#,
        r#"[{"hash":"aa","id":"a","put":"node","rev":11},{"hash":"aa","id":"b","put":"node","rev":1}]"#,
        r#"[{"id":"a","remove":"node"},{"dst":"a","rel":"r","remove":"edge","src":"b"}]"#,
        r#"[{"dst":"a","hash":"aa","put":"edge","rel":"\"put\":\"node\",\"rev\":1}","src":"b"}]"#,
        r#"[{"bucket":"b","hash":"aa","key":"k","put":"pair"}]"#,
        r#"[{"hash":"aa","id":"c","put":"node","rev":2}]"#,
    ];
    let kinds = ["NodeCreated", "Imported", "Gone", "Linked", "Set", "Synced"];
    let events: Vec<EventRow> = (1..)
        .zip(kinds.iter().zip(changes))
        .map(|(seq, (kind, changes))| EventRow {
            payload: changes.as_bytes().to_vec(),
            ..event(
                seq,
                seq * 10,
                kind,
                if seq == 2 { "b" } else { "a" },
                "",
                "null",
            )
        })
        .collect();
    store
        .write(&here, move |tx| {
            events.iter().try_for_each(|it| tx.append_event(it))
        })
        .unwrap();
    let of = |effects: &[EventEffect]| EventFilter {
        effects: effects.to_vec(),
        ..EventFilter::default()
    };
    let filters: [(EventFilter, &[u64]); 11] = [
        (of(&[CreatesNode]), &[1, 2]),
        (of(&[UpdatesNode]), &[2, 6]),
        (of(&[UpdatesNode, CreatesNode]), &[1, 2, 6]),
        (of(&[RemovesNode]), &[3]),
        (of(&[PutsEdge]), &[4]),
        (of(&[EndsEdge, RemovesNode]), &[3]),
        (
            EventFilter {
                kinds: vec!["NodeCreated".to_owned(), "Set".to_owned()],
                ..of(&[CreatesNode])
            },
            &[1, 2, 5],
        ),
        (
            EventFilter {
                effects_except: vec!["Synced".to_owned()],
                ..of(&[UpdatesNode])
            },
            &[2],
        ),
        (
            EventFilter {
                author: Some("a".to_owned()),
                ..of(&[CreatesNode, UpdatesNode])
            },
            &[1, 6],
        ),
        (
            EventFilter {
                from: Some(Hlc(20)),
                to: Some(Hlc(20)),
                ..of(&[CreatesNode])
            },
            &[2],
        ),
        (
            EventFilter {
                at: Some(vec![Hlc(60)]),
                ..of(&[UpdatesNode])
            },
            &[6],
        ),
    ];
    for (filter, expected) in filters {
        let page = EventPage {
            skip: 0,
            limit: 9,
            newest_first: false,
        };
        let rows = store.read(&here, |tx| tx.find_events(&filter, page));
        let found: Vec<u64> = rows.unwrap().iter().map(|it| it.seq).collect();
        assert_eq!(found, expected, "{filter:?}");
        let count = store.read(&here, |tx| tx.count_events(&filter)).unwrap();
        assert_eq!(count, expected.len() as u64, "{filter:?}");
    }
}

pub(super) fn run(store: &Store) {
    effects(store);
    let here = space("log-query");
    // The fourth came from a clock that was behind.
    let events = [
        event(1, 10, "NodeCreated", "a", "", r#"{"path":"docs/One.md"}"#),
        event(2, 20, "NodeUpdated", "b", "a", r#"{"path":"docs/two.md"}"#),
        event(
            3,
            30,
            "NodeCreated",
            "b",
            "c",
            r#"{"path":"docs/dr\u00fcben ÄÖ.md"}"#,
        ),
        event(4, 15, "NodeDeleted", "a", "a", "null"),
        event(5, 50, "NodeCreated", "a", "", r#"{"n":5}"#),
    ];
    store
        .write(&here, move |tx| {
            events.iter().try_for_each(|it| tx.append_event(it))
        })
        .unwrap();
    let page = |skip, limit, newest_first| EventPage {
        skip,
        limit,
        newest_first,
    };
    let found = |filter: &EventFilter, page: EventPage| -> Vec<u64> {
        let rows = store.read(&here, |tx| tx.find_events(filter, page));
        rows.unwrap().iter().map(|it| it.seq).collect()
    };
    let any = EventFilter::default();
    assert_eq!(found(&any, page(0, 9, false)), [1, 4, 2, 3, 5]);
    assert_eq!(found(&any, page(1, 2, false)), [4, 2]);
    assert_eq!(found(&any, page(0, 2, true)), [5, 3]);
    assert_eq!(found(&any, page(5, 2, true)), [0; 0]);
    let filters: [(EventFilter, &[u64]); 11] = [
        (kinds(&["NodeCreated"]), &[1, 3, 5]),
        (
            kinds(&["NodeCreated", "NodeDeleted", "NodeCreated"]),
            &[1, 4, 3, 5],
        ),
        (kinds(&["nodecreated"]), &[]),
        (between(Some(15), Some(30)), &[4, 2, 3]),
        (between(Some(31), None), &[5]),
        (of("a"), &[1, 4, 2, 5]),
        (of("c"), &[3]),
        (
            EventFilter {
                at: Some(vec![Hlc(50), Hlc(10), Hlc(11)]),
                ..EventFilter::default()
            },
            &[1, 5],
        ),
        (text("DOCS/one"), &[1]),
        (text("node 4"), &[4]),
        (
            EventFilter {
                from: Some(Hlc(20)),
                text: Some("äö".to_owned()),
                ..of("a")
            },
            &[],
        ),
    ];
    for (filter, expected) in filters {
        assert_eq!(found(&filter, page(0, 9, false)), expected, "{filter:?}");
        let count = store.read(&here, |tx| tx.count_events(&filter)).unwrap();
        assert_eq!(count, expected.len() as u64, "{filter:?}");
        let mut backwards = expected.to_vec();
        backwards.reverse();
        assert_eq!(found(&filter, page(0, 9, true)), backwards, "{filter:?}");
    }
    let both = EventFilter {
        author: Some("a".to_owned()),
        ..kinds(&["NodeCreated", "NodeUpdated"])
    };
    assert_eq!(found(&both, page(0, 9, false)), [1, 2, 5]);
    let named = store.read(&here, |tx| tx.event_kinds()).unwrap();
    let expected = [("NodeCreated", 3), ("NodeDeleted", 1), ("NodeUpdated", 1)];
    assert_eq!(named, expected.map(|(kind, n)| (kind.to_owned(), n)));
}

fn kinds(names: &[&str]) -> EventFilter {
    EventFilter {
        kinds: names.iter().map(|it| (*it).to_owned()).collect(),
        ..EventFilter::default()
    }
}

fn between(from: Option<u64>, to: Option<u64>) -> EventFilter {
    EventFilter {
        from: from.map(Hlc),
        to: to.map(Hlc),
        ..EventFilter::default()
    }
}

fn of(author: &str) -> EventFilter {
    EventFilter {
        author: Some(author.to_owned()),
        ..EventFilter::default()
    }
}

fn text(text: &str) -> EventFilter {
    EventFilter {
        text: Some(text.to_owned()),
        ..EventFilter::default()
    }
}
