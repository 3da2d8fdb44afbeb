//! What the host keeps for a tool that speaks HTTP, counted against the tool's memory.
//!
//! A tool holds handles to lists of headers, requests and responses in our memory. The runtime's
//! functions that create or change these are wrapped here: the object behind a handle is measured after
//! each change, and its memory is released with the handle. The other functions of `wasi:http` are the
//! runtime's own.

use crate::wasm::budget::{Charge, NoMemory, Slot};
use crate::wasm::state::{State, Stop};
use std::collections::HashMap;
use std::sync::Arc;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler;
use wasmtime_wasi_http::p2::bindings::http::types::{
    ErrorCode, FutureIncomingResponse, HeaderError, Host, HostFields, HostOutgoingRequest,
    HostOutgoingResponse, Method, OutgoingRequest, OutgoingResponse, RequestOptions,
};
use wasmtime_wasi_http::{FieldMap, WasiHttpView as _};

/// The version that the runtime links; tools for earlier versions get the same.
const TYPES: &str = "wasi:http/types@0.2.12";
const HANDLER: &str = "wasi:http/outgoing-handler@0.2.12";

/// The most bytes that a tool passes at once for the body of a request.
pub(crate) const BODY_CHUNK_BYTES: usize = 64 * 1024;
/// What a request or a response takes besides its headers: one chunk is sent and one waits.
const MESSAGE_BYTES: u64 = 2 * BODY_CHUNK_BYTES as u64 + 1024;
/// The longest method, host with its port, and path with its query.
const METHOD_BYTES_MAX: usize = 32;
const AUTHORITY_BYTES_MAX: usize = 512;
const PATH_BYTES_MAX: usize = 16 * 1024;

/// What is kept for the handles of one call.
#[derive(Default)]
pub(crate) struct Kept {
    charges: HashMap<u32, Charge>,
}

impl Kept {
    /// Sets the size of the object behind a handle. It never shrinks, since a list keeps its capacity when
    /// entries are removed.
    fn set(&mut self, slot: &Arc<Slot>, rep: u32, bytes: u64) -> Result<(), NoMemory> {
        match self.charges.get_mut(&rep) {
            Some(charge) => charge.raise_to(bytes),
            None => {
                self.charges.insert(rep, Charge::new(slot, bytes)?);
                Ok(())
            }
        }
    }

    fn drop(&mut self, rep: u32) {
        self.charges.remove(&rep);
    }
}

/// The memory of a list of headers: its tables with their room, and the texts.
fn bytes(fields: &FieldMap) -> u64 {
    /// A slot of the hash table, an entry with name and value, and a further value of a name.
    const INDEX: usize = 8;
    const ENTRY: usize = 112;
    const FURTHER: usize = 2 * 80;
    /// The overhead of an allocation.
    const TEXT: usize = 32;
    let texts = fields.iter();
    let texts = texts.map(|(name, value)| name.as_str().len() + value.len() + TEXT);
    let further = fields.len() - fields.keys_len();
    let room = fields.capacity() * (INDEX + ENTRY) + further * FURTHER;
    (size_of::<FieldMap>() + room + texts.sum::<usize>()) as u64
}

impl State {
    /// Counts a list of headers after it was made or changed.
    fn count_fields(&mut self, rep: u32) -> wasmtime::Result<()> {
        let bytes = bytes(self.table.get(&Resource::<FieldMap>::new_borrow(rep))?);
        Ok(self.kept.set(&self.slot, rep, bytes).map_err(Stop::from)?)
    }

    /// Counts a message that replaces the headers it was made from.
    fn count_message(&mut self, fields: u64, rep: u32) -> wasmtime::Result<()> {
        let bytes = MESSAGE_BYTES.saturating_add(fields);
        Ok(self.kept.set(&self.slot, rep, bytes).map_err(Stop::from)?)
    }

    /// The size of the headers behind a handle that is about to be taken away.
    fn release_fields(&mut self, rep: u32) -> wasmtime::Result<u64> {
        let bytes = bytes(self.table.get(&Resource::<FieldMap>::new_borrow(rep))?);
        self.kept.drop(rep);
        Ok(bytes)
    }
}

type Ctx<'a> = StoreContextMut<'a, State>;
type Fields = Resource<FieldMap>;
type Told<T> = wasmtime::Result<(Result<T, HeaderError>,)>;

/// Replaces functions that the runtime linked by ours.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut types = linker.instance(TYPES)?;
    fields(&mut types)?;
    messages(&mut types)?;
    texts(&mut types)?;
    linker.instance(HANDLER)?.func_wrap(
        "handle",
        |mut ctx: Ctx<'_>, (request, options): (Resource<OutgoingRequest>, Option<Resource<RequestOptions>>)| {
            let state = ctx.data_mut();
            // From here on the limit of requests per call bounds it.
            state.kept.drop(request.rep());
            let mut http = state.http();
            let answer = outgoing_handler::Host::handle(&mut http, request, options);
            let answer: Result<Resource<FutureIncomingResponse>, ErrorCode> = match answer {
                Ok(future) => Ok(future),
                Err(err) => Err(Host::convert_error_code(&mut http, err)?),
            };
            Ok((answer,))
        },
    )
}

fn fields(types: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    types.resource(
        "fields",
        ResourceType::host::<FieldMap>(),
        |mut ctx, rep| {
            ctx.data_mut().kept.drop(rep);
            HostFields::drop(&mut ctx.data_mut().http(), Resource::new_own(rep))
        },
    )?;
    types.func_wrap("[constructor]fields", |mut ctx: Ctx<'_>, (): ()| {
        let made = HostFields::new(&mut ctx.data_mut().http())?;
        ctx.data_mut().count_fields(made.rep())?;
        Ok((made,))
    })?;
    types.func_wrap(
        "[static]fields.from-list",
        |mut ctx: Ctx<'_>, (entries,): (Vec<(String, Vec<u8>)>,)| -> Told<Fields> {
            let mut http = ctx.data_mut().http();
            match HostFields::from_list(&mut http, entries) {
                Ok(made) => {
                    ctx.data_mut().count_fields(made.rep())?;
                    Ok((Ok(made),))
                }
                Err(err) => Ok((Err(Host::convert_header_error(&mut http, err)?),)),
            }
        },
    )?;
    types.func_wrap(
        "[method]fields.set",
        |mut ctx: Ctx<'_>, (it, name, values): (Fields, String, Vec<Vec<u8>>)| -> Told<()> {
            let rep = it.rep();
            let mut http = ctx.data_mut().http();
            let done = HostFields::set(&mut http, it, name, values);
            let told = match done {
                Ok(()) => Ok(()),
                Err(err) => Err(Host::convert_header_error(&mut http, err)?),
            };
            // Also when it was refused: memory may have been allocated for it.
            ctx.data_mut().count_fields(rep)?;
            Ok((told,))
        },
    )?;
    types.func_wrap(
        "[method]fields.append",
        |mut ctx: Ctx<'_>, (it, name, value): (Fields, String, Vec<u8>)| -> Told<()> {
            let rep = it.rep();
            let mut http = ctx.data_mut().http();
            let done = HostFields::append(&mut http, it, name, value);
            let told = match done {
                Ok(()) => Ok(()),
                Err(err) => Err(Host::convert_header_error(&mut http, err)?),
            };
            ctx.data_mut().count_fields(rep)?;
            Ok((told,))
        },
    )?;
    types.func_wrap(
        "[method]fields.clone",
        |mut ctx: Ctx<'_>, (it,): (Fields,)| {
            let made = HostFields::clone(&mut ctx.data_mut().http(), it)?;
            ctx.data_mut().count_fields(made.rep())?;
            Ok((made,))
        },
    )
}

fn messages(types: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    types.resource(
        "outgoing-request",
        ResourceType::host::<OutgoingRequest>(),
        |mut ctx, rep| {
            ctx.data_mut().kept.drop(rep);
            HostOutgoingRequest::drop(&mut ctx.data_mut().http(), Resource::new_own(rep))
        },
    )?;
    types.resource(
        "outgoing-response",
        ResourceType::host::<OutgoingResponse>(),
        |mut ctx, rep| {
            ctx.data_mut().kept.drop(rep);
            HostOutgoingResponse::drop(&mut ctx.data_mut().http(), Resource::new_own(rep))
        },
    )?;
    types.func_wrap(
        "[constructor]outgoing-request",
        |mut ctx: Ctx<'_>, (headers,): (Fields,)| {
            let bytes = ctx.data_mut().release_fields(headers.rep())?;
            let made = HostOutgoingRequest::new(&mut ctx.data_mut().http(), headers)?;
            ctx.data_mut().count_message(bytes, made.rep())?;
            Ok((made,))
        },
    )?;
    types.func_wrap(
        "[constructor]outgoing-response",
        |mut ctx: Ctx<'_>, (headers,): (Fields,)| {
            let bytes = ctx.data_mut().release_fields(headers.rep())?;
            let made = HostOutgoingResponse::new(&mut ctx.data_mut().http(), headers)?;
            ctx.data_mut().count_message(bytes, made.rep())?;
            Ok((made,))
        },
    )
}

/// Texts of a request, which the runtime would take at any length.
fn texts(types: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    type Request = Resource<OutgoingRequest>;
    type Done = wasmtime::Result<(Result<(), ()>,)>;
    let is_long =
        |text: &Option<String>, max: usize| text.as_ref().is_some_and(|it| it.len() > max);
    types.func_wrap(
        "[method]outgoing-request.set-method",
        |mut ctx: Ctx<'_>, (it, method): (Request, Method)| -> Done {
            if matches!(&method, Method::Other(name) if name.len() > METHOD_BYTES_MAX) {
                return Ok((Err(()),));
            }
            let mut http = ctx.data_mut().http();
            Ok((HostOutgoingRequest::set_method(&mut http, it, method)?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-authority",
        move |mut ctx: Ctx<'_>, (it, authority): (Request, Option<String>)| -> Done {
            if is_long(&authority, AUTHORITY_BYTES_MAX) {
                return Ok((Err(()),));
            }
            let mut http = ctx.data_mut().http();
            Ok((HostOutgoingRequest::set_authority(
                &mut http, it, authority,
            )?,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-path-with-query",
        move |mut ctx: Ctx<'_>, (it, path): (Request, Option<String>)| -> Done {
            if is_long(&path, PATH_BYTES_MAX) {
                return Ok((Err(()),));
            }
            let mut http = ctx.data_mut().http();
            Ok((HostOutgoingRequest::set_path_with_query(
                &mut http, it, path,
            )?,))
        },
    )
}
