//! Exchanging a shard's sockets while its connections live (RFC 9000 section 9.2).
//!
//! A new socket takes over what is begun from now on, and clients' connections are asked to move to it. Each
//! does so when the path from there is validated; until the last connection has left, the old socket is kept,
//! so that nothing that is on its way to it is lost.

use crate::addresses::reaches;
use crate::outgoing::Outgoing;
use crate::shard::Shard;
use godwit_base::{RecvBatch, SocketId};
use godwit_datapath::Datapath;
use std::net::SocketAddr;

impl<H> Shard<H> {
    /// A number that no socket has.
    fn next_socket_id(&self) -> SocketId {
        let highest = self.sockets.iter().map(|socket| socket.id().0).max();
        SocketId(highest.map_or(0, |highest| highest.wrapping_add(1)))
    }

    /// Makes a socket and has it take the place of those whose address family it can serve: what is begun from now
    /// on leaves from it, and clients' connections move to it, each as soon as the path from there is validated
    /// (RFC 9000 section 9.2). An old socket is closed when no connection uses it any more. Returns the new address.
    ///
    /// # Errors
    /// What `make` says; then nothing has changed.
    pub fn rebind<E>(
        &mut self,
        make: impl FnOnce(SocketId) -> Result<Box<dyn Datapath>, E>,
    ) -> Result<SocketAddr, E> {
        let now = self.now();
        let socket = make(self.next_socket_id())?;
        let (id, local) = (socket.id(), socket.local_addr());
        for old in self.sockets.iter().filter(|old| reaches(local, old.local_addr())) {
            if !self.retirement.retiring.contains(&old.id()) {
                self.retirement.retiring.push(old.id());
            }
        }
        self.sockets.insert(0, socket);
        self.sockets_version += 1;
        self.follow_departure_times();
        let clients: Vec<_> = self.endpoint.clients().collect();
        for key in clients {
            // One that cannot move keeps the socket that it has.
            self.endpoint.with(key, |connection| {
                reaches(local, connection.remote()).then(|| connection.migrate(now, id, None))
            });
        }
        self.retirement.due = true;
        Ok(local)
    }

    /// Closes a socket as soon as no connection uses it any more.
    pub fn retire_socket(&mut self, socket: SocketId) {
        if !self.retirement.retiring.contains(&socket) {
            self.retirement.retiring.push(socket);
        }
        self.retirement.due = true;
    }

    /// Closes every socket, whoever uses it, and gives back the memory that turns need.
    pub(crate) fn give_up(&mut self) {
        for socket in self.sockets.drain(..) {
            self.retirement.closed += socket.counters();
        }
        self.retirement.retiring = Vec::new();
        self.sockets_version += 1;
        self.follow_departure_times();
        self.recv = RecvBatch::new(0, 0);
        self.outgoing = Outgoing::without_memory();
    }

    /// Whether there is a socket with this id.
    pub fn has_socket(&self, socket: SocketId) -> bool {
        self.sockets.iter().any(|there| there.id() == socket)
    }

    /// A socket is to stay after all, if it is still there. Returns whether it is.
    pub fn keep_socket(&mut self, socket: SocketId) -> bool {
        self.retirement.retiring.retain(|retiring| *retiring != socket);
        self.has_socket(socket)
    }

    /// Closes the sockets that are to go and are no longer used. Between batches only: what is for a socket that
    /// is gone cannot be sent.
    pub(crate) fn drop_unused_sockets(&mut self) {
        if self.retirement.retiring.is_empty() {
            return;
        }
        self.retirement.due |= self.endpoint.take_paths_left();
        if !self.retirement.due || !self.has_sent_everything() {
            return;
        }
        self.retirement.due = false;
        let Shard { endpoint, sockets, retirement, .. } = self;
        let gone: Vec<_> =
            retirement.retiring.iter().copied().filter(|socket| !endpoint.uses_socket(*socket)).collect();
        retirement.retiring.retain(|socket| !gone.contains(socket));
        for socket in sockets.extract_if(.., |socket| gone.contains(&socket.id())) {
            retirement.closed += socket.counters();
        }
        if !gone.is_empty() {
            self.sockets_version += 1;
            self.follow_departure_times();
        }
    }
}
