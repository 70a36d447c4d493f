//! How connections to the server are made.

use super::link::Link;
use super::target::Target;
use super::tcp::TcpLink;
use crate::Error;
use crate::perf::protocol::NO_ERROR;
use crate::perf::window::outcome;
use godwit::{ClientConfig, ConnectionErrorKind, Endpoint};
use godwit_text::plain_error as plain;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Connections that are made at the same time before anything is measured.
const AT_ONCE: usize = 64;

/// How long a TCP connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(10);

/// How long connections may take to end in order once everything is measured.
pub(in crate::perf) const CLOSING: Duration = Duration::from_millis(500);

/// Makes connections.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) target: Arc<Target>,
    pub(super) way: Way,
}

/// Over what.
#[derive(Debug, Clone)]
pub(super) enum Way {
    Quic { endpoint: Endpoint, config: ClientConfig },
    Tcp { tls: Arc<rustls::ClientConfig>, name: ServerName<'static> },
}

impl Client {
    pub(super) async fn connect(&self) -> Result<Link, Error> {
        match &self.way {
            Way::Quic { endpoint, config } => self.over_quic(endpoint, config).await,
            Way::Tcp { tls, name } => self.over_tcp(tls, name).await,
        }
    }

    async fn over_quic(&self, endpoint: &Endpoint, config: &ClientConfig) -> Result<Link, Error> {
        let target = &self.target;
        let connecting = endpoint.connect(config, target.addr, &target.name);
        let connecting = connecting.map_err(|error| Error::new(format!("{}: {error}", target.text)))?;
        connecting.await.map(Link::Quic).map_err(|error| {
            let remedy = match error.kind() {
                ConnectionErrorKind::HandshakeTimedOut => {
                    "; is `godwit perf server` running there, and does a firewall let UDP through?"
                }
                _ => "",
            };
            Error::new(format!("cannot connect to {}: {error}{remedy}", target.text))
        })
    }

    async fn over_tcp(
        &self,
        tls: &Arc<rustls::ClientConfig>,
        name: &ServerName<'static>,
    ) -> Result<Link, Error> {
        let failed =
            |why: &str| Error::new(format!("cannot connect to {} over TCP: {why}", self.target.text));
        let tls = TlsConnector::from(Arc::clone(tls));
        let connecting = TcpLink::connect(&tls, self.target.addr, name.clone());
        match tokio::time::timeout(CONNECTING, connecting).await {
            Ok(connected) => {
                connected.map(|link| Link::Tcp(Box::new(link))).map_err(|error| failed(&plain(&error)))
            }
            Err(_) => Err(failed("no answer within 10 s; is `godwit perf server` running there?")),
        }
    }

    /// Makes so many connections, some of them at the same time.
    pub(super) async fn connect_all(&self, count: u32) -> Result<Vec<Link>, Error> {
        let mut made = Vec::new();
        let mut making = JoinSet::new();
        for _ in 0..count {
            if making.len() >= AT_ONCE
                && let Some(ended) = making.join_next().await
            {
                made.push(outcome(ended)?);
            }
            let client = self.clone();
            making.spawn(async move { client.connect().await });
        }
        while let Some(ended) = making.join_next().await {
            made.push(outcome(ended)?);
        }
        Ok(made)
    }

    /// Ends what is left, so that the server knows.
    pub(super) async fn close(&self) {
        if let Way::Quic { endpoint, .. } = &self.way {
            endpoint.close(NO_ERROR, b"");
            let _ = tokio::time::timeout(CLOSING, endpoint.wait_idle()).await;
        }
    }
}
