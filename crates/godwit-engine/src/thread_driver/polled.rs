//! Keeping a shard going on a thread that has an event loop of its own.
//!
//! The loop waits for one descriptor, which can be read as long as a socket of the shard's has something, or somebody has used a
//! handle; and for as long as was said when the shard was polled last, but no longer.

use super::{Next, ThreadDriver};
use crate::handle::ShardHandle;
use crate::handler::Handler;
use crate::stopped::Stopped;
use godwit_os::readiness_set::ReadinessSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

/// Keeps a shard going as often as it is [polled](PolledDriver::poll).
#[must_use = "a shard does nothing while its driver is not polled"]
pub struct PolledDriver<H: Handler> {
    driver: ThreadDriver<H>,
    set: Arc<ReadinessSet>,
}

/// Turns in one poll, at most: others share the loop.
const MOST_TURNS: usize = 16;

/// How long it takes until a socket that was full is tried again: that there is room is not waited for.
const FULL_PAUSE: Duration = Duration::from_millis(1);

impl<H: Handler> PolledDriver<H> {
    /// A driver for the shard of `handle`.
    ///
    /// # Errors
    /// If there are no more descriptors.
    pub fn new(handle: &ShardHandle<H>) -> io::Result<Self> {
        let set = Arc::new(ReadinessSet::new()?);
        let mut driver = ThreadDriver::new(handle)?;
        set.add(driver.event.as_fd())?;
        driver.set = Some(Arc::clone(&set));
        Ok(PolledDriver { driver, set })
    }

    /// Does all that can be done without waiting, as [`ThreadDriver::run`] does, and says for how long may be waited until the
    /// next poll: without end if nothing is due.
    ///
    /// # Errors
    /// Why the shard has ended.
    pub fn poll(&mut self, deliver: &mut impl FnMut() -> bool) -> Result<Option<Duration>, Stopped> {
        match self.turns(deliver) {
            Ok(Some(wait)) => Ok(wait),
            Ok(None) => Err(self.stop(Stopped::Finished)),
            Err(error) => Err(self.stop(Stopped::Socket(Arc::new(error)))),
        }
    }

    fn stop(&self, why: Stopped) -> Stopped {
        self.driver.shared.stop(why.clone());
        why
    }

    /// `None` if the shard is at its end.
    fn turns(&mut self, deliver: &mut impl FnMut() -> bool) -> io::Result<Option<Option<Duration>>> {
        self.driver.look(Some(Duration::ZERO), None)?;
        for _ in 0..MOST_TURNS {
            match self.driver.turn(deliver)? {
                Next::Turn => {}
                Next::Wait(until, full) => {
                    let wait = self.driver.time_until(until);
                    let pause = full.map(|_| wait.map_or(FULL_PAUSE, |wait| wait.min(FULL_PAUSE)));
                    return Ok(Some(pause.or(wait)));
                }
                Next::End => return Ok(None),
            }
        }
        Ok(Some(Some(Duration::ZERO)))
    }
}

impl<H: Handler> AsFd for PolledDriver<H> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

impl<H: Handler> fmt::Debug for PolledDriver<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolledDriver").field(&self.driver).finish()
    }
}
