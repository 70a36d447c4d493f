//! Having sockets together with other processes ([`crate::processes`]): when a shard receives from them, and taking in
//! what another process received.

use crate::handle::ShardHandle;
use crate::handler::Handler;
use crate::processes::OtherProcesses;
use crate::shard::Shard;
use godwit_base::SocketId;
use godwit_datapath::Received;
use godwit_transport::Begun;
use std::io;
use std::net::UdpSocket;

impl<H> Shard<H> {
    /// Makes this shard one of a process that has its sockets together with `others`, and does not receive from them
    /// before [`ShardHandle::begin_receiving`] is called.
    #[must_use]
    pub fn sharing_with(mut self, others: Box<dyn OtherProcesses>) -> Self {
        self.receives = false;
        self.others = Some(others);
        self
    }

    /// Receives a batch of what another process has handed on.
    pub(crate) fn receive_handed_on(&mut self) -> Received {
        let rest = self.has_rest();
        let Some(others) = &mut self.others else { return Received::default() };
        if rest {
            return Received::new(0, true);
        }
        self.recv.clear();
        let taken = match others.take_in(&mut self.recv) {
            Ok(taken) => taken,
            Err(error) => {
                self.part_with_others(&error);
                return Received::default();
            }
        };
        if taken.runs > 0 {
            // When it was received from the network is what matters for round-trip times. The endpoint is told no
            // time that is before one that it was told.
            let earliest = self.told_before;
            let at = self.clock.at_boot_time(taken.received).min(self.now).max(earliest);
            self.told_before = at;
            self.endpoint.receive_forwarded(at, self.wall, self.recv.runs());
        }
        if taken.closed {
            tracing::info!("no process is left that receives from the sockets: receiving again");
            self.receive_from_sockets();
        }
        Received::new(taken.runs, taken.more)
    }

    /// Nothing can be taken in any more of what other processes hand on. They learn so, and tell the peers: what is sent
    /// through the sockets still leaves, and nobody else's connections are touched.
    pub(crate) fn part_with_others(&mut self, error: &io::Error) {
        tracing::error!(%error, "what another process hands on cannot be read: connections that depend on it will end");
        self.others = None;
        self.sockets_version += 1;
    }

    fn receive_from_sockets(&mut self) {
        self.receives = true;
        if let Some(others) = &mut self.others {
            others.on_receiving();
        }
        self.sockets_version += 1;
    }
}

impl<H: Handler> ShardHandle<H> {
    /// Receives from the sockets no more: another process, which has them as well, is about to, and `others` take in
    /// what it hands on. When they say that it is gone, the shard receives from its sockets again.
    ///
    /// Returns the handshakes under way, of which the other process has to be told first.
    pub fn stop_receiving(&self, others: Box<dyn OtherProcesses>) -> Vec<Begun> {
        let mut shard = self.shared().lock();
        shard.receives = false;
        shard.others = Some(others);
        shard.sockets_version += 1;
        let now = shard.begin_turn();
        let begun = shard.endpoint.handshakes(now).collect();
        drop(shard);
        self.shared().schedule();
        begun
    }

    /// Receives from the sockets from now on. `begun` are handshakes of other processes.
    pub fn begin_receiving(&self, begun: &[Begun]) {
        let mut shard = self.shared().lock();
        let now = shard.begin_turn();
        shard.endpoint.adopt_handshakes(now, begun.iter().copied());
        shard.receive_from_sockets();
        drop(shard);
        self.shared().schedule();
    }

    /// Whether this process receives from the sockets.
    pub fn is_receiving(&self) -> bool {
        self.shared().lock().receives
    }

    /// The sockets, to be passed on to another process. Those that are none are left out.
    ///
    /// # Errors
    /// If the process has too many descriptors.
    pub fn clone_sockets(&self) -> io::Result<Vec<(SocketId, UdpSocket)>> {
        let shard = self.shared().lock();
        let sockets = shard.sockets.iter().filter_map(|socket| Some((socket.id(), socket.socket()?)));
        sockets.map(|(id, socket)| Ok((id, socket.try_clone()?))).collect()
    }
}
