//! What comes back: the head at once, the body as Python asks for it.

use crate::bridge;
use crate::data::{Data, Nothing};
use crate::errors::Failure;
use crate::runtime::{self, Owned};
use bytes::Bytes;
use godwit_client::{Body, Response};
use http::Version;
use http_body_util::BodyExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use tokio::sync::Mutex;

/// A response whose body has not been read.
#[pyclass(frozen)]
pub(crate) struct HttpResponse {
    head: Head,
    body: Arc<Mutex<Option<Owned<Body>>>>,
}

struct Head {
    status: u16,
    version: &'static str,
    url: String,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// Why it was this version of HTTP.
    route: Arc<str>,
    remote: String,
}

impl HttpResponse {
    pub(crate) fn new(response: Response) -> Self {
        let route = response.route();
        let url =
            response.target().uri(None).map_or_else(|_| response.target().to_string(), |uri| uri.to_string());
        let pairs = response.headers().iter();
        let head = Head {
            status: response.status().as_u16(),
            version: version_name(response.version()),
            url,
            headers: pairs.map(|(name, value)| (name.as_str().into(), value.as_bytes().into())).collect(),
            route: Arc::clone(&route.reason),
            remote: route.remote().to_string(),
        };
        HttpResponse { head, body: Arc::new(Mutex::new(Some(Owned::new(response.into_body())))) }
    }
}

#[pymethods]
impl HttpResponse {
    #[getter]
    fn status(&self) -> u16 {
        self.head.status
    }

    #[getter]
    fn version(&self) -> &'static str {
        self.head.version
    }

    #[getter]
    fn url(&self) -> &str {
        &self.head.url
    }

    #[getter]
    fn route(&self) -> &str {
        &self.head.route
    }

    #[getter]
    fn remote(&self) -> &str {
        &self.head.remote
    }

    /// Names and values as they came, in their order.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let pairs = self.head.headers.iter();
        pairs.map(|(name, value)| (PyBytes::new(py, name), PyBytes::new(py, value))).collect()
    }

    /// A future of the next piece of the body; None at its end.
    fn chunk<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let body = Arc::clone(&self.body);
        bridge::future(py, async move {
            let mut body = body.lock().await;
            let piece = next(body.as_mut().and_then(Owned::get_mut)).await?;
            if piece.is_none() {
                *body = None;
            }
            Ok(piece.map(Data::from))
        })
    }

    /// A future of all the rest, as long as that is no more than `most` bytes.
    fn rest<'py>(&self, py: Python<'py>, most: Option<u64>) -> PyResult<Bound<'py, PyAny>> {
        let body = Arc::clone(&self.body);
        bridge::future(py, async move {
            let (mut body, mut pieces, mut length) = (body.lock().await, Vec::new(), 0_u64);
            while let Some(piece) = next(body.as_mut().and_then(Owned::get_mut)).await? {
                length = length.saturating_add(piece.len() as u64);
                if let Some(most) = most.filter(|most| length > *most) {
                    *body = None;
                    return Err(too_long(most));
                }
                pieces.push(piece);
            }
            *body = None;
            Ok(Data::pieces(pieces))
        })
    }

    /// A future that is ready when the rest of the body is given up.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let body = Arc::clone(&self.body);
        bridge::future(py, async move {
            *body.lock().await = None;
            Ok::<_, Failure>(Nothing)
        })
    }

    /// The same without anybody who waits.
    fn abandon(&self) -> PyResult<()> {
        let body = Arc::clone(&self.body);
        runtime::handle()?.spawn(async move { *body.lock().await = None });
        Ok(())
    }
}

/// The next piece of data that has any; trailers are passed over.
async fn next(body: Option<&mut Body>) -> Result<Option<Bytes>, Failure> {
    let Some(body) = body else { return Ok(None) };
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data()
            && !data.is_empty()
        {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn too_long(most: u64) -> Failure {
    Failure::response(format!(
        "the body has more than {}; read it piece by piece with client.stream, or give the client a larger max_body",
        godwit_text::size(most)
    ))
}

fn version_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "HTTP/3",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}
