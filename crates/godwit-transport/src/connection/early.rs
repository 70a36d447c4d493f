//! 1-RTT packets that came before the handshake was complete, because the network reordered them.
//!
//! They cannot be opened yet; dropping them would cost a probe timeout. A few are kept.

use super::input::Datagram;
use std::mem;

/// Packets kept for later, oldest first.
#[derive(Debug, Default)]
pub(super) struct Early {
    packets: Vec<(Datagram, Vec<u8>)>,
}

impl Early {
    /// Packets kept at most: what anyone on the path can make us hold is 8 datagrams.
    const MAX: usize = 8;

    pub(super) fn keep(&mut self, origin: &Datagram, packet: &[u8]) {
        if self.packets.len() < Self::MAX {
            self.packets.push((*origin, packet.to_vec()));
        }
    }

    /// Everything kept, once.
    pub(super) fn take(&mut self) -> Vec<(Datagram, Vec<u8>)> {
        mem::take(&mut self.packets)
    }
}
