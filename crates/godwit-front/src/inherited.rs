//! Sockets that this process did not open itself.
//!
//! Either a service manager did (systemd's socket activation, `sd_listen_fds(3)`), or the process was started by an
//! older one of the same program whose place it is to take ([`super::successor`]). They take the place of those that
//! would be bound otherwise, where their address is one that is to be served. So the server needs no privilege for low
//! ports, and a restart refuses nobody: connections wait in the socket meanwhile.

use std::net::{SocketAddr, TcpListener, UdpSocket};

use godwit_certificates::Notices;
use listenfd::ListenFd;

use crate::FrontError;

#[cfg(target_os = "linux")]
pub(super) use godwit::Inheritance;

/// Elsewhere there is no older process.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) enum Inheritance {}

/// What a TCP listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Sites,
    /// Plain HTTP that leads to HTTPS.
    Plain,
    Metrics,
}

impl Role {
    #[cfg(target_os = "linux")]
    const ALL: [Role; 3] = [Role::Sites, Role::Plain, Role::Metrics];

    /// What a successor knows it by.
    #[cfg(target_os = "linux")]
    pub(super) fn name(self, is_lent: bool) -> String {
        let name = match self {
            Role::Sites => "TCP",
            Role::Plain => "plain HTTP",
            Role::Metrics => "metrics",
        };
        if is_lent { format!("lent {name}") } else { name.to_owned() }
    }
}

/// A listening socket.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) listener: TcpListener,
    /// It is the service manager's.
    pub(super) is_lent: bool,
    address: SocketAddr,
    /// What the older process had it for.
    role: Option<Role>,
}

/// Those that nobody has taken yet.
#[derive(Debug, Default)]
pub struct Inherited {
    tcp: Vec<Listening>,
    /// Of the service manager.
    udp: Vec<(SocketAddr, UdpSocket)>,
    /// Of the older process, with all that belongs to them.
    endpoints: Vec<Inheritance>,
    /// The older process's TLS sessions.
    sessions: Vec<u8>,
    /// There is an older process.
    takes_over: bool,
}

/// The older process, if this one is to take its place.
#[derive(Debug, Default)]
pub struct Before {
    #[cfg(target_os = "linux")]
    told: Vec<godwit::Predecessor>,
}

impl Before {
    /// Whether there is one.
    pub fn exists(&self) -> bool {
        #[cfg(target_os = "linux")]
        return !self.told.is_empty();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Says that this process is going to end, and why.
    pub fn give_up(&self, why: &str) {
        #[cfg(target_os = "linux")]
        self.told.iter().for_each(|before| before.give_up(why));
        #[cfg(not(target_os = "linux"))]
        let _ = why;
    }
}

impl Inherited {
    /// All that was handed to this process; nothing where nothing was.
    ///
    /// # Errors
    /// If what an older process says makes no sense.
    pub fn take() -> Result<(Inherited, Before), FrontError> {
        let mut inherited = Inherited::default();
        let mut passed = ListenFd::from_env();
        for index in 0..passed.len() {
            if let Ok(Some(listener)) = passed.take_tcp_listener(index) {
                inherited.add(listener, true, None);
            } else if let Ok(Some(socket)) = passed.take_udp_socket(index) {
                inherited.udp.extend(socket.local_addr().ok().map(|address| (address, socket)));
            }
        }
        let before = inherited.take_from_process()?;
        Ok((inherited, before))
    }

    #[cfg(target_os = "linux")]
    fn take_from_process(&mut self) -> Result<Before, FrontError> {
        let failed = |error: std::io::Error| {
            let problem = godwit_text::plain_error(&error);
            FrontError::new(format!("cannot take over from the process before: {problem}"))
        };
        self.endpoints = Inheritance::all_from_env().map_err(failed)?;
        let Some(first) = self.endpoints.first_mut() else { return Ok(Before::default()) };
        self.takes_over = true;
        let mut listeners = Vec::new();
        for (role, is_lent) in Role::ALL.into_iter().flat_map(|role| [(role, false), (role, true)]) {
            let passed = first.take_descriptors(&role.name(is_lent)).into_iter();
            listeners.extend(passed.map(|passed| (TcpListener::from(passed), is_lent, role)));
        }
        let sessions = first.take_descriptors(super::sessions::SESSIONS).pop();
        self.sessions = sessions.map(super::sessions::read_sessions).unwrap_or_default();
        for (listener, is_lent, role) in listeners {
            self.add(listener, is_lent, Some(role));
        }
        let told = self.endpoints.iter().map(Inheritance::predecessor).collect::<Result<_, _>>();
        Ok(Before { told: told.map_err(failed)? })
    }

    #[cfg(not(target_os = "linux"))]
    fn take_from_process(&mut self) -> Result<Before, FrontError> {
        Ok(Before::default())
    }

    fn add(&mut self, listener: TcpListener, is_lent: bool, role: Option<Role>) {
        let Ok(address) = listener.local_addr() else { return };
        self.tcp.push(Listening { listener, is_lent, address, role });
    }

    /// The listener for an address. Any port will do where any is wanted and the older process had it for the same.
    pub(super) fn tcp(&mut self, wanted: SocketAddr, role: Role) -> Option<Listening> {
        let any = |found: &Listening| {
            wanted.port() == 0 && found.role == Some(role) && found.address.ip() == wanted.ip()
        };
        let found = self.tcp.iter().position(|found| serves(found.address, wanted) || any(found))?;
        Some(self.tcp.remove(found))
    }

    /// The service manager's sockets for an address: several share it where there are several shards.
    pub(super) fn udp(&mut self, wanted: SocketAddr) -> Vec<UdpSocket> {
        self.udp.extract_if(.., |(address, _)| serves(*address, wanted)).map(|(_, socket)| socket).collect()
    }

    /// What the older process has for an address. Its name says what it was asked for.
    #[cfg(target_os = "linux")]
    pub(super) fn endpoint(&mut self, wanted: SocketAddr) -> Option<Inheritance> {
        let found = self.endpoints.iter().position(|endpoint| {
            let addresses = endpoint.local_addrs().unwrap_or_default();
            endpoint.name() == wanted.to_string()
                || addresses.into_iter().any(|address| serves(address, wanted))
        })?;
        Some(self.endpoints.remove(found))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn endpoint(&mut self, _: SocketAddr) -> Option<Inheritance> {
        self.endpoints.pop()
    }

    /// The older process's TLS sessions; empty if there are none.
    pub(super) fn sessions(&self) -> &[u8] {
        &self.sessions
    }

    /// Does without what nobody wanted. Returns whether an older process is to be taken over from.
    pub(super) fn leave_rest(self, notices: &Notices) -> bool {
        for socket in self.left() {
            notices.say(&format!(
                "warning: the service manager opened {socket}, which `listen` does not name; add it there"
            ));
        }
        #[cfg(target_os = "linux")]
        for endpoint in self.endpoints {
            // One that has died need not know.
            let _ = endpoint.decline();
        }
        self.takes_over
    }

    /// What is the service manager's and nobody wanted, in words.
    fn left(&self) -> Vec<String> {
        let tcp = self.tcp.iter().filter(|tcp| tcp.is_lent).map(|tcp| format!("TCP {}", tcp.address));
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
        let udp = udp.iter().map(|address| UdpSocket::bind(address).unwrap());
        let mut inherited = Inherited {
            udp: udp.map(|socket| (socket.local_addr().unwrap(), socket)).collect(),
            ..Inherited::default()
        };
        inherited.add(TcpListener::bind(tcp).unwrap(), true, None);
        inherited
    }

    #[test]
    fn sockets_are_found_by_their_address_once() {
        let mut inherited = with("127.0.0.1:0", &["127.0.0.1:0", "127.0.0.1:0"]);
        let (tcp, udp) = (inherited.tcp[0].address, inherited.udp[1].0);
        assert!(inherited.tcp("127.0.0.1:1".parse().unwrap(), Role::Sites).is_none());
        assert_eq!(inherited.tcp(tcp, Role::Sites).unwrap().listener.local_addr().unwrap(), tcp);
        assert!(inherited.tcp(tcp, Role::Sites).is_none());
        assert_eq!(inherited.udp(udp).len(), 1);
        assert_eq!(inherited.left(), [format!("UDP {}", inherited.udp[0].0)]);
    }

    #[test]
    fn any_port_is_the_one_that_was_had_for_the_same() {
        let mut inherited = with("127.0.0.1:0", &[]);
        inherited.add(TcpListener::bind("127.0.0.1:0").unwrap(), false, Some(Role::Metrics));
        let had = inherited.tcp[1].address;
        let any = "127.0.0.1:0".parse().unwrap();
        assert!(inherited.tcp(any, Role::Plain).is_none());
        assert!(inherited.tcp("[::1]:0".parse().unwrap(), Role::Metrics).is_none());
        assert_eq!(inherited.left().len(), 1, "the own one is nobody else's affair");
        assert_eq!(inherited.tcp(any, Role::Metrics).unwrap().address, had);
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
