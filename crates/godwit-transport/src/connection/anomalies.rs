//! Frames that serve nothing, as far as one connection can have many of them (RFC 9000 section 21.9).
//!
//! No frame of a peer is wrong by itself if it says what is known, pings, or raises a window by a byte; a peer that does
//! little else makes us work for nothing. Such frames are charged to one budget, which refills with time and with honest
//! work: bytes of streams that come for the first time, datagrams, and packets of ours that are acknowledged. Who uses it
//! up loses the connection.
//!
//! Only what comes under 1-RTT keys counts. Packets that come twice do not: whoever sees them on their way can repeat
//! them, and must not be able to end a connection by that.

use crate::WireError;
use crate::part::{NoToken, Part};
use crate::streams::Streams;
use godwit_base::{RefillingBudget, Time};
use godwit_wire::frame::Ack;
use godwit_wire::{Frame, TransportErrorCode};

/// Bytes of streams that earn as much as a frame costs.
const BYTES_EACH: u64 = 128;
/// Work pays later for so many times what may come at once without it.
const SAVED: u32 = 8;
/// The part of the budget that each second brings back.
const REFILL: u64 = 32;
/// Ranges of an acknowledgement that says nothing new that cost as much as a frame.
const RANGES_EACH: u32 = 16;
/// So many are charged together: until there are, and with most peers there never are, a connection has no budget to keep.
const PARCEL: u32 = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Anomalies {
    /// None until something is charged.
    account: Option<Box<Account>>,
    /// So many may come at once; `u32::MAX` is no limit.
    most: u32,
    /// What of the peer's data has been rewarded, as far as 32 bits tell.
    rewarded: u32,
    /// Packets that were acknowledged, and that has not been rewarded yet.
    acked: u32,
    /// What has not been charged yet.
    seen: u32,
}

/// What a peer has done that serves something, in the connection's life.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// Bytes of streams that came for the first time, and not what a gap or a final size stands for. It may begin anew after
    /// 4 GiB: whoever has sent so much is given what can be saved.
    pub(super) bytes: u64,
    /// Datagrams that came.
    pub(super) datagrams: u64,
    /// Streams that we have opened, as it permitted: some peers raise their limit by one for each that is over.
    pub(super) streams: u64,
}

/// What a peer has left.
#[derive(Debug)]
struct Account {
    /// For what work does not pay for.
    budget: RefillingBudget,
    /// Frames that work pays for.
    earned: u64,
}

impl Anomalies {
    /// So many may come at once.
    pub(super) fn new(most: u64) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        Anomalies { account: None, most, rewarded: 0, acked: 0, seen: 0 }
    }

    /// A frame that may serve something, but mostly does not when it comes in masses. Streams judge those about windows
    /// and data themselves.
    pub(super) const fn on_frame(&mut self, frame: &Frame<'_>) {
        let cost = match frame {
            Frame::Padding(_)
            | Frame::Ack(_)
            // It goes with that, and is as little work as padding.
            | Frame::Timestamp { .. }
            | Frame::Stream { .. }
            | Frame::MaxData { .. }
            | Frame::MaxStreamData { .. }
            | Frame::ConnectionClose { .. }
            | Frame::ApplicationClose { .. } => 0,
            // Each pays for one: an empty one costs that as well.
            Frame::Datagram { data: [] } => 2,
            Frame::Datagram { .. } => 0,
            _ => 1,
        };
        self.see(cost);
    }

    /// An acknowledgement, which told of so many packets for the first time, and how many of them asked for it: those that
    /// only acknowledge are answers to what is charged here, and pay for nothing.
    pub(super) fn on_ack(&mut self, ack: &Ack<'_>, newly_acked: u32, ack_eliciting: u32) {
        if newly_acked == 0 {
            let ranges = u32::try_from(ack.ranges.iter().count()).unwrap_or(u32::MAX);
            self.see((ranges / RANGES_EACH).saturating_add(1));
        } else {
            self.acked = self.acked.saturating_add(ack_eliciting);
        }
    }

    /// So many frames served nothing.
    pub(super) const fn see(&mut self, frames: u32) {
        self.seen = self.seen.saturating_add(frames);
    }

    /// True if there is enough to be charged, with what streams have seen.
    #[inline]
    pub(super) const fn are_due(&self, streams: &Streams) -> bool {
        self.seen.saturating_add(streams.useless()) >= PARCEL
    }

    /// Charges for what has been seen.
    pub(super) fn charge(&mut self, now: Time, work: Work) -> Result<(), WireError> {
        let seen = u64::from(std::mem::take(&mut self.seen));
        if self.most == u32::MAX {
            return Ok(());
        }
        let most = u64::from(self.most);
        let full =
            || Box::new(Account { budget: RefillingBudget::new(most, most.div_ceil(REFILL)), earned: 0 });
        let account = self.account.get_or_insert_with(full);
        let work = (work.bytes / BYTES_EACH).wrapping_add(work.datagrams).wrapping_add(work.streams) as u32;
        let new_work = u64::from(work.wrapping_sub(self.rewarded));
        self.rewarded = work;
        let earned = account
            .earned
            .saturating_add(new_work)
            .saturating_add(u64::from(std::mem::take(&mut self.acked)));
        let earned = earned.min(most.saturating_mul(u64::from(SAVED)));
        account.earned = earned.saturating_sub(seen);
        account.budget.charge(now, seen.saturating_sub(earned)).map_err(|_| {
            WireError::new(TransportErrorCode::INTERNAL_ERROR, "too many frames that served nothing")
        })
    }
}

impl Part for Anomalies {
    type Token = NoToken;
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_wire::Reader;
    use std::time::Duration;

    #[test]
    fn time_and_work_earn_and_nothing_else_does() {
        let most = 32 * u64::from(PARCEL);
        let mut anomalies = Anomalies::new(most);
        let mut now = Time::from_nanos(1);
        let mut pings = |now, parcels: u32, work| {
            (0..parcels).all(|_| {
                (0..PARCEL).for_each(|_| anomalies.on_frame(&Frame::Ping));
                anomalies.seen >= PARCEL && anomalies.charge(now, work).is_ok()
            })
        };
        let mut work = Work::default();
        assert!(pings(now, 32, work) && !pings(now, 1, work));
        now += Duration::from_secs(2);
        assert!(pings(now, 2, work) && !pings(now, 1, work), "a thirty-second part each second");
        work.bytes = u64::from(PARCEL) * 10 * BYTES_EACH;
        assert!(pings(now, 10, work) && !pings(now, 1, work), "data");
        work.datagrams = u64::from(PARCEL) * 5;
        assert!(pings(now, 5, work) && !pings(now, 1, work), "datagrams");
        work.streams = u64::from(PARCEL) * 7;
        assert!(pings(now, 7, work) && !pings(now, 1, work), "streams");
        assert!(!pings(now, 1, work), "but each once");
        work.bytes += 1000 * most * BYTES_EACH;
        assert!(pings(now, 32 * SAVED, work) && !pings(now, 1, work), "and not for ever");
    }

    #[test]
    fn what_was_acknowledged_before_pays_as_well() {
        let mut anomalies = Anomalies::new(u64::from(PARCEL));
        let Ok(Frame::Ack(ack)) = Frame::decode(&mut Reader::new(&[2, 9, 0, 0, 9])) else { panic!("an ACK") };
        anomalies.on_ack(&ack, 9 * PARCEL, 3 * PARCEL);
        for parcel in 0..5 {
            (0..PARCEL).for_each(|_| anomalies.on_frame(&Frame::Ping));
            assert_eq!(anomalies.charge(Time::from_nanos(1), Work::default()).is_ok(), parcel < 4);
        }
    }

    #[test]
    fn without_a_limit_nothing_is_charged() {
        let mut anomalies = Anomalies::new(u64::MAX);
        anomalies.see(u32::MAX);
        assert!(
            anomalies.charge(Time::from_nanos(1), Work::default()).is_ok() && anomalies.account.is_none()
        );
    }

    #[test]
    fn few_cost_nothing() {
        let mut anomalies = Anomalies::new(0);
        (1..PARCEL).for_each(|_| anomalies.on_frame(&Frame::Ping));
        assert!(anomalies.seen < PARCEL && anomalies.account.is_none());
        anomalies.on_frame(&Frame::Ping);
        assert!(anomalies.seen >= PARCEL && anomalies.charge(Time::from_nanos(1), Work::default()).is_err());
    }
}
