//! Asking: a request put together piece by piece, and what is made of one of the crate `http`.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, LOCATION, PROXY_AUTHENTICATE, TE, TRANSFER_ENCODING,
    UPGRADE, USER_AGENT,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request};
use tokio::time::{Instant, timeout_at};

use crate::body::{BodySource, BoxError};
use crate::client::Client;
use crate::decoding::{self, Decoded};
use crate::error::{Error, ErrorKind, Remedy};
use crate::exchange::SendOptions;
use crate::redirect::{Hop, is_redirect};
use crate::response::{Body, Response};
use crate::server::Versions;
use crate::target::Target;

/// Headers that belong to one connection of HTTP/1.1 (RFC 9113 section 8.2.2, RFC 9114 section 4.2).
const OF_CONNECTION: [HeaderName; 6] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
    PROXY_AUTHENTICATE,
];

/// A request in the making. What is wrong with it is told by [`RequestBuilder::send`].
#[derive(Debug)]
#[must_use]
pub struct RequestBuilder {
    client: Client,
    method: Method,
    url: String,
    headers: HeaderMap,
    body: BodySource,
    versions: Option<Versions>,
    timeout: Option<Duration>,
    /// What is wrong with it, first.
    wrong: Option<Error>,
}

impl RequestBuilder {
    fn new(client: Client, method: Method, url: String) -> RequestBuilder {
        let (headers, body) = (HeaderMap::new(), BodySource::empty());
        RequestBuilder { client, method, url, headers, body, versions: None, timeout: None, wrong: None }
    }

    /// Adds a header.
    pub fn header<N, V>(mut self, name: N, value: V) -> RequestBuilder
    where
        N: TryInto<HeaderName>,
        V: TryInto<HeaderValue>,
    {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => {
                if self.headers.try_append(name, value).is_err() {
                    self.wrong.get_or_insert(Error::new(ErrorKind::Request, "there are too many headers"));
                }
            }
            (Err(_), _) => self.refuse("the name of a header has letters that may not stand in it"),
            (_, Err(_)) => self.refuse("the value of a header has letters that may not stand in it"),
        }
        self
    }

    /// Sends this body.
    pub fn body(mut self, body: impl Into<BodySource>) -> RequestBuilder {
        self.body = body.into();
        self
    }

    /// Allows these versions of HTTP instead of those that the client is set to.
    pub fn versions(mut self, versions: Versions) -> RequestBuilder {
        self.versions = Some(versions);
        self
    }

    /// The most time until the response is there, with its body, instead of that which the client is set to.
    pub fn timeout(mut self, limit: Duration) -> RequestBuilder {
        self.timeout = Some(limit);
        self
    }

    /// Sends it, follows redirects, and waits for the head of the response.
    ///
    /// # Errors
    /// If the request makes no sense, or no response comes. A response that tells of a failure is a response.
    pub async fn send(self) -> Result<Response, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let target = Target::parse(&self.url).map_err(|problem| {
            Error::new(ErrorKind::Request, format!("{}: {problem}", self.url.escape_debug()))
        })?;
        let hop = hop(target, self.method, self.headers, self.body)?;
        let versions = self.versions.unwrap_or(self.client.defaults().versions);
        fetch(&self.client, hop, versions, self.timeout.or(self.client.defaults().timeout)).await
    }

    fn refuse(&mut self, text: &str) {
        self.wrong.get_or_insert_with(|| Error::new(ErrorKind::Request, text));
    }
}

impl Client {
    /// Begins a GET request for this URL.
    pub fn get(&self, url: impl Into<String>) -> RequestBuilder {
        self.ask(Method::GET, url)
    }

    /// Begins a POST request to this URL.
    pub fn post(&self, url: impl Into<String>) -> RequestBuilder {
        self.ask(Method::POST, url)
    }

    /// Begins a request with any method.
    pub fn ask(&self, method: Method, url: impl Into<String>) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method, url.into())
    }

    /// Sends a request of the crate `http`, whose URI names the server, follows redirects, and waits for the head of
    /// the response. Headers that belong to one connection are left out.
    ///
    /// # Errors
    /// As [`RequestBuilder::send`].
    pub async fn request<B>(&self, request: Request<B>) -> Result<Response, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        send(self, request).await
    }
}

/// Sends a request of the crate `http`, which names its server in its URI.
async fn send<B>(client: &Client, request: Request<B>) -> Result<Response, Error>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (head, body) = request.into_parts();
    let target = Target::parse(&head.uri.to_string())
        .map_err(|problem| Error::new(ErrorKind::Request, format!("{}: {problem}", head.uri)))?;
    let hop = hop(target, head.method, head.headers, BodySource::stream(body))?;
    fetch(client, hop, client.defaults().versions, client.defaults().timeout).await
}

fn hop(target: Target, method: Method, mut headers: HeaderMap, body: BodySource) -> Result<Hop, Error> {
    if method == Method::CONNECT {
        return Err(Error::new(ErrorKind::Request, "CONNECT makes a tunnel, and is no request to a URL"));
    }
    for name in OF_CONNECTION {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|value| value != "trailers") {
        headers.remove(TE);
    }
    headers.remove(CONTENT_LENGTH);
    let authority = headers.remove(HOST).map(|value| Authority::try_from(value.as_bytes()));
    let authority = authority.transpose().map_err(|_| {
        Error::new(ErrorKind::Request, "the header Host is not a host name, perhaps with a port")
    })?;
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(concat!("godwit/", env!("CARGO_PKG_VERSION"))));
    Ok(Hop { target, method, headers, authority, body })
}

async fn fetch(
    client: &Client,
    mut hop: Hop,
    versions: Versions,
    limit: Option<Duration>,
) -> Result<Response, Error> {
    let until = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
    let most_redirects = client.defaults().max_redirects;
    let mut redirects = 0;
    let decodes = client.defaults().decompression && decoding::ask(&hop.method, &mut hop.headers);
    loop {
        if versions == Versions::Http3 && !hop.target.origin.secure {
            let text = "HTTP/3 is always encrypted, there is no http:// with it; write https://";
            return Err(Error::new(ErrorKind::Request, format!("{}: {text}", hop.target)));
        }
        let further = HeaderMap::new();
        let options = SendOptions { versions, alone: false, further: &further };
        let mut route = None;
        let mut on_route = |chosen| route = Some(chosen);
        let response = client.exchanges().response(&hop, options, &mut on_route);
        let response = match until {
            None => response.await?,
            Some((until, limit)) => {
                timeout_at(until, response).await.unwrap_or_else(|_| Err(Error::too_slow(limit)))?
            }
        };
        let location = response.headers().get(LOCATION).filter(|_| is_redirect(response.status()));
        let Some(location) = location.filter(|_| most_redirects > 0) else {
            let (mut head, body) = response.into_parts();
            let body = match decodes {
                true => Decoded::of(body, head.status, &mut head.headers),
                false => Decoded::plain(body),
            };
            let response = http::Response::from_parts(head, Body::new(body, until));
            let unrouted = || Error::new(ErrorKind::Exchange, "a response came on no connection");
            let route = route.ok_or_else(unrouted)?;
            return Ok(Response::new(response, hop.target, route, client.defaults().max_collected));
        };
        if redirects >= most_redirects {
            let text = format!("redirected more than {most_redirects} times");
            return Err(Error::new(ErrorKind::Redirect, text).remedy_of(Remedy::MoreRedirects));
        }
        redirects = redirects.saturating_add(1);
        let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
        hop = hop.next(response.status(), &location)?;
    }
}
