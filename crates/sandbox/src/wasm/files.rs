//! The directory that a tool may see, and the quota on it.
//!
//! WASI has no quotas, so this module wraps the runtime's file functions: each function that can make a
//! directory grow first reserves space in a [`Ledger`], and fails with "no space left" if there is none.
//! Finished reservations count until the directory is measured again, which happens when it seems full;
//! so deleting frees space then. Unfinished ones count in addition. Concurrent calls of one tool share
//! one ledger.
//!
//! Links cannot be created: a hard link would count one file twice, and a symbolic link is a trap for
//! other programs that walk the directory.

mod ledger;

use crate::wasm::state::State;
use bytes::Bytes;
use kenning_core::Result;
use kenning_vault::Dir;
pub(crate) use ledger::{Ledger, Ledgers};
use ledger::{Reserved, Used};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::filesystem::{
    Descriptor, Dir as HostDir, WasiFilesystemCtxView, WasiFilesystemView as _,
};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, ErrorCode, Filesize, Host, HostDescriptor, HostDirectoryEntryStream,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, FsError, FsResult, OutputStream, Pollable, StreamError,
    StreamResult,
};
use wasmtime_wasi::{FsPerms, OpenMode};

/// The files that a call can reach.
#[derive(Clone, Default)]
pub(crate) struct Files {
    root: Option<Root>,
    account: Arc<Account>,
}

#[derive(Clone)]
struct Root {
    dir: Dir,
    perms: FsPerms,
}

/// What one call did.
#[derive(Default)]
struct Account {
    ledger: Option<Arc<Ledger>>,
    bytes_written: AtomicU64,
    was_full: AtomicBool,
    was_stream_full: AtomicBool,
}

impl Files {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    pub(crate) fn read_only(dir: &Dir) -> Result<Self> {
        let perms = FsPerms::ReadOnly;
        let dir = dir.clone();
        Ok(Self {
            root: Some(Root { dir, perms }),
            account: Arc::default(),
        })
    }

    pub(crate) fn sandbox(ledger: Arc<Ledger>) -> Result<Self> {
        let perms = FsPerms::ReadWrite;
        let dir = ledger.dir.clone();
        let account = Account {
            ledger: Some(ledger),
            ..Account::default()
        };
        Ok(Self {
            root: Some(Root { dir, perms }),
            account: Arc::new(account),
        })
    }

    pub(crate) fn bytes_written(&self) -> u64 {
        self.account.bytes_written.load(Ordering::Relaxed)
    }

    pub(crate) fn was_full(&self) -> bool {
        self.account.was_full.load(Ordering::Relaxed)
    }

    /// Whether a stream failed because the directory was full. Many tools cannot distinguish that from other failures.
    pub(crate) fn was_stream_full(&self) -> bool {
        self.account.was_stream_full.load(Ordering::Relaxed)
    }
}

impl Account {
    /// Reserves space while the returned value is held, or fails with "no space left".
    fn reserve(&self, bytes: u64, files: u64) -> FsResult<Option<Reserved>> {
        let Some(ledger) = &self.ledger else {
            return Ok(None);
        };
        let reserved = Used { bytes, files };
        if ledger.reserve(reserved) {
            let ledger = ledger.clone();
            return Ok(Some(Reserved { ledger, reserved }));
        }
        self.was_full.store(true, Ordering::Relaxed);
        Err(ErrorCode::InsufficientSpace.into())
    }

    /// Fails with "no space left" if there is no space for a single byte.
    fn require_room(&self) -> FsResult<()> {
        let one = Used { bytes: 1, files: 0 };
        let has_room = |ledger: &Arc<Ledger>| ledger.fits(&mut ledger.balance(), one);
        if self.ledger.as_ref().is_none_or(has_room) {
            return Ok(());
        }
        self.was_full.store(true, Ordering::Relaxed);
        Err(ErrorCode::InsufficientSpace.into())
    }

    fn room(&self) -> u64 {
        self.ledger.as_ref().map_or(u64::MAX, |ledger| {
            let balance = ledger.balance();
            let used = balance.done.plus(balance.under_way);
            ledger.most.bytes.saturating_sub(used.bytes)
        })
    }

    fn wrote(&self, bytes: u64) {
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The runtime's own functions, and our accounting.
pub(crate) struct View<'a> {
    inner: WasiFilesystemCtxView<'a>,
    files: Files,
}

struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = View<'a>;
}

/// Replaces functions that the runtime linked by ours.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    fn view(state: &mut State) -> View<'_> {
        let files = state.files.clone();
        let inner = state.filesystem();
        View { inner, files }
    }
    preopens::add_to_linker::<State, HasFiles>(linker, view)?;
    types::add_to_linker::<State, HasFiles>(linker, view)
}

impl View<'_> {
    /// The size of an open file; zero for anything else.
    fn size(&self, fd: &Resource<Descriptor>) -> FsResult<u64> {
        Ok(match self.inner.table.get(fd)? {
            Descriptor::File(it) => it.file.metadata().map_or(0, |it| it.len()),
            Descriptor::Dir(_) => 0,
        })
    }

    fn meter_stream(
        &mut self,
        fd: &Resource<Descriptor>,
        stream: Resource<DynOutputStream>,
        at: Option<Filesize>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let file = match self.inner.table.get(fd)? {
            Descriptor::File(it) => it.file.clone(),
            Descriptor::Dir(_) => return Err(ErrorCode::IsDirectory.into()),
        };
        // Some C libraries turn every failure of a stream into "I/O error", but report why one cannot be opened.
        if at.is_none_or(|at| at >= file.metadata().map_or(0, |it| it.len())) {
            self.files.account.require_room()?;
        }
        let place = self.inner.table.get_mut(&stream)?;
        let inner = std::mem::replace(place, Box::new(Closed));
        *place = Box::new(Metered {
            inner,
            file,
            at,
            account: self.files.account.clone(),
            under_way: None,
        });
        Ok(stream)
    }
}

impl preopens::Host for View<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let Some(Root { dir, perms }) = &self.files.root else {
            return Ok(Vec::new());
        };
        let mode = match perms {
            FsPerms::ReadOnly => OpenMode::READ,
            FsPerms::ReadWrite => OpenMode::READ | OpenMode::WRITE,
        };
        let handle = dir.handle().map_err(|err| wasmtime::format_err!("{err}"))?;
        // A file function that hangs must not keep the call from ending, so it has its own thread.
        let own_thread = false;
        let dir = Descriptor::Dir(HostDir::new(handle, *perms, mode, own_thread));
        let dir = self.inner.table.push(dir)?;
        Ok(vec![(dir, "/".to_owned())])
    }
}

impl Host for View<'_> {
    fn convert_error_code(&mut self, err: FsError) -> wasmtime::Result<ErrorCode> {
        self.inner.convert_error_code(err)
    }

    fn filesystem_error_code(
        &mut self,
        err: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.inner.filesystem_error_code(err)
    }
}

impl HostDescriptor for View<'_> {
    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        self.inner.read_via_stream(fd, offset)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self
            .inner
            .write_via_stream(Resource::new_borrow(fd.rep()), offset)?;
        self.meter_stream(&fd, stream, Some(offset))
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self
            .inner
            .append_via_stream(Resource::new_borrow(fd.rep()))?;
        self.meter_stream(&fd, stream, None)
    }

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
        len: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        self.inner.advise(fd, offset, len, advice).await
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.inner.sync_data(fd).await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.inner.get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.inner.get_type(fd).await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let growth = size.saturating_sub(self.size(&fd)?);
        let _room = self.files.account.reserve(growth, 0)?;
        self.inner.set_size(fd, size).await
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        access: NewTimestamp,
        change: NewTimestamp,
    ) -> FsResult<()> {
        self.inner.set_times(fd, access, change).await
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        len: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.inner.read(fd, len, offset).await
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        let end = offset.saturating_add(bytes.len() as u64);
        let growth = end.saturating_sub(self.size(&fd)?);
        let _room = self.files.account.reserve(growth, 0)?;
        let written = self.inner.write(fd, bytes, offset).await?;
        self.files.account.wrote(written);
        Ok(written)
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        self.inner.read_directory(fd).await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.inner.sync(fd).await
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let _room = self.files.account.reserve(0, 1)?;
        self.inner.create_directory_at(fd, path).await
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.inner.stat(fd).await
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.inner.stat_at(fd, flags, path).await
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        access: NewTimestamp,
        change: NewTimestamp,
    ) -> FsResult<()> {
        self.inner
            .set_times_at(fd, flags, path, access, change)
            .await
    }

    async fn link_at(
        &mut self,
        _: Resource<Descriptor>,
        _: PathFlags,
        _: String,
        _: Resource<Descriptor>,
        _: String,
    ) -> FsResult<()> {
        Err(ErrorCode::NotPermitted.into())
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let files = u64::from(open_flags.contains(OpenFlags::CREATE));
        let _room = self.files.account.reserve(0, files)?;
        self.inner
            .open_at(fd, path_flags, path, open_flags, flags)
            .await
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        self.inner.readlink_at(fd, path).await
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.inner.remove_directory_at(fd, path).await
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old: String,
        to: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        self.inner.rename_at(fd, old, to, new).await
    }

    async fn symlink_at(&mut self, _: Resource<Descriptor>, _: String, _: String) -> FsResult<()> {
        Err(ErrorCode::NotPermitted.into())
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.inner.unlink_file_at(fd, path).await
    }

    async fn is_same_object(
        &mut self,
        one: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.inner.is_same_object(one, other).await
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.inner.metadata_hash(fd).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.inner.metadata_hash_at(fd, flags, path).await
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.inner, fd)
    }
}

impl HostDirectoryEntryStream for View<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.inner.read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        HostDirectoryEntryStream::drop(&mut self.inner, stream)
    }
}

/// A stream into a file that reserves before it writes.
struct Metered {
    inner: DynOutputStream,
    file: Arc<File>,
    /// Where the next byte goes; `None` is the end of the file.
    at: Option<u64>,
    account: Arc<Account>,
    /// What the last write reserved; it is finished when the stream accepts another one.
    under_way: Option<Reserved>,
}

/// The most data that waits in our memory until it is written.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Linux, macOS and the BSDs agree on this number.
const NO_SPACE_LEFT: i32 = 28;

impl Metered {
    /// How much can be written before the directory is full, as far as is known without measuring.
    fn room(&self) -> u64 {
        let size = self.file.metadata().map_or(0, |it| it.len());
        let inside = self.at.map_or(0, |at| size.saturating_sub(at));
        inside.saturating_add(self.account.room())
    }
}

#[async_trait::async_trait]
impl Pollable for Metered {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait::async_trait]
impl OutputStream for Metered {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let len = bytes.len() as u64;
        if bytes.len() > WRITE_BYTES_MAX {
            let why = "more was written than `check-write` permitted";
            return Err(StreamError::Trap(wasmtime::format_err!("{why}")));
        }
        let growth = match self.at {
            Some(at) => {
                let size = self.file.metadata().map_or(0, |it| it.len());
                at.saturating_add(len).saturating_sub(size)
            }
            None => len,
        };
        let Ok(room) = self.account.reserve(growth, 0) else {
            self.account.was_stream_full.store(true, Ordering::Relaxed);
            let full = std::io::Error::from_raw_os_error(NO_SPACE_LEFT);
            return Err(StreamError::LastOperationFailed(full.into()));
        };
        self.under_way = room;
        self.inner.write(bytes)?;
        self.at = self.at.map(|at| at.saturating_add(len));
        self.account.wrote(len);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let permitted = self.inner.check_write()?;
        if permitted > 0 {
            self.under_way = None;
        }
        // Writes as much as fits, as a disk does; only then it fails.
        let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
        let room = if room == 0 { WRITE_BYTES_MAX } else { room };
        Ok(permitted.min(WRITE_BYTES_MAX).min(room))
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

/// A placeholder while a stream is being wrapped.
struct Closed;

#[async_trait::async_trait]
impl Pollable for Closed {
    async fn ready(&mut self) {}
}

#[async_trait::async_trait]
impl OutputStream for Closed {
    fn write(&mut self, _: Bytes) -> StreamResult<()> {
        Err(StreamError::Closed)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Err(StreamError::Closed)
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Err(StreamError::Closed)
    }
}
