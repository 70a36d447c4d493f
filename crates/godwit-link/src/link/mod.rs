//! The link itself: the stages in their order, and what each has done.

use crate::Corruption;
use crate::aggregation::Bursts;
use crate::bottleneck::{Bottleneck, Refused};
use crate::config::{DuplexConfig, EcnHandling, IpVersion, Jitter, LinkConfig, Outage};
use crate::loss::LossProcess;
use crate::nat::Nat;
use crate::policer::Bucket;
use crate::probability::uniform;
use godwit_base::{Ecn, Rng, SeededRng, Time};
use std::time::Duration;

#[cfg(test)]
mod stage_tests;
#[cfg(test)]
mod tests;

/// Why a packet does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// It was lost at random.
    Loss,
    /// The queue was full.
    Queue,
    /// The queue's management ([`crate::Aqm`]) dropped it.
    Aqm,
    /// It exceeded what the policer lets pass.
    Policer,
    /// It left the queue while the link was down.
    Outage,
    /// It was larger than the link's MTU.
    TooLarge,
    /// It had an ECN codepoint, which this link does not let pass.
    Ecn,
}

/// How a packet arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// When.
    pub at: Time,
    /// True if every delivery of this kind promised before arrives no later: such deliveries can wait in a
    /// plain queue. The others have overtaken something or will be overtaken.
    pub in_order: bool,
    /// Whether the link marks it with ECN's "congestion experienced" (if it is ECN-capable).
    pub marked: bool,
    /// The ECN codepoint with which it arrives, if it was handed over with [`Link::send_marked`].
    pub ecn: Ecn,
    /// The damage to do to it.
    pub corruption: Option<Corruption>,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It arrives, perhaps twice.
    Delivered {
        /// The packet.
        first: Delivery,
        /// Its copy, which arrives no earlier.
        copy: Option<Delivery>,
    },
    /// It does not arrive.
    Dropped(DropReason),
}

impl Outcome {
    /// The deliveries: none, one or two.
    #[inline]
    pub fn deliveries(self) -> impl Iterator<Item = Delivery> {
        let (first, copy) = match self {
            Outcome::Delivered { first, copy } => (Some(first), copy),
            Outcome::Dropped(_) => (None, None),
        };
        first.into_iter().chain(copy)
    }
}

/// What a link has done so far. Bytes are UDP payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Packets handed to the link.
    pub sent_packets: u64,
    /// Bytes handed to the link.
    pub sent_bytes: u64,
    /// Packets that arrive, copies included.
    pub delivered_packets: u64,
    /// Bytes that arrive, copies included.
    pub delivered_bytes: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// Packets dropped by the queue's management.
    pub aqm_drops: u64,
    /// Packets dropped by the policer.
    pub policer_drops: u64,
    /// Packets lost in an outage.
    pub outage_drops: u64,
    /// Packets larger than the MTU.
    pub mtu_drops: u64,
    /// Packets dropped for their ECN codepoint.
    pub ecn_drops: u64,
    /// Packets held back.
    pub reordered: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Deliveries damaged.
    pub corrupted: u64,
    /// Packets marked with "congestion experienced".
    pub marked: u64,
    /// The most packets that were in the queue at once.
    pub max_queue_packets: u64,
    /// The most bytes on the wire's account that were in the queue at once.
    pub max_queue_bytes: u64,
    /// Packets that the queue took in.
    pub queued_packets: u64,
    /// How long all of these together waited before they were sent.
    pub queue_delay: Duration,
    /// Those of them that a queue of its own for low latency took in ([`crate::DualPi2`]).
    pub low_latency_packets: u64,
    /// How long these together waited.
    pub low_latency_delay: Duration,
}

impl Counters {
    /// Packets that did not arrive, for whatever reason.
    pub fn drops(&self) -> u64 {
        let on_purpose = self.queue_drops + self.aqm_drops + self.policer_drops;
        self.lost + on_purpose + self.outage_drops + self.mtu_drops + self.ecn_drops
    }

    /// How long a packet waited in the queue, on average.
    pub fn mean_queue_delay(&self) -> Duration {
        mean(self.queue_delay, self.queued_packets)
    }

    /// The same of packets in the low-latency queue, and of the others.
    pub fn mean_delays_by_queue(&self) -> (Duration, Duration) {
        let classic = self.queue_delay.saturating_sub(self.low_latency_delay);
        (
            mean(self.low_latency_delay, self.low_latency_packets),
            mean(classic, self.queued_packets - self.low_latency_packets),
        )
    }
}

fn mean(sum: Duration, packets: u64) -> Duration {
    let nanos = sum.as_nanos() / u128::from(packets.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// What arrives of a packet: itself, and perhaps its copy.
type Passed = (Delivery, Option<Delivery>);

/// One direction of a link. Packets must be handed to it in order of time.
#[derive(Debug, Clone)]
pub struct Link {
    config: LinkConfig,
    loss: LossProcess,
    policer: Option<Bucket>,
    bottleneck: Bottleneck,
    bursts: Option<Bursts>,
    jitter_rng: SeededRng,
    reorder_rng: SeededRng,
    duplicate_rng: SeededRng,
    corrupt_rng: SeededRng,
    /// The first outage that may not be over.
    next_outage: usize,
    /// When the latest of the packets delivered in order arrives.
    last_arrival: Time,
    counters: Counters,
}

impl Link {
    /// A link as described, whose chances all follow from `rng`.
    pub fn new(mut config: LinkConfig, mut rng: SeededRng) -> Self {
        config.outages.sort_by_key(|outage| outage.from);
        // The next one last.
        config.delay_steps.sort_by_key(|(from, _)| std::cmp::Reverse(*from));
        let mut split = || SeededRng::new(rng.next_u64());
        let loss = LossProcess::new(config.loss, split());
        let [jitter_rng, reorder_rng, duplicate_rng, corrupt_rng] = [(); 4].map(|()| split());
        Link {
            loss,
            policer: config.policer.map(Bucket::new),
            bottleneck: Bottleneck::new(&config, split()),
            bursts: config.aggregation.map(|aggregation| Bursts::new(aggregation, split())),
            jitter_rng,
            reorder_rng,
            duplicate_rng,
            corrupt_rng,
            next_outage: 0,
            last_arrival: Time::ZERO,
            counters: Counters::default(),
            config,
        }
    }

    /// What becomes of a UDP payload of `len` bytes that is sent now, without an ECN codepoint.
    pub fn send(&mut self, now: Time, len: usize, ip: IpVersion) -> Outcome {
        self.send_marked(now, len, ip, Ecn::NotEct)
    }

    /// What becomes of a UDP payload of `len` bytes that is sent now with this ECN codepoint.
    pub fn send_marked(&mut self, now: Time, len: usize, ip: IpVersion, ecn: Ecn) -> Outcome {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += len as u64;
        match self.pass(now, len, ip, ecn) {
            Ok((first, copy)) => {
                let times = 1 + u64::from(copy.is_some());
                self.counters.delivered_packets += times;
                self.counters.delivered_bytes += times * len as u64;
                Outcome::Delivered { first, copy }
            }
            Err(reason) => {
                *match reason {
                    DropReason::Loss => &mut self.counters.lost,
                    DropReason::Queue => &mut self.counters.queue_drops,
                    DropReason::Aqm => &mut self.counters.aqm_drops,
                    DropReason::Policer => &mut self.counters.policer_drops,
                    DropReason::Outage => &mut self.counters.outage_drops,
                    DropReason::TooLarge => &mut self.counters.mtu_drops,
                    DropReason::Ecn => &mut self.counters.ecn_drops,
                } += 1;
                Outcome::Dropped(reason)
            }
        }
    }

    /// The packet, and its copy if there is one.
    fn pass(&mut self, now: Time, len: usize, ip: IpVersion, ecn: Ecn) -> Result<Passed, DropReason> {
        let ecn = handled(ecn, self.config.ecn).ok_or(DropReason::Ecn)?;
        if self.loss.loses(now) {
            return Err(DropReason::Loss);
        }
        let bytes = ip.wire_len(len) as u64;
        if self.policer.as_mut().is_some_and(|policer| !policer.admits(now, bytes)) {
            return Err(DropReason::Policer);
        }
        let passage = self.bottleneck.enter(now, bytes, ecn).map_err(|refused| match refused {
            Refused::Full => DropReason::Queue,
            Refused::Managed => DropReason::Aqm,
        })?;
        self.note_queue(passage.begins.saturating_since(now), passage.low_latency);
        if self.is_down(passage.departs) {
            return Err(DropReason::Outage);
        }
        let (at, in_order) = self.arrival(passage.departs);
        self.counters.marked += u64::from(passage.marked);
        let mut first = Delivery { at, in_order, marked: passage.marked, ecn, corruption: None };
        if passage.marked && ecn != Ecn::NotEct {
            first.ecn = Ecn::Ce;
        }
        let copy = self.duplicate(first);
        first.corruption = self.corrupt();
        let copy = copy.map(|copy| Delivery { corruption: self.corrupt(), ..copy });
        if self.config.mtu.is_some_and(|mtu| ip.ip_len(len) > mtu) {
            return Err(DropReason::TooLarge);
        }
        self.counters.reordered += u64::from(!first.in_order);
        self.on_delivery(&first);
        if let Some(copy) = &copy {
            self.counters.duplicated += 1;
            self.on_delivery(copy);
        }
        Ok((first, copy))
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.counters.corrupted += u64::from(delivery.corruption.is_some());
        if delivery.in_order {
            self.last_arrival = delivery.at;
        }
    }

    /// Delay, jitter and reordering.
    fn arrival(&mut self, departs: Time) -> (Time, bool) {
        while let Some((_, delay)) = self.config.delay_steps.pop_if(|(from, _)| *from <= departs) {
            self.config.delay = delay;
        }
        let departs = self.bursts.as_mut().map_or(departs, |bursts| bursts.release(departs));
        let jitter = match self.config.jitter.most() {
            most if most.is_zero() => most,
            most => uniform(&mut self.jitter_rng, most),
        };
        let mut at = departs + self.config.delay + jitter;
        if let Jitter::InOrder(_) = self.config.jitter {
            at = at.max(self.last_arrival);
        }
        if let Some(reorder) = self.config.reorder
            && reorder.probability.draw(&mut self.reorder_rng)
        {
            return (at + reorder.extra, false);
        }
        (at, at >= self.last_arrival)
    }

    fn duplicate(&mut self, first: Delivery) -> Option<Delivery> {
        let duplicate = self.config.duplicate?;
        let twice = duplicate.probability.draw(&mut self.duplicate_rng);
        let in_order = first.in_order && duplicate.after.is_zero();
        twice.then(|| Delivery { at: first.at + duplicate.after, in_order, ..first })
    }

    fn corrupt(&mut self) -> Option<Corruption> {
        let corrupt = self.config.corrupt?;
        let damaged = corrupt.probability.draw(&mut self.corrupt_rng);
        damaged.then(|| Corruption::draw(corrupt.damage, &mut self.corrupt_rng))
    }

    /// Departures never run backwards, so outages that are over are never looked at again.
    fn is_down(&mut self, at: Time) -> bool {
        while self.config.outages.get(self.next_outage).is_some_and(|outage| outage.until <= at) {
            self.next_outage += 1;
        }
        self.config.outages.get(self.next_outage).is_some_and(|outage| outage.from <= at)
    }

    /// The queue has just taken a packet in, which waits for so long.
    fn note_queue(&mut self, delay: Duration, low_latency: bool) {
        self.counters.queued_packets += 1;
        self.counters.queue_delay += delay;
        if low_latency {
            self.counters.low_latency_packets += 1;
            self.counters.low_latency_delay += delay;
        }
        let (packets, bytes) = self.bottleneck.occupied();
        self.counters.max_queue_packets = self.counters.max_queue_packets.max(packets as u64);
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(bytes);
    }

    /// What the link has done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets, and bytes on the wire's account, that are in the queue or being sent.
    #[inline]
    pub fn queue(&mut self, now: Time) -> (usize, u64) {
        self.bottleneck.occupancy(now)
    }

    /// How long a packet that is handed over now waits before it is sent.
    pub fn queue_delay(&mut self, now: Time) -> Duration {
        self.bottleneck.delay(now)
    }

    /// What the link is like at present.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Takes the link down for a while, beside the schedule. Times before the present do nothing.
    pub fn add_outage(&mut self, outage: Outage) {
        self.config.outages.push(outage);
        self.config.outages.sort_by_key(|outage| outage.from);
        self.next_outage = 0;
    }

    /// Changes the largest IP packet that passes, from now on.
    pub fn set_mtu(&mut self, mtu: Option<usize>) {
        self.config.mtu = mtu;
    }

    /// Changes what becomes of ECN codepoints from now on.
    pub const fn set_ecn(&mut self, handling: EcnHandling) {
        self.config.ecn = handling;
    }
}

/// The codepoint behind the link's entrance; `None` if the packet is dropped there.
fn handled(ecn: Ecn, handling: EcnHandling) -> Option<Ecn> {
    match (handling, ecn) {
        (EcnHandling::Pass, _) | (_, Ecn::NotEct) => Some(ecn),
        (EcnHandling::Bleach, _) => Some(Ecn::NotEct),
        (EcnHandling::Drop, _) => None,
        (EcnHandling::Remark, Ecn::Ect0) => Some(Ecn::Ect1),
        (EcnHandling::Remark, _) => Some(ecn),
        (EcnHandling::Congest, _) => Some(Ecn::Ce),
    }
}

/// A client's access link: both directions, and the address translation at the client's end.
#[derive(Debug, Clone)]
pub struct Duplex {
    /// From the client to the server.
    pub up: Link,
    /// From the server to the client.
    pub down: Link,
    /// At the client's end: translates what enters `up` and what leaves `down`.
    pub nat: Nat,
}

impl Duplex {
    /// A link as described, whose chances all follow from `seed`.
    pub fn new(config: DuplexConfig, seed: u64) -> Self {
        let mut rng = SeededRng::new(seed);
        Duplex {
            up: Link::new(config.up, SeededRng::new(rng.next_u64())),
            down: Link::new(config.down, SeededRng::new(rng.next_u64())),
            nat: Nat::new(config.nat),
        }
    }
}
