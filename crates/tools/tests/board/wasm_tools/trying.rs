//! What people do with tools: try them, look for them, update them, and read why one did not run.

use super::*;
use kenning_engine::kami::FileRun;
use std::sync::{Arc, Mutex};

/// The component with a section that nobody reads, so that it is a large one.
fn large(mut wasm: Vec<u8>) -> Vec<u8> {
    let content = [&[1_u8][..], b"x", &vec![0; 1024 * 1024]].concat();
    wasm.push(0);
    let mut n = content.len();
    while n >= 0x80 {
        wasm.push(u8::try_from(n & 0x7f).unwrap() | 0x80);
        n >>= 7;
    }
    wasm.push(u8::try_from(n).unwrap());
    wasm.extend(content);
    wasm
}

/// A caller, and what it is told while it waits.
fn listener(fixture: &Fixture) -> (Caller, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut caller = fixture.owner();
    let theirs = Arc::clone(&told);
    caller.progress = Some(Arc::new(move |_, _, word: &str| {
        theirs.lock().unwrap().push(word.to_owned());
    }));
    (caller, told)
}

fn is_compiled(told: &Mutex<Vec<String>>) -> bool {
    let told = std::mem::take(&mut *told.lock().unwrap());
    told.iter().any(|it| it.starts_with("compiling 1.0 MiB"))
}

#[test]
fn whoever_waits_for_the_compiler_is_told() {
    let shop = Shop::new();
    let (caller, told) = listener(&shop.fixture);
    let wasm = large(probes::echo().unwrap());
    let package = shop.package("echo", "1.0.0", &wasm, MODEST);
    let source = package.display().to_string();
    let plain = InstallOptions::default();
    shop.engine()
        .kami()
        .install_tool(&caller, &source, &plain)
        .unwrap();
    assert!(is_compiled(&told));
    let run = |fixture: &Fixture| {
        let (caller, told) = listener(fixture);
        let ran = fixture.board.engine().kami().run_tool(&caller, ECHO, SAID);
        assert_eq!(ran.unwrap().result.as_deref(), Ok(SAID));
        is_compiled(&told)
    };
    assert!(!run(&shop.fixture.again(Selection::default())));
    // As after an update of the program, whose compiler is another.
    fs::remove_file(shop.file("cache", ".cwasm")).unwrap();
    assert!(run(&shop.fixture.again(Selection::default())));
}

#[test]
fn a_component_that_is_run_from_a_file_is_compiled_once() {
    let shop = Shop::new();
    let file = shop.packages.path().join("tool.wasm");
    fs::write(&file, large(probes::echo().unwrap())).unwrap();
    let run = |fixture: &Fixture| {
        let (caller, told) = listener(fixture);
        let engine = fixture.board.engine();
        let ran = engine
            .kami()
            .run_tool_file(&caller, &file, SAID, &FileRun::default());
        assert_eq!(ran.unwrap().result.as_deref(), Ok(SAID));
        // As the end of a process does: what was compiled is noted afterwards.
        engine.omi().settle();
        is_compiled(&told)
    };
    assert!(run(&shop.fixture));
    let restarted = shop.fixture.again(Selection::default());
    assert!(!run(&restarted), "the second process has the code");
    // Code that is not what was noted is not believed.
    let artifact = shop.file("cache", ".cwasm");
    let mut bytes = fs::read(&artifact).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&artifact, bytes).unwrap();
    let again = shop.fixture.again(Selection::default());
    let (caller, _) = listener(&again);
    let ran = again
        .board
        .engine()
        .kami()
        .run_tool_file(&caller, &file, SAID, &FileRun::default());
    assert_eq!(ran.unwrap().result.as_deref(), Ok(SAID));
}

#[test]
fn code_of_components_that_were_run_long_ago_is_thrown_away() {
    let shop = Shop::new();
    let engine = shop.engine();
    let n_files = || {
        let cache = shop.fixture.root.path().join("data/kami/cache");
        fs::read_dir(cache).unwrap().count()
    };
    for n in 0..35 {
        let body = format!("(drop (i32.const {n})) (call $ok (local.get $ptr) (local.get $len))");
        let wasm = kenning_testing_wasm::Tool::new(&body).build().unwrap();
        let file = shop.packages.path().join("tool.wasm");
        fs::write(&file, wasm).unwrap();
        let owner = shop.fixture.owner();
        let ran = engine
            .kami()
            .run_tool_file(&owner, &file, SAID, &FileRun::default());
        assert!(ran.unwrap().result.is_ok());
    }
    assert_eq!(n_files(), 32);
}

#[test]
fn a_call_without_enough_fuel_says_how_much_it_takes_and_where_that_is_set() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    // It counts as many times as its input has bytes, thrice over.
    let counting = kenning_testing_wasm::Tool::new(
        "(local.set $n (i32.mul (local.get $len) (i32.const 3)))
         (loop $on
           (local.set $n (i32.sub (local.get $n) (i32.const 1)))
           (br_if $on (local.get $n)))
         (call $ok (local.get $ptr) (local.get $len))",
    );
    let wasm = counting.build().unwrap();
    shop.install(&shop.package("echo", "1.0.0", &wasm, "max_fuel = 40"));
    let tried = |input: &str| engine.kami().try_tool(&owner, ECHO, input).unwrap();
    let failed = tried(SAID).result.unwrap_err();
    let needed: u64 = {
        let words: Vec<&str> = failed.split_whitespace().collect();
        let at = words.iter().position(|it| *it == "takes").unwrap();
        words[at + 1].parse().unwrap()
    };
    let expected = format!(
        "fuel exhausted: the call takes {needed} and has 40; try `max_fuel = {needed}` in `tool.toml`, then `kami update {ECHO}`"
    );
    assert_eq!(failed, expected);
    // The amount is enough, and half of it is not: the engine looks at the beginning of loops.
    for (fuel, is_enough) in [(needed, true), (needed / 2, false)] {
        let version = format!("2.0.{}", u8::from(!is_enough));
        let package = shop.package("echo", &version, &wasm, &format!("max_fuel = {fuel}"));
        let allow = InstallOptions {
            allow_more: true,
            ..InstallOptions::default()
        };
        shop.update(ECHO, &package, &allow).unwrap();
        assert_eq!(tried(SAID).result.is_ok(), is_enough, "{fuel}");
    }
    // Where the policy cut, it is the policy that is named.
    let policy = format!("[default]\nmax_fuel = {}\n", needed / 4);
    engine.kami().set_wasm_policy(&owner, &policy).unwrap();
    let failed = tried(SAID).result.unwrap_err();
    assert!(
        failed.contains("the policy lowers `max_fuel`") && failed.contains("in `policy.toml`"),
        "{failed}"
    );
    // A model that calls costs no second run, and reads where the limit is.
    let failed = shop.call(ECHO).unwrap_err();
    assert!(failed.contains("the policy lowers `max_fuel`"), "{failed}");
    // From a file the options are named.
    let file = shop.packages.path().join("tool.wasm");
    fs::write(&file, &wasm).unwrap();
    let how = FileRun {
        max_fuel: Some(40),
        ..FileRun::default()
    };
    let ran = engine
        .kami()
        .run_tool_file(&owner, &file, SAID, &how)
        .unwrap();
    let failed = ran.result.unwrap_err();
    assert!(
        failed.ends_with(&format!("; try `--fuel {needed}`")),
        "{failed}"
    );
}

#[test]
fn an_update_to_an_older_version_needs_a_word() {
    let shop = Shop::new();
    let echo = probes::echo().unwrap();
    shop.install(&shop.package("echo", "1.10.0", &echo, MODEST));
    let old = shop.package("echo", "1.9.0", &echo, MODEST);
    let plain = InstallOptions::default();
    refused(
        shop.update(ECHO, &old, &plain),
        Code::Conflict,
        "1.9.0 is older than 1.10.0",
    );
    let before = shop.package("echo", "1.10.0-beta.1", &echo, MODEST);
    refused(
        shop.update(ECHO, &before, &plain),
        Code::Conflict,
        "--downgrade",
    );
    let same = shop.package("echo", "1.10.0", &echo, MODEST);
    assert_eq!(shop.update(ECHO, &same, &plain).unwrap(), "1.10.0");
    let down = InstallOptions {
        allow_downgrade: true,
        ..plain
    };
    assert_eq!(shop.update(ECHO, &old, &down).unwrap(), "1.9.0");
}

#[test]
fn what_a_component_says_of_itself_is_compared_with_its_manifest() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    // Its `describe` answers {"name":"test"}.
    let wasm = probes::echo().unwrap();
    let other = shop.package("echo", "1.0.0", &wasm, MODEST);
    let source = other.display().to_string();
    let checked = engine
        .kami()
        .check_tool_package(&owner, &source, &InstallOptions::default())
        .unwrap();
    let plain = InstallOptions::default();
    let installed = engine.kami().install_tool(&owner, &source, &plain).unwrap();
    for concerns in [&checked.concerns, &installed.concerns] {
        assert_eq!(concerns.len(), 1, "{concerns:?}");
        assert!(
            concerns[0].contains("its name is `test`, and the manifest `dev.example.echo`"),
            "{concerns:?}"
        );
    }
    let right = shop.package("test", "1.0.0", &wasm, MODEST);
    let checked = engine.kami().check_tool_package(
        &owner,
        &right.display().to_string(),
        &InstallOptions::default(),
    );
    assert_eq!(checked.unwrap().concerns, [""; 0]);
}

#[test]
fn a_component_with_several_functions_lists_them_under_short_names() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    shop.install(&shop.package("shop", "1.0.0", &probes::generic().unwrap(), MODEST));
    let id = "dev.example.shop";
    let mut listed = names(&shop.fixture);
    listed.sort();
    let expected = ["half", "same", "swap", "total", "wished"].map(|it| format!("{id}.{it}"));
    assert_eq!(listed, expected);
    assert_eq!(
        engine
            .kami()
            .installed_tool(&owner, id)
            .unwrap()
            .functions
            .len(),
        5
    );
    let bare = engine.kami().try_tool(&owner, id, "{}");
    refused(
        bare.map(drop),
        Code::InvalidInput,
        "`dev.example.shop` has 5 functions: ",
    );
    let sum = r#"{"a":2,"b":40}"#;
    for name in ["total", "test.shop.shop.total"] {
        let ran = engine.kami().try_tool(&owner, &format!("{id}.{name}"), sum);
        assert_eq!(ran.unwrap().result.as_deref(), Ok("42"), "{name}");
    }
}

#[test]
fn the_output_of_a_program_is_its_answer() {
    let shop = Shop::new();
    let package = shop.package("program", "1.0.0", &probes::command().unwrap(), MODEST);
    shop.install(&package);
    let id = "dev.example.program";
    assert_eq!(shop.call(id).as_deref(), Ok(SAID));
    let tool = shop
        .engine()
        .kami()
        .installed_tool(&shop.fixture.owner(), id);
    assert_eq!(tool.unwrap().abi, "command");
    let schema = &shop.fixture.board.installed(&shop.fixture.owner())[0].input_schema;
    assert_eq!(schema["required"], json!(["message"]), "the manifest's");
    let refused = shop.fixture.call(id, json!({}));
    assert!(refused.is_error(), "arguments are checked");
}

#[test]
fn tools_are_found_among_installed_ones_and_in_an_index() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let package = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    shop.install(&package);
    let search = |words: &str, index: Option<&str>| {
        let found = engine.kami().search_tools(&owner, words, index);
        found
            .unwrap()
            .into_iter()
            .map(|it| it.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(search("PARROT", None), [ECHO]);
    assert_eq!(search("nothing like it", None), [""; 0]);
    let source = package.display().to_string();
    let entry = engine
        .kami()
        .tool_index_entry(&owner, &source, "owner/echo@v2")
        .unwrap();
    assert_eq!(entry["version"], "1.0.0");
    assert_eq!(entry["wasm_sha256"].as_str().unwrap().len(), 64);
    refused(
        engine.kami().tool_index_entry(&owner, &source, "nowhere"),
        Code::InvalidInput,
        "owner/repo@tag",
    );
    let index = json!([
        entry,
        { "id": "dev.other.parrot", "name": "parrot", "version": "0.1.0",
          "description": "echo, echo", "source": "owner/parrot@v0.1.0", "download_url": "…" },
        { "id": "dev.other.clock", "name": "clock", "version": "0.1.0", "description": "time" },
    ]);
    let file = shop.packages.path().join("index.json");
    fs::write(&file, index.to_string()).unwrap();
    let place = file.display().to_string();
    assert_eq!(search("echo", Some(&place)), [ECHO, "dev.other.parrot"]);
    let found = engine
        .kami()
        .search_tools(&owner, "parrot", Some(&place))
        .unwrap();
    let parrot = found.iter().find(|it| it.name == "parrot").unwrap();
    assert_eq!(parrot.source.as_deref(), Some("owner/parrot@v0.1.0"));
    let echo = found.iter().find(|it| it.id == ECHO).unwrap();
    assert_eq!(echo.installed.as_deref(), Some("1.0.0"));
    for (place, code) in [
        ("http://example.com/index.json", Code::Denied),
        ("/nowhere/index.json", Code::NotFound),
    ] {
        let failed = engine.kami().search_tools(&owner, "x", Some(place));
        assert_eq!(failed.unwrap_err().code, code, "{place}");
    }
    fs::write(&file, "{}").unwrap();
    let failed = engine.kami().search_tools(&owner, "x", Some(&place));
    refused(failed, Code::InvalidInput, "is not an index of tools");
}

#[test]
fn who_vouches_can_be_named_by_a_file() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let package = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    let place = shop.packages.path().join("my.key");
    let (_, key) = engine
        .kami()
        .make_signing_key(&owner, Some(&place), false)
        .unwrap();
    let secret = engine.kami().signing_key(&owner, Some(&place)).unwrap();
    let source = package.display().to_string();
    engine
        .kami()
        .sign_tool_package(&owner, &source, &secret)
        .unwrap();
    engine.kami().trust_key(&owner, &key, "me").unwrap();
    shop.install(&package);
    let public = shop
        .packages
        .path()
        .join("my.key.pub")
        .display()
        .to_string();
    let verified = engine
        .kami()
        .verify_tool(&owner, ECHO, Some(&public))
        .unwrap();
    assert_eq!(verified.signed_by, Some(key));
    fs::write(&public, "ab".repeat(32)).unwrap();
    let other = engine.kami().verify_tool(&owner, ECHO, Some(&public));
    refused(other, Code::Denied, "not trusted");
    for named in [source.as_str(), "/nowhere/x.pub", "zz"] {
        let failed = engine.kami().verify_tool(&owner, ECHO, Some(named));
        assert!(failed.is_err(), "{named}");
    }
    let failed = engine
        .kami()
        .verify_tool(&owner, ECHO, Some("/nowhere/x.pub"));
    refused(
        failed,
        Code::InvalidInput,
        "neither a public key nor a file",
    );
}
