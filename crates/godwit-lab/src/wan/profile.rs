//! Networks for small requests.

use std::str::FromStr;
use std::time::Duration;

use godwit_link::{DuplexConfig, GilbertElliott, Jitter, LinkConfig, Loss, Probability, QueueLimit, Rate};

/// A network between somebody who asks and a server.
///
/// | name | round trip | rate down / up | lost, each way | jitter |
/// |---|---|---|---|---|
/// | `uber-a` | 350 ms | 20 Mbit/s | 3.5 % at random | none |
/// | `uber-b` | 425 ms | 20 Mbit/s | 7 % in bursts of 60 ms | none |
/// | `uber-c` | 725 ms | 20 Mbit/s | 7 % in bursts of 60 ms | none |
/// | `uber-d` | 2300 ms | 20 Mbit/s | 7 % at random | none |
/// | `lte` | 60 ms | 20 / 8 Mbit/s | 0.5 % in bursts of 40 ms | to 20 ms |
/// | `umts` | 150 ms | 2 / 0.4 Mbit/s | 1 % in bursts of 100 ms | to 40 ms |
/// | `wifi` | 30 ms | 30 Mbit/s | 1.5 % in bursts of 20 ms | to 10 ms |
/// | `satellite` | 600 ms | 50 / 5 Mbit/s | 1 % at random | to 20 ms |
/// | `owa` | 120 ms | 10 / 2 Mbit/s | 2 % at random | to 30 ms |
///
/// The first four have round-trip times and losses as Uber reported them of its riders' and drivers' networks; of jitter
/// and rate it said nothing, so that they show nothing but loss. The others are what such links are like on a bad day;
/// `owa` is a hotel's or train's wireless network that shares a far access point. Bursts last so long on average and
/// come by time ([`GilbertElliott`]), whether or not anything is sent. Jitter keeps the order.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// The round-trip time without a queue and without jitter.
    pub rtt: Duration,
    /// What the link carries to the client.
    pub down: Rate,
    /// What it carries to the server.
    pub up: Rate,
    /// What is lost each way, in percent.
    pub loss: f64,
    /// How long bursts of loss last on average; zero is none: each packet is lost by itself.
    pub burst: Duration,
    /// The most that is added to the delay, each way.
    pub jitter: Duration,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 9] = [
        Profile::new("uber-a", 350, (20_000, 20_000), (3.5, 0), 0),
        Profile::new("uber-b", 425, (20_000, 20_000), (7.0, 60), 0),
        Profile::new("uber-c", 725, (20_000, 20_000), (7.0, 60), 0),
        Profile::new("uber-d", 2300, (20_000, 20_000), (7.0, 0), 0),
        Profile::new("lte", 60, (20_000, 8_000), (0.5, 40), 20),
        Profile::new("umts", 150, (2_000, 400), (1.0, 100), 40),
        Profile::new("wifi", 30, (30_000, 30_000), (1.5, 20), 10),
        Profile::new("satellite", 600, (50_000, 5_000), (1.0, 0), 20),
        Profile::new("owa", 120, (10_000, 2_000), (2.0, 0), 30),
    ];

    /// Times are in milliseconds, rates in kilobits per second, down and up.
    const fn new(name: &'static str, rtt: u64, rates: (u64, u64), loss: (f64, u64), jitter: u64) -> Self {
        Profile {
            name,
            rtt: Duration::from_millis(rtt),
            down: Rate::bits_per_second(rates.0 * 1000),
            up: Rate::bits_per_second(rates.1 * 1000),
            loss: loss.0,
            burst: Duration::from_millis(loss.1),
            jitter: Duration::from_millis(jitter),
        }
    }

    /// The same network, but nothing is lost.
    #[must_use]
    pub fn without_loss(self) -> Self {
        Profile { loss: 0.0, ..self }
    }

    /// The link between client and server.
    pub fn link(&self) -> DuplexConfig {
        let mut link = LinkConfig::delayed(self.rtt / 2);
        // So much that nothing here is about queues.
        link.queue = QueueLimit::Packets(1000);
        if self.loss > 0.0 && self.burst.is_zero() {
            link.loss = Loss::Independent(Probability::percent(self.loss));
        } else if self.loss > 0.0 {
            link.loss = Loss::Bursts(bursts(self.loss, self.burst));
        }
        if !self.jitter.is_zero() {
            link.jitter = Jitter::InOrder(self.jitter);
        }
        let mut duplex = DuplexConfig::symmetric(link);
        (duplex.down.rate, duplex.up.rate) = (Some(self.down), Some(self.up));
        duplex
    }
}

/// Bursts of this mean length that lose so much in the long run.
fn bursts(percent: f64, burst: Duration) -> GilbertElliott {
    GilbertElliott::on_off(burst.mul_f64((100.0 - percent) / percent), burst)
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Profile::ALL.into_iter().find(|profile| profile.name == name).ok_or_else(|| {
            let names = Profile::ALL.map(|profile| profile.name);
            format!("there is no such profile; expected one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_lose_as_much_as_they_should() {
        let Loss::Bursts(model) = "uber-c".parse::<Profile>().unwrap().link().up.loss else { panic!() };
        assert!((model.average_loss() - 0.07).abs() < 1e-6, "{}", model.average_loss());
        assert_eq!(model.mean_bad, Duration::from_millis(60));
    }

    #[test]
    fn names_are_found_and_others_refused() {
        for profile in Profile::ALL {
            assert_eq!(profile.name.parse(), Ok(profile));
        }
        assert!("uber".parse::<Profile>().unwrap_err().contains("uber-a"));
    }
}
