//! The clients, and where each keeps its servers.

use kenning_core::{Error, Result};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The clients that are known.
pub(crate) const CLIENTS: [&str; 12] = [
    "claude-code",
    "cursor",
    "codex",
    "vscode",
    "claude-desktop",
    "windsurf",
    "zed",
    "gemini-cli",
    "cline",
    "continue",
    "openclaw",
    "nanoclaw",
];

/// Whose configuration is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// This person's, in every project.
    User,
    /// Everybody's who works on the project: the file is shared, so it holds no path of this machine.
    Project,
    /// This person's, in this project only.
    Local,
}

impl Scope {
    pub(crate) const NAMES: [&'static str; 3] = ["user", "project", "local"];

    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "user" => Self::User,
            "project" => Self::Project,
            "local" => Self::Local,
            _ => return None,
        })
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// Where a client keeps its servers.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) base: Base,
    /// The file in it.
    pub(super) file: &'static str,
    pub(super) form: Form,
}

/// The directory: of the project, or of the home directory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Base {
    Project,
    Home,
}

#[derive(Debug)]
pub(super) enum Form {
    /// JSON, with the server's entry under these keys.
    Json { keys: Vec<String>, with_type: bool },
    /// TOML, as a table of this name.
    Toml { table: &'static str },
}

/// A client in one of its scopes: that of its usual file if none is named.
pub(super) fn client(name: &str, scope: Option<Scope>) -> Result<Client> {
    if !CLIENTS.contains(&name) {
        return Err(Error::not_found("client", name));
    }
    place(name, scope.unwrap_or_else(|| usual_scope(name))).ok_or_else(|| {
        let scopes = Scope::NAMES.into_iter().filter(|it| {
            let scope = Scope::parse(it);
            scope.is_some_and(|it| place(name, it).is_some())
        });
        let scopes: Vec<&str> = scopes.collect();
        let given = scope.map_or("", Scope::as_str);
        Error::invalid(format!(
            "`--scope`: {name} has no configuration for `{given}`"
        ))
        .hint(format!("it has: {}", scopes.join(", ")))
    })
}

pub(super) fn usual_scope(name: &str) -> Scope {
    match name {
        "claude-code" | "cursor" | "vscode" | "continue" | "nanoclaw" => Scope::Project,
        _ => Scope::User,
    }
}

pub(super) fn place(name: &str, scope: Scope) -> Option<Client> {
    let is_mac = cfg!(target_os = "macos");
    let of = |base, file, keys: &[&str], with_type| {
        let keys = keys.iter().map(ToString::to_string).collect();
        let form = Form::Json { keys, with_type };
        Some(Client { base, file, form })
    };
    let here = Base::Project;
    let home = Base::Home;
    let servers: &[&str] = &["mcpServers"];
    let by_system = |mac, other| if is_mac { mac } else { other };
    match (name, scope) {
        ("claude-code", Scope::Project) => of(here, ".mcp.json", servers, true),
        ("claude-code", Scope::User) => of(home, ".claude.json", servers, true),
        ("claude-code", Scope::Local) => {
            let project = std::env::current_dir().ok()?.display().to_string();
            of(
                home,
                ".claude.json",
                &["projects", project.as_str(), "mcpServers"],
                true,
            )
        }
        ("nanoclaw", Scope::Project) => of(here, ".mcp.json", servers, false),
        ("cursor", Scope::Project) => of(here, ".cursor/mcp.json", servers, false),
        ("cursor", Scope::User) => of(home, ".cursor/mcp.json", servers, false),
        ("vscode", Scope::Project) => of(here, ".vscode/mcp.json", &["servers"], true),
        ("vscode", Scope::User) => of(
            home,
            by_system(
                "Library/Application Support/Code/User/mcp.json",
                ".config/Code/User/mcp.json",
            ),
            &["servers"],
            true,
        ),
        ("claude-desktop", Scope::User) => of(
            home,
            by_system(
                "Library/Application Support/Claude/claude_desktop_config.json",
                ".config/Claude/claude_desktop_config.json",
            ),
            servers,
            false,
        ),
        ("windsurf", Scope::User) => of(home, ".codeium/windsurf/mcp_config.json", servers, false),
        ("zed", Scope::User) => of(
            home,
            ".config/zed/settings.json",
            &["context_servers"],
            false,
        ),
        ("zed", Scope::Project) => of(here, ".zed/settings.json", &["context_servers"], false),
        ("gemini-cli", Scope::User) => of(home, ".gemini/settings.json", servers, false),
        ("gemini-cli", Scope::Project) => of(here, ".gemini/settings.json", servers, false),
        ("cline", Scope::User) => of(
            home,
            by_system(
                "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            servers,
            false,
        ),
        ("continue", Scope::Project) => of(here, ".continue/mcpServers/mcp.json", servers, false),
        ("continue", Scope::User) => of(home, ".continue/mcpServers/mcp.json", servers, false),
        ("openclaw", Scope::User) => {
            of(home, ".openclaw/openclaw.json", &["mcp", "servers"], false)
        }
        ("codex", Scope::User) => Some(Client {
            base: home,
            file: ".codex/config.toml",
            form: Form::Toml {
                table: "mcp_servers.kenning",
            },
        }),
        _ => None,
    }
}

/// The variable that a client's configuration names for the token: a file that is shared holds none.
pub(super) const TOKEN_VARIABLE: &str = "KENNING_TOKEN";

/// A server that runs already, as the client writes it. The token comes from the environment of the client.
pub(super) fn http_entry(name: &str, url: &str) -> Value {
    let variable = match name {
        "vscode" | "cursor" | "windsurf" => format!("${{env:{TOKEN_VARIABLE}}}"),
        "cline" | "continue" => format!("${{{{ secrets.{TOKEN_VARIABLE} }}}}"),
        _ => format!("${{{TOKEN_VARIABLE}}}"),
    };
    let headers = json!({ "Authorization": format!("Bearer {variable}") });
    match name {
        "gemini-cli" => json!({ "httpUrl": url, "headers": headers }),
        "windsurf" => json!({ "serverUrl": url, "headers": headers }),
        "cline" => json!({ "type": "streamableHttp", "url": url, "headers": headers }),
        "zed" => json!({ "url": url, "headers": headers }),
        _ => json!({ "type": "http", "url": url, "headers": headers }),
    }
}

/// The same for a client whose configuration is TOML.
pub(super) fn http_table(table: &str, url: &str) -> String {
    let url = Value::from(url).to_string();
    format!("[{table}]\nurl = {url}\nbearer_token_env_var = \"{TOKEN_VARIABLE}\"\n")
}

/// The directory that a client's file is in.
pub(super) fn directory(base: Base) -> Result<PathBuf> {
    match base {
        Base::Project => Ok(PathBuf::from(".")),
        Base::Home => super::home(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_file_in_its_usual_scope() {
        for name in CLIENTS {
            assert!(client(name, None).is_ok(), "{name}");
        }
        assert!(client("emacs", None).is_err());
        let error = client("windsurf", Some(Scope::Project)).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("it has: user"));
    }

    #[test]
    fn a_token_is_named_and_not_written() {
        for name in CLIENTS {
            let entry = http_entry(name, "https://kenning.test/mcp").to_string();
            assert!(entry.contains(TOKEN_VARIABLE), "{name}: {entry}");
        }
        let table = http_table("mcp_servers.kenning", "https://kenning.test/mcp");
        assert!(table.parse::<toml::Table>().is_ok(), "{table}");
    }
}
