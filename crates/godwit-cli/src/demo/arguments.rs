//! What `godwit demo` is told on the command line.

use std::path::PathBuf;
use std::time::Duration;

use super::preset::{Conditions, Preset};

const ABOUT: &str = "\
See HTTP/2 and HTTP/3 side by side on the same bad link

Serves a small site on this machine, puts a bad link in front of it, and lets visitors come over HTTP/2 and over \
HTTP/3 at the same time: each opens a connection, makes a few small requests, loads a page of eleven files, and goes. \
What is measured is the time from a request to the last byte of its answer.

Where the system permits it (root, or user namespaces and /dev/net/tun), both protocols cross the same link as IP \
packets and HTTP/2 runs over the kernel's TCP. Elsewhere UDP is delayed and dropped for real and TCP is modelled; \
the output says which.";

#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT)]
pub(crate) struct Arguments {
    /// The kind of link
    #[arg(long, value_name = "LINK", default_value = "mobile")]
    pub(super) preset: Preset,

    /// Time there and back, in milliseconds, in place of the preset's
    #[arg(long, value_name = "MS", value_parser = rtt)]
    pub(super) rtt: Option<Duration>,

    /// Packets lost in each direction, in percent, in place of the preset's
    #[arg(long, value_name = "%", value_parser = loss)]
    pub(super) loss: Option<f64>,

    /// Rate in each direction, in Mbit/s, in place of the preset's
    #[arg(long, value_name = "MBIT", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) rate: Option<u64>,

    /// How long visitors come; what is then under way gets up to 12 seconds more
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(super) seconds: u64,

    /// Write a report with charts to this file: one page that needs no network
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    /// Print the result as JSON, and nothing else
    #[arg(long)]
    pub(super) json: bool,

    /// The TCP under HTTP/2
    #[arg(long, value_name = "WHICH", default_value = "auto")]
    pub(super) tcp: Tcp,

    /// The number that all chances of the link follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Ends at once: with code 0 if the kernel's TCP can be used here, else with 1 and the reason.
    #[arg(long, hide = true)]
    pub(super) probe: bool,
}

/// Whose TCP carries HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Tcp {
    /// The kernel's where that is possible, else the model
    Auto,
    /// The kernel's, over TUN devices in namespaces of their own
    Kernel,
    /// A model of TCP
    Modelled,
}

impl Arguments {
    /// The preset with what was given besides.
    pub(super) fn conditions(&self) -> Conditions {
        let preset = self.preset.conditions();
        Conditions {
            rtt: self.rtt.unwrap_or(preset.rtt),
            loss: self.loss.unwrap_or(preset.loss),
            burst: preset.burst,
            megabits: self.rate.unwrap_or(preset.megabits),
        }
    }
}

fn rtt(text: &str) -> Result<Duration, String> {
    let expected = || "expected milliseconds from 1 to 5000, for example 350".to_owned();
    let value: f64 = text.strip_suffix("ms").unwrap_or(text).trim().parse().map_err(|_| expected())?;
    if (1.0..=5000.0).contains(&value) { Ok(Duration::from_secs_f64(value / 1e3)) } else { Err(expected()) }
}

fn loss(text: &str) -> Result<f64, String> {
    let expected = || "expected a percentage from 0 to 30, for example 3.5".to_owned();
    let value: f64 = text.strip_suffix('%').unwrap_or(text).trim().parse().map_err(|_| expected())?;
    if (0.0..=30.0).contains(&value) { Ok(value / 100.0) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_checked() {
        assert_eq!(rtt("350"), Ok(Duration::from_millis(350)));
        assert_eq!(rtt("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(loss("3.5"), Ok(0.035));
        assert_eq!(loss("0%"), Ok(0.0));
        for wrong in ["", "0", "-1", "6000", "NaN", "fast"] {
            assert!(rtt(wrong).unwrap_err().contains("expected milliseconds"), "{wrong}");
        }
        for wrong in ["", "-1", "31", "NaN", "much"] {
            assert!(loss(wrong).unwrap_err().contains("expected a percentage"), "{wrong}");
        }
    }
}
