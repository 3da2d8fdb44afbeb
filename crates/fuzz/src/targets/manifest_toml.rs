//! `tool.toml` of WASM tools, and the operator's policy.

use super::{ensure, in_time, owned, pieces, text};
use crate::{Source, Subject, Target};
use kenning_core::Code;
use kenning_sandbox::manifest::{MEMORY_MB_MAX, Manifest};
use kenning_sandbox::policy::{self, Policy};
use serde_json::json;

pub(super) const TARGET: Target = Target {
    name: "manifest_toml",
    about: "a manifest is within its bounds or refused, and a policy never grants more than was asked",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Manifests),
    pass_cases: 800,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "[tool]\n",
    "[mcp]\n",
    "[security]\n",
    "[[mcp.arguments]]\n",
    "[default]\n",
    "[tools.\"dev.a.b\"]\n",
    "id = \"dev.example.echo\"\n",
    "name = \"Echo\"\n",
    "version = \"1.0.0\"\n",
    "wasm = \"echo.wasm\"\n",
    "wasm = \"../x.wasm\"\n",
    "description = \"d\"\n",
    "type = \"string\"\n",
    "type = \"object\"\n",
    "required = true\n",
    "default = ",
    "net_allow_list = [\"*.example.com\"]\n",
    "net_allow_list = [\"*\"]\n",
    "fs_access = \"sandbox\"\n",
    "fs_access = \"read-only\"\n",
    "env_allow_list = [\"HOME\"]\n",
    "max_memory_mb = 64\n",
    "max_execution_ms = 1000\n",
    "max_fuel = 1000000\n",
    "allow_unsigned = true\n",
    "\"\"\"",
    "'''",
    "= ",
    "[",
    "]",
    "{",
    "}",
    ".",
    "1979-05-27T07:32:00Z",
    "inf",
    "nan",
    "0x",
    "# c\n",
    "\\u00e9",
    "a.b.c = 1\n",
    "[::1]",
    "127.0.0.1:80",
    "localhost",
    "xn--",
    "*.*",
    "2130706433",
];

const SEEDS: &[&str] = &[
    "[tool]\nid = \"dev.example.echo\"\nname = \"Echo\"\nversion = \"1.0.0\"\nwasm = \"echo.wasm\"\n\n[mcp]\ndescription = \"Says it back\"\n\n[[mcp.arguments]]\nname = \"text\"\ntype = \"string\"\ndescription = \"What to say\"\nrequired = true\n\n[security]\nnet_allow_list = [\"api.example.com\", \"*.example.org\"]\nfs_access = \"sandbox\"\nenv_allow_list = [\"HOME\"]\nmax_memory_mb = 64\nmax_execution_ms = 1000\nmax_fuel = 1000000\n",
    "[default]\nnet_allow_list = [\"example.com\"]\nallow_unsigned = false\nmax_memory_mb = 32\n\n[tools.\"dev.example.echo\"]\nfs_access = \"read-only\"\nmax_fuel = 5\n",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        ("[", "]"),
        ("a = {b = ", "}\n"),
        ("a = [", "]\n"),
        ("{a=", "}"),
        ("a.", "b = 1\n"),
        ("[[", "]]\n"),
    ];
    let start = if source.one_in(2) {
        SEEDS[source.below(2)]
    } else {
        ""
    };
    format!("{start}{}", pieces(source, WORDS, pairs)).into_bytes()
}

struct Manifests;

impl Subject for Manifests {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let text = text(input);
        let good = "[tool]\nid = \"dev.example.echo\"\nname = \"Echo\"\nversion = \"1.0.0\"\nwasm = \"e.wasm\"\n[mcp]\ndescription = \"d\"\n[security]\nnet_allow_list = [\"example.com\"]\nfs_access = \"sandbox\"\n";
        let asked = Manifest::parse(good).map_err(|it| it.to_string())?;
        let refused = |what: &str, error: &kenning_core::Error| -> Result<(), String> {
            let code = error.code;
            ensure!(
                matches!(code, Code::InvalidInput | Code::TooLarge),
                "{what} was refused with {code:?}: {error}"
            );
            super::short(error)?;
            Ok(())
        };
        match in_time(input, || Manifest::parse(&text))? {
            Err(error) => refused("a manifest", &error)?,
            Ok(manifest) => {
                let wasm = &manifest.wasm;
                let leads_out =
                    wasm.starts_with('/') || wasm.split(['/', '\\']).any(|it| it == "..");
                ensure!(!leads_out, "wasm: `{wasm}` leads outside");
                ensure!(
                    manifest.security.max_memory_mb <= MEMORY_MB_MAX,
                    "max_memory_mb is beyond its bound"
                );
                let id = &manifest.id;
                let plain =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
                ensure!(id.chars().all(plain), "id: `{id}`");
                ensure!(
                    manifest.input_schema()["type"] == "object",
                    "its schema is none of an object"
                );
                let _ = manifest.canonical_bytes();
                let _ = manifest.check_arguments(&json!({ "text": 5 }));
                let _ = policy::concerns(&manifest.security);
                // Nothing is granted beyond what was asked, whatever the policy says.
                let (granted, _) = policy::effective(&manifest, &Policy::default());
                let more = policy::asks_more(&manifest.security, &granted);
                ensure!(more.is_empty(), "granted more than asked: {more:?}");
            }
        }
        match in_time(input, || Policy::parse(&text))? {
            Err(error) => refused("a policy", &error)?,
            Ok(policy) => {
                let (granted, _) = policy::effective(&asked, &policy);
                let more = policy::asks_more(&asked.security, &granted);
                ensure!(more.is_empty(), "granted more than asked: {more:?}");
            }
        }
        Ok(())
    }
}
