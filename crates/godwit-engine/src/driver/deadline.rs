//! Waking at a deadline.
//!
//! Deadlines are mostly pushed later: every acknowledgement does it. A timer that goes off too early costs
//! one empty poll, setting it costs a system call each time; so it is set only for what is earlier than
//! what it is set to already.

pub(super) use imp::DeadlineTimer;

/// Whether a timer set to `armed` has to be set again for `deadline`.
fn must_arm(armed: Option<godwit_base::Time>, deadline: godwit_base::Time) -> bool {
    armed.is_none_or(|armed| deadline < armed)
}

/// With a kernel timer, for a runtime's own is a millisecond coarse.
#[cfg(target_os = "linux")]
mod imp {
    use godwit_base::Time;
    use godwit_os::timer::Timer;
    use std::io;
    use std::task::{Context, Poll};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    #[derive(Debug)]
    pub(in crate::driver) struct DeadlineTimer {
        timer: AsyncFd<Timer>,
        armed: Option<Time>,
    }

    impl DeadlineTimer {
        #[expect(
            deprecated,
            reason = "its successor is unsafe; this timer owns its one descriptor while it lives"
        )]
        pub(in crate::driver) fn new() -> io::Result<Self> {
            Ok(DeadlineTimer {
                timer: AsyncFd::with_interest(Timer::new()?, Interest::READABLE)?,
                armed: None,
            })
        }

        /// Notes that the timer went off, if it did.
        pub(in crate::driver) fn take_expired(&mut self, cx: &mut Context<'_>) {
            while let Poll::Ready(Ok(mut guard)) = self.timer.poll_read_ready(cx) {
                if guard.get_inner().take_expired() {
                    self.armed = None;
                }
                guard.clear_ready();
            }
        }

        /// Has the task woken at `deadline` or before. True if it is to be polled again at once.
        pub(in crate::driver) fn arm(
            &mut self,
            cx: &mut Context<'_>,
            deadline: Time,
            now: impl FnOnce() -> Time,
        ) -> io::Result<bool> {
            if super::must_arm(self.armed, deadline) {
                self.timer.get_ref().arm(deadline.saturating_since(now()))?;
                self.armed = Some(deadline);
            }
            Ok(self.timer.poll_read_ready(cx)?.is_ready())
        }
    }
}

/// With the runtime's timer.
#[cfg(not(target_os = "linux"))]
mod imp {
    use crate::Clock;
    use godwit_base::Time;
    use std::future::Future;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::time::Sleep;

    #[derive(Debug)]
    pub(in crate::driver) struct DeadlineTimer {
        sleep: Option<Pin<Box<Sleep>>>,
        armed: Option<Time>,
    }

    impl DeadlineTimer {
        pub(in crate::driver) fn new() -> io::Result<Self> {
            Ok(DeadlineTimer { sleep: None, armed: None })
        }

        /// Notes that the timer went off, if it did.
        pub(in crate::driver) fn take_expired(&mut self, cx: &mut Context<'_>) {
            if self.armed.is_some()
                && let Some(sleep) = &mut self.sleep
                && sleep.as_mut().poll(cx).is_ready()
            {
                self.armed = None;
            }
        }

        /// Has the task woken at `deadline` or before. True if it is to be polled again at once.
        pub(in crate::driver) fn arm(
            &mut self,
            cx: &mut Context<'_>,
            deadline: Time,
            _now: impl FnOnce() -> Time,
        ) -> io::Result<bool> {
            let until = tokio::time::Instant::from_std(Clock::new().instant(deadline));
            let rearm = super::must_arm(self.armed, deadline);
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
            if rearm {
                sleep.as_mut().reset(until);
                self.armed = Some(deadline);
            }
            Ok(matches!(sleep.as_mut().poll(cx), Poll::Ready(())))
        }
    }
}

#[cfg(test)]
mod tests {
    use godwit_base::Time;

    #[test]
    fn only_earlier_deadlines_set_the_timer() {
        let at = Time::from_nanos;
        assert!(super::must_arm(None, at(5)));
        assert!(super::must_arm(Some(at(6)), at(5)));
        assert!(!super::must_arm(Some(at(5)), at(5)));
        assert!(!super::must_arm(Some(at(4)), at(5)));
    }
}
