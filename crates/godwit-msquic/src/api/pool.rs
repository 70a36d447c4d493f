//! Pools: several connections to one server that are opened and started by one call (preview).
//!
//! They are spread over the receive queues of a network card, which only the datapath of XDP on Windows can tell of. Here, as
//! with MsQuic on Linux, what was asked is checked, and there is no pool.

use super::connection::server_name_of;
use crate::abi::{ConnectionPoolConfig, Handle, Status};
use crate::configuration::CONFIGURATIONS;
use crate::registration::REGISTRATIONS;
use std::ptr::null_mut;

pub(super) unsafe extern "C" fn create(config: *mut ConnectionPoolConfig, pool: *mut Handle) -> Status {
    if config.is_null() || pool.is_null() {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the application has given it, and what it points to stays as it is during the call.
    let (config, is_right) = unsafe { (*config, is_right(&*config)) };
    if !is_right {
        return Status::INVALID_PARAMETER;
    }
    for index in 0..usize::from(config.number_of_connections) {
        // SAFETY: the application has given a place for so many handles.
        unsafe { pool.add(index).write(null_mut()) };
    }
    Status::NOT_SUPPORTED
}

/// Whether a pool could be made of it.
///
/// # Safety
/// The name ends with a zero byte, if it is not null.
unsafe fn is_right(config: &ConnectionPoolConfig) -> bool {
    let configuration = CONFIGURATIONS.get(config.configuration);
    let has_credential = configuration.is_some_and(|it| it.credential().is_some());
    let has_registration = REGISTRATIONS.get(config.registration).is_some();
    // SAFETY: the caller promises it.
    has_registration
        && has_credential
        && is_complete(config)
        && unsafe { server_name_of(config.server_name) }.is_ok()
}

/// Whether everything is there that has to be.
fn is_complete(config: &ConnectionPoolConfig) -> bool {
    config.number_of_connections > 0
        && config.handler.is_some()
        && !config.server_name.is_null()
        && config.server_port != 0
        && config.family.c_name().is_some()
        && config.cibir_ids.is_null() == (config.cibir_id_length == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{AddressFamily, ConnectionPoolFlags};

    unsafe extern "C" fn handler(
        _: Handle,
        _: *mut std::ffi::c_void,
        _: *mut crate::abi::ConnectionEvent,
    ) -> Status {
        Status::SUCCESS
    }

    fn config() -> ConnectionPoolConfig {
        ConnectionPoolConfig {
            registration: null_mut(),
            configuration: null_mut(),
            handler: Some(handler),
            context: null_mut(),
            server_name: c"localhost".as_ptr(),
            server_address: std::ptr::null(),
            family: AddressFamily::INET,
            server_port: 4433,
            number_of_connections: 2,
            cibir_ids: null_mut(),
            cibir_id_length: 0,
            flags: ConnectionPoolFlags::NONE,
        }
    }

    #[test]
    fn everything_has_to_be_there() {
        assert!(is_complete(&config()));
        assert!(!is_complete(&ConnectionPoolConfig { handler: None, ..config() }));
        assert!(!is_complete(&ConnectionPoolConfig { server_name: std::ptr::null(), ..config() }));
        assert!(!is_complete(&ConnectionPoolConfig { server_port: 0, ..config() }));
        assert!(!is_complete(&ConnectionPoolConfig { number_of_connections: 0, ..config() }));
        assert!(!is_complete(&ConnectionPoolConfig { family: AddressFamily(77), ..config() }));
    }

    #[test]
    fn ids_go_with_their_length() {
        let mut ids = [null_mut(); 2];
        let with_ids = ConnectionPoolConfig { cibir_ids: ids.as_mut_ptr(), ..config() };
        assert!(!is_complete(&with_ids));
        assert!(is_complete(&ConnectionPoolConfig { cibir_id_length: 4, ..with_ids }));
        assert!(!is_complete(&ConnectionPoolConfig { cibir_id_length: 4, ..config() }));
    }

    #[test]
    fn a_pool_needs_a_registration() {
        let mut made = [null_mut(); 2];
        let mut wanted = config();
        // SAFETY: the places are there, and there are as many as connections.
        let status = unsafe { create(&raw mut wanted, made.as_mut_ptr()) };
        assert_eq!(status, Status::INVALID_PARAMETER);
    }
}
