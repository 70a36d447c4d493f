//! Which header fields are passed on, and which are made here (RFC 9110 section 7.6, RFC 7239).
//!
//! Invariants: nothing that is about one connection is passed to another; what an upstream is told about the
//! client comes from [`Peer`] or from a peer that is trusted; a request has one Host at most.

mod forwarded;
mod pseudonym;
mod seen;

use crate::problem::{Problem, ProblemKind};
use crate::settings::{HostHeader, Settings};
use crate::upstream::{Scheme, Upstream};
use bytes::Bytes;
use godwit_body::Peer;
use http::header::{
    ALT_SVC, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, EXPECT, Entry, HOST, HeaderName, MAX_FORWARDS, RANGE, SET_COOKIE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderValue, Request, Uri, Version};
use http_body::Frame;
use seen::Seen;
use std::time::Duration;

pub(crate) use pseudonym::Pseudonym;

const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Fields that are made here for an upstream, Host among them.
const MADE_HERE: usize = 8;

/// Fields about one connection, whatever Connection says.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    HeaderName::from_static("proxy-connection"),
    http::header::PROXY_AUTHENTICATE,
    http::header::PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("http2-settings"),
];

/// Members of a list in all fields of this name. They are bytes: one that is no text (`obs-text`, RFC 9110 section
/// 5.5) must not hide the others.
fn members<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// Whether a list has this member, in whatever case.
fn has_member(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    members(headers, name).any(|member| member.eq_ignore_ascii_case(wanted.as_bytes()))
}

/// The fields that Connection names, as far as they are there.
fn named_by_connection(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    let names = members(headers, &CONNECTION).filter_map(|member| HeaderName::from_bytes(member).ok());
    names.filter(|name| headers.contains_key(name))
}

/// Whether Via says that a message has passed a hop of this name (RFC 9110 section 7.6.3).
fn has_passed(headers: &HeaderMap, pseudonym: &Pseudonym) -> bool {
    members(headers, &VIA).any(|hop| {
        let mut words = hop.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.nth(1) == Some(pseudonym.name().as_bytes())
    })
}

/// What says how a message is framed, where it goes, who sends it, and how its content is to be understood.
const HEADER_SECTION_ONLY: [HeaderName; 14] = [
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    EARLY_DATA,
    EXPECT,
    HOST,
    MAX_FORWARDS,
    RANGE,
    SET_COOKIE,
    TRAILER,
];

/// Takes out what is about one connection.
fn remove_hop_by_hop(headers: &mut HeaderMap, seen: Seen) {
    if !seen.any(Seen::HOP_BY_HOP) {
        return;
    }
    // Two ways to say how long a body is are one too many; the other one is obeyed.
    if seen.any(Seen::TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    if seen.any(Seen::CONNECTION) {
        let named: Vec<HeaderName> = named_by_connection(headers).collect();
        // Nobody may take the warning of a replay away (RFC 8470 section 5.1).
        for name in named.iter().filter(|name| **name != HOST && **name != EARLY_DATA) {
            headers.remove(name);
        }
    }
    let present: Vec<HeaderName> = headers.keys().filter(|name| HOP_BY_HOP.contains(name)).cloned().collect();
    for name in &present {
        headers.remove(name);
    }
}

/// The protocol that an HTTP/1.1 request wants to change to, if that is possible.
pub(crate) fn wanted_upgrade(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let wanted = headers.get(UPGRADE)?;
    let possible = version == Version::HTTP_11
        && has_member(headers, &CONNECTION, "upgrade")
        // HTTP/2 over TCP by an upgrade exists no more (RFC 9113 section 3.1), and is a way around proxies.
        && !members(headers, &UPGRADE).any(|name| name.to_ascii_lowercase().starts_with(b"h2c"));
    possible.then(|| wanted.clone())
}

/// The name that a request is for: that of its target, or Host.
pub(crate) fn requested_host(uri: &Uri, headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
    let bad = |what: &str| Problem::new(ProblemKind::BadRequest, what);
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(bad("more than one Host field"));
    }
    let sound = |authority: &Authority| {
        if authority.as_str().contains('@') {
            Err(bad("Host has a user name"))
        } else if !has_sound_port(authority) {
            Err(bad("Host has a port that is none"))
        } else {
            Ok(())
        }
    };
    if let Some(authority) = uri.authority() {
        sound(authority)?;
        let host = HeaderValue::from_str(authority.as_str());
        return host.map(Some).map_err(|_| bad("the target's authority cannot be a Host"));
    }
    let Some(host) = host.filter(|host| !host.is_empty()) else { return Ok(None) };
    sound(&Authority::try_from(host.as_bytes()).map_err(|_| bad("Host is not a name"))?)?;
    Ok(Some(host.clone()))
}

fn has_sound_port(authority: &Authority) -> bool {
    let rest = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    matches!(rest, "" | ":") || authority.port().is_some()
}

/// How many bytes a body has, if its head says so: one number (RFC 9110 section 8.6).
pub(crate) fn announced_length(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let mut announced = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse::<u64>().ok());
        if number.is_none() || announced.is_some_and(|other| Some(other) != number) {
            return Err(Problem::new(ProblemKind::BadRequest, "content-length is not one number"));
        }
        announced = number;
    }
    Ok(announced)
}

/// Whether a message has a transfer coding other than chunked (RFC 9112 section 6.1): what it holds could not
/// be passed on as it is, nor without saying so.
pub(crate) fn has_foreign_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter().flat_map(|value| {
        // What is no text is no coding that is known.
        value.to_str().unwrap_or("?").split(',').map(str::trim).filter(|coding| !coding.is_empty())
    });
    let first = codings.next();
    first.is_some_and(|coding| !coding.eq_ignore_ascii_case("chunked")) || codings.next().is_some()
}

/// The Host that all upstreams see, if it is the same for all.
pub(crate) fn common_host(policy: &HostHeader, requested: Option<&HeaderValue>) -> Option<HeaderValue> {
    match policy {
        HostHeader::Keep => requested.cloned(),
        HostHeader::Upstream => None,
        HostHeader::Name(name) => HeaderValue::from_str(name).ok(),
    }
}

/// The Host that the upstream sees.
pub(crate) fn host_of(
    policy: &HostHeader,
    requested: Option<&HeaderValue>,
    upstream: &Upstream,
) -> HeaderValue {
    let own = || HeaderValue::try_from(upstream.authority()).ok();
    let host = common_host(policy, requested).or_else(own);
    host.unwrap_or_else(|| HeaderValue::from_static("localhost"))
}

/// Says whom a request is for, in the way of the protocol: by Host, or by the target. Its URI is a path.
pub(crate) fn address<B>(request: &mut Request<B>, host: HeaderValue, scheme: Scheme, http2: bool) {
    if http2 && let Ok(authority) = Authority::try_from(host.as_bytes()) {
        let mut parts = http::uri::Parts::default();
        parts.path_and_query = request.uri().path_and_query().cloned();
        if parts.path_and_query.as_ref().is_some_and(|path| path.as_str() == "*") {
            parts.path_and_query = Some(PathAndQuery::from_static("/"));
        }
        parts.scheme = Some(scheme.of_uri());
        parts.authority = Some(authority);
        if let Ok(uri) = Uri::from_parts(parts) {
            request.headers_mut().remove(HOST);
            *request.uri_mut() = uri;
            return;
        }
    }
    request.headers_mut().insert(HOST, host);
}

/// The fields of a request that go upstream, apart from Host and what an upgrade needs.
pub(crate) fn on_request(
    headers: &mut HeaderMap,
    facts: &Facts<'_>,
    settings: &Settings,
    pseudonym: &Pseudonym,
) -> Result<(), Problem> {
    let seen = Seen::of(headers);
    if seen.any(Seen::VIA) && has_passed(headers, pseudonym) {
        return Err(Problem::new(ProblemKind::Loop, "the request has been here before"));
    }
    let trailers = seen.any(Seen::TE) && has_member(headers, &TE, "trailers");
    remove_hop_by_hop(headers, seen);
    // Where there is no room for so many, there is none for the first that is too many either.
    let _ = headers.try_reserve(MADE_HERE);
    if seen.any(Seen::EXPECT) {
        headers.remove(EXPECT);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if seen.any(Seen::COOKIE) {
        join_cookies(headers);
    }
    warn_of_early_data(headers, facts.early, seen);
    if seen.any(Seen::CLAIM) {
        forwarded::remove_claims(headers, facts, settings);
    }
    forwarded::forward(headers, facts, settings);
    append(headers, VIA, pseudonym.via(facts.version));
    Ok(())
}

/// What is known of a request apart from its fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) version: Version,
    pub(crate) peer: Option<Peer>,
    pub(crate) secure: bool,
    /// It came in early data, and the handshake is not complete.
    pub(crate) early: bool,
    pub(crate) host: Option<&'a HeaderValue>,
}

/// Whether whoever sent the request says that it may be a replay.
pub(crate) fn is_early(headers: &HeaderMap) -> bool {
    headers.contains_key(EARLY_DATA)
}

/// The request is no longer said to be one.
pub(crate) fn set_not_early(headers: &mut HeaderMap) {
    headers.remove(EARLY_DATA);
}

/// Says that the request may be a replay, if it may here, or somebody before has said so: whoever it is, and in whatever
/// words, as all of them count as the same (RFC 8470 section 5.1). Nobody can say that it is none.
fn warn_of_early_data(headers: &mut HeaderMap, early: bool, seen: Seen) {
    if !early && !seen.any(Seen::EARLY_DATA) {
        return;
    }
    // Some applications do not tell underscores from hyphens.
    let shadows = |name: &&HeaderName| **name != EARLY_DATA && is_in_hyphens(name.as_str(), "early-data");
    let shadows: Vec<HeaderName> = headers.keys().filter(shadows).cloned().collect();
    for name in &shadows {
        headers.remove(name);
    }
    if early || headers.contains_key(EARLY_DATA) {
        headers.insert(EARLY_DATA, HeaderValue::from_static("1"));
    }
}

/// HTTP/2 and HTTP/3 clients may send cookies one by one (RFC 9113 section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let all: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(mut joined) = HeaderValue::from_bytes(&all.join(&b"; "[..])) {
        joined.set_sensitive(true);
        headers.insert(COOKIE, joined);
    }
}

/// Whether a name is `wanted` when its underscores are taken for hyphens, as some applications do.
fn is_in_hyphens(name: &str, wanted: &str) -> bool {
    name.len() == wanted.len() && begins_in_hyphens(name, wanted)
}

/// Whether a name begins with `wanted` when its underscores are taken for hyphens.
fn begins_in_hyphens(name: &str, wanted: &str) -> bool {
    let hyphens = name.bytes().map(|byte| if byte == b'_' { b'-' } else { byte });
    name.len() >= wanted.len() && hyphens.zip(wanted.bytes()).all(|(byte, wanted)| byte == wanted)
}

/// Adds a member to a list.
fn append(headers: &mut HeaderMap, name: HeaderName, member: Option<HeaderValue>) {
    let Some(member) = member else { return };
    let mut there = match headers.entry(name) {
        Entry::Vacant(vacant) => {
            vacant.insert(member);
            return;
        }
        Entry::Occupied(there) => there,
    };
    let mut list: Vec<&[u8]> = there.iter().map(HeaderValue::as_bytes).collect();
    list.push(member.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&list.join(&b", "[..])) {
        there.insert(value);
    }
}

/// The fields of a response that go to the client.
pub(crate) fn on_response(headers: &mut HeaderMap, received: Version, pseudonym: &Pseudonym) {
    let seen = Seen::of(headers);
    remove_hop_by_hop(headers, seen);
    // Where else the site is found is for whoever faces the client to say.
    if seen.any(Seen::ALT_SVC) {
        headers.remove(ALT_SVC);
    }
    append(headers, VIA, pseudonym.via(received));
}

/// The fields of an informational response that go to the client.
pub(crate) fn on_informational(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers, Seen::of(headers));
    headers.remove(CONTENT_LENGTH);
    headers.remove(ALT_SVC);
}

/// A frame of a body as it may pass, in either direction: trailers without what has its place in a header section alone (RFC
/// 9110 section 6.5.1).
pub(crate) fn passing(frame: Frame<Bytes>) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(mut trailers) => {
            on_trailers(&mut trailers);
            Frame::trailers(trailers)
        }
        Err(frame) => frame,
    }
}

fn on_trailers(trailers: &mut HeaderMap) {
    remove_hop_by_hop(trailers, Seen::of(trailers));
    for name in &HEADER_SECTION_ONLY {
        trailers.remove(name);
    }
    // Some servers merge trailers into the header section, where these would be believed.
    let claims: Vec<HeaderName> =
        trailers.keys().filter(|name| forwarded::is_claim(name.as_str(), false)).cloned().collect();
    for name in &claims {
        trailers.remove(name);
    }
}

/// How long the upstream keeps the connection, if it says so.
pub(crate) fn keep_alive(headers: &HeaderMap) -> Option<Duration> {
    members(headers, &KEEP_ALIVE).find_map(|parameter| {
        let (name, seconds) = std::str::from_utf8(parameter).ok()?.split_once('=')?;
        let seconds = seconds.trim().trim_matches('"').parse().ok()?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| Duration::from_secs(seconds))
    })
}

#[cfg(test)]
mod tests;
