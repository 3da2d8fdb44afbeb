//! Tokens for HTTP.
//!
//! A token is `kng_<id>_<secret>`; only the hash of the secret is stored, in a space that no token
//! can be bound to. Making and revoking one are events of that space's log.

use crate::bucket::{Bucket, RowCodec};
use crate::{Caller, Kernel, LOCAL_TOKEN_PREFIX, Principal, Scope, Waited};
use kenning_audit::Tx;
use kenning_core::{Error, Hash, Result, Space};
use serde_json::{Value, json};

/// By their public parts.
const TOKENS: Bucket<Stored> = Bucket::new("tokens");
const PREFIX: &str = "kng";
/// Longer than any token that is made here.
const TOKEN_BYTES_MAX: usize = 128;

/// The space of what belongs to no tenant.
pub(crate) fn system_space() -> Space {
    // The name is valid.
    "_system".parse().unwrap_or_default()
}

/// A token to make.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// A name for people and for the log.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// The one space it sees.
    pub space: Space,
    /// Until when, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// A token as it is listed: without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenView {
    /// Its public part.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// The one space it sees.
    pub space: Space,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Until when, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

struct Stored {
    view: TokenView,
    secret_hash: Hash,
}

impl Stored {
    /// What is listed; the key of the row is the id.
    fn into_view(self, id: &str) -> TokenView {
        TokenView {
            id: id.to_owned(),
            ..self.view
        }
    }
}

impl RowCodec for Stored {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        let view = &self.view;
        let scopes: Vec<&str> = view.scopes.iter().map(|it| it.as_str()).collect();
        let row = json!({
            "name": view.name, "scopes": scopes, "space": view.space.as_str(),
            "created_ms": view.created_ms, "expires_ms": view.expires_ms,
            "secret_hash": self.secret_hash.to_string(),
        });
        Ok(row.to_string().into_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let scopes = value.get("scopes")?.as_array()?;
        let scopes = scopes
            .iter()
            .map(|it| it.as_str()?.parse().ok())
            .collect::<Option<_>>()?;
        let view = TokenView {
            id: String::new(),
            name: value.get("name")?.as_str()?.to_owned(),
            scopes,
            space: value.get("space")?.as_str()?.parse().ok()?,
            created_ms: value.get("created_ms")?.as_u64()?,
            expires_ms: value.get("expires_ms")?.as_u64(),
        };
        let secret_hash = Hash::from_hex(value.get("secret_hash")?.as_str()?)?;
        Some(Self { view, secret_hash })
    }
}

/// Refuses a name that could move the cursor or forge a line where it is shown. `of` says whose name it is.
///
/// # Errors
/// Invalid input if it has control characters or marks that change the direction of writing.
pub fn check_plain_name(of: &str, name: &str) -> Result<()> {
    let is_bad = |c: char| {
        c.is_control()
            || matches!(u32::from(c), 0x202a..=0x202e | 0x2066..=0x2069 | 0xe0000..=0xe007f)
    };
    if name.contains(is_bad) {
        let name = name.escape_debug();
        return Err(Error::invalid(format!("`{name}` is not a name for a {of}"))
            .hint("leave out control characters"));
    }
    Ok(())
}

impl Kernel {
    /// Makes a token and returns it. This is the only time that it can be seen.
    pub fn create_token(&self, caller: &Caller, new: NewToken) -> Result<String> {
        caller.principal.require(Scope::Admin)?;
        if new.space == system_space() {
            return Err(Error::denied(
                "no token can be bound to the space `_system`",
            ));
        }
        check_plain_name("token", &new.name)?;
        if new.scopes.is_empty() {
            return Err(Error::invalid("a token needs at least one scope")
                .hint("`--scopes read,write` for example"));
        }
        let (mut id, mut secret) = ([0; 6], [0; 24]);
        self.log.random().fill(&mut id);
        self.log.random().fill(&mut secret);
        let id = bs58::encode(id).into_string();
        let secret = bs58::encode(secret).into_string();
        let stored = Stored {
            secret_hash: Hash::of(secret.as_bytes()),
            view: TokenView {
                id: id.clone(),
                name: new.name,
                scopes: new.scopes,
                space: new.space,
                created_ms: self.log.clock().now_ms(),
                expires_ms: new.expires_ms,
            },
        };
        let token = format!("{PREFIX}_{id}_{secret}");
        let write = move |tx: &mut Tx<'_>| {
            TOKENS.set(tx, &id, &stored)?;
            let view = stored.view;
            tx.record("TokenCreated", json!({ "id": id, "name": view.name }))
        };
        self.with_wait_limit(caller.waited, || self.log.write(&system_space(), write))?;
        Ok(token)
    }

    /// Every token, without its secret.
    pub fn tokens(&self, caller: &Caller) -> Result<Vec<TokenView>> {
        caller.principal.require(Scope::Admin)?;
        let read = || self.log.read(&system_space(), |tx| TOKENS.list(tx));
        let rows = self.with_wait_limit(caller.waited, read)?.into_iter();
        Ok(rows.map(|(id, it)| it.into_view(&id)).collect())
    }

    /// Revokes a token by its id.
    pub fn revoke_token(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.principal.require(Scope::Admin)?;
        let id = id.to_owned();
        let write = move |tx: &mut Tx<'_>| {
            if !TOKENS.has(&**tx, &id)? {
                return Err(Error::not_found("token", &id).hint("`kenning token list` lists them"));
            }
            TOKENS.unset(tx, &id)?;
            tx.record("TokenRevoked", json!({ "id": id }))?;
            Ok(())
        };
        self.with_wait_limit(caller.waited, || self.log.write(&system_space(), write))
    }

    /// Revokes every token that came with a restored backup, and returns how many there were.
    pub(crate) fn revoke_restored_tokens(&self, caller: &Caller) -> Result<u64> {
        caller.principal.require(Scope::Admin)?;
        let ids = self.log.read(&system_space(), |tx| TOKENS.keys(tx))?;
        if ids.is_empty() {
            return Ok(0);
        }
        self.log.write(&system_space(), move |tx| {
            for id in &ids {
                TOKENS.unset(tx, id)?;
                tx.record("TokenRevoked", json!({ "id": id, "reason": "restored" }))?;
            }
            Ok(ids.len() as u64)
        })
    }

    /// What a token may do now, by its id: for work that outlives the call that asked for it. `None` if it was
    /// revoked or has expired.
    ///
    /// # Errors
    /// Those of the store.
    pub fn scopes_of_token(&self, id: &str) -> Result<Option<Vec<Scope>>> {
        let stored = self
            .log
            .read(&system_space(), |tx| TOKENS.get_readable(tx, id))?;
        let now_ms = self.log.clock().now_ms();
        let view = stored.map(|it| it.into_view(id));
        let view = view.filter(|it| it.expires_ms.is_none_or(|end| end > now_ms));
        Ok(view.map(|it| it.scopes))
    }

    /// The principal of a token. Every refusal reads the same.
    pub fn authenticate(&self, token: &str) -> Result<Principal> {
        let refused = || {
            Error::unauthenticated("the token is unknown or no longer valid")
                .hint("make one with `kenning token create`")
        };
        if token.trim().starts_with(LOCAL_TOKEN_PREFIX) {
            return self.authenticate_local(token.trim())?.ok_or_else(refused);
        }
        let mut parts = token.trim().splitn(3, '_');
        let (Some(PREFIX), Some(id), Some(secret)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(refused());
        };
        // A longer text is not looked up.
        if token.len() > TOKEN_BYTES_MAX {
            return Err(refused());
        }
        let read = || {
            let log = &self.log;
            log.read(&system_space(), |tx| TOKENS.get_readable(tx, id))
        };
        let stored = self.with_wait_limit(Waited::default(), read)?;
        // An unknown id is compared too, so that it takes as long as a known one.
        let expected = stored
            .as_ref()
            .map_or_else(Hash::default, |it| it.secret_hash);
        // BLAKE3's own comparison takes constant time.
        let same = blake3::hash(secret.as_bytes()) == blake3::Hash::from_bytes(expected.0);
        let view = stored.filter(|_| same).ok_or_else(refused)?.into_view(id);
        if view
            .expires_ms
            .is_some_and(|end| end <= self.log.clock().now_ms())
        {
            return Err(refused());
        }
        Ok(Principal {
            name: view.name,
            space: view.space,
            scopes: view.scopes,
            token: Some(view.id),
            project: None,
        })
    }
}
