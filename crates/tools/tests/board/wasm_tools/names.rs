//! What a name of an installed tool means, and that it never comes to mean something else.

use super::*;
use kenning_store::When;

/// A component of these functions, each of which answers with ten times the number that it is given.
fn functions(names: &[&str]) -> Vec<u8> {
    let each = |text: fn(&str) -> String| names.iter().map(|it| text(it)).collect::<String>();
    let exports = each(|it| format!("export {it}: func(n: s64) -> s64; "));
    let bodies = each(|it| {
        format!(
            "(func (export \"{it}\") (param i64) (result i64) (i64.mul (local.get 0) (i64.const 10)))"
        )
    });
    let wit = format!("package test:many; world many {{ {exports} }}");
    let core = format!("(module (memory (export \"memory\") 1) {bodies})");
    kenning_testing_wasm::encode(&core, &wit, "many").unwrap()
}

/// A package of this id.
fn package(shop: &Shop, id: &str, version: &str, wasm: &[u8]) -> PathBuf {
    let dir = shop.package(id, version, wasm, MODEST);
    let text = manifest(id, version, MODEST);
    let text = text.replace(&format!("dev.example.{id}"), id);
    fs::write(dir.join("tool.toml"), text).unwrap();
    dir
}

fn allowing() -> InstallOptions {
    InstallOptions {
        allow_more: true,
        ..InstallOptions::default()
    }
}

/// `dev.example` with the functions `echo` and `other`: the first is called as our `dev.example.echo`.
fn taker(shop: &Shop) -> PathBuf {
    package(shop, "dev.example", "1.0.0", &functions(&["echo", "other"]))
}

#[test]
fn a_name_that_could_mean_two_things_is_refused_in_either_order() {
    for states in ["enabled", "disabled", "pinned"] {
        let shop = Shop::new();
        let (engine, owner) = (shop.engine(), shop.fixture.owner());
        let echo = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
        shop.install(&echo);
        match states {
            "disabled" => drop(engine.kami().enable_tool(&owner, ECHO, false).unwrap()),
            "pinned" => drop(engine.kami().pin_tool(&owner, ECHO, None, true).unwrap()),
            _ => {}
        }
        for how in [InstallOptions::default(), allowing()] {
            let second = shop.try_install(&taker(&shop), &how);
            refused(
                second,
                Code::Conflict,
                "`dev.example.echo`, which is the name of another tool",
            );
        }
        assert_eq!(is_known(&shop.fixture, ECHO), states != "disabled");
    }
    let shop = Shop::new();
    shop.install(&taker(&shop));
    assert_eq!(names(&shop.fixture), [ECHO, "dev.example.other"]);
    let echo = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    let second = shop.try_install(&echo, &allowing());
    refused(
        second,
        Code::Conflict,
        "is the name of a function of `dev.example`",
    );
}

#[test]
fn an_update_or_an_earlier_version_takes_no_name_either() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let first = functions(&["one", "two"]);
    shop.install(&package(&shop, "dev.example", "1.0.0", &first));
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    let second = package(
        &shop,
        "dev.example",
        "2.0.0",
        &functions(&["echo", "other"]),
    );
    let updated = shop.update("dev.example", &second, &allowing());
    refused(updated, Code::Conflict, "`dev.example.echo`");
    // `dev.example.one` belongs to a version that can come back.
    let third = package(
        &shop,
        "dev.example",
        "3.0.0",
        &functions(&["three", "four"]),
    );
    shop.update("dev.example", &third, &allowing()).unwrap();
    let one = shop.package("one", "1.0.0", &probes::echo().unwrap(), MODEST);
    let taken = shop.try_install(&one, &allowing());
    refused(
        taken,
        Code::Conflict,
        "is the name of a function of `dev.example`",
    );
    engine
        .kami()
        .pin_tool(&owner, "dev.example", Some("1.0.0"), true)
        .unwrap();
    assert_eq!(
        names(&shop.fixture),
        ["dev.example.one", "dev.example.two", ECHO]
    );
    // Functions of two tools can meet too.
    let shops = package(&shop, "dev.a", "1.0.0", &probes::generic().unwrap());
    shop.install(&shops);
    let meeting = functions(&["total", "other"]);
    let meeting = package(&shop, "dev.a.test.shop.shop", "1.0.0", &meeting);
    refused(
        shop.try_install(&meeting, &allowing()),
        Code::Conflict,
        "`dev.a.test.shop.shop.total` would be a function of",
    );
}

#[test]
fn the_name_of_a_tool_that_was_removed_is_not_taken_over_unseen() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let echo = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    shop.install(&echo);
    engine.kami().uninstall_tool(&owner, ECHO).unwrap();
    let plain = InstallOptions::default();
    let taken = shop.try_install(&taker(&shop), &plain);
    refused(
        taken,
        Code::Conflict,
        "which was the name of another tool that was removed",
    );
    let source = taker(&shop).display().to_string();
    let checked = engine
        .kami()
        .check_tool_package(&owner, &source, &plain)
        .unwrap();
    assert!(checked.needs_allow.is_some() && checked.refusal.is_none());
    assert!(!is_known(&shop.fixture, ECHO));
    // The tool itself comes back under its name, with another component too.
    let refuse = shop.package("echo", "2.0.0", &probes::refuse().unwrap(), MODEST);
    shop.install(&refuse);
    assert_eq!(shop.call(ECHO), Err(SAID.to_owned()));
    engine.kami().uninstall_tool(&owner, ECHO).unwrap();
    // Whoever wants it can say so.
    shop.try_install(&taker(&shop), &allowing()).unwrap();
    let reply = shop.fixture.call(ECHO, json!({ "n": 4 }));
    assert_eq!(reply.text, "40");
}

#[test]
fn of_two_that_are_there_already_the_exact_id_wins() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    shop.install(&shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST));
    shop.install(&package(
        &shop,
        "dev.other",
        "1.0.0",
        &functions(&["echo", "other"]),
    ));
    // As it was written before names were compared.
    let written = |tx: &mut kenning_audit::Tx<'_>| {
        let node = tx.node_by_key("", Kind::Tool, "dev.other", When::Now)?;
        let node = node.unwrap();
        let props = Value::Object(node.props).to_string();
        let props = props.replace("dev.other", "dev.example");
        let props: Map<String, Value> = serde_json::from_str(&props).unwrap();
        tx.put_node(Draft {
            kind: Kind::Tool,
            project: String::new(),
            key: "dev.example".to_owned(),
            title: node.title,
            body: node.body,
            props,
        })?;
        tx.record("ToolInstalled", json!({ "id": "dev.example" }))
    };
    shop.fixture
        .log()
        .write(&Space::default(), written)
        .unwrap();
    assert_eq!(
        names(&shop.fixture),
        [
            "dev.example.other",
            ECHO,
            "dev.other.echo",
            "dev.other.other"
        ],
        "each name once"
    );
    assert_eq!(
        shop.call(ECHO).as_deref(),
        Ok(SAID),
        "and it is the tool's own"
    );
    engine.kami().enable_tool(&owner, ECHO, false).unwrap();
    assert!(!is_known(&shop.fixture, ECHO), "also while it is disabled");
    engine.kami().uninstall_tool(&owner, ECHO).unwrap();
    assert!(!is_known(&shop.fixture, ECHO), "and when it is gone");
}

#[test]
fn safe_names_are_safe_and_never_those_of_our_own_tools() {
    let shop = Shop::new();
    let echo = probes::echo().unwrap();
    shop.install(&package(&shop, "kg.stats", "1.0.0", &echo));
    let long = format!("dev.example.{}", "x".repeat(70));
    shop.install(&package(&shop, &long, "1.0.0", &echo));
    shop.install(&package(
        &shop,
        "dev.shop",
        "1.0.0",
        &probes::generic().unwrap(),
    ));
    let safe = |exclude: &[&str]| Selection {
        safe_names: true,
        exclude_tools: exclude.iter().map(|&it| it.to_owned()).collect(),
        ..Selection::default()
    };
    let fixture = shop.fixture.again(safe(&[]));
    let listed = names(&fixture);
    assert_eq!(listed.len(), 2 + 5);
    for name in &listed {
        let is_safe = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
        assert!(name.len() <= 64 && name.bytes().all(is_safe), "{name}");
        assert!(is_known(&fixture, name), "{name} can be called");
    }
    let clashing = listed.iter().find(|it| it.starts_with("kg_stats")).unwrap();
    assert_ne!(clashing, "kg_stats");
    assert_eq!(call(&fixture, clashing).as_deref(), Ok(SAID));
    // A tool of ours that is hidden stays hidden, and an installed one does not stand in for it.
    let narrow = shop.fixture.again(safe(&["kg_stats"]));
    assert!(!is_known(&narrow, "kg_stats"));
    let run = json!({
        "item_type": "tool", "action": "run", "item_id": "kg_stats",
        "parameters": { "inputs": { "message": "hi" } },
    });
    assert!(narrow.call("execute", run).is_error());
    assert_eq!(
        call(&narrow, "kg.stats").as_deref(),
        Ok(SAID),
        "its own name is its own"
    );
    // An installed one is hidden by its id and by the name that it is listed under.
    for hidden in ["dev.shop", "dev_shop_half", "dev.shop.half"] {
        let narrow = shop.fixture.again(safe(&[hidden]));
        assert!(!is_known(&narrow, "dev.shop.half"), "{hidden}");
        assert!(!is_known(&narrow, "dev_shop_half"), "{hidden}");
    }
}

#[test]
fn what_is_said_to_be_installable_is() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let plain = InstallOptions::default();
    let check = |package: &Path, how: &InstallOptions| {
        let source = package.display().to_string();
        engine
            .kami()
            .check_tool_package(&owner, &source, how)
            .unwrap()
    };
    let package = shop.package("echo", "1.0.0", &probes::echo().unwrap(), MODEST);
    assert!(check(&package, &plain).refusal.is_none());
    // An archive that nobody vouches for.
    let archive = zip(&package);
    let refusal = check(&archive, &plain).refusal.unwrap();
    let installed = shop.try_install(&archive, &plain).unwrap_err();
    assert_eq!(
        (refusal.code, refusal.message),
        (installed.code, installed.message)
    );
    let unsigned = InstallOptions {
        allow_unsigned: true,
        ..InstallOptions::default()
    };
    assert!(check(&archive, &unsigned).refusal.is_none());
    // A policy that wants signatures.
    engine
        .kami()
        .set_wasm_policy(&owner, "[default]\nallow_unsigned = false\n")
        .unwrap();
    let refusal = check(&package, &plain).refusal.unwrap();
    assert_eq!(refusal.code, Code::Denied, "{refusal}");
    engine.kami().set_wasm_policy(&owner, "").unwrap();
    // A key that nobody trusts.
    engine
        .kami()
        .sign_tool_package(&owner, &package.display().to_string(), &[9; 32])
        .unwrap();
    let refusal = check(&package, &plain).refusal.unwrap();
    assert!(refusal.hint.unwrap().contains("kami trust add"));
    fs::remove_file(package.join("tool.sig")).unwrap();
    // A tool that is there: it is an update, and one that asks for more needs a word.
    shop.install(&package);
    let checked = check(&package, &plain);
    assert_eq!(checked.installed.as_deref(), Some("1.0.0"));
    assert!(checked.refusal.is_none() && checked.needs_allow.is_none());
    let more = shop.package(
        "echo",
        "1.1.0",
        &probes::echo().unwrap(),
        "max_fuel = 200000",
    );
    assert!(check(&more, &plain).needs_allow.is_some());
    assert!(check(&more, &allowing()).needs_allow.is_none());
    // One that is pinned takes nothing, and a name that is taken is refused.
    engine.kami().pin_tool(&owner, ECHO, None, true).unwrap();
    let refusal = check(&more, &allowing()).refusal.unwrap();
    assert!(refusal.message.contains("pinned"), "{refusal}");
    let refusal = check(&taker(&shop), &allowing()).refusal.unwrap();
    assert_eq!(refusal.code, Code::Conflict, "{refusal}");
}

#[test]
fn a_secret_that_a_tool_can_send_away_is_warned_of() {
    let shop = Shop::new();
    let (engine, owner) = (shop.engine(), shop.fixture.owner());
    let security = "net_allow_list = [\"api.github.com\"]\nenv_allow_list = [\"GITHUB_TOKEN\"]";
    let package = shop.package("echo", "1.0.0", &probes::flat_echo().unwrap(), security);
    let source = package.display().to_string();
    let plain = InstallOptions::default();
    let warning =
        "it sees `GITHUB_TOKEN`, which looks like a secret, and can send it to `api.github.com`";
    let checked = engine
        .kami()
        .check_tool_package(&owner, &source, &plain)
        .unwrap();
    assert_eq!(checked.concerns, [warning]);
    let installed = engine.kami().install_tool(&owner, &source, &plain).unwrap();
    assert_eq!(installed.concerns, [warning]);
    assert_eq!(
        engine.kami().installed_tool(&owner, ECHO).unwrap().concerns,
        [warning]
    );
    // What the policy takes away cannot leave.
    engine
        .kami()
        .set_wasm_policy(&owner, "[default]\nenv_allow_list = []\n")
        .unwrap();
    let tool = engine.kami().installed_tool(&owner, ECHO).unwrap();
    assert_eq!(tool.concerns, [""; 0]);
}
