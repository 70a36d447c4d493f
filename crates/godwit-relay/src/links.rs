//! Which link a packet crosses: one for all ([`OneLink`]), one for each visit of a client ([`VisitLinks`]), or one that was
//! laid for its flow ([`FlowLinks`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use godwit_base::{Ecn, Rng, SeededRng, Time};
use godwit_link::{Counters, Delivery, DropReason, Duplex, DuplexConfig, IpVersion, Outcome};

use crate::lane::Way;

/// Headers of IPv4 and UDP, which the link model adds to what it is told.
const UDP_HEADERS: usize = 28;
/// Links with chances of their own begin at a point of the link's time below this, so that not every one is good at its
/// beginning.
const SPAN: Duration = Duration::from_secs(600);
/// Links of visits kept at most; those of the lowest ports make room.
const MOST_VISITS: usize = 20_000;

/// Packets that belong together: those of a transport protocol from and to a client's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// The IP protocol: [`Flow::TCP`] or [`Flow::UDP`].
    pub protocol: u8,
    /// The client's port.
    pub client_port: u16,
}

impl Flow {
    /// The number of TCP.
    pub const TCP: u8 = 6;
    /// The number of UDP.
    pub const UDP: u8 = 17;
}

/// What a link is told of an IP packet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Packet {
    /// Where it goes.
    pub way: Way,
    /// The flow that it belongs to, if it is a packet of TCP or UDP.
    pub flow: Option<Flow>,
    /// Its length, headers included.
    pub bytes: usize,
    /// Its mark.
    pub ecn: Ecn,
}

impl Packet {
    /// A packet without a mark.
    #[must_use]
    pub fn new(way: Way, flow: Option<Flow>, bytes: usize) -> Packet {
        Packet { way, flow, bytes, ecn: Ecn::NotEct }
    }
}

/// Knows the links.
pub trait Links: Send + 'static {
    /// What becomes of a packet that is sent now, in the relay's time.
    fn send(&mut self, packet: Packet, now: Time) -> Outcome;
}

/// One link, which everything crosses.
#[derive(Debug)]
pub struct OneLink(Duplex);

impl OneLink {
    /// A link of this kind; its chances follow from the seed, and its time is the relay's.
    #[must_use]
    pub fn new(config: DuplexConfig, seed: u64) -> OneLink {
        OneLink(Duplex::new(config, seed))
    }
}

impl Links for OneLink {
    fn send(&mut self, packet: Packet, now: Time) -> Outcome {
        send(&mut self.0, packet, now)
    }
}

fn send(duplex: &mut Duplex, packet: Packet, now: Time) -> Outcome {
    let link = match packet.way {
        Way::Up => &mut duplex.up,
        Way::Down => &mut duplex.down,
    };
    link.send_marked(now, packet.bytes.saturating_sub(UDP_HEADERS), IpVersion::V4, packet.ecn)
}

/// A link whose time begins with its first packet, at a point that is drawn.
#[derive(Debug)]
struct FreshLink {
    duplex: Duplex,
    first: Option<Time>,
    start: Time,
}

impl FreshLink {
    fn new(config: DuplexConfig, mut rng: SeededRng) -> FreshLink {
        let start = Duration::from_nanos(rng.below(SPAN.as_nanos() as u64));
        FreshLink { duplex: Duplex::new(config, rng.next_u64()), first: None, start: Time::ZERO + start }
    }

    fn send(&mut self, packet: Packet, now: Time) -> Outcome {
        let first = *self.first.get_or_insert(now);
        let start = self.start;
        let in_time = |mut delivery: Delivery| {
            delivery.at = first + delivery.at.saturating_since(start);
            delivery
        };
        match send(&mut self.duplex, packet, start + now.saturating_since(first)) {
            Outcome::Delivered { first, copy } => {
                Outcome::Delivered { first: in_time(first), copy: copy.map(in_time) }
            }
            dropped => dropped,
        }
    }
}

/// A link for each visit: a flow of TCP or UDP. A visit over HTTP/2 and the same visit over HTTP/3 come from the same
/// client port, from which the random choices of their links follow: both meet the same losses and delays. What belongs
/// to no flow is dropped.
#[derive(Debug)]
pub struct VisitLinks {
    config: DuplexConfig,
    seed: u64,
    visits: BTreeMap<Flow, FreshLink>,
}

impl VisitLinks {
    /// Links of this kind; their chances follow from the seed.
    #[must_use]
    pub fn new(config: DuplexConfig, seed: u64) -> VisitLinks {
        VisitLinks { config, seed, visits: BTreeMap::new() }
    }
}

impl Links for VisitLinks {
    fn send(&mut self, packet: Packet, now: Time) -> Outcome {
        let Some(flow) = packet.flow else { return Outcome::Dropped(DropReason::Loss) };
        if !self.visits.contains_key(&flow) && self.visits.len() >= MOST_VISITS {
            self.visits.pop_first();
        }
        let fresh = || {
            let rng = SeededRng::new(self.seed ^ (u64::from(flow.client_port) << 32));
            FreshLink::new(self.config.clone(), rng)
        };
        self.visits.entry(flow).or_insert_with(fresh).send(packet, now)
    }
}

/// Links that are laid for flows one by one, while the relay runs: a handle on what all handles share. What belongs to no
/// flow that a link was laid for is dropped.
#[derive(Clone, Debug, Default)]
pub struct FlowLinks(Arc<Mutex<BTreeMap<Flow, FreshLink>>>);

impl FlowLinks {
    fn links(&self) -> MutexGuard<'_, BTreeMap<Flow, FreshLink>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays a link, in place of the one that the flow had before. Its chances follow from the seed.
    pub fn lay(&self, flow: Flow, config: DuplexConfig, seed: u64) {
        self.links().insert(flow, FreshLink::new(config, SeededRng::new(seed)));
    }

    /// What a flow's link has done so far: up, and down.
    pub fn counters(&self, flow: Flow) -> Option<[Counters; 2]> {
        let links = self.links();
        let link = links.get(&flow)?;
        Some([*link.duplex.up.counters(), *link.duplex.down.counters()])
    }

    /// Takes a flow's link away.
    pub fn take(&self, flow: Flow) {
        self.links().remove(&flow);
    }
}

impl Links for FlowLinks {
    fn send(&mut self, packet: Packet, now: Time) -> Outcome {
        let lost = Outcome::Dropped(DropReason::Loss);
        let Some(flow) = packet.flow else { return lost };
        self.links().get_mut(&flow).map_or(lost, |link| link.send(packet, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_link::{GilbertElliott, LinkConfig, Loss, Rate};

    fn flow(client_port: u16) -> Flow {
        Flow { protocol: Flow::UDP, client_port }
    }

    /// The delay of a packet on the way down.
    fn delay(links: &mut impl Links, port: u16, now: Time) -> Option<Duration> {
        let packet = Packet::new(Way::Down, Some(flow(port)), 1500);
        let first = links.send(packet, now).deliveries().next();
        first.map(|delivery| delivery.at.saturating_since(now))
    }

    #[test]
    fn visits_of_one_port_meet_the_same_losses() {
        let bursts = GilbertElliott::on_off(Duration::from_millis(990), Duration::from_millis(10));
        let mut link = LinkConfig::limited(Rate::megabits(40), Duration::from_millis(10), 1 << 17);
        link.loss = Loss::Bursts(bursts);
        let fate = |port, began: u64| {
            let mut links = VisitLinks::new(DuplexConfig::symmetric(link.clone()), 7);
            (0..5_000_u64)
                .map(|step| delay(&mut links, port, Time::from_nanos(began + step * 1_000_000)))
                .collect::<Vec<_>>()
        };
        let fates = fate(10_000, 0);
        assert_eq!(fates, fate(10_000, 5_000_000_000));
        assert_ne!(fates, fate(10_001, 0));
        let lost = fates.iter().filter(|fate| fate.is_none()).count() as f64 / fates.len() as f64;
        assert!((0.003..0.03).contains(&lost), "{lost}");
    }

    #[test]
    fn a_flow_has_the_link_that_was_laid_for_it() {
        let mut links = FlowLinks::default();
        let of = |millis| DuplexConfig::symmetric(LinkConfig::delayed(Duration::from_millis(millis)));
        links.lay(flow(1), of(10), 1);
        links.lay(flow(2), of(20), 1);
        let mut told = |port| delay(&mut links, port, Time::ZERO).map(|delay| delay.as_millis());
        assert_eq!([told(1), told(2), told(3)], [Some(10), Some(20), None]);
        assert_eq!(links.counters(flow(2)).unwrap().map(|way| way.sent_packets), [0, 1]);
        links.take(flow(2));
        assert!(links.counters(flow(2)).is_none() && delay(&mut links, 2, Time::ZERO).is_none());
    }

    #[test]
    fn one_link_is_for_all() {
        let link = LinkConfig::limited(Rate::bits_per_second(8_000_000), Duration::ZERO, 1 << 20);
        let mut links = OneLink::new(DuplexConfig::symmetric(link), 1);
        // 1538 bytes on the wire, a byte in a microsecond.
        assert_eq!(delay(&mut links, 1, Time::ZERO), Some(Duration::from_micros(1538)));
        assert_eq!(delay(&mut links, 2, Time::ZERO), Some(Duration::from_micros(2 * 1538)));
    }
}
