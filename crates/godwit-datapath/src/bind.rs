//! Making a socket, and what can go wrong with it.

use crate::Datapath;
use crate::config::{Backend, SocketConfig};
use crate::portable::PortableSocket;
use godwit_base::SocketId;
use socket2::{Domain, Protocol, SockAddr, Type};
use std::net::{SocketAddr, UdpSocket};
use std::{fmt, io};

/// Why a socket could not be made.
#[derive(Debug)]
pub struct BindError {
    addr: SocketAddr,
    step: &'static str,
    source: io::Error,
}

impl BindError {
    pub(crate) fn at(addr: SocketAddr, step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| BindError { addr, step, source }
    }

    /// The address asked for.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What the system said. Its kind tells an address in use from one that may not be used.
    pub fn io_error(&self) -> &io::Error {
        &self.source
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UDP socket on {}: cannot {}: {}", self.addr, self.step, self.source)
    }
}

impl From<BindError> for io::Error {
    fn from(error: BindError) -> Self {
        io::Error::new(error.source.kind(), error)
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Binds a socket to `addr`.
///
/// # Errors
/// If the address cannot be had, or if the system lacks something that cannot be done without.
pub fn bind(id: SocketId, addr: SocketAddr, config: &SocketConfig) -> Result<Box<dyn Datapath>, BindError> {
    drive(id, addr, create(addr, config)?, config)
}

/// Takes over a socket that somebody else has bound, such as a service manager. Its buffers and options are set as
/// [`bind`] sets them.
///
/// # Errors
/// If it has no address, or its options cannot be set.
pub fn adopt(id: SocketId, socket: UdpSocket, config: &SocketConfig) -> Result<Box<dyn Datapath>, BindError> {
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let addr =
        socket.local_addr().map_err(BindError::at(nowhere, "ask an inherited socket for its address"))?;
    socket.set_nonblocking(true).map_err(BindError::at(addr, "set non-blocking"))?;
    if let Some(interface) = &config.interface {
        bind_interface(&socket2::SockRef::from(&socket), interface)
            .map_err(BindError::at(addr, "choose the network interface"))?;
    }
    request_buffers(&socket2::SockRef::from(&socket), config);
    drive(id, addr, socket, config)
}

fn drive(
    id: SocketId,
    addr: SocketAddr,
    socket: UdpSocket,
    config: &SocketConfig,
) -> Result<Box<dyn Datapath>, BindError> {
    let made = match config.backend {
        #[cfg(target_os = "linux")]
        Backend::Native => crate::linux::LinuxSocket::new(id, socket, config).map(boxed),
        _ => PortableSocket::new(id, socket, config).map(boxed),
    };
    made.map_err(BindError::at(addr, "set the socket's options"))
}

fn boxed<D: Datapath + 'static>(datapath: D) -> Box<dyn Datapath> {
    Box::new(datapath)
}

/// Binds `count` sockets to one address, over which the system spreads the datagrams. All have the id
/// `id`, for each belongs to another shard. If `addr` has port 0, all get the port that the first gets. Nobody else may
/// have the port, unless [`SocketConfig::reuse_port`] is set.
///
/// # Errors
/// As [`bind`]; also where the system does not allow several sockets on an address.
pub fn bind_group(
    id: SocketId,
    addr: SocketAddr,
    count: usize,
    config: &SocketConfig,
) -> Result<Vec<Box<dyn Datapath>>, BindError> {
    // The first has the port alone, unless the caller would share it. With the option set before, the system would let a
    // program be started twice: the second takes datagrams, and how they are spread, from the first.
    let first = bind(id, addr, config)?;
    let addr = SocketAddr::new(addr.ip(), first.local_addr().port());
    if count > 1 && !config.reuse_port {
        share_port(&*first).map_err(BindError::at(addr, "share the port"))?;
    }
    let config = SocketConfig { reuse_port: config.reuse_port || count > 1, ..config.clone() };
    let mut sockets = vec![first];
    for _ in 1..count {
        sockets.push(bind(id, addr, &config)?);
    }
    Ok(sockets)
}

/// Lets sockets of this user that are bound with [`SocketConfig::reuse_port`] from now on have the same port.
///
/// # Errors
/// If the system does not allow several sockets on an address.
pub fn share_port(socket: &dyn Datapath) -> io::Result<()> {
    let Some(socket) = socket.socket() else { return Ok(()) };
    reuse_port(&socket2::SockRef::from(&socket))
}

fn create(addr: SocketAddr, config: &SocketConfig) -> Result<UdpSocket, BindError> {
    let socket = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))
        .map_err(BindError::at(addr, "make a socket"))?;
    if addr.is_ipv6() {
        socket.set_only_v6(config.only_v6).map_err(BindError::at(addr, "choose between IPv6 and both"))?;
    }
    if config.reuse_port {
        reuse_port(&socket).map_err(BindError::at(addr, "share the port"))?;
    }
    if config.free_bind {
        free_bind(&socket, addr).map_err(BindError::at(addr, "choose an address that is not there"))?;
    }
    if let Some(interface) = &config.interface {
        bind_interface(&socket, interface).map_err(BindError::at(addr, "choose the network interface"))?;
    }
    socket.set_nonblocking(true).map_err(BindError::at(addr, "set non-blocking"))?;
    request_buffers(&socket, config);
    socket.bind(&SockAddr::from(addr)).map_err(BindError::at(addr, "bind"))?;
    Ok(socket.into())
}

#[cfg(all(unix, not(any(target_os = "solaris", target_os = "illumos"))))]
fn reuse_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(all(unix, not(any(target_os = "solaris", target_os = "illumos")))))]
fn reuse_port(_: &socket2::Socket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no SO_REUSEPORT"))
}

#[cfg(target_os = "linux")]
fn free_bind(socket: &socket2::Socket, addr: SocketAddr) -> io::Result<()> {
    if addr.is_ipv4() { socket.set_freebind_v4(true) } else { socket.set_freebind_v6(true) }
}

#[cfg(not(target_os = "linux"))]
fn free_bind(_: &socket2::Socket, _: SocketAddr) -> io::Result<()> {
    let reason = "sockets can be bound only to addresses that are there on this system";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

#[cfg(target_os = "linux")]
fn bind_interface(socket: &socket2::Socket, name: &str) -> io::Result<()> {
    match socket.bind_device(Some(name.as_bytes())) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            crate::linux::send_through(socket, name)
        }
        outcome => outcome,
    }
}

#[cfg(not(target_os = "linux"))]
fn bind_interface(_: &socket2::Socket, _: &str) -> io::Result<()> {
    let reason = "sockets cannot be bound to an interface on this system";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// Asks for buffers; what was granted is found out later. Failing is no error: one gets what one gets.
fn request_buffers(socket: &socket2::Socket, config: &SocketConfig) {
    let forced = force_buffers(socket, config);
    if config.recv_buffer > 0 && !forced.0 {
        let _ = socket.set_recv_buffer_size(config.recv_buffer);
    }
    if config.send_buffer > 0 && !forced.1 {
        let _ = socket.set_send_buffer_size(config.send_buffer);
    }
}

/// Sets buffer sizes beyond the system's limit, which needs privilege. Says for which it worked.
#[cfg(unix)]
fn force_buffers(socket: &socket2::Socket, config: &SocketConfig) -> (bool, bool) {
    use godwit_os::buffers;

    let receive = config.recv_buffer > 0 && buffers::force_receive(socket, config.recv_buffer).is_ok();
    let send = config.send_buffer > 0 && buffers::force_send(socket, config.send_buffer).is_ok();
    (receive, send)
}

#[cfg(not(unix))]
fn force_buffers(_: &socket2::Socket, _: &SocketConfig) -> (bool, bool) {
    (false, false)
}
