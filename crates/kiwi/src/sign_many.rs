//! Signing many items: first the list of items that match a pattern, then each of them.

use super::item_dirs::ItemDir;
use super::package::{Item, Package, SignatureCheck};
use super::{ItemResult, SignAs, SignItem, SignedItem};
use crate::{ItemTarget, Kiwi};
use kenning_core::{Error, Result};
use kenning_items::grants::Glob;
use kenning_items::{ItemType, Scope as ItemScope};
use kenning_kernel::{Caller, Scope};

/// The state of an item's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignState {
    /// Signed by a trusted key, and unchanged.
    Signed,
    /// Signed by another key, and unchanged.
    Untrusted,
    /// It was never signed.
    Unsigned,
    /// Validated by the original, and unchanged.
    Validated,
    /// It was changed since it was signed or validated.
    Modified,
    /// Its signature cannot be read.
    Broken,
    /// It is not a valid item, so it cannot be signed.
    Invalid,
}

impl SignState {
    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Untrusted => "untrusted",
            Self::Unsigned => "unsigned",
            Self::Validated => "validated",
            Self::Modified => "modified",
            Self::Broken => "broken",
            Self::Invalid => "invalid",
        }
    }

    /// Whether signing would change anything.
    pub const fn is_to_sign(self) -> bool {
        !matches!(self, Self::Signed | Self::Invalid)
    }
}

/// An item that matches the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignCandidate {
    /// Its id.
    pub id: String,
    /// Its version; empty if it is not valid.
    pub version: String,
    /// The folders above it.
    pub category: String,
    /// Where it is kept.
    pub location: ItemScope,
    /// The path of its file or directory.
    pub path: String,
    /// Whether it is signed.
    pub state: SignState,
    /// What is wrong with an invalid one.
    pub issues: Vec<String>,
}

impl Kiwi {
    /// The items that match a pattern, in the order of their places: `*` matches all of them, `demo*`
    /// those whose id begins with it, `email/*` those of a category. Without a location it is the
    /// project, or the user's own directory if there is no project.
    pub fn sign_candidates(
        &self,
        caller: &Caller,
        target: &ItemTarget,
        location: Option<ItemScope>,
    ) -> ItemResult<Vec<SignCandidate>> {
        caller.principal.require(Scope::Read)?;
        let pattern = Pattern::parse(&target.id)?;
        let project = self.item_project(caller, target.project_path.as_deref())?;
        let fallback = match project {
            Some(_) => ItemScope::Project,
            None => ItemScope::User,
        };
        let scope = location.unwrap_or(fallback);
        let mut found: Vec<SignCandidate> = Vec::new();
        for item_dir in self.item_dirs(caller, target.item_type, project.as_ref())? {
            if item_dir.scope != scope {
                continue;
            }
            for place in self.places(&item_dir)? {
                caller.check()?;
                let (id, category) = (place.id.as_str(), place.category.as_str());
                let is_known = found.iter().any(|it| it.id == id);
                if is_known || !pattern.fits(category, id) {
                    continue;
                }
                let package = Package::read(&item_dir, &place);
                found.push(self.sign_candidate(caller, &item_dir, id, category, package)?);
            }
        }
        Ok(found)
    }

    /// Refuses to sign many items for a caller who may not sign one.
    pub fn require_may_sign_many(
        &self,
        caller: &Caller,
        target: &ItemTarget,
        location: Option<ItemScope>,
    ) -> ItemResult<()> {
        let scope = location.unwrap_or(ItemScope::Project);
        self.require_may_sign(caller, target.item_type, &target.id, scope)
    }

    fn sign_candidate(
        &self,
        caller: &Caller,
        item_dir: &ItemDir,
        id: &str,
        category: &str,
        package: Result<Package>,
    ) -> Result<SignCandidate> {
        let mut candidate = SignCandidate {
            id: id.to_owned(),
            version: String::new(),
            category: category.to_owned(),
            location: item_dir.scope,
            path: String::new(),
            state: SignState::Invalid,
            issues: Vec::new(),
        };
        let package = match package {
            Ok(package) => package,
            Err(error) => {
                candidate.issues.push(error.message);
                return Ok(candidate);
            }
        };
        candidate.path = package.path_on(item_dir).to_string_lossy().into_owned();
        match package.item() {
            Ok(item) => {
                item.version().clone_into(&mut candidate.version);
                candidate.state = self.sign_state(caller, &package, &item)?;
            }
            Err(faults) => candidate.issues = faults.lines(),
        }
        Ok(candidate)
    }

    fn sign_state(&self, caller: &Caller, package: &Package, item: &Item) -> Result<SignState> {
        Ok(match package.check_signature(item) {
            SignatureCheck::Signed(mark) => match self.is_trusted(caller, &mark.signer)? {
                true => SignState::Signed,
                false => SignState::Untrusted,
            },
            SignatureCheck::None => SignState::Unsigned,
            SignatureCheck::Validated => SignState::Validated,
            SignatureCheck::Changed(_) => SignState::Modified,
            SignatureCheck::Broken(_) => SignState::Broken,
        })
    }

    /// Signs one item of a list that somebody confirmed.
    pub fn sign_candidate_item(
        &self,
        caller: &Caller,
        target: &ItemTarget,
        candidate: &SignCandidate,
    ) -> ItemResult<SignedItem> {
        let what = SignItem {
            target: ItemTarget {
                id: candidate.id.clone(),
                ..target.clone()
            },
            sign_as: SignAs::Sign,
            location: Some(candidate.location),
            category: None,
            content: None,
        };
        self.sign_item(caller, &what)
    }

    /// The ids of all local items of a type, project before user.
    pub fn item_ids(
        &self,
        caller: &Caller,
        item_type: ItemType,
        project_path: Option<&str>,
    ) -> Result<Vec<String>> {
        caller.principal.require(Scope::Read)?;
        let project = self.item_project(caller, project_path)?;
        let mut ids = Vec::new();
        for item_dir in self.item_dirs(caller, item_type, project.as_ref())? {
            let places = self.places(&item_dir)?.into_iter();
            ids.extend(places.map(|it| it.id.as_str().to_owned()));
        }
        Ok(ids)
    }
}

/// A pattern of ids, or of categories and ids.
struct Pattern {
    glob: Glob,
    has_category: bool,
}

impl Pattern {
    fn parse(text: &str) -> Result<Self> {
        let glob = Glob::parse(text).map_err(|why| {
            Error::invalid(format!("item_id: the pattern {why}"))
                .hint("use `*` for all items, or `CATEGORY/*` for those of a category")
        })?;
        let has_category = text.contains('/');
        Ok(Self { glob, has_category })
    }

    fn fits(&self, category: &str, id: &str) -> bool {
        let path = match (self.has_category, category) {
            (true, category) if !category.is_empty() => format!("{category}/{id}"),
            _ => id.to_owned(),
        };
        Glob::parse(&path).is_ok_and(|it| self.glob.covers(&it))
    }
}
