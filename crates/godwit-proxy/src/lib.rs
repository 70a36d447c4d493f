//! A reverse proxy as a tower service: pooled HTTP/1.1 and HTTP/2 upstreams, tunnels, health checks.
//!
//! ```
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use godwit_proxy::{Proxy, Settings};
//!
//! let settings = Settings::to(["http://127.0.0.1:8080".parse()?, "http://127.0.0.1:8081".parse()?]);
//! let proxy = Proxy::new(settings)?;
//! // `proxy` is a `tower::Service<http::Request<B>>` that never fails: what goes wrong upstream becomes a
//! // response with status 502, 503 or 504, and a `Problem` in its extensions.
//! # let _ = proxy;
//! # Ok(())
//! # }
//! # example().unwrap();
//! ```
//!
//! # What it takes from, and leaves in, extensions
//! | where | type | meaning |
//! |---|---|---|
//! | request | [`Peer`] | who sent it, for `Forwarded` and `X-Forwarded-*`, and for its network's share of the connections |
//! | request | [`Informational`] | where 100 and 103 responses are to go |
//! | request | [`ExtendedConnect`] or `hyper::ext::Protocol` | an extended CONNECT (RFC 8441, RFC 9220) |
//! | request | `hyper::upgrade::OnUpgrade` | the way to the client's bytes after an upgrade; without it the bodies of request and response are the tunnel |
//! | response | [`UpstreamTime`] | how long the upstream was waited for |
//! | response | [`Problem`] | why the proxy answered by itself |
//!
//! # Inside
//! A request (`forward`) goes to one of the upstreams (`backend`), on a connection from its pool
//! (`pool`) or a new one (`dial`). Bodies (`upload`, `body`) are never collected: each side is asked for more
//! only when the other has room. Whoever drops the response, or its body, before the end gives up the
//! exchange: an HTTP/1.1 connection is closed, an HTTP/2 stream is reset.
//!
//! Invariants: a connection goes back to its pool only when both messages are complete; a request is sent
//! again only if nothing of its body was taken and either nothing was sent or its method is idempotent
//! (RFC 9110 section 9.2.2); a message that broke off is never passed on as complete.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

mod alarm;
mod backend;
mod body;
mod dial;
mod forward;
mod headers;
mod health;
mod io;
mod layer;
mod permits;
mod pool;
mod problem;
mod reason;
mod service;
mod settings;
mod shares;
mod time;
mod tunnel;
mod upload;
mod upstream;
mod verdict;
mod windows;

pub use backend::UpstreamStatus;
pub use body::Body;
pub use godwit_body::{BoxError, EarlyData, ExtendedConnect, Informational, Peer};
pub use layer::{ProxyLayer, ProxyService};
pub use problem::{Problem, ProblemKind};
pub use reason::Reason;
pub use service::Proxy;
pub use settings::{
    Balance, Health, HostHeader, Network, NetworkError, Settings, SettingsError, Timeouts, Tls,
};
pub use time::UpstreamTime;
pub use upstream::{Scheme, Upstream, UpstreamError};

/// A request's body, of whatever type it was.
type RequestBody = godwit_body::BoxBody;

/// A lock whose owner may have panicked: what it guards is consistent after every statement.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
