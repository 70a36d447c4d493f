//! Source ports from which nobody begins a connection: those of services that answer to anybody, with more than they were asked
//! (RFC 9308 section 8.1). Who forges such an address wants what we answer to go to one of them, and its answer to us.
//!
//! What comes from there and belongs to no connection, here or of another shard, gets no answer and begins nothing. Connections
//! that a client of ours has begun are not touched, whatever their server's port.

use std::net::SocketAddr;

/// In the order of their services.
const PORTS: [u16; 14] = [
    0, // no port at all
    17, 19, // quote of the day, character generator
    53, 5353, // DNS, multicast DNS
    111,  // port mapper
    123,  // NTP
    137, 138,   // NetBIOS: names, datagrams
    161,   // SNMP
    389,   // CLDAP
    500,   // IKE
    1900,  // SSDP
    11211, // memcached
];

/// Whether this is the address of such a service.
pub(super) fn may_be(source: &SocketAddr) -> bool {
    PORTS.contains(&source.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_told_from_others() {
        let from = |port: u16| may_be(&SocketAddr::from(([192, 0, 2, 1], port)));
        assert!([0, 53, 5353, 11211].map(from).iter().all(|is_one| *is_one));
        assert!(![1, 80, 443, 853, 4433, 11212, 65535].map(from).iter().any(|is_one| *is_one));
    }
}
