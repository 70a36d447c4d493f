//! Giving up an HTTP/2 exchange as a whole: who drops a response before its end wants the request's end, too.
//!
//! hyper sends a request's body for as long as there is any, whatever becomes of the response. It resets the stream when
//! the body fails, with the code that it finds in the error.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

/// Held with a response: dropped, it gives up the request.
#[derive(Debug)]
pub(crate) struct GiveUp(Option<oneshot::Sender<()>>);

/// Held with the request.
#[derive(Debug)]
pub(crate) struct GivenUp(Option<oneshot::Receiver<()>>);

impl GiveUp {
    pub(crate) fn new() -> (GiveUp, GivenUp) {
        let (sender, receiver) = oneshot::channel();
        (GiveUp(Some(sender)), GivenUp(Some(receiver)))
    }

    /// If the response is over, the request may go on.
    pub(crate) fn unless(mut self, over: bool) -> Option<GiveUp> {
        if over {
            self.0 = None;
            return None;
        }
        Some(self)
    }
}

impl Drop for GiveUp {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            // An error says that the request is over.
            let _ = sender.send(());
        }
    }
}

impl GivenUp {
    /// Ready if the request is given up, with the error by which its stream is reset with CANCEL (RFC 9113 section 7).
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<h2::Error> {
        let Some(receiver) = &mut self.0 else { return Poll::Pending };
        let given_up = ready!(Pin::new(receiver).poll(cx)).is_ok();
        self.0 = None;
        match given_up {
            true => Poll::Ready(h2::Error::from(h2::Reason::CANCEL)),
            // Nobody can give it up any more.
            false => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn a_response_that_is_over_gives_up_nothing() {
        for (over, expected) in [(true, None), (false, Some(h2::Reason::CANCEL))] {
            let (give_up, mut given_up) = GiveUp::new();
            drop(give_up.unless(over));
            let polled = poll_fn(|cx| Poll::Ready(given_up.poll(cx))).await;
            let reason = match polled {
                Poll::Ready(error) => error.reason(),
                Poll::Pending => None,
            };
            assert_eq!(reason, expected);
            let again = poll_fn(|cx| Poll::Ready(given_up.poll(cx))).await;
            assert!(again.is_pending());
        }
    }
}
