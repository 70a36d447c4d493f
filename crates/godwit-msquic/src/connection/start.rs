//! Starting connections of clients.
//!
//! The name is looked up on another thread, unless it is an address already: nobody waits for a server of names that does
//! not answer, neither the application nor the other connections of the worker.

use super::{Connection, End, INTERNAL_ERROR, lookups, shared_sockets};
use crate::abi::{AddressFamily, Setting, Status};
use crate::configuration::Configuration;
use crate::handle;
use crate::io_status::status_of;
use crate::worker::{Pool, State, Worker, pool};
use godwit_base::SocketId;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::{ConnectError, Direction};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// The server that a connection is to be started to.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// Its name, or what was given in place of one.
    pub(crate) name: Option<Box<str>>,
    pub(crate) port: u16,
    pub(crate) family: AddressFamily,
}

/// What applications take to be enough until they are told of more, in bytes.
pub(crate) const IDEAL_SEND_BUFFER: u64 = 128 << 10;

/// Starts a connection: what was asked has been found right, and the rest is told by events.
///
/// # Errors
/// [`Status::INVALID_STATE`] if it has been started or closed meanwhile.
pub(crate) fn start(
    worker: &'static Worker,
    key: Key,
    configuration: Arc<Configuration>,
    server: Server,
) -> Result<(), Status> {
    let begun = worker.visit(|cx, state| {
        let begun = state.begin(key, configuration, &server);
        let connection = state.connections.get(key).filter(|_| begun.is_ok());
        let shutdown = connection.and_then(|connection| connection.registration.shutdown());
        let Some((flags, code)) = shutdown else { return begun.map(Some) };
        state.shut_down(cx, key, flags, code);
        Ok(None)
    });
    // Of a registration that is shut down it is over with that, which an event tells.
    let Some(preset) = begun? else { return Ok(()) };
    if let Some(address) = preset.or_else(|| literal(&server)) {
        connect(worker, key, Ok(address));
        return Ok(());
    }
    let body = move || connect(worker, key, resolve(&server));
    if lookups::begin(body).is_err() {
        connect(worker, key, Err(Status::OUT_OF_MEMORY));
    }
    Ok(())
}

/// An address that is known without anybody being asked: one that was given in place of a name, or that of this machine
/// itself in the family that is wanted (RFC 6761 section 6.3).
fn literal(server: &Server) -> Option<SocketAddr> {
    let name = server.name.as_deref()?;
    let own_machine = || match server.family {
        AddressFamily::INET => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        AddressFamily::INET6 => Some(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        _ => None,
    };
    let ip = match name.eq_ignore_ascii_case("localhost") {
        true => own_machine()?,
        false => name.parse().ok()?,
    };
    let address = SocketAddr::new(ip, server.port);
    fits(server.family, address).then_some(address)
}

fn fits(family: AddressFamily, address: SocketAddr) -> bool {
    match family {
        AddressFamily::INET => address.is_ipv4(),
        AddressFamily::INET6 => address.is_ipv6(),
        _ => true,
    }
}

/// The address of a server, as soon as it is known.
///
/// # Errors
/// [`Status::NOT_FOUND`] if there is none in the family that was asked for.
fn resolve(server: &Server) -> Result<SocketAddr, Status> {
    let name = server.name.as_deref().ok_or(Status::INVALID_PARAMETER)?;
    let mut found = (name, server.port).to_socket_addrs().map_err(|_| Status::NOT_FOUND)?;
    found.find(|address| fits(server.family, *address)).ok_or(Status::NOT_FOUND)
}

/// Begins the connection, or has told why not.
fn connect(worker: &'static Worker, key: Key, address: Result<SocketAddr, Status>) {
    let outcome = address.and_then(|address| try_connect(worker, key, address));
    if let Err(status) = outcome {
        worker.visit(|cx, state| {
            state.end(cx, key, &End::Transport { status, code: INTERNAL_ERROR });
        });
    }
}

/// Begins the connection.
fn try_connect(worker: &Worker, key: Key, address: SocketAddr) -> Result<(), Status> {
    let pool = pool().ok_or(Status::INVALID_STATE)?;
    let socket = socket_for(worker, pool, key, address)?;
    worker.visit(|cx, state| state.connect(cx, key, socket, address))
}

/// The socket over which the connection is to leave: one that it shares with those it wants to share with, one of its own if
/// it has been given an address, else the one that all share.
fn socket_for(
    worker: &Worker,
    pool: &'static Pool,
    key: Key,
    remote: SocketAddr,
) -> Result<SocketId, Status> {
    let own = worker.visit(|_, state| {
        let connection = state.connections.get(key)?;
        Some((connection.local, connection.shares_socket))
    });
    let (local, shares) = own.ok_or(Status::INVALID_STATE)?;
    if local.is_some_and(|local| local.is_ipv4() != remote.is_ipv4() && !local.ip().is_unspecified()) {
        return Err(Status::INVALID_ADDRESS);
    }
    let taken = match (local, shares) {
        (None, false) => return worker.common_socket(pool, remote).map_err(|error| status_of(&error)),
        (Some(local), false) => worker.bind(pool, local),
        (_, true) => shared_sockets::join(pool, local, remote),
    };
    let (socket, bound) = taken.map_err(|error| status_of(&error))?;
    let held = worker.visit(|_, state| {
        let connection = state.connections.get_mut(key)?;
        connection.local = local.map(|_| bound);
        connection.own_socket.replace(socket);
        Some(socket)
    });
    held.ok_or_else(|| {
        shared_sockets::leave(worker, socket);
        Status::ABORTED
    })
}

/// The address that packets from this socket to `remote` have, as far as the system tells: where it is left to the system, that
/// is asked which it would take.
fn towards(mut bound: SocketAddr, remote: SocketAddr) -> SocketAddr {
    if bound.ip().is_unspecified() {
        let any: IpAddr =
            if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // Nothing is sent: a way there is looked up.
        let asked = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect(remote)?;
            socket.local_addr()
        });
        bound.set_ip(asked.map_or(any, |local| local.ip()));
    }
    bound
}

impl State {
    /// Keeps what a connection is started with, and returns where to, if that was set before.
    ///
    /// # Errors
    /// [`Status::INVALID_STATE`] if it has been started before, or is closed.
    fn begin(
        &mut self,
        key: Key,
        configuration: Arc<Configuration>,
        server: &Server,
    ) -> Result<Option<SocketAddr>, Status> {
        let may_start = |it: &&mut Connection| !it.is_started && !it.closed_locally;
        let connection = self.connections.get_mut(key).filter(may_start).ok_or(Status::INVALID_STATE)?;
        connection.is_started = true;
        connection.configuration = Some(configuration);
        connection.server_name.clone_from(&server.name);
        let remote = connection.remote.map(|mut remote| {
            remote.set_port(server.port);
            remote
        });
        Ok(remote)
    }

    fn connect(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        socket: SocketId,
        remote: SocketAddr,
    ) -> Result<(), Status> {
        let connection = self.connections.get_mut(key).filter(|it| it.is_open()).ok_or(Status::ABORTED)?;
        let configuration = connection.configuration.clone().ok_or(Status::INVALID_STATE)?;
        let config = configuration.client(&connection.own())?;
        let config = connection.resumption.client_config(key, &config, &self.received_tickets);
        let path = cx.path_over(socket, remote).ok_or(Status::UNREACHABLE)?;
        let name = connection.server_name.clone().unwrap_or_else(|| remote.ip().to_string().into());
        let now = cx.now();
        let begun = cx.endpoint_mut().connect(now, &config, path, &name, None);
        let conn = begun.map_err(|error| match error {
            ConnectError::TooManyConnections => Status::OUT_OF_MEMORY,
            ConnectError::InvalidServerName(_) => Status::INVALID_PARAMETER,
            _ => Status::TLS_ERROR,
        })?;
        let local = cx.local_addr(socket).map(|bound| towards(bound, remote));
        connection.key = Some(conn);
        connection.remote = Some(remote);
        connection.local = connection.local.or(local);
        self.set_place(conn, key);
        self.on_begun(cx, key);
        Ok(())
    }

    /// The transport has a connection for this one now.
    pub(crate) fn on_begun(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(conn) = connection.key else { return };
        connection.parameters.on_begun(cx.now());
        let ideal = IDEAL_SEND_BUFFER;
        let tells_statistics = connection.setting(Setting::NetStatsEventEnabled) != 0;
        let dscp = connection.parameters.dscp();
        let answer = Duration::from_millis(connection.setting(Setting::DisconnectTimeoutMs));
        cx.endpoint_mut().with(conn, |transport| {
            transport.watch_close();
            // What the client wants may come with the end of its handshake.
            transport.watch_stream_limits();
            transport.set_answer_timeout(Some(answer));
            transport.set_dscp(dscp);
            transport.watch_ideal_buffer(ideal);
            transport.watch_evidence(&transport.evidence());
            if tells_statistics {
                transport.watch_acknowledgements();
            }
        });
        self.open_waiting(cx, key, Direction::Bidirectional);
        self.open_waiting(cx, key, Direction::Unidirectional);
    }

    /// The handle of a connection.
    pub(crate) fn connection_handle(&self, key: Key) -> crate::abi::Handle {
        handle::handle(handle::Kind::Connection, self.number, key)
    }

    /// The handle of a stream.
    pub(crate) fn stream_handle(&self, key: Key) -> crate::abi::Handle {
        handle::handle(handle::Kind::Stream, self.number, key)
    }
}
