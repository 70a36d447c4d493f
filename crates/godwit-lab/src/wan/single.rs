//! One transfer over one network, looked at closely.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use godwit_link::{IpVersion, Rate};

use super::recording::Recording;
use super::run::{Outcome, Trial};
use crate::Error;
use crate::emulate::Figures;

/// How finely waits in the queue are told apart in time: those of packets that came within it count as their mean.
const TICK: Duration = Duration::from_millis(1);

/// What is to be tried.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Single {
    /// How.
    pub trial: Trial,
    /// The network, but for its rate.
    pub figures: Figures,
    /// The rate of the link, in both directions.
    pub rate: Rate,
    /// What all chances follow from.
    pub seed: u64,
    /// A file for the sender's trace (qlog); its times are virtual ones.
    pub qlog: Option<PathBuf>,
    /// A file for a drawing of the sender's window, round-trip time and rate over time (SVG).
    pub svg: Option<PathBuf>,
}

impl Single {
    /// A transfer as in a [`super::Sweep`].
    pub fn new(rate: Rate, figures: Figures) -> Self {
        Single { trial: Trial::default(), figures, rate, seed: 1, qlog: None, svg: None }
    }

    /// Makes the transfer.
    ///
    /// # Errors
    /// If a file cannot be written: before anything is simulated, if that can be known.
    pub fn run(&self) -> Result<Examined, Error> {
        let recording = Recording::begin(self.qlog.as_deref(), self.svg.as_deref())?;
        let trial = Trial { observers: recording.observers(), ..self.trial.clone() };
        let link = Figures { rate: Some(self.rate), ..self.figures }.link();
        let mut waits = Waits::default();
        let outcome = trial.run_over(link, self.rate, self.seed, TICK, |now| {
            waits.add(now.link.queued_packets, now.link.queue_delay);
        });
        recording.finish()?;
        waits.by_length.sort_unstable();
        Ok(Examined { rate: self.rate, outcome, waits })
    }
}

/// How long packets waited in the queue.
#[derive(Clone, Debug, Default)]
struct Waits {
    /// A wait and how many packets waited so long; in the end the shortest first.
    by_length: Vec<(Duration, u64)>,
    /// How many packets so far, and how long all of them waited together.
    so_far: (u64, Duration),
}

impl Waits {
    fn add(&mut self, packets: u64, delay: Duration) {
        let (before, delay_before) = std::mem::replace(&mut self.so_far, (packets, delay));
        let came = packets.saturating_sub(before);
        if came > 0 {
            let together = delay.saturating_sub(delay_before);
            self.by_length.push((together.div_f64(came as f64), came));
        }
    }

    /// What so many of a hundred waited no longer than.
    fn percentile(&self, percent: u64) -> Duration {
        let (all, _) = self.so_far;
        let mut left = (all.saturating_mul(percent) / 100).max(1);
        for (wait, packets) in &self.by_length {
            if *packets >= left {
                return *wait;
            }
            left -= packets;
        }
        Duration::ZERO
    }
}

/// What came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Examined {
    /// The rate of the link.
    pub rate: Rate,
    /// The figures of the transfer.
    pub outcome: Outcome,
    waits: Waits,
}

impl Examined {
    /// What so many of a hundred packets waited in the queue at most, to the millisecond.
    #[must_use]
    pub fn queue_delay(&self, percent: u64) -> Duration {
        self.waits.percentile(percent)
    }

    /// Bytes of the packets that left the sender, as IP counts them.
    #[must_use]
    pub fn ip_bytes(&self) -> u64 {
        self.with_overhead(IpVersion::V4.ip_len(0))
    }

    /// The same as an Ethernet counts them, to which the link's rate applies.
    #[must_use]
    pub fn ethernet_bytes(&self) -> u64 {
        self.with_overhead(IpVersion::V4.wire_len(0))
    }

    fn with_overhead(&self, each: usize) -> u64 {
        let link = &self.outcome.link;
        link.sent_bytes.saturating_add(link.sent_packets.saturating_mul(each as u64))
    }
}

impl fmt::Display for Examined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { delivered, usage, link, sender, duration, broken, .. } = &self.outcome;
        let megabits = *delivered as f64 * 8e-6 / duration.as_secs_f64().max(f64::EPSILON);
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let of_sent = |packets: u64| 100.0 * packets as f64 / link.sent_packets.max(1) as f64;
        writeln!(f, "use of the link    {usage:.1} %: {megabits:.2} Mbit/s of data that arrived in order")?;
        writeln!(
            f,
            "sent               {} packets, {:.2} MiB on Ethernet, {:.2} MiB of IP",
            link.sent_packets,
            mib(self.ethernet_bytes()),
            mib(self.ip_bytes())
        )?;
        writeln!(
            f,
            "waste              {:.2} % of them: {} dropped by the queue",
            self.outcome.waste(),
            link.queue_drops
        )?;
        writeln!(
            f,
            "on the way         {} lost ({:.2} %), {} held back",
            link.lost,
            of_sent(link.lost),
            link.reordered
        )?;
        writeln!(
            f,
            "declared lost      {}, of which {} came after all: spurious",
            sender.packets_lost, sender.spurious_losses
        )?;
        writeln!(f, "sent again         {:.2} MiB of data", mib(sender.stream_bytes_retransmitted))?;
        writeln!(
            f,
            "queue delay        P50 {:.1} ms, P99 {:.1} ms, mean {:.1} ms; at most {} packets",
            ms(self.queue_delay(50)),
            ms(self.queue_delay(99)),
            ms(link.mean_queue_delay()),
            link.max_queue_packets
        )?;
        writeln!(
            f,
            "round trip         least {:.1} ms, in the end {:.1} ms",
            ms(sender.min_rtt),
            ms(sender.rtt)
        )?;
        match broken {
            Some(broken) => writeln!(f, "broken             {broken}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single() -> Single {
        let mut figures = Figures::default();
        (figures.rtt, figures.queue) = (Duration::from_millis(20), Some(50));
        figures.loss = "1/1000".parse().unwrap();
        let mut single = Single::new(Rate::megabits(20), figures);
        single.trial.duration = Duration::from_secs(2);
        single
    }

    #[test]
    fn looking_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = single();
        let (trace, drawing) = (folder.path().join("a.sqlog"), folder.path().join("a.svg"));
        watched.qlog = Some(trace.clone());
        watched.svg = Some(drawing.clone());
        let examined = watched.run().unwrap();
        let Single { trial, figures, rate, seed, .. } = single();
        let link = Figures { rate: Some(rate), ..figures }.link();
        let plain = trial.run_over(link, rate, seed, trial.duration, |_| {});
        assert_eq!(examined.outcome.trace, plain.trace);

        let analysis = crate::qlog::Analysis::read(&trace).unwrap();
        assert_eq!(std::fs::read_to_string(&drawing).unwrap(), analysis.svg());
        let text = analysis.text(&trace, godwit_text::Style::PLAIN);
        assert!(text.contains("seen by the client"), "{text}");
        let lost = format!("{} of", plain.sender.packets_lost);
        assert!(plain.sender.packets_lost > 0 && text.contains(lost.trim_end_matches(" of")), "{text}");
    }

    #[test]
    fn packets_wait_as_long_as_the_queue_is() {
        let examined = single().run().unwrap();
        let (median, most) = (examined.queue_delay(50), examined.queue_delay(100));
        let full = Duration::from_secs_f64(50.0 * 1538.0 * 8.0 / 20e6);
        assert!(median < examined.queue_delay(99) && examined.queue_delay(99) <= most, "{examined}");
        assert!(most > full / 2 && most <= full, "{most:?} of {full:?}: {examined}");
        let mean =
            examined.waits.by_length.iter().map(|(wait, packets)| wait.as_secs_f64() * *packets as f64);
        let mean = mean.sum::<f64>() / examined.outcome.link.queued_packets as f64;
        let counted = examined.outcome.link.mean_queue_delay().as_secs_f64();
        assert!((mean - counted).abs() < 1e-6, "{mean} {counted}");
        assert_eq!(examined.ethernet_bytes() - examined.ip_bytes(), 38 * examined.outcome.link.sent_packets);
    }

    /// A program that is ended in the midst of it leaves neither an empty drawing nor destroys an old one.
    #[test]
    fn a_drawing_is_there_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old.svg"), folder.path().join("new.svg"));
        std::fs::write(&old, "old").unwrap();
        for file in [&old, &new] {
            let recording = Recording::begin(None, Some(file)).unwrap();
            assert_eq!(std::fs::read_to_string(&old).unwrap(), "old");
            assert!(!new.exists());
            drop(recording);
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_known_before() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["no/a.sqlog", "."] {
            let mut single = single();
            single.trial.duration = Duration::from_secs(3600 * 24);
            single.svg = Some(folder.path().join(file));
            let error = single.run().unwrap_err().to_string();
            assert!(
                error.starts_with("cannot write") && error.ends_with("give a file in a folder that exists")
            );
        }
    }
}
