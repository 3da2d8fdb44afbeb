//! Signing one item or many.

use super::super::load::scope;
use super::super::words::{Answer, with_details};
use super::{Doing, LISTED_MAX, short};
use kenning_core::{Error, Result};
use kenning_engine::kiwi::{
    ItemType, NewItem, SignAs, SignCandidate, SignItem, SignState, SignedItem,
};
use serde_json::{Value, json};

impl Doing<'_> {
    fn is_server_tool(&self, name: &str) -> bool {
        let mut tools = self.ctx.others.all().iter();
        tools.any(|tool| tool.name() == name)
    }

    pub(super) fn sign(self, sign_as: SignAs) -> Result<Answer> {
        let id = &self.target.id;
        if id.contains(['*', '?']) {
            return self.sign_many(sign_as);
        }
        let is_taken = self.is_server_tool(id);
        if self.target.item_type == ItemType::Tool && is_taken {
            return Err(
                Error::conflict(format!("a tool of this server is called `{id}` already"))
                    .hint("give the item another id"),
            );
        }
        let location = self.text("location")?;
        let location = location
            .as_deref()
            .map(|it| scope("parameters.location", it))
            .transpose()?;
        let content = match self.text("content")? {
            None => None,
            Some(content) => Some(NewItem {
                content,
                extension: self.text("extension")?,
                fields: self.parameters.clone(),
            }),
        };
        let what = SignItem {
            target: self.target.clone(),
            sign_as,
            location,
            category: self.text("category")?,
            content,
        };
        let done = with_details(
            self.ctx,
            self.ctx.engine.kiwi().sign_item(self.ctx.caller, &what),
        )?;
        let (status, action) = match sign_as {
            SignAs::Sign => ("signed", "sign"),
            SignAs::Create => ("created", "create"),
            SignAs::Update => ("updated", "update"),
        };
        Ok(self.answer(status, action, signed(done)))
    }

    /// Signs every item that matches a pattern, once somebody has confirmed the list.
    fn sign_many(self, sign_as: SignAs) -> Result<Answer> {
        let (ctx, pattern) = (self.ctx, &self.target.id);
        if sign_as != SignAs::Sign {
            return Err(
                Error::invalid(format!("item_id: `{pattern}` is a pattern of many items"))
                    .hint("only action `sign` takes a pattern"),
            );
        }
        let location = self.text("location")?;
        let location = location
            .as_deref()
            .map(|it| scope("parameters.location", it))
            .transpose()?;
        let found = ctx
            .engine
            .kiwi()
            .sign_candidates(ctx.caller, &self.target, location);
        let found = with_details(ctx, found)?;
        let (to_sign, rest): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|it| it.state.is_to_sign());
        let n_unchanged = rest.iter().filter(|it| it.state == SignState::Signed);
        let n_unchanged = n_unchanged.count();
        let invalid: Vec<&SignCandidate> = rest
            .iter()
            .filter(|it| it.state == SignState::Invalid)
            .collect();
        let listed = to_sign.iter().chain(invalid.iter().copied());
        let listed: Vec<Value> = listed.take(LISTED_MAX).map(candidate).collect();
        let list = json!({
            "items": listed, "total": to_sign.len(), "invalid": invalid.len(),
            "unchanged": n_unchanged,
        });
        if self.target.dry_run {
            return Ok(self.answer("signed", "sign", list));
        }
        let may_sign = ctx
            .engine
            .kiwi()
            .require_may_sign_many(ctx.caller, &self.target, location);
        if may_sign.is_err() {
            ctx.detail(list.clone());
        }
        with_details(ctx, may_sign)?;
        let is_confirmed = self.parameters.get("confirm") == Some(&Value::Bool(true));
        if !is_confirmed && !to_sign.is_empty() {
            ctx.detail(list);
            ctx.detail(json!({ "required": { "confirm": true } }));
            let n = to_sign.len();
            let error = format!("Signing {n} items requires confirmation");
            return Err(Error::invalid(error)
                .hint("look at `items`, then give `parameters: {\"confirm\": true}`"));
        }
        let (mut signed, mut failed) = (Vec::new(), Vec::new());
        for it in invalid.iter().copied() {
            failed.push(json!({ "id": it.id, "path": it.path, "error": it.issues.join("; ") }));
        }
        for it in &to_sign {
            let is_taken = self.is_server_tool(&it.id);
            if self.target.item_type == ItemType::Tool && is_taken {
                let error = "a tool of this server has this name already";
                failed.push(json!({ "id": it.id, "path": it.path, "error": error }));
                continue;
            }
            match ctx
                .engine
                .kiwi()
                .sign_candidate_item(ctx.caller, &self.target, it)
            {
                Ok(done) => signed.push(json!({
                    "id": done.id, "version": done.version, "category": done.category,
                    "path": done.path, "integrity": done.hash,
                })),
                Err(fault) => failed
                    .push(json!({ "id": it.id, "path": it.path, "error": fault.error.message })),
            }
        }
        let summary = format!(
            "{} signed, {} failed, {n_unchanged} signed before",
            signed.len(),
            failed.len()
        );
        let total = signed.len() + failed.len();
        let truncated = (total > LISTED_MAX).then_some(true);
        signed.truncate(LISTED_MAX);
        failed.truncate(LISTED_MAX);
        let fields = json!({
            "signed": signed, "failed": failed, "unchanged": n_unchanged, "total": total,
            "summary": summary, "truncated": truncated,
        });
        if signed.is_empty() && !failed.is_empty() {
            ctx.detail(fields);
            return Err(Error::invalid("None of the items could be signed")
                .hint("`failed` says what is wrong with each"));
        }
        Ok(self.answer("signed", "sign", fields))
    }
}

/// An item that would be signed.
fn candidate(it: &SignCandidate) -> Value {
    let mut fields = json!({
        "id": it.id, "category": it.category, "location": it.location.word(), "path": it.path,
        "state": it.state.word(),
    });
    if !it.version.is_empty() {
        fields["version"] = it.version.as_str().into();
    }
    if !it.issues.is_empty() {
        fields["validation_issues"] = it.issues.clone().into();
    }
    fields
}

fn signed(done: SignedItem) -> Value {
    json!({
        "version": done.version, "category": done.category, "location": done.location.word(),
        "path": done.path,
        "signed": done.signer.is_none().then_some(false),
        "next": done.next,
        "signature": done.signer.map(|signer| {
            json!({ "hash": done.hash, "timestamp": done.at, "signer": signer })
        }),
        "warnings": Some(done.warnings).filter(|it| !it.is_empty()),
        "integrity_short": short(Some(&done.hash)), "integrity": done.hash,
        "moved": done.moved_from.is_some().then_some(true),
        "old_category": done.moved_from,
        "new_category": done.moved_from.is_some().then_some(&done.category),
    })
}
