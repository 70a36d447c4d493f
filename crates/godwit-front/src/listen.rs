//! Binds a port for UDP and TCP alike: HTTP/3 is found through the port on which HTTP/2 is spoken.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};

use super::address::{DEFAULT_PORT, default_address};
use super::h3;
use super::inherited::{Inherited, Listening, Role};
use crate::FrontError;
use godwit_text::plain_error;

/// With port 0 the system picks a UDP port that may be taken for TCP: how often to ask for another.
const ATTEMPTS: usize = 32;
/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// One address with both its sockets.
pub(super) struct Listener {
    /// As bound: the port is never 0.
    pub(super) address: SocketAddr,
    pub(super) udp: h3::Socket,
    pub(super) tcp: Tcp,
}

/// A listening TCP socket. Whoever accepts has the only strong reference.
pub(super) struct Tcp {
    pub(super) listener: Arc<tokio::net::TcpListener>,
    /// Whether a service manager keeps it for whoever serves next: what waits in it is not lost at the end.
    pub(super) is_lent: bool,
}

/// Binds every address, or the default one; all or none. What was handed over is used in place of new sockets.
pub(super) fn bind(
    addresses: &[SocketAddr],
    inherited: &mut Inherited,
    options: &h3::Options,
) -> Result<Vec<Listener>, FrontError> {
    if addresses.is_empty() {
        return Ok(vec![bind_default(inherited, options)?]);
    }
    let bind = |address: &SocketAddr| bind_one(*address, inherited, options).map_err(Refused::explain);
    addresses.iter().map(bind).collect()
}

/// Binds every address for TCP alone.
pub(super) fn bind_plain(
    addresses: &[SocketAddr],
    inherited: &mut Inherited,
) -> Result<Vec<Tcp>, FrontError> {
    let bind = |address: &SocketAddr| {
        let bound = bind_tcp(*address, Role::Plain, inherited);
        bound.map_err(|error| Refused { transport: "TCP", address: *address, error }.explain())
    };
    addresses.iter().map(bind).collect()
}

/// Every address of this machine, or every IPv4 address where there is no IPv6.
fn bind_default(inherited: &mut Inherited, options: &h3::Options) -> Result<Listener, FrontError> {
    match bind_one(default_address(), inherited, options) {
        Err(refused) if refused.no_ipv6() => {
            let address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), DEFAULT_PORT);
            bind_one(address, inherited, options).map_err(Refused::explain)
        }
        outcome => outcome.map_err(Refused::explain),
    }
}

fn bind_one(
    wanted: SocketAddr,
    inherited: &mut Inherited,
    options: &h3::Options,
) -> Result<Listener, Refused> {
    let mut attempts = if wanted.port() == 0 { ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let refused = |transport| move |error| Refused { transport, address: wanted, error };
        let udp = h3::Socket::bind(wanted, inherited, options).map_err(refused("UDP"))?;
        let address = udp.local_address();
        match bind_tcp(address, Role::Sites, inherited) {
            Ok(tcp) => return Ok(Listener { address, udp, tcp }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
            Err(error) => return Err(refused("TCP")(error)),
        }
    }
}

/// Binds an address for TCP alone, or takes what was handed over for it.
pub(super) fn bind_tcp(address: SocketAddr, role: Role, inherited: &mut Inherited) -> io::Result<Tcp> {
    if let Some(Listening { listener, is_lent, .. }) = inherited.tcp(address, role) {
        listener.set_nonblocking(true)?;
        return Ok(Tcp { listener: Arc::new(tokio::net::TcpListener::from_std(listener)?), is_lent });
    }
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // Connections of a server just stopped may linger; they are no reason to wait. (On Windows the option would
    // let two servers share the port.)
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(Tcp { listener: Arc::new(tokio::net::TcpListener::from_std(socket.into())?), is_lent: false })
}

/// A port that could not be had.
#[derive(Debug)]
struct Refused {
    transport: &'static str,
    address: SocketAddr,
    error: io::Error,
}

impl Refused {
    fn no_ipv6(&self) -> bool {
        const EAFNOSUPPORT: i32 = if cfg!(target_os = "linux") { 97 } else { 47 };
        self.error.kind() == io::ErrorKind::AddrNotAvailable
            || self.error.raw_os_error() == Some(EAFNOSUPPORT)
            || self.error.kind() == io::ErrorKind::Unsupported
    }

    fn explain(self) -> FrontError {
        let Refused { transport, address, error } = self;
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another program uses it: stop that one, or choose another port with --listen".to_owned()
            }
            io::ErrorKind::PermissionDenied if (1..1024).contains(&address.port()) => format!(
                "ports below 1024 need a privilege: choose another with --listen, or grant it with \
                 `sudo setcap cap_net_bind_service=+ep {}`",
                program()
            ),
            io::ErrorKind::AddrNotAvailable => {
                "this machine does not have the address: choose one of its own, or [::] for all".to_owned()
            }
            _ => "choose another address or port with --listen".to_owned(),
        };
        let port = address.port();
        let ip = address.ip();
        FrontError::new(format!(
            "cannot use {transport} port {port} of {ip} ({}); {remedy}",
            plain_error(&error)
        ))
    }
}

fn program() -> String {
    std::env::current_exe().map_or_else(|_| "godwit".to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_transport_and_the_way_out() {
        let explain = |transport, address: &str, kind: io::ErrorKind| {
            let address = address.parse().unwrap();
            Refused { transport, address, error: kind.into() }.explain().to_string()
        };
        let text = explain("TCP", "[::]:443", io::ErrorKind::PermissionDenied);
        assert!(text.starts_with("cannot use TCP port 443 of ::"), "{text}");
        assert!(text.contains("setcap cap_net_bind_service"), "{text}");
        let text = explain("UDP", "[::]:4433", io::ErrorKind::AddrInUse);
        assert!(text.starts_with("cannot use UDP port 4433") && text.contains("another program"), "{text}");
        let text = explain("UDP", "192.0.2.1:4433", io::ErrorKind::AddrNotAvailable);
        assert!(text.contains("does not have the address"), "{text}");
        let text = explain("UDP", "[::]:4433", io::ErrorKind::PermissionDenied);
        assert!(!text.contains("1024"), "{text}");
    }
}
