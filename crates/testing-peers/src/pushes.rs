//! A node that lies and calls: `POST /events` with pages that are not what it signed.

use crate::lies::{Cast, bomb, check_evidence, events, must_fail, unexpected};
use crate::node::{Node, RULES, space};
use kenning_core::{Code, Result, SeededRandom};
use kenning_peers::{Done, ENTRIES_MAX, Request, Response, Session, answer, pack, unpack};
use serde_json::{Value, json};

/// More messages than an exchange of these sizes needs.
const MESSAGES_MAX: usize = 10_000;

/// The liar calls; `twist` changes the pages that it pushes. What the called node made of it.
fn push(here: &Node, liar: &Node, mut twist: impl FnMut(&mut Value)) -> Result<Done> {
    let (known, asker) = (here.as_peer(), liar.as_peer());
    let mut session = Session::new(&liar.log, &space(), &known, RULES).with_entries_max(5);
    let mut request = session.begin()?;
    for _ in 0..MESSAGES_MAX {
        let Some(asked) = request else {
            return Ok(Done::default());
        };
        let mut said = asked.to_json();
        if matches!(asked, Request::Push { .. }) {
            twist(&mut said["page"]);
        }
        let read = Request::from_json(asked.path(), &unpack(&pack(&said)?)?)?;
        let (response, done) = answer(&here.log, &asker, RULES, read, ())?;
        if done.forked.is_some() {
            return Ok(done);
        }
        let response = Response::from_json(&unpack(&pack(&response.to_json())?)?)?;
        request = session.next(response, ())?;
    }
    Err(unexpected("the exchange did not end"))
}

fn honest(here: &Node, liar: &Node) -> Result<Done> {
    push(here, liar, |_| ())
}

/// Tells one of these lies, and sees that it is noticed.
pub(crate) fn tell(lie: &str, cast: &mut Cast, draw: &SeededRandom) -> Result<()> {
    let Cast { one, liar, .. } = cast;
    match lie {
        "pushing what was rewritten" => {
            let field = draw.below(3);
            let mut has_lied = false;
            let done = push(one, liar, |page| {
                let Some(entry) = events(page).into_iter().next() else {
                    return;
                };
                match field {
                    0 => entry["event"]["type"] = "Another".into(),
                    1 => entry["event"]["data"] = "{\"n\":12345}".into(),
                    _ => entry["event"]["author"] = one.did().into(),
                }
                has_lied = true;
            });
            if !has_lied {
                return done.map(drop);
            }
            let codes = [Code::Corrupt, Code::InvalidInput, Code::Denied];
            must_fail(done, liar, &codes)
        }
        "pushing less than there is" => {
            let mut has_lied = false;
            let done = push(one, liar, |page| {
                // Each time: a page that only offers events is answered and not taken.
                if let Some(list) = page.get_mut("events").and_then(Value::as_array_mut)
                    && list.len() > 1
                {
                    list.remove(0);
                    has_lied = true;
                }
            });
            if !has_lied {
                return done.map(drop);
            }
            // Its own program stops when less was taken than it sent; whatever it sends next is seen to be of
            // another log.
            let done = match done {
                Ok(done) if done.forked.is_none() => honest(one, liar),
                done => done,
            };
            must_fail(done, liar, &[Code::Corrupt, Code::InvalidInput])
        }
        "pushing two histories" => {
            let mut other = liar.fork(draw)?;
            other.write(draw)?;
            liar.write(draw)?;
            honest(one, liar)?;
            for _ in 0..draw.below(12) {
                other.write(draw)?;
            }
            // A log that is not longer has nothing to push, so nothing of it is shown.
            while other.size()? <= liar.size()? {
                other.write(draw)?;
            }
            check_evidence(liar, honest(one, &other)?.forked)
        }
        "pushing floods" => {
            let mut has_lied = false;
            let done = push(one, liar, |page| {
                let entry = json!({ "id": "0".repeat(64) });
                page["events"] = vec![entry; ENTRIES_MAX + 1].into();
                has_lied = true;
            });
            if !has_lied {
                return done.map(drop);
            }
            must_fail(done, liar, &[Code::InvalidInput])
        }
        _ => match unpack(bomb(draw)).and_then(|it| Request::from_json("/events", &it)) {
            Err(error) if error.code == Code::TooLarge => Ok(()),
            _ => Err(unexpected("a bomb was unpacked")),
        },
    }
}
