//! How full the directories of tools are.

use crate::call::Quota;
use kenning_core::Result;
use kenning_vault::Dir;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How full a directory is.
pub(crate) struct Ledger {
    pub(super) dir: Dir,
    pub(super) most: Used,
    balance: Mutex<Balance>,
}

#[derive(Default)]
pub(super) struct Balance {
    /// Upper bound of what is in the directory …
    pub(super) done: Used,
    /// … and of what unfinished operations may add.
    pub(super) under_way: Used,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Used {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            files: self.files.saturating_add(other.files),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            files: self.files.saturating_sub(other.files),
        }
    }

    fn fits(self, most: Self) -> bool {
        self.bytes <= most.bytes && self.files <= most.files
    }
}

impl Ledger {
    fn measure(&self) -> Result<Used> {
        // More than the quota need not be counted exactly.
        let entries_max = self.most.files.saturating_add(1_000);
        let (files, bytes) = self.dir.usage(entries_max)?;
        Ok(Used { bytes, files })
    }

    pub(super) fn reserve(&self, more: Used) -> bool {
        let mut balance = self.balance();
        let fits = self.fits(&mut balance, more);
        if fits {
            balance.under_way = balance.under_way.plus(more);
        }
        fits
    }

    /// Whether there is room for more, measured again if there seems to be none.
    pub(super) fn fits(&self, balance: &mut Balance, more: Used) -> bool {
        let fits = |balance: &Balance| {
            balance
                .done
                .plus(balance.under_way)
                .plus(more)
                .fits(self.most)
        };
        if fits(balance) {
            return true;
        }
        match self.measure() {
            Ok(measured) => balance.done = measured,
            Err(_) => return false,
        }
        fits(balance)
    }

    pub(super) fn balance(&self) -> MutexGuard<'_, Balance> {
        self.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Space reserved for an operation until this is dropped.
pub(super) struct Reserved {
    pub(super) ledger: Arc<Ledger>,
    pub(super) reserved: Used,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut balance = self.ledger.balance();
        balance.under_way = balance.under_way.minus(self.reserved);
        balance.done = balance.done.plus(self.reserved);
    }
}

/// The ledgers of the directories that are in use.
#[derive(Default)]
pub(crate) struct Ledgers {
    open: Mutex<HashMap<PathBuf, Weak<Ledger>>>,
}

impl Ledgers {
    pub(crate) fn of(&self, dir: &Dir, quota: Quota) -> Result<Arc<Ledger>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, it| it.strong_count() > 0);
        let key = dir.path().to_owned();
        let most = Used {
            bytes: quota.bytes,
            files: quota.files,
        };
        if let Some(ledger) = open.get(&key).and_then(Weak::upgrade)
            && ledger.most == most
        {
            return Ok(ledger);
        }
        let ledger = Ledger {
            dir: dir.clone(),
            most,
            balance: Mutex::default(),
        };
        let measured = ledger.measure()?;
        ledger.balance().done = measured;
        let ledger = Arc::new(ledger);
        open.insert(key, Arc::downgrade(&ledger));
        Ok(ledger)
    }
}
