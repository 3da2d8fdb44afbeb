//! Notes that are renamed while the program is killed.

use crate::{Client, Place};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

/// So many notes link to the one that is renamed.
const LINKING: usize = 30;
/// So often the program is killed.
const KILLS: usize = 12;

const NAMES: [&str; 2] = ["Hub", "Center"];

/// The name that the note has: exactly one, and every link says it.
fn name_now(place: &Place) -> usize {
    let is_there = NAMES.map(|it| place.vault().join(format!("{it}.md")).exists());
    assert!(is_there[0] != is_there[1], "{is_there:?}");
    let now = usize::from(is_there[1]);
    for n in 0..LINKING {
        let text = fs::read_to_string(place.vault().join(format!("Work/{n}.md"))).unwrap();
        assert_eq!(text, format!("about [[{}]] and [[Other]]\n", NAMES[now]));
    }
    let hub = fs::read_to_string(place.vault().join(format!("{}.md", NAMES[now]))).unwrap();
    assert_eq!(hub, "[[Other]]\n");
    now
}

#[test]
fn notes_a_rename_that_is_killed_is_done_wholly_or_not_at_all() {
    let place = Place::new();
    fs::create_dir_all(place.vault().join("Work")).unwrap();
    fs::write(place.vault().join("Hub.md"), "[[Other]]\n").unwrap();
    fs::write(place.vault().join("Other.md"), "other\n").unwrap();
    for n in 0..LINKING {
        let text = "about [[Hub]] and [[Other]]\n";
        fs::write(place.vault().join(format!("Work/{n}.md")), text).unwrap();
    }
    let rename = |from: usize| {
        let (path, to) = (NAMES[from], NAMES[1 - from]);
        json!({ "path": format!("{path}.md"), "to": format!("{to}.md") })
    };
    let start = || Client::start(&place, &["--toolsets", "core"]);
    let mut client = start();
    let mut took = Duration::ZERO;
    for from in [0, 1] {
        let began = Instant::now();
        let done = client.call("note_move", &rename(from));
        took = began.elapsed();
        let told = &done["result"]["structuredContent"];
        assert_eq!(told["links_rewritten"], LINKING, "{done}");
    }
    assert_eq!(client.finish(), 0);
    // Killed about when it is done: sooner after one that was committed, later after one that was not.
    let (mut delay, mut n_done) = (took, 0);
    for _ in 0..KILLS {
        let before = name_now(&place);
        let mut client = start();
        // The first call reads the vault; what is killed is the second.
        client.call("note_list", &json!({}));
        let arguments = json!({ "name": "note_move", "arguments": rename(before) });
        let request = json!({
            "jsonrpc": "2.0", "id": 1_000, "method": "tools/call", "params": arguments,
        });
        client.send(&request.to_string());
        std::thread::sleep(delay);
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        // Whoever opens the store next completes what was committed.
        let mut next = start();
        next.call("note_list", &json!({}));
        assert_eq!(next.finish(), 0);
        let is_done = name_now(&place) != before;
        n_done += usize::from(is_done);
        delay = delay.mul_f64(if is_done { 0.8 } else { 1.25 });
    }
    assert!(n_done > 0, "no rename was committed before its kill");
    let verified = place.good(&["audit", "verify"]);
    assert!(verified.contains("clean"), "{verified}");
}
