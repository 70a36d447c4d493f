//! ACK frames (RFC 9000 section 19.3).

use super::kind;
use crate::codec::varint_len;
use crate::{NoRoom, Reader, Writer};
use std::iter::FusedIterator;
use std::ops::RangeInclusive;

/// An ACK frame. Its ranges have been checked while parsing: none goes below packet number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The largest packet number acknowledged.
    pub largest: u64,
    /// The delay field as it stands on the wire, not yet scaled by ack_delay_exponent.
    pub delay: u64,
    /// The acknowledged ranges, highest first.
    pub ranges: AckRanges<'a>,
    /// ECN counts (type 0x03).
    pub ecn: Option<EcnCounts>,
}

/// The ECN counts of an ACK frame: packets received with each codepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EcnCounts {
    /// Packets received with ECT(0).
    pub ect0: u64,
    /// Packets received with ECT(1).
    pub ect1: u64,
    /// Packets received with CE.
    pub ce: u64,
}

/// The ranges of an ACK frame as they stand on the wire; [`AckRanges::iter`] gives them as inclusive
/// ranges of packet numbers, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckRanges<'a> {
    pub(crate) largest: u64,
    pub(crate) first: u64,
    pub(crate) rest: &'a [u8],
}

impl<'a> AckRanges<'a> {
    /// The ranges of packet numbers, highest first. There is at least one, and at least one packet
    /// number lies between any two.
    pub fn iter(&self) -> AckRangesIter<'a> {
        AckRangesIter {
            next: Some(self.largest.saturating_sub(self.first)..=self.largest),
            rest: Reader::new(self.rest),
        }
    }
}

impl<'a> IntoIterator for AckRanges<'a> {
    type Item = RangeInclusive<u64>;
    type IntoIter = AckRangesIter<'a>;

    fn into_iter(self) -> AckRangesIter<'a> {
        self.iter()
    }
}

/// What [`AckRanges::iter`] gives.
#[derive(Debug, Clone)]
pub struct AckRangesIter<'a> {
    next: Option<RangeInclusive<u64>>,
    rest: Reader<'a>,
}

impl Iterator for AckRangesIter<'_> {
    type Item = RangeInclusive<u64>;

    #[inline]
    fn next(&mut self) -> Option<RangeInclusive<u64>> {
        let range = self.next.take()?;
        self.next = following(*range.start(), &mut self.rest);
        Some(range)
    }
}

impl FusedIterator for AckRangesIter<'_> {}

/// The range below `smallest`, if one follows.
#[inline]
fn following(smallest: u64, rest: &mut Reader<'_>) -> Option<RangeInclusive<u64>> {
    let (gap, len) = (rest.varint().ok()?, rest.varint().ok()?);
    let largest = smallest.checked_sub(gap.saturating_add(2))?;
    Some(largest.checked_sub(len)?..=largest)
}

/// Writes a frame that was read before.
pub(super) fn encode(ack: &Ack<'_>, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    let count = ack.ranges.iter().skip(1).count() as u64;
    writer.varint(kind::ACK | u64::from(ack.ecn.is_some()))?;
    writer.varint(ack.largest)?;
    writer.varint(ack.delay)?;
    writer.varint(count)?;
    writer.varint(ack.ranges.first)?;
    writer.bytes(ack.ranges.rest)?;
    ack.ecn.map_or(Ok(()), |ecn| encode_counts(&ecn, writer))
}

fn encode_counts(ecn: &EcnCounts, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    writer.varint(ecn.ect0)?;
    writer.varint(ecn.ect1)?;
    writer.varint(ecn.ce)
}

fn counts_len(ecn: &EcnCounts) -> usize {
    varint_len(ecn.ect0).saturating_add(varint_len(ecn.ect1)).saturating_add(varint_len(ecn.ce))
}

/// Most ranges after the first whose count takes one byte.
const ONE_BYTE_COUNT: u64 = 63;
/// Most ranges after the first that are written: their count takes two bytes.
const MAX_COUNT: u64 = 16_383;

/// Writes as many ranges as fit. On failure the caller takes back what was written.
pub(super) fn encode_ranges(
    writer: &mut Writer<'_>,
    delay: u64,
    mut ranges: impl Iterator<Item = RangeInclusive<u64>>,
    ecn: Option<EcnCounts>,
) -> Result<(), NoRoom> {
    let first = ranges.next().ok_or(NoRoom)?;
    let first_len = first.end().checked_sub(*first.start()).ok_or(NoRoom)?;
    let trailer = ecn.as_ref().map_or(0, counts_len);

    writer.varint(kind::ACK | u64::from(ecn.is_some()))?;
    writer.varint(*first.end())?;
    writer.varint(delay)?;
    let count_at = writer.len();
    writer.u8(0)?;
    writer.varint(first_len)?;

    let (mut count, mut smallest) = (0_u64, *first.start());
    for range in ranges {
        let gap = smallest.checked_sub(*range.end()).and_then(|distance| distance.checked_sub(2));
        let Some((gap, len)) = gap.zip(range.end().checked_sub(*range.start())) else { break };
        let widen = usize::from(count == ONE_BYTE_COUNT);
        let needed = varint_len(gap).saturating_add(varint_len(len)).saturating_add(widen);
        if count == MAX_COUNT || writer.remaining() < needed.saturating_add(trailer) {
            break;
        }
        if widen > 0 {
            make_room_for_count(writer, count_at)?;
        }
        writer.varint(gap)?;
        writer.varint(len)?;
        count = count.saturating_add(1);
        smallest = *range.start();
    }
    put_count(writer, count_at, count);
    ecn.map_or(Ok(()), |ecn| encode_counts(&ecn, writer))
}

/// Moves everything behind the count one byte on.
fn make_room_for_count(writer: &mut Writer<'_>, count_at: usize) -> Result<(), NoRoom> {
    writer.u8(0)?;
    let tail = writer.written_mut().get_mut(count_at..).unwrap_or_default();
    tail.rotate_right(1);
    Ok(())
}

fn put_count(writer: &mut Writer<'_>, count_at: usize, count: u64) {
    let field = writer.written_mut().get_mut(count_at..).unwrap_or_default();
    if count <= ONE_BYTE_COUNT {
        field.iter_mut().take(1).for_each(|byte| *byte = count as u8);
    } else {
        let bytes = (count as u16 | 0x4000).to_be_bytes();
        field.iter_mut().zip(bytes).for_each(|(byte, value)| *byte = value);
    }
}
