//! Functions of connections.

use super::{Found, with_connection};
use crate::abi::{
    AddressFamily, Boolean, ConnectionCallbackHandler, ConnectionShutdownFlags, Handle, KeyingMaterialConfig,
    MAX_RESUMPTION_APP_DATA_LENGTH, MAX_SNI_LENGTH, SendResumptionFlags, Status, TlsAlertCode, UINT62_MAX,
};
use crate::configuration::CONFIGURATIONS;
use crate::connection::{Connection, Server};
use crate::context::Context;
use crate::handle::{self, Kind};
use crate::registration::{REGISTRATIONS, Registration};
use crate::worker::{self, TurnOf, Worker};
use godwit_base::slab::Key;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

pub(super) unsafe extern "C" fn open(
    registration: Handle,
    handler: ConnectionCallbackHandler,
    context: *mut c_void,
    connection: *mut Handle,
) -> Status {
    let only = REGISTRATIONS.get(registration).and_then(|registration| registration.partition());
    let worker = worker::pool().and_then(|pool| match only {
        Some(number) => pool.worker(number),
        None => pool.next_worker(),
    });
    // SAFETY: the application's promise is passed on.
    unsafe { open_at(worker, registration, handler, context, connection) }
}

pub(super) unsafe extern "C" fn open_in_partition(
    registration: Handle,
    partition_index: u16,
    handler: ConnectionCallbackHandler,
    context: *mut c_void,
    connection: *mut Handle,
) -> Status {
    let number = u8::try_from(partition_index).ok();
    let worker = worker::pool().zip(number).and_then(|(pool, number)| pool.worker(number));
    // SAFETY: the application's promise is passed on.
    unsafe { open_at(worker, registration, handler, context, connection) }
}

unsafe fn open_at(
    worker: Option<&'static Worker>,
    registration: Handle,
    handler: ConnectionCallbackHandler,
    context: *mut c_void,
    connection: *mut Handle,
) -> Status {
    let Some(registration) = REGISTRATIONS.get(registration) else { return Status::INVALID_PARAMETER };
    let Some(worker) = worker else { return Status::INVALID_PARAMETER };
    if connection.is_null() || handler.is_none() {
        return Status::INVALID_PARAMETER;
    }
    match new_connection(worker, registration, handler, context) {
        Ok((_, opened)) => {
            // SAFETY: the application has given a place for a handle.
            unsafe { connection.write(opened) };
            Status::SUCCESS
        }
        Err(status) => status,
    }
}

/// A new connection of a client, with its handle.
///
/// # Errors
/// [`Status::INVALID_STATE`] if the registration is shut down, [`Status::OUT_OF_MEMORY`] if there are too many connections.
pub(super) fn new_connection(
    worker: &Worker,
    registration: Arc<Registration>,
    handler: ConnectionCallbackHandler,
    context: *mut c_void,
) -> Result<(Key, Handle), Status> {
    if registration.shutdown().is_some() {
        return Err(Status::INVALID_STATE);
    }
    worker.visit(|_, state| {
        if state.connections.len() >= handle::MOST {
            return Err(Status::OUT_OF_MEMORY);
        }
        let mut opened = Connection::new(registration, false);
        (opened.handler, opened.context, opened.is_owned) = (handler, Context::new(context), true);
        let key = state.connections.insert(opened);
        Ok((key, state.connection_handle(key)))
    })
}

pub(super) unsafe extern "C" fn close(connection: Handle) {
    let Some(found) = Found::of(connection, Kind::Connection) else { return };
    let closing = found.connection(|cx, state, key| {
        let returns_at_once = state.connections.get(key)?.parameters.close_async;
        Some((key, returns_at_once, state.close_connection(cx, key)?))
    });
    let Some((key, returns_at_once, gate)) = closing.flatten() else { return };
    found.worker.tell_rest(TurnOf::Connection(key), (!returns_at_once).then_some(&*gate));
}

pub(super) unsafe extern "C" fn shutdown(
    connection: Handle,
    flags: ConnectionShutdownFlags,
    error_code: u64,
) {
    if error_code <= UINT62_MAX {
        with_connection(connection, |_, cx, state, key| state.shut_down(cx, key, flags, error_code));
    }
}

pub(super) unsafe extern "C" fn start(
    connection: Handle,
    configuration: Handle,
    family: AddressFamily,
    server_name: *const c_char,
    server_port: u16,
) -> Status {
    let Some(configuration) = CONFIGURATIONS.get(configuration) else { return Status::INVALID_PARAMETER };
    if server_port == 0 || family.c_name().is_none() {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the application has given no name, or one that ends with a zero byte.
    let Ok(name) = (unsafe { server_name_of(server_name) }) else { return Status::INVALID_PARAMETER };
    let has_name = name.is_some();
    let may_start = with_connection(connection, |worker, _, state, key| {
        let connection = state.connections.get(key).ok_or(Status::INVALID_PARAMETER)?;
        if connection.is_server || connection.remote.is_none() && !has_name {
            return Err(Status::INVALID_PARAMETER);
        }
        if connection.is_started || connection.closed_locally {
            return Err(Status::INVALID_STATE);
        }
        Ok((worker, key))
    });
    let (worker, key) = match may_start.unwrap_or(Err(Status::INVALID_PARAMETER)) {
        Ok(found) => found,
        Err(status) => return status,
    };
    if configuration.credential().is_none() {
        return Status::INVALID_PARAMETER;
    }
    let server = Server { name, port: server_port, family };
    match crate::connection::start(worker, key, configuration, server) {
        Ok(()) => Status::PENDING,
        Err(status) => status,
    }
}

/// The name of a server, if one is given.
///
/// # Safety
/// It is null, or ends with a zero byte.
pub(super) unsafe fn server_name_of(name: *const c_char) -> Result<Option<Box<str>>, Status> {
    if name.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller promises it.
    let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Status::INVALID_PARAMETER)?;
    if name.len() > MAX_SNI_LENGTH as usize {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(Some(name.into()))
}

pub(super) unsafe extern "C" fn set_configuration(connection: Handle, configuration: Handle) -> Status {
    let Some(configuration) = CONFIGURATIONS.get(configuration) else { return Status::INVALID_PARAMETER };
    let outcome = with_connection(connection, |_, cx, state, key| {
        let connection = state.connections.get(key).ok_or(Status::INVALID_PARAMETER)?;
        if !connection.is_server {
            return Err(Status::INVALID_PARAMETER);
        }
        if connection.configuration.is_some() {
            return Err(Status::INVALID_STATE);
        }
        if configuration.credential().is_none_or(|credential| credential.is_client()) {
            return Err(Status::INVALID_PARAMETER);
        }
        state.set_configuration(cx, key, configuration)
    });
    match outcome.unwrap_or(Err(Status::INVALID_PARAMETER)) {
        Ok(()) => Status::PENDING,
        Err(status) => status,
    }
}

pub(super) unsafe extern "C" fn send_resumption_ticket(
    connection: Handle,
    flags: SendResumptionFlags,
    data_length: u16,
    resumption_data: *const u8,
) -> Status {
    if u32::from(data_length) > MAX_RESUMPTION_APP_DATA_LENGTH || flags.unknown() != 0 {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the application has given so many bytes, or null.
    let Some(data) = (unsafe { super::slice(resumption_data, data_length.into()) }) else {
        return Status::INVALID_PARAMETER;
    };
    let is_last = flags.contains(SendResumptionFlags::FINAL);
    let outcome =
        with_connection(connection, |_, cx, state, key| state.send_resumption_ticket(cx, key, data, is_last));
    outcome.unwrap_or(Err(Status::INVALID_PARAMETER)).err().unwrap_or(Status::SUCCESS)
}

pub(super) unsafe extern "C" fn resumption_ticket_validation_complete(
    connection: Handle,
    result: Boolean,
) -> Status {
    let outcome = with_connection(connection, |_, cx, state, key| {
        state.complete_ticket_validation(cx, key, result.is_true())
    });
    outcome.unwrap_or(Err(Status::INVALID_PARAMETER)).err().unwrap_or(Status::PENDING)
}

pub(super) unsafe extern "C" fn certificate_validation_complete(
    connection: Handle,
    result: Boolean,
    tls_alert: TlsAlertCode,
) -> Status {
    let alert = match (result.is_true(), tls_alert.alert()) {
        (true, _) => None,
        (false, Some(alert)) => Some(alert),
        (false, None) => return Status::INVALID_PARAMETER,
    };
    let done = with_connection(connection, |_, cx, state, key| state.approve(cx, key, alert));
    if done.is_some() { Status::PENDING } else { Status::INVALID_PARAMETER }
}

pub(super) unsafe extern "C" fn export_keying_material(
    connection: Handle,
    config: *const KeyingMaterialConfig,
    output: *mut u8,
) -> Status {
    if config.is_null() || output.is_null() {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the application has given it, and leaves it as it is during the call.
    let config = unsafe { *config };
    // SAFETY: as above.
    let context = unsafe { super::slice(config.context, config.context_length as usize) };
    if config.label.is_null() || config.output_length == 0 || context.is_none() {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the application has given a label that ends with a zero byte.
    let label = unsafe { CStr::from_ptr(config.label) }.to_bytes();
    let mut material = vec![0; config.output_length as usize];
    let Some(found) = Found::of(connection, Kind::Connection) else { return Status::INVALID_PARAMETER };
    let is_of_worker = found.worker.is_current();
    let status = found.connection(|cx, state, key| {
        let connection = state.connections.get(key).filter(|it| it.tls_use.is_of_use(is_of_worker));
        let conn = connection.and_then(|connection| connection.key);
        let Some(transport) = conn.and_then(|conn| cx.endpoint().connection(conn)) else {
            return Status::INVALID_STATE;
        };
        match transport.export_keying_material(label, context.unwrap_or_default(), &mut material) {
            Ok(()) => Status::SUCCESS,
            Err(_) => Status::INVALID_STATE,
        }
    });
    let status = status.unwrap_or(Status::INVALID_PARAMETER);
    if status.succeeded() {
        // SAFETY: the application has given a place for so many bytes.
        unsafe { output.copy_from_nonoverlapping(material.as_ptr(), material.len()) };
    }
    status
}
