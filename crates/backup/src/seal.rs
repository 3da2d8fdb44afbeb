//! Encryption with a passphrase.
//!
//! A sealed stream begins with a header, then come chunks of 64 KiB, each with its own tag:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `kenning` and the version of the format |
//! | 12 | memory (KiB), passes and lanes of Argon2id, big-endian |
//! | 16 | a random salt |
//! | 19 | a random nonce |
//! | 16 | half of what Argon2id gave, to know the passphrase by |
//! | 8 | the beginning of the SHA-256 of all that |
//!
//! The chunks are XChaCha20-Poly1305 in the STREAM construction: the nonce of each holds its number
//! and whether it is the last, so a chunk that is missing, moved, repeated or cut off is noticed. The
//! header and the name of the object are authenticated with every chunk, so neither can be exchanged
//! with another backup's.
//!
//! The header's own checksum is what tells a damaged header from a wrong passphrase.

use crate::stream::unwrap_error;
use aead_stream::{DecryptorBE32, EncryptorBE32};
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::Payload;
use kenning_core::{Error, Random, Result};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, Read, Write};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"kenning\x01";
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 19;
const PROOF_BYTES: usize = 16;
const CHECK_BYTES: usize = 8;
/// All of the header but its checksum.
const BODY_BYTES: usize = 8 + 12 + SALT_BYTES + NONCE_BYTES + PROOF_BYTES;
const CHUNK_BYTES: usize = 64 * 1024;
const TAG_BYTES: usize = 16;

/// The highest key derivation costs that are accepted from a file.
const MEMORY_KIB_MAX: u32 = 1024 * 1024;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 16;

/// What a backup is sealed with. Never shown.
#[derive(Clone)]
pub struct Passphrase {
    text: Zeroizing<String>,
    cost: Cost,
}

/// The cost of deriving a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) memory_kib: u32,
    pub(crate) passes: u32,
    pub(crate) lanes: u32,
}

impl Cost {
    /// The second choice of RFC 9106, with one lane because we compute them one after the other.
    const NORMAL: Self = Self {
        memory_kib: 64 * 1024,
        passes: 3,
        lanes: 1,
    };
}

impl Passphrase {
    /// Any text but an empty one.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = Zeroizing::new(text.into());
        if text.is_empty() {
            return Err(Error::invalid("the passphrase is empty")
                .hint("set `MOLTVAULT_KEY` to a long text, or do not ask for encryption"));
        }
        let cost = Cost::NORMAL;
        Ok(Self { text, cost })
    }

    #[cfg(test)]
    pub(crate) fn cheap(text: &str) -> Self {
        let cost = Cost {
            memory_kib: 8,
            passes: 1,
            lanes: 1,
        };
        let text = Zeroizing::new(text.to_owned());
        Self { text, cost }
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

/// The key derived from a passphrase, and a value that proves that the passphrase is right.
struct Derived(Zeroizing<[u8; 32 + 32]>);

impl Derived {
    fn new(passphrase: &Passphrase, salt: &[u8], cost: Cost) -> Result<Self> {
        let failed = |cause| Error::internal("the key could not be derived").because(cause);
        let mut bytes = Zeroizing::new([0; 64]);
        let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(64));
        let params = params.map_err(|cause| failed(cause.to_string()))?;
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.text.as_bytes(), salt, &mut *bytes)
            .map_err(|cause| failed(cause.to_string()))?;
        Ok(Self(bytes))
    }

    fn key(&self) -> [u8; 32] {
        std::array::from_fn(|n| self.0[n])
    }

    fn proof(&self) -> [u8; PROOF_BYTES] {
        std::array::from_fn(|n| self.0[32 + n])
    }
}

/// Encrypts what is written to it. [`Sealer::finish`] must be called: without it the end is missing,
/// which an [`Opener`] takes for damage.
pub(crate) struct Sealer<W: Write> {
    out: W,
    stream: EncryptorBE32<XChaCha20Poly1305>,
    associated: Vec<u8>,
    buffer: Zeroizing<Vec<u8>>,
}

impl<W: Write> Sealer<W> {
    /// `name` is what the opener must also say.
    pub(crate) fn new(
        mut out: W,
        name: &str,
        passphrase: &Passphrase,
        random: &dyn Random,
    ) -> Result<Self> {
        let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; NONCE_BYTES]);
        random.fill(&mut salt);
        random.fill(&mut nonce);
        let cost = passphrase.cost;
        let derived = Derived::new(passphrase, &salt, cost)?;
        let mut header = Vec::with_capacity(BODY_BYTES + CHECK_BYTES);
        header.extend(MAGIC);
        for number in [cost.memory_kib, cost.passes, cost.lanes] {
            header.extend(number.to_be_bytes());
        }
        header.extend(salt);
        header.extend(nonce);
        header.extend(derived.proof());
        let check = Sha256::digest(&header);
        header.extend(check.iter().take(CHECK_BYTES));
        out.write_all(&header)
            .map_err(|error| unwrap_error(error, "the backup could not be written"))?;
        Ok(Self {
            out,
            stream: EncryptorBE32::new(&derived.key().into(), &nonce.into()),
            associated: associated(header, name),
            buffer: Zeroizing::new(Vec::with_capacity(CHUNK_BYTES)),
        })
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        let payload = Payload {
            msg: &self.buffer,
            aad: &self.associated,
        };
        let sealed = self.stream.encrypt_last(payload).map_err(broken_cipher)?;
        self.out.write_all(&sealed)?;
        Ok(self.out)
    }
}

impl<W: Write> Write for Sealer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full buffer waits for another byte, because the last chunk is sealed as the last.
        if self.buffer.len() == CHUNK_BYTES && !bytes.is_empty() {
            let payload = Payload {
                msg: &self.buffer,
                aad: &self.associated,
            };
            let sealed = self.stream.encrypt_next(payload).map_err(broken_cipher)?;
            self.out.write_all(&sealed)?;
            self.buffer.clear();
        }
        let n = bytes.len().min(CHUNK_BYTES - self.buffer.len());
        self.buffer
            .extend_from_slice(bytes.get(..n).unwrap_or_default());
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Decrypts what a [`Sealer`] wrote. Every byte that it returns was authenticated,
/// and a missing end is an error.
pub(crate) struct Opener<R: Read> {
    input: R,
    /// Gone after the last chunk.
    stream: Option<DecryptorBE32<XChaCha20Poly1305>>,
    associated: Vec<u8>,
    name: String,
    /// Read ahead, to know whether the chunk before it was the last.
    next: Vec<u8>,
    plain: Zeroizing<Vec<u8>>,
    n_given: usize,
}

impl<R: Read> Opener<R> {
    pub(crate) fn new(mut input: R, name: &str, passphrase: &Passphrase) -> Result<Self> {
        let header = read_up_to(&mut input, BODY_BYTES + CHECK_BYTES)
            .map_err(|error| unwrap_error(error, "the backup could not be read"))?;
        let (body, check) = header
            .split_at_checked(BODY_BYTES)
            .ok_or_else(|| damaged(name))?;
        if !body.starts_with(b"kenning") {
            return Err(Error::corrupt(format!(
                "`{name}` is not an encrypted backup"
            )));
        }
        if check.is_empty() || Sha256::digest(body).get(..CHECK_BYTES) != Some(check) {
            return Err(damaged(name));
        }
        if !body.starts_with(MAGIC) {
            return Err(
                Error::invalid(format!("`{name}` is encrypted in a newer format"))
                    .hint("restore it with the version that made it"),
            );
        }
        let mut rest = body.get(MAGIC.len()..).unwrap_or_default();
        let mut number = || u32::from_be_bytes(take_bytes(&mut rest));
        let cost = Cost {
            memory_kib: number(),
            passes: number(),
            lanes: number(),
        };
        if cost.memory_kib > MEMORY_KIB_MAX || cost.passes > PASSES_MAX || cost.lanes > LANES_MAX {
            let why = format!("`{name}` has key derivation costs over the limit");
            return Err(Error::too_large(why));
        }
        let salt: [u8; SALT_BYTES] = take_bytes(&mut rest);
        let nonce: [u8; NONCE_BYTES] = take_bytes(&mut rest);
        let proof: [u8; PROOF_BYTES] = take_bytes(&mut rest);
        let derived = Derived::new(passphrase, &salt, cost)?;
        if derived.proof() != proof {
            return Err(Error::denied(format!("wrong passphrase for `{name}`"))
                .hint("give the passphrase (`MOLTVAULT_KEY`) that the backup was made with"));
        }
        let next = read_up_to(&mut input, CHUNK_BYTES + TAG_BYTES)
            .map_err(|error| unwrap_error(error, "the backup could not be read"))?;
        Ok(Self {
            input,
            stream: Some(DecryptorBE32::new(&derived.key().into(), &nonce.into())),
            associated: associated(header, name),
            name: name.to_owned(),
            next,
            plain: Zeroizing::new(Vec::new()),
            n_given: 0,
        })
    }

    /// Decrypts the chunk that was read ahead. False after the last.
    fn advance(&mut self) -> io::Result<bool> {
        let Some(mut stream) = self.stream.take() else {
            return Ok(false);
        };
        let chunk = std::mem::take(&mut self.next);
        let damaged = || io::Error::other(damaged(&self.name));
        if chunk.len() == CHUNK_BYTES + TAG_BYTES {
            self.next = read_up_to(&mut self.input, CHUNK_BYTES + TAG_BYTES)?;
        }
        let payload = Payload {
            msg: &chunk,
            aad: &self.associated,
        };
        let plain = if self.next.is_empty() {
            stream.decrypt_last(payload).map_err(|_| damaged())?
        } else {
            let plain = stream.decrypt_next(payload).map_err(|_| damaged())?;
            self.stream = Some(stream);
            plain
        };
        self.plain = Zeroizing::new(plain);
        self.n_given = 0;
        Ok(true)
    }
}

impl<R: Read> Read for Opener<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while self.n_given == self.plain.len() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let left = self.plain.get(self.n_given..).unwrap_or_default();
        let n = left.len().min(out.len());
        out.iter_mut().zip(left).for_each(|(to, from)| *to = *from);
        self.n_given += n;
        Ok(n)
    }
}

/// The next bytes of a header, whose length was checked.
fn take_bytes<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (taken, left) = rest.split_first_chunk().unwrap_or((&[0; N], &[]));
    *rest = left;
    *taken
}

fn associated(mut header: Vec<u8>, name: &str) -> Vec<u8> {
    header.extend(name.as_bytes());
    header
}

fn damaged(name: &str) -> Error {
    Error::corrupt(format!(
        "`{name}` is damaged: its bytes do not match their authentication tag"
    ))
    .hint("restore another backup")
}

fn broken_cipher<E>(_: E) -> io::Error {
    io::Error::other(Error::too_large(
        "an encrypted backup has at most 2^32 chunks",
    ))
}

fn read_up_to(input: &mut impl Read, n_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(n_bytes);
    input.take(n_bytes as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::{Code, SeededRandom};

    const HEADER_BYTES: usize = BODY_BYTES + CHECK_BYTES;

    fn sealed(plain: &[u8]) -> Vec<u8> {
        let random = SeededRandom::new(7);
        let passphrase = Passphrase::cheap("correct horse");
        let mut sealer = Sealer::new(Vec::new(), "name", &passphrase, &random).unwrap();
        sealer.write_all(plain).unwrap();
        sealer.finish().unwrap()
    }

    fn opened_as(name: &str, sealed: &[u8], passphrase: &str) -> Result<Vec<u8>> {
        let mut plain = Vec::new();
        Opener::new(sealed, name, &Passphrase::cheap(passphrase))?
            .read_to_end(&mut plain)
            .map_err(|error| unwrap_error(error, "not ours"))?;
        Ok(plain)
    }

    fn opened(sealed: &[u8]) -> Result<Vec<u8>> {
        opened_as("name", sealed, "correct horse")
    }

    fn text(n_bytes: usize) -> Vec<u8> {
        (0..n_bytes).map(|n| (n % 251) as u8).collect()
    }

    #[test]
    fn every_length_around_a_chunk_comes_back() {
        for n_bytes in [
            0,
            1,
            CHUNK_BYTES - 1,
            CHUNK_BYTES,
            CHUNK_BYTES + 1,
            3 * CHUNK_BYTES,
        ] {
            let plain = text(n_bytes);
            assert_eq!(opened(&sealed(&plain)).unwrap(), plain, "{n_bytes}");
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_damage_and_never_a_wrong_passphrase() {
        let whole = sealed(&text(3 * CHUNK_BYTES + 5));
        let spread = (0..100).map(|n| n * whole.len() / 100);
        for at in (0..HEADER_BYTES).chain(spread).chain([whole.len() - 1]) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            let error = opened(&damaged).unwrap_err();
            assert_eq!(error.code, Code::Corrupt, "byte {at}: {error}");
        }
    }

    #[test]
    fn a_cut_at_any_chunk_and_around_it_is_damage() {
        let whole = sealed(&text(3 * CHUNK_BYTES));
        let ends = (0..=3).map(|n| HEADER_BYTES + n * (CHUNK_BYTES + TAG_BYTES));
        for end in ends.flat_map(|end| [end.saturating_sub(1), end, end + 1]) {
            if end >= whole.len() {
                continue;
            }
            let error = opened(&whole[..end]).unwrap_err();
            assert_eq!(error.code, Code::Corrupt, "cut at {end}: {error}");
        }
        for end in [0, 1, 8, HEADER_BYTES - 1] {
            assert_eq!(opened(&whole[..end]).unwrap_err().code, Code::Corrupt);
        }
    }

    #[test]
    fn chunks_that_are_swapped_repeated_left_out_or_added_are_damage() {
        let whole = sealed(&text(4 * CHUNK_BYTES));
        let (header, body) = whole.split_at(HEADER_BYTES);
        let chunks: Vec<&[u8]> = body.chunks(CHUNK_BYTES + TAG_BYTES).collect();
        for order in [
            &[1, 0, 2, 3][..],
            &[0, 1, 1, 2, 3],
            &[0, 2, 3],
            &[0, 1, 2],
            &[0, 1, 2, 3, 3],
            &[3],
            &[],
        ] {
            let mut changed = header.to_vec();
            order.iter().for_each(|n| changed.extend(chunks[*n]));
            let error = opened(&changed).unwrap_err();
            assert_eq!(error.code, Code::Corrupt, "{order:?}: {error}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(opened(&longer).unwrap_err().code, Code::Corrupt);
    }

    #[test]
    fn a_wrong_passphrase_says_so_and_shows_none() {
        let error = opened_as("name", &sealed(b"text"), "wrong horse").unwrap_err();
        assert_eq!(error.code, Code::Denied);
        assert_eq!(error.message, "wrong passphrase for `name`");
        assert!(!format!("{error:?}").contains("horse"));
        assert!(!format!("{:?}", Passphrase::cheap("horse")).contains("horse"));
        assert!(Passphrase::new("").is_err());
    }

    #[test]
    fn what_was_sealed_under_one_name_does_not_open_under_another() {
        let error = opened_as("other", &sealed(b"text"), "correct horse").unwrap_err();
        assert_eq!(error.code, Code::Corrupt);
    }

    #[test]
    fn the_salt_and_the_nonce_are_new_every_time() {
        let random = SeededRandom::new(7);
        let passphrase = Passphrase::cheap("horse");
        let seal = || {
            let mut sealer = Sealer::new(Vec::new(), "name", &passphrase, &random).unwrap();
            sealer.write_all(b"text").unwrap();
            sealer.finish().unwrap()
        };
        let (one, two) = (seal(), seal());
        let fresh = 20..20 + SALT_BYTES + NONCE_BYTES;
        assert_ne!(
            one[fresh.clone()][..SALT_BYTES],
            two[fresh.clone()][..SALT_BYTES]
        );
        assert_ne!(one[fresh.clone()][SALT_BYTES..], two[fresh][SALT_BYTES..]);
    }

    #[test]
    fn a_header_that_asks_for_endless_work_is_refused() {
        let mut header = sealed(b"text")[..BODY_BYTES].to_vec();
        header[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        let check = Sha256::digest(&header);
        header.extend(&check[..CHECK_BYTES]);
        assert_eq!(opened(&header).unwrap_err().code, Code::TooLarge);
    }

    #[test]
    fn the_normal_cost_opens_what_it_sealed() {
        let passphrase = Passphrase::new("correct horse").unwrap();
        let random = SeededRandom::new(7);
        let mut sealer = Sealer::new(Vec::new(), "name", &passphrase, &random).unwrap();
        sealer.write_all(b"text").unwrap();
        let sealed = sealer.finish().unwrap();
        assert_eq!(opened(&sealed).unwrap(), b"text");
    }
}
