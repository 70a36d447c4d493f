//! A tunnel as what carries an endpoint's datagrams: QUIC to the target, within the connection to the proxy.

use super::tunnel::UdpTunnel;
use crate::datapath::{Carrier, CarrierFactory};
use crate::http3::error::Error;
use bytes::Bytes;
use godwit_http3::DatagramError;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A tunnel that carries the datagrams of an endpoint, all of them to and from one address.
#[derive(Debug)]
pub struct TunnelCarrier {
    tunnel: UdpTunnel,
    remote: SocketAddr,
    /// What has come while it was found out whether anything had.
    next: Mutex<Option<Result<Bytes, Error>>>,
}

impl TunnelCarrier {
    /// For [`EndpointBuilder::datapaths`](crate::EndpointBuilder::datapaths) of one endpoint, which can be bound once.
    pub fn into_factory(self) -> CarrierFactory {
        let once = Mutex::new(Some(self));
        CarrierFactory::new(move |_| {
            let carrier = once.lock().unwrap_or_else(PoisonError::into_inner).take();
            carrier.ok_or_else(|| io::Error::new(io::ErrorKind::AddrInUse, "a tunnel carries one endpoint"))
        })
    }

    fn next(&self) -> MutexGuard<'_, Option<Result<Bytes, Error>>> {
        // Nothing can panic while it is held.
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UdpTunnel {
    /// Has the tunnel carry the datagrams of an endpoint. Whatever address the target has at the proxy, it is `remote` here: an endpoint connects to that, and to nothing else.
    pub fn into_carrier(self, remote: SocketAddr) -> TunnelCarrier {
        TunnelCarrier { tunnel: self, remote, next: Mutex::new(None) }
    }
}

impl Carrier for TunnelCarrier {
    fn send(&mut self, datagram: &[u8], remote: SocketAddr) -> io::Result<()> {
        if remote != self.remote {
            return Err(io::ErrorKind::HostUnreachable.into());
        }
        self.tunnel.send(datagram).map_err(|error| match error {
            // It counts as lost, which says that less should be sent.
            DatagramError::Full => io::ErrorKind::OutOfMemory.into(),
            error => io::Error::other(error),
        })
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let next = self.next().take();
        match next.map_or_else(|| self.tunnel.try_receive(), |next| next.map(Some)) {
            Ok(None) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(io::Error::new(io::ErrorKind::BrokenPipe, error)),
            Ok(Some(payload)) => {
                // What there is no room for is passed over.
                let Some(place) = buffer.get_mut(..payload.len()) else { return Ok((0, self.remote)) };
                place.copy_from_slice(&payload);
                Ok((payload.len(), self.remote))
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(match self.remote {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        })
    }

    fn wake_on_arrival(&self, waker: &Waker) {
        let mut next = self.next();
        if next.is_none()
            && let Poll::Ready(payload) = self.tunnel.poll_receive(&mut Context::from_waker(waker))
        {
            *next = Some(payload);
        }
        if next.is_some() {
            waker.wake_by_ref();
        }
    }
}
