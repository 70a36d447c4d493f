//! What QUIC is held against: TLS over the kernel's TCP, bare or with an HTTP on it, and bare datagrams. It is measured
//! only; `peers/README.md` describes its command line.

mod bare;
mod http;
mod kernel;
mod repeat;
mod tls;
#[path = "../../rust/src/trust_all.rs"]
mod trust_all;
mod udp;

use anyhow::{Result, bail};
use http::Version;
use peer_perf::{Measure, Serve};
use tokio::task::LocalSet;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    match command.as_str() {
        "udp-server" => return udp::serve(&Serve::parse(words)?),
        "udp-client" => return Ok(udp::measure(&Measure::parse(words)?)?.print()),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        match command.as_str() {
            "tcp-server" => bare::serve(&Serve::parse(words)?).await,
            "h1-server" => http::serve(&Serve::parse(words)?, Version::One).await,
            "h2-server" => http::serve(&Serve::parse(words)?, Version::Two).await,
            "tcp-client" => Ok(bare::measure(&Measure::parse(words)?).await?.print()),
            "h1-client" => Ok(http::measure(&Measure::parse(words)?, Version::One).await?.print()),
            "h2-client" => Ok(http::measure(&Measure::parse(words)?, Version::Two).await?.print()),
            _ => bail!("the first argument is tcp-, h1-, h2- or udp-, and server or client"),
        }
    })
}
