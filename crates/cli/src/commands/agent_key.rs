//! `kenning agent-key`

use crate::{Host, Settings, output, owner};
use clap::ArgMatches;
use kenning_core::Result;
use kenning_engine::{AgentView, timestamp};
use serde_json::{Value, json};

pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let name = |matches: &ArgMatches| {
        let name = matches.get_one::<String>("name");
        name.cloned().unwrap_or_default()
    };
    let engine = host.open(settings)?;
    let caller = owner(settings);
    match matches.subcommand() {
        Some(("new", matches)) => {
            let agent = engine.create_agent_key(&caller, &name(matches))?;
            if settings.json {
                output::print_json(&wire(&agent));
            } else {
                output::print(&agent.did);
                let name = &agent.name;
                output::say(&format!(
                    "writes for `{name}` carry this identifier: start its process with \
                     KENNING_AGENT={name}, or give it a token of that name"
                ));
            }
        }
        Some(("list", _)) => {
            for agent in engine.agents(&caller)? {
                if settings.json {
                    output::print_json(&wire(&agent));
                    continue;
                }
                let how = match agent.revoked_ms {
                    Some(at) => format!("revoked {}", timestamp(at)),
                    None => "valid".to_owned(),
                };
                output::print(&format!("{}\t{}\t{how}", agent.name, agent.did));
            }
        }
        Some(("revoke", matches)) => {
            let agent = engine.revoke_agent_key(&caller, &name(matches))?;
            output::say(&format!("revoked the key of `{}`", agent.name));
        }
        _ => return Ok(2),
    }
    Ok(0)
}

fn wire(agent: &AgentView) -> Value {
    json!({
        "name": agent.name, "did": agent.did, "created": timestamp(agent.created_ms),
        "revoked": agent.revoked_ms.map(timestamp),
    })
}
