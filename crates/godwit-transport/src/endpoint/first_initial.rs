//! A client's first Initial packet, and what it has been answered before there is a connection.

use super::source::Source;
use crate::path::PathKey;
use godwit_recovery::SavedState;
use godwit_wire::ConnectionId;

/// What a client's first Initial packet says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstInitial {
    /// Where it came from.
    pub(super) path: PathKey,
    /// The networks of that address.
    pub(super) source: Source,
    /// Its version.
    pub(super) version: u32,
    /// Its Destination Connection ID.
    pub(super) client_dcid: ConnectionId,
    /// The Destination Connection ID before a Retry.
    pub(super) original_dcid: ConnectionId,
    /// The Source Connection ID of the Retry that it answers.
    pub(super) retry_scid: Option<ConnectionId>,
    /// Its Source Connection ID.
    pub(super) peer_scid: ConnectionId,
    /// Whether it carries a token that proves the address.
    pub(super) validated: bool,
    /// What an earlier connection has found of the path, as that token has it.
    pub(super) saved: Option<SavedState>,
}

/// How a client has been answered before there is a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Answered {
    /// Our id, if the client has been told one.
    pub(super) local_cid: Option<ConnectionId>,
    /// Initial packets sent, with the numbers from 0.
    pub(super) packets: u64,
    /// Their bytes.
    pub(super) bytes: usize,
}
