//! A node that lies, among two that do not.

use crate::node::{Node, RULES, space};
use crate::pushes;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use kenning_core::{Code, Error, Result, SeededRandom};
use kenning_peers::{
    Done, ENTRIES_MAX, Evidence, Head, Request, Response, Session, answer, pack, unpack,
};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::OnceLock;

/// What a liar does.
pub const LIES: [&str; 13] = [
    "two histories",
    "a shorter log",
    "rewriting",
    "withholding",
    "somebody else's name",
    "flooding",
    "a gigabyte",
    "loops",
    "pushing what was rewritten",
    "pushing less than there is",
    "pushing two histories",
    "pushing floods",
    "pushing a gigabyte",
];

/// More messages than an honest exchange of these sizes needs.
const MESSAGES_MAX: usize = 10_000;

pub(crate) fn unexpected(what: &str) -> Error {
    Error::internal(format!("the lie was not noticed: {what}"))
}

/// One exchange; `twist` may change what is answered.
fn exchange(
    here: &Node,
    there: &Node,
    mut twist: impl FnMut(&Request, Value) -> Result<Option<Value>>,
) -> Result<Done> {
    let (known, asker) = (there.as_peer(), here.as_peer());
    let mut session = Session::new(&here.log, &space(), &known, RULES).with_entries_max(5);
    let mut request = session.begin()?;
    for _ in 0..MESSAGES_MAX {
        let Some(asked) = request else {
            return Ok(session.done().clone());
        };
        let bytes = pack(&asked.to_json())?;
        let read = Request::from_json(asked.path(), &unpack(&bytes)?)?;
        let (response, _) = answer(&there.log, &asker, RULES, read, ())?;
        let Some(mut said) = twist(&asked, response.to_json())? else {
            return Ok(session.done().clone());
        };
        // Looking for a page in an answer that has none leaves an empty one there.
        if matches!(asked, Request::Push { .. })
            && let Some(fields) = said.as_object_mut()
        {
            fields.remove("page");
        }
        let response = Response::from_json(&unpack(&pack(&said)?)?)?;
        request = session.next(response, ())?;
        if session.done().forked.is_some() {
            return Ok(session.done().clone());
        }
    }
    Err(unexpected("the exchange did not end"))
}

fn honest(here: &Node, there: &Node) -> Result<Done> {
    exchange(here, there, |_, said| Ok(Some(said)))
}

/// The liar signs whatever it likes about its log.
pub(crate) fn sign_again(liar: &Node, page: &mut Value) -> Option<()> {
    let head = Head::from_json(page.get("head")?)?;
    let again = Head::sign(
        head.origin,
        head.size,
        head.root,
        head.at_ms,
        &liar.signer(),
    );
    page["head"] = again.to_json();
    Some(())
}

pub(crate) struct Cast {
    pub(crate) one: Node,
    two: Node,
    pub(crate) liar: Node,
}

fn cast(draw: &SeededRandom) -> Result<Cast> {
    let mut cast = Cast {
        one: Node::new(draw)?,
        two: Node::new(draw)?,
        liar: Node::new(draw)?,
    };
    for (a, b) in [
        (&cast.one, &cast.two),
        (&cast.one, &cast.liar),
        (&cast.two, &cast.liar),
    ] {
        a.trust(b)?;
        b.trust(a)?;
    }
    for _ in 0..4 + draw.below(8) {
        cast.one.write(draw)?;
        cast.two.write(draw)?;
        cast.liar.write(draw)?;
    }
    honest(&cast.one, &cast.liar)?;
    for _ in 0..1 + draw.below(6) {
        cast.liar.write(draw)?;
    }
    Ok(cast)
}

/// Both statements are signed by the liar and cannot both be true of one log.
pub(crate) fn check_evidence(liar: &Node, evidence: Option<Evidence>) -> Result<()> {
    let evidence = evidence.ok_or_else(|| unexpected("no evidence"))?;
    let did = liar.log.signer().did();
    let both = [&evidence.known, &evidence.shown];
    if !both.iter().all(|it| it.is_signed() && it.author == *did) {
        return Err(unexpected("the evidence is not signed by the liar"));
    }
    if evidence.known == evidence.shown {
        return Err(unexpected("the evidence is one statement"));
    }
    Ok(())
}

pub(crate) fn must_fail(done: Result<Done>, liar: &Node, codes: &[Code]) -> Result<()> {
    match done {
        Err(error) if codes.contains(&error.code) => Ok(()),
        Err(error) => Err(error),
        Ok(done) => check_evidence(liar, done.forked),
    }
}

/// Entries of a page that have events.
pub(crate) fn events(page: &mut Value) -> Vec<&mut Value> {
    let entries = page.get_mut("events").and_then(Value::as_array_mut);
    let entries = entries
        .map(|it| it.iter_mut().collect::<Vec<_>>())
        .unwrap_or_default();
    entries
        .into_iter()
        .filter(|it| it.get("event").is_some())
        .collect()
}

/// The beginning of such a message: whatever comes after it is never looked at.
pub(crate) fn bomb(draw: &SeededRandom) -> &'static [u8] {
    static BOMB: OnceLock<Vec<u8>> = OnceLock::new();
    let bomb = BOMB.get_or_init(|| pack_gigabyte().unwrap_or_default());
    let n_bytes = bomb.len() / 2 + usize::try_from(draw.below(1_000)).unwrap_or_default();
    bomb.get(..n_bytes).unwrap_or(bomb)
}

/// A gigabyte of spaces, as a message of about a megabyte.
fn pack_gigabyte() -> std::io::Result<Vec<u8>> {
    let mut bomb = ZlibEncoder::new(Vec::new(), Compression::fast());
    let piece = vec![b' '; 1024 * 1024];
    for _ in 0..1024 {
        bomb.write_all(&piece)?;
    }
    bomb.finish()
}

fn tell(lie: &str, cast: &mut Cast, draw: &SeededRandom) -> Result<()> {
    let Cast { one, liar, .. } = cast;
    match lie {
        "two histories" => {
            let mut other = liar.fork(draw)?;
            other.write(draw)?;
            liar.write(draw)?;
            honest(one, liar)?;
            for _ in 0..draw.below(12) {
                other.write(draw)?;
            }
            must_fail(honest(one, &other), liar, &[])
        }
        "a shorter log" => {
            let earlier = liar.fork(draw)?;
            liar.write(draw)?;
            honest(one, liar)?;
            must_fail(honest(one, &earlier), liar, &[])
        }
        "rewriting" => {
            let field = draw.below(4);
            let mut has_lied = false;
            let done = exchange(one, liar, |_, mut said| {
                for entry in events(&mut said["page"]) {
                    match field {
                        0 => entry["event"]["type"] = "Another".into(),
                        1 => entry["event"]["data"] = "{\"n\":12345}".into(),
                        2 => entry["event"]["hlc"] = 1_u64.into(),
                        _ => {
                            let Some(row) =
                                entry["rows"].as_array_mut().and_then(|it| it.first_mut())
                            else {
                                continue;
                            };
                            row["body"] = "what was never said".into();
                            if row.get("node").is_none() {
                                continue;
                            }
                        }
                    }
                    has_lied = true;
                    break;
                }
                Ok(Some(said))
            });
            if !has_lied {
                return done.map(drop);
            }
            must_fail(done, liar, &[Code::Corrupt, Code::InvalidInput])
        }
        "withholding" => {
            let mut has_lied = false;
            let done = exchange(one, liar, |_, mut said| {
                if let Some(list) = said["page"].get_mut("events").and_then(Value::as_array_mut)
                    && list.len() > 1
                    && !has_lied
                {
                    list.remove(0);
                    has_lied = true;
                }
                Ok(Some(said))
            });
            if !has_lied {
                return done.map(drop);
            }
            must_fail(done, liar, &[Code::Corrupt, Code::InvalidInput])
        }
        "somebody else's name" => {
            let author = one.log.signer().did().to_string();
            let mut has_lied = false;
            let done = exchange(one, liar, |_, mut said| {
                if let Some(entry) = events(&mut said["page"]).into_iter().next() {
                    entry["event"]["author"] = author.as_str().into();
                    has_lied = true;
                }
                sign_again(liar, &mut said["page"]);
                Ok(Some(said))
            });
            if !has_lied {
                return done.map(drop);
            }
            must_fail(done, liar, &[Code::Denied, Code::InvalidInput])
        }
        "flooding" => {
            let done = exchange(one, liar, |_, mut said| {
                let entry = json!({ "id": "0".repeat(64) });
                let many = vec![entry; ENTRIES_MAX + 1];
                said["page"]["events"] = many.into();
                Ok(Some(said))
            });
            must_fail(done, liar, &[Code::InvalidInput])
        }
        "a gigabyte" => match unpack(bomb(draw)) {
            Err(error) if error.code == Code::TooLarge => Ok(()),
            _ => Err(unexpected("a bomb was unpacked")),
        },
        _ => {
            let kind = draw.below(3);
            let mut last = None;
            let done = exchange(one, liar, |asked, mut said| {
                match (kind, asked) {
                    // There is always more, and it never comes.
                    (0, Request::Pull { .. }) => {
                        said["page"]["events"] = json!([]);
                        said["hasMore"] = true.into();
                    }
                    // The same answer for ever.
                    (1, Request::Pull { .. }) => {
                        said = last.get_or_insert(said).clone();
                    }
                    // It always wants what it was given.
                    (_, Request::Push { page, .. }) => {
                        let ids: Vec<String> =
                            page.entries.iter().map(|it| it.id.to_string()).collect();
                        said = json!({
                            "yours": said["yours"], "wants": ids, "accepted": 0, "refused": 0,
                        });
                    }
                    _ => {}
                }
                Ok(Some(said))
            });
            match done {
                Err(error) if error.code == Code::Internal => Err(error),
                _ => Ok(()),
            }
        }
    }
}

/// Tells one lie and sees that it is noticed, that nothing of it stays, and that the honest nodes agree
/// afterwards. Returns which lie it was.
///
/// # Errors
/// A lie that was believed.
pub fn lie(seed: u64) -> Result<&'static str> {
    let draw = SeededRandom::new(seed);
    let n = usize::try_from(seed % LIES.len() as u64).unwrap_or_default();
    let lie = LIES.get(n).copied().unwrap_or("loops");
    let mut cast = cast(&draw)?;
    match lie.starts_with("pushing") {
        true => pushes::tell(lie, &mut cast, &draw)?,
        false => tell(lie, &mut cast, &draw)?,
    }
    let Cast { one, two, .. } = &cast;
    honest(one, two)?;
    honest(two, one)?;
    let ((here, faults), (there, more)) = (one.shown()?, two.shown()?);
    if let Some(fault) = faults.iter().chain(&more).next() {
        return Err(Error::internal(format!("{lie}: {fault}")));
    }
    if here != there {
        let differs = here.iter().zip(&there).find(|(a, b)| a != b);
        return Err(Error::internal(format!(
            "{lie}: the honest nodes differ: {differs:#?}"
        )));
    }
    if here.iter().any(|it| it.contains("what was never said")) {
        return Err(unexpected(lie));
    }
    Ok(lie)
}
