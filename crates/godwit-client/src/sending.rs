//! One request on one connection, sent once.

use godwit_text::plain_error;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Request, Response};

use crate::body::RequestBody;
use crate::error::{Error, ErrorKind, Remedy};
use crate::redirect::Hop;
use crate::session::{ExchangeError, ResponseBody, Session};

/// Why there is no response.
pub(crate) enum Failed {
    Exchange(ExchangeError),
    /// The request could not be made.
    Here(Error),
}

/// Sends a request with these headers besides its own, once.
pub(crate) async fn send_once(
    hop: &Hop,
    further: &HeaderMap,
    session: Session,
) -> Result<Response<ResponseBody>, Failed> {
    let unreadable = |problem: &str| Failed::Here(unreadable(hop, problem));
    let body = hop.body.open().map_err(|error| unreadable(&plain_error(&error)))?;
    let fault = body.fault();
    let mut request = request(hop, body).map_err(Failed::Here)?;
    for (name, value) in further {
        request.headers_mut().insert(name, value.clone());
    }
    let response = session.send(request).await;
    // The exchange is only told that it failed, the fault says why.
    response.map_err(|error| match fault.get() {
        Some(fault) => Failed::Here(self::unreadable(hop, fault).caused_by(error)),
        None => Failed::Exchange(error),
    })
}

fn request(hop: &Hop, body: RequestBody) -> Result<Request<RequestBody>, Error> {
    let malformed =
        |error: http::Error| Error::new(ErrorKind::Request, format!("the request cannot be sent: {error}"));
    let uri = hop.target.uri(hop.authority.as_ref()).map_err(malformed)?;
    let length = body.length();
    let request = Request::builder().method(hop.method.clone()).uri(uri);
    let mut request = request.body(body).map_err(malformed)?;
    *request.headers_mut() = hop.headers.clone();
    if let Some(length) = length {
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(request)
}

/// The body to send cannot be read.
fn unreadable(hop: &Hop, problem: &str) -> Error {
    match hop.body.path() {
        Some(path) => Error::new(ErrorKind::Request, format!("cannot read {}: {problem}", path.display()))
            .remedy_of(Remedy::BodyFile),
        None => Error::new(ErrorKind::Request, format!("cannot read the body to send: {problem}")),
    }
}
