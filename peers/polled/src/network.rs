//! The loop's waiting.

use anyhow::Result;
use godwit::polled::{PolledEndpoint, Wait};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Waits until the only socket is ready or the time has come, at most so long.
pub fn wait(endpoint: &PolledEndpoint, wait: &Wait, most: Option<Duration>) -> Result<()> {
    let time = wait.timeout(Instant::now()).into_iter().chain(most).min();
    let wanted =
        if wait.writable.is_some() { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
    let sockets: Vec<_> = endpoint.sockets().collect();
    let mut wanted: Vec<_> = sockets.iter().map(|socket| PollFd::new(socket.as_fd(), wanted)).collect();
    match ppoll(&mut wanted, time.map(TimeSpec::from_duration), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
