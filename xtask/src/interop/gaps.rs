//! What peers lack: which cells of the matrix cannot pass, how that shows in a run, and the place in the peer's own
//! source or documentation that says so.
//!
//! A cell that is listed here counts as lacking only if the run shows the sign that is listed with it; anything else
//! that goes wrong there is a failure like any other. A listed cell that passes is told of too, unless the peer's fault
//! shows at times only: then the list is out of date. Places are given as `PACKAGE/FILE:LINE` of the pinned version.

use super::case::Run;
use crate::peers::install::Peer;

/// How it shows that a peer lacks a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Its program refuses the case (exit status 127).
    Refuses,
    /// The run fails, and these words are in what is said of it: a peer that is told of another case cannot refuse.
    Fails(&'static str),
    /// As before, but it depends on which packets are lost: most runs pass.
    Sometimes(&'static str),
}

/// Who is which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Client,
    Server,
    Either,
}

/// A case that a peer lacks.
#[derive(Debug)]
pub(super) struct Gap {
    peer: Peer,
    case: &'static str,
    /// The peer's.
    role: Role,
    pub(super) sign: Sign,
    /// What the peer's source says, and where.
    pub(super) source: &'static str,
}

const fn gap(peer: Peer, case: &'static str, role: Role, sign: Sign, source: &'static str) -> Gap {
    Gap { peer, case, role, sign, source }
}

/// What is said of a client that ignores the server's preferred address.
pub(super) const STAYED: &str = "the client used one path only";
/// What is said of a peer that leaves packets of the handshake without an acknowledgement.
const SILENT: &str = "the peer was silent";
/// What is said of a peer that does not send again what was lost.
const FORGOT: &str = "the peer did not repeat";

/// When much is lost, the window falls below what is in flight of Handshake or 1-RTT packets that the other end cannot
/// read yet.
const STUCK_QUINN: &str = "quinn-proto/src/connection/mod.rs:616: lost CRYPTO data waits for the window, and the space's acknowledgements with it; :1846: no probe for a space with nothing in flight";
/// More than two packets that were under way on the path that the client left.
const LEFT_QUICHE: &str = "quiche/src/recovery/congestion/recovery.rs:712: what was sent last on a path that was left is never found lost; :820: a PTO repeats its first two packets, each time the same";

const GAPS: [Gap; 25] = [
    gap(
        Peer::QuicGo,
        "v2",
        Role::Either,
        Sign::Refuses,
        "quic-go/internal/wire/transport_parameters.go:30-56: version_information (0x11) is not among the parameters",
    ),
    gap(
        Peer::QuicGo,
        "connectionmigration",
        Role::Client,
        Sign::Fails(STAYED),
        "quic-go/connection.go:2519: \"We don't support connection migration yet, so we don't have any use for the preferred_address.\"",
    ),
    gap(
        Peer::QuicGo,
        "connectionmigration",
        Role::Server,
        Sign::Refuses,
        "quic-go/interface.go:106-198: Config has no preferred address; connection.go:335: the server announces none",
    ),
    gap(
        Peer::Aioquic,
        "ecn",
        Role::Either,
        Sign::Refuses,
        "aioquic/quic/connection.py:3856: acknowledgements are QuicFrameType.ACK always; :1916: counts are read and dropped",
    ),
    gap(
        Peer::Aioquic,
        "connectionmigration",
        Role::Server,
        Sign::Refuses,
        "aioquic/quic/connection.py:3436-3466: _serialize_transport_parameters sets no preferred_address",
    ),
    gap(
        Peer::Quinn,
        "v2",
        Role::Either,
        Sign::Refuses,
        "quinn-proto/src/crypto/rustls.rs:650: interpret_version knows version 1 and drafts, the rest is UnsupportedVersion",
    ),
    gap(
        Peer::Quinn,
        "connectionmigration",
        Role::Client,
        Sign::Fails(STAYED),
        "quinn-proto/src/connection/mod.rs:3521: of a preferred address only the connection id is used",
    ),
    gap(Peer::Quinn, "handshakeloss", Role::Either, Sign::Sometimes(SILENT), STUCK_QUINN),
    gap(Peer::Quinn, "handshakecorruption", Role::Either, Sign::Sometimes(SILENT), STUCK_QUINN),
    gap(
        Peer::Quinn,
        "handshakecorruption",
        Role::Server,
        Sign::Sometimes("closed by the peer: PROTOCOL_VIOLATION: client sent Retry"),
        "quinn-proto/src/connection/mod.rs:2479: a packet damaged into a Retry, which nothing proves, ends the connection",
    ),
    gap(
        Peer::S2n,
        "resumption",
        Role::Either,
        Sign::Refuses,
        "s2n-quic-rustls/src/session.rs:264: returns once the handshake is complete, before rustls is asked for tickets",
    ),
    gap(
        Peer::S2n,
        "zerortt",
        Role::Either,
        Sign::Refuses,
        "s2n-quic-transport/src/connection/connection_impl.rs:2010: \"when we support zero-rtt\"; such packets are dropped",
    ),
    gap(
        Peer::S2n,
        "http3",
        Role::Either,
        Sign::Refuses,
        "s2n-quic/quic/s2n-quic-h3/Cargo.toml: \"for testing purposes and should not be published\"; the registry has none",
    ),
    gap(
        Peer::S2n,
        "keyupdate",
        Role::Client,
        Sign::Refuses,
        "s2n-quic-core/src/crypto/application/limited.rs:34: updates begin 10,000 packets before the AEAD's limit only",
    ),
    gap(
        Peer::S2n,
        "v2",
        Role::Either,
        Sign::Refuses,
        "s2n-quic-transport/src/endpoint/version.rs:26: SUPPORTED_VERSIONS has 0x1 only",
    ),
    gap(
        Peer::S2n,
        "connectionmigration",
        Role::Client,
        Sign::Fails(STAYED),
        "s2n-quic-transport/src/space/session_context.rs:89: on_server_params does not look at preferred_address; issues 1067 and 2887 of aws/s2n-quic (open)",
    ),
    gap(
        Peer::S2n,
        "connectionmigration",
        Role::Server,
        Sign::Refuses,
        "s2n-quic-transport/src/endpoint/initial.rs:169: the server's parameters have no preferred_address; issue 1067 of aws/s2n-quic (open)",
    ),
    gap(
        Peer::Quiche,
        "chacha20",
        Role::Client,
        Sign::Refuses,
        "quiche/src/lib.rs, Config: no setting for cipher suites, and BoringSSL has none for those of TLS 1.3",
    ),
    gap(
        Peer::Quiche,
        "keyupdate",
        Role::Client,
        Sign::Refuses,
        "quiche/src/lib.rs:3359: keys change when the peer changes them; no function begins an update",
    ),
    gap(
        Peer::Quiche,
        "ecn",
        Role::Either,
        Sign::Refuses,
        "quiche/src/lib.rs:4589: \"sending ECN is not supported at this time\"",
    ),
    gap(
        Peer::Quiche,
        "v2",
        Role::Either,
        Sign::Refuses,
        "quiche/src/lib.rs:1889: version_is_supported knows PROTOCOL_VERSION_V1 only",
    ),
    gap(Peer::Quiche, "rebind-port", Role::Server, Sign::Sometimes(FORGOT), LEFT_QUICHE),
    gap(Peer::Quiche, "rebind-addr", Role::Server, Sign::Sometimes(FORGOT), LEFT_QUICHE),
    gap(
        Peer::Quiche,
        "connectionmigration",
        Role::Client,
        Sign::Fails(STAYED),
        "quiche/src/transport_params.rs:348: \"TODO: decode preferred_address\"",
    ),
    gap(
        Peer::Quiche,
        "connectionmigration",
        Role::Server,
        Sign::Refuses,
        "quiche/src/transport_params.rs:527: \"TODO: encode preferred_address\"",
    ),
];

/// What is known to be lacking for this run; of several the one that shows in what is said of it (`why`).
pub(super) fn find(run: &Run, why: &str) -> Option<&'static Gap> {
    let listed = GAPS.iter().filter(|gap| {
        let role = match gap.role {
            Role::Either => true,
            role => (role == Role::Server) == run.client,
        };
        gap.peer == run.peer && gap.case == run.case.name && role
    });
    let shows = |gap: &&Gap| match gap.sign {
        Sign::Refuses => false,
        Sign::Fails(words) | Sign::Sometimes(words) => why.contains(words),
    };
    listed.clone().find(shows).or_else(|| listed.clone().next())
}

#[cfg(test)]
mod tests {
    use super::super::case;
    use super::*;

    #[test]
    fn every_gap_is_of_a_case_and_tells_its_source() {
        for gap in &GAPS {
            assert!(case::all().iter().any(|case| case.name == gap.case), "{gap:?}");
            assert!(gap.source.contains('/') && gap.source.contains(": "), "{gap:?}");
        }
    }

    #[test]
    fn roles_are_the_peers() {
        let found = |case: &str, client| {
            let case = case::all().into_iter().find(|known| known.name == case).unwrap();
            find(&Run { case, peer: Peer::S2n, client, turn: 0 }, "")
        };
        // Godwit as the server has the peer as the client.
        assert_eq!(found("keyupdate", false).map(|gap| gap.sign), Some(Sign::Refuses));
        assert!(found("keyupdate", true).is_none());
        assert_eq!(found("connectionmigration", false).map(|gap| gap.sign), Some(Sign::Fails(STAYED)));
        assert_eq!(found("connectionmigration", true).map(|gap| gap.sign), Some(Sign::Refuses));
        assert!(found("transfer", true).is_none());
    }

    #[test]
    fn of_several_gaps_the_one_that_shows_counts() {
        let case = case::all().into_iter().find(|known| known.name == "handshakecorruption").unwrap();
        let run = Run { case, peer: Peer::Quinn, client: true, turn: 0 };
        let words = "connection lost: closed by the peer: PROTOCOL_VIOLATION: client sent Retry";
        let source = |why: &str| find(&run, why).unwrap().source;
        assert_ne!(source(words), source("the peer was silent: 2"));
        assert_eq!(source("it broke"), source("the peer was silent: 2"));
    }
}
