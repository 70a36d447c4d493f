//! The example site inside the program, served when no folder is given.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response, StatusCode};

use super::conditions::{self, Verdict};
use super::pages;
use crate::serve::front::body::{ResponseBody, bare, full};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! page {
    ($name:literal, $content_type:expr) => {
        (
            concat!("/", $name),
            $content_type,
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/site/", $name)).as_slice(),
        )
    };
}

/// Path, content type, content.
const PAGES: [(&str, &str, &[u8]); 8] = [
    page!("index.html", HTML),
    page!("style.css", CSS),
    page!("app.js", SCRIPT),
    page!("images/godwit.svg", SVG),
    page!("images/route.svg", SVG),
    page!("images/streams.svg", SVG),
    page!("images/handshake.svg", SVG),
    page!("images/migration.svg", SVG),
];

/// The pages with their entity tags.
#[derive(Debug)]
pub(crate) struct Embedded {
    tags: [String; PAGES.len()],
}

impl Embedded {
    pub(crate) fn new() -> Embedded {
        Embedded { tags: PAGES.map(|(_, _, content)| content_tag(content)) }
    }

    /// Ranges are not supported here, which a server is free to do (RFC 9110 section 14.2): the pages are small.
    pub(crate) fn respond(&self, request: &Request<()>) -> Response<ResponseBody> {
        let head = *request.method() == Method::HEAD;
        let path = match request.uri().path() {
            "/" => "/index.html",
            path => path,
        };
        let page = PAGES.iter().zip(&self.tags).find(|((name, ..), _)| *name == path);
        let Some(((_, content_type, content), tag)) = page else {
            return pages::not_found(None, head);
        };
        let mut response = match conditions::check(&mut request.headers().clone(), tag, None) {
            Verdict::Proceed => bare(StatusCode::OK),
            Verdict::NotModified => bare(StatusCode::NOT_MODIFIED),
            Verdict::PreconditionFailed => return bare(StatusCode::PRECONDITION_FAILED),
        };
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

fn content_tag(content: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content);
    let hex: String = digest.as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;

    fn ask(method: Method, path: &str, tag: Option<&HeaderValue>) -> Response<ResponseBody> {
        let mut request = Request::builder().method(method).uri(path).body(()).unwrap();
        if let Some(tag) = tag {
            request.headers_mut().insert(http::header::IF_NONE_MATCH, tag.clone());
        }
        Embedded::new().respond(&request)
    }

    #[test]
    fn every_file_that_the_pages_mention_is_there() {
        let mut mentioned = 0;
        for (name, _, content) in PAGES.iter().filter(|(_, kind, _)| *kind != SVG) {
            let text = std::str::from_utf8(content).unwrap();
            for word in text.split(['"', '\'', '(', ')', '`']) {
                let is_file = [".css", ".js", ".svg"].iter().any(|suffix| word.ends_with(suffix));
                if is_file && !word.contains(char::is_whitespace) && !word.contains('$') {
                    mentioned += 1;
                    let path = format!("/{}", word.trim_start_matches("./").trim_start_matches('/'));
                    assert_eq!(ask(Method::GET, &path, None).status(), StatusCode::OK, "{path} in {name}");
                }
            }
        }
        assert!(mentioned >= 7, "only {mentioned} files mentioned");
    }

    #[test]
    fn pages_need_nothing_from_elsewhere() {
        for (name, _, content) in PAGES {
            let text = std::str::from_utf8(content).unwrap();
            for pattern in ["src=\"http", "href=\"http", "src=\"//", "url(http", "@import", "fetch(\"http"] {
                assert!(!text.contains(pattern), "{name} has {pattern}");
            }
        }
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
    }

    #[test]
    fn head_has_the_length_but_no_body() {
        let response = ask(Method::HEAD, "/app.js", None);
        assert_eq!(response.headers()[CONTENT_TYPE], SCRIPT);
        assert_ne!(response.headers()[CONTENT_LENGTH], "0");
        assert!(response.body().is_end_stream());
        assert_eq!(ask(Method::HEAD, "/nothing", None).status(), StatusCode::NOT_FOUND);
    }
}
