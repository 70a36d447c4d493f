//! Handing received datagrams to another process of the same program, with everything that a socket told of them.
//!
//! A relay is a pair of connected Unix sockets that keep messages apart (`SOCK_SEQPACKET`): nobody can get at them
//! who was not given one of the two ends, and nothing of them is left when both processes are gone. A message is one
//! run of datagrams behind a header of fixed size. Nothing waits: what the other process does not take in time is
//! dropped, as a full socket would. Each end learns when the other one is gone.

mod header;

use godwit_base::{RecvBatch, RecvMeta};
use godwit_engine::TakenIn;
use header::Header;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relayed {
    /// It is on its way.
    Done,
    /// It was dropped, because too much is on its way.
    Dropped,
    /// Nobody receives any more.
    Gone,
}

/// Bytes on their way that are asked for; the system may grant less.
const BUFFER: usize = 4 << 20;
/// Messages received at once.
const MESSAGES: usize = 16;

/// The end that gives. Usable by several threads at once.
#[derive(Debug)]
pub(crate) struct RelaySender {
    socket: OwnedFd,
    gone: AtomicBool,
}

/// The end that takes.
#[derive(Debug)]
pub(crate) struct RelayReceiver {
    socket: UnixStream,
    closed: bool,
}

/// A relay. Both ends are closed when this process becomes another program, unless they are passed on to it.
///
/// # Errors
/// If there are too many descriptors.
pub(crate) fn pair() -> io::Result<(OwnedFd, RelayReceiver)> {
    let (give, take) = Socket::pair(Domain::UNIX, Type::SEQPACKET, None)?;
    give.set_nonblocking(true)?;
    take.set_nonblocking(true)?;
    Ok((give.into(), RelayReceiver { socket: OwnedFd::from(take).into(), closed: false }))
}

impl RelaySender {
    /// The giving end of [`pair`], also one that another process made.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        // One gets what one gets.
        if godwit_os::buffers::force_send(&socket, BUFFER).is_err() {
            let _ = SockRef::from(&socket).set_send_buffer_size(BUFFER);
        }
        RelaySender { socket, gone: AtomicBool::new(false) }
    }

    /// Gives a run of datagrams, of which `meta` tells all but the length, that was received at `received`.
    pub(crate) fn send(&self, meta: &RecvMeta, received: Duration, run: &[u8]) -> Relayed {
        let header = Header { meta: *meta, received }.to_bytes();
        let message = [IoSlice::new(&header), IoSlice::new(run)];
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        if self.gone.load(Ordering::Relaxed) {
            return Relayed::Gone;
        }
        match SockRef::from(&self.socket).send_vectored_with_flags(&message, flags) {
            Ok(_) => Relayed::Done,
            Err(error) if is_gone(&error) => {
                self.gone.store(true, Ordering::Relaxed);
                Relayed::Gone
            }
            Err(_) => Relayed::Dropped,
        }
    }

    /// Whether there is somebody who may receive.
    pub(crate) fn is_open(&self) -> bool {
        // Nothing is ever sent this way: there is either nothing yet or the end.
        let mut nothing = [MaybeUninit::uninit()];
        let flags = libc::MSG_DONTWAIT | libc::MSG_PEEK;
        let peeked = SockRef::from(&self.socket).recv_with_flags(&mut nothing, flags);
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsFd for RelaySender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl RelayReceiver {
    /// Receives what is there into the free slots of `batch`. Never blocks. What is not understood, because
    /// another version of the program sent it, is dropped.
    ///
    /// # Errors
    /// None that a correct kernel gives.
    pub(crate) fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<TakenIn> {
        let mut taken = TakenIn::default();
        taken.closed = self.closed;
        for _ in 0..MESSAGES {
            let Some(slot) = batch.free_slots().first_mut().filter(|_| !self.closed) else { break };
            let mut header = [0; header::LEN];
            let parts = &mut [IoSliceMut::new(&mut header), IoSliceMut::new(slot)];
            let len = match (&self.socket).read_vectored(parts) {
                Ok(0) => {
                    (self.closed, taken.closed) = (true, true);
                    return Ok(taken);
                }
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_gone(&error) => 0,
                Err(error) => return Err(error),
            };
            let payload = len.saturating_sub(header::LEN);
            let Some(Header { meta, received }) = Header::from_bytes(&header, payload) else { continue };
            taken.received = received;
            let before = batch.len();
            batch.push(meta);
            taken.runs += batch.len() - before;
        }
        taken.more = !self.closed;
        Ok(taken)
    }
}

impl AsFd for RelayReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset | NotConnected)
}

#[cfg(test)]
mod tests;
