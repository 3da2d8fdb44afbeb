//! Installed WASM tools: what is believed, what is granted, what becomes of a call.

mod calls;
mod names;
mod trying;

use kenning_audit::Draft;
use kenning_core::{Code, Error, Kind, Space};
use kenning_engine::kami::InstallOptions;
use kenning_engine::{Caller, Engine, Principal, Scope};
use kenning_testing::Fixture;
use kenning_testing_wasm::probes;
use kenning_tools::Selection;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::Ordering;

/// A fixture, and packages beside it.
struct Shop {
    fixture: Fixture,
    packages: tempfile::TempDir,
}

/// Lines of `[security]` for a tool that needs no more than a test does.
const MODEST: &str = "max_fuel = 100000";

impl Shop {
    fn new() -> Self {
        Self::select(Selection::default())
    }

    fn select(selection: Selection) -> Self {
        Self {
            fixture: Fixture::without_vault(selection),
            packages: tempfile::tempdir().unwrap(),
        }
    }

    fn engine(&self) -> &Engine {
        self.fixture.board.engine()
    }

    /// A package of this version of `dev.example.NAME`, in a directory of its own.
    fn package(&self, name: &str, version: &str, wasm: &[u8], security: &str) -> PathBuf {
        let dir = self.packages.path().join(format!("{name}-{version}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("tool.toml"), manifest(name, version, security)).unwrap();
        fs::write(dir.join("tool.wasm"), wasm).unwrap();
        dir
    }

    fn install(&self, package: &Path) {
        let installed = self.try_install(package, &InstallOptions::default());
        installed.unwrap_or_else(|error| panic!("{error}"));
    }

    fn try_install(&self, package: &Path, how: &InstallOptions) -> Result<String, Error> {
        let source = package.display().to_string();
        let owner = self.fixture.owner();
        let installed = self.engine().kami().install_tool(&owner, &source, how);
        installed.map(|it| it.tool.version)
    }

    fn update(&self, id: &str, package: &Path, how: &InstallOptions) -> Result<String, Error> {
        let source = package.display().to_string();
        let owner = self.fixture.owner();
        let updated = self
            .engine()
            .kami()
            .update_tool(&owner, id, Some(&source), how);
        updated.map(|it| it.tool.version)
    }

    /// The answer, or the failure, of a call with `{"message": "hi"}`.
    fn call(&self, id: &str) -> Result<String, String> {
        call(&self.fixture, id)
    }

    fn file(&self, of: &str, end: &str) -> PathBuf {
        let dir = self.fixture.root.path().join("data/kami").join(of);
        let mut found = fs::read_dir(dir).unwrap().map(|it| it.unwrap().path());
        let found = found.find(|it| it.to_string_lossy().ends_with(end));
        found.unwrap_or_else(|| panic!("no file {end} in {of}"))
    }
}

fn manifest(name: &str, version: &str, security: &str) -> String {
    format!(
        "[tool]\nid = \"dev.example.{name}\"\nname = \"{name}\"\nversion = \"{version}\"\n\
         wasm = \"tool.wasm\"\n[mcp]\ndescription = \"Repeats parrot talk\"\n\
         [[mcp.arguments]]\nname = \"message\"\ntype = \"string\"\n\
         description = \"What to repeat\"\nrequired = true\n[security]\n{security}\n"
    )
}

fn call(fixture: &Fixture, id: &str) -> Result<String, String> {
    let reply = fixture.call(id, json!({ "message": "hi" }));
    match reply.is_error() {
        true => Err(reply.text),
        false => Ok(reply.text),
    }
}

fn is_known(fixture: &Fixture, id: &str) -> bool {
    fixture
        .board
        .call(id, json!({ "message": "hi" }), &fixture.owner())
        .is_some()
}

fn names(fixture: &Fixture) -> Vec<String> {
    let installed = fixture.board.installed(&fixture.owner());
    installed.into_iter().map(|it| it.name).collect()
}

const SAID: &str = r#"{"message":"hi"}"#;
const ECHO: &str = "dev.example.echo";

/// That a change was refused with this code and these words, in the message or the remedy.
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, code: Code, words: &str) {
    let error = result.unwrap_err();
    let hint = error.hint.clone().unwrap_or_default();
    assert_eq!(error.code, code, "{error}");
    assert!(
        format!("{error} {hint}").contains(words),
        "no `{words}` in: {error} ({hint})"
    );
}

#[test]
fn a_tool_is_installed_called_and_removed() {
    let shop = Shop::new();
    let package = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    let owner = shop.fixture.owner();
    assert!(!is_known(&shop.fixture, ECHO));
    shop.install(&package);
    let again = shop.try_install(&package, &InstallOptions::default());
    refused(again, Code::Conflict, "v1.0.0 is already installed");
    let listed = shop.fixture.board.installed(&owner);
    assert_eq!(listed[0].description, "Repeats parrot talk");
    assert_eq!(
        listed[0].input_schema,
        json!({
            "type": "object", "required": ["message"],
            "properties": { "message": { "type": "string", "description": "What to repeat" } },
        })
    );
    assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID));
    let reply = shop.fixture.call(ECHO, json!({ "message": "hi" }));
    assert_eq!(reply.structured(), Some(&json!({ "message": "hi" })));
    shop.engine().kami().uninstall_tool(&owner, ECHO).unwrap();
    assert!(!is_known(&shop.fixture, ECHO));
    refused(
        shop.engine().kami().installed_tool(&owner, ECHO),
        Code::NotFound,
        "tool not found: `dev.example.echo`",
    );
    let data = shop.fixture.root.path().join("data/kami");
    let left = |dir: &str| {
        let files = fs::read_dir(data.join(dir)).unwrap();
        let names = files.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|it| it.contains("wasm")).count()
    };
    assert_eq!((left("store/default"), left("cache")), (0, 0));
    shop.install(&package);
    assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID), "it can come back");
}

#[test]
fn runs_do_not_change_the_stamp_of_the_tools_and_installing_does() {
    let shop = Shop::new();
    let owner = shop.fixture.owner();
    let stamp = || shop.engine().kami().tools_stamp(&owner).unwrap();
    let none = stamp();
    assert!(none == stamp());
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    let one = stamp();
    assert!(one != none);
    for _ in 0..3 {
        assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID));
    }
    // Each run is an event by now.
    shop.fixture.kernel().later().flush();
    assert!(one == stamp());
    let newer = shop.package("echo", "1.1.0", &probes::echo().unwrap(), MODEST);
    shop.update(ECHO, &newer, &InstallOptions::default())
        .unwrap();
    assert!(one != stamp());
}

#[test]
fn a_manifest_file_names_its_package_too() {
    let shop = Shop::new();
    let package = shop.package("echo", "1.0.0", &probes::flat_echo().unwrap(), MODEST);
    shop.install(&package.join("tool.toml"));
    assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID));
}

#[test]
fn what_cannot_be_a_tool_is_not_installed() {
    let shop = Shop::new();
    let echo = probes::echo().unwrap();
    let good = manifest("echo", "1.0.0", MODEST);
    for (what, text, wasm, code, words) in [
        (
            "no id",
            good.replace("dev.example.", ""),
            Some(&echo[..]),
            Code::InvalidInput,
            "id",
        ),
        (
            "no version",
            good.replace("1.0.0", "one"),
            Some(&echo),
            Code::InvalidInput,
            "version",
        ),
        (
            "no type",
            good.replace("\"string\"", "\"text\""),
            Some(&echo),
            Code::InvalidInput,
            "unknown variant `text`",
        ),
        (
            "no TOML",
            "[tool".to_owned(),
            Some(&echo),
            Code::InvalidInput,
            "tool.toml",
        ),
        (
            "no file",
            good.clone(),
            None,
            Code::NotFound,
            "WASM file missing: `tool.wasm`",
        ),
        (
            "no component",
            good.clone(),
            Some(b"MZ"),
            Code::InvalidInput,
            "not WebAssembly",
        ),
        (
            "outside",
            good.replace("tool.wasm", "../tool.wasm"),
            Some(&echo),
            Code::InvalidInput,
            "wasm",
        ),
    ] {
        let dir = shop.packages.path().join(what);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("tool.toml"), text).unwrap();
        if let Some(wasm) = wasm {
            fs::write(dir.join("tool.wasm"), wasm).unwrap();
        }
        refused(
            shop.try_install(&dir, &InstallOptions::default()),
            code,
            words,
        );
    }
    let nowhere = shop.try_install(Path::new("/nowhere/at/all"), &InstallOptions::default());
    refused(nowhere, Code::NotFound, "zip archive");
    let open = shop.try_install(
        Path::new("http://example.com/a.zip"),
        &InstallOptions::default(),
    );
    refused(open, Code::Denied, "https");
    assert_eq!(names(&shop.fixture), [""; 0]);
}

#[test]
fn an_update_that_asks_for_more_needs_a_word() {
    let shop = Shop::new();
    let echo = probes::echo().unwrap();
    shop.install(&shop.package("echo", "1.0.0", &echo, MODEST));
    let more = "net_allow_list = [\"example.com\"]\nmax_fuel = 100000";
    let package = shop.package("echo", "1.1.0", &echo, more);
    let plain = InstallOptions::default();
    let refusal = shop.update(ECHO, &package, &plain);
    refused(refusal, Code::Denied, "`--allow` grants it");
    let owner = shop.fixture.owner();
    let tool = shop.engine().kami().installed_tool(&owner, ECHO).unwrap();
    assert_eq!(
        (tool.version.as_str(), tool.granted.net.len()),
        ("1.0.0", 0)
    );
    let allowed = InstallOptions {
        allow_more: true,
        ..plain.clone()
    };
    assert_eq!(shop.update(ECHO, &package, &allowed).unwrap(), "1.1.0");
    let less = shop.package("echo", "1.2.0", &echo, MODEST);
    assert_eq!(shop.update(ECHO, &less, &plain).unwrap(), "1.2.0");
    let tool = shop.engine().kami().installed_tool(&owner, ECHO).unwrap();
    assert_eq!(tool.versions, ["1.0.0", "1.1.0", "1.2.0"]);
    let other = shop.package("other", "1.0.0", &echo, MODEST);
    refused(
        shop.update(ECHO, &other, &plain),
        Code::Conflict,
        "dev.example.other",
    );
    refused(
        shop.update("dev.example.none", &other, &plain),
        Code::NotFound,
        "tool not found",
    );
}

#[test]
fn a_pinned_tool_stays_and_an_earlier_version_comes_back() {
    let shop = Shop::new();
    let (owner, plain) = (shop.fixture.owner(), InstallOptions::default());
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    let bad = shop.package("echo", "2.0.0", &probes::refuse().unwrap(), MODEST);
    shop.update(ECHO, &bad, &plain).unwrap();
    assert_eq!(shop.call(ECHO), Err(SAID.to_owned()), "the new one refuses");
    let pin = |version, pinned| shop.engine().kami().pin_tool(&owner, ECHO, version, pinned);
    refused(
        pin(Some("3.0.0"), true),
        Code::NotFound,
        "there are 1.0.0, 2.0.0",
    );
    assert_eq!(pin(Some("1.0.0"), true).unwrap().version, "1.0.0");
    assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID));
    refused(shop.update(ECHO, &bad, &plain), Code::Conflict, "--unpin");
    let replace = InstallOptions {
        replace: true,
        ..plain.clone()
    };
    refused(
        shop.try_install(&bad, &replace),
        Code::Conflict,
        "pinned to 1.0.0",
    );
    assert!(!pin(None, false).unwrap().is_pinned);
    assert_eq!(shop.update(ECHO, &bad, &plain).unwrap(), "2.0.0");
}

#[test]
fn a_disabled_tool_is_neither_listed_nor_called() {
    let shop = Shop::new();
    let owner = shop.fixture.owner();
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    shop.engine()
        .kami()
        .enable_tool(&owner, ECHO, false)
        .unwrap();
    assert_eq!(names(&shop.fixture), [""; 0]);
    assert!(!is_known(&shop.fixture, ECHO));
    let run = shop.engine().kami().run_tool(&owner, ECHO, SAID);
    refused(run.map(drop), Code::Denied, "kami enable dev.example.echo");
    shop.engine()
        .kami()
        .enable_tool(&owner, ECHO, true)
        .unwrap();
    assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID));
}

#[test]
fn only_signatures_of_trusted_keys_count() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let plain = InstallOptions::default();
    let package = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    let source = package.display().to_string();
    let place = shop.packages.path().join("my.key");
    let (_, key) = engine
        .kami()
        .make_signing_key(&owner, Some(&place), false)
        .unwrap();
    let twice = engine.kami().make_signing_key(&owner, Some(&place), false);
    refused(twice, Code::Conflict, "--force");
    let secret = engine.kami().signing_key(&owner, Some(&place)).unwrap();
    assert_eq!(
        engine
            .kami()
            .sign_tool_package(&owner, &source, &secret)
            .unwrap(),
        key
    );
    refused(
        shop.try_install(&package, &plain),
        Code::Denied,
        "not trusted",
    );
    engine.kami().trust_key(&owner, &key, "me").unwrap();
    assert_eq!(engine.kami().trusted_keys(&owner).unwrap()[0].name, "me");
    fs::write(package.join("tool.wasm"), probes::refuse().unwrap()).unwrap();
    let tampered = shop.try_install(&package, &plain);
    refused(tampered, Code::Denied, "does not match its content");
    fs::write(package.join("tool.wasm"), probes::echo().unwrap()).unwrap();
    shop.install(&package);
    let verified = engine.kami().verify_tool(&owner, ECHO, Some(&key)).unwrap();
    assert_eq!(verified.signed_by.as_deref(), Some(key.as_str()));
    let stranger = "00".repeat(32);
    let verified = engine.kami().verify_tool(&owner, ECHO, Some(&stranger));
    refused(verified, Code::Denied, "not trusted");
    engine.kami().distrust_key(&owner, &key).unwrap();
    refused(
        engine.kami().distrust_key(&owner, &key),
        Code::NotFound,
        "kami trust list",
    );
    assert_eq!(
        shop.call(ECHO).as_deref(),
        Ok(SAID),
        "what is installed stays"
    );
}

/// The package as one archive, all of it in a directory as releases have it.
fn zip(package: &Path) -> PathBuf {
    let archive = package.with_extension("zip");
    let mut zip = zip::ZipWriter::new(fs::File::create(&archive).unwrap());
    for file in fs::read_dir(package).unwrap() {
        let file = file.unwrap();
        let name = format!("echo/{}", file.file_name().to_string_lossy());
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        std::io::Write::write_all(&mut zip, &fs::read(file.path()).unwrap()).unwrap();
    }
    zip.finish().unwrap();
    archive
}

#[test]
fn an_archive_needs_a_hash_or_somebody_who_vouches() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let package = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    let archive = zip(&package);
    let with = |sha256: Option<&str>, allow_unsigned| InstallOptions {
        sha256: sha256.map(str::to_owned),
        allow_unsigned,
        ..InstallOptions::default()
    };
    let gone = || drop(engine.kami().uninstall_tool(&owner, ECHO).unwrap());
    let plain = shop.try_install(&archive, &with(None, false));
    refused(plain, Code::Denied, "--sha256");
    let wrong = shop.try_install(&archive, &with(Some(&"ab".repeat(32)), false));
    refused(wrong, Code::Denied, "the archive has the SHA-256 ");
    refused(
        shop.try_install(&archive, &with(Some("xyz"), false)),
        Code::InvalidInput,
        "64 hexadecimal digits",
    );
    let right = sha256_of(&shop, &archive);
    shop.try_install(&archive, &with(Some(&right), false))
        .unwrap();
    assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID));
    gone();
    shop.try_install(&archive, &with(None, true)).unwrap();
    gone();
    let directory = shop.try_install(&package, &with(Some(&right), false));
    refused(
        directory,
        Code::InvalidInput,
        "leave it out for a directory",
    );
    let key = engine
        .kami()
        .sign_tool_package(&owner, &package.display().to_string(), &[9; 32])
        .unwrap();
    engine.kami().trust_key(&owner, &key, "").unwrap();
    shop.try_install(&zip(&package), &with(None, false))
        .unwrap();
    let tool = engine.kami().installed_tool(&owner, ECHO).unwrap();
    assert_eq!(tool.signed_by, Some(key));
}

/// As the refusal of a wrong hash tells it.
fn sha256_of(shop: &Shop, archive: &Path) -> String {
    let wrong = InstallOptions {
        sha256: Some("00".repeat(32)),
        ..InstallOptions::default()
    };
    let error = shop.try_install(archive, &wrong).unwrap_err().to_string();
    let mut words = error.split_whitespace();
    words.find(|it| it.len() == 64).unwrap().to_owned()
}

#[test]
fn the_policy_is_a_ceiling() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let asked = "net_allow_list = [\"a.example.com\", \"b.org\"]\nfs_access = \"sandbox\"\nmax_fuel = 100000";
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), asked));
    assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID));
    let policy = "[default]\nnet_allow_list = [\"*.example.com\"]\nfs_access = \"none\"\n\
                  [tools.\"dev.example.echo\"]\nmax_fuel = 1\n";
    engine.kami().set_wasm_policy(&owner, policy).unwrap();
    let tool = engine.kami().installed_tool(&owner, ECHO).unwrap();
    assert_eq!(tool.granted.net, ["a.example.com"]);
    assert_eq!(
        (tool.granted.fs.as_str(), tool.granted.max_fuel),
        ("none", 1)
    );
    assert_eq!(tool.cut.len(), 3, "{:?}", tool.cut);
    let failed = shop.call(ECHO).unwrap_err();
    assert!(failed.starts_with("fuel exhausted"), "{failed}");
    let bad = engine
        .kami()
        .set_wasm_policy(&owner, "[default]\nmax_fuels = 1\n");
    refused(bad, Code::InvalidInput, "max_fuels");
    assert_eq!(
        engine.kami().wasm_policy_text().unwrap().as_deref(),
        Some(policy)
    );
    engine
        .kami()
        .set_wasm_policy(&owner, "[default]\nallow_unsigned = false\n")
        .unwrap();
    assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID), "the ceiling is gone");
    let unsigned = shop.package("other", "1.0.0", &probes::echo().unwrap(), MODEST);
    let unsigned = shop.try_install(&unsigned, &InstallOptions::default());
    refused(
        unsigned,
        Code::Denied,
        "is not signed by a key that you trust",
    );
}

#[test]
fn what_runs_is_what_was_installed() {
    let shop = Shop::new();
    let owner = shop.fixture.owner();
    let package = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    shop.install(&package);
    fs::write(package.join("tool.wasm"), probes::refuse().unwrap()).unwrap();
    fs::write(
        package.join("tool.toml"),
        manifest("echo", "1.0.0", "max_fuel = 1"),
    )
    .unwrap();
    let restarted = || shop.fixture.again(Selection::default());
    assert_eq!(
        call(&restarted(), ECHO).as_deref(),
        Ok(SAID),
        "the source does not matter"
    );
    let component = shop.file("store/default", ".wasm");
    let artifact = shop.file("cache", ".cwasm");
    fs::write(&component, probes::refuse().unwrap()).unwrap();
    fs::remove_file(&artifact).unwrap();
    let failed = call(&restarted(), ECHO).unwrap_err();
    assert!(failed.starts_with("integrity violation"), "{failed}");
    let verified = shop.engine().kami().verify_tool(&owner, ECHO, None);
    refused(verified, Code::Corrupt, "integrity violation");
    fs::remove_file(&component).unwrap();
    let failed = call(&restarted(), ECHO).unwrap_err();
    assert!(failed.starts_with("WASM file missing"), "{failed}");
    let verified = shop.engine().kami().verify_tool(&owner, ECHO, None);
    refused(verified, Code::NotFound, "WASM file missing");
    fs::write(package.join("tool.wasm"), probes::echo().unwrap()).unwrap();
    let again = InstallOptions {
        allow_more: true,
        ..InstallOptions::default()
    };
    fs::write(package.join("tool.toml"), manifest("echo", "1.0.0", MODEST)).unwrap();
    shop.update(ECHO, &package, &again).unwrap();
    assert_eq!(
        call(&restarted(), ECHO).as_deref(),
        Ok(SAID),
        "updating mends it"
    );
}

#[test]
fn compiled_code_that_was_changed_is_compiled_again() {
    let shop = Shop::new();
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    let artifact = shop.file("cache", ".cwasm");
    let good = fs::read(&artifact).unwrap();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    fs::write(&artifact, &bad).unwrap();
    let restarted = shop.fixture.again(Selection::default());
    assert_eq!(call(&restarted, ECHO).as_deref(), Ok(SAID));
    assert_ne!(fs::read(shop.file("cache", ".cwasm")).unwrap(), bad);
    let owner = shop.fixture.owner();
    drop(
        restarted
            .board
            .engine()
            .kami()
            .tool_logs(&owner, ECHO)
            .unwrap(),
    );
    let restarted = shop.fixture.again(Selection::default());
    assert_eq!(call(&restarted, ECHO).as_deref(), Ok(SAID));
}

#[test]
fn two_processes_install_and_remove_at_once() {
    let shop = Shop::new();
    let echo = probes::echo().unwrap();
    let second = shop.fixture.again(Selection::default());
    let packages = ["one", "two"].map(|it| shop.package(it, "1.0.0", &echo, MODEST));
    let both = shop.package("both", "1.0.0", &echo, MODEST);
    let (barrier, owner) = (Barrier::new(2), shop.fixture.owner());
    let plain = InstallOptions::default();
    let work = |fixture: &Fixture, name: &str, package: &Path| {
        let (engine, source) = (fixture.board.engine(), package.display().to_string());
        let id = format!("dev.example.{name}");
        for _ in 0..5 {
            barrier.wait();
            engine.kami().install_tool(&owner, &source, &plain).unwrap();
            assert_eq!(call(fixture, &id).as_deref(), Ok(SAID));
            engine.kami().uninstall_tool(&owner, &id).unwrap();
        }
        engine.kami().install_tool(&owner, &source, &plain).unwrap();
        barrier.wait();
        let source = both.display().to_string();
        engine.kami().install_tool(&owner, &source, &plain).is_ok()
    };
    let won = std::thread::scope(|threads| {
        let first = threads.spawn(|| work(&shop.fixture, "one", &packages[0]));
        let other = threads.spawn(|| work(&second, "two", &packages[1]));
        [first.join().unwrap(), other.join().unwrap()]
    });
    assert_eq!(
        won.iter().filter(|it| **it).count(),
        1,
        "one of them was first"
    );
    for fixture in [
        &shop.fixture,
        &second,
        &shop.fixture.again(Selection::default()),
    ] {
        for id in ["dev.example.both", "dev.example.one", "dev.example.two"] {
            assert_eq!(call(fixture, id).as_deref(), Ok(SAID), "{id}");
        }
    }
}

#[test]
fn one_broken_tool_hides_no_other() {
    let shop = Shop::new();
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    shop.install(&shop.package("gone", "1.0.0", &probes::refuse().unwrap(), MODEST));
    let owner = shop.fixture.owner();
    let gone = shop
        .engine()
        .kami()
        .installed_tool(&owner, "dev.example.gone")
        .unwrap();
    let data = shop.fixture.root.path().join("data/kami");
    fs::remove_file(data.join(format!("store/default/{}.wasm", gone.sha256))).unwrap();
    fs::remove_dir_all(data.join("cache")).unwrap();
    let broken = |tx: &mut kenning_audit::Tx<'_>| {
        let mut props = Map::new();
        props.insert("tool".to_owned(), json!({ "version": 7 }));
        tx.put_node(Draft {
            kind: Kind::Tool,
            project: String::new(),
            key: "dev.example.broken".to_owned(),
            title: "broken".to_owned(),
            body: String::new(),
            props,
        })?;
        tx.record("ToolInstalled", json!({ "id": "dev.example.broken" }))
    };
    shop.fixture.log().write(&Space::default(), broken).unwrap();
    let fixture = shop.fixture.again(Selection::default());
    assert_eq!(names(&fixture), [ECHO, "dev.example.gone"]);
    assert!(call(&fixture, "dev.example.gone").is_err());
    assert_eq!(call(&fixture, ECHO).as_deref(), Ok(SAID));
    let engine = fixture.board.engine();
    engine
        .kami()
        .uninstall_tool(&owner, "dev.example.gone")
        .unwrap();
    assert_eq!(call(&fixture, ECHO).as_deref(), Ok(SAID));
}

#[test]
fn a_run_is_an_event_with_what_it_took() {
    let shop = Shop::new();
    let owner = shop.fixture.owner();
    shop.install(&shop.package("echo", "1.0.0", &probes::log().unwrap(), MODEST));
    shop.install(&shop.package("no", "1.0.0", &probes::refuse().unwrap(), MODEST));
    assert_eq!(shop.call(ECHO).as_deref(), Ok(SAID));
    assert_eq!(shop.call("dev.example.no"), Err(SAID.to_owned()));
    let log = shop.engine().kami().tool_logs(&owner, ECHO).unwrap();
    assert!(log.contains(&format!("warn  {SAID}\n")), "{log}");
    let events = shop.engine().events_after(&owner, 0, 1_000).unwrap();
    let of = |kind: &str| -> Vec<Value> {
        let events = events.iter().map(|it| it.json.clone());
        events.filter(|it| it["kind"] == kind).collect()
    };
    assert_eq!(of("ToolInstalled").len(), 2);
    let runs = of("ToolRun");
    let data: Vec<&Value> = runs.iter().map(|it| &it["data"]).collect();
    assert_eq!(data[0]["id"], ECHO);
    assert_eq!(
        (&data[0]["success"], &data[1]["success"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(data[1]["error"], SAID);
    let usage = &data[0]["usage"];
    for field in ["fuel", "wall_us", "memory_peak_bytes"] {
        assert!(
            usage[field].as_u64().is_some_and(|it| it > 0),
            "{field} in {usage}"
        );
    }
    shop.engine().kami().uninstall_tool(&owner, ECHO).unwrap();
    shop.install(&shop.package("echo", "2.0.0", &probes::echo().unwrap(), MODEST));
    assert_eq!(
        shop.engine().kami().tool_logs(&owner, ECHO).unwrap(),
        "",
        "its log went with it"
    );
}

#[test]
fn a_tool_is_found_by_the_one_search() {
    let shop = Shop::new();
    let owner = shop.fixture.owner();
    shop.fixture.put_document("docs/a.md", "# A\n");
    shop.fixture.call("kg_graph_generate", json!({}));
    let found = || {
        let query = json!({ "query": "parrot", "kinds": ["tool"] });
        let reply = shop.fixture.call("kg_graph_query", query).to_json();
        let nodes = reply["data"]["nodes"].as_array().unwrap().clone();
        let titles = nodes
            .iter()
            .map(|it| it["title"].as_str().unwrap().to_owned());
        titles.collect::<Vec<String>>()
    };
    assert_eq!(found(), [""; 0]);
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    assert_eq!(found(), ["echo"]);
    shop.engine().kami().uninstall_tool(&owner, ECHO).unwrap();
    assert_eq!(found(), [""; 0]);
}

#[test]
fn a_space_has_tools_and_files_of_its_own() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let other = Caller::new(Principal::owner("other".parse::<Space>().unwrap()));
    let sandbox = "fs_access = \"sandbox\"\nmax_fuel = 100000";
    let package = shop.package("files", "1.0.0", &probes::files().unwrap(), sandbox);
    let source = package.display().to_string();
    shop.install(&package);
    assert!(engine.kami().installed_tools(&other).unwrap().is_empty());
    assert!(
        shop.fixture
            .board
            .call("dev.example.files", json!({}), &other)
            .is_none()
    );
    engine
        .kami()
        .install_tool(&other, &source, &InstallOptions::default())
        .unwrap();
    // The probe takes its input as it is; one that is no other operation writes a file.
    let write = |caller: &Caller| {
        let run = engine.kami().run_tool(caller, "dev.example.files", SAID);
        run.unwrap().result
    };
    assert_eq!(write(&owner).as_deref(), Ok(""));
    let files = |space: &str| {
        let dir = format!("data/kami/sandbox/{space}/dev.example.files");
        let dir = shop.fixture.root.path().join(dir);
        fs::read_dir(dir).map_or(0, Iterator::count)
    };
    assert_eq!((files("default"), files("other")), (1, 0));
    engine
        .kami()
        .uninstall_tool(&owner, "dev.example.files")
        .unwrap();
    assert_eq!(files("default"), 0, "its directory went with it");
    fs::remove_dir_all(shop.fixture.root.path().join("data/kami/cache")).unwrap();
    assert_eq!(
        write(&other).as_deref(),
        Ok(""),
        "its component is still there"
    );
    assert_eq!(files("other"), 1);
}
