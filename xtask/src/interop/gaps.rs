//! What peers lack: which cells of the matrix cannot pass, how that shows in a run, and the place in the peer's own
//! source or documentation that says so.
//!
//! A cell that is listed here counts as lacking only if the run shows the sign that is listed with it; anything else
//! that goes wrong there is a failure like any other. A listed cell that passes is told of too: then the list is out
//! of date. Places are given as `PACKAGE/FILE:LINE` of the pinned version.

use super::run::Run;
use crate::peers::install::Peer;

/// How it shows that a peer lacks a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Its program refuses the case (exit status 127).
    Refuses,
    /// The run fails, and these words are in what is said of it: a peer that is told of another case cannot refuse.
    Fails(&'static str),
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

const GAPS: [Gap; 20] = [
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
        "quic-go/interface.go: Config has no preferred address; connection.go sets none in its TransportParameters",
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
        "aioquic/quic/connection.py, _serialize_transport_parameters: sets no preferred_address",
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
    gap(
        Peer::S2n,
        "resumption",
        Role::Either,
        Sign::Refuses,
        "s2n-quic-rustls/src/session.rs:266: returns once the handshake is complete, before rustls is asked for tickets",
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
        "s2n-quic-transport/src/endpoint/version.rs:28: SUPPORTED_VERSIONS has 0x1 only",
    ),
    gap(
        Peer::S2n,
        "connectionmigration",
        Role::Client,
        Sign::Fails(STAYED),
        "github.com/aws/s2n-quic/issues/1067 (open): \"Support Server's Preferred Address\"; issues/2887 (open): clients cannot move",
    ),
    gap(
        Peer::S2n,
        "connectionmigration",
        Role::Server,
        Sign::Refuses,
        "github.com/aws/s2n-quic/issues/1067 (open): \"Support Server's Preferred Address\", server work not done",
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

/// What is known to be lacking for this run.
pub(super) fn find(run: &Run) -> Option<&'static Gap> {
    GAPS.iter().find(|gap| {
        let role = match gap.role {
            Role::Either => true,
            role => (role == Role::Server) == run.client,
        };
        gap.peer == run.peer && gap.case == run.case.name && role
    })
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
            find(&Run { case, peer: Peer::S2n, client })
        };
        // Godwit as the server has the peer as the client.
        assert_eq!(found("keyupdate", false).map(|gap| gap.sign), Some(Sign::Refuses));
        assert!(found("keyupdate", true).is_none());
        assert_eq!(found("connectionmigration", false).map(|gap| gap.sign), Some(Sign::Fails(STAYED)));
        assert_eq!(found("connectionmigration", true).map(|gap| gap.sign), Some(Sign::Refuses));
        assert!(found("transfer", true).is_none());
    }
}
