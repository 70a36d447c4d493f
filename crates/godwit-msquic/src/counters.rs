//! What the library counts for `QUIC_PARAM_GLOBAL_PERF_COUNTERS`.
//!
//! What happens is counted here when it does, and what connections have counted when they are over. What MsQuic counts of its
//! own queues is 0.

use crate::abi::PerformanceCounter;
use godwit_transport::ConnectionStats;
use std::sync::atomic::{AtomicI64, Ordering};

/// How many there are.
pub(crate) const COUNT: usize = PerformanceCounter::MAX.0 as usize;

/// In the order of [`PerformanceCounter`].
static COUNTERS: [AtomicI64; COUNT] = [const { AtomicI64::new(0) }; COUNT];

/// Counts one more.
pub(crate) fn count(what: PerformanceCounter) {
    add(what, 1);
}

/// Counts so many more, or fewer.
fn add(what: PerformanceCounter, by: i64) {
    if let Some(counter) = COUNTERS.get(what.0 as usize) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

/// A connection is over, and its own counts are lost with it.
pub(crate) fn keep(stats: &ConnectionStats) {
    for (what, value) in of_connection(stats) {
        add(what, value);
    }
}

/// What a connection counts of what the library tells.
pub(crate) fn of_connection(stats: &ConnectionStats) -> [(PerformanceCounter, i64); 7] {
    use PerformanceCounter as P;
    [
        (P::PKTS_SUSPECTED_LOST, signed(stats.packets_lost)),
        (P::PKTS_DROPPED, signed(stats.packets_dropped)),
        (P::PKTS_DECRYPTION_FAIL, signed(stats.packets_forged)),
        (P::UDP_SEND_BYTES, signed(stats.bytes_sent)),
        (P::UDP_RECV_BYTES, signed(stats.bytes_received)),
        (P::APP_SEND_BYTES, signed(stats.stream_bytes_sent)),
        (P::APP_RECV_BYTES, signed(stats.stream_bytes_received)),
    ]
}

/// What was counted when it happened.
pub(crate) fn counted() -> [i64; COUNT] {
    COUNTERS.each_ref().map(|counter| counter.load(Ordering::Relaxed))
}

/// As programs have it.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_is_counted_in_its_place() {
        let of = |what: PerformanceCounter| COUNTERS[what.0 as usize].load(Ordering::Relaxed);
        let before = of(PerformanceCounter::WORK_OPER_COMPLETED);
        count(PerformanceCounter::WORK_OPER_COMPLETED);
        add(PerformanceCounter::WORK_OPER_COMPLETED, -3);
        assert_eq!(of(PerformanceCounter::WORK_OPER_COMPLETED), before - 2);
        count(PerformanceCounter::MAX);
    }
}
