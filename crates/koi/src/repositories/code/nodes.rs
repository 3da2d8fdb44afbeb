//! The symbols of a file as nodes.

use super::super::record::Repository;
use super::rows::{self, FileRow};
use kenning_audit::{Draft, Passages, Tx};
use kenning_code::{Facts, Import, Language, Param, Symbol, SymbolKind, Type};
use kenning_core::{Kind, NodeId, Result};
use kenning_search::passages;
use kenning_store::ReadTx;
use kenning_text::hex;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The nodes of a file before they are written: what a transaction need not wait for.
pub(in super::super) struct Prepared {
    facts_key: String,
    facts: Vec<u8>,
    symbols: Vec<(Draft, Passages)>,
    imports: Vec<Draft>,
    /// The language, and why symbols are missing, for the properties of the document.
    pub(in super::super) language: Option<Language>,
    pub(in super::super) gap: Option<String>,
}

impl Prepared {
    pub(in super::super) fn n_symbols(&self) -> usize {
        self.symbols.len()
    }
}

/// Whether a file is read for symbols, or tells about those that are.
fn is_read(path: &str) -> bool {
    Language::of_path(path).is_some() || kenning_code::is_manifest(path)
}

/// The facts of a text that another repository or work tree has too.
pub(in super::super) fn known_facts(
    tx: &dyn ReadTx,
    path: &str,
    object: &str,
) -> Result<Option<Facts>> {
    if !is_read(path) {
        return Ok(None);
    }
    let found = rows::facts(tx, &rows::facts_key(path, object))?;
    Ok(found.map(|it| it.0))
}

/// Reads a text for symbols, unless its facts are known; none if it has no language that is read, and is no
/// manifest.
pub(in super::super) fn prepare(
    repository: &Repository,
    path: &str,
    object: &str,
    text: &str,
    known: Option<Facts>,
) -> Option<Prepared> {
    if !is_read(path) {
        return None;
    }
    let facts = known.unwrap_or_else(|| kenning_code::read(path, text));
    let about = About {
        repository,
        path,
        facts: &facts,
    };
    let mut names: HashMap<String, u32> = HashMap::new();
    // Several symbols may have one name: overloads, or a function for each platform.
    let mut unique = |name: String| {
        let n = names.entry(name.clone()).or_insert(0);
        *n += 1;
        match *n {
            1 => name,
            n => format!("{name}~{n}"),
        }
    };
    let symbols = (0..).zip(&facts.symbols).map(|(n, symbol)| {
        let qualified = facts.qualified(n);
        let key = unique(qualified.clone());
        let draft = about.symbol(symbol, &qualified, &key);
        let cut = passages(&draft.title, &draft.body).into();
        (draft, cut)
    });
    let symbols = symbols.collect();
    let imports = facts.imports.iter().filter(|it| !it.module.is_empty());
    let imports = imports.map(|it| {
        let name = it.name.as_deref().unwrap_or_default();
        let key = unique(format!("import {} {name}", it.module));
        about.import(it, &key)
    });
    Some(Prepared {
        imports: imports.collect(),
        facts_key: rows::facts_key(path, object),
        facts: facts.to_bytes(),
        symbols,
        language: facts.language,
        gap: facts.gap.clone(),
    })
}

struct About<'a> {
    repository: &'a Repository,
    path: &'a str,
    facts: &'a Facts,
}

impl About<'_> {
    fn common(&self, label: &str, name: &str, line: u32) -> Map<String, Value> {
        let language = self.facts.language.map_or("", Language::as_str);
        let mut props = Map::new();
        for (key, value) in [
            ("source", Value::from("github")),
            ("label", label.into()),
            ("entity_type", label.to_lowercase().into()),
            ("name", name.into()),
            ("repo", self.repository.name.as_str().into()),
            ("file_path", self.path.into()),
            ("language", language.into()),
            ("line_start", line.into()),
        ] {
            props.insert(key.to_owned(), value);
        }
        props
    }

    fn symbol(&self, symbol: &Symbol, qualified: &str, key: &str) -> Draft {
        let label = symbol.kind.label();
        let mut props = self.common(label, &symbol.name, symbol.line);
        let id = format!(
            "{}:{}:{}:{}",
            self.repository.name, self.path, key, symbol.signature
        );
        let mut put = |key: &str, value: Value| {
            props.insert(key.to_owned(), value);
        };
        put("line_end", symbol.line_end.into());
        put("qualified_name", qualified.into());
        put("entity_id", hex::sha256(id.as_bytes())[..16].into());
        put("signature", symbol.signature.as_str().into());
        put("visibility", symbol.visibility.as_str().into());
        if symbol.kind.is_function() {
            let params: Vec<Value> = symbol.params.iter().map(|it| param(it).into()).collect();
            put("params", params.into());
        }
        if let Some(returns) = &symbol.returns {
            put("return_type", written(returns).into());
        }
        if !symbol.doc.is_empty() {
            put("docstring", symbol.doc.as_str().into());
        }
        if symbol.kind == SymbolKind::Method
            && let Some((receiver, _)) = qualified.rsplit_once('.')
        {
            put("receiver_type", receiver.into());
        }
        put("is_test", symbol.is_test.into());
        let body = match symbol.doc.is_empty() {
            true => symbol.signature.clone(),
            false => format!("{}\n\n{}", symbol.signature, symbol.doc),
        };
        Draft {
            kind: Kind::Symbol,
            project: String::new(),
            key: format!("{}#{key}", self.repository.rid(self.path)),
            title: match symbol.kind {
                SymbolKind::Method => qualified.to_owned(),
                _ => symbol.name.clone(),
            },
            body,
            props,
        }
    }

    fn import(&self, import: &Import, key: &str) -> Draft {
        let name = match &import.name {
            Some(name) => format!("{}.{name}", import.module),
            None => import.module.clone(),
        };
        let mut props = self.common("Import", &name, import.line);
        props.insert("module_name".to_owned(), import.module.as_str().into());
        if !import.alias.is_empty() {
            props.insert("alias".to_owned(), import.alias.as_str().into());
        }
        Draft {
            kind: Kind::Symbol,
            project: String::new(),
            key: format!("{}#{key}", self.repository.rid(self.path)),
            title: name,
            body: String::new(),
            props,
        }
    }
}

fn param(it: &Param) -> String {
    match &it.ty {
        Some(ty) => format!("{}: {}", it.name, written(ty)),
        None => it.name.clone(),
    }
}

/// A type as people write it.
fn written(ty: &Type) -> String {
    let args: Vec<String> = ty.args.iter().map(written).collect();
    match (ty.name.as_str(), args.is_empty()) {
        ("|", _) => args.join(" | "),
        ("()", _) => format!("({})", args.join(", ")),
        ("[]", _) => format!("[{}]", args.join(", ")),
        ("=>", _) => format!("() => {}", args.join(", ")),
        (name, true) => name.to_owned(),
        (name, false) => format!("{name}<{}>", args.join(", ")),
    }
}

/// Writes the nodes of a file, in the transaction of its document. `from` is the path that the same content
/// had before: its nodes stay, under other names.
pub(in super::super) fn put(
    tx: &mut Tx<'_>,
    repository: &Repository,
    path: &str,
    document: NodeId,
    prepared: Option<Prepared>,
    from: Option<&str>,
) -> Result<()> {
    let bucket = rows::files(repository);
    let mut before: Option<FileRow> = rows::get(&**tx, &bucket, path)?;
    let mut is_moved = false;
    if let Some(from) = from {
        if let Some(row) = rows::get(&**tx, &bucket, from)? {
            is_moved = before.is_none();
            match is_moved {
                true => before = Some(row),
                false => remove(tx, repository, from)?,
            }
        }
        rows::unset(tx, &bucket, from)?;
    }
    let Some(prepared) = prepared else {
        return match before {
            Some(row) => remove_row(tx, repository, path, row),
            None => Ok(()),
        };
    };
    let old = before.as_ref();
    let same = |n_old: usize, n_new: usize| is_moved && n_old == n_new;
    let moves_symbols = old.is_some_and(|it| same(it.symbols.len(), prepared.symbols.len()));
    let moves_imports = old.is_some_and(|it| same(it.imports.len(), prepared.imports.len()));
    let mut row = FileRow {
        facts: prepared.facts_key,
        document: document.0,
        symbols: Vec::with_capacity(prepared.symbols.len()),
        imports: Vec::with_capacity(prepared.imports.len()),
    };
    for (n, (draft, cut)) in prepared.symbols.into_iter().enumerate() {
        let known = old
            .filter(|_| moves_symbols)
            .and_then(|it| it.symbols.get(n));
        let node = match known {
            Some(id) => tx.move_node(NodeId(*id), draft)?,
            None => tx.put_node(draft)?,
        };
        tx.put_hashed_passages(node.id, &cut)?;
        row.symbols.push(node.id.0);
    }
    for (n, draft) in prepared.imports.into_iter().enumerate() {
        let known = old
            .filter(|_| moves_imports)
            .and_then(|it| it.imports.get(n));
        let node = match known {
            Some(id) => tx.move_node(NodeId(*id), draft)?,
            None => tx.put_node(draft)?,
        };
        row.imports.push(node.id.0);
    }
    if let Some(before) = &before {
        let kept: std::collections::HashSet<[u8; 16]> =
            row.symbols.iter().chain(&row.imports).copied().collect();
        for id in before.symbols.iter().chain(&before.imports) {
            if !kept.contains(id) {
                rows::remove_node(tx, *id)?;
            }
        }
    }
    rows::put_facts(tx, &row.facts, &prepared.facts)?;
    rows::set(tx, &bucket, path, &row)
}

/// Removes the nodes of a file that is gone.
pub(in super::super) fn remove(tx: &mut Tx<'_>, repository: &Repository, path: &str) -> Result<()> {
    let row: Option<FileRow> = rows::get(&**tx, &rows::files(repository), path)?;
    match row {
        Some(row) => remove_row(tx, repository, path, row),
        None => Ok(()),
    }
}

fn remove_row(tx: &mut Tx<'_>, repository: &Repository, path: &str, row: FileRow) -> Result<()> {
    for id in row.symbols.into_iter().chain(row.imports) {
        rows::remove_node(tx, id)?;
    }
    rows::unset(tx, &rows::files(repository), path)
}
