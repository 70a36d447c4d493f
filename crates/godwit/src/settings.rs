//! What may be changed of a connection while it lives, and the question whether it does.

use crate::connection::Connection;
use godwit_wire::Direction;
use std::time::Duration;

impl Connection {
    /// Sends a PING after this much silence, 10 ms at least, from now on, or none: it keeps the connection, and what a
    /// NAT knows of it, alive.
    pub fn set_keep_alive(&self, interval: Option<Duration>) {
        self.change(|connection| connection.set_keep_alive(interval));
    }

    /// Asks the peer to answer now (a PING): whether anything comes is seen by
    /// [`ConnectionStats::datagrams_received`](crate::ConnectionStats::datagrams_received). Nothing, once the connection is
    /// over.
    pub fn ping(&self) {
        self.change(|connection| connection.ping());
    }

    /// Closes the connection after this much silence, if that is less than the idle timeout that both ends agreed on in
    /// the handshake; the peer is told. `None` leaves it at what was agreed. It cannot be made longer than that.
    pub fn set_idle_limit(&self, limit: Option<Duration>) {
        self.change(|connection| connection.set_idle_limit(limit));
    }

    /// Sets how many streams the peer may have open at once in a direction. What was permitted before remains so: a
    /// lower number takes effect as streams end.
    pub fn set_max_streams(&self, direction: Direction, streams: u64) {
        self.change(|connection| connection.set_max_streams(direction, streams));
    }

    /// Sets how far the windows grow for what the peer sends, in bytes: of each stream, and of the connection. Windows
    /// that are larger already stay as they are.
    pub fn set_max_windows(&self, stream: u64, connection: u64) {
        self.change(|it| it.set_max_windows(stream, connection));
    }

    /// Sets how many bytes may be written and not be acknowledged, at most
    /// ([`crate::TransportConfig::send_buffer`]).
    pub fn set_send_buffer(&self, bytes: u64) {
        self.change(|connection| connection.set_send_buffer(bytes));
    }

    /// Sets how much of what is sent datagrams may take while streams have data to send, in percent: 100 puts datagrams
    /// always first, 0 sends them only where streams leave room ([`crate::DatagramConfig::share`]).
    pub fn set_datagram_share(&self, percent: u8) {
        self.change(|connection| connection.set_datagram_share(percent));
    }

    fn change(&self, change: impl FnOnce(&mut godwit_transport::Connection)) {
        self.shared.access(|access| {
            access.connection().map(change);
            access.touch();
        });
    }
}
