//! Datagrams, by the traits of `h3-datagram` (RFC 9297 section 2.1).

use crate::connection::Connection;
use crate::error::of_connection;
use bytes::{Buf, Bytes};
use godwit::{ConnectionPoller, SendDatagramError};
use h3_datagram::ConnectionErrorIncoming;
use h3_datagram::datagram::EncodedDatagram;
use h3_datagram::quic_traits::{
    DatagramConnectionExt, RecvDatagram, SendDatagram, SendDatagramErrorIncoming,
};
use std::task::{Context, Poll};

/// Sends datagrams. One for which there is no room in the queue is lost, as if the network had lost it
/// ([`godwit::DatagramConfig`] says which of them goes).
#[derive(Debug, Clone)]
pub struct SendDatagrams {
    connection: godwit::Connection,
}

impl<B: Buf> SendDatagram<B> for SendDatagrams {
    fn send_datagram<T: Into<EncodedDatagram<B>>>(
        &mut self,
        data: T,
    ) -> Result<(), SendDatagramErrorIncoming> {
        let mut data: EncodedDatagram<B> = data.into();
        match self.connection.send_datagram(data.copy_to_bytes(data.remaining())) {
            Ok(()) | Err(SendDatagramError::Full) => Ok(()),
            Err(SendDatagramError::TooLarge { .. }) => Err(SendDatagramErrorIncoming::TooLarge),
            Err(_) => Err(match self.connection.close_reason() {
                Some(reason) => SendDatagramErrorIncoming::ConnectionError(of_connection(reason)),
                None => SendDatagramErrorIncoming::NotAvailable,
            }),
        }
    }
}

/// Receives the datagrams of all requests of a connection.
#[derive(Debug, Clone)]
pub struct ReceiveDatagrams {
    poller: ConnectionPoller,
}

impl RecvDatagram for ReceiveDatagrams {
    type Buffer = Bytes;

    fn poll_incoming_datagram(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, ConnectionErrorIncoming>> {
        self.poller.poll_read_datagram(cx).map_err(of_connection)
    }
}

impl<B: Buf> DatagramConnectionExt<B> for Connection {
    type SendDatagramHandler = SendDatagrams;
    type RecvDatagramHandler = ReceiveDatagrams;

    fn send_datagram_handler(&self) -> SendDatagrams {
        SendDatagrams { connection: self.poller.connection().clone() }
    }

    fn recv_datagram_handler(&self) -> ReceiveDatagrams {
        ReceiveDatagrams { poller: self.poller.clone() }
    }
}
