//! ACK frames (RFC 9000 section 19.3).

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
