//! Functions of streams.

use super::{Found, with_connection};
use crate::abi::{
    Boolean, Buffer, Handle, SendFlags, Setting, Status, StreamCallbackHandler, StreamOpenFlags,
    StreamShutdownFlags, StreamStartFlags, UINT62_MAX,
};
use crate::context::Context;
use crate::handle::{self, Kind};
use crate::stream::{Request, Start, Stream};
use crate::worker::{Gate, TurnOf};
use godwit_transport::Direction;
use std::ffi::c_void;
use std::sync::Arc;

pub(super) unsafe extern "C" fn open(
    connection: Handle,
    flags: StreamOpenFlags,
    handler: StreamCallbackHandler,
    context: *mut c_void,
    stream: *mut Handle,
) -> Status {
    if stream.is_null() || handler.is_none() {
        return Status::INVALID_PARAMETER;
    }
    let direction = match flags.contains(StreamOpenFlags::UNIDIRECTIONAL) {
        true => Direction::Unidirectional,
        false => Direction::Bidirectional,
    };
    let opened = with_connection(connection, |_, _, state, key| {
        let owner = state.connections.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
        if owner.closed_locally {
            return Err(Status::INVALID_STATE);
        }
        if owner.closed_remotely {
            return Err(Status::ABORTED);
        }
        if state.streams.len() >= handle::MOST {
            return Err(Status::OUT_OF_MEMORY);
        }
        let mut opened = state.spare.place(Stream::local(key, direction, handler, Context::new(context)));
        opened.receiving.show_several(owner.setting(Setting::StreamMultiReceiveEnabled) != 0);
        if flags.contains(StreamOpenFlags::APP_OWNED_BUFFERS) {
            opened.receiving.receive_into_own();
        }
        let opened = state.streams.insert_with(|key| {
            opened.number = owner.streams.add(key);
            opened
        });
        Ok(state.stream_handle(opened))
    });
    match opened.unwrap_or(Err(Status::INVALID_PARAMETER)) {
        Ok(opened) => {
            // SAFETY: the application has given a place for a handle.
            unsafe { stream.write(opened) };
            Status::SUCCESS
        }
        Err(status) => status,
    }
}

pub(super) unsafe extern "C" fn close(stream: Handle) {
    let Some(found) = Found::of(stream, Kind::Stream) else { return };
    // In a callback, what is left is told here.
    let gate = (!found.worker.is_current()).then(Arc::<Gate>::default);
    let closing = found.stream(|cx, state, key| {
        state.release_place(cx, key);
        state.close_stream(cx, key, gate.clone()).then_some(key)
    });
    if let Some(key) = closing.flatten() {
        found.worker.tell_rest(TurnOf::Stream(key), gate.as_deref());
    }
}

pub(super) unsafe extern "C" fn start(stream: Handle, flags: StreamStartFlags) -> Status {
    let Some(found) = Found::of(stream, Kind::Stream) else { return Status::INVALID_PARAMETER };
    let status = found.stream(|cx, state, key| {
        let stream = state.streams.get(key)?;
        let connection = state.connections.get(stream.connection)?;
        if stream.start != Start::No {
            return Some(Status::INVALID_STATE);
        }
        if connection.closed_remotely {
            return Some(Status::ABORTED);
        }
        // How it goes is told.
        let _ = state.start_stream(cx, key, flags);
        Some(Status::PENDING)
    });
    status.flatten().unwrap_or(Status::INVALID_PARAMETER)
}

/// Whether these ways to shut a stream down can be asked for together.
fn go_together(flags: StreamShutdownFlags) -> bool {
    let (abort, immediate) = (StreamShutdownFlags::ABORT, StreamShutdownFlags::IMMEDIATE);
    let is_graceful = flags.contains(StreamShutdownFlags::GRACEFUL);
    let is_abrupt = flags.0 & abort.union(immediate).0 != 0;
    if flags.contains(immediate) {
        return flags == immediate.union(abort);
    }
    flags != StreamShutdownFlags::NONE && !(is_graceful && is_abrupt)
}

pub(super) unsafe extern "C" fn shutdown(
    stream: Handle,
    flags: StreamShutdownFlags,
    error_code: u64,
) -> Status {
    let Some(found) = Found::of(stream, Kind::Stream) else { return Status::INVALID_PARAMETER };
    if error_code > UINT62_MAX || !go_together(flags) {
        return Status::INVALID_PARAMETER;
    }
    let done = found.stream(|cx, state, key| {
        state.shut_stream_down(cx, key, flags, error_code);
        key
    });
    match done {
        None => Status::INVALID_PARAMETER,
        Some(key) if flags.contains(StreamShutdownFlags::INLINE) && found.worker.is_current() => {
            crate::worker::deliver_all(found.worker, TurnOf::Stream(key));
            Status::SUCCESS
        }
        Some(_) => Status::PENDING,
    }
}

pub(super) unsafe extern "C" fn send(
    stream: Handle,
    buffers: *const Buffer,
    buffer_count: u32,
    flags: SendFlags,
    client_send_context: *mut c_void,
) -> Status {
    let Some(found) = Found::of(stream, Kind::Stream) else { return Status::INVALID_PARAMETER };
    // SAFETY: the application has given the list of its buffers.
    let Some(buffers) = (unsafe { super::slice(buffers, buffer_count as usize) }) else {
        return Status::INVALID_PARAMETER;
    };
    let total: u64 = buffers.iter().map(|buffer| u64::from(buffer.length)).sum();
    let is_missing = |buffer: &Buffer| buffer.length > 0 && buffer.buffer.is_null();
    if total > u64::from(u32::MAX) || buffers.iter().any(is_missing) {
        return Status::INVALID_PARAMETER;
    }
    let request = Request { buffers, flags, context: Context::new(client_send_context) };
    let status = found.stream(|cx, state, key| {
        if let Some(refused) = state.refuses_send(key) {
            return refused;
        }
        // SAFETY: the application lends the memory until it is told that it has it back.
        unsafe { state.queue_send(key, &request) };
        let unstarted = state.streams.get(key).is_some_and(|stream| stream.start == Start::No);
        if flags.contains(SendFlags::START) && unstarted {
            let _ = state.start_stream(cx, key, StreamStartFlags::NONE);
        } else {
            state.pump(cx, key);
            state.copy_unsent(key);
        }
        Status::PENDING
    });
    status.unwrap_or(Status::INVALID_PARAMETER)
}

pub(super) unsafe extern "C" fn receive_complete(stream: Handle, buffer_length: u64) {
    if let Some(found) = Found::of(stream, Kind::Stream) {
        found.stream(|cx, state, key| state.receive_complete(cx, key, buffer_length));
    }
}

pub(super) unsafe extern "C" fn receive_set_enabled(stream: Handle, is_enabled: Boolean) -> Status {
    let Some(found) = Found::of(stream, Kind::Stream) else { return Status::INVALID_PARAMETER };
    let status = found.stream(|_, state, key| {
        let closed_remotely = state.streams.get(key).and_then(|it| state.connections.get(it.connection));
        if closed_remotely.is_some_and(|connection| connection.closed_remotely) {
            return Status::ABORTED;
        }
        state.set_receive_enabled(key, is_enabled.is_true());
        Status::PENDING
    });
    status.unwrap_or(Status::INVALID_PARAMETER)
}

pub(super) unsafe extern "C" fn provide_receive_buffers(
    stream: Handle,
    buffer_count: u32,
    buffers: *const Buffer,
) -> Status {
    let Some(found) = Found::of(stream, Kind::Stream) else { return Status::INVALID_PARAMETER };
    // SAFETY: the application has given the list of its buffers.
    let buffers = unsafe { super::slice(buffers, buffer_count as usize) };
    let is_memory = |buffer: &Buffer| buffer.length > 0 && !buffer.buffer.is_null();
    let Some(buffers) = buffers.filter(|it| !it.is_empty() && it.iter().all(is_memory)) else {
        return Status::INVALID_PARAMETER;
    };
    // SAFETY: the application leaves the memory to the stream.
    let outcome = found.stream(|_, state, key| unsafe { state.provide_memory(key, buffers) });
    match outcome {
        None => Status::INVALID_PARAMETER,
        Some(Ok(())) => Status::SUCCESS,
        Some(Err(status)) => status,
    }
}
