//! One direction of a link, for packets that really go somewhere.

use godwit_base::Time;
use godwit_link::{Corruption, DropReason, IpVersion, Link, Outcome};

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// What a lane does beside the model of the link: exceptions to its losses.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LaneSettings {
    /// Numbers of the packets that are lost whatever the model says, from 1.
    pub lost: Vec<u64>,
    /// So many packets in a row are lost or damaged at most; without a figure, as many as it happens.
    pub most_in_a_row: Option<u32>,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// What happens to it on the way.
    pub corruption: Option<Corruption>,
}

/// One direction.
#[derive(Debug)]
pub struct Lane {
    link: Link,
    settings: LaneSettings,
    count: u64,
    /// Losses, or damages, in a row.
    run: u32,
}

impl Lane {
    /// A lane over this link.
    #[must_use]
    pub fn new(link: Link, settings: LaneSettings) -> Lane {
        Lane { link, settings, count: 0, run: 0 }
    }

    /// What becomes of a datagram of `len` bytes that is sent now, headers of IP and UDP not counted: when it arrives,
    /// if it does. What may not be damaged arrives as it is.
    pub fn pass(&mut self, now: Time, len: usize, ip: IpVersion, may_be_damaged: bool) -> Option<Arrival> {
        self.count = self.count.saturating_add(1);
        if self.settings.lost.contains(&self.count) {
            return None;
        }
        let spared = self.settings.most_in_a_row.is_some_and(|most| self.run >= most);
        let mut outcome = self.link.send(now, len, ip);
        // After so many in a row the next one passes.
        while spared && matches!(outcome, Outcome::Dropped(DropReason::Loss)) {
            outcome = self.link.send(now, len, ip);
        }
        let Outcome::Delivered { first, .. } = outcome else {
            let lost = matches!(outcome, Outcome::Dropped(DropReason::Loss));
            self.run = self.run.saturating_add(u32::from(lost));
            return None;
        };
        let corruption = first.corruption.filter(|_| !spared && may_be_damaged);
        self.run = if corruption.is_some() { self.run.saturating_add(1) } else { 0 };
        Some(Arrival { at: first.at, corruption })
    }
}

#[cfg(test)]
mod tests {
    use godwit_base::SeededRng;
    use godwit_link::{Corrupt, Damage, LinkConfig, Loss, Probability};

    use super::*;

    fn lane(config: LinkConfig, settings: LaneSettings) -> Lane {
        Lane::new(Link::new(config, SeededRng::new(1)), settings)
    }

    fn fates(lane: &mut Lane, count: u64) -> Vec<bool> {
        (0..count).map(|at| lane.pass(Time::from_nanos(at), 100, IpVersion::V4, true).is_some()).collect()
    }

    #[test]
    fn what_is_listed_is_lost() {
        let settings = LaneSettings { lost: vec![2, 3], ..LaneSettings::default() };
        assert_eq!(fates(&mut lane(LinkConfig::default(), settings), 4), [true, false, false, true]);
    }

    #[test]
    fn after_so_many_losses_one_passes() {
        let mut config = LinkConfig::default();
        config.loss = Loss::Independent(Probability::percent(90.0));
        let settings = LaneSettings { most_in_a_row: Some(3), ..LaneSettings::default() };
        let fates = fates(&mut lane(config, settings), 1000);
        assert!(fates.windows(4).all(|four| four.contains(&true)));
        assert!(fates.windows(3).any(|three| !three.contains(&true)));
    }

    #[test]
    fn what_may_not_be_damaged_is_whole() {
        let corrupt = Corrupt { probability: Probability::percent(100.0), damage: Damage::Bytes(3) };
        let mut config = LinkConfig::default();
        config.corrupt = Some(corrupt);
        let mut lane = lane(config, LaneSettings::default());
        let mut damaged = |may| {
            lane.pass(Time::ZERO, 100, IpVersion::V4, may).is_some_and(|arrival| arrival.corruption.is_some())
        };
        assert!(damaged(true) && !damaged(false) && damaged(true));
    }
}
