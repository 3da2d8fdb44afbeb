//! Which calls run, and how much memory they have.
//!
//! Memory is counted when it is used, not when it is requested: a tool that may use a gigabyte and
//! uses two megabytes does not block others. The first megabytes of every call are reserved for it, so
//! a small tool can always run. Beyond them all calls share the rest. One tool may use at most half of
//! it, and at most half of the concurrent calls.
//!
//! A call that does not fit waits in a queue, but not for long: a caller can react to "limited, try
//! again", but not to silence.

use crate::call::Failure;
use crate::wasm::state::{Clock, Stop};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The calls and the memory that all tools of a runtime share.
pub(crate) struct Budget {
    sizes: Sizes,
    usage: Mutex<Usage>,
    changed: Condvar,
}

/// The limits.
struct Sizes {
    calls: u32,
    /// Calls of one tool at once.
    tool_calls: u32,
    /// While this many run, only tools without a running call are admitted.
    open_calls: u32,
    /// The most memory of one call, and so of one tool.
    call_bytes: u64,
    /// Memory reserved for each call.
    own_bytes: u64,
    /// Memory beyond the reserved part, for all calls together.
    shared_bytes: u64,
    /// The most of it for all calls of one tool.
    tool_shared_bytes: u64,
    /// How long a call waits for its turn.
    patience: Duration,
}

#[derive(Default)]
struct Usage {
    calls: u32,
    shared_bytes: u64,
    tools: HashMap<String, ToolUsage>,
    line: VecDeque<Ticket>,
    last_ticket: u64,
}

#[derive(Default)]
struct ToolUsage {
    calls: u32,
    shared_bytes: u64,
}

struct Ticket {
    number: u64,
    tool: String,
}

/// Why a call gets no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMemory {
    /// It has reached its own limit.
    OwnLimit,
    /// The shared memory is used up.
    Shared,
}

impl From<NoMemory> for Stop {
    fn from(why: NoMemory) -> Self {
        match why {
            NoMemory::OwnLimit => Self::MemoryGrow,
            NoMemory::Shared => Self::MemoryShared,
        }
    }
}

/// The most waiting calls, of all tools and of one.
const WAITING_MAX: usize = 64;
const TOOL_WAITING_MAX: usize = 32;
/// Memory reserved for every call, if there is enough.
const OWN_BYTES: u64 = 16 * 1024 * 1024;
const LOOK: Duration = Duration::from_millis(20);

impl Budget {
    pub(crate) fn new(calls: u32, memory_mb: u32, patience: Duration) -> Self {
        let calls = calls.max(1);
        let total = u64::from(memory_mb) * 1024 * 1024;
        let own_bytes = OWN_BYTES.min(total / 2 / u64::from(calls));
        let call_bytes = total / 2;
        let sizes = Sizes {
            calls,
            tool_calls: calls.div_ceil(2),
            open_calls: calls - calls / 4,
            call_bytes,
            own_bytes,
            shared_bytes: total - own_bytes * u64::from(calls),
            tool_shared_bytes: call_bytes - own_bytes,
            patience,
        };
        Self {
            sizes,
            usage: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The most memory that a call can have, whatever it was granted.
    pub(crate) fn call_bytes(&self) -> u64 {
        self.sizes.call_bytes
    }

    /// Waits until it is this call's turn.
    pub(crate) fn enter(
        self: &Arc<Self>,
        tool: &str,
        bytes_max: u64,
        patience: &Clock,
    ) -> Result<Slot, Failure> {
        let until = Instant::now() + self.sizes.patience;
        let mut usage = self.usage();
        let of_tool = usage.line.iter().filter(|it| it.tool == tool).count();
        if of_tool >= TOOL_WAITING_MAX || usage.line.len() >= WAITING_MAX {
            return Err(Failure::Busy);
        }
        usage.last_ticket += 1;
        let number = usage.last_ticket;
        let tool = tool.to_owned();
        usage.line.push_back(Ticket {
            number,
            tool: tool.clone(),
        });
        let entered = loop {
            if usage.next(&self.sizes) == Some(number) {
                break Ok(());
            }
            match patience.check() {
                Err(Stop::Cancelled) => break Err(Failure::Cancelled),
                Err(_) => break Err(Failure::Busy),
                Ok(()) if Instant::now() >= until => break Err(Failure::Busy),
                Ok(()) => {}
            }
            let waited = self.changed.wait_timeout(usage, LOOK);
            usage = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        usage.line.retain(|it| it.number != number);
        if entered.is_ok() {
            usage.calls += 1;
            usage.tools.entry(tool.clone()).or_default().calls += 1;
        }
        drop(usage);
        // The queue has a new head, which may be admitted now.
        self.changed.notify_all();
        entered?;
        Ok(Slot {
            budget: Arc::clone(self),
            tool,
            bytes_max: bytes_max.min(self.sizes.call_bytes),
            bytes: Mutex::default(),
        })
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage {
    /// The first in the queue that fits.
    fn next(&self, sizes: &Sizes) -> Option<u64> {
        let is_admitted = |ticket: &&Ticket| {
            let own = self.tools.get(&ticket.tool).map_or(0, |it| it.calls);
            let is_open = self.calls < sizes.open_calls || own == 0;
            self.calls < sizes.calls && own < sizes.tool_calls && is_open
        };
        self.line.iter().find(is_admitted).map(|it| it.number)
    }
}

/// A running call and its memory, which is released when this is dropped.
pub(crate) struct Slot {
    budget: Arc<Budget>,
    tool: String,
    bytes_max: u64,
    bytes: Mutex<Bytes>,
}

#[derive(Clone, Copy, Default)]
struct Bytes {
    used: u64,
    peak: u64,
}

impl Slot {
    /// Takes more memory.
    pub(crate) fn grow(&self, more: u64) -> Result<(), NoMemory> {
        let mut bytes = self.bytes();
        let used = bytes.used.saturating_add(more);
        if used > self.bytes_max {
            return Err(NoMemory::OwnLimit);
        }
        let sizes = &self.budget.sizes;
        let more_shared = self.shared_part(used) - self.shared_part(bytes.used);
        if more_shared > 0 {
            let mut usage = self.budget.usage();
            let tool = usage.tools.get(&self.tool).map_or(0, |it| it.shared_bytes);
            if usage.shared_bytes + more_shared > sizes.shared_bytes
                || tool + more_shared > sizes.tool_shared_bytes
            {
                return Err(NoMemory::Shared);
            }
            usage.shared_bytes += more_shared;
            if let Some(tool) = usage.tools.get_mut(&self.tool) {
                tool.shared_bytes += more_shared;
            }
        }
        bytes.used = used;
        bytes.peak = bytes.peak.max(used);
        Ok(())
    }

    /// Gives memory back.
    pub(crate) fn shrink(&self, less: u64) {
        let mut bytes = self.bytes();
        let used = bytes.used.saturating_sub(less);
        let less_shared = self.shared_part(bytes.used) - self.shared_part(used);
        bytes.used = used;
        self.give_back(less_shared, 0);
    }

    /// How much more it may use, if the shared memory allows it.
    pub(crate) fn left(&self) -> u64 {
        self.bytes_max.saturating_sub(self.bytes().used)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.bytes().peak
    }

    /// The part of these bytes beyond the call's reserved memory.
    fn shared_part(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.budget.sizes.own_bytes)
    }

    fn give_back(&self, shared_bytes: u64, calls: u32) {
        if shared_bytes == 0 && calls == 0 {
            return;
        }
        let mut usage = self.budget.usage();
        usage.calls -= calls;
        usage.shared_bytes -= shared_bytes;
        if let Some(tool) = usage.tools.get_mut(&self.tool) {
            tool.calls -= calls;
            tool.shared_bytes -= shared_bytes;
            if tool.calls == 0 {
                usage.tools.remove(&self.tool);
            }
        }
    }

    fn bytes(&self) -> MutexGuard<'_, Bytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let used = self.bytes().used;
        self.give_back(self.shared_part(used), 1);
        self.budget.changed.notify_all();
    }
}

/// Memory that the host uses for a call, released when this is dropped.
pub(crate) struct Charge {
    slot: Arc<Slot>,
    bytes: u64,
}

impl Charge {
    pub(crate) fn new(slot: &Arc<Slot>, bytes: u64) -> Result<Self, NoMemory> {
        slot.grow(bytes)?;
        let slot = Arc::clone(slot);
        Ok(Self { slot, bytes })
    }

    /// Raises the charge to this many bytes in all; it never falls.
    pub(crate) fn raise_to(&mut self, bytes: u64) -> Result<(), NoMemory> {
        let more = bytes.saturating_sub(self.bytes);
        self.slot.grow(more)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.slot.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const MIB: u64 = 1024 * 1024;

    fn clock() -> Clock {
        Clock {
            until: Instant::now() + Duration::from_secs(600),
            cancelled: Arc::new(AtomicBool::new(false)),
        }
    }

    fn budget(calls: u32, memory_mb: u32) -> Arc<Budget> {
        Arc::new(Budget::new(calls, memory_mb, Duration::from_millis(1)))
    }

    #[test]
    fn one_tool_takes_half_of_the_places_and_leaves_some_for_tools_that_do_not_run() {
        let budget = budget(16, 2048);
        let enter = |tool: &str| budget.enter(tool, MIB, &clock());
        let first: Vec<_> = (0..8).map(|_| enter("a").unwrap()).collect();
        assert_eq!(enter("a").err(), Some(Failure::Busy));
        let second: Vec<_> = (0..4).map(|_| enter("b").unwrap()).collect();
        assert_eq!(
            enter("b").err(),
            Some(Failure::Busy),
            "the rest is for others"
        );
        let others: Vec<_> = ["c", "d", "e", "f"].map(|it| enter(it).unwrap()).into();
        assert_eq!(enter("g").err(), Some(Failure::Busy));
        drop((first, second, others));
        assert!(enter("a").is_ok());
        assert!(
            budget.usage().tools.is_empty(),
            "nothing is left of calls that ended"
        );
    }

    #[test]
    fn whoever_waits_is_answered_before_long_and_the_line_has_an_end() {
        let budget = Arc::new(Budget::new(1, 64, Duration::from_secs(600)));
        let running = budget.enter("a", MIB, &clock()).unwrap();
        let patience = clock();
        std::thread::scope(|scope| {
            let wait = |tool: &'static str| {
                let (budget, patience) = (&budget, &patience);
                scope.spawn(move || budget.enter(tool, MIB, patience).err())
            };
            let waiting: Vec<_> = (0..TOOL_WAITING_MAX).map(|_| wait("a")).collect();
            while budget.usage().line.len() < TOOL_WAITING_MAX {
                std::thread::yield_now();
            }
            assert_eq!(budget.enter("a", MIB, &clock()).err(), Some(Failure::Busy));
            patience
                .cancelled
                .store(true, std::sync::atomic::Ordering::Relaxed);
            for it in waiting {
                assert_eq!(it.join().unwrap(), Some(Failure::Cancelled));
            }
        });
        drop(running);
        assert!(budget.enter("a", MIB, &clock()).is_ok());
    }

    #[test]
    fn memory_is_counted_as_it_is_taken_and_given_back() {
        let budget = budget(16, 2048);
        let enter = |tool: &str| Arc::new(budget.enter(tool, 4096 * MIB, &clock()).unwrap());
        let (greedy, other, third, small) = (enter("a"), enter("b"), enter("c"), enter("d"));
        assert_eq!(
            greedy.grow(1025 * MIB),
            Err(NoMemory::OwnLimit),
            "half of all"
        );
        greedy.grow(1024 * MIB).unwrap();
        let again = enter("a");
        assert_eq!(
            again.grow(17 * MIB),
            Err(NoMemory::Shared),
            "the tool has its share"
        );
        again.grow(16 * MIB).unwrap();
        // 256 MiB are set aside for 16 calls, and 1008 of the 1792 others are taken.
        assert_eq!(other.grow(801 * MIB), Err(NoMemory::Shared));
        other.grow(800 * MIB).unwrap();
        assert_eq!(third.grow(17 * MIB), Err(NoMemory::Shared));
        small.grow(16 * MIB).unwrap();
        other.shrink(100 * MIB);
        third.grow(100 * MIB).unwrap();
        drop(greedy);
        third.grow(500 * MIB).unwrap();
        assert_eq!(third.peak(), 600 * MIB);
        drop((other, third, small, again));
        assert_eq!(budget.usage().shared_bytes, 0);
    }

    #[test]
    fn a_charge_is_given_back_when_what_it_is_for_is_gone() {
        let budget = budget(1, 64);
        let slot = Arc::new(budget.enter("a", 8 * MIB, &clock()).unwrap());
        let mut charge = Charge::new(&slot, 2 * MIB).unwrap();
        charge.raise_to(MIB).unwrap();
        assert_eq!(slot.left(), 6 * MIB, "what was taken stays taken");
        charge.raise_to(8 * MIB).unwrap();
        assert_eq!(charge.raise_to(9 * MIB), Err(NoMemory::OwnLimit));
        assert_eq!(slot.left(), 0);
        drop(charge);
        assert_eq!(slot.left(), 8 * MIB);
    }
}
