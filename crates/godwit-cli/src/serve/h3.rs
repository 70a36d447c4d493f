//! HTTP/3: the UDP side of a listener.
//!
//! This is the only file of the server that knows how HTTP/3 is started; the rest sees a socket that is bound
//! first, may say what the system granted, and is then given the service to run.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU8;

use super::Datapath;
use super::site::Front;
use crate::certificates::Identity;

/// What the command line says about HTTP/3.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    #[expect(dead_code, reason = "for the HTTP/3 server")]
    pub(super) datapath: Datapath,
    #[expect(dead_code, reason = "for the HTTP/3 server")]
    pub(super) shards: NonZeroU8,
}

/// What the system gave the UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) gso: bool,
    pub(super) gro: bool,
    /// Receive buffer in bytes.
    pub(super) receive_buffer: u64,
    /// The receive buffer that was asked for, in bytes.
    pub(super) wanted_buffer: u64,
}

/// A bound UDP socket.
pub(super) struct Socket(socket2::Socket);

impl Socket {
    pub(super) fn bind(address: SocketAddr, _identity: &Identity, _options: Options) -> io::Result<Socket> {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(address),
            socket2::Type::DGRAM,
            Some(socket2::Protocol::UDP),
        )?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        Ok(Socket(socket))
    }

    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Whether HTTP/3 will be answered here; only then is it advertised.
    pub(super) fn speaks_http3(&self) -> bool {
        false
    }

    /// `None` where it is not known.
    pub(super) fn granted(&self) -> Option<Granted> {
        None
    }

    /// Answers requests from tasks of its own, until [`drain`].
    pub(super) fn serve(self, _front: Front) -> Running {
        Running { _socket: self }
    }
}

/// HTTP/3 at work on one socket.
pub(super) struct Running {
    _socket: Socket,
}

/// Sends GOAWAY on every connection and waits for the requests in progress.
pub(super) async fn drain(_running: Vec<Running>) {}
