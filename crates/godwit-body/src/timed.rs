//! A request's body whose sender may not keep its reader waiting for long.
//!
//! That holds until the response begins, and again when it is over. While it is under way either side may have nothing to
//! say for as long as it likes, as in a call of gRPC that streams in both directions: then it is the response that tells
//! whether the exchange lives, and silence on the connection that ends it.

use crate::exchange::{Exchange, Stage};
use crate::wrapped::{FramePoll, Wrapped, Wrapper, data_of};
use crate::{BoxError, MinimumRate};
use bytes::Bytes;
use http_body::Body;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A body that fails if its sender moves too little. Only time in which somebody wants it counts, and none while the
/// response is under way; there is no timer before somebody has to wait.
pub type Timed<B> = Wrapped<B, Timer>;

/// Waits for so long.
#[derive(Debug)]
pub struct Timer {
    rate: MinimumRate,
    exchange: Exchange,
    /// What was known of the response at the last look.
    stage: Stage,
    waiting: Option<Instant>,
    waited: Duration,
    /// Bytes since `waited` was nothing.
    moved: u64,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// While time does not count it is looked again after this at the soonest.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl<B: Body<Error = BoxError>> Timed<B> {
    /// `exchange` is told if the body fails.
    pub fn new(body: B, rate: MinimumRate, exchange: &Exchange) -> Self {
        let (waiting, waited, moved, sleep) = (None, Duration::ZERO, 0, None);
        let (exchange, stage) = (exchange.clone(), Stage::Before);
        Wrapped::with(body, Timer { rate, exchange, stage, waiting, waited, moved, sleep })
    }
}

impl Timer {
    fn on_arrival(&mut self, bytes: usize) {
        if self.begins_anew() {
            return;
        }
        let Some(since) = self.waiting.take() else { return };
        self.waited += Instant::now().saturating_duration_since(since);
        self.moved = self.moved.saturating_add(bytes as u64);
        if self.moved >= self.rate.least() {
            (self.waited, self.moved) = (Duration::ZERO, 0);
        }
    }

    /// Ready when it has been waited for long enough.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let first = self.waiting.is_none();
            let since = *self.waiting.get_or_insert_with(Instant::now);
            let left = self.rate.period().saturating_sub(self.waited);
            let end = since + if self.stage == Stage::UnderWay { left.max(LOOK_AGAIN) } else { left };
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
            if first {
                sleep.as_mut().reset(end);
            }
            ready!(sleep.as_mut().poll(cx));
            if !self.begins_anew() {
                return Poll::Ready(());
            }
        }
    }

    /// Forgets what has been while the response is under way, and when that begins or ends.
    fn begins_anew(&mut self) -> bool {
        let stage = self.exchange.stage();
        let anew = stage == Stage::UnderWay || stage != self.stage;
        self.stage = stage;
        if anew {
            (self.waiting, self.waited, self.moved) = (None, Duration::ZERO, 0);
        }
        anew
    }
}

impl Wrapper for Timer {
    fn on_answer(&mut self, answer: FramePoll, cx: &mut Context<'_>) -> FramePoll {
        if answer.is_ready() {
            self.on_arrival(data_of(&answer).map_or(0, Bytes::len));
            return answer;
        }
        ready!(self.poll_late(cx));
        self.exchange.on_late();
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

    fn timed(rate: u64) -> (mpsc::UnboundedSender<Bytes>, Timed<BoxBody>, Exchange) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let exchange = Exchange::default();
        let rate = MinimumRate::new(Duration::from_secs(10), rate);
        (sender, Timed::new(boxed(Channel(receiver)), rate, &exchange), exchange)
    }

    /// Has a byte arrive every second for so long; false if the body fails.
    async fn trickle(sender: &mpsc::UnboundedSender<Bytes>, body: &mut Timed<BoxBody>, seconds: u32) -> bool {
        for _ in 0..seconds {
            let later = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                sender.send(Bytes::from_static(b"x")).unwrap();
            };
            if tokio::join!(body.frame(), later).0.unwrap().is_err() {
                return false;
            }
        }
        true
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_fails() {
        let (sender, mut body, exchange) = timed(0);
        sender.send(Bytes::from_static(b"abc")).unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "abc");
        assert!(!exchange.is_late());
        assert!(body.frame().await.unwrap().is_err());
        assert!(exchange.is_late());
        drop(sender);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_a_byte_at_a_time_fails() {
        let (sender, mut body, exchange) = timed(2);
        assert!(!trickle(&sender, &mut body, 60).await);
        assert!(exchange.is_late());
        let (sender, mut body, _) = timed(1);
        assert!(trickle(&sender, &mut body, 60).await);
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_response_is_under_way_either_side_may_be_silent() {
        let (sender, mut body, exchange) = timed(2);
        // There is time on the clock already.
        assert!(trickle(&sender, &mut body, 8).await);
        let response = exchange.begin_response();
        assert!(trickle(&sender, &mut body, 300).await);
        let silence = tokio::time::timeout(Duration::from_secs(300), body.frame());
        assert!(silence.await.is_err());
        // And then it has as much time as if nothing had been.
        drop(response);
        assert!(trickle(&sender, &mut body, 9).await);
        assert!(!trickle(&sender, &mut body, 60).await);
        assert!(exchange.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_ends_while_the_body_is_waited_for_lets_it_fail() {
        for period in [0, 10] {
            let exchange = Exchange::default();
            let (sender, receiver) = mpsc::unbounded_channel();
            let rate = MinimumRate::new(Duration::from_secs(period), 0);
            let mut body = Timed::new(boxed(Channel(receiver)), rate, &exchange);
            let response = exchange.begin_response();
            let over = async {
                tokio::time::sleep(Duration::from_secs(25)).await;
                drop(response);
            };
            let failed =
                tokio::time::timeout(Duration::from_secs(300), async { tokio::join!(body.frame(), over).0 });
            assert!(failed.await.unwrap().unwrap().is_err());
            assert!(exchange.is_late());
            drop(sender);
        }
    }

    #[tokio::test]
    async fn a_body_at_once_is_never_late() {
        let exchange = Exchange::default();
        let rate = MinimumRate::new(Duration::ZERO, u64::MAX);
        let body = Timed::new(full("abc"), rate, &exchange);
        assert_eq!(body.size_hint().exact(), Some(3));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        assert!(!exchange.is_late());
    }
}
