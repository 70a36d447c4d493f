//! What an incoming handshake says, for applications that read it themselves.
//!
//! Nothing of it is kept: it is read once more from the datagrams that wait for the connection, which costs who asks and
//! nobody else.

use super::Incoming;
use godwit_tls::client_hello::{self, Parsed, Peek};
use godwit_tls::keys::LevelKeys;
use godwit_wire::frame::Frames;
use godwit_wire::header::{self, Packet, PacketType};
use godwit_wire::{ConnectionId, Frame, TransportParameters};
use std::net::IpAddr;
use std::ops::ControlFlow;

impl Incoming {
    /// The TLS message ClientHello with its header, as it came (RFC 8446 section 4): 16 KiB at most. The client's packets are
    /// decrypted once more for each call.
    pub fn client_hello(&self) -> Option<Vec<u8>> {
        let keys = self.keys.as_deref()?;
        let (ids, mut peek) = (self.ids(), Peek::new());
        for (_, datagram) in &self.datagrams {
            let mut copy = datagram.to_vec();
            let see = |_, payload: &[u8]| collect(&mut peek, payload);
            if open_initials(keys, &ids, &mut copy, see).is_break() {
                break;
            }
        }
        peek.message().map(<[u8]>::to_vec)
    }

    /// Whether the client asks for 1-RTT packets without protection
    /// ([`TransportConfig::danger_without_encryption`](crate::TransportConfig::danger_without_encryption)), as far as can be
    /// told before the handshake has proved what it says. The client's packets are decrypted once more for each call.
    pub fn offers_no_encryption(&self) -> bool {
        let message = self.client_hello();
        let of_version = |message| client_hello::transport_parameters(message, self.version());
        let parameters = message.as_deref().and_then(of_version);
        parameters.is_some_and(TransportParameters::offers_no_encryption)
    }

    /// The application protocols that the client offers as they came (RFC 7301 section 3.1): each with its length in one byte
    /// before it, without the length of the whole. Empty if it offers none.
    pub fn alpn_list(&self) -> Vec<u8> {
        let mut list = Vec::new();
        for name in self.alpn() {
            // None is longer: its length came in one byte.
            list.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            list.extend_from_slice(name);
        }
        list
    }

    /// The address at which the client's first packet came, if the datapath told it.
    pub fn local(&self) -> Option<IpAddr> {
        self.first.path.local
    }

    /// The Destination Connection ID of the client's very first packet, before a Retry.
    pub const fn original_dcid(&self) -> &ConnectionId {
        &self.first.original_dcid
    }

    /// The Source Connection ID of the client's packets, to which it wants to be answered.
    pub const fn peer_cid(&self) -> &ConnectionId {
        &self.first.peer_scid
    }

    /// The ids to which the packets of the handshake go.
    pub(in crate::endpoint) fn ids(&self) -> [Option<ConnectionId>; 2] {
        [Some(self.first.client_dcid), self.answered().local_cid]
    }
}

/// Takes in the CRYPTO frames of a payload, until the ClientHello is complete.
fn collect(peek: &mut Peek, payload: &[u8]) -> ControlFlow<()> {
    for frame in Frames::new(payload) {
        if let Ok(Frame::Crypto { offset, data }) = frame
            && !matches!(peek.on_crypto(offset, data), Ok(Parsed::NeedMore))
        {
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}

/// Decrypts the Initial packets of a datagram in place, one after another, and shows the number and the payload of each
/// that is authentic, until that is enough or there is something else.
pub(super) fn open_initials<B>(
    keys: &LevelKeys,
    ids: &[Option<ConnectionId>],
    datagram: &mut [u8],
    mut see: impl FnMut(u64, &[u8]) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut rest = datagram;
    while let Ok(Packet::Long { packet_type: PacketType::Initial, dcid, packet_number_offset, end, .. }) =
        header::parse(rest, 0)
    {
        let Some((packet, next)) = std::mem::take(&mut rest).split_at_mut_checked(end) else { break };
        rest = next;
        if !ids.contains(&Some(dcid)) {
            break;
        }
        let Some((_, number)) = keys.header_opener.unmask(packet, packet_number_offset) else { break };
        let payload_at = packet_number_offset.saturating_add(number.len());
        let Some((head, payload)) = packet.split_at_mut_checked(payload_at) else { break };
        let number = number.expand(0);
        let Some(len) = keys.opener.open(0, number, head, payload) else { continue };
        see(number, payload.get(..len).unwrap_or_default())?;
    }
    ControlFlow::Continue(())
}
