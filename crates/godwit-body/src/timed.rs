//! A body whose sender may not keep its reader waiting for long.

use crate::wrapped::{FramePoll, Wrapped, Wrapper, data_of};
use crate::{BoxError, MinimumRate};
use bytes::Bytes;
use http_body::Body;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A body that fails if its sender moves too little. Only time in which somebody wants it counts, and there is no
/// timer before somebody has to wait.
pub type Timed<B> = Wrapped<B, Timer>;

/// Waits for so long.
#[derive(Debug)]
pub struct Timer {
    rate: MinimumRate,
    /// Set when it fails.
    late: Arc<AtomicBool>,
    waiting: Option<Instant>,
    waited: Duration,
    /// Bytes since `waited` was nothing.
    moved: u64,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// Says whether a body came too late.
#[derive(Clone, Debug, Default)]
pub struct Late(Arc<AtomicBool>);

impl Late {
    /// Whether it did.
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<B: Body<Error = BoxError>> Timed<B> {
    /// `late` is told if the body fails.
    pub fn new(body: B, rate: MinimumRate, late: &Late) -> Self {
        let (waiting, waited, moved, sleep) = (None, Duration::ZERO, 0, None);
        Wrapped::with(body, Timer { rate, late: Arc::clone(&late.0), waiting, waited, moved, sleep })
    }
}

impl Timer {
    fn on_arrival(&mut self, bytes: usize) {
        let Some(since) = self.waiting.take() else { return };
        self.waited += Instant::now().saturating_duration_since(since);
        self.moved = self.moved.saturating_add(bytes as u64);
        if self.moved >= self.rate.least() {
            (self.waited, self.moved) = (Duration::ZERO, 0);
        }
    }

    /// Ready when it has been waited for long enough.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let first = self.waiting.is_none();
        let since = *self.waiting.get_or_insert_with(Instant::now);
        let end = since + self.rate.period().saturating_sub(self.waited);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if first {
            sleep.as_mut().reset(end);
        }
        sleep.as_mut().poll(cx)
    }
}

impl Wrapper for Timer {
    fn on_answer(&mut self, answer: FramePoll, cx: &mut Context<'_>) -> FramePoll {
        if answer.is_ready() {
            self.on_arrival(data_of(&answer).map_or(0, Bytes::len));
            return answer;
        }
        ready!(self.poll_late(cx));
        self.late.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err("the request's body did not arrive in time".into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BoxBody, boxed, full};
    use http_body::Frame;
    use http_body_util::BodyExt;
    use tokio::sync::mpsc;

    /// A body that yields what is sent to it.
    struct Channel(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Channel {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
            self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
        }
    }

    fn timed(rate: u64) -> (mpsc::UnboundedSender<Bytes>, Timed<BoxBody>, Late) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let late = Late::default();
        let rate = MinimumRate::new(Duration::from_secs(10), rate);
        (sender, Timed::new(boxed(Channel(receiver)), rate, &late), late)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_fails() {
        let (sender, mut body, late) = timed(0);
        sender.send(Bytes::from_static(b"abc")).unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "abc");
        assert!(!late.is_so());
        assert!(body.frame().await.unwrap().is_err());
        assert!(late.is_so());
        drop(sender);
    }

    #[tokio::test]
    async fn a_body_at_once_is_never_late() {
        let late = Late::default();
        let rate = MinimumRate::new(Duration::ZERO, u64::MAX);
        let body = Timed::new(full("abc"), rate, &late);
        assert_eq!(body.size_hint().exact(), Some(3));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        assert!(!late.is_so());
    }
}
