//! The token of whoever started the server: a file in the data directory that only its owner can
//! read.
//!
//! An address of this machine does not say who is calling: other users of the machine connect from it
//! too, and so does a proxy (nginx, socat, `ssh -R`) for every visitor it has. Whoever can read this
//! file could open the store as well, so it gives nobody more rights.

use crate::{Kernel, Principal};
use kenning_core::{Code, Error, Random, Result};
use kenning_vault::Dir;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

/// Its name in the data directory.
const FILE: &str = "http.token";
const BYTES_MAX: u64 = 256;

/// The prefix of such a token. No token of the store has this id: theirs are longer.
pub const LOCAL_TOKEN_PREFIX: &str = "kng_local_";

/// The token in this data directory; created if there is none, or if others could have read it.
///
/// # Errors
/// Unavailable if the file cannot be read or created.
pub fn local_token(data: &Dir, random: &dyn Random) -> Result<String> {
    if let Some(token) = read(data)? {
        return Ok(token);
    }
    let mut secret = [0; 32];
    random.fill(&mut secret);
    let token = format!("{LOCAL_TOKEN_PREFIX}{}", bs58::encode(secret).into_string());
    // If two processes create it at once, one wins, and both read what it wrote.
    if !data.create_new_private(FILE, token.as_bytes())? && read(data)?.is_none() {
        data.write_private(FILE, token.as_bytes())?;
    }
    read(data)?.ok_or_else(|| {
        Error::unavailable(format!("`{FILE}` in the data directory is not a token"))
            .hint("remove it: a new one is made")
    })
}

/// The content of the file; `None` if it is missing, is not a token, or could have been read by
/// others.
fn read(data: &Dir) -> Result<Option<String>> {
    let file = match data.open_read(FILE) {
        Ok(file) => file,
        Err(error) if error.code == Code::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let unreadable = |cause: std::io::Error| {
        Error::unavailable(format!("`{FILE}` in the data directory cannot be read")).because(cause)
    };
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    let mut text = String::new();
    let mut part = file.take(BYTES_MAX);
    if mode & 0o077 != 0 {
        return Ok(None);
    }
    match part.read_to_string(&mut text) {
        Ok(_) => {}
        // What is not text is not a token; a read error may hide one.
        Err(cause) if cause.kind() == std::io::ErrorKind::InvalidData => return Ok(None),
        Err(cause) => return Err(unreadable(cause)),
    }
    let token = text.trim();
    let secret = token.strip_prefix(LOCAL_TOKEN_PREFIX);
    // A short one could be guessed.
    let is_long = secret.is_some_and(|it| it.len() >= 40);
    Ok(is_long.then(|| token.to_owned()))
}

impl Kernel {
    /// The owner, if this is the token of the data directory.
    pub(crate) fn authenticate_local(&self, token: &str) -> Result<Option<Principal>> {
        let known = read(&self.data)?;
        // BLAKE3's own comparison takes constant time.
        let is_same =
            known.is_some_and(|it| blake3::hash(it.as_bytes()) == blake3::hash(token.as_bytes()));
        Ok(is_same.then(|| Principal::owner(self.vault.space().clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(std::sync::atomic::AtomicU8);

    impl Random for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
        }
    }

    #[test]
    fn a_token_is_made_once_and_again_when_others_could_have_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = Dir::open(folder.path()).unwrap();
        let random = Counting(std::sync::atomic::AtomicU8::new(0));
        let first = local_token(&data, &random).unwrap();
        assert!(first.starts_with(LOCAL_TOKEN_PREFIX), "{first}");
        assert_eq!(local_token(&data, &random).unwrap(), first);
        let path = folder.path().join(FILE);
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, open).unwrap();
        let second = local_token(&data, &random).unwrap();
        assert_ne!(second, first);
        assert_eq!(mode(), 0o600);
        for bad in ["", "kng_local_", "kng_local_short", "hello"] {
            data.write_private(FILE, bad.as_bytes()).unwrap();
            let made = local_token(&data, &random).unwrap();
            assert!(made.len() > 40, "{bad}: {made}");
        }
    }
}
