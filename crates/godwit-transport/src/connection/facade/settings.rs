//! Settings that may change while a connection lives.
//!
//! What was promised to the peer is kept: transport parameters do not change (RFC 9000 section 7.4), limits that were
//! announced do not fall (sections 4.1 and 4.6), and a connection that is given up before its idle timeout is closed
//! with a word (section 10.1).

use super::Connection;
use crate::Direction;
use crate::reserve::WindowReserve;
use std::time::Duration;

impl Connection {
    /// Sends a PING after this much silence, 10 ms at least, or none.
    pub fn set_keep_alive(&mut self, interval: Option<Duration>) {
        self.machine.parts.ping.set_keep_alive(interval);
    }

    /// Closes the connection after this much silence, if that is less than the idle timeout that both ends agreed on;
    /// the peer is told. `None` leaves it at what was agreed. The connection ends with
    /// [`crate::ConnectionError::TimedOut`].
    pub fn set_idle_limit(&mut self, limit: Option<Duration>) {
        self.machine.timers.set_idle_limit(limit);
    }

    /// Ends the connection, without a word, once the peer has been silent for so long about something that it has to
    /// acknowledge, and for a probe timeout (RFC 9002 section 6.2) at least. `None` leaves that to the idle timeout. It ends
    /// with [`crate::ConnectionError::TimedOut`].
    pub fn set_answer_timeout(&mut self, timeout: Option<Duration>) {
        self.machine.timers.set_answer_timeout(timeout);
    }

    /// Sends to another connection id of the peer's after so long without anything sent, or never for the sake of that
    /// ([`crate::TransportConfig::fresh_cid_after`]).
    pub fn set_fresh_cid_after(&mut self, silence: Option<Duration>) {
        self.machine.timers.set_fresh_cid_after(silence);
    }

    /// Has all packets marked with this DSCP, 0 to 63 (RFC 2474), where the data path can do so. Larger numbers count as 63.
    pub fn set_dscp(&mut self, dscp: u8) {
        self.machine.paths.set_dscp(dscp.min(63));
    }

    /// Sets how many streams the peer may have open at once in a direction. What was permitted before remains so: a
    /// lower number takes effect as streams end.
    pub fn set_max_streams(&mut self, direction: Direction, streams: u64) {
        self.machine.parts.streams.set_max_streams(direction, streams);
    }

    /// Sets how far the windows grow for what the peer sends, in bytes: of each stream, and of the connection. Windows
    /// that are larger already stay as they are.
    pub fn set_max_windows(&mut self, stream: u64, connection: u64) {
        self.machine.parts.streams.set_max_windows(stream, connection);
    }

    /// What the windows and the send buffer have beyond the connection's own comes out of this.
    pub(crate) fn share_windows(&mut self, reserve: &WindowReserve) {
        self.machine.parts.streams.share(reserve);
    }

    /// Sets how many bytes may be written and not be acknowledged, at most
    /// ([`crate::TransportConfig::send_buffer`]).
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.machine.parts.streams.set_send_buffer(bytes, self.machine.paths.active().recovery.window());
    }

    /// Sets how much of what is sent datagrams may take while streams have data to send, in percent
    /// ([`crate::DatagramConfig::share`]).
    pub fn set_datagram_share(&mut self, percent: u8) {
        self.machine.parts.datagrams.set_share(percent);
    }
}
