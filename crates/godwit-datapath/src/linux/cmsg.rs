//! Control messages: what the kernel gives and is given beside a datagram's bytes.
//!
//! They are written and read as plain bytes after the kernel's own layout: a length of the machine's
//! word size that counts the header too, level and type as `int`, the data, padding to the word size.

use super::field::Field;
use crate::address;
use godwit_base::Ecn;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr};

const WORD: usize = size_of::<usize>();
const HEADER: usize = WORD + 8;
/// Room for everything that is asked for: packet info, TOS or traffic class, GRO size, drop count, for both
/// families at once.
const CONTROL_LEN: usize = 192;

/// The number of the socket option for departure times, and of the control message (`SO_TXTIME`, `SCM_TXTIME`), which
/// `libc` does not name.
pub(super) const TXTIME: i32 =
    if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) { 0x3f } else { 61 };

/// A buffer of control messages.
pub(super) type Control = Field<CONTROL_LEN>;

impl Control {
    /// Forgets all messages.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends a message. There is room for all that [`Control::write`] ever appends.
    fn push<const LEN: usize>(&mut self, level: i32, kind: i32, data: &[u8; LEN]) {
        let padded = LEN.next_multiple_of(WORD);
        let Some(place) = self.bytes.get_mut(self.len..) else { return };
        let Some((header, place)) = place.split_first_chunk_mut::<HEADER>() else { return };
        let Some(place) = place.get_mut(..padded) else { return };
        header[..WORD].copy_from_slice(&(HEADER + LEN).to_ne_bytes());
        header[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        header[WORD + 4..].copy_from_slice(&kind.to_ne_bytes());
        let (bytes, padding) = place.split_at_mut(LEN);
        bytes.copy_from_slice(data);
        padding.fill(0);
        self.len += HEADER + padded;
    }

    /// Writes what has to be told for a datagram, or several of `segment` bytes each, to an address of the
    /// given family.
    pub(super) fn write(&mut self, v4: bool, class: u8, source: Option<IpAddr>, segment: Option<u16>) {
        self.clear();
        if class != 0 {
            let tos = i32::from(class).to_ne_bytes();
            match v4 {
                true => self.push(libc::IPPROTO_IP, libc::IP_TOS, &tos),
                false => self.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &tos),
            }
        }
        match source {
            Some(IpAddr::V4(ip)) => {
                // in_pktinfo: interface index (none), address to send from, destination (not read).
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&ip.octets());
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Some(ip @ IpAddr::V6(_)) => {
                // in6_pktinfo: address to send from, interface index (none).
                let mut info = [0; 20];
                info[..16].copy_from_slice(&address::ipv6_octets(ip));
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            None => {}
        }
        if let Some(segment) = segment {
            self.push(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
        }
    }

    /// Tells when what has been described leaves, in nanoseconds of the socket's clock for that.
    pub(super) fn push_departure(&mut self, at: u64) {
        self.push(libc::SOL_SOCKET, TXTIME, &at.to_ne_bytes());
    }

    /// Reads what the kernel told.
    pub(super) fn read(&self) -> ControlInfo {
        let mut info = ControlInfo::default();
        let mut rest = self.bytes();
        while let Some((level, kind, data, after)) = split_message(rest) {
            info.add(level, kind, data);
            rest = after;
        }
        info
    }

    /// Reads the error number and the origin of an entry of the error queue (`sock_extended_err`).
    pub(super) fn read_error(&self) -> Option<(i32, u8)> {
        let mut rest = self.bytes();
        while let Some((level, kind, data, after)) = split_message(rest) {
            if matches!(
                (level, kind),
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
            ) {
                return Some((int(data)?, *data.get(4)?));
            }
            rest = after;
        }
        None
    }
}

/// Level, type and data of the first message, and what follows it.
fn split_message(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let len = usize::from_ne_bytes(*bytes.first_chunk()?);
    let level = i32::from_ne_bytes(*bytes.get(WORD..)?.first_chunk()?);
    let kind = i32::from_ne_bytes(*bytes.get(WORD + 4..)?.first_chunk()?);
    let data = bytes.get(HEADER..len)?;
    let after = bytes.get(len.next_multiple_of(WORD)..).unwrap_or_default();
    Some((level, kind, data, after))
}

/// What control messages say of a received run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ControlInfo {
    pub(super) ecn: Ecn,
    pub(super) local: Option<IpAddr>,
    /// Size of the datagrams, if several were merged.
    pub(super) stride: Option<usize>,
    /// Datagrams dropped at this socket so far, modulo 2^32; absent while there are none.
    pub(super) drops: Option<u32>,
}

impl ControlInfo {
    fn add(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            // One byte, although it is set with an int.
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                self.ecn = data.first().map(|tos| Ecn::from_tos(*tos)).unwrap_or_default()
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                self.ecn = int(data).map(|class| Ecn::from_tos(class as u8)).unwrap_or_default();
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let octets = data.get(8..).and_then(|rest| rest.first_chunk::<4>());
                self.local = octets.map(|octets| IpAddr::V4(Ipv4Addr::from(*octets)));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                self.local = data.first_chunk::<16>().map(|octets| address::from_ipv6_octets(*octets));
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                self.stride = int(data).and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0);
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => self.drops = int(data).map(|drops| drops as u32),
            _ => {}
        }
    }
}

fn int(data: &[u8]) -> Option<i32> {
    data.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_one_another() {
        let mut control = Control::default();
        control.push(libc::IPPROTO_IP, libc::IP_TOS, &[0b10]);
        control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &[1, 0, 0, 0, 127, 0, 0, 9, 127, 0, 0, 2]);
        control.push(libc::SOL_UDP, libc::UDP_GRO, &1200i32.to_ne_bytes());
        control.push(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &u32::MAX.to_ne_bytes());
        let info = control.read();
        let local = "127.0.0.2".parse().ok();
        assert_eq!(info, ControlInfo { ecn: Ecn::Ect0, local, stride: Some(1200), drops: Some(u32::MAX) });
    }

    #[test]
    fn everything_for_one_datagram_fits() {
        let mut control = Control::default();
        control.write(false, 0xbb, Some("2001:db8::1".parse().unwrap()), Some(1200));
        control.push_departure(7);
        let kinds: Vec<_> = std::iter::successors(split_message(control.bytes()), |m| split_message(m.3))
            .map(|(level, kind, data, _)| (level, kind, data.len()))
            .collect();
        let expected = [
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, 4),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, 20),
            (libc::SOL_UDP, libc::UDP_SEGMENT, 2),
            (libc::SOL_SOCKET, TXTIME, 8),
        ];
        assert_eq!(kinds, expected);
        control.write(true, 0, None, None);
        assert!(control.bytes().is_empty(), "nothing to tell, nothing told");
    }

    #[test]
    fn mapped_addresses_are_read_as_ipv4() {
        let mut control = Control::default();
        let octets = address::ipv6_octets("192.0.2.7".parse().unwrap());
        let mut info = [0; 20];
        info[..16].copy_from_slice(&octets);
        control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        assert_eq!(control.read().local, "192.0.2.7".parse().ok());
    }

    #[test]
    fn nonsense_ends_the_reading() {
        let mut control = Control::default();
        control.space().fill(0xff);
        control.set_len(64);
        assert_eq!(control.read(), ControlInfo::default());
        control.space().fill(0);
        control.set_len(64);
        assert_eq!(control.read(), ControlInfo::default());
    }
}
