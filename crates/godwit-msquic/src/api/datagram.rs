//! Sending datagrams.

use crate::abi::{Buffer, Handle, SendFlags, Status};
use crate::connection::Datagram;
use crate::context::Context;
use crate::handle::Kind;
use bytes::BytesMut;
use std::ffi::c_void;

/// The longest datagram of all.
const MOST: u64 = u16::MAX as u64;

pub(super) unsafe extern "C" fn send(
    connection: Handle,
    buffers: *const Buffer,
    buffer_count: u32,
    flags: SendFlags,
    client_send_context: *mut c_void,
) -> Status {
    // SAFETY: the application has given the list of its buffers.
    let buffers = unsafe { super::slice(buffers, buffer_count as usize) };
    let Some(buffers) = buffers.filter(|buffers| !buffers.is_empty()) else {
        return Status::INVALID_PARAMETER;
    };
    let total: u64 = buffers.iter().map(|buffer| u64::from(buffer.length)).sum();
    if total > MOST {
        return Status::INVALID_PARAMETER;
    }
    let mut data = BytesMut::with_capacity(usize::try_from(total).unwrap_or_default());
    for buffer in buffers {
        // SAFETY: the application has given the buffer, and leaves it as it is during the call.
        let Some(bytes) = (unsafe { super::slice(buffer.buffer.cast_const(), buffer.length as usize) })
        else {
            return Status::INVALID_PARAMETER;
        };
        data.extend_from_slice(bytes);
    }
    let datagram = Datagram {
        data: data.freeze(),
        context: Context::new(client_send_context),
        unless_blocked: flags.contains(SendFlags::CANCEL_ON_BLOCKED),
    };
    let found = super::Found::of(connection, Kind::Connection);
    let sent = found.and_then(|it| it.connection(|cx, state, key| state.send_datagram(cx, key, datagram)));
    match sent {
        None => Status::INVALID_PARAMETER,
        Some(Ok(())) => Status::PENDING,
        Some(Err(status)) => status,
    }
}
