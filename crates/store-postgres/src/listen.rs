//! Follows the log: the database notifies of each append, by any server.

use crate::connect::{CONNECT_WAIT, Driver, Target};
use crate::pool::Pool;
use futures::{StreamExt, stream};
use kenning_core::Code;
use kenning_store::Wake;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_postgres::AsyncMessage;

/// How often followers poll in addition: a notification is lost while the connection is down.
const POLL: Duration = Duration::from_secs(2);
/// How long to wait before connecting again.
const RECONNECT: Duration = Duration::from_secs(1);
/// The same on a standby, which refuses `LISTEN`, and logs that, until it becomes the primary.
const STANDBY: Duration = Duration::from_secs(60);

/// The channel that a commit notifies.
pub(crate) const CHANNEL: &str = "kenning_log";

type Wakes = Arc<Mutex<Vec<Wake>>>;

/// Listens for appends while there are subscribers.
pub(crate) struct Listener {
    wakes: Wakes,
    start: Mutex<Option<(tokio::runtime::Handle, Target)>>,
}

impl Listener {
    pub(crate) fn start(pool: &Pool) -> Self {
        let start = pool
            .handle()
            .ok()
            .map(|handle| (handle, pool.target().clone()));
        Self {
            wakes: Wakes::default(),
            start: Mutex::new(start),
        }
    }

    /// Calls `wake` after every append. Returns how often to poll in addition.
    pub(crate) fn subscribe(&self, wake: Wake) -> Duration {
        self.wakes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(wake);
        let start = self
            .start
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((handle, target)) = start {
            handle.spawn(listen(target, self.wakes.clone()));
        }
        POLL
    }
}

async fn listen(target: Target, wakes: Wakes) {
    loop {
        let ended = listen_once(&target, &wakes).await;
        let pause = match &ended {
            Err(error) if error.code == Code::Denied => STANDBY,
            _ => RECONNECT,
        };
        if let Err(error) = ended {
            tracing::debug!("listening for appends: {error}");
        }
        tokio::time::sleep(pause).await;
    }
}

async fn listen_once(target: &Target, wakes: &Wakes) -> kenning_core::Result<()> {
    let (client, driver) = target.connect(CONNECT_WAIT).await?;
    let listening = async {
        client
            .batch_execute(&format!("LISTEN {CHANNEL}"))
            .await
            .map_err(crate::error::from_postgres)?;
        // The client must live as long as the connection does.
        std::future::pending::<()>().await;
        Ok(())
    };
    tokio::select! {
        it = listening => it,
        () = drive(driver, wakes) => Ok(()),
    }
}

async fn drive(driver: Driver, wakes: &Wakes) {
    match driver {
        Driver::Plain(mut it) => {
            follow(stream::poll_fn(move |cx| it.poll_message(cx)), wakes).await;
        }
        Driver::Tls(mut it) => follow(stream::poll_fn(move |cx| it.poll_message(cx)), wakes).await,
    }
}

async fn follow<E>(
    mut messages: impl stream::Stream<Item = Result<AsyncMessage, E>> + Unpin,
    wakes: &Wakes,
) {
    while let Some(Ok(message)) = messages.next().await {
        if matches!(message, AsyncMessage::Notification(_)) {
            for wake in wakes.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                wake();
            }
        }
    }
}
