//! The responses that come from no file.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use http::{Response, StatusCode};

use godwit_body::{BoxBody, bare, full};

const NOT_FOUND: &str = include_str!("not_found.html");

/// 404 with a page for people; `own` is the folder's `404.html` with its length, if it has one.
pub(super) fn not_found(own: Option<(u64, BoxBody)>, head: bool) -> Response<BoxBody> {
    let built_in = || (NOT_FOUND.len() as u64, full(Bytes::from_static(NOT_FOUND.as_bytes())));
    let (length, page) = own.unwrap_or_else(built_in);
    let mut response = bare(StatusCode::NOT_FOUND);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    // Tomorrow something may be there.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if !head {
        *response.body_mut() = page;
    }
    response
}

/// 405: nothing is written here.
pub(super) fn only_to_read() -> Response<BoxBody> {
    let mut response = bare(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
    response
}

/// 503: the disk could not be asked.
pub(super) fn unavailable() -> Response<BoxBody> {
    let mut response = bare(StatusCode::SERVICE_UNAVAILABLE);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
    response
}

/// To the same folder with the slash at the end, so that relative links on its page work.
///
/// The location begins with exactly one slash: two would name another host.
pub(super) fn to_folder(path: &str, query: Option<&str>) -> Response<BoxBody> {
    let path = path.trim_matches('/');
    let location = match query {
        Some(query) => format!("/{path}/?{query}"),
        None => format!("/{path}/"),
    };
    let Ok(location) = HeaderValue::try_from(location) else { return not_found(None, false) };
    let mut response = bare(StatusCode::TEMPORARY_REDIRECT);
    response.headers_mut().insert(LOCATION, location);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_stays_on_this_host() {
        let location = |path, query| to_folder(path, query).headers()[LOCATION].clone();
        assert_eq!(location("/docs", None), "/docs/");
        assert_eq!(location("/a/b", Some("x=1")), "/a/b/?x=1");
        assert_eq!(location("//example.com", None), "/example.com/");
    }
}
