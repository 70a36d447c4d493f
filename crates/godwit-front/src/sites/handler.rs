//! What a route leads to: files, another server, a redirect, a fixed answer, or pages inside the program.

use godwit_body::Peer;
use http::{Method, Request, Response, StatusCode, Version};

use super::Asked;
use super::host::Host;
use super::proxy::Proxies;
use super::redirect::{self, Template};
use super::respond::Canned;
use crate::FrontError;
use crate::client::{Client, remote_of};
use crate::path;
use crate::service::{Answer, RouteService};
use crate::settings::{self, EarlyData};
use godwit_body::BoxBody;
use godwit_layers::files::{Embedded, Folder, FolderError};

/// A route's work.
#[derive(Debug)]
pub(super) enum Handler {
    Pages(Embedded),
    Files(Folder),
    Service(RouteService),
    Redirect { to: Template, status: StatusCode },
    Respond(Canned),
}

impl Handler {
    /// # Errors
    /// If a folder cannot be opened, an upstream not be used, or a redirect's template is wrong.
    pub(super) fn new(
        settings: &settings::Handler,
        proxies: &mut Proxies,
        before: &Proxies,
    ) -> Result<Handler, FrontError> {
        Ok(match settings {
            settings::Handler::Pages(pages) => Handler::Pages(Embedded::new(pages)),
            settings::Handler::Files(files) => Handler::Files(Folder::open(files).map_err(unusable)?),
            settings::Handler::Proxy(proxy) => Handler::Service(proxies.service(proxy, before)?),
            settings::Handler::Service(service) => Handler::Service(service.clone()),
            settings::Handler::Redirect { to, status } => {
                Handler::Redirect { to: Template::parse(to).map_err(FrontError::new)?, status: *status }
            }
            settings::Handler::Respond(respond) => Handler::Respond(Canned::new(respond)),
        })
    }

    /// Whether it may say something ahead of the final response.
    pub(super) fn may_speak_ahead(&self) -> bool {
        matches!(self, Handler::Service(_))
    }

    /// Whether it may see a path that two programs could read in two ways.
    pub(super) fn bears_doubtful_paths(&self) -> bool {
        matches!(self, Handler::Pages(_) | Handler::Files(_) | Handler::Respond(_))
    }
}

/// What a route says to a request.
pub(super) enum Answered {
    Now(Response<BoxBody>),
    /// It is boxed: requests that need not wait do without the room for it.
    Later(Answer),
}

/// A route: what it does, and what it takes off the path before.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) strip_prefix: Option<String>,
    /// What it answers before the handshake is complete.
    pub(super) early_data: EarlyData,
    pub(super) handler: Handler,
}

impl Route {
    pub(super) fn respond(
        &self,
        mut request: Request<BoxBody>,
        host: Option<&Host>,
        asked: Asked,
    ) -> Answered {
        let reader = asked.reader;
        if let Some(prefix) = &self.strip_prefix
            && let Some(uri) = path::without_prefix(request.uri(), prefix)
        {
            *request.uri_mut() = uri;
        }
        Answered::Now(match &self.handler {
            Handler::Service(service) => {
                name_peer(&mut request);
                return Answered::Later(service.answer(request));
            }
            Handler::Redirect { to, status } => match to.location(host, request.uri()) {
                Some(location) => redirect::to(location, *status),
                None => reader.page(StatusCode::BAD_REQUEST, "the request names no host"),
            },
            // A good answer to CONNECT would say that there is a tunnel (RFC 9110 section 9.3.6).
            Handler::Respond(_) if request.method() == Method::CONNECT => {
                let page = reader.page(StatusCode::METHOD_NOT_ALLOWED, "there is no tunnel at this address");
                super::allowing(page, &super::ORDINARY_METHODS)
            }
            Handler::Respond(canned) => canned.answer(request.method()),
            Handler::Pages(_) | Handler::Files(_) if !is_read(request.method()) => {
                let page = reader.page(StatusCode::METHOD_NOT_ALLOWED, "files can be read only");
                super::allowing(page, &[Method::GET, Method::HEAD])
            }
            Handler::Pages(site) => site.respond(&request),
            Handler::Files(folder) => {
                name_peer(&mut request);
                let prefix = self.strip_prefix.as_deref().map(path::encode).unwrap_or_default();
                let request = request.map(drop);
                match folder.respond_from_memory(&request, &prefix, Some(asked.arrived)) {
                    Some(response) => response,
                    None => return Answered::Later(Box::pin(folder.respond_from_disk(request, prefix))),
                }
            }
        })
    }
}

/// Whoever sent the request, in the words that services understand.
fn name_peer(request: &mut Request<BoxBody>) {
    let extensions = request.extensions();
    if let Some((client, remote)) = Client::of(extensions).zip(remote_of(extensions)) {
        let peer = Peer::new(remote, client.tls_resumed().is_some());
        // HTTP/3 has said it.
        if extensions.get::<Peer>() != Some(&peer) {
            request.extensions_mut().insert(peer);
        }
    }
}

/// Lets whoever answers say something ahead of the answer. Over HTTP/3 that is there already; clients of HTTP/1.0 would not
/// understand it (RFC 9110 section 15.2).
pub(super) fn offer_interim(request: &mut Request<BoxBody>) {
    if request.version() == Version::HTTP_11
        && let Some(interim) = Client::of(request.extensions()).and_then(|client| client.interim())
    {
        let sink = interim.sink();
        request.extensions_mut().insert(sink);
    }
}

/// The same words, and a way out.
fn unusable(error: FolderError) -> FrontError {
    match error {
        FolderError::Unreadable(..) => FrontError::new(format!("{error}, or none for the example site")),
        _ => FrontError::new(error.to_string()),
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
