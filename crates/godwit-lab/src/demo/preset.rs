//! The links the demonstration knows, and where their figures come from.

use std::str::FromStr;
use std::time::Duration;

use godwit_link::{DuplexConfig, GilbertElliott, LinkConfig, Loss, Probability, Rate};

/// The queue in front of the link holds at least this much, in bytes.
const SMALLEST_QUEUE: u64 = 64 << 10;

/// A link by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// A phone far from the mast: 350 ms, 3.5 % loss
    Mobile,
    /// A crowded wireless network: 20 ms, 1 % loss in bursts
    Wifi,
    /// A geostationary satellite: 600 ms, 0.5 % loss
    Satellite,
    /// A good line: 30 ms, no loss
    Good,
}

/// A link in figures: the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Conditions {
    /// There and back, with empty queues.
    pub rtt: Duration,
    /// Packets lost in each direction, from 0 to 1.
    pub loss: f64,
    /// How long the link is out at a time, on average; zero loses packets one by one.
    pub burst: Duration,
    /// 10^6 bits per second.
    pub megabits: u64,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 4] = [Preset::Mobile, Preset::Wifi, Preset::Satellite, Preset::Good];

    /// Its figures.
    #[must_use]
    pub fn conditions(self) -> Conditions {
        let (rtt, loss, burst, megabits) = match self {
            Preset::Mobile => (350, 0.035, 0, 10),
            Preset::Wifi => (20, 0.01, 10, 40),
            Preset::Satellite => (600, 0.005, 0, 20),
            Preset::Good => (30, 0.0, 0, 50),
        };
        let (rtt, burst) = (Duration::from_millis(rtt), Duration::from_millis(burst));
        Conditions { rtt, loss, burst, megabits }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Preset::Mobile => "mobile",
            Preset::Wifi => "wifi",
            Preset::Satellite => "satellite",
            Preset::Good => "good",
        }
    }

    /// Where the figures come from.
    pub(super) fn source(self) -> &'static str {
        match self {
            Preset::Mobile => {
                "the median round trip (350 ms) and the loss on lossy connections (3.5 %) that Uber's engineers \
                 published in 2019 for their users' phones; the rate of 10 Mbit/s is an assumption"
            }
            Preset::Wifi => {
                "an assumption: a wireless network whose neighbours drown it out for 10 ms about once a second"
            }
            Preset::Satellite => {
                "physics: up to a geostationary satellite and down again, there and back, is 477 ms, and equipment \
                 adds the rest; the loss and the rate are assumptions"
            }
            Preset::Good => "an assumption: a wired line to a server in the same country",
        }
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
            let names = Preset::ALL.map(Preset::name).join(", ");
            format!("there is no such link; expected one of {names}")
        })
    }
}

impl Conditions {
    /// Both directions for the link model.
    pub(super) fn link(&self) -> DuplexConfig {
        let rate = Rate::megabits(self.megabits);
        let queue = rate.bytes_in(self.rtt).max(SMALLEST_QUEUE);
        let delay = self.rtt / 2;
        let mut link = LinkConfig::limited(rate, delay, queue);
        link.loss = self.loss();
        link.mtu = Some(crate::namespaces::MTU);
        DuplexConfig::symmetric(link)
    }

    fn loss(&self) -> Loss {
        if self.loss <= 0.0 {
            return Loss::None;
        }
        if self.burst.is_zero() {
            return Loss::Independent(Probability::new(self.loss));
        }
        let good = self.burst.mul_f64((1.0 - self.loss) / self.loss);
        Loss::Bursts(GilbertElliott::on_off(good, self.burst))
    }

    /// `350 ms there and back, 3.5 % loss each way, 10 Mbit/s`.
    pub(super) fn in_words(&self) -> String {
        let loss = match (self.loss > 0.0, self.burst.is_zero()) {
            (false, _) => "no loss".to_owned(),
            (true, true) => format!("{} % loss each way", trimmed(self.loss * 100.0)),
            (true, false) => {
                let burst = trimmed(self.burst.as_secs_f64() * 1e3);
                format!("{} % loss each way in bursts of about {burst} ms", trimmed(self.loss * 100.0))
            }
        };
        let rtt = trimmed(self.rtt.as_secs_f64() * 1e3);
        format!("{rtt} ms there and back, {loss}, {} Mbit/s", self.megabits)
    }
}

/// At most three decimals, none that are zero.
pub(super) fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lose_what_they_say() {
        for preset in Preset::ALL {
            assert_eq!(preset.name().parse(), Ok(preset));
            let conditions = preset.conditions();
            let share = match conditions.loss() {
                Loss::None => 0.0,
                Loss::Independent(probability) => probability.as_f64(),
                Loss::Bursts(bursts) => bursts.average_loss(),
                other => panic!("no preset has {other:?}"),
            };
            assert!((share - conditions.loss).abs() < 1e-6, "{preset:?}: {share}");
            assert_eq!(conditions.link().up.delay * 2, conditions.rtt);
        }
    }

    #[test]
    fn conditions_read_well() {
        let words = |preset: Preset| preset.conditions().in_words();
        assert_eq!(words(Preset::Mobile), "350 ms there and back, 3.5 % loss each way, 10 Mbit/s");
        assert_eq!(words(Preset::Good), "30 ms there and back, no loss, 50 Mbit/s");
        assert!(words(Preset::Wifi).contains("1 % loss each way in bursts of about 10 ms"));
    }
}
