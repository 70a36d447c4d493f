//! What goes beyond RFC 9000, in one place: datagrams, the meaningless bits of the first byte, and the
//! move to another version.

use super::Connection;
use super::header_bits::HeaderBits;
use super::versions::Versions;
use crate::datagrams::{DatagramOutcome, Datagrams, SendDatagramError};
use crate::keys::TAG_LEN;
use bytes::Bytes;
use godwit_base::Rng;
use godwit_wire::constants::MAX_PACKET_NUMBER_LEN;
use godwit_wire::{Side, Writer};

/// The components of extensions.
#[derive(Debug)]
pub(super) struct Extensions {
    pub(super) datagrams: Datagrams,
    pub(super) bits: HeaderBits,
    pub(super) versions: Versions,
}

impl Extensions {
    pub(super) fn new(
        side: Side,
        config: &crate::TransportConfig,
        versions: Versions,
        rng: &mut dyn Rng,
    ) -> Self {
        Extensions {
            datagrams: Datagrams::new(config),
            bits: HeaderBits::new(side, config.spin_bit, rng),
            versions,
        }
    }
}

impl Connection {
    /// The largest datagram that [`Connection::send_datagram`] takes now, in bytes: it follows the path's MTU
    /// and what the peer accepts. `None` if the peer takes no datagrams, or has not said so yet.
    pub fn max_datagram_len(&self) -> Option<usize> {
        self.extensions.datagrams.max_len(self.frame_room())
    }

    /// Queues a datagram (RFC 9221). It is sent once, in one packet, and may be lost. With a `tag`, its
    /// outcomes follow from [`Connection::next_datagram_outcome`].
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&mut self, data: Bytes, tag: Option<u64>) -> Result<(), SendDatagramError> {
        if !self.lifecycle.is_open() {
            return Err(SendDatagramError::Closed);
        }
        let room = self.frame_room();
        self.extensions.datagrams.queue(data, tag, room)
    }

    /// Withdraws the datagrams with this tag that have not been sent yet, and says how many those were. Each
    /// is told as cancelled.
    pub fn cancel_datagram(&mut self, tag: u64) -> usize {
        self.extensions.datagrams.cancel(tag)
    }

    /// The oldest datagram that has come and was not read. [`crate::Event::DatagramsReadable`] follows a none.
    pub fn read_datagram(&mut self) -> Option<Bytes> {
        self.extensions.datagrams.read()
    }

    /// The next thing that became of a tagged datagram. [`crate::Event::DatagramOutcomes`] follows a none.
    /// What was in flight when the connection ended has no further outcome.
    pub fn next_datagram_outcome(&mut self) -> Option<DatagramOutcome> {
        self.extensions.datagrams.next_outcome()
    }

    /// Bytes for frames in a 1-RTT packet of full size that carries nothing else.
    fn frame_room(&self) -> usize {
        let overhead = 1_usize.saturating_add(self.remote_cids.active().len());
        let overhead = overhead.saturating_add(MAX_PACKET_NUMBER_LEN).saturating_add(TAG_LEN);
        usize::from(self.paths.active().recovery.mtu()).saturating_sub(overhead)
    }

    /// Datagrams and, if there is any, stream data in one packet, in the order that their shares demand.
    pub(super) fn write_shared(&mut self, streams: bool, writer: &mut Writer<'_>) {
        let room = self.frame_room();
        let tokens = &mut self.scratch.tokens;
        let datagrams = &mut self.extensions.datagrams;
        if !streams {
            datagrams.write(room, writer, tokens);
            return;
        }
        // Stream data comes last where it can: its last frame may go without a length.
        let (sent, of_streams) = if datagrams.give_way() {
            let of_streams = self.streams.write_data(writer, tokens);
            (datagrams.write(room, writer, tokens), of_streams)
        } else {
            let sent = datagrams.write(room, writer, tokens);
            (sent, self.streams.write_data(writer, tokens))
        };
        datagrams.on_shared(sent, of_streams);
    }
}
