//! Settings of a client, and requests.

use super::response::HttpResponse;
use super::upload::Upload;
use crate::bridge;
use crate::data::{Nothing, seconds, shared};
use crate::errors::Failure;
use crate::runtime::{self, Owned};
use godwit_client::{BodySource, BuildError, Client, ClientBuilder, RequestBuilder, Versions};
use http::{HeaderName, HeaderValue, Method};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// A client. Its settings are those of the Python class `godwit.Client`.
#[pyclass(frozen)]
pub(crate) struct HttpClient(Arc<Owned<Client>>);

/// What a client is made with; every field is an entry of a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Settings {
    root_file: Option<PathBuf>,
    root_pem: Option<PyBackedBytes>,
    accept_any_certificate: bool,
    timeout: Option<f64>,
    connect_timeout: f64,
    idle_timeout: f64,
    versions: Option<String>,
    max_redirects: u8,
    proxy: Option<String>,
    proxy_from_environment: bool,
    addresses: Vec<(String, Vec<String>)>,
    memory_file: Option<PathBuf>,
    session_file: Option<PathBuf>,
}

#[pymethods]
impl HttpClient {
    #[new]
    fn new(py: Python<'_>, settings: Settings) -> PyResult<Self> {
        let _inside = runtime::handle()?.enter();
        // The system's authorities are read from files.
        let client = py.detach(|| -> Result<Client, Failure> { Ok(settings.builder()?.build()?) })?;
        Ok(HttpClient(Arc::new(Owned::new(client))))
    }

    /// A future of the response, whose body is not read.
    #[pyo3(signature = (method, url, headers, content, upload, timeout, versions))]
    #[expect(clippy::too_many_arguments, reason = "they are what a request has")]
    fn request<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        url: &str,
        headers: Vec<(PyBackedBytes, PyBackedBytes)>,
        content: Option<PyBackedBytes>,
        upload: Option<&Bound<'_, Upload>>,
        timeout: Option<f64>,
        versions: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| {
            Failure::settings(format!("{method:?} is no method of HTTP; give a word such as GET"))
        })?;
        let client = self.0.get().ok_or_else(closed)?;
        let mut request = client.ask(method, url);
        for (name, value) in &headers {
            request = with_header(request, name, value)?;
        }
        if let Some(limit) = timeout {
            request = request.timeout(seconds("timeout", limit)?);
        }
        if let Some(versions) = versions {
            request = request.versions(versions_of(versions)?);
        }
        request = match (content, upload) {
            (Some(content), _) => request.body(BodySource::bytes(shared(content))),
            (None, Some(upload)) => {
                let source = upload.get().take_source();
                request.body(BodySource::stream(
                    source.ok_or_else(|| Failure::settings("an upload is the body of one request"))?,
                ))
            }
            (None, None) => request,
        };
        bridge::future(py, async move { Ok(HttpResponse::new(request.send().await?)) })
    }

    /// A future that is ready when all connections are closed.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = Arc::clone(&self.0);
        bridge::future(py, async move {
            if let Some(client) = client.get() {
                client.close().await;
            }
            Ok::<_, Failure>(Nothing)
        })
    }
}

impl Settings {
    fn builder(self) -> Result<ClientBuilder, Failure> {
        let mut builder = Client::builder()
            .connect_timeout(seconds("connect_timeout", self.connect_timeout)?)
            .idle_timeout(seconds("idle_timeout", self.idle_timeout)?)
            .max_redirects(self.max_redirects);
        if let Some(limit) = self.timeout {
            builder = builder.timeout(seconds("timeout", limit)?);
        }
        if let Some(versions) = self.versions {
            builder = builder.versions(versions_of(&versions)?);
        }
        if let Some(file) = self.root_file {
            builder = builder.root_file(file);
        }
        if let Some(pem) = self.root_pem {
            builder = builder.root_pem(pem.to_vec());
        }
        if self.accept_any_certificate {
            builder = builder.danger_accept_any_certificate();
        }
        if let Some(proxy) = self.proxy {
            builder = builder.proxy(proxy);
        } else if self.proxy_from_environment {
            builder = builder.proxy_from_environment();
        }
        for (host, addresses) in self.addresses {
            builder = builder.addresses(host, addresses_of(&addresses)?);
        }
        if let Some(file) = self.memory_file {
            builder = builder.memory_file(file);
        }
        if let Some(file) = self.session_file {
            builder = builder.session_file(file);
        }
        Ok(builder)
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Failure::settings(error)
    }
}

fn closed() -> Failure {
    Failure::closed("the client is closed; make another one")
}

fn with_header(request: RequestBuilder, name: &[u8], value: &[u8]) -> Result<RequestBuilder, Failure> {
    let shown = || String::from_utf8_lossy(name).escape_debug().to_string();
    let known = HeaderName::from_bytes(name).map_err(|_| {
        Failure::settings(format!("the name of a header has letters that may not stand in it: {}", shown()))
    })?;
    let value = HeaderValue::from_bytes(value).map_err(|_| {
        Failure::settings(format!("the value of the header {} has letters that may not stand in it", shown()))
    })?;
    Ok(request.header(known, value))
}

fn versions_of(name: &str) -> Result<Versions, Failure> {
    Ok(match name {
        "auto" => Versions::Auto,
        "h3" => Versions::Http3,
        "h2" => Versions::Http2,
        "http/1.1" => Versions::Http1,
        "tcp" => Versions::Tcp,
        other => return Err(Failure::settings(format!("{other:?} is no choice of versions of HTTP"))),
    })
}

fn addresses_of(texts: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    let parse = |text: &String| {
        text.parse().map_err(|_| {
            Failure::settings(format!("{text:?} is no address with a port; give one such as 127.0.0.1:443"))
        })
    };
    texts.iter().map(parse).collect()
}
