//! Datagrams of connections, and what the application is told of each: by its number, which is the transport's tag.
//!
//! What is suspected lost may still turn out to have come. That is waited for during two probe timeouts, as long as the peer
//! acknowledges others (RFC 9002 section 6.2.1); then it is told as lost.

use super::Datagram;
use crate::abi::{DatagramSendState, Status};
use crate::worker::{ConnectionNews, State};
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::{ConnKey, ConnectionStats, DatagramOutcome, SendDatagramError};
use std::time::Duration;

/// How long what is suspected lost may yet turn out to have come, in probe timeouts.
const PATIENCE: u32 = 2;

/// How long it is waited for what is suspected lost.
fn patience(stats: &ConnectionStats) -> Duration {
    stats.rtt.saturating_add(stats.rtt_variance.saturating_mul(4)).saturating_mul(PATIENCE)
}

/// Has the transport send it.
fn hand_over(
    transport: &mut godwit_transport::Connection,
    Datagram { data, unless_blocked, .. }: Datagram,
    number: u64,
) -> Result<(), SendDatagramError> {
    if unless_blocked {
        transport.send_datagram_unless_blocked(data, Some(number))
    } else {
        transport.send_datagram(data, Some(number))
    }
}

impl State {
    /// Whether datagrams can be sent, and how large they may be, where that has changed.
    pub(crate) fn tell_datagram_state(&mut self, cx: &ShardCx<'_>, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let transport = connection.key.and_then(|conn| cx.endpoint().connection(conn));
        let max = transport.and_then(godwit_transport::Connection::max_datagram_len);
        let limit = (max.is_some(), max.map_or(0, |max| u16::try_from(max).unwrap_or(u16::MAX)));
        let before = connection.datagrams.limit.or(connection.is_server.then_some((false, 0)));
        connection.datagrams.limit = Some(limit);
        if before != Some(limit) {
            let (enabled, max) = limit;
            self.tell_connection(key, ConnectionNews::DatagramStateChanged { enabled, max });
        }
    }

    pub(super) fn on_datagram_outcomes(&mut self, cx: &mut ShardCx<'_>, key: Key, conn: ConnKey) {
        let now = cx.now();
        let mut suspects = false;
        while let Some(transport) = cx.endpoint_mut().connection_mut(conn) {
            let Some(outcome) = transport.next_datagram_outcome() else {
                if suspects {
                    transport.watch_acknowledgements();
                }
                return;
            };
            let Some(connection) = self.connections.get_mut(key) else { return };
            let tag = outcome.tag();
            if matches!(outcome, DatagramOutcome::SuspectedLost { .. }) {
                connection.datagrams.suspect(tag, now);
                suspects = true;
            }
            let state = match outcome {
                DatagramOutcome::Sent { .. } => DatagramSendState::SENT,
                DatagramOutcome::Acknowledged { .. } => DatagramSendState::ACKNOWLEDGED,
                DatagramOutcome::SuspectedLost { .. } => DatagramSendState::LOST_SUSPECT,
                DatagramOutcome::Spurious { .. } => DatagramSendState::ACKNOWLEDGED_SPURIOUS,
                _ => DatagramSendState::CANCELED,
            };
            let is_final = !matches!(state, DatagramSendState::SENT | DatagramSendState::LOST_SUSPECT);
            let context = connection.datagrams.context(tag, is_final);
            if let Some(context) = context {
                self.tell_connection(key, ConnectionNews::DatagramSendState { context, state });
            }
        }
    }

    /// What was to be sent before it was known whether the server takes datagrams is sent, or canceled.
    pub(super) fn send_early_datagrams(&mut self, cx: &mut ShardCx<'_>, key: Key, conn: ConnKey) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        for (number, datagram) in connection.datagrams.take_waiting() {
            // Those that are not to wait have waited for the handshake.
            let in_time = Some(datagram).filter(|datagram| !datagram.unless_blocked);
            let sent = in_time.and_then(|datagram| {
                cx.endpoint_mut().with(conn, |transport| hand_over(transport, datagram, number))
            });
            if matches!(sent, Some(Ok(()))) {
                continue;
            }
            let context = self.connections.get_mut(key).and_then(|it| it.datagrams.context(number, true));
            if let Some(context) = context {
                let state = DatagramSendState::CANCELED;
                self.tell_connection(key, ConnectionNews::DatagramSendState { context, state });
            }
        }
    }

    /// Nothing more becomes of datagrams that are under way.
    pub(crate) fn end_datagrams(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        for context in connection.datagrams.end() {
            let state = DatagramSendState::CANCELED;
            self.tell_connection(key, ConnectionNews::DatagramSendState { context, state });
        }
    }

    /// Queues a datagram, of which the application has lent the bytes until its final state is told.
    ///
    /// # Errors
    /// If no datagrams can be sent, or not so large ones.
    pub(crate) fn send_datagram(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        datagram: Datagram,
    ) -> Result<(), Status> {
        let connection = self.connections.get_mut(key).ok_or(Status::INVALID_PARAMETER)?;
        if !connection.is_open() {
            return Err(Status::INVALID_STATE);
        }
        let number = connection.datagrams.next;
        if !connection.is_connected && !connection.is_server {
            // Whether the server takes datagrams is not known yet.
            return connection.datagrams.wait(datagram);
        }
        let conn = connection.key.ok_or(Status::INVALID_STATE)?;
        let context = datagram.context;
        let outcome = cx.endpoint_mut().with(conn, |transport| hand_over(transport, datagram, number));
        use SendDatagramError::{Closed, TooLarge, Unsupported};
        match outcome.ok_or(Status::INVALID_STATE)? {
            Ok(()) => {}
            Err(Unsupported) => return Err(Status::INVALID_STATE),
            Err(TooLarge { .. }) => return Err(Status::INVALID_PARAMETER),
            Err(Closed) => return Err(Status::ABORTED),
            Err(_) => return Err(Status::OUT_OF_MEMORY),
        }
        connection.datagrams.enter(context);
        Ok(())
    }

    /// Tells of datagrams that have been suspected lost for long, now that the peer has acknowledged others.
    pub(super) fn discard_suspects(&mut self, cx: &ShardCx<'_>, key: Key, conn: ConnKey) {
        let Some(connection) = self.connections.get_mut(key).filter(|it| !it.datagrams.suspects.is_empty())
        else {
            return;
        };
        let Some(transport) = cx.endpoint().connection(conn) else { return };
        let (now, patience) = (cx.now(), patience(&transport.stats()));
        let mut lost = Vec::new();
        while let Some(context) = connection.datagrams.next_lost(now, patience) {
            lost.push(context);
        }
        for context in lost {
            let state = DatagramSendState::LOST_DISCARDED;
            self.tell_connection(key, ConnectionNews::DatagramSendState { context, state });
        }
    }
}
