//! Mail as documents: read from an mbox or a Maildir, found, followed and forgotten.

use kenning_core::{Kind, Space};
use kenning_engine::koi::MailRead;
use kenning_store::{NodeFilter, When};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn mail(id: &str, subject: &str, body: &str) -> String {
    format!(
        "Message-ID: <{id}@example.com>\nFrom: Ann <ann@example.com>\nTo: bob@example.com\n\
         Date: Mon, 5 Jan 2026 10:00:00 +0100\nSubject: {subject}\n\n{body}\n"
    )
}

/// In an mbox, with the lines that would begin another message quoted.
fn boxed(mails: &[String]) -> String {
    let one = |it: &String| {
        format!(
            "From ann@example.com Mon Jan  5 10:00:00 2026\n{}\n",
            it.replace("\nFrom ", "\n>From ")
        )
    };
    mails.iter().map(one).collect()
}

/// The same fixture, with mail.
fn with_mail(fixture: &Fixture) -> Fixture {
    fixture.again(Selection::default())
}

fn read(fixture: &Fixture) -> MailRead {
    let read = fixture
        .board
        .engine()
        .koi()
        .read_mail(&fixture.owner())
        .unwrap();
    assert!(read.is_complete);
    read
}

fn counts(read: MailRead) -> (u64, u64, u64) {
    (read.added, read.removed, read.broken)
}

/// Bodies by the names of their documents.
fn documents(fixture: &Fixture) -> BTreeMap<String, String> {
    let filter = NodeFilter {
        kinds: vec![Kind::Document],
        key_prefix: Some("email:".to_owned()),
        ..NodeFilter::default()
    };
    let log = fixture.log();
    let nodes = log.read(&Space::default(), |tx| {
        tx.nodes(&filter, When::Now, None, 10_000)
    });
    let nodes = nodes.unwrap().into_iter();
    nodes
        .map(|it| (it.key, it.body.trim().to_owned()))
        .collect()
}

fn keys(fixture: &Fixture) -> Vec<String> {
    documents(fixture).into_keys().collect()
}

fn search(fixture: &Fixture, query: &str) -> Value {
    let asked = json!({ "query": query, "source": "email" });
    let reply = fixture.call("knowledge_search", asked);
    assert!(!reply.is_error(), "{}", reply.text);
    reply.to_json()
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn verify(fixture: &Fixture) {
    let report = fixture
        .board
        .engine()
        .verify(&Space::default(), &|_| {})
        .unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn koi_mail_is_found_by_what_it_says_and_by_who_wrote_it() {
    let fixture = Fixture::new();
    let herring = mail(
        "one",
        "Herring counts",
        "The eggs on the kelp were counted by Bill Baue.",
    );
    put(
        &fixture.mail().join("inbox"),
        &boxed(&[herring, mail("two", "Lunch", "At noon?")]),
    );
    let fixture = with_mail(&fixture);
    // A search reads the mail by itself.
    let found = search(&fixture, "eggs on the kelp");
    let first = &found["results"][0];
    assert_eq!(first["rid"], "email:one@example.com", "{found}");
    assert_eq!(
        (&first["title"], &first["source"]),
        (&json!("Herring counts"), &json!("email-sensor"))
    );
    let card = json!({
        "from": "Ann <ann@example.com>", "to": "bob@example.com", "date": "2026-01-05T10:00:00+01:00",
        "subject": "Herring counts",
    });
    assert_eq!(first["email"], card);
    assert_eq!(found["chunk_results"][0]["metadata"]["email"], card);
    assert_eq!(search(&fixture, "ann@example.com")["count"], 2);
    let found = fixture.call("get_entity_documents", json!({ "entity_uri": "Bill Baue" }));
    assert!(
        found.text.contains("email:one@example.com"),
        "{}",
        found.text
    );
    // Of no other source.
    let asked = json!({ "query": "eggs on the kelp", "source": "github" });
    assert_eq!(
        fixture.call("knowledge_search", asked).to_json()["count"],
        0
    );
    verify(&fixture);
}

#[test]
fn koi_mail_an_mbox_is_read_on_where_it_grew_and_anew_where_it_changed() {
    let fixture = Fixture::new();
    let file = fixture.mail().join("inbox");
    let mails: Vec<String> = (0..250)
        .map(|n| {
            mail(
                &format!("m{n}"),
                &format!("Number {n}"),
                &format!("text {n}\nFrom here on it is quoted"),
            )
        })
        .collect();
    put(&file, &boxed(&mails));
    let fixture = with_mail(&fixture);
    assert_eq!(counts(read(&fixture)), (250, 0, 0));
    assert_eq!(
        documents(&fixture)["email:m7@example.com"],
        "text 7\nFrom here on it is quoted"
    );
    let before = fixture.event_kinds().len();
    assert_eq!(counts(read(&fixture)), (0, 0, 0));
    assert_eq!(
        fixture.event_kinds().len(),
        before,
        "what did not change is not written"
    );

    let more = boxed(&[mail("more", "More", "appended")]);
    fs::write(&file, boxed(&mails) + &more).unwrap();
    assert_eq!(counts(read(&fixture)), (1, 0, 0));
    // A message that was still being written.
    let half = boxed(&[mail("half", "Half", "the first half")]);
    fs::write(&file, boxed(&mails) + &more + half.trim_end()).unwrap();
    assert_eq!(counts(read(&fixture)), (1, 0, 0));
    fs::write(
        &file,
        boxed(&mails) + &more + half.trim_end() + " and the second\n\n",
    )
    .unwrap();
    read(&fixture);
    assert_eq!(
        documents(&fixture)["email:half@example.com"],
        "the first half and the second"
    );
    assert_eq!(documents(&fixture).len(), 252);

    // Deleted from the middle.
    let rest: Vec<String> = mails
        .iter()
        .filter(|it| !it.contains("<m7@"))
        .cloned()
        .collect();
    fs::write(&file, boxed(&rest) + &more).unwrap();
    assert_eq!(
        counts(read(&fixture)),
        (0, 2, 0),
        "number 7 and the one in two halves"
    );
    assert!(!keys(&fixture).contains(&"email:m7@example.com".to_owned()));
    // Emptied, then gone.
    fs::write(&file, "").unwrap();
    read(&fixture);
    assert_eq!(keys(&fixture), Vec::<String>::new());
    verify(&fixture);
}

#[test]
fn koi_mail_a_maildir_is_followed_through_marks_moves_and_deletions() {
    let fixture = Fixture::new();
    let root = fixture.mail();
    put(&root.join("new/1.host"), &mail("one", "One", "first"));
    put(&root.join("cur/2.host:2,S"), &mail("two", "Two", "second"));
    put(
        &root.join(".Sent/cur/3.host:2,S"),
        &mail("three", "Three", "third"),
    );
    put(
        &root.join("tmp/4.host"),
        &mail("four", "Four", "not delivered"),
    );
    put(&root.join("dovecot.index"), "no mail at all");
    let fixture = with_mail(&fixture);
    assert_eq!(counts(read(&fixture)), (3, 0, 0));
    fs::rename(root.join("new/1.host"), root.join("cur/1.host:2,RS")).unwrap();
    assert_eq!(
        counts(read(&fixture)),
        (0, 0, 0),
        "a mark makes no other message"
    );
    // A copy elsewhere keeps it when the first is removed.
    fs::create_dir_all(root.join(".Archive/cur")).unwrap();
    fs::copy(
        root.join("cur/2.host:2,S"),
        root.join(".Archive/cur/9.host:2,S"),
    )
    .unwrap();
    assert_eq!(counts(read(&fixture)), (0, 0, 0));
    fs::remove_file(root.join("cur/2.host:2,S")).unwrap();
    assert_eq!(counts(read(&fixture)), (0, 0, 0));
    assert_eq!(keys(&fixture).len(), 3);
    fs::remove_dir_all(root.join(".Archive")).unwrap();
    assert_eq!(counts(read(&fixture)), (0, 1, 0), "the last copy");
    assert_eq!(
        keys(&fixture),
        ["email:one@example.com", "email:three@example.com"]
    );
    let found = search(&fixture, "second").to_string();
    assert!(!found.contains("two@"), "{found}");
    verify(&fixture);
}

#[test]
fn koi_mail_broken_messages_lose_nothing_else() {
    let fixture = Fixture::new();
    let root = fixture.mail();
    put(&root.join("cur/1"), "");
    fs::write(root.join("cur/2"), [0xff, 0xfe, 0, 1, 2]).unwrap();
    put(
        &root.join("cur/3"),
        "Subject: no end of parts\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nstill read",
    );
    put(
        &root.join("cur/4"),
        &mail("good", "Good", "as it should be"),
    );
    put(
        &root.join("cur/5"),
        "Subject: odd\nContent-Type: text/plain; charset=klingon\n\nqapla'",
    );
    put(&root.join("cur/6"), &"x".repeat(26 << 20));
    std::os::unix::fs::symlink("/etc/passwd", root.join("cur/7")).unwrap();
    let fixture = with_mail(&fixture);
    let done = fixture
        .board
        .engine()
        .koi()
        .read_mail(&fixture.owner())
        .unwrap();
    assert!(done.broken >= 2, "{done:?}");
    let all = documents(&fixture);
    assert_eq!(all["email:good@example.com"], "as it should be");
    assert!(all.values().any(|it| it == "still read"), "{all:?}");
    assert!(all.values().any(|it| it == "qapla'"), "{all:?}");
    assert!(
        !all.values().any(|it| it.contains("root:")),
        "a link leads nowhere"
    );
    let again = fixture
        .board
        .engine()
        .koi()
        .read_mail(&fixture.owner())
        .unwrap();
    assert_eq!(
        (again.added, again.broken),
        (0, 0),
        "what is broken is not read again"
    );
    verify(&fixture);
}

#[test]
fn koi_mail_nobody_replaces_anothers_message_by_its_name() {
    let fixture = Fixture::new();
    let root = fixture.mail();
    put(
        &root.join("cur/1"),
        &mail("same", "The real one", "pay nobody"),
    );
    let fixture = with_mail(&fixture);
    read(&fixture);
    put(&root.join("cur/2"), &mail("same", "A forgery", "pay me"));
    read(&fixture);
    let all = documents(&fixture);
    assert_eq!(all["email:same@example.com"], "pay nobody");
    assert_eq!(all.len(), 2);
    assert!(all.values().any(|it| it == "pay me"));
    fs::remove_file(root.join("cur/2")).unwrap();
    read(&fixture);
    assert_eq!(keys(&fixture), ["email:same@example.com"]);
}

#[test]
fn koi_mail_two_processes_read_each_message_once() {
    let fixture = Fixture::new();
    let mails: Vec<String> = (0..300).map(|n| mail(&format!("m{n}"), "x", "y")).collect();
    put(&fixture.mail().join("inbox"), &boxed(&mails));
    let (one, two) = (with_mail(&fixture), with_mail(&fixture));
    std::thread::scope(|scope| {
        scope.spawn(|| one.board.engine().koi().read_mail(&one.owner()).unwrap());
        two.board.engine().koi().read_mail(&two.owner()).unwrap();
    });
    read(&one);
    let added = one
        .event_kinds()
        .iter()
        .filter(|it| *it == "DocumentAdded")
        .count();
    assert_eq!(added, 300);
    assert_eq!(documents(&two).len(), 300);
    verify(&one);
}

#[test]
fn koi_mail_where_none_is_configured_is_said_and_spoils_no_search() {
    let fixture = Fixture::new();
    let error = fixture
        .board
        .engine()
        .koi()
        .read_mail(&fixture.owner())
        .unwrap_err();
    assert!(error.message.contains("KENNING_MAIL"), "{error}");
    assert_eq!(search(&fixture, "anything")["count"], 0);
}
