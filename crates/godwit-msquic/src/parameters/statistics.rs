//! What is counted and measured of a connection, as programs want it told.
//!
//! What Godwit does not count is 0: packets out of order, versions negotiated, waiting for turns.

use crate::abi::{
    NetworkStatistics, Setting, Statistics, StatisticsHandshake, StatisticsMisc, StatisticsReceive,
    StatisticsSend, StatisticsTiming, StatisticsV2,
};
use crate::connection::{Connection, IDEAL_SEND_BUFFER};
use godwit_transport::{Connection as Transport, ConnectionStats, EcnState, HandshakeBytes};
use std::time::Duration;

/// Bytes of headers in front of UDP payload, over IPv4 and IPv6.
const HEADERS: (u16, u16) = (28, 48);

/// Of a connection that lives, is over, or has not begun.
pub(super) fn of(connection: &Connection, transport: Option<&Transport>) -> StatisticsV2 {
    let kept = &connection.parameters;
    let mut told = StatisticsV2 { correlation_id: kept.number, ..StatisticsV2::default() };
    told.timing_start = kept.times.begun;
    told.timing_initial_flight_end = kept.times.connected;
    told.timing_handshake_flight_end = kept.times.connected;
    let live = transport.map(Transport::stats);
    if let Some(stats) = live.as_ref().or(connection.last_stats.as_deref()) {
        let over_ipv4 = connection.remote.is_none_or(|remote| remote.ip().to_canonical().is_ipv4());
        fill_handshake(&mut told, &stats.handshake, connection.is_server);
        fill(&mut told, stats, if over_ipv4 { HEADERS.0 } else { HEADERS.1 });
        let by_both = stats.greases_quic_bit && connection.setting(Setting::GreaseQuicBitEnabled) != 0;
        told = told.with_grease_bit_negotiated(by_both);
    } else {
        fill_as_set(&mut told, connection);
    }
    let resumed = kept.is_resumed;
    told.with_resumption_attempted(connection.resumption.is_attempted).with_resumption_succeeded(resumed)
}

/// The client's first flight is its ClientHello, the server's all that it says, and the client's second the rest.
fn fill_handshake(told: &mut StatisticsV2, bytes: &HandshakeBytes, is_server: bool) {
    let sent = (bytes.initial_sent, bytes.handshake_sent);
    let received = (bytes.initial_received, bytes.handshake_received);
    let (client, server) = if is_server { (received, sent) } else { (sent, received) };
    told.handshake_client_flight1_bytes = short(client.0);
    told.handshake_server_flight1_bytes = short(server.0.saturating_add(server.1));
    told.handshake_client_flight2_bytes = short(client.1);
}

/// What is assumed before there is anything to measure.
fn fill_as_set(told: &mut StatisticsV2, connection: &Connection) {
    told.rtt = short(connection.setting(Setting::InitialRttMs).saturating_mul(1000));
    told.rtt_variance = told.rtt / 2;
    told.min_rtt = u32::MAX;
    told.send_path_mtu = u16::try_from(connection.setting(Setting::MinimumMtu)).unwrap_or(u16::MAX);
}

fn fill(told: &mut StatisticsV2, stats: &ConnectionStats, headers: u16) {
    let received = &stats.packets_received_by_type;
    *told = told
        .with_stateless_retry(received.retry > 0)
        .with_version_negotiation(received.version_negotiation > 0)
        .with_ecn_capable(stats.ecn == EcnState::Capable);
    told.rtt = micros(stats.rtt);
    told.min_rtt = micros(stats.min_rtt);
    told.max_rtt = micros(stats.rtt.max(stats.latest_rtt));
    told.rtt_variance = micros(stats.rtt_variance);
    told.send_path_mtu = stats.mtu.saturating_add(headers);
    told.send_total_packets = stats.packets_sent;
    told.send_retransmittable_packets = stats.packets_sent;
    told.send_suspected_lost_packets = stats.packets_lost;
    told.send_spurious_lost_packets = stats.spurious_losses;
    told.send_total_bytes = stats.bytes_sent;
    told.send_total_stream_bytes = stats.stream_bytes_sent;
    told.send_congestion_count = short(stats.congestion_events);
    told.send_persistent_congestion_count = short(stats.persistent_congestion);
    told.send_congestion_window = short(stats.window);
    told.recv_total_packets = stats.packets_received;
    told.recv_dropped_packets = stats.packets_dropped.saturating_add(stats.packets_duplicate);
    told.recv_duplicate_packets = stats.packets_duplicate;
    told.recv_total_bytes = stats.bytes_received;
    told.recv_total_stream_bytes = stats.stream_bytes_received;
    told.recv_decryption_failures = stats.packets_forged;
    told.recv_valid_ack_frames = stats.acks_received;
    told.key_update_count = short(stats.key_updates);
    told.dest_cid_update_count = short(stats.cid_updates);
}

/// The same as older programs want it.
pub(super) fn older(new: &StatisticsV2) -> Statistics {
    let mut told = Statistics {
        correlation_id: new.correlation_id,
        rtt: new.rtt,
        min_rtt: new.min_rtt,
        max_rtt: new.max_rtt,
        ..Statistics::default()
    };
    told.timing = StatisticsTiming {
        start: new.timing_start,
        initial_flight_end: new.timing_initial_flight_end,
        handshake_flight_end: new.timing_handshake_flight_end,
    };
    told.handshake = StatisticsHandshake {
        client_flight1_bytes: new.handshake_client_flight1_bytes,
        server_flight1_bytes: new.handshake_server_flight1_bytes,
        client_flight2_bytes: new.handshake_client_flight2_bytes,
    };
    told.send = StatisticsSend {
        path_mtu: new.send_path_mtu,
        total_packets: new.send_total_packets,
        retransmittable_packets: new.send_retransmittable_packets,
        suspected_lost_packets: new.send_suspected_lost_packets,
        spurious_lost_packets: new.send_spurious_lost_packets,
        total_bytes: new.send_total_bytes,
        total_stream_bytes: new.send_total_stream_bytes,
        congestion_count: new.send_congestion_count,
        persistent_congestion_count: new.send_persistent_congestion_count,
    };
    told.receive = StatisticsReceive {
        total_packets: new.recv_total_packets,
        reordered_packets: new.recv_reordered_packets,
        dropped_packets: new.recv_dropped_packets,
        duplicate_packets: new.recv_duplicate_packets,
        total_bytes: new.recv_total_bytes,
        total_stream_bytes: new.recv_total_stream_bytes,
        decryption_failures: new.recv_decryption_failures,
        valid_ack_frames: new.recv_valid_ack_frames,
    };
    told.misc = StatisticsMisc { key_update_count: new.key_update_count };
    told.with_version_negotiation(new.version_negotiation())
        .with_stateless_retry(new.stateless_retry())
        .with_resumption_attempted(new.resumption_attempted())
        .with_resumption_succeeded(new.resumption_succeeded())
}

/// What congestion control knows.
pub(crate) fn of_network(connection: &Connection, transport: Option<&Transport>) -> NetworkStatistics {
    let live = transport.map(Transport::stats);
    let Some(stats) = live.as_ref().or(connection.last_stats.as_deref()) else {
        return NetworkStatistics { ideal_bytes: IDEAL_SEND_BUFFER, ..NetworkStatistics::default() };
    };
    let per_rtt = stats.window.saturating_mul(1_000_000);
    NetworkStatistics {
        bytes_in_flight: short(stats.bytes_in_flight),
        posted_bytes: transport
            .map_or(0, |it| connection.streams.ids().filter_map(|id| it.buffered(id)).sum()),
        ideal_bytes: transport.map_or(0, Transport::ideal_buffer_of_all),
        smoothed_rtt: micros(stats.rtt).into(),
        congestion_window: short(stats.window),
        bandwidth: per_rtt.checked_div(u64::from(micros(stats.rtt))).unwrap_or(0),
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

fn short(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_tell_the_same_of_a_handshake() {
        let (mut client, mut server) = (HandshakeBytes::default(), HandshakeBytes::default());
        (client.initial_sent, client.initial_received) = (300, 90);
        (client.handshake_sent, client.handshake_received) = (36, 1000);
        (server.initial_sent, server.initial_received) = (90, 300);
        (server.handshake_sent, server.handshake_received) = (1000, 36);
        for (bytes, is_server) in [(client, false), (server, true)] {
            let mut told = StatisticsV2::default();
            fill_handshake(&mut told, &bytes, is_server);
            assert_eq!(told.handshake_client_flight1_bytes, 300);
            assert_eq!(told.handshake_server_flight1_bytes, 1090);
            assert_eq!(told.handshake_client_flight2_bytes, 36);
        }
    }
}
