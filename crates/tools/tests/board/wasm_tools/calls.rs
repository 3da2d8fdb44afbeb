//! Who may call an installed tool, under which name, and when a call ends.

use super::*;

#[test]
fn who_may_not_run_is_refused() {
    let shop = Shop::new();
    let echo = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    shop.install(&echo);
    let mut reader = shop.fixture.owner();
    reader.principal.scopes = vec![Scope::Read, Scope::Write];
    let reply = shop
        .fixture
        .board
        .call(ECHO, json!({ "message": "hi" }), &reader);
    let error = reply.unwrap().error.unwrap();
    assert_eq!(error.code, Code::Denied, "{error}");
    let source = echo.display().to_string();
    let engine = shop.engine();
    let plain = InstallOptions::default();
    for refusal in [
        engine
            .kami()
            .install_tool(&reader, &source, &plain)
            .map(drop),
        engine
            .kami()
            .update_tool(&reader, ECHO, None, &plain)
            .map(drop),
        engine.kami().uninstall_tool(&reader, ECHO).map(drop),
        engine.kami().enable_tool(&reader, ECHO, false).map(drop),
        engine.kami().pin_tool(&reader, ECHO, None, true).map(drop),
        engine
            .kami()
            .trust_key(&reader, &"00".repeat(32), "")
            .map(drop),
        engine.kami().set_wasm_policy(&reader, ""),
    ] {
        refused(refusal, Code::Denied, "admin");
    }
}

#[test]
fn read_only_shows_no_tools_and_says_why() {
    let shop = Shop::new();
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    let careful = shop.fixture.again(Selection {
        read_only: true,
        ..Selection::default()
    });
    assert_eq!(names(&careful), [""; 0]);
    let reply = careful.call(ECHO, json!({ "message": "hi" }));
    let error = reply.error.unwrap();
    assert_eq!(error.code, Code::Denied);
    assert!(error.hint.unwrap().contains("--read-only"));
    assert!(!is_known(&careful, "dev.example.none"));
}

#[test]
fn names_can_go_without_dots_and_the_selection_holds() {
    let shop = Shop::new();
    let echo = probes::echo().unwrap();
    shop.install(&shop.package("echo", "1.0.0", &echo, MODEST));
    shop.install(&shop.package("other", "1.0.0", &echo, MODEST));
    let clash = shop.package("clash", "1.0.0", &echo, MODEST);
    let text = manifest("clash", "1.0.0", MODEST).replace("dev.example.clash", "kg.stats");
    fs::write(clash.join("tool.toml"), text).unwrap();
    shop.install(&clash);
    let list = |words: &[&str]| words.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    let plain = Selection {
        safe_names: true,
        ..Selection::default()
    };
    let kami = Selection {
        toolsets: list(&["kami"]),
        ..Selection::default()
    };
    let one = Selection {
        tools: list(&[ECHO]),
        ..Selection::default()
    };
    let none = Selection {
        toolsets: list(&["koi"]),
        ..Selection::default()
    };
    let but = Selection {
        exclude_tools: list(&[ECHO]),
        ..Selection::default()
    };
    for (selection, expected) in [
        (
            plain,
            &[
                "dev_example_echo",
                "dev_example_other",
                "kg_stats__5851fc85a0bac574",
            ][..],
        ),
        (kami.clone(), &[ECHO, "dev.example.other", "kg.stats"]),
        (one, &[ECHO]),
        (none, &[]),
        (but, &["dev.example.other", "kg.stats"]),
    ] {
        let fixture = shop.fixture.again(selection);
        assert_eq!(names(&fixture), expected);
        for name in ["dev.example.echo", "dev_example_echo"] {
            let shown = expected
                .iter()
                .any(|it| it.replace('.', "_") == "dev_example_echo");
            assert_eq!(is_known(&fixture, name), shown, "{name} of {expected:?}");
        }
    }
    assert_eq!(
        shop.fixture.again(kami).board.listed().len(),
        0,
        "and nothing else"
    );
}

#[test]
fn arguments_are_checked_before_anything_runs() {
    let shop = Shop::new();
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    for (arguments, words) in [
        (json!({}), "message"),
        (json!({ "message": 5 }), "message"),
        (json!([1]), "object"),
    ] {
        let reply = shop.fixture.call(ECHO, arguments.clone());
        let error = reply.error.unwrap();
        assert_eq!(error.code, Code::InvalidInput, "{arguments}");
        assert!(error.message.contains(words), "{error}");
    }
    drop(
        shop.engine()
            .kami()
            .tool_logs(&shop.fixture.owner(), ECHO)
            .unwrap(),
    );
    assert!(!shop.fixture.event_kinds().contains(&"ToolRun".to_owned()));
}

#[test]
fn a_tool_over_its_limits_is_told_which() {
    let shop = Shop::new();
    let hungry = kenning_testing_wasm::Tool::new(
        "(loop $on (drop (memory.grow (i32.const 16))) (br $on)) (unreachable)",
    );
    let plenty = "max_fuel = 1000000000000";
    for (name, wasm, security, begins) in [
        (
            "fuel",
            probes::busy().unwrap(),
            "max_fuel = 1000".to_owned(),
            "fuel exhausted",
        ),
        (
            "time",
            probes::busy().unwrap(),
            format!("{plenty}\nmax_execution_ms = 30"),
            "execution timed out",
        ),
        (
            "sleep",
            probes::sleepy().unwrap(),
            format!("{plenty}\nmax_execution_ms = 30"),
            "execution timed out",
        ),
        (
            "memory",
            hungry.build().unwrap(),
            format!("{plenty}\nmax_memory_mb = 2"),
            "memory grow failure",
        ),
        (
            "panic",
            probes::panic().unwrap(),
            plenty.to_owned(),
            "tool panicked",
        ),
    ] {
        shop.install(&shop.package(name, "1.0.0", &wasm, &security));
        let failed = shop.call(&format!("dev.example.{name}")).unwrap_err();
        assert!(failed.starts_with(begins), "{name}: {failed}");
    }
}

#[test]
fn a_call_that_nobody_wants_any_more_ends() {
    let shop = Shop::new();
    let forever = "max_fuel = 1000000000000000\nmax_execution_ms = 3600000";
    shop.install(&shop.package("busy", "1.0.0", &probes::busy().unwrap(), forever));
    let caller = shop.fixture.owner();
    let cancelled = caller.cancelled.clone();
    let reply = std::thread::scope(|threads| {
        let call = threads.spawn(|| {
            let arguments = json!({ "message": "hi" });
            shop.fixture
                .board
                .call("dev.example.busy", arguments, &caller)
        });
        cancelled.store(true, Ordering::Relaxed);
        call.join().unwrap()
    });
    assert_eq!(reply.unwrap().text, "the call was cancelled");
}

#[test]
fn a_house_without_tools_has_no_directory_for_them() {
    let shop = Shop::new();
    let owner = shop.fixture.owner();
    assert_eq!(names(&shop.fixture), [""; 0]);
    assert!(!is_known(&shop.fixture, ECHO));
    assert!(
        shop.engine()
            .kami()
            .installed_tools(&owner)
            .unwrap()
            .is_empty()
    );
    assert_eq!(shop.engine().kami().wasm_policy_text().unwrap(), None);
    assert!(!shop.fixture.root.path().join("data/kami").exists());
}

#[test]
fn what_was_excluded_is_not_reached_through_another_tool() {
    let shop = Shop::new();
    let echo = probes::echo().unwrap();
    shop.install(&shop.package("echo", "1.0.0", &echo, MODEST));
    let run = json!({
        "item_type": "tool", "action": "run", "item_id": "dev.example.echo",
        "parameters": { "inputs": { "message": "hi" } },
    });
    let reply = shop.fixture.call("execute", run.clone());
    assert!(!reply.is_error(), "{}", reply.text);
    for selection in [
        Selection {
            exclude_tools: vec!["dev.example.echo".to_owned()],
            ..Selection::default()
        },
        Selection {
            read_only: true,
            ..Selection::default()
        },
    ] {
        let narrow = shop.fixture.again(selection);
        assert!(narrow.call("execute", run.clone()).is_error());
    }
}
