//! From fields to `http` types.

use super::{Protocol, is_connection_specific};
use crate::qpack::Field;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, COOKIE, HOST, TE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};

type Fault = &'static str;

/// What a field section is supposed to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request's header section.
    Request {
        /// Whether `:protocol` has been allowed.
        connect_protocol: bool,
    },
    /// A response's header section.
    Response,
    /// A trailer section.
    Trailers,
}

/// How much content belongs to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// Any amount.
    Any,
    /// This many bytes.
    Exactly(u64),
}

/// A request without its content.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) request: Request<()>,
    pub(crate) body: Body,
}

/// A response without its content.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) response: Response<()>,
    /// As `content-length` says; the request and the status may say otherwise.
    pub(crate) body: Body,
}

#[derive(Debug, Default)]
struct Pseudo {
    method: Option<Method>,
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    path: Option<Bytes>,
    protocol: Option<Protocol>,
    status: Option<StatusCode>,
}

/// Takes the fields of one section and makes a message of them.
#[derive(Debug)]
pub(crate) struct Builder {
    kind: Kind,
    pseudo: Pseudo,
    headers: HeaderMap,
    /// All cookie fields, joined, and whether any is sensitive. They become one field only at the end: joined
    /// one by one, many small ones would cost the square of their number.
    cookies: Option<(Vec<u8>, bool)>,
    content_length: Option<u64>,
    fault: Option<Fault>,
}

impl Builder {
    pub(crate) fn new(kind: Kind) -> Self {
        let headers = HeaderMap::new();
        let pseudo = Pseudo::default();
        Builder { kind, pseudo, headers, cookies: None, content_length: None, fault: None }
    }

    /// Takes the next field. The first fault found is remembered and told at the end.
    pub(crate) fn field(&mut self, field: Field<'_>) {
        if self.fault.is_none() {
            let result = match field.name.strip_prefix(b":") {
                Some(name) => self.pseudo_header(name, field.value),
                None => self.header(field),
            };
            self.fault = result.err();
        }
    }

    fn pseudo_header(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        if !self.headers.is_empty() || self.cookies.is_some() {
            return Err("a pseudo-header field follows a regular field");
        }
        let pseudo = &mut self.pseudo;
        match (self.kind, name) {
            (Kind::Trailers, _) => Err("a pseudo-header field among the trailers"),
            (Kind::Response, b"status") => set(&mut pseudo.status, status(value)),
            (Kind::Request { .. }, b"method") => set(&mut pseudo.method, Method::from_bytes(value).ok()),
            (Kind::Request { .. }, b"scheme") => set(&mut pseudo.scheme, Scheme::try_from(value).ok()),
            (Kind::Request { .. }, b"authority") => {
                let authority = Authority::from_maybe_shared(Bytes::copy_from_slice(value));
                set(&mut pseudo.authority, authority.ok())
            }
            (Kind::Request { .. }, b"path") => {
                let path = (!value.is_empty()).then(|| Bytes::copy_from_slice(value));
                set(&mut pseudo.path, path)
            }
            (Kind::Request { connect_protocol: true }, b"protocol") => {
                set(&mut pseudo.protocol, Protocol::new(Bytes::copy_from_slice(value)))
            }
            _ => Err("a pseudo-header field that is not defined here"),
        }
    }

    fn header(&mut self, field: Field<'_>) -> Result<(), Fault> {
        let name = HeaderName::from_lowercase(field.name).map_err(|_| "a field name is not valid")?;
        if is_connection_specific(field.name) {
            return Err("a connection-specific field");
        }
        if name == TE {
            let allowed = matches!(self.kind, Kind::Request { .. })
                && field.value.trim_ascii().eq_ignore_ascii_case(b"trailers");
            if !allowed {
                return Err("a TE field other than \"trailers\" in a request");
            }
        }
        let mut value = HeaderValue::from_bytes(field.value).map_err(|_| "a field value is not valid")?;
        value.set_sensitive(field.sensitive);
        if self.kind != Kind::Trailers {
            self.note_content_length(&name, field.value)?;
        }
        if name == COOKIE {
            self.join_cookie(field);
            return Ok(());
        }
        self.headers.try_append(name, value).map_err(|_| "too many fields")?;
        Ok(())
    }

    /// Cookie fields split for compression become one again (section 4.2.1).
    fn join_cookie(&mut self, field: Field<'_>) {
        match &mut self.cookies {
            Some((joined, sensitive)) => {
                joined.extend_from_slice(b"; ");
                joined.extend_from_slice(field.value);
                *sensitive |= field.sensitive;
            }
            none => *none = Some((field.value.to_vec(), field.sensitive)),
        }
    }

    /// The fields, once all have come.
    fn finish(&mut self) -> Result<(), Fault> {
        self.fault.map_or(Ok(()), Err)?;
        if let Some((joined, sensitive)) = self.cookies.take() {
            let joined = HeaderValue::from_maybe_shared(Bytes::from(joined));
            let mut cookie = joined.map_err(|_| "a cookie is not valid")?;
            cookie.set_sensitive(sensitive);
            self.headers.try_insert(COOKIE, cookie).map_err(|_| "too many fields")?;
        }
        Ok(())
    }

    fn note_content_length(&mut self, name: &HeaderName, value: &[u8]) -> Result<(), Fault> {
        if *name != CONTENT_LENGTH {
            return Ok(());
        }
        let fault = "content-length is not one number";
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(fault);
        }
        let len = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()).ok_or(fault)?;
        match self.content_length.replace(len) {
            Some(other) if other != len => Err(fault),
            _ => Ok(()),
        }
    }

    fn body(&self) -> Body {
        self.content_length.map_or(Body::Any, Body::Exactly)
    }

    /// The request that the fields make.
    pub(crate) fn into_request(mut self) -> Result<RequestHead, Fault> {
        self.finish()?;
        let body = self.body();
        let mut pseudo = std::mem::take(&mut self.pseudo);
        let method = pseudo.method.take().ok_or(":method is missing")?;
        let connect = method == Method::CONNECT;
        if pseudo.protocol.is_some() && !connect {
            return Err(":protocol with a method other than CONNECT");
        }
        let protocol = pseudo.protocol.take();
        self.check_host(pseudo.authority.as_ref())?;
        let uri = if connect && protocol.is_none() {
            connect_target(pseudo)?
        } else {
            self.target(pseudo, &method)?
        };
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_3;
        *request.headers_mut() = self.headers;
        if let Some(protocol) = protocol {
            request.extensions_mut().insert(protocol);
        }
        // What follows a CONNECT is not content.
        Ok(RequestHead { request, body: if connect { Body::Any } else { body } })
    }

    /// One Host field at most, and the same as `:authority` if there are both (section 4.3.1).
    fn check_host(&self, authority: Option<&Authority>) -> Result<(), Fault> {
        let mut hosts = self.headers.get_all(HOST).iter();
        let Some(host) = hosts.next() else { return Ok(()) };
        if hosts.next().is_some() {
            return Err("more than one Host field");
        }
        match authority {
            Some(authority) if !authority.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes()) => {
                Err("Host and :authority differ")
            }
            _ => Ok(()),
        }
    }

    /// The target of anything but a plain CONNECT.
    fn target(&mut self, pseudo: Pseudo, method: &Method) -> Result<Uri, Fault> {
        let scheme = pseudo.scheme.ok_or(":scheme is missing")?;
        let path = pseudo.path.ok_or(":path is missing")?;
        let from_host = match self.headers.get(HOST) {
            Some(host) if pseudo.authority.is_none() => {
                let host = Bytes::copy_from_slice(host.as_bytes());
                Some(Authority::from_maybe_shared(host).map_err(|_| "Host is not valid")?)
            }
            _ => None,
        };
        let authority = pseudo.authority.or(from_host);
        // Schemes are case-insensitive, and what follows must not be evaded by writing them in capitals.
        let web = ["http", "https"].iter().any(|name| scheme.as_str().eq_ignore_ascii_case(name));
        if web && authority.is_none() {
            return Err("neither :authority nor Host");
        }
        if web && authority.as_ref().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(":authority has a userinfo part");
        }
        if &path[..] == b"*" {
            if *method != Method::OPTIONS {
                return Err(":path is * and the method is not OPTIONS");
            }
            return self.asterisk(authority);
        }
        if path.first() != Some(&b'/') || path.contains(&b'#') {
            return Err(":path is not a path");
        }
        let mut parts = http::uri::Parts::default();
        parts.path_and_query = Some(PathAndQuery::from_maybe_shared(path).map_err(|_| ":path is not valid")?);
        // A URI of the `http` crate has a scheme only together with an authority.
        parts.scheme = authority.is_some().then_some(scheme);
        parts.authority = authority;
        Uri::from_parts(parts).map_err(|_| "the target is not a URI")
    }

    /// `OPTIONS *`: the URI has no room for the authority, which goes into Host.
    fn asterisk(&mut self, authority: Option<Authority>) -> Result<Uri, Fault> {
        if let Some(authority) = authority
            && !self.headers.contains_key(HOST)
        {
            let host = HeaderValue::from_str(authority.as_str()).map_err(|_| ":authority is not valid")?;
            self.headers.try_append(HOST, host).map_err(|_| "too many fields")?;
        }
        Ok(Uri::from_static("*"))
    }

    /// The response that the fields make.
    pub(crate) fn into_response(mut self) -> Result<ResponseHead, Fault> {
        self.finish()?;
        let body = self.body();
        let status = self.pseudo.status.ok_or(":status is missing")?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err("status 101 does not exist in HTTP/3");
        }
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = Version::HTTP_3;
        *response.headers_mut() = self.headers;
        Ok(ResponseHead { response, body })
    }

    /// The trailers that the fields make.
    pub(crate) fn into_trailers(mut self) -> Result<HeaderMap, Fault> {
        self.finish()?;
        Ok(self.headers)
    }
}

/// The target of a plain CONNECT: an authority alone (section 4.4).
fn connect_target(pseudo: Pseudo) -> Result<Uri, Fault> {
    if pseudo.scheme.is_some() || pseudo.path.is_some() {
        return Err("a CONNECT request with :scheme or :path");
    }
    let authority = pseudo.authority.ok_or("a CONNECT request without :authority")?;
    if authority.port().is_none() || authority.as_str().contains('@') {
        return Err("a CONNECT request's :authority is not host and port");
    }
    let mut parts = http::uri::Parts::default();
    parts.authority = Some(authority);
    Uri::from_parts(parts).map_err(|_| "the target is not a URI")
}

fn set<T>(slot: &mut Option<T>, value: Option<T>) -> Result<(), Fault> {
    match (slot.is_some(), value) {
        (true, _) => Err("a pseudo-header field was sent twice"),
        (false, None) => Err("a pseudo-header field's value is not valid"),
        (false, value) => {
            *slot = value;
            Ok(())
        }
    }
}

fn status(value: &[u8]) -> Option<StatusCode> {
    StatusCode::from_bytes(value).ok()
}
