//! Looking after a server's connection as a whole: clients that take too little of what has been written to its
//! end, and clients that ask for nothing.
//!
//! While a response is being written its own task looks after it ([`super::minimum_rate`]). What remains of it in the
//! send buffer, which is all of a short one, is looked at here, in one place for all responses of a connection:
//! there is no timer for each. As there, a client that takes enough of all its responses together is left alone.

use super::io::Io;
use super::link::Link;
use super::protocol::Protocol;
use godwit_base::Time;
use godwit_body::{IdleConnections, IdlePlace, MinimumRate};
use godwit_http3::ErrorCode;
use std::time::Duration;

/// How soon it is seen that a connection has become idle, where that counts.
const GLANCE: Duration = Duration::from_secs(2);

/// Ready once no request has been under way for as long as `idle` says, or none is and there are too many such
/// connections. Meanwhile responses are given up (H3_EXCESSIVE_LOAD) of which the client takes less than `rate` says.
pub(super) async fn run(
    link: &Link,
    rate: Option<MinimumRate>,
    (idle, all): (Option<Duration>, Option<&IdleConnections>),
) {
    let mut place = all.map(|all| all.place(link.connection().remote_address().ip()));
    loop {
        let look = |protocol: &mut Protocol, io: &mut Io<'_>| {
            (look(protocol, io, rate, idle), protocol.watch.idle_since)
        };
        let (mut wait, idle_since) = link.with(look);
        if wait.is_none() && idle.is_some() {
            return;
        }
        if let Some(place) = &mut place {
            place.see(idle_since);
            let glance = (!place.is_held()).then_some(GLANCE);
            wait = glance.into_iter().chain(wait).min();
        }
        tokio::select! {
            () = sleep(wait) => {}
            () = told_to_go(place.as_ref()) => {
                let idle_since = link.with(|protocol, _| protocol.watch.idle_since);
                if place.as_mut().is_some_and(|place| place.gives_way(idle_since)) {
                    return;
                }
            }
        }
    }
}

async fn sleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

async fn told_to_go(place: Option<&IdlePlace<Time>>) {
    match place {
        Some(place) => place.told_to_go().await,
        None => std::future::pending().await,
    }
}

/// How long nothing will have to be looked at; `None` once the connection has been idle for too long, or if
/// there is nothing to look after.
fn look(
    protocol: &mut Protocol,
    io: &mut Io<'_>,
    rate: Option<MinimumRate>,
    idle: Option<Duration>,
) -> Option<Duration> {
    let now = io.now;
    let next = rate.map(|rate| {
        let due = protocol.watch.looked.map(|looked| looked + rate.period());
        match due {
            Some(due) if due > now => due.saturating_since(now),
            _ => {
                give_up_untaken(protocol, io, rate);
                protocol.watch.looked = Some(now);
                rate.period()
            }
        }
    });
    let left = idle.map(|idle| {
        let rested = protocol.watch.idle_since.map(|since| now.saturating_since(since));
        idle.saturating_sub(rested.unwrap_or_default())
    });
    if left.is_some_and(|left| left.is_zero()) {
        return None;
    }
    next.into_iter().chain(left).min()
}

fn give_up_untaken(protocol: &mut Protocol, io: &mut Io<'_>, rate: MinimumRate) {
    let before = std::mem::take(&mut protocol.watch.untaken);
    let sent = io.stream_bytes_sent();
    let flows = sent.saturating_sub(std::mem::replace(&mut protocol.watch.sent, sent)) >= rate.least();
    for id in protocol.written_to_the_end() {
        let Some(untaken) = io.unacknowledged(id).filter(|untaken| *untaken > 0) else { continue };
        let taken = before.get(&id).map(|before| before.saturating_sub(untaken));
        if !flows && taken.is_some_and(|taken| taken < rate.least()) {
            tracing::debug!(stream = id.as_u64(), "a client takes too little: its response is given up");
            protocol.give_up_response(io, id, ErrorCode::H3_EXCESSIVE_LOAD);
        } else {
            protocol.watch.untaken.insert(id, untaken);
        }
    }
}
