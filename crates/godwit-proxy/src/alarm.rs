//! A timer that goes from one exchange to the next on a connection: to set it anew for each would cost more than to look at the
//! clock when it goes off too early.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep_until};

/// When somebody waits no longer. It costs nothing until somebody has to wait.
#[derive(Debug, Default)]
pub(crate) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Waits until `due`.
    pub(crate) async fn at(&mut self, due: Instant) {
        poll_fn(|cx| self.poll(cx, due)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if sleep.deadline() >= due {
                // Nobody waits for what is over.
                self.0 = None;
                return Poll::Ready(());
            }
            // It was set for an exchange before.
            sleep.as_mut().reset(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn it_goes_off_when_it_is_due_whatever_it_was_set_for_before() {
        let mut alarm = Alarm::default();
        let began = Instant::now();
        let soon = began + Duration::from_millis(5);
        let late = began + Duration::from_secs(3600);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // Sooner than it was set for.
        assert!(alarm.poll(&mut cx, late).is_pending());
        alarm.at(soon).await;
        assert!(Instant::now() >= soon);
        // Later than it was set for, which is over.
        let again = Instant::now() + Duration::from_millis(5);
        assert!(alarm.poll(&mut cx, again).is_pending());
        tokio::time::sleep_until(again + Duration::from_millis(5)).await;
        assert!(alarm.poll(&mut cx, late).is_pending());
        assert!(alarm.poll(&mut cx, began).is_ready());
    }
}
