//! Small requests on connections of their own: how long they take, from the first packet of the handshake to the last byte of
//! the answer.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use godwit_link::{DuplexConfig, LinkConfig};
use godwit_text::instant_now;

use super::contender::{Contender, all, within};
use super::service::{ANSWER, ASK, ASK_ORIGIN};
use super::testbed::Testbed;
use crate::wan::{Latencies, Profile};

/// Bytes of a request's body.
const REQUEST: usize = 500;
/// For how long connections stay when they have been answered, beside four round trips.
const REST: Duration = Duration::from_millis(500);
/// Who waits longer has failed.
const LIMIT: Duration = Duration::from_secs(120);

/// Where the answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Path {
    /// From the server at the end of the link.
    #[default]
    Server,
    /// From an origin that is so far, there and back, behind a long clean link. The server at the end of the lossy one is a
    /// point of presence: it ends the client's connection and keeps one to the origin open.
    Presence(Duration),
    /// From an origin at the end of a link that is longer by so much, with the same losses.
    Direct(Duration),
}

impl Path {
    /// The link of the client.
    fn link(self, profile: &Profile) -> DuplexConfig {
        match self {
            Path::Server | Path::Presence(_) => profile.link(),
            Path::Direct(further) => {
                let mut longer = *profile;
                longer.rtt += further;
                longer.link()
            }
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Exchanges {
    /// Who takes part.
    pub contenders: Vec<Contender>,
    /// Where the answers come from.
    pub path: Path,
    /// How many requests of each.
    pub count: u32,
    /// How many begin in a second, those of all contenders together: what the machine can do without their waiting for it.
    pub per_second: u32,
}

impl Default for Exchanges {
    fn default() -> Self {
        Exchanges {
            contenders: vec![Contender::TcpCubic, Contender::TcpBbr, Contender::Http3, Contender::Http3Known],
            path: Path::Server,
            count: 1000,
            per_second: 80,
        }
    }
}

/// How long they took, by contender.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Timed {
    /// In the order of [`Exchanges::contenders`].
    pub rows: Vec<Row>,
}

/// How long one contender's took.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row {
    /// Whose.
    pub contender: Contender,
    /// How long.
    pub latencies: Latencies,
    /// Packets that were sent for one, both ways, until it was answered: the mean.
    pub packets: f64,
}

impl Exchanges {
    /// Asks. All contenders ask at the same time; `network`, below `NETWORKS`, is not to be used for two networks.
    pub async fn run(&self, testbed: &Arc<Testbed>, profile: &Profile, network: u16) -> Timed {
        if let Path::Presence(further) = self.path {
            testbed.lay_origin(&DuplexConfig::symmetric(LinkConfig::delayed(further / 2)));
        }
        let asker = |contender, profile: &Profile| Asker {
            testbed: Arc::clone(testbed),
            contender,
            path: self.path,
            link: self.path.link(profile),
            network,
        };
        // Everybody's first request goes alone and is not counted: it makes what is to be known known.
        for contender in &self.contenders {
            let _ = asker(*contender, &profile.without_loss()).ask(0).await;
        }
        // One after the other begins, the contenders in turn, whether or not those before have been answered.
        let pause = Duration::from_secs(1) / self.per_second.max(1);
        let turns = (1..=self.count)
            .flat_map(|number| self.contenders.iter().map(move |contender| (*contender, number)));
        let requests = (0_u32..).zip(turns).map(|(turn, (contender, number))| {
            let asker = asker(contender, profile);
            async move {
                tokio::time::sleep(pause * turn).await;
                // The same chances for all contenders.
                (contender, asker.ask(u64::from(number)).await)
            }
        });
        let outcomes = all(requests.collect::<Vec<_>>()).await;
        let rows = self.contenders.iter().map(|contender| {
            let own = outcomes.iter().filter(|outcome| outcome.0 == *contender).map(|outcome| &outcome.1);
            let failed = own.clone().filter(|outcome| outcome.is_err()).count();
            let answered: Vec<(Duration, u64)> =
                own.filter_map(|outcome| outcome.as_ref().ok().copied()).collect();
            let packets: u64 = answered.iter().map(|(_, packets)| packets).sum();
            Row {
                contender: *contender,
                packets: packets as f64 / answered.len().max(1) as f64,
                latencies: Latencies::new(answered.into_iter().map(|(took, _)| took).collect(), failed),
            }
        });
        Timed { rows: rows.collect() }
    }
}

/// Somebody who asks once, as a stranger from a port of its own.
struct Asker {
    testbed: Arc<Testbed>,
    contender: Contender,
    path: Path,
    link: DuplexConfig,
    network: u16,
}

impl Asker {
    /// How long it took, and how many packets.
    async fn ask(&self, seed: u64) -> io::Result<(Duration, u64)> {
        let testbed = &self.testbed;
        let dialer = testbed.dialer(self.contender, self.network).ok_or(io::ErrorKind::NotFound)?;
        let seed = testbed.seed.wrapping_mul(1 << 32).wrapping_add(seed);
        let lane = testbed.lane(self.contender, &self.link, seed);
        let path = if matches!(self.path, Path::Presence(_)) { ASK_ORIGIN } else { ASK };
        let began = instant_now();
        let (session, len) = within(LIMIT, async {
            let session = dialer.connect(lane.local).await?;
            let len = session.ask(path, REQUEST).await?;
            Ok((session, len))
        })
        .await?;
        let outcome = (began.elapsed(), lane.packets());
        // As those of simulations, the connection stays for a while: both ends go on to learn how the network is. Then the
        // last words of both sides find their way.
        let grace = self.link.up.delay * 4;
        tokio::spawn(async move {
            tokio::time::sleep(grace * 2 + REST).await;
            session.close();
            tokio::time::sleep(grace).await;
            drop(lane);
        });
        if len == ANSWER { Ok(outcome) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Timed {
    /// The best of the kernel's TCP at so many of a thousand.
    #[must_use]
    pub fn tcp(&self, per_mille: usize) -> Option<Duration> {
        let tcp = self.rows.iter().filter(|row| row.contender.control().is_some());
        tcp.map(|row| row.latencies.per_mille(per_mille)).min()
    }
}

impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PER_MILLES: [usize; 3] = [500, 950, 990];
        writeln!(
            f,
            "{:<12} {:>9} {:>8} {:>15} {:>15} {:>15} {:>7}",
            "", "requests", "packets", "P50 ms", "P95 ms", "P99 ms", "failed"
        )?;
        for Row { contender, latencies, packets } in &self.rows {
            write!(f, "{contender:<12} {:>9} {packets:>8.1}", latencies.len())?;
            for per_mille in PER_MILLES {
                let took = latencies.per_mille(per_mille);
                let cell = match (self.tcp(per_mille), contender.control()) {
                    _ if took == Duration::MAX => "-".to_owned(),
                    (Some(tcp), None) => {
                        let change = (took.as_secs_f64() / tcp.as_secs_f64().max(1e-9) - 1.0) * 100.0;
                        format!("{:.0} {change:+.0}%", took.as_secs_f64() * 1e3)
                    }
                    _ => format!("{:.0}", took.as_secs_f64() * 1e3),
                };
                write!(f, " {cell:>15}")?;
            }
            writeln!(f, " {:>7}", latencies.failed())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_to_the_better_tcp() {
        let row = |contender, millis| Row {
            contender,
            latencies: Latencies::new(vec![Duration::from_millis(millis); 100], 0),
            packets: 20.0,
        };
        let rows = [(Contender::TcpCubic, 1200), (Contender::TcpBbr, 1000), (Contender::Http3, 700)];
        let table =
            Timed { rows: rows.map(|(contender, millis)| row(contender, millis)).to_vec() }.to_string();
        let line = table.lines().find(|line| line.starts_with("http3")).unwrap();
        assert_eq!(line.matches("700 -30%").count(), 3, "{table}");
    }

    #[test]
    fn a_direct_way_is_longer_and_loses_the_same() {
        let profile: Profile = "uber-a".parse().unwrap();
        let direct = Path::Direct(Duration::from_millis(100)).link(&profile);
        assert_eq!(direct.up.delay, profile.link().up.delay + Duration::from_millis(50));
        assert_eq!(direct.up.loss, profile.link().up.loss);
    }
}
