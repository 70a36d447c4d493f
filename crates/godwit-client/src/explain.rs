//! Errors of the network in words: what was expected, what came, what to do.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use godwit::http3::{self, ErrorCode, ErrorKind as Http3ErrorKind};
use godwit::{ConnectionError, ConnectionErrorKind};
use godwit_text::{date, plain_error, without_manual};
use http::StatusCode;
use rustls::{CertificateError, Error as TlsError};

use crate::causes::find;
use crate::connect::interim::TooMany;
use crate::connect::{NoTunnel, Refusal};
use crate::error::{Error, ErrorKind, Remedy, seconds};
use crate::session::ExchangeError;
use crate::target::Origin;
use crate::trust::{Facts, RefusedCertificate, problem_in_words};

/// TLS alerts as they come in transport error codes (RFC 9001 section 4.8).
const NO_APPLICATION_PROTOCOL: u64 = 0x178;
const UNRECOGNIZED_NAME: u64 = 0x170;

/// The server closed the connection in the midst of its answer, with the close_notify of TLS or without.
const CLOSED: &str = "the server closed the connection before its answer was complete; try again";

/// The host has no address.
pub(crate) fn unknown_host(host: &str, error: &str) -> Error {
    let why = error.rsplit(": ").next().unwrap_or(error);
    let why = why.chars().next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(why.chars().skip(1)).collect::<String>()
    });
    Error::of_origin(
        ErrorKind::Resolve,
        format!("no address is known for {host} ({why}); is the name right, and does DNS work here?"),
    )
}

/// DNS did not answer in time.
pub(crate) fn slow_dns(host: &str, limit: Duration) -> Error {
    let text = format!("DNS gave no address of {host} in {}; does it work here?", seconds(limit));
    Error::of_origin(ErrorKind::Resolve, text).remedy_of(Remedy::LongerConnectTimeout)
}

/// The host has no address of the family that was asked for.
pub(crate) fn no_address_of(origin: &Origin, family: &str, remedy: Remedy) -> Error {
    let text = format!("{} has no {family} address", origin.host);
    Error::of_origin(ErrorKind::Resolve, text).remedy_of(remedy)
}

/// No connection came about: at this address, if at any.
pub(crate) fn refusal(
    origin: &Origin,
    address: Option<SocketAddr>,
    refusal: &Refusal,
    certificate: Option<&RefusedCertificate>,
    limit: Duration,
) -> Error {
    let at = match address {
        Some(address) if origin.address().is_none() => format!(" ({})", address.ip()),
        _ => String::new(),
    };
    let port = address.map_or(origin.port, |address| address.port());
    let limit = seconds(limit);
    // A server may do without TCP.
    let alone = |text: String| {
        let error = Error::of_origin(ErrorKind::Connect, text);
        if origin.secure { error.remedy_of(Remedy::OnlyHttp3) } else { error }
    };
    let text = match refusal {
        Refusal::Quic(error) if error.kind() != ConnectionErrorKind::HandshakeTimedOut => {
            return handshake(origin, port, error, certificate);
        }
        Refusal::Silent | Refusal::Quic(_) => format!(
            "no answer over UDP in {limit} from port {port}{at}: is QUIC blocked, or does the server speak HTTP/3 at all?"
        ),
        Refusal::NobodyListens => format!(
            "connection refused: nobody listens on UDP port {port}{at}; is the port right, and does the server speak HTTP/3?"
        ),
        Refusal::Socket(error) => {
            format!("cannot open a UDP socket for {}: {}", origin.host, plain_error(error))
        }
        Refusal::Connect(error) => format!("cannot connect: {error}"),
        Refusal::Http3(error) if error.kind() == Http3ErrorKind::NotHttp3 => no_http3(port),
        Refusal::Http3(error) => error.to_string(),
        Refusal::TcpSilent => {
            return alone(format!(
                "no answer over TCP in {limit} from port {port}{at}: is the address right, and is a firewall in between?"
            ));
        }
        Refusal::TcpRefused => {
            return alone(format!(
                "connection refused: nobody listens on TCP port {port}{at}; is the port right, and does the server run?"
            ));
        }
        Refusal::Tcp(error) => format!("cannot connect to TCP port {port}{at}: {}", plain_error(error)),
        Refusal::Tls(error) => return tls(origin, port, error, certificate),
        Refusal::NotHttp2 => {
            let text = format!("the server does not speak HTTP/2 on port {port} (expected ALPN h2)");
            return Error::of_origin(ErrorKind::Connect, text).remedy_of(Remedy::OtherVersions);
        }
        Refusal::Hyper(error) => format!("cannot begin HTTP on port {port}: {}", causes(error)),
        Refusal::NoTunnel(why) => return no_tunnel(origin, why, &limit),
    };
    Error::of_origin(ErrorKind::Connect, text)
}

/// The proxy was reached, but does not lead to the server.
fn no_tunnel(origin: &Origin, why: &NoTunnel, limit: &str) -> Error {
    let to = origin.authority_with_port();
    let text = match why {
        NoTunnel::Answered(StatusCode::PROXY_AUTHENTICATION_REQUIRED) => return wants_credentials(),
        NoTunnel::Answered(status) => {
            let status = status_in_words(*status);
            format!("it makes no tunnel to {to} but answers {status}; does it permit that?")
        }
        NoTunnel::Silent => format!("it did not answer CONNECT in {limit}; is it a proxy for HTTP?"),
        NoTunnel::TooManyInterim => format!("{TooMany}; ask the proxy's operator"),
        NoTunnel::Broken(error) if error.is_parse() => {
            "its answer to CONNECT is not HTTP; is it a proxy for HTTP?".to_owned()
        }
        NoTunnel::Broken(_) => {
            format!("it closed the connection when it was asked for a tunnel to {to}; does it permit that?")
        }
        NoTunnel::Garbled => "it makes no tunnel; is it a proxy for HTTP?".to_owned(),
    };
    Error::of_origin(ErrorKind::Connect, text)
}

/// A proxy answered 407 (RFC 9110 section 15.5.8).
pub(crate) fn wants_credentials() -> Error {
    let text =
        "it wants a user name and a password that it knows; give them as http://USER:PASSWORD@HOST:PORT";
    Error::of_origin(ErrorKind::Connect, text)
}

fn no_http3(port: u16) -> String {
    format!(
        "the server answers QUIC on port {port} but does not speak HTTP/3 there (expected ALPN h3); is the port right?"
    )
}

/// The server answered over TCP, but the TLS handshake failed.
fn tls(origin: &Origin, port: u16, error: &io::Error, shown: Option<&RefusedCertificate>) -> Error {
    use rustls::AlertDescription as Alert;
    let text = match find::<TlsError>(error) {
        Some(TlsError::InvalidCertificate(problem)) => return certificate(origin, problem, shown),
        Some(TlsError::InvalidMessage(_)) => {
            format!("the server does not speak TLS on port {port}; is it the port for http://?")
        }
        Some(TlsError::AlertReceived(Alert::NoApplicationProtocol) | TlsError::NoApplicationProtocol) => {
            format!("the server speaks no version of HTTP on port {port} that was asked for (ALPN)")
        }
        Some(TlsError::AlertReceived(Alert::UnrecognisedName)) => unknown_site(origin),
        Some(TlsError::AlertReceived(Alert::ProtocolVersion)) => {
            "the server speaks neither TLS 1.3 nor TLS 1.2; it has to be renewed".to_owned()
        }
        Some(error) => format!("the TLS handshake failed: {error}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => format!(
            "the server closed the connection in the TLS handshake; does it speak TLS on port {port}?"
        ),
        None => format!("the TLS handshake failed: {}", plain_error(error)),
    };
    Error::of_origin(ErrorKind::Connect, text)
}

fn unknown_site(origin: &Origin) -> String {
    format!("the server has no site called {}; is the name right?", origin.host)
}

/// The server answered over QUIC, but the handshake failed.
fn handshake(
    origin: &Origin,
    port: u16,
    error: &ConnectionError,
    shown: Option<&RefusedCertificate>,
) -> Error {
    let code = error.transport_code();
    let tls = error.tls();
    let text =
        if code == Some(NO_APPLICATION_PROTOCOL) || matches!(tls, Some(TlsError::NoApplicationProtocol)) {
            no_http3(port)
        } else if code == Some(UNRECOGNIZED_NAME) {
            unknown_site(origin)
        } else if let Some(TlsError::InvalidCertificate(problem)) = tls {
            return certificate(origin, problem, shown);
        } else {
            match error.kind() {
                ConnectionErrorKind::Refused => {
                    "the server refuses new connections: it is overloaded or shutting down; try again later"
                        .to_owned()
                }
                ConnectionErrorKind::VersionMismatch => {
                    "the server speaks no version of QUIC that is known here (1 and 2)".to_owned()
                }
                _ => format!("cannot connect: {error}"),
            }
        };
    Error::of_origin(ErrorKind::Connect, text)
}

/// The server's certificate was not accepted.
fn certificate(origin: &Origin, problem: &CertificateError, shown: Option<&RefusedCertificate>) -> Error {
    use CertificateError as E;
    let facts = shown.map(|shown| &shown.facts);
    let refused = |text: String| Error::of_origin(ErrorKind::Certificate, text).of_certificate(shown);
    let text = match problem {
        E::UnknownIssuer => return refused(unknown_issuer(facts)).remedy_of(Remedy::TrustIssuer),
        E::NotValidYet | E::NotValidYetContext { .. } => {
            let from = facts.map(|facts| format!(" before {}", date(facts.not_before))).unwrap_or_default();
            return refused(format!(
                "the server's certificate is not valid{from}: is the clock of this machine right?"
            ));
        }
        E::Revoked => {
            let text = "the server's certificate has been revoked; its operator has to replace it";
            return refused(text.to_owned());
        }
        E::Expired | E::ExpiredContext { .. } => {
            let since = facts.map(|facts| format!(" on {}", date(facts.not_after))).unwrap_or_default();
            format!("the server's certificate expired{since}; its operator has to renew it")
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            let names = facts.map_or_else(
                || "another name".to_owned(),
                |facts| facts.names_in_words().escape_debug().to_string(),
            );
            format!(
                "the server's certificate is for {names}, not for {}; use a name it is for",
                origin.host
            )
        }
        E::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "the server shows the certificate of an authority as its own; its operator has to issue one from it"
                .to_owned()
        }
        other => format!("the server's certificate {}", problem_in_words(other)),
    };
    refused(text).remedy_of(Remedy::AcceptAnyCertificate)
}

fn unknown_issuer(facts: Option<&Facts>) -> String {
    match facts {
        Some(facts) if facts.issuer == facts.subject => {
            "the server's certificate is signed by itself, and not trusted here".to_owned()
        }
        Some(facts) => {
            let issuer = facts.issuer.escape_debug();
            format!("the server's certificate is from \"{issuer}\", which is not trusted here")
        }
        None => "the server's certificate is from an authority that is not trusted here".to_owned(),
    }
}

/// A request that failed on an established connection.
pub(crate) fn exchange(error: ExchangeError) -> Error {
    let text = exchange_text(&error);
    Error::new(ErrorKind::Exchange, text).caused_by(error)
}

/// The same as a sentence.
pub(crate) fn exchange_text(error: &ExchangeError) -> String {
    match error {
        ExchangeError::Http3(error) => http3_exchange(error),
        ExchangeError::Tcp { error, .. } => tcp_exchange(error),
        ExchangeError::TooManyInterim => too_many_interim(),
        ExchangeError::Coding(problem) => format!(
            "the body is not coded as its Content-Encoding says: {problem}; ask for it without codings, or ask the server's operator"
        ),
    }
}

fn too_many_interim() -> String {
    format!("{TooMany}; ask the server's operator")
}

fn http3_exchange(error: &http3::Error) -> String {
    match error.kind() {
        Http3ErrorKind::Reset => match error.code() {
            Some(ErrorCode::H3_REQUEST_REJECTED) => {
                "the server did not process the request (H3_REQUEST_REJECTED); try again".to_owned()
            }
            Some(code) => format!("the server broke off ({code}); try again, or ask its operator"),
            None => error.to_string(),
        },
        Http3ErrorKind::GoingAway => {
            "the server is shutting down and took no more requests; try again".to_owned()
        }
        Http3ErrorKind::Connection => match find::<ConnectionError>(error).map(ConnectionError::kind) {
            Some(ConnectionErrorKind::IdleTimedOut) => {
                "the connection is lost: nothing was heard of the server for too long; try again".to_owned()
            }
            Some(ConnectionErrorKind::Reset) => {
                "the connection is lost: the server has forgotten it (was it restarted?); try again"
                    .to_owned()
            }
            _ => format!("{error}; try again"),
        },
        _ => error.to_string(),
    }
}

fn tcp_exchange(error: &hyper::Error) -> String {
    if let Some(error) = find::<h2::Error>(error) {
        // Of the error of reading only its kind and the words are left.
        if let Some(error) = error.get_io() {
            return match error.kind() {
                _ if error.to_string().contains(&TooMany.to_string()) => too_many_interim(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => CLOSED.to_owned(),
                _ => format!("the connection is lost: {}; try again", plain_error(error)),
            };
        }
        let reason = error.reason();
        return match reason {
            Some(h2::Reason::REFUSED_STREAM) => {
                "the server did not process the request (REFUSED_STREAM); try again".to_owned()
            }
            Some(h2::Reason::NO_ERROR) if error.is_go_away() => {
                "the server is shutting down and took no more requests; try again".to_owned()
            }
            Some(reason) if error.is_reset() && error.is_remote() => {
                let code = format!("{reason:?}");
                format!("the server broke off ({code}); try again, or ask its operator")
            }
            _ => format!("the connection is lost: {}; try again", without_manual(&error.to_string())),
        };
    }
    if error.is_parse() {
        return format!("the server's answer is not HTTP: {}; is the port right?", causes(error));
    }
    // Also without the close_notify of TLS.
    let cut = find::<io::Error>(error).is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    if cut || error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return CLOSED.to_owned();
    }
    format!("the connection is lost: {}; try again", causes(error))
}

/// `404 Not Found`.
pub(crate) fn status_in_words(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// An error with what caused it.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = without_manual(&error.to_string()).to_owned();
    let mut next = error.source();
    while let Some(error) = next {
        let inner = match error.downcast_ref::<io::Error>() {
            Some(error) => plain_error(error),
            None => without_manual(&error.to_string()).to_owned(),
        };
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(host: &str) -> Origin {
        Origin { secure: true, host: host.to_owned(), port: 4433 }
    }

    fn facts() -> Facts {
        Facts {
            names: vec!["a.example".to_owned(), "b.example".to_owned()],
            not_before: 1_795_294_367,
            not_after: 1_795_294_367,
            pin: String::new(),
            issuer: "CN=Some authority".to_owned(),
            subject: "CN=a.example".to_owned(),
        }
    }

    #[test]
    fn certificates_are_explained() {
        let shown = RefusedCertificate { facts: facts(), issuer_sent: false };
        let text = |problem| certificate(&origin("c.example"), &problem, Some(&shown)).to_string();
        let unknown = text(CertificateError::UnknownIssuer);
        assert_eq!(
            unknown,
            "the server's certificate is from \"CN=Some authority\", which is not trusted here; \
             to trust the authority, add its certificate to the roots"
        );
        assert!(text(CertificateError::Expired).contains("expired on 2026-11-21; its operator"));
        assert!(text(CertificateError::NotValidYet).contains("not valid before 2026-11-21: is the clock"));
        let name = text(CertificateError::NotValidForName);
        assert!(name.contains("is for a.example, b.example, not for c.example;"), "{name}");
    }

    #[test]
    fn silence_and_refusal_are_told_apart() {
        let limit = Duration::from_secs(10);
        let address = Some(SocketAddr::from(([192, 0, 2, 1], 4433)));
        let text = |found| refusal(&origin("a.example"), address, &found, None, limit);
        let silent = text(Refusal::Silent);
        assert!(silent.is_of_origin());
        assert_eq!(
            silent.to_string(),
            "no answer over UDP in 10 s from port 4433 (192.0.2.1): is QUIC blocked, or does the server speak \
             HTTP/3 at all?"
        );
        let refused = text(Refusal::NobodyListens).to_string();
        assert!(
            refused.starts_with("connection refused: nobody listens on UDP port 4433 (192.0.2.1);"),
            "{refused}"
        );
        let refused = text(Refusal::TcpRefused).to_string();
        assert!(refused.contains("nobody listens on TCP port 4433 (192.0.2.1);"), "{refused}");
        assert!(refused.contains("HTTP/3 alone"), "{refused}");
    }

    #[test]
    fn causes_show_no_manual_of_a_library() {
        #[derive(Debug)]
        struct Told(Option<io::Error>);
        impl std::fmt::Display for Told {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("no end: https://docs.rs/one/manual")
            }
        }
        impl std::error::Error for Told {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                self.0.as_ref().map(|error| error as _)
            }
        }
        let inner = io::Error::new(io::ErrorKind::UnexpectedEof, Told(None));
        let outer = io::Error::other(Told(Some(inner)));
        let said = causes(&outer);
        assert!(said.contains("no end") && !said.contains("://"), "{said}");
    }

    #[test]
    fn unknown_hosts_are_named() {
        let error = "failed to lookup address information: Name or service not known";
        assert_eq!(
            unknown_host("a.invalid", error).to_string(),
            "no address is known for a.invalid (name or service not known); is the name right, and does DNS work here?"
        );
    }
}
