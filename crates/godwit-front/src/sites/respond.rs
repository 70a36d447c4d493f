//! Fixed answers: a status, and perhaps a text.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};

use crate::settings;
use godwit_body::BoxBody;
use godwit_layers::compression::SameForAll;

/// An answer that is the same each time.
#[derive(Clone, Debug)]
pub(super) struct Canned {
    status: StatusCode,
    body: Bytes,
    content_type: Option<HeaderValue>,
}

impl Canned {
    pub(super) fn new(settings: &settings::Respond) -> Canned {
        let (body, content_type) = (Bytes::from(settings.body.clone()), settings.content_type.clone());
        Canned { status: settings.status, body, content_type }
    }

    pub(super) fn answer(&self, method: &Method) -> Response<BoxBody> {
        let mut response = godwit_body::bare(self.status);
        response.extensions_mut().insert(SameForAll);
        // These have no body, and no length that says so (RFC 9110 section 8.6).
        if matches!(self.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return response;
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(self.body.len()));
        if !self.body.is_empty() {
            let kind = self.content_type.clone();
            let kind = kind.unwrap_or(HeaderValue::from_static("text/plain; charset=utf-8"));
            headers.insert(CONTENT_TYPE, kind);
        }
        if method != Method::HEAD {
            *response.body_mut() = godwit_body::full(self.body.clone());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn the_text_goes_with_every_method_but_head() {
        let answer = |status: u16, body: &str, method: Method| {
            let status = StatusCode::from_u16(status).unwrap();
            let settings = settings::Respond { status, body: body.to_owned(), content_type: None };
            Canned::new(&settings).answer(&method)
        };
        let response = answer(404, "gone", Method::POST);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "gone");
        let response = answer(404, "gone", Method::HEAD);
        assert_eq!(response.headers()[CONTENT_LENGTH], "4");
        assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
        assert!(answer(204, "", Method::GET).headers().is_empty());
        assert_eq!(answer(403, "", Method::GET).headers().len(), 1);
    }
}
