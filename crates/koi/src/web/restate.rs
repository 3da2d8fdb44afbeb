//! What an ingested page states after it has changed.
//!
//! With a model its extraction takes the place of what was stated. Rules find less than whoever ingested the
//! page may have said, so without a model what was stated stays as far as the page still names it, and what
//! rules find is added.

use super::ingest::statement_of;
use super::pages::{self, Status};
use super::process::{Material, NO_MODEL, all_of};
use crate::Koi;
use crate::entities::put_said_again;
use kenning_core::{Kind, Result, Space};
use kenning_kernel::{Caller, Principal};
use kenning_store::When;
use serde_json::json;

impl Koi {
    /// States again what a page says, if it was ingested.
    pub(super) fn restate_page(&self, space: &Space, url: &str) -> Result<()> {
        if !self.web_settings()?.is_enriching {
            return Ok(());
        }
        let known = self.kernel.log().read(space, |tx| {
            let page = pages::page(tx, url)?.filter(|it| it.status == Status::Ingested);
            page.map(|it| Ok((it, pages::text(tx, url)?))).transpose()
        })?;
        let Some((page, text)) = known else {
            return Ok(());
        };
        let caller = Caller::new(Principal::owner(space.clone()));
        self.follow_entities(&caller)?;
        let (matcher, ontology) = self.kernel.log().read(space, |tx| {
            Ok((self.matcher(space, tx)?, self.ontology(space, tx)?))
        })?;
        let of = Material {
            page: &page,
            text: &text,
            ontology: &ontology,
            matcher: &matcher,
            hints: &[],
        };
        let (model, found, fault) = match self.extract(&of, caller.deadline) {
            Ok((model, found)) => (model, found, None),
            Err(error) => (NO_MODEL.to_owned(), of.by_rules(), Some(error.message)),
        };
        let request = all_of(url, &found.entities, &found.relationships);
        let said = statement_of(&page, &request);
        let (mut settled, _) = self.read_naming(space, |tx, meanings| {
            self.settle_statement(space, tx, meanings, &said)
        })?;
        self.kernel.log().write_long(space, move |tx| {
            let rid = page.document_rid();
            if let Some(node) = tx.node_by_key("", Kind::Page, &rid, When::Now)? {
                settled.set_document(node.id);
            }
            let kept = (model == NO_MODEL).then_some(text.text.as_str());
            let [before, after] = put_said_again(tx, settled, kept)?;
            let mut data = json!({
                "url": page.url, "documentRid": rid, "model": model,
                "before": { "entities": before.0, "relationships": before.1 },
                "after": { "entities": after.0, "relationships": after.1 },
            });
            if let Some(fault) = fault {
                data["modelFault"] = fault.into();
            }
            tx.record("WebPageStatedAgain", data).map(drop)
        })?;
        self.follow_entities(&caller)
    }
}
