//! The system calls, each behind a safe function: this is all the `unsafe` code of the Linux datapath.

use super::cmsg::{Control, TXTIME};
use super::sockaddr::Name;
use crate::Quote;
use libc::c_int;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// The most messages in one system call.
pub(super) const MAX_MESSAGES: usize = 16;

/// Sets a socket option that is an `int`.
pub(crate) fn set_option(fd: impl AsFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let len = mem::size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as it is borrowed, and the kernel reads `len` bytes, which
    // `value` has.
    let rc = unsafe { libc::setsockopt(fd.as_fd().as_raw_fd(), level, name, (&raw const value).cast(), len) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks for a socket option that is an `int`.
pub(super) fn option(fd: impl AsFd, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut len = mem::size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as it is borrowed; the kernel writes at most `len` bytes into
    // `value`, which has them, and the length into `len`.
    let rc = unsafe {
        libc::getsockopt(fd.as_fd().as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len)
    };
    if rc == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Has the kernel take departure times of the monotonic clock with what this socket sends.
pub(super) fn set_departure_clock(fd: impl AsFd) -> io::Result<()> {
    let clock = libc::sock_txtime { clockid: libc::CLOCK_MONOTONIC, flags: 0 };
    let len = mem::size_of::<libc::sock_txtime>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as it is borrowed, and the kernel reads `len` bytes, which `clock` has.
    let rc = unsafe {
        libc::setsockopt(fd.as_fd().as_raw_fd(), libc::SOL_SOCKET, TXTIME, (&raw const clock).cast(), len)
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A message to send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) name: &'a Name,
    pub(super) control: &'a Control,
    pub(super) payload: &'a [u8],
}

/// Sends `messages`, at most [`MAX_MESSAGES`] of them, without blocking. Returns how many were sent, which
/// is at least one; an error concerns the first.
pub(super) fn send_messages(fd: impl AsFd, messages: &[Outgoing<'_>]) -> io::Result<usize> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: both types consist of integers and pointers only, for which all bits zero is a value.
    let (mut headers, mut vectors): ([libc::mmsghdr; MAX_MESSAGES], [libc::iovec; MAX_MESSAGES]) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    let mut count = 0;
    for ((header, vector), message) in headers.iter_mut().zip(&mut vectors).zip(messages) {
        vector.iov_base = message.payload.as_ptr().cast_mut().cast();
        vector.iov_len = message.payload.len();
        header.msg_hdr.msg_name = message.name.bytes().as_ptr().cast_mut().cast();
        header.msg_hdr.msg_namelen = message.name.bytes().len() as libc::socklen_t;
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        if !message.control.bytes().is_empty() {
            header.msg_hdr.msg_control = message.control.bytes().as_ptr().cast_mut().cast();
            header.msg_hdr.msg_controllen = message.control.bytes().len() as _;
        }
        count += 1;
    }
    loop {
        let sent = match count {
            // SAFETY: the header points at the vector, the name and the control bytes of a message that is
            // borrowed for longer than this call, with their true lengths; the kernel only reads them.
            1 => unsafe { libc::sendmsg(fd, &raw const headers[0].msg_hdr, libc::MSG_DONTWAIT) }.min(1),
            // SAFETY: as above for each of the first `count` headers, which is at most their number. The
            // kernel writes nothing but `msg_len` of each.
            _ => unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), count, libc::MSG_DONTWAIT as _) as isize },
        };
        match usize::try_from(sent) {
            // A datagram of no bytes "sends" 0.
            Ok(sent) => return Ok(sent.max(1)),
            Err(_) => interrupted_or(io::Error::last_os_error())?,
        }
    }
}

/// What a received message told beside its bytes.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) name: Name,
    pub(super) control: Control,
    pub(super) len: usize,
    pub(super) truncated: bool,
}

/// Whether to wait for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// No.
    None,
    /// As long as the socket says ([`set_patience`]), until there is one.
    OfSocket,
}

/// Has calls to receive that may wait ([`Patience::OfSocket`]) wait for at most `time`, to a tick of the kernel's. False if
/// the kernel cannot be had to keep to that: then nothing waits.
pub(super) fn set_patience(fd: impl AsFd, time: Duration) -> io::Result<bool> {
    if !verifies_first(&fd) {
        return Ok(false);
    }
    let socket = fd.as_fd();
    let socket = socket2::SockRef::from(&socket);
    socket.set_read_timeout(Some(time))?;
    // All calls but those say that they do not wait.
    socket.set_nonblocking(false)?;
    Ok(true)
}

/// Has the kernel verify checksums before it queues a datagram, as it does where there is a filter: this one takes
/// everything. Otherwise it finds out while somebody receives, drops what is wrong and begins the wait anew, so that
/// wrong datagrams, one now and then, would have it never end.
fn verifies_first(fd: impl AsFd) -> bool {
    let all = socket2::SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, u32::MAX);
    let socket = fd.as_fd();
    has_filter(socket) || socket2::SockRef::from(&socket).attach_filter(&[all]).is_ok()
}

/// Whether a socket has a filter, which is not to be replaced by another one.
pub(super) fn has_filter(fd: impl AsFd) -> bool {
    let fd = fd.as_fd().as_raw_fd();
    let mut instructions: libc::socklen_t = 0;
    // SAFETY: the descriptor is open for as long as it is borrowed; asked for no instructions, the kernel writes none, but
    // their number into `instructions`.
    let rc = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_GET_FILTER,
            std::ptr::null_mut(),
            &raw mut instructions,
        )
    };
    // What is not in the classic form is not shown.
    if rc == 0 { instructions > 0 } else { io::Error::last_os_error().raw_os_error() == Some(libc::EACCES) }
}

/// Receives into `slots`, one message into each of the first [`MAX_MESSAGES`] for which
/// there is an `incoming`, without blocking, or for the first of them only. Returns how many were received, which is at
/// least one.
pub(super) fn receive_messages(
    fd: impl AsFd,
    slots: &mut [Box<[u8]>],
    incoming: &mut [Incoming],
    patience: Patience,
) -> io::Result<usize> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: both types consist of integers and pointers only, for which all bits zero is a value.
    let (mut headers, mut vectors): ([libc::mmsghdr; MAX_MESSAGES], [libc::iovec; MAX_MESSAGES]) =
        unsafe { (mem::zeroed(), mem::zeroed()) };
    let mut count = 0;
    let places = slots.iter_mut().zip(incoming.iter_mut());
    for ((header, vector), (slot, info)) in headers.iter_mut().zip(&mut vectors).zip(places) {
        vector.iov_base = slot.as_mut_ptr().cast();
        vector.iov_len = slot.len();
        let name = info.name.space();
        header.msg_hdr.msg_name = name.as_mut_ptr().cast();
        header.msg_hdr.msg_namelen = name.len() as libc::socklen_t;
        let control = info.control.space();
        header.msg_hdr.msg_control = control.as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = control.len() as _;
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    let flags = match patience {
        Patience::None => libc::MSG_DONTWAIT,
        Patience::OfSocket => libc::MSG_WAITFORONE,
    };
    let received = loop {
        // SAFETY: each of the first `count` headers points at a vector, a slot, a name and a control buffer
        // with their true lengths, each of them borrowed exclusively for longer than this call and used by
        // no other header.
        let received =
            unsafe { libc::recvmmsg(fd, headers.as_mut_ptr(), count, flags as _, std::ptr::null_mut()) };
        match usize::try_from(received) {
            Ok(received) => break received,
            // Who waits has perhaps something to do because of the signal.
            Err(_) if patience == Patience::OfSocket => return Err(io::Error::last_os_error()),
            Err(_) => interrupted_or(io::Error::last_os_error())?,
        }
    };
    for (info, header) in incoming.iter_mut().zip(&headers).take(received) {
        info.name.set_len(header.msg_hdr.msg_namelen as usize);
        info.control.set_len(header.msg_hdr.msg_controllen as _);
        info.len = header.msg_len as usize;
        info.truncated = header.msg_hdr.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
    }
    Ok(received)
}

/// Takes an entry off the socket's error queue: the address that the datagram was for, what is said of it, and how it
/// began.
pub(super) fn receive_error(
    fd: impl AsFd,
    name: &mut Name,
    control: &mut Control,
    quote: &mut Quote,
) -> io::Result<()> {
    // SAFETY: the type consists of integers and pointers only, for which all bits zero is a value.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    let space = name.space();
    header.msg_name = space.as_mut_ptr().cast();
    header.msg_namelen = space.len() as libc::socklen_t;
    let space = control.space();
    header.msg_control = space.as_mut_ptr().cast();
    header.msg_controllen = space.len() as _;
    let space = quote.space();
    let mut vector = libc::iovec { iov_base: space.as_mut_ptr().cast(), iov_len: space.len() };
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the header points at a vector, and that at a quote, at a name and at a control buffer, all with their true
    // lengths and borrowed exclusively for longer than this call.
    let rc = unsafe { libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut header, flags) };
    let Ok(len) = usize::try_from(rc) else { return Err(io::Error::last_os_error()) };
    quote.set_len(len);
    name.set_len(header.msg_namelen as usize);
    control.set_len(header.msg_controllen as _);
    Ok(())
}

fn interrupted_or(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

/// Attaches a classic BPF program that chooses among the sockets of a reuse-port group.
pub(crate) fn attach_reuseport_filter(fd: impl AsFd, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the descriptor is open while borrowed. The kernel reads a `sock_fprog` and the `len`
    // instructions it points at, both borrowed here for longer than the call, and keeps no pointer.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            mem::size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
