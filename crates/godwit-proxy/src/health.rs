//! Regular checks of an upstream's health.

use crate::backend::Backend;
use crate::pool::Connection;
use crate::settings::{Health, HostHeader, SettingsError};
use crate::upload::Upload;
use crate::{RequestBody, headers};
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Empty};
use std::sync::Arc;
use tokio::time::MissedTickBehavior;

/// The most of a body that is read so that its connection ends in good order.
const MAX_BODY: usize = 64 << 10;

/// What is asked for at each check.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    health: Health,
    path: PathAndQuery,
    host: HostHeader,
}

impl Check {
    pub(crate) fn new(health: &Health, host: &HostHeader) -> Result<Self, SettingsError> {
        let wrong = |what: String| SettingsError::new("health", what);
        let path = health.path.as_str();
        let parsed = path.starts_with('/').then(|| PathAndQuery::try_from(path).ok()).flatten();
        let parsed = parsed.ok_or_else(|| {
            wrong(format!("\"{}\" is not a path; it should be one such as /healthz", path.escape_debug()))
        })?;
        StatusCode::from_u16(health.status)
            .map_err(|_| wrong(format!("{} is not a status; it should be one such as 200", health.status)))?;
        if health.interval.is_zero() || health.timeout.is_zero() {
            return Err(wrong("interval and timeout must be longer than nothing".to_owned()));
        }
        if health.healthy == 0 || health.unhealthy == 0 {
            return Err(wrong("healthy and unhealthy must be 1 or more".to_owned()));
        }
        Ok(Check { health: health.clone(), path: parsed, host: host.clone() })
    }

    /// Checks again and again.
    pub(crate) async fn run(self, backend: Arc<Backend>) {
        let mut ticks = tokio::time::interval(self.health.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let good =
                tokio::time::timeout(self.health.timeout, self.once(&backend)).await.unwrap_or_else(|_| {
                    tracing::debug!(upstream = &*backend.name, "a health check took too long");
                    false
                });
            backend.on_check(good, (self.health.healthy, self.health.unhealthy));
        }
    }

    async fn once(&self, backend: &Backend) -> bool {
        let mut connection = match backend.dial_for_check().await {
            Ok(connection) => connection,
            Err(problem) => {
                tracing::debug!(upstream = &*backend.name, %problem, "a health check failed");
                return false;
            }
        };
        let http2 = matches!(connection, Connection::Http2(_));
        let upload = Upload::new(RequestBody::new(Empty::new().map_err(|never| match never {})), None);
        let host = headers::host_of(&self.host, None, &backend.upstream);
        let mut request = Request::new(upload.view());
        *request.method_mut() = Method::GET;
        if http2 {
            *request.version_mut() = Version::HTTP_2;
        }
        *request.uri_mut() = Uri::from(self.path.clone());
        headers::address(&mut request, host, backend.upstream.scheme(), http2);
        let agent = http::HeaderValue::from_static("godwit-health");
        request.headers_mut().insert(http::header::USER_AGENT, agent);
        let response = match &mut connection {
            Connection::Http1(http1) => http1.sender.send_request(request).await,
            Connection::Http2(http2) => http2.sender.send_request(request).await,
        };
        match response {
            Ok(response) => {
                let status = response.status();
                let _ = http_body_util::Limited::new(response.into_body(), MAX_BODY).collect().await;
                status.as_u16() == self.health.status
            }
            Err(error) => {
                tracing::debug!(upstream = &*backend.name, %error, "a health check failed");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_checked() {
        let check = |change: fn(&mut Health)| {
            let mut health = Health::default();
            change(&mut health);
            Check::new(&health, &HostHeader::Keep)
        };
        assert!(check(|_| {}).is_ok());
        assert!(check(|health| health.path = "healthz".to_owned()).is_err());
        assert!(check(|health| health.path = "/a b".to_owned()).is_err());
        assert!(check(|health| health.status = 42).is_err());
        assert!(check(|health| health.healthy = 0).is_err());
        assert!(check(|health| health.interval = std::time::Duration::ZERO).is_err());
    }
}
