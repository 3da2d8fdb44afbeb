//! PDF pages: read on a thread of their own, because the reader is not ours and files come from anybody.
//!
//! The reader bounds what it unpacks, how deep it goes and how long it works. A panic ends its thread and
//! nothing else. A thread that does not look at the time is left behind and counts until it ends, so that
//! there are never many.

use kenning_core::Error;
use kenning_entities::page::Page;
use kenning_entities::page::pdf::{self, PdfFault};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// After this time, what was read so far is the result …
const READING: Duration = Duration::from_secs(10);
/// … and after this time it fails.
const PATIENCE: Duration = Duration::from_secs(15);
/// At most this many files are read at once.
const THREADS_MAX: usize = 4;
/// Objects may nest, and the reader follows them by recursion.
const STACK_BYTES: usize = 32 * 1024 * 1024;

static N_THREADS: AtomicUsize = AtomicUsize::new(0);

/// A place among the threads that read, given back when its thread ends.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let taken = N_THREADS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
            (n < THREADS_MAX).then_some(n + 1)
        });
        taken.ok().map(|_| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        N_THREADS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The text of a PDF file.
pub(super) fn read(bytes: Vec<u8>) -> Result<Page, Error> {
    let Some(place) = Place::take() else {
        let error = Error::unavailable("too many PDF files are being read");
        return Err(error.hint("call again in a moment"));
    };
    let (sender, receiver) = sync_channel(1);
    let work = move || {
        let _place = place;
        let began = Instant::now();
        let read = || pdf::read(&bytes, &|| began.elapsed() > READING);
        let read = catch_unwind(AssertUnwindSafe(read)).unwrap_or(Err(PdfFault::Broken));
        // Nobody takes it where the caller has given up.
        drop(sender.send(read));
    };
    let thread = std::thread::Builder::new()
        .name("pdf".to_owned())
        .stack_size(STACK_BYTES);
    let thread = thread.spawn(work);
    thread.map_err(|error| Error::unavailable("no thread for a PDF file").because(error))?;
    let read = receiver
        .recv_timeout(PATIENCE)
        .unwrap_or(Err(PdfFault::Late));
    read.map_err(|fault| Error::invalid(fault.in_words()))
}
