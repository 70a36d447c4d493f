//! Proportional Rate Reduction (RFC 9937): how much may leave while a reduction of the window is being recovered.
//!
//! A window that shrinks below what is in flight would silence the sender until the difference has drained, and then let
//! it send as fast as acknowledgements come. Here it sends in proportion instead, `ssthresh` bytes for each `RecoverFS`
//! that are delivered, so that the flight has shrunk to the window when the round trip is over. Where losses shrink the
//! flight below that, it grows no faster than packets are delivered (PRR-CRB), or, as long as no more is lost, by a
//! packet more for each acknowledgement (PRR-SSRB).
//!
//! The episode ends with the acknowledgement of what was sent in it. It also ends when nothing is in flight any more:
//! there will be no acknowledgements to be in proportion to, and the pacer spreads what the window permits.

/// One episode, under RFC 9937's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prr {
    /// What was in flight at the beginning.
    recover_fs: u64,
    /// What has been delivered since.
    prr_delivered: u64,
    /// What has been sent since.
    prr_out: u64,
    /// What may be sent now.
    snd_cnt: u64,
}

/// An acknowledgement in the course of an episode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    /// Bytes that it newly acknowledges.
    pub(crate) delivered: u64,
    /// Bytes in flight after it.
    pub(crate) in_flight: u64,
    /// The window that the flight is to shrink to.
    pub(crate) ssthresh: u64,
    /// A full packet.
    pub(crate) mtu: u64,
    /// It shows no more losses (`SafeACK`).
    pub(crate) safe: bool,
}

impl Prr {
    /// An episode begins with so many bytes in flight, those included that are found lost. One packet may leave at once.
    pub(crate) const fn begin(in_flight: u64, mtu: u64) -> Self {
        Prr { recover_fs: in_flight, prr_delivered: 0, prr_out: 0, snd_cnt: mtu }
    }

    /// The acknowledgement with which the episode began had taken so much from the flight before.
    pub(crate) const fn on_first_ack(&mut self, bytes: u64) {
        self.recover_fs = self.recover_fs.saturating_add(bytes);
    }

    /// Bytes were acknowledged (RFC 9937 section 6.2).
    pub(crate) fn on_ack(&mut self, ack: &Delivery) {
        self.prr_delivered = self.prr_delivered.saturating_add(ack.delivered);
        self.snd_cnt = if ack.in_flight > ack.ssthresh {
            let share = u128::from(self.prr_delivered).saturating_mul(u128::from(ack.ssthresh));
            // Rounded up: what is lost by rounding would be missing in the end.
            let due = share.div_ceil(u128::from(self.recover_fs.max(1)));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.prr_out)
        } else {
            let conserving = self.prr_delivered.saturating_sub(self.prr_out).max(ack.delivered);
            let most = if ack.safe { conserving.saturating_add(ack.mtu) } else { conserving };
            most.min(ack.ssthresh.saturating_sub(ack.in_flight))
        };
        if self.prr_out == 0 && self.snd_cnt == 0 {
            self.snd_cnt = ack.mtu;
        }
    }

    /// Bytes were sent.
    pub(crate) const fn on_sent(&mut self, bytes: u64) {
        self.prr_out = self.prr_out.saturating_add(bytes);
        self.snd_cnt = self.snd_cnt.saturating_sub(bytes);
    }

    /// Whether a packet of `bytes` may be sent beside what is in flight. Less than a packet's worth is rounded up to one,
    /// which counts against what may be sent later; only the window itself is not exceeded for that.
    pub(crate) const fn permits(&self, bytes: u64, in_flight: u64, window: u64) -> bool {
        self.snd_cnt > 0 && (in_flight > window || in_flight.saturating_add(bytes) <= window)
    }

    /// What may be sent now.
    pub(crate) const fn available(&self) -> u64 {
        self.snd_cnt
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    const MTU: u64 = 1200;

    /// So many packets are in flight, the first `lost` of which are lost; each acknowledgement is of one packet, and the
    /// sender sends all it may. Returns what it sent after each.
    fn episode(packets: u64, lost: u64, ssthresh: u64) -> (Vec<u64>, u64) {
        let mut prr = Prr::begin(packets * MTU, MTU);
        let (mut in_flight, mut sent) = ((packets - lost) * MTU, Vec::new());
        for _ in 0..packets - lost {
            in_flight -= MTU;
            prr.on_ack(&Delivery {
                delivered: MTU,
                in_flight,
                ssthresh: ssthresh * MTU,
                mtu: MTU,
                safe: true,
            });
            let before = in_flight;
            while prr.permits(MTU, in_flight, ssthresh * MTU) {
                prr.on_sent(MTU);
                in_flight += MTU;
            }
            sent.push((in_flight - before) / MTU);
        }
        (sent, in_flight / MTU)
    }

    #[test]
    fn a_flight_shrinks_evenly_to_the_window() {
        let (sent, left) = episode(100, 1, 70);
        assert!((70..=71).contains(&left), "{left}");
        assert!(sent.iter().all(|packets| *packets <= 2), "{sent:?}");
        // Never more than two acknowledgements in a row without a packet: it does not fall silent.
        assert!(sent.windows(3).all(|three| three.iter().sum::<u64>() > 0), "{sent:?}");
    }

    #[test]
    fn after_many_losses_it_grows_by_a_packet_for_each_acknowledgement() {
        let (sent, left) = episode(100, 80, 50);
        assert_eq!(&sent[..5], [2; 5]);
        assert!((39..=40).contains(&left), "{left}");
        // As long as more is lost, no faster than packets are delivered.
        let mut prr = Prr::begin(100 * MTU, MTU);
        let ack = Delivery { delivered: MTU, in_flight: 19 * MTU, ssthresh: 50 * MTU, mtu: MTU, safe: false };
        prr.on_ack(&ack);
        assert_eq!(prr.available(), MTU);
    }

    #[test]
    fn one_packet_leaves_at_once_and_less_than_one_is_rounded_up() {
        let mut prr = Prr::begin(3 * MTU, MTU);
        let ack = Delivery { delivered: 1, in_flight: 3 * MTU, ssthresh: 2 * MTU, mtu: MTU, safe: true };
        assert!(prr.permits(MTU, 3 * MTU, 2 * MTU));
        prr.on_ack(&ack);
        assert_eq!(prr.available(), 1);
        assert!(prr.permits(MTU, 3 * MTU, 2 * MTU));
        prr.on_sent(MTU);
        assert!(!prr.permits(MTU, 4 * MTU, 2 * MTU));
        // The window is not exceeded for the sake of rounding.
        assert!(!Prr::begin(MTU, MTU).permits(MTU, MTU + 1, 2 * MTU));
    }
}
