//! `kenning peer`

use crate::{Host, Settings, output, owner};
use clap::{Arg, ArgAction, ArgMatches, Command};
use kenning_core::{Error, Kind, Result, Space};
use kenning_engine::{
    Caller, Choice, Done, Engine, NewPeer, OpenConflict, Peer, PeerPolicy, PeerView,
};
use serde_json::{Value, json};

pub(crate) fn command() -> Command {
    let peer = || {
        Arg::new("peer")
            .value_name("PEER")
            .help("Its id, its key or its address")
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .action(ArgAction::SetTrue)
            .help(help)
    };
    Command::new("peer")
        .about("Share spaces with other nodes")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("add")
                .about("Add a node, or change what a known one may do; the other node must add this one too")
                .arg(
                    Arg::new("endpoint")
                        .value_name("URL")
                        .help("Where it serves; leave it out for a node that only calls this one"),
                )
                .arg(
                    Arg::new("did")
                        .long("did")
                        .value_name("DID")
                        .help("Its key, as `kenning peer id` prints it there; without it the address is asked"),
                )
                .arg(
                    Arg::new("spaces")
                        .long("spaces")
                        .value_delimiter(',')
                        .help("The spaces that are shared; default: the one of this command"),
                )
                .arg(
                    Arg::new("kinds")
                        .long("kinds")
                        .value_delimiter(',')
                        .help("The kinds of nodes that it gets, such as memory,document; default: all"),
                )
                .arg(
                    Arg::new("may")
                        .long("may")
                        .value_delimiter(',')
                        .default_value("read,write")
                        .value_parser(["read", "write"])
                        .help("read: it gets what is written here; write: what it writes is applied here"),
                )
                .arg(switch("relay", "Also take what it passes on from authors that are not known here")),
        )
        .subcommand(Command::new("id").about("Print the key of this node, by which others add it"))
        .subcommand(Command::new("list").about("List the nodes that are known"))
        .subcommand(
            Command::new("remove")
                .about("Forget a node; what it wrote stays")
                .arg(peer().required(true)),
        )
        .subcommand(
            Command::new("sync")
                .about("Exchange everything that is new now, with one node or with all that have an address")
                .arg(peer()),
        )
        .subcommand(
            Command::new("conflicts")
                .about("List writes of other nodes that contradict writes of this one, until somebody settles them"),
        )
        .subcommand(
            Command::new("settle")
                .about("Settle a conflict; writing the note or the memory again settles it too")
                .arg(
                    Arg::new("conflict")
                        .value_name("CONFLICT")
                        .required(true)
                        .help("Its id, or the key of what it is about, as `peer conflicts` prints them"),
                )
                .arg(
                    Arg::new("take")
                        .long("take")
                        .default_value("winner")
                        .value_parser(["winner", "loser"])
                        .help("Which version it is to be: the one that holds, or the one that lost"),
                ),
        )
        .subcommand(
            Command::new("status")
                .about("Show how it stands with one node or with all")
                .arg(peer()),
        )
}

pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let engine = host.open(settings)?;
    let caller = owner(settings);
    let named = |matches: &ArgMatches| matches.get_one::<String>("peer").cloned();
    match matches.subcommand() {
        Some(("add", matches)) => add(&engine, settings, &caller, matches),
        Some(("id", _)) => {
            output::print(engine.show_did(engine.did())?.as_str());
            Ok(0)
        }
        Some(("list", _)) => {
            list(&engine, &engine.peers(&caller)?, settings)?;
            Ok(0)
        }
        Some(("remove", matches)) => {
            let removed = engine.remove_peer(&caller, &named(matches).unwrap_or_default())?;
            output::say(&format!("removed `{}`; what it wrote stays", removed.id));
            Ok(0)
        }
        Some(("sync", matches)) => sync(&engine, settings, &caller, named(matches)),
        Some(("conflicts", _)) => {
            conflicts(&engine.conflicts(&caller)?, settings);
            Ok(0)
        }
        Some(("settle", matches)) => {
            let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
            let choice = match text("take").as_str() {
                "loser" => Choice::Loser,
                _ => Choice::Winner,
            };
            let settled = engine.settle_conflict(&caller, &text("conflict"), choice)?;
            output::say(&format!("settled `{}`", settled.key));
            Ok(0)
        }
        Some(("status", matches)) => {
            let status = engine.sync_status(&caller, named(matches).as_deref())?;
            show(&status.peers, settings);
            Ok(0)
        }
        _ => Ok(2),
    }
}

fn list_of<T: std::str::FromStr<Err = String>>(matches: &ArgMatches, name: &str) -> Result<Vec<T>> {
    let values = matches.get_many::<String>(name).into_iter().flatten();
    values
        .map(|it| it.trim().parse())
        .collect::<Result<_, String>>()
        .map_err(|it| Error::invalid(format!("`--{name}`: {it}")))
}

fn add(engine: &Engine, settings: &Settings, caller: &Caller, matches: &ArgMatches) -> Result<u8> {
    let mut spaces: Vec<Space> = list_of(matches, "spaces")?;
    if spaces.is_empty() {
        spaces.push(settings.space.clone());
    }
    let kinds: Vec<Kind> = list_of(matches, "kinds")?;
    let may = |what: &str| {
        let mut given = matches.get_many::<String>("may").into_iter().flatten();
        given.any(|it| it == what)
    };
    let did = matches.get_one::<String>("did");
    let did = did.map(|it| it.parse()).transpose();
    let new = NewPeer {
        endpoint: matches
            .get_one::<String>("endpoint")
            .cloned()
            .unwrap_or_default(),
        did: did.map_err(|it: String| Error::invalid(format!("`--did`: {it}")))?,
        policy: PeerPolicy {
            spaces,
            kinds,
            may_read: may("read"),
            may_write: may("write"),
            relays: matches.get_flag("relay"),
        },
    };
    let was_asked = new.did.is_none();
    let peer = engine.add_peer(caller, new)?;
    if settings.json {
        output::print_json(&engine.peer_json(&peer)?);
        return Ok(0);
    }
    output::print(&peer.id);
    if was_asked {
        output::say(&format!(
            "its key is {}: compare it with `kenning peer id` there",
            engine.show_did(&peer.did)?
        ));
    }
    output::say(&format!(
        "on the other node: `kenning peer add --did {}`",
        engine.show_did(engine.did())?
    ));
    Ok(0)
}

fn list(engine: &Engine, peers: &[Peer], settings: &Settings) -> Result<()> {
    if settings.json {
        let rows = peers.iter().map(|it| engine.peer_json(it));
        let rows: Vec<Value> = rows.collect::<Result<_>>()?;
        output::print_json(&json!(rows));
        return Ok(());
    }
    for it in peers {
        let policy = &it.policy;
        let spaces: Vec<&str> = policy.spaces.iter().map(Space::as_str).collect();
        let may = match (policy.may_read, policy.may_write) {
            (true, true) => "read,write",
            (true, false) => "read",
            (false, true) => "write",
            (false, false) => "nothing",
        };
        let endpoint = if it.endpoint.is_empty() {
            "-"
        } else {
            &it.endpoint
        };
        let cut_off = if it.cut_off.is_some() {
            "  cut off"
        } else {
            ""
        };
        let (spaces, did) = (spaces.join(","), engine.show_did(&it.did)?);
        output::print(&format!(
            "{:<20} {endpoint:<32} {spaces:<12} {may:<10} {did}{cut_off}",
            it.id
        ));
    }
    if peers.is_empty() {
        output::say("no peers: `kenning peer add URL` adds one");
    }
    Ok(())
}

fn sync(engine: &Engine, settings: &Settings, caller: &Caller, name: Option<String>) -> Result<u8> {
    let mut n_cut_off = 0;
    let names = match name {
        Some(name) => vec![name],
        None => {
            let peers = engine.peers(caller)?.into_iter();
            let with_address = peers.filter(|it| !it.endpoint.is_empty());
            let (cut_off, callable): (Vec<Peer>, Vec<Peer>) =
                with_address.partition(|it| it.cut_off.is_some());
            for it in &cut_off {
                output::say(&format!(
                    "`{}` is cut off: `kenning peer list --json` shows why",
                    it.id
                ));
            }
            n_cut_off = cut_off.len();
            callable.into_iter().map(|it| it.id).collect()
        }
    };
    if names.is_empty() && n_cut_off == 0 {
        output::say("no peer has an address: `kenning peer add URL` adds one");
    }
    let (n_names, mut n_failed) = (names.len(), 0);
    let mut first_error = None;
    let mut rows = Vec::new();
    for name in names {
        match engine.sync_peer(caller, &name) {
            Ok(done) if settings.json => rows.push(done_json(&name, &done)),
            Ok(done) => {
                output::print(&format!(
                    "{name}: {} received, {} sent",
                    done.n_received, done.n_sent
                ));
                if let Some((author, why)) = done.refused.first() {
                    output::say(&format!(
                        "{} events were refused; the first is by {author}: {why}",
                        done.refused.len()
                    ));
                }
                // Some settle themselves.
                let n_open = match done.conflicts.is_empty() {
                    true => 0,
                    false => engine.conflicts(caller)?.len(),
                };
                if n_open > 0 {
                    output::say(&format!(
                        "{n_open} conflicts are open: both versions are kept; `kenning peer conflicts` shows them"
                    ));
                }
                if let Some(first) = done.too_large.first() {
                    output::say(&format!(
                        "{} events were not sent, because they are larger than a message may be; the first is {first}",
                        done.too_large.len()
                    ));
                }
            }
            Err(error) if settings.json => {
                rows.push(json!({ "peer": name, "error": error.message }));
                first_error.get_or_insert(error);
            }
            // The only one is told by whoever ends the command.
            Err(error) if n_names == 1 => return Err(error),
            Err(error) => {
                output::say(&format!("{name}: {error}"));
                n_failed += 1;
                first_error.get_or_insert(error);
            }
        }
    }
    if settings.json {
        output::print_json(&json!(rows));
    }
    match first_error {
        None => Ok(0),
        Some(error) if settings.json => Err(error),
        Some(error) => Err(Error::new(
            error.code,
            format!("{n_failed} of {n_names} nodes could not be exchanged with"),
        )),
    }
}

fn conflicts(open: &[OpenConflict], settings: &Settings) {
    if settings.json {
        let rows: Vec<Value> = open.iter().map(OpenConflict::to_json).collect();
        output::print_json(&json!(rows));
        return;
    }
    for it in open {
        output::print(&format!("{} {} {}", it.id, it.kind, it.key));
        for (what, author, text) in [
            ("holds", it.winner_author(), &it.current),
            ("lost ", it.loser_author(), &it.lost),
        ] {
            let text = text.as_deref().unwrap_or_default();
            let line: String = text.chars().take(60).collect();
            output::print(&format!("  {what}  {author}  {line:?}"));
        }
    }
    if open.is_empty() {
        output::say("no open conflicts");
    }
}

fn done_json(name: &str, done: &Done) -> Value {
    let conflicts: Vec<Value> = done.conflicts.iter().map(|it| it.to_json()).collect();
    json!({
        "peer": name, "received": done.n_received, "sent": done.n_sent,
        "tooLarge": done.too_large.len(), "refused": done.refused.len(), "refusedThere": done.n_refused_there, "conflicts": conflicts,
    })
}

fn show(peers: &[PeerView], settings: &Settings) {
    if settings.json {
        let rows: Vec<Value> = peers.iter().map(PeerView::to_json).collect();
        output::print_json(&json!(rows));
        return;
    }
    for it in peers {
        let last = it.last_sync.as_deref().unwrap_or("never");
        output::print(&format!(
            "{:<20} {:<12} last exchange {last}, {} received, {} sent, {} conflicts, {} errors",
            it.peer.id, it.status, it.n_received, it.n_sent, it.n_conflicts, it.n_errors
        ));
        if let Some(error) = &it.last_error {
            output::print(&format!("  {error}"));
        }
    }
    if peers.is_empty() {
        output::say("no peers: `kenning peer add URL` adds one");
    }
}
