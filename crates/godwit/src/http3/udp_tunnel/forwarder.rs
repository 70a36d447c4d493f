//! The proxy: a socket for each tunnel, which knows its target alone.

use super::target::UdpTarget;
use super::tunnel::{PROTOCOL, UdpTunnel};
use crate::http3::{BoxError, Protocol, body::Body};
use bytes::Bytes;
use godwit_http3::DatagramError;
use http::{Request, Response, StatusCode};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;

/// The largest datagram that UDP carries, in bytes.
const LARGEST: usize = 65_535;

/// Tunnels at once, if nothing else is said.
const TUNNELS: usize = 1024;

/// Payloads that are passed on before others have their turn.
const TURN: usize = 32;

/// Whether clients may reach a target at an address.
type Permit = dyn Fn(&UdpTarget, SocketAddr) -> bool + Send + Sync;

/// Answers requests for UDP tunnels (RFC 9298), as a proxy does, and keeps what it grants going in tasks of its own.
///
/// Nobody is let through by itself: the function that it is made with is asked for each address that a target resolves to.
/// It decides about networks of one's own as well (RFC 9298 section 7): whoever may reach them from here is let in by it.
#[derive(Clone)]
pub struct UdpForwarder {
    permit: Arc<Permit>,
    idle_timeout: Duration,
    /// Tunnels that there may be yet.
    room: Arc<Semaphore>,
}

impl UdpForwarder {
    /// Lets clients reach the targets, at the addresses that they resolve to, for which `permit` says so.
    pub fn new(permit: impl Fn(&UdpTarget, SocketAddr) -> bool + Send + Sync + 'static) -> Self {
        UdpForwarder {
            permit: Arc::new(permit),
            idle_timeout: Duration::from_secs(120),
            room: Arc::new(Semaphore::new(TUNNELS)),
        }
    }

    /// Sets for how long a tunnel lasts in which nothing is said in either direction. Default two minutes, less than which
    /// is not to be (RFC 9298 section 3.1).
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets how many tunnels there may be at once, each of which has a socket. More are refused with status 503. Default 1024.
    #[must_use]
    pub fn max_tunnels(mut self, tunnels: usize) -> Self {
        self.room = Arc::new(Semaphore::new(tunnels.min(Semaphore::MAX_PERMITS)));
        self
    }

    /// Answers a request: grants the tunnel that it asks for, or says why not with status 400 (no such request), 403 (not
    /// permitted) or 502 (not found or not reachable). To be called in a tokio runtime.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let protocol = request.extensions().get::<Protocol>();
        let asked = protocol.is_some_and(|protocol| protocol.as_str() == PROTOCOL);
        let Some(target) = UdpTarget::from_path(request.uri().path()).filter(|_| asked) else {
            return refusal(StatusCode::BAD_REQUEST, "not a request for a UDP tunnel");
        };
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "there are as many tunnels as permitted");
        };
        let Ok(found) = tokio::net::lookup_host((target.host(), target.port())).await else {
            return refusal(StatusCode::BAD_GATEWAY, "the target has no address");
        };
        let found = found.map(reached).filter(|addr| is_of_one(addr.ip()));
        let permitted: Vec<_> = found.filter(|addr| (self.permit)(&target, *addr)).collect();
        if permitted.is_empty() {
            return refusal(StatusCode::FORBIDDEN, "the target is not permitted");
        }
        let Ok(socket) = connect(&permitted).await else {
            return refusal(StatusCode::BAD_GATEWAY, "the target cannot be reached");
        };
        let Some((tunnel, response)) = UdpTunnel::accept(request) else {
            return refusal(StatusCode::BAD_REQUEST, "there are no datagrams on this connection");
        };
        let idle_timeout = self.idle_timeout;
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = forward(&tunnel, &socket, idle_timeout).await {
                tracing::debug!(%target, %error, "a tunnel for UDP ends");
            }
        });
        response
    }
}

impl fmt::Debug for UdpForwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpForwarder").field("idle_timeout", &self.idle_timeout).finish_non_exhaustive()
    }
}

/// What a packet to an address reaches: one of IPv4 in IPv6 notation is an IPv4 address, and to be judged as such.
fn reached(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}

/// Whether one machine has the address, and no packet to it stays here or goes to many.
fn is_of_one(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || is_broadcast)
}

/// A socket that hears of the first of the addresses to which there is a way, and of nobody else.
async fn connect(addrs: &[SocketAddr]) -> io::Result<UdpSocket> {
    let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
    for addr in addrs {
        let any: SocketAddr = match addr {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        match socket.connect(addr).await {
            Ok(()) => return Ok(socket),
            Err(error) => result = Err(error),
        }
    }
    result
}

/// Passes on what is said, until nothing is for a while, or one end is gone.
async fn forward(tunnel: &UdpTunnel, socket: &UdpSocket, idle_timeout: Duration) -> Result<(), BoxError> {
    let mut buffer = vec![0; LARGEST];
    loop {
        let turn = async {
            tokio::select! {
                payload = tunnel.receive() => match socket.send(&payload?).await {
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Err(error.into()),
                    // Payloads may get lost: there is no room, no way at present, or none for so large a one.
                    Ok(_) | Err(_) => {}
                },
                ready = socket.readable() => {
                    ready?;
                    receive(tunnel, socket, &mut buffer)?;
                }
            }
            Ok::<_, BoxError>(())
        };
        tokio::time::timeout(idle_timeout, turn).await??;
    }
}

/// Passes on what the target has said.
fn receive(tunnel: &UdpTunnel, socket: &UdpSocket, buffer: &mut [u8]) -> Result<(), BoxError> {
    for _ in 0..TURN {
        match socket.try_recv(buffer) {
            // Payloads may get lost, but for the reason that the tunnel is over.
            Ok(len) => {
                if let Err(error @ DatagramError::Closed) = tunnel.send(buffer.get(..len).unwrap_or_default())
                {
                    return Err(error.into());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // The target's system says that nobody is there.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Err(error.into()),
            // Something on the way says that a payload was too large, or that there is no way now: it is lost.
            Err(_) => {}
        }
    }
    Ok(())
}

fn refusal(status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{why}\n")));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_judged_by_what_they_reach() {
        let reached = |text: &str| reached(text.parse().unwrap());
        assert!(reached("[::ffff:127.0.0.1]:53").ip().is_loopback());
        assert_eq!(reached("[2001:db8::1]:53"), "[2001:db8::1]:53".parse().unwrap());
        for nowhere in
            ["0.0.0.0:1", "[::]:1", "[::ffff:0.0.0.0]:1", "224.0.0.1:1", "[ff02::1]:1", "255.255.255.255:1"]
        {
            assert!(!is_of_one(reached(nowhere).ip()), "{nowhere}");
        }
        assert!(is_of_one(reached("192.0.2.1:1").ip()) && is_of_one(reached("[2001:db8::1]:53").ip()));
    }
}
