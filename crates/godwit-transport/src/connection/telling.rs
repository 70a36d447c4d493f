//! What a connection tells of the path it sends on, for connections that follow.
//!
//! Its own endpoint learns how long round trips take, how they vary and how much is lost: when the handshake is complete,
//! whenever the connection rests, and when it ends. Each packet counts once. A server tells its client, in a token (RFC 9000
//! section 8.1.3), how wide the path was, so that the next connection can begin with that (RFC 9959).

use super::Machine;
use super::boundary::EndpointEvent;
use crate::resumption::Found;
use godwit_wire::Side;

impl Machine {
    /// What the path has shown so far is remembered for the next connection.
    pub(super) fn leave_behind_so_far(&mut self) {
        let found = Found::so_far(&self.paths.active().recovery);
        self.put_found(found);
    }

    /// What the path has shown is remembered for the next connection, when this one ends
    pub(super) fn leave_behind(&mut self) {
        let path = self.paths.active_mut();
        let found = Found::on(&path.recovery, &mut path.told);
        self.put_found(found);
    }

    /// and when it rests: others may begin long before it ends. False if there is nothing new.
    pub(super) fn leave_behind_at_rest(&mut self) -> bool {
        let path = self.paths.active_mut();
        let rests = self.lifecycle.is_confirmed() && path.recovery.bytes_in_flight() == 0;
        if !rests || path.told.is_all_of(&path.recovery) {
            return false;
        }
        let found = Found::on(&path.recovery, &mut path.told);
        self.put_found(found);
        // Of a path that has acknowledged nothing there is nothing to tell, however much was sent.
        found.is_some()
    }

    fn put_found(&mut self, found: Option<Found>) {
        let path = &self.paths.active().recovery;
        let Some(found) = found else { return };
        if let Some(memory) = &self.negotiation.memory {
            memory.put_path(path, found);
        } else if self.side == Side::Server {
            self.events.push_endpoint(EndpointEvent::FoundNetwork(found));
        }
    }

    /// A server's connection that has found its path wide gives the client a token that says so, for the next one.
    pub(super) fn tell_path(&mut self) {
        // A token proves the address that it is given to (RFC 9000 section 8.1.3).
        let path = self.paths.active_mut();
        if self.side == Side::Client || !path.is_validated() {
            return;
        }
        let Some(found) = path.recovery.resumable() else { return };
        if path.told.is_worth_a_token(found.window) {
            self.events.push_endpoint(EndpointEvent::FoundPath(found));
        }
    }
}
