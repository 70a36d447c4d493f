//! What the kernel knows of a TCP connection (Linux `TCP_INFO`).
//!
//! The kernel fills in a structure that has only ever grown at its end, so each figure is taken from its place
//! in the bytes, and those that an older kernel does not write are zero or absent.

use std::time::Duration;

/// A TCP connection's figures at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// The lowest round-trip time of late; zero if it is not known.
    pub min_rtt: Duration,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Segments sent again though the peer had them, as far as it has told (RFC 2883).
    pub needless: u32,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Since when the last acknowledgement is there. The kernel counts in steps of some milliseconds.
    pub last_ack_received: Duration,
}

/// Bytes of the structure that are asked for.
#[cfg(target_os = "linux")]
const SIZE: usize = 256;

/// Asks the kernel about the connection of `socket`; `None` if it is none, or the kernel is too old to know
/// how many bytes were acknowledged (before Linux 4.1).
#[cfg(target_os = "linux")]
pub fn tcp_info(socket: &impl std::os::fd::AsFd) -> Option<TcpInfo> {
    use std::os::fd::AsRawFd;

    let mut bytes = [0_u8; SIZE];
    let mut len: libc::socklen_t = SIZE as libc::socklen_t;
    // SAFETY: the descriptor is borrowed and therefore open; the kernel writes at most `len` bytes, which is
    // the size of the array, and then says in `len` how many it wrote.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if rc != 0 { None } else { parse(bytes.get(..len as usize)?) }
}

/// Asks about a connection: this system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn tcp_info<S>(_socket: &S) -> Option<TcpInfo> {
    None
}

#[cfg(target_os = "linux")]
fn parse(bytes: &[u8]) -> Option<TcpInfo> {
    let u32_at = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let u64_at = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let micros = |at| u32_at(at).map(|micros| Duration::from_micros(micros.into()));
    // Until something has been measured it is the largest number.
    let min_rtt = u32_at(148).filter(|micros| *micros != u32::MAX);
    Some(TcpInfo {
        rtt: micros(68)?,
        min_rtt: Duration::from_micros(min_rtt.unwrap_or(0).into()),
        retransmitted: u32_at(100)?,
        needless: u32_at(216).unwrap_or(0),
        bytes_acked: u64_at(120)?,
        last_ack_received: Duration::from_millis(u32_at(56)?.into()),
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn acknowledged_bytes_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = tcp_info(&server).unwrap().bytes_acked;
        server.write_all(&[7; 5000]).unwrap();
        client.read_exact(&mut [0; 5000]).unwrap();
        // What has been read has been received; the acknowledgement may lag behind.
        let info = loop {
            let info = tcp_info(&server).unwrap();
            if info.bytes_acked - before >= 5000 {
                break info;
            }
            std::thread::yield_now();
        };
        assert_eq!(info.bytes_acked - before, 5000);
        assert!(info.rtt > Duration::ZERO && info.min_rtt > Duration::ZERO, "{info:?}");
        assert!(info.rtt < Duration::from_secs(10), "{info:?}");
    }

    #[test]
    fn other_sockets_have_no_such_figures() {
        assert_eq!(tcp_info(&UdpSocket::bind("127.0.0.1:0").unwrap()), None);
        assert_eq!(parse(&[0; 104]), None, "an old kernel");
    }
}
