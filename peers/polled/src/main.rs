//! Godwit's polled API as a program to measure; `peers/README.md` describes its command line.

mod client;
mod server;
mod settings;
mod streams;

use anyhow::{Result, bail};
use peer_perf::{Measure, Serve};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("perf-server") => server::serve(&Serve::parse(words)?),
        Some("perf-client") => Ok(client::measure(&Measure::parse(words)?)?.print()),
        _ => bail!("the first argument is perf-server or perf-client"),
    }
}
