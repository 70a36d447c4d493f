//! The counters of the library: what was counted when it happened, what there is now, and what sockets and connections that
//! live have counted.

use crate::abi::PerformanceCounter;
use crate::counters::{COUNT, counted, of_connection, signed};
use crate::worker::{Worker, pool};

/// All of them, as they stand.
pub(super) fn all() -> [i64; COUNT] {
    let mut all = counted();
    for worker in pool().map_or(&[][..], |pool| pool.workers()) {
        for (what, value) in of_worker(worker) {
            if let Some(counter) = all.get_mut(what.0 as usize) {
                *counter = counter.saturating_add(value);
            }
        }
    }
    all
}

fn of_worker(worker: &Worker) -> Vec<(PerformanceCounter, i64)> {
    use PerformanceCounter as P;
    let mut counts = worker.peek(|cx, state| {
        let connections = || state.connections.iter().map(|(_, connection)| connection);
        let connected = connections().filter(|it| it.is_connected && !it.is_over).count();
        let mut counts = vec![
            (P::CONN_ACTIVE, signed(state.connections.len() as u64)),
            (P::CONN_CONNECTED, signed(connected as u64)),
            (P::STRM_ACTIVE, signed(state.streams.len() as u64)),
            (P::SEND_STATELESS_RETRY, signed(cx.endpoint().retries_sent())),
        ];
        for connection in connections() {
            let live = connection.key.and_then(|conn| cx.endpoint().connection(conn));
            let stats = live.map(|transport| transport.stats());
            let stats = stats.as_ref().or(connection.last_stats.as_deref());
            counts.extend(stats.map(of_connection).into_iter().flatten());
        }
        counts
    });
    for socket in worker.socket_counters() {
        counts.extend([
            (P::UDP_RECV, signed(socket.datagrams_received)),
            (P::UDP_SEND, signed(socket.datagrams_sent)),
            (P::UDP_RECV_EVENTS, signed(socket.receive_calls)),
            (P::UDP_SEND_CALLS, signed(socket.send_calls)),
        ]);
    }
    counts
}
