//! Pages inside the program.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response, StatusCode};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

use super::conditions::{self, Verdict};
use super::pages;
use crate::compression::SameForAll;
use godwit_body::{BoxBody, bare, full};

/// A page: what `include_bytes!` gives, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// With a slash at the beginning. `/index.html` also stands for `/`.
    pub path: &'static str,
    /// As `Content-Type` has it.
    pub content_type: &'static str,
    /// All of it.
    pub content: &'static [u8],
}

impl Page {
    /// This page.
    pub const fn new(path: &'static str, content_type: &'static str, content: &'static [u8]) -> Self {
        Page { path, content_type, content }
    }
}

/// Pages inside the program, with their entity tags. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Embedded {
    pages: Arc<[(Page, String)]>,
}

impl Embedded {
    /// Answers with these.
    pub fn new(pages: &[Page]) -> Embedded {
        Embedded { pages: pages.iter().map(|page| (*page, content_tag(page.content))).collect() }
    }

    /// Ranges are not supported here, which a server is free to do (RFC 9110 section 14.2): the pages are small.
    pub fn respond<B>(&self, request: &Request<B>) -> Response<BoxBody> {
        let head = *request.method() == Method::HEAD;
        let path = match request.uri().path() {
            "/" => "/index.html",
            path => path,
        };
        let page = self.pages.iter().find(|(page, _)| page.path == path);
        let Some((Page { content_type, content, .. }, tag)) = page else {
            return pages::not_found(None, head);
        };
        let mut response = match conditions::check(&mut request.headers().clone(), tag, None) {
            Verdict::Proceed => bare(StatusCode::OK),
            Verdict::NotModified => bare(StatusCode::NOT_MODIFIED),
            Verdict::PreconditionFailed => return bare(StatusCode::PRECONDITION_FAILED),
        };
        response.extensions_mut().insert(SameForAll);
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // Another version of the program at the same address brings other pages: ask every time.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::from_str(tag) {
            headers.insert(ETAG, tag);
        }
        if response.status() == StatusCode::OK {
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
            if !head {
                *response.body_mut() = full(Bytes::from_static(content));
            }
        }
        response
    }
}

impl<B> tower::Service<Request<B>> for Embedded {
    type Response = Response<BoxBody>;
    type Error = Infallible;
    type Future = Ready<Result<Response<BoxBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let response = match *request.method() {
            Method::GET | Method::HEAD => self.respond(&request),
            _ => pages::only_to_read(),
        };
        ready(Ok(response))
    }
}

/// Pages change only with the program: what is the same has the same tag.
fn content_tag(content: &[u8]) -> String {
    let mut hasher = SipHasher24::new();
    hasher.write(content);
    format!("\"{:032x}\"", hasher.finish128().as_u128())
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
    use tower::ServiceExt;

    use super::*;

    const PAGES: [Page; 2] = [
        Page { path: "/index.html", content_type: "text/html", content: b"<p>hello</p>" },
        Page { path: "/app.js", content_type: "text/javascript", content: b"let x = 1" },
    ];

    fn ask(method: Method, path: &str, tag: Option<&HeaderValue>) -> Response<BoxBody> {
        let mut request = Request::builder().method(method).uri(path).body(()).unwrap();
        if let Some(tag) = tag {
            request.headers_mut().insert(http::header::IF_NONE_MATCH, tag.clone());
        }
        Embedded::new(&PAGES).respond(&request)
    }

    #[test]
    fn a_known_page_is_not_sent_again() {
        let first = ask(Method::GET, "/", None);
        assert_eq!(first.status(), StatusCode::OK);
        assert!(!first.body().is_end_stream());
        let again = ask(Method::GET, "/index.html", Some(&first.headers()[ETAG]));
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert!(again.body().is_end_stream());
        assert_eq!(again.headers()[ETAG], first.headers()[ETAG]);
        assert_ne!(ask(Method::GET, "/app.js", None).headers()[ETAG], first.headers()[ETAG]);
    }

    #[test]
    fn head_has_the_length_but_no_body() {
        let response = ask(Method::HEAD, "/app.js", None);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/javascript");
        assert_eq!(response.headers()[CONTENT_LENGTH], "9");
        assert!(response.body().is_end_stream());
        assert_eq!(ask(Method::HEAD, "/nothing", None).status(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn as_a_service_it_is_only_read() {
        let request = |method| Request::builder().method(method).uri("/").body(()).unwrap();
        let site = Embedded::new(&PAGES);
        assert_eq!(site.clone().oneshot(request(Method::GET)).await.unwrap().status(), 200);
        assert_eq!(site.oneshot(request(Method::POST)).await.unwrap().status(), 405);
    }
}
