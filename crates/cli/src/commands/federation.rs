//! `kenning federation`

use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_core::{Error, Result};
use kenning_engine::koi::{
    Connect, FederationHttp, FederationIdentity, FederationPeer, FederationSetup, Koi,
    PeerPolicyChange,
};
use kenning_engine::{Caller, Engine};
use kenning_tools::koi::federation_status::peer_json;
use serde_json::{Value, json};
use std::path::Path;

/// A longer key file is not one.
const KEY_BYTES_MAX: u64 = 16 * 1024;

pub(crate) fn command() -> Command {
    let node = || {
        Arg::new("node")
            .value_name("NODE")
            .help("Its RID, its name or its address")
    };
    let types = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("TYPES")
            .value_delimiter(',')
            .help(help)
    };
    let shares = || {
        types(
            "provides",
            "Types that it may get, if not those of this node; `none` for none",
        )
    };
    let accepts = || {
        types(
            "accepts",
            "Types that are taken from it, if not all that it provides; `none` for none",
        )
    };
    Command::new("federation")
        .about("Exchange entities and notes with other nodes of KOI-net")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("init")
                .about("Turn the federation on, or change how this node takes part; prints what will be shared")
                .arg(
                    Arg::new("name")
                        .long("name")
                        .help("What people call this node; part of its RID, and stays. Default: kenning"),
                )
                .arg(
                    Arg::new("base-url")
                        .long("base-url")
                        .value_name("URL")
                        .help("Where others call it, for example https://node.example.org/koi-net; without it this node only calls others"),
                )
                .arg(types("provides", "Types that peers may get: entity types, or Document for notes; default: none"))
                .arg(
                    Arg::new("strict")
                        .long("strict")
                        .value_parser(["true", "false"])
                        .help("Whether unsigned questions are refused wherever they come from (default), or answered as a stranger's"),
                )
                .arg(
                    Arg::new("key")
                        .long("key")
                        .value_name("FILE")
                        .help("Go on as the node with this key (PKCS#8 PEM, not encrypted)"),
                ),
        )
        .subcommand(Command::new("peers").about("List the nodes that are known, and how it stands with each"))
        .subcommand(
            Command::new("connect")
                .about("Exchange with a node from now on")
                .arg(Arg::new("url").value_name("URL").required(true).help("Its base URL"))
                .arg(
                    Arg::new("rid")
                        .long("rid")
                        .help("Its RID; koi-net nodes do not tell theirs, Octo and Kenning nodes do"),
                )
                .arg(shares())
                .arg(accepts()),
        )
        .subcommand(
            Command::new("approve")
                .about("Approve a node that introduced itself, and what it subscribes to")
                .arg(node().required(true))
                .arg(
                    Arg::new("grant-address")
                        .long("grant-address")
                        .action(ArgAction::SetTrue)
                        .help("The address that it names may be in a private network; `federation peers` shows it"),
                )
                .arg(shares())
                .arg(accepts()),
        )
        .subcommand(
            Command::new("disconnect")
                .about("End the exchange with a node; what it stated stays until it is retracted")
                .arg(node().required(true)),
        )
        .subcommand(
            Command::new("policy")
                .about("Show what leaves this machine and what comes in, or change it for one node")
                .arg(node())
                .arg(shares())
                .arg(accepts()),
        )
        .subcommand(
            Command::new("queue")
                .about("Show what waits to be delivered")
                .arg(node())
                .arg(
                    Arg::new("dead")
                        .long("dead")
                        .action(ArgAction::SetTrue)
                        .help("Show what could not be delivered"),
                )
                .arg(
                    Arg::new("retry")
                        .long("retry")
                        .action(ArgAction::SetTrue)
                        .help("Deliver that again"),
                ),
        )
        .subcommand(
            Command::new("retract")
                .about("Remove everything that a node stated, and take nothing more from it")
                .arg(node().required(true)),
        )
        .subcommand(Command::new("sync").about("Poll, compare and deliver now, as a server does by itself"))
        .subcommand(
            Command::new("rotate")
                .about("Replace this node's key; the old one signs the new one, and the RID changes with it"),
        )
}

pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let caller = owner(settings);
    let koi = engine.koi();
    let text = |matches: &ArgMatches, name: &str| matches.get_one::<String>(name).cloned();
    let named = |matches: &ArgMatches| text(matches, "node").unwrap_or_default();
    match matches.subcommand() {
        Some(("init", matches)) => init(&engine, settings, &caller, matches),
        Some(("peers", _)) => {
            let status = koi.federation_status(&caller)?;
            show(&status.peers, settings);
            Ok(0)
        }
        Some(("connect", matches)) => {
            let connect = Connect {
                url: text(matches, "url").unwrap_or_default(),
                rid: text(matches, "rid"),
                shares: list(matches, "provides"),
                accepts: list(matches, "accepts"),
            };
            let (rid, error) = koi.connect_node(&caller, &FederationHttp, connect)?;
            if settings.json {
                let reached = error.is_none();
                let error = error.map(|it| it.message);
                output::print_json(&json!({ "node": rid, "reached": reached, "error": error }));
                return Ok(0);
            }
            output::print(&rid);
            match error {
                None => output::say("reached; a running server exchanges with it by itself"),
                Some(error) => output::say(&format!(
                    "not reached yet: {error}; a running server tries again"
                )),
            }
            Ok(0)
        }
        Some(("approve", matches)) => {
            let change = PeerPolicyChange {
                grants_address: matches.get_flag("grant-address"),
                ..change(matches)
            };
            let rid = koi.approve_node(&caller, &named(matches), change)?;
            output::say(&format!("approved {rid}"));
            Ok(0)
        }
        Some(("disconnect", matches)) => {
            let rid = koi.disconnect_node(&caller, &FederationHttp, &named(matches))?;
            output::say(&format!(
                "disconnected {rid}; what it stated stays: `kenning federation retract` removes it"
            ));
            Ok(0)
        }
        Some(("policy", matches)) => policy(koi, settings, &caller, matches),
        Some(("queue", matches)) => queue(koi, settings, &caller, matches),
        Some(("retract", matches)) => {
            let n_retracted = koi.retract_node(&caller, &named(matches))?;
            output::say(&format!(
                "removed {n_retracted} statements; nothing more is taken from it"
            ));
            Ok(0)
        }
        Some(("sync", _)) => {
            let faults = koi.federate_now(&caller, &FederationHttp)?;
            for (who, error) in &faults {
                output::say(&format!("{who}: {error}"));
            }
            match faults.into_iter().next() {
                None => Ok(0),
                Some((_, error)) => Err(error),
            }
        }
        Some(("rotate", _)) => {
            let identity = koi.rotate_federation_key(&caller)?;
            output::print(&identity.rid);
            output::say(
                "nodes of Kenning follow by themselves; connect again from others with the new RID",
            );
            Ok(0)
        }
        _ => Ok(2),
    }
}

/// A list of types; `none` is the empty one.
fn list(matches: &ArgMatches, name: &str) -> Option<Vec<String>> {
    let given = matches.get_many::<String>(name)?;
    Some(given.filter(|it| *it != "none").cloned().collect())
}

fn change(matches: &ArgMatches) -> PeerPolicyChange {
    PeerPolicyChange {
        shares: list(matches, "provides"),
        accepts: list(matches, "accepts"),
        grants_address: false,
    }
}

fn init(engine: &Engine, settings: &Settings, caller: &Caller, matches: &ArgMatches) -> Result<u8> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let key_pem = match text("key") {
        None => None,
        Some(path) => {
            let (dir, name) = kenning_vault::split(Path::new(&path))?;
            let bytes = dir.read(&name, KEY_BYTES_MAX)?;
            let pem = String::from_utf8(bytes);
            Some(pem.map_err(|_| Error::invalid(format!("`{path}` is not a PEM file")))?)
        }
    };
    let setup = FederationSetup {
        name: text("name"),
        base_url: text("base-url"),
        provides: list(matches, "provides"),
        strict: text("strict").map(|it| it == "true"),
        key_pem,
    };
    let identity = engine.koi().set_up_federation(caller, setup)?;
    if settings.json {
        output::print_json(&identity_json(&identity));
        return Ok(0);
    }
    output::print(&identity.rid);
    match &identity.base_url {
        Some(url) => output::say(&format!(
            "others call this node at {url}; `kenning serve` must run there"
        )),
        None => output::say("without `--base-url` this node only calls others"),
    }
    match identity.provides.is_empty() {
        true => output::say(
            "nothing is shared: name types with `--provides`, for example Practice,Pattern",
        ),
        false => output::say(&format!(
            "shared with approved nodes: {}, with their names, descriptions and relations among these types",
            identity.provides.join(", ")
        )),
    }
    output::say("nodes that introduce themselves get nothing until `kenning federation approve`");
    Ok(0)
}

fn identity_json(it: &FederationIdentity) -> Value {
    json!({
        "node_rid": it.rid, "name": it.name, "base_url": it.base_url, "public_key": it.public_key,
        "provides": it.provides, "rid_types": it.rid_types, "strict": it.is_strict,
    })
}

fn policy(koi: &Koi, settings: &Settings, caller: &Caller, matches: &ArgMatches) -> Result<u8> {
    let change = change(matches);
    let is_change = change.shares.is_some() || change.accepts.is_some();
    match matches.get_one::<String>("node") {
        Some(node) if is_change => {
            let rid = koi.change_peer_policy(caller, node, change)?;
            output::say(&format!("changed for {rid}"));
        }
        None if is_change => {
            return Err(Error::invalid("`policy` needs a NODE to change something")
                .hint("`kenning federation init --provides` changes it for all"));
        }
        _ => {}
    }
    let identity = koi.federation_identity(caller)?;
    let mut status = koi.federation_status(caller)?;
    if let Some(node) = matches.get_one::<String>("node") {
        let rid = koi.find_federated_rid(caller, node)?;
        status.peers.retain(|it| it.rid == rid);
    }
    if settings.json {
        let peers: Vec<Value> = status.peers.iter().map(|it| {
            json!({ "node": it.rid, "gets": it.shares, "accepts": it.accepts, "state": it.state })
        }).collect();
        output::print_json(&json!({ "provides": identity.provides, "nodes": peers }));
        return Ok(0);
    }
    let shown = |types: &[String]| match types.is_empty() {
        true => "nothing".to_owned(),
        false => types.join(","),
    };
    output::print(&format!(
        "all approved nodes get {}",
        shown(&identity.provides)
    ));
    for it in &status.peers {
        let accepts = it
            .accepts
            .as_deref()
            .map_or_else(|| "everything".to_owned(), shown);
        output::print(&format!(
            "{:<24} gets {}, {accepts} is taken from it ({})",
            it.name,
            shown(&it.shares),
            it.state
        ));
    }
    Ok(0)
}

fn queue(koi: &Koi, settings: &Settings, caller: &Caller, matches: &ArgMatches) -> Result<u8> {
    let node = matches.get_one::<String>("node").map(String::as_str);
    if matches.get_flag("retry") {
        let n_messages = koi.resend_dead_letters(caller, node)?;
        output::say(&format!("{n_messages} messages are delivered again"));
        return Ok(0);
    }
    let rows: Vec<Value> = if matches.get_flag("dead") {
        let letters = koi.dead_letters(caller, node)?;
        let each = letters.iter().map(|it| {
            json!({ "node": it.peer, "rid": it.rid, "event": it.event_type, "since": it.at, "why": it.why })
        });
        each.collect()
    } else {
        let waiting = koi.federation_queue(caller, node)?;
        let each = waiting.iter().map(|it| {
            json!({ "node": it.peer, "rid": it.rid, "event": it.event_type, "since": it.since })
        });
        each.collect()
    };
    if settings.json {
        output::print_json(&json!(rows));
        return Ok(0);
    }
    for it in &rows {
        let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
        output::print(&format!(
            "{} {:<7} {} {} {}",
            text("since"),
            text("event"),
            text("rid"),
            text("node"),
            text("why")
        ));
    }
    if rows.is_empty() {
        output::say("nothing");
    }
    Ok(0)
}

fn show(peers: &[FederationPeer], settings: &Settings) {
    if settings.json {
        let rows: Vec<Value> = peers.iter().map(peer_json).collect();
        output::print_json(&json!(rows));
        return;
    }
    for it in peers {
        let seen = it.last_seen.as_deref().unwrap_or("never");
        let url = it.base_url.as_deref().unwrap_or("-");
        output::print(&format!(
            "{:<20} {:<12} {url:<36} last seen {seen}, {} known, {} sent, {} queued, {} undelivered",
            it.name, it.state, it.n_known, it.n_sent, it.n_queued, it.n_dead
        ));
        output::print(&format!("  {}", it.rid));
        for fault in [&it.cut_off, &it.last_error].into_iter().flatten() {
            output::print(&format!("  {fault}"));
        }
        if let Some(did) = &it.kenning_did {
            output::print(&format!(
                "  also a node of Kenning: `kenning peer add --did {did}` shares whole spaces"
            ));
        }
    }
    if peers.is_empty() {
        output::say("no nodes: `kenning federation connect URL` connects to one");
    }
}
