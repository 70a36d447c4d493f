//! The body of a response, which may go on with the rest of it on another connection than it began on.

use std::fmt::Debug;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use godwit::http3;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::error::ExchangeError;
use crate::give_up::GiveUp;
use crate::route::Route;
use crate::usage::InUse;
use crate::vigil::Watched;

/// What polling a body comes to.
pub(crate) type Polled = Poll<Option<Result<Frame<Bytes>, ExchangeError>>>;

/// What a body falls back on.
pub(crate) trait Fallback: Debug + Send + Sync {
    /// Looks at what came of polling the body: that, or the rest that takes its place.
    ///
    /// # Errors
    /// The rest.
    fn pass(&mut self, cx: &mut Context<'_>, polled: Polled) -> Result<Polled, Box<ResponseBody>>;

    /// In place of polling the body, where that is not to be polled any more, as its connection is lost.
    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Option<Result<Polled, Box<ResponseBody>>>;

    /// The connection that the rest comes on, once after each change.
    fn take_news(&mut self) -> Option<Route>;
}

/// The body of a response.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    from: Source,
    /// The connection is needed until the body has been read or dropped.
    in_use: Option<InUse>,
    /// The connection is watched as long.
    watched: Option<Watched>,
    /// What it falls back on.
    fallback: Option<Box<dyn Fallback>>,
    /// Over HTTP/2: the request goes on by itself, unless its response is not wanted any more.
    give_up: Option<GiveUp>,
}

#[derive(Debug)]
enum Source {
    Http3(http3::Body),
    Tcp(Incoming),
}

impl ResponseBody {
    pub(super) fn over_http3(body: http3::Body) -> ResponseBody {
        ResponseBody { from: Source::Http3(body), in_use: None, watched: None, fallback: None, give_up: None }
    }

    pub(super) fn over_tcp(body: Incoming) -> ResponseBody {
        ResponseBody { from: Source::Tcp(body), in_use: None, watched: None, fallback: None, give_up: None }
    }

    pub(super) fn over_http2(body: Incoming, give_up: Option<GiveUp>) -> ResponseBody {
        let give_up = give_up.and_then(|give_up| give_up.unless(body.is_end_stream()));
        ResponseBody { give_up, ..ResponseBody::over_tcp(body) }
    }

    /// For as long as it is there, its request is under way.
    pub(crate) fn of(self, in_use: InUse) -> ResponseBody {
        ResponseBody { in_use: Some(in_use), ..self }
    }

    /// Its connection is watched, and it falls back on this.
    pub(crate) fn with(self, watched: Option<Watched>, fallback: Option<Box<dyn Fallback>>) -> ResponseBody {
        ResponseBody { watched, fallback, ..self }
    }

    /// The connection that the rest of it comes on, once after each change.
    pub(crate) fn take_news(&mut self) -> Option<Route> {
        self.fallback.as_mut()?.take_news()
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Polled {
        match &mut self.from {
            Source::Http3(from) => Pin::new(from).poll_frame(cx).map_err(ExchangeError::Http3),
            Source::Tcp(from) => {
                Pin::new(from).poll_frame(cx).map_err(|error| ExchangeError::tcp(error, false))
            }
        }
    }

    /// The next frame, from wherever it comes.
    fn poll_on(&mut self, cx: &mut Context<'_>) -> Polled {
        loop {
            let lost = self.fallback.as_mut().and_then(|fallback| fallback.poll_lost(cx));
            let passed = match lost {
                Some(passed) => passed,
                None => {
                    let polled = self.poll_source(cx);
                    match &mut self.fallback {
                        Some(fallback) => fallback.pass(cx, polled),
                        None => Ok(polled),
                    }
                }
            };
            match passed {
                Ok(polled) => return polled,
                Err(rest) => {
                    (self.from, self.in_use, self.watched) = (rest.from, rest.in_use, None);
                }
            }
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ExchangeError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        let body = self.get_mut();
        let polled = body.poll_on(cx);
        let over = matches!(polled, Poll::Ready(None | Some(Err(_))));
        if over {
            (body.in_use, body.watched, body.fallback) = (None, None, None);
        }
        if polled.is_ready() && body.give_up.is_some() {
            let over = over || body.is_end_stream();
            body.give_up = body.give_up.take().and_then(|give_up| give_up.unless(over));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.from {
            Source::Http3(body) => body.is_end_stream(),
            Source::Tcp(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.from {
            Source::Http3(body) => body.size_hint(),
            Source::Tcp(body) => body.size_hint(),
        }
    }
}
