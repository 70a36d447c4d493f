//! Protection of 1-RTT packets apart from their connection (RFC 9001 sections 5.3 and 5.4).
//!
//! A connection that has much to send may leave the protection of packets that it has written to somebody else, who has
//! [`ProtectionKeys`]: copies of the keys of one key phase. What has to be counted is counted when a packet is written
//! ([`super::OneRtt::begin_apart`]), so that it does not matter when it is protected, and by whom.

use super::{HeaderSealer, PacketSpan, SealFailed, Sealer};

/// A 1-RTT packet that is written, with room for its tag, and not protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnprotectedPacket {
    /// Where it begins in the buffer, and where its packet number is.
    pub span: PacketSpan,
    /// Bytes of it, the tag included.
    pub len: usize,
    /// The path id of multipath QUIC, 0 without it.
    pub path: u32,
    /// Its packet number.
    pub number: u64,
}

/// Copies of the keys that protect the packets of one key phase.
pub struct ProtectionKeys {
    sealer: Sealer,
    header_sealer: HeaderSealer,
}

impl ProtectionKeys {
    /// None for keys that cannot be copied: those of another provider than ours.
    pub(super) fn copied(sealer: &Sealer, header_sealer: &HeaderSealer) -> Option<Self> {
        Some(ProtectionKeys { sealer: sealer.another()?, header_sealer: header_sealer.another()? })
    }

    /// Protects `packets`, which stand in `buffer`. No packet may be protected twice. After a failure some of them may
    /// have been protected, and none may leave.
    ///
    /// # Errors
    /// If a packet is not within the buffer, or the AEAD fails. Either is a defect at this end.
    pub fn protect(&self, packets: &[UnprotectedPacket], buffer: &mut [u8]) -> Result<(), SealFailed> {
        protect(&self.sealer, &self.header_sealer, packets, buffer)
    }
}

impl std::fmt::Debug for ProtectionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProtectionKeys(..)")
    }
}

/// Payloads are sealed one by one, and headers masked a batch at a time.
pub(super) fn protect(
    sealer: &Sealer,
    header_sealer: &HeaderSealer,
    packets: &[UnprotectedPacket],
    buffer: &mut [u8],
) -> Result<(), SealFailed> {
    const BATCH: usize = 64;
    let mut spans = [PacketSpan { first: 0, pn_offset: 0, pn_len: 0 }; BATCH];
    for packets in packets.chunks(BATCH) {
        for (packet, span) in packets.iter().zip(&mut spans) {
            *span = packet.span;
            let PacketSpan { first, pn_offset, pn_len } = packet.span;
            let bytes = buffer.get_mut(first..).and_then(|rest| rest.get_mut(..packet.len));
            let header_len = pn_offset.saturating_add(pn_len).saturating_sub(first);
            let (header, payload) =
                bytes.and_then(|bytes| bytes.split_at_mut_checked(header_len)).ok_or(SealFailed)?;
            sealer.seal(packet.path, packet.number, header, payload)?;
        }
        header_sealer.mask_batch(spans.get(..packets.len()).unwrap_or_default(), buffer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
