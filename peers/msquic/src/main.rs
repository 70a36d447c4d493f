//! A program on the `msquic` crate as others write them: a server that sends back what it receives, a client for it,
//! both in one process, and files by HTTP/0.9 in both roles. `peers/README.md` describes its command line.

mod client;
mod hq;
mod options;
mod sending;
mod server;
mod together;

use anyhow::{Result, bail};
use options::{Connect, HqFetch, HqServe, Listen};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("server") => server::serve(&Listen::parse(words)?),
        Some("client") => client::run(&Connect::parse(words)?),
        Some("together") => together::run(&Listen::parse(words)?),
        Some("hq-server") => hq::server::serve(&HqServe::parse(words)?),
        Some("hq-client") => hq::client::fetch(&HqFetch::parse(words)?),
        _ => bail!("the first argument is server, client, together, hq-server or hq-client"),
    }
}
