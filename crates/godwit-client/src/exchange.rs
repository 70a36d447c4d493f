//! One request and the head of its response, over whatever connection there is or comes about, sent again if the
//! server has not processed it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use godwit::EarlyDataStatus;
use godwit_text::{plain_error, unix_now};
use http::header::{ALT_SVC, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};

use crate::body::RequestBody;
use crate::error::{Error, ErrorKind, Remedy};
use crate::explain;
use crate::network::Network;
use crate::redirect::Hop;
use crate::route::{Again, Route};
use crate::server::{Http3Number, Server, Share, Versions, is_early};
use crate::session::{ExchangeError, ResponseBody, Session};
use crate::target::Origin;

/// How often a request is sent that the server says it has not processed.
const ATTEMPTS: u32 = 5;
/// From so many servers on those without connections are forgotten.
const MOST_SERVERS: usize = 256;

/// The servers, by origin and versions, and the way to them.
pub(crate) struct Exchanges {
    pub(crate) network: Arc<Network>,
    servers: Mutex<BTreeMap<(Origin, Versions), Arc<Server>>>,
}

/// How a request is sent.
#[derive(Clone, Copy)]
pub(crate) struct SendOptions<'a> {
    pub(crate) versions: Versions,
    /// On a connection of its own.
    pub(crate) alone: bool,
    /// Headers besides those of the request.
    pub(crate) further: &'a HeaderMap,
}

/// Who is told of each connection that the request goes out on.
pub(crate) type OnRoute<'a> = dyn FnMut(Route) + Send + 'a;

/// Why there is no response.
enum Failed {
    Exchange(ExchangeError),
    /// The request could not be made.
    Here(Error),
}

impl Exchanges {
    pub(crate) fn new(network: Network) -> Exchanges {
        Exchanges { network: Arc::new(network), servers: Mutex::default() }
    }

    /// The server of a URL: always the same, unless the request shall have its own connection.
    fn server(&self, origin: &Origin, options: SendOptions<'_>) -> Arc<Server> {
        let server = || Arc::new(Server::new(origin.clone(), options.versions));
        if options.alone {
            return server();
        }
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.len() >= MOST_SERVERS {
            servers.retain(|_, server| Arc::strong_count(server) > 1 || !server.is_idle());
        }
        Arc::clone(servers.entry((origin.clone(), options.versions)).or_insert_with(server))
    }

    /// Remembers what was learnt, and closes the connections.
    pub(crate) async fn close(&self) {
        let servers: Vec<_> = {
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *servers).into_values().collect()
        };
        for server in &servers {
            server.conclude(&self.network).await;
        }
        let saved = self.network.memory().save(unix_now());
        if let Err(problem) = saved {
            tracing::debug!(problem, "the memory of servers was not written");
        }
        self.network.close().await;
    }

    /// The response to a request.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn response(
        &self,
        hop: &Hop,
        options: SendOptions<'_>,
        on_route: &mut OnRoute<'_>,
    ) -> Result<Response<ResponseBody>, Error> {
        let server = self.server(&hop.target.origin, options);
        let proxy = self.network.proxy(&hop.target.origin);
        let is_auto = options.versions == Versions::Auto;
        let (mut attempt, mut why_again) = (1, None);
        loop {
            let (share, in_use) = server.session(&self.network).await?;
            let Share { session, fresh, reason, is_new } = share;
            let mut route = Route::new(session.version(), reason, session.link());
            (route.connect, route.is_new, route.again) = (fresh, is_new, why_again);
            let early = route.quic().filter(|connection| is_early(connection)).cloned();
            let http3 = route.quic().map(Http3Number::of);
            on_route(route.clone());
            let again = hop.body.is_repeatable() && attempt < ATTEMPTS;
            let is_http3 = http3.is_some();
            let distrust_http3 = || http3.map(|connection| server.distrust_http3(&self.network, connection));
            let sent = send(hop, options.further, session).await;
            if early.as_ref().is_some_and(|early| early.early_data_status() == EarlyDataStatus::Rejected) {
                on_route(route.again_on_the_same(Again::EarlyDataRefused));
            }
            if let (Some(early), Ok(_)) = (&early, &sent) {
                server.on_answered(&self.network, early);
            }
            match sent {
                // What HTTP/3 leads to does not serve this name: what the URL says itself does.
                Ok(response)
                    if again
                        && is_http3
                        && is_auto
                        && response.status() == StatusCode::MISDIRECTED_REQUEST =>
                {
                    distrust_http3();
                    why_again = Some(Again::Misdirected);
                }
                // The handshake is over with the answer: what goes out now is not early (RFC 8470 section 5.2).
                Ok(response) if again && early.is_some() && response.status() == StatusCode::TOO_EARLY => {
                    why_again = Some(Again::TooEarly);
                }
                Ok(response) => {
                    // In a tunnel it would be the server's.
                    if let Some(proxy) = proxy.filter(|_| !hop.target.origin.secure)
                        && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED
                    {
                        return Err(explain::wants_credentials().through(proxy));
                    }
                    let values: Vec<_> = response.headers().get_all(ALT_SVC).iter().cloned().collect();
                    server.on_alt_svc(&self.network, &values);
                    if options.alone {
                        server.conclude(&self.network).await;
                    }
                    return Ok(response.map(|body| body.of(in_use)));
                }
                Err(Failed::Exchange(error)) => {
                    let lost = is_http3 && is_auto && hop.method.is_safe() && error.is_lost_connection();
                    if lost {
                        distrust_http3();
                    }
                    if !again || !(lost || error.is_unprocessed()) {
                        let error = explain::exchange(&error);
                        return Err(match proxy {
                            Some(proxy) => error.through(proxy),
                            None => error,
                        });
                    }
                    why_again = Some(if lost { Again::Lost } else { Again::Unprocessed });
                }
                Err(Failed::Here(error)) => return Err(error),
            }
            attempt += 1;
        }
    }
}

impl fmt::Debug for Exchanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Exchanges").field("network", &self.network).finish_non_exhaustive()
    }
}

async fn send(hop: &Hop, further: &HeaderMap, session: Session) -> Result<Response<ResponseBody>, Failed> {
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
        Some(fault) => unreadable(fault),
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
