//! TCP sockets as all are measured with.

use anyhow::Result;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// What a packet of 1500 bytes has room for, with time stamps.
const SEGMENT: u32 = 1448;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

fn settle(socket: &SockRef<'_>) -> Result<()> {
    socket.set_tcp_congestion(b"cubic")?;
    socket.set_tcp_mss(SEGMENT)?;
    Ok(socket.set_tcp_nodelay(true)?)
}

pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    settle(&SockRef::from(&socket))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from_std(socket.into())?;
    println!("listening {}", listener.local_addr()?);
    Ok(listener)
}

pub async fn accept(listener: &TcpListener) -> Result<TcpStream> {
    Ok(listener.accept().await?.0)
}

pub async fn connect(remote: SocketAddr) -> Result<TcpStream> {
    let socket = if remote.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    settle(&SockRef::from(&socket))?;
    Ok(socket.connect(remote).await?)
}

/// Ends a connection at once: nothing is left of it that would take a port for a minute.
pub fn reset(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
}
