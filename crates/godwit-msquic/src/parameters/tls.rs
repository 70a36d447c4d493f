//! Parameters of the TLS of connections, once there is TLS.

use super::Room;
use super::kept::agreed;
use crate::abi::parameters::tls as p;
use crate::abi::{HandshakeInfo, ParameterId, Status};
use crate::connection::Connection;
use crate::worker::{State, Worker};
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::Connection as Transport;

pub(super) fn get(
    worker: &Worker,
    cx: &ShardCx<'_>,
    state: &State,
    key: Key,
    parameter: ParameterId,
    room: &mut Room<'_>,
) -> Result<(), Status> {
    let connection = state.connections.get(key).ok_or(Status::INVALID_PARAMETER)?;
    let transport = connection.key.and_then(|conn| cx.endpoint().connection(conn));
    if !has_tls(worker, connection) {
        return Err(Status::INVALID_STATE);
    }
    match parameter {
        p::HANDSHAKE_INFO => {
            if room.bytes() < HandshakeInfo::MIN_SIZE {
                return room.need(size_of::<HandshakeInfo>());
            }
            room.need(HandshakeInfo::MIN_SIZE)?;
            let info = transport.map_or(connection.parameters.agreed, agreed);
            let info = info.unwrap_or(Err(Status::INVALID_STATE))?;
            room.put_part(info, &HandshakeInfo::LAYOUT);
            Ok(())
        }
        p::NEGOTIATED_ALPN => {
            // Here alone nowhere to write is said before how much there is to be had.
            room.start().ok_or(Status::INVALID_PARAMETER)?;
            let known = || Some(&*connection.alpn).filter(|_| connection.is_connected);
            let alpn = transport.and_then(Transport::alpn).or_else(known).filter(|alpn| !alpn.is_empty());
            room.put_bytes(alpn.ok_or(Status::INVALID_STATE)?)
        }
        _ => Err(Status::NOT_SUPPORTED),
    }
}

/// Nothing of it can be set.
pub(super) fn set(worker: &Worker, state: &State, key: Key) -> Result<(), Status> {
    let has_tls = state.connections.get(key).is_some_and(|connection| has_tls(worker, connection));
    Err(if has_tls { Status::NOT_SUPPORTED } else { Status::INVALID_PARAMETER })
}

/// A client has it as soon as it is started, a server once it has a configuration, and until it is not needed any more.
fn has_tls(worker: &Worker, connection: &Connection) -> bool {
    let has_begun = connection.parameters.has_been_begun() || connection.is_started && !connection.is_server;
    has_begun && connection.tls_use.is_of_use(worker.is_current())
}
