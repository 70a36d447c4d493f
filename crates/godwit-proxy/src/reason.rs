//! Why the proxy answered by itself, as one of a small set of words that logs can be searched for.

use crate::problem::ProblemKind;
use godwit_client::causes::find;
use godwit_client::dial::DialError;
use rustls::{CertificateError, Error as TlsError};
use std::io;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Why a request was not passed on, or its response was not: finer than [`ProblemKind`]. The words are a
        /// closed set, and part of the access log's format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All there are.
            pub const ALL: &[Reason] = &[$(Reason::$name),*];

            /// A word for logs.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$name => $word,)* }
            }
        }
    };
}

reasons! {
    /// The request cannot be passed on as it is.
    BadRequest = "bad_request",
    /// A method or protocol that is not proxied.
    NotSupported = "not_supported",
    /// An expectation other than `100-continue`.
    Expectation = "expectation",
    /// The request has been here before.
    Loop = "loop",
    /// The client gave up its request's body.
    ClientGone = "client_gone",
    /// Every upstream is known to be unhealthy.
    NoUpstream = "no_upstream",
    /// As many connections as the upstream may have are in use.
    Busy = "busy",
    /// The upstream's name has no address, or DNS did not say one.
    NameNotResolved = "name_not_resolved",
    /// Nobody listens on the upstream's port.
    ConnectionRefused = "connection_refused",
    /// There is no way to the upstream's address.
    Unreachable = "unreachable",
    /// The upstream's certificate has expired.
    CertificateExpired = "certificate_expired",
    /// The upstream's certificate is not valid yet, or the clock of this machine is wrong.
    CertificateNotYetValid = "certificate_not_yet_valid",
    /// The upstream's certificate is for another name.
    CertificateWrongName = "certificate_wrong_name",
    /// The upstream's certificate is from an authority that is not trusted.
    CertificateUnknownIssuer = "certificate_unknown_issuer",
    /// Something else is wrong with the upstream's certificate.
    CertificateUnusable = "certificate_unusable",
    /// TLS was expected, and the upstream speaks something else: probably plain HTTP.
    NotTls = "not_tls",
    /// The upstream closed the connection during the TLS handshake.
    TlsClosed = "tls_closed",
    /// The TLS handshake failed for another reason, such as an alert of the upstream.
    TlsFailed = "tls_failed",
    /// No connection could be made for another reason.
    ConnectFailed = "connect_failed",
    /// No connection was made in time.
    ConnectTimeout = "connect_timeout",
    /// The upstream closed the connection before the response's head had come.
    ClosedBeforeResponse = "closed_before_response",
    /// The upstream reset the request's stream (HTTP/2) before the response's head had come.
    StreamReset = "stream_reset",
    /// What the upstream said is not HTTP, or not the version that was expected.
    NotHttp = "not_http",
    /// The response is HTTP and breaks its rules: a protocol or coding that was not asked for, a head that is too
    /// large.
    InvalidResponse = "invalid_response",
    /// The response broke off after its head.
    BrokeOff = "broke_off",
    /// The response's head did not come in time.
    ResponseTimeout = "response_timeout",
    /// The response's body stopped coming; its status had been sent.
    BodyTimeout = "body_timeout",
}

impl Reason {
    /// Of a problem of which no more is known than its kind.
    pub(crate) fn of_kind(kind: ProblemKind) -> Reason {
        match kind {
            ProblemKind::BadRequest => Reason::BadRequest,
            ProblemKind::NotSupported => Reason::NotSupported,
            ProblemKind::Expectation => Reason::Expectation,
            ProblemKind::Loop => Reason::Loop,
            ProblemKind::ClientGone => Reason::ClientGone,
            ProblemKind::NoUpstream => Reason::NoUpstream,
            ProblemKind::Busy => Reason::Busy,
            ProblemKind::Connect => Reason::ConnectFailed,
            ProblemKind::ConnectTimeout => Reason::ConnectTimeout,
            ProblemKind::Broken => Reason::InvalidResponse,
            ProblemKind::ResponseTimeout => Reason::ResponseTimeout,
            ProblemKind::BodyTimeout => Reason::BodyTimeout,
        }
    }

    /// Why there is no connection.
    pub(crate) fn of_dial(error: &DialError) -> Reason {
        match error {
            DialError::Unknown { .. } => Reason::NameNotResolved,
            DialError::Tcp { error, .. } => Reason::of_tcp(error),
            DialError::Tls(error) => match find(error) {
                Some(error) => Reason::of_tls(error),
                None if is_closed(error) => Reason::TlsClosed,
                None => Reason::TlsFailed,
            },
            _ => Reason::ConnectFailed,
        }
    }

    fn of_tcp(error: &io::Error) -> Reason {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Reason::ConnectionRefused,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Reason::Unreachable,
            io::ErrorKind::TimedOut => Reason::ConnectTimeout,
            _ => Reason::ConnectFailed,
        }
    }

    fn of_tls(error: &TlsError) -> Reason {
        use CertificateError as E;
        match error {
            TlsError::InvalidMessage(_) => Reason::NotTls,
            TlsError::InvalidCertificate(problem) => match problem {
                E::Expired | E::ExpiredContext { .. } => Reason::CertificateExpired,
                E::NotValidYet | E::NotValidYetContext { .. } => Reason::CertificateNotYetValid,
                E::NotValidForName | E::NotValidForNameContext { .. } => Reason::CertificateWrongName,
                E::UnknownIssuer => Reason::CertificateUnknownIssuer,
                _ => Reason::CertificateUnusable,
            },
            _ => Reason::TlsFailed,
        }
    }

    /// Why no response came on a connection.
    pub(crate) fn of_exchange(error: &hyper::Error) -> Reason {
        if let Some(error) = find::<h2::Error>(error) {
            return match error.get_io() {
                Some(_) => Reason::ClosedBeforeResponse,
                None if error.is_remote() && error.is_reset() => Reason::StreamReset,
                None if error.is_remote() => Reason::ClosedBeforeResponse,
                None => Reason::NotHttp,
            };
        }
        match () {
            () if error.is_parse_too_large() => Reason::InvalidResponse,
            () if error.is_parse() => Reason::NotHttp,
            () => Reason::ClosedBeforeResponse,
        }
    }
}

/// Whether the other side has closed the connection, in good order or not.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe | NotConnected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unlike_one_another() {
        let mut words: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Reason::ALL.len());
        assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }

    #[test]
    fn every_word_is_explained_to_users() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.md");
        let page = std::fs::read_to_string(page).unwrap();
        for reason in Reason::ALL {
            assert!(page.contains(&format!("`{}`", reason.name())), "{reason:?}");
        }
    }

    #[test]
    fn errors_of_the_system_have_reasons() {
        let tcp = |kind: io::ErrorKind| {
            Reason::of_dial(&DialError::Tcp { address: ([127, 0, 0, 1], 1).into(), error: kind.into() })
        };
        assert_eq!(tcp(io::ErrorKind::ConnectionRefused), Reason::ConnectionRefused);
        assert_eq!(tcp(io::ErrorKind::HostUnreachable), Reason::Unreachable);
        assert_eq!(tcp(io::ErrorKind::TimedOut), Reason::ConnectTimeout);
        assert_eq!(tcp(io::ErrorKind::PermissionDenied), Reason::ConnectFailed);
        let unknown = DialError::Unknown { host: "nothing.invalid".to_owned(), error: None };
        assert_eq!(Reason::of_dial(&unknown), Reason::NameNotResolved);
        let tls = |error: TlsError| Reason::of_dial(&DialError::Tls(io::Error::other(error)));
        assert_eq!(
            tls(TlsError::AlertReceived(rustls::AlertDescription::HandshakeFailure)),
            Reason::TlsFailed
        );
        assert_eq!(tls(CertificateError::Revoked.into()), Reason::CertificateUnusable);
        let closed = DialError::Tls(io::ErrorKind::UnexpectedEof.into());
        assert_eq!(Reason::of_dial(&closed), Reason::TlsClosed);
    }
}
