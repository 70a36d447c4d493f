//! Parameters of streams.

use super::{Given, Room};
use crate::abi::parameters::{private_stream as private, stream as p};
use crate::abi::{ParameterId, Status, StreamStatistics};
use crate::connection::IDEAL_SEND_BUFFER;
use crate::worker::State;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::StreamId;

pub(super) fn get(
    cx: &ShardCx<'_>,
    state: &State,
    key: Key,
    parameter: ParameterId,
    room: &mut Room<'_>,
) -> Result<(), Status> {
    let stream = state.streams.get(key).ok_or(Status::INVALID_PARAMETER)?;
    match parameter {
        p::ID => {
            room.need(size_of::<u64>())?;
            room.put(stream.id.map(StreamId::as_u64).ok_or(Status::INVALID_STATE)?)
        }
        p::ZERO_RTT_LENGTH => {
            room.need(size_of::<u64>())?;
            // It is known once the peer has all.
            let is_known = stream.id.is_some() && stream.sending.is_over();
            if is_known { room.put(stream.sending.early_bytes) } else { Err(Status::INVALID_STATE) }
        }
        p::IDEAL_SEND_BUFFER_SIZE => {
            let conn = state.connections.get(stream.connection).and_then(|connection| connection.key);
            let transport = conn.and_then(|conn| cx.endpoint().connection(conn));
            let ideal =
                transport.zip(stream.open_id()).and_then(|(transport, id)| transport.ideal_buffer(id).ok());
            room.put(ideal.unwrap_or(IDEAL_SEND_BUFFER))
        }
        p::PRIORITY => room.put(stream.priority),
        p::STATISTICS => {
            room.need(size_of::<StreamStatistics>())?;
            stream.id.ok_or(Status::INVALID_STATE)?;
            // By what a stream is held up is not measured here.
            room.put(StreamStatistics::default())
        }
        p::RELIABLE_OFFSET => {
            room.need(size_of::<u64>())?;
            room.put(stream.reliable_offset.filter(|offset| *offset != 0).ok_or(Status::INVALID_STATE)?)
        }
        private::RELIABLE_OFFSET_RECV => {
            room.need(size_of::<u64>())?;
            room.put(stream.receiving.reliable().ok_or(Status::INVALID_STATE)?)
        }
        _ => Err(Status::INVALID_PARAMETER),
    }
}

pub(super) fn set(
    cx: &mut ShardCx<'_>,
    state: &mut State,
    key: Key,
    parameter: ParameterId,
    given: &Given<'_>,
) -> Result<(), Status> {
    let stream = state.streams.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
    match parameter {
        p::PRIORITY => {
            stream.priority = given.exactly()?;
            state.apply_priority(cx, key);
            Ok(())
        }
        p::RELIABLE_OFFSET => {
            let offset: u64 = given.exactly()?;
            let negotiated = state.connections.get(stream.connection).is_some_and(|it| it.can_reset_reliably);
            if !negotiated || stream.sending.is_ending() || offset > stream.sending.queued_bytes() {
                return Err(Status::INVALID_STATE);
            }
            stream.reliable_offset = Some(offset);
            Ok(())
        }
        _ => Err(Status::INVALID_PARAMETER),
    }
}
