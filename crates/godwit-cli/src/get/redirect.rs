//! Redirects (RFC 9110 section 15.4): where the next request goes, and what of the first one it keeps.

use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, PROXY_AUTHORIZATION};
use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode};

use super::plan::Exchange;
use super::target::Target;
use super::upload::Source;

/// One request of those that a URL takes.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) target: Target,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    /// From a `Host` header.
    pub(super) authority: Option<Authority>,
    pub(super) source: Option<Source>,
}

impl Hop {
    /// The first request.
    pub(super) fn first(target: &Target, exchange: &Exchange) -> Hop {
        Hop {
            target: target.clone(),
            method: exchange.method.clone(),
            headers: exchange.headers.clone(),
            authority: exchange.authority.clone(),
            source: exchange.source.clone(),
        }
    }

    /// The request after a redirect to `location`.
    ///
    /// # Errors
    /// In words, if it is not to be followed.
    pub(super) fn next(&self, status: StatusCode, location: &str) -> Result<Hop, String> {
        let target = self.target.join(location).map_err(|problem| {
            format!("the server redirects to {}, which cannot be fetched: {problem}", location.escape_debug())
        })?;
        if self.target.origin.secure && !target.origin.secure {
            return Err(format!(
                "the server redirects from https to {target}, which is not encrypted; fetch that URL itself \
                 if it is wanted"
            ));
        }
        let mut next = Hop { target, ..self.clone() };
        if becomes_get(status, &self.method) {
            next.method = Method::GET;
            next.source = None;
            next.headers.remove(CONTENT_TYPE);
        }
        if next.source == Some(Source::Stdin) {
            return Err(format!(
                "the server redirects to {}, but the standard input can be sent once; give that URL, or a file \
                 (@FILE)",
                next.target
            ));
        }
        if next.target.origin != self.target.origin {
            // They were meant for the first server.
            next.authority = None;
            for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
                next.headers.remove(name);
            }
        }
        Ok(next)
    }
}

/// Whether the next request only asks for what the first one has led to.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
        _ => false,
    }
}

/// Whether a response with this status says where to go instead.
pub(super) fn is_redirect(status: StatusCode) -> bool {
    [301, 302, 303, 307, 308].contains(&status.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn hop(method: Method, source: Option<Source>) -> Hop {
        let mut headers = HeaderMap::new();
        for name in ["authorization", "cookie", "content-type", "x-a"] {
            headers.insert(name, HeaderValue::from_static("value"));
        }
        let target = Target::parse("https://a.example/b/c").unwrap();
        Hop { target, method, headers, authority: Some(Authority::from_static("other.example")), source }
    }

    fn next(method: Method, status: u16) -> Method {
        hop(method, None).next(StatusCode::from_u16(status).unwrap(), "d").unwrap().method
    }

    #[test]
    fn methods_follow_the_status() {
        let other = Method::PUT;
        for (status, post, put, head) in [
            (301, Method::GET, &other, Method::HEAD),
            (302, Method::GET, &other, Method::HEAD),
            (303, Method::GET, &Method::GET, Method::HEAD),
            (307, Method::POST, &other, Method::HEAD),
            (308, Method::POST, &other, Method::HEAD),
        ] {
            assert_eq!(next(Method::POST, status), post, "{status}");
            assert_eq!(&next(Method::PUT, status), put, "{status}");
            assert_eq!(next(Method::HEAD, status), head, "{status}");
        }
    }

    #[test]
    fn bodies_go_where_they_are_to_be_repeated() {
        let file = Some(Source::File("x".into()));
        let status = |status| StatusCode::from_u16(status).unwrap();
        let kept = hop(Method::POST, file.clone()).next(status(307), "d").unwrap();
        assert!(kept.source == file && kept.headers.contains_key("content-type"));
        let gone = hop(Method::POST, file).next(status(302), "d").unwrap();
        assert!(gone.source.is_none() && !gone.headers.contains_key("content-type"));
        let stdin = hop(Method::POST, Some(Source::Stdin));
        assert!(stdin.next(status(308), "d").unwrap_err().contains("can be sent once"));
        assert!(stdin.next(status(303), "d").is_ok());
    }

    #[test]
    fn secrets_stay_with_their_server() {
        let keeps = |location: &str| {
            let next = hop(Method::GET, None).next(StatusCode::FOUND, location).unwrap();
            assert!(next.headers.contains_key("x-a"));
            let kept = [next.headers.contains_key("cookie"), next.authority.is_some()];
            assert_eq!(next.headers.contains_key("authorization"), kept[0]);
            assert_eq!(kept[0], kept[1]);
            kept[0]
        };
        assert!(keeps("/x") && keeps("https://A.example:443/x"));
        assert!(!keeps("https://b.example/") && !keeps("https://a.example:444/") && !keeps("//b.example"));
    }

    #[test]
    fn encryption_is_not_given_up() {
        let error = hop(Method::GET, None).next(StatusCode::FOUND, "http://a.example/").unwrap_err();
        assert!(error.contains("not encrypted"), "{error}");
        let error = hop(Method::GET, None).next(StatusCode::FOUND, "ftp://a.example/").unwrap_err();
        assert!(error.contains("cannot be fetched"), "{error}");
    }
}
