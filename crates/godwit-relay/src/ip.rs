//! The little that a router reads in an IPv4 packet (RFC 791), and the one thing that it writes: the ECN codepoint (RFC
//! 3168) and the checksum that goes with it.

use godwit_base::Ecn;

use crate::{Flow, Packet, Way};

const TOS: usize = 1;
const PROTOCOL: usize = 9;
const CHECKSUM: usize = 10;

/// What a link is to know of the packet in `bytes`, which goes this way; `None` if it is not IPv4.
pub(crate) fn read(way: Way, bytes: &[u8]) -> Option<Packet> {
    let first = *bytes.first()?;
    let ecn = Ecn::from_tos(*bytes.get(TOS)?);
    if first >> 4 != 4 {
        return None;
    }
    let header = usize::from(first & 0xf) * 4;
    Some(Packet { way, flow: flow(way, bytes, header), bytes: bytes.len(), ecn })
}

fn flow(way: Way, bytes: &[u8], header: usize) -> Option<Flow> {
    let protocol = *bytes.get(PROTOCOL)?;
    if protocol != Flow::TCP && protocol != Flow::UDP {
        return None;
    }
    let at = if way == Way::Up { header } else { header.saturating_add(2) };
    let port = bytes.get(at..)?.first_chunk()?;
    Some(Flow { protocol, client_port: u16::from_be_bytes(*port) })
}

/// Writes the codepoint, and corrects the header's checksum (RFC 1624).
pub(crate) fn mark(bytes: &mut [u8], ecn: Ecn) {
    let Some([tos, new]) = bytes.get(TOS).map(|tos| [*tos, *tos & !0b11 | ecn.bits()]) else { return };
    if let Some(sum) = bytes.get_mut(CHECKSUM..).and_then(<[u8]>::first_chunk_mut) {
        // The TOS is the lower half of its 16 bits: HC' = ~(~HC + ~m + m').
        let sixteen = [!u16::from_be_bytes(*sum), !u16::from(tos), u16::from(new)];
        let mut total: u32 = sixteen.into_iter().map(u32::from).sum();
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        *sum = (!(total as u16)).to_be_bytes();
    }
    if let Some(tos) = bytes.get_mut(TOS) {
        *tos = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_told_apart_by_the_clients_port() {
        let mut packet = vec![0; 40];
        (packet[0], packet[9]) = (0x46, 6);
        packet[24..28].copy_from_slice(&[0x27, 0x10, 0x01, 0xbb]);
        let flow = |way, packet: &[u8]| {
            read(way, packet).map(|packet| packet.flow.map(|flow| (flow.protocol, flow.client_port)))
        };
        assert_eq!(flow(Way::Up, &packet), Some(Some((6, 10_000))));
        assert_eq!(flow(Way::Down, &packet), Some(Some((6, 443))));
        packet[9] = 1;
        assert_eq!(flow(Way::Up, &packet), Some(None));
        (packet[0], packet[9]) = (0x60, 17);
        assert_eq!(flow(Way::Up, &packet), None);
        assert_eq!(flow(Way::Up, &[]), None);
        assert_eq!(flow(Way::Up, &[0x4f; 21]), Some(None));
    }

    #[test]
    fn checksums_follow_marks() {
        fn sum(header: &[u8]) -> u16 {
            let total: u32 = header.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
            !(((total & 0xffff) + (total >> 16)) as u16)
        }
        for tos in 0..=255_u8 {
            for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let mut header =
                    [0x45, tos, 0x05, 0xdc, 1, 2, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2];
                let right = sum(&header);
                header[10..12].copy_from_slice(&right.to_be_bytes());
                mark(&mut header, ecn);
                assert_eq!((header[1] >> 2, Ecn::from_tos(header[1])), (tos >> 2, ecn));
                assert_eq!(sum(&header), 0, "{tos:#x} {ecn:?}");
            }
        }
    }
}
