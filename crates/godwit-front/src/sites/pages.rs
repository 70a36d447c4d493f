//! The answers that come from no site: errors, in the house style for people and in a line of text for programs.

use std::fmt::Write as _;

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};

use godwit_body::BoxBody;

const PAGE: &str = include_str!("page.html");

/// What of a request decides on the look of an error page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    /// Takes HTML.
    html: bool,
    /// Asked for the head alone.
    head: bool,
}

impl Reader {
    pub(super) fn of<B>(request: &Request<B>) -> Reader {
        Reader { html: wants_html(request.headers()), head: request.method() == Method::HEAD }
    }

    /// An error with one sentence on what is wrong.
    pub(super) fn page(self, status: StatusCode, sentence: &str) -> Response<BoxBody> {
        let (text, content_type) = if self.html {
            (html(status, sentence), "text/html; charset=utf-8")
        } else {
            (format!("{} {}: {sentence}\n", status.as_u16(), reason(status)), "text/plain; charset=utf-8")
        };
        let mut response = godwit_body::bare(status);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
        // Tomorrow it may be mended.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if !self.head {
            *response.body_mut() = godwit_body::full(text);
        }
        response
    }
}

/// Whether HTML is asked for by name: programs say `*/*` or nothing.
fn wants_html(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|range| {
        let kind = range.split(';').next().unwrap_or(range).trim();
        kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml")
    })
}

fn reason(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Error")
}

fn html(status: StatusCode, sentence: &str) -> String {
    let mut page = String::with_capacity(PAGE.len() + 128);
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        page.push_str(before);
        let Some((name, after)) = after.split_once("}}") else { break };
        match name {
            "status" => page.push_str(status.as_str()),
            "reason" => page.push_str(reason(status)),
            _ => escape(sentence, &mut page),
        }
        rest = after;
    }
    page.push_str(rest);
    page
}

fn escape(text: &str, page: &mut String) {
    for character in text.chars() {
        let _ = match character {
            '<' | '>' | '&' | '"' | '\'' => write!(page, "&#{};", u32::from(character)),
            _ => page.write_char(character),
        };
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn page(accept: Option<&str>, method: Method) -> (String, String, usize) {
        let mut request = Request::builder().method(method);
        if let Some(accept) = accept {
            request = request.header(ACCEPT, accept);
        }
        let reader = Reader::of(&request.body(()).unwrap());
        let response = reader.page(StatusCode::BAD_GATEWAY, "the server <behind> this one");
        let (head, body) = response.into_parts();
        let length = head.headers[CONTENT_LENGTH].to_str().unwrap().parse().unwrap();
        let text = body.collect().await.unwrap().to_bytes();
        let kind = head.headers[CONTENT_TYPE].to_str().unwrap().to_owned();
        (kind, String::from_utf8(text.to_vec()).unwrap(), length)
    }

    #[tokio::test]
    async fn people_get_a_page_and_programs_a_line() {
        let (kind, text, length) = page(Some("text/html,application/xml;q=0.9,*/*;q=0.8"), Method::GET).await;
        assert_eq!((kind.as_str(), length), ("text/html; charset=utf-8", text.len()));
        assert!(text.contains("<h1>502</h1>") && text.contains("the server &#60;behind&#62;"), "{text}");
        assert!(!text.contains("{{"));
        for accept in [None, Some("*/*"), Some("application/json")] {
            let (kind, text, length) = page(accept, Method::GET).await;
            assert_eq!((kind.as_str(), length), ("text/plain; charset=utf-8", text.len()));
            assert_eq!(text, "502 Bad Gateway: the server <behind> this one\n");
        }
        let (_, text, length) = page(None, Method::HEAD).await;
        assert!(text.is_empty() && length > 0);
    }
}
