//! MCP over a pair of pipes.
//!
//! Three tasks: this one reads lines and refuses whatever is not a message, rmcp serves, and one writes.
//! They meet in two bounded queues, so that a client that does not read is not read from for long.
//!
//! The end of the input is the end of the service and never an error. Calls that are still running
//! get a second to finish and are then cancelled; after two seconds only a client that is still reading
//! is waited for.

use crate::admission::{Admission, Pending};
use crate::lines::{Line, Lines};
use crate::message::{self, Refusal};
use crate::{Handler, Server};
use rmcp::RoleServer;
use rmcp::model::{ErrorCode, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage, serve_server_with_ct};
use rmcp::transport::Transport;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many requests may be without an answer before reading pauses.
const PENDING_MAX: usize = 1024;
/// How many messages wait between two tasks.
const QUEUE: usize = 64;
/// How long calls may go on after the end of the input.
const FINISH: Duration = Duration::from_secs(1);
/// How long cancelled calls may take to notice.
const STOP: Duration = Duration::from_millis(700);
/// How long a client that reads its last answers may stop reading.
const FLUSH: Duration = Duration::from_millis(250);

/// Serves the process's own standard streams; see [`serve`].
///
/// A call that ignores its cancellation keeps its thread. Stop the runtime with
/// `shutdown_background`, or the process waits for that thread.
pub async fn serve_process(server: Server, shutdown: CancellationToken) -> io::Result<()> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(server, input, output, shutdown).await
}

/// Serves one client until the input ends, or until the shutdown is asked for, which is the same.
///
/// An output that was closed is an end like any other; other failures of the pipes are errors.
pub async fn serve<H, R, W>(
    server: H,
    input: R,
    output: W,
    shutdown: CancellationToken,
) -> io::Result<()>
where
    H: Handler,
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let stop = CancellationToken::new();
    let pending = Arc::new(Pending::default());
    let (outbox, outgoing) = mpsc::channel(QUEUE);
    let (inbox, incoming) = mpsc::channel(QUEUE);
    let written = Arc::new(AtomicU64::new(0));
    let writer = tokio::spawn(write(output, outgoing, stop.clone(), written.clone()));
    let link = Link {
        incoming,
        outbox: outbox.clone(),
        pending: pending.clone(),
    };
    let service = tokio::spawn(work(server, link, stop.clone()));
    let mut reader = Reader {
        admission: Admission::new(pending.clone()),
        pending: pending.clone(),
        inbox,
        outbox,
    };

    let result = tokio::select! {
        result = reader.read(input) => result,
        () = shutdown.cancelled() => Ok(()),
        () = stop.cancelled() => Ok(()),
    };

    tokio::select! {
        _ = timeout(FINISH, pending.none()) => {}
        () = stop.cancelled() => {}
    }
    // Closing the queue ends rmcp's loop; the token cancels calls and subscriptions that still run.
    drop(reader);
    stop.cancel();
    if patiently(service, STOP, &written).await.is_none() {
        tracing::warn!("calls were still running when the service ended");
    }
    // Nobody reads: what is left unwritten is nobody's.
    let flushed = patiently(writer, FLUSH, &written).await.unwrap_or(Ok(()));
    result.and(flushed)
}

/// Waits for a task as long as the client goes on reading; `None` when it was given up.
async fn patiently<T>(
    mut task: JoinHandle<T>,
    patience: Duration,
    written: &AtomicU64,
) -> Option<T> {
    loop {
        let before = written.load(Ordering::Relaxed);
        match timeout(patience, &mut task).await {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => {
                tracing::error!(%error, "a task failed");
                return None;
            }
            Err(_) if written.load(Ordering::Relaxed) == before => {
                task.abort();
                return None;
            }
            Err(_) => {}
        }
    }
}

/// rmcp's part. However it ends, the input decides when the service is over.
async fn work(server: impl Handler, link: Link, stop: CancellationToken) {
    match serve_server_with_ct(server.for_one_connection(), link, stop).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::error!(%error, "the service failed");
            }
        }
        // The client left before the handshake, for instance after `server/discover`.
        Err(error) => tracing::debug!(%error, "no session"),
    }
}

struct Reader {
    admission: Admission,
    pending: Arc<Pending>,
    inbox: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    outbox: mpsc::Sender<Vec<u8>>,
}

impl Reader {
    /// Reads until the input ends, and not faster than requests are answered.
    async fn read<R: AsyncRead + Unpin>(&mut self, input: R) -> io::Result<()> {
        let mut lines = Lines::new(input, LINE_BYTES_MAX);
        while let Some(line) = lines.next().await? {
            self.take(line).await;
            self.pending.fewer_than(PENDING_MAX).await;
        }
        Ok(())
    }

    async fn take(&mut self, line: Line) {
        let text = match line {
            Line::TooLong => {
                let message = "Invalid Request: the line is longer than 16 MiB";
                return self.refuse(&Refusal::invalid(None, message)).await;
            }
            Line::Whole(text) => text,
        };
        if text.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let read = message::parse(&text).and_then(message::read);
        match read.and_then(|message| self.admission.admit(message)) {
            Ok(Some(message)) => {
                if let Err(mpsc::error::SendError(message)) = self.inbox.send(message).await {
                    self.apologize(message).await;
                }
            }
            Ok(None) => tracing::debug!("a message was dropped"),
            Err(refusal) => self.refuse(&refusal).await,
        }
    }

    /// rmcp has ended, though the input has not: whoever asks is told so.
    async fn apologize(&self, message: RxJsonRpcMessage<RoleServer>) {
        if let JsonRpcMessage::Request(it) = message {
            tracing::error!(id = %it.id, "a request came after the service had ended");
            self.pending.remove(&it.id);
            let message = "internal error: the service has ended";
            let refusal = Refusal::new(Some(it.id), ErrorCode::INTERNAL_ERROR, message);
            self.refuse(&refusal).await;
        }
    }

    async fn refuse(&self, refusal: &Refusal) {
        let mut line = refusal.to_json().to_string().into_bytes();
        line.push(b'\n');
        // Nobody reads the output any more; the writer has said so.
        if self.outbox.send(line).await.is_err() {
            tracing::debug!("a refusal was not sent");
        }
    }
}

/// What rmcp takes for the wire.
struct Link {
    incoming: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    outbox: mpsc::Sender<Vec<u8>>,
    pending: Arc<Pending>,
}

impl Transport<RoleServer> for Link {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outbox = self.outbox.clone();
        let pending = self.pending.clone();
        async move {
            let answered = answered_request(&item);
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let sent = outbox.send(line).await;
            if let Some(id) = answered {
                pending.remove(&id);
            }
            sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.incoming.close();
        Ok(())
    }
}

fn answered_request(item: &TxJsonRpcMessage<RoleServer>) -> Option<RequestId> {
    match item {
        JsonRpcMessage::Response(it) => Some(it.id.clone()),
        JsonRpcMessage::Error(it) => it.id.clone(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Writes lines until there are no more. When it cannot, everything stops.
async fn write<W: AsyncWrite + Unpin>(
    mut output: W,
    mut outgoing: mpsc::Receiver<Vec<u8>>,
    stop: CancellationToken,
    written: Arc<AtomicU64>,
) -> io::Result<()> {
    let result: io::Result<()> = async {
        while let Some(line) = outgoing.recv().await {
            write_counted(&mut output, &line, &written).await?;
            // Flushed when nothing waits, so that a burst of answers is one write to the pipe.
            while let Ok(line) = outgoing.try_recv() {
                write_counted(&mut output, &line, &written).await?;
            }
            output.flush().await?;
        }
        Ok(())
    }
    .await;
    if result.is_err() {
        stop.cancel();
    }
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

async fn write_counted<W: AsyncWrite + Unpin>(
    output: &mut W,
    mut line: &[u8],
    written: &AtomicU64,
) -> io::Result<()> {
    while !line.is_empty() {
        let n = output.write(line).await?;
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        written.fetch_add(n as u64, Ordering::Relaxed);
        line = line.get(n..).unwrap_or_default();
    }
    Ok(())
}
