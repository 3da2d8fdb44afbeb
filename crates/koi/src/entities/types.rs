//! The types that a space knows: those of the ontology, and those that its vault declares.

use crate::Koi;
use kenning_core::Result;
use kenning_entities::ontology::EntityType;
use kenning_kernel::{Caller, Scope};

/// The types, and their version.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityTypes {
    /// Changes when the types do.
    pub version: String,
    /// In the order of the ontology.
    pub types: Vec<EntityType>,
}

impl Koi {
    /// The current types; the vault's declarations are read again first.
    pub fn entity_types(&self, caller: &Caller) -> Result<EntityTypes> {
        caller.principal.require(Scope::Read)?;
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        self.kernel.log().read(space, |tx| {
            let ontology = self.ontology(space, tx)?;
            Ok(EntityTypes {
                version: ontology.version(),
                types: ontology.kinds().to_vec(),
            })
        })
    }
}
