//! Both ends in one process, and what the crate asks of a library besides: global parameters, statistics, counters.

use crate::options::{Connect, Listen};
use crate::{client, server};
use anyhow::{Result, ensure};
use msquic::{Api, Registration, RegistrationConfig};

pub fn run(options: &Listen) -> Result<()> {
    let registration = Registration::new(&RegistrationConfig::new().set_app_name("peer-msquic".to_owned()))?;
    ensure!(Api::get_retry_memory_percent()? > 0, "no memory is allowed for handshakes");
    Api::get_tls_provider()?;
    let listener = server::start(&registration, options)?;
    let address = server::address_of(&listener)?;
    for (streams, bytes) in [(1, 0), (1, 1), (1, 5 << 20), (100, 3000)] {
        let connect = Connect {
            address,
            authority: options.authority.clone(),
            alpn: options.alpn.clone(),
            streams,
            bytes,
        };
        client::exchange(&registration, &connect)?;
    }
    let counters = Api::get_perf()?;
    ensure!(counters.conn_created >= 8, "{} connections were counted", counters.conn_created);
    refused(&registration, options, address)?;
    listener.stop();
    Ok(())
}

/// A client with another protocol is told so, and nothing else goes wrong.
fn refused(registration: &Registration, options: &Listen, address: std::net::SocketAddr) -> Result<()> {
    let connect = Connect {
        address,
        authority: options.authority.clone(),
        alpn: format!("not-{}", options.alpn),
        streams: 1,
        bytes: 1,
    };
    ensure!(client::exchange(registration, &connect).is_err(), "a protocol was accepted that nobody has");
    Ok(())
}
