//! What comes back: head and body of a response, whatever protocol brought them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::causes::find;
use crate::decoding::Decoded;
use crate::error::{Error, ErrorKind};
use crate::explain;
use crate::route::Route;
use crate::target::Target;

/// The response to a request.
#[derive(Debug)]
pub struct Response {
    response: http::Response<Body>,
    target: Target,
    route: Route,
    most: usize,
}

impl Response {
    /// `most`: bytes of a body that are collected.
    pub(crate) fn new(response: http::Response<Body>, target: Target, route: Route, most: usize) -> Response {
        Response { response, target, route, most }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The version of HTTP that was used.
    pub fn version(&self) -> Version {
        self.response.version()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The URL that it is the response of, which is another one than that of the request after a redirect.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The connection that it came on: the address, the certificates, and why it was this protocol.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// The body, as it comes.
    pub fn into_body(self) -> Body {
        self.response.into_body()
    }

    /// All of it in the types of the crate `http`.
    pub fn into_http(self) -> http::Response<Body> {
        self.response
    }

    /// The whole body.
    ///
    /// # Errors
    /// If it breaks off, or is larger than [`crate::ClientBuilder::max_collected`].
    pub async fn bytes(self) -> Result<Bytes, Error> {
        let most = self.most;
        let collected = Limited::new(self.response.into_body(), most).collect().await;
        collected.map(|collected| collected.to_bytes()).map_err(|error| {
            if find::<LengthLimitError>(&*error).is_some() {
                let text = format!(
                    "the body has more than {}; read it piece by piece, or allow more",
                    godwit_text::size(most as u64)
                );
                return Error::new(ErrorKind::Response, text);
            }
            match error.downcast::<Error>() {
                Ok(error) => *error,
                Err(error) => Error::new(ErrorKind::Exchange, error.to_string()),
            }
        })
    }

    /// The whole body as text; what is not UTF-8 in it is replaced.
    ///
    /// # Errors
    /// As [`Response::bytes`].
    pub async fn text(self) -> Result<String, Error> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The body of a response.
#[derive(Debug)]
pub struct Body {
    from: Decoded,
    /// When all of it has to be there, and how long that was.
    limit: Option<(Pin<Box<Sleep>>, Duration)>,
}

impl Body {
    /// `limit`: when all of it has to be there, and how long that was.
    pub(crate) fn new(from: Decoded, limit: Option<(Instant, Duration)>) -> Body {
        Body { from, limit: limit.map(|(until, time)| (Box::pin(sleep_until(until)), time)) }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match Pin::new(&mut self.from).poll_frame(cx) {
            Poll::Ready(frame) => {
                return Poll::Ready(frame.map(|frame| frame.map_err(explain::exchange)));
            }
            Poll::Pending => {}
        }
        let Some((sleep, time)) = &mut self.limit else { return Poll::Pending };
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(Some(Err(Error::too_slow(*time))))
    }

    fn is_end_stream(&self) -> bool {
        self.from.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.from.size_hint()
    }
}
