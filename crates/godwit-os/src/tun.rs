//! TUN devices: network interfaces whose packets a program reads and writes (Linux,
//! `Documentation/networking/tuntap.rst`). A device belongs to the network namespace of the thread that opened it and
//! vanishes with its descriptor.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// A TUN device that is up and has an address. Every read is one IP packet that the system sends, every write one that
/// it receives; neither waits.
#[derive(Debug)]
pub struct TunDevice(File);

impl TunDevice {
    /// Packets that wait for being read at most: a window that is sent at once has to fit, for a packet that does not is
    /// lost without anybody's knowledge.
    const WAITING: libc::c_int = 32_768;

    /// Opens a new device, gives it an IPv4 address in a network of `prefix` bits (32 at most) and the largest IP
    /// packet, in bytes, and lets it be used. What the system sends is in packets of that size at most: the device
    /// offers nothing that would have it leave their making to the reader.
    ///
    /// # Errors
    /// Without the privilege (`CAP_NET_ADMIN`) or the driver; if there is a device of that name, or it is no name for
    /// one (1 to 15 bytes).
    pub fn open(name: &str, address: Ipv4Addr, prefix: u8, mtu: u16) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let mut request = request_for(name)?;
        request.ifr_ifru.ifru_flags = flags(libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL);
        call(file.as_raw_fd(), libc::TUNSETIFF, &mut request)?;

        // Any IPv4 socket of this namespace reaches its interfaces.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let socket = socket.as_raw_fd();
        request.ifr_ifru.ifru_addr = socket_address(address);
        call(socket, libc::SIOCSIFADDR, &mut request)?;
        let bits = u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(0);
        request.ifr_ifru.ifru_netmask = socket_address(Ipv4Addr::from_bits(bits));
        call(socket, libc::SIOCSIFNETMASK, &mut request)?;
        request.ifr_ifru.ifru_mtu = mtu.into();
        call(socket, libc::SIOCSIFMTU, &mut request)?;
        request.ifr_ifru.ifru_metric = TunDevice::WAITING;
        call(socket, libc::SIOCSIFTXQLEN, &mut request)?;
        request.ifr_ifru.ifru_flags = flags(libc::IFF_UP | libc::IFF_RUNNING);
        call(socket, libc::SIOCSIFFLAGS, &mut request)?;
        Ok(TunDevice(file))
    }

    /// Reads one packet; what is longer than `packet` is cut off.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none.
    pub fn recv(&self, packet: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(packet)
    }

    /// Writes one packet.
    ///
    /// # Errors
    /// If the system takes no more, or it is not an IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<usize> {
        (&self.0).write(packet)
    }
}

impl AsFd for TunDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for TunDevice {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Lets the loopback of the calling thread's network namespace be used, which is down in a new one.
///
/// # Errors
/// Without the privilege (`CAP_NET_ADMIN`).
pub fn raise_loopback() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut request = request_for("lo")?;
    request.ifr_ifru.ifru_flags = flags(libc::IFF_UP | libc::IFF_RUNNING);
    call(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &mut request)
}

/// A request that concerns the interface `name`, with nothing asked yet.
fn request_for(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: a structure of numbers, addresses of the system's own and a null pointer, for all of which zeroes are
    // valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len().saturating_sub(1);
    if name.is_empty() || name.len() > room || name.contains('\0') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name:?} is no interface's name: 1 to {room} bytes"),
        ));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    Ok(request)
}

/// Flags of interfaces as the structure has them: all that are used here fit in 16 bits.
fn flags(bits: libc::c_int) -> libc::c_short {
    (bits & 0xffff) as libc::c_short
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let inet = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
        sin_zero: [0; 8],
    };
    // SAFETY: `sockaddr_in` is the form that `sockaddr` has for this family: both are 16 bytes of plain numbers.
    unsafe { mem::transmute::<libc::sockaddr_in, libc::sockaddr>(inet) }
}

fn call(fd: RawFd, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every call made here reads and writes one `ifreq`, borrowed for the time of it.
    let rc = unsafe { libc::ioctl(fd, what, &raw mut *request) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::cannot_be_tested;
    use crate::namespaces;

    #[test]
    fn names_that_fit_no_interface_are_refused() {
        for name in ["", "sixteen-bytes-ab", "a\0b"] {
            assert_eq!(request_for(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert!(request_for("fifteen-bytes-a").is_ok());
    }

    /// In a namespace of its own, where the system permits that and has the driver.
    #[test]
    fn what_is_sent_to_a_devices_network_is_read_from_it() {
        let exchange = || {
            if let Err(error) = namespaces::enter_network() {
                return cannot_be_tested(error);
            }
            raise_loopback().unwrap();
            let ours = Ipv4Addr::new(10, 78, 0, 1);
            let device = match TunDevice::open("godwit7", ours, 24, 1400) {
                Ok(device) => device,
                Err(error) => return cannot_be_tested(error),
            };
            assert!(TunDevice::open("godwit7", ours, 24, 1400).is_err());
            let socket = UdpSocket::bind((ours, 0)).unwrap();
            socket.send_to(b"hello", (Ipv4Addr::new(10, 78, 0, 9), 4433)).unwrap();
            let mut packet = [0; 1500];
            let len = loop {
                let len = device.recv(&mut packet).unwrap();
                // The system may say something over IPv6 of its own accord.
                if packet[0] >> 4 == 4 {
                    break len;
                }
            };
            assert_eq!((len, &packet[16..20], &packet[28..33]), (33, &[10, 78, 0, 9][..], &b"hello"[..]));
            // And back, addresses and ports exchanged: the checksum of UDP may be left out over IPv4.
            let (from, to) = (packet[12..16].to_vec(), packet[16..20].to_vec());
            packet[12..16].copy_from_slice(&to);
            packet[16..20].copy_from_slice(&from);
            let (source, target) = (packet[20..22].to_vec(), packet[22..24].to_vec());
            packet[20..22].copy_from_slice(&target);
            packet[22..24].copy_from_slice(&source);
            packet[26..28].fill(0);
            device.send(&packet[..len]).unwrap();
            let mut answer = [0; 16];
            let (len, from) = socket.recv_from(&mut answer).unwrap();
            assert_eq!((&answer[..len], from.to_string().as_str()), (&b"hello"[..], "10.78.0.9:4433"));
        };
        std::thread::spawn(exchange).join().unwrap();
    }
}
