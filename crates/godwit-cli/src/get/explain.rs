//! Errors of the network in words: what was expected, what came, what to do.

use std::error::Error as _;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use godwit::http3::{self, ErrorCode, ErrorKind};
use godwit::rustls::{CertificateError, Error as TlsError};
use godwit::{ConnectionError, ConnectionErrorKind};

use super::connect::Refusal;
use super::problem::Problem;
use super::target::Origin;
use crate::certificates::{Facts, local};
use crate::error::plain;
use crate::output::{date, shell_word};

/// TLS alerts as they come in transport error codes (RFC 9001 section 4.8).
const NO_APPLICATION_PROTOCOL: u64 = 0x178;
const UNRECOGNIZED_NAME: u64 = 0x170;

/// The host has no address.
pub(super) fn unknown_host(origin: &Origin, error: &str) -> Problem {
    let why = error.rsplit(": ").next().unwrap_or(error);
    let why = why.chars().next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(why.chars().skip(1)).collect::<String>()
    });
    Problem::of_origin(format!(
        "no address is known for {} ({why}); is the name right, and does DNS work here?",
        origin.host
    ))
}

/// DNS did not answer in time.
pub(super) fn slow_dns(origin: &Origin, limit: Duration) -> Problem {
    Problem::of_origin(format!(
        "DNS gave no address of {} in {}; does it work here? (--connect-timeout waits longer)",
        origin.host,
        seconds(limit)
    ))
}

/// The host has no address of the family that was asked for.
pub(super) fn no_address_of(origin: &Origin, family: &str, option: &str) -> Problem {
    Problem::of_origin(format!("{} has no {family} address; leave out {option}", origin.host))
}

/// Of several addresses' refusals the one that says most: a server that answered before one that did not.
pub(super) fn most_telling(refusals: Vec<(SocketAddr, Refusal)>) -> (Option<SocketAddr>, Refusal) {
    let rank = |refusal: &Refusal| match refusal {
        Refusal::Http3(error) => match connection_error(error).map(ConnectionError::kind) {
            Some(ConnectionErrorKind::HandshakeTimedOut) => 1,
            _ => 4,
        },
        Refusal::NobodyListens => 2,
        Refusal::Socket(_) => 0,
        Refusal::Silent => 1,
    };
    let mut best = (None, Refusal::Silent);
    let mut best_rank = -1;
    for (address, refusal) in refusals {
        if rank(&refusal) > best_rank {
            best_rank = rank(&refusal);
            best = (Some(address), refusal);
        }
    }
    best
}

/// No connection came about.
pub(super) fn refusal(
    origin: &Origin,
    (address, refusal): &(Option<SocketAddr>, Refusal),
    certificate: Option<&Facts>,
    limit: Duration,
) -> Problem {
    let at = match address {
        Some(address) if origin.address().is_none() => format!(" ({})", address.ip()),
        _ => String::new(),
    };
    let silent = || {
        format!(
            "no answer over UDP in {} from port {}{at}: is QUIC blocked, or does the server speak HTTP/3 at all?",
            seconds(limit),
            origin.port
        )
    };
    Problem::of_origin(match refusal {
        Refusal::Silent => silent(),
        Refusal::NobodyListens => format!(
            "connection refused: nobody listens on UDP port {}{at}; is the port right, and does the server speak HTTP/3?",
            origin.port
        ),
        Refusal::Socket(error) => format!("cannot open a UDP socket for {}: {}", origin.host, plain(error)),
        Refusal::Http3(error) => match connection_error(error) {
            Some(inner) if inner.kind() == ConnectionErrorKind::HandshakeTimedOut => silent(),
            inner => handshake(origin, error, inner, certificate),
        },
    })
}

/// The server answered, but the handshake failed.
fn handshake(
    origin: &Origin,
    error: &http3::Error,
    inner: Option<&ConnectionError>,
    facts: Option<&Facts>,
) -> String {
    let code = inner.and_then(ConnectionError::transport_code);
    let tls = inner.and_then(ConnectionError::tls);
    if error.kind() == ErrorKind::NotHttp3
        || code == Some(NO_APPLICATION_PROTOCOL)
        || matches!(tls, Some(TlsError::NoApplicationProtocol))
    {
        return format!(
            "the server answers QUIC on port {} but does not speak HTTP/3 there (expected ALPN h3); is the port right?",
            origin.port
        );
    }
    if code == Some(UNRECOGNIZED_NAME) {
        return format!("the server has no site called {}; is the name right?", origin.host);
    }
    if let Some(TlsError::InvalidCertificate(problem)) = tls {
        return certificate(origin, problem, facts);
    }
    match inner.map(ConnectionError::kind) {
        Some(ConnectionErrorKind::Refused) => {
            "the server refuses new connections: it is overloaded or shutting down; try again later"
                .to_owned()
        }
        Some(ConnectionErrorKind::VersionMismatch) => {
            "the server speaks no version of QUIC that is known here (1 and 2)".to_owned()
        }
        _ => inner.map_or_else(|| error.to_string(), |inner| format!("cannot connect: {inner}")),
    }
}

/// The server's certificate was not accepted.
fn certificate(origin: &Origin, problem: &CertificateError, facts: Option<&Facts>) -> String {
    use CertificateError as E;
    let insecure = "--insecure goes on without the check";
    match problem {
        E::UnknownIssuer => unknown_issuer(origin, facts),
        E::Expired | E::ExpiredContext { .. } => {
            let since = facts.map(|facts| format!(" on {}", date(facts.not_after))).unwrap_or_default();
            format!("the server's certificate expired{since}; its operator has to renew it ({insecure})")
        }
        E::NotValidYet | E::NotValidYetContext { .. } => {
            let from = facts.map(|facts| format!(" before {}", date(facts.not_before))).unwrap_or_default();
            format!("the server's certificate is not valid{from}: is the clock of this machine right?")
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            let names = facts.map_or_else(
                || "another name".to_owned(),
                |facts| facts.names_in_words().escape_debug().to_string(),
            );
            format!(
                "the server's certificate is for {names}, not for {}; use a name it is for ({insecure})",
                origin.host
            )
        }
        E::Revoked => "the server's certificate has been revoked; its operator has to replace it".to_owned(),
        E::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => format!(
            "the server shows the certificate of an authority as its own; its operator has to issue one from it ({insecure})"
        ),
        other => format!("the server's certificate cannot be used: {other} ({insecure})"),
    }
}

fn unknown_issuer(origin: &Origin, facts: Option<&Facts>) -> String {
    let mut text = match facts {
        Some(facts) if facts.issuer == facts.subject => {
            "the server's certificate is signed by itself, and not trusted here".to_owned()
        }
        Some(facts) => {
            format!(
                "the server's certificate is from \"{}\", which is not trusted here",
                facts.issuer.escape_debug()
            )
        }
        None => "the server's certificate is from an authority that is not trusted here".to_owned(),
    };
    let local = local::authority_file().filter(|file| origin.is_local() && file.is_file());
    let _ = match local {
        Some(file) => {
            let word = shell_word(&file.to_string_lossy()).into_owned();
            write!(text, "; for `godwit serve` on this machine add --cacert {word}")
        }
        None => write!(text, "; to trust the authority, give its certificate with --cacert FILE"),
    };
    text
}

/// A request that failed on an established connection.
pub(super) fn exchange(error: &http3::Error) -> Problem {
    let code = error.code();
    let problem = Problem::new(match error.kind() {
        ErrorKind::Reset => match code {
            Some(ErrorCode::H3_REQUEST_REJECTED) => {
                "the server did not process the request (H3_REQUEST_REJECTED); try again".to_owned()
            }
            Some(code) => format!("the server broke off ({code}); try again, or ask its operator"),
            None => error.to_string(),
        },
        ErrorKind::GoingAway => "the server is shutting down and took no more requests; try again".to_owned(),
        ErrorKind::Connection => match connection_error(error).map(ConnectionError::kind) {
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
    });
    if error.is_retryable() { problem.unprocessed() } else { problem }
}

fn connection_error(error: &http3::Error) -> Option<&ConnectionError> {
    let mut next = error.source();
    while let Some(source) = next {
        if let Some(found) = source.downcast_ref() {
            return Some(found);
        }
        next = source.source();
    }
    None
}

/// `10 s`, `2.5 s`.
pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(host: &str) -> Origin {
        Origin { host: host.to_owned(), port: 4433 }
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
        let text = |problem| certificate(&origin("c.example"), &problem, Some(&facts()));
        let unknown = text(CertificateError::UnknownIssuer);
        assert_eq!(
            unknown,
            "the server's certificate is from \"CN=Some authority\", which is not trusted here; \
             to trust the authority, give its certificate with --cacert FILE"
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
        let text = |found| refusal(&origin("a.example"), &(address, found), None, limit);
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
    }

    #[test]
    fn an_answer_says_more_than_silence() {
        let address = SocketAddr::from(([192, 0, 2, 1], 4433));
        let refusals =
            vec![(address, Refusal::Silent), (address, Refusal::NobodyListens), (address, Refusal::Silent)];
        assert!(matches!(most_telling(refusals).1, Refusal::NobodyListens));
    }

    #[test]
    fn unknown_hosts_are_named() {
        let error = "failed to lookup address information: Name or service not known";
        assert_eq!(
            unknown_host(&origin("a.invalid"), error).to_string(),
            "no address is known for a.invalid (name or service not known); is the name right, and does DNS work here?"
        );
        assert_eq!(seconds(Duration::from_millis(2500)), "2.5 s");
    }
}
