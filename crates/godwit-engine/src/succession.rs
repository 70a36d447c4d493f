//! Generations of a process side by side on the same sockets.
//!
//! An older generation passes its sockets on to a newer one. Both send through them, but at any time only one
//! generation receives: the newest that lives. It hands what belongs to the connections of older ones to these,
//! through a [`relay`](godwit_datapath::relay) for each of their shards, and no generation hands on what came
//! through a relay: nothing can go round in circles. When a relay says that no newer generation is left, the
//! older one receives again.

use crate::handle::ShardHandle;
use crate::handler::Handler;
use crate::shard::Shard;
use godwit_base::{SocketId, Time};
use godwit_datapath::Received;
use godwit_datapath::relay::{RelayReceiver, RelaySender, Relayed};
use godwit_transport::endpoint::{Begun, Foreign};
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

/// An older generation that still has connections.
#[derive(Debug)]
pub struct Elder {
    /// What its connection ids carry.
    pub generation: u8,
    /// The ways to its shards, in their order.
    pub shards: Vec<Option<RelaySender>>,
}

/// The older generations that a process knows. Each of its shards knows them through a clone of this.
#[derive(Debug, Clone, Default)]
pub struct Elders {
    all: Arc<[Elder]>,
}

impl Elders {
    /// These generations.
    pub fn new(all: Vec<Elder>) -> Self {
        Elders { all: all.into() }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Elder> {
        self.all.iter()
    }

    /// Gives a run of datagrams to its generation: whether it was taken. None if that one is not known, or gone.
    pub(crate) fn hand_over(&self, foreign: &Foreign, received: Duration, run: &[u8]) -> Option<bool> {
        let elder = self.all.iter().find(|elder| elder.generation == foreign.generation);
        let way = elder.and_then(|elder| elder.shards.get(usize::from(foreign.shard))?.as_ref());
        match way?.send(&foreign.meta, received, run) {
            Relayed::Done => Some(true),
            Relayed::Dropped => Some(false),
            Relayed::Gone => None,
        }
    }
}

/// A shard's place among the generations.
#[derive(Debug)]
pub(crate) struct Succession {
    /// This is the generation that receives from the sockets.
    receives: bool,
    elders: Elders,
    /// Where a newer generation gives what is this one's.
    relay: Option<RelayReceiver>,
    /// The latest time that the endpoint was told: it is not told an earlier one afterwards.
    told: Time,
}

impl Default for Succession {
    fn default() -> Self {
        Succession { receives: true, elders: Elders::default(), relay: None, told: Time::ZERO }
    }
}

impl Succession {
    #[inline]
    pub(crate) const fn receives(&self) -> bool {
        self.receives
    }

    pub(crate) const fn elders(&self) -> &Elders {
        &self.elders
    }

    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there are no relays"))]
    pub(crate) const fn relay(&self) -> Option<&RelayReceiver> {
        self.relay.as_ref()
    }

    /// The endpoint is told this time.
    #[inline]
    pub(crate) const fn told(&mut self, now: Time) {
        self.told = now;
    }

    /// The shard is at its end: what is for it from now on has nowhere to go.
    pub(crate) fn end(&mut self) {
        self.relay = None;
    }
}

impl<H> Shard<H> {
    /// Makes this shard one of a generation that has `elders` and does not receive from its sockets before
    /// [`ShardHandle::begin_receiving`] is called.
    #[must_use]
    pub fn with_elders(mut self, elders: Elders) -> Self {
        self.succession = Succession { receives: false, elders, ..Succession::default() };
        self
    }

    /// Receives a batch of what a newer generation handed over.
    pub(crate) fn receive_relayed(&mut self) -> io::Result<Received> {
        let Some(relay) = &mut self.succession.relay else { return Ok(Received::default()) };
        self.recv.clear();
        let delivery = relay.receive(&mut self.recv)?;
        if delivery.runs > 0 {
            // When it was received from the network is what matters for round-trip times.
            let (told, now) = (self.succession.told, self.now);
            let at = self.clock.at_boot_time(delivery.received).max(told).min(now.max(told));
            self.succession.told(at);
            self.endpoint.receive_forwarded(at, self.wall, self.recv.runs());
        }
        if delivery.closed {
            tracing::info!("no newer generation is left: receiving again");
            self.receive_again();
        }
        Ok(Received { runs: delivery.runs, more: delivery.more })
    }

    fn receive_again(&mut self) {
        self.succession.receives = true;
        self.succession.relay = None;
        self.sockets_version += 1;
    }
}

impl<H: Handler> ShardHandle<H> {
    /// Receives from the sockets no more: a newer generation, which has them as well, is about to, and hands over
    /// what is this one's through `relay`. When the relay says that nobody is at its other end any more, the shard
    /// receives from its sockets again.
    ///
    /// Returns the handshakes under way, of which the newer generation has to be told first.
    pub fn stop_receiving(&self, relay: RelayReceiver) -> Vec<Begun> {
        let mut shard = self.shared().lock();
        shard.succession.receives = false;
        shard.succession.relay = Some(relay);
        shard.sockets_version += 1;
        let now = shard.begin_turn();
        let begun = shard.endpoint.handshakes(now).collect();
        drop(shard);
        self.shared().schedule();
        begun
    }

    /// Receives from the sockets from now on, this being the newest generation, or the newest that is left. `begun`
    /// are handshakes of older ones.
    pub fn begin_receiving(&self, begun: &[Begun]) {
        let mut shard = self.shared().lock();
        let now = shard.begin_turn();
        shard.endpoint.adopt_handshakes(now, begun.iter().copied());
        shard.receive_again();
        drop(shard);
        self.shared().schedule();
    }

    /// Whether this generation receives from the sockets.
    pub fn is_receiving(&self) -> bool {
        self.shared().lock().succession.receives
    }

    /// The sockets, to be passed on to another generation. Those that are none are left out.
    ///
    /// # Errors
    /// If the process has too many descriptors.
    pub fn clone_sockets(&self) -> io::Result<Vec<(SocketId, UdpSocket)>> {
        let shard = self.shared().lock();
        let sockets = shard.sockets.iter().filter_map(|socket| Some((socket.id(), socket.socket()?)));
        sockets.map(|(id, socket)| Ok((id, socket.try_clone()?))).collect()
    }
}
