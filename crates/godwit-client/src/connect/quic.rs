//! QUIC to one address, with HTTP/3 on it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use godwit::http3::{self, Client};
use godwit::{ClientConfig, Connecting, Connection, Endpoint};
use tokio::sync::watch;
use tokio::time::sleep;

use super::refusal::Refusal;
use crate::decision::lesson::{Sight, Unreachable};

/// How long an unanswered handshake takes before it is asked whether anybody listens at all.
const SILENCE: Duration = Duration::from_millis(400);
/// How often flights are counted.
const LOOK: Duration = Duration::from_millis(100);

/// What is seen of an attempt over UDP while it is under way, to one address or several.
#[derive(Debug, Default)]
pub(crate) struct Evidence(watch::Sender<Sight>);

impl Evidence {
    /// What was seen so far.
    pub(crate) fn sight(&self) -> Sight {
        *self.0.borrow()
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.sight().heard
    }

    /// Changes are told here.
    pub(crate) fn follow(&self) -> watch::Receiver<Sight> {
        self.0.subscribe()
    }

    fn on_heard(&self) {
        self.0.send_if_modified(|sight| !std::mem::replace(&mut sight.heard, true));
    }

    /// What is known of the attempt at one address.
    fn on(&self, known: &godwit::Evidence) {
        let seen = Sight {
            heard: known.datagrams_received > 0,
            // The last one may still be answered, unless it is the only one: that depends on the time.
            flights: u32::try_from(known.probes).unwrap_or(u32::MAX).max(u32::from(known.datagrams_sent > 0)),
            unreachable: known.unreachable.map(|kind| match kind {
                io::ErrorKind::ConnectionRefused => Unreachable::Port,
                _ => Unreachable::Host,
            }),
        };
        self.0.send_if_modified(|sight| {
            let before = *sight;
            sight.heard |= seen.heard;
            sight.flights = sight.flights.max(seen.flights);
            sight.unreachable = seen.unreachable.or(sight.unreachable);
            *sight != before
        });
    }
}

pub(crate) async fn handshake(
    endpoint: io::Result<Endpoint>,
    config: ClientConfig,
    address: SocketAddr,
    name: String,
    evidence: Arc<Evidence>,
) -> Result<Client, Refusal> {
    let endpoint = endpoint.map_err(Refusal::Socket)?;
    let connecting = endpoint.connect(&config, address, &name).map_err(Refusal::Connect)?;
    let connecting = match connecting.into_early() {
        // Whether anybody is there will be seen when the answer comes.
        Ok(early) => return on_connection(early, &name),
        Err(connecting) => connecting,
    };
    tokio::select! {
        client = shake(connecting, &name, &evidence) => client,
        () = nobody_listens(address) => Err(Refusal::NobodyListens),
    }
}

async fn shake(mut connecting: Connecting, name: &str, evidence: &Evidence) -> Result<Client, Refusal> {
    let mut known = connecting.evidence();
    let connected = loop {
        evidence.on(&known);
        tokio::select! {
            biased;
            connected = &mut connecting => break connected,
            () = sleep(LOOK), if !evidence.is_heard() => {}
        }
        known = connecting.evidence();
    };
    let connection = connected.map_err(Refusal::Quic)?;
    evidence.on_heard();
    on_connection(connection, name)
}

fn on_connection(connection: Connection, name: &str) -> Result<Client, Refusal> {
    Client::on_connection(connection, name, http3::Config::default()).map_err(Refusal::Http3)
}

/// Returns when the machine at `address` says that nobody listens on the port, and never if it does not.
///
/// QUIC's own socket serves many servers and is not told. This sends one empty datagram from a socket that is, and
/// only to those that have not answered for a while.
async fn nobody_listens(address: SocketAddr) {
    sleep(SILENCE).await;
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let asked = async {
        let socket = tokio::net::UdpSocket::bind((any, 0)).await?;
        socket.connect(address).await?;
        socket.send(&[]).await?;
        socket.recv(&mut [0]).await
    };
    match asked.await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        _ => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_is_noticed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let taken = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let free = taken.local_addr().unwrap();
            drop(taken);
            nobody_listens(free).await;
        });
    }
}
