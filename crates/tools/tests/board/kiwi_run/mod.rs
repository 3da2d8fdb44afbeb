//! Tools that are items really run: in the jail, through the gate, in the sandbox.

mod chains;
mod grants;
mod packages;
mod primitives;
mod processes;
mod servers;
mod success;

use crate::everything;
use kenning_testing::Fixture;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A fixture with a project of tools.
struct Bench {
    fixture: Fixture,
}

impl Bench {
    fn new() -> Self {
        kenning_testing::build_launcher();
        let fixture = everything(&Fixture::new());
        // Where tests run as root, tools run as a user without rights.
        open(fixture.root.path(), 0o711);
        open(&fixture.project(), 0o755);
        Self { fixture }
    }

    /// The same after everything that is written afterwards was written.
    fn settled(self) -> Self {
        let fixture = everything(&self.fixture);
        drop(self);
        Self { fixture }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.fixture.project().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        self.fixture.put_document(name, text);
    }

    /// A tool that is one file, signed.
    fn tool(&self, file: &str, text: &str) {
        self.put(&format!(".ai/tools/{file}"), text);
        self.sign(file.split(['.', '/']).next().unwrap());
    }

    /// A tool with a manifest and a script, signed.
    fn made(&self, id: &str, manifest: &str, entry: &str, script: &str) {
        let head = format!("tool_id: {id}\nversion: 1.0.0\ntool_type: script\n");
        let entry_line = format!("manifest: {{entrypoint: {entry}}}\n");
        let text = format!("{head}{entry_line}{manifest}\n");
        self.put(&format!(".ai/tools/{id}/manifest.yaml"), &text);
        self.put(&format!(".ai/tools/{id}/{entry}"), script);
        self.sign(id);
    }

    fn execute(&self, item_type: &str, action: &str, id: &str, rest: Value) -> Value {
        let mut arguments = json!({ "item_type": item_type, "action": action, "item_id": id });
        let fields = arguments.as_object_mut().unwrap();
        fields.extend(rest.as_object().unwrap().clone());
        let reply = self.fixture.call("execute", arguments);
        let mut value = reply.value.clone().unwrap();
        value["is_error"] = reply.is_error().into();
        value["http"] = reply.status.into();
        value
    }

    fn sign(&self, id: &str) {
        let signed = self.execute("tool", "sign", id, json!({}));
        assert_eq!(signed["status"], "signed", "{signed:#}");
    }

    fn policy(&self, text: &str) {
        let path = self.fixture.root.path().join("data/kiwi");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("policy.toml"), text).unwrap();
    }

    fn run(&self, id: &str, inputs: Value) -> Value {
        self.execute(
            "tool",
            "run",
            id,
            json!({ "parameters": { "inputs": inputs } }),
        )
    }

    /// What a tool that goes well gives.
    fn ran(&self, id: &str, inputs: Value) -> Value {
        let done = self.run(id, inputs);
        assert_eq!(done["status"], "executed", "{done:#}");
        done
    }

    /// A tool that does not: its error.
    fn failed(&self, id: &str, inputs: Value) -> Value {
        let done = self.run(id, inputs);
        assert_eq!(done["is_error"], true, "{done:#}");
        done
    }
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A Bash tool that is one file.
fn bash(script: &str) -> String {
    format!("#!/usr/bin/env bash\n# A tool\n# version: 1.0.0\n# tool_type: script\n{script}\n")
}

/// A Python tool that is one file.
fn python(script: &str) -> String {
    format!("\"\"\"A tool\"\"\"\n__version__ = \"1.0.0\"\n__tool_type__ = \"script\"\n{script}\n")
}

/// A Node tool that is one file.
fn node(script: &str) -> String {
    format!("// A tool\n// version: 1.0.0\n// tool_type: script\n{script}\n")
}
