//! What a route leads to: files, another server, a redirect, a fixed answer, or pages inside the program.

use std::future::Future;
use std::pin::Pin;

use http::{Method, Request, Response, StatusCode};

use super::host::Host;
use super::pages::Reader;
use super::path;
use super::proxy::Proxies;
use super::redirect::{self, Template};
use super::respond::Canned;
use crate::error::Failure;
use crate::serve::config;
use godwit_body::BoxBody;
use godwit_layers::files::{Embedded, Folder, FolderError};

/// The answer of another service, to come.
pub(super) type Answer = Pin<Box<dyn Future<Output = Response<BoxBody>> + Send>>;
/// Another service, which answers in any way it likes, tunnels included.
pub(super) struct Service(pub(super) Box<dyn Fn(Request<BoxBody>) -> Answer + Send + Sync>);

impl std::fmt::Debug for Service {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Service")
    }
}

/// A route's work.
#[derive(Debug)]
pub(super) enum Handler {
    Pages(Embedded),
    Files(Folder),
    Proxy(Service),
    Redirect { to: Template, status: StatusCode },
    Respond(Canned),
}

impl Handler {
    /// # Errors
    /// If a folder cannot be opened, an upstream not be used, or a redirect's template is wrong.
    pub(super) fn new(
        settings: &config::Handler,
        proxies: &mut Proxies,
        before: &Proxies,
    ) -> Result<Handler, Failure> {
        Ok(match settings {
            config::Handler::Pages(pages) => Handler::Pages(Embedded::new(pages)),
            config::Handler::Files(files) => Handler::Files(Folder::open(files).map_err(unusable)?),
            config::Handler::Proxy(proxy) => Handler::Proxy(proxies.service(proxy, before)?),
            config::Handler::Redirect { to, status } => {
                Handler::Redirect { to: Template::parse(to).map_err(Failure::new)?, status: *status }
            }
            config::Handler::Respond(respond) => Handler::Respond(Canned::new(respond)),
        })
    }

    /// Whether it may see a path that two programs could read in two ways.
    pub(super) fn bears_doubtful_paths(&self) -> bool {
        matches!(self, Handler::Pages(_) | Handler::Files(_) | Handler::Respond(_))
    }
}

/// A route: what it does, and what it takes off the path before.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) strip_prefix: Option<String>,
    pub(super) handler: Handler,
}

impl Route {
    pub(super) async fn respond(
        &self,
        mut request: Request<BoxBody>,
        host: Option<&Host>,
        reader: Reader,
    ) -> Response<BoxBody> {
        if let Some(prefix) = &self.strip_prefix
            && let Some(uri) = path::without_prefix(request.uri(), prefix)
        {
            *request.uri_mut() = uri;
        }
        match &self.handler {
            Handler::Proxy(service) => (service.0)(request).await,
            Handler::Redirect { to, status } => match to.location(host, request.uri()) {
                Some(location) => redirect::to(location, *status),
                None => reader.page(StatusCode::BAD_REQUEST, "the request names no host"),
            },
            Handler::Respond(canned) => canned.answer(request.method()),
            Handler::Pages(_) | Handler::Files(_) if !is_read(request.method()) => {
                let page = reader.page(StatusCode::METHOD_NOT_ALLOWED, "files can be read only");
                super::allowing(page, &[Method::GET, Method::HEAD])
            }
            Handler::Pages(site) => site.respond(&request),
            Handler::Files(folder) => {
                folder.respond(request.map(drop), self.strip_prefix.as_deref().unwrap_or_default()).await
            }
        }
    }
}

/// The same words, and a way out.
fn unusable(error: FolderError) -> Failure {
    match error {
        FolderError::Unreadable(..) => Failure::new(format!("{error}, or none for the example site")),
        _ => Failure::new(error.to_string()),
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
