//! TQUIC as a peer to measure against; `peers/README.md` describes its command line.

mod network;
mod roles;

use anyhow::{Result, bail};
use peer_perf::{Measure, Serve};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("perf-server") => roles::serve(&Serve::parse(words)?),
        Some("perf-client") => Ok(roles::measure(&Measure::parse(words)?)?.print()),
        _ => bail!("the first argument is perf-server or perf-client"),
    }
}
