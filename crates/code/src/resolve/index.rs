//! What is kept of all files while names are resolved.

use super::Sym;
use super::file::{Family, File, Names, Source};
use super::modules::Tree;
use super::types::Ty;
use crate::facts::{Symbol, SymbolKind};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// All files of a repository, ready to be asked what names mean.
pub struct Project<'a> {
    pub(super) files: Vec<File<'a>>,
    pub(super) tree: Tree<'a>,
    /// Members of types that stand outside of them.
    pub(super) outside: HashMap<Sym, Names<'a, Sym>>,
    /// Traits that types have, said outside of them.
    pub(super) traits: HashMap<Sym, Vec<Sym>>,
    /// Methods of all types, by their names.
    pub(super) methods: HashMap<(Family, &'a str), Vec<Sym>>,
    /// What stands in a file directly, by family and name.
    pub(super) globals: HashMap<(Family, &'a str), Vec<Sym>>,
    /// What a type inherits, once somebody asked.
    pub(super) bases: RefCell<HashMap<Sym, Rc<Vec<Ty>>>>,
    /// Files that a file imports something of, once somebody asked.
    pub(super) imported: RefCell<HashMap<u32, Rc<HashSet<u32>>>>,
    /// What is being looked up, so that no circle is followed.
    pub(super) active: RefCell<Vec<(u32, u32, u8)>>,
    /// How many steps the evaluation of one expression has taken.
    pub(super) steps: std::cell::Cell<u32>,
    /// How many evaluations stand within each other.
    pub(super) nesting: std::cell::Cell<u32>,
}

impl<'a> Project<'a> {
    /// Makes the index.
    pub fn new(sources: &'a [Source]) -> Self {
        let files: Vec<File<'a>> = sources.iter().map(File::new).collect();
        let mut project = Self {
            tree: Tree::new(&files),
            files,
            outside: HashMap::new(),
            traits: HashMap::new(),
            methods: HashMap::new(),
            globals: HashMap::new(),
            bases: RefCell::default(),
            imported: RefCell::default(),
            active: RefCell::default(),
            steps: std::cell::Cell::new(0),
            nesting: std::cell::Cell::new(0),
        };
        for (f, file) in (0..).zip(&project.files) {
            let Some(family) = file.family else { continue };
            for (n, symbol) in (0..).zip(&file.facts.symbols) {
                let sym = Sym { file: f, n };
                if symbol.kind == SymbolKind::Method {
                    let all = project.methods.entry((family, symbol.name.as_str()));
                    all.or_default().push(sym);
                }
                let is_global = symbol.owner.is_none()
                    && symbol.parent.is_none_or(|it| {
                        file.symbol(it)
                            .is_some_and(|it| it.kind == SymbolKind::Module)
                    });
                if is_global {
                    let all = project.globals.entry((family, symbol.name.as_str()));
                    all.or_default().push(sym);
                }
            }
        }
        project.join_outside();
        project
    }

    /// Members and traits that are said outside of a type, once names can be looked up.
    fn join_outside(&mut self) {
        let mut members: Vec<(Sym, &'a str, Sym)> = Vec::new();
        let mut traits: Vec<(Sym, Sym)> = Vec::new();
        for (f, file) in (0..).zip(&self.files) {
            for (n, symbol) in (0..).zip(&file.facts.symbols) {
                let Some(owner) = &symbol.owner else { continue };
                self.steps.set(0);
                let at = self.at(f, symbol.parent, symbol.line);
                if let Some(of) = self.type_symbol(owner, at) {
                    members.push((of, &symbol.name, Sym { file: f, n }));
                }
            }
            for it in &file.facts.impls {
                let at = self.at(f, it.scope, it.line);
                let found = (self.type_symbol(&it.ty, at), self.type_symbol(&it.base, at));
                if let (Some(of), Some(base)) = found {
                    traits.push((of, base));
                }
            }
        }
        for (of, name, sym) in members {
            let names = self.outside.entry(of).or_default();
            names.entry(name).or_default().push(sym);
        }
        for (of, base) in traits {
            let all = self.traits.entry(of).or_default();
            if !all.contains(&base) {
                all.push(base);
            }
        }
    }

    /// The type that a symbol belongs to although it stands outside of it.
    pub fn owner(&self, sym: Sym) -> Option<Sym> {
        let symbol = self.symbol(sym)?;
        let owner = symbol.owner.as_ref()?;
        self.steps.set(0);
        self.type_symbol(owner, self.at(sym.file, symbol.parent, symbol.line))
    }

    pub(super) fn file(&self, f: u32) -> &File<'a> {
        &self.files[f as usize]
    }

    pub(super) fn symbol(&self, sym: Sym) -> Option<&'a Symbol> {
        self.files.get(sym.file as usize)?.symbol(sym.n)
    }

    pub(super) fn family(&self, f: u32) -> Option<Family> {
        self.files.get(f as usize)?.family
    }
}
