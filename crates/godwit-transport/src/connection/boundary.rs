//! What a connection and its endpoint tell each other.

use crate::config::{ClientConfig, ServerConfig};
use crate::path::PathKey;
use crate::resumption::{Found, Network, ServerMemory};
use bytes::Bytes;
use godwit_base::Ecn;
use godwit_recovery::SavedState;
use godwit_tls::keys::LevelKeys;
use godwit_wire::transport_parameters::PreferredAddress;
use godwit_wire::{ConnectionId, ResetToken};
use std::net::SocketAddr;
use std::sync::Arc;

/// What the endpoint gives a new client connection.
#[derive(Debug)]
pub(crate) struct ClientArgs<'a> {
    /// The settings.
    pub config: &'a ClientConfig,
    /// The version of the first packets.
    pub version: u32,
    /// What is kept for the server, if anything may be.
    pub memory: Option<Arc<ServerMemory>>,
    /// The name that the server's certificate must have.
    pub server_name: &'a str,
    /// Where the server is.
    pub path: PathKey,
    /// Our id: the Source Connection ID of the first packets.
    pub local_cid: ConnectionId,
    /// The reset token that goes with `local_cid`; a client does not announce it (RFC 9000 section 18.2).
    pub reset_token: ResetToken,
    /// The random Destination Connection ID of the first packets.
    pub initial_dcid: ConnectionId,
    /// A token from an earlier connection's NEW_TOKEN frame, for the first packets.
    pub token: Option<Bytes>,
    /// Versions spoken, in order of preference.
    pub versions: &'a [u32],
}

/// What the endpoint gives a new server connection.
#[derive(Debug)]
pub(crate) struct ServerArgs<'a> {
    /// The settings.
    pub config: Arc<ServerConfig>,
    /// The version with which to answer.
    pub version: u32,
    /// The Initial keys of that version, where they are known already.
    pub initial_keys: Option<LevelKeys>,
    /// The version of the client's packets.
    pub original_version: u32,
    /// Where the client is.
    pub path: PathKey,
    /// Our id, which goes into initial_source_connection_id.
    pub local_cid: ConnectionId,
    /// The reset token that goes with `local_cid`, for the transport parameters.
    pub reset_token: ResetToken,
    /// The Destination Connection ID of the first Initial packet to be received: the Initial keys
    /// follow from it.
    pub client_dcid: ConnectionId,
    /// The Destination Connection ID of the client's very first packet, before a Retry.
    pub original_dcid: ConnectionId,
    /// The Source Connection ID of our Retry, if there was one.
    pub retry_scid: Option<ConnectionId>,
    /// The client's Source Connection ID.
    pub peer_scid: ConnectionId,
    /// Whether a token has proved the client's address.
    pub validated: bool,
    /// What is known of the client's network.
    pub network: Network,
    /// What the client's token says of the path.
    pub saved: Option<SavedState>,
    /// A token to give to the client in a NEW_TOKEN frame.
    pub new_token: Option<Bytes>,
    /// Versions spoken, in order of preference.
    pub versions: &'a [u32],
    /// Where the client is asked to go, with a second id of ours to be used there.
    pub preferred: Option<PreferredAddress>,
}

/// What the endpoint answered to a client's first packets before there was a connection.
#[derive(Debug)]
pub(crate) struct BegunInitials {
    /// Initial packets sent, with the numbers from 0: nothing but acknowledgements.
    pub(crate) packets: u64,
    /// Their bytes.
    pub(crate) bytes: usize,
    /// Initial packets received that said nothing new, and are not received again.
    pub(crate) repeated: Vec<(u64, Ecn)>,
}

/// Whether a connection has more to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transmitted {
    /// Nothing for now: it has nothing, or waits for an acknowledgement or for its deadline.
    Idle,
    /// It stopped because the batch was full, or to give way to others.
    More,
}

/// What a connection wants of its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointEvent {
    /// It is over and its closing or draining time as well: the endpoint may forget it.
    Drained,
    /// It can announce this many more connection ids; each comes with `add_local_cid`.
    NeedCids(usize),
    /// A datagram from `remote` that ends with `token` and belongs to no connection resets this one.
    PeerResetToken {
        /// Where the peer is.
        remote: SocketAddr,
        /// The token of an id in use.
        token: ResetToken,
    },
    /// No datagram resets this connection but those that are named after this.
    ForgetResetTokens,
    /// What a server's connection has found of its client's network.
    FoundNetwork(Found),
    /// What a connection that resumes might begin with on the path of this server's connection.
    FoundPath(SavedState),
    /// It has left a path: the path's socket may be needed no more.
    PathLeft,
    /// The peer retired one of our ids: packets with it are no longer this connection's.
    RetiredCid(ConnectionId),
}
