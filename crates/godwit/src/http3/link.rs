//! A handle of an HTTP/3 connection, for all of its tasks.

use super::error::Error;
use super::io::Io;
use super::protocol::Protocol;
use crate::raw::RawConnection;
use crate::{Connection, RecvStream, SendStream};
use godwit_base::Time;
use godwit_http3::{Config, StreamId};
use std::sync::Arc;

/// What everybody who has to do with a connection shares. When the last of them is gone, the connection is
/// closed with H3_NO_ERROR.
#[derive(Debug)]
pub(super) struct Link {
    raw: RawConnection<Protocol>,
}

impl Link {
    /// Begins HTTP/3 on a connection that is complete and none of whose streams has been used.
    pub(super) fn new(connection: Connection, config: Config) -> Arc<Self> {
        let protocol = Protocol::new(connection.side(), config);
        let link = Link { raw: RawConnection::new(connection, protocol) };
        if let Some(error) = link.raw.ended() {
            link.look(|protocol, _| protocol.end = Some(Error::connection(error)));
        }
        Arc::new(link)
    }

    /// Calls `change` under the shard's lock. No handle may be used or dropped in it, and nothing that
    /// belongs to the application.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut Protocol, &mut Io<'_>) -> R) -> R {
        self.raw.with(|protocol, cx| {
            let now = cx.now();
            let mut io = Io::new(cx.connection(), now, &mut protocol.accepted);
            let result = change(protocol, &mut io);
            let accepted = io.accepted;
            protocol.settle(cx, accepted);
            result
        })
    }

    /// As [`Link::with`], for what does not concern the transport.
    pub(super) fn look<R>(&self, look: impl FnOnce(&mut Protocol, Time) -> R) -> R {
        self.raw.with(|protocol, cx| {
            let result = look(protocol, cx.now());
            let accepted = std::mem::take(&mut protocol.accepted);
            protocol.settle(cx, accepted);
            result
        })
    }

    /// Closes the connection in good order. What is under way is lost.
    pub(super) fn close(&self) {
        self.with(|protocol, io| protocol.h3.close(io));
    }

    /// The handles of a stream that the protocol has given away.
    pub(super) fn send_stream(&self, id: StreamId) -> SendStream {
        self.raw.send_stream(id)
    }

    /// The same for its other half.
    pub(super) fn recv_stream(&self, id: StreamId) -> RecvStream {
        self.raw.recv_stream(id)
    }

    /// An ordinary handle of the connection.
    pub(super) fn connection(&self) -> Connection {
        self.raw.connection()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}
