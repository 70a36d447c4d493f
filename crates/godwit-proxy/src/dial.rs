//! Connections to an upstream, made as `godwit-client` makes them.

use crate::problem::{Problem, ProblemKind, chain};
use crate::reason::Reason;
use crate::settings::{SettingsError, Tls};
use crate::upstream::{Scheme, Upstream};
use godwit_client::dial::{Dialed, Dialer as ClientDialer, Tls as ClientTls};
use godwit_client::trust::Roots;
use rustls::pki_types::ServerName;

/// Makes connections to one upstream.
#[derive(Debug)]
pub(crate) struct Dialer(ClientDialer);

impl Dialer {
    pub(crate) fn new(upstream: &Upstream, tls: &TlsSetup) -> Result<Self, SettingsError> {
        let (host, port) = (upstream.host(), upstream.port());
        let (Scheme::Https, Some((tls, name))) = (upstream.scheme(), &tls.0) else {
            return Ok(Dialer(ClientDialer::plain(host, port)));
        };
        let (name, field) = match name {
            Some(name) => (name.clone(), "tls_name"),
            None => (host.trim_end_matches('.').to_owned(), "upstreams"),
        };
        let server = ServerName::try_from(name.clone()).map_err(|_| {
            SettingsError::new(field, format!("\"{}\" cannot be in a certificate", name.escape_debug()))
        })?;
        Ok(Dialer(ClientDialer::secure(host, port, server, tls.clone())))
    }

    /// A connection, for HTTP/1.1 if `http1` says so and otherwise for what the upstream prefers.
    pub(crate) async fn dial(&self, http1: bool) -> Result<Dialed, Problem> {
        self.0.dial(http1).await.map_err(|error| {
            Problem::new(ProblemKind::Connect, chain(&error)).because(Reason::of_dial(&error))
        })
    }
}

/// TLS for all upstreams of a proxy, if one of them needs it, and the name that is set.
pub(crate) struct TlsSetup(Option<(ClientTls, Option<String>)>);

impl TlsSetup {
    pub(crate) fn new(settings: &Tls, needed: bool) -> Result<Self, SettingsError> {
        // What is set and not used is checked all the same.
        let given = settings.ca.as_deref().map(roots).transpose()?;
        if !needed {
            return Ok(TlsSetup(None));
        }
        let tls = match settings.insecure {
            true => ClientTls::danger_accept_any_certificate(),
            false => ClientTls::new(given.unwrap_or_else(Roots::system)),
        };
        let tls = tls.map_err(|error| SettingsError::new("upstreams", error.to_string()))?;
        Ok(TlsSetup(Some((tls, settings.name.clone()))))
    }
}

fn roots(pem: &[u8]) -> Result<Roots, SettingsError> {
    let mut roots = Roots::none();
    roots.add_pem(pem).map_err(|error| SettingsError::new("ca", error.to_string()))?;
    Ok(roots)
}
