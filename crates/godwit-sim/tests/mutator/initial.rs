//! Initial packets: their keys follow from what everybody sees (RFC 9001, section 5.2), so that whoever is between the
//! two can open and seal them.

use crate::middle;
use godwit_transport::tls::keys::{self, LevelKeys, PacketSpan};
use godwit_wire::header::{self, Packet, PacketType};
use godwit_wire::{ConnectionId, Side};

/// The keys of both directions of the connection that is being begun.
#[derive(Default)]
pub(crate) struct Initials {
    keys: Option<(LevelKeys, LevelKeys)>,
}

impl Initials {
    /// Lets the middle speak in the Initial packet with which a datagram begins, if it begins with one.
    pub(crate) fn pass(&mut self, sender: Side, datagram: &mut [u8]) {
        let Ok(Packet::Long { packet_type, version, dcid, packet_number_offset, end, .. }) =
            header::parse(datagram, 8)
        else {
            return;
        };
        if packet_type != PacketType::Initial
            || self.rewrite(sender, &mut datagram[..end], packet_number_offset)
        {
            return;
        }
        if sender == Side::Client {
            // The first of a connection, or the first after a Retry.
            self.keys = derived(version, &dcid);
            self.rewrite(sender, &mut datagram[..end], packet_number_offset);
        }
    }

    /// False if the packet cannot be opened.
    fn rewrite(&self, sender: Side, packet: &mut [u8], pn_offset: usize) -> bool {
        let Some((client, server)) = &self.keys else { return false };
        let (own, peer) = if sender == Side::Client { (client, server) } else { (server, client) };
        let mut plain = packet.to_vec();
        let Some((_, number)) = peer.header_opener.unmask(&mut plain, pn_offset) else { return false };
        // What is masked beyond the number's own length has to be as it was.
        let payload_at = pn_offset + number.len();
        plain[payload_at..].copy_from_slice(&packet[payload_at..]);
        let (header, payload) = plain.split_at_mut(payload_at);
        let full = number.expand(0);
        let Some(len) = peer.opener.open(0, full, header, payload) else { return false };
        middle::speak(sender, PacketType::Initial, &mut payload[..len]);
        own.sealer.seal(0, full, header, payload).unwrap();
        let span = PacketSpan { first: 0, pn_offset, pn_len: number.len() };
        own.header_sealer.mask_batch(&[span], &mut plain).unwrap();
        packet.copy_from_slice(&plain);
        true
    }
}

fn derived(version: u32, dcid: &ConnectionId) -> Option<(LevelKeys, LevelKeys)> {
    Some((keys::initial(version, dcid, Side::Client)?, keys::initial(version, dcid, Side::Server)?))
}
