//! One request and the head of its response, over whatever connection there is or comes about, sent again if the
//! server has not processed it, or if it is safe and the connection is lost, and over TCP as well if it is safe and nothing comes
//! over UDP any more.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use godwit::EarlyDataStatus;
use godwit_text::unix_now;
use http::header::ALT_SVC;
use http::{HeaderMap, Response, StatusCode};

use crate::error::Error;
use crate::explain;
use crate::lifeline::Lifeline;
use crate::network::Network;
use crate::redirect::Hop;
use crate::route::{Again, Route};
use crate::sending::{Failed, send_once};
use crate::server::{Http3Number, Server, Share, Versions, is_early};
use crate::session::{Fallback, ResponseBody, Session};
use crate::target::Origin;
use crate::usage::InUse;
use crate::vigil::Watched;

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

/// A share in the connection of this other server.
type OfAnother = (Share, InUse, Arc<Server>);

/// Who is told of each connection that the request goes out on.
pub(crate) type OnRoute<'a> = dyn FnMut(Route) + Send + 'a;

/// What sending a request came to.
struct Sent {
    response: Result<Response<ResponseBody>, Failed>,
    /// The connection, if it was another than it began on.
    elsewhere: Option<(Route, InUse)>,
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

    /// A share in another server's connection that says that it is this one's, too. Who has a connection needs none.
    fn of_another(&self, server: &Server, options: SendOptions<'_>) -> Option<OfAnother> {
        let may = matches!(options.versions, Versions::Auto | Versions::Http3) && !options.alone;
        if !may || !server.is_idle() {
            return None;
        }
        let others: Vec<_> = {
            let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            let same = servers.iter().filter(|((_, versions), _)| *versions == options.versions);
            same.map(|(_, other)| Arc::clone(other)).collect()
        };
        others.into_iter().find_map(|other| {
            let (share, in_use) = other.session_for(server.origin(), &self.network)?;
            Some((share, in_use, other))
        })
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
        let (mut attempt, mut why_again, mut was_lost) = (1, None, false);
        loop {
            let found =
                Some(attempt).filter(|attempt| *attempt == 1).and_then(|_| self.of_another(&server, options));
            let (share, mut in_use, other) = match found {
                Some((share, in_use, other)) => (share, in_use, Some(other)),
                None => {
                    let (share, in_use) = server.session(&self.network).await?;
                    (share, in_use, None)
                }
            };
            let Share { session, fresh, reason, is_new } = share;
            let mut route = Route::new(session.version(), reason, session.link());
            (route.connect, route.is_new, route.again) = (fresh, is_new, why_again);
            let mut early = route.quic().filter(|connection| is_early(connection)).cloned();
            let mut http3 = route.quic().map(Http3Number::of);
            on_route(route.clone());
            let again = hop.body.is_repeatable() && attempt < ATTEMPTS;
            let distrust = |http3: Option<Http3Number>| {
                http3.into_iter().for_each(|number| server.distrust_http3(&self.network, number));
            };
            let mut watched = session.watched();
            let may_leave = is_auto && again && hop.method.is_safe();
            let Sent { mut response, elsewhere } = self
                .send(&server, hop, options.further, session, watched.as_mut().filter(|_| may_leave))
                .await;
            if early.as_ref().is_some_and(|early| early.early_data_status() == EarlyDataStatus::Rejected) {
                on_route(route.again_on_the_same(Again::EarlyDataRefused));
            }
            if let Some((route, needed)) = elsewhere {
                distrust(http3.take());
                (in_use, early, watched) = (needed, None, None);
                on_route(route);
            }
            if let (Some(early), Ok(_)) = (&early, &response) {
                server.on_answered(&self.network, early);
            }
            response = response.map(|response| response.map(|body| body.of(in_use)));
            match response {
                // What HTTP/3 leads to does not serve this name: what the URL says itself does.
                Ok(response)
                    if again
                        && http3.is_some()
                        && (is_auto || other.is_some())
                        && response.status() == StatusCode::MISDIRECTED_REQUEST =>
                {
                    match &other {
                        Some(other) => other.is_not(&hop.target.origin),
                        None => distrust(http3),
                    }
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
                    let way = watched.clone().zip(http3).filter(|_| is_auto);
                    let lifeline =
                        Lifeline::of((&self.network, &server), (hop, options.further), &response, way);
                    if options.alone {
                        server.conclude(&self.network).await;
                    }
                    let fallback = lifeline.map(|lifeline| Box::new(lifeline) as Box<dyn Fallback>);
                    return Ok(response.map(|body| body.with(watched, fallback)));
                }
                Err(Failed::Exchange(error)) => {
                    let lost = hop.method.is_safe() && error.is_lost_connection();
                    if lost && is_auto {
                        distrust(http3);
                    }
                    // A connection that is there in vain a second time is no accident.
                    let once_more = lost && (!was_lost || http3.is_some() && is_auto);
                    if !again || !(once_more || error.is_unprocessed()) {
                        let error = explain::exchange(error);
                        return Err(match proxy {
                            Some(proxy) => error.through(proxy),
                            None => error,
                        });
                    }
                    was_lost |= lost;
                    why_again = Some(if lost { Again::Lost } else { Again::Unprocessed });
                }
                Err(Failed::Here(error)) => return Err(error),
            }
            attempt += 1;
        }
    }

    /// Sends a request. If its connection falls silent, it is sent over TCP as well, and what is answered first is taken.
    async fn send(
        &self,
        server: &Arc<Server>,
        hop: &Hop,
        further: &HeaderMap,
        session: Session,
        watched: Option<&mut Watched>,
    ) -> Sent {
        let mut sending = pin!(send_once(hop, further, session));
        let suspected = async {
            match watched {
                Some(watched) => watched.suspected().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            response = &mut sending => return Sent { response, elsewhere: None },
            () = suspected => {}
        }
        let mut elsewhere = pin!(self.send_over_tcp(server, hop, further));
        tokio::select! {
            biased;
            response = &mut sending => match response {
                Err(_) => elsewhere.await.unwrap_or(Sent { response, elsewhere: None }),
                _ => Sent { response, elsewhere: None },
            },
            sent = &mut elsewhere => match sent {
                Some(sent) => sent,
                None => Sent { response: sending.await, elsewhere: None },
            },
        }
    }

    /// Sends a request over TCP, as nothing comes over UDP any more. `None` if there is no response.
    async fn send_over_tcp(&self, server: &Arc<Server>, hop: &Hop, further: &HeaderMap) -> Option<Sent> {
        let (Share { session, fresh, reason, is_new }, in_use) =
            server.session_over_tcp(&self.network).await.ok()?;
        let mut route = Route::new(session.version(), reason, session.link());
        (route.connect, route.is_new, route.again) = (fresh, is_new, Some(Again::Silent));
        let response = Ok(send_once(hop, further, session).await.ok()?);
        Some(Sent { response, elsewhere: Some((route, in_use)) })
    }
}

impl fmt::Debug for Exchanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Exchanges").field("network", &self.network).finish_non_exhaustive()
    }
}
