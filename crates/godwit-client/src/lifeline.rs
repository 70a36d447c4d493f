//! A response whose connection dies goes on with the rest of it on another one: when nothing comes over UDP any more
//! ([`crate::vigil`]) the rest is asked for over TCP, while the old way may still come back, and what has an answer first is
//! taken; when a connection is lost, on whatever connection there is then.
//!
//! Only the rest of the same state of the same resource is taken (see [`crate::ranges`]): the reader notices nothing. A
//! request that is not GET, or whose response has no strong validator, fails as it always did.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_RANGE};
use http::{HeaderMap, Method, Response, StatusCode};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::network::Network;
use crate::ranges::{self, Progress, Verdict};
use crate::redirect::Hop;
use crate::route::{Again, Route};
use crate::sending::send_once;
use crate::server::{Http3Number, Server, Share};
use crate::session::{ExchangeError, Fallback, Polled, ResponseBody};
use crate::vigil::Watched;

/// How often one response is rescued: who loses connections again and again has another trouble.
const MOST_RESCUES: u32 = 5;
/// How often the rest is asked for in one rescue.
const ATTEMPTS: u32 = 5;
/// The pause between two of those.
const PAUSE: Duration = Duration::from_secs(1);

/// What is waited for. Bodies may be shared among threads, which is what the lock is for: nobody ever waits for it.
struct Waiting<T>(Mutex<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T> Waiting<T> {
    fn new(future: impl Future<Output = T> + Send + 'static) -> Waiting<T> {
        Waiting(Mutex::new(Box::pin(future)))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(cx)
    }
}

/// The rest of a response.
struct Rest {
    body: ResponseBody,
    route: Route,
    way: Option<(Watched, Http3Number)>,
}

/// What a response falls back on.
pub(crate) struct Lifeline {
    request: Arc<Request>,
    progress: Progress,
    /// The connection, where it is one for HTTP/3 that may be left.
    way: Option<(Watched, Http3Number)>,
    suspicion: Option<Waiting<()>>,
    asking: Option<Waiting<Option<Rest>>>,
    /// Why the connection that there was is lost.
    lost: Option<ExchangeError>,
    rescues: u32,
    /// The connection that the rest comes on, if nobody has been told yet.
    news: Option<Route>,
}

/// What was asked for, and where.
struct Request {
    network: Arc<Network>,
    server: Arc<Server>,
    hop: Hop,
    further: HeaderMap,
}

impl Lifeline {
    /// What `response` to a request falls back on, if it can. `way`: as [`Lifeline::way`].
    pub(crate) fn of(
        (network, server): (&Arc<Network>, &Arc<Server>),
        (hop, further): (&Hop, &HeaderMap),
        response: &Response<ResponseBody>,
        way: Option<(Watched, Http3Number)>,
    ) -> Option<Lifeline> {
        let progress = beginning(&hop.method, response.status(), response.headers())?;
        let (network, server) = (Arc::clone(network), Arc::clone(server));
        let request = Request { network, server, hop: hop.clone(), further: further.clone() };
        Some(Lifeline {
            request: Arc::new(request),
            progress,
            way,
            suspicion: None,
            asking: None,
            lost: None,
            rescues: 0,
            news: None,
        })
    }

    fn poll_suspicion(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((watched, _)) = &self.way else { return Poll::Pending };
        let suspicion = self.suspicion.get_or_insert_with(|| {
            let mut watched = watched.clone();
            Waiting::new(async move { watched.suspected().await })
        });
        ready!(suspicion.poll(cx));
        self.suspicion = None;
        Poll::Ready(())
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Result<Polled, Box<ResponseBody>> {
        let asking = self.asking.get_or_insert_with(|| {
            let (request, progress) = (Arc::clone(&self.request), self.progress.clone());
            let is_lost = self.lost.is_some();
            // In a task of its own, that ends with this: whoever leaves the body unread would keep others from the server, whose
            // connections are made under a lock.
            Waiting::new(async move {
                let mut task = JoinSet::new();
                task.spawn(async move { request.rest(&progress, is_lost).await });
                task.join_next().await?.ok()?
            })
        });
        let Poll::Ready(rest) = asking.poll(cx) else { return Ok(Poll::Pending) };
        self.asking = None;
        match (rest, self.lost.take()) {
            (Some(mut rest), _) => {
                if let Some((_, connection)) = std::mem::replace(&mut self.way, rest.way.take()) {
                    self.request.server.distrust_http3(&self.request.network, connection);
                }
                self.suspicion = None;
                self.rescues = self.rescues.saturating_add(1);
                self.news = Some(rest.route);
                Err(Box::new(rest.body))
            }
            (None, Some(lost)) => Ok(Poll::Ready(Some(Err(lost)))),
            (None, None) => {
                // There is nothing but the old way.
                self.way = None;
                Ok(Poll::Pending)
            }
        }
    }
}

impl Fallback for Lifeline {
    fn take_news(&mut self) -> Option<Route> {
        self.news.take()
    }

    fn pass(&mut self, cx: &mut Context<'_>, polled: Polled) -> Result<Polled, Box<ResponseBody>> {
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                self.progress.offset = self.progress.offset.saturating_add(length);
                // The way has come back.
                (self.asking, self.suspicion) = (None, None);
                Ok(Poll::Ready(Some(Ok(frame))))
            }
            Poll::Ready(Some(Err(error))) => {
                if !error.is_lost_connection() || self.rescues >= MOST_RESCUES {
                    return Ok(Poll::Ready(Some(Err(error))));
                }
                self.lost = Some(error);
                self.poll_rest(cx)
            }
            Poll::Ready(None) => Ok(Poll::Ready(None)),
            Poll::Pending if self.asking.is_some() => self.poll_rest(cx),
            Poll::Pending => match self.poll_suspicion(cx) {
                Poll::Ready(()) => self.poll_rest(cx),
                Poll::Pending => Ok(Poll::Pending),
            },
        }
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Option<Result<Polled, Box<ResponseBody>>> {
        self.lost.is_some().then(|| self.poll_rest(cx))
    }
}

impl Request {
    /// The rest of a response, over TCP unless the connection is lost anyway.
    async fn rest(&self, progress: &Progress, is_lost: bool) -> Option<Rest> {
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                sleep(PAUSE).await;
            }
            let asked = match is_lost {
                true => self.server.session(&self.network).await,
                false => self.server.session_over_tcp(&self.network).await,
            };
            let Ok((Share { session, fresh, reason, is_new }, in_use)) = asked else { continue };
            let mut route = Route::new(session.version(), reason, session.link());
            let why = if is_lost { Again::Lost } else { Again::Silent };
            (route.connect, route.is_new, route.again) = (fresh, is_new, Some(why));
            let mut further = self.further.clone();
            ranges::ask(&mut further, progress);
            let way = session.watched().zip(route.quic().map(Http3Number::of));
            let Ok(response) = send_once(&self.hop, &further, session).await else { continue };
            return match ranges::judge(progress, response.status(), response.headers()) {
                Verdict::Rest { .. } => Some(Rest { body: response.into_body().of(in_use), route, way }),
                _ => None,
            };
        }
        None
    }
}

/// What there is of a response at its beginning, if a rest of it could be asked for.
fn beginning(method: &Method, status: StatusCode, headers: &HeaderMap) -> Option<Progress> {
    if method != Method::GET {
        return None;
    }
    let validator = Some(ranges::strong_validator(headers)?);
    let coding = headers.get(CONTENT_ENCODING).cloned();
    match status {
        StatusCode::OK => Some(Progress { offset: 0, validator, length: ranges::length(headers), coding }),
        StatusCode::PARTIAL_CONTENT => {
            let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
            let (offset, length) = ranges::to_the_end(range)?;
            Some(Progress { offset, validator, length: Some(length), coding })
        }
        _ => None,
    }
}

impl fmt::Debug for Lifeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Lifeline").field("progress", &self.progress).finish_non_exhaustive()
    }
}
