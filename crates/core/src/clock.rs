//! Hybrid logical time, and the clock and randomness that are passed in.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds of wall time in the upper 48 bits, a counter in the lower 16.
///
/// Ordering is plain number order. An event always has a greater time than every event that its
/// author had seen, even if wall clocks disagree or stand still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hlc(pub u64);

impl Hlc {
    /// The end of everything that is still valid.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// The first moment of a millisecond.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms << 16)
    }

    /// The last moment of a millisecond.
    pub const fn end_of_ms(ms: u64) -> Self {
        Self((ms << 16) | 0xffff)
    }

    /// The wall-clock part, in milliseconds since 1970.
    pub const fn ms(self) -> u64 {
        self.0 >> 16
    }

    /// The counter within the millisecond.
    pub const fn counter(self) -> u16 {
        (self.0 & 0xffff) as u16
    }

    /// The moment after this one. A full counter runs over into the next millisecond.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Hlc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.ms(), self.counter())
    }
}

/// Where wall time comes from.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
}

/// Where randomness comes from.
pub trait Random: Send + Sync {
    /// Fills the bytes with unpredictable ones.
    fn fill(&self, bytes: &mut [u8]);
}

/// Why the wall clock and a time that was seen cannot both be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implausible {
    /// The seen time is this many milliseconds after the wall clock.
    SeenAhead(u64),
    /// The wall clock is this many milliseconds after the seen time.
    WallAhead(u64),
    /// The wall clock is after the year 2100.
    WallBeyond,
}

/// Makes strictly increasing times.
pub struct HlcClock<C> {
    wall: C,
    last: Mutex<Hlc>,
}

impl<C: Clock> HlcClock<C> {
    /// How far a peer's clock may be ahead of ours before it is refused.
    pub const DRIFT_MAX_MS: u64 = 24 * 60 * 60 * 1000;

    /// After a longer pause in the log, the wall clock is assumed to be ahead.
    pub const PAUSE_MAX_MS: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

    /// The end of the year 2100.
    const BEYOND_MS: u64 = 4_133_980_800_000;

    /// Starts at zero; the first tick takes the time of the wall clock.
    pub fn new(wall: C) -> Self {
        Self {
            wall,
            last: Mutex::new(Hlc::default()),
        }
    }

    /// A time later than `seen` and every earlier answer, and not before the wall clock.
    pub fn tick(&self, seen: Hlc) -> Hlc {
        let wall = Hlc::from_ms(self.wall.now_ms());
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // A time from a clock that was ahead must not bind this process for ever.
        let bound = wall.max(seen).ms().saturating_add(Self::DRIFT_MAX_MS);
        if last.ms() > bound {
            *last = Hlc::default();
        }
        *last = wall.max(last.next()).max(seen.next());
        *last
    }

    /// The time of the wall clock, whatever was seen and returned before.
    pub fn reset(&self) -> Hlc {
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = Hlc::from_ms(self.wall.now_ms());
        *last
    }

    /// Whether the wall clock and the latest time of a log can both be right.
    ///
    /// # Errors
    /// One of them is implausibly far ahead.
    pub fn check(&self, seen: Hlc) -> Result<(), Implausible> {
        let wall = self.wall.now_ms();
        if wall > Self::BEYOND_MS {
            return Err(Implausible::WallBeyond);
        }
        if seen.ms() > wall.saturating_add(Self::DRIFT_MAX_MS) {
            return Err(Implausible::SeenAhead(seen.ms() - wall));
        }
        if seen > Hlc::default() && wall > seen.ms().saturating_add(Self::PAUSE_MAX_MS) {
            return Err(Implausible::WallAhead(wall - seen.ms()));
        }
        Ok(())
    }

    /// The time of the wall clock, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.wall.now_ms()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now_ms(&self) -> u64 {
        (**self).now_ms()
    }
}

/// A clock that is set by hand. For tests and the simulator.
#[derive(Debug, Default)]
pub struct FixedClock(AtomicU64);

impl FixedClock {
    /// A clock that is set to this moment.
    pub fn at(ms: u64) -> Self {
        Self(AtomicU64::new(ms))
    }

    /// Moves forward.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A small repeatable generator. For tests and the simulator, never for keys.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// The same seed gives the same bytes.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next number (splitmix64).
    pub fn next(&self) -> u64 {
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_up_while_the_wall_stands_still_or_falls_back() {
        let clock = HlcClock::new(FixedClock::at(1_000));
        let mut last = Hlc::default();
        for _ in 0..100_000 {
            let now = clock.tick(Hlc::default());
            assert!(now > last);
            last = now;
        }
        assert!(
            last.ms() <= 1_002,
            "the counter borrows from the next millisecond"
        );
    }

    #[test]
    fn a_time_that_is_far_ahead_is_not_believed_and_not_kept() {
        let day = 24 * 60 * 60 * 1000;
        let clock = HlcClock::new(FixedClock::at(1_000 * day));
        assert_eq!(clock.check(Hlc::default()), Ok(()));
        assert_eq!(clock.check(Hlc::from_ms(1_001 * day)), Ok(()));
        let ahead = Hlc::from_ms(1_003 * day);
        assert_eq!(clock.check(ahead), Err(Implausible::SeenAhead(3 * day)));
        assert!(clock.tick(ahead) > ahead);
        assert_eq!(clock.tick(Hlc::from_ms(1_000 * day)).ms(), 1_000 * day);
        let late = HlcClock::new(FixedClock::at(9_000 * day));
        let pause = Err(Implausible::WallAhead(8_000 * day));
        assert_eq!(late.check(Hlc::from_ms(1_000 * day)), pause);
        let beyond = HlcClock::new(FixedClock::at(60_000 * day));
        assert_eq!(beyond.check(Hlc::default()), Err(Implausible::WallBeyond));
    }

    #[test]
    fn time_is_later_than_what_was_seen() {
        let clock = HlcClock::new(FixedClock::at(1_000));
        let seen = Hlc::from_ms(5_000);
        assert!(clock.tick(seen) > seen);
        assert!(clock.tick(Hlc::default()) > seen);
    }
}
