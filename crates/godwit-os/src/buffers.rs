//! Socket buffers beyond the limit that the system sets for ordinary programs.

use std::io;
use std::os::fd::AsFd;

/// Sets the size of a socket's receive buffer beyond the system's limit, which needs a privilege (`CAP_NET_ADMIN`).
///
/// # Errors
/// Without the privilege, and where there is no such call: then the ordinary one, within the limit, is left.
pub fn force_receive(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return set(socket, libc::SO_RCVBUFFORCE, bytes);
    #[cfg(not(target_os = "linux"))]
    unsupported(socket, bytes)
}

/// As [`force_receive`], for what is to be sent.
///
/// # Errors
/// As [`force_receive`].
pub fn force_send(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return set(socket, libc::SO_SNDBUFFORCE, bytes);
    #[cfg(not(target_os = "linux"))]
    unsupported(socket, bytes)
}

#[cfg(target_os = "linux")]
fn set(socket: impl AsFd, name: libc::c_int, bytes: usize) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let len = std::mem::size_of::<libc::c_int>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open for as long as it is borrowed, and the kernel reads `len` bytes, which `value` has.
    let rc = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, name, (&raw const value).cast(), len) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn unsupported(_: impl AsFd, _: usize) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has one limit for all"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_is_no_socket_has_no_buffers() {
        let file = File::open("/proc/self/status").unwrap();
        assert!(force_receive(&file, 1 << 20).is_err());
        assert!(force_send(&file, 1 << 20).is_err());
    }
}
