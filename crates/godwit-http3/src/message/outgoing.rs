//! From `http` types to field sections.

use super::{Protocol, is_connection_specific};
use crate::qpack::Section;
use http::header::{HOST, TE};
use http::{HeaderMap, Method, Request, Response, StatusCode};

type Fault = &'static str;

/// Writes a request's header section and returns its size as limits count it.
pub(crate) fn write_request(request: &Request<()>, section: &mut Section<'_>) -> Result<u64, Fault> {
    let uri = request.uri();
    let protocol = request.extensions().get::<Protocol>();
    let connect = request.method() == Method::CONNECT;
    if protocol.is_some() && !connect {
        return Err("a protocol with a method other than CONNECT");
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().map(http::HeaderValue::as_bytes);
    if hosts.next().is_some() {
        return Err("more than one Host field");
    }
    let authority = uri.authority().map(|authority| authority.as_str().as_bytes()).or(host);
    let authority =
        authority.filter(|authority| !authority.is_empty()).ok_or("no authority in URI or Host")?;
    if host.is_some_and(|host| !host.eq_ignore_ascii_case(authority)) {
        return Err("Host and the URI's authority differ");
    }
    if authority.contains(&b'@') {
        return Err("the authority has a userinfo part");
    }

    section.field(b":method", request.method().as_str().as_bytes(), false);
    if !connect || protocol.is_some() {
        let scheme = uri.scheme_str().unwrap_or("https");
        section.field(b":scheme", scheme.as_bytes(), false);
    }
    section.field(b":authority", authority, false);
    if !connect || protocol.is_some() {
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        match path {
            "*" if request.method() == Method::OPTIONS => section.field(b":path", b"*", false),
            "" => section.field(b":path", b"/", false),
            _ if path.starts_with('/') => section.field(b":path", path.as_bytes(), false),
            // A query without a path.
            _ if path.starts_with('?') => section.field(b":path", ["/", path].concat().as_bytes(), false),
            _ => return Err("the URI's path does not begin with a slash"),
        }
    }
    if let Some(protocol) = protocol {
        section.field(b":protocol", protocol.as_str().as_bytes(), false);
    }
    headers(request.headers(), true, section)
}

/// Writes a response's header section and returns its size.
pub(crate) fn write_response(response: &Response<()>, section: &mut Section<'_>) -> Result<u64, Fault> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err("status 101 does not exist in HTTP/3");
    }
    section.field(b":status", response.status().as_str().as_bytes(), false);
    headers(response.headers(), false, section)
}

/// Writes a trailer section and returns its size.
pub(crate) fn write_trailers(trailers: &HeaderMap, section: &mut Section<'_>) -> Result<u64, Fault> {
    headers(trailers, false, section)
}

fn headers(headers: &HeaderMap, request: bool, section: &mut Section<'_>) -> Result<u64, Fault> {
    for (name, value) in headers {
        if is_connection_specific(name.as_str().as_bytes()) {
            return Err("a connection-specific field");
        }
        if name == TE && !(request && value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"trailers")) {
            return Err("a TE field other than \"trailers\" in a request");
        }
        // In a request `:authority` stands for it.
        if !(request && name == HOST) {
            section.field(name.as_str().as_bytes(), value.as_bytes(), value.is_sensitive());
        }
    }
    Ok(section.size())
}
