//! HTTPS for the few requests that an ACME server is sent: one connection each, with a time limit.

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use godwit_client::trust::load_roots;
use http::header::{HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::CertificateError;
use crate::provider;

/// For a whole exchange.
const LIMIT: Duration = Duration::from_secs(30);
/// The largest answer that is read: certificate chains have a few kilobytes.
const LARGEST: usize = 1 << 20;
const NAME: &str = concat!("godwit/", env!("CARGO_PKG_VERSION"), " (instant-acme)");

/// Clones share what they know.
#[derive(Clone)]
pub(super) struct Client {
    tls: TlsConnector,
    /// What the last refusal for being asked too often said about when to come again.
    pause: Arc<Mutex<Option<Duration>>>,
}

impl Client {
    /// Trusts the system's authorities and those in `ca`.
    ///
    /// # Errors
    /// If a file cannot be read or used.
    pub(super) fn new(ca: &[PathBuf]) -> Result<Client, CertificateError> {
        let roots = load_roots(ca)?;
        let config = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| CertificateError::new(format!("cannot set up TLS: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Client { tls: TlsConnector::from(Arc::new(config)), pause: Arc::default() })
    }

    /// How long the server wants to be left alone, said since the last call.
    pub(super) fn take_pause(&self) -> Option<Duration> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn exchange(
        &self,
        mut request: Request<BodyWrapper<Bytes>>,
    ) -> Result<Response<Full<Bytes>>, Cause> {
        let uri = request.uri().clone();
        let (host, port) = target(&uri)?;
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let stream = self.tls.connect(name, stream).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(connection);
        let authority = uri.authority().map_or(host, http::uri::Authority::as_str);
        request.headers_mut().insert(HOST, HeaderValue::from_str(authority)?);
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(NAME));
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        *request.uri_mut() = path.parse()?;
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, LARGEST).collect().await?.to_bytes();
        driver.abort();
        self.note(&head);
        Ok(Response::from_parts(head, Full::new(body)))
    }

    fn note(&self, head: &http::response::Parts) {
        if matches!(head.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            let seconds =
                head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
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
        Box::pin(async move {
            match tokio::time::timeout(LIMIT, client.exchange(request)).await {
                Ok(Ok(response)) => Ok(BytesResponse::from(response)),
                Ok(Err(cause)) => Err(Error::Other(cause)),
                Err(_) => {
                    let silence = format!("no answer within {} s", LIMIT.as_secs());
                    Err(Error::Other(io::Error::new(io::ErrorKind::TimedOut, silence).into()))
                }
            }
        })
    }
}

fn target(uri: &Uri) -> Result<(&str, u16), Cause> {
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(host)) => Ok((host, uri.port_u16().unwrap_or(443))),
        _ => Err(format!("{uri} is not an https:// URL").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_is_spoken() {
        let port = |text: &str| {
            target(&text.parse().unwrap()).map(|(_, port)| port).map_err(|error| error.to_string())
        };
        assert_eq!(port("https://ca.test/dir"), Ok(443));
        assert_eq!(port("https://[::1]:14000/dir"), Ok(14000));
        assert!(port("http://ca.test/dir").unwrap_err().contains("https://"));
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
