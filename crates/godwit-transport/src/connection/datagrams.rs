//! How large a datagram may be (RFC 9221).

use super::Machine;
use godwit_recovery::PathRecovery;
use godwit_tls::keys::TAG_LEN;
use godwit_wire::ConnectionId;
use godwit_wire::constants::MAX_PACKET_NUMBER_LEN;

/// Bytes for frames in a 1-RTT packet of full size that carries nothing else.
pub(super) fn frame_room(path: &PathRecovery, dcid: &ConnectionId) -> usize {
    let overhead = 1_usize.saturating_add(dcid.len());
    let overhead = overhead.saturating_add(MAX_PACKET_NUMBER_LEN).saturating_add(TAG_LEN);
    usize::from(path.mtu()).saturating_sub(overhead)
}

impl Machine {
    /// What a datagram has room for on the path that carries the connection.
    pub(super) fn frame_room(&self) -> usize {
        frame_room(&self.paths.active().recovery, self.parts.remote_cids.active())
    }
}
