//! What connections count.

use super::connection::Connection;
use crate::abi::{self, Plain};
use crate::border::call;
use crate::given;
use crate::handles;
use crate::words::nanoseconds;
use godwit::ConnectionStats;

/// As C sees it.
pub(crate) fn of(stats: &ConnectionStats) -> abi::Statistics {
    abi::Statistics {
        udp_datagrams_sent: stats.datagrams_sent,
        udp_bytes_sent: stats.bytes_sent,
        udp_datagrams_received: stats.datagrams_received,
        udp_bytes_received: stats.bytes_received,
        packets_sent: stats.packets_sent,
        packets_received: stats.packets_received,
        packets_dropped: stats.packets_dropped,
        packets_lost: stats.packets_lost,
        bytes_lost: stats.bytes_lost,
        spurious_losses: stats.spurious_losses,
        congestion_events: stats.congestion_events,
        probe_timeouts: stats.ptos,
        rtt_ns: nanoseconds(stats.rtt),
        min_rtt_ns: nanoseconds(stats.min_rtt),
        latest_rtt_ns: nanoseconds(stats.latest_rtt),
        rtt_variance_ns: nanoseconds(stats.rtt_variance),
        window: stats.window,
        bytes_in_flight: stats.bytes_in_flight,
        mtu: stats.mtu.into(),
        streams_opened: stats.streams_opened,
        streams_opened_by_peer: stats.streams_opened_by_peer,
        streams_open: stats.streams_open,
        stream_bytes_sent: stats.stream_bytes_sent,
        stream_bytes_retransmitted: stats.stream_bytes_retransmitted,
        stream_bytes_received: stats.stream_bytes_received,
        key_updates: stats.key_updates,
        ..abi::Statistics::zeroed()
    }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_connection_statistics(
    connection: u64,
    statistics: *mut abi::Statistics,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let counted = of(&handles::get::<Connection>(connection)?.inner()?.stats());
        // SAFETY: the caller's promise.
        unsafe { given::give(statistics, &counted) }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}
