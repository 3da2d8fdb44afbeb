//! Nodes that a query named, as documents.

use super::documents::{Document, links_of_other, other, show};
use crate::Kg;
use kenning_core::{Code, NodeId, Result};
use kenning_kernel::{Caller, Scope};
use kenning_store::When;

impl Kg {
    /// These nodes, in their order: documents of the graph as it knows them, others by their rows. One that is not
    /// there any more is left out.
    pub fn documents_of_nodes(
        &self,
        caller: &Caller,
        nodes: &[NodeId],
        relations: bool,
    ) -> Result<Vec<Document>> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = match self.graph(caller, tx) {
                // Nodes exist without any document.
                Err(error) if error.code == Code::Unavailable => None,
                library => Some(library?),
            };
            let library = library.as_deref();
            let mut found = Vec::with_capacity(nodes.len());
            for id in nodes {
                let known = library.and_then(|it| Some((it, it.by_node(*id)?)));
                if let Some((library, doc)) = known {
                    found.push(show(tx, library, doc, relations, false)?);
                } else if let Some(node) = tx.node(*id, When::Now)? {
                    let mut node = other(&node);
                    if relations {
                        node.links = Some(links_of_other(tx, library, *id)?);
                    }
                    found.push(node);
                }
            }
            Ok(found)
        })
    }
}
