//! Installing, inspecting and changing tools.

use super::{Kami, done, must, path, word};
use crate::commands::table;
use crate::output;
use clap::ArgMatches;
use kenning_core::{Error, Result};
use kenning_engine::kami::{Granted, InstallOptions, Installation, InstalledTool};
use kenning_engine::timestamp;
use serde_json::{Value, json};

fn options(matches: &ArgMatches) -> InstallOptions {
    InstallOptions {
        sha256: word(matches, "sha256"),
        allow_more: matches.get_flag("allow"),
        allow_unsigned: matches.get_flag("allow-unsigned"),
        replace: false,
        // Only `update` replaces anything.
        allow_downgrade: matches
            .try_get_one::<bool>("downgrade")
            .is_ok_and(|it| it == Some(&true)),
    }
}

pub(super) fn install(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let installed = kami.engine.kami().install_tool(
        &kami.caller,
        &must(matches, "source")?,
        &options(matches),
    )?;
    told(kami, &installed);
    Ok(0)
}

/// Shows what was installed and what it may do.
pub(super) fn told(kami: &Kami<'_>, installed: &Installation) {
    let tool = &installed.tool;
    if kami.settings.json {
        let mut shown = shown(tool);
        shown["before"] = installed.before.clone().into();
        shown["concerns"] = installed.concerns.clone().into();
        output::print_json(&shown);
        return;
    }
    let what = match &installed.before {
        Some(before) if *before != tool.version => {
            format!("updated {} from {before} to {}", tool.id, tool.version)
        }
        Some(_) => format!("installed {} {} again", tool.id, tool.version),
        None => format!("installed {} {}", tool.id, tool.version),
    };
    done(&what);
    for line in permissions(&tool.granted) {
        output::say(&format!("  {line}"));
    }
    for concern in &installed.concerns {
        output::say(&format!("  ! {concern}"));
    }
}

/// What a tool may access and use, a line each.
fn permissions(granted: &Granted) -> Vec<String> {
    let list = |all: &[String]| {
        if all.is_empty() {
            "none".to_owned()
        } else {
            all.join(", ")
        }
    };
    vec![
        format!("network:     {}", list(&granted.net)),
        format!("files:       {}", granted.fs),
        format!("environment: {}", list(&granted.env)),
        format!(
            "limits:      {} MB, {} ms, {} fuel",
            granted.max_memory_mb, granted.max_execution_ms, granted.max_fuel
        ),
    ]
}

fn granted(it: &Granted) -> Value {
    json!({
        "net_allow_list": it.net, "fs_access": it.fs, "env_allow_list": it.env,
        "max_memory_mb": it.max_memory_mb, "max_execution_ms": it.max_execution_ms, "max_fuel": it.max_fuel,
    })
}

fn shown(tool: &InstalledTool) -> Value {
    let arguments: Vec<Value> = tool
        .arguments
        .iter()
        .map(|argument| json!({ "name": argument.name, "type": argument.kind, "description": argument.description, "required": argument.is_required }))
        .collect();
    json!({
        "id": tool.id, "name": tool.name, "version": tool.version, "versions": tool.versions,
        "description": tool.description, "enabled": tool.is_enabled, "pinned": tool.is_pinned,
        "source": tool.source, "sha256": tool.sha256, "size_bytes": tool.size_bytes, "abi": tool.abi,
        "signed_by": tool.signed_by, "arguments": arguments, "functions": tool.functions, "asked": granted(&tool.asked),
        "granted": granted(&tool.granted), "cut": tool.cut, "concerns": tool.concerns, "installed_at": timestamp(tool.installed_ms),
        "updated_at": timestamp(tool.updated_ms),
    })
}

pub(super) fn list(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let words = word(matches, "filter").unwrap_or_default().to_lowercase();
    let has = |tool: &InstalledTool| {
        let text = format!("{} {} {}", tool.id, tool.name, tool.description).to_lowercase();
        words.split_whitespace().all(|word| text.contains(word))
    };
    let all = kami.engine.kami().installed_tools(&kami.caller)?;
    let n_all = all.len();
    let tools: Vec<InstalledTool> = all.into_iter().filter(has).collect();
    if kami.settings.json {
        output::print_json(&tools.iter().map(shown).collect());
        return Ok(0);
    }
    if tools.is_empty() {
        output::say(&match n_all {
            0 => "no tools installed; `kami install DIR` installs one".to_owned(),
            _ => format!("no tool has `{words}` in its id, name or description; {n_all} installed"),
        });
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = tools
        .into_iter()
        .map(|tool| {
            let state = match (tool.is_enabled, tool.is_pinned) {
                (false, _) => "disabled",
                (true, true) => "pinned",
                (true, false) => "enabled",
            };
            vec![tool.id, tool.version, state.to_owned(), tool.description]
        })
        .collect();
    output::print(&table::rows(
        &["ID", "VERSION", "STATE", "DESCRIPTION"],
        &rows,
    ));
    Ok(0)
}

pub(super) fn search(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let words: Vec<&String> = matches.get_many("words").into_iter().flatten().collect();
    let words = words.into_iter().cloned().collect::<Vec<_>>().join(" ");
    let index = word(matches, "registry").filter(|it| !it.trim().is_empty());
    let found = kami
        .engine
        .kami()
        .search_tools(&kami.caller, &words, index.as_deref())?;
    if kami.settings.json {
        let found = found.iter().map(|it| {
            json!({
                "id": it.id, "name": it.name, "version": it.version, "description": it.description,
                "source": it.source, "installed": it.installed,
            })
        });
        output::print_json(&found.collect());
        return Ok(0);
    }
    if found.is_empty() {
        let place = match index {
            Some(index) => format!("installed or in `{index}`"),
            None => "installed; `--registry INDEX` searches an index of others too".to_owned(),
        };
        output::say(&format!("no tool with `{words}` is {place}"));
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = found
        .into_iter()
        .map(|it| {
            let state = match (it.installed, it.source) {
                (Some(installed), _) if installed == it.version => "installed".to_owned(),
                (Some(installed), _) => format!("installed {installed}"),
                (None, Some(source)) => format!("kami install {source}"),
                (None, None) => "no source".to_owned(),
            };
            vec![it.id, it.version, state, it.description]
        })
        .collect();
    let header = ["ID", "VERSION", "STATE", "DESCRIPTION"];
    output::print(&table::rows(&header, &rows));
    Ok(0)
}

/// `kami publish`: prints what is needed to publish a package, because there is no registry of
/// packages.
pub(super) fn publish(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let source = word(matches, "from").ok_or_else(|| {
        Error::invalid("`--source` is missing").hint(
            "nothing is uploaded: put tool.toml, the component and tool.sig into plugin.zip, attach it to a \
             release, and name that as `--source owner/repo@tag`, or give the https address of the archive",
        )
    })?;
    let entry =
        kami.engine
            .kami()
            .tool_index_entry(&kami.caller, &must(matches, "source")?, &source)?;
    output::print_json(&entry);
    output::say(&format!(
        "add this to the index; then `kami search --registry INDEX` finds it and `kami install {source}` installs it"
    ));
    Ok(0)
}

pub(super) fn inspect(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let tool = kami
        .engine
        .kami()
        .installed_tool(&kami.caller, &must(matches, "id")?)?;
    if kami.settings.json {
        output::print_json(&shown(&tool));
        return Ok(0);
    }
    let mut lines = vec![
        format!("{} {}  {}", tool.id, tool.version, tool.description),
        format!("name:        {}", tool.name),
        format!(
            "state:       {}{}",
            if tool.is_enabled {
                "enabled"
            } else {
                "disabled"
            },
            if tool.is_pinned { ", pinned" } else { "" }
        ),
        format!("versions:    {}", tool.versions.join(", ")),
        format!("source:      {}", tool.source),
        format!(
            "sha256:      {} ({} bytes, {})",
            tool.sha256, tool.size_bytes, tool.abi
        ),
        format!(
            "signed by:   {}",
            tool.signed_by.as_deref().unwrap_or("nobody")
        ),
    ];
    lines.extend(permissions(&tool.granted));
    lines.extend(tool.cut.iter().map(|it| format!("policy:      {it}")));
    lines.extend(tool.concerns.iter().map(|it| format!("!            {it}")));
    for it in &tool.arguments {
        let must = if it.is_required { ", required" } else { "" };
        lines.push(format!(
            "argument:    {} ({}{must}) {}",
            it.name, it.kind, it.description
        ));
    }
    if tool.functions.len() > 1 {
        let functions = tool.functions.iter();
        lines.extend(functions.map(|it| format!("function:    {it}")));
    }
    lines.push(format!("installed:   {}", timestamp(tool.installed_ms)));
    output::print(&lines.join("\n"));
    Ok(0)
}

pub(super) fn uninstall(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let tool = kami
        .engine
        .kami()
        .uninstall_tool(&kami.caller, &must(matches, "id")?)?;
    done(&format!("removed {} {}", tool.id, tool.version));
    Ok(0)
}

pub(super) fn update(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let options = options(matches);
    if !matches.get_flag("all") {
        let id = must(matches, "id")?;
        let source = word(matches, "source");
        let updated =
            kami.engine
                .kami()
                .update_tool(&kami.caller, &id, source.as_deref(), &options)?;
        told(kami, &updated);
        return Ok(0);
    }
    let mut code = 0;
    for tool in kami
        .engine
        .kami()
        .installed_tools(&kami.caller)?
        .iter()
        .filter(|it| !it.is_pinned)
    {
        match kami
            .engine
            .kami()
            .update_tool(&kami.caller, &tool.id, None, &options)
        {
            Ok(updated) => told(kami, &updated),
            // A tool that cannot be updated does not prevent the others.
            Err(error) => code = output::print_error(&error, kami.settings.json),
        }
    }
    Ok(code)
}

pub(super) fn enable(kami: &Kami<'_>, matches: &ArgMatches, enabled: bool) -> Result<u8> {
    let tool = kami
        .engine
        .kami()
        .enable_tool(&kami.caller, &must(matches, "id")?, enabled)?;
    done(&format!(
        "{} is {}",
        tool.id,
        if tool.is_enabled {
            "enabled"
        } else {
            "disabled"
        }
    ));
    Ok(0)
}

pub(super) fn pin(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let version = word(matches, "to").or_else(|| word(matches, "version"));
    let pinned = !matches.get_flag("unpin");
    let tool = kami.engine.kami().pin_tool(
        &kami.caller,
        &must(matches, "id")?,
        version.as_deref(),
        pinned,
    )?;
    let what = if tool.is_pinned {
        "pinned to"
    } else {
        "no longer pinned, at"
    };
    done(&format!("{} is {what} {}", tool.id, tool.version));
    Ok(0)
}

pub(super) fn validate(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let source = must(matches, "source")?;
    let checked =
        kami.engine
            .kami()
            .check_tool_package(&kami.caller, &source, &options(matches))?;
    let refusal = checked.refusal;
    if kami.settings.json {
        output::print_json(&json!({
            "id": checked.id, "name": checked.name, "version": checked.version, "sha256": checked.sha256,
            "size_bytes": checked.size_bytes, "abi": checked.abi, "signed_by": checked.signed_by,
            "asked": granted(&checked.asked), "concerns": checked.concerns,
            "installed": checked.installed, "can_be_installed": refusal.is_none(),
            "needs_allow": checked.needs_allow.as_ref().map(|it| it.message.as_str()),
        }));
        return match refusal {
            None => Ok(0),
            Some(error) => Err(error),
        };
    }
    let (id, version) = (&checked.id, &checked.version);
    let how = match &checked.installed {
        Some(_) => format!("kami update {id} {source}"),
        None => format!("kami install {source}"),
    };
    let before = checked.installed.as_ref();
    let before = before.map(|it| format!(", in place of {it}"));
    let before = before.unwrap_or_default();
    output::print(&match (&refusal, &checked.needs_allow) {
        (Some(_), _) => format!("{id} {version} cannot be installed"),
        (None, Some(why)) => {
            format!(
                "{id} {version} can be installed with `{how} --allow`{before}: {}",
                why.message
            )
        }
        (None, None) if before.is_empty() => format!("{id} {version} can be installed"),
        (None, None) => format!("{id} {version} can be installed with `{how}`{before}"),
    });
    for line in permissions(&checked.asked) {
        output::print(&format!("  {line}"));
    }
    for concern in &checked.concerns {
        output::print(&format!("  ! {concern}"));
    }
    match refusal {
        None => Ok(0),
        Some(error) => Err(error),
    }
}

pub(super) fn keygen(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let to = path(matches, "output");
    let (place, key) = kami.engine.kami().make_signing_key(
        &kami.caller,
        to.as_deref(),
        matches.get_flag("force"),
    )?;
    output::print(&key);
    done(&format!(
        "the secret is in {}; keep it to yourself",
        place.display()
    ));
    Ok(0)
}

pub(super) fn sign(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let secret = kami
        .engine
        .kami()
        .signing_key(&kami.caller, path(matches, "keys").as_deref())?;
    let key =
        kami.engine
            .kami()
            .sign_tool_package(&kami.caller, &must(matches, "source")?, &secret)?;
    done(&format!(
        "signed; whoever trusts {key} can install it from anywhere"
    ));
    Ok(0)
}

pub(super) fn verify(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let id = must(matches, "id")?;
    let tool = kami.engine.kami().verify_tool(
        &kami.caller,
        &id,
        word(matches, "public-key").as_deref(),
    )?;
    let by = tool.signed_by.as_deref().unwrap_or("nobody");
    output::print(&format!(
        "{} {} is what was installed ({}); signed by {by}",
        tool.id, tool.version, tool.sha256
    ));
    Ok(0)
}

pub(super) fn trust(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    let (engine, as_json) = (&kami.engine, kami.settings.json);
    crate::commands::trust::change(engine, &kami.caller, as_json, matches)
}

pub(super) fn policy(kami: &Kami<'_>, matches: &ArgMatches) -> Result<u8> {
    if let Some(file) = path(matches, "set") {
        let (dir, name) = kenning_vault::split(&file)?;
        let bytes = dir.read(&name, 1024 * 1024)?;
        let text =
            String::from_utf8(bytes).map_err(|_| Error::invalid("the policy is not UTF-8 text"))?;
        kami.engine.kami().set_wasm_policy(&kami.caller, &text)?;
        done("the policy holds from now on");
        return Ok(0);
    }
    let place = kami.engine.kami().wasm_policy_path();
    match kami.engine.kami().wasm_policy_text()? {
        Some(text) => {
            output::print(text.trim_end());
            // An invalid policy prevents every tool from running, so showing it is not a success.
            kami.engine.kami().check_wasm_policy(&text)?;
        }
        None => output::say(&format!(
            "no policy: tools get what they ask for; write {}",
            place.display()
        )),
    }
    Ok(0)
}

pub(super) fn status(kami: &Kami<'_>) -> Result<u8> {
    let tools = kami.engine.kami().installed_tools(&kami.caller)?;
    let enabled = tools.iter().filter(|it| it.is_enabled).count();
    let bytes: u64 = tools.iter().map(|it| it.size_bytes).sum();
    let place = kami.engine.kami().wasm_policy_path();
    let place = place
        .parent()
        .map(|it| it.display().to_string())
        .unwrap_or_default();
    if kami.settings.json {
        output::print_json(
            &json!({ "tools": tools.len(), "enabled": enabled, "bytes": bytes, "directory": place }),
        );
    } else {
        output::print(&format!(
            "{} tools, {enabled} enabled, {bytes} bytes of components\ndirectory: {place}",
            tools.len()
        ));
    }
    Ok(0)
}
