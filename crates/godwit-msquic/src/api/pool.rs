//! Pools: several connections to one server that are opened and started by one call (preview).
//!
//! They are spread over the workers by turns. The server's name is looked up once, within the call, so that whoever asks for a
//! pool learns from it whether there is a server at all. A connection that cannot be started is told of by the call, and never
//! to its handler.

use super::connection::{close, new_connection, server_name_of};
use crate::abi::{Address, ConnectionPoolConfig, ConnectionPoolFlags, Handle, Status};
use crate::configuration::{CONFIGURATIONS, Configuration};
use crate::connection::{Server, resolve, start_at};
use crate::registration::{REGISTRATIONS, Registration};
use crate::worker::{self, Worker};
use bytes::Bytes;
use godwit_base::slab::Key;
use std::net::SocketAddr;
use std::ptr::null_mut;
use std::sync::Arc;

/// What a pool is made of, once it has been found right.
struct Plan {
    config: ConnectionPoolConfig,
    registration: Arc<Registration>,
    configuration: Arc<Configuration>,
    server: Server,
    /// The server's address, if it was given.
    address: Option<Address>,
}

pub(super) unsafe extern "C" fn create(config: *mut ConnectionPoolConfig, pool: *mut Handle) -> Status {
    if config.is_null() || pool.is_null() {
        return Status::INVALID_PARAMETER;
    }
    // SAFETY: the application has given it, and what it points to stays as it is during the call.
    let plan = match unsafe { Plan::new(*config) } {
        Ok(plan) => plan,
        Err(status) => return status,
    };
    let count = usize::from(plan.config.number_of_connections);
    // SAFETY: the application has given a place for so many handles.
    let put = |index: usize, handle| unsafe { pool.add(index).write(handle) };
    (0..count).for_each(|index| put(index, null_mut()));
    let remote = match plan.remote() {
        Ok(remote) => remote,
        Err(status) => return status,
    };
    let Some(workers) = worker::pool().map(|pool| pool.workers()) else { return Status::INVALID_PARAMETER };
    let mut made = Vec::new();
    for (index, worker) in workers.iter().cycle().take(count).enumerate() {
        // SAFETY: there are as many contexts and ids as connections, if any.
        match unsafe { plan.connection(worker, index, remote) } {
            Ok(handle) => {
                put(index, handle);
                made.push(handle);
            }
            Err(status) => {
                if plan.config.flags.contains(ConnectionPoolFlags::CLOSE_ON_FAILURE) {
                    for (index, handle) in made.into_iter().enumerate() {
                        // SAFETY: it is the handle of a connection.
                        unsafe { close(handle) };
                        put(index, null_mut());
                    }
                }
                return status;
            }
        }
    }
    Status::SUCCESS
}

impl Plan {
    /// Finds out whether a pool can be made.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if something is missing or does not fit.
    ///
    /// # Safety
    /// The name ends with a zero byte, and there is an address, where these are not null.
    unsafe fn new(config: ConnectionPoolConfig) -> Result<Self, Status> {
        let registration = REGISTRATIONS.get(config.registration).ok_or(Status::INVALID_PARAMETER)?;
        let configuration = CONFIGURATIONS.get(config.configuration).ok_or(Status::INVALID_PARAMETER)?;
        if !is_complete(&config) || configuration.credential().is_none() {
            return Err(Status::INVALID_PARAMETER);
        }
        // SAFETY: the caller promises it.
        let name = unsafe { server_name_of(config.server_name) }?;
        let address =
            // SAFETY: the caller promises it.
            (!config.server_address.is_null()).then(|| unsafe { *config.server_address });
        let server = Server { name, port: config.server_port, family: config.family };
        Ok(Plan { config, registration, configuration, server, address })
    }

    /// Where the server is.
    ///
    /// # Errors
    /// [`Status::NOT_FOUND`] if its name has no address, [`Status::INVALID_PARAMETER`] if what was given is none.
    fn remote(&self) -> Result<SocketAddr, Status> {
        let Some(address) = self.address else { return resolve(&self.server) };
        let address = address.with_port(self.server.port);
        address.socket_address().filter(|_| !address.is_wildcard()).ok_or(Status::INVALID_PARAMETER)
    }

    /// Opens and starts one of the connections.
    ///
    /// # Errors
    /// Why it cannot be started. There is none then.
    ///
    /// # Safety
    /// There are contexts and ids for as many connections, and as many bytes of each id as was said, where these are not null.
    unsafe fn connection(
        &self,
        worker: &'static Worker,
        index: usize,
        remote: SocketAddr,
    ) -> Result<Handle, Status> {
        let config = &self.config;
        let context = match config.context.is_null() {
            true => null_mut(),
            // SAFETY: the caller promises it.
            false => unsafe { *config.context.add(index) },
        };
        let id = match config.cibir_ids.is_null() {
            true => None,
            // SAFETY: the caller promises it.
            false => Some(unsafe { id_at(*config.cibir_ids.add(index), config.cibir_id_length) }?),
        };
        let registration = Arc::clone(&self.registration);
        let (key, handle) = new_connection(worker, registration, config.handler, context)?;
        let started = set_up(worker, key, id.as_deref())
            .and_then(|()| start_at(worker, key, Arc::clone(&self.configuration), &self.server, remote));
        match started {
            Ok(()) => Ok(handle),
            Err(status) => {
                discard(worker, key);
                Err(status)
            }
        }
    }
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

/// A copy of an id.
///
/// # Safety
/// It is null, or there are so many bytes.
unsafe fn id_at(id: *const u8, length: u8) -> Result<Bytes, Status> {
    // SAFETY: the caller promises it.
    let id = unsafe { super::slice(id, length.into()) };
    id.map(Bytes::copy_from_slice).ok_or(Status::INVALID_PARAMETER)
}

/// Connections with an id share sockets, as whoever sets one has to have said.
fn set_up(worker: &Worker, key: Key, id: Option<&[u8]>) -> Result<(), Status> {
    let Some(id) = id else { return Ok(()) };
    worker::make_room_for_identifiers();
    worker.visit(|_, state| {
        let connection = state.connections.get_mut(key).ok_or(Status::INVALID_STATE)?;
        connection.shares_socket = true;
        connection.parameters.set_cibir(id)
    })
}

/// Closes a connection that nobody has heard of.
fn discard(worker: &Worker, key: Key) {
    worker.visit(|cx, state| {
        if let Some(connection) = state.connections.get_mut(key) {
            connection.is_owned = false;
            state.close_connection(cx, key);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::AddressFamily;

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
