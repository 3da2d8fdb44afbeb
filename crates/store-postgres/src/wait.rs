//! Waiting for a future on whatever thread asks, a runtime's own included.
//!
//! tokio's own `block_on` refuses to wait on a thread of a runtime. Here that does no harm to the
//! database's connections, which live on a runtime of their own: only the caller's thread stands still,
//! as it does on every floor.

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

/// Waits for the future's value. The timers and sockets that it makes are this runtime's, which must
/// have threads of its own; those that it was given are not, and may stand still with the caller.
pub(crate) fn wait_for<T>(runtime: &Handle, future: impl Future<Output = T>) -> T {
    let _entered = runtime.enter();
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    // On a runtime's thread a task has so many steps before it must make way for others. We never do,
    // so without this the steps would run out, and with them the timers.
    let mut future = pin!(tokio::task::unconstrained(future));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_thread_of_another_runtime_may_wait_as_often_as_it_likes() {
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
