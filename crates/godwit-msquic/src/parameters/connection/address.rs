//! A client's own address: the one it is to begin from, and once the handshake is confirmed, the one it moves to.

use super::super::{Given, found};
use crate::abi::{Address, Handle, Status};
use crate::connection::{Connection, shared_sockets};
use crate::found::with_connection;
use crate::io_status::status_of;
use crate::worker::{self, State, Worker};
use godwit_base::SocketId;
use godwit_base::slab::Key;
use godwit_transport::MigrateError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// No network leads from that address to the peer (`ENETUNREACH`), which has no name among status codes.
const NETWORK_UNREACHABLE: Status = Status(101);

/// A connection that is to move.
struct Moving {
    worker: &'static Worker,
    key: Key,
    remote: SocketAddr,
    shares_socket: bool,
}

/// Sets the own address.
///
/// # Errors
/// [`Status::INVALID_STATE`] at a server, and at a client that is in its handshake or over; why the address cannot be had.
pub(super) fn set_local(handle: Handle, given: &Given<'_>) -> Result<(), Status> {
    given.is_of::<Address>()?;
    let moving = found(with_connection(handle, |worker, _, state, key| {
        let connection = state.connections.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
        begin_from(connection, given).map(|remote| {
            remote.map(|remote| Moving { worker, key, remote, shares_socket: connection.shares_socket })
        })
    }))?;
    match moving {
        Some(moving) => moving.move_to(&given.exactly()?),
        None => Ok(()),
    }
}

/// The connection begins from that address. If it has begun, the peer's address is told.
fn begin_from(connection: &mut Connection, given: &Given<'_>) -> Result<Option<SocketAddr>, Status> {
    let has_begun = connection.has_begun();
    if connection.is_server || connection.closed_locally || has_begun && !connection.is_connected {
        return Err(Status::INVALID_STATE);
    }
    let address: Address = given.exactly()?;
    if !address.is_valid() {
        return Err(Status::INVALID_PARAMETER);
    }
    if has_begun {
        return connection.remote.map(Some).ok_or(Status::INVALID_STATE);
    }
    connection.parameters.local = Some(address);
    connection.local = match (address.socket_address(), address.port()) {
        (None, 0) => None,
        (None, port) => Some((Ipv6Addr::UNSPECIFIED, port).into()),
        (Some(mut local), _) => {
            if let SocketAddr::V6(local) = &mut local
                && connection.parameters.interface != 0
            {
                local.set_scope_id(connection.parameters.interface);
            }
            Some(local)
        }
    };
    Ok(None)
}

impl Moving {
    /// Has a socket made there, unless there is one that is shared, and the connection moved to it.
    fn move_to(self, address: &Address) -> Result<(), Status> {
        let pool = worker::pool().ok_or(Status::INVALID_STATE)?;
        let any: IpAddr =
            if self.remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let local = address.socket_address().unwrap_or_else(|| SocketAddr::new(any, address.port()));
        if local.is_ipv4() != self.remote.is_ipv4() && !local.ip().is_unspecified() {
            return Err(NETWORK_UNREACHABLE);
        }
        let made = match self.shares_socket {
            true => shared_sockets::join(pool, Some(local), self.remote),
            false => self.worker.bind(pool, local),
        };
        let (socket, bound) = made.map_err(|error| status_of(&error))?;
        let moved = self.worker.visit(|cx, state| {
            let now = cx.now();
            let conn = state.connections.get(self.key).and_then(|it| it.key).ok_or(Status::INVALID_STATE)?;
            let begun = cx.endpoint_mut().with(conn, |transport| transport.migrate(now, socket, None));
            begun.ok_or(Status::INVALID_STATE)?.map_err(status_of_refusal)?;
            Ok(self.on_moving(state, socket, bound))
        });
        match moved {
            Ok(unused) => {
                unused.into_iter().for_each(|socket| shared_sockets::leave(self.worker, socket));
                Ok(())
            }
            Err(status) => {
                shared_sockets::leave(self.worker, socket);
                Err(status)
            }
        }
    }

    /// The socket that it had for itself before is closed as soon as it has moved: it is used until then.
    fn on_moving(&self, state: &mut State, socket: SocketId, bound: SocketAddr) -> Option<SocketId> {
        let connection = state.connections.get_mut(self.key)?;
        connection.parameters.local = Some(bound.into());
        connection.local = Some(bound);
        connection.own_socket.replace(socket)
    }
}

fn status_of_refusal(error: MigrateError) -> Status {
    match error {
        MigrateError::NoSocket => Status::ADDRESS_NOT_AVAILABLE,
        MigrateError::Unsupported => Status::NOT_SUPPORTED,
        _ => Status::INVALID_STATE,
    }
}
