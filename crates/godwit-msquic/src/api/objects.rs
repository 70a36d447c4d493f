//! Functions of registrations, configurations and listeners.

use super::slice;
use crate::abi::{
    Address, Buffer, ConnectionShutdownFlags, CredentialConfig, CredentialFlags, ExecutionProfile, Handle,
    ListenerCallbackHandler, MAX_ALPN_LENGTH, RegistrationCloseCallbackHandler, RegistrationConfig,
    SettingValues, Settings, Status, UINT62_MAX,
};
use crate::configuration::{CONFIGURATIONS, Configuration};
use crate::context::Context;
use crate::credential::Credential;
use crate::listener::{LISTENERS, Listener};
use crate::registration::{self, REGISTRATIONS};
use crate::registrations;
use crate::settings;
use bytes::Bytes;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

/// Names of applications are shorter, in bytes.
const LONGEST_NAME: usize = 255;

pub(super) unsafe extern "C" fn registration_open(
    config: *const RegistrationConfig,
    registration: *mut Handle,
) -> Status {
    // SAFETY: the application has given none, or one.
    let config = unsafe { config.as_ref() };
    let name = config.map(|config| config.app_name).filter(|name| !name.is_null());
    // SAFETY: a name ends with a zero byte.
    let is_short = name.is_none_or(|name| unsafe { CStr::from_ptr(name) }.count_bytes() < LONGEST_NAME);
    if registration.is_null() || !is_short {
        return Status::INVALID_PARAMETER;
    }
    let profile = config.map_or(ExecutionProfile::LOW_LATENCY, |config| config.execution_profile);
    match registrations::open(profile) {
        Ok(opened) => {
            // SAFETY: the application has given a place for a handle.
            unsafe { registration.write(opened) };
            Status::SUCCESS
        }
        Err(status) => status,
    }
}

pub(super) unsafe extern "C" fn registration_close(registration: Handle) {
    if let Some(registration) = REGISTRATIONS.remove(registration) {
        registration.on_handle_closed();
        registration.wait_for_children();
    }
}

pub(super) unsafe extern "C" fn registration_close2(
    registration: Handle,
    handler: RegistrationCloseCallbackHandler,
    context: *mut c_void,
) {
    let Some(handler) = handler else { return };
    if let Some(registration) = REGISTRATIONS.remove(registration) {
        registration.on_handle_closed();
        // SAFETY: the application has given a function that can be called with this.
        registration.when_closed(unsafe { registration::told_by(handler, Context::new(context)) });
    }
}

pub(super) unsafe extern "C" fn registration_shutdown(
    registration: Handle,
    flags: ConnectionShutdownFlags,
    error_code: u64,
) {
    if let Some(registration) = REGISTRATIONS.get(registration).filter(|_| error_code <= UINT62_MAX) {
        registrations::shut_down(&registration, flags, error_code);
    }
}

/// Protocols as the application gives them.
///
/// # Safety
/// The list and what is in it are the application's, and stay as they are during the call.
unsafe fn protocols(buffers: *const Buffer, count: u32) -> Result<Vec<Bytes>, Status> {
    // SAFETY: the caller promises it.
    let buffers = unsafe { slice(buffers, count as usize) };
    let buffers = buffers.filter(|buffers| !buffers.is_empty()).ok_or(Status::INVALID_PARAMETER)?;
    let (mut protocols, mut total) = (Vec::new(), 0_usize);
    for buffer in buffers {
        if buffer.length == 0 || buffer.length > MAX_ALPN_LENGTH || buffer.buffer.is_null() {
            return Err(Status::INVALID_PARAMETER);
        }
        total = total.saturating_add(1).saturating_add(buffer.length as usize);
        // SAFETY: the caller promises it.
        let bytes = unsafe { slice(buffer.buffer.cast_const(), buffer.length as usize) };
        protocols.push(Bytes::copy_from_slice(bytes.unwrap_or_default()));
    }
    if total > usize::from(u16::MAX) { Err(Status::INVALID_PARAMETER) } else { Ok(protocols) }
}

/// Settings that say something. Where no bit says that one is set, neither they nor their size are looked at.
///
/// # Errors
/// [`Status::INVALID_PARAMETER`] if they are too short, or one is refused.
///
/// # Safety
/// It is null, or there are so many bytes of settings, the first of which say which are set.
unsafe fn settings_of(settings: *const Settings, size: u32) -> Result<SettingValues, Status> {
    let mut values = SettingValues::default();
    // SAFETY: the caller promises it.
    if settings.is_null() || unsafe { (&raw const (*settings).is_set_flags).read_unaligned() } == 0 {
        return Ok(values);
    }
    // SAFETY: the caller promises it.
    let bytes = unsafe { slice(settings.cast::<u8>(), size as usize) }.ok_or(Status::INVALID_PARAMETER)?;
    settings::apply(&mut values, &SettingValues::read(bytes)?, false)?;
    Ok(values)
}

pub(super) unsafe extern "C" fn configuration_open(
    registration: Handle,
    alpn_buffers: *const Buffer,
    alpn_buffer_count: u32,
    settings: *const Settings,
    settings_size: u32,
    context: *mut c_void,
    configuration: *mut Handle,
) -> Status {
    let Some(registration) = REGISTRATIONS.get(registration) else { return Status::INVALID_PARAMETER };
    if configuration.is_null() {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the application has given its protocols.
    let alpn = match unsafe { protocols(alpn_buffers, alpn_buffer_count) } {
        Ok(alpn) => alpn,
        Err(status) => return status,
    };
    // SAFETY: the application has given settings of this size, or none.
    let values = match unsafe { settings_of(settings, settings_size) } {
        Ok(values) => values,
        Err(status) => return status,
    };
    let alpn = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let made = Configuration::new(registration, alpn, values, Context::new(context));
    let Some(handle) = CONFIGURATIONS.insert(Arc::new(made)) else { return Status::OUT_OF_MEMORY };
    // SAFETY: the application has given a place for a handle.
    unsafe { configuration.write(handle) };
    Status::SUCCESS
}

pub(super) unsafe extern "C" fn configuration_close(configuration: Handle) {
    CONFIGURATIONS.remove(configuration);
}

pub(super) unsafe extern "C" fn configuration_load_credential(
    configuration: Handle,
    credential_config: *const CredentialConfig,
) -> Status {
    let Some(found) = CONFIGURATIONS.get(configuration) else { return Status::INVALID_PARAMETER };
    if credential_config.is_null() {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the application has given it, and leaves it as it is during the call.
    let config = unsafe { *credential_config };
    // SAFETY: what it points to is as its type and flags say.
    let loaded = unsafe { Credential::load(&config) };
    let status = loaded.map_or_else(
        |status| status,
        |credential| {
            found.set_credential(credential);
            Status::SUCCESS
        },
    );
    if !config.flags.contains(CredentialFlags::LOAD_ASYNCHRONOUS) {
        return status;
    }
    if status.failed() {
        return status;
    }
    let Some(handler) = config.async_handler else { return Status::INVALID_PARAMETER };
    let (context, handle) = (found.context(), configuration.addr());
    let told = std::thread::Builder::new().name("godwit-credential".into()).spawn(move || {
        let context = context;
        // SAFETY: the application has given this function to be told of its credentials with.
        unsafe { handler(std::ptr::without_provenance_mut(handle), context.pointer(), status) };
    });
    if told.is_ok() { Status::PENDING } else { Status::OUT_OF_MEMORY }
}

pub(super) unsafe extern "C" fn listener_open(
    registration: Handle,
    handler: ListenerCallbackHandler,
    context: *mut c_void,
    listener: *mut Handle,
) -> Status {
    let Some(registration) = REGISTRATIONS.get(registration) else { return Status::INVALID_PARAMETER };
    if listener.is_null() || handler.is_none() {
        return Status::INVALID_PARAMETER;
    }
    if registration.shutdown().is_some() {
        return Status::INVALID_STATE;
    }
    let opened = Arc::new(Listener::new(registration, handler, Context::new(context)));
    let Some(handle) = LISTENERS.insert(Arc::clone(&opened)) else { return Status::OUT_OF_MEMORY };
    opened.set_handle(handle);
    // SAFETY: the application has given a place for a handle.
    unsafe { listener.write(handle) };
    Status::SUCCESS
}

pub(super) unsafe extern "C" fn listener_close(listener: Handle) {
    if let Some(listener) = LISTENERS.remove(listener) {
        listener.close();
    }
}

pub(super) unsafe extern "C" fn listener_start(
    listener: Handle,
    alpn_buffers: *const Buffer,
    alpn_buffer_count: u32,
    local_address: *const Address,
) -> Status {
    let Some(listener) = LISTENERS.get(listener) else { return Status::INVALID_PARAMETER };
    // SAFETY: the application has given its protocols.
    let alpn = match unsafe { protocols(alpn_buffers, alpn_buffer_count) } {
        Ok(alpn) => alpn,
        Err(status) => return status,
    };
    // SAFETY: the application has given no address, or one.
    let address = unsafe { local_address.as_ref() };
    if address.is_some_and(|address| !address.is_valid()) {
        return Status::INVALID_PARAMETER;
    }
    listener.start(alpn, address).err().unwrap_or(Status::SUCCESS)
}

pub(super) unsafe extern "C" fn listener_stop(listener: Handle) {
    if let Some(listener) = LISTENERS.get(listener) {
        listener.stop();
    }
}
