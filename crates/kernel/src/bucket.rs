//! Typed rows of the key-value table: the name of a bucket, and the type of its values.
//!
//! Values are JSON, and a number is its digits, which is the same. A text that is kept as it is, without
//! quotation marks, is a [`Text`]; bytes are [`Raw`]; a [`Mark`] is there or not. A row with another form has
//! a [`RowCodec`] of its own. No other module of the kernel or above calls `get`, `list`, `set` or `unset` of a
//! transaction: tidy refuses it.

use kenning_audit::Tx;
use kenning_core::{Error, Result};
use kenning_search::Account;
use kenning_store::ReadTx;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::marker::PhantomData;

/// How a value is stored.
pub trait RowCodec: Sized {
    /// To bytes.
    ///
    /// # Errors
    /// Internal, if it cannot be serialized.
    fn to_bytes(&self) -> Result<Vec<u8>>;

    /// From bytes; `None` if they are malformed.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

impl<T: Serialize + DeserializeOwned> RowCodec for T {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|cause| Error::internal("a row cannot be serialized").because(cause))
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// A text as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub String);

impl RowCodec for Text {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes)
            .ok()
            .map(|it| Self(it.to_owned()))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Bytes as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Raw(pub Vec<u8>);

impl RowCodec for Raw {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(self.0.clone())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.to_vec()))
    }
}

/// A row whose key says everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark;

impl RowCodec for Mark {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(b"1".to_vec())
    }

    fn from_bytes(_: &[u8]) -> Option<Self> {
        Some(Self)
    }
}

/// What is known of each collection of vectors, by its name.
pub const VECTOR_ACCOUNTS: Bucket<Account> = Bucket::new(kenning_search::ACCOUNTS);

/// A bucket of the key-value table.
#[derive(Debug)]
pub struct Bucket<T> {
    name: Cow<'static, str>,
    values: PhantomData<fn() -> T>,
}

impl<T> Clone for Bucket<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            values: PhantomData,
        }
    }
}

impl<T: RowCodec> Bucket<T> {
    /// A bucket with a fixed name.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            values: PhantomData,
        }
    }

    /// A bucket with a computed name.
    pub const fn named(name: String) -> Self {
        Self {
            name: Cow::Owned(name),
            values: PhantomData,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, key: &str, bytes: &[u8]) -> Result<T> {
        T::from_bytes(bytes).ok_or_else(|| {
            let name = &self.name;
            Error::corrupt(format!("the row `{key}` of `{name}` is malformed"))
        })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Corrupt when it is malformed, and those of the store.
    pub fn get(&self, tx: &dyn ReadTx, key: &str) -> Result<Option<T>> {
        let bytes = tx.get(&self.name, key)?;
        bytes.map(|it| self.read(key, &it)).transpose()
    }

    /// The value of a key, if there is one that can be read: for values that can be made again.
    ///
    /// # Errors
    /// Those of the store.
    pub fn get_readable(&self, tx: &dyn ReadTx, key: &str) -> Result<Option<T>> {
        let bytes = tx.get(&self.name, key)?;
        Ok(bytes.and_then(|it| T::from_bytes(&it)))
    }

    /// Whether there is a row, whatever its value.
    ///
    /// # Errors
    /// Those of the store.
    pub fn has(&self, tx: &dyn ReadTx, key: &str) -> Result<bool> {
        Ok(tx.get(&self.name, key)?.is_some())
    }

    /// Every row, in the order of the keys.
    ///
    /// # Errors
    /// Corrupt when one is malformed, and those of the store.
    pub fn list(&self, tx: &dyn ReadTx) -> Result<Vec<(String, T)>> {
        let rows = tx.list(&self.name)?.into_iter();
        let rows = rows.map(|(key, bytes)| {
            let value = self.read(&key, &bytes)?;
            Ok((key, value))
        });
        rows.collect()
    }

    /// Every row that can be read; malformed ones are left out.
    ///
    /// # Errors
    /// Those of the store.
    pub fn list_readable(&self, tx: &dyn ReadTx) -> Result<Vec<(String, T)>> {
        let rows = tx.list(&self.name)?.into_iter();
        Ok(rows
            .filter_map(|(key, bytes)| Some((key, T::from_bytes(&bytes)?)))
            .collect())
    }

    /// The keys.
    ///
    /// # Errors
    /// Those of the store.
    pub fn keys(&self, tx: &dyn ReadTx) -> Result<Vec<String>> {
        Ok(tx.list(&self.name)?.into_iter().map(|it| it.0).collect())
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// Those of the store.
    pub fn set(&self, tx: &mut Tx<'_>, key: &str, value: &T) -> Result<()> {
        tx.set(&self.name, key, &value.to_bytes()?)
    }

    /// Removes a row; there need not be one.
    ///
    /// # Errors
    /// Those of the store.
    pub fn unset(&self, tx: &mut Tx<'_>, key: &str) -> Result<()> {
        tx.unset(&self.name, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_audit::{Log, Signer};
    use kenning_core::{Code, FixedClock, SeededRandom, Space};
    use kenning_store::Store;
    use kenning_store_sqlite::Sqlite;
    use std::sync::Arc;

    const NUMBERS: Bucket<u64> = Bucket::new("test.numbers");

    #[test]
    fn a_number_is_its_digits_and_what_is_malformed_names_its_row() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Sqlite::open(folder.path()).unwrap());
        let random = Arc::new(SeededRandom::new(1));
        let signer = Signer::generate(&*random);
        let log = Log::new(store, signer, Arc::new(FixedClock::at(1)), random);
        let space = Space::default();
        let texts: Bucket<Text> = Bucket::named(format!("test.{}", "texts"));
        let written = texts.clone();
        let put = log.write(&space, move |tx| {
            NUMBERS.set(tx, "a", &7)?;
            tx.set(NUMBERS.name(), "b", b"seven")?;
            written.set(tx, "a", &Text("as it is".to_owned()))
        });
        put.unwrap();
        let read = log.read(&space, |tx| {
            assert_eq!(tx.get("test.numbers", "a")?, Some(b"7".to_vec()));
            assert_eq!(tx.get("test.texts", "a")?, Some(b"as it is".to_vec()));
            assert_eq!(texts.get(tx, "a")?, Some(Text("as it is".to_owned())));
            assert_eq!(NUMBERS.get(tx, "a")?, Some(7));
            assert_eq!(NUMBERS.get(tx, "c")?, None);
            assert_eq!(NUMBERS.get_readable(tx, "b")?, None);
            assert!(NUMBERS.has(tx, "b")? && !NUMBERS.has(tx, "c")?);
            assert_eq!(NUMBERS.keys(tx)?, ["a", "b"]);
            assert_eq!(NUMBERS.list_readable(tx)?, [("a".to_owned(), 7)]);
            let error = NUMBERS.list(tx).unwrap_err();
            assert_eq!(error.code, Code::Corrupt);
            assert!(error.message.contains("`b` of `test.numbers`"), "{error}");
            Ok(())
        });
        read.unwrap();
    }
}
