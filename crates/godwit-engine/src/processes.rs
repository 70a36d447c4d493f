//! Several processes on the same sockets.
//!
//! A program is exchanged for a newer one by letting both processes send through the same sockets, while at any time
//! only one of them receives. That one hands on what belongs to the connections of others, and these take in what was
//! handed on to them beside their sockets. How that is done is not known here: a shard has at most one
//! [`OtherProcesses`], and one that has none pays nothing for it. `godwit-handover` is the implementation.

use godwit_base::RecvBatch;
use godwit_transport::Foreign;
use std::time::Duration;
use std::{fmt, io};

/// The other processes that have a shard's sockets, as the shard sees them. It is called with the shard's lock held,
/// and must not block.
pub trait OtherProcesses: Send + fmt::Debug {
    /// Hands on a run of datagrams that was received at `received` ([`godwit_os::clock::since_boot`]), to the process
    /// whose number the connection id tells: whether it was taken. `None` if no such process is known, or it is gone.
    fn hand_on(&self, owner: &Foreign, received: Duration, run: &[u8]) -> Option<bool>;

    /// Takes in a batch of what another process has handed on.
    ///
    /// # Errors
    /// If that fails for good: it is not asked again.
    fn take_in(&mut self, batch: &mut RecvBatch) -> io::Result<TakenIn>;

    /// This process receives from the sockets from now on: nothing more is to be taken in.
    fn on_receiving(&mut self);

    /// The socket that becomes readable when there is something to take in; `None` if there will be nothing.
    #[cfg(unix)]
    fn readiness(&self) -> Option<std::os::fd::BorrowedFd<'_>>;
}

/// What [`OtherProcesses::take_in`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TakenIn {
    /// Runs added to the batch.
    pub runs: usize,
    /// Whether more may be waiting.
    pub more: bool,
    /// When the last of them was received from the network ([`godwit_os::clock::since_boot`]).
    pub received: Duration,
    /// The process that received is gone: it is this one's turn.
    pub closed: bool,
}
