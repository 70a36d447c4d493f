//! Redirects (RFC 9110 section 15.4): where the next request goes, and what of the first one it keeps.

use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, PROXY_AUTHORIZATION};
use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode};

use crate::body::BodySource;
use crate::error::{Error, ErrorKind, Remedy};
use crate::target::Target;

/// One request of those that a URL takes.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// From a `Host` header.
    pub(crate) authority: Option<Authority>,
    pub(crate) body: BodySource,
}

impl Hop {
    /// The request after a redirect to `location`.
    ///
    /// # Errors
    /// If it is not to be followed.
    pub(crate) fn next(&self, status: StatusCode, location: &str) -> Result<Hop, Error> {
        let refused = |text: String| Error::new(ErrorKind::Redirect, text);
        let target = self.target.join(location).map_err(|problem| {
            let location = location.escape_debug();
            refused(format!("the server redirects to {location}, which cannot be fetched: {problem}"))
        })?;
        if self.target.origin.secure && !target.origin.secure {
            return Err(refused(format!(
                "the server redirects from https to {target}, which is not encrypted; fetch that URL itself \
                 if it is wanted"
            )));
        }
        let mut next = Hop { target, ..self.clone() };
        if becomes_get(status, &self.method) {
            next.method = Method::GET;
            next.body = BodySource::empty();
            next.headers.remove(CONTENT_TYPE);
        }
        if !next.body.is_repeatable() {
            let text = format!("the server redirects to {}, but the body can be sent once", next.target);
            return Err(refused(text).remedy_of(Remedy::RepeatableBody));
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
pub(crate) fn is_redirect(status: StatusCode) -> bool {
    [301, 302, 303, 307, 308].contains(&status.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn hop(method: Method, body: BodySource) -> Hop {
        let mut headers = HeaderMap::new();
        for name in ["authorization", "cookie", "content-type", "x-a"] {
            headers.insert(name, HeaderValue::from_static("value"));
        }
        let target = Target::parse("https://a.example/b/c").unwrap();
        Hop { target, method, headers, authority: Some(Authority::from_static("other.example")), body }
    }

    fn next(method: Method, status: u16) -> Method {
        hop(method, BodySource::empty()).next(StatusCode::from_u16(status).unwrap(), "d").unwrap().method
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
        let file = BodySource::file("x");
        let status = |status| StatusCode::from_u16(status).unwrap();
        let kept = hop(Method::POST, file.clone()).next(status(307), "d").unwrap();
        assert!(kept.body.path().is_some() && kept.headers.contains_key("content-type"));
        let gone = hop(Method::POST, file).next(status(302), "d").unwrap();
        assert!(gone.body.path().is_none() && !gone.headers.contains_key("content-type"));
        let once = hop(Method::POST, BodySource::reader(std::io::empty()));
        assert!(once.next(status(308), "d").unwrap_err().to_string().contains("can be sent once"));
        assert!(once.next(status(303), "d").is_ok());
    }

    #[test]
    fn secrets_stay_with_their_server() {
        let keeps = |location: &str| {
            let next = hop(Method::GET, BodySource::empty()).next(StatusCode::FOUND, location).unwrap();
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
        let error = hop(Method::GET, BodySource::empty())
            .next(StatusCode::FOUND, "http://a.example/")
            .unwrap_err()
            .to_string();
        assert!(error.contains("not encrypted"), "{error}");
        let error = hop(Method::GET, BodySource::empty())
            .next(StatusCode::FOUND, "ftp://a.example/")
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot be fetched"), "{error}");
    }
}
