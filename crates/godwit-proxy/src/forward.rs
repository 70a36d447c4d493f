//! One request's way: checked, sent to an upstream, sent again elsewhere if that is safe, and answered.

use crate::RequestBody;
use crate::alarm::Alarm;
use crate::backend::{Backend, Backends, Lease};
use crate::body::Body;
use crate::headers::{self, Facts, Pseudonym};
use crate::pool::Connection;
use crate::problem::{Problem, ProblemKind, chain};
use crate::reason::Reason;
use crate::settings::Settings;
use crate::time::UpstreamTime;
use crate::tunnel::{self, Client, Stream, Wanted};
use crate::upload::{Upload, View};
use godwit_body::{ClientNetwork, EarlyData, ExtendedConnect, Informational, Peer};
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, SEC_WEBSOCKET_ACCEPT, TRANSFER_ENCODING,
    UPGRADE,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long an upstream may take to ask for a body that the client announced with `Expect: 100-continue`
/// (RFC 9110 section 10.1.1).
const CONTINUE_WITHIN: Duration = Duration::from_secs(1);

/// How long a request whose method usually has no body may leave open whether it has one. HTTP/2 and HTTP/3
/// clients may say so in a packet of its own.
const LOOK_AHEAD: Duration = Duration::from_millis(200);

/// A request, ready to be sent any number of times.
struct Outgoing {
    method: Method,
    /// Path and query, or an asterisk.
    target: PathAndQuery,
    headers: HeaderMap,
    /// Where the client is, if its requests are counted.
    client: Option<ClientNetwork>,
    host: Option<HeaderValue>,
    /// The fields name the host already, as all upstreams see it.
    addressed: bool,
    upload: Upload,
    /// The client waits for status 100.
    expects: bool,
    informational: Option<Informational>,
    /// It came before the client's handshake was complete, which the upstream is told, and only by us.
    early: Option<EarlyData>,
    tunnel: Option<Wanted>,
    began: Instant,
}

/// Why an attempt failed, and whether another one does no harm.
struct Failure {
    problem: Problem,
    safe: bool,
    /// The connection had been used before, and the upstream may just have closed it.
    stale: bool,
}

/// What every request that is passed on needs.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub(crate) settings: Settings,
    pub(crate) backends: Backends,
    pub(crate) pseudonym: Pseudonym,
}

/// Answers a request.
pub(crate) async fn forward(forwarder: &Arc<Forwarder>, request: Request<RequestBody>) -> Response<Body> {
    let (mut outgoing, stream) = match prepare(forwarder, request) {
        Ok(prepared) => prepared,
        Err(problem) => return problem.into_response(),
    };
    if outgoing.may_have_no_body() {
        let _ = tokio::time::timeout(LOOK_AHEAD, outgoing.upload.look_ahead()).await;
    }
    let mut tried = Vec::new();
    let mut since = None;
    let mut retries = 0;
    loop {
        let Some(at) = forwarder.backends.choose(&tried) else {
            let problem = Problem::new(ProblemKind::NoUpstream, "no upstream is healthy");
            return problem.into_response();
        };
        let Some(backend) = forwarder.backends.all.get(at) else {
            return Problem::new(ProblemKind::NoUpstream, "there is no upstream").into_response();
        };
        let failure = match attempt(forwarder, backend, &outgoing, since).await {
            Ok((response, lease)) if outgoing.tunnel.is_none() => {
                let answer = answer(forwarder, &outgoing, response, lease, retries);
                if !outgoing.is_too_early(&answer) {
                    return answer;
                }
                // Boxed: hardly any request needs the room for it.
                match Box::pin(outgoing.wait_for_handshake(answer)).await {
                    // To the same upstream: it has not failed.
                    None => continue,
                    Some(answer) => return answer,
                }
            }
            Ok((response, lease)) => {
                return Box::pin(answer_tunnel(forwarder, outgoing, stream, (response, lease), retries))
                    .await;
            }
            Err(failure) => failure,
        };
        let again = failure.safe && outgoing.upload.is_untouched();
        if again && failure.stale && since.is_none() {
            // That says nothing about the upstream: the same again, with a new connection.
            since = Some(Instant::now());
            continue;
        }
        // What the client did wrong says nothing about the upstream, nor does what others take of it.
        if !matches!(failure.problem.kind(), ProblemKind::Busy | ProblemKind::ClientGone) {
            backend.on_failure();
        }
        let elsewhere = forwarder.backends.all.len() > 1 || failure.problem.kind() == ProblemKind::Broken;
        if again && elsewhere && retries < forwarder.settings.retries {
            tracing::debug!(problem = %failure.problem, "a request is sent again");
            retries = retries.saturating_add(1);
            tried.push(at);
            continue;
        }
        return refuse(failure.problem, backend, &outgoing, retries);
    }
}

/// The protocol of an extended CONNECT, whichever server it came through.
fn extended_connect(extensions: &mut http::Extensions) -> Option<ExtendedConnect> {
    let of_hyper = extensions.remove::<hyper::ext::Protocol>();
    extensions.remove().or_else(|| of_hyper.map(|protocol| ExtendedConnect::new(protocol.as_str())))
}

/// Checks a request, and makes of it what upstreams see. In a tunnel made of bodies what the client sends is
/// apart.
fn prepare(
    forwarder: &Forwarder,
    request: Request<RequestBody>,
) -> Result<(Outgoing, Option<RequestBody>), Problem> {
    let began = Instant::now();
    let (mut parts, body) = request.into_parts();
    let meter = parts.extensions.remove();
    let client = parts.extensions.remove().map(|upgrade| Client { upgrade, meter });
    let protocol = extended_connect(&mut parts.extensions);
    let tunnel = match (&parts.method, protocol, client) {
        (&Method::CONNECT, Some(protocol), client) => Some(Wanted::connect(protocol.as_str(), client)?),
        (&Method::CONNECT | &Method::TRACE, None, _) => {
            let problem = Problem::new(ProblemKind::NotSupported, format!("{} is not proxied", parts.method));
            return Err(problem.status_of(StatusCode::METHOD_NOT_ALLOWED));
        }
        (_, None, Some(client)) => headers::wanted_upgrade(parts.version, &parts.headers)
            .map(|protocol| Wanted::Upgrade { protocol, client }),
        _ => None,
    };
    if headers::has_foreign_coding(&parts.headers) {
        return Err(Problem::new(ProblemKind::NotSupported, "a transfer coding other than chunked"));
    }
    let expects = expects_continue(&parts.headers, parts.version)?;
    let host = headers::requested_host(&parts.uri, &parts.headers)?;
    let peer = parts.extensions.get::<Peer>().copied();
    let https = parts.version == Version::HTTP_3 || parts.uri.scheme() == Some(&http::uri::Scheme::HTTPS);
    let early = parts.extensions.remove().filter(EarlyData::may_be_replay);
    // What another has said before us is for the client to answer (RFC 8470 section 5.2).
    let by_us = early.clone().filter(|_| !headers::is_early(&parts.headers));
    let facts = Facts {
        version: parts.version,
        peer,
        secure: peer.map_or(https, |peer| peer.secure),
        early: early.is_some(),
        host: host.as_ref(),
    };
    headers::on_request(&mut parts.headers, &facts, &forwarder.settings, &forwarder.pseudonym)?;
    let bodies = matches!(tunnel, Some(Wanted::Connect { client: None, .. }));
    if matches!(tunnel, Some(Wanted::Connect { .. })) {
        parts.method = Method::GET;
        parts.headers.remove(CONTENT_LENGTH);
    }
    let (body, stream) = if bodies { (empty(), Some(body)) } else { (body, None) };
    let announced = headers::announced_length(&parts.headers)?;
    if let Some(length) = announced {
        // Said once, whatever was said.
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let upload = Upload::new(body, announced);
    if upload.is_empty() && announced.is_some_and(|length| length > 0) {
        return Err(Problem::new(ProblemKind::BadRequest, "a body is announced and there is none"));
    }
    let common_host = headers::common_host(&forwarder.settings.host, host.as_ref());
    let addressed = common_host.map(|host| parts.headers.insert(HOST, host)).is_some();
    let outgoing = Outgoing {
        method: parts.method,
        target: target(parts.uri),
        headers: parts.headers,
        // Who speaks for others has many of them.
        client: peer
            .filter(|peer| !forwarder.settings.trusts(*peer))
            .and_then(|peer| ClientNetwork::of(peer.address.ip())),
        host,
        addressed,
        expects: expects && !upload.is_empty(),
        upload,
        informational: parts.extensions.remove(),
        early: by_us,
        tunnel,
        began,
    };
    Ok((outgoing, stream))
}

fn empty() -> RequestBody {
    RequestBody::new(Empty::new().map_err(|never| match never {}))
}

/// Whether the client waits for status 100 before it sends the body.
fn expects_continue(headers: &HeaderMap, version: Version) -> Result<bool, Problem> {
    let Some(expect) = headers.get(EXPECT) else { return Ok(false) };
    if !expect.as_bytes().eq_ignore_ascii_case(b"100-continue") {
        let what = format!("the expectation {expect:?} cannot be met");
        return Err(Problem::new(ProblemKind::Expectation, what));
    }
    // Older clients do not mean it (RFC 9110 section 10.1.1).
    Ok(version > Version::HTTP_10)
}

fn target(uri: Uri) -> PathAndQuery {
    match uri.into_parts().path_and_query {
        Some(target) if target.as_str().starts_with('/') || target == "*" => target,
        // A query without a path.
        Some(target) => {
            PathAndQuery::try_from(format!("/{target}")).unwrap_or_else(|_| PathAndQuery::from_static("/"))
        }
        None => PathAndQuery::from_static("/"),
    }
}

impl Outgoing {
    /// Whether it is open that there is a body, which is rare with the method.
    fn may_have_no_body(&self) -> bool {
        let rarely = [Method::GET, Method::HEAD, Method::OPTIONS, Method::DELETE].contains(&self.method);
        rarely && !self.upload.is_empty() && !self.headers.contains_key(CONTENT_LENGTH) && !self.expects
    }

    /// Whether the upstream wants the request when it can be no replay, and it may be sent again: only without a body,
    /// for the connection that has the request takes of one what comes, until the answer is dropped, which gives it up.
    fn is_too_early<B>(&self, response: &Response<B>) -> bool {
        response.status() == StatusCode::TOO_EARLY && self.early.is_some() && self.upload.is_empty()
    }

    /// Waits until the request can be no replay, which it is no longer said to be then. If that never comes, returns
    /// the answer without its content: meanwhile nothing of the upstream's may be kept, for the client has it in its
    /// hand how long that is.
    async fn wait_for_handshake(&mut self, answer: Response<Body>) -> Option<Response<Body>> {
        let mut answer = answer.map(|body| {
            drop(body);
            Body::empty()
        });
        for name in [CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE] {
            answer.headers_mut().remove(name);
        }
        let Some(early) = self.early.take() else { return Some(answer) };
        if !early.confirmed().await {
            return Some(answer);
        }
        headers::set_not_early(&mut self.headers);
        None
    }

    /// The request as one upstream gets it.
    fn request(&self, forwarder: &Forwarder, backend: &Backend, http2: bool) -> Request<View> {
        let mut request = Request::new(self.upload.view());
        *request.method_mut() = self.method.clone();
        *request.version_mut() = if http2 { Version::HTTP_2 } else { Version::HTTP_11 };
        *request.uri_mut() = Uri::from(self.target.clone());
        *request.headers_mut() = self.headers.clone();
        if http2 || !self.addressed {
            let host = headers::host_of(&forwarder.settings.host, self.host.as_ref(), &backend.upstream);
            headers::address(&mut request, host, backend.upstream.scheme(), http2);
        }
        let framed = self.upload.is_empty() || self.headers.contains_key(CONTENT_LENGTH);
        let headers = request.headers_mut();
        if !http2 {
            if !framed {
                headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
            if self.headers.contains_key(http::header::TE) {
                headers.insert(http::header::CONNECTION, HeaderValue::from_static("te"));
            }
            if self.expects {
                headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
            }
            if let Some(tunnel) = &self.tunnel {
                tunnel.ask(headers);
            }
        }
        self.pass_informational(&mut request);
        request
    }

    /// Has informational responses passed on, and the body begin at status 100.
    fn pass_informational(&self, request: &mut Request<View>) {
        if !self.expects && self.informational.is_none() {
            return;
        }
        let (upload, sink, expects) = (self.upload.clone(), self.informational.clone(), self.expects);
        hyper::ext::on_informational(request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                upload.release();
            }
            let wanted = expects || response.status() != StatusCode::CONTINUE;
            if let Some(sink) = sink.as_ref().filter(|_| wanted) {
                let mut copy = Response::new(());
                *copy.status_mut() = response.status();
                *copy.headers_mut() = response.headers().clone();
                headers::on_informational(copy.headers_mut());
                // Too late is no harm.
                let _ = sink.send(copy);
            }
        });
    }

    /// Lets the body begin although no status 100 has come.
    fn begin_body(&self) {
        if self.upload.is_held() {
            self.upload.release();
            self.send_continue();
        }
    }

    /// Says to a client that waits for it that the body may come.
    fn send_continue(&self) {
        if let Some(sink) = &self.informational {
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::CONTINUE;
            let _ = sink.send(response);
        }
    }

    /// How long it took until there was a response.
    fn answered(&self, backend: &Backend, retries: u32) -> UpstreamTime {
        let waited = self.began.elapsed().saturating_sub(self.upload.waited());
        UpstreamTime::new(Arc::clone(&backend.name), retries, waited, true)
    }

    /// Whether the request may be sent again although the upstream may have seen it.
    fn is_idempotent(&self) -> bool {
        self.method.is_idempotent() && self.tunnel.is_none()
    }
}

/// Sends the request to one upstream, and waits for the head of the response.
async fn attempt(
    forwarder: &Forwarder,
    backend: &Arc<Backend>,
    outgoing: &Outgoing,
    since: Option<Instant>,
) -> Result<(Response<Incoming>, Lease), Failure> {
    let refused = |problem: Problem| Failure { problem: problem.at(&backend.name), safe: true, stale: false };
    let place = backend.admit(outgoing.client).await.map_err(refused)?;
    let connected = backend.connect(outgoing.tunnel.is_some(), since).await;
    let (connection, reused) = connected.map_err(refused)?;
    let http2 = matches!(connection, Connection::Http2(_));
    let mut lease = Lease::new(backend, (connection, place), &outgoing.upload);
    if outgoing.expects {
        match http2 {
            false => outgoing.upload.hold(),
            // There its status 100 is not seen.
            true => outgoing.send_continue(),
        }
    }
    let request = outgoing.request(forwarder, backend, http2);
    let mut alarm = lease.take_alarm();
    let limit = forwarder.settings.timeouts.response;
    let watched = watch(send(&mut lease, request), outgoing, limit, &mut alarm).await;
    lease.keep_alarm(alarm);
    match watched {
        Ok(Ok(mut response)) => {
            lease.note_keep_alive(response.headers());
            let upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            if upgraded && outgoing.tunnel.is_none() {
                let problem = Problem::new(ProblemKind::Broken, "the upstream changed protocols unasked");
                return Err(Failure { problem: problem.at(&backend.name), safe: false, stale: false });
            }
            if headers::has_foreign_coding(response.headers()) {
                let detail = "the response has a transfer coding that was not asked for";
                let problem = Problem::new(ProblemKind::Broken, detail);
                return Err(Failure { problem: problem.at(&backend.name), safe: false, stale: false });
            }
            if !upgraded {
                response.extensions_mut().remove::<OnUpgrade>();
            }
            Ok((response, lease))
        }
        Ok(Err((error, unsent))) => {
            if outgoing.upload.has_failed() {
                let problem = Problem::new(ProblemKind::ClientGone, "the client gave up the request's body");
                return Err(Failure { problem, safe: false, stale: false });
            }
            let detail = format!("no response came: {}", chain(&error));
            let problem = Problem::new(ProblemKind::Broken, detail).because(Reason::of_exchange(&error));
            let problem = problem.at(&backend.name);
            Err(Failure { problem, safe: unsent || outgoing.is_idempotent(), stale: reused })
        }
        Err(limit) => {
            let detail = format!("no response came within {limit:?}");
            let problem = Problem::new(ProblemKind::ResponseTimeout, detail).at(&backend.name);
            Err(Failure { problem, safe: false, stale: false })
        }
    }
}

/// Sends the request; the second part of an error tells whether nothing was sent.
async fn send(lease: &mut Lease, request: Request<View>) -> Result<Response<Incoming>, (hyper::Error, bool)> {
    let result = match lease.connection() {
        Some(Connection::Http1(http1)) => http1.sender.try_send_request(request).await,
        Some(Connection::Http2(http2)) => http2.sender.try_send_request(request).await,
        // A lease has its connection until it is taken after the response.
        None => return std::future::pending().await,
    };
    result.map_err(|mut error| {
        let unsent = error.take_message().is_some();
        (error.into_error(), unsent)
    })
}

/// Waits as long as there is progress, or the client is to blame that there is none.
async fn watch<T>(
    sent: impl Future<Output = T>,
    outgoing: &Outgoing,
    limit: Duration,
    alarm: &mut Alarm,
) -> Result<T, Duration> {
    let mut sent = pin!(sent);
    let began = Instant::now();
    loop {
        let held = outgoing.upload.is_held();
        let stuck = outgoing.upload.stuck_since();
        let due = match (held, stuck) {
            (true, _) => began + CONTINUE_WITHIN,
            (false, Some(since)) => since + limit,
            (false, None) => Instant::now() + limit,
        };
        tokio::select! {
            biased;
            result = &mut sent => return Ok(result),
            () = alarm.at(due) => {}
        }
        if held {
            outgoing.begin_body();
        } else if outgoing.upload.stuck_since().is_some_and(|since| since + limit <= Instant::now()) {
            return Err(limit);
        }
    }
}

/// Makes the upstream's response the client's.
fn answer(
    forwarder: &Forwarder,
    outgoing: &Outgoing,
    response: Response<Incoming>,
    lease: Lease,
    retries: u32,
) -> Response<Body> {
    let time = outgoing.answered(&lease.backend, retries);
    let mut response = response
        .map(|incoming| Body::arriving(incoming, lease, time.clone(), forwarder.settings.timeouts.body));
    let received = response.version();
    headers::on_response(response.headers_mut(), received, &forwarder.pseudonym);
    *response.version_mut() = Version::HTTP_11;
    response.extensions_mut().insert(time);
    response
}

/// The same where the client asked for a tunnel.
async fn answer_tunnel(
    forwarder: &Forwarder,
    mut outgoing: Outgoing,
    stream: Option<RequestBody>,
    (response, lease): (Response<Incoming>, Lease),
    retries: u32,
) -> Response<Body> {
    let time = outgoing.answered(&lease.backend, retries);
    let name = Arc::clone(&lease.backend.name);
    let mut answer = match outgoing.tunnel.take() {
        Some(wanted) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            match begin_tunnel(forwarder, wanted, stream, response, lease).await {
                Ok(response) => response,
                Err(problem) => problem.at(&name).into_response(),
            }
        }
        Some(Wanted::Connect { .. }) if response.status().is_success() => {
            let detail = format!("the upstream did not change protocols but said {}", response.status());
            Problem::new(ProblemKind::Broken, detail).at(&name).into_response()
        }
        _ => return self::answer(forwarder, &outgoing, response, lease, retries),
    };
    answer.extensions_mut().insert(time);
    answer
}

async fn begin_tunnel(
    forwarder: &Forwarder,
    wanted: Wanted,
    stream: Option<RequestBody>,
    mut response: Response<Incoming>,
    mut lease: Lease,
) -> Result<Response<Body>, Problem> {
    wanted.check(response.headers())?;
    let limit = forwarder.settings.timeouts.tunnel;
    let upstream = hyper::upgrade::on(&mut response);
    drop(lease.upgraded());
    let (mut parts, _) = response.into_parts();
    let upgrade = parts.headers.get(UPGRADE).cloned();
    headers::on_response(&mut parts.headers, parts.version, &forwarder.pseudonym);
    parts.version = Version::HTTP_11;
    let client = match wanted {
        Wanted::Upgrade { client, .. } => {
            parts.headers.insert(http::header::CONNECTION, HeaderValue::from_static("upgrade"));
            parts.headers.extend(upgrade.map(|upgrade| (UPGRADE, upgrade)));
            client
        }
        Wanted::Connect { client, .. } => {
            parts.status = StatusCode::OK;
            parts.headers.remove(SEC_WEBSOCKET_ACCEPT);
            match client {
                Some(client) => client,
                None => {
                    let upgraded = upstream.await.map_err(|error| {
                        Problem::new(
                            ProblemKind::Broken,
                            format!("the tunnel broke at once: {}", chain(&error)),
                        )
                        .because(Reason::BrokeOff)
                    })?;
                    let stream = Stream::new(upgraded, stream.unwrap_or_else(empty), lease, limit);
                    return Ok(Response::from_parts(parts, Body::tunnel(stream)));
                }
            }
        }
    };
    tunnel::join(client, upstream, lease, limit);
    Ok(Response::from_parts(parts, Body::empty()))
}

/// The answer if there is none from an upstream.
fn refuse(problem: Problem, backend: &Backend, outgoing: &Outgoing, retries: u32) -> Response<Body> {
    tracing::debug!(%problem, "a request could not be proxied");
    let waited = outgoing.began.elapsed().saturating_sub(outgoing.upload.waited());
    let mut response = problem.into_response();
    response.extensions_mut().insert(UpstreamTime::new(Arc::clone(&backend.name), retries, waited, false));
    response
}
