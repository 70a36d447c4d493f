//! Header protection (RFC 9001 section 5.4), a batch at a time when sending, and on receipt where packets came together.

use super::SealFailed;
use crate::crypto::{MASK_LEN, SAMPLE_LEN};
use crate::provider::{FoundHeaderKey, remove_mask};
use godwit_wire::Reader;
use godwit_wire::packet_number::TruncatedPacketNumber;
use std::sync::atomic::{AtomicBool, Ordering};

/// The sample is taken as if the packet number had this length (RFC 9001 section 5.4.2).
const LONGEST_PACKET_NUMBER: usize = 4;

/// Packets masked in one call at most: as many as one GSO send takes.
const BATCH: usize = 64;

/// Where a sealed packet stands in a buffer, for header protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSpan {
    /// Offset of the packet's first byte in the buffer.
    pub first: usize,
    /// Offset of its packet number in the buffer.
    pub pn_offset: usize,
    /// Length of its packet number, 1 to 4 bytes.
    pub pn_len: usize,
}

/// Adds header protection.
pub struct HeaderSealer {
    key: FoundHeaderKey,
    /// False once the key has refused a batch: it comes from a provider other than ours.
    batches: AtomicBool,
}

impl HeaderSealer {
    pub(super) const fn new(key: FoundHeaderKey) -> Self {
        HeaderSealer { key, batches: AtomicBool::new(true) }
    }

    /// Protects the headers of `packets`, which are sealed and stand in `buffer`.
    ///
    /// A packet must have at least 20 bytes from its packet number on, tag included: payloads are padded
    /// to that (RFC 9001 section 5.4.2). After a failure, packets before the one that failed may have been
    /// protected.
    #[inline]
    pub fn mask_batch(&self, packets: &[PacketSpan], buffer: &mut [u8]) -> Result<(), SealFailed> {
        packets.chunks(BATCH).try_for_each(|packets| {
            if packets.len() > 1 && self.batches.load(Ordering::Relaxed) {
                self.mask_together(packets, buffer)
            } else {
                packets.iter().try_for_each(|packet| self.mask(*packet, buffer))
            }
        })
    }

    fn mask_together(&self, packets: &[PacketSpan], buffer: &mut [u8]) -> Result<(), SealFailed> {
        let mut samples = [[0; SAMPLE_LEN]; BATCH];
        let mut masks = [[0; MASK_LEN]; BATCH];
        let count = packets.len();
        for (packet, slot) in packets.iter().zip(&mut samples) {
            *slot = *sample(buffer, packet.pn_offset).ok_or(SealFailed)?;
        }
        let samples = samples.get(..count).ok_or(SealFailed)?.as_flattened();
        let room = masks.get_mut(..count).ok_or(SealFailed)?.as_flattened_mut();
        if self.key.any().encrypt_in_place(samples, &mut 0, room).is_err() {
            self.batches.store(false, Ordering::Relaxed);
            return packets.iter().try_for_each(|packet| self.mask(*packet, buffer));
        }
        packets
            .iter()
            .zip(&masks)
            .try_for_each(|(packet, mask)| apply(*packet, mask, buffer))
            .ok_or(SealFailed)
    }

    /// See [`super::OneRtt::forget`].
    pub(super) fn forget(&mut self) {
        self.key.forget();
    }

    /// The same once more, if the key can be copied.
    pub(super) fn another(&self) -> Option<Self> {
        self.key.another().map(HeaderSealer::new)
    }

    fn mask(&self, packet: PacketSpan, buffer: &mut [u8]) -> Result<(), SealFailed> {
        let sample = *sample(buffer, packet.pn_offset).ok_or(SealFailed)?;
        let (head, tail) = buffer.split_at_mut_checked(packet.pn_offset).ok_or(SealFailed)?;
        let first = head.get_mut(packet.first).ok_or(SealFailed)?;
        let number = tail.get_mut(..packet.pn_len).ok_or(SealFailed)?;
        self.key.any().encrypt_in_place(&sample, first, number).map_err(|_| SealFailed)
    }
}

/// What header protection has put over the header of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask<'a>(&'a [u8; MASK_LEN]);

/// The masks of packets that came together, made before their turns come: the packets are as they came until then.
#[derive(Debug)]
pub struct MasksAhead {
    masks: [[u8; MASK_LEN]; BATCH],
    count: usize,
}

impl MasksAhead {
    /// Packets for which masks are made in one call at most.
    pub const MOST: usize = BATCH;

    /// The mask of a packet, counted from 0 on. Where none was made, the packet is unmasked without.
    #[inline]
    pub fn of(&self, index: usize) -> Option<Mask<'_>> {
        self.masks.get(index).filter(|_| index < self.count).map(Mask)
    }
}

/// Removes header protection.
pub struct HeaderOpener {
    key: FoundHeaderKey,
}

impl HeaderOpener {
    pub(super) const fn new(key: FoundHeaderKey) -> Self {
        HeaderOpener { key }
    }

    /// See [`super::OneRtt::forget`].
    pub(super) fn forget(&mut self) {
        self.key.forget();
    }

    /// Makes the masks of packets that fill `run`, `stride` bytes each but for the last, and whose packet numbers all begin at
    /// `pn_offset`; of no more than [`MasksAhead::MOST`]. Those of packets that are too short, or of other keys, are of no
    /// use. `None` if this key makes masks one by one only.
    #[inline]
    pub fn masks_ahead(&self, run: &[u8], stride: usize, pn_offset: usize) -> Option<MasksAhead> {
        // What another provider would refuse is not asked for.
        let FoundHeaderKey::Ours(key) = &self.key else { return None };
        let (mut samples, mut count) = ([[0; SAMPLE_LEN]; BATCH], 0_usize);
        for (packet, slot) in run.chunks(stride.max(1)).zip(&mut samples) {
            if let Some(sample) = sample(packet, pn_offset) {
                *slot = *sample;
            }
            count = count.saturating_add(1);
        }
        let mut ahead = MasksAhead { masks: [[0; MASK_LEN]; BATCH], count };
        let samples = samples.get(..count)?.as_flattened();
        key.masks(samples, ahead.masks.get_mut(..count)?.as_flattened_mut()).ok()?;
        Some(ahead)
    }

    /// As [`HeaderOpener::unmask_ahead`], with a mask that is made now.
    #[inline]
    pub fn unmask(&self, packet: &mut [u8], pn_offset: usize) -> Option<(u8, TruncatedPacketNumber)> {
        self.unmask_ahead(packet, pn_offset, None)
    }

    /// Unprotects the header of `packet`, whose packet number begins at `pn_offset`, in place. Returns its
    /// first byte and packet number, or `None` if the packet is too short to be one.
    ///
    /// Nothing has been authenticated: reserved bits are judged only after the payload has been opened
    /// (RFC 9000 section 17.2). `mask` is what [`HeaderOpener::masks_ahead`] has made for this packet, if anything.
    #[inline]
    pub fn unmask_ahead(
        &self,
        packet: &mut [u8],
        pn_offset: usize,
        mask: Option<Mask<'_>>,
    ) -> Option<(u8, TruncatedPacketNumber)> {
        let (head, tail) = packet.split_at_mut_checked(pn_offset)?;
        let (number, rest) = tail.split_at_mut_checked(LONGEST_PACKET_NUMBER)?;
        let first = head.first_mut()?;
        let sample = rest.get(..SAMPLE_LEN)?;
        match mask {
            Some(Mask(mask)) => remove_mask(*mask, first, number),
            None => self.key.any().decrypt_in_place(sample, first, number).ok()?,
        }
        let len = usize::from(*first & 0x03).saturating_add(1);
        let number = TruncatedPacketNumber::decode(&mut Reader::new(number), len).ok()?;
        Some((*first, number))
    }
}

#[inline]
fn sample(buffer: &[u8], pn_offset: usize) -> Option<&[u8; SAMPLE_LEN]> {
    buffer.get(pn_offset.checked_add(LONGEST_PACKET_NUMBER)?..)?.first_chunk()
}

#[inline]
fn apply(packet: PacketSpan, mask: &[u8; MASK_LEN], buffer: &mut [u8]) -> Option<()> {
    let [first_mask, number_mask @ ..] = *mask;
    let first = buffer.get_mut(packet.first)?;
    let bits = if *first & 0x80 == 0 { 0x1f } else { 0x0f };
    *first ^= first_mask & bits;
    // There are as many bytes as the longest packet number has before the sample: only those of the number are altered.
    let number = buffer.get_mut(packet.pn_offset..)?.first_chunk_mut()?;
    let others = LONGEST_PACKET_NUMBER.saturating_sub(packet.pn_len).saturating_mul(8);
    let of_number = u32::MAX.checked_shr(u32::try_from(others).ok()?).unwrap_or(0);
    let masked = u32::from_le_bytes(*number) ^ (u32::from_le_bytes(number_mask) & of_number);
    *number = masked.to_le_bytes();
    Some(())
}

#[cfg(test)]
mod tests;
