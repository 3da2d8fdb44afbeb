//! The content of a tool's node, and its public view.

use kenning_core::{Error, NodeId, Result};
use kenning_sandbox::manifest::{Manifest, Security};
use kenning_sandbox::policy::{Policy, concerns, effective};
use kenning_sandbox::signature::Signed;
use kenning_sandbox::{Abi, Artifact, Described, Sha256};
use kenning_store::Node;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The property that has everything but title and text.
const PROPERTY: &str = "tool";

/// At most this many versions are kept.
pub(super) const VERSIONS_MAX: usize = 10;

/// What is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stored {
    /// The version that runs.
    pub(super) version: String,
    pub(super) enabled: bool,
    /// Whether updates are refused.
    pub(super) pinned: bool,
    /// Its source: a path or a URL.
    pub(super) source: String,
    pub(super) installed_ms: u64,
    pub(super) updated_ms: u64,
    pub(super) versions: BTreeMap<String, StoredVersion>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredVersion {
    /// `tool.toml`, literally.
    pub(super) manifest: String,
    pub(super) sha256: String,
    pub(super) bytes: u64,
    /// The name of the compiled code.
    pub(super) artifact: Option<String>,
    /// `tool.sig`, literally, if a trusted key signed it.
    pub(super) signed: Option<String>,
    pub(super) abi: String,
    pub(super) functions: Vec<StoredFunction>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredFunction {
    pub(super) name: String,
    pub(super) input_schema: Value,
}

impl StoredVersion {
    pub(super) fn functions_of(described: &Described) -> Vec<StoredFunction> {
        if described.abi != Abi::Generic {
            return Vec::new();
        }
        let functions = described.functions.iter().map(|function| StoredFunction {
            name: function.name.clone(),
            input_schema: function.input_schema.clone(),
        });
        functions.collect()
    }

    pub(super) fn abi_of(described: &Described) -> String {
        let word = match described.abi {
            Abi::Kami => "kami",
            Abi::Flat => "flat",
            Abi::Command => "command",
            Abi::Generic => "generic",
        };
        word.to_owned()
    }
}

impl Stored {
    pub(super) fn to_props(&self) -> Result<Map<String, Value>> {
        let value = serde_json::to_value(self);
        let value = value.map_err(|it| {
            Error::internal("the record of a tool cannot be serialized").because(it)
        })?;
        let mut props = Map::new();
        props.insert(PROPERTY.to_owned(), value);
        props.insert("type".to_owned(), "wasm".into());
        Ok(props)
    }

    pub(super) fn of(node: &Node) -> Result<Self> {
        let value = node.props.get(PROPERTY).cloned().unwrap_or_default();
        serde_json::from_value(value).map_err(|it| {
            Error::corrupt(format!(
                "the stored record of tool `{}` is malformed",
                node.key
            ))
            .because(it)
        })
    }
}

/// A tool, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) node: NodeId,
    pub(crate) id: String,
    pub(super) stored: Stored,
    pub(super) manifest: Manifest,
    pub(super) sha256: Sha256,
    pub(super) artifact: Option<Artifact>,
}

impl Record {
    pub(super) fn of(node: &Node) -> Result<Self> {
        let stored = Stored::of(node)?;
        let corrupt = || {
            Error::corrupt(format!(
                "the stored record of tool `{}` is malformed",
                node.key
            ))
        };
        let version = stored.versions.get(&stored.version).ok_or_else(corrupt)?;
        Ok(Self {
            node: node.id,
            id: node.key.clone(),
            manifest: Manifest::parse(&version.manifest)?,
            sha256: Sha256::from_hex(&version.sha256).ok_or_else(corrupt)?,
            artifact: version.artifact.as_deref().and_then(Artifact::parse),
            stored,
        })
    }

    pub(super) fn version(&self) -> Option<&StoredVersion> {
        self.stored.versions.get(&self.stored.version)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.stored.enabled
    }

    /// The callable functions: the tool itself, or each function of a generic component.
    pub(crate) fn functions(&self) -> Vec<ToolFunction> {
        let generic = self
            .version()
            .map(|it| it.functions.as_slice())
            .unwrap_or_default();
        let one = |name: String, function: Option<String>, input_schema: Value| ToolFunction {
            long_name: name.clone(),
            name,
            safe_names: Vec::new(),
            tool: self.id.clone(),
            title: self.manifest.name.clone(),
            description: self.manifest.description.clone(),
            input_schema,
            function,
        };
        match generic {
            [] => vec![one(self.id.clone(), None, self.manifest.input_schema())],
            [only] => vec![one(
                self.id.clone(),
                Some(only.name.clone()),
                only.input_schema.clone(),
            )],
            many => {
                let named = many.iter().zip(function_names(&self.id, many));
                named
                    .map(|(it, names)| ToolFunction {
                        long_name: names.long,
                        ..one(names.main, Some(it.name.clone()), it.input_schema.clone())
                    })
                    .collect()
            }
        }
    }

    pub(super) fn view(&self, policy: &Policy) -> InstalledTool {
        let (granted, cut) = effective(&self.manifest, policy);
        let version = self.version();
        let signed = version.and_then(|it| it.signed.as_deref());
        let signed_by = signed
            .and_then(|it| Signed::parse(it).ok())
            .map(|it| it.key.to_string());
        InstalledTool {
            id: self.id.clone(),
            name: self.manifest.name.clone(),
            version: self.stored.version.clone(),
            versions: self.stored.versions.keys().cloned().collect(),
            description: self.manifest.description.clone(),
            is_enabled: self.stored.enabled,
            is_pinned: self.stored.pinned,
            source: self.stored.source.clone(),
            sha256: self.sha256.to_string(),
            size_bytes: version.map_or(0, |it| it.bytes),
            abi: version.map(|it| it.abi.clone()).unwrap_or_default(),
            signed_by,
            arguments: arguments(&self.manifest),
            functions: self.functions().into_iter().map(|it| it.name).collect(),
            asked: Granted::of(&self.manifest.security),
            concerns: concerns(&granted),
            granted: Granted::of(&granted),
            cut,
            installed_ms: self.stored.installed_ms,
            updated_ms: self.stored.updated_ms,
        }
    }
}

pub(super) fn arguments(manifest: &Manifest) -> Vec<ArgumentView> {
    let arguments = manifest.arguments.iter().map(|argument| ArgumentView {
        name: argument.name.clone(),
        kind: argument.kind.name().to_owned(),
        description: argument.description.clone(),
        is_required: argument.required,
    });
    arguments.collect()
}

/// A callable function of an installed tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFunction {
    /// Its name.
    pub name: String,
    /// The name with the whole interface, which can be called too.
    pub(crate) long_name: String,
    /// Names for clients that do not accept dots, the shortest first.
    pub safe_names: Vec<String>,
    /// The id of the tool.
    pub tool: String,
    /// The name for people.
    pub title: String,
    /// The description for models.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The function of the component; `None` is `run`.
    pub(crate) function: Option<String>,
}

/// An installed tool, for display.
#[derive(Clone, Debug, PartialEq)]
pub struct InstalledTool {
    /// In reverse-domain notation.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The version that runs.
    pub version: String,
    /// Versions that it can be pinned to.
    pub versions: Vec<String>,
    /// The description for models.
    pub description: String,
    /// Whether it can be called.
    pub is_enabled: bool,
    /// Whether updates are refused.
    pub is_pinned: bool,
    /// Its source.
    pub source: String,
    /// The SHA-256 of the component.
    pub sha256: String,
    /// The size of the component.
    pub size_bytes: u64,
    /// Its calling convention: `kami`, `flat`, `command` or `generic`.
    pub abi: String,
    /// The key of its signer.
    pub signed_by: Option<String>,
    /// Its arguments.
    pub arguments: Vec<ArgumentView>,
    /// The names that it is called by: its id, or one for each function of a component that has
    /// several.
    pub functions: Vec<String>,
    /// What its manifest requests.
    pub asked: Granted,
    /// What it is granted.
    pub granted: Granted,
    /// What the policy reduced, a sentence each.
    pub cut: Vec<String>,
    /// Warnings for the operator about what it is granted, a sentence each.
    pub concerns: Vec<String>,
    /// When it was first installed, in milliseconds since 1970.
    pub installed_ms: u64,
    /// When it was last changed.
    pub updated_ms: u64,
}

/// An argument of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentView {
    /// Its key in the input.
    pub name: String,
    /// Its JSON type.
    pub kind: String,
    /// The description for models.
    pub description: String,
    /// Whether a call without it is refused.
    pub is_required: bool,
}

/// What a tool may access and use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Hosts that it may reach.
    pub net: Vec<String>,
    /// `none`, `read-only` or `sandbox`.
    pub fs: String,
    /// Environment variables.
    pub env: Vec<String>,
    /// Linear memory.
    pub max_memory_mb: u32,
    /// Wall time of a call.
    pub max_execution_ms: u64,
    /// Instructions of a call.
    pub max_fuel: u64,
}

impl Granted {
    pub(super) fn of(security: &Security) -> Self {
        Self {
            net: security
                .net_allow_list
                .iter()
                .map(ToString::to_string)
                .collect(),
            fs: security.fs_access.to_string(),
            env: security.env_allow_list.clone(),
            max_memory_mb: security.max_memory_mb,
            max_execution_ms: security.max_execution_ms,
            max_fuel: security.max_fuel,
        }
    }
}

/// The names of a function of a component with several.
pub(super) struct FunctionNames {
    /// The function's own name, if no other function has it; otherwise the long one.
    pub(super) main: String,
    /// With the whole interface.
    pub(super) long: String,
}

/// The names of each function of a component with several.
pub(super) fn function_names(id: &str, functions: &[StoredFunction]) -> Vec<FunctionNames> {
    let short = |function: &StoredFunction| match function.name.rsplit_once('#') {
        Some((_, name)) => name.to_owned(),
        None => function.name.clone(),
    };
    let names = functions.iter().map(|function| {
        let is_only = functions
            .iter()
            .filter(|other| short(other) == short(function))
            .count()
            == 1;
        let long = format!("{id}.{}", function.name.replace(['/', '#', ':', '@'], "."));
        let main = match is_only {
            true => format!("{id}.{}", short(function)),
            false => long.clone(),
        };
        FunctionNames { main, long }
    });
    names.collect()
}
