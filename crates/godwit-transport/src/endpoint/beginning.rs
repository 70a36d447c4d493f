//! What a client is told while its ClientHello has not arrived in full: which packets have.
//!
//! Initial packets are acknowledged at once (RFC 9000 section 13.2.1). Key shares that resist quantum computers make
//! ClientHellos of two datagrams; if one is lost, a client that knows of the other repeats the lost one only, and
//! knows how long a round trip takes. Else it repeats everything, and ever more slowly.
//!
//! There is no connection yet, so the endpoint makes these packets itself. Their Source Connection ID binds (section
//! 7.2) and their numbers are used up: the connection that comes of it goes on with both. A Retry is not possible any
//! more (section 17.2.5.2).

use super::first_initial::{Answered, FirstInitial};
use super::negotiate;
use crate::connection::BegunInitials;
use godwit_base::{Ecn, Time};
use godwit_recovery::AckTracker;
use godwit_wire::Frame;
use godwit_wire::frame::EcnCounts;

/// Packets remembered whose datagrams were not kept, as they said nothing new.
const MAX_REPEATED: usize = 32;
/// Initial packets looked at in one datagram.
const MAX_IN_DATAGRAM: usize = 4;

/// The numbers of the Initial packets that one datagram held.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Numbers {
    numbers: [u64; MAX_IN_DATAGRAM],
    len: usize,
}

impl Numbers {
    pub(super) fn push(&mut self, number: u64) {
        if let Some(place) = self.numbers.get_mut(self.len) {
            *place = number;
            self.len = self.len.saturating_add(1);
        }
    }

    fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.numbers.iter().take(self.len).copied()
    }
}

/// What has been received of a client whose ClientHello is not complete.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) answered: Answered,
    acks: AckTracker,
    /// Packets that are to be acknowledged although nobody will see them again.
    repeated: Vec<(u64, Ecn)>,
    /// An acknowledgement is to be sent.
    pub(super) due: bool,
}

impl Beginning {
    pub(super) fn new() -> Self {
        Beginning {
            answered: Answered::default(),
            acks: AckTracker::immediate(),
            repeated: Vec::new(),
            due: false,
        }
    }

    /// Packets came. `kept` says whether the connection will see them again.
    pub(super) fn on_packets(&mut self, now: Time, numbers: &Numbers, ecn: Ecn, kept: bool) {
        for number in numbers.iter() {
            if self.acks.is_duplicate(number) || (!kept && self.repeated.len() >= MAX_REPEATED) {
                continue;
            }
            self.acks.on_packet_received(number, now, true, ecn);
            if !kept {
                self.repeated.push((number, ecn));
            }
        }
    }

    /// An Initial packet that acknowledges everything received so far.
    pub(super) fn acknowledgement(&mut self, first: &FirstInitial) -> Option<Vec<u8>> {
        self.due = false;
        let counts = self.acks.ecn_counts();
        let counts = EcnCounts { ect0: counts.ect0, ect1: counts.ect1, ce: counts.ce };
        let counts = Some(counts).filter(|counts| *counts != EcnCounts::default());
        let ranges = self.acks.ranges();
        let packet =
            negotiate::initial(first, &self.answered, |writer| Frame::encode_ack(writer, 0, ranges, counts))?;
        self.answered.packets = self.answered.packets.saturating_add(1);
        self.answered.bytes = self.answered.bytes.saturating_add(packet.len());
        Some(packet)
    }

    /// What the connection is to know of it.
    pub(super) fn into_begun(self) -> BegunInitials {
        let Answered { packets, bytes, .. } = self.answered;
        BegunInitials { packets, bytes, repeated: self.repeated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64) -> Numbers {
        let mut numbers = Numbers::default();
        numbers.push(number);
        numbers
    }

    /// What has come of packets with these numbers, of datagrams that were kept or not.
    fn begun(packets: impl Iterator<Item = (u64, bool)>) -> Beginning {
        let mut beginning = Beginning::new();
        for (number, kept) in packets {
            beginning.on_packets(Time::ZERO, &packet(number), Ecn::NotEct, kept);
        }
        beginning
    }

    #[test]
    fn a_packet_counts_once_however_often_it_comes() {
        let beginning = begun([(0, true), (1, false), (1, false), (0, false), (1, true)].into_iter());
        assert_eq!(beginning.into_begun().repeated, [(1, Ecn::NotEct)]);
    }

    #[test]
    fn beyond_so_many_packets_that_are_not_kept_only_those_that_are_kept_are_acknowledged() {
        let packets = (0..32).map(|number| (number, false)).chain([(32, false), (33, true), (34, false)]);
        let beginning = begun(packets);
        let came = |number: &u64| beginning.acks.is_duplicate(*number);
        assert_eq!((0..40).filter(came).collect::<Vec<_>>(), (0..32).chain([33]).collect::<Vec<_>>());
        assert_eq!(beginning.into_begun().repeated.len(), 32);
    }
}
