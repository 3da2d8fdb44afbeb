//! Keys that the operator trusts to sign tools.

use crate::Kami;
use kenning_core::{Did, Error, Hash, Result};
use kenning_kernel::{Bucket, Caller, Scope, Text, check_plain_name};
use kenning_sandbox::signature::PublicKey;
use kenning_store::ReadTx;
use serde_json::json;

/// The bucket of trusted keys.
const TRUSTED: Bucket<Text> = Bucket::new("tools/trusted");

/// A key that the operator trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    /// 64 hexadecimal digits.
    pub key: String,
    /// The name of its owner.
    pub name: String,
}

/// The keys that the operator trusts.
pub fn trusted(tx: &dyn ReadTx) -> Result<Vec<PublicKey>> {
    let all = TRUSTED.keys(tx)?;
    Ok(all
        .iter()
        .filter_map(|key| PublicKey::parse(key).ok())
        .collect())
}

/// A public key: 64 hexadecimal digits, or the `did:key:` of a signature.
pub(super) fn public_key(text: &str) -> Result<PublicKey> {
    let did = text.parse::<Did>().ok().and_then(|it| it.public_key());
    match did {
        Some(bytes) => PublicKey::parse(&Hash(bytes).to_string()),
        None => PublicKey::parse(text),
    }
}

impl Kami {
    /// Trusts a key to sign tools.
    pub fn trust_key(&self, caller: &Caller, key: &str, name: &str) -> Result<TrustedKey> {
        caller.principal.require(Scope::Admin)?;
        let key = public_key(key)?.to_string();
        check_plain_name("key", name)?;
        let trusted = TrustedKey {
            key: key.clone(),
            name: name.to_owned(),
        };
        let name = name.to_owned();
        self.kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                TRUSTED.set(tx, &key, &Text(name.clone()))?;
                tx.record("KeyTrusted", json!({ "key": key, "name": name }))
                    .map(drop)
            })?;
        Ok(trusted)
    }

    /// Removes a trusted key. Tools that it signed stay installed.
    pub fn distrust_key(&self, caller: &Caller, key: &str) -> Result<()> {
        caller.principal.require(Scope::Admin)?;
        let key = public_key(key)?.to_string();
        self.kernel.log().write(&caller.principal.space, move |tx| {
            if !TRUSTED.has(&**tx, &key)? {
                return Err(
                    Error::not_found("trusted key", &key).hint("`kami trust list` lists them")
                );
            }
            TRUSTED.unset(tx, &key)?;
            tx.record("KeyDistrusted", json!({ "key": key })).map(drop)
        })
    }

    /// The keys that are trusted.
    pub fn trusted_keys(&self, caller: &Caller) -> Result<Vec<TrustedKey>> {
        caller.principal.require(Scope::Read)?;
        let all = self
            .kernel
            .log()
            .read(&caller.principal.space, |tx| TRUSTED.list(tx))?;
        let all = all
            .into_iter()
            .map(|(key, name)| TrustedKey { key, name: name.0 });
        Ok(all.collect())
    }
}
