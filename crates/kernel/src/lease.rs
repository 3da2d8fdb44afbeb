//! A lease: who works on something, and until when, across machines.
//!
//! If a holder dies, others wait until the lease ends, and no longer. So no step of the work may take
//! longer than the rest of the lease: it is renewed before.

use crate::bucket::Bucket;
use kenning_audit::Tx;
use kenning_core::{Hash, Random, Result};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A holder and an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The holder: see [`holder`].
    pub holder: String,
    /// In milliseconds since 1970.
    pub until_ms: u64,
}

/// A new, unique name for a holder.
pub fn holder(random: &dyn Random) -> String {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    Hash::of(&bytes).to_string()
}

impl Lease {
    /// From now on, for this long.
    pub fn of(holder: &str, now_ms: u64, lasts: Duration) -> Self {
        let lasts_ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
        Self {
            holder: holder.to_owned(),
            until_ms: now_ms.saturating_add(lasts_ms),
        }
    }

    /// Whether it has not ended.
    pub fn is_running(&self, now_ms: u64) -> bool {
        self.until_ms > now_ms
    }

    /// Whether it belongs to this holder.
    pub fn is_of(&self, holder: &str) -> bool {
        self.holder == holder
    }

    /// Whether it keeps this holder out.
    pub fn keeps_out(&self, holder: &str, now_ms: u64) -> bool {
        !self.is_of(holder) && self.is_running(now_ms)
    }
}

/// Leases by name.
impl Bucket<Lease> {
    /// Takes or renews a lease. False if another holder has it. A row that cannot be read keeps
    /// nobody out.
    ///
    /// # Errors
    /// Those of the store.
    pub fn take(&self, tx: &mut Tx<'_>, key: &str, lease: &Lease, now_ms: u64) -> Result<bool> {
        let held = self.get_readable(&**tx, key)?;
        if held.is_some_and(|it| it.keeps_out(&lease.holder, now_ms)) {
            return Ok(false);
        }
        self.set(tx, key, lease)?;
        Ok(true)
    }

    /// Renews a lease, if this holder still has it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn prolong(&self, tx: &mut Tx<'_>, key: &str, lease: &Lease) -> Result<bool> {
        let held = self.get_readable(&**tx, key)?;
        let is_ours = held.is_some_and(|it| it.is_of(&lease.holder));
        if is_ours {
            self.set(tx, key, lease)?;
        }
        Ok(is_ours)
    }

    /// Releases a lease, if this holder still has it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn give_back(&self, tx: &mut Tx<'_>, key: &str, holder: &str) -> Result<()> {
        let held = self.get_readable(&**tx, key)?;
        match held.is_some_and(|it| it.is_of(holder)) {
            true => self.unset(tx, key),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_keeps_others_out_until_it_ends_and_never_its_own_holder() {
        let lease = Lease::of("a", 1_000, Duration::from_secs(1));
        assert_eq!(lease.until_ms, 2_000);
        assert!(lease.keeps_out("b", 1_999));
        assert!(!lease.keeps_out("b", 2_000));
        assert!(!lease.keeps_out("a", 1_500));
        assert_eq!(Lease::of("a", u64::MAX, Duration::MAX).until_ms, u64::MAX);
    }
}
