//! What a reverse proxy wants to know of a request, in the terms that it shares with servers of other versions.

use super::connection_info::ConnectionInfo;
use godwit_http3::Protocol;
use http::Extensions;

/// Adds to a request's extensions what they say already, for a proxy.
pub(super) fn describe(extensions: &mut Extensions) {
    if let Some(mut address) = extensions.get::<ConnectionInfo>().map(ConnectionInfo::remote) {
        // An IPv4 address is one, however it reached the socket.
        address.set_ip(address.ip().to_canonical());
        extensions.insert(godwit_body::Peer::new(address, true));
    }
    if let Some(info) = extensions.get::<ConnectionInfo>().filter(|info| info.came_early()).cloned() {
        let later = info.clone();
        let confirmed = move || {
            let info = later.clone();
            async move { info.confirmed().await }
        };
        extensions.insert(godwit_body::EarlyData::until(move || !info.is_early(), confirmed));
    }
    if let Some(protocol) = extensions.get::<Protocol>().cloned() {
        extensions.insert(godwit_body::ExtendedConnect::new(protocol.as_str()));
    }
}
