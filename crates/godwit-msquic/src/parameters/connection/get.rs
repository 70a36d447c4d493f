//! Reading parameters of connections.

use super::super::{Room, statistics};
use crate::abi::parameters::connection as p;
use crate::abi::{
    Address, Boolean, NetworkStatistics, ParameterId, Setting, SettingValues, Statistics, StatisticsV2,
    Status, StreamSchedulingScheme,
};
use crate::connection::Connection;
use crate::settings;
use crate::worker::State;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::{Connection as Transport, Direction, StreamLimits};

pub(in super::super) fn get(
    cx: &ShardCx<'_>,
    state: &State,
    key: Key,
    parameter: ParameterId,
    room: &mut Room<'_>,
) -> Result<(), Status> {
    let connection = state.connections.get(key).ok_or(Status::INVALID_PARAMETER)?;
    let transport = connection.key.and_then(|conn| cx.endpoint().connection(conn));
    let kept = &connection.parameters;
    match parameter {
        p::QUIC_VERSION => room.put(version(connection, transport)),
        p::LOCAL_ADDRESS => address(room, connection.local.map(Address::from).or(kept.local)),
        p::REMOTE_ADDRESS => address(room, connection.remote.map(Address::from)),
        p::IDEAL_PROCESSOR => room.put(u16::from(state.number)),
        p::SETTINGS => room.put_settings(&told_settings(connection), &all_settings(connection)),
        p::VERSION_SETTINGS => kept.versions.get(room),
        p::STATISTICS | p::STATISTICS_PLAT => {
            room.need(size_of::<Statistics>())?;
            room.put_members(statistics::older(&statistics::of(connection, transport)), &Statistics::LAYOUT)
        }
        p::STATISTICS_V2 | p::STATISTICS_V2_PLAT => {
            let [least, ..] = StatisticsV2::SIZES;
            room.need_grown(least, size_of::<StatisticsV2>())?;
            room.put_part(statistics::of(connection, transport), &StatisticsV2::LAYOUT);
            Ok(())
        }
        p::NETWORK_STATISTICS => {
            room.put_members(statistics::of_network(connection, transport), &NetworkStatistics::LAYOUT)
        }
        p::SHARE_UDP_BINDING => room.put(Boolean::from(connection.is_server || connection.shares_socket)),
        p::LOCAL_BIDI_STREAM_COUNT => {
            room.put(available(limits(connection, transport, Direction::Bidirectional)))
        }
        p::LOCAL_UNIDI_STREAM_COUNT => {
            room.put(available(limits(connection, transport, Direction::Unidirectional)))
        }
        p::MAX_STREAM_IDS => room.put(largest_stream_ids(connection, transport)),
        p::CLOSE_REASON_PHRASE => close_reason(connection, room),
        p::STREAM_SCHEDULING_SCHEME => room.put(if kept.round_robin {
            StreamSchedulingScheme::ROUND_ROBIN
        } else {
            StreamSchedulingScheme::FIFO
        }),
        p::DATAGRAM_RECEIVE_ENABLED => {
            room.put(Boolean::from(connection.setting(Setting::DatagramReceiveEnabled) != 0))
        }
        p::DATAGRAM_SEND_ENABLED => room.put(Boolean::from(sends_datagrams(connection))),
        p::DISABLE_1RTT_ENCRYPTION => room.put(Boolean::from(kept.disable_encryption)),
        p::ORIG_DEST_CID => {
            let id = transport.map(Transport::original_dcid).or(kept.original_id.as_ref());
            let id = id.ok_or(Status::INVALID_STATE)?;
            room.put_bytes(id.as_bytes())
        }
        p::SEND_DSCP => room.put(kept.dscp),
        p::CLOSE_ASYNC => room.put(Boolean::from(kept.close_async)),
        _ => Err(Status::INVALID_PARAMETER),
    }
}

/// The version in use, or that it was begun with, or that it will be. 0 if nothing is known of that.
fn version(connection: &Connection, transport: Option<&Transport>) -> u32 {
    let kept = &connection.parameters;
    transport.map(Transport::version).or(kept.versions().first()).unwrap_or(kept.last_version)
}

fn address(room: &mut Room<'_>, address: Option<Address>) -> Result<(), Status> {
    room.need(size_of::<Address>())?;
    room.put(address.ok_or(Status::INVALID_STATE)?)
}

/// Those settings that were made for the connection, or for its configuration.
fn told_settings(connection: &Connection) -> SettingValues {
    let configured = connection.configuration.as_ref().map(|it| it.settings()).unwrap_or_default();
    let mut told = configured;
    connection.settings.iter().for_each(|(setting, value)| told.set(setting, value));
    told
}

fn all_settings(connection: &Connection) -> SettingValues {
    let configured = connection.configuration.as_ref().map(|it| it.settings()).unwrap_or_default();
    settings::over(&settings::globals(), &[&configured, &connection.settings])
}

/// How many streams there may be in a direction, or were when the connection ended.
fn limits(
    connection: &Connection,
    transport: Option<&Transport>,
    direction: Direction,
) -> Option<StreamLimits> {
    let last = || connection.parameters.last_limits(direction);
    transport.map(|transport| transport.stream_limits(direction)).or_else(last)
}

/// How many more streams this end may open now.
fn available(limits: Option<StreamLimits>) -> u16 {
    limits.map_or(0, |limits| u16::try_from(limits.available()).unwrap_or(u16::MAX))
}

/// What is not permitted any more, of each kind: the first stream id that is too large.
fn largest_stream_ids(connection: &Connection, transport: Option<&Transport>) -> [u64; 4] {
    let mut ids = [0; 4];
    for (kind, id) in (0_u64..).zip(&mut ids) {
        // RFC 9000 section 2.1: the lowest bit says who opens it, the next one for which directions it is.
        let is_of_server = kind & 1 != 0;
        let (direction, setting) = if kind & 2 == 0 {
            (Direction::Bidirectional, Setting::PeerBidiStreamCount)
        } else {
            (Direction::Unidirectional, Setting::PeerUnidiStreamCount)
        };
        let limits = limits(connection, transport, direction);
        let count = if is_of_server == connection.is_server {
            limits.map_or(0, |limits| limits.permitted)
        } else {
            limits.map_or_else(|| connection.settings.get(setting).unwrap_or(0), |it| it.permitted_to_peer)
        };
        *id = count << 2 | kind;
    }
    ids
}

/// With a zero byte behind it, and up to the first one in it.
fn close_reason(connection: &Connection, room: &mut Room<'_>) -> Result<(), Status> {
    let reason = &connection.close_reason;
    if reason.is_empty() && !connection.parameters.has_close_reason {
        return Err(Status::NOT_FOUND);
    }
    let text = reason.split(|byte| *byte == 0).next().unwrap_or_default();
    room.put_bytes(&[text, &[0]].concat())
}

/// Until the peer has said that it takes none, datagrams may be sent.
fn sends_datagrams(connection: &Connection) -> bool {
    connection.is_open() && connection.datagrams.may_be_sent()
}
