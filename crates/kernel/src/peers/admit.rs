//! What is known of a message before its body is read.

use crate::Kernel;
use kenning_core::{Did, Error, Result};

impl Kernel {
    /// Refuses a message that no node known here can have sent, by its header `kenning-peer`. Anybody can send
    /// such a header, so the signature is still checked, which needs the body.
    ///
    /// # Errors
    /// Unauthenticated if it names no node, denied if it names one that is not a peer.
    pub fn check_peer(&self, peer: Option<&str>) -> Result<Did> {
        let did = peer.and_then(|it| it.parse::<Did>().ok());
        let did = did.ok_or_else(|| {
            Error::unauthenticated("the header `kenning-peer` is missing or malformed")
        })?;
        match self.peer_by_did(&did)? {
            Some(_) => Ok(did),
            None => Err(Error::denied(format!("{did} is not a peer of this node"))
                .hint(format!("on this node: `kenning peer add --did {did}`"))),
        }
    }
}
