//! Datagrams through the model of a link that delays them, without the sockets on either side.

use crate::Cost;
use godwit_base::{SeededRng, Time};
use godwit_link::{IpVersion, Link, LinkConfig, Rate};
use godwit_relay::{Arrival, DelayQueue, Lane, LaneSettings};
use std::time::Duration;

/// Datagrams measured.
const CALLS: usize = 10_000;
/// Time between two, of which some are under way at once then.
const GAP: Duration = Duration::from_micros(150);

pub(super) fn measure() -> Cost {
    let mut config = LinkConfig::default();
    config.rate = Some(Rate::megabits(100));
    config.delay = Duration::from_millis(5);
    let mut relay = Relay {
        lane: Lane::new(Link::new(config, SeededRng::new(1)), LaneSettings::default()),
        due: DelayQueue::new(),
        now: Time::from_nanos(1_000_000_000),
        delivered: 0,
    };
    relay.pass(CALLS);
    Cost::of(CALLS, || measured_relay(&mut relay))
}

struct Relay {
    lane: Lane,
    due: DelayQueue<[u8; 64]>,
    now: Time,
    delivered: usize,
}

#[inline(never)]
fn measured_relay(relay: &mut Relay) {
    relay.pass(CALLS);
}

impl Relay {
    fn pass(&mut self, datagrams: usize) {
        for _ in 0..datagrams {
            self.now += GAP;
            let arrival = self.lane.pass(self.now, 1200, IpVersion::V4, true);
            if let Some(Arrival { at, .. }) = arrival {
                self.due.push(at, [0; 64]);
            }
            while self.due.pop(self.now).is_some() {
                self.delivered += 1;
            }
        }
        assert!(self.delivered + 100 > datagrams, "datagrams were lost");
    }
}
