//! Functions of handles of any kind.

use super::Found;
use crate::abi::{
    ConnectionCallbackHandler, Handle, ListenerCallbackHandler, ParameterId, Status, StreamCallbackHandler,
};
use crate::configuration::CONFIGURATIONS;
use crate::context::Context;
use crate::handle::{self, Kind};
use crate::listener::LISTENERS;
use crate::parameters::{self, Given, Room};
use crate::registration::REGISTRATIONS;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

pub(super) unsafe extern "C" fn set_context(handle: Handle, context: *mut c_void) {
    let context = Context::new(context);
    match handle::parts(handle).map(|parts| parts.kind) {
        Some(Kind::Configuration) => {
            if let Some(configuration) = CONFIGURATIONS.get(handle) {
                configuration.set_context(context);
            }
        }
        Some(Kind::Listener) => {
            if let Some(listener) = LISTENERS.get(handle) {
                listener.set_context(context);
            }
        }
        Some(Kind::Connection) => {
            Found::of(handle, Kind::Connection).and_then(|found| {
                found
                    .connection(|_, state, key| state.connections.get_mut(key).map(|it| it.context = context))
            });
        }
        Some(Kind::Stream) => {
            Found::of(handle, Kind::Stream).and_then(|found| {
                found.stream(|_, state, key| state.streams.get_mut(key).map(|it| it.context = context))
            });
        }
        Some(Kind::Registration) => {
            if let Some(registration) = REGISTRATIONS.get(handle) {
                registration.set_context(context);
            }
        }
        Some(Kind::Execution) | None => {}
    }
}

pub(super) unsafe extern "C" fn get_context(handle: Handle) -> *mut c_void {
    let context = match handle::parts(handle).map(|parts| parts.kind) {
        Some(Kind::Configuration) => CONFIGURATIONS.get(handle).map(|configuration| configuration.context()),
        Some(Kind::Listener) => LISTENERS.get(handle).map(|listener| listener.context()),
        Some(Kind::Connection) => Found::of(handle, Kind::Connection).and_then(|found| {
            found.connection(|_, state, key| state.connections.get(key).map(|it| it.context)).flatten()
        }),
        Some(Kind::Stream) => Found::of(handle, Kind::Stream).and_then(|found| {
            found.stream(|_, state, key| state.streams.get(key).map(|it| it.context)).flatten()
        }),
        Some(Kind::Registration) => REGISTRATIONS.get(handle).and_then(|registration| registration.context()),
        Some(Kind::Execution) | None => None,
    };
    context.map_or(null_mut(), Context::pointer)
}

pub(super) unsafe extern "C" fn set_callback_handler(
    handle: Handle,
    handler: *mut c_void,
    context: *mut c_void,
) {
    let context = Context::new(context);
    match handle::parts(handle).map(|parts| parts.kind) {
        Some(Kind::Listener) => {
            if let Some(listener) = LISTENERS.get(handle) {
                // SAFETY: what the application gives for a listener is such a function, or null, which is none.
                let handler = unsafe { std::mem::transmute::<*mut c_void, ListenerCallbackHandler>(handler) };
                listener.set_handler(handler, context);
            }
        }
        Some(Kind::Connection) => {
            // SAFETY: what the application gives for a connection is such a function, or null, which is none.
            let handler = unsafe { std::mem::transmute::<*mut c_void, ConnectionCallbackHandler>(handler) };
            Found::of(handle, Kind::Connection).and_then(|found| {
                found.connection(|_, state, key| {
                    state.connections.get_mut(key).map(|it| (it.handler, it.context) = (handler, context))
                })
            });
        }
        Some(Kind::Stream) => {
            // SAFETY: what the application gives for a stream is such a function, or null, which is none.
            let handler = unsafe { std::mem::transmute::<*mut c_void, StreamCallbackHandler>(handler) };
            Found::of(handle, Kind::Stream).and_then(|found| {
                found.stream(|_, state, key| {
                    state.streams.get_mut(key).map(|it| (it.handler, it.context) = (handler, context))
                })
            });
        }
        Some(Kind::Registration | Kind::Configuration | Kind::Execution) | None => {}
    }
}

pub(super) unsafe extern "C" fn set_param(
    handle: Handle,
    parameter: ParameterId,
    buffer_length: u32,
    buffer: *const c_void,
) -> Status {
    let bytes = if buffer.is_null() {
        None
    } else {
        // SAFETY: the application has given so many bytes, and leaves them as they are during the call.
        unsafe { super::slice(buffer.cast::<u8>(), buffer_length as usize) }
    };
    parameters::set(handle, parameter, &Given::new(bytes, buffer_length)).err().unwrap_or(Status::SUCCESS)
}

pub(super) unsafe extern "C" fn get_param(
    handle: Handle,
    parameter: ParameterId,
    buffer_length: *mut u32,
    buffer: *mut c_void,
) -> Status {
    if buffer_length.is_null() {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the application has given the length.
    let mut length = unsafe { buffer_length.read_unaligned() };
    let place = if buffer.is_null() {
        None
    } else {
        // SAFETY: the application has given a place for so many bytes, which is nobody else's during the call.
        Some(unsafe { std::slice::from_raw_parts_mut(buffer.cast::<MaybeUninit<u8>>(), length as usize) })
    };
    let outcome = parameters::get(handle, parameter, &mut Room::new(&mut length, place));
    // SAFETY: as above.
    unsafe { buffer_length.write_unaligned(length) };
    outcome.err().unwrap_or(Status::SUCCESS)
}
