//! CUBIC in virtual time beside what Linux's TCP did over the same links: windows, use, queue and saw-teeth.
#![allow(missing_docs, reason = "a test")]

use std::time::Duration;

use godwit_lab::emulate::Figures;
use godwit_lab::link::Rate;
use godwit_lab::wan::{Controller, Trial};

/// What Linux did, and how it was measured.
const LINUX: &str = include_str!("../data/cubic-linux.csv");
/// Bytes of a full packet on an Ethernet; one of TCP and one of QUIC have as many.
const PACKET: f64 = 1538.0;
/// How often the sender is looked at, as it was there.
const EVERY: Duration = Duration::from_millis(10);
/// A window that is so much smaller than the largest since the last cut has been cut.
const CUT: f64 = 0.8;

/// Where the curve is flat when it meets the end of the queue: whether half a packet more fits is most of a second. Linux
/// counts whole packets and sends them in pairs, so that the queue is full a little earlier.
const FLAT: (f64, u64) = (10.0, 50);

/// A link, and what was measured over whole saw-teeth.
#[derive(Debug)]
struct Row {
    rate: f64,
    rtt: u64,
    queue: usize,
    measured: Measured,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    /// The mean window, in packets.
    window: f64,
    /// The part of the link that was used, in percent.
    used: f64,
    /// The mean queue delay by the smoothed round-trip time, in milliseconds.
    queue_delay: f64,
    /// How long a tooth is, in seconds.
    period: f64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: f64,
    window: f64,
    queue_delay: f64,
    packets: f64,
}

fn recorded() -> Vec<Row> {
    let lines = LINUX.lines().filter(|line| !line.starts_with('#')).skip(1);
    let row = |line: &str| {
        let [rate, rtt, queue, window, used, queue_delay, period] =
            line.split(',').map(|field| field.parse::<f64>().unwrap()).collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let measured = Measured { window, used, queue_delay, period };
        Row { rate, rtt: rtt as u64, queue: queue as usize, measured }
    };
    lines.map(row).collect()
}

/// From the first cut after a sixth of the time to the last one.
fn measure(samples: &[Sample], rate: f64) -> Measured {
    let end = samples.last().unwrap().at;
    let (mut largest, mut cuts) = (0.0_f64, Vec::new());
    for (number, sample) in samples.iter().enumerate() {
        largest = largest.max(sample.window);
        if sample.window < CUT * largest {
            largest = sample.window;
            if sample.at >= end / 6.0 {
                cuts.push(number);
            }
        }
    }
    assert!(cuts.len() >= 3, "{cuts:?}");
    let (first, last) = (cuts[0], cuts[cuts.len() - 1]);
    let time = samples[last].at - samples[first].at;
    let mean = |of: fn(&Sample) -> f64| {
        let sum: f64 =
            samples[first..=last].windows(2).map(|two| (two[1].at - two[0].at) * of(&two[0])).sum();
        sum / time
    };
    let packets = samples[last].packets - samples[first].packets;
    Measured {
        window: mean(|sample| sample.window),
        used: 100.0 * packets * PACKET * 8.0 / (rate * 1e6 * time),
        queue_delay: mean(|sample| sample.queue_delay),
        period: time / (cuts.len() - 1) as f64,
    }
}

fn simulate(row: &Row) -> Measured {
    let rtt = Duration::from_millis(row.rtt);
    let rate = Rate::megabits(row.rate as u64);
    let mut figures = Figures::default();
    (figures.rate, figures.rtt, figures.queue) = (Some(rate), rtt, Some(row.queue));
    let mut trial = Trial::default();
    trial.transport = Controller::CUBIC.transport();
    // Linux's receivers acknowledge every second packet.
    trial.transport.ack_frequency = false;
    trial.duration = Duration::from_secs(match row.rtt {
        20 => 60,
        50 => 100,
        _ => 120,
    });
    let mut samples = Vec::new();
    trial.run_over(figures.link(), rate, 1, EVERY, |seen| {
        samples.push(Sample {
            at: seen.at.as_secs_f64(),
            window: seen.sender.window as f64 / f64::from(seen.sender.mtu.max(1)),
            queue_delay: seen.sender.rtt.saturating_sub(rtt).as_secs_f64() * 1e3,
            packets: seen.link.delivered_packets as f64,
        });
    });
    measure(&samples, row.rate)
}

#[test]
fn cubic_does_what_linuxs_does() {
    let mut wrong = Vec::new();
    for row in recorded() {
        let (linux, ours) = (row.measured, simulate(&row));
        println!("{} Mbit/s, {} ms: Linux {linux:?}, here {ours:?}", row.rate, row.rtt);
        let flat = (row.rate, row.rtt) == FLAT;
        let figures = [
            ("window", linux.window, ours.window, 0.03),
            ("use", linux.used, ours.used, 0.03),
            ("queue delay", linux.queue_delay, ours.queue_delay, 0.12),
            ("period", linux.period, ours.period, if flat { 0.35 } else { 0.10 }),
        ];
        for (name, linux, ours, tolerance) in figures {
            if (ours / linux - 1.0).abs() > tolerance {
                wrong.push(format!(
                    "{} Mbit/s, {} ms, {name}: {linux} in Linux, {ours:.3} here, {:+.1} %",
                    row.rate,
                    row.rtt,
                    (ours / linux - 1.0) * 100.0
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
