//! 0-RTT packets that overtook the Initial packet of their handshake (RFC 9001 section 5.7).
//!
//! Dropping them would cost the client a probe timeout. A few are kept for the whole endpoint, oldest out first:
//! nobody has to be asked, and whoever sends many only pushes out those of others.

use crate::path::PathKey;
use godwit_base::Ecn;
use godwit_wire::ConnectionId;
use std::collections::VecDeque;

/// Datagrams kept at most.
const MAX: usize = 16;
/// Larger datagrams are not kept, in bytes.
const MAX_LEN: usize = 4096;

#[derive(Debug)]
struct Stray {
    dcid: ConnectionId,
    path: PathKey,
    ecn: Ecn,
    datagram: Box<[u8]>,
}

/// Datagrams that begin with a 0-RTT packet and belong to nobody yet.
#[derive(Debug, Default)]
pub(super) struct Strays(VecDeque<Stray>);

impl Strays {
    pub(super) fn keep(&mut self, dcid: ConnectionId, path: PathKey, ecn: Ecn, datagram: &[u8]) {
        if datagram.len() > MAX_LEN {
            return;
        }
        if self.0.len() >= MAX {
            self.0.pop_front();
        }
        self.0.push_back(Stray { dcid, path, ecn, datagram: datagram.into() });
    }

    /// Takes out what came for `dcid` on this path, in order.
    pub(super) fn take(&mut self, dcid: &ConnectionId, path: &PathKey) -> Vec<(Ecn, Box<[u8]>)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let (ours, others) =
            self.0.drain(..).partition(|stray| stray.dcid == *dcid && stray.path.matches(path));
        self.0 = others;
        let ours: VecDeque<Stray> = ours;
        ours.into_iter().map(|stray| (stray.ecn, stray.datagram)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::SocketId;

    fn path(port: u16) -> PathKey {
        PathKey { socket: SocketId(0), local: None, remote: ([192, 0, 2, 1], port).into() }
    }

    #[test]
    fn what_is_kept_is_bounded_and_goes_to_its_handshake_only() {
        let cid = |n: u8| ConnectionId::new(&[n; 8]).unwrap();
        let mut strays = Strays::default();
        strays.keep(cid(1), path(1), Ecn::NotEct, &[0; 5000]);
        assert!(strays.take(&cid(1), &path(1)).is_empty(), "too large");
        for n in 0..20 {
            strays.keep(cid(n % 2), path(1), Ecn::NotEct, &[n; 100]);
        }
        assert!(strays.take(&cid(1), &path(2)).is_empty(), "from elsewhere");
        let taken = strays.take(&cid(1), &path(1));
        let numbers: Vec<u8> = taken.iter().map(|(_, datagram)| datagram[0]).collect();
        assert_eq!(numbers, [5, 7, 9, 11, 13, 15, 17, 19]);
        assert_eq!(strays.0.len(), 8);
        assert!(strays.take(&cid(1), &path(1)).is_empty());
    }

    #[test]
    fn the_largest_datagram_that_is_kept_has_4096_bytes() {
        let cid = ConnectionId::new(&[1; 8]).unwrap();
        for (len, kept) in [(4095, 1), (4096, 1), (4097, 0)] {
            let mut strays = Strays::default();
            strays.keep(cid, path(1), Ecn::NotEct, &vec![0; len]);
            assert_eq!(strays.take(&cid, &path(1)).len(), kept, "{len} bytes");
        }
    }
}
