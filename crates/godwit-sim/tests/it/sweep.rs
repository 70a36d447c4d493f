//! Scenarios drawn at random: any link that is not hopeless carries any plan, and nothing hangs.

use crate::network::run_rebound;
use crate::{judge_all, ms, outage, seeds, verify};
use godwit_base::{Rng, SeededRng};
use godwit_link::{
    Corrupt, Damage, Duplicate, EcnHandling, GilbertElliott, Jitter, LinkConfig, Loss, Probability,
    QueueLimit, Rate, Reorder, Translation,
};
use godwit_sim::apps::Policy;
use godwit_sim::{Exchange, Scenario};
use godwit_transport::TransportConfig;
use godwit_wire::version;
use std::time::Duration;

struct Dice(SeededRng);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A percentage of at most `most`.
    fn percent(&mut self, most: u64) -> Probability {
        Probability::percent(self.below(most * 100) as f64 / 100.0)
    }

    /// A number of any size up to `most`, small ones as likely as large ones.
    fn any_size(&mut self, most: u64) -> u64 {
        let bits = 64 - most.leading_zeros() as u64;
        let mask = (1 << self.below(bits + 1)) - 1;
        (self.0.next_u64() & mask).min(most)
    }

    fn link(&mut self) -> LinkConfig {
        let delay = ms(1 + self.any_size(150));
        let rate = self.one_in(2).then(|| Rate::bits_per_second(1_000_000 + self.any_size(200_000_000)));
        let loss = match self.below(4) {
            0 => Loss::Independent(self.percent(8)),
            1 => Loss::Bursts(GilbertElliott::on_off(ms(500 + self.below(2_000)), ms(1 + self.below(80)))),
            _ => Loss::None,
        };
        let jitter = match self.below(4) {
            0 => Jitter::InOrder(ms(self.any_size(40))),
            1 => Jitter::Unordered(ms(self.any_size(20))),
            _ => Jitter::None,
        };
        let extra = ms(self.any_size(60));
        let reorder = self.one_in(3).then(|| Reorder { probability: self.percent(10), extra });
        let duplicate = self.one_in(3).then(|| Duplicate { probability: self.percent(10), after: extra });
        let damage = if self.one_in(2) { Damage::Bits(4) } else { Damage::Bytes(30) };
        let corrupt = self.one_in(3).then(|| Corrupt { probability: self.percent(5), damage });
        let mtu = self.one_in(3).then(|| 1_280 + self.below(300) as usize);
        let queue = match self.below(3) {
            0 => QueueLimit::Packets(15 + self.any_size(1_000) as usize),
            1 => QueueLimit::Bytes(20_000 + self.any_size(2_000_000)),
            _ => QueueLimit::Unlimited,
        };
        let dark = ms(self.below(3_000));
        let outages =
            if self.one_in(6) { vec![outage(dark, dark + ms(self.any_size(1_500)))] } else { vec![] };
        let mut link = LinkConfig::default();
        link.loss = loss;
        link.queue = queue;
        link.rate = rate;
        link.delay = delay;
        link.jitter = jitter;
        link.reorder = reorder;
        link.duplicate = duplicate;
        link.corrupt = corrupt;
        link.mtu = mtu;
        link.outages = outages;
        link
    }

    fn ecn(&mut self, link: &mut LinkConfig) {
        link.ecn = match self.below(8) {
            0 => EcnHandling::Bleach,
            1 => EcnHandling::Drop,
            2 => EcnHandling::Remark,
            3 => EcnHandling::Congest,
            _ => EcnHandling::Pass,
        };
        if self.one_in(2) {
            link.mark_above = QueueLimit::Packets(1 + self.any_size(100) as usize);
        }
    }

    fn rebindings(&mut self) -> Vec<(Duration, Translation)> {
        let count = if self.one_in(4) { self.below(4) } else { 0 };
        let mut changes: Vec<_> = (0..count)
            .map(|_| {
                let change = if self.one_in(2) { Translation::Port } else { Translation::Address };
                (ms(self.below(3_000)), change)
            })
            .collect();
        changes.sort_by_key(|(after, _)| *after);
        changes
    }

    fn exchange(&mut self) -> Exchange {
        let (up, down) = (self.any_size(300_000), self.any_size(300_000));
        match self.below(5) {
            0 => Exchange::upload(up),
            1 => Exchange::download(down),
            2 => Exchange::one_way(up),
            3 => Exchange::request(up, down),
            _ => Exchange::two_way(up, down),
        }
    }

    fn transport(&mut self, transport: &mut TransportConfig) {
        transport.handshake_timeout = Duration::from_secs(120);
        transport.max_idle_timeout = Duration::from_secs(90);
        transport.max_bidi_streams = 1 + self.any_size(200);
        transport.max_uni_streams = 1 + self.any_size(200);
        transport.initial_stream_window = 1 + self.any_size(100_000);
        transport.initial_connection_window = 1 + self.any_size(1_000_000);
        transport.max_stream_window = transport.initial_stream_window + 20_000 + self.any_size(1 << 20);
        transport.max_connection_window =
            transport.initial_connection_window + 40_000 + self.any_size(1 << 20);
        if self.one_in(3) {
            transport.key_update_after = Some(2 + self.any_size(300));
        }
        if self.one_in(3) {
            transport.max_mtu = 1_200 + self.below(600) as u16;
        }
    }
}

pub(crate) fn scenario(seed: u64) -> (Scenario, Vec<(Duration, Translation)>) {
    let mut dice = Dice(SeededRng::new(seed ^ 0x5eed));
    let mut scenario = Scenario::new(seed);
    (scenario.link.up, scenario.link.down) = (dice.link(), dice.link());
    let changes = dice.rebindings();
    scenario.plan = (0..1 + dice.any_size(40)).map(|_| dice.exchange()).collect();
    scenario.concurrency = 1 + dice.any_size(20) as usize;
    dice.transport(&mut scenario.client);
    dice.transport(&mut scenario.server);
    if !changes.is_empty() {
        // A client that only listens never learns that it is heard of no more: it must speak by itself.
        scenario.client.keep_alive = Some(Duration::from_secs(2));
    }
    scenario.version = if dice.one_in(3) { version::V2 } else { version::V1 };
    scenario.policy = if dice.one_in(3) { Policy::Retry } else { Policy::Accept };
    scenario.ipv6 = dice.one_in(3);
    scenario.limit = Duration::from_secs(3_600);
    dice.ecn(&mut scenario.link.up);
    dice.ecn(&mut scenario.link.down);
    (scenario, changes)
}

#[test]
fn whatever_the_link_and_the_plan() {
    let only = std::env::var("GODWIT_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    judge_all(only.map_or(seeds(60, 5_000), |seed| seed..seed + 1), |seed| {
        let (scenario, changes) = scenario(seed);
        verify(&scenario, &run_rebound(&scenario, &changes))
    });
}
