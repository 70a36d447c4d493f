//! Setting parameters of connections, but for the own address.

use super::super::{Given, cibir};
use crate::abi::parameters::{connection as p, private_connection as private};
use crate::abi::{
    Address, ParameterId, PrivateTransportParameter, Setting, SettingValues, Status, StreamSchedulingScheme,
    TlsSecrets,
};
use crate::connection::Connection;
use crate::credential::SecretsWriter;
use crate::settings;
use crate::worker::State;
use bytes::Bytes;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::{Connection as Transport, Direction, Incoming};
use std::ptr::NonNull;
use std::time::Duration;

/// Bytes of the longest reason, the zero byte behind it among them.
const MAX_CLOSE_REASON: usize = 512;

/// The largest DSCP, of which there are six bits.
const MAX_DSCP: u8 = 63;

/// The TLS alert of certificates that will not do.
const BAD_CERTIFICATE: u8 = 42;

pub(super) fn set(
    cx: &mut ShardCx<'_>,
    state: &mut State,
    key: Key,
    parameter: ParameterId,
    given: &Given<'_>,
) -> Result<(), Status> {
    match parameter {
        p::SETTINGS => return change_settings(cx, state, key, &SettingValues::read(given.bytes()?)?),
        p::PEER_CERTIFICATE_VALID => {
            let alert = if given.yes_or_no()? { None } else { Some(BAD_CERTIFICATE) };
            state.approve(cx, key, alert);
            return Ok(());
        }
        p::DISABLE_1RTT_ENCRYPTION => return disable_encryption(cx, state, key, given),
        p::RESUMPTION_TICKET => return state.set_resumption_ticket(cx, key, given.bytes()?),
        private::FORCE_KEY_UPDATE => {
            let now = cx.now();
            return force(cx, state, key, |transport| transport.update_keys(now));
        }
        private::FORCE_CID_UPDATE => {
            let now = cx.now();
            return force(cx, state, key, |transport| transport.rotate_cid(now));
        }
        _ => {}
    }
    let connection = state.connections.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
    match parameter {
        p::VERSION_SETTINGS => connection.parameters.versions.set(given),
        p::CLOSE_REASON_PHRASE => set_close_reason(connection, given),
        p::STREAM_SCHEDULING_SCHEME => {
            let scheme: u32 = given.exactly()?;
            if scheme >= StreamSchedulingScheme::COUNT.0 {
                return Err(Status::INVALID_PARAMETER);
            }
            connection.parameters.round_robin = scheme == StreamSchedulingScheme::ROUND_ROBIN.0;
            Ok(())
        }
        p::SEND_DSCP => {
            let dscp = given.exactly::<u8>().ok().filter(|dscp| *dscp <= MAX_DSCP);
            let dscp = dscp.ok_or(Status::INVALID_PARAMETER)?;
            connection.parameters.dscp = dscp;
            if let Some(conn) = connection.key {
                cx.endpoint_mut().with(conn, |transport| transport.set_dscp(dscp));
            }
            Ok(())
        }
        p::CLOSE_ASYNC => {
            connection.parameters.close_async = given.yes_or_no()?;
            Ok(())
        }
        private::KEEP_ALIVE_PADDING => {
            connection.parameters.keep_alive_padding = given.exactly()?;
            Ok(())
        }
        _ => set_before_start(connection, parameter, given),
    }
}

/// Parameters that say how a connection begins.
fn set_before_start(
    connection: &mut Connection,
    parameter: ParameterId,
    given: &Given<'_>,
) -> Result<(), Status> {
    let is_early = !connection.has_begun() && !connection.closed_locally;
    let early = if is_early { Ok(()) } else { Err(Status::INVALID_STATE) };
    let early_client = early.and(if connection.is_server { Err(Status::INVALID_STATE) } else { Ok(()) });
    match parameter {
        p::REMOTE_ADDRESS => {
            early?;
            let address: Address = given.exactly()?;
            let is_possible = !connection.is_server && !address.is_wildcard();
            let remote = address.socket_address().filter(|_| is_possible);
            connection.remote = Some(remote.ok_or(Status::INVALID_PARAMETER)?);
        }
        p::SHARE_UDP_BINDING => {
            given.is_of::<u8>().and(early_client)?;
            connection.shares_socket = given.yes_or_no()?;
        }
        p::DATAGRAM_RECEIVE_ENABLED => {
            given.is_of::<u8>().and(early)?;
            connection.settings.set(Setting::DatagramReceiveEnabled, given.yes_or_no()?.into());
        }
        p::LOCAL_INTERFACE => {
            given.is_of::<u32>().and(early_client)?;
            set_interface(connection, given.exactly()?);
        }
        p::TLS_SECRETS => {
            let to = given.place::<TlsSecrets>().ok_or(Status::INVALID_PARAMETER)?;
            early?;
            // SAFETY: the application has given a place, which stays there as long as the connection needs it.
            connection.parameters.secrets = Some(unsafe { writer(to) });
        }
        p::CIBIR_ID => {
            early_client?;
            if !connection.shares_socket {
                return Err(Status::INVALID_STATE);
            }
            connection.parameters.cibir = cibir::read(given)?;
        }
        private::TEST_TRANSPORT_PARAMETER => {
            given.is_of::<PrivateTransportParameter>().and(early)?;
            let given: PrivateTransportParameter = given.exactly()?;
            connection.parameters.test_parameter = Some(test_parameter(&given)?);
        }
        _ => return Err(Status::INVALID_PARAMETER),
    }
    Ok(())
}

/// Whether 1-RTT packets are to be plaintext: a client may ask for it before it starts, a server agree with a client that
/// has asked, before it has its configuration.
fn disable_encryption(
    cx: &ShardCx<'_>,
    state: &mut State,
    key: Key,
    given: &Given<'_>,
) -> Result<(), Status> {
    let connection = state.connections.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
    given.is_of::<u8>()?;
    if connection.has_begun() || connection.closed_locally {
        return Err(Status::INVALID_STATE);
    }
    let incoming = connection.incoming.and_then(|key| cx.endpoint().incoming(key));
    if connection.is_server && !incoming.is_some_and(Incoming::offers_no_encryption) {
        return Err(Status::INVALID_STATE);
    }
    connection.parameters.disable_encryption = given.yes_or_no()?;
    Ok(())
}

/// Who writes secrets.
///
/// # Safety
/// As [`SecretsWriter::new`] has it.
unsafe fn writer(to: NonNull<TlsSecrets>) -> SecretsWriter {
    // SAFETY: the caller promises it.
    unsafe { SecretsWriter::new(to) }
}

fn test_parameter(given: &PrivateTransportParameter) -> Result<(u32, Bytes), Status> {
    let value = match (given.length, given.buffer.is_null()) {
        (0, _) => &[][..],
        (_, true) => return Err(Status::INVALID_PARAMETER),
        // SAFETY: the application has given so many bytes, and leaves them as they are during the call.
        (length, false) => unsafe { std::slice::from_raw_parts(given.buffer, length.into()) },
    };
    Ok((given.kind, Bytes::copy_from_slice(value)))
}

fn set_interface(connection: &mut Connection, interface: u32) {
    connection.parameters.interface = interface;
    if let Some(std::net::SocketAddr::V6(local)) = &mut connection.local {
        local.set_scope_id(interface);
    }
}

/// A reason that a zero byte ends, or none in its place.
fn set_close_reason(connection: &mut Connection, given: &Given<'_>) -> Result<(), Status> {
    if given.length() > MAX_CLOSE_REASON {
        return Err(Status::INVALID_PARAMETER);
    }
    let Ok(bytes) = given.bytes() else {
        connection.close_reason = Bytes::new();
        connection.parameters.has_close_reason = false;
        return Err(Status::OUT_OF_MEMORY);
    };
    let Some((0, text)) = bytes.split_last() else { return Err(Status::INVALID_PARAMETER) };
    connection.close_reason = Bytes::copy_from_slice(text);
    connection.parameters.has_close_reason = true;
    Ok(())
}

/// Has the transport do something, once connected, that it may have to refuse.
fn force(
    cx: &mut ShardCx<'_>,
    state: &State,
    key: Key,
    act: impl FnOnce(&mut Transport) -> bool,
) -> Result<(), Status> {
    let connection = state.connections.get(key).filter(|connection| connection.is_connected);
    let conn = connection.and_then(|connection| connection.key).ok_or(Status::INVALID_STATE)?;
    let done = cx.endpoint_mut().with(conn, act);
    if done == Some(true) { Ok(()) } else { Err(Status::INVALID_STATE) }
}

/// Changes settings, and what of them the transport can still follow.
fn change_settings(
    cx: &mut ShardCx<'_>,
    state: &mut State,
    key: Key,
    changed: &SettingValues,
) -> Result<(), Status> {
    let connection = state.connections.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
    let has_begun = connection.has_begun();
    settings::apply(&mut connection.settings, changed, has_begun)?;
    if let Some(conn) = connection.key {
        cx.endpoint_mut().with(conn, |transport| follow(transport, changed));
    }
    Ok(())
}

/// What was agreed on stays: the idle timeout can become shorter, and windows do not shrink.
fn follow(transport: &mut Transport, changed: &SettingValues) {
    let some_time = |millis| Some(Duration::from_millis(millis)).filter(|time| !time.is_zero());
    if let Some(millis) = changed.get(Setting::KeepAliveIntervalMs) {
        transport.set_keep_alive(some_time(millis));
    }
    if let Some(millis) = changed.get(Setting::IdleTimeoutMs) {
        transport.set_idle_limit(some_time(millis));
    }
    if let Some(millis) = changed.get(Setting::DisconnectTimeoutMs) {
        transport.set_answer_timeout(Some(Duration::from_millis(millis)));
    }
    if let Some(millis) = changed.get(Setting::DestCidUpdateIdleTimeoutMs) {
        transport.set_fresh_cid_after(some_time(millis));
    }
    if changed.get(Setting::NetStatsEventEnabled).is_some_and(|enabled| enabled != 0) {
        transport.watch_acknowledgements();
    }
    if let Some(count) = changed.get(Setting::PeerBidiStreamCount) {
        transport.set_max_streams(Direction::Bidirectional, count);
    }
    if let Some(count) = changed.get(Setting::PeerUnidiStreamCount) {
        transport.set_max_streams(Direction::Unidirectional, count);
    }
}
