//! What becomes of requests in 0-RTT packets (RFC 8470).
//!
//! Until the handshake is complete nobody knows who has sent them: it may be somebody who has recorded them and sends
//! them again. TLS lets each session be used once at one server, so that a copy is refused there; what got lost on
//! the way and is sent again elsewhere is not known by that.

use super::connection_info::ConnectionInfo;
use http::Method;

/// What a [`super::Server`] does with requests that come in 0-RTT packets, before the handshake is complete. There are
/// some only if [`crate::ServerConfigBuilder::early_data`] is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EarlyRequests {
    /// Those whose method is safe (RFC 9110 section 9.2.1) are served at once. Others wait until the handshake is complete
    /// (RFC 8470 section 3), which costs them no more than a full handshake would have; if it never is, they are forgotten.
    #[default]
    Safe,
    /// All are served at once: the service looks at [`ConnectionInfo::is_early`] itself, or does no harm when it does
    /// the same twice.
    All,
    /// None is served before the handshake is complete.
    Later,
}

impl EarlyRequests {
    /// Whether a request has to wait until the handshake is complete.
    pub(super) fn holds(self, method: &Method, info: &ConnectionInfo) -> bool {
        self == EarlyRequests::Safe && !method.is_safe() && info.is_early()
    }
}
