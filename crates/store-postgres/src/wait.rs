//! Blocks on a future on any thread, also on one of a runtime.
//!
//! tokio's own `block_on` refuses to wait on a thread of a runtime. Here blocking does no
//! harm to the database's connections, which live on their own runtime: only the caller's thread waits,
//! as with every backend.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use tokio::runtime::Handle;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for the future's value. The timers and sockets that it creates belong to `runtime`, which must
/// have its own threads; those that it was given do not, and may be blocked with the caller.
pub(crate) fn wait_for<T>(runtime: &Handle, future: impl Future<Output = T>) -> T {
    let _entered = runtime.enter();
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    // On a runtime's thread a task has a budget of steps before it must yield. This code never yields,
    // so without this the budget would run out, and timers would stop.
    let mut future = pin!(tokio::task::unconstrained(future));
    kenning_core::idle::waiting(|| {
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(value) => return value,
                Poll::Pending => std::thread::park(),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_thread_of_another_runtime_can_block_any_number_of_times() {
        let build = || {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
        };
        let (ours, theirs) = (build().unwrap(), build().unwrap());
        let handle = ours.handle().clone();
        let waited = theirs.spawn(async move {
            // More often than a task has steps.
            for n in 0..1_000 {
                let answered = wait_for(&handle, async {
                    let task = tokio::spawn(async move { n });
                    tokio::time::timeout(Duration::from_secs(60), task).await
                });
                assert_eq!(answered.unwrap().unwrap(), n);
            }
            wait_for(&handle, async {
                let never = std::future::pending::<()>();
                tokio::time::timeout(Duration::from_millis(1), never).await
            })
        });
        assert!(theirs.block_on(waited).unwrap().is_err());
    }
}
