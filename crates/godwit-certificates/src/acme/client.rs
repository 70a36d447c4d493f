//! The HTTP client for the few requests that an ACME server is sent.

use std::error::Error as StdError;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use godwit_client::Versions;
use http::header::{RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

use crate::CertificateError;

/// For a whole exchange.
const LIMIT: Duration = Duration::from_secs(30);
/// For an order some requests follow one another, and then none for weeks.
const KEPT: Duration = Duration::from_secs(10);
/// The largest answer that is read: certificate chains have a few kilobytes.
const LARGEST: usize = 1 << 20;
const NAME: &str = concat!("godwit/", env!("CARGO_PKG_VERSION"), " (instant-acme)");

/// Clones share what they know.
#[derive(Clone)]
pub(super) struct Client {
    http: godwit_client::Client,
    /// What the last refusal for being asked too often said about when to come again.
    pause: Arc<Mutex<Option<Duration>>>,
}

impl Client {
    /// Trusts the system's authorities and those in `ca`.
    ///
    /// # Errors
    /// If a file cannot be read or used.
    pub(super) fn new(ca: &[PathBuf]) -> Result<Client, CertificateError> {
        let mut http = godwit_client::Client::builder()
            .versions(Versions::Tcp)
            .max_redirects(0)
            .max_collected(LARGEST)
            .idle_timeout(KEPT)
            .timeout(LIMIT);
        for file in ca {
            http = http.root_file(file);
        }
        let http = http.build().map_err(|error| CertificateError::new(error.to_string()))?;
        Ok(Client { http, pause: Arc::default() })
    }

    /// How long the server wants to be left alone, said since the last call.
    pub(super) fn take_pause(&self) -> Option<Duration> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn exchange(&self, request: Request<BodyWrapper<Bytes>>) -> Result<Response<Full<Bytes>>, Cause> {
        let (head, body) = request.into_parts();
        let mut request = self.http.ask(head.method, https(&head.uri)?).header(USER_AGENT, NAME);
        for (name, value) in head.headers.iter().filter(|(name, _)| *name != USER_AGENT) {
            request = request.header(name, value);
        }
        let response = request.body(body.collect().await?.to_bytes()).send().await?;
        self.note(response.status(), response.headers());
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        *answer.body_mut() = Full::new(response.bytes().await?);
        Ok(answer)
    }

    fn note(&self, status: StatusCode, headers: &HeaderMap) {
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
            *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = seconds.map(Duration::from_secs);
        }
    }
}

type Cause = Box<dyn StdError + Send + Sync>;

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move { client.exchange(request).await.map(BytesResponse::from).map_err(Error::Other) })
    }
}

/// Keys and proofs are for nobody in between.
fn https(uri: &Uri) -> Result<String, Cause> {
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(_)) => Ok(uri.to_string()),
        _ => Err(format!("{uri} is not an https:// URL").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_is_spoken() {
        let asked = |text: &str| https(&text.parse().unwrap()).map_err(|error| error.to_string());
        assert_eq!(asked("https://ca.test/dir").unwrap(), "https://ca.test/dir");
        assert_eq!(asked("https://[::1]:14000/dir").unwrap(), "https://[::1]:14000/dir");
        assert!(asked("http://ca.test/dir").unwrap_err().contains("https://"));
    }

    #[test]
    fn a_root_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root.pem");
        let message = || Client::new(std::slice::from_ref(&path)).err().unwrap().to_string();
        assert!(message().contains("root.pem: no such file"), "{}", message());
        std::fs::write(&path, "x").unwrap();
        assert!(message().contains("no BEGIN CERTIFICATE"), "{}", message());
    }
}
