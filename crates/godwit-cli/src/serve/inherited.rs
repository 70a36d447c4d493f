//! Sockets that a service manager opened for this process (systemd's socket activation, `sd_listen_fds(3)`).
//!
//! They take the place of those that would be bound otherwise, where their address is one that is to be served. So the
//! server needs no privilege for low ports, and a restart refuses nobody: connections wait in the socket meanwhile.

use std::net::{SocketAddr, TcpListener, UdpSocket};

use listenfd::ListenFd;

/// Those that nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    tcp: Vec<(SocketAddr, TcpListener)>,
    udp: Vec<(SocketAddr, UdpSocket)>,
}

impl Inherited {
    /// All that were handed to this process; none where nothing was.
    pub(super) fn take() -> Inherited {
        let mut passed = ListenFd::from_env();
        let mut inherited = Inherited::default();
        for index in 0..passed.len() {
            if let Ok(Some(listener)) = passed.take_tcp_listener(index) {
                inherited.tcp.extend(listener.local_addr().ok().map(|address| (address, listener)));
            } else if let Ok(Some(socket)) = passed.take_udp_socket(index) {
                inherited.udp.extend(socket.local_addr().ok().map(|address| (address, socket)));
            }
        }
        inherited
    }

    /// The listener for an address.
    pub(super) fn tcp(&mut self, wanted: SocketAddr) -> Option<TcpListener> {
        let found = self.tcp.iter().position(|(address, _)| serves(*address, wanted))?;
        Some(self.tcp.swap_remove(found).1)
    }

    /// The sockets for an address: several share it where there are several shards.
    pub(super) fn udp(&mut self, wanted: SocketAddr) -> Vec<UdpSocket> {
        self.udp.extract_if(.., |(address, _)| serves(*address, wanted)).map(|(_, socket)| socket).collect()
    }

    /// What nobody wanted, in words.
    pub(super) fn left(&self) -> Vec<String> {
        let tcp = self.tcp.iter().map(|(address, _)| format!("TCP {address}"));
        tcp.chain(self.udp.iter().map(|(address, _)| format!("UDP {address}"))).collect()
    }
}

/// Whether a socket bound to `address` does what one bound to `wanted` would.
fn serves(address: SocketAddr, wanted: SocketAddr) -> bool {
    let any = address.ip().is_unspecified() && wanted.ip().is_unspecified();
    address.port() == wanted.port() && (address.ip() == wanted.ip() || any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(tcp: &str, udp: &[&str]) -> Inherited {
        let tcp = TcpListener::bind(tcp).unwrap();
        let udp = udp.iter().map(|address| UdpSocket::bind(address).unwrap());
        Inherited {
            tcp: vec![(tcp.local_addr().unwrap(), tcp)],
            udp: udp.map(|socket| (socket.local_addr().unwrap(), socket)).collect(),
        }
    }

    #[test]
    fn sockets_are_found_by_their_address_once() {
        let mut inherited = with("127.0.0.1:0", &["127.0.0.1:0", "127.0.0.1:0"]);
        let (tcp, udp) = (inherited.tcp[0].0, inherited.udp[1].0);
        assert!(inherited.tcp("127.0.0.1:1".parse().unwrap()).is_none());
        assert_eq!(inherited.tcp(tcp).unwrap().local_addr().unwrap(), tcp);
        assert!(inherited.tcp(tcp).is_none());
        assert_eq!(inherited.udp(udp).len(), 1);
        assert_eq!(inherited.left(), [format!("UDP {}", inherited.udp[0].0)]);
    }

    #[test]
    fn all_addresses_are_all_addresses() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert!(serves(address("[::]:443"), address("0.0.0.0:443")));
        assert!(serves(address("[::]:443"), address("[::]:443")));
        assert!(!serves(address("[::]:443"), address("[::]:80")));
        assert!(!serves(address("127.0.0.1:443"), address("[::]:443")));
    }
}
