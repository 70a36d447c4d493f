//! Why one address did not do, and of several the reason that says most.

use std::io;
use std::net::SocketAddr;

use godwit::{ConnectError, ConnectionError, ConnectionErrorKind, http3};
use http::StatusCode;
use rustls::Error as TlsError;

use crate::causes::find;
use crate::error::TriedOutcome;

/// Why one address did not do.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nothing came back in time, over UDP.
    Silent,
    /// The machine says that nobody listens on the UDP port.
    NobodyListens,
    /// No UDP socket could be had.
    Socket(io::Error),
    /// Nothing could be sent.
    Connect(ConnectError),
    Quic(ConnectionError),
    Http3(http3::Error),
    /// Nothing came back in time, over TCP.
    TcpSilent,
    /// The machine says that nobody listens on the TCP port.
    TcpRefused,
    Tcp(io::Error),
    Tls(io::Error),
    /// The server did not choose HTTP/2, which alone was allowed.
    NotHttp2,
    Hyper(hyper::Error),
    /// The proxy makes no tunnel.
    NoTunnel(NoTunnel),
}

/// What a proxy did in place of a tunnel.
#[derive(Debug)]
pub(crate) enum NoTunnel {
    /// It answered this.
    Answered(StatusCode),
    /// Nothing came back in time.
    Silent,
    /// It sent informational responses, and no other.
    TooManyInterim,
    /// The connection to it failed before its answer was there.
    Broken(hyper::Error),
    /// Nothing that makes sense came.
    Garbled,
}

/// Whom a failure speaks against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Nothing came back.
    Silence,
    /// The server, which answered, or its machine.
    Server,
    /// This machine.
    Here,
}

impl Refusal {
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Refusal::Silent | Refusal::TcpSilent | Refusal::NoTunnel(NoTunnel::Silent) => Blame::Silence,
            Refusal::Quic(error) if error.kind() == ConnectionErrorKind::HandshakeTimedOut => Blame::Silence,
            Refusal::Socket(_) | Refusal::Connect(_) | Refusal::Tcp(_) => Blame::Here,
            Refusal::Quic(error) if error.kind() == ConnectionErrorKind::EndpointStopped => Blame::Here,
            _ => Blame::Server,
        }
    }

    /// The error of TLS, if it is one.
    pub(crate) fn tls(&self) -> Option<&TlsError> {
        match self {
            Refusal::Tls(error) => find(error),
            Refusal::Quic(error) => error.tls(),
            _ => None,
        }
    }

    /// What came of an address where this happened; over UDP something may have come back.
    pub(crate) fn outcome(&self, is_heard: bool) -> TriedOutcome {
        match self {
            Refusal::NobodyListens | Refusal::TcpRefused => TriedOutcome::NobodyListens,
            Refusal::Socket(_) | Refusal::Connect(_) => TriedOutcome::NoWay,
            Refusal::Tls(error) if matches!(find(error), Some(TlsError::InvalidMessage(_))) => {
                TriedOutcome::NotTls
            }
            _ if self.blame() == Blame::Silence && !is_heard => TriedOutcome::Silent,
            _ => TriedOutcome::Failed,
        }
    }

    /// How much it says: a server that answered before one that did not.
    fn rank(&self) -> u8 {
        match self {
            Refusal::Quic(error) if error.kind() == ConnectionErrorKind::HandshakeTimedOut => 2,
            Refusal::Quic(_)
            | Refusal::Http3(_)
            | Refusal::Tls(_)
            | Refusal::NotHttp2
            | Refusal::Hyper(_)
            | Refusal::NoTunnel(_) => 4,
            Refusal::NobodyListens | Refusal::TcpRefused => 3,
            Refusal::Silent | Refusal::TcpSilent | Refusal::Tcp(_) => 2,
            Refusal::Socket(_) | Refusal::Connect(_) => 1,
        }
    }
}

/// Of several addresses' refusals the one that says most; `silent` if there is none.
pub(crate) fn most_telling(
    refusals: Vec<(SocketAddr, Refusal)>,
    silent: Refusal,
) -> (Option<SocketAddr>, Refusal) {
    let mut best = (None, silent);
    let mut best_rank = 0;
    for (address, refusal) in refusals {
        if refusal.rank() > best_rank {
            best_rank = refusal.rank();
            best = (Some(address), refusal);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_more_than_silence() {
        let address = SocketAddr::from(([192, 0, 2, 1], 4433));
        let refusals =
            vec![(address, Refusal::Silent), (address, Refusal::NobodyListens), (address, Refusal::Silent)];
        assert!(matches!(most_telling(refusals, Refusal::Silent).1, Refusal::NobodyListens));
        assert!(matches!(most_telling(Vec::new(), Refusal::TcpSilent), (None, Refusal::TcpSilent)));
    }
}
