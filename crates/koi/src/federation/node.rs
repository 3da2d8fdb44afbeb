//! This node: its key, its profile, and what it shares.

use super::carrier;
use super::records::{self, DOCUMENT, NODE, NodeRow, SELF};
use crate::Koi;
use kenning_core::{Error, Result, Space};
use kenning_federation::envelope::{handover, seal};
use kenning_federation::{Bundle, Json, NodeProfile, NodeRid, NodeType, Payload, Rid, SecretKey};
use kenning_kernel::{Caller, Scope};
use kenning_store::ReadTx;
use kenning_text::hex;
use serde_json::json;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The name of the key file in the data directory.
const KEY_FILE: &str = "koi-net.key";

/// How the federation is turned on, or what is changed of it.
#[derive(Clone, Debug, Default)]
pub struct FederationSetup {
    /// The part of its RID that people read; only when it is turned on.
    pub name: Option<String>,
    /// Where others call this node.
    pub base_url: Option<String>,
    /// Types that peers may get.
    pub provides: Option<Vec<String>>,
    /// Whether unsigned questions are refused wherever they come from.
    pub strict: Option<bool>,
    /// A key in PKCS#8 PEM form, to go on as the node that had it.
    pub key_pem: Option<String>,
}

/// Who this node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederationIdentity {
    /// Its RID.
    pub rid: String,
    /// Its name.
    pub name: String,
    /// Where others call it.
    pub base_url: Option<String>,
    /// Its key.
    pub public_key: String,
    /// Types that peers may get.
    pub provides: Vec<String>,
    /// The types of RIDs that these are.
    pub rid_types: Vec<String>,
    /// Whether unsigned questions are refused wherever they come from.
    pub is_strict: bool,
}

/// Everything that is needed to speak as this node.
pub(super) struct Me {
    pub(super) row: NodeRow,
    pub(super) rid: NodeRid,
    pub(super) key: Arc<SecretKey>,
    pub(super) profile: NodeProfile,
}

impl Me {
    /// The profile, as it is told to others.
    pub(super) fn bundle(&self) -> Result<Bundle> {
        Bundle::of(
            &Rid::parse(self.rid.as_str())?,
            self.profile.to_json(),
            self.row.profile_ms,
        )
    }

    /// A signed message.
    pub(super) fn seal(&self, koi: &Koi, payload: &Payload, target: &str) -> String {
        self.seal_json(koi, &payload.to_json(), target)
    }

    pub(super) fn seal_json(&self, koi: &Koi, payload: &Json, target: &str) -> String {
        let mut salt = [0; 32];
        koi.kernel.log().random().fill(&mut salt);
        seal(payload, &self.rid, target, &self.key, &salt)
    }

    /// The profile in the form of Octo's handshake.
    pub(super) fn octo_profile(&self) -> Json {
        let profile = self.profile.to_json();
        let part = |name: &str| profile.get(name).cloned().unwrap_or(Json::Null);
        Json::object([
            ("node_rid", Json::text(self.rid.as_str())),
            ("node_name", Json::text(&self.row.name)),
            ("node_type", part("node_type")),
            ("base_url", part("base_url")),
            ("provides", part("provides")),
            ("public_key", part("public_key")),
            (
                "ontology_uri",
                Json::text("http://bkc.regen.network/ontology"),
            ),
            ("ontology_version", Json::text("1.0.0")),
        ])
    }
}

impl Koi {
    /// The space that is federated: that of the directories.
    pub(super) fn federated_space(&self) -> Space {
        self.kernel.vault().space().clone()
    }

    /// Admits callers of the space that is federated, and no others.
    pub(super) fn require_federated(&self, caller: &Caller, scope: Scope) -> Result<()> {
        caller.principal.require(scope)?;
        let space = self.federated_space();
        if caller.principal.space == space {
            return Ok(());
        }
        Err(Error::denied(format!(
            "federation belongs to the space `{space}`, not to `{}`",
            caller.principal.space
        ))
        .hint("use a token of that space"))
    }

    pub(super) fn federation_now(&self) -> u64 {
        self.kernel.log().clock().now_ms()
    }

    /// This node, if the federation is on.
    pub(super) fn me(&self) -> Result<Option<Me>> {
        let space = self.federated_space();
        self.kernel.log().read(&space, |tx| self.me_in(tx))
    }

    pub(super) fn me_in(&self, tx: &dyn ReadTx) -> Result<Option<Me>> {
        let Some(row) = records::node(tx)? else {
            return Ok(None);
        };
        let key = self.federation_key()?;
        let rid = NodeRid::of(&row.name, &key.public())?;
        let types: Vec<String> = records::rid_types(&row.provides);
        let profile = NodeProfile {
            base_url: row.base_url.clone(),
            node_type: match row.base_url {
                Some(_) => NodeType::Full,
                None => NodeType::Partial,
            },
            provides_event: types.clone(),
            provides_state: types,
            public_key: key.public().as_str().to_owned(),
            kenning_did: Some(self.kernel.log().signer().did().to_string()),
            successor_of: row.successor_of.clone(),
        };
        Ok(Some(Me {
            row,
            rid,
            key,
            profile,
        }))
    }

    /// This node, or what to do to have one.
    pub(super) fn require_me(&self) -> Result<Me> {
        self.me()?.ok_or_else(|| {
            Error::new(kenning_core::Code::NotFound, "this node does not federate")
                .hint("`kenning federation init` turns it on")
        })
    }

    /// The key in its file. Two processes that start at once agree on the one that is there first.
    fn federation_key(&self) -> Result<Arc<SecretKey>> {
        if let Some(key) = self.federation.key() {
            return Ok(key);
        }
        let bytes = Zeroizing::new(self.kernel.data().read(KEY_FILE, 1_024)?);
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        let secret = hex::decode_array::<32>(text.trim()).map(Zeroizing::new);
        let key = secret
            .and_then(|it| SecretKey::from_secret(&it))
            .ok_or_else(|| {
                Error::corrupt(format!("`{KEY_FILE}` in the data directory is not a key"))
                    .hint("restore it from a copy: another key is another node to all peers")
            })?;
        Ok(self.federation.keep_key(key))
    }

    fn make_federation_key(&self, pem: Option<&str>) -> Result<()> {
        let has_key = self.kernel.data().exists(KEY_FILE)?;
        let key = match pem {
            Some(_) if has_key => {
                return Err(Error::conflict("this node has a key already")
                    .hint(format!("move `{KEY_FILE}` out of the data directory first")));
            }
            Some(pem) => SecretKey::from_pem(pem)?,
            None if has_key => return Ok(()),
            None => self.new_federation_key(),
        };
        let text = Zeroizing::new(hex::encode(&*key.secret()));
        self.kernel
            .data()
            .create_new_private(KEY_FILE, text.as_bytes())?;
        Ok(())
    }

    fn new_federation_key(&self) -> SecretKey {
        loop {
            let mut secret = Zeroizing::new([0; 32]);
            self.kernel.log().random().fill(&mut *secret);
            // All but a few of 2^32 secrets are keys.
            if let Some(key) = SecretKey::from_secret(&secret) {
                return key;
            }
        }
    }

    /// Turns the federation on, or changes how this node takes part. Nothing is provided that is not named.
    ///
    /// # Errors
    /// Denied without the scope `admin`; invalid for a name, an address or a type that cannot be.
    pub fn set_up_federation(
        &self,
        caller: &Caller,
        setup: FederationSetup,
    ) -> Result<FederationIdentity> {
        self.require_federated(caller, Scope::Admin)?;
        self.kernel.writable()?;
        let space = self.federated_space();
        let base_url = setup.base_url.map(|it| it.trim_end_matches('/').to_owned());
        if let Some(url) = base_url.as_deref().filter(|it| !it.is_empty()) {
            carrier::check_url(url)?;
        }
        let provides = match setup.provides {
            Some(types) => Some(self.checked_types(&types)?),
            None => None,
        };
        let before = self.kernel.log().read(&space, records::node)?;
        if let (Some(before), Some(name)) = (&before, &setup.name)
            && before.name != *name
        {
            return Err(
                Error::conflict(format!("this node is called `{}`", before.name))
                    .hint("its name is part of its RID, by which others know it, and stays"),
            );
        }
        let name = setup.name.or(before.as_ref().map(|it| it.name.clone()));
        let name = name.unwrap_or_else(|| "kenning".to_owned());
        self.make_federation_key(setup.key_pem.as_deref())?;
        NodeRid::of(&name, &self.federation_key()?.public())?;
        let now = self.federation_now();
        let row = NodeRow {
            name,
            base_url: match base_url {
                Some(url) => Some(url).filter(|it| !it.is_empty()),
                None => before.as_ref().and_then(|it| it.base_url.clone()),
            },
            provides: match provides {
                Some(types) => types,
                None => before
                    .as_ref()
                    .map(|it| it.provides.clone())
                    .unwrap_or_default(),
            },
            is_strict: setup
                .strict
                .unwrap_or(before.as_ref().is_none_or(|it| it.is_strict)),
            profile_ms: now,
            successor_of: before.as_ref().and_then(|it| it.successor_of.clone()),
        };
        self.kernel.log().write(&space, move |tx| {
            let mut row = row;
            if let Some(before) = records::node(&**tx)? {
                let unchanged = NodeRow {
                    profile_ms: before.profile_ms,
                    ..row.clone()
                };
                if unchanged == before {
                    return Ok(());
                }
                // A profile with the same contents is the same to others.
                if (&before.base_url, &before.provides) == (&row.base_url, &row.provides) {
                    row.profile_ms = before.profile_ms;
                } else {
                    row.profile_ms = row.profile_ms.max(before.profile_ms + 1);
                }
                if before.provides != row.provides {
                    records::publish_anew(tx)?;
                }
            }
            NODE.set(tx, SELF, &row)?;
            let data = json!({
                "name": row.name, "baseUrl": row.base_url, "provides": row.provides,
                "strict": row.is_strict,
            });
            tx.record("FederationSetUp", data).map(drop)
        })?;
        self.federation.wake();
        self.federation_identity(caller)
    }

    /// Who this node is.
    ///
    /// # Errors
    /// Not found if the federation is off.
    pub fn federation_identity(&self, caller: &Caller) -> Result<FederationIdentity> {
        self.require_federated(caller, Scope::Read)?;
        let me = self.require_me()?;
        Ok(FederationIdentity {
            rid: me.rid.to_string(),
            name: me.row.name,
            base_url: me.row.base_url,
            public_key: me.profile.public_key,
            provides: me.row.provides,
            rid_types: me.profile.provides_event,
            is_strict: me.row.is_strict,
        })
    }

    /// Replaces the key. The old one signs who takes its place, so that peers of this program go on with the
    /// new one; others have to be connected again.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found if the federation is off.
    pub fn rotate_federation_key(&self, caller: &Caller) -> Result<FederationIdentity> {
        self.require_federated(caller, Scope::Admin)?;
        self.kernel.writable()?;
        let me = self.require_me()?;
        let key = self.new_federation_key();
        let new = NodeRid::of(&me.row.name, &key.public())?;
        let mut salt = [0; 32];
        self.kernel.log().random().fill(&mut salt);
        let signature = me.key.sign(handover(&me.rid, &new).as_bytes(), &salt);
        let row = NodeRow {
            successor_of: Some((me.rid.to_string(), signature)),
            profile_ms: self.federation_now(),
            ..me.row.clone()
        };
        let old = Zeroizing::new(hex::encode(&*me.key.secret()));
        let text = Zeroizing::new(hex::encode(&*key.secret()));
        let data = self.kernel.data();
        // The old key stays beside the new one: whoever is killed here can go back.
        data.write_private(&format!("{KEY_FILE}.old"), old.as_bytes())?;
        data.write_private(KEY_FILE, text.as_bytes())?;
        self.federation.forget_key();
        let (from, to) = (me.rid.to_string(), new.to_string());
        self.kernel
            .log()
            .write(&self.federated_space(), move |tx| {
                NODE.set(tx, SELF, &row)?;
                records::forget_edges(tx, |_| true)?;
                tx.record("FederationKeyRotated", json!({ "from": from, "to": to }))
                    .map(drop)
            })?;
        self.federation.wake();
        self.federation_identity(caller)
    }

    /// Types by the names of the ontology, or `Document`.
    pub(super) fn checked_types(&self, types: &[String]) -> Result<Vec<String>> {
        let space = self.federated_space();
        self.kernel.log().read(&space, |tx| {
            let ontology = self.ontology(&space, tx)?;
            let mut checked: Vec<String> = Vec::new();
            for name in types.iter().map(|it| it.trim()).filter(|it| !it.is_empty()) {
                let key = match ontology.kind(name) {
                    Some(kind) => kind.key.clone(),
                    None if name.eq_ignore_ascii_case(DOCUMENT) => DOCUMENT.to_owned(),
                    None => {
                        let known: Vec<&str> =
                            ontology.kinds().iter().map(|it| it.key.as_str()).collect();
                        return Err(
                            Error::invalid(format!("`provides`: `{name}` is not a type"))
                                .hint(format!("use {} or {DOCUMENT}", known.join(", "))),
                        );
                    }
                };
                if !checked.contains(&key) {
                    checked.push(key);
                }
            }
            Ok(checked)
        })
    }
}
