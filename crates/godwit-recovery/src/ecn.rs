//! Explicit congestion notification towards the peer: whether a path carries ECT(0), and what comes back.
//!
//! A path begins without marks. Once the handshake is over, one small packet with nothing but a PING is sent
//! with a mark, beside the data; when the peer's counts show that it arrived with its mark, everything is
//! marked. Nothing that anybody waits for travels with a mark that has not been proved to pass, so that a path
//! that drops marked packets costs no time at all, and one that erases marks costs one packet. Three probes
//! lost while others pass, counts that are missing, too small or impossible, and marks that never mean anything
//! end it for the path. A probe timeout on a proved path stops the marks until another probe has passed: what
//! swallows marked packets in mid-connection stands in the way of one timeout only.
//!
//! Invariants: per packet number space, the peer's counts never exceed the marked packets sent; probes are
//! neither in flight nor ack-eliciting to loss recovery, so that their loss is never congestion and arms no
//! timer. (RFC 9000 section 13.4 and appendix A.4, which leaves the strategy of probing to the sender; RFC 9002
//! section 7.1.)

use crate::EcnCounts;
use godwit_base::{Ecn, Time};

/// Probes lost in a row that make a black hole.
const PROBES: u8 = 3;
/// When every packet between so many reductions of the window came as "congestion experienced", the mark says
/// nothing: seven tenths to that power leave little of any queue of our own making.
const ALWAYS_MARKED: u8 = 8;

/// What is known of ECN on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EcnState {
    /// Not wanted.
    #[default]
    Off,
    /// Nothing is known; a probe is to be sent.
    Testing,
    /// A probe has been sent, and nothing heard of it.
    Unknown,
    /// Marks arrive and are reported; packets are marked.
    Capable,
    /// Packets are not marked on this path any more.
    Failed(EcnFailure),
}

/// Why a path is not used with ECN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EcnFailure {
    /// Marked packets were acknowledged and not reported as marked: something erases the marks, or the peer
    /// does not see them.
    Bleached,
    /// More or other marks were reported than were sent.
    Remarked,
    /// Marked packets do not arrive.
    BlackHole,
    /// Everything arrives with "congestion experienced", however little is sent.
    AlwaysMarked,
}

/// What a path has seen of ECN, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EcnStats {
    /// Sent with ECT(0).
    pub sent: u64,
    /// Of those, acknowledged.
    pub acked: u64,
    /// Of those, reported with "congestion experienced".
    pub ce: u64,
}

/// What an ACK frame says of marked packets, apart from its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EcnAcked {
    /// Marked packets of this path that it newly acknowledges.
    pub packets: u64,
    /// Marked packets of paths that were left that it newly acknowledges.
    pub elsewhere: u64,
    /// One of the packets of this path was sent since its validation began.
    pub proof: bool,
    /// When the newest packet that it newly acknowledges on this path was sent.
    pub newest_sent_at: Option<Time>,
    /// It raised the largest acknowledged packet number; the counts of others may be old (RFC 9000 section
    /// 13.4.2.1).
    pub in_order: bool,
}

/// ECN validation of one path.
#[derive(Debug)]
pub struct EcnValidation {
    state: EcnState,
    /// When the first probe was sent; what was marked before was data.
    since: Option<Time>,
    /// A probe may be sent: after a probe timeout something must be acknowledged first.
    ready: bool,
    probes_lost: u8,
    /// Reductions of the window since a marked packet last came without "congestion experienced".
    alarms: u8,
    /// The codepoint of marked packets: ECT(0), or ECT(1) if the congestion controller wants that.
    ect: Ecn,
    stats: EcnStats,
}

impl EcnValidation {
    /// A path of which nothing is known; nothing is ever marked unless `wanted`.
    pub const fn new(wanted: bool) -> Self {
        EcnValidation {
            state: if wanted { EcnState::Testing } else { EcnState::Off },
            since: None,
            ready: true,
            probes_lost: 0,
            alarms: 0,
            ect: Ecn::Ect0,
            stats: EcnStats { sent: 0, acked: 0, ce: 0 },
        }
    }

    /// The same, marking packets with this codepoint: ECT(1), or else ECT(0).
    #[must_use]
    pub(crate) const fn marking(mut self, ect: Ecn) -> Self {
        self.ect = if let Ecn::Ect1 = ect { Ecn::Ect1 } else { Ecn::Ect0 };
        self
    }

    /// The codepoint of probes.
    pub const fn ect(&self) -> Ecn {
        self.ect
    }

    /// What is known.
    pub const fn state(&self) -> EcnState {
        self.state
    }

    /// What has been counted.
    pub const fn stats(&self) -> EcnStats {
        self.stats
    }

    /// Marked packets sent from then on prove something.
    #[inline]
    pub(crate) const fn since(&self) -> Time {
        match self.since {
            Some(since) => since,
            None => Time::MAX,
        }
    }

    /// The codepoint of packets sent now, probes aside.
    #[inline]
    pub const fn mark(&self) -> Ecn {
        if let EcnState::Capable = self.state { self.ect } else { Ecn::NotEct }
    }

    /// True if a probe is to be sent, in a datagram of its own.
    #[inline]
    pub const fn wants_probe(&self) -> bool {
        matches!(self.state, EcnState::Testing) && self.ready
    }

    /// The path leads elsewhere from now on: what was known of it no longer holds.
    pub const fn restart(&mut self) {
        if !matches!(self.state, EcnState::Off) {
            self.test(true);
        }
    }

    const fn test(&mut self, ready: bool) {
        self.state = EcnState::Testing;
        self.since = None;
        self.ready = ready;
        self.probes_lost = 0;
        self.alarms = 0;
    }

    /// A probe timeout: perhaps the marked packets are those that vanish.
    pub(crate) const fn on_pto(&mut self) {
        if matches!(self.state, EcnState::Capable) {
            self.test(false);
        }
    }

    /// Something came through.
    #[inline]
    pub(crate) const fn on_acked(&mut self) {
        self.ready = true;
    }

    pub(crate) fn on_marked_sent(&mut self, now: Time) {
        self.stats.sent = self.stats.sent.saturating_add(1);
        if self.state == EcnState::Testing {
            self.state = EcnState::Unknown;
            self.since.get_or_insert(now);
        }
    }

    /// A marked packet that was sent at `sent_at` is lost.
    pub(crate) fn on_marked_lost(&mut self, sent_at: Time) {
        if self.state != EcnState::Unknown || self.since.is_none_or(|since| sent_at < since) {
            return;
        }
        self.probes_lost = self.probes_lost.saturating_add(1);
        self.state = if self.probes_lost < PROBES {
            EcnState::Testing
        } else {
            EcnState::Failed(EcnFailure::BlackHole)
        };
    }

    /// The peer's counts fit; `ce` of the marked packets are new with "congestion experienced". True if that
    /// means congestion.
    pub(crate) fn on_valid(&mut self, acked: &EcnAcked, ce: u64) -> bool {
        if !matches!(self.state, EcnState::Testing | EcnState::Unknown | EcnState::Capable) {
            return false;
        }
        self.stats.acked = self.stats.acked.saturating_add(acked.packets);
        self.stats.ce = self.stats.ce.saturating_add(ce);
        // What was marked before the validation began went over another network, or before a timeout.
        if acked.proof {
            self.state = EcnState::Capable;
        }
        if ce < acked.packets {
            self.alarms = 0;
        }
        ce > 0 && self.state == EcnState::Capable
    }

    /// The window was reduced for what [`EcnValidation::on_valid`] told. True if it should not have been, nor
    /// those times before: the marks mean nothing.
    pub(crate) fn on_reduced(&mut self) -> bool {
        self.alarms = self.alarms.saturating_add(1);
        let false_alarm = self.alarms >= ALWAYS_MARKED;
        if false_alarm {
            self.state = EcnState::Failed(EcnFailure::AlwaysMarked);
        }
        false_alarm
    }

    pub(crate) const fn on_invalid(&mut self, why: EcnFailure) {
        if matches!(self.state, EcnState::Testing | EcnState::Unknown | EcnState::Capable) {
            self.state = EcnState::Failed(why);
        }
    }
}

/// The books of one packet number space: what was sent with a mark, on whatever path, and what the peer
/// reported last.
///
/// RFC 9000 section 13.4.2.1 compares what one ACK frame adds. Sums are compared here: a peer may leave a packet
/// out of one acknowledgement that it has counted already, and name it in the next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EcnLedger {
    sent: u64,
    /// Acknowledged, less what has been found missing in the reports before.
    acked: u64,
    /// Of those, sent on paths that were left, and acknowledged since counts were last compared.
    elsewhere: u64,
    reported: EcnCounts,
}

impl EcnLedger {
    pub(crate) const fn on_marked_sent(&mut self) {
        self.sent = self.sent.saturating_add(1);
    }

    pub(crate) const fn on_marked_acked(&mut self, here: u64, elsewhere: u64) {
        self.acked = self.acked.saturating_add(here).saturating_add(elsewhere);
        self.elsewhere = self.elsewhere.saturating_add(elsewhere);
    }

    /// Compares the counts of the newest ACK frame with what was sent and acknowledged. Returns how many packets
    /// are new with "congestion experienced" on the path in use: those of paths that were left, of which some may
    /// have met congestion there, are left out.
    pub(crate) fn check(&mut self, counts: Option<EcnCounts>, ect: Ecn) -> Result<u64, EcnFailure> {
        let before = self.reported;
        let counts = counts.unwrap_or(before);
        self.reported = counts;
        let by_codepoint = |counts: EcnCounts| match ect {
            Ecn::Ect1 => (counts.ect1, counts.ect0),
            _ => (counts.ect0, counts.ect1),
        };
        let ((ours_before, others_before), (ours, others)) = (by_codepoint(before), by_codepoint(counts));
        let total = ours.saturating_add(counts.ce);
        let missing = self.acked > total;
        self.acked = self.acked.min(total);
        let elsewhere = std::mem::take(&mut self.elsewhere);
        if others > others_before || total > self.sent {
            Err(EcnFailure::Remarked)
        } else if missing || total < ours_before.saturating_add(before.ce) {
            Err(EcnFailure::Bleached)
        } else {
            Ok(counts.ce.saturating_sub(before.ce).saturating_sub(elsewhere))
        }
    }
}

#[cfg(test)]
mod tests;
