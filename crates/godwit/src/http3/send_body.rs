//! Sending a body to its end, frame by frame.

use super::BoxError;
use super::error::Error;
use super::exchange::SendHalf;
use super::minimum_rate::RateGuard;
use super::outgoing::Outgoing;
use bytes::Bytes;
use godwit_http3::ErrorCode;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, ready};

/// Sends `body` after what `outgoing` holds, to the end of the message. The first error ends it: the body's
/// own gives up the exchange with `code`, a peer that stays below the rate of `guard` with H3_EXCESSIVE_LOAD.
pub(super) async fn send_body<B>(
    half: &mut SendHalf,
    mut outgoing: Outgoing,
    body: B,
    code: ErrorCode,
    mut guard: RateGuard,
) -> Result<(), Error>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    if body.is_end_stream() {
        outgoing.end();
    }
    while !outgoing.is_complete() {
        if outgoing.wants_more() {
            // What there is no room for is not asked for: nobody holds it for a peer that takes nothing. A stream that
            // has sent nothing has room.
            if outgoing.head.is_none() {
                unless_too_slow(half, &mut outgoing, &mut guard, SendHalf::poll_room).await?;
            }
            let frame = poll_fn(|cx| {
                if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                    return Poll::Ready(Ok(frame));
                }
                guard.on_drained();
                // Nobody waits longer for the head than necessary, nor for a body that is not wanted.
                if outgoing.head.is_some() {
                    ready!(half.poll_send(cx, &mut outgoing))?;
                }
                half.poll_refused(cx).map(Err)
            });
            match frame.await?.transpose() {
                Ok(frame) => outgoing.take_frame(frame, body.is_end_stream()),
                Err(error) => {
                    let error = Error::body(error.into());
                    half.abandon(code, &error);
                    return Err(error);
                }
            }
        }
        unless_too_slow(half, &mut outgoing, &mut guard, SendHalf::poll_send).await?;
    }
    Ok(())
}

/// Waits for `poll`, but gives up on a peer that stays below the rate of `guard`.
async fn unless_too_slow(
    half: &mut SendHalf,
    outgoing: &mut Outgoing,
    guard: &mut RateGuard,
    poll: impl Fn(&mut SendHalf, &Context<'_>, &mut Outgoing) -> Poll<Result<(), Error>>,
) -> Result<(), Error> {
    let done = poll_fn(|cx| match poll(half, cx, outgoing) {
        Poll::Pending => guard.poll_exceeded(cx, outgoing.sent_by_all).map(|()| None),
        Poll::Ready(done) => Poll::Ready(Some(done)),
    });
    if let Some(done) = done.await {
        return done;
    }
    let error = Error::too_slow();
    half.abandon(ErrorCode::H3_EXCESSIVE_LOAD, &error);
    Err(error)
}
