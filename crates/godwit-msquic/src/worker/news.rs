//! What there is to tell the application. It is put in a queue while a shard is locked, and told when it is not.

use super::gate::Opening;
use crate::abi::{DatagramSendState, Status};
use crate::context::Context;
use bytes::Bytes;
use godwit_base::slab::Key;
use godwit_transport::IncomingKey;

/// One thing to tell, and to whom.
#[derive(Debug)]
pub(crate) enum News {
    /// A client wants to connect.
    Incoming(IncomingKey),
    /// To a connection.
    Connection(Key, ConnectionNews),
    /// To a stream, of the connection that comes first.
    Stream(Key, Key, StreamNews),
}

/// Whose news are to be told.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TurnOf {
    /// Everybody's.
    All,
    /// A connection's, and its streams'.
    Connection(Key),
    /// A stream's.
    Stream(Key),
}

/// What a connection is told.
#[derive(Debug)]
pub(crate) enum ConnectionNews {
    /// A server's handle is with the application: there is nothing to tell yet, but the handshake goes on.
    Connected { resumed: bool, alpn: Bytes },
    /// It ends, because of this end or the network.
    ShutdownByTransport { status: Status, code: u64 },
    /// The peer's application ends it.
    ShutdownByPeer { code: u64 },
    /// It is over.
    ShutdownComplete,
    /// The own address has changed.
    LocalAddressChanged,
    /// The peer's address has changed.
    PeerAddressChanged,
    /// The peer has begun this stream.
    PeerStreamStarted(Key),
    /// So many more streams can be opened.
    StreamsAvailable,
    /// The peer would open more streams.
    PeerNeedsStreams { bidirectional: bool },
    /// Datagrams can be sent, and how large they may be.
    DatagramStateChanged { enabled: bool, max: u16 },
    /// Datagrams have come.
    DatagramsReceived,
    /// This has become of a datagram.
    DatagramSendState { context: Context, state: DatagramSendState },
    /// The client resumes a session, about which this was remembered.
    Resumed { data: Bytes },
    /// The server has sent a ticket.
    TicketReceived { ticket: Bytes },
    /// The peer has shown its certificate, and waits for what is said about it.
    PeerCertificate,
    /// Whether this end tells the peer its time, and the peer this end.
    OneWayDelayNegotiated { sends: bool, receives: bool },
    /// Whether both ends can reset streams reliably.
    ReliableResetNegotiated { negotiated: bool },
    /// What congestion control knows, now that something was acknowledged.
    NetworkStatistics,
    /// Somebody waits until all that came before has been told, and what there is to send was sent.
    CaughtUp(Opening),
    /// The application has closed the handle: nothing follows.
    HandleClosed,
}

/// What a stream is told.
#[derive(Debug)]
pub(crate) enum StreamNews {
    /// It has begun, or has not.
    StartComplete { status: Status, id: u64, accepted: bool },
    /// The peer permits it now.
    PeerAccepted,
    /// There may be something to receive.
    Receive,
    /// The memory of a send is the application's again.
    SendComplete { canceled: bool, context: Context, is_urgent: bool },
    /// The peer has sent all, and it was received.
    PeerSendShutdown,
    /// The peer has given up sending.
    PeerSendAborted { code: u64 },
    /// Something sent was lost, and the stream is to be given up for that, with the code that is answered.
    CanceledOnLoss,
    /// The peer does not read on.
    PeerReceiveAborted { code: u64 },
    /// Nothing more is sent.
    SendShutdownComplete { graceful: bool },
    /// It is over.
    ShutdownComplete,
    /// So much has come for which the application has provided no memory.
    ReceiveBufferNeeded(u64),
    /// So much should be under way.
    IdealSendBufferSize(u64),
    /// The application has closed the handle: nothing follows.
    HandleClosed,
}
