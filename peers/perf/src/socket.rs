//! UDP sockets with segmentation in both directions: one call sends, or receives, many datagrams of equal size.

use crate::SOCKET_BUFFER;
use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Datagrams in a call at most: what has room in 64 KiB if each fills its packet.
pub const SEGMENTS: usize = 44;
/// Bytes that a call may bring.
pub const ROOM: usize = 65_535;

pub struct Socket {
    socket: UdpSocket,
    local: SocketAddr,
    control: RefCell<Vec<u8>>,
}

/// Datagrams of one sender, each of `segment` bytes but for the last, which may be shorter.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    pub len: usize,
    pub segment: usize,
    pub from: SocketAddr,
}

impl Socket {
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::bind(address)?;
        setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BUFFER)?;
        setsockopt(&socket, sockopt::SndBuf, &SOCKET_BUFFER)?;
        setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
        let local = socket.local_addr()?;
        Ok(Self { socket, local, control: RefCell::new(nix::cmsg_space!(i32)) })
    }

    /// A client's, on the loopback.
    pub fn client(remote: SocketAddr) -> Result<Self> {
        let any: IpAddr = if remote.is_ipv4() { [127, 0, 0, 1].into() } else { "::1".parse()? };
        Self::bind((any, 0).into())
    }

    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// What has arrived, without waiting for it.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<Received>> {
        self.receive_by(buffer, MsgFlags::MSG_DONTWAIT)
    }

    /// What arrives, for which it waits, at most as long as was said.
    pub fn receive_waiting(&self, buffer: &mut [u8]) -> Result<Option<Received>> {
        self.receive_by(buffer, MsgFlags::empty())
    }

    /// How long [`Socket::receive_waiting`] waits.
    pub fn set_patience(&self, time: Duration) -> Result<()> {
        Ok(self.socket.set_read_timeout(Some(time))?)
    }

    fn receive_by(&self, buffer: &mut [u8], flags: MsgFlags) -> Result<Option<Received>> {
        let (mut control, mut slices) = (self.control.borrow_mut(), [IoSliceMut::new(buffer)]);
        let fd = self.socket.as_raw_fd();
        let message = match recvmsg::<SockaddrStorage>(fd, &mut slices, Some(&mut control), flags) {
            Ok(message) => message,
            // What an earlier datagram met with is no matter.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut segment = message.bytes;
        for control in message.cmsgs()? {
            if let ControlMessageOwned::UdpGroSegments(size) = control {
                segment = usize::try_from(size)?;
            }
        }
        let from = message.address.and_then(address).context("a datagram from nowhere")?;
        Ok(Some(Received { len: message.bytes, segment, from }))
    }

    /// Waits until something has arrived, or so long.
    pub fn wait(&self, time: Option<Duration>) -> Result<()> {
        let mut wanted = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut wanted, time.map(TimeSpec::from_duration), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends datagrams of `segment` bytes each, the last of which may be shorter.
    pub fn send(&self, datagrams: &[u8], segment: usize, to: SocketAddr) -> Result<()> {
        self.send_slices(&[IoSlice::new(datagrams)], segment, to)
    }

    /// The same from several places.
    pub fn send_slices(&self, slices: &[IoSlice<'_>], segment: usize, to: SocketAddr) -> Result<()> {
        let size = u16::try_from(segment)?;
        let control = [ControlMessage::UdpGsoSegments(&size)];
        let many = slices.iter().map(|slice| slice.len()).sum::<usize>() > segment;
        let control = if many { &control[..] } else { &[] };
        let to = SockaddrStorage::from(to);
        match sendmsg(self.socket.as_raw_fd(), slices, control, MsgFlags::empty(), Some(&to)) {
            Ok(_) | Err(Errno::ECONNREFUSED) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn address(storage: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|address| SocketAddr::from((address.ip(), address.port())));
    v4.or_else(|| storage.as_sockaddr_in6().map(|address| SocketAddr::from((address.ip(), address.port()))))
}
