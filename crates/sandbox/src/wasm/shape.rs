//! The interface of a component: which calling convention it follows, or which functions it exports.

use crate::wasm::values;
use kenning_core::{Error, Result};
use serde_json::{Value, json};
use wasmtime::Engine;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, Type};

/// The interface of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// By which convention it is called.
    pub abi: Abi,
    /// The interfaces that it needs.
    pub imports: Vec<String>,
    /// What can be called.
    pub functions: Vec<Function>,
}

/// By which convention a component is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// It exports `kami:tool/tool` with `run` and perhaps `describe`.
    Kami,
    /// It exports `run` with the same type.
    Flat,
    /// It is a program: it exports `wasi:cli/run` and nothing else. Its input is its standard input, and
    /// what it prints is its answer.
    Command,
    /// It exports functions of other types, whose schemas follow from them.
    Generic,
}

/// A function that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// As in [`RunCall::function`](crate::RunCall::function): `name`, or `interface#name`.
    pub name: String,
    /// The JSON Schema of its input.
    pub input_schema: Value,
    /// The JSON Schema of its answer. None if it answers with any text.
    pub output_schema: Option<Value>,
}

/// The same, with what is needed to call it.
pub(crate) struct Shape {
    pub(crate) described: Described,
    callees: Vec<(String, Callee)>,
}

#[derive(Clone)]
pub(crate) enum Callee {
    /// `func(input: string) -> result<string, string>`
    Run(ComponentExportIndex),
    /// `func() -> string`
    Describe(ComponentExportIndex),
    /// `func() -> result`, of `wasi:cli/run`
    Command(ComponentExportIndex),
    Typed(ComponentExportIndex, ComponentFunc),
}

/// The interface of the contract. Later versions of 0.1 are the same to a caller.
const TOOL: &str = "kami:tool/tool";
/// The interface of programs.
const COMMAND: &str = "wasi:cli/run";
const FUNCTIONS_MAX: usize = 256;

impl Shape {
    pub(crate) fn of(component: &Component, engine: &Engine) -> Result<Self> {
        let found = exports(component, engine);
        let tool = |it: &&Export| it.interface.as_deref().is_some_and(is_tool);
        let mut callees = Vec::new();
        let abi = if let Some(run) = found.iter().filter(tool).find(|it| it.name == "run") {
            if !is_run(&run.function) {
                let why = "`run` of `kami:tool/tool` has the wrong type";
                return Err(Error::invalid(why)
                    .hint("it is `func(input: string) -> result<string, string>`"));
            }
            callees.push(("run".to_owned(), Callee::Run(run.index)));
            let mut others = found.iter().filter(tool);
            if let Some(it) =
                others.find(|found| found.name == "describe" && is_describe(&found.function))
            {
                callees.push(("describe".to_owned(), Callee::Describe(it.index)));
            }
            Abi::Kami
        } else if let Some(run) = found.iter().find(|it| it.is_flat_run()) {
            callees.push(("run".to_owned(), Callee::Run(run.index)));
            Abi::Flat
        } else {
            for it in found.into_iter().filter(Export::can_be_told) {
                let callee = match it.is_command() {
                    true => Callee::Command(it.index),
                    false => Callee::Typed(it.index, it.function.clone()),
                };
                callees.push((it.full_name(), callee));
            }
            match callees[..] {
                [(_, Callee::Command(_))] => Abi::Command,
                _ => Abi::Generic,
            }
        };
        if callees.is_empty() {
            return Err(Error::invalid("export not found: run").hint(
                "a tool exports `kami:tool/tool`, or `run: func(input: string) -> result<string, string>`; \
                 `kami_tool!` exports it unless it ends with `exports: false`",
            ));
        }
        if callees.len() > FUNCTIONS_MAX {
            let why = format!("the component exports {} functions", callees.len());
            return Err(Error::too_large(why).hint(format!("at most {FUNCTIONS_MAX}")));
        }
        let functions = callees.iter().filter_map(|(name, it)| it.function(name));
        let described = Described {
            abi,
            imports: imports(component, engine),
            functions: functions.collect(),
        };
        Ok(Self { described, callees })
    }

    /// The function of this name; without one, `run` or the only one that there is.
    pub(crate) fn callee(&self, name: Option<&str>) -> Option<&Callee> {
        let found = self.callees.iter().find(|it| it.0 == name.unwrap_or("run"));
        let only = (name.is_none() && self.callees.len() == 1).then(|| &self.callees[0]);
        found.or(only).map(|it| &it.1)
    }
}

impl Callee {
    /// How it is listed. `describe` is not for models.
    fn function(&self, name: &str) -> Option<Function> {
        let (input_schema, output_schema) = match self {
            Self::Run(_) => (json!({ "type": "object" }), None),
            Self::Describe(_) => return None,
            Self::Command(_) => (json!({ "type": "object" }), None),
            Self::Typed(_, function) => (values::input_schema(function), output_schema(function)),
        };
        Some(Function {
            name: name.to_owned(),
            input_schema,
            output_schema,
        })
    }
}

/// A function that a component exports, at its root or in an interface.
struct Export {
    interface: Option<String>,
    name: String,
    index: ComponentExportIndex,
    function: ComponentFunc,
}

impl Export {
    fn full_name(&self) -> String {
        match &self.interface {
            Some(interface) => format!("{interface}#{}", self.name),
            None => self.name.clone(),
        }
    }

    fn is_command(&self) -> bool {
        let is_theirs = |name: &str| {
            let version = name.strip_prefix(COMMAND);
            version.is_some_and(|version| version.is_empty() || version.starts_with("@0.2."))
        };
        let results: Vec<Type> = self.function.results().collect();
        let is_bare =
            matches!(&results[..], [Type::Result(it)] if it.ok().is_none() && it.err().is_none());
        self.interface.as_deref().is_some_and(is_theirs)
            && self.name == "run"
            && self.function.params().len() == 0
            && is_bare
    }

    fn is_flat_run(&self) -> bool {
        self.interface.is_none() && self.name == "run" && is_run(&self.function)
    }

    fn can_be_told(&self) -> bool {
        let types = self
            .function
            .params()
            .map(|it| it.1)
            .chain(self.function.results());
        !self.function.async_() && values::are_plain(types)
    }
}

fn exports(component: &Component, engine: &Engine) -> Vec<Export> {
    let ty = component.component_type();
    let mut found = Vec::new();
    for (name, item) in ty.exports(engine) {
        match item.ty {
            ComponentItem::ComponentFunc(function) => {
                if let Some(index) = component.get_export_index(None, name) {
                    let (interface, name) = (None, name.to_owned());
                    found.push(Export {
                        interface,
                        name,
                        index,
                        function,
                    });
                }
            }
            ComponentItem::ComponentInstance(instance) => {
                let Some(outer) = component.get_export_index(None, name) else {
                    continue;
                };
                for (inner, item) in instance.exports(engine) {
                    let ComponentItem::ComponentFunc(function) = item.ty else {
                        continue;
                    };
                    if let Some(index) = component.get_export_index(Some(&outer), inner) {
                        let (interface, name) = (Some(name.to_owned()), inner.to_owned());
                        found.push(Export {
                            interface,
                            name,
                            index,
                            function,
                        });
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn imports(component: &Component, engine: &Engine) -> Vec<String> {
    let ty = component.component_type();
    ty.imports(engine)
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn is_tool(interface: &str) -> bool {
    interface == TOOL
        || interface
            .strip_prefix(TOOL)
            .is_some_and(|it| it.starts_with("@0.1."))
}

fn is_run(function: &ComponentFunc) -> bool {
    let params: Vec<Type> = function.params().map(|it| it.1).collect();
    let results: Vec<Type> = function.results().collect();
    let is_text = |it: Option<Type>| matches!(it, Some(Type::String));
    let answers = match &results[..] {
        [Type::Result(it)] => is_text(it.ok()) && is_text(it.err()),
        _ => false,
    };
    matches!(params[..], [Type::String]) && answers && !function.async_()
}

fn is_describe(function: &ComponentFunc) -> bool {
    let results: Vec<Type> = function.results().collect();
    function.params().len() == 0 && matches!(results[..], [Type::String]) && !function.async_()
}

/// Only of the success value: a failure is not a result.
fn output_schema(function: &ComponentFunc) -> Option<Value> {
    match function.results().next()? {
        Type::Result(it) => it.ok().map(|it| values::schema(&it)),
        Type::String => None,
        other => Some(values::schema(&other)),
    }
}
