//! `kenning token`

use crate::{Host, Settings, output, owner};
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::{NewToken, Scope};
use serde_json::{Value, json};

pub(crate) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    match matches.subcommand() {
        Some(("create", matches)) => create(host, settings, matches),
        Some(("list", _)) => list(host, settings),
        Some(("show", _)) => show(host, settings),
        Some(("revoke", matches)) => {
            let id: &String = matches
                .get_one("id")
                .ok_or_else(|| Error::invalid("no id"))?;
            host.open(settings)?.revoke_token(&owner(settings), id)?;
            output::say(&format!("revoked `{id}`"));
            Ok(0)
        }
        _ => Ok(2),
    }
}

fn create(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let scopes = matches.get_many::<String>("scopes").into_iter().flatten();
    let scopes = scopes
        .map(|it| it.trim().parse::<Scope>())
        .collect::<Result<Vec<_>, _>>();
    let scopes = scopes.map_err(|it| Error::invalid(format!("`--scopes`: {it}")))?;
    let engine = host.open(settings)?;
    let expires = matches.get_one::<String>("expires");
    let lifetime = expires.map(|text| lifetime_ms(text)).transpose()?;
    let new = NewToken {
        name: matches
            .get_one::<String>("name")
            .cloned()
            .unwrap_or_default(),
        scopes,
        space: settings.space.clone(),
        expires_ms: lifetime.map(|it| engine.now_ms().saturating_add(it)),
    };
    let token = engine.create_token(&owner(settings), new)?;
    if settings.json {
        output::print_json(&json!({ "token": token }));
    } else {
        output::print(&token);
        output::say("keep it: it cannot be shown again");
    }
    Ok(0)
}

/// Prints the token of the operator who serves from this data directory.
fn show(host: &dyn Host, settings: &Settings) -> Result<u8> {
    let token = host.local_token(settings)?;
    if settings.json {
        output::print_json(&json!({ "token": token }));
    } else {
        output::print(&token);
    }
    Ok(0)
}

/// `90s`, `30m`, `12h`, `30d`, `1y` in milliseconds.
fn lifetime_ms(text: &str) -> Result<u64> {
    let bad = || {
        Error::invalid(format!("`--expires`: `{text}` is not a duration"))
            .hint("for example 12h, 30d or 1y")
    };
    let unit = text.chars().last().ok_or_else(bad)?;
    let count: u64 = text[..text.len() - unit.len_utf8()]
        .parse()
        .map_err(|_| bad())?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'y' => 365 * 24 * 60 * 60,
        _ => return Err(bad()),
    };
    count
        .checked_mul(seconds * 1_000)
        .filter(|&it| it > 0)
        .ok_or_else(bad)
}

fn list(host: &dyn Host, settings: &Settings) -> Result<u8> {
    let tokens = host.open(settings)?.tokens(&owner(settings))?;
    let scopes = |scopes: &[Scope]| {
        scopes
            .iter()
            .map(|it| it.as_str())
            .collect::<Vec<_>>()
            .join(",")
    };
    let time = |ms: u64| {
        let time = jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX));
        time.map_or_else(|_| "never".to_owned(), |it| format!("{it:.0}"))
    };
    if settings.json {
        let rows: Vec<Value> = tokens
            .iter()
            .map(|token| {
                json!({
                    "id": token.id, "name": token.name, "scopes": scopes(&token.scopes),
                    "space": token.space.as_str(), "created": time(token.created_ms),
                    "expires": token.expires_ms.map(time),
                })
            })
            .collect();
        output::print_json(&json!(rows));
        return Ok(0);
    }
    for it in tokens {
        let expires = it.expires_ms.map_or_else(|| "never".to_owned(), time);
        output::print(&format!(
            "{:<10} {:<16} {:<24} {:<12} expires {expires}",
            it.id,
            it.name,
            scopes(&it.scopes),
            it.space.as_str()
        ));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_or_refused() {
        assert_eq!(lifetime_ms("2h").unwrap(), 7_200_000);
        assert_eq!(lifetime_ms("1y").unwrap(), 31_536_000_000);
        for bad in [
            "",
            "h",
            "0d",
            "-1d",
            "12",
            "1 d",
            "9999999999999999999y",
            "1é",
        ] {
            assert!(lifetime_ms(bad).is_err(), "{bad}");
        }
    }
}
