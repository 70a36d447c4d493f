//! How a connection stands, and what drives it.

use super::Connection;
use crate::Event;
use crate::connection::{ConnectionStats, Evidence};
use godwit_base::Time;
use godwit_wire::Side;

impl Connection {
    /// Which end this is.
    pub fn side(&self) -> Side {
        self.machine.side
    }

    /// The QUIC version in use.
    pub fn version(&self) -> u32 {
        self.machine.version
    }

    /// True until the connection is closed by either end.
    pub fn is_open(&self) -> bool {
        self.machine.lifecycle.is_open()
    }

    /// True while the handshake is not complete.
    pub fn is_handshaking(&self) -> bool {
        self.machine.lifecycle.is_handshaking()
    }

    /// The next thing the application should know.
    pub fn next_event(&mut self) -> Option<Event> {
        self.machine.next_event()
    }

    /// When [`Connection::on_timeout`] is to be called at the latest; `None` if nothing is awaited.
    pub fn deadline(&self) -> Option<Time> {
        self.machine.deadline()
    }

    /// Time has passed: whatever is due by `now` happens.
    pub fn on_timeout(&mut self, now: Time) {
        self.machine.on_timeout(now);
    }

    /// Sends a PING, so that the peer's idle timer restarts.
    pub fn ping(&mut self) {
        self.machine.parts.ping.send();
    }

    /// Updates the packet protection keys now (RFC 9001 section 6): the peer learns of it with the next packet, be it a
    /// [PING](Connection::ping). False if it is too early: the handshake is not confirmed, or the last update is not
    /// acknowledged yet.
    pub fn update_keys(&mut self, now: Time) -> bool {
        self.machine.update_keys(now)
    }

    /// Counters and estimates as they stand.
    pub fn stats(&self) -> ConnectionStats {
        let counters = &self.machine.stats;
        let irregular = counters.irregular();
        let keys = self.machine.spaces.data.keys.as_ref();
        let recovery = &self.machine.paths.active().recovery;
        let one_way = self.machine.parts.clocks.one_way_delay(self.machine.paths.active_id());
        let (path, rtt, streams) = (recovery.stats(), recovery.rtt(), self.machine.parts.streams.stats());
        ConnectionStats {
            datagrams_sent: counters.datagrams_sent,
            handshake: self.machine.parts.handshake.bytes(),
            bytes_sent: counters.bytes_sent,
            datagrams_refused: irregular.datagrams_refused,
            datagrams_received: counters.datagrams_received,
            bytes_received: counters.bytes_received,
            datagrams_ignored: irregular.datagrams_ignored,
            packets_sent: counters.sent.total(),
            packets_sent_by_type: counters.sent,
            packets_received: counters.received.total(),
            packets_received_by_type: counters.received,
            packets_dropped: irregular.undecryptable.total().saturating_add(irregular.inadmissible),
            packets_undecryptable: irregular.undecryptable,
            packets_forged: irregular.forged.saturating_add(keys.map_or(0, |keys| keys.forged())),
            packets_duplicate: irregular.duplicate,
            acks_sent: counters.acks_sent,
            acks_received: counters.acks_received,
            packets_lost: path.packets_lost,
            bytes_lost: path.bytes_lost,
            spurious_losses: path.spurious_losses,
            congestion_events: path.congestion_events,
            congestion_undone: path.congestion_undone,
            persistent_congestion: path.persistent_congestion,
            ptos: counters.ptos,
            rtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            latest_rtt: rtt.latest(),
            rtt_variance: rtt.variation(),
            latest_one_way_delay: one_way.map(|delay| delay.latest),
            one_way_delay: one_way.map(|delay| delay.smoothed),
            window: recovery.window(),
            slow_start_threshold: recovery.controller().slow_start_threshold(),
            bytes_in_flight: recovery.bytes_in_flight(),
            mtu: recovery.mtu(),
            mtu_search: recovery.mtu_counters(),
            ecn: recovery.ecn().state(),
            ecn_sent: recovery.ecn().stats(),
            ecn_received: self.machine.spaces.data.space.acks.ecn_counts(),
            cid_updates: irregular.cid_updates,
            greases_quic_bit: self.machine.header_bits.greases(),
            key_updates: keys.map_or(0, |keys| keys.updates()),
            streams_opened: streams.opened_locally,
            streams_opened_by_peer: streams.opened_by_peer,
            streams_open: self.machine.parts.streams.active_streams() as u64,
            stream_bytes_sent: streams.bytes_sent,
            stream_bytes_retransmitted: streams.bytes_retransmitted,
            stream_bytes_received: streams.bytes_received,
            datagram_frames: self.machine.parts.datagrams.stats(),
        }
    }

    /// What is known of a client's attempt to connect, under way or not.
    pub fn evidence(&self) -> Evidence {
        self.machine.evidence()
    }

    /// Has [`Event::EvidenceChanged`] told, until the handshake is complete, whenever [`Evidence::is_news`] compared
    /// with what was told last, which at first is `known`.
    pub fn watch_evidence(&mut self, known: &Evidence) {
        self.machine.negotiation.attempt.watch(known);
    }

    /// Has [`Event::Acknowledged`] told whenever the peer has acknowledged packets that call for it.
    pub const fn watch_acknowledgements(&mut self) {
        self.machine.events.watch_acknowledgements();
    }
}
