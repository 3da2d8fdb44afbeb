//! What the nodes of each grammar mean.

mod bash;
mod c_family;
mod csharp;
mod go;
mod java;
mod kotlin;
mod php;
mod python;
mod ruby;
mod rust;
mod sql;
mod typescript;

use crate::walk::Reader;
use kenning_grammars::Language;

pub(crate) fn reader(language: Language) -> Box<dyn Reader> {
    match language {
        Language::Bash => Box::new(bash::Bash),
        Language::C | Language::Cpp => Box::new(c_family::CFamily),
        Language::CSharp => Box::new(csharp::CSharp),
        Language::Go => Box::new(go::Go),
        Language::Java => Box::new(java::Java),
        Language::JavaScript | Language::Tsx | Language::TypeScript => {
            Box::new(typescript::TypeScript)
        }
        Language::Kotlin => Box::new(kotlin::Kotlin),
        Language::Php => Box::new(php::Php),
        Language::Python => Box::new(python::Python),
        Language::Ruby => Box::new(ruby::Ruby::default()),
        Language::Rust => Box::new(rust::Rust),
        Language::Sql => Box::new(sql::Sql),
    }
}
