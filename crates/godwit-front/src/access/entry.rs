//! One request from its arrival to its delivery.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use godwit::http3::ConnectionInfo;
use godwit_proxy::{Problem, ProblemKind, Reason, UpstreamTime};
use godwit_report::record::{Arm, Outcome, Protocol, WhyNotH3};
use http::header::{ALT_SVC, HOST, HeaderName, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};

use super::body::{BodyEnd, BodyObserver, Logged, logged, unlogged};
use super::time::unix_ms;
use super::{Inner, Observer, Site};
use crate::advertise::Choice;
use crate::client::delivery::{self, Undelivered};
use crate::client::{Client, Path, remote_of};
use crate::metrics::{Finished, Refusal, Transport};
use godwit_body::{BoxBody, TunnelMeter};
use godwit_text::instant_now;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// A request under way. Dropped, its line is written with what is known by then.
#[derive(Debug)]
pub(crate) struct Entry {
    observer: Observer,
    client: Option<Arc<Client>>,
    /// From where the request came.
    remote: Option<SocketAddr>,
    /// To be asked about the response, on HTTP/3.
    connection: Option<ConnectionInfo>,
    site: Option<Arc<Site>>,
    begun: Instant,
    protocol: Protocol,
    head_only: bool,
    /// It asks for a tunnel (RFC 8441).
    connects: bool,
    choice: Option<Choice>,
    request_bytes: Option<Arc<AtomicU64>>,
    /// Of a connection that may become a tunnel.
    tunnel: Option<TunnelMeter>,
    pub(super) answer: Answer,
    /// For the log, if there is one.
    pub(super) facts: Option<Facts>,
    stage: Stage,
}

/// What is sent back.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) status: Option<StatusCode>,
    pub(super) bytes: u64,
    pub(super) first_byte: Option<Duration>,
    pub(super) last_byte: Option<Duration>,
    pub(super) delivered: Option<Duration>,
    pub(super) upstream: Option<UpstreamTime>,
    pub(super) outcome: Option<Outcome>,
    /// Why the proxy answered in an upstream's place, or did not pass on the whole response.
    pub(super) reason: Option<Reason>,
}

/// What only the log wants to know.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) time_ms: u64,
    pub(super) host: Option<String>,
    /// `None` if it could not be read.
    pub(super) method: Option<Method>,
    pub(super) uri: Option<Uri>,
    pub(super) version: Version,
    pub(super) user_agent: Option<HeaderValue>,
    pub(super) referer: Option<HeaderValue>,
    pub(super) why_not_h3: Option<WhyNotH3>,
    pub(super) number: Option<u64>,
    pub(super) path: Option<Path>,
}

impl Facts {
    pub(super) fn method(&self) -> &str {
        self.method.as_ref().map_or("-", Method::as_str)
    }

    /// With the query.
    pub(super) fn path(&self) -> &str {
        let Some(uri) = &self.uri else { return "-" };
        uri.path_and_query().map_or("*", |path| path.as_str())
    }
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    UnderWay,
    /// It has been counted, and waits for its delivery.
    BodyOver,
    Logged,
}

impl Facts {
    /// Of a request that could not be read, and has come at this time.
    fn unknown(version: Version, time_ms: u64) -> Facts {
        Facts {
            time_ms,
            host: None,
            method: None,
            uri: None,
            version,
            user_agent: None,
            referer: None,
            why_not_h3: None,
            number: None,
            path: None,
        }
    }

    /// `in_words`: for people, who are told no more than what was asked for.
    fn of<B>(request: &Request<B>, arrived: Instant, in_words: bool) -> Facts {
        let waited = u64::try_from(arrived.elapsed().as_millis()).unwrap_or(u64::MAX);
        let short = Facts {
            method: Some(request.method().clone()),
            uri: Some(request.uri().clone()),
            ..Facts::unknown(request.version(), unix_ms().saturating_sub(waited))
        };
        if in_words {
            return short;
        }
        let headers = request.headers();
        let authority = request.uri().host().map(str::to_owned);
        let host = || headers.get(HOST).and_then(|host| host.to_str().ok()).map(without_port);
        Facts {
            host: authority.or_else(host).map(|host| host.to_ascii_lowercase()),
            user_agent: headers.get(USER_AGENT).cloned(),
            referer: headers.get(REFERER).cloned(),
            ..short
        }
    }
}

impl Entry {
    pub(super) fn new<B>(observer: Observer, request: &Request<B>, arrived: Instant) -> Entry {
        let client = Client::of(request.extensions()).cloned();
        let number = client.as_ref().map(|client| client.next_request());
        observer.0.metrics.request_begun(protocol(request.version()));
        let log = &observer.0.log;
        let mut facts = log.is_on().then(|| Facts::of(request, arrived, log.is_in_words()));
        if let Some(facts) = &mut facts {
            facts.number = number;
        }
        Entry {
            client,
            remote: remote_of(request.extensions()),
            connection: request.extensions().get::<ConnectionInfo>().cloned(),
            site: None,
            begun: arrived,
            protocol: protocol(request.version()),
            head_only: *request.method() == Method::HEAD,
            connects: *request.method() == Method::CONNECT,
            choice: None,
            request_bytes: None,
            tunnel: None,
            answer: Answer::default(),
            facts,
            stage: Stage::UnderWay,
            observer,
        }
    }

    /// What a client sent was refused before it became a request.
    pub(super) fn refused(observer: Observer, client: &Arc<Client>, status: StatusCode) {
        let facts = observer.0.log.is_on().then(|| {
            let number = Some(client.next_request());
            Facts { number, path: client.path(), ..Facts::unknown(Version::HTTP_11, unix_ms()) }
        });
        let answer = Answer { status: Some(status), outcome: Some(Outcome::Refused), ..Answer::default() };
        observer.0.metrics.request_begun(Protocol::Http11);
        // Its line is written by its drop.
        drop(Entry {
            client: Some(Arc::clone(client)),
            remote: Some(client.remote()),
            connection: None,
            site: None,
            begun: instant_now(),
            protocol: Protocol::Http11,
            head_only: false,
            connects: false,
            choice: None,
            request_bytes: None,
            tunnel: None,
            answer,
            facts,
            stage: Stage::UnderWay,
            observer,
        });
    }

    /// To count what arrives of the request's body with, where it has one.
    pub(crate) fn count_request(&mut self) -> Arc<AtomicU64> {
        Arc::clone(self.request_bytes.insert(Arc::default()))
    }

    /// To count with what passes through the tunnel that the request's connection may become.
    pub(crate) fn count_tunnel(&mut self) -> TunnelMeter {
        self.tunnel.insert(TunnelMeter::new()).clone()
    }

    /// The request is for this site.
    pub(crate) fn at_site(&mut self, site: &Arc<Site>, headers: &HeaderMap) {
        if let Some(client) = &self.client {
            let advertiser = &self.observer.0.advertiser;
            let logged = self.observer.0.log.is_json();
            let choice = advertiser.choose(&site.policy, client, headers, logged);
            match self.protocol {
                Protocol::H3 => advertiser.used(choice),
                _ => {
                    let why = advertiser.why_not_h3(&site.policy, choice, client);
                    if let Some(facts) = &mut self.facts {
                        facts.why_not_h3 = why;
                    }
                }
            }
            self.choice = Some(choice);
        }
        self.site = Some(Arc::clone(site));
    }

    /// Adds to the response what the client should know of this server, and follows it to its end.
    pub(crate) fn finish(mut self: Box<Self>, mut response: Response<BoxBody>) -> Response<Logged> {
        self.answer.first_byte = Some(self.begun.elapsed());
        self.answer.status = Some(response.status());
        self.answer.upstream = response.extensions().get::<UpstreamTime>().cloned();
        if let Some(problem) = response.extensions().get::<Problem>() {
            self.answer.outcome = outcome_of(problem);
            self.note(problem);
        }
        self.add_alt_svc(response.headers_mut());
        self.add_server_timing(response.headers_mut());
        let status = response.status();
        if let Some(meter) = self.tunnel.take().filter(|_| self.is_tunnel()) {
            meter.when_over(move |from, to| self.tunnel_over(from, to));
            return response.map(unlogged);
        }
        let bodiless = self.head_only || has_no_body(status);
        response.map(|body| logged(body, self, bodiless))
    }

    /// Whether the response makes it a tunnel, whose duration is no latency.
    fn is_tunnel(&self) -> bool {
        let changed = |status: StatusCode| {
            status == StatusCode::SWITCHING_PROTOCOLS || self.connects && status.is_success()
        };
        self.answer.status.is_some_and(changed)
    }

    /// The tunnel that the connection has become has ended.
    fn tunnel_over(mut self: Box<Self>, from_client: u64, to_client: u64) {
        self.count_request().store(from_client, Ordering::Relaxed);
        self.answer.bytes = to_client;
        self.answer.last_byte = Some(self.begun.elapsed());
        let outcome = if self.observer.0.metrics.is_cut() { Outcome::CutOff } else { Outcome::Ok };
        self.answer.outcome.get_or_insert(outcome);
        self.log();
    }

    /// Something went wrong on the way to an upstream.
    fn note(&mut self, problem: &Problem) {
        self.answer.reason = Some(problem.reason());
        self.observer.0.troubles.on_problem(problem, instant_now());
    }

    fn add_alt_svc(&self, headers: &mut HeaderMap) {
        let (Some(client), Some(choice), Some(site)) = (&self.client, self.choice, &self.site) else {
            return;
        };
        if self.protocol == Protocol::H3 || headers.contains_key(ALT_SVC) {
            return;
        }
        let advertiser = &self.observer.0.advertiser;
        if let Some(value) = advertiser.alt_svc(&site.policy, choice, client) {
            if value != "clear" {
                advertiser.told(choice, client);
            }
            headers.insert(ALT_SVC, value);
        }
    }

    /// `Server-Timing: upstream;dur=12.3`, after what the upstream says itself.
    fn add_server_timing(&self, headers: &mut HeaderMap) {
        let wanted = self.site.as_ref().is_some_and(|site| site.server_timing);
        let head = self.answer.upstream.as_ref().filter(|_| wanted).and_then(UpstreamTime::head);
        let Some(head) = head else { return };
        let mut value = b"upstream;dur=".to_vec();
        godwit_report::record::write_milliseconds(&mut value, head);
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            headers.append(SERVER_TIMING, value);
        }
    }

    /// Whether the client was sent away because it takes too little.
    fn is_too_slow(&self) -> bool {
        let on_stream = self.connection.as_ref().is_some_and(ConnectionInfo::is_too_slow);
        on_stream || self.client.as_ref().is_some_and(|client| client.is_too_slow())
    }

    /// Over TCP it is the connections that count.
    fn count_shed(&self) {
        if self.connection.as_ref().is_some_and(ConnectionInfo::is_too_slow) {
            self.observer.0.metrics.refused(Transport::Quic, Refusal::TooSlow);
        }
    }

    /// Adds it to the metrics, once.
    fn count(&mut self) {
        if self.stage != Stage::UnderWay {
            return;
        }
        self.stage = Stage::BodyOver;
        let Inner { metrics, nowhere, .. } = &*self.observer.0;
        let counters = self.site.as_ref().map_or(nowhere, |site| &site.counters);
        let finished = Finished {
            protocol: self.protocol,
            status: self.answer.status,
            request_bytes: self.request_bytes(),
            response_bytes: self.answer.bytes,
            took: self.answer.last_byte.unwrap_or_else(|| self.begun.elapsed()),
            upstream: self.answer.upstream.as_ref().map(UpstreamTime::waited),
        };
        metrics.request_over(counters, &finished);
        if let Some(client) = &self.client {
            client.request_over(self.outcome() == Outcome::ClientGone);
        }
    }

    /// Writes the line, and counts the last mile, once. It is under way until then: a server that ends waits for its line.
    fn log(&mut self) {
        if self.stage == Stage::Logged {
            return;
        }
        self.write();
        self.count();
        self.stage = Stage::Logged;
    }

    /// The line and the last mile.
    fn write(&mut self) {
        // Where deliveries are not followed, the last byte stands for them, whatever the protocol.
        let followed = self.observer.0.log.is_json();
        let total = if followed { self.answer.delivered } else { self.answer.last_byte };
        if let Some(total) = total.filter(|_| !self.is_tunnel()) {
            let upstream = self.answer.upstream.as_ref().map_or(Duration::ZERO, UpstreamTime::waited);
            self.observer.0.metrics.delivered(self.protocol, total.saturating_sub(upstream));
        }
        if let (Some(facts), Some(client)) = (&mut self.facts, &self.client)
            && self.observer.0.log.is_json()
        {
            facts.path = client.path().or(facts.path);
        }
        let dropped = self.observer.0.log.write(self);
        if dropped > 0 {
            self.observer.0.metrics.log_lines_dropped(dropped);
        }
    }

    pub(super) fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    pub(super) fn client(&self) -> Option<&Client> {
        self.client.as_deref()
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) fn request_bytes(&self) -> u64 {
        self.request_bytes.as_ref().map_or(0, |count| count.load(Ordering::Relaxed))
    }

    pub(super) fn user(&self) -> Option<u64> {
        self.choice.and_then(|choice| choice.user).map(|user| user.hash())
    }

    pub(super) fn arm(&self) -> Option<Arm> {
        self.choice.and_then(|choice| choice.arm)
    }

    /// How it ended; what has no response was given up by the client, or by this server at its end.
    pub(super) fn outcome(&self) -> Outcome {
        self.answer.outcome.unwrap_or_else(|| self.given_up())
    }

    fn given_up(&self) -> Outcome {
        if self.observer.0.metrics.is_cut() { Outcome::CutOff } else { Outcome::ClientGone }
    }

    /// How long it has taken up to its last byte, or up to now.
    pub(super) fn took(&self) -> Duration {
        self.answer.last_byte.unwrap_or_else(|| self.begun.elapsed())
    }
}

impl BodyObserver for Entry {
    fn add(&mut self, bytes: usize) {
        self.answer.bytes = self.answer.bytes.saturating_add(bytes as u64);
    }

    fn body_over(mut self: Box<Self>, end: BodyEnd) {
        self.answer.last_byte = Some(self.begun.elapsed());
        let outcome = match end {
            BodyEnd::Complete => Outcome::Ok,
            _ if self.is_too_slow() => Outcome::TooSlow,
            BodyEnd::Failed if self.answer.upstream.is_some() => Outcome::UpstreamFailed,
            BodyEnd::Failed => Outcome::Failed,
            BodyEnd::Dropped => self.given_up(),
        };
        self.answer.outcome.get_or_insert(outcome);
        if let Some(problem) = self.answer.upstream.clone().as_ref().and_then(UpstreamTime::broke_off) {
            self.note(problem);
        }
        self.count_shed();
        let complete = end == BodyEnd::Complete && self.observer.0.log.is_json();
        let Some((client, facts)) = self.client.as_ref().zip(self.facts.as_mut()).filter(|_| complete) else {
            return self.log();
        };
        facts.path = client.path();
        let meter = client.meter().cloned();
        self.count();
        match (self.connection.as_ref().map(ConnectionInfo::delivery), meter) {
            (Some(delivery), _) => delivery::wait(delivery, self),
            (None, Some(meter)) => meter.track(self),
            (None, None) => self.log(),
        }
    }
}

impl Undelivered for Entry {
    fn on_flushed(&mut self, at: Instant) {
        self.answer.last_byte = Some(at.saturating_duration_since(self.begun));
    }

    fn over(mut self: Box<Self>, delivered: Option<Instant>) {
        self.answer.delivered = delivered.map(|at| at.saturating_duration_since(self.begun));
        // The body was over, and yet the client has not taken it.
        if delivered.is_none() && self.answer.outcome == Some(Outcome::Ok) && self.is_too_slow() {
            self.answer.outcome = Some(Outcome::TooSlow);
            self.count_shed();
        }
        self.log();
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.log();
    }
}

/// How a request ended that the proxy had to answer by itself; `None`: as any other.
fn outcome_of(problem: &Problem) -> Option<Outcome> {
    match problem.kind() {
        ProblemKind::ClientGone => Some(Outcome::ClientGone),
        ProblemKind::BadRequest
        | ProblemKind::Busy
        | ProblemKind::NotSupported
        | ProblemKind::Expectation
        | ProblemKind::Loop => None,
        _ => Some(Outcome::UpstreamFailed),
    }
}

fn protocol(version: Version) -> Protocol {
    match version {
        Version::HTTP_3 => Protocol::H3,
        Version::HTTP_2 => Protocol::H2,
        Version::HTTP_11 => Protocol::Http11,
        _ => Protocol::Http10,
    }
}

/// Whether responses of this status have no body, whatever their headers say (RFC 9110 section 6.4.1).
fn has_no_body(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// The host of a `Host` header.
fn without_port(host: &str) -> String {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => host.to_owned(),
    }
}
