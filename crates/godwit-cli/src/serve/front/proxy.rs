//! The way to other servers: settings of the configuration made into a proxy.

use super::handler::Service;
use crate::error::Failure;
use crate::serve::config;

/// # Errors
/// If an upstream cannot be used.
pub(super) fn service(settings: &config::Proxy) -> Result<Service, Failure> {
    let upstream = settings.upstreams.first().map_or("", String::as_str);
    Err(Failure::new(format!("cannot pass requests on to {upstream}: this program cannot do that yet")))
}
