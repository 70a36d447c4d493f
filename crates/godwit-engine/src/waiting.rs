//! Waiting for a shard's sockets, for who has nothing else to wait for.
//!
//! Mostly there is one socket, and the next deadline is far away in the time of packets. Then waiting is receiving: one
//! system call where there would be two, and nothing is set up for the wait and taken down again. The kernel measures that
//! time by its ticks, of a few milliseconds; so it is always the same short time, and what is left of a longer one, as well as
//! one that is short, is waited for exactly.

use crate::shard::Shard;
use godwit_base::{SocketId, Time};
use godwit_os::readiness::{Interest, wait_for};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// How long receiving waits. More than the ticks by which that is measured, and less than a peer lets one wait for an
/// acknowledgement (25 ms), which probe timeouts are longer than.
const PATIENCE: Duration = Duration::from_millis(10);
/// By how much such a wait may end late.
const TICKS: Duration = Duration::from_millis(10);

impl<H> Shard<H> {
    /// Waits until there is something to do for a turn: until `until`, something to receive, or room in the socket
    /// `writable`. It may end early. What was received meanwhile is taken in by the next turn.
    ///
    /// # Errors
    /// If a socket has become unusable, or there is one that cannot be waited for, or another process receives from them.
    pub fn wait(&mut self, until: Option<Time>, writable: Option<SocketId>) -> io::Result<()> {
        if !self.receives {
            let what = "what another process receives cannot be waited for";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let left = until.map(|until| until.saturating_since(self.clock.now()));
        if self.has_rest() || left == Some(Duration::ZERO) {
            return Ok(());
        }
        let receives = writable.is_none() && left.is_none_or(|left| left >= PATIENCE + TICKS);
        if receives && self.wait_receiving()? {
            return Ok(());
        }
        let left = until.map(|until| until.saturating_since(self.clock.now()));
        self.wait_for_sockets(left, writable)
    }

    /// Receives from the only socket, if there is only one and it can wait. False if nothing has come.
    fn wait_receiving(&mut self) -> io::Result<bool> {
        let [socket] = self.sockets.as_mut_slice() else { return Ok(false) };
        self.recv.clear();
        let Some(received) = socket.receive_within(&mut self.recv, PATIENCE)? else { return Ok(false) };
        if received.runs > 0 {
            self.set_rest(received.more);
        } else {
            self.report_errors();
        }
        Ok(received.runs > 0 || received.more)
    }

    fn wait_for_sockets(&mut self, time: Option<Duration>, writable: Option<SocketId>) -> io::Result<()> {
        if self.sockets.iter().any(|socket| socket.socket().is_none()) {
            let what = "a data path without a socket cannot be waited for";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let interests = self.sockets.iter().filter_map(|socket| {
            let descriptor = socket.socket()?.as_fd();
            Some(Interest { descriptor, writable: writable == Some(socket.id()) })
        });
        let mut ready = Vec::new();
        wait_for(interests, time, &mut ready)?;
        if ready.iter().any(|socket| socket.error) {
            // Nothing else may happen that meets an error and reads what is queued.
            (0..self.sockets.len()).for_each(|at| self.receive_errors_from(at));
        }
        Ok(())
    }
}
